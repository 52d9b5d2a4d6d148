//! Amounts of memory and of output.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::quantity;
use crate::text::schema_of_text;

/// A number of bytes.
///
/// | text      | means                                                           |
/// |-----------|-----------------------------------------------------------------|
/// | `1000`    | bytes                                                           |
/// | `512MiB`  | powers of 1024: `KiB`, `MiB`, `GiB`, `TiB`; a space is allowed  |
/// | `5MB`     | powers of 1000: `KB`, `MB`, `GB`, `TB`                          |
///
/// It prints in the largest unit that gives a whole number.
///
/// ```
/// let size: policy::ByteSize = "8 MiB".parse()?;
/// assert_eq!(size.bytes(), 8 * 1024 * 1024);
/// assert_eq!(size.to_string(), "8MiB");
/// # Ok::<(), policy::ByteSizeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ByteSize(u64);

schema_of_text!(
    ByteSize,
    "A number of bytes, with a unit: `KiB`, `MiB`, `GiB` and `TiB` are powers of 1024, `KB`, `MB`, `GB` and `TB` of 1000.",
    ["512MiB", "5MB", "1000"],
    "pattern": "^\\s*[0-9]+\\s*([KkMmGgTt][Ii]?[Bb])?\\s*$"
);

/// From large to small.
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("", 1),
];

impl ByteSize {
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    pub const fn from_mib(mib: u32) -> Self {
        Self((mib as u64) << 20)
    }

    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<Self, ByteSizeError> {
        let (number, unit) = quantity::split(text).ok_or_else(|| ByteSizeError::NoNumber(text.to_owned()))?;
        let (_, bytes) = UNITS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))
            .ok_or_else(|| ByteSizeError::UnknownUnit(unit.to_owned()))?;
        u64::try_from(number.saturating_mul(u128::from(*bytes)))
            .map(Self)
            .map_err(|_| ByteSizeError::TooLarge(text.to_owned()))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `KB` is read but not written: plain bytes are as short, and are not taken for `KiB`.
        let mut written = UNITS.iter().filter(|(name, _)| *name != "KB");
        match written.find(|(_, bytes)| self.0 > 0 && self.0.is_multiple_of(*bytes)) {
            Some((name, bytes)) => write!(f, "{}{name}", self.0 / bytes),
            None => write!(f, "{}", self.0),
        }
    }
}

impl TryFrom<String> for ByteSize {
    type Error = ByteSizeError;

    fn try_from(text: String) -> Result<Self, ByteSizeError> {
        text.parse()
    }
}

impl From<ByteSize> for String {
    fn from(size: ByteSize) -> Self {
        size.to_string()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ByteSizeError {
    #[error("`{}` is no size; write a whole number and a unit, as in `512MiB`, `5MB` or `1000`", .0.escape_debug())]
    NoNumber(String),
    #[error("`{}` is no unit of size; use `KiB`, `MiB`, `GiB` or `TiB`, as in `512MiB`, or none for bytes", .0.escape_debug())]
    UnknownUnit(String),
    #[error("`{}` is more bytes than 64 bits can count", .0.escape_debug())]
    TooLarge(String),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_read_and_printed() {
        for (text, bytes, printed) in [
            ("512MiB", 512 << 20, "512MiB"),
            ("8 MiB", 8 << 20, "8MiB"),
            ("64KiB", 64 << 10, "64KiB"),
            ("1GiB", 1 << 30, "1GiB"),
            ("2TiB", 2 << 40, "2TiB"),
            ("1000", 1000, "1000"),
            ("5MB", 5_000_000, "5MB"),
            ("64KB", 64_000, "64000"),
            ("10GB", 10_000_000_000, "10GB"),
            ("1024mib", 1 << 30, "1GiB"),
            (" 1 kb ", 1000, "1000"),
            ("0", 0, "0"),
            ("0GiB", 0, "0"),
            ("18446744073709551615", u64::MAX, "18446744073709551615"),
        ] {
            let size: ByteSize = text.parse().unwrap();
            assert_eq!((size.bytes(), size.to_string().as_str()), (bytes, printed), "{text}");
        }
    }

    #[test]
    fn errors_teach_the_form() {
        for (text, error) in [
            (
                "",
                "`` is no size; write a whole number and a unit, as in `512MiB`, `5MB` or `1000`",
            ),
            (
                "MiB",
                "`MiB` is no size; write a whole number and a unit, as in `512MiB`, `5MB` or `1000`",
            ),
            (
                "-1",
                "`-1` is no size; write a whole number and a unit, as in `512MiB`, `5MB` or `1000`",
            ),
            (
                "5M",
                "`M` is no unit of size; use `KiB`, `MiB`, `GiB` or `TiB`, as in `512MiB`, or none for bytes",
            ),
            (
                "1.5GiB",
                "`.5GiB` is no unit of size; use `KiB`, `MiB`, `GiB` or `TiB`, as in `512MiB`, or none for bytes",
            ),
            ("16777216TiB", "`16777216TiB` is more bytes than 64 bits can count"),
            (
                "18446744073709551616",
                "`18446744073709551616` is more bytes than 64 bits can count",
            ),
        ] {
            assert_eq!(text.parse::<ByteSize>().unwrap_err().to_string(), error);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(number: u64, unit in 0..UNITS.len()) {
            let size = ByteSize(number.saturating_mul(UNITS[unit].1));
            prop_assert_eq!(size.to_string().parse(), Ok(size));
            let json = serde_json::to_string(&size).unwrap();
            prop_assert_eq!(&json, &format!("\"{size}\""));
            prop_assert_eq!(serde_json::from_str::<ByteSize>(&json).unwrap(), size);
        }
    }
}

//! How long a call may take.

use std::{fmt, num::NonZeroU64, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::quantity;
use crate::text::schema_of_text;

/// A span of wall-clock time, in whole milliseconds, never zero: no call could end within a zero timeout.
///
/// The text is a whole number and its unit, one of `ms`, `s`, `m` and `h`, as in `30s`; a space is allowed. It prints in
/// the largest unit that gives a whole number.
///
/// ```
/// let timeout: policy::Timeout = "90s".parse()?;
/// assert_eq!(timeout.duration().as_secs(), 90);
/// assert!("0s".parse::<policy::Timeout>().is_err());
/// # Ok::<(), policy::TimeoutError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timeout(NonZeroU64);

schema_of_text!(
    Timeout,
    "A span of time: a whole number that is not zero, and `ms`, `s`, `m` or `h`.",
    ["30s", "500ms", "2m"],
    "pattern": "^\\s*[0-9]+\\s*(ms|s|m|h)\\s*$"
);

/// In milliseconds, from large to small.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl Timeout {
    pub const fn from_millis(millis: NonZeroU64) -> Self {
        Self(millis)
    }

    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0.get())
    }
}

impl FromStr for Timeout {
    type Err = TimeoutError;

    fn from_str(text: &str) -> Result<Self, TimeoutError> {
        let (number, unit) = quantity::split(text).ok_or_else(|| TimeoutError::NoNumber(text.to_owned()))?;
        let (_, millis) = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(|| TimeoutError::Unit(text.to_owned()))?;
        let millis =
            u64::try_from(number.saturating_mul(u128::from(*millis))).map_err(|_| TimeoutError::TooLong(text.to_owned()))?;
        NonZeroU64::new(millis).map(Self).ok_or(TimeoutError::Zero)
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.get();
        match UNITS.iter().find(|(_, unit)| millis.is_multiple_of(*unit)) {
            Some((name, unit)) => write!(f, "{}{name}", millis / unit),
            None => write!(f, "{millis}ms"),
        }
    }
}

impl TryFrom<String> for Timeout {
    type Error = TimeoutError;

    fn try_from(text: String) -> Result<Self, TimeoutError> {
        text.parse()
    }
}

impl From<Timeout> for String {
    fn from(timeout: Timeout) -> Self {
        timeout.to_string()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeoutError {
    #[error("`{}` is no span of time; write a whole number and a unit, as in `30s`, `500ms`, `2m` or `1h`", .0.escape_debug())]
    NoNumber(String),
    #[error("`{}` needs a unit that is one of `ms`, `s`, `m` and `h`, as in `30s`", .0.escape_debug())]
    Unit(String),
    #[error("a timeout of zero would end every call before it starts; the least is `1ms`")]
    Zero,
    #[error("`{}` is more milliseconds than 64 bits can count", .0.escape_debug())]
    TooLong(String),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spans_are_read_and_printed() {
        for (text, millis, printed) in [
            ("30s", 30_000, "30s"),
            ("500ms", 500, "500ms"),
            ("2m", 120_000, "2m"),
            ("1h", 3_600_000, "1h"),
            ("90 s", 90_000, "90s"),
            ("120s", 120_000, "2m"),
            ("1000ms", 1_000, "1s"),
            ("18446744073709551615ms", u64::MAX, "18446744073709551615ms"),
        ] {
            let timeout: Timeout = text.parse().unwrap();
            assert_eq!(timeout.duration(), Duration::from_millis(millis), "{text}");
            assert_eq!(timeout.to_string(), printed);
        }
    }

    #[test]
    fn errors_teach_the_form() {
        for (text, error) in [
            (
                "",
                "`` is no span of time; write a whole number and a unit, as in `30s`, `500ms`, `2m` or `1h`",
            ),
            (
                "soon",
                "`soon` is no span of time; write a whole number and a unit, as in `30s`, `500ms`, `2m` or `1h`",
            ),
            ("30", "`30` needs a unit that is one of `ms`, `s`, `m` and `h`, as in `30s`"),
            (
                "1.5s",
                "`1.5s` needs a unit that is one of `ms`, `s`, `m` and `h`, as in `30s`",
            ),
            ("1M", "`1M` needs a unit that is one of `ms`, `s`, `m` and `h`, as in `30s`"),
            (
                "0s",
                "a timeout of zero would end every call before it starts; the least is `1ms`",
            ),
            (
                "18446744073709551615s",
                "`18446744073709551615s` is more milliseconds than 64 bits can count",
            ),
        ] {
            assert_eq!(text.parse::<Timeout>().unwrap_err().to_string(), error);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(number: NonZeroU64, unit in 0..UNITS.len()) {
            let timeout = Timeout(number.saturating_mul(NonZeroU64::new(UNITS[unit].1).unwrap()));
            prop_assert_eq!(timeout.to_string().parse(), Ok(timeout));
            let json = serde_json::to_string(&timeout).unwrap();
            prop_assert_eq!(&json, &format!("\"{timeout}\""));
            prop_assert_eq!(serde_json::from_str::<Timeout>(&json).unwrap(), timeout);
        }
    }
}

//! Digests of content.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of some bytes. The text is `sha256:` and 64 hexadecimal digits, lower-case.
///
/// Registries may name others; every registry has this one, and one is enough to compare by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digits alone: fit as the name of a file.
    pub fn hex(&self) -> String {
        let digits = self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
    }

    /// As people write it: with or without `sha256:`, in any case.
    pub fn from_person(text: &str) -> Result<Self, DigestError> {
        Self::from_hex(text.strip_prefix("sha256:").unwrap_or(text))
    }

    /// From the digits alone.
    pub fn from_hex(hex: &str) -> Result<Self, DigestError> {
        format!("sha256:{}", hex.to_ascii_lowercase()).parse()
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let refused = || DigestError(text.to_owned());
        let hex = text.strip_prefix("sha256:").ok_or_else(refused)?;
        let mut bytes = [0; 32];
        if hex.len() != 64 || hex.contains(|c: char| !matches!(c, '0'..='9' | 'a'..='f')) {
            return Err(refused());
        }
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            let pair = hex.get(at..at + 2).ok_or_else(refused)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| refused())?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no digest that can be checked\nhint: write `sha256:` and 64 hexadecimal digits in lower case")]
pub struct DigestError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_read_and_printed() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), empty);
        assert_eq!(empty.parse(), Ok(Digest::of(b"")));
    }

    #[test]
    fn what_is_no_digest_is_refused() {
        let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        for text in [
            String::new(),
            hex.to_owned(),
            format!("sha512:{hex}{hex}"),
            format!("sha256:{}", &hex[1..]),
            format!("sha256:{hex}0"),
            format!("sha256:{}", hex.to_uppercase()),
            format!("sha256:é{}", &hex[2..]),
        ] {
            assert_eq!(text.parse::<Digest>(), Err(DigestError(text)));
        }
    }
}

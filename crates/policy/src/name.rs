//! Names of hosts.

use std::{fmt, str::FromStr};

use crate::text::as_text;

/// A DNS name: ASCII, in lower case, without the dot of the root.
///
/// A name is never an address: what a resolver could take for a number, as in `127.1` or `0x7f.1`, is refused.
///
/// ```
/// let name: policy::DnsName = "API.Example.com.".parse()?;
/// assert_eq!(name.as_str(), "api.example.com");
/// assert!("127.1".parse::<policy::DnsName>().is_err());
/// # Ok::<(), policy::DnsNameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DnsName(Box<str>);

as_text!(
    DnsName,
    "The name of a host, in ASCII; other letters are written as `xn--…`.",
    ["api.example.com"]
);

const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

impl DnsName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Is it `localhost`, or a name below it? Both mean this machine (RFC 6761).
    pub fn is_localhost(&self) -> bool {
        self.0.rsplit('.').next() == Some("localhost")
    }

    /// Is it a name below another, at any depth? No name is below itself.
    pub fn is_below(&self, parent: &Self) -> bool {
        self.0.strip_suffix(&*parent.0).is_some_and(|labels| labels.ends_with('.'))
    }
}

impl FromStr for DnsName {
    type Err = DnsNameError;

    fn from_str(text: &str) -> Result<Self, DnsNameError> {
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.is_empty() {
            return Err(DnsNameError::Empty);
        }
        if !name.is_ascii() {
            return Err(DnsNameError::NotAscii(text.to_owned()));
        }
        if name.len() > MAX_NAME {
            return Err(DnsNameError::TooLong(name.len()));
        }
        let name = name.to_ascii_lowercase();
        for label in name.split('.') {
            if label.is_empty() || label.len() > MAX_LABEL {
                return Err(DnsNameError::Label(text.to_owned()));
            }
            let is_foreign = |c: &char| !matches!(c, 'a'..='z' | '0'..='9' | '_' | '-');
            if let Some(character) = label.chars().find(is_foreign) {
                return Err(DnsNameError::Character {
                    name: text.to_owned(),
                    character,
                });
            }
        }
        let last = name.rsplit('.').next().unwrap_or_default();
        if last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(DnsNameError::Number(text.to_owned()));
        }
        Ok(Self(name.into()))
    }
}

impl fmt::Display for DnsName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DnsNameError {
    #[error("a name of a host is missing; write it as in `api.example.com`")]
    Empty,
    #[error(
        "`{}` has letters that no name on the wire has; \
         write it in its ASCII form, which starts with `xn--`",
        .0.escape_debug()
    )]
    NotAscii(String),
    #[error("a name of {0} characters is longer than DNS allows, which is {MAX_NAME}")]
    TooLong(usize),
    #[error(
        "`{}` is no name of a host: between its dots are 1 to {MAX_LABEL} characters, as in \
         `api.example.com`",
        .0.escape_debug()
    )]
    Label(String),
    #[error(
        "`{}` is no name of a host: {character:?} is none of the letters, digits, `-` and `_` that a name can \
         have",
        .name.escape_debug()
    )]
    Character { name: String, character: char },
    #[error("`{}` ends in a number, as an address does; write an address in full, as in `127.0.0.1`", .0.escape_debug())]
    Number(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_spelling() {
        for (text, name) in [
            ("example.com", "example.com"),
            ("EXAMPLE.Com.", "example.com"),
            ("_dmarc.example.com", "_dmarc.example.com"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("localhost", "localhost"),
            ("1.2.3.4.example", "1.2.3.4.example"),
            ("0x7f.example", "0x7f.example"),
        ] {
            assert_eq!(text.parse::<DnsName>().unwrap().as_str(), name);
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let long_label = format!("{}.com", "a".repeat(64));
        let long_name = format!("{}com", "a.".repeat(126));
        for text in [
            "",
            ".",
            "..",
            "a..b",
            ".a",
            "a..",
            "bücher.example",
            "a b",
            "a/b",
            "a@b",
            "a:1",
            "*",
            "*.a",
            "a%2e",
            "a\0",
            "1",
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f.1",
            "0x7f000001",
            "a.0x",
            "a.0X1.",
            "::1",
            "[::1]",
            &long_label,
            &long_name,
        ] {
            assert!(text.parse::<DnsName>().is_err(), "{text}");
        }
    }

    #[test]
    fn below_is_below_and_not_beside() {
        let parent: DnsName = "example.com".parse().unwrap();
        for (name, is_below) in [
            ("a.example.com", true),
            ("a.b.example.com", true),
            ("example.com", false),
            ("notexample.com", false),
            ("com", false),
            ("example.com.evil.net", false),
        ] {
            assert_eq!(name.parse::<DnsName>().unwrap().is_below(&parent), is_below, "{name}");
        }
    }
}

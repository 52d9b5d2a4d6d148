//! Environment variables that are passed on, and the names of secrets.

use std::{fmt, str::FromStr};

use crate::text::{as_text, is_hidden};

const MAX_VARIABLE_NAME: usize = 255;
const MAX_SECRET_NAME: usize = 128;

/// The name of an environment variable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariableName(String);

as_text!(VariableName, "The name of an environment variable.", ["API_URL"]);

impl VariableName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for VariableName {
    type Err = VariableError;

    fn from_str(text: &str) -> Result<Self, VariableError> {
        if text.is_empty() {
            return Err(VariableError::NoName);
        }
        if text.len() > MAX_VARIABLE_NAME {
            return Err(VariableError::LongName(text.len()));
        }
        if text.contains('=') || text.contains(is_hidden) {
            return Err(VariableError::Name(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for VariableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An environment variable that a guest is given.
///
/// The text is `NAME`, for the value that this process has, or `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: VariableName,
    /// `None` is the value that this process has.
    pub value: Option<String>,
}

as_text!(
    Variable,
    "An environment variable: `NAME` for the value that the host has, or `NAME=VALUE`.",
    ["TZ", "API_URL=https://api.example.com"]
);

impl FromStr for Variable {
    type Err = VariableError;

    fn from_str(text: &str) -> Result<Self, VariableError> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let name: VariableName = name.parse()?;
        if value.is_some_and(|value| value.contains('\0')) {
            return Err(VariableError::Value(name));
        }
        Ok(Self {
            name,
            value: value.map(str::to_owned),
        })
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        match &self.value {
            Some(value) => write!(f, "={value}"),
            None => Ok(()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    #[error("a variable needs a name; write `NAME`, or `NAME=VALUE` to give it another value")]
    NoName,
    #[error("a name of {0} bytes is too long for a variable; the most is {MAX_VARIABLE_NAME}")]
    LongName(usize),
    #[error("`{}` is no name of a variable; it has no `=` and no character that cannot be seen", .0.escape_debug())]
    Name(String),
    #[error("the value of `{0}` has a NUL character, which no variable can hold; take it out")]
    Value(VariableName),
}

/// The name under which a person keeps a secret, which is also the variable in which a guest finds it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretName(String);

as_text!(
    SecretName,
    "The name of a secret: letters, digits, `_`, `.` and `-`.",
    ["GITHUB_TOKEN"]
);

impl SecretName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SecretName {
    type Err = SecretNameError;

    fn from_str(text: &str) -> Result<Self, SecretNameError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        match (1..=MAX_SECRET_NAME).contains(&text.len()) && text.bytes().all(is_allowed) {
            true => Ok(Self(text.to_owned())),
            false => Err(SecretNameError(text.to_owned())),
        }
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is no name of a secret; use 1 to {MAX_SECRET_NAME} letters, digits, `_`, `.` and `-`, as in \
     `GITHUB_TOKEN`",
    .0.escape_debug()
)]
pub struct SecretNameError(String);

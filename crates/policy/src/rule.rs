//! What a person allows or denies, one thing at a time, as on the command line.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::text::as_text;
use crate::{Directory, DirectoryError, NetworkRule, NetworkRuleError, SecretName, SecretNameError, Variable, VariableError};

/// Something that is allowed.
///
/// The text is `read=DIR[:GUEST]`, `write=DIR[:GUEST]`, `net=RULE`, `env=NAME[=VALUE]`, `secret=NAME` or `all`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permission {
    Read(Directory),
    /// Reading, too.
    Write(Directory),
    Net(NetworkRule),
    Env(Variable),
    Secret(SecretName),
    /// All but what is denied.
    All,
}

as_text!(
    Permission,
    "Something that a component may use: `read=DIR[:GUEST]`, `write=DIR[:GUEST]`, `net=[SCHEME://]HOST[:PORT]`, \
     `env=NAME[=VALUE]`, `secret=NAME` or `all`.",
    [
        "read=/srv/data:/data",
        "net=https://api.example.com",
        "env=TZ",
        "secret=GITHUB_TOKEN"
    ]
);

/// Something that is denied, whatever is allowed.
///
/// The text is `read=DIR` or `net=RULE`. Who may not read a directory may not write to it either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    Read(PathBuf),
    Net(NetworkRule),
}

as_text!(
    Denial,
    "Something that a component may not use, whatever else allows it: `read=DIR` or `net=[SCHEME://]HOST[:PORT]`.",
    ["read=/srv/data/private", "net=*.internal.example.com"]
);

/// An option of the command line that allows or denies something.
///
/// ```
/// let rule: policy::Rule = "--allow-net=https://api.example.com".parse()?;
/// assert_eq!(rule.to_string(), "--allow-net=https://api.example.com");
/// # Ok::<(), policy::RuleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    Allow(Permission),
    Deny(Denial),
}

as_text!(
    Rule,
    "Something that a component may or may not use, as on the command line.",
    ["--allow-net=https://api.example.com", "--deny-read=/srv/data/private"]
);

const PERMISSIONS: &[&str] = &["read", "write", "net", "env", "secret", "all"];
const DENIALS: &[&str] = &["read", "net"];

impl FromStr for Permission {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let (kind, value) = split(text);
        let needed = || value.ok_or_else(|| RuleError::NoValue(kind.to_owned()));
        match kind {
            "read" => Ok(Self::Read(needed()?.parse()?)),
            "write" => Ok(Self::Write(needed()?.parse()?)),
            "net" => Ok(Self::Net(needed()?.parse()?)),
            "env" => Ok(Self::Env(needed()?.parse()?)),
            "secret" => Ok(Self::Secret(needed()?.parse()?)),
            "all" if value.is_none() => Ok(Self::All),
            "all" => Err(RuleError::AllOfSomething),
            _ => Err(RuleError::unknown("allowed", kind, PERMISSIONS)),
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(directory) => write!(f, "read={directory}"),
            Self::Write(directory) => write!(f, "write={directory}"),
            Self::Net(rule) => write!(f, "net={rule}"),
            Self::Env(variable) => write!(f, "env={variable}"),
            Self::Secret(name) => write!(f, "secret={name}"),
            Self::All => f.write_str("all"),
        }
    }
}

impl FromStr for Denial {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let (kind, value) = split(text);
        let needed = || {
            let value = value.filter(|value| !value.is_empty());
            value.ok_or_else(|| RuleError::NoValue(kind.to_owned()))
        };
        match kind {
            "read" => Ok(Self::Read(needed()?.into())),
            "net" => Ok(Self::Net(needed()?.parse()?)),
            _ => Err(RuleError::unknown("denied", kind, DENIALS)),
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path) => write!(f, "read={}", path.display()),
            Self::Net(rule) => write!(f, "net={rule}"),
        }
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        if let Some(permission) = text.strip_prefix("--allow-") {
            return permission.parse().map(Self::Allow);
        }
        match text.strip_prefix("--deny-") {
            Some(denial) => denial.parse().map(Self::Deny),
            None => Err(RuleError::NoRule(text.to_owned())),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow(permission) => write!(f, "--allow-{permission}"),
            Self::Deny(denial) => write!(f, "--deny-{denial}"),
        }
    }
}

fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once('=') {
        Some((kind, value)) => (kind, Some(value)),
        None => (text, None),
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error(
        "`{}` is no rule; write `--allow-KIND=…` or `--deny-KIND=…`, as in \
         `--allow-net=https://api.example.com`",
        .0.escape_debug()
    )]
    NoRule(String),
    #[error("`{}` is nothing that can be {what}; use {kinds}{guess}", .kind.escape_debug())]
    Unknown {
        what: &'static str,
        kind: String,
        kinds: String,
        guess: String,
    },
    #[error("`{0}` needs a value; write `{0}=…`")]
    NoValue(String),
    #[error("`all` has no value, for it is everything; write `all` alone")]
    AllOfSomething,
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Network(#[from] NetworkRuleError),
    #[error(transparent)]
    Variable(#[from] VariableError),
    #[error(transparent)]
    Secret(#[from] SecretNameError),
}

impl RuleError {
    fn unknown(what: &'static str, kind: &str, kinds: &[&str]) -> Self {
        // One slip in three letters; more is another word. What starts like a kind means it: `network`, `environment`.
        let nearest = kinds
            .iter()
            .map(|known| (strsim::damerau_levenshtein(known, kind), known))
            .min_by_key(|(distance, _)| *distance)
            .filter(|(distance, _)| *distance * 3 <= kind.len())
            .map(|(_, known)| known)
            .or_else(|| kinds.iter().find(|known| kind.starts_with(**known)));
        let quoted: Vec<_> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
        let kinds = match quoted.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        };
        Self::Unknown {
            what,
            kind: kind.to_owned(),
            kinds,
            guess: nearest.map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?")),
        }
    }
}

//! Why a file was left alone.

use crate::Format;

/// Nothing was changed, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error(
        "line {line}, column {column} is no valid {format}: {reason}; the file was left as it is: repair it, or add the entry by hand"
    )]
    Broken {
        format: Format,
        line: usize,
        column: usize,
        reason: String,
    },
    #[error("the file is {found}, not a map of settings; it was left as it is: repair it, or add the entry by hand")]
    Root { found: &'static str },
    #[error("`{key}` is {found}, not a map of servers; the file was left as it is: repair it, or add the entry by hand")]
    Container { key: &'static str, found: &'static str },
    #[error(
        "`{key}` stands there twice, and readers do not agree which one counts; the file was left as it is: remove one of them"
    )]
    Duplicate { key: String },
    /// An entry of the same name that is not ours.
    #[error(
        "the client has a server `{name}` already, and it is not one of ours; the file was left as it is: choose another `--name`"
    )]
    Taken { name: String },
    /// The same, to be removed.
    #[error("the server `{name}` is not one of ours; the file was left as it is: remove it in the client, if you want that")]
    NotOurs { name: String },
    #[error(
        "{client} takes no URL from its file, only servers that it starts; leave `--http` out, or add the URL in its settings, under Connectors"
    )]
    NoHttp { client: &'static str },
    #[error("{what} is written {how}, which is not edited here; the file was left as it is: add or remove the entry by hand")]
    Style { what: String, how: &'static str },
    /// The safety net held. This is a mistake of ours, or a file that nobody thought of.
    #[error(
        "the edit would have changed more than the server `{name}`; the file was left as it is: add or remove the entry by hand"
    )]
    Unsafe { name: String },
}

//! What can go wrong between a file and a result. Every message says what happened and, where there is something, what to do.

use std::path::{Path, PathBuf};

use component2json::ArgumentErrors;
use policy::ByteSize;
use sandbox::{CallError, Capabilities, CodeError};
use tokio::task::JoinError;

use crate::audit::{AuditError, Outcome};
use crate::id::ComponentId;
use crate::store::StoreError;

/// Why a file was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("`{shown}` could not be read: {error}{hint}", shown = shown(path), hint = hint(error))]
    Read { path: PathBuf, error: std::io::Error },
    #[error("`{shown}` is empty\nhint: build or download it again", shown = shown(path))]
    Empty { path: PathBuf },
    #[error("`{shown}` is a directory\nhint: name one component in it", shown = shown(path))]
    Directory { path: PathBuf },
    #[error("`{shown}` is no ordinary file", shown = shown(path))]
    NotAFile { path: PathBuf },
    #[error("`{shown}` is larger than {limit}, the most that is loaded", shown = shown(path))]
    TooLarge { path: PathBuf, limit: ByteSize },
    #[error(
        "`{shown}` is not WebAssembly: it starts with {start}\nhint: give a component (`.wasm`), or a file with its text form (`.wat`)", shown = shown(path))]
    NotWasm { path: PathBuf, start: String },
    #[error("`{shown}` is not valid WebAssembly text: {error}", shown = shown(path))]
    Text { path: PathBuf, error: String },
    #[error(
        "`{shown}` is a core WebAssembly module and not a component, so its functions have no types to make tools from\n\
         hint: build it as a component (`cargo build --target wasm32-wasip2`), or wrap it with `wasm-tools component new`", shown = shown(path))]
    CoreModule { path: PathBuf },
    #[error("`{shown}`: {error}\nhint: if it was built or copied here, that may not have come to its end; do it again", shown = shown(path))]
    Component { path: PathBuf, error: component2json::Error },
    #[error(
        "`{shown}` imports what this host does not offer: {}\nhint: compose it with a component that exports that",
        backticked(imports), shown = shown(path))]
    UnknownImports { path: PathBuf, imports: Vec<String> },
    #[error("`{shown}` exports no function that can be a tool{reasons}\nhint: `host inspect` shows all that it exports", shown = shown(path))]
    NoTools { path: PathBuf, reasons: String },
    #[error("there is no `.wasm` or `.wat` file in `{shown}`\nhint: name a component, or a directory that has some", shown = shown(path))]
    NothingInDirectory { path: PathBuf },
    #[error("`{shown}` is not served: {reason}", shown = shown(path))]
    NotServed { path: PathBuf, reason: String },
    #[error("no component in `{shown}` can be served{problems}", shown = shown(path))]
    NothingServable { path: PathBuf, problems: String },
    #[error("{what}\nhint: `host update {id}` gets it again")]
    Damaged { id: ComponentId, what: &'static str },
    #[error("`{shown}` is a program that cannot be run: {reason}", shown = shown(path))]
    Broken { path: PathBuf, reason: String },
    #[error("`{shown}` is no program: it has neither `wasi:cli/run` nor `_start`\nhint: `host inspect` shows what it exports", shown = shown(path))]
    NoProgram { path: PathBuf },
    #[error("`{shown}` is no binary, and would be replaced by one\nhint: assemble it first, for example with `wasm-tools parse`", shown = shown(path))]
    IsText { path: PathBuf },
    #[error("`{shown}` could not be written: {error}", shown = shown(path))]
    Write { path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the description `{shown}` cannot be used: {problem}", shown = shown(path))]
    Description { path: PathBuf, problem: String },
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    #[error("there is no tool `{name}`{}", known(nearest))]
    UnknownTool { name: String, nearest: Vec<String> },
    #[error("{0}")]
    Arguments(ArgumentErrors),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Code(#[from] CodeError),
    #[error("`{path}` could not be read again: {error}")]
    Reread { path: PathBuf, error: Box<LoadError> },
    #[error("`{path}` has changed since it was loaded\nhint: restart to serve what is there now, or serve with `--watch`")]
    Changed { path: PathBuf },
    #[error("the result could not be given: {0}")]
    Result(component2json::ResultError),
    /// It failed, and perhaps because of something that it did not get.
    #[error("{notes}\n{error}")]
    Denied { notes: String, error: Box<ExecuteError> },
    #[error("the arguments do not fit the schema of the tool: {0}")]
    Schema(String),
    #[error("the result does not fit the schema of the tool, so it is not given: {0}")]
    OutputSchema(String),
    #[error("what came from the component is not what its interface says: {0}")]
    Offer(String),
    #[error("{0}")]
    NotFound(String),
    /// What was asked for cannot be had, as the component says.
    #[error("{0}")]
    Refused(String),
    /// It should have been had, as the component says.
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    Audit(#[from] AuditError),
    #[error("the host stopped")]
    Stopped,
}

/// Why a call has to be made again, or by another client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// The client is to answer something first.
    Paused,
    /// It would need a client that has this.
    Missing(Capabilities),
}

impl ExecuteError {
    /// Whether the call did not fail, but waits for its client.
    pub fn interruption(&self) -> Option<Interruption> {
        match self {
            Self::Denied { error, .. } => error.interruption(),
            Self::Call(error) => match error.cause() {
                CallError::Paused => Some(Interruption::Paused),
                CallError::Missing(capabilities) => Some(Interruption::Missing(*capabilities)),
                _ => None,
            },
            _ => None,
        }
    }

    /// How it stands in the audit.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Arguments(_) | Self::Schema(_) | Self::UnknownTool { .. } | Self::NotFound(_) | Self::Refused(_) => {
                Outcome::BadArguments
            }
            Self::Call(error) if matches!(error.cause(), CallError::Paused | CallError::Missing(_)) => Outcome::Asked,
            Self::Call(error) if error.is_a_limit() => Outcome::Limit,
            Self::Call(error) if matches!(error.cause(), CallError::Busy { .. }) => Outcome::Busy,
            Self::Denied { error, .. } => error.outcome(),
            _ => Outcome::Failed,
        }
    }

    /// What happened, without anything that the guest or the client said.
    pub(crate) fn in_own_words(&self) -> Option<String> {
        let text = match self {
            Self::Arguments(_)
            | Self::Schema(_)
            | Self::UnknownTool { .. }
            | Self::NotFound(_)
            | Self::Refused(_)
            | Self::Failed(_) => return None,
            Self::Call(error) => error.cause().to_string(),
            Self::Denied { error, .. } => return error.in_own_words(),
            other => other.to_string(),
        };
        text.lines().next().map(str::to_owned)
    }
}

/// A task of ours had no result.
impl From<JoinError> for ExecuteError {
    fn from(error: JoinError) -> Self {
        match error.is_panic() {
            true => CallError::HostPanic.into(),
            false => Self::Stopped,
        }
    }
}

/// What to do about a file that is not there.
fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::NotFound => "\nhint: look at the path; `host list` shows what was added, which is named by its id",
        _ => "",
    }
}

/// A path for a person. Names of files may have line breaks in them, which would look like lines of ours.
pub(crate) fn shown(path: &Path) -> String {
    let escaped = |c: char| {
        if c.is_control() {
            c.escape_debug().to_string()
        } else {
            c.to_string()
        }
    };
    path.to_string_lossy().chars().map(escaped).collect()
}

fn backticked(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn known(names: &[String]) -> String {
    match names {
        [] => "; no tools are loaded".to_owned(),
        names => format!("; there is {}", backticked(names)),
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::{JoinHandle, spawn};

    use super::*;

    #[tokio::test]
    async fn a_failure_of_ours_is_told_apart_from_the_end() {
        let failed: JoinHandle<()> = spawn(async { panic!("on purpose") });
        let error = ExecuteError::from(failed.await.unwrap_err());
        assert!(matches!(error, ExecuteError::Call(CallError::HostPanic)), "{error:?}");
        let stopped: JoinHandle<()> = spawn(std::future::pending());
        stopped.abort();
        let error = ExecuteError::from(stopped.await.unwrap_err());
        assert!(matches!(error, ExecuteError::Stopped), "{error:?}");
    }
}

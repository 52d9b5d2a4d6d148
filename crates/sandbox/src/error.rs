//! How a call ends when it does not end well. Every message says what happened and what can be done about it.

use std::path::PathBuf;

use policy::{ByteSize, Timeout};

use crate::client::Capabilities;
use crate::code::CodeError;

/// Why a call gave no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("the call was stopped at its deadline of {0}\nhint: allow more with `--timeout`")]
    Deadline(Timeout),
    #[error("the component reached its memory limit of {0}\nhint: allow more with `--max-memory`")]
    Memory(ByteSize),
    #[error("more came from the component at once than its output limit of {0} allows\nhint: allow more with `--max-output`")]
    Output(ByteSize),
    #[error("the component computed for longer than its limit of {0}\nhint: allow more with `--max-cpu`")]
    Cpu(Timeout),
    #[error("the component has more open handles than its limit of {0}\nhint: allow more with `--max-handles`")]
    Handles(u32),
    #[error("the component has more {what} than it may have\nhint: allow more with `{limit}` in `host.toml`")]
    TooMany { what: &'static str, limit: &'static str },
    #[error("the component exited with code {0} in the middle of the call, without a result")]
    Exit(i32),
    #[error("the component trapped: {0}")]
    Trap(String),
    #[error(
        "something is denied inside of a granted directory, which cannot be held for this guest: it is a core module, or reads files \
         by WASI 0.3\nhint: grant directories that do not contain what is denied with `--deny-read`"
    )]
    Holes,
    #[error(
        "the granted directory `{path}` cannot be opened: {error}\nhint: check the `--allow-read` or `--allow-write` that names it"
    )]
    Directory { path: PathBuf, error: String },
    #[error(transparent)]
    Code(#[from] CodeError),
    #[error("the host itself failed in this call; other calls are not affected. Please report this")]
    HostPanic,
    #[error(
        "busy: as many calls are running as may ({running}), and no more can wait\nhint: try again later, or allow more with `--max-concurrent-calls`"
    )]
    Busy { running: u32 },
    #[error("the call was stopped")]
    Stopped,
    /// The client has to answer something first, and call again.
    #[error("the component asks something, and the client cannot be asked in the middle of a call")]
    Paused,
    #[error("the client lacks what the component needs of it: {}", names(*_0))]
    Missing(Capabilities),
    #[error("{error}\n{stream}:\n{text}")]
    WithOutput {
        error: Box<CallError>,
        stream: &'static str,
        text: String,
    },
}

fn names(capabilities: Capabilities) -> String {
    let all = [
        (Capabilities::ELICITATION, "elicitation"),
        (Capabilities::SAMPLING, "sampling"),
        (Capabilities::ROOTS, "roots"),
    ];
    let names = all.into_iter().filter(|(one, _)| capabilities.contains(*one));
    names.map(|(_, name)| name).collect::<Vec<_>>().join(", ")
}

impl CallError {
    /// Whether the guest used up what it may use: what it printed on the way explains nothing.
    pub fn is_a_limit(&self) -> bool {
        matches!(
            self.cause(),
            Self::Deadline(_) | Self::Cpu(_) | Self::Memory(_) | Self::Output(_) | Self::Handles(_) | Self::TooMany { .. }
        )
    }

    /// The error without what the guest printed.
    pub fn cause(&self) -> &Self {
        match self {
            Self::WithOutput { error, .. } => error.cause(),
            other => other,
        }
    }
}

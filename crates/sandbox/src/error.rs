//! How a call ends when it does not end well. Every message says what happened and what can be done about it.

use std::path::PathBuf;

use policy::{ByteSize, Timeout};

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
    #[error("the component exited with code {0} in the middle of the call, without a result")]
    Exit(i32),
    #[error("the component trapped: {0}")]
    Trap(String),
    #[error(
        "the component asked for {what}, which was not granted\nhint: this cannot be granted yet; the component has to do without"
    )]
    Denied { what: String },
    #[error(
        "the granted directory `{path}` cannot be opened: {error}\nhint: check the `--allow-read` or `--allow-write` that names it"
    )]
    Directory { path: PathBuf, error: String },
    #[error(transparent)]
    Code(#[from] CodeError),
    #[error("the host itself failed in this call; other calls are not affected. Please report this")]
    HostPanic,
    #[error("too many calls are running; this one found no room\nhint: try again")]
    Busy,
    #[error("the call was stopped")]
    Stopped,
    #[error("{error}\n{stream}:\n{text}")]
    WithOutput {
        error: Box<CallError>,
        stream: &'static str,
        text: String,
    },
}

impl CallError {
    /// The error without what the guest printed.
    pub fn cause(&self) -> &Self {
        match self {
            Self::WithOutput { error, .. } => error.cause(),
            other => other,
        }
    }
}

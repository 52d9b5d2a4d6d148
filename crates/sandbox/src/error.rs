//! How a call ends when it does not end well. Every message says what happened and what can be done about it.

use policy::{ByteSize, Timeout};

use crate::code::CodeError;

/// Why a call gave no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("the call was stopped at its deadline of {0}\nhint: allow more with `--timeout`")]
    Deadline(Timeout),
    #[error("the component reached its memory limit of {0}\nhint: allow more with `--max-memory`")]
    Memory(ByteSize),
    #[error("the result exceeds the output limit of {0}\nhint: allow more with `--max-output`")]
    Output(ByteSize),
    #[error("the component exited with code {0} in the middle of the call, without a result")]
    Exit(i32),
    #[error("the component trapped: {0}")]
    Trap(String),
    #[error("the component asked for {what}, which was not granted")]
    Denied { what: String },
    #[error("the component could not be started: {0}")]
    Start(String),
    #[error(transparent)]
    Code(#[from] CodeError),
    #[error("the host itself failed in this call; other calls are not affected. Please report this")]
    HostPanic,
    #[error("the call was stopped")]
    Stopped,
    #[error("{error}\nstderr of the component:\n{stderr}")]
    WithStderr { error: Box<CallError>, stderr: String },
}

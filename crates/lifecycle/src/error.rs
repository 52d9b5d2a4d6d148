//! What can go wrong between a file and a result. Every message says what happened and, where there is something, what to do.

use std::path::PathBuf;

use component2json::ArgumentErrors;
use policy::ByteSize;
use sandbox::{CallError, CodeError};

use crate::id::ComponentId;
use crate::store::StoreError;

/// Why a file was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("`{path}` could not be read: {error}")]
    Read { path: PathBuf, error: std::io::Error },
    #[error("`{path}` is empty\nhint: build or download it again")]
    Empty { path: PathBuf },
    #[error("`{path}` is a directory\nhint: name one component in it")]
    Directory { path: PathBuf },
    #[error("`{path}` is no ordinary file")]
    NotAFile { path: PathBuf },
    #[error("`{path}` is larger than {limit}, the most that is loaded")]
    TooLarge { path: PathBuf, limit: ByteSize },
    #[error(
        "`{path}` is not WebAssembly: it starts with {start}\nhint: give a component (`.wasm`), or a file with its text form (`.wat`)"
    )]
    NotWasm { path: PathBuf, start: String },
    #[error("`{path}` is not valid WebAssembly text: {error}")]
    Text { path: PathBuf, error: String },
    #[error(
        "`{path}` is a core WebAssembly module and not a component, so its functions have no types to make tools from\n\
         hint: build it as a component (`cargo build --target wasm32-wasip2`), or wrap it with `wasm-tools component new`"
    )]
    CoreModule { path: PathBuf },
    #[error("`{path}`: {error}\nhint: if it was built or copied here, that may not have come to its end; do it again")]
    Component { path: PathBuf, error: component2json::Error },
    #[error(
        "`{path}` imports what this host does not offer: {}\nhint: compose it with a component that exports that",
        backticked(imports)
    )]
    UnknownImports { path: PathBuf, imports: Vec<String> },
    #[error("`{path}` exports no function that can be a tool{reasons}\nhint: `host inspect` shows all that it exports")]
    NoTools { path: PathBuf, reasons: String },
    #[error("there is no `.wasm` or `.wat` file in `{path}`\nhint: name a component, or a directory that has some")]
    NothingInDirectory { path: PathBuf },
    #[error(
        "`{path}` is a program, and nothing of it is left to be offered: all its commands are hidden, deprecated, or not among \
         those that were chosen"
    )]
    NoCommands { path: PathBuf },
    #[error("no component in `{path}` can be served{problems}")]
    NothingServable { path: PathBuf, problems: String },
    #[error("{what}\nhint: `host update {id}` gets it again")]
    Damaged { id: ComponentId, what: &'static str },
    #[error("`{path}` is a program that cannot be run: {reason}")]
    Broken { path: PathBuf, reason: String },
    #[error("`{path}` is no program: it has neither `wasi:cli/run` nor `_start`\nhint: `host inspect` shows what it exports")]
    NoProgram { path: PathBuf },
    #[error("`{path}` is no binary, and would be replaced by one\nhint: assemble it first, for example with `wasm-tools parse`")]
    IsText { path: PathBuf },
    #[error("`{path}` could not be written: {error}")]
    Write { path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the description `{path}` cannot be used: {problem}")]
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
    #[error("the host stopped")]
    Stopped,
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

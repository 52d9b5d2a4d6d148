//! `host compile-worker`: what `host` starts to compile a component, in a process that can be ended.

use std::process::ExitCode;

use clap::Args;

use crate::output;

/// Compile what is read from stdin
#[derive(Args)]
#[command(hide = true)]
pub(crate) struct CompileWorker {
    /// What it is
    kind: String,
    /// The engine that the code is for
    key: String,
}

impl CompileWorker {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match lifecycle::compile_in_worker(&self.kind, &self.key) {
            Ok(code) => {
                output::bytes(&code)?;
                Ok(ExitCode::SUCCESS)
            }
            Err(error) => {
                // Whoever started this reads it, and says the rest.
                output::note(&error);
                Ok(ExitCode::from(2))
            }
        }
    }
}

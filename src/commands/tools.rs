//! `host tools`: the tool definitions as JSON.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde_json::json;

use crate::options::{ComponentName, LoadOptions, Running};
use crate::output;

/// Print the tool definitions that `serve` would offer
#[derive(Args)]
pub(crate) struct Tools {
    /// Ids of components that were added, files (`.wasm` or `.wat`), or directories of them; all that was added, if none is named
    #[arg(value_name = "COMPONENT")]
    components: Vec<ComponentName>,
    /// Write to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    load: LoadOptions,
}

impl Tools {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let manager = self.load.load(&self.components, Running::default())?;
        let tools: Vec<_> = manager.tools().iter().map(|tool| json!(tool.definition)).collect();
        let text = serde_json::to_string_pretty(&json!({ "tools": tools }))?;
        match &self.output {
            Some(file) => lifecycle::write_atomically(file, format!("{text}\n").as_bytes())
                .with_context(|| format!("`{}` could not be written", file.display()))?,
            None => output::line(&text)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

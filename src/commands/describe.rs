//! `host describe`: what is known of a program's commands, to correct by hand and keep.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use crate::options::{ComponentName, LoadOptions, Running};
use crate::output;

/// Write down what is known of a program's commands, to correct and keep
///
/// The program is asked for its help in the empty sandbox. A description that lies beside the program, as NAME.cli.json, takes the
/// place of its help from then on.
#[derive(Args)]
pub(crate) struct Describe {
    /// The program: a file (`.wasm` or `.wat`), or the id of one that was added
    program: ComponentName,
    /// Write to a file instead of stdout
    #[arg(short, long, value_name = "FILE", conflicts_with = "embed")]
    output: Option<PathBuf>,
    /// Put this description (`.cli.json` or `.usage.kdl`) into the program itself, so that it carries it anywhere
    #[arg(long, value_name = "FILE")]
    embed: Option<PathBuf>,
    #[command(flatten)]
    load: LoadOptions,
}

impl Describe {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(description) = &self.embed {
            let program = self.program.path();
            lifecycle::embed_description(program, description)?;
            output::note(&format!("`{}` carries its description now", program.display()));
            return Ok(ExitCode::SUCCESS);
        }
        let manager = self.load.manager(Running::default())?;
        let text = serde_json::to_string_pretty(&manager.describe(&self.program.find(&manager)?)?)?;
        match &self.output {
            Some(file) => lifecycle::write_atomically(file, format!("{text}\n").as_bytes())
                .with_context(|| format!("`{}` could not be written", file.display()))?,
            None => output::line(&text)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

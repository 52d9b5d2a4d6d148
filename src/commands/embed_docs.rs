//! `host embed-docs`: put the docs of a WIT into a component.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::output;

/// Put the docs of a WIT into a component, so that it carries them anywhere
///
/// Toolchains drop the `///` comments of a WIT when they build a component. This puts them back, in a custom section that other
/// programs ignore.
#[derive(Args)]
pub(crate) struct EmbedDocs {
    /// The component
    component: PathBuf,
    /// The WIT file or folder that it was built from
    #[arg(long, value_name = "PATH")]
    wit: PathBuf,
    /// Write to this file instead of changing the component in place
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl EmbedDocs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let target = self.output.as_ref().unwrap_or(&self.component);
        let grown = lifecycle::embed_docs(&self.component, &self.wit, target)?;
        output::note(&format!("wrote `{}`: {grown} bytes of docs", target.display()));
        Ok(ExitCode::SUCCESS)
    }
}

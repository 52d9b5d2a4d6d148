//! `host embed-docs`: put the docs of a WIT, and what its author says of its tools by hand, into a component.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::output;

/// Put the docs of a WIT into a component, so that it carries them anywhere
///
/// Toolchains drop the `///` comments of a WIT when they build a component. This puts them back, in a custom section that other
/// programs ignore. What a `tools.json` says of its tools (names, schemas, icons) goes into another one.
#[derive(Args)]
pub(crate) struct EmbedDocs {
    /// The component
    component: PathBuf,
    /// The WIT file or folder that it was built from
    #[arg(long, value_name = "PATH", required_unless_present = "tools")]
    wit: Option<PathBuf>,
    /// A file with names, titles, descriptions, schemas, annotations and icons of its tools
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// Write to this file instead of changing the component in place
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl EmbedDocs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let target = self.output.as_ref().unwrap_or(&self.component);
        let mut from = &self.component;
        // What is wrong with either is found out before anything is written.
        if let Some(tools) = &self.tools {
            lifecycle::check_tools(tools)?;
        }
        if let Some(wit) = &self.wit {
            let grown = lifecycle::embed_docs(from, wit, target)?;
            output::note(&format!("wrote `{}`: {grown} bytes of docs", target.display()));
            from = target;
        }
        if let Some(tools) = &self.tools {
            let grown = lifecycle::embed_tools(from, tools, target)?;
            output::note(&format!("wrote `{}`: {grown} bytes about its tools", target.display()));
        }
        Ok(ExitCode::SUCCESS)
    }
}

//! `host serve`: MCP over stdio.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use mcp_server::{Server, serve_stdio};

use crate::options::{GrantOptions, LimitOptions, LoadOptions};

/// Serve components and programs as MCP tools over stdin and stdout
#[derive(Args)]
pub(crate) struct Serve {
    /// Components or programs (`.wasm` or `.wat`), or directories of them
    #[arg(required = true, value_name = "COMPONENT")]
    components: Vec<PathBuf>,
    #[command(flatten)]
    load: LoadOptions,
    #[command(flatten)]
    grants: GrantOptions,
    #[command(flatten)]
    limits: LimitOptions,
}

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let manager = Arc::new(
            self.load
                .load(&self.components, self.limits.limits(), self.grants.grants()?)?,
        );
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let served = runtime.block_on(async {
            let warming = Arc::clone(&manager);
            tokio::spawn(async move { warming.warm_up().await });
            serve_stdio(Server::new(manager)).await
        });
        // The client is gone: nobody waits for what may still be compiling.
        runtime.shutdown_background();
        served?;
        Ok(ExitCode::SUCCESS)
    }
}

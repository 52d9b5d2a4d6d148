//! `host push`: publish a component to a registry.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use sources::Source;

use crate::options::{ComponentName, NetworkOptions};
use crate::output;

/// Publish a component or program to an OCI registry
///
/// Credentials are those of `docker login`, or HOST_REGISTRY_USERNAME and HOST_REGISTRY_PASSWORD for the registry in
/// HOST_REGISTRY.
#[derive(Args)]
pub(crate) struct Push {
    /// A file (`.wasm`), or the id of a component that was added
    component: ComponentName,
    /// Where to, as `oci://REGISTRY/REPOSITORY:TAG`
    to: Source,
    #[command(flatten)]
    network: NetworkOptions,
}

impl Push {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Source::Oci(reference) = &self.to else {
            bail!(
                "`{}` is no place in a registry\nhint: write `oci://REGISTRY/REPOSITORY:TAG`",
                self.to
            );
        };
        let manager = self.network.manager()?;
        let place = self.component.find(&manager)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let pushed = runtime.block_on(manager.push(&place, reference))?;
        output::line(&format!("pushed {}", Source::Oci(pushed.reference)))?;
        Ok(ExitCode::SUCCESS)
    }
}

//! `host remove`: take components out.

use std::process::ExitCode;

use clap::Args;
use lifecycle::ComponentId;

use crate::{options, output};

/// Remove components that were added, and what they were granted
#[derive(Args)]
pub(crate) struct Remove {
    #[arg(required = true)]
    ids: Vec<ComponentId>,
}

impl Remove {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        for entry in options::store_manager()?.store()?.remove(&self.ids)? {
            output::line(&format!("removed `{}`", entry.id))?;
        }
        output::note("hint: `host gc` frees the room that they took");
        Ok(ExitCode::SUCCESS)
    }
}

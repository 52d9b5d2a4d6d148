//! `host remove`: take components out.

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::Args;
use lifecycle::ComponentId;

use crate::{options, output};

/// Remove components that were added, what they were granted, and their secrets
#[derive(Args)]
pub(crate) struct Remove {
    /// Their ids: `host list` shows all
    #[arg(required = true, value_parser = ComponentId::parse)]
    ids: Vec<ComponentId>,
}

impl Remove {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        // One that is named twice is removed once.
        let ids: BTreeSet<ComponentId> = self.ids.into_iter().collect();
        let ids: Vec<ComponentId> = ids.into_iter().collect();
        let manager = options::store_manager()?;
        let store = manager.store()?;
        for entry in store.remove(&ids)? {
            output::line(&format!("removed `{}`", entry.id))?;
        }
        for id in store.forget_secrets(&ids)? {
            output::line(&format!("forgot the secrets of `{id}`"))?;
        }
        output::note("hint: `host gc` frees the room that they took");
        Ok(ExitCode::SUCCESS)
    }
}

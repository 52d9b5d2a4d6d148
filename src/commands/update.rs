//! `host update`: take what is new at the sources, after looking at it.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use lifecycle::{ComponentId, LifecycleManager, NewRevision, Update as Found};

use policy::Grants;

use crate::options::NetworkOptions;
use crate::output;

/// Take what is new where components came from, after showing what changes
///
/// Tools that change are shown and have to be accepted. Grants were given to the old bytes, and the new ones have them only with
/// consent.
#[derive(Args)]
pub(crate) struct Update {
    /// Their ids; all, if none is named
    #[arg(value_name = "ID", value_parser = ComponentId::parse)]
    ids: Vec<ComponentId>,
    /// Accept changed tools without being asked
    #[arg(long)]
    accept_changes: bool,
    /// Let the new bytes have the grants of the old ones without being asked
    #[arg(long)]
    keep_grants: bool,
    #[command(flatten)]
    network: NetworkOptions,
}

/// What became of one component.
enum Outcome {
    Done,
    NotAccepted,
}

impl Update {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let manager = self.network.manager()?;
        let index = manager.store()?.index()?;
        let ids: Vec<ComponentId> = match self.ids.as_slice() {
            [] => index.entries.iter().map(|entry| entry.id.clone()).collect(),
            ids => ids.to_vec(),
        };
        for id in &ids {
            index.known(id)?;
        }
        if ids.is_empty() {
            output::note("nothing was added yet\nhint: `host add SOURCE`");
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut all_done = true;
        for id in &ids {
            // One that fails keeps no other from being updated.
            match runtime.block_on(self.update(&manager, id)) {
                Ok(Outcome::Done) => {}
                Ok(Outcome::NotAccepted) => all_done = false,
                Err(error) => {
                    output::error(&format!("`{id}` was not updated: {error:#}"));
                    all_done = false;
                }
            }
        }
        Ok(ExitCode::from(u8::from(!all_done)))
    }

    async fn update(&self, manager: &Arc<LifecycleManager>, id: &ComponentId) -> anyhow::Result<Outcome> {
        let new = match manager.check_for_update(id).await? {
            Found::Unchanged => {
                output::line(&format!("`{id}` is as it was added"))?;
                return Ok(Outcome::Done);
            }
            Found::Mended => {
                output::line(&format!("`{id}` was damaged in the store, and is as it was added again"))?;
                return Ok(Outcome::Done);
            }
            Found::Pinned => {
                output::line(&format!("`{id}` is pinned to its digest, and stays"))?;
                return Ok(Outcome::Done);
            }
            Found::New(new) => new,
        };
        output::line(&summary(&new))?;
        for change in &new.changes {
            output::line(change.text().trim_end())?;
        }
        for note in &new.after.notes {
            output::note(&format!("note: {note}"));
        }
        let accepted = new.changes.is_empty() || self.accept_changes || output::confirm("Accept that?")?;
        if !accepted {
            output::note(&format!(
                "`{id}` was not updated: what agents see of it changes\nhint: `host update {id} --accept-changes` accepts that"
            ));
            return Ok(Outcome::NotAccepted);
        }
        let entry = manager.update(&new, self.keeps_grants(&new)?)?;
        output::line(&format!("updated `{id}`"))?;
        if entry.grants.is_empty() && !new.before.grants.is_empty() {
            output::note(&format!(
                "`{id}` has new bytes, and has lost what was granted to the old ones\n\
                 hint: `host grant {id}{}` gives them again",
                given_again(&new.before.grants)
            ));
        }
        Ok(Outcome::Done)
    }

    fn keeps_grants(&self, new: &NewRevision) -> anyhow::Result<bool> {
        if self.keep_grants || new.before.grants.is_empty() || new.before.digest == new.after.digest {
            return Ok(self.keep_grants);
        }
        let grants: Vec<String> = new.before.grants.rules().iter().map(ToString::to_string).collect();
        output::confirm(&format!("Let the new bytes have {}?", grants.join(", ")))
    }
}

/// What was granted, as it is given again.
fn given_again(grants: &Grants) -> String {
    grants.rules().iter().map(|rule| format!(" {rule}")).collect()
}

fn summary(new: &NewRevision) -> String {
    let id = &new.before.id;
    let bytes = if new.before.digest == new.after.digest {
        format!("`{id}` has the same bytes and another description")
    } else {
        format!(
            "`{id}` is new at {}\n  {} →\n  {}",
            new.before.source.shown(),
            new.before.digest,
            new.after.digest
        )
    };
    if new.changes.is_empty() {
        format!("{bytes}\n  what agents see of it stays the same")
    } else {
        format!("{bytes}\n  what agents see of it changes:")
    }
}

//! Granting for good, by a person: bound to a component's id and to the bytes that it has now.

use std::sync::Arc;

use policy::{Grants, Rule};
use sources::{Digest, Source};

use crate::add::{AddError, Wanted};
use crate::config::is_similar;
use crate::id::ComponentId;
use crate::manager::LifecycleManager;
use crate::served::Selection;
use crate::store::{Entry, StoreError};

/// Why nothing was granted or revoked.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "`{id}` has another directory as `{guest}` already\nhint: give this one another path with `DIR:GUEST`, or revoke the other first"
    )]
    Contradiction { id: ComponentId, guest: String },
    #[error("`{id}` was not granted `{rule}`{}", has(granted))]
    NotGranted {
        id: ComponentId,
        rule: Rule,
        granted: Vec<Rule>,
    },
}

fn has(granted: &[Rule]) -> String {
    let rules: Vec<String> = granted.iter().map(|rule| format!("\n  {rule}")).collect();
    match rules.as_slice() {
        [] => "; nothing was granted to it".to_owned(),
        rules => format!("; it has{}", rules.concat()),
    }
}

/// A component that the config file names a source for, and that is not there yet.
#[derive(Clone, Debug)]
pub struct Configured {
    pub id: ComponentId,
    source: Source,
    sha256: Option<Digest>,
}

impl LifecycleManager {
    /// Grants something to a component that was added.
    pub fn grant(&self, id: &ComponentId, more: &Grants) -> Result<Entry, GrantError> {
        self.store()?.change(|index| {
            index.known(id)?;
            let entry = index.entry_mut(id).ok_or_else(|| unknown(id))?;
            if let Some(guest) = entry.grants.contradiction(more) {
                return Err(GrantError::Contradiction { id: id.clone(), guest });
            }
            let mut grants = entry.grants.clone();
            // What is given again with another value has that from now on.
            for rule in more.rules() {
                if let Rule::Allow(permission @ policy::Permission::Env(_)) = rule {
                    let _ = grants.allow(permission);
                }
            }
            entry.grants = grants.and(more);
            Ok(entry.clone())
        })
    }

    /// Takes rules from a component; all that it was granted where none is named.
    pub fn revoke(&self, id: &ComponentId, rules: &[Rule]) -> Result<Entry, GrantError> {
        self.store()?.change(|index| {
            index.known(id)?;
            let entry = index.entry_mut(id).ok_or_else(|| unknown(id))?;
            let mut grants = match rules {
                // What is denied is not granted, so it is not taken back with the rest.
                [] => Grants {
                    denied_directories: entry.grants.denied_directories.clone(),
                    denied_network: entry.grants.denied_network.clone(),
                    ..Grants::default()
                },
                _ => entry.grants.clone(),
            };
            for rule in rules {
                if !grants.remove(rule) {
                    return Err(GrantError::NotGranted {
                        id: id.clone(),
                        rule: rule.clone(),
                        granted: entry.grants.rules(),
                    });
                }
            }
            entry.grants = grants;
            Ok(entry.clone())
        })
    }

    /// Whether the config file names a source for a component.
    pub fn has_configured_source(&self, id: &ComponentId) -> bool {
        self.file().components.get(id).is_some_and(|config| config.source.is_some())
    }

    /// What the config file says of components that nobody knows, each with a name that was probably meant.
    pub fn misspelt_components(&self) -> Vec<(ComponentId, ComponentId)> {
        let file = self.file();
        if file.components.is_empty() {
            return Vec::new();
        }
        let served = self.list_components().components.into_iter().map(|component| component.id);
        let added = self
            .store()
            .and_then(|store| store.index())
            .map(|index| index.entries)
            .unwrap_or_default();
        let known: Vec<ComponentId> = served.chain(added.into_iter().map(|entry| entry.id)).collect();
        let unknown = file
            .components
            .iter()
            .filter(|(id, config)| config.source.is_none() && !known.contains(id));
        let nearest = |id: &ComponentId| {
            let similar = |other: &&ComponentId| is_similar(id.as_str(), other.as_str()) && !file.components.contains_key(other);
            known.iter().find(similar).cloned()
        };
        unknown.filter_map(|(id, _)| Some((id.clone(), nearest(id)?))).collect()
    }

    /// What the config file names a source for, and is not there yet, among what is to be served.
    pub fn configured_sources(&self, selection: &Selection) -> Result<Vec<Configured>, AddError> {
        let file = self.file();
        let wanted = |id: &ComponentId| match selection {
            Selection::None => false,
            Selection::All => true,
            Selection::Only(ids) => ids.contains(id),
        };
        let mut missing = Vec::new();
        for (id, config) in file.components.iter().filter(|(id, _)| wanted(id)) {
            let Some(text) = &config.source else { continue };
            let source = match text.parse::<Source>()? {
                Source::File(path) => Source::File(file.folder().join(path)),
                other => other,
            };
            match self.store()?.index()?.entry(id) {
                None => missing.push(Configured {
                    id: id.clone(),
                    source,
                    sha256: config.sha256.map(|digest| digest.0),
                }),
                Some(entry) if entry.source == source => {}
                Some(entry) => tracing::warn!(
                    "`host.toml` wants `{id}` from {}, and it was added from {}: `host remove {id}` lets it be added anew",
                    source.shown(),
                    entry.source.shown()
                ),
            }
        }
        Ok(missing)
    }

    /// Adds what the config file names a source for. It is granted nothing by that.
    pub async fn add_configured(self: &Arc<Self>, missing: Configured) -> Result<(), AddError> {
        let wanted = Wanted {
            name: Some(missing.id),
            sha256: missing.sha256,
            ..Wanted::default()
        };
        let candidate = self.fetch(&missing.source, wanted).await?;
        self.add(&candidate, &Grants::default())?;
        Ok(())
    }
}

fn unknown(id: &ComponentId) -> GrantError {
    let error = StoreError::Unknown {
        id: id.clone(),
        known_ids: vec![],
    };
    error.into()
}

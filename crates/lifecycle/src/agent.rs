//! What an agent may do with the host, for a person who allowed it: load, unload, grant and revoke, within what `host.toml` says.
//!
//! An agent reads texts from strangers, so it gets no further than the `[agent]` table: it loads from the sources that are listed
//! there, touches only components that come from there, and grants only directories that are listed. It never replaces bytes that
//! were accepted: that stays with `host update`.

use std::path::PathBuf;
use std::sync::Arc;

use policy::{Directory, DirectoryGrant, Grants};
use sources::{Digest, Source};

use crate::add::{AddError, Added, Wanted};
use crate::confine::not_granted;
use crate::id::{ComponentId, IdError};
use crate::loaded::Origin;
use crate::manager::LifecycleManager;
use crate::report::{
    ComponentList, ComponentReport, DirectoryPermission, GrantReport, LoadOutcome, LoadReport, MissingReport, PolicyReport, Status,
    UnloadOutcome, UnloadReport,
};
use crate::store::{Entry, Index, StoreError};

/// Why the host did not do what the agent asked for.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error(transparent)]
    Add(#[from] AddError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "`{asked}` is none of the sources that an agent may load from\n\
         hint: the person who runs this host can list it in `host.toml`, under `[agent]`, as in `sources = [\"{asked}\"]`"
    )]
    Source { asked: String },
    #[error(
        "`{id}` comes from {source_text}, which is none of the sources that an agent may manage\n\
         hint: the person who runs this host can list it in `host.toml`, under `[agent]`, as in `sources = [\"{source_text}\"]`"
    )]
    Foreign { id: ComponentId, source_text: String },
    #[error(
        "the directory `{asked}` is none of those that an agent may grant\n\
         hint: the person who runs this host can list it in `host.toml`, under `[agent]`, as in `directories = [\"{asked}\"]`"
    )]
    Directory { asked: String },
    #[error("`{asked}` is no component or program that can be served")]
    NoComponent { asked: String },
    #[error("the directory `{asked}` cannot be granted: {problem}")]
    NoDirectory { asked: String, problem: String },
    #[error("`{id}` has no such grant\nhint: `get_policy` shows those that it has")]
    NoGrant { id: ComponentId },
    #[error("`{id}` is served from a file that was named when the host was started, and cannot be managed")]
    NotAdded { id: ComponentId },
    #[error(
        "`host.toml` says something of `{id}`, so an agent can load nothing under that name\n\
         hint: load it with another `name`; or the person who runs this host can add `sha256` there"
    )]
    Reserved { id: ComponentId },
    #[error(transparent)]
    Name(#[from] IdError),
    #[error("the digest is wrong: {0}")]
    Digest(#[from] sources::DigestError),
    #[error("the host stopped")]
    Stopped,
}

impl LifecycleManager {
    /// Adds a component and serves it. What is there already is never changed.
    pub async fn agent_load(
        self: &Arc<Self>,
        text: &str,
        name: Option<&str>,
        sha256: Option<&str>,
    ) -> Result<LoadReport, AdminError> {
        let source = self.allowed_source(text)?;
        let wanted = Wanted {
            name: name.map(ComponentId::parse).transpose()?,
            sha256: sha256.map(Digest::from_person).transpose()?,
            ..Wanted::default()
        };
        let _loading = self.loading.lock().await;
        let mut candidate = self.fetch(&source, wanted).await.map_err(|error| match error {
            // Why it is none would tell what is in the file.
            AddError::Load(_) => AdminError::NoComponent { asked: text.to_owned() },
            other => other.into(),
        })?;
        self.blocking(move |manager| {
            let id = candidate.id.clone();
            // Whatever a person said of that name was meant for what they knew under it.
            let is_spoken_of = manager.file().components.get(&id).is_some_and(|own| own.sha256.is_none());
            if is_spoken_of && manager.store()?.entry(&id).is_err() {
                return Err(AdminError::Reserved { id });
            }
            let is_file = |origin: &Origin| matches!(origin, Origin::File(_));
            if manager.origin(&id).is_some_and(|origin| is_file(&origin)) {
                return Err(AdminError::NotAdded { id });
            }
            candidate.pinned &= manager.store()?.entry(&id).is_err();
            let outcome = match manager.add(&candidate, &Grants::default())? {
                Added::New => LoadOutcome::Added,
                Added::Unchanged | Added::Changed => LoadOutcome::Unchanged,
            };
            manager.serve_also(&id)?;
            Ok(LoadReport {
                component: manager.report(&id)?,
                outcome,
                notes: candidate.notes,
            })
        })
        .await
    }

    /// Takes a component out of the store. Running calls finish.
    pub async fn agent_unload(self: &Arc<Self>, id: &ComponentId) -> Result<UnloadReport, AdminError> {
        let id = id.clone();
        self.blocking(move |manager| {
            manager.change_managed(&id, |index| {
                index.entries.retain(|entry| entry.id != id);
                Ok(())
            })?;
            // They were given for these bytes, and whatever is loaded under this name next has others.
            manager.store()?.forget_secrets(std::slice::from_ref(&id))?;
            Ok(UnloadReport {
                id,
                outcome: UnloadOutcome::Removed,
            })
        })
        .await
    }

    /// Everything that is served, and what should be and cannot.
    pub fn list_components(&self) -> ComponentList {
        let registry = self.registry();
        let report = |id: &ComponentId, origin: &Origin, reason: Option<&String>| {
            let (source, added_at, grants) = match origin {
                Origin::Added(entry) => (
                    entry.source.shown(),
                    Some(entry.added_at.clone()),
                    GrantReport::all(&entry.grants),
                ),
                Origin::File(path) => (path.display().to_string(), None, vec![]),
            };
            let loaded = registry
                .components()
                .iter()
                .find(|loaded| loaded.id == *id && reason.is_none());
            let (digest, size) = match (loaded, origin) {
                (Some(loaded), _) => {
                    let metadata = &loaded.revision.metadata;
                    (Some(metadata.digest), metadata.size)
                }
                (None, Origin::Added(entry)) => (Some(entry.digest), entry.size),
                (None, Origin::File(_)) => (None, 0),
            };
            let tools = registry.tools().filter(|tool| reason.is_none() && tool.component() == id);
            ComponentReport {
                id: id.clone(),
                status: if reason.is_some() { Status::Broken } else { Status::Ready },
                reason: reason.cloned(),
                source,
                digest: digest.map(|digest| digest.to_string()),
                size,
                tools: tools.map(|tool| tool.definition.name.to_string()).collect(),
                grants,
                added_at,
            }
        };
        let ready = registry
            .components()
            .iter()
            .map(|loaded| report(&loaded.id, &loaded.origin, None));
        let broken = registry.broken().iter();
        let broken = broken.map(|broken| report(&broken.id, &broken.origin, Some(&broken.reason)));
        let mut components: Vec<ComponentReport> = ready.chain(broken).collect();
        components.sort_by(|a, b| a.id.cmp(&b.id));
        ComponentList { components }
    }

    /// What a component may use.
    pub fn policy_report(&self, id: &ComponentId) -> Result<PolicyReport, AdminError> {
        let component = self.report(id)?;
        let policy = match self.origin(id) {
            Some(origin) => self.policy(&origin),
            None => return Err(AdminError::Stopped),
        };
        let registry = self.registry();
        let loaded = registry.components().iter().find(|loaded| loaded.id == *id);
        let imports = loaded.map(|loaded| loaded.revision.metadata.interface.exports().imports.clone());
        let missing = not_granted(&imports.unwrap_or_default(), &policy.grants());
        Ok(PolicyReport {
            id: component.id,
            digest: component.digest,
            grants: component.grants,
            server_grants: GrantReport::all(&self.config.grants),
            rules: policy.rules(),
            instance: policy.instance,
            not_granted: missing
                .into_iter()
                .map(|(what, option)| MissingReport {
                    what,
                    option: option.to_owned(),
                })
                .collect(),
            limits: (&policy.limits).into(),
        })
    }

    /// Grants a directory to a component.
    pub async fn agent_grant(
        self: &Arc<Self>,
        id: &ComponentId,
        permission: &DirectoryPermission,
    ) -> Result<PolicyReport, AdminError> {
        let grant = self.allowed_grant(permission)?;
        self.change_grants(id, move |entry| {
            let guest = grant.directory.guest_path();
            // What was asked for last counts.
            entry.grants.directories.retain(|known| known.directory.guest_path() != guest);
            entry.grants.directories.push(grant);
            Ok(())
        })
        .await
    }

    /// Takes a grant from a component.
    pub async fn agent_revoke(
        self: &Arc<Self>,
        id: &ComponentId,
        permission: &DirectoryPermission,
    ) -> Result<PolicyReport, AdminError> {
        let permission = permission.clone();
        self.change_grants(id, move |entry| {
            let before = entry.grants.directories.len();
            entry.grants.directories.retain(|known| {
                let report = GrantReport::from(known);
                let guest = permission.guest.as_ref().is_none_or(|guest| *guest == report.guest);
                !(guest && report.kind == permission.kind && report.host == permission.host)
            });
            if entry.grants.directories.len() == before {
                return Err(AdminError::NoGrant { id: entry.id.clone() });
            }
            Ok(())
        })
        .await
    }

    /// Takes all grants from a component.
    pub async fn agent_reset(self: &Arc<Self>, id: &ComponentId) -> Result<PolicyReport, AdminError> {
        self.change_grants(id, |entry| {
            // What a person denied stays denied.
            entry.grants = Grants {
                denied_directories: std::mem::take(&mut entry.grants.denied_directories),
                denied_network: std::mem::take(&mut entry.grants.denied_network),
                ..Grants::default()
            };
            Ok(())
        })
        .await
    }

    async fn change_grants(
        self: &Arc<Self>,
        id: &ComponentId,
        change: impl FnOnce(&mut Entry) -> Result<(), AdminError> + Send + 'static,
    ) -> Result<PolicyReport, AdminError> {
        let id = id.clone();
        self.blocking(move |manager| {
            manager.change_managed(&id, |index| index.entry_mut(&id).map_or(Ok(()), change))?;
            manager.policy_report(&id)
        })
        .await
    }

    /// Runs what waits for files off the async threads.
    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<Self>) -> Result<T, AdminError> + Send + 'static,
    ) -> Result<T, AdminError> {
        let manager = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&manager)).await;
        done.map_err(|_| AdminError::Stopped)?
    }

    fn report(&self, id: &ComponentId) -> Result<ComponentReport, AdminError> {
        let list = self.list_components();
        let known_ids = list.components.iter().map(|component| component.id.clone()).collect();
        let found = list.components.into_iter().find(|component| component.id == *id);
        Ok(found.ok_or_else(|| StoreError::Unknown {
            id: id.clone(),
            known_ids,
        })?)
    }

    /// Why a component is served.
    fn origin(&self, id: &ComponentId) -> Option<Origin> {
        let registry = self.registry();
        let ready = registry.components().iter().map(|loaded| (&loaded.id, &loaded.origin));
        let broken = registry.broken().iter().map(|broken| (&broken.id, &broken.origin));
        ready
            .chain(broken)
            .find(|(of, _)| *of == id)
            .map(|(_, origin)| origin.clone())
    }

    /// Changes the index where it says of a component what the agent sees of it, if the agent may manage that.
    fn change_managed(
        &self,
        id: &ComponentId,
        change: impl FnOnce(&mut Index) -> Result<(), AdminError>,
    ) -> Result<(), AdminError> {
        let served = match self.origin(id) {
            Some(Origin::Added(entry)) => entry,
            Some(Origin::File(_)) => return Err(AdminError::NotAdded { id: id.clone() }),
            None => return self.report(id).map(|_| ()),
        };
        if !self.is_allowed(&served.source) {
            return Err(AdminError::Foreign {
                id: id.clone(),
                source_text: served.source.shown(),
            });
        }
        self.store()?.change(|index| {
            // Another process may have put something else there.
            if index.known(id)?.source != served.source {
                return Err(AddError::ChangedMeanwhile { id: id.clone() }.into());
            }
            change(index)
        })?;
        Ok(self.serve_same()?)
    }

    /// The source, if the agent may load it.
    fn allowed_source(&self, text: &str) -> Result<Source, AdminError> {
        let source: Source = text.parse().map_err(AddError::from)?;
        if !self.is_allowed(&source) {
            // Neither whether it exists nor where it leads is told.
            return Err(AdminError::Source { asked: source.shown() });
        }
        Ok(match source {
            Source::File(path) => Source::File(path.canonicalize().unwrap_or(path)),
            other => other,
        })
    }

    fn is_allowed(&self, source: &Source) -> bool {
        self.file().agent.sources.iter().any(|pattern| pattern.admits(source))
    }

    fn allowed_grant(&self, permission: &DirectoryPermission) -> Result<DirectoryGrant, AdminError> {
        let asked = &permission.host;
        let cannot = |problem: String| AdminError::NoDirectory {
            asked: asked.clone(),
            problem,
        };
        let not_allowed = || AdminError::Directory { asked: asked.clone() };
        let file = self.file();
        let real = |path: &PathBuf| file.folder().join(path).canonicalize().ok();
        let allowed: Vec<PathBuf> = file.agent.directories.iter().filter_map(real).collect();
        // Whether a directory exists is told only of those that are allowed.
        let host = PathBuf::from(asked).canonicalize().map_err(|_| not_allowed())?;
        if !allowed.iter().any(|directory| host.starts_with(directory)) {
            return Err(not_allowed());
        }
        if !host.is_dir() {
            return Err(cannot("it is no directory".to_owned()));
        }
        let directory = Directory::new(host, permission.guest.clone()).map_err(|error| cannot(error.to_string()))?;
        Ok(DirectoryGrant {
            directory,
            access: permission.kind,
        })
    }
}

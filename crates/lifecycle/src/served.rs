//! What is served: components that were added, files and directories that were named; and keeping up with their changes.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use sources::Digest;

use crate::add::file_name;
use crate::config::ConfigFile;
use crate::error::LoadError;
use crate::files;
use crate::id::ComponentId;
use crate::loaded::{Loaded, Origin, Revision};
use crate::manager::LifecycleManager;
use crate::metadata::Metadata;
use crate::read::{Beside, check};
use crate::registry::{Broken, Registry};
use crate::store::{Entry, Index, Lease, Store, StoreError};

/// Which of the components that were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    #[default]
    None,
    All,
    Only(Vec<ComponentId>),
}

impl Selection {
    fn has(&self, id: &ComponentId) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Only(ids) => ids.contains(id),
        }
    }
}

/// What a registry is made from.
#[derive(Debug, Default)]
pub(crate) struct Served {
    selection: Selection,
    added: Vec<Member>,
    /// The files and directories that were named.
    roots: Vec<PathBuf>,
    files: Vec<Member>,
    /// What is served, and what was and still has calls that run or wait.
    in_use: Vec<Weak<Revision>>,
    /// Keeps `gc` off their files, which may yet have to be read.
    lease: Option<Lease>,
}

/// A component that is to be served.
#[derive(Clone, Debug)]
struct Member {
    origin: Origin,
    /// Its bytes, or why they cannot be served.
    state: Result<Arc<Revision>, String>,
}

impl Member {
    /// The bytes that are served from this file now.
    fn revision_of<'a>(members: &'a [Self], path: &Path) -> Option<&'a Arc<Revision>> {
        let member = members
            .iter()
            .find(|member| matches!(&member.origin, Origin::File(file) if file == path))?;
        member.state.as_ref().ok()
    }
}

impl Served {
    /// The registry of what is served: files first, then added components, each in their order, so that what is added while a server
    /// runs takes no name from what was there.
    pub(crate) fn registry(&mut self, manager: &LifecycleManager) -> Registry {
        let config = &manager.config;
        let mut loaded: Vec<Arc<Loaded>> = Vec::new();
        let mut broken = Vec::new();
        let mut taken = HashSet::new();
        let before = manager.registry();
        let known: HashMap<&ComponentId, &Arc<Loaded>> = before.components().iter().map(|loaded| (&loaded.id, loaded)).collect();
        for member in self.files.iter().chain(&self.added) {
            let wanted = member.origin.id();
            let revision = match &member.state {
                Ok(revision) => Arc::clone(revision),
                Err(reason) => {
                    broken.push(Broken {
                        id: wanted,
                        origin: member.origin.clone(),
                        reason: reason.clone(),
                    });
                    continue;
                }
            };
            let mut candidates = std::iter::once(wanted.clone()).chain((2..).map(|number| wanted.numbered(number)));
            let id = candidates.find(|id| !taken.contains(id)).unwrap_or_else(|| wanted.clone());
            taken.insert(id.clone());
            if let Some(reason) = manager.other_bytes(&wanted, &revision) {
                broken.push(Broken {
                    id: wanted,
                    origin: member.origin.clone(),
                    reason,
                });
                continue;
            }
            let old = known.get(&id).filter(|old| Arc::ptr_eq(&old.revision, &revision));
            let confinement = manager.confinement(&id, &member.origin, old.copied());
            loaded.push(Arc::new(Loaded {
                id,
                origin: member.origin.clone(),
                confinement,
                revision,
            }));
        }
        let mut in_use: HashSet<*const Revision> = self.in_use.iter().map(Weak::as_ptr).collect();
        for loaded in &loaded {
            if in_use.insert(Arc::as_ptr(&loaded.revision)) {
                self.in_use.push(Arc::downgrade(&loaded.revision));
            }
        }
        self.hold();
        Registry::of(loaded, broken, |loaded| manager.terms(&loaded.origin.id()), config.max_name)
    }

    /// Says which files are needed from now on.
    pub(crate) fn hold(&mut self) {
        self.in_use.retain(|revision| revision.strong_count() > 0);
        let Some(lease) = &mut self.lease else { return };
        let in_use: Vec<Arc<Revision>> = self.in_use.iter().filter_map(Weak::upgrade).collect();
        if let Err(error) = lease.set(in_use.iter().map(|revision| &revision.metadata.digest)) {
            tracing::warn!(%error, "another process may delete files that are served here");
        }
    }
}

impl LifecycleManager {
    /// Serves components that were added. One that cannot be served hides no other: it is listed as broken.
    pub fn serve_added(&self, selection: Selection) -> Result<(), StoreError> {
        self.select(|index, _| {
            if let Selection::Only(ids) = &selection {
                for id in ids {
                    index.known(id)?;
                }
            }
            Ok(selection)
        })
    }

    /// The components that were added and cannot be served, and why.
    pub fn unservable(&self) -> Vec<(ComponentId, String)> {
        let registry = self.registry();
        let broken = registry
            .broken()
            .iter()
            .filter(|broken| matches!(broken.origin, Origin::Added(_)));
        let mut all: Vec<_> = broken.map(|broken| (broken.id.clone(), broken.reason.clone())).collect();
        all.sort();
        all
    }

    /// Serves one more of the components that were added.
    pub(crate) fn serve_also(&self, id: &ComponentId) -> Result<(), StoreError> {
        self.select(|index, selection| {
            index.known(id)?;
            // Others that were chosen may have been removed since.
            let mut ids = match selection {
                Selection::All => return Ok(Selection::All),
                Selection::None => vec![],
                Selection::Only(ids) => ids.clone(),
            };
            if !ids.contains(id) {
                ids.push(id.clone());
            }
            Ok(Selection::Only(ids))
        })
    }

    /// Serves the same as before, as it is now.
    pub(crate) fn serve_same(&self) -> Result<(), StoreError> {
        if self.served().selection == Selection::None {
            return Ok(());
        }
        self.select(|_, selection| Ok(selection.clone()))
    }

    fn select(&self, select: impl FnOnce(&Index, &Selection) -> Result<Selection, StoreError>) -> Result<(), StoreError> {
        let store = self.store()?;
        self.change(|served| {
            // Read while nothing else changes: an older index must not replace a newer one, nor one choice another.
            let index = store.index()?;
            served.selection = select(&index, &served.selection)?;
            served.added = self.added(&store, &index, served);
            Ok(())
        })
    }

    /// Serves the component in a file, or those in a directory. A file that was named must load; of those in a directory one must,
    /// and why others do not is returned.
    pub fn serve_path(&self, path: &Path) -> Result<Vec<LoadError>, LoadError> {
        let found = files::expand(path)?;
        let mut problems = Vec::new();
        let mut members = Vec::new();
        for file in &found {
            let old = Member::revision_of(&self.served().files, &absolute(file)).cloned();
            let state = match self.load_file(file, old.as_ref()) {
                Ok(revision) => Ok(revision),
                Err(error) if file == path => return Err(error),
                Err(error) => {
                    let reason = error.to_string();
                    problems.push(error);
                    Err(reason)
                }
            };
            members.push(Member {
                origin: Origin::File(absolute(file)),
                state,
            });
        }
        if problems.len() == found.len() {
            return Err(LoadError::NothingServable {
                path: path.to_owned(),
                problems: problems.iter().map(|problem| format!("\n  {problem}")).collect(),
            });
        }
        self.change(|served| {
            let root = absolute(path);
            if !served.roots.contains(&root) {
                served.roots.push(root);
            }
            for member in members {
                match served.files.iter_mut().find(|known| known.origin == member.origin) {
                    Some(known) => *known = member,
                    None => served.files.push(member),
                }
            }
        });
        // Whether anything of a program is offered is known only now.
        let origin = Origin::File(absolute(path));
        let registry = self.registry();
        if let Some(broken) = registry.broken().iter().find(|broken| broken.origin == origin) {
            self.change(|served| served.files.retain(|member| member.origin != origin));
            return Err(LoadError::NotServed {
                path: path.to_owned(),
                reason: broken.reason.clone(),
            });
        }
        Ok(problems)
    }

    /// Loads the component in a file and offers its tools. Loading what is loaded already changes nothing.
    pub fn ensure_component_loaded(&self, path: &Path) -> Result<ComponentId, LoadError> {
        self.serve_path(path)?;
        let origin = Origin::File(absolute(path));
        let registry = self.registry();
        let loaded = registry.components().iter().find(|loaded| loaded.origin == origin);
        loaded.map(|loaded| loaded.id.clone()).ok_or_else(|| LoadError::NotServed {
            path: path.to_owned(),
            reason: "it was taken away meanwhile".to_owned(),
        })
    }

    /// Offers the tools that metadata describes. No code is needed for that.
    pub fn populate_registry_from_metadata(&self, path: &Path, metadata: Metadata) -> ComponentId {
        let origin = Origin::File(absolute(path));
        let revision = Arc::new(Revision::new(path.to_owned(), metadata, Digest::of(&[])));
        self.change(|served| {
            served.files.retain(|member| member.origin != origin);
            served.files.push(Member {
                origin: origin.clone(),
                state: Ok(revision),
            });
        });
        let registry = self.registry();
        let loaded = registry.components().iter().find(|loaded| loaded.origin == origin);
        loaded.map_or_else(|| ComponentId::from_file(path), |loaded| loaded.id.clone())
    }

    /// Takes a component and its tools away from what is served here. Running calls finish. `false` when there is none of that id.
    pub fn unload(&self, id: &ComponentId) -> bool {
        let registry = self.registry();
        let Some(loaded) = registry.components().iter().find(|loaded| loaded.id == *id) else {
            return false;
        };
        self.change(|served| {
            if let Origin::Added(_) = loaded.origin {
                let others = served.added.iter().filter_map(|member| match &member.origin {
                    Origin::Added(entry) => Some(entry.id.clone()),
                    Origin::File(_) => None,
                });
                served.selection = Selection::Only(others.filter(|other| other != id).collect());
            }
            served.added.retain(|member| member.origin != loaded.origin);
            served.files.retain(|member| member.origin != loaded.origin);
            served.roots.retain(|root| loaded.origin != Origin::File(root.clone()));
        });
        true
    }

    /// Keeps `gc` off the files of what is served, as long as this process lives.
    pub fn hold_files(&self) {
        let Some(store) = &self.compiler.store else { return };
        let registry = self.registry();
        let digests = registry.components().iter().map(|loaded| &loaded.revision.metadata.digest);
        match store.lease(digests) {
            Ok(lease) => {
                let mut served = self.served();
                served.lease = Some(lease);
                served.hold();
                drop(served);
                // What was replaced before the lease was taken may be gone already.
                if let Err(error) = self.serve_same() {
                    tracing::warn!("{error}");
                }
            }
            // Where nothing can be written, nothing can be deleted either.
            Err(error) => tracing::info!(%error, "no lease on the store"),
        }
    }

    /// Looks again at everything that is served, and swaps what has changed. What cannot be loaded any more keeps its old revision as
    /// long as its file is there; running calls keep theirs in any case.
    pub fn refresh(&self) {
        self.change(|served| {
            match ConfigFile::load(self.config.config_file.as_deref(), self.config.home.as_deref()) {
                Ok(file) => self.replace_file(file),
                Err(error) => tracing::warn!("{error}"),
            }
            if served.selection != Selection::None {
                let index = self.store().and_then(|store| Ok((store.index()?, store)));
                match index {
                    Ok((index, store)) => served.added = self.added(&store, &index, served),
                    Err(error) => tracing::warn!("{error}"),
                }
            }
            served.files = self.files(served);
        });
    }

    /// Why certain bytes are not served under an id, if the config file wants others.
    fn other_bytes(&self, id: &ComponentId, revision: &Revision) -> Option<String> {
        let wanted = self.file().components.get(id)?.sha256?.0;
        let found = revision.metadata.digest;
        (found != wanted).then(|| {
            format!(
                "its bytes have the digest {found}, and `host.toml` wants {wanted} for `{id}`\n\
                 hint: look at what has changed, and write the new `sha256` there if you want it"
            )
        })
    }

    /// Looks again at what was granted to the components that are served, whose bytes stay as they are.
    pub(crate) fn refresh_grants(&self) {
        let index = match self.store().and_then(|store| store.index()) {
            Ok(index) => index,
            Err(error) => {
                tracing::warn!("{error}");
                return;
            }
        };
        self.change(|served| {
            for member in &mut served.added {
                let Origin::Added(entry) = &member.origin else { continue };
                let mut entry = Entry::clone(entry);
                // Grants are for certain bytes; and who was removed has none.
                let now = index.entry(&entry.id).filter(|now| now.digest == entry.digest);
                entry.grants = now.map(|now| now.grants.clone()).unwrap_or_default();
                member.origin = Origin::Added(Arc::new(entry));
            }
        });
    }

    /// Where changes of grants and secrets would be seen.
    pub(crate) fn watched_grants(&self) -> Vec<PathBuf> {
        let store = self.compiler.store.as_ref();
        store
            .map(|store| vec![store.index_file(), store.secrets_file()])
            .unwrap_or_default()
    }

    /// Where changes of what is served would be seen.
    pub(crate) fn watched(&self) -> Vec<PathBuf> {
        let served = self.served();
        let mut paths = served.roots.clone();
        paths.extend(self.config.config_file.as_deref().map(absolute));
        paths.extend(self.config.wit.as_deref().map(absolute));
        for store in self.compiler.store.iter() {
            paths.extend([store.index_file(), store.secrets_file()]);
        }
        paths.extend(self.config.home.as_deref().map(|home| home.join(crate::config::FILE_NAME)));
        paths
    }

    /// The added components that are served, with the bytes that are loaded already where those are still the ones.
    fn added(&self, store: &Store, index: &Index, served: &Served) -> Vec<Member> {
        let known = served
            .added
            .iter()
            .filter_map(|member| match (&member.origin, &member.state) {
                (Origin::Added(entry), Ok(revision)) => Some(((entry.digest, entry.metadata), revision)),
                _ => None,
            });
        let known: HashMap<(Digest, Digest), &Arc<Revision>> = known.collect();
        let member = |entry: &Entry| {
            let entry = Arc::new(entry.clone());
            let loaded = known
                .get(&(entry.digest, entry.metadata))
                .map(|revision| Arc::clone(revision));
            let state = loaded.map_or_else(|| self.load_added(store, &entry).map_err(|reason| reason.to_string()), Ok);
            Member {
                origin: Origin::Added(entry),
                state,
            }
        };
        let selected = index.entries.iter().filter(|entry| served.selection.has(&entry.id));
        selected.map(member).collect()
    }

    /// What is known of an added component. Nothing but that is read, unless it is damaged or was written by another version.
    pub(crate) fn load_added(&self, store: &Store, entry: &Entry) -> Result<Arc<Revision>, LoadError> {
        let file = store.component_file(&entry.digest);
        let damaged = |what| LoadError::Damaged {
            id: entry.id.clone(),
            what,
        };
        if !file.exists() {
            return Err(damaged("its file is missing from the store"));
        }
        let kept = store.metadata(&entry.metadata);
        let metadata = match kept.as_deref().and_then(Metadata::parse) {
            Some(metadata) => metadata,
            None => {
                let bytes = files::read_component(&file)?;
                if Digest::of(&bytes) != entry.digest {
                    return Err(damaged("its file in the store is not what was added"));
                }
                let read = self.read(&file_name(&entry.source), &bytes, &Beside::default())?;
                // Only this program itself may have changed its mind about what the same bytes offer.
                let is_older = kept.is_some() && !entry.described;
                let is_same = Digest::of(&read.metadata.to_json()) == entry.metadata;
                if !is_older && !is_same {
                    return Err(damaged(match kept {
                        Some(_) => "what is known of it was written by another version of host",
                        None => "what was known of it is damaged",
                    }));
                }
                read.metadata
            }
        };
        check(&file_name(&entry.source), &metadata.interface)?;
        Ok(Arc::new(Revision::new(file, metadata, Digest::of(&[]))))
    }

    /// The files that are served, likewise.
    fn files(&self, served: &Served) -> Vec<Member> {
        let mut members: Vec<Member> = Vec::new();
        for root in &served.roots {
            let found = files::expand(root).unwrap_or_else(|error| {
                tracing::warn!("{error}");
                Vec::new()
            });
            for file in found {
                let origin = Origin::File(file.clone());
                if members.iter().any(|member| member.origin == origin) {
                    continue;
                }
                let old = Member::revision_of(&served.files, &file);
                let state = match (self.load_file(&file, old), old) {
                    (Ok(revision), _) => Ok(revision),
                    (Err(error), Some(old)) => {
                        tracing::warn!("{error}\nwhat was there before is still served");
                        Ok(Arc::clone(old))
                    }
                    (Err(error), None) => Err(error.to_string()),
                };
                members.push(Member { origin, state });
            }
        }
        members
    }

    /// The component in a file: what is loaded already, if that is still what is there.
    fn load_file(&self, path: &Path, old: Option<&Arc<Revision>>) -> Result<Arc<Revision>, LoadError> {
        let bytes = files::read_component(path)?;
        let read = self.read_file(path, &bytes)?;
        check(path, &read.metadata.interface)?;
        let is_same = |old: &&Arc<Revision>| old.metadata.digest == read.metadata.digest && old.beside == read.beside;
        Ok(match old.filter(is_same) {
            Some(old) => Arc::clone(old),
            None => Arc::new(Revision::new(absolute(path), read.metadata, read.beside)),
        })
    }
}

/// One file may be named in several ways.
fn absolute(path: &Path) -> PathBuf {
    path.canonicalize()
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

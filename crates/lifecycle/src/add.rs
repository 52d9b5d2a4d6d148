//! Adding and updating: from a source to an entry of the index.
//!
//! Fetching, understanding and compiling come first and change nothing that counts; one change of the index ends it. What is new is
//! looked at before it is accepted: the definitions of tools are what a model reads and a person trusts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use component2json::{DEFAULT_MAX_TOOL_NAME, ToolMetadata};
use policy::Grants;
use sources::{Digest, FetchError, Interfaces, Layer, OciReference, Published, Pushed, Source, SourceError};

use crate::definitions::{DefinitionChange, changes};
use crate::error::{ExecuteError, LoadError};
use crate::files;
use crate::id::ComponentId;
use crate::manager::LifecycleManager;
use crate::metadata::{Interface, Metadata};
use crate::progress::Event;
use crate::read::{Beside, Place, check, own_tools};
use crate::registry::Terms;
use crate::store::{Entry, Store, StoreError};

/// How much is shown of a text that came with a component.
const MAX_LAYER_TEXT: usize = 4_000;

/// Why nothing was added or updated.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("what came from {from} cannot be used: {error}")]
    Fetched { from: String, error: LoadError },
    #[error("`{file}` cannot be made to run: {error}")]
    Compile { file: String, error: ExecuteError },
    #[error(
        "`{file}` is not what was asked for: its SHA-256 is\n  {actual}, and not\n  {expected}\n\
         hint: if you expected a new version, look at it first and give its digest"
    )]
    Digest { file: String, expected: Digest, actual: Digest },
    #[error(
        "there is a component `{id}` already, from {existing}\n\
         hint: `host update {id}` takes what is new there; `--name` adds this one beside it"
    )]
    Taken { id: ComponentId, existing: String },
    #[error(
        "`{id}` is other than what was added, and a change has to be accepted by a person\nhint: `host update {id}` shows what changed"
    )]
    Changed { id: ComponentId },
    #[error(
        "`{id}` has another directory at `{guest}` already\nhint: give this one another path with `DIR:GUEST`, or remove `{id}` first"
    )]
    Grant { id: ComponentId, guest: String },
    #[error("the host stopped")]
    Stopped,
    #[error("`{id}` was changed by another process meanwhile\nhint: do it again")]
    ChangedMeanwhile { id: ComponentId },
}

/// A component that was fetched and understood, and can be added.
#[derive(Debug)]
pub struct Candidate {
    pub id: ComponentId,
    pub source: Source,
    pub digest: Digest,
    /// What the person should know before it is used.
    pub notes: Vec<String>,
    bytes: Vec<u8>,
    metadata: Metadata,
    described: bool,
    manifest: Option<Digest>,
    pub(crate) pinned: bool,
    wit: Option<PathBuf>,
}

/// What a component is to be.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Its id, instead of one made from the source.
    pub name: Option<ComponentId>,
    /// The digest of what the source gives.
    pub sha256: Option<Digest>,
    /// The digest of the component itself, where that is known already.
    pub pin: Option<Digest>,
    /// WIT with docs for it, in place of what lies beside it.
    pub wit: Option<PathBuf>,
}

/// What adding did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    New,
    /// It was there already, with these bytes and grants.
    Unchanged,
    /// It was there already with these bytes, and has the grants or the pin now that were given with it.
    Changed,
}

/// What there is to update.
#[derive(Debug)]
pub enum Update {
    /// Nothing.
    Unchanged,
    /// Nothing, but its files in the store were damaged, and are mended.
    Mended,
    /// Nothing, ever: its digest was given when it was added.
    Pinned,
    New(Box<NewRevision>),
}

/// Bytes, or descriptions, that are not those that were added.
#[derive(Debug)]
pub struct NewRevision {
    pub before: Entry,
    pub after: Candidate,
    /// What clients would see of it.
    pub changes: Vec<DefinitionChange>,
}

/// What a source gave.
struct Fetched {
    bytes: Vec<u8>,
    manifest: Option<Digest>,
    layers: Vec<Layer>,
}

impl LifecycleManager {
    /// The sources that a text stands for: one, or the files of a directory; and those whose names cannot be kept.
    pub fn sources(&self, text: &str) -> Result<Vec<Result<Source, SourceError>>, AddError> {
        match text.parse()? {
            Source::File(path) => {
                let files = files::expand(&path)?;
                Ok(files.iter().map(|file| Source::file(&in_real_folder(file))).collect())
            }
            other => Ok(vec![Ok(other)]),
        }
    }

    /// Fetches a component, and finds out what it offers. Nothing is changed but caches.
    pub async fn fetch(self: &Arc<Self>, source: &Source, wanted: Wanted) -> Result<Candidate, AddError> {
        let fetched = self.fetch_bytes(source).await?;
        let (manager, source) = (Arc::clone(self), source.clone());
        off_thread(move || manager.understand(source, fetched, wanted)).await
    }

    async fn fetch_bytes(&self, source: &Source) -> Result<Fetched, AddError> {
        let progress = |progress: sources::Progress| {
            self.config.progress.tell(&Event::Downloading {
                received: progress.received,
                total: progress.total,
            });
        };
        let fetched = match source {
            Source::File(path) => {
                let path = path.clone();
                Fetched {
                    // A file may be slow, and what is none may never end.
                    bytes: off_thread(move || Ok(files::read_regular(&path)?)).await?,
                    manifest: None,
                    layers: vec![],
                }
            }
            Source::Https(url) => {
                let store = self.store()?;
                let mut partial = store.download(url);
                let bytes = match self.client()?.download(url, &mut partial, &progress).await {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        if let Err(error) = store.keep_download(url, &partial) {
                            tracing::warn!("{error}");
                        }
                        return Err(error.into());
                    }
                };
                store.forget_download(url);
                Fetched {
                    bytes,
                    manifest: None,
                    layers: vec![],
                }
            }
            Source::Oci(reference) => {
                let pulled = self.client()?.pull(reference, &progress).await?;
                Fetched {
                    bytes: pulled.wasm,
                    manifest: Some(pulled.digest),
                    layers: pulled.other_layers,
                }
            }
        };
        self.config.progress.tell(&Event::Downloaded);
        Ok(fetched)
    }

    /// Reads the bytes, checks that they can be served, and compiles them.
    fn understand(&self, source: Source, fetched: Fetched, wanted: Wanted) -> Result<Candidate, AddError> {
        let file = file_name(&source);
        // Before anything looks into them.
        if let Some(expected) = wanted.sha256 {
            check_digest(&source, expected, Digest::of(&fetched.bytes))?;
        }
        let is_file = matches!(source, Source::File(_));
        let failed = |error| match is_file {
            true => AddError::Load(error),
            false => AddError::Fetched {
                from: source.shown(),
                error,
            },
        };
        let beside = match &source {
            Source::File(path) => Beside::of(path, wanted.wit.as_deref()),
            // Who publishes a component has to put its docs into it.
            _ if wanted.wit.is_none() => Beside::default(),
            _ => Beside::of(Path::new(""), wanted.wit.as_deref()),
        };
        let bytes = match is_file {
            true => files::assembled(&file, fetched.bytes),
            // Text is for trying things out; what is published is binary.
            false => Ok(fetched.bytes),
        };
        let bytes = bytes.and_then(|bytes| files::component(&file, bytes)).map_err(failed)?;
        if let Some(expected) = wanted.pin {
            check_digest(&source, expected, Digest::of(&bytes))?;
        }
        let read = self.read(&file, &bytes, &beside).map_err(failed)?;
        check(&file, &read.metadata.interface).map_err(failed)?;
        let kind = read.metadata.interface.code_kind();
        let digest = read.metadata.digest;
        let within = self.compiler.sandbox.limits().compile_timeout;
        self.compiler
            .compile_once(&digest, kind, within, || Ok(Cow::Borrowed(&bytes)))
            .map_err(|error| AddError::Compile {
                file: source.shown(),
                error,
            })?;
        let mut notes = read.warnings;
        notes.extend(fetched.layers.iter().map(note));
        let pinned = wanted.sha256.is_some() || matches!(&source, Source::Oci(reference) if reference.digest().is_some());
        Ok(Candidate {
            id: wanted.name.unwrap_or_else(|| ComponentId::from(source.suggested_name())),
            source,
            digest,
            notes,
            bytes,
            metadata: read.metadata,
            described: !beside.is_empty(),
            manifest: fetched.manifest,
            pinned,
            wit: wanted.wit,
        })
    }

    /// Adds a component. What is there already under its id is never replaced.
    pub fn add(&self, candidate: &Candidate, grants: &Grants) -> Result<Added, AddError> {
        let store = self.store()?;
        store.change(|index| {
            if let Some(entry) = index.entry_mut(&candidate.id) {
                if entry.source != candidate.source {
                    return Err(AddError::Taken {
                        id: entry.id.clone(),
                        existing: entry.source.shown(),
                    });
                }
                if entry.digest != candidate.digest || entry.metadata != Digest::of(&candidate.metadata.to_json()) {
                    return Err(AddError::Changed { id: entry.id.clone() });
                }
                if let Some(guest) = entry.grants.contradiction(grants) {
                    return Err(AddError::Grant {
                        id: entry.id.clone(),
                        guest,
                    });
                }
                let before = entry.clone();
                entry.grants = before.grants.clone().and(grants);
                entry.pinned |= candidate.pinned;
                return Ok(if *entry == before { Added::Unchanged } else { Added::Changed });
            }
            let entry = Entry {
                added_at: now(),
                updated_at: None,
                grants: grants.clone(),
                ..candidate.keep(&store)?
            };
            index.entries.push(entry);
            Ok(Added::New)
        })
    }

    /// Publishes a component or program. Its interfaces are listed, as other tools list them.
    pub async fn push(&self, place: &Place, to: &OciReference) -> Result<Pushed, AddError> {
        let bytes = match place {
            Place::File(path) => files::read_component(path)?,
            Place::Added(id) => {
                let store = self.store()?;
                let entry = store.entry(id)?;
                if !store.is_intact(&entry) {
                    return Err(LoadError::Damaged {
                        id: entry.id,
                        what: "its file in the store is not what was added",
                    }
                    .into());
                }
                files::read_component(&store.component_file(&entry.digest))?
            }
        };
        let inspection = self.inspect(place)?;
        let is_module = matches!(&inspection.interface, Interface::Program(program) if program.is_module);
        let exports = inspection.interface.exports();
        let mut names: Vec<String> = exports
            .functions
            .iter()
            .filter_map(|function| function.export.interface.clone())
            .collect();
        names.extend(exports.run.clone());
        names.sort();
        names.dedup();
        let about = Published {
            component: (!is_module).then(|| Interfaces {
                exports: names,
                imports: exports.imports.clone(),
                target: None,
            }),
            author: None,
            created: SystemTime::now(),
            title: format!("{}.wasm", to.name()),
            annotations: BTreeMap::new(),
        };
        Ok(self.client()?.push(to, bytes, &about).await?)
    }

    /// Looks for something new where a component came from.
    pub async fn check_for_update(self: &Arc<Self>, id: &ComponentId) -> Result<Update, AddError> {
        let store = self.store()?;
        let entry = store.entry(id)?;
        let intact = store.is_intact(&entry);
        if entry.pinned && intact {
            return Ok(Update::Pinned);
        }
        if let (Source::Oci(reference), Some(manifest), true) = (&entry.source, &entry.manifest, intact)
            && self.client()?.resolve(reference).await? == *manifest
        {
            return Ok(Update::Unchanged);
        }
        let wanted = Wanted {
            name: Some(entry.id.clone()),
            sha256: None,
            pin: entry.pinned.then_some(entry.digest),
            wit: entry.wit.clone(),
        };
        let after = self.fetch(&entry.source, wanted).await?;
        if after.digest == entry.digest && Digest::of(&after.metadata.to_json()) == entry.metadata {
            // There may be another manifest for the same bytes, or files to be mended.
            store.change(|index| {
                after.keep(&store)?;
                if let Some(entry) = index.entry_mut(id) {
                    entry.manifest = after.manifest;
                }
                Ok::<_, AddError>(())
            })?;
            return Ok(if intact { Update::Unchanged } else { Update::Mended });
        }
        let known = store.metadata(&entry.metadata).as_deref().and_then(Metadata::parse);
        let about = known.as_ref().and_then(|metadata| metadata.interface.about());
        let before = known.map(|metadata| definitions(id, metadata)).unwrap_or_default();
        let mut changes = changes(&before, &definitions(id, after.metadata.clone()));
        changes.extend(DefinitionChange::of_about(about, after.metadata.interface.about()));
        Ok(Update::New(Box::new(NewRevision {
            before: entry,
            after,
            changes,
        })))
    }

    /// Puts a new revision in the place of the one that was added. Grants were given to the old bytes: the new ones have them only if
    /// the person says so.
    pub fn update(&self, new: &NewRevision, keep_grants: bool) -> Result<Entry, AddError> {
        let store = self.store()?;
        store.change(|index| {
            let id = &new.before.id;
            let entry = index.entry_mut(id).filter(|entry| **entry == new.before);
            let entry = entry.ok_or_else(|| AddError::ChangedMeanwhile { id: id.clone() })?;
            let same_bytes = entry.digest == new.after.digest;
            *entry = Entry {
                added_at: new.before.added_at.clone(),
                updated_at: Some(now()),
                grants: if keep_grants || same_bytes {
                    new.before.grants.clone()
                } else {
                    Grants::default()
                },
                pinned: new.before.pinned,
                ..new.after.keep(&store)?
            };
            Ok(entry.clone())
        })
    }
}

impl Candidate {
    /// The component itself, as it was fetched.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Keeps the files, and returns the entry for them.
    fn keep(&self, store: &Store) -> Result<Entry, StoreError> {
        store.keep(&self.digest, &self.bytes)?;
        Ok(Entry {
            id: self.id.clone(),
            source: self.source.clone(),
            digest: self.digest,
            size: self.bytes.len() as u64,
            metadata: store.keep_metadata(&self.metadata.to_json())?,
            described: self.described,
            wit: self.wit.clone(),
            manifest: self.manifest,
            pinned: self.pinned,
            added_at: String::new(),
            updated_at: None,
            grants: Grants::default(),
        })
    }

    /// What clients will see of it when nothing else is served.
    pub fn tools(&self) -> Vec<ToolMetadata> {
        definitions(&self.id, self.metadata.clone())
    }
}

fn definitions(id: &ComponentId, metadata: Metadata) -> Vec<ToolMetadata> {
    let tools = own_tools(id.clone(), metadata, &Terms::default(), DEFAULT_MAX_TOOL_NAME);
    tools.into_iter().map(|tool| tool.definition).collect()
}

fn check_digest(source: &Source, expected: Digest, actual: Digest) -> Result<(), AddError> {
    if expected == actual {
        return Ok(());
    }
    Err(AddError::Digest {
        file: source.shown(),
        expected,
        actual,
    })
}

/// What came with a component and is only shown. Strangers wrote it, so nothing of it may steer a terminal.
fn note(layer: &Layer) -> String {
    let clean = |text: &str, max| component2json::clean_text_within(text, max).unwrap_or_default();
    let title = layer.title.as_deref().map(|title| format!(" `{}`", clean(title, 100)));
    let media_type = clean(&layer.media_type, 100);
    let (what, remark) = if media_type.contains("policy") {
        ("a policy", ", which asks for this and gets nothing of it unless you grant it")
    } else {
        ("a layer", "")
    };
    let text = match layer.text.as_deref() {
        Some(text) => format!(":\n{}", clean(text, MAX_LAYER_TEXT)),
        None => format!("; its {} bytes are not shown", layer.size),
    };
    format!(
        "it came with {what}{} ({media_type}){remark}{text}",
        title.unwrap_or_default()
    )
}

/// The name under which the bytes of a source are known: that of its file, which is also the name of a program.
pub(crate) fn file_name(source: &Source) -> PathBuf {
    match source {
        Source::File(path) => path.clone(),
        other => format!("{}.wasm", other.suggested_name()).into(),
    }
}

/// The file under the real path of its folder, so that one file is one source. A link keeps its name: it may lead elsewhere later.
fn in_real_folder(file: &Path) -> PathBuf {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    match (file.parent().and_then(|folder| folder.canonicalize().ok()), file.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => file,
    }
}

/// Runs what may block, off the async threads.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T, AddError> + Send + 'static) -> Result<T, AddError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| AddError::Stopped)?
}

fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

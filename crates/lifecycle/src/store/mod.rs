//! The store: one private directory with all that `host` keeps.
//!
//! ```text
//! components.toml          the index: what was added; sealed
//! components/SHA256.wasm   the bytes of components, named by their digest
//! components/SHA256.json   what is known of them, named by its digest
//! cache/                   what was found out about any file, and compiled code; sealed, and deleted freely
//! downloads/               the beginnings of downloads that broke off
//! running/                 which files running servers need; each locked as long as its server lives
//! secrets.toml             the values of secrets
//! key, lock                of the seals; held while the index is changed
//! ```
//!
//! Every change ends with one rename, that of the index: whatever happens before it leaves the old state and perhaps files that
//! nothing uses, and whatever happens after it leaves the new one. Files are written under other names, synced and renamed, and
//! never changed afterwards, because other processes read and map them.

mod downloads;
mod index;
mod lease;
mod private;
mod seal;
mod secrets;
mod sweep;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

pub use index::{Entry, Index};
pub(crate) use lease::Lease;
pub(crate) use seal::SealKey;
pub use sweep::{Collected, Finding, Verified};

use self::index::IndexProblem;
use crate::cache::Cache;
use crate::files::write_privately;
use crate::id::ComponentId;
use crate::metadata::Metadata;
use sources::Digest;

/// Why the store could not do what was asked. It is then as it was before.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the store `{path}` cannot be used: {error}{}", remedy(error))]
    Io { path: PathBuf, error: io::Error },
    #[error("the store `{path}` is a link or no directory\nhint: set HOST_HOME to the directory itself")]
    NotADirectory { path: PathBuf },
    #[error(
        "the store `{path}` can be written by others, so its contents cannot be trusted\n\
         hint: `chmod 700 {path}`, or set HOST_HOME to a directory of your own"
    )]
    Exposed { path: PathBuf },
    #[error(
        "`{path}` is not as host wrote it: it was damaged, or changed by hand\n\
         hint: look at it; `host verify --repair` accepts it as it is now"
    )]
    IndexSeal { path: PathBuf },
    #[error(
        "`{path}` is missing, and there are components\n\
         hint: put back a copy of it; `host verify --repair` begins with an empty one"
    )]
    IndexMissing { path: PathBuf },
    #[error("`{path}` cannot be read: {problem}\nhint: put back a copy of it, or delete it and add the components again")]
    Index { path: PathBuf, problem: String },
    #[error("the secrets in `{path}` can be read by others\nhint: `chmod 600 {path}`, and change the secrets where they are used")]
    SecretsExposed { path: PathBuf },
    #[error("`{path}` is not as host wrote it\nhint: put back a copy of it, or delete it and set the secrets again")]
    Secrets { path: PathBuf },
    #[error("there is no component `{id}`{}", known(known_ids))]
    Unknown { id: ComponentId, known_ids: Vec<ComponentId> },
    #[error("there is no place to keep components\nhint: set HOST_HOME to a directory of your own")]
    NoHome,
}

/// What may help against an error of the file system.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "\nhint: nothing was changed; `host gc` frees what nothing uses, or set HOST_HOME to a larger disk"
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            "\nhint: nothing was changed; make it writable, or set HOST_HOME to a directory of your own"
        }
        _ => "",
    }
}

fn known(ids: &[ComponentId]) -> String {
    let names: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
    match names.as_slice() {
        [] => "; none was added\nhint: `host add SOURCE`".to_owned(),
        names => format!("; there is {}", names.join(", ")),
    }
}

/// A directory that is known to be ours alone.
#[derive(Debug)]
pub struct Store {
    home: PathBuf,
    key: SealKey,
    pub(crate) cache: Cache,
}

impl Store {
    /// Opens the store in a directory; makes what is missing.
    pub fn open(home: &Path) -> Result<Self, StoreError> {
        private::make(home)?;
        for folder in ["components", "cache", "downloads", "running"] {
            private::make(&home.join(folder))?;
        }
        let failed = |error| io_error(home, error);
        // Two processes that start at once must not make two keys.
        let key = match SealKey::load(home).map_err(failed)? {
            Some(key) => key,
            None => {
                let _lock = lock(home).map_err(failed)?;
                SealKey::load_or_make(home).map_err(failed)?
            }
        };
        let store = Self {
            cache: Cache::new(home.join("cache"), key.clone()),
            home: home.to_owned(),
            key,
        };
        // An index from the beginning, so that one that is missing later is noticed. Who can only read needs none.
        if !store.index_file().exists() {
            let _ = store.begin();
        }
        Ok(store)
    }

    /// Writes the first index, unless another process did, or there was one.
    fn begin(&self) -> Result<(), StoreError> {
        let _lock = lock(&self.home).map_err(|error| io_error(&self.home, error))?;
        if self.index_file().exists() || !self.is_empty() {
            return Ok(());
        }
        self.write_index(&Index::default())
    }

    /// Whether no component is kept.
    fn is_empty(&self) -> bool {
        fs::read_dir(self.home.join("components")).is_ok_and(|mut entries| entries.next().is_none())
    }

    fn write_index(&self, index: &Index) -> Result<(), StoreError> {
        let path = self.index_file();
        let text = index.sealed(&self.key).map_err(|error| StoreError::Index {
            path: path.clone(),
            problem: error.to_string(),
        })?;
        write_privately(&path, text.as_bytes()).map_err(|error| io_error(&path, error))
    }

    /// The index as it is now.
    pub fn index(&self) -> Result<Index, StoreError> {
        let path = self.index_file();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_empty() => return Ok(Index::default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(StoreError::IndexMissing { path }),
            // Bytes that are no text were not written by us.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(StoreError::IndexSeal { path }),
            Err(error) => return Err(io_error(&path, error)),
        };
        Index::read(&text, &self.key).map_err(|problem| match problem {
            IndexProblem::Seal => StoreError::IndexSeal { path },
            IndexProblem::Text(problem) => StoreError::Index { path, problem },
        })
    }

    /// What was added under this id.
    pub fn entry(&self, id: &ComponentId) -> Result<Entry, StoreError> {
        self.index()?.known(id).cloned()
    }

    /// Changes the index, alone among all processes. What the function refuses leaves everything as it was.
    pub(crate) fn change<T, E: From<StoreError>>(&self, change: impl FnOnce(&mut Index) -> Result<T, E>) -> Result<T, E> {
        let _lock = lock(&self.home).map_err(|error| io_error(&self.home, error))?;
        let before = self.index()?;
        let mut index = before.clone();
        let done = change(&mut index)?;
        if index != before
            && let Err(error) = self.write_index(&index)
        {
            // What fails after the rename does not undo it.
            if !self.index().is_ok_and(|now| now == index) {
                return Err(error.into());
            }
            tracing::warn!("the change is made, but may be lost if the machine stops now: {error}");
        }
        Ok(done)
    }

    /// Takes components out of the index. Their files stay until `gc`: running servers may need them.
    pub fn remove(&self, ids: &[ComponentId]) -> Result<Vec<Entry>, StoreError> {
        self.change(|index| {
            ids.iter()
                .map(|id| {
                    let entry = index.known(id)?.clone();
                    index.entries.retain(|other| other.id != *id);
                    Ok(entry)
                })
                .collect()
        })
    }

    /// Says that this process may yet have to read these components.
    pub(crate) fn lease<'a>(&self, digests: impl Iterator<Item = &'a Digest>) -> io::Result<Lease> {
        let _lock = lock(&self.home)?;
        Lease::take(&self.home, digests)
    }

    /// Keeps the bytes of a component. To be called within [`Store::change`], so that no `gc` runs before they are in the index.
    pub(crate) fn keep(&self, digest: &Digest, component: &[u8]) -> Result<(), StoreError> {
        self.keep_file(&self.component_file(digest), component)
    }

    /// Keeps what is known of a component, likewise.
    pub(crate) fn keep_metadata(&self, metadata: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of(metadata);
        self.keep_file(&self.metadata_file(&digest), metadata)?;
        Ok(digest)
    }

    fn keep_file(&self, path: &Path, contents: &[u8]) -> Result<(), StoreError> {
        // A file under its digest is right, unless it was damaged.
        if fs::read(path).is_ok_and(|kept| kept == contents) {
            return Ok(());
        }
        write_privately(path, contents).map_err(|error| io_error(path, error))
    }

    /// Where the bytes of a component are kept.
    pub(crate) fn component_file(&self, digest: &Digest) -> PathBuf {
        self.home.join("components").join(format!("{}.wasm", digest.hex()))
    }

    fn metadata_file(&self, digest: &Digest) -> PathBuf {
        self.home.join("components").join(format!("{}.json", digest.hex()))
    }

    /// What was kept of a component, if it is still as it was.
    pub(crate) fn metadata(&self, digest: &Digest) -> Option<Vec<u8>> {
        let bytes = fs::read(self.metadata_file(digest)).ok()?;
        (Digest::of(&bytes) == *digest).then_some(bytes)
    }

    /// Whether the files of an entry are as they were written, and of the form that this program writes.
    pub(crate) fn is_intact(&self, entry: &Entry) -> bool {
        let component = fs::read(self.component_file(&entry.digest));
        let metadata = self.metadata(&entry.metadata);
        component.is_ok_and(|bytes| Digest::of(&bytes) == entry.digest) && metadata.as_deref().and_then(Metadata::parse).is_some()
    }

    pub(crate) fn index_file(&self) -> PathBuf {
        self.home.join(index::FILE_NAME)
    }
}

pub(crate) fn io_error(path: &Path, error: io::Error) -> StoreError {
    StoreError::Io {
        path: path.to_owned(),
        error,
    }
}

/// Waits until no other process changes the store. The lock ends with the file.
fn lock(home: &Path) -> io::Result<File> {
    let path = home.join("lock");
    let opened = File::options().create(true).truncate(false).write(true).open(&path);
    // Where nothing can be written, one can still look.
    let file = opened.or_else(|error| File::open(&path).map_err(|_| error))?;
    file.lock()?;
    Ok(file)
}

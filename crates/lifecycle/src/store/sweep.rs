//! Looking at every file of the store: to free what nothing uses, and to find what is damaged.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use sources::Digest;

use super::index::{Index, IndexProblem};
use super::{Store, StoreError, io_error, lease, lock};
use crate::cache::{CacheFile, CodePart};
use crate::id::ComponentId;

/// What `gc` freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    pub files: usize,
    pub bytes: u64,
}

/// What `verify` saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    pub components: usize,
    /// Files whose contents were compared with their digest or seal.
    pub files: usize,
    pub findings: Vec<Finding>,
    /// Files that nothing uses. No fault, only room.
    pub unused: Collected,
}

/// A file that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub path: PathBuf,
    /// Whose file it is.
    pub component: Option<ComponentId>,
    pub problem: &'static str,
    pub repaired: bool,
}

impl Store {
    /// Deletes what neither the index nor a running server needs. Whatever is being added meanwhile waits for the end of it.
    pub fn collect_garbage(&self) -> Result<Collected, StoreError> {
        let _lock = lock(&self.home).map_err(|error| io_error(&self.home, error))?;
        // Without a readable index everything would look unused.
        let index = self.index()?;
        let mut collected = Collected::default();
        for path in self.unused(&index)? {
            let size = fs::metadata(&path).map_or(0, |metadata| metadata.len());
            match fs::remove_file(&path) {
                Ok(()) => {
                    collected.files += 1;
                    collected.bytes += size;
                }
                // The cache is written without the lock: a temporary file may have got its name, and who compiled may be done.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(io_error(&path, error)),
            }
        }
        Ok(collected)
    }

    /// The files that nothing uses.
    fn unused(&self, index: &Index) -> Result<Vec<PathBuf>, StoreError> {
        let leased = lease::leased(&self.home).map_err(|error| io_error(&self.home, error))?;
        let components: BTreeSet<&Digest> = index.entries.iter().map(|entry| &entry.digest).chain(&leased).collect();
        let metadata: BTreeSet<&Digest> = index.entries.iter().map(|entry| &entry.metadata).collect();
        let mut unused = Vec::new();
        for path in self.files("components")? {
            let digest = path.file_stem().and_then(|stem| Digest::from_hex(stem.to_str()?).ok());
            let used = match path.extension().and_then(|extension| extension.to_str()) {
                Some("wasm") => digest.is_some_and(|digest| components.contains(&digest)),
                Some("json") => digest.is_some_and(|digest| metadata.contains(&digest)),
                _ => false,
            };
            if !used {
                unused.push(path);
            }
        }
        for path in self.files("cache")? {
            // Another version of this program may keep other files here, and makes them again.
            let used = CacheFile::parse(&path).is_some_and(|file| match file {
                // Who was killed while compiling left it behind.
                CacheFile::Code {
                    part: CodePart::Lock, ..
                } => is_locked(&path),
                CacheFile::Code { digest, .. } | CacheFile::Metadata { digest } => components.contains(&digest),
            });
            if !used {
                unused.push(path);
            }
        }
        unused.extend(self.files("downloads")?);
        let temporary = |path: &PathBuf| {
            path.file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b".tmp"))
        };
        unused.extend(self.files(".")?.into_iter().filter(temporary));
        Ok(unused)
    }

    /// Compares every file with its digest or seal. With `repair`, what can be made again is deleted, and an index that
    /// something else wrote is accepted if it can be read.
    pub fn verify(&self, repair: bool) -> Result<Verified, StoreError> {
        let _lock = lock(&self.home).map_err(|error| io_error(&self.home, error))?;
        let mut verified = Verified::default();
        let index = self.verified_index(repair, &mut verified)?;
        verified.components = index.entries.len();
        for entry in &index.entries {
            let component = self.component_file(&entry.digest);
            let metadata = self.metadata_file(&entry.metadata);
            for (path, digest) in [(component, &entry.digest), (metadata, &entry.metadata)] {
                verified.files += 1;
                let problem = match fs::read(&path) {
                    Ok(bytes) if Digest::of(&bytes) == *digest => continue,
                    Ok(_) => "is not what was added",
                    Err(_) => "is missing",
                };
                verified.findings.push(Finding {
                    path,
                    component: Some(entry.id.clone()),
                    problem,
                    repaired: false,
                });
            }
        }
        for path in self.files("cache")? {
            let Some(file) = CacheFile::parse(&path) else { continue };
            let Some(intact) = self.cache.is_intact(&path, &file) else {
                continue;
            };
            verified.files += 1;
            if !intact {
                if repair {
                    fs::remove_file(&path).map_err(|error| io_error(&path, error))?;
                }
                let digest = match &file {
                    CacheFile::Code { digest, .. } | CacheFile::Metadata { digest } => digest,
                };
                let owner = index.entries.iter().find(|entry| entry.digest == *digest);
                verified.findings.push(Finding {
                    path,
                    component: owner.map(|entry| entry.id.clone()),
                    problem: "is not as it was written; it is made again when it is needed",
                    repaired: repair,
                });
            }
        }
        for path in self.unused(&index)? {
            verified.unused.files += 1;
            verified.unused.bytes += fs::metadata(&path).map_or(0, |metadata| metadata.len());
        }
        Ok(verified)
    }

    fn verified_index(&self, repair: bool, verified: &mut Verified) -> Result<Index, StoreError> {
        let path = self.index_file();
        verified.files += usize::from(path.exists());
        let unsealed = match self.index() {
            Err(StoreError::IndexSeal { .. }) => fs::read_to_string(&path).unwrap_or_default(),
            // Beginning anew is for the person to decide.
            Err(StoreError::IndexMissing { .. }) if repair => {
                self.write_index(&Index::default())?;
                return Ok(Index::default());
            }
            other => return other,
        };
        let index = Index::parse(&unsealed).map_err(|problem| match problem {
            IndexProblem::Text(problem) => StoreError::Index {
                path: path.clone(),
                problem,
            },
            IndexProblem::Seal => StoreError::IndexSeal { path: path.clone() },
        })?;
        if repair {
            self.write_index(&index)?;
        }
        verified.findings.push(Finding {
            path,
            component: None,
            problem: "is not as host wrote it: it was damaged, or changed by hand",
            repaired: repair,
        });
        Ok(index)
    }

    /// The files in a folder of the store, in the order of their names.
    fn files(&self, folder: &str) -> Result<Vec<PathBuf>, StoreError> {
        let folder = self.home.join(folder);
        let failed = |error| io_error(&folder, error);
        let mut files = Vec::new();
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if is_file(&path) {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }
}

fn is_locked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_dir())
}

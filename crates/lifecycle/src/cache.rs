//! What is kept between runs: the metadata and the compiled code of components, by the digest of their bytes.
//!
//! Everything here can be deleted at any time. Code is run as it is, so the directory must belong to this user alone; where it does
//! not, nothing is kept and nothing is believed. A file is replaced by renaming and never changed, because running processes
//! have it mapped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use sandbox::CodeKey;

use crate::files::write_atomically;
use crate::metadata::{Digest, Metadata};

#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("the cache directory `{path}` cannot be used: {error}")]
    Io { path: PathBuf, error: io::Error },
    #[error("the cache directory `{path}` is a link or no directory\nhint: set HOST_HOME to the directory itself")]
    NotADirectory { path: PathBuf },
    #[error(
        "the cache directory `{path}` can be written by others, so its contents cannot be trusted\n\
         hint: `chmod 700 {path}`, or set HOST_HOME to a directory of your own"
    )]
    Exposed { path: PathBuf },
}

/// Where everything is kept unless told otherwise: `$HOST_HOME`, else the platform's data directory.
pub fn default_home() -> Option<PathBuf> {
    match std::env::var_os("HOST_HOME") {
        Some(home) if !home.is_empty() => Some(home.into()),
        _ => Some(etcetera::choose_base_strategy().ok()?.data_dir().join("host")),
    }
}

/// A directory that is known to be ours alone.
#[derive(Debug)]
pub(crate) struct Cache {
    directory: PathBuf,
}

impl Cache {
    pub(crate) fn open(home: &Path) -> Result<Self, CacheError> {
        let directory = home.join("cache");
        for path in [home, &directory] {
            make_private(path)?;
        }
        Ok(Self { directory })
    }

    /// The metadata of a component, if this version of the program wrote it for these docs.
    pub(crate) fn metadata(&self, digest: &Digest, docs: &Digest) -> Option<Metadata> {
        let bytes = fs::read(self.metadata_file(digest, docs)).ok()?;
        let metadata: Metadata = serde_json::from_slice(&bytes).ok()?;
        (metadata.is_current() && metadata.digest == *digest).then_some(metadata)
    }

    pub(crate) fn keep_metadata(&self, metadata: &Metadata, docs: &Digest) -> io::Result<()> {
        let bytes = serde_json::to_vec(metadata)?;
        write_atomically(&self.metadata_file(&metadata.digest, docs), &bytes)
    }

    fn metadata_file(&self, digest: &Digest, docs: &Digest) -> PathBuf {
        self.directory.join(format!("{digest}-{}.json", docs.short()))
    }

    /// The file with a component's code, if there is one and it is as it was written.
    pub(crate) fn code(&self, digest: &Digest, key: &CodeKey) -> Option<PathBuf> {
        let (file, checksum) = self.code_files(digest, key);
        let code = fs::read(&file).ok()?;
        if fs::read_to_string(checksum).ok()? == Digest::of(&code).to_string() {
            return Some(file);
        }
        tracing::warn!(file = %file.display(), "compiled code was damaged; it is compiled again");
        None
    }

    /// Keeps the code of a component, and returns the file that it is in.
    pub(crate) fn keep_code(&self, digest: &Digest, key: &CodeKey, code: &[u8]) -> io::Result<PathBuf> {
        let (file, checksum) = self.code_files(digest, key);
        write_atomically(&file, code)?;
        write_atomically(&checksum, Digest::of(code).to_string().as_bytes())?;
        Ok(file)
    }

    /// Code is mapped and run as it is, so it has a checksum beside it that is compared first.
    fn code_files(&self, digest: &Digest, key: &CodeKey) -> (PathBuf, PathBuf) {
        let name = format!("{digest}-{}", key.as_str());
        (
            self.directory.join(format!("{name}.cwasm")),
            self.directory.join(format!("{name}.sha256")),
        )
    }
}

/// Makes a directory that only this user can use, or checks that it is one.
fn make_private(path: &Path) -> Result<(), CacheError> {
    let failed = |error| CacheError::Io {
        path: path.to_owned(),
        error,
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, MetadataExt};
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        match fs::DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        // A link could be made to point elsewhere after this look at it.
        let metadata = fs::symlink_metadata(path).map_err(failed)?;
        if !metadata.is_dir() {
            return Err(CacheError::NotADirectory { path: path.to_owned() });
        }
        let ours = metadata.uid() == effective_uid(path).map_err(failed)?;
        if !ours || metadata.mode() & 0o022 != 0 {
            return Err(CacheError::Exposed { path: path.to_owned() });
        }
    }
    #[cfg(not(unix))]
    fs::create_dir_all(path).map_err(failed)?;
    Ok(())
}

/// The user that this process writes as: the owner of a file that it makes.
#[cfg(unix)]
fn effective_uid(directory: &Path) -> io::Result<u32> {
    use std::os::unix::fs::MetadataExt;
    Ok(tempfile::tempfile_in(directory)?.metadata()?.uid())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let cache = home.path().join("cache");
        Cache::open(home.path()).unwrap();
        assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(Cache::open(home.path()), Err(CacheError::Exposed { .. })));
    }

    #[test]
    fn a_link_in_place_of_the_directory_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), home.path().join("cache")).unwrap();
        assert!(matches!(Cache::open(home.path()), Err(CacheError::NotADirectory { .. })));
    }
}

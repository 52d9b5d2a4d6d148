//! What can be made again: what was found out about components, and compiled code, by the digest of their bytes.
//!
//! Everything here can be deleted at any time. Code is run as it is, so each file is sealed under its own name with the key of the
//! store; what the seal does not fit is never used. A file is replaced by renaming and never changed, because running processes have
//! it mapped.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use sandbox::CodeKey;
use serde::{Deserialize, Serialize};
use sources::Digest;

use crate::files::write_privately;
use crate::metadata::Metadata;
use crate::store::SealKey;

#[derive(Debug)]
pub(crate) struct Cache {
    directory: PathBuf,
    key: SealKey,
}

/// What is kept of a component.
#[derive(Serialize, Deserialize)]
struct Kept<'a> {
    /// The build of the program that wrote it: another one may make other schemas.
    build: Cow<'a, str>,
    metadata: Cow<'a, Metadata>,
}

/// What a file in the cache is, by its name.
pub(crate) enum CacheFile {
    Metadata {
        digest: Digest,
    },
    /// Code, the seal beside it, or the lock of who compiles it.
    Code {
        digest: Digest,
        part: CodePart,
    },
}

#[derive(PartialEq, Eq)]
pub(crate) enum CodePart {
    Code,
    Seal,
    Lock,
}

impl CacheFile {
    pub(crate) fn parse(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let (stem, ending) = name.split_once('.')?;
        let (digest, _) = stem.split_once('-')?;
        let digest = Digest::from_hex(digest).ok()?;
        let part = match ending {
            "json" => return Some(Self::Metadata { digest }),
            "cwasm" => CodePart::Code,
            "seal" => CodePart::Seal,
            "lock" => CodePart::Lock,
            _ => return None,
        };
        Some(Self::Code { digest, part })
    }
}

/// Where the code of a component for one engine is.
#[derive(Clone, Debug)]
pub(crate) struct CodeName(String);

impl CodeName {
    pub(crate) fn new(digest: &Digest, key: &CodeKey) -> Self {
        Self(format!("{}-{}", digest.hex(), key.as_str()))
    }

    fn file(&self) -> String {
        format!("{}.cwasm", self.0)
    }
}

impl Cache {
    pub(crate) fn new(directory: PathBuf, key: SealKey) -> Self {
        Self { directory, key }
    }

    /// The metadata of a component, if this build of the program wrote it for these docs.
    pub(crate) fn metadata(&self, digest: &Digest, docs: &Digest) -> Option<Metadata> {
        let name = metadata_name(digest, docs);
        let text = fs::read(self.directory.join(&name)).ok()?;
        let kept: Kept = serde_json::from_slice(self.unsealed(&name, &text)?).ok()?;
        (kept.build == this_build() && kept.metadata.digest == *digest).then(|| kept.metadata.into_owned())
    }

    pub(crate) fn keep_metadata(&self, metadata: &Metadata, docs: &Digest) -> io::Result<()> {
        let name = metadata_name(&metadata.digest, docs);
        let json = serde_json::to_vec(&Kept {
            build: Cow::Borrowed(this_build()),
            metadata: Cow::Borrowed(metadata),
        })?;
        let mut text = format!("{}\n", self.key.seal(&name, &json)).into_bytes();
        text.extend(json);
        write_privately(&self.directory.join(name), &text)
    }

    /// What follows the seal in the first line, if it is what was sealed.
    fn unsealed<'a>(&self, name: &str, text: &'a [u8]) -> Option<&'a [u8]> {
        let end = text.iter().position(|byte| *byte == b'\n')?;
        let (seal, rest) = (text.get(..end)?, text.get(end + 1..)?);
        self.key.seal(name, rest).is(std::str::from_utf8(seal).ok()?).then_some(rest)
    }

    /// Whether there is code. Whether it can be used is seen when it is opened.
    pub(crate) fn has_code(&self, name: &CodeName) -> bool {
        self.directory.join(name.file()).exists() && self.seal_file(name).exists()
    }

    /// The file with the code of a component, if there is one and it is as it was written.
    pub(crate) fn code(&self, name: &CodeName) -> Option<PathBuf> {
        let seal = fs::read_to_string(self.seal_file(name)).ok()?;
        let file = self.directory.join(name.file());
        if self.fits(&file, &name.file(), &seal).ok()? {
            return Some(file);
        }
        tracing::warn!(code = name.0, "compiled code was damaged; it is compiled again");
        None
    }

    fn fits(&self, file: &Path, name: &str, seal: &str) -> io::Result<bool> {
        Ok(self.key.seal_of_file(name, file)?.is(seal))
    }

    /// Keeps the code of a component, and returns the file that it is in.
    pub(crate) fn keep_code(&self, name: &CodeName, code: &[u8]) -> io::Result<PathBuf> {
        let file = self.directory.join(name.file());
        write_privately(&file, code)?;
        let seal = self.key.seal_for_file(&name.file(), code).to_string();
        write_privately(&self.seal_file(name), seal.as_bytes())?;
        Ok(file)
    }

    fn seal_file(&self, name: &CodeName) -> PathBuf {
        self.directory.join(format!("{}.seal", name.0))
    }

    /// Waits until no other process compiles this code. Who comes second finds it compiled.
    pub(crate) fn compiling(&self, name: &CodeName) -> io::Result<Compiling> {
        let path = self.directory.join(format!("{}.lock", name.0));
        let file = File::options().create(true).truncate(false).write(true).open(&path)?;
        file.lock()?;
        Ok(Compiling { path, _file: file })
    }

    /// Whether a file is as it was written; `None` where there is nothing to compare.
    pub(crate) fn is_intact(&self, path: &Path, file: &CacheFile) -> Option<bool> {
        let name = path.file_name()?.to_str()?;
        match file {
            CacheFile::Metadata { .. } => Some(fs::read(path).is_ok_and(|text| self.unsealed(name, &text).is_some())),
            CacheFile::Code {
                part: CodePart::Code, ..
            } => {
                // Without a seal it is what a process did not come to the end of, and is not used.
                let seal = fs::read_to_string(path.with_extension("seal")).ok()?;
                Some(self.fits(path, name, &seal).unwrap_or(false))
            }
            CacheFile::Code { .. } => None,
        }
    }
}

fn metadata_name(digest: &Digest, docs: &Digest) -> String {
    format!("{}-{}.json", digest.hex(), docs.hex())
}

/// Tells one build of this program from another: a version alone is the same for all builds between two releases.
fn this_build() -> &'static str {
    static BUILD: LazyLock<String> = LazyLock::new(build);
    &BUILD
}

fn build() -> String {
    let executable = std::env::current_exe().and_then(|path| path.metadata());
    let modified = executable.and_then(|metadata| Ok((metadata.len(), metadata.modified()?)));
    let since = |time: std::time::SystemTime| {
        time.duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |duration| duration.as_nanos())
    };
    match modified {
        Ok((size, time)) => format!("{} {size} {}", env!("CARGO_PKG_VERSION"), since(time)),
        Err(_) => env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Held by the one process that compiles something.
#[derive(Debug)]
pub(crate) struct Compiling {
    path: PathBuf,
    _file: File,
}

impl Drop for Compiling {
    fn drop(&mut self) {
        // Who waits for it has the file open, and sees the code that was made meanwhile.
        let _ = fs::remove_file(&self.path);
    }
}

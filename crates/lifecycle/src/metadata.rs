//! What is known of a component without running it, and how it is kept.

use std::fmt;
use std::path::{Path, PathBuf};

use component2json::{Exports, ToolMetadata, component_exports_to_tools, read_exports};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::docs::SideWit;
use crate::error::LoadError;
use crate::files;

/// Changes whenever what is kept changes its form or meaning; older metadata is then made anew.
const FORMAT: u32 = 1;

/// The SHA-256 of some bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Enough to tell a handful of things apart.
    pub(crate) fn short(&self) -> &str {
        self.0.get(..16).unwrap_or(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// All that serving a component needs to know of it, until it is called.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Metadata {
    format: u32,
    /// The build of the program that wrote it: another one may make other schemas.
    host: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    pub(crate) exports: Exports,
    /// The tools as they were made from the exports, under the names they have when nothing else is loaded.
    pub(crate) tools: Vec<ToolMetadata>,
}

impl Metadata {
    pub fn new(digest: Digest, size: u64, exports: Exports) -> Self {
        Self {
            format: FORMAT,
            host: this_build(),
            digest,
            size,
            tools: component_exports_to_tools(&exports),
            exports,
        }
    }

    pub(crate) fn is_current(&self) -> bool {
        self.format == FORMAT && self.host == this_build()
    }
}

/// Tells one build of this program from another: a version alone is the same for all builds between two releases.
fn this_build() -> String {
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

/// Reads the exports of a component, with docs from beside it.
pub(crate) fn read(bytes: &[u8], digest: Digest, path: &Path, wit: &[SideWit]) -> Result<(Metadata, Vec<String>), LoadError> {
    let failed = |error| LoadError::Component {
        path: path.to_owned(),
        error,
    };
    // A damaged file should not promise tools that it cannot have.
    component2json::validate(bytes).map_err(failed)?;
    let (mut exports, warnings) = read_exports(bytes, None).map_err(failed)?;
    let mut warnings = warnings.0;
    if let Some(docs) = SideWit::docs(wit, &exports, &mut warnings) {
        (exports, _) = read_exports(bytes, Some(&docs)).map_err(failed)?;
    }
    Ok((Metadata::new(digest, bytes.len() as u64, exports), warnings))
}

/// Everything that can be said of a component without running it.
#[derive(Debug)]
pub struct Inspection {
    pub path: PathBuf,
    pub digest: Digest,
    pub size: u64,
    pub exports: Exports,
    pub tools: Vec<ToolMetadata>,
    pub warnings: Vec<String>,
}

/// Looks at a component without loading it: also one that could not be served.
pub fn inspect(path: &Path, wit: Option<&Path>) -> Result<Inspection, LoadError> {
    let bytes = files::read_component(path)?;
    let (metadata, warnings) = read(&bytes, Digest::of(&bytes), path, &SideWit::candidates(path, wit))?;
    Ok(Inspection {
        path: path.to_owned(),
        digest: metadata.digest,
        size: metadata.size,
        exports: metadata.exports,
        tools: metadata.tools,
        warnings,
    })
}

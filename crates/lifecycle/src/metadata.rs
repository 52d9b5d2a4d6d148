//! What is known of a component, and how it is kept.

use std::fmt;
use std::path::{Path, PathBuf};

use component2json::{
    Exports, FileKind, ToolMetadata, clean_text, component_exports_to_tools, core_imports, file_kind, read_exports,
};
use sandbox::unknown_imports;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::commands::ProgramMetadata;
use crate::docs::SideWit;
use crate::error::LoadError;
use crate::registry::Tool;

/// Changes whenever what is kept changes its form or meaning; older metadata is then made anew.
const FORMAT: u32 = 2;

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
    pub(crate) interface: Interface,
}

/// What can be called.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Interface {
    Functions {
        exports: Exports,
        /// The tools as they were made from the exports, under the names they have when nothing else is loaded.
        tools: Vec<ToolMetadata>,
    },
    Program(Box<ProgramMetadata>),
}

impl Metadata {
    pub fn new(digest: Digest, size: u64, interface: Interface) -> Self {
        Self {
            format: FORMAT,
            host: this_build(),
            digest,
            size,
            interface,
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

/// What is in a file, before anything of it ran.
pub(crate) enum Contents {
    Functions(Exports),
    Program { exports: Exports, is_module: bool },
}

impl Contents {
    /// Reads a component, with docs from beside it, or a core module.
    pub(crate) fn read(bytes: &[u8], path: &Path, wit: &[SideWit], warnings: &mut Vec<String>) -> Result<Self, LoadError> {
        let failed = |error| LoadError::Component {
            path: path.to_owned(),
            error,
        };
        // A damaged file should not promise tools that it cannot have.
        component2json::validate(bytes).map_err(failed)?;
        if file_kind(bytes) == FileKind::CoreModule {
            let exports = Exports {
                imports: core_imports(bytes),
                ..Exports::default()
            };
            return Ok(Self::Program {
                exports,
                is_module: true,
            });
        }
        let (mut exports, found) = read_exports(bytes, None).map_err(failed)?;
        warnings.extend(found.0);
        if exports.functions.is_empty() && exports.run.is_some() {
            return Ok(Self::Program {
                exports,
                is_module: false,
            });
        }
        if let Some(docs) = SideWit::docs(wit, &exports, warnings) {
            (exports, _) = read_exports(bytes, Some(&docs)).map_err(failed)?;
        }
        Ok(Self::Functions(exports))
    }
}

impl Interface {
    pub(crate) fn functions(exports: Exports) -> Self {
        Self::Functions {
            tools: component_exports_to_tools(&exports),
            exports,
        }
    }

    /// What the file exports and imports as WebAssembly.
    pub fn exports(&self) -> &Exports {
        match self {
            Self::Functions { exports, .. } => exports,
            Self::Program(program) => &program.exports,
        }
    }

    /// What it says about itself as a whole.
    pub(crate) fn about(&self) -> Option<String> {
        match self {
            Self::Functions { exports, .. } => {
                let world = exports.scopes.iter().find(|scope| scope.interface.is_none())?;
                Some(world.docs.clone())
            }
            Self::Program(program) => program.command.summary.as_deref().and_then(clean_text),
        }
    }

    /// The imports that nothing here implements.
    pub fn unknown_imports(&self) -> Vec<&str> {
        match self {
            Self::Functions { exports, .. } => unknown_imports(&exports.imports),
            Self::Program(program) => program.unknown_imports(),
        }
    }
}

/// Everything that can be said of a component: also of one that could not be served.
#[derive(Debug)]
pub struct Inspection {
    pub path: PathBuf,
    pub digest: Digest,
    pub size: u64,
    pub interface: Interface,
    /// The tools that it has by itself.
    pub tools: Vec<Tool>,
    pub warnings: Vec<String>,
}

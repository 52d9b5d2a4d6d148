//! What is known of a component, and how it is kept.

use std::path::{Path, PathBuf};

use component2json::{
    Exports, FileKind, ToolMetadata, clean_text, component_exports_to_tools, core_imports, file_kind, read_exports,
};
use sandbox::{CodeKind, unknown_imports};
use serde::{Deserialize, Serialize};
use sources::Digest;

use crate::commands::ProgramMetadata;
use crate::docs::SideWit;
use crate::error::LoadError;
use crate::overrides::Overrides;
use crate::registry::Tool;

/// Changes whenever what is kept changes its form or meaning; older metadata is then made anew.
const FORMAT: u32 = 4;

/// All that serving a component needs to know of it, until it is called.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Metadata {
    format: u32,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    pub(crate) interface: Interface,
    /// What its author says of its tools by hand.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub(crate) overrides: Overrides,
    /// What is written about it for people, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) readme: Option<String>,
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
            digest,
            size,
            interface,
            overrides: Overrides::new(),
            readme: None,
        }
    }

    /// In the form that is kept.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        // Maps of it have texts for keys, and nothing else in it can fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The metadata in a kept file; none if that is of another form than this program's.
    pub(crate) fn parse(json: &[u8]) -> Option<Self> {
        let metadata: Self = serde_json::from_slice(json).ok()?;
        (metadata.format == FORMAT).then_some(metadata)
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
        if exports.functions.is_empty() && exports.offers.is_empty() && exports.run.is_some() {
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

    /// What its code is compiled from, and for.
    pub(crate) fn code_kind(&self) -> CodeKind {
        match self {
            Self::Functions { exports, .. } => CodeKind::Component {
                concurrency: exports.needs_concurrency,
            },
            Self::Program(program) => program.code_kind(),
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

//! From the bytes of a component to what is known of it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use command2json::Description;
use policy::Limits;
use sandbox::{CodeError, Confinement, Executable};
use sources::Digest;

use crate::commands::{self, ProgramMetadata};
use crate::docs::SideWit;
use crate::error::LoadError;
use crate::files;
use crate::id::ComponentId;
use crate::loaded::{Loaded, Origin, Revision};
use crate::manager::LifecycleManager;
use crate::metadata::{Contents, Inspection, Interface, Metadata};
use crate::overrides;
use crate::registry::{Registry, Terms, Tool};

/// What lies beside a component and says more about it.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    wit: Vec<SideWit>,
    descriptions: Vec<PathBuf>,
    /// The text of a file with overrides.
    tools: Option<String>,
    readme: Option<String>,
}

impl Beside {
    pub(crate) fn of(component: &Path, wit: Option<&Path>) -> Self {
        Self {
            wit: SideWit::candidates(component, wit),
            descriptions: commands::side_files(component),
            tools: overrides::side_file(component).and_then(|file| match commands::read_text(&file) {
                Ok(text) => Some(text),
                Err(problem) => {
                    tracing::warn!("`{}` was ignored: {problem}", file.display());
                    None
                }
            }),
            readme: readme(component),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.wit.is_empty() && self.descriptions.is_empty() && self.tools.is_none() && self.readme.is_none()
    }

    /// Of all that has a part in the metadata besides the bytes.
    fn digest(&self, name: &Path) -> Digest {
        Digest::of(
            &[
                SideWit::fingerprint(&self.wit),
                commands::fingerprint(name, &self.descriptions),
                format!("\0{:?}\0{:?}", self.tools, self.readme).into_bytes(),
            ]
            .concat(),
        )
    }
}

/// What is kept of a README.
const MAX_README: usize = 64 << 10;

/// The README of a component: the Markdown of its name, or that of a folder that has no other component.
fn readme(component: &Path) -> Option<String> {
    let folder = component.parent()?;
    let is_component = |path: &Path| path.extension().is_some_and(|ending| ending == "wasm" || ending == "wat");
    let of_folder = || {
        let file = Some(folder.join("README.md")).filter(|file| file.is_file())?;
        let mut others = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
        let is_alone = others.all(|path| !is_component(&path) || path.file_name() == component.file_name());
        is_alone.then_some(file)
    };
    let file = Some(component.with_extension("md"))
        .filter(|file| file.is_file())
        .or_else(of_folder)?;
    let text = commands::read_text(&file).ok()?;
    component2json::clean_text_within(&text, MAX_README)
}

/// What was found out about certain bytes.
pub(crate) struct Read {
    pub(crate) metadata: Metadata,
    pub(crate) beside: Digest,
    pub(crate) warnings: Vec<String>,
}

/// What was found out about a component in some place.
struct Looked {
    path: PathBuf,
    id: ComponentId,
    read: Read,
}

/// Where a component is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    File(PathBuf),
    /// In the store, under this id.
    Added(ComponentId),
}

impl LifecycleManager {
    /// Looks at a component without serving it: also at one that could not be served.
    pub fn inspect(&self, place: &Place) -> Result<Inspection, LoadError> {
        let Looked { path, id, read } = self.look_at(place)?;
        let terms = self.terms(&id);
        Ok(Inspection {
            path,
            digest: read.metadata.digest,
            size: read.metadata.size,
            interface: read.metadata.interface.clone(),
            tools: own_tools(id, read.metadata, &terms, self.config.max_name),
            warnings: read.warnings,
        })
    }

    /// What is known of the commands of a program, in the form of a description file.
    pub fn describe(&self, place: &Place) -> Result<Description, LoadError> {
        let Looked { path, read, .. } = self.look_at(place)?;
        match read.metadata.interface {
            Interface::Program(program) => Ok(Description {
                complete: true,
                command: program.command,
            }),
            Interface::Functions { .. } => Err(LoadError::NoProgram { path }),
        }
    }

    fn look_at(&self, place: &Place) -> Result<Looked, LoadError> {
        match place {
            Place::File(path) => {
                let bytes = files::read_component(path)?;
                Ok(Looked {
                    path: path.clone(),
                    id: ComponentId::from_file(path),
                    read: self.read_file(path, &bytes)?,
                })
            }
            Place::Added(id) => {
                let store = self.store()?;
                let entry = store.entry(id)?;
                let revision = self.load_added(&store, &entry)?;
                Ok(Looked {
                    path: revision.file.clone(),
                    id: entry.id,
                    read: Read {
                        metadata: revision.metadata.clone(),
                        beside: revision.beside,
                        warnings: vec![],
                    },
                })
            }
        }
    }

    /// Finds out about the component in a file, or remembers it from an earlier run.
    pub(crate) fn read_file(&self, path: &Path, bytes: &[u8]) -> Result<Read, LoadError> {
        self.read(path, bytes, &Beside::of(path, self.config.wit.as_deref()))
    }

    /// Finds out about bytes that are known under a name, or remembers it from an earlier run. Then nothing is parsed or run. Else a
    /// program is compiled and asked for its help, and of a component with functions only the types are read.
    pub(crate) fn read(&self, name: &Path, bytes: &[u8], with: &Beside) -> Result<Read, LoadError> {
        let digest = Digest::of(bytes);
        let beside = with.digest(name);
        let cache = self.compiler.store.as_ref().map(|store| &store.cache);
        if let Some(metadata) = cache.and_then(|cache| cache.metadata(&digest, &beside)) {
            return Ok(Read {
                metadata,
                beside,
                warnings: vec![],
            });
        }
        let mut warnings = Vec::new();
        let interface = match Contents::read(bytes, name, &with.wit, &mut warnings)? {
            Contents::Functions(exports) => Interface::functions(exports),
            Contents::Program { exports, is_module } => {
                let mut program = ProgramMetadata::new(exports, is_module);
                let sandbox = &self.compiler.sandbox;
                let within = self.compiler.sandbox.limits().compile_timeout;
                let executable = || -> Result<Arc<Executable>, CodeError> {
                    // It would be compiled for nothing.
                    let unknown = program.unknown_imports();
                    if !unknown.is_empty() {
                        return Err(CodeError::Link(unknown.join(", ")));
                    }
                    let kind = program.code_kind();
                    let compiled = self
                        .compiler
                        .compiled(&digest, kind, within, || Ok::<_, CodeError>(Cow::Borrowed(bytes)))?;
                    Ok(Arc::new(sandbox.link_executable(&compiled, kind, &program.exports)?))
                };
                let given = commands::description(&with.descriptions, bytes, &mut warnings);
                let found = commands::find(name, given.as_ref(), sandbox, executable, &mut warnings);
                program.set(found);
                Interface::Program(Box::new(program))
            }
        };
        let mut metadata = Metadata::new(digest, bytes.len() as u64, interface);
        metadata.overrides = overrides::read(with.tools.as_deref(), bytes, &mut warnings);
        metadata.readme.clone_from(&with.readme);
        for warning in &warnings {
            tracing::warn!("{}: {warning}", name.display());
        }
        // A warning that is not repeated would be missed, so what had one is read again next time.
        if let (Some(cache), true) = (cache, warnings.is_empty())
            && let Err(error) = cache.keep_metadata(&metadata, &beside)
        {
            tracing::warn!(%error, "metadata is not kept for the next start");
        }
        Ok(Read {
            metadata,
            beside,
            warnings,
        })
    }
}

/// The tools that a component has by itself.
pub(crate) fn own_tools(id: ComponentId, metadata: Metadata, terms: &Terms, max_name: usize) -> Vec<Tool> {
    let revision = Revision::new(PathBuf::new(), metadata, Digest::of(&[]));
    let loaded = Loaded {
        id,
        origin: Origin::File(PathBuf::new()),
        confinement: Arc::new(Confinement::bare(Limits::default())),
        revision: Arc::new(revision),
    };
    Registry::default().named(&Arc::new(loaded), terms, max_name)
}

/// Refuses what could never be called.
pub(crate) fn check(path: &Path, interface: &Interface) -> Result<(), LoadError> {
    let unknown = interface.unknown_imports();
    if !unknown.is_empty() {
        return Err(LoadError::UnknownImports {
            path: path.to_owned(),
            imports: unknown.into_iter().map(str::to_owned).collect(),
        });
    }
    let exports = match interface {
        Interface::Functions { exports, .. } if exports.functions.is_empty() && exports.offers.is_empty() => exports,
        Interface::Functions { .. } => return Ok(()),
        Interface::Program(program) => {
            return program.broken.as_ref().map_or(Ok(()), |reason| {
                Err(LoadError::Broken {
                    path: path.to_owned(),
                    reason: reason.clone(),
                })
            });
        }
    };
    let reasons = exports
        .left_out
        .iter()
        .map(|left_out| format!("\n  {}: {}", left_out.export, left_out.reason))
        .collect();
    Err(LoadError::NoTools {
        path: path.to_owned(),
        reasons,
    })
}

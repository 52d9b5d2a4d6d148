//! Compiled code: made from a component's bytes, kept by the caller, mapped back, linked.

use std::path::Path;

use component2json::Exports;
use wasmtime::Engine;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre};

use crate::Sandbox;
use crate::bytes::{self, ByteCall};
use crate::guest::Guest;

/// Why a component cannot be made to run.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CodeError {
    #[error("the engine could not be started: {0}")]
    Engine(String),
    #[error("the component could not be compiled: {0}")]
    Compile(String),
    #[error("the compiled code could not be used: {0}")]
    Map(String),
    #[error("the component needs what this host does not have: {0}")]
    Link(String),
}

impl CodeError {
    pub(crate) fn engine(error: wasmtime::Error) -> Self {
        Self::Engine(format!("{error:#}"))
    }
}

/// Names the engine that compiled code is for: version, settings and CPU. Code is never used by another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodeKey(String);

impl CodeKey {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A compiled component, in memory.
pub struct Compiled(Component);

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Compiled").finish_non_exhaustive()
    }
}

impl Compiled {
    /// The code in the form that [`Sandbox::map`] takes.
    pub fn code(&self) -> Result<Vec<u8>, CodeError> {
        self.0.serialize().map_err(|error| CodeError::Compile(format!("{error:#}")))
    }
}

/// A component that is ready to be called.
pub struct Program {
    pub(crate) instance: InstancePre<Guest>,
    pub(crate) functions: Vec<Callable>,
    concurrency: bool,
}

/// A function of a program: where it is, and whether there is a faster way to call it than through dynamic values.
pub(crate) struct Callable {
    pub(crate) index: ComponentExportIndex,
    pub(crate) bytes: Option<ByteCall>,
    pub(crate) has_result: bool,
    /// A result with byte lists in it that no typed call covers takes much room as dynamic values.
    pub(crate) result_has_bytes: bool,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("functions", &self.functions.len())
            .finish_non_exhaustive()
    }
}

impl Program {
    pub(crate) fn concurrency(&self) -> bool {
        self.concurrency
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.instance.engine()
    }
}

impl Sandbox {
    /// The engine that code for this component has to be compiled for.
    pub fn code_key(&self, exports: &Exports) -> Result<CodeKey, CodeError> {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.runtime(exports.needs_concurrency)?
            .engine
            .precompile_compatibility_hash()
            .hash(&mut hasher);
        Ok(CodeKey(format!("{:016x}", hasher.finish())))
    }

    /// Compiles a component. This takes from milliseconds to many seconds: do it off the async threads.
    pub fn compile(&self, component: &[u8], exports: &Exports) -> Result<Compiled, CodeError> {
        let engine = &self.runtime(exports.needs_concurrency)?.engine;
        let compiled = Component::from_binary(engine, component);
        compiled
            .map(Compiled)
            .map_err(|error| CodeError::Compile(format!("{error:#}")))
    }

    /// Links what was compiled, for when there is no place to keep the code.
    pub fn link_compiled(&self, compiled: &Compiled, exports: &Exports) -> Result<Program, CodeError> {
        self.link(&compiled.0, exports)
    }

    /// Maps code that [`Compiled::code`] gave, and links it.
    ///
    /// The file must be one that this program wrote, in a directory that only its user can write to, and must not change while
    /// the process lives: it becomes machine code of this process.
    pub fn map(&self, code: &Path, exports: &Exports) -> Result<Program, CodeError> {
        let engine = &self.runtime(exports.needs_concurrency)?.engine;
        #[expect(unsafe_code, reason = "mapping compiled code is the one way to start without compiling")]
        // SAFETY: `lifecycle::cache` hands out only files that it wrote itself and whose checksum it has just compared, under the key of
        // this very engine, in a directory that only this user can write to; it replaces files by renaming and never writes to one in
        // place.
        let component = unsafe { Component::deserialize_file(engine, code) };
        self.link(&component.map_err(|error| CodeError::Map(format!("{error:#}")))?, exports)
    }

    fn link(&self, component: &Component, exports: &Exports) -> Result<Program, CodeError> {
        let runtime = self.runtime(exports.needs_concurrency)?;
        let instance = runtime
            .linker
            .instantiate_pre(component)
            .map_err(|error| CodeError::Link(format!("{error:#}")))?;
        let functions = exports
            .functions
            .iter()
            .map(|function| {
                let name = &function.export;
                let interface = match &name.interface {
                    Some(interface) => Some(
                        component
                            .get_export_index(None, interface.as_str())
                            .ok_or_else(|| missing(interface))?,
                    ),
                    None => None,
                };
                let index = component
                    .get_export_index(interface.as_ref(), name.function.as_str())
                    .ok_or_else(|| missing(&name.function))?;
                Ok(Callable {
                    index,
                    bytes: bytes::byte_call(function),
                    has_result: function.result.is_some(),
                    result_has_bytes: function.result.as_ref().is_some_and(bytes::contains_bytes),
                })
            })
            .collect::<Result<_, CodeError>>()?;
        Ok(Program {
            instance,
            functions,
            concurrency: exports.needs_concurrency,
        })
    }
}

fn missing(name: &str) -> CodeError {
    CodeError::Link(format!("its export `{name}` is not where its type says"))
}

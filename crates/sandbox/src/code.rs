//! Compiled code: made from the bytes of a component or a module, kept by the caller, mapped back, linked.

use std::path::Path;
use std::time::Instant;

use component2json::Exports;
use policy::Timeout;
use wasmtime::component::{Component, ComponentExportIndex, Instance, InstancePre};
use wasmtime::{Engine, Module, Store};

use crate::Sandbox;
use crate::bytes::{self, ByteCall};
use crate::engine;
use crate::guest::{Guest, ModuleGuest};
use crate::pace::Pace;
use crate::waiting::Waiting;

/// Why a component cannot be made to run.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CodeError {
    #[error("the engine could not be started: {0}")]
    Engine(String),
    #[error("the component could not be compiled: {0}")]
    Compile(String),
    #[error("the component has {functions} functions, and at most {limit} are compiled")]
    TooManyFunctions { functions: u32, limit: u32 },
    #[error("the component was not compiled within {0}\nhint: allow more with `--compile-timeout`, if you trust it")]
    CompileDeadline(Timeout),
    #[error("the compiler failed: {0}")]
    Worker(String),
    #[error("the compiled code could not be used: {0}")]
    Map(String),
    #[error("the component needs what this host does not have: {0}")]
    Link(String),
}

impl CodeError {
    /// Whether it would be the same another time.
    pub fn lasts(&self) -> bool {
        !matches!(self, Self::CompileDeadline(_) | Self::Worker(_))
    }

    pub(crate) fn engine(error: wasmtime::Error) -> Self {
        Self::Engine(format!("{error:#}"))
    }

    fn compile(error: wasmtime::Error) -> Self {
        Self::Compile(format!("{error:#}"))
    }

    fn link(error: wasmtime::Error) -> Self {
        Self::Link(format!("{error:#}"))
    }
}

/// Names the engine that compiled code is for: version, settings and CPU. Code is never used by another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodeKey(String);

impl CodeKey {
    fn of(engine: &Engine) -> Self {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        Self(format!("{:016x}", hasher.finish()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What code is compiled from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeKind {
    Component { concurrency: bool },
    Module,
}

impl CodeKind {
    /// For one who compiles elsewhere.
    pub fn name(self) -> &'static str {
        match self {
            Self::Component { concurrency: false } => "component",
            Self::Component { concurrency: true } => "concurrent-component",
            Self::Module => "module",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        let all = [
            Self::Component { concurrency: false },
            Self::Component { concurrency: true },
            Self::Module,
        ];
        all.into_iter().find(|kind| kind.name() == name)
    }

    pub(crate) fn concurrency(self) -> bool {
        matches!(self, Self::Component { concurrency: true })
    }
}

/// A compiled component or module, in memory.
pub struct Compiled(Code);

enum Code {
    Component(Component),
    Module(Module),
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Compiled").finish_non_exhaustive()
    }
}

impl Compiled {
    /// The code in the form that [`Sandbox::map`] takes.
    pub fn code(&self) -> Result<Vec<u8>, CodeError> {
        let code = match &self.0 {
            Code::Component(component) => component.serialize(),
            Code::Module(module) => module.serialize(),
        };
        code.map_err(CodeError::compile)
    }
}

/// A program with a `main` that is ready to be run.
pub struct Executable {
    pub(crate) main: Main,
    pub(crate) reads_files_anew: bool,
    pub(crate) pace: Pace,
}

pub(crate) enum Main {
    Component {
        instance: InstancePre<Guest>,
        run: ComponentExportIndex,
        concurrency: bool,
    },
    Module(wasmtime::InstancePre<ModuleGuest>),
}

impl Executable {
    /// Whether the next run will be short, as far as the last ones tell.
    pub fn is_short(&self) -> bool {
        self.pace.is_short()
    }

    pub(crate) fn concurrency(&self) -> bool {
        matches!(self.main, Main::Component { concurrency: true, .. })
    }
}

impl std::fmt::Debug for Executable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Executable").finish_non_exhaustive()
    }
}

/// A component whose functions are ready to be called.
pub struct Program {
    pub(crate) instance: InstancePre<Guest>,
    pub(crate) functions: Vec<Callable>,
    concurrency: bool,
    reads_files_anew: bool,
    starts_silently: bool,
    pub(crate) waiting: Waiting,
}

/// A function of a program: where it is, and whether there is a faster way to call it than through dynamic values.
pub(crate) struct Callable {
    pub(crate) index: ComponentExportIndex,
    pub(crate) bytes: Option<ByteCall>,
    pub(crate) has_result: bool,
    /// A result with byte lists in it that no typed call covers takes much room as dynamic values.
    pub(crate) result_has_bytes: bool,
    pace: Pace,
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

    pub(crate) fn reads_files_anew(&self) -> bool {
        self.reads_files_anew
    }

    /// Whether the next call of a function will be short, as far as the last ones tell.
    pub fn is_short(&self, function: usize) -> bool {
        self.pace(function).is_some_and(Pace::is_short)
    }

    /// What the calls of a function were like; none if there is no such function.
    pub(crate) fn pace(&self, function: usize) -> Option<&Pace> {
        self.functions.get(function).map(|callable| &callable.pace)
    }

    /// Whether making an instance runs none of its code.
    pub(crate) fn starts_silently(&self) -> bool {
        self.starts_silently
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.instance.engine()
    }

    /// A new instance, of which is noted how long it took.
    pub(crate) async fn instantiate(&self, store: &mut Store<Guest>) -> wasmtime::Result<Instance> {
        let begun = Instant::now();
        let instance = self.instance.instantiate_async(store).await?;
        if self.starts_silently {
            self.waiting.took(begun.elapsed());
        }
        Ok(instance)
    }
}

fn compile(engine: &Engine, bytes: &[u8], kind: CodeKind) -> Result<Compiled, CodeError> {
    let code = match kind {
        CodeKind::Component { .. } => Component::from_binary(engine, bytes).map(Code::Component),
        CodeKind::Module => Module::from_binary(engine, bytes).map(Code::Module),
    };
    code.map(Compiled).map_err(CodeError::compile)
}

impl Sandbox {
    /// The engine that code of this kind has to be compiled for.
    pub fn code_key(&self, kind: CodeKind) -> Result<CodeKey, CodeError> {
        Ok(CodeKey::of(&self.runtime(kind.concurrency())?.engine))
    }

    /// Compiles without being able to run anything: for a process that does nothing else. Gives the code, and the key of who can use it.
    pub fn compile_apart(bytes: &[u8], kind: CodeKind) -> Result<(Vec<u8>, CodeKey), CodeError> {
        let engine = engine::compiler(kind.concurrency())?;
        let code = compile(&engine, bytes, kind)?.code()?;
        Ok((code, CodeKey::of(&engine)))
    }

    /// Compiles a component or module. This takes from milliseconds to many seconds: do it off the async threads.
    pub fn compile(&self, bytes: &[u8], kind: CodeKind) -> Result<Compiled, CodeError> {
        compile(&self.runtime(kind.concurrency())?.engine, bytes, kind)
    }

    /// Maps code that [`Compiled::code`] gave.
    ///
    /// The file must be one that this program wrote, in a directory that only its user can write to, and must not change while
    /// the process lives: it becomes machine code of this process.
    pub fn map(&self, file: &Path, kind: CodeKind) -> Result<Compiled, CodeError> {
        let engine = &self.runtime(kind.concurrency())?.engine;
        #[expect(unsafe_code, reason = "mapping compiled code is the one way to start without compiling")]
        // SAFETY: `lifecycle` hands out only files that it has just written itself or whose seal it has just compared, under the key of
        // this very engine, that only this user can write to; it replaces files by renaming and never writes to one in place.
        let code = unsafe {
            match kind {
                CodeKind::Component { .. } => Component::deserialize_file(engine, file).map(Code::Component),
                CodeKind::Module => Module::deserialize_file(engine, file).map(Code::Module),
            }
        };
        code.map(Compiled).map_err(|error| CodeError::Map(format!("{error:#}")))
    }

    /// Makes the program of a component or module ready to be run.
    pub fn link_executable(&self, compiled: &Compiled, kind: CodeKind, exports: &Exports) -> Result<Executable, CodeError> {
        let runtime = self.runtime(kind.concurrency())?;
        let main = match &compiled.0 {
            Code::Module(module) => Main::Module(runtime.modules()?.instantiate_pre(module).map_err(CodeError::link)?),
            Code::Component(component) => {
                let interface = exports.run.as_deref().ok_or_else(|| missing("wasi:cli/run"))?;
                let index = component
                    .get_export_index(None, interface)
                    .ok_or_else(|| missing(interface))?;
                Main::Component {
                    instance: runtime.linker.instantiate_pre(component).map_err(CodeError::link)?,
                    run: component
                        .get_export_index(Some(&index), "run")
                        .ok_or_else(|| missing("run"))?,
                    concurrency: kind.concurrency(),
                }
            }
        };
        Ok(Executable {
            main,
            reads_files_anew: reads_files_anew(exports),
            pace: Pace::default(),
        })
    }

    /// Makes the functions of a component ready to be called.
    pub fn link(&self, compiled: &Compiled, exports: &Exports) -> Result<Program, CodeError> {
        let Code::Component(component) = &compiled.0 else {
            return Err(CodeError::Link(
                "it is a core module, which has no typed functions".to_owned(),
            ));
        };
        let runtime = self.runtime(exports.needs_concurrency)?;
        let instance = runtime.linker.instantiate_pre(component).map_err(CodeError::link)?;
        let functions = exports
            .functions
            .iter()
            .chain(&exports.offers)
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
                    pace: Pace::default(),
                })
            })
            .collect::<Result<_, CodeError>>()?;
        Ok(Program {
            instance,
            functions,
            concurrency: exports.needs_concurrency,
            reads_files_anew: reads_files_anew(exports),
            starts_silently: exports.starts_silently,
            waiting: Waiting::default(),
        })
    }
}

/// Whether a component uses the files of WASI 0.3, whose functions are not asked about single paths.
fn reads_files_anew(exports: &Exports) -> bool {
    let is_new = |import: &String| import.starts_with("wasi:filesystem/") && import.ends_with("@0.3.0");
    exports.imports.iter().any(is_new)
}

fn missing(name: &str) -> CodeError {
    CodeError::Link(format!("its export `{name}` is not where its type says"))
}

//! The manager: files in, tools out, calls through.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use command2json::{Captured, CommandLine, Description, Offer, Target, output_text, output_to_json};
use component2json::{DEFAULT_MAX_TOOL_NAME, Function, ResultError, json_to_arguments, returned_to_json};
use policy::{Grants, Limits};
use sandbox::{CallError, CodeError, CodeKind, Compiled, Executable, Program, Sandbox, Start};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::cache::Cache;
use crate::commands::{self, ProgramMetadata};
use crate::config::ComponentConfig;
use crate::docs::SideWit;
use crate::error::{ExecuteError, LoadError};
use crate::files;
use crate::hints::missing_grant;
use crate::id::ComponentId;
use crate::metadata::{Contents, Digest, Inspection, Interface, Metadata};
use crate::registry::{Action, Plan, Registry, Tool};

/// More components than this do not introduce themselves: a model reads all of it, every time.
const MAX_INSTRUCTIONS: usize = 10;

/// How components are loaded and run.
#[derive(Clone, Debug)]
pub struct Config {
    pub limits: Limits,
    /// Where metadata and code are kept between runs; nothing is kept without it.
    pub home: Option<PathBuf>,
    /// The longest tool name.
    pub max_name: usize,
    /// WIT with docs for the components, in place of what lies beside them.
    pub wit: Option<PathBuf>,
    /// What guests may use.
    pub grants: Arc<Grants>,
    /// How the commands of programs are offered.
    pub offer: Offer,
    /// What the config file says of single components, by their ids.
    pub components: BTreeMap<ComponentId, ComponentConfig>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            home: crate::cache::default_home(),
            max_name: DEFAULT_MAX_TOOL_NAME,
            wit: None,
            grants: Arc::default(),
            offer: Offer::default(),
            components: BTreeMap::new(),
        }
    }
}

/// A component that is being served.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) id: ComponentId,
    path: PathBuf,
    pub(crate) metadata: Metadata,
    /// Linked code, from the first call on; or why there is none and never will be.
    code: OnceCell<Result<Code, CodeError>>,
}

/// What runs when a tool is called.
#[derive(Clone, Debug)]
enum Code {
    Functions(Arc<Program>),
    Program(Arc<Executable>),
}

/// What is loaded, for people and for management tools.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentSummary {
    pub id: ComponentId,
    pub path: PathBuf,
    pub digest: Digest,
    pub size: u64,
    pub tools: Vec<String>,
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq)]
pub struct CallOutcome {
    /// In its envelope; none for a function that returns nothing.
    pub structured: Option<Value>,
    /// What a person would read, where that is not the structure.
    pub text: Option<String>,
    /// The function returned the `err` of a `result`, or the program exited with a code that is not zero.
    pub is_error: bool,
}

/// Loads components, knows their tools, runs their calls.
#[derive(Debug)]
pub struct LifecycleManager {
    config: Config,
    cache: Option<Arc<Cache>>,
    sandbox: Arc<Sandbox>,
    /// Replaced as a whole; nobody waits for a call to change it, and no call waits for a change.
    registry: RwLock<Arc<Registry>>,
    /// Held while a component is added or removed, so that two changes do not lose each other.
    changing: Mutex<()>,
}

impl LifecycleManager {
    pub fn new(config: Config) -> std::io::Result<Self> {
        let cache = config.home.as_deref().and_then(|home| match Cache::open(home) {
            Ok(cache) => Some(Arc::new(cache)),
            Err(error) => {
                tracing::warn!("{error}");
                None
            }
        });
        Ok(Self {
            sandbox: Arc::new(Sandbox::new(config.limits.clone())?),
            cache,
            config,
            registry: RwLock::default(),
            changing: Mutex::default(),
        })
    }

    fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace_registry(&self, registry: Registry) {
        *self.registry.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(registry);
    }

    /// Loads the component in a file and offers its tools. Loading what is loaded already changes nothing.
    ///
    /// Where the metadata is kept from an earlier run, nothing is parsed or run. Else a program is compiled and asked for its help, and
    /// of a component with functions only the types are read.
    pub fn ensure_component_loaded(&self, path: &Path) -> Result<ComponentId, LoadError> {
        let bytes = files::read_component(path)?;
        let (metadata, _) = self.metadata(path, &bytes)?;
        check(path, &metadata.interface)?;
        let id = self.populate_registry_from_metadata(path, metadata);
        if self.registry().tools().any(|tool| *tool.component() == id) {
            return Ok(id);
        }
        self.unload(&id);
        Err(LoadError::NoCommands {
            path: path.to_owned(),
            reason: "all its commands are hidden, deprecated, or not among those that were chosen",
        })
    }

    /// Looks at a component without loading it: also at one that could not be served.
    pub fn inspect(&self, path: &Path) -> Result<Inspection, LoadError> {
        let bytes = files::read_component(path)?;
        let (metadata, warnings) = self.metadata(path, &bytes)?;
        let id = ComponentId::from_file(path);
        let offer = self.offer(&id);
        let loaded = Arc::new(Loaded::new(id, path.to_owned(), metadata.clone()));
        Ok(Inspection {
            path: path.to_owned(),
            digest: metadata.digest,
            size: metadata.size,
            interface: metadata.interface,
            tools: Registry::default().named(&loaded, &offer, self.config.max_name),
            warnings,
        })
    }

    /// What is known of the commands of a program, in the form of a description file.
    pub fn describe(&self, path: &Path) -> Result<Description, LoadError> {
        let bytes = files::read_component(path)?;
        match self.metadata(path, &bytes)?.0.interface {
            Interface::Program(program) => Ok(Description {
                complete: true,
                command: program.command,
            }),
            Interface::Functions { .. } => Err(LoadError::NoProgram { path: path.to_owned() }),
        }
    }

    fn metadata(&self, path: &Path, bytes: &[u8]) -> Result<(Metadata, Vec<String>), LoadError> {
        let digest = Digest::of(bytes);
        let wit = SideWit::candidates(path, self.config.wit.as_deref());
        let descriptions = commands::side_files(path);
        let beside = Digest::of(&[SideWit::fingerprint(&wit), commands::fingerprint(path, &descriptions)].concat());
        if let Some(metadata) = self.cache.as_ref().and_then(|cache| cache.metadata(&digest, &beside)) {
            return Ok((metadata, vec![]));
        }
        let mut warnings = Vec::new();
        let interface = match Contents::read(bytes, path, &wit, &mut warnings)? {
            Contents::Functions(exports) => Interface::functions(exports),
            Contents::Program { exports, is_module } => {
                let mut program = ProgramMetadata::new(exports, is_module);
                let executable = || -> Result<Arc<Executable>, CodeError> {
                    // It would be compiled for nothing.
                    let unknown = program.unknown_imports();
                    if !unknown.is_empty() {
                        return Err(CodeError::Link(unknown.join(", ")));
                    }
                    let kind = program.code_kind();
                    let compiled = compiled(&self.sandbox, self.cache.as_deref(), &digest, kind, || Ok(bytes.into()))?;
                    Ok(Arc::new(self.sandbox.link_executable(&compiled, kind, &program.exports)?))
                };
                let given = commands::description(&descriptions, bytes, &mut warnings);
                let found = commands::find(path, given.as_ref(), &self.sandbox, executable, &mut warnings);
                program.set(found);
                Interface::Program(Box::new(program))
            }
        };
        let metadata = Metadata::new(digest, bytes.len() as u64, interface);
        for warning in &warnings {
            tracing::warn!("{}: {warning}", path.display());
        }
        // A warning that is not repeated would be missed, so what had one is read again next time.
        if let (Some(cache), true) = (&self.cache, warnings.is_empty())
            && let Err(error) = cache.keep_metadata(&metadata, &beside)
        {
            tracing::warn!(%error, "metadata is not kept for the next start");
        }
        Ok((metadata, warnings))
    }

    /// How the commands of a program are offered: as the command line says, and as the config file says for this one.
    fn offer(&self, id: &ComponentId) -> Offer {
        let offer = self.config.offer.clone();
        match self.config.components.get(id) {
            Some(config) => config.extend(offer),
            None => offer,
        }
    }

    /// Offers the tools that metadata describes, unless that file with these bytes is loaded already. No code is needed for that.
    pub fn populate_registry_from_metadata(&self, path: &Path, metadata: Metadata) -> ComponentId {
        // One file may be named in several ways.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let registry = self.registry();
        let same = |loaded: &&Arc<Loaded>| loaded.path == path && loaded.metadata.digest == metadata.digest;
        if let Some(loaded) = registry.components().iter().find(same) {
            return loaded.id.clone();
        }
        let wanted = ComponentId::from_file(&path);
        let is_free = |id: &ComponentId| registry.components().iter().all(|loaded| loaded.id != *id);
        let mut candidates = std::iter::once(wanted.clone()).chain((2..).map(|number| wanted.numbered(number)));
        let id = candidates.find(is_free).unwrap_or_else(|| wanted.clone());
        let loaded = Loaded::new(id.clone(), path, metadata);
        self.replace_registry(registry.with(Arc::new(loaded), &self.offer(&id), self.config.max_name));
        id
    }

    /// Takes a component and its tools away. Running calls finish. `false` when there is none of that id.
    pub fn unload(&self, id: &ComponentId) -> bool {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let registry = self.registry();
        let known = registry.components().iter().any(|loaded| loaded.id == *id);
        if known {
            self.replace_registry(registry.without(id));
        }
        known
    }

    /// What is loaded, by id.
    pub fn list_components(&self) -> Vec<ComponentSummary> {
        let registry = self.registry();
        let mut components: Vec<_> = registry
            .components()
            .iter()
            .map(|loaded| ComponentSummary {
                id: loaded.id.clone(),
                path: loaded.path.clone(),
                digest: loaded.metadata.digest.clone(),
                size: loaded.metadata.size,
                tools: registry
                    .tools()
                    .filter(|tool| *tool.component() == loaded.id)
                    .map(|tool| tool.definition.name.to_string())
                    .collect(),
            })
            .collect();
        components.sort_by(|a, b| a.id.cmp(&b.id));
        components
    }

    /// The tools of one component as `{"tools": [ … ]}`.
    pub fn get_component_schema(&self, id: &ComponentId) -> Option<Value> {
        let registry = self.registry();
        registry.components().iter().find(|loaded| loaded.id == *id)?;
        let tools: Vec<_> = registry
            .tools()
            .filter(|tool| tool.component() == id)
            .map(|tool| json!(tool.definition))
            .collect();
        Some(json!({ "tools": tools }))
    }

    /// What the components say about themselves, each after its id, for clients that pass it on to the model.
    pub fn instructions(&self) -> Option<String> {
        let registry = self.registry();
        let about = |loaded: &Arc<Loaded>| Some(format!("{}: {}", loaded.id, loaded.metadata.interface.about()?));
        let texts: Vec<String> = registry
            .components()
            .iter()
            .filter_map(about)
            .take(MAX_INSTRUCTIONS)
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// All tools, by name.
    pub fn tools(&self) -> Vec<Arc<Tool>> {
        self.registry().tools().cloned().collect()
    }

    pub fn tool(&self, name: &str) -> Result<Arc<Tool>, ExecuteError> {
        let registry = self.registry();
        registry.tool(name).cloned().ok_or_else(|| ExecuteError::UnknownTool {
            name: component2json::clean_text(name).unwrap_or_default(),
            nearest: registry.nearest(name),
        })
    }

    /// Calls a tool. Dropping the future stops the guest.
    pub async fn execute_component_call(&self, tool: &Tool, arguments: &Value) -> Result<CallOutcome, ExecuteError> {
        match tool.plan().ok_or(ExecuteError::Stopped)? {
            Plan::Function(function) => self.call_function(tool, function, arguments).await,
            Plan::Command(target) => self.run_command(tool, target, arguments).await,
        }
    }

    async fn call_function(&self, tool: &Tool, function: &Function, arguments: &Value) -> Result<CallOutcome, ExecuteError> {
        let arguments = json_to_arguments(function, arguments).map_err(ExecuteError::Arguments)?;
        let (Code::Functions(program), Action::Function(index)) = (self.code(&tool.component).await?, &tool.action) else {
            return Err(ExecuteError::Stopped);
        };
        let returned = self.sandbox.call(&program, *index, arguments, &self.config.grants).await?;
        let max_output = self.sandbox.limits().max_output;
        let limit = usize::try_from(max_output.bytes()).unwrap_or(usize::MAX);
        let value = match returned {
            Some(returned) => returned_to_json(function, &returned, limit).map_err(|error| match error {
                ResultError::TooLarge { .. } => CallError::Output(max_output).into(),
                other => ExecuteError::Result(other),
            })?,
            None => None,
        };
        let returns_result = function
            .result
            .as_ref()
            .is_some_and(|ty| matches!(ty.kind, component2json::Kind::Result { .. }));
        let is_error = returns_result && value.as_ref().is_some_and(|value| value.get("err").is_some());
        let structured = value.and_then(|value| in_envelope(tool, value));
        Ok(CallOutcome {
            structured,
            text: None,
            is_error,
        })
    }

    async fn run_command(&self, tool: &Tool, target: &Target, arguments: &Value) -> Result<CallOutcome, ExecuteError> {
        let (plan, CommandLine { argv, stdin }) = target.command_line(arguments).map_err(ExecuteError::Arguments)?;
        let Code::Program(executable) = self.code(&tool.component).await? else {
            return Err(ExecuteError::Stopped);
        };
        let grants = &self.config.grants;
        let start = Start {
            argv: argv.clone(),
            env: vec![],
            stdin,
        };
        let exited = self.sandbox.run(&executable, start, grants).await?;
        let captured = Captured {
            stdout: &exited.stdout.bytes,
            stderr: &exited.stderr.bytes,
            stdout_dropped: exited.stdout.dropped,
            stderr_dropped: exited.stderr.dropped,
            exit_code: exited.exit_code,
            hint: missing_grant(plan, &argv, &exited, grants),
        };
        let value = output_to_json(&captured, plan.output.as_ref(), plan.output_checker.as_ref());
        Ok(CallOutcome {
            structured: in_envelope(tool, value),
            text: Some(output_text(&captured)),
            is_error: exited.exit_code != 0,
        })
    }

    /// Compiles what has not been compiled yet, so that first calls do not wait for it. Stops when the future is dropped.
    pub async fn warm_up(&self) {
        for loaded in self.registry().components() {
            if let Err(error) = self.code(loaded).await {
                tracing::warn!(component = %loaded.id, "{error}");
            }
        }
    }

    /// The code of a component: linked already, or mapped from the cache, or compiled. Concurrent calls wait for one of them, and a
    /// call that is cancelled meanwhile leaves it running for the next.
    async fn code(&self, loaded: &Arc<Loaded>) -> Result<Code, ExecuteError> {
        if let Some(code) = loaded.code.get() {
            return Ok(code.clone()?);
        }
        let (sandbox, cache, loaded) = (Arc::clone(&self.sandbox), self.cache.clone(), Arc::clone(loaded));
        let loading = tokio::spawn(async move {
            let make = async || {
                let (sandbox, component) = (Arc::clone(&sandbox), Arc::clone(&loaded));
                let made = tokio::task::spawn_blocking(move || load_code(&sandbox, cache.as_deref(), &component)).await;
                match made.map_err(|_| ExecuteError::Stopped)? {
                    Ok(code) => Ok(Ok(code)),
                    Err(ExecuteError::Code(error)) => Ok(Err(error)),
                    Err(passing) => Err(passing),
                }
            };
            Ok(loaded.code.get_or_try_init(make).await?.clone()?)
        });
        loading.await.map_err(|_| ExecuteError::Stopped)?
    }
}

impl Loaded {
    fn new(id: ComponentId, path: PathBuf, metadata: Metadata) -> Self {
        Self {
            id,
            path,
            metadata,
            code: OnceCell::new(),
        }
    }
}

fn in_envelope(tool: &Tool, value: Value) -> Option<Value> {
    let schema = tool.definition.output_schema.as_ref();
    structured_output::ensure_structured_result(schema, json!({ "result": value }))
}

/// Refuses what could never be called.
fn check(path: &Path, interface: &Interface) -> Result<(), LoadError> {
    let unknown = interface.unknown_imports();
    if !unknown.is_empty() {
        return Err(LoadError::UnknownImports {
            path: path.to_owned(),
            imports: unknown.into_iter().map(str::to_owned).collect(),
        });
    }
    let exports = match interface {
        Interface::Functions { exports, .. } if exports.functions.is_empty() => exports,
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

fn load_code(sandbox: &Sandbox, cache: Option<&Cache>, loaded: &Loaded) -> Result<Code, ExecuteError> {
    let Metadata { digest, interface, .. } = &loaded.metadata;
    let read_again = || {
        let bytes = files::read_component(&loaded.path).map_err(|error| ExecuteError::Reread {
            path: loaded.path.clone(),
            error: Box::new(error),
        })?;
        // The tools that were promised belong to the bytes that were read then.
        if Digest::of(&bytes) != *digest {
            return Err(ExecuteError::Changed {
                path: loaded.path.clone(),
            });
        }
        Ok(Cow::Owned(bytes))
    };
    match interface {
        Interface::Functions { exports, .. } => {
            let kind = CodeKind::Component {
                concurrency: exports.needs_concurrency,
            };
            let compiled = compiled(sandbox, cache, digest, kind, read_again)?;
            Ok(Code::Functions(Arc::new(sandbox.link(&compiled, exports)?)))
        }
        Interface::Program(program) => {
            let kind = program.code_kind();
            let compiled = compiled(sandbox, cache, digest, kind, read_again)?;
            Ok(Code::Program(Arc::new(sandbox.link_executable(
                &compiled,
                kind,
                &program.exports,
            )?)))
        }
    }
}

/// Code from the cache, or compiled now and kept.
fn compiled<'a, E: From<CodeError>>(
    sandbox: &Sandbox,
    cache: Option<&Cache>,
    digest: &Digest,
    kind: CodeKind,
    bytes: impl FnOnce() -> Result<Cow<'a, [u8]>, E>,
) -> Result<Compiled, E> {
    let key = sandbox.code_key(kind)?;
    if let Some(file) = cache.and_then(|cache| cache.code(digest, &key)) {
        match sandbox.map(&file, kind) {
            Ok(compiled) => return Ok(compiled),
            // Whatever is wrong with kept code, new code is right.
            Err(error @ CodeError::Map(_)) => tracing::info!("{error}; compiling again"),
            Err(error) => return Err(error.into()),
        }
    }
    tracing::info!(%digest, "compiling");
    let compiled = sandbox.compile(&bytes()?, kind)?;
    if let Some(cache) = cache {
        match cache.keep_code(digest, &key, &compiled.code()?) {
            // The mapped file is shared with other processes and costs no memory of our own.
            Ok(file) => return Ok(sandbox.map(&file, kind)?),
            Err(error) => tracing::warn!(%error, "compiled code is not kept for the next start"),
        }
    }
    Ok(compiled)
}

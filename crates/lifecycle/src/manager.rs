//! The manager: files in, tools out, calls through.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use component2json::{DEFAULT_MAX_TOOL_NAME, ResultError, json_to_arguments, returned_to_json};
use policy::Limits;
use sandbox::{CallError, CodeError, Program, Sandbox, unknown_imports};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::cache::Cache;
use crate::docs::SideWit;
use crate::error::{ExecuteError, LoadError};
use crate::files;
use crate::id::ComponentId;
use crate::metadata::{self, Digest, Metadata};
use crate::registry::{Registry, Tool};

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
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            home: crate::cache::default_home(),
            max_name: DEFAULT_MAX_TOOL_NAME,
            wit: None,
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
    program: OnceCell<Result<Arc<Program>, CodeError>>,
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
    /// The function returned the `err` of a `result`.
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
    /// Nothing is compiled here, and where the metadata is kept from an earlier run, nothing is parsed.
    pub fn ensure_component_loaded(&self, path: &Path) -> Result<ComponentId, LoadError> {
        let bytes = files::read_component(path)?;
        let metadata = self.metadata(path, &bytes, Digest::of(&bytes))?;
        check(path, &metadata)?;
        Ok(self.populate_registry_from_metadata(path, metadata))
    }

    fn metadata(&self, path: &Path, bytes: &[u8], digest: Digest) -> Result<Metadata, LoadError> {
        let wit = SideWit::candidates(path, self.config.wit.as_deref());
        let docs = SideWit::fingerprint(&wit);
        if let Some(metadata) = self.cache.as_ref().and_then(|cache| cache.metadata(&digest, &docs)) {
            return Ok(metadata);
        }
        let (metadata, warnings) = metadata::read(bytes, digest, path, &wit)?;
        for warning in &warnings {
            tracing::warn!("{}: {warning}", path.display());
        }
        // A warning that is not repeated would be missed, so what had one is read again next time.
        if let (Some(cache), true) = (&self.cache, warnings.is_empty())
            && let Err(error) = cache.keep_metadata(&metadata, &docs)
        {
            tracing::warn!(%error, "metadata is not kept for the next start");
        }
        Ok(metadata)
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
        let loaded = Loaded {
            id: id.clone(),
            path,
            metadata,
            program: OnceCell::new(),
        };
        self.replace_registry(registry.with(Arc::new(loaded), self.config.max_name));
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
        let about = |loaded: &Arc<Loaded>| {
            let world = loaded
                .metadata
                .exports
                .scopes
                .iter()
                .find(|scope| scope.interface.is_none())?;
            Some(format!("{}: {}", loaded.id, world.docs))
        };
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
        let plan = tool.plan().ok_or(ExecuteError::Stopped)?;
        let arguments = json_to_arguments(plan, arguments).map_err(ExecuteError::Arguments)?;
        let program = self.program(&tool.component).await?;
        let returned = self.sandbox.call(&program, tool.function, arguments).await?;
        let max_output = self.sandbox.limits().max_output;
        let limit = usize::try_from(max_output.bytes()).unwrap_or(usize::MAX);
        let value = match returned {
            Some(returned) => returned_to_json(plan, &returned, limit).map_err(|error| match error {
                ResultError::TooLarge { .. } => CallError::Output(max_output).into(),
                other => ExecuteError::Result(other),
            })?,
            None => None,
        };
        let returns_result = plan
            .result
            .as_ref()
            .is_some_and(|ty| matches!(ty.kind, component2json::Kind::Result { .. }));
        let is_error = returns_result && value.as_ref().is_some_and(|value| value.get("err").is_some());
        let schema = tool.definition.output_schema.as_ref();
        let structured = value.and_then(|value| structured_output::ensure_structured_result(schema, json!({ "result": value })));
        Ok(CallOutcome { structured, is_error })
    }

    /// Compiles what has not been compiled yet, so that first calls do not wait for it. Stops when the future is dropped.
    pub async fn warm_up(&self) {
        for loaded in self.registry().components() {
            if let Err(error) = self.program(loaded).await {
                tracing::warn!(component = %loaded.id, "{error}");
            }
        }
    }

    /// The code of a component: linked already, or mapped from the cache, or compiled. Concurrent calls wait for one of them, and a
    /// call that is cancelled meanwhile leaves it running for the next.
    async fn program(&self, loaded: &Arc<Loaded>) -> Result<Arc<Program>, ExecuteError> {
        if let Some(program) = loaded.program.get() {
            return Ok(program.clone()?);
        }
        let (sandbox, cache, loaded) = (Arc::clone(&self.sandbox), self.cache.clone(), Arc::clone(loaded));
        let loading = tokio::spawn(async move {
            let make = async || {
                let (sandbox, component) = (Arc::clone(&sandbox), Arc::clone(&loaded));
                let made = tokio::task::spawn_blocking(move || load_program(&sandbox, cache.as_deref(), &component)).await;
                match made.map_err(|_| ExecuteError::Stopped)? {
                    Ok(program) => Ok(Ok(program)),
                    Err(ExecuteError::Code(error)) => Ok(Err(error)),
                    Err(passing) => Err(passing),
                }
            };
            Ok(loaded.program.get_or_try_init(make).await?.clone()?)
        });
        loading.await.map_err(|_| ExecuteError::Stopped)?
    }
}

/// Refuses what could never be called.
fn check(path: &Path, metadata: &Metadata) -> Result<(), LoadError> {
    let exports = &metadata.exports;
    let unknown = unknown_imports(&exports.imports);
    if !unknown.is_empty() {
        return Err(LoadError::UnknownImports {
            path: path.to_owned(),
            imports: unknown.into_iter().map(str::to_owned).collect(),
        });
    }
    if !exports.functions.is_empty() {
        return Ok(());
    }
    if exports
        .left_out
        .iter()
        .any(|left_out| left_out.export.starts_with("wasi:cli/run@"))
    {
        return Err(LoadError::CommandComponent { path: path.to_owned() });
    }
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

fn load_program(sandbox: &Sandbox, cache: Option<&Cache>, loaded: &Loaded) -> Result<Arc<Program>, ExecuteError> {
    let Metadata { digest, exports, .. } = &loaded.metadata;
    let key = sandbox.code_key(exports)?;
    if let Some(file) = cache.and_then(|cache| cache.code(digest, &key)) {
        match sandbox.map(&file, exports) {
            Ok(program) => return Ok(Arc::new(program)),
            // Whatever is wrong with kept code, new code is right.
            Err(error @ CodeError::Map(_)) => tracing::info!(component = %loaded.id, "{error}; compiling again"),
            Err(error) => return Err(error.into()),
        }
    }
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
    tracing::info!(component = %loaded.id, "compiling");
    let compiled = sandbox.compile(&bytes, exports)?;
    if let Some(cache) = cache {
        match cache.keep_code(digest, &key, &compiled.code()?) {
            // The mapped file is shared with other processes and costs no memory of our own.
            Ok(file) => return Ok(Arc::new(sandbox.map(&file, exports)?)),
            Err(error) => tracing::warn!(%error, "compiled code is not kept for the next start"),
        }
    }
    Ok(Arc::new(sandbox.link_compiled(&compiled, exports)?))
}

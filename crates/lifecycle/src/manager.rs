//! The manager: knows the tools that are offered, and runs their calls.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use command2json::{Captured, CommandLine, Offer, Target, output_text, output_to_json};
use component2json::{DEFAULT_MAX_TOOL_NAME, Function, ResultError, json_to_arguments, returned_to_json};
use policy::{Grants, Limits};
use sandbox::{CallError, Sandbox, Start};
use serde_json::{Value, json};
use sources::{Client, ClientOptions, FetchError};
use tokio::sync::watch;

use crate::config::{ConfigError, ConfigFile};
use crate::error::ExecuteError;
use crate::files::default_home;
use crate::hints::missing_grant;
use crate::id::ComponentId;
use crate::loaded::{Code, Compiler, Loaded};
use crate::progress::Progress;
use crate::registry::{Action, Plan, Registry, Tool};
use crate::served::Served;
use crate::store::{Store, StoreError};

/// More components than this do not introduce themselves: a model reads all of it, every time.
const MAX_INSTRUCTIONS: usize = 10;

/// How components are loaded and run.
#[derive(Clone, Debug)]
pub struct Config {
    pub limits: Limits,
    /// Where the store is; nothing is kept without it.
    pub home: Option<PathBuf>,
    /// The config file, in place of the one in the home directory.
    pub config_file: Option<PathBuf>,
    /// The longest tool name.
    pub max_name: usize,
    /// WIT with docs for the components, in place of what lies beside them.
    pub wit: Option<PathBuf>,
    /// What all guests may use.
    pub grants: Arc<Grants>,
    /// How the commands of programs are offered.
    pub offer: Offer,
    /// How sources are reached.
    pub network: ClientOptions,
    /// Who is told of what takes long.
    pub progress: Progress,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            home: default_home(),
            config_file: None,
            max_name: DEFAULT_MAX_TOOL_NAME,
            wit: None,
            grants: Arc::default(),
            offer: Offer::default(),
            network: ClientOptions::default(),
            progress: Progress::default(),
        }
    }
}

/// Why there is no manager.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the host could not start: {0}")]
    Sandbox(#[from] std::io::Error),
    #[error(transparent)]
    Config(#[from] ConfigError),
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
    pub(crate) config: Config,
    pub(crate) compiler: Compiler,
    /// Replaced as a whole; nobody waits for a call to change it, and no call waits for a change.
    registry: RwLock<Arc<Registry>>,
    /// What the registry is made from. Held while that changes, so that two changes do not lose each other.
    served: Mutex<Served>,
    /// What the config file says now. Apart from the above, which may be held for as long as files are read.
    file: RwLock<Arc<ConfigFile>>,
    /// Held while an agent loads something: each takes memory, and what is compiled takes all cores.
    pub(crate) loading: tokio::sync::Mutex<()>,
    /// Counts what clients have to be told.
    changes: watch::Sender<u64>,
    /// Made when something is fetched for the first time.
    client: OnceLock<Client>,
}

impl LifecycleManager {
    /// A manager that offers nothing yet. Where the store cannot be used, nothing is kept.
    pub fn new(config: Config) -> Result<Self, StartError> {
        let store = config.home.as_deref().and_then(|home| match Store::open(home) {
            Ok(store) => Some(Arc::new(store)),
            Err(error) => {
                tracing::warn!("{error}");
                None
            }
        });
        let file = ConfigFile::load(config.config_file.as_deref(), config.home.as_deref())?;
        Ok(Self {
            compiler: Compiler {
                sandbox: Arc::new(Sandbox::new(config.limits.clone())?),
                store,
                progress: config.progress.clone(),
            },
            config,
            registry: RwLock::default(),
            served: Mutex::default(),
            file: RwLock::new(Arc::new(file)),
            loading: tokio::sync::Mutex::default(),
            changes: watch::Sender::new(0),
            client: OnceLock::new(),
        })
    }

    /// The store, or why there is none.
    pub fn store(&self) -> Result<Arc<Store>, StoreError> {
        match (&self.compiler.store, self.config.home.as_deref()) {
            (Some(store), _) => Ok(Arc::clone(store)),
            (None, Some(home)) => Store::open(home).map(Arc::new),
            (None, None) => Err(StoreError::NoHome),
        }
    }

    pub(crate) fn client(&self) -> Result<&Client, FetchError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = Client::new(self.config.network.clone())?;
        Ok(self.client.get_or_init(|| client))
    }

    pub(crate) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn served(&self) -> MutexGuard<'_, Served> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn file(&self) -> Arc<ConfigFile> {
        Arc::clone(&self.file.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace_file(&self, file: ConfigFile) {
        *self.file.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(file);
    }

    /// How the commands of a program are offered: as the command line says, and as the config file says for this one.
    pub(crate) fn offer(&self, id: &ComponentId) -> Offer {
        let offer = self.config.offer.clone();
        match self.file().components.get(id) {
            Some(config) => config.extend(offer),
            None => offer,
        }
    }

    /// Changes what is served, and offers that. Clients are told once, and only of what they can see.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Served) -> T) -> T {
        let mut served = self.served();
        let done = change(&mut served);
        let registry = served.registry(self);
        let is_new = !registry.looks_like(&self.registry());
        *self.registry.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(registry);
        // Only now nobody begins a call of what was there before.
        served.hold();
        if is_new {
            self.changes.send_modify(|count| *count += 1);
        }
        done
    }

    /// Grows by one whenever something else is offered than before.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
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
            let about = loaded.revision.metadata.interface.about()?;
            Some(format!("{}: {about}", loaded.id))
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
        match tool.plan().ok_or(ExecuteError::Stopped)? {
            Plan::Function(function) => self.call_function(tool, function, arguments).await,
            Plan::Command(target) => self.run_command(tool, target, arguments).await,
        }
    }

    async fn call_function(&self, tool: &Tool, function: &Function, arguments: &Value) -> Result<CallOutcome, ExecuteError> {
        let arguments = json_to_arguments(function, arguments).map_err(ExecuteError::Arguments)?;
        let (Code::Functions(program), Action::Function(index)) =
            (tool.component.revision.code(&self.compiler).await?, &tool.action)
        else {
            return Err(ExecuteError::Stopped);
        };
        let returned = self
            .compiler
            .sandbox
            .call(&program, *index, arguments, &tool.component.grants)
            .await?;
        let max_output = self.compiler.sandbox.limits().max_output;
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
        let Code::Program(executable) = tool.component.revision.code(&self.compiler).await? else {
            return Err(ExecuteError::Stopped);
        };
        let grants = &tool.component.grants;
        let start = Start {
            argv: argv.clone(),
            env: vec![],
            stdin,
        };
        let exited = self.compiler.sandbox.run(&executable, start, grants).await?;
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

    /// Compiles what has not been compiled yet, so that first calls do not wait for it; again after each change. Ends only when the
    /// future is dropped.
    pub async fn compile_ahead(&self) {
        let mut changes = self.changes();
        loop {
            changes.mark_unchanged();
            for loaded in self.registry().components() {
                if let Err(error) = loaded.revision.compile_ahead(&self.compiler).await {
                    tracing::warn!(component = %loaded.id, "{error}");
                }
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}

fn in_envelope(tool: &Tool, value: Value) -> Option<Value> {
    let schema = tool.definition.output_schema.as_ref();
    structured_output::ensure_structured_result(schema, json!({ "result": value }))
}

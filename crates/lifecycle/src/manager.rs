//! The manager: knows the tools that are offered, and runs their calls.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use command2json::{Captured, Checker, CommandLine, Offer, Target, output_text, output_to_json};
use component2json::Val;
use component2json::{DEFAULT_MAX_TOOL_NAME, Function, ResultError, Returned, json_to_arguments, returned_to_json};
use policy::{Grants, LimitSettings, Limits, Secrets};
use sandbox::{CallError, Change, Denied, Finished, Network, Sandbox, Sharing, Start};
use serde_json::{Value, json};
use sources::{Client, ClientOptions, FetchError};
use tokio::sync::{broadcast, watch};

use crate::audit::{self, Audit, AuditConfig, AuditError, Caller, Line, Outcome};
use crate::compile::CompileWorker;
use crate::config::{ConfigError, ConfigFile};
use crate::confine::remedy;
use crate::content::{Block, Content};
use crate::error::ExecuteError;
use crate::files::default_home;
use crate::hints::{missing_grant, missing_grant_of_function};
use crate::id::ComponentId;
use crate::loaded::{Code, Compiler, Loaded, Origin};
use crate::progress::Progress;
use crate::registry::{Action, Plan, Registry, Terms, Tool};
use crate::served::Served;
use crate::store::{Store, StoreError};

/// Resources that changed and of which a client was not told yet. More than this, and it is told of all that it subscribed to.
const WAITING_UPDATES: usize = 256;

/// More components than this do not introduce themselves: a model reads all of it, every time.
const MAX_INSTRUCTIONS: usize = 10;

/// How components are loaded and run.
#[derive(Clone, Debug)]
pub struct Config {
    /// What the command line says; it comes before what files say.
    pub limits: LimitSettings,
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
    /// Who compiles, if not this process itself.
    pub compile_worker: Option<CompileWorker>,
    /// Where calls are recorded.
    pub audit: Option<AuditConfig>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: LimitSettings::default(),
            home: default_home(),
            config_file: None,
            max_name: DEFAULT_MAX_TOOL_NAME,
            wit: None,
            grants: Arc::default(),
            offer: Offer::default(),
            network: ClientOptions::default(),
            progress: Progress::default(),
            compile_worker: None,
            audit: None,
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
    #[error(transparent)]
    Audit(#[from] AuditError),
}

/// Why no call would be answered.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    #[error("the audit cannot be written")]
    Audit,
    #[error("as many calls are running and waiting as may")]
    Full,
    #[error("no component is served")]
    NothingServed,
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
    /// What the guest asked for and did not get, and what would allow it.
    pub notes: Vec<String>,
    /// What the guest itself wants the client to see, in place of the structure.
    pub blocks: Option<Vec<Block>>,
}

/// Counts what clients have to be told. Each number grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    pub tools: u64,
    pub prompts: u64,
    pub resources: u64,
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
    /// Counts what is offered otherwise than before.
    changes: watch::Sender<u64>,
    news: watch::Sender<News>,
    /// The URIs of resources that are not as they were.
    updates: broadcast::Sender<Arc<str>>,
    /// Made when something is fetched for the first time.
    client: OnceLock<Client>,
    /// How guests that may reach the network.
    pub(crate) network: Arc<Network>,
    audit: Option<Audit>,
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
        let limits = config.limits.over(&file.defaults.limits.over(&Limits::default()));
        let network = config.network.clone();
        Ok(Self {
            compiler: Compiler {
                sandbox: Arc::new(Sandbox::new(limits)?),
                store,
                progress: config.progress.clone(),
                worker: config.compile_worker.clone(),
                slots: Arc::default(),
            },
            network: Arc::new(Network::new(move || {
                sources::tls(&network).map_err(|error| error.to_string())
            })),
            audit: config.audit.clone().map(Audit::open).transpose()?,
            config,
            registry: RwLock::default(),
            served: Mutex::default(),
            file: RwLock::new(Arc::new(file)),
            loading: tokio::sync::Mutex::default(),
            changes: watch::Sender::new(0),
            news: watch::Sender::default(),
            updates: broadcast::Sender::new(WAITING_UPDATES),
            client: OnceLock::new(),
        })
    }

    /// Gets ready for calls while components are still being looked up.
    pub fn warm_up(&self) {
        self.compiler.sandbox.warm_up();
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

    /// On what terms the tools of a component are offered.
    pub(crate) fn terms(&self, id: &ComponentId) -> Terms {
        let overrides = self.file().components.get(id).map(|config| config.tool.clone());
        Terms {
            offer: self.offer(id),
            overrides: overrides.unwrap_or_default(),
        }
    }

    /// Changes what is served, and offers that. Clients are told once, and only of what they can see.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Served) -> T) -> T {
        let mut served = self.served();
        let done = change(&mut served);
        let registry = served.registry(self);
        let before = self.registry();
        let is_new = !registry.looks_like(&before);
        let has_prompts = registry.may_have_prompts() || before.may_have_prompts();
        // What was served before is needed no more, unless a call has it.
        drop(before);
        *self.registry.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(registry);
        // Only now nobody begins a call of what was there before.
        served.hold();
        if is_new {
            self.changes.send_modify(|count| *count += 1);
            self.news.send_modify(|news| {
                news.tools += 1;
                news.prompts += u64::from(has_prompts);
                news.resources += 1;
            });
        }
        done
    }

    /// What clients have to be told.
    pub fn news(&self) -> watch::Receiver<News> {
        self.news.subscribe()
    }

    /// The URIs of resources that change from now on.
    pub fn updates(&self) -> broadcast::Receiver<Arc<str>> {
        self.updates.subscribe()
    }

    /// Tells clients what a component said about itself.
    pub fn announce(&self, change: &Change) {
        match change {
            Change::Tools => self.news.send_modify(|news| news.tools += 1),
            Change::Prompts => self.news.send_modify(|news| news.prompts += 1),
            Change::Resources => self.news.send_modify(|news| news.resources += 1),
            // Nobody may be listening.
            Change::Resource(uri) => _ = self.updates.send(uri.as_str().into()),
        }
    }

    /// Whether there is a line for each call somewhere.
    pub fn is_audited(&self) -> bool {
        self.audit.is_some()
    }

    /// Whether calls would be answered now, or why not.
    pub fn readiness(&self) -> Result<(), NotReady> {
        if let Some(audit) = &self.audit {
            audit.check().map_err(|error| {
                tracing::warn!("{error}");
                NotReady::Audit
            })?;
        }
        if self.compiler.sandbox.is_full() {
            return Err(NotReady::Full);
        }
        match self.registry().components().is_empty() {
            true => Err(NotReady::NothingServed),
            false => Ok(()),
        }
    }

    /// A number that is another one whenever something else is offered than before; not before that is offered.
    pub fn version(&self) -> u64 {
        *self.changes.borrow()
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

    /// Whether nobody can tell, but by a clock, if calls of a tool were made one after the other or so many at a time: they remember nothing,
    /// reach nothing, are in no audit, will be short, and would find places or room to wait for one.
    pub fn is_independent(&self, tool: &Tool, at_a_time: u32) -> bool {
        let walls = &tool.component.confinement;
        let has_room = |limits: &Limits| limits.max_concurrent_calls.get() >= at_a_time && limits.max_waiting_calls >= at_a_time;
        self.audit.is_none()
            && tool.is_silent()
            && tool.is_short()
            && walls.sharing() == Sharing::Fresh
            && walls.grants().is_empty()
            && has_room(walls.limits())
            && has_room(self.compiler.sandbox.limits())
    }

    /// Calls a tool. Dropping the future stops the guest.
    pub async fn execute_component_call(
        &self,
        tool: &Tool,
        arguments: &Value,
        caller: &Caller,
    ) -> Result<CallOutcome, ExecuteError> {
        let Some(audit) = &self.audit else {
            return self.execute(tool, arguments, caller).await.0;
        };
        audit.check()?;
        // Written when this is dropped, too: then the call was cancelled.
        let mut record = Record::new(audit, tool, arguments, caller);
        let (result, denied) = self.execute(tool, arguments, caller).await;
        record.ended(&result, &denied);
        result
    }

    /// Records what an agent did to the host itself. Refused where that cannot be recorded.
    pub async fn recorded<T, E: From<AuditError>>(
        &self,
        tool: &str,
        arguments: &Value,
        caller: &Caller,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let Some(audit) = &self.audit else { return work.await };
        audit.check()?;
        let mut record = Record {
            audit,
            line: Line::new(tool, caller, arguments),
            start: Instant::now(),
        };
        let result = work.await;
        record.line.outcome = if result.is_ok() { Outcome::Ok } else { Outcome::Failed };
        result
    }

    /// Records what a component did for something that it offers besides tools.
    pub(crate) async fn recorded_offer<T>(
        &self,
        loaded: &Loaded,
        function: &str,
        arguments: &Value,
        caller: &Caller,
        call: impl Future<Output = Finished<T>>,
    ) -> Result<Result<T, ExecuteError>, AuditError> {
        let Some(audit) = &self.audit else {
            return Ok(call.await.result.map_err(ExecuteError::from));
        };
        audit.check()?;
        let mut record = Record {
            audit,
            line: Line {
                component: loaded.id.as_str(),
                digest: loaded.revision.metadata.digest.to_string(),
                ..Line::new(function, caller, arguments)
            },
            start: Instant::now(),
        };
        let Finished { result, denied } = call.await;
        let result = result.map_err(ExecuteError::from);
        record.line.outcome = result.as_ref().err().map_or(Outcome::Ok, ExecuteError::outcome);
        record.line.error = result.as_ref().err().and_then(ExecuteError::in_own_words);
        record.line.denied = denied.into_iter().map(|denied| denied.what).collect();
        Ok(result)
    }

    async fn execute(&self, tool: &Tool, arguments: &Value, caller: &Caller) -> (Result<CallOutcome, ExecuteError>, Vec<Denied>) {
        if let Some(schema) = &tool.given.input
            && let (_, Err(problem)) = checked(schema, arguments.clone()).await
        {
            return (Err(ExecuteError::Schema(problem)), Vec::new());
        }
        let client = Arc::clone(&caller.client);
        let finished = match tool.plan() {
            None => return (Err(ExecuteError::Stopped), Vec::new()),
            Some(Plan::Function(function)) => self.call_function(tool, function, arguments, client).await,
            Some(Plan::Command(target)) => self.run_command(tool, target, arguments, client).await,
        };
        let Ended { result, denied, hint } = match finished {
            Ok(ended) => ended,
            Err(error) => return (Err(error), Vec::new()),
        };
        let secrets = tool.component.confinement.secrets();
        // Where it is known what was denied, nothing has to be guessed.
        let hint = hint.filter(|_| denied.is_empty());
        let hint = hint.map(|hint| match &tool.component.origin {
            Origin::Added(entry) => format!(
                "hint: {}; `host grant {}` with one of them allows it for good",
                secrets.redact(&hint),
                entry.id
            ),
            Origin::File(_) => format!("hint: {}", secrets.redact(&hint)),
        });
        let notes: Vec<String> = denied.iter().map(|denied| note(tool, denied)).chain(hint).collect();
        let result = match result {
            Ok(outcome) => fitting(tool, outcome).await,
            Err(error) => Err(error),
        };
        let result = match result {
            Ok(outcome) => Ok(CallOutcome { notes, ..outcome }),
            Err(error) if notes.is_empty() => Err(error),
            Err(error) => Err(ExecuteError::Denied {
                notes: notes.join("\n"),
                error: Box::new(error),
            }),
        };
        (result, denied)
    }

    async fn call_function(
        &self,
        tool: &Tool,
        function: &Function,
        arguments: &Value,
        client: Arc<dyn sandbox::Client>,
    ) -> Result<Ended, ExecuteError> {
        let given = arguments;
        let arguments = json_to_arguments(function, given).map_err(ExecuteError::Arguments)?;
        let (Code::Functions(program), Action::Function(index)) = (
            tool.component
                .revision
                .code(&self.compiler, tool.component.confinement.limits())
                .await?,
            &tool.action,
        ) else {
            return Err(ExecuteError::Stopped);
        };
        let confinement = &tool.component.confinement;
        let Finished { result, denied } = self
            .compiler
            .sandbox
            .call(&program, *index, arguments, confinement, client)
            .await;
        let result = match result {
            Ok(returned) => function_outcome(tool, function, returned),
            Err(error) => Err(error.into()),
        };
        let complaint = match &result {
            Ok(outcome) if outcome.is_error => outcome.structured.as_ref().map(Value::to_string),
            Ok(_) => None,
            Err(error) => Some(ExecuteError::to_string(error)),
        };
        let hint = complaint.and_then(|complaint| missing_grant_of_function(given, &complaint, confinement.grants()));
        Ok(Ended { result, denied, hint })
    }

    async fn run_command(
        &self,
        tool: &Tool,
        target: &Target,
        arguments: &Value,
        client: Arc<dyn sandbox::Client>,
    ) -> Result<Ended, ExecuteError> {
        let (plan, CommandLine { argv, stdin }) = target.command_line(arguments).map_err(ExecuteError::Arguments)?;
        let Code::Program(executable) = tool
            .component
            .revision
            .code(&self.compiler, tool.component.confinement.limits())
            .await?
        else {
            return Err(ExecuteError::Stopped);
        };
        let confinement = &tool.component.confinement;
        let start = Start {
            argv: argv.clone(),
            env: vec![],
            stdin,
        };
        let Finished { result, denied } = self.compiler.sandbox.run(&executable, start, confinement, client).await;
        let result = match result {
            Ok(mut exited) => {
                let secrets = confinement.secrets();
                for stream in [&mut exited.stdout, &mut exited.stderr] {
                    if let Cow::Owned(redacted) = secrets.redact_bytes(&stream.bytes) {
                        stream.bytes = redacted;
                    }
                }
                let captured = Captured {
                    stdout: &exited.stdout.bytes,
                    stderr: &exited.stderr.bytes,
                    stdout_dropped: exited.stdout.dropped,
                    stderr_dropped: exited.stderr.dropped,
                    exit_code: exited.exit_code,
                    hint: missing_grant(plan, &argv, &exited, confinement.grants()),
                };
                let value = output_to_json(&captured, plan.output.as_ref(), plan.output_checker.as_ref());
                Ok(CallOutcome {
                    structured: in_envelope(tool, value),
                    text: Some(output_text(&captured)),
                    is_error: exited.exit_code != 0,
                    notes: vec![],
                    blocks: None,
                })
            }
            Err(error) => Err(error.into()),
        };
        // That of a program is part of its result.
        Ok(Ended {
            result,
            denied,
            hint: None,
        })
    }

    /// Compiles what has not been compiled yet, so that first calls do not wait for it; again after each change. Ends only when the
    /// future is dropped.
    pub async fn compile_ahead(&self) {
        let mut changes = self.changes();
        loop {
            changes.mark_unchanged();
            // Most of it is compiled already, and to see that takes one look for all.
            let (registry, compiler) = (self.registry(), self.compiler.clone());
            let missing = tokio::task::spawn_blocking(move || {
                let components = registry.components().iter();
                let missing = components.filter(|loaded| !loaded.revision.is_compiled(&compiler));
                missing.cloned().collect::<Vec<_>>()
            });
            for loaded in missing.await.unwrap_or_default() {
                let compiled = loaded
                    .revision
                    .compile_ahead(&self.compiler, loaded.confinement.limits())
                    .await;
                match compiled {
                    // At the end nobody needs it any more.
                    Ok(()) | Err(ExecuteError::Stopped) => {}
                    Err(error) => tracing::warn!(component = %loaded.id, "{error}"),
                }
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}

/// A call that came to its guest.
struct Ended {
    result: Result<CallOutcome, ExecuteError>,
    denied: Vec<Denied>,
    /// What may help, where that can only be guessed.
    hint: Option<String>,
}

/// What a guest did not get, and what a person can do about it.
fn note(tool: &Tool, denied: &Denied) -> String {
    let what = component2json::clean_text(&denied.what).unwrap_or_default();
    match &denied.remedy {
        Some(rule) => format!("denied: {what}\nhint: {}", remedy(&tool.component.origin, rule)),
        None => format!("denied: {what}"),
    }
}

fn function_outcome(tool: &Tool, function: &Function, returned: Option<Returned>) -> Result<CallOutcome, ExecuteError> {
    let confinement = &tool.component.confinement;
    let max_output = confinement.limits().max_output;
    let limit = usize::try_from(max_output.bytes()).unwrap_or(usize::MAX);
    let value = match returned {
        Some(returned) => {
            let returned = without_secrets(returned, confinement.secrets());
            returned_to_json(function, &returned, limit).map_err(|error| match error {
                ResultError::TooLarge { .. } => CallError::Output(max_output).into(),
                other => ExecuteError::Result(other),
            })?
        }
        None => None,
    };
    let value = value.map(|mut value| {
        redact(&mut value, confinement.secrets());
        value
    });
    let returns_result = function
        .result
        .as_ref()
        .is_some_and(|ty| matches!(ty.kind, component2json::Kind::Result { .. }));
    let is_error = returns_result && value.as_ref().is_some_and(|value| value.get("err").is_some());
    if function.answers_content {
        return content_outcome(value.unwrap_or_default(), confinement.secrets());
    }
    Ok(CallOutcome {
        structured: value.and_then(|value| in_envelope(tool, value)),
        text: None,
        is_error,
        notes: vec![],
        blocks: None,
    })
}

/// Holds a value against a schema that somebody wrote by hand. That may take long, and others should not wait for it.
async fn checked(schema: &Checker, value: Value) -> (Value, Result<(), String>) {
    let schema = schema.clone();
    let check = tokio::task::spawn_blocking(move || {
        let checked = schema.check(&value);
        (value, checked)
    });
    check
        .await
        .unwrap_or_else(|_| (Value::Null, Err("it could not be checked".to_owned())))
}

/// What a call gave, if it fits the schema that was given for it by hand.
async fn fitting(tool: &Tool, mut outcome: CallOutcome) -> Result<CallOutcome, ExecuteError> {
    if let Some(schema) = &tool.given.output
        && !outcome.is_error
    {
        let missing = || ExecuteError::OutputSchema("there is no structured result".to_owned());
        let structured = outcome.structured.take().ok_or_else(missing)?;
        let (structured, checked) = checked(schema, structured).await;
        checked.map_err(ExecuteError::OutputSchema)?;
        outcome.structured = Some(structured);
    }
    Ok(outcome)
}

/// The answer of a function that gives content for a client, or says why there is none.
fn content_outcome(value: Value, secrets: &Secrets) -> Result<CallOutcome, ExecuteError> {
    let value = match value {
        Value::Object(mut result) if result.contains_key("ok") => result.shift_remove("ok").unwrap_or_default(),
        Value::Object(result) if result.contains_key("err") => {
            let text = match result.get("err") {
                Some(Value::String(text)) => text.clone(),
                other => other.map(Value::to_string).unwrap_or_default(),
            };
            return Ok(CallOutcome {
                structured: None,
                text: Some(text),
                is_error: true,
                notes: vec![],
                blocks: None,
            });
        }
        value => value,
    };
    let content: Content = serde_json::from_value(value).map_err(|error| ExecuteError::Offer(error.to_string()))?;
    let structured = match &content.structured {
        None => None,
        Some(text) => match serde_json::from_str(text) {
            Ok(mut structured @ Value::Object(_)) => {
                // In its text a secret could be written in another way.
                redact(&mut structured, secrets);
                Some(structured)
            }
            Ok(_) => return Err(ExecuteError::Offer("`structured` is no JSON object".to_owned())),
            Err(error) => return Err(ExecuteError::Offer(format!("`structured` is no JSON: {error}"))),
        },
    };
    Ok(CallOutcome {
        structured,
        text: None,
        is_error: false,
        notes: vec![],
        blocks: Some(content.blocks),
    })
}

/// Bytes without the secrets in them: as base64 nobody would find those again.
pub(crate) fn without_secrets(returned: Returned, secrets: &Secrets) -> Returned {
    let redact = |bytes: Vec<u8>| match secrets.redact_bytes(&bytes) {
        Cow::Owned(redacted) => redacted,
        Cow::Borrowed(_) => bytes,
    };
    match returned {
        Returned::Bytes(bytes) => Returned::Bytes(redact(bytes)),
        Returned::SomeBytes(bytes) => Returned::SomeBytes(redact(bytes)),
        Returned::OkBytes(bytes) => Returned::OkBytes(redact(bytes)),
        Returned::Val(mut value) => {
            if !secrets.is_empty() {
                redact_bytes_in(&mut value, secrets);
            }
            Returned::Val(value)
        }
    }
}

/// The same for bytes inside of other values.
fn redact_bytes_in(value: &mut Val, secrets: &Secrets) {
    let inner = |values: &mut Vec<Val>| values.iter_mut().for_each(|value| redact_bytes_in(value, secrets));
    match value {
        Val::List(items) if matches!(items.first(), Some(Val::U8(_))) => {
            let byte = |item: &Val| if let Val::U8(byte) = item { *byte } else { 0 };
            let bytes: Vec<u8> = items.iter().map(byte).collect();
            if let Cow::Owned(redacted) = secrets.redact_bytes(&bytes) {
                *items = redacted.into_iter().map(Val::U8).collect();
            }
        }
        Val::List(items) | Val::Tuple(items) => inner(items),
        Val::Record(fields) => fields.iter_mut().for_each(|(_, value)| redact_bytes_in(value, secrets)),
        Val::Map(entries) => entries.iter_mut().for_each(|(_, value)| redact_bytes_in(value, secrets)),
        Val::Variant(_, Some(value)) | Val::Option(Some(value)) => redact_bytes_in(value, secrets),
        Val::Result(Ok(Some(value)) | Err(Some(value))) => redact_bytes_in(value, secrets),
        _ => {}
    }
}

/// Takes secrets out of every text of a value, and out of its keys.
pub(crate) fn redact(value: &mut Value, secrets: &Secrets) {
    if secrets.is_empty() {
        return;
    }
    match value {
        Value::String(text) => {
            if let Cow::Owned(redacted) = secrets.redact(text) {
                *text = redacted;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, secrets)),
        Value::Object(fields) => {
            let with_secrets = std::mem::take(fields);
            fields.extend(with_secrets.into_iter().map(|(key, mut value)| {
                redact(&mut value, secrets);
                (secrets.redact(&key).into_owned(), value)
            }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The line of a call that has begun.
struct Record<'a> {
    audit: &'a Audit,
    line: Line<'a>,
    start: Instant,
}

impl<'a> Record<'a> {
    fn new(audit: &'a Audit, tool: &'a Tool, arguments: &Value, caller: &'a Caller) -> Self {
        Self {
            audit,
            line: Line {
                component: tool.component.id.as_str(),
                digest: tool.component.revision.metadata.digest.to_string(),
                ..Line::new(tool.definition.name.as_str(), caller, arguments)
            },
            start: Instant::now(),
        }
    }

    fn ended(&mut self, result: &Result<CallOutcome, ExecuteError>, denied: &[Denied]) {
        self.line.outcome = match result {
            Ok(outcome) if outcome.is_error => Outcome::ToolError,
            Ok(_) => Outcome::Ok,
            Err(error) => error.outcome(),
        };
        self.line.error = result.as_ref().err().and_then(ExecuteError::in_own_words);
        self.line.denied = denied.iter().map(|denied| denied.what.clone()).collect();
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        self.line.time = audit::now();
        self.line.duration_ms = audit::milliseconds(self.start.elapsed());
        self.audit.write(&self.line);
    }
}

fn in_envelope(tool: &Tool, value: Value) -> Option<Value> {
    let schema = tool.definition.output_schema.as_ref();
    structured_output::ensure_structured_result(schema, json!({ "result": value }))
}

//! What clients ask, answered.

#![expect(deprecated, reason = "what MCP has deprecated is spoken as long as clients have it")]

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;

use component2json::nearest_first;
use futures_util::FutureExt;
use futures_util::future::CatchUnwind;
use lifecycle::{
    CallOutcome, Caller, Client, ExecuteError, Interruption, Key, LifecycleManager, MAX_URI, News, Nobody, NotReady, Subject,
    Tool as LoadedTool,
};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult, CompletionInfo, ContentBlock,
    CustomRequest, CustomResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse, Implementation,
    InitializeRequestParams, InitializeResult, InputRequiredResult, JsonObject, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, LoggingLevel, MetaObject, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Reference, ServerCapabilities, ServerConfig,
    SetLevelRequestMethod, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, ToolAnnotations,
    UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::admin::{self, AdminTool};
use crate::conversation::{self, Cancelled, ClientSide, GuestSide, Manners, Terms};
use crate::metrics::Metrics;
use crate::news::{Audience, known};
use crate::questions::{self, Answered, Seal};
use crate::retry::Retry;
use crate::wire;

/// The key under which a server names itself in every result of the stateless era.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// What is kept of what a client calls itself.
const MAX_CALLER: usize = 100;

/// The resources that one client subscribes to.
const MAX_SUBSCRIPTIONS: usize = 1_000;

/// The versions of the protocol that are spoken, the oldest first.
pub fn protocol_versions() -> Vec<String> {
    ProtocolVersion::KNOWN_VERSIONS.iter().map(ToString::to_string).collect()
}

/// Serves the tools of a [`LifecycleManager`]. Clones share it.
#[derive(Clone, Debug)]
pub struct Server {
    manager: Arc<LifecycleManager>,
    /// By name; none unless an agent may manage the host.
    admin: Arc<BTreeMap<&'static str, Arc<AdminTool>>>,
    metrics: Metrics,
    seal: Arc<Seal>,
    /// What clients are told of what is offered, once somebody asked.
    offered: Arc<Mutex<Option<Arc<Offered>>>>,
}

/// What is offered, in the words of the protocol. Made anew when that is something else.
#[derive(Debug)]
struct Offered {
    version: u64,
    /// By name.
    tools: Vec<Tool>,
    instructions: Option<String>,
}

/// What a name stands for.
pub(crate) enum Callable {
    Loaded(Arc<LoadedTool>),
    Admin(Arc<AdminTool>),
}

impl Server {
    pub fn new(manager: Arc<LifecycleManager>) -> Self {
        Self {
            manager,
            admin: Arc::default(),
            metrics: Metrics::default(),
            seal: Arc::new(Seal::of_this_process()),
            offered: Arc::default(),
        }
    }

    /// With the tools with which an agent manages the host.
    pub fn with_admin(manager: Arc<LifecycleManager>) -> Self {
        Self {
            admin: Arc::new(admin::tools()),
            ..Self::new(manager)
        }
    }

    /// With a key that other replicas have, so that they can go on where this one stopped.
    pub fn with_state_key(self, key: &Key) -> Self {
        Self {
            seal: Arc::new(Seal::with_key(key)),
            ..self
        }
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Whether calls would be answered, or why not.
    pub fn readiness(&self) -> Result<(), NotReady> {
        match self.manager.readiness() {
            // An agent that may load something can be answered.
            Err(NotReady::NothingServed) if !self.admin.is_empty() => Ok(()),
            ready => ready,
        }
    }

    fn implementation() -> Implementation {
        Implementation::new("host", env!("CARGO_PKG_VERSION"))
    }

    pub(crate) fn tool(&self, name: &str) -> Result<Callable, ErrorData> {
        // Their names are reserved: nothing loaded has one of them.
        if let Some(tool) = self.admin.get(name) {
            return Ok(Callable::Admin(Arc::clone(tool)));
        }
        match self.manager.tool(name) {
            Ok(tool) => Ok(Callable::Loaded(tool)),
            Err(ExecuteError::UnknownTool { name: shown, nearest }) => {
                let names = nearest.iter().map(String::as_str).chain(self.admin.keys().copied());
                let error = ExecuteError::UnknownTool {
                    name: shown,
                    nearest: nearest_first(name, names).into_iter().map(str::to_owned).collect(),
                };
                Err(ErrorData::invalid_params(error.to_string(), None))
            }
            Err(other) => Err(ErrorData::internal_error(other.to_string(), None)),
        }
    }

    /// A tool whose calls are arguments in and one answer out.
    pub(crate) fn plain_tool(&self, name: &str) -> Option<Arc<LoadedTool>> {
        self.manager.tool(name).ok().filter(|tool| tool.is_plain())
    }

    /// All tools, by name, and what is said about all of them.
    fn offered(&self) -> Arc<Offered> {
        // Read first: what is offered meanwhile may be newer than that, but never older.
        let version = self.manager.version();
        let mut kept = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(offered) = &*kept
            && offered.version == version
        {
            return Arc::clone(offered);
        }
        let loaded = self.manager.tools();
        let admin = self.admin.values().map(|tool| tool.definition.clone());
        let mut tools: Vec<Tool> = loaded.iter().map(|tool| definition(tool)).chain(admin).collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let offered = Arc::new(Offered {
            version,
            tools,
            instructions: self.manager.instructions(),
        });
        *kept = Some(Arc::clone(&offered));
        offered
    }

    pub(crate) fn tools(&self) -> Vec<Tool> {
        self.offered().tools.clone()
    }
}

/// Who calls, as far as it says so itself.
fn caller_name(context: &RequestContext<RoleServer>) -> String {
    let named = |client: &Implementation| {
        let name = format!("{} {}", client.name, client.version);
        component2json::clean_text(&name)
            .unwrap_or_default()
            .chars()
            .take(MAX_CALLER)
            .collect()
    };
    context.client_info().as_ref().map(named).unwrap_or_default()
}

/// What came of a request to a guest.
enum Reply<T> {
    Done(Result<T, ExecuteError>),
    /// The client has to answer something, and ask again.
    Asks(Box<InputRequiredResult>),
    /// The host itself failed, or stopped.
    Failed(&'static str),
}

/// Why there is no result.
enum Interrupted {
    Failed(&'static str),
    Cancelled,
}

/// Who called wants no answer any more. rmcp sends none to a request that was cancelled.
fn cancelled() -> ErrorData {
    ErrorData::internal_error("the call was cancelled", None)
}

/// What is told of a panic.
pub(crate) const HOST_FAILED: &str = "the host itself failed in this call; other calls are not affected. Please report this";

/// What is done for a request. In a box, always: rmcp's future of a request has room for that of every method, and is moved as a whole for
/// each request.
type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Works apart from the task that answers: a panic there is one failed call, and a cancelled request stops the guest. What ends before
/// it waits for anything, as most calls do, needs no task for that.
async fn apart<T: Send + 'static>(listener: ClientSide, work: Work<T>, manners: Manners) -> Result<T, Interrupted> {
    match begun(work).await {
        Ok(ended) => {
            listener.conclude().await.map_err(|Cancelled| Interrupted::Cancelled)?;
            ended
        }
        Err(rest) => elsewhere(listener, rest, manners).await,
    }
}

/// Work in which a panic is a result.
type Guarded<T> = CatchUnwind<AssertUnwindSafe<Work<T>>>;

/// What comes of work without waiting for anything, or the rest of it.
async fn begun<T>(work: Work<T>) -> Result<Result<T, Interrupted>, Guarded<T>> {
    let mut work = AssertUnwindSafe(work).catch_unwind();
    match std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut work).poll(context))).await {
        Poll::Ready(ended) => Ok(unless_panicked(ended)),
        Poll::Pending => Err(work),
    }
}

/// Lets work go on in a task of its own.
async fn elsewhere<T: Send + 'static>(listener: ClientSide, work: Guarded<T>, manners: Manners) -> Result<T, Interrupted> {
    let mut task = AbortOnDrop(tokio::spawn(work));
    let ended = Box::pin(listener.during(&mut task.0, manners)).await;
    let ended = ended.map_err(|Cancelled| Interrupted::Cancelled)?;
    unless_panicked(ended.map_err(|_| Interrupted::Failed("the host stopped"))?)
}

fn unless_panicked<T>(ended: std::thread::Result<T>) -> Result<T, Interrupted> {
    ended.map_err(|_| {
        tracing::error!("a call panicked");
        Interrupted::Failed(HOST_FAILED)
    })
}

/// A task that nobody waits for any more stops.
#[derive(Debug)]
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a call gave. The text of a function is the same JSON as the structure, because some clients show the model only the one or
/// the other; that of a program is what it printed.
fn succeeded(outcome: CallOutcome) -> Result<CallToolResult, ErrorData> {
    let notes = outcome.notes.into_iter().map(ContentBlock::text);
    if let Some(blocks) = outcome.blocks {
        let blocks = blocks.into_iter().map(wire::block).chain(notes.map(Ok));
        let mut result = CallToolResult::success(blocks.collect::<Result<_, _>>()?);
        result.structured_content = outcome.structured;
        return Ok(result);
    }
    let text = match (outcome.text, &outcome.structured) {
        (Some(text), _) => text,
        (None, Some(structured)) => structured.to_string(),
        (None, None) => "done".to_owned(),
    };
    let content = std::iter::once(ContentBlock::text(text)).chain(notes).collect();
    let mut result = if outcome.is_error {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    };
    result.structured_content = outcome.structured;
    Ok(result)
}

fn failed(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

fn definition(tool: &LoadedTool) -> Tool {
    let definition = &tool.definition;
    let name = definition.name.to_string();
    let wire =
        Tool::new(name, definition.description.clone(), object(&definition.input_schema)).with_title(definition.title.clone());
    let wire = match &definition.output_schema {
        Some(schema) => wire.with_raw_output_schema(object(schema)),
        None => wire,
    };
    let wire = match &definition.annotations {
        Some(annotations) => wire.with_annotations(hints(annotations)),
        None => wire,
    };
    match tool.icons() {
        [] => wire,
        icons => wire.with_icons(icons.iter().filter_map(wire::icon).collect()),
    }
}

fn hints(annotations: &component2json::ToolAnnotations) -> ToolAnnotations {
    let mut hints = ToolAnnotations::default();
    hints.title = annotations.title.clone();
    hints.read_only_hint = annotations.read_only_hint;
    hints.destructive_hint = annotations.destructive_hint;
    hints.idempotent_hint = annotations.idempotent_hint;
    hints.open_world_hint = annotations.open_world_hint;
    hints
}

/// Schemas are objects at their root, always.
pub(crate) fn object(schema: &Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

fn is_stateless_era(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Clients of the stateless era have no `initialize` that told them who answers.
fn server_meta(context: &RequestContext<RoleServer>) -> Option<MetaObject> {
    if !is_stateless_era(context) {
        return None;
    }
    static META: LazyLock<MetaObject> = LazyLock::new(|| {
        let mut meta = MetaObject::default();
        meta.insert(SERVER_INFO.to_owned(), json!(Server::implementation()));
        meta
    });
    Some(META.clone())
}

/// One client. rmcp drops it when the client has gone.
#[derive(Debug)]
pub(crate) struct Session {
    server: Server,
    /// What changed since `initialize`. Clients of the stateless era do not send that: they hear only what they subscribe to.
    news: OnceLock<(News, watch::Receiver<News>)>,
    /// The client, once it said that it is ready.
    peer: OnceLock<Peer<RoleServer>>,
    /// Tells the client of changes, from then on.
    announcing: OnceLock<AbortOnDrop<()>>,
    /// The least important messages that it wants to see; before the stateless era that is said once for all calls.
    level: Mutex<Option<LoggingLevel>>,
    /// The resources of which it wants to know when they change, likewise.
    subscriptions: Arc<Mutex<HashSet<String>>>,
    /// The client will ask nothing more. rmcp then waits for all requests to be answered, and so for subscriptions.
    asked_all: CancellationToken,
    /// The client is gone for good, and nobody waits for what runs.
    gone: CancellationToken,
}

impl Session {
    pub(crate) fn new(server: Server, asked_all: CancellationToken, gone: CancellationToken) -> Self {
        Self {
            server,
            news: OnceLock::new(),
            peer: OnceLock::new(),
            announcing: OnceLock::new(),
            level: Mutex::default(),
            subscriptions: Arc::default(),
            asked_all,
            gone,
        }
    }

    /// The client of a session that is open.
    pub(crate) fn peer(&self) -> Option<&Peer<RoleServer>> {
        self.peer.get()
    }

    /// Another number whenever something else is offered than before.
    pub(crate) fn version(&self) -> u64 {
        self.server.manager.version()
    }

    fn subscriptions(&self) -> MutexGuard<'_, HashSet<String>> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a conversation about a request.
    fn converse(&self, context: &RequestContext<RoleServer>, answered: Answered) -> (Caller, Arc<GuestSide>, ClientSide) {
        let is_stateless = is_stateless_era(context);
        let level = match is_stateless {
            true => context.meta.log_level(),
            false => *self.level.lock().unwrap_or_else(PoisonError::into_inner),
        };
        let terms = Terms {
            level,
            answered: is_stateless.then_some(answered),
            gone: self.gone.clone(),
        };
        let (speaker, listener) = conversation::begin(&self.server.manager, context, terms);
        (self.caller(context, Arc::clone(&speaker) as _), speaker, listener)
    }

    /// Who calls. Only an audit wants to know the name.
    fn caller(&self, context: &RequestContext<RoleServer>, client: Arc<dyn Client>) -> Caller {
        let name = match self.server.manager.is_audited() {
            true => caller_name(context),
            false => String::new(),
        };
        Caller { name, client }
    }

    /// A tool whose calls can say nothing but their answer, if this is the name of one.
    pub(crate) fn silent_tool(&self, name: &str) -> Option<Arc<LoadedTool>> {
        self.server.manager.tool(name).ok().filter(|tool| tool.is_silent())
    }

    /// Whether nobody can tell, but by a clock, if calls of a tool were made one after the other or so many at a time.
    pub(crate) fn is_independent(&self, tool: &LoadedTool, at_a_time: u32) -> bool {
        self.server.manager.is_independent(tool, at_a_time)
    }

    /// Has a guest do something that it may ask questions for.
    async fn with_questions<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        retry: Retry,
        manners: Manners,
        work: impl FnOnce(Arc<LifecycleManager>, Caller) -> Work<Result<T, ExecuteError>>,
    ) -> Result<Reply<T>, ErrorData> {
        let seal = &self.server.seal;
        let answered = match &retry.state {
            Some(state) => seal.open(&retry.bound_to(context), state)?,
            None => Answered::default(),
        };
        let answered = answered.and(retry.responses.clone());
        let (caller, speaker, listener) = self.converse(context, answered);
        let work = work(Arc::clone(&self.server.manager), caller);
        Ok(match apart(listener, work, manners).await {
            Ok(Err(error)) => match error.interruption() {
                Some(Interruption::Paused) => {
                    let mut asked = seal.ask(&retry.bound_to(context), &speaker.asked(), &speaker.used())?;
                    asked.meta = server_meta(context);
                    Reply::Asks(Box::new(asked))
                }
                // Before, a client could not be told in a way that it understands.
                Some(Interruption::Missing(needed)) if is_stateless_era(context) => {
                    let needed = questions::client_capabilities(needed);
                    return Err(ErrorData::missing_required_client_capability(needed));
                }
                _ => Reply::Done(Err(error)),
            },
            Ok(done) => Reply::Done(done),
            Err(Interrupted::Failed(why)) => Reply::Failed(why),
            Err(Interrupted::Cancelled) => return Err(cancelled()),
        })
    }

    async fn call_loaded(
        &self,
        tool: Arc<LoadedTool>,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Arc::new(Value::Object(request.arguments.unwrap_or_default()));
        let retry = Retry {
            method: "tools/call",
            name: request.name.into_owned(),
            arguments: Arc::clone(&arguments),
            state: request.request_state,
            responses: request.input_responses,
        };
        let manners = Manners {
            polls_cancellation: tool.imports_mcp("cancelled"),
            reports_progress: tool.imports_mcp("progress"),
        };
        let work = |manager: Arc<LifecycleManager>, caller: Caller| -> Work<_> {
            Box::pin(async move { manager.execute_component_call(&tool, &arguments, &caller).await })
        };
        Ok(match self.with_questions(context, retry, manners, work).await? {
            Reply::Done(Ok(outcome)) => succeeded(outcome)?.into(),
            Reply::Done(Err(error)) => failed(error.to_string()).into(),
            Reply::Asks(questions) => (*questions).into(),
            Reply::Failed(why) => failed(why.to_owned()).into(),
        })
    }

    /// Calls a tool that can say nothing but its answer. There is a conversation only about a call that does not end at once: its client
    /// hears that it still runs, and can take it back.
    async fn call_silent(
        &self,
        tool: Arc<LoadedTool>,
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (manager, caller) = (Arc::clone(&self.server.manager), self.caller(context, Arc::new(Nobody)));
        let arguments = Value::Object(arguments);
        let work = Box::pin(async move { manager.execute_component_call(&tool, &arguments, &caller).await });
        let ended = match begun(work).await {
            Ok(ended) => ended,
            Err(rest) => {
                let (_, _, listener) = self.converse(context, Answered::default());
                elsewhere(listener, rest, Manners::default()).await
            }
        };
        told(ended)
    }

    /// The same, counted: for who has looked up the tool already.
    pub(crate) async fn answer_silent(
        &self,
        tool: Arc<LoadedTool>,
        name: &str,
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.counted(name, context, self.call_silent(tool, arguments, context)).await
    }

    /// Counts a call, and says who answers it.
    async fn counted(
        &self,
        name: &str,
        context: &RequestContext<RoleServer>,
        call: impl Future<Output = Result<CallToolResponse, ErrorData>>,
    ) -> Result<CallToolResponse, ErrorData> {
        let running = self.server.metrics.call(name);
        let response = call.await;
        running.ended(match &response {
            _ if context.ct.is_cancelled() => "cancelled",
            Ok(CallToolResponse::Complete(result)) if result.is_error != Some(true) => "ok",
            Ok(CallToolResponse::InputRequired(_)) => "asked",
            _ => "error",
        });
        let mut response = response?;
        if let CallToolResponse::Complete(result) = &mut response {
            result.meta = server_meta(context);
        }
        Ok(response)
    }

    async fn call_admin(
        &self,
        tool: Arc<AdminTool>,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let (caller, _, listener) = self.converse(context, Answered::default());
        let (manager, named) = (Arc::clone(&self.server.manager), request.name.to_string());
        let work = Box::pin(async move {
            let work = tool.call(&manager, arguments.clone());
            manager.recorded(&named, &arguments, &caller, work).await
        });
        told(apart(listener, work, Manners::default()).await)
    }
}

/// How the end of a call is told.
fn told<E: std::fmt::Display>(ended: Result<Result<CallOutcome, E>, Interrupted>) -> Result<CallToolResponse, ErrorData> {
    Ok(match ended {
        Ok(Ok(outcome)) => succeeded(outcome)?.into(),
        Ok(Err(error)) => failed(error.to_string()).into(),
        Err(Interrupted::Failed(why)) => failed(why.to_owned()).into(),
        Err(Interrupted::Cancelled) => return Err(cancelled()),
    })
}

/// How the error of a guest that was asked for a resource or a prompt is told.
fn offer_error(error: ExecuteError, data: Value) -> ErrorData {
    match error {
        ExecuteError::Refused(why) => ErrorData::invalid_params(why, Some(data)),
        error => ErrorData::internal_error(error.to_string(), Some(data)),
    }
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging()
            .build();
        let mut info = InitializeResult::new(capabilities);
        info.server_info = Server::implementation();
        info.instructions = self.server.offered().instructions.clone();
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        // What changes from here on is news to the client.
        self.news.get_or_init(|| known(self.server.manager.news()));
        self.negotiate_initialize(&request)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let _ = self.peer.set(context.peer.clone());
        let Some(news) = self.news.get() else {
            return;
        };
        let audience = Audience::Peer(context.peer, Arc::clone(&self.subscriptions));
        let announce = audience.follow(news.clone(), self.server.manager.updates());
        self.announcing.get_or_init(|| AbortOnDrop(tokio::spawn(announce)));
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|uri| uri.len() <= MAX_URI);
            uris.truncate(MAX_SUBSCRIPTIONS);
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let manager = &self.server.manager;
        let announce = Audience::Stream(context.sink().clone()).follow(known(manager.news()), manager.updates());
        tokio::select! {
            () = Box::pin(announce) => {}
            () = context.cancelled() => {}
            () = self.asked_all.cancelled() => {}
        }
        Ok(())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // One page: several clients never ask for a second.
        let mut result = ListToolsResult::with_all_items(self.server.tools());
        result.meta = server_meta(&context);
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let offered = self.server.offered();
        let index = offered.tools.binary_search_by(|tool| (*tool.name).cmp(name)).ok()?;
        offered.tools.get(index).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = self.server.tool(&request.name)?;
        let is_first_attempt = request.request_state.is_none() && request.input_responses.is_none();
        let name = request.name.clone();
        let call = async {
            match tool {
                Callable::Loaded(tool) if is_first_attempt && tool.is_silent() => {
                    self.call_silent(tool, request.arguments.unwrap_or_default(), &context).await
                }
                Callable::Loaded(tool) => self.call_loaded(tool, request, &context).await,
                Callable::Admin(tool) => self.call_admin(tool, request, &context).await,
            }
        };
        self.counted(&name, &context, call).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let (caller, _, listener) = self.converse(&context, Answered::default());
        let manager = Arc::clone(&self.server.manager);
        let work = Box::pin(async move { manager.prompts(&caller).await });
        let prompts = listed(apart(listener, work, Manners::default()).await)?;
        let prompts = prompts.into_iter().map(wire::prompt).collect::<Result<_, _>>()?;
        let mut result = ListPromptsResult::with_all_items(prompts);
        result.meta = server_meta(&context);
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let arguments: BTreeMap<String, String> = arguments.into_iter().map(|(name, value)| (name, text(value))).collect();
        let retry = Retry {
            method: "prompts/get",
            name: request.name.clone(),
            arguments: Arc::new(json!(arguments)),
            state: request.request_state,
            responses: request.input_responses,
        };
        let name = request.name.clone();
        let work = |manager: Arc<LifecycleManager>, caller: Caller| -> Work<_> {
            Box::pin(async move { manager.prompt(&name, &arguments, &caller).await })
        };
        match self.with_questions(&context, retry, Manners::default(), work).await? {
            Reply::Done(Ok(filled)) => {
                let mut result = wire::filled(filled)?;
                result.meta = server_meta(&context);
                Ok(result.into())
            }
            Reply::Done(Err(ExecuteError::NotFound(why))) => Err(ErrorData::invalid_params(why, None)),
            Reply::Done(Err(error)) => Err(offer_error(error, json!({ "name": request.name }))),
            Reply::Asks(questions) => Ok((*questions).into()),
            Reply::Failed(why) => Err(ErrorData::internal_error(why, None)),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (caller, _, listener) = self.converse(&context, Answered::default());
        let manager = Arc::clone(&self.server.manager);
        let work = Box::pin(async move { manager.resources(&caller).await });
        let resources = listed(apart(listener, work, Manners::default()).await)?;
        let resources = resources.into_iter().map(wire::resource).collect::<Result<_, _>>()?;
        let mut result = ListResourcesResult::with_all_items(resources);
        result.meta = server_meta(&context);
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let (caller, _, listener) = self.converse(&context, Answered::default());
        let manager = Arc::clone(&self.server.manager);
        let work = Box::pin(async move { manager.resource_templates(&caller).await });
        let templates = listed(apart(listener, work, Manners::default()).await)?;
        let templates = templates.into_iter().map(wire::template).collect::<Result<_, _>>()?;
        let mut result = ListResourceTemplatesResult::with_all_items(templates);
        result.meta = server_meta(&context);
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let retry = Retry {
            method: "resources/read",
            name: request.uri.clone(),
            arguments: Arc::default(),
            state: request.request_state,
            responses: request.input_responses,
        };
        let uri = request.uri.clone();
        let work = |manager: Arc<LifecycleManager>, caller: Caller| -> Work<_> {
            Box::pin(async move { manager.read_resource(&uri, &caller).await })
        };
        let data = json!({ "uri": request.uri });
        match self.with_questions(&context, retry, Manners::default(), work).await? {
            Reply::Done(Ok(contents)) => {
                let contents = contents.into_iter().map(wire::resource_contents).collect::<Result<_, _>>()?;
                let mut result = ReadResourceResult::new(contents);
                result.meta = server_meta(&context);
                Ok(result.into())
            }
            Reply::Done(Err(ExecuteError::NotFound(why))) => Err(ErrorData::resource_not_found(why, Some(data))),
            Reply::Done(Err(error)) => Err(offer_error(error, data)),
            Reply::Asks(questions) => Ok((*questions).into()),
            Reply::Failed(why) => Err(ErrorData::internal_error(why, None)),
        }
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        if request.uri.len() > MAX_URI {
            let problem = format!("the URI of a resource has at most {MAX_URI} bytes");
            return Err(ErrorData::invalid_params(problem, None));
        }
        let mut subscriptions = self.subscriptions();
        if subscriptions.len() >= MAX_SUBSCRIPTIONS && !subscriptions.contains(&request.uri) {
            let problem = format!("a client subscribes to at most {MAX_SUBSCRIPTIONS} resources");
            return Err(ErrorData::invalid_params(problem, None));
        }
        subscriptions.insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.subscriptions().remove(&request.uri);
        Ok(())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let subject = match request.r#ref {
            Reference::Prompt(prompt) => Subject::Prompt(prompt.name),
            Reference::Resource(resource) => Subject::Template(resource.uri),
            _ => {
                return Err(ErrorData::invalid_params(
                    "prompts and resources are completed, and nothing else",
                    None,
                ));
            }
        };
        let known: BTreeMap<String, String> = request
            .context
            .and_then(|context| context.arguments)
            .into_iter()
            .flatten()
            .collect();
        let (caller, _, listener) = self.converse(&context, Answered::default());
        let manager = Arc::clone(&self.server.manager);
        let argument = request.argument;
        let work = Box::pin(async move {
            manager
                .complete(&subject, &argument.name, &argument.value, &known, &caller)
                .await
        });
        let completion = match listed(apart(listener, work, Manners::default()).await)? {
            Ok(completion) => completion,
            Err(ExecuteError::NotFound(why)) => return Err(ErrorData::invalid_params(why, None)),
            Err(error) => return Err(ErrorData::internal_error(error.to_string(), None)),
        };
        let sent = u32::try_from(completion.values.len()).ok();
        let info = CompletionInfo::with_pagination(completion.values, completion.total, completion.total > sent);
        let mut result = CompleteResult::new(info.map_err(|error| ErrorData::internal_error(error, None))?);
        result.meta = server_meta(&context);
        Ok(result)
    }

    async fn set_level(&self, request: SetLevelRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        // Later versions have a level in each request.
        if is_stateless_era(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.level);
        Ok(())
    }

    /// Requests that rmcp could not read end here too: a known method with parameters of the wrong shape.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        const ALWAYS: [&str; 9] = [
            "completion/complete",
            "prompts/get",
            "prompts/list",
            "resources/list",
            "resources/read",
            "resources/templates/list",
            "server/discover",
            "tools/call",
            "tools/list",
        ];
        const BEFORE: [&str; 5] = [
            "initialize",
            "logging/setLevel",
            "ping",
            "resources/subscribe",
            "resources/unsubscribe",
        ];
        const STATELESS: [&str; 1] = ["subscriptions/listen"];
        let of_era: &[&str] = if is_stateless_era(&context) { &STATELESS } else { &BEFORE };
        let method = request.method.as_str();
        if ALWAYS.contains(&method) || of_era.contains(&method) {
            let message = format!("the parameters of `{method}` do not have the shape that the protocol gives them");
            return Err(ErrorData::invalid_params(message, None));
        }
        let message: Cow<'static, str> = request.method.chars().take(100).collect::<String>().into();
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }
}

/// What came of asking all components.
fn listed<T>(listed: Result<T, Interrupted>) -> Result<T, ErrorData> {
    listed.map_err(|interrupted| match interrupted {
        Interrupted::Failed(why) => ErrorData::internal_error(why, None),
        Interrupted::Cancelled => cancelled(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::tests::Other;

    /// What comes of work that fails in the host itself.
    async fn outcome(work: impl Future<Output = ()> + Send + 'static) -> Result<(), Interrupted> {
        let other = Other::connect();
        let (_, listener) = other.converse();
        apart(listener, Box::pin(work), Manners::default()).await
    }

    #[tokio::test]
    async fn a_panic_is_answered() {
        // At once, and after something was waited for, which is in a task of its own.
        let at_once = outcome(async { panic!("at once") }).await;
        let later = outcome(async {
            tokio::task::yield_now().await;
            panic!("later")
        });
        for failed in [at_once, later.await] {
            assert!(matches!(failed, Err(Interrupted::Failed(HOST_FAILED))));
        }
    }
}

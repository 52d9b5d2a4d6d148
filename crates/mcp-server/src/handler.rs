//! What clients ask, answered.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, OnceLock};

use component2json::nearest_first;
use lifecycle::{CallOutcome, Caller, ExecuteError, LifecycleManager, Tool as LoadedTool};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod, CompleteRequestParams, CompleteResult,
    ConstString, ContentBlock, CustomRequest, CustomResult, ErrorCode, ErrorData, Implementation, InitializeRequestParams,
    InitializeResult, JsonObject, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
    ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, MetaObject,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool, ToolAnnotations,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::admin::{self, AdminTool};

/// The key under which a server names itself in every result of the stateless era.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// What is kept of what a client calls itself.
const MAX_CALLER: usize = 100;

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
        }
    }

    /// With the tools with which an agent manages the host.
    pub fn with_admin(manager: Arc<LifecycleManager>) -> Self {
        Self {
            manager,
            admin: Arc::new(admin::tools()),
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

    /// All tools, by name.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        let loaded = self.manager.tools();
        let admin = self.admin.values().map(|tool| tool.definition.clone());
        let mut tools: Vec<Tool> = loaded.iter().map(|tool| definition(tool)).chain(admin).collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools
    }

    async fn call(&self, name: &str, arguments: Value, context: &RequestContext<RoleServer>) -> Result<CallToolResult, ErrorData> {
        let manager = Arc::clone(&self.manager);
        Ok(match self.tool(name)? {
            Callable::Loaded(tool) => {
                let caller = caller(context);
                let call = async move { manager.execute_component_call(&tool, &arguments, &caller).await };
                run(name, call, context).await
            }
            Callable::Admin(tool) => {
                let (caller, named) = (caller(context), name.to_owned());
                let call = async move {
                    let work = tool.call(&manager, arguments.clone());
                    manager.recorded(&named, &arguments, &caller, work).await
                };
                run(name, call, context).await
            }
        })
    }
}

/// Who calls, as far as it says so itself.
fn caller(context: &RequestContext<RoleServer>) -> Caller {
    let named = |client: &Implementation| {
        let name = format!("{} {}", client.name, client.version);
        component2json::clean_text(&name)
            .unwrap_or_default()
            .chars()
            .take(MAX_CALLER)
            .collect()
    };
    let stateless = context.meta.client_info();
    let client = stateless.as_ref().map(&named);
    let client = client.or_else(|| context.peer.peer_info().map(|peer| named(&peer.client_info)));
    Caller {
        name: client.unwrap_or_default(),
    }
}

/// Runs a call as a task of its own: a panic in it is one failed call, and a cancelled request stops the guest.
async fn run<E: Display + Send + 'static>(
    name: &str,
    call: impl Future<Output = Result<CallOutcome, E>> + Send + 'static,
    context: &RequestContext<RoleServer>,
) -> CallToolResult {
    let mut task = AbortOnDrop(tokio::spawn(call));
    let result = tokio::select! {
        result = &mut task.0 => result,
        // rmcp sends no answer to a request that was cancelled.
        () = context.ct.cancelled() => return failed("the call was cancelled".to_owned()),
    };
    match result {
        Ok(Ok(outcome)) => succeeded(outcome),
        Ok(Err(error)) => failed(error.to_string()),
        Err(error) if error.is_panic() => {
            tracing::error!(tool = name, "a call panicked");
            failed("the host itself failed in this call; other calls are not affected. Please report this".to_owned())
        }
        Err(_) => failed("the host stopped".to_owned()),
    }
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
fn succeeded(outcome: CallOutcome) -> CallToolResult {
    let text = match (outcome.text, &outcome.structured) {
        (Some(text), _) => text,
        (None, Some(structured)) => structured.to_string(),
        (None, None) => "done".to_owned(),
    };
    let notes = outcome.notes.into_iter().map(ContentBlock::text);
    let content = std::iter::once(ContentBlock::text(text)).chain(notes).collect();
    let mut result = if outcome.is_error {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    };
    result.structured_content = outcome.structured;
    result
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
    match &definition.annotations {
        Some(annotations) => wire.with_annotations(hints(annotations)),
        None => wire,
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
    let mut meta = MetaObject::default();
    meta.insert(SERVER_INFO.to_owned(), serde_json::to_value(Server::implementation()).ok()?);
    Some(meta)
}

/// Undeclared capabilities answer so; rmcp's own default is an empty success.
fn undeclared<M: ConstString, T>() -> Result<T, ErrorData> {
    Err(ErrorData::method_not_found::<M>())
}

/// One client. rmcp drops it when the client has gone.
#[derive(Debug)]
pub(crate) struct Session {
    server: Server,
    /// What changed since `initialize`. Clients of the stateless era do not send that: they hear only what they subscribe to.
    changes: OnceLock<watch::Receiver<u64>>,
    /// Tells the client of changes, once it said that it is ready to hear of them.
    announcing: OnceLock<AbortOnDrop<()>>,
    /// The client will ask nothing more. rmcp then waits for all requests to be answered, and so for subscriptions.
    asked_all: CancellationToken,
}

impl Session {
    pub(crate) fn new(server: Server, asked_all: CancellationToken) -> Self {
        Self {
            server,
            changes: OnceLock::new(),
            announcing: OnceLock::new(),
            asked_all,
        }
    }
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let mut info = InitializeResult::new(capabilities);
        info.server_info = Server::implementation();
        info.instructions = self.server.manager.instructions();
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        // What changes from here on is news to the client.
        self.changes.get_or_init(|| self.server.manager.changes());
        self.negotiate_initialize(&request)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(changes) = self.changes.get() else {
            return;
        };
        let (mut changes, peer) = (changes.clone(), context.peer);
        // Changes that come while the client does not read are told as one.
        let announce = async move { while changes.changed().await.is_ok() && peer.notify_tool_list_changed().await.is_ok() {} };
        self.announcing.get_or_init(|| AbortOnDrop(tokio::spawn(announce)));
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.server.manager.changes();
        let sink = context.sink();
        let announce = async { while changes.changed().await.is_ok() && sink.notify_tool_list_changed().await.is_ok() {} };
        let wants_tools = context.accepted().tools_list_changed == Some(true);
        tokio::select! {
            () = announce, if wants_tools => {}
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
        match self.server.tool(name).ok()? {
            Callable::Loaded(tool) => Some(definition(&tool)),
            Callable::Admin(tool) => Some(tool.definition.clone()),
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let mut result = self.server.call(&request.name, arguments, &context).await?;
        result.meta = server_meta(&context);
        Ok(CallToolResponse::Complete(result))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        undeclared::<ListPromptsRequestMethod, _>()
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        undeclared::<ListResourcesRequestMethod, _>()
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        undeclared::<ListResourceTemplatesRequestMethod, _>()
    }

    async fn complete(&self, _: CompleteRequestParams, _: RequestContext<RoleServer>) -> Result<CompleteResult, ErrorData> {
        undeclared::<CompleteRequestMethod, _>()
    }

    /// Requests that rmcp could not read end here too: a known method with parameters of the wrong shape.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let mut known = vec!["tools/call", "tools/list", "initialize", "server/discover", "ping"];
        if is_stateless_era(&context) {
            known.push("subscriptions/listen");
        }
        if known.contains(&request.method.as_str()) {
            let message = format!(
                "the parameters of `{}` do not have the shape that the protocol gives them",
                request.method
            );
            return Err(ErrorData::invalid_params(message, None));
        }
        let message: Cow<'static, str> = request.method.chars().take(100).collect::<String>().into();
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }
}

//! What clients ask, answered.

use std::borrow::Cow;
use std::sync::Arc;

use lifecycle::{CallOutcome, ExecuteError, LifecycleManager, Tool as LoadedTool};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod, CompleteRequestParams, CompleteResult,
    ConstString, ContentBlock, CustomRequest, CustomResult, ErrorCode, ErrorData, Implementation, InitializeResult, JsonObject,
    ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
    ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams, ProtocolVersion,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio::task::JoinHandle;

/// The key under which a server names itself in every result of the stateless era.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Serves the tools of a [`LifecycleManager`]. Clones share it.
#[derive(Clone, Debug)]
pub struct Server {
    manager: Arc<LifecycleManager>,
}

impl Server {
    pub fn new(manager: Arc<LifecycleManager>) -> Self {
        Self { manager }
    }

    fn implementation() -> Implementation {
        Implementation::new("host", env!("CARGO_PKG_VERSION"))
    }

    /// Runs a call as a task of its own: a panic in it is one failed call, and a cancelled request stops the guest.
    async fn run(&self, tool: Arc<LoadedTool>, arguments: Value, context: &RequestContext<RoleServer>) -> CallToolResult {
        let manager = Arc::clone(&self.manager);
        let name = tool.definition.name.clone();
        let mut task = AbortOnDrop(tokio::spawn(async move {
            manager.execute_component_call(&tool, &arguments).await
        }));
        let result = tokio::select! {
            result = &mut task.0 => result,
            // rmcp sends no answer to a request that was cancelled.
            () = context.ct.cancelled() => return failed("the call was cancelled".to_owned()),
        };
        match result {
            Ok(Ok(outcome)) => succeeded(outcome),
            Ok(Err(error)) => failed(error.to_string()),
            Err(error) if error.is_panic() => {
                tracing::error!(tool = %name, "a call panicked");
                failed("the host itself failed in this call; other calls are not affected. Please report this".to_owned())
            }
            Err(_) => failed("the host stopped".to_owned()),
        }
    }
}

/// A call that nobody waits for any more stops.
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
    let content = vec![ContentBlock::text(text)];
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
fn object(schema: &Value) -> Arc<JsonObject> {
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

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = InitializeResult::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Self::implementation();
        info.instructions = self.manager.instructions();
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // One page: several clients never ask for a second.
        let tools = self.manager.tools().iter().map(|tool| definition(tool)).collect();
        let mut result = ListToolsResult::with_all_items(tools);
        result.meta = server_meta(&context);
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.manager.tool(name).ok().map(|tool| definition(&tool))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = self.manager.tool(&request.name).map_err(|error| match error {
            unknown @ ExecuteError::UnknownTool { .. } => ErrorData::invalid_params(unknown.to_string(), None),
            other => ErrorData::internal_error(other.to_string(), None),
        })?;
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let mut result = self.run(tool, arguments, &context).await;
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
    async fn on_custom_request(&self, request: CustomRequest, _: RequestContext<RoleServer>) -> Result<CustomResult, ErrorData> {
        let known = ["tools/call", "tools/list", "initialize", "server/discover", "ping"];
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

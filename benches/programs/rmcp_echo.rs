//! rmcp's own server with a single tool that answers the text it got: what `host` is measured beside. There is no guest, no sandbox and
//! no schema to check, only the protocol.
//!
//! | argument        | transport                                                              |
//! |-----------------|------------------------------------------------------------------------|
//! | none            | `stdio()`, as in rmcp's examples                                       |
//! | `pipes`         | `stdio_pipes()`, its faster one for pipes                              |
//! | `http`          | HTTP at a free port: no sessions, and JSON where an answer is all      |
//! | `http-sessions` | HTTP at a free port, as it is by default: sessions, and answers as events |

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::{Result, bail};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService, stdio, stdio_pipes};
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::net::TcpListener;

#[derive(Clone)]
struct Echo {
    tool: Tool,
}

impl Echo {
    fn new() -> Self {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        let schema = schema.as_object().cloned().unwrap_or_default();
        Self {
            tool: Tool::new("echo", "Returns the text.", schema),
        }
    }
}

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![self.tool.clone()]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match request.arguments.and_then(|mut arguments| arguments.remove("text")) {
            Some(Value::String(text)) => Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into()),
            _ => Err(ErrorData::invalid_params("`text` is missing", None)),
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        None => _ = Echo::new().serve(stdio()).await?.waiting().await?,
        Some("pipes") => _ = Echo::new().serve(stdio_pipes()).await?.waiting().await?,
        Some("http") => {
            let config = StreamableHttpServerConfig::default();
            serve_http(config.with_legacy_session_mode(false).with_json_response(true)).await?;
        }
        Some("http-sessions") => serve_http(StreamableHttpServerConfig::default()).await?,
        Some(other) => bail!("`{other}` is no transport"),
    }
    Ok(())
}

async fn serve_http(config: StreamableHttpServerConfig) -> Result<()> {
    let echo = Echo::new();
    let service = StreamableHttpService::new(move || Ok(echo.clone()), Arc::<LocalSessionManager>::default(), config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    eprintln!("http://{}/mcp", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        // As `host` does: without it, small answers would wait for acknowledgements.
        stream.set_nodelay(true)?;
        let service = service.clone();
        tokio::spawn(async move {
            let answer = service_fn(|request| async { Ok::<_, Infallible>(service.handle(request).await) });
            // A client that goes away is no mistake.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

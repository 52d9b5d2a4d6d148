//! A connection to a server: opened in either era of the protocol, listed to the end, called.

mod pipe;
mod process;
mod web;
mod wire;

use std::collections::HashSet;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientConfig, ClientRequest, ErrorCode, Implementation, ListPromptsRequest,
    ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest, PaginatedRequestParams, ProtocolVersion,
};
use rmcp::service::{ClientInitializeError, PeerRequestOptions, RunningService, ServiceError};
use rmcp::transport::IntoTransport;
use rmcp::{ClientLifecycleMode, RoleClient, serve_client_with_lifecycle};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use self::pipe::Pipe;
use self::process::Process;
use self::wire::Wire;
use crate::{CallError, Catalog, ConnectError, Payloads, Problem, Protocol, ServerInfo, Target};

/// Of one list. A server with more pages than this does not end.
const MAX_PAGES: usize = 1_000;
/// Of one list: more than any model or person could use.
const MAX_ENTRIES: usize = 100_000;
const METHOD_NOT_FOUND: i64 = ErrorCode::METHOD_NOT_FOUND.0 as i64;
/// Of all lists together, as JSON.
const MAX_SIZE: usize = 128 << 20;

/// How a connection is made.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    pub era: Era,
    /// For each of connecting, reading all lists, and calling.
    pub timeout: Duration,
    /// Whom to trust over `https`.
    pub tls: Option<rustls::ClientConfig>,
}

/// Which handshake is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Era {
    /// The one that the server knows.
    #[default]
    Auto,
    /// `server/discover`, since 2026-07-28.
    Modern,
    /// `initialize`.
    Legacy,
}

/// The result of a call, as the server gave it.
#[derive(Clone, Debug)]
pub struct CallResult(pub Value);

/// An open connection.
pub struct Connection {
    service: RunningService<RoleClient, ClientConfig>,
    wire: Wire,
    process: Option<Process>,
    timeout: Duration,
    deadline: Instant,
}

impl Connection {
    /// Connects. A server that is a command is started for it.
    pub async fn open(target: &Target, options: &ConnectOptions) -> Result<Self, ConnectError> {
        let deadline = Instant::now() + options.timeout;
        match target {
            Target::Http(endpoint) => {
                let tls = options.tls.clone();
                let tls = tls.ok_or_else(|| ConnectError::Setup("there are no certificates to trust".to_owned()))?;
                let wire = Wire::over_http();
                let transport = web::transport(endpoint, options.era, tls, wire.clone())?;
                Self::handshake(transport, wire, None, options.era, options.timeout, deadline).await
            }
            Target::Command(command) => {
                let start = async |era| {
                    let (process, stdout, stdin) = Process::start(command)?;
                    let wire = Wire::default();
                    let pipe = Pipe::new(stdout, stdin, wire.clone());
                    Self::handshake(pipe, wire, Some(process), era, options.timeout, deadline).await
                };
                match start(options.era).await {
                    // There are servers that end at a request that they do not know.
                    Err(ConnectError::Ended { .. }) if options.era == Era::Auto => start(Era::Legacy).await,
                    result => result,
                }
            }
        }
    }

    /// Connects to a server within this process.
    pub async fn over(
        read: impl AsyncRead + Unpin + Send + 'static,
        write: impl AsyncWrite + Unpin + Send + 'static,
        options: &ConnectOptions,
    ) -> Result<Self, ConnectError> {
        let deadline = Instant::now() + options.timeout;
        let wire = Wire::default();
        let pipe = Pipe::new(read, write, wire.clone());
        Self::handshake(pipe, wire, None, options.era, options.timeout, deadline).await
    }

    async fn handshake<T, E, A>(
        transport: T,
        wire: Wire,
        mut process: Option<Process>,
        era: Era,
        timeout: Duration,
        deadline: Instant,
    ) -> Result<Self, ConnectError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        let lifecycle = match era {
            Era::Legacy => ClientLifecycleMode::Initialize,
            Era::Modern => ClientLifecycleMode::Discover { preferred_versions },
            Era::Auto => ClientLifecycleMode::Auto {
                preferred_versions,
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
        };
        let mut client = ClientConfig::default();
        client.client_info = Implementation::new("host", env!("CARGO_PKG_VERSION"));
        client.protocol_version = ProtocolVersion::V_2025_11_25;
        let opened = tokio::time::timeout_at(deadline, serve_client_with_lifecycle(client, transport, lifecycle)).await;
        match opened {
            Ok(Ok(service)) => Ok(Self {
                service,
                wire,
                process,
                timeout,
                deadline,
            }),
            Ok(Err(error)) => {
                let ended = has_ended(&error);
                Err(explain(&wire, process.as_mut(), ended, in_words(&error, era)).await)
            }
            Err(_) => Err(timed_out(&wire, timeout, process.as_ref())),
        }
    }

    /// Everything that the server offers. A list that cannot be read is a problem of the catalog.
    pub async fn catalog(&mut self) -> Result<Catalog, ConnectError> {
        self.read(&List::ALL).await
    }

    /// Its tools only: all that a call needs.
    pub async fn tools(&mut self) -> Result<Catalog, ConnectError> {
        self.read(&[List::Tools]).await
    }

    async fn read(&mut self, lists: &[List]) -> Result<Catalog, ConnectError> {
        self.deadline = Instant::now() + self.timeout;
        let server = self.server();
        let mut payloads = Payloads {
            server,
            ..Payloads::default()
        };
        let mut size = 0;
        for &list in lists {
            if !payloads.server.capabilities.contains_key(list.capability()) {
                continue;
            }
            let mut entries = Vec::new();
            let outcome = self.read_list(list, &mut entries, &mut size).await;
            let message = match outcome {
                Ok(()) => None,
                // With a connection that never gave anything there is no catalog.
                Err(CallError::Connection(error)) if size == 0 => return Err(error),
                Err(error) => Some(error.to_string()),
            };
            payloads.problems.extend(message.map(|message| Problem {
                list: list.method().to_owned(),
                message,
            }));
            match list {
                List::Tools => payloads.tools = entries,
                List::Resources => payloads.resources = entries,
                List::ResourceTemplates => payloads.resource_templates = entries,
                List::Prompts => payloads.prompts = entries,
            }
        }
        // Compiling what strangers wrote can take its time.
        let composed = tokio::task::spawn_blocking(|| Catalog::compose(payloads)).await;
        composed.map_err(|error| ConnectError::Setup(error.to_string()))
    }

    /// What the server said of itself when the connection was opened.
    fn server(&self) -> ServerInfo {
        let handshake = self.wire.handshake().unwrap_or_default();
        let object = |key: &str| handshake.get(key).and_then(Value::as_object).cloned();
        let text = |key: &str| handshake.get(key).and_then(Value::as_str).map(str::to_owned);
        // In the newer era it is in the metadata of the answer.
        let meta_info = || {
            let meta = handshake.get("_meta")?;
            meta.get("io.modelcontextprotocol/serverInfo")?.as_object().cloned()
        };
        let supported = handshake.get("supportedVersions").and_then(Value::as_array);
        let negotiated = self.service.peer_info().map(|info| info.protocol_version.to_string());
        ServerInfo {
            info: object("serverInfo").or_else(meta_info).unwrap_or_default(),
            capabilities: object("capabilities").unwrap_or_default(),
            instructions: text("instructions"),
            protocol: Protocol {
                version: text("protocolVersion").or(negotiated),
                supported: supported
                    .into_iter()
                    .flatten()
                    .filter_map(|version| version.as_str().map(str::to_owned))
                    .collect(),
            },
        }
    }

    /// Pages through a list. What was read stays, also when the rest cannot be.
    async fn read_list(&mut self, list: List, entries: &mut Vec<Value>, size: &mut usize) -> Result<(), CallError> {
        let mut cursor: Option<String> = None;
        let mut cursors = HashSet::new();
        for _ in 0..MAX_PAGES {
            let mut page = match self.request(list.request(cursor)).await {
                Ok(Value::Object(page)) => page,
                Ok(_) => return Err(CallError::Answer("it is no object".to_owned())),
                // Many servers with resources have no templates, and some say so like this.
                Err(CallError::Refused { code, .. }) if code == METHOD_NOT_FOUND && list.is_optional() => return Ok(()),
                Err(error) => return Err(error),
            };
            *size += page.values().map(|value| value.to_string().len()).sum::<usize>();
            let Some(Value::Array(mut more)) = page.shift_remove(list.key()) else {
                return Err(CallError::Answer(format!("it has no list `{}`", list.key())));
            };
            let room = MAX_ENTRIES.saturating_sub(entries.len());
            let is_full = more.len() > room || *size > MAX_SIZE;
            more.truncate(room);
            entries.append(&mut more);
            let read = entries.len();
            if is_full {
                return Err(CallError::Endless(format!("the list is too long; {read} entries were read")));
            }
            // An empty one is what some write for none.
            let next = page
                .get("nextCursor")
                .and_then(Value::as_str)
                .filter(|cursor| !cursor.is_empty());
            cursor = next.map(str::to_owned);
            match &cursor {
                None => return Ok(()),
                Some(next) if !cursors.insert(next.clone()) => {
                    return Err(CallError::Endless(format!(
                        "the pages go in circles; {read} entries were read"
                    )));
                }
                Some(_) => {}
            }
        }
        let read = entries.len();
        Err(CallError::Endless(format!(
            "the list has more than {MAX_PAGES} pages; {read} entries were read"
        )))
    }

    /// Calls a tool.
    pub async fn call(&mut self, tool: &str, arguments: Map<String, Value>) -> Result<CallResult, CallError> {
        self.deadline = Instant::now() + self.timeout;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let result = self
            .request(ClientRequest::CallToolRequest(CallToolRequest::new(params)))
            .await?;
        if !result.is_object() {
            return Err(CallError::Answer("it is no object".to_owned()));
        }
        if result.get("resultType").and_then(Value::as_str) == Some("input_required") {
            return Err(CallError::InputRequired);
        }
        Ok(CallResult(result))
    }

    /// Asks, and takes the answer as it stood on the wire.
    async fn request(&mut self, request: ClientRequest) -> Result<Value, CallError> {
        let asked = async {
            let handle = self
                .service
                .send_cancellable_request(request, PeerRequestOptions::no_options())
                .await?;
            let id = handle.id.clone();
            let answer = handle.await_response().await;
            match self.wire.take(&id) {
                Some(result) => Ok(Some(result)),
                None => answer.map(|_| None),
            }
        };
        let problem = match tokio::time::timeout_at(self.deadline, asked).await {
            Ok(Ok(Some(result))) => return Ok(result),
            Ok(Ok(None)) => return Err(CallError::Answer("it has no result".to_owned())),
            Ok(Err(ServiceError::McpError(error))) => {
                if let Some(trouble) = self.wire.take_trouble() {
                    return Err(trouble.into());
                }
                return Err(CallError::Refused {
                    code: i64::from(error.code.0),
                    message: crate::plain(&error.message),
                });
            }
            Ok(Err(error)) => crate::plain_line(&error.to_string()),
            Err(_) => return Err(timed_out(&self.wire, self.timeout, self.process.as_ref()).into()),
        };
        let ended = self.service.is_transport_closed();
        Err(explain(&self.wire, self.process.as_mut(), ended, problem).await.into())
    }

    /// Says goodbye. A process has a moment to end by itself.
    pub async fn close(self) {
        let Self { service, process, .. } = self;
        // A server that does not let go is ended below, or left to itself.
        let _ = tokio::time::timeout(Duration::from_secs(2), service.cancel()).await;
        if let Some(process) = process {
            process.end().await;
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// The lists of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Tools,
    Resources,
    ResourceTemplates,
    Prompts,
}

impl List {
    const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::ResourceTemplates, Self::Prompts];

    fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources | Self::ResourceTemplates => "resources",
            Self::Prompts => "prompts",
        }
    }

    fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::ResourceTemplates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    fn is_optional(self) -> bool {
        matches!(self, Self::Resources | Self::ResourceTemplates)
    }

    fn request(self, cursor: Option<String>) -> ClientRequest {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        match self {
            Self::Tools => ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params)),
            Self::Resources => ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(params)),
            Self::ResourceTemplates => {
                ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::with_param(params))
            }
            Self::Prompts => ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params)),
        }
    }
}

fn has_ended(error: &ClientInitializeError) -> bool {
    use ClientInitializeError::{ConnectionClosed, LegacyFallbackFailed, TransportError};
    match error {
        ConnectionClosed(_) | TransportError { .. } => true,
        LegacyFallbackFailed { fallback, .. } => has_ended(fallback),
        _ => false,
    }
}

/// What went wrong when the connection was opened.
fn in_words(error: &ClientInitializeError, era: Era) -> String {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => in_words(fallback, era),
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection without an answer".to_owned(),
        ClientInitializeError::JsonRpcError(error) if era == Era::Modern => {
            let message = crate::plain_line(&error.message);
            format!("{message}\nhint: it may be an older server; leave `--era` out")
        }
        ClientInitializeError::JsonRpcError(error) => crate::plain_line(&error.message),
        other => crate::plain_line(&other.to_string()),
    }
}

/// The best that is known about why there is no answer.
async fn explain(wire: &Wire, process: Option<&mut Process>, ended: bool, problem: String) -> ConnectError {
    if let Some(trouble) = wire.take_trouble() {
        return trouble;
    }
    match process {
        Some(process) if ended => ConnectError::Ended {
            status: process.status().await,
            stderr: process.stderr(),
        },
        _ => ConnectError::Protocol { problem },
    }
}

fn timed_out(wire: &Wire, limit: Duration, process: Option<&Process>) -> ConnectError {
    wire.take_trouble().unwrap_or_else(|| ConnectError::Timeout {
        limit,
        stderr: process.map(Process::stderr).unwrap_or_default(),
    })
}

//! The short road of a call, and of a list of tools.
//!
//! rmcp's loop hands a request from task to task: to one that handles it, back to the loop, to one that sends the answer. That takes
//! longer than most guests do. A transport that knows the session takes these past the loop. What answers them is the same:
//! rmcp's `handle_request`, with all that it checks, and the handler behind it. A call in which there is nothing for rmcp to check, of a
//! tool that can say nothing but its answer, goes to the handler at once.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::FutureExt;
use lifecycle::Tool;
use rmcp::model::{
    CallToolResponse, ClientRequest, ErrorData, GetExtensions, GetMeta, JsonRpcMessage, JsonRpcRequest, ProtocolVersion, RequestId,
    RequestMetaObject, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{RoleServer, Service};
use tokio::task::coop::unconstrained;
use tokio_util::sync::CancellationToken;

use crate::handler::{HOST_FAILED, Session};
use crate::message::ToolCall;

/// A session in which calls can be made.
#[derive(Clone)]
pub(crate) struct Direct {
    session: Arc<Session>,
    peer: Peer<RoleServer>,
    /// Whether it was opened by `initialize`, so that not every request has to say everything.
    is_initialized: bool,
}

/// What a client is told when it asks for tools, as long as this is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) era: Era,
    /// Of what is offered.
    pub(crate) version: u64,
}

/// How a call goes whose tool can say nothing but its answer, and to which rmcp would have nothing to say.
pub(crate) struct Silent {
    tool: Arc<Tool>,
    era: Era,
}

/// A request that has begun.
pub(crate) struct Begun {
    pub(crate) id: RequestId,
    pub(crate) cancelled: CancellationToken,
    pub(crate) answer: Answer,
}

/// What comes of it: the message for the client.
pub(crate) type Answer = Pin<Box<dyn Future<Output = ServerJsonRpcMessage> + Send>>;

impl Direct {
    /// The road into a session that is open.
    pub(crate) fn new(session: Arc<Session>, peer: Peer<RoleServer>) -> Self {
        Self {
            is_initialized: peer.peer_info().is_some(),
            session,
            peer,
        }
    }

    /// Whether a request calls a tool.
    pub(crate) fn is_call(request: &ClientRequest) -> bool {
        matches!(request, ClientRequest::CallToolRequest(_))
    }

    /// Which list a request asks for, if it asks for tools and rmcp would find nothing wrong with it.
    pub(crate) fn list(&self, request: &ClientRequest) -> Option<List> {
        let ClientRequest::ListToolsRequest(_) = request else {
            return None;
        };
        Some(List {
            era: self.era(Some(request.get_meta()))?,
            version: self.session.version(),
        })
    }

    /// Begins a call.
    pub(crate) fn begin(&self, call: ToolCall) -> Begun {
        match self.silent(&call) {
            Some(silent) => self.begin_silent(silent, call),
            None => self.begin_request(call.into_request()),
        }
    }

    /// The short road of a call, if nobody can tell whether it is made before, after or beside those that came with it, so many at a time.
    pub(crate) fn independent(&self, call: &ToolCall, at_a_time: u32) -> Option<Silent> {
        let silent = self.silent(call)?;
        self.session.is_independent(&silent.tool, at_a_time).then_some(silent)
    }

    /// The short road of a call, if its tool can say nothing but the answer and rmcp would have nothing to say.
    fn silent(&self, call: &ToolCall) -> Option<Silent> {
        let tool = self.session.silent_tool(&call.name)?;
        let era = self.era(call.meta.as_ref())?;
        Some(Silent { tool, era })
    }

    /// Whose request it is, if rmcp would find nothing wrong with what it says of itself.
    fn era(&self, meta: Option<&RequestMetaObject>) -> Option<Era> {
        let newest = &ProtocolVersion::V_2026_07_28;
        let Some((meta, version)) = meta.and_then(|meta| Some((meta, meta.protocol_version()?))) else {
            let opened_by = self.peer.peer_info().filter(|_| self.is_initialized)?;
            return (opened_by.protocol_version.as_str() < newest.as_str()).then_some(Era::Session);
        };
        let is_whole = version == *newest && meta.missing_required_keys(newest).is_empty();
        is_whole.then_some(Era::Stateless)
    }

    /// Begins a call on the short road that was found for it.
    pub(crate) fn begin_silent(&self, Silent { tool, era }: Silent, call: ToolCall) -> Begun {
        let ToolCall {
            id,
            name,
            arguments,
            meta,
        } = call;
        let mut context = RequestContext::new(id.clone(), self.peer.clone());
        context.meta = meta.unwrap_or_default();
        let cancelled = context.ct.clone();
        let session = Arc::clone(&self.session);
        let result = async move {
            let arguments = arguments.unwrap_or_default();
            let response = session.answer_silent(tool, &name, arguments, &context).await?;
            Ok(era.result(response))
        };
        Begun::new(id, cancelled, result)
    }

    /// Begins a request, as rmcp's loop would.
    pub(crate) fn begin_request(&self, JsonRpcRequest { id, mut request, .. }: JsonRpcRequest<ClientRequest>) -> Begun {
        let mut context = RequestContext::new(id.clone(), self.peer.clone());
        context.meta = std::mem::take(request.get_meta_mut());
        context.extensions = std::mem::take(request.extensions_mut());
        let cancelled = context.ct.clone();
        let session = Arc::clone(&self.session);
        Begun::new(id, cancelled, async move { session.handle_request(request, context).await })
    }
}

impl Begun {
    fn new(
        id: RequestId,
        cancelled: CancellationToken,
        result: impl Future<Output = Result<ServerResult, ErrorData>> + Send + 'static,
    ) -> Self {
        let answered = id.clone();
        let answer = Box::pin(async move {
            match AssertUnwindSafe(result).catch_unwind().await {
                Ok(Ok(result)) => JsonRpcMessage::response(result, answered),
                Ok(Err(error)) => JsonRpcMessage::error(error, Some(answered)),
                Err(_) => JsonRpcMessage::error(ErrorData::internal_error(HOST_FAILED, None), Some(answered)),
            }
        });
        Self { id, cancelled, answer }
    }

    /// The answer, if it is there without waiting for anything.
    pub(crate) async fn at_once(&mut self) -> Option<ServerJsonRpcMessage> {
        // Calls that came before it should not make this one look long.
        let mut answer = unconstrained(self.answer.as_mut());
        let polled = std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut answer).poll(context))).await;
        match polled {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }
}

/// Whose request it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// One of a session that began with `initialize`.
    Session,
    /// One that says everything itself.
    Stateless,
}

impl Era {
    /// A result as clients of this era know it.
    fn result(self, response: CallToolResponse) -> ServerResult {
        let mut result = ServerResult::from(response);
        if self == Self::Session {
            result.strip_result_type_for_legacy_peer();
        }
        result
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use lifecycle::{Config, LifecycleManager};
    use rmcp::service::{RunningService, serve_directly};
    use serde_json::{Value, json};

    use super::*;
    use crate::Server;

    const TOOL: &str = "test_every_type_echo_echo_u8";
    const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

    /// What serves a component, and keeps nothing.
    pub(crate) fn serving(name: &str, config: Config) -> LifecycleManager {
        let manager = LifecycleManager::new(Config { home: None, ..config }).unwrap();
        manager.ensure_component_loaded(&test_guests::path(name).unwrap()).unwrap();
        manager
    }

    /// The road into a session that a client of this version opened, or nobody; and what keeps it open.
    pub(crate) fn opened(server: &Server, version: Option<&str>) -> (Direct, RunningService<RoleServer, Arc<Session>>) {
        let session = Arc::new(Session::new(
            server.clone(),
            CancellationToken::new(),
            CancellationToken::new(),
        ));
        let client =
            |version| json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let opened_by = version.map(|version| serde_json::from_value(client(version)).unwrap());
        let running = serve_directly(Arc::clone(&session), tokio::io::duplex(1), opened_by);
        (Direct::new(session, running.peer().clone()), running)
    }

    /// What requests say of themselves, and whose call that makes them where nobody, or somebody, opened a session.
    fn said() -> Vec<(Option<Value>, [Option<Era>; 2])> {
        let whole = json!({VERSION: "2026-07-28", CAPABILITIES: {}});
        let session = [None, Some(Era::Session)];
        vec![
            (None, session),
            (Some(json!({})), session),
            (Some(json!({"progressToken": 1, "other": "a"})), session),
            (Some(json!({CAPABILITIES: {}})), session),
            (Some(whole), [Some(Era::Stateless); 2]),
            (Some(json!({VERSION: "2026-07-28"})), [None; 2]),
            (Some(json!({VERSION: "2026-07-28", CAPABILITIES: 1})), [None; 2]),
            (Some(json!({VERSION: "2025-11-25", CAPABILITIES: {}})), [None; 2]),
            (Some(json!({VERSION: "2027-01-01", CAPABILITIES: {}})), [None; 2]),
        ]
    }

    #[tokio::test]
    async fn both_roads_lead_to_the_same_answer() {
        let server = Server::new(Arc::new(serving("every-type", Config::default())));
        let calls = [
            (TOOL, json!({"value": 5})),
            (TOOL, json!({"value": 500})),
            ("nothing_of_this_name", json!({})),
        ];
        for version in [
            None,
            Some("2024-11-05"),
            Some("2025-11-25"),
            Some("2026-07-28"),
            Some("2099-01-01"),
        ] {
            let (direct, _running) = opened(&server, version);
            for (meta, expected) in said() {
                let of_session = RequestMetaObject::from(meta.clone().unwrap_or_default().as_object().cloned().unwrap_or_default());
                let is_older = version.is_some_and(|version| version < "2026-07-28");
                let found = direct.era(meta.as_ref().map(|_| &of_session));
                assert_eq!(found, expected[usize::from(is_older)], "{version:?} {meta:?}");
                for (name, arguments) in &calls {
                    let mut line = json!({
                        "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": name, "arguments": arguments},
                    });
                    if let Some(meta) = &meta {
                        line["params"]["_meta"] = meta.clone();
                    }
                    let line = line.to_string();
                    let read = || ToolCall::read(line.as_bytes()).unwrap();
                    let short = direct.begin(read()).answer.await;
                    let long = direct.begin_request(read().into_request()).answer.await;
                    assert_eq!(json!(short), json!(long), "{version:?} {line}");
                }
            }
        }
    }
}

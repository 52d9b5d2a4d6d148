//! The short road of a call.
//!
//! rmcp's loop hands a request from task to task: to one that handles it, back to the loop, to one that sends the answer. That takes
//! longer than most guests do. A transport that knows the session takes calls of tools past the loop. What answers them is the same:
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
use tokio_util::sync::CancellationToken;

use crate::handler::{HOST_FAILED, Session};
use crate::message::ToolCall;

/// A session in which calls can be made.
#[derive(Clone)]
pub(crate) struct Direct {
    pub(crate) session: Arc<Session>,
    pub(crate) peer: Peer<RoleServer>,
}

/// A call that has begun.
pub(crate) struct Begun {
    pub(crate) id: RequestId,
    pub(crate) cancelled: CancellationToken,
    pub(crate) answer: Answer,
}

/// What comes of a call: the message for the client.
pub(crate) type Answer = Pin<Box<dyn Future<Output = ServerJsonRpcMessage> + Send>>;

impl Direct {
    /// Whether a request can take this road.
    pub(crate) fn takes(request: &ClientRequest) -> bool {
        matches!(request, ClientRequest::CallToolRequest(_))
    }

    /// Begins a call.
    pub(crate) fn begin(&self, call: ToolCall) -> Begun {
        let silent = self.session.silent_tool(&call.name);
        match silent.zip(era(call.meta.as_ref(), &self.peer)) {
            Some((tool, era)) => self.begin_silent(tool, era, call),
            None => self.begin_request(call.into_request()),
        }
    }

    /// Begins a call of a tool that can say nothing but its answer, and to which rmcp would have nothing to say.
    fn begin_silent(&self, tool: Arc<Tool>, era: Era, call: ToolCall) -> Begun {
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

    /// Begins a call, as rmcp's loop would.
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
        let polled = std::future::poll_fn(|context| Poll::Ready(self.answer.as_mut().poll(context))).await;
        match polled {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }
}

/// Whose call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Era {
    /// One of a session that began with `initialize`.
    Session,
    /// One that says everything itself.
    Stateless,
}

/// Whose call it is, if rmcp would find nothing wrong with what it says of itself.
fn era(meta: Option<&RequestMetaObject>, peer: &Peer<RoleServer>) -> Option<Era> {
    let newest = &ProtocolVersion::V_2026_07_28;
    match meta.and_then(RequestMetaObject::protocol_version) {
        None => {
            let opened_by = peer.peer_info()?;
            (opened_by.protocol_version.as_str() < newest.as_str()).then_some(Era::Session)
        }
        Some(version) => {
            let is_whole = version == *newest && meta.is_some_and(|meta| meta.missing_required_keys(newest).is_empty());
            is_whole.then_some(Era::Stateless)
        }
    }
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

//! The short road of a call.
//!
//! rmcp's loop hands a request from task to task: to one that handles it, back to the loop, to one that sends the answer. That takes
//! longer than most guests do. A transport that knows the session takes calls of tools past the loop. What answers them is the same:
//! rmcp's `handle_request`, with all that it checks, and the handler behind it.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::FutureExt;
use rmcp::model::{
    ClientRequest, ErrorData, GetExtensions, GetMeta, JsonRpcMessage, JsonRpcRequest, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{RoleServer, Service};
use tokio_util::sync::CancellationToken;

use crate::handler::{HOST_FAILED, Session};

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

    /// Begins a call, as rmcp's loop would.
    pub(crate) fn begin(&self, JsonRpcRequest { id, mut request, .. }: JsonRpcRequest<ClientRequest>) -> Begun {
        let mut context = RequestContext::new(id.clone(), self.peer.clone());
        context.meta = std::mem::take(request.get_meta_mut());
        context.extensions = std::mem::take(request.extensions_mut());
        let cancelled = context.ct.clone();
        let session = Arc::clone(&self.session);
        let answered = id.clone();
        let answer = Box::pin(async move {
            match AssertUnwindSafe(session.handle_request(request, context))
                .catch_unwind()
                .await
            {
                Ok(Ok(result)) => JsonRpcMessage::response(result, answered),
                Ok(Err(error)) => JsonRpcMessage::error(error, Some(answered)),
                Err(_) => JsonRpcMessage::error(ErrorData::internal_error(HOST_FAILED, None), Some(answered)),
            }
        });
        Begun { id, cancelled, answer }
    }
}

impl Begun {
    /// The answer, if it is there without waiting for anything.
    pub(crate) async fn at_once(&mut self) -> Option<ServerJsonRpcMessage> {
        let polled = std::future::poll_fn(|context| Poll::Ready(self.answer.as_mut().poll(context))).await;
        match polled {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }
}

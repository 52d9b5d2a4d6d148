//! The words of the server, kept beside what rmcp makes of them.
//!
//! rmcp reads answers into types of its own. What those types do not know is gone, and one entry that they do not fit spoils its whole
//! list. So the transports keep the answers as they stood on the wire, by the id of the request, and rmcp only says when one is there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage};
use serde_json::{Map, Value};

use crate::ConnectError;

/// The largest message that is read.
pub(crate) const MAX_MESSAGE: usize = 64 << 20;

/// What the transports share with the connection.
#[derive(Clone, Default)]
pub(crate) struct Wire(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The requests that were sent, with their answers. What nobody asked for is not kept.
    answers: HashMap<RequestId, Option<Value>>,
    /// The requests that open the connection.
    openings: Vec<RequestId>,
    handshake: Option<Value>,
    /// Why the connection broke, in more detail than rmcp can know.
    trouble: Option<ConnectError>,
}

impl Wire {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request that is about to be sent.
    pub(crate) fn sending(&self, message: &ClientJsonRpcMessage) {
        let ClientJsonRpcMessage::Request(request) = message else {
            return;
        };
        let mut state = self.state();
        match &request.request {
            ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_) => state.openings.push(request.id.clone()),
            _ => {
                state.answers.insert(request.id.clone(), None);
            }
        }
    }

    /// Keeps what a message says, and gives it as rmcp is to read it. `None` is no message at all.
    pub(crate) fn received(&self, json: &[u8]) -> Option<Value> {
        let mut message: Value = match serde_json::from_slice(json) {
            Ok(message) => message,
            Err(error) => {
                // The parser does not follow what is deeper than a stack has room for.
                if error.to_string().starts_with("recursion limit") {
                    self.fail(ConnectError::TooDeep);
                }
                return None;
            }
        };
        let id: Option<RequestId> = message.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
        let result = message.get("result");
        if let (Some(id), Some(result)) = (&id, result) {
            let mut state = self.state();
            if let Some(answer) = state.answers.get_mut(id) {
                answer.get_or_insert_with(|| result.clone());
            } else if state.openings.contains(id) {
                state.handshake = Some(result.clone());
                drop(state);
                if let Some(result) = message.get_mut("result") {
                    complete(result);
                }
            }
        }
        Some(message)
    }

    /// The same as a message of rmcp.
    pub(crate) fn message(&self, json: &[u8]) -> Option<ServerJsonRpcMessage> {
        let message = self.received(json)?;
        let is_answer = message.get("result").is_some() || message.get("error").is_some();
        let id = message.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
        serde_json::from_value(message).ok().or_else(|| {
            // Whoever waits for it should not wait for ever.
            let error = ErrorData::internal_error("the answer is not one of the protocol", None);
            is_answer.then(|| ServerJsonRpcMessage::error(error, id))
        })
    }

    /// The result of a request, once.
    pub(crate) fn take(&self, id: &RequestId) -> Option<Value> {
        self.state().answers.remove(id).flatten()
    }

    /// The result of `initialize` or `server/discover`.
    pub(crate) fn handshake(&self) -> Option<Value> {
        self.state().handshake.clone()
    }

    /// Notes why the connection breaks. The first reason is the real one.
    pub(crate) fn fail(&self, trouble: ConnectError) {
        self.state().trouble.get_or_insert(trouble);
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.state().trouble.is_some()
    }

    pub(crate) fn trouble(&self) -> Option<ConnectError> {
        self.state().trouble.take()
    }
}

/// Gives the result of `initialize` what rmcp insists on. That a server does not say its name is no reason not to talk to it.
fn complete(result: &mut Value) {
    let Some(result) = result.as_object_mut().filter(|result| result.contains_key("protocolVersion")) else {
        return;
    };
    let mut object = |key: &str| {
        let value = result.entry(key).or_insert(Value::Null);
        if !value.is_object() {
            *value = Value::Object(Map::new());
        }
    };
    object("capabilities");
    object("serverInfo");
    if let Some(info) = result.get_mut("serverInfo").and_then(Value::as_object_mut) {
        for key in ["name", "version"] {
            let value = info.entry(key).or_insert(Value::Null);
            if !value.is_string() {
                *value = "".into();
            }
        }
    }
}

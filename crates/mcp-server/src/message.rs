//! What a client sent, read: the same for a line and for the body of a request.

use component2json::UniqueObject;
use rmcp::model::{
    CallToolRequest, CallToolRequestMethod, CallToolRequestParams, ClientJsonRpcMessage, ClientNotification, ClientRequest,
    ErrorData, JsonObject, JsonRpcRequest, JsonRpcVersion2_0, RequestId, RequestMetaObject, ServerJsonRpcMessage,
};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a text turned out to be.
pub(crate) enum Received {
    Call(ToolCall),
    Message(Box<ClientJsonRpcMessage>),
    Ignored,
    Wrong { id: Option<RequestId>, error: ErrorData },
}

impl Received {
    /// Whether it wants an answer that is yet to be found.
    pub(crate) fn is_request(&self) -> bool {
        match self {
            Self::Call(_) => true,
            Self::Message(message) => matches!(**message, ClientJsonRpcMessage::Request(_)),
            Self::Ignored | Self::Wrong { .. } => false,
        }
    }
}

/// A message without what may stand around it: a byte order mark and white space.
pub(crate) fn trimmed(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text).trim_ascii()
}

pub(crate) fn parse(text: &[u8]) -> Received {
    let text = trimmed(text);
    if text.is_empty() {
        return Received::Ignored;
    }
    if let Some(call) = ToolCall::read(text) {
        return Received::Call(call);
    }
    match component2json::check_json(text) {
        Err(error) if error.is_data() => {
            return Received::Wrong {
                id: id_of(text),
                error: ErrorData::invalid_request(error.to_string(), None),
            };
        }
        // That will be told better below.
        _ => {}
    }
    match serde_json::from_slice::<ClientJsonRpcMessage>(text) {
        Ok(message) => Received::Message(Box::new(message)),
        Err(error) => explain(text, &error),
    }
}

/// A call of a tool, and nothing besides.
pub(crate) struct ToolCall {
    pub(crate) id: RequestId,
    pub(crate) name: String,
    pub(crate) arguments: Option<JsonObject>,
    pub(crate) meta: Option<RequestMetaObject>,
}

impl ToolCall {
    /// Reads one in one go: rmcp's reader tries one kind of message after the other. Whatever is not exactly this, it reads.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let Call { id, params, .. } = serde_json::from_slice(text).ok()?;
        Some(Self {
            id,
            name: params.name,
            arguments: params.arguments.map(|arguments| arguments.0),
            meta: params.meta.map(|meta| RequestMetaObject::from(meta.0)),
        })
    }

    /// As rmcp knows it.
    pub(crate) fn into_request(self) -> JsonRpcRequest<ClientRequest> {
        let mut params = CallToolRequestParams::new(self.name);
        params.arguments = self.arguments;
        let mut request = CallToolRequest::new(params);
        if let Some(meta) = self.meta {
            request.extensions.insert(meta);
        }
        JsonRpcRequest::new(self.id, request.into())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    #[serde(rename = "jsonrpc")]
    _jsonrpc: JsonRpcVersion2_0,
    id: RequestId,
    #[serde(rename = "method")]
    _method: CallToolRequestMethod,
    params: CallParams,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallParams {
    #[serde(rename = "_meta")]
    meta: Option<UniqueObject>,
    name: String,
    arguments: Option<UniqueObject>,
}

/// The request that a message of ours answers.
pub(crate) fn answered_by(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    match message {
        ServerJsonRpcMessage::Response(response) => Some(&response.id),
        ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

/// The request that a client takes back with a message. What is cancelled is not answered.
pub(crate) fn cancelled_by(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        ClientJsonRpcMessage::Notification(notification) => match &notification.notification {
            ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.as_ref(),
            _ => None,
        },
        _ => None,
    }
}

/// The id of the request that a text is, where it can be read.
pub(crate) fn id_of(text: &[u8]) -> Option<RequestId> {
    Envelope::read(text)?.id()
}

/// What can be read of a message that is none.
#[derive(Deserialize)]
struct Envelope {
    /// A null id is there, and wrong; only a message without any is a notification.
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    method: Option<Value>,
    jsonrpc: Option<Value>,
}

impl Envelope {
    /// Unknown fields are skipped without recursion, so this reads also what nests too deep to be parsed.
    fn read(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    fn id(&self) -> Option<RequestId> {
        serde_json::from_value(self.id.clone()?).ok()
    }

    fn is_request(&self) -> bool {
        matches!(&self.method, Some(Value::String(_))) && self.jsonrpc.as_ref().is_some_and(|version| version == "2.0")
    }
}

/// Why a text is no message, with the id of the request it was to be, where that can be read.
fn explain(text: &[u8], error: &serde_json::Error) -> Received {
    let envelope = Envelope::read(text);
    let is_json = serde_json::from_slice::<IgnoredAny>(text).is_ok();
    match (envelope, is_json && error.is_data()) {
        // A notification that nobody knows is no mistake.
        (
            Some(Envelope {
                id: None,
                method: Some(Value::String(_)),
                ..
            }),
            _,
        ) => Received::Ignored,
        (envelope, false) => Received::Wrong {
            id: envelope.as_ref().and_then(Envelope::id),
            error: ErrorData::parse_error(format!("the message is not JSON that can be read: {error}"), None),
        },
        // All is well but for the parameters.
        (Some(envelope), true) if envelope.is_request() && envelope.id().is_some() => Received::Wrong {
            id: envelope.id(),
            error: ErrorData::invalid_params("the parameters must be an object", None),
        },
        (envelope, true) => {
            let problem = if text.starts_with(b"[") {
                "batches are not part of the protocol"
            } else {
                "not a JSON-RPC 2.0 message"
            };
            Received::Wrong {
                id: envelope.as_ref().and_then(Envelope::id),
                error: ErrorData::invalid_request(problem, None),
            }
        }
    }
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// An error that belongs to no request that we could tell: JSON-RPC wants its id to be null, where rmcp would leave it out.
#[derive(Serialize)]
pub(crate) struct Orphan {
    jsonrpc: &'static str,
    id: Option<RequestId>,
    error: ErrorData,
}

impl Orphan {
    pub(crate) fn new(id: Option<RequestId>, error: ErrorData) -> Self {
        Self {
            jsonrpc: "2.0",
            id,
            error,
        }
    }
}

//! The words of the server, kept beside what rmcp makes of them.
//!
//! rmcp reads answers into types of its own. What those types do not know is gone, and one entry that they do not fit spoils its whole
//! list. So the transports keep the answers as they stood on the wire, by the id of the request, and rmcp only says when one is there.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage};
use serde_json::{Map, Value};

use crate::ConnectError;

/// The largest message that is read.
pub(crate) const MAX_MESSAGE: usize = 16 << 20;

/// What the transports share with the connection.
#[derive(Clone, Default)]
pub(crate) struct Wire(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The requests that were sent, with their answers. What nobody asked for is not kept.
    answers: HashMap<RequestId, Option<Value>>,
    over_http: bool,
    /// The requests for tools over HTTP, where rmcp makes headers of arguments by what the tools say.
    tool_lists: HashSet<RequestId>,
    /// The requests that open the connection.
    openings: Vec<RequestId>,
    handshake: Option<Value>,
    /// Why the connection broke, in more detail than rmcp can know.
    trouble: Option<ConnectError>,
}

impl Wire {
    pub(crate) fn over_http() -> Self {
        let wire = Self::default();
        wire.state().over_http = true;
        wire
    }

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
            other => {
                if state.over_http && matches!(other, ClientRequest::ListToolsRequest(_)) {
                    state.tool_lists.insert(request.id.clone());
                }
                state.answers.insert(request.id.clone(), None);
            }
        }
    }

    /// Keeps what a message says, and gives it as rmcp is to read it. `None` is no message at all.
    pub(crate) fn received(&self, json: &[u8]) -> Option<Value> {
        let parsed = serde_json::from_slice(json).or_else(|error| match mended(json) {
            Some(mended) => serde_json::from_slice(&mended),
            None => Err(error),
        });
        let mut message: Value = match parsed {
            Ok(message) => message,
            Err(error) => {
                // The parser does not follow what is deeper than a stack has room for.
                if error.to_string().starts_with("recursion limit") {
                    self.fail(ConnectError::TooDeep);
                } else if looks_like_message(json) {
                    let problem = error.to_string();
                    self.fail(ConnectError::Unreadable { problem });
                }
                return None;
            }
        };
        let id: Option<RequestId> = message.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
        if let (Some(id), Some(result)) = (&id, message.get_mut("result")) {
            let mut state = self.state();
            // Of all others rmcp only has to know that they are there, and they may be large.
            let is_read_again = state.tool_lists.contains(id);
            if let Some(answer) = state.answers.get_mut(id) {
                let kept = if is_read_again {
                    result.clone()
                } else {
                    std::mem::replace(result, Value::Object(Map::new()))
                };
                answer.get_or_insert(kept);
            } else if state.openings.contains(id) {
                state.handshake = Some(result.clone());
                complete(result);
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

    pub(crate) fn take_trouble(&self) -> Option<ConnectError> {
        self.state().trouble.take()
    }
}

/// Would a message be expected to begin like this? Servers print other things as well.
fn looks_like_message(line: &[u8]) -> bool {
    let is_object = line.trim_ascii_start().starts_with(b"{");
    is_object && line.windows(b"\"jsonrpc\"".len()).any(|window| window == b"\"jsonrpc\"")
}

/// With a replacement character for every half of a character that stands alone: what is left of an emoji when somebody cuts a text.
/// `None` if there is none.
fn mended(json: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| {
        let escape = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()
    };
    let mut mended = Vec::with_capacity(json.len());
    let mut found = false;
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        let length = match (byte, unit(at)) {
            (b'\\', Some(0xD800..=0xDBFF)) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => 12,
            (b'\\', Some(0xD800..=0xDFFF)) => {
                mended.extend_from_slice(b"\\ufffd");
                found = true;
                at += 6;
                continue;
            }
            // An escaped backslash begins no other escape.
            (b'\\', None) => 2,
            _ => 1,
        };
        mended.extend_from_slice(
            json.get(at..at + length)
                .unwrap_or_else(|| json.get(at..).unwrap_or_default()),
        );
        at += length;
    }
    found.then_some(mended)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_characters_are_mended() {
        let cases = [
            (r#""a\ud83d""#, Some(r#""a\ufffd""#)),
            (r#""\ude00b""#, Some(r#""\ufffdb""#)),
            (r#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#)),
            (r#""\ud83d\ude00""#, None),
            (r#""\\ud83d""#, None),
            (r#""\u12"#, None),
            (r#""\"#, None),
        ];
        for (json, expected) in cases {
            assert_eq!(mended(json.as_bytes()).as_deref(), expected.map(str::as_bytes), "{json}");
        }
    }
}

//! A JSON-RPC request that is asked again and again, as it goes over the wire. Only its id changes, in place: what is measured is who
//! answers, not who asks.

use std::ops::Range;

use serde_json::{Value, json};

pub(crate) const SESSION_VERSION: &str = "2025-11-25";
pub(crate) const STATELESS_VERSION: &str = "2026-07-28";

/// All ids have the length of this one, so that nothing else of a question moves.
const FIRST_ID: u64 = 1_000_000_000;

/// The two ways of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// `initialize` opens a session.
    Session,
    /// Every request stands alone.
    Stateless,
}

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: &'static str,
    pub(crate) params: Value,
}

impl Asked {
    pub(crate) fn new(method: &'static str, params: Value) -> Self {
        Self { method, params }
    }

    pub(crate) fn call(tool: &str, arguments: &Value) -> Self {
        Self::new("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// With what every request says of its client where there is no session.
    #[must_use]
    pub(crate) fn of_era(mut self, era: Era) -> Self {
        if era == Era::Stateless {
            self.params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        self
    }
}

/// The first thing that a client asks.
pub(crate) fn opening(era: Era) -> Asked {
    match era {
        Era::Session => {
            let client = json!({"name": "host-bench", "version": "1"});
            let params = json!({"protocolVersion": SESSION_VERSION, "capabilities": {}, "clientInfo": client});
            Asked::new("initialize", params)
        }
        Era::Stateless => Asked::new("server/discover", json!({})).of_era(era),
    }
}

/// What a client says once its session is open.
pub(crate) fn initialized() -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()
}

pub(crate) struct Question {
    bytes: Vec<u8>,
    id: Range<usize>,
    last_id: u64,
}

impl Question {
    /// As a line.
    pub(crate) fn line(asked: &Asked) -> Self {
        let mut question = Self::after(|_| String::new(), asked);
        question.bytes.push(b'\n');
        question
    }

    /// After a head that tells the length of the message.
    pub(crate) fn after(head: impl FnOnce(usize) -> String, asked: &Asked) -> Self {
        let before = r#"{"jsonrpc":"2.0","id":"#;
        let after = format!(r#","method":"{}","params":{}}}"#, asked.method, asked.params);
        let first = FIRST_ID.to_string();
        let mut bytes = head(before.len() + first.len() + after.len()).into_bytes();
        bytes.extend_from_slice(before.as_bytes());
        let id = bytes.len()..bytes.len() + first.len();
        bytes.extend_from_slice(first.as_bytes());
        bytes.extend_from_slice(after.as_bytes());
        Self {
            bytes,
            id,
            last_id: FIRST_ID,
        }
    }

    /// The question with an id that it never had before.
    pub(crate) fn next(&mut self) -> &[u8] {
        self.last_id += 1;
        let mut rest = self.last_id;
        if let Some(digits) = self.bytes.get_mut(self.id.clone()) {
            for digit in digits.iter_mut().rev() {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
        }
        &self.bytes
    }
}

//! The short road of a call over HTTP.
//!
//! rmcp gives a request a service of its own, or sends it through the loop of its session and streams what comes of it. Either takes
//! longer than most guests do. A call that rmcp would only pass on, and of which nothing will be told but its answer, goes
//! [directly](crate::direct) to the handler, and the answer is one piece of JSON. Whatever is not exactly such a call is rmcp's.

use std::sync::Arc;

use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use rmcp::model::{ProtocolVersion, RequestMetaObject, ServerJsonRpcMessage};
use rmcp::service::{RunningService, RxJsonRpcMessage, TxJsonRpcMessage, serve_directly};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServiceError};
use tokio::sync::OwnedSemaphorePermit;

use super::answer::{Answer, empty, with};
use super::auth::Principal;
use super::body::Outgoing;
use super::endpoint::Endpoint;
use super::headers::{EVENTS, JSON};
use crate::direct::Direct;
use crate::handler::Session;
use crate::message::ToolCall;

const VERSION: &str = "mcp-protocol-version";
const SESSION: &str = "mcp-session-id";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
const PARAMETER: &str = "mcp-param-";

/// Whose call it is.
#[derive(Debug, PartialEq, Eq)]
enum Era<'a> {
    Stateless,
    /// That of the session with this id.
    Session(&'a str),
}

/// Whose call it is, if rmcp would find nothing wrong with its headers and nothing to tell before the answer.
fn era<'a>(headers: &'a HeaderMap, meta: Option<&RequestMetaObject>, tool: &str) -> Option<Era<'a>> {
    if meta.is_some_and(|meta| meta.get_progress_token().is_some()) {
        return None;
    }
    let newest = &ProtocolVersion::V_2026_07_28;
    let version = one(headers, VERSION)?;
    let Some((meta, said)) = meta.and_then(|meta| Some((meta, meta.protocol_version()?))) else {
        let known = |version: &str| ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == version);
        let is_older = version.is_none_or(|version| known(version) && version < newest.as_str());
        return one(headers, SESSION)?.filter(|_| is_older).map(Era::Session);
    };
    let is_said_twice = said == *newest
        && version == Some(newest.as_str())
        && one(headers, METHOD)? == Some("tools/call")
        && one(headers, NAME)? == Some(tool);
    let has_parameters = headers.keys().any(|name| name.as_str().starts_with(PARAMETER));
    (is_said_twice && !has_parameters && meta.missing_required_keys(newest).is_empty()).then_some(Era::Stateless)
}

/// The value of a header that may be there once. None where there are several or where it is no text.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Option<Option<&'a str>> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Some(None),
        (Some(value), None) => value.to_str().ok().map(Some),
        (Some(_), Some(_)) => None,
    }
}

impl Endpoint {
    /// Answers a call by the short road. `None` if it has to take the long one.
    pub(super) async fn short_cut(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        principal: &Principal,
        taken: Option<&Arc<OwnedSemaphorePermit>>,
    ) -> Option<Answer> {
        let call = ToolCall::read(body)?;
        let tool = self.server.plain_tool(&call.name)?;
        let id = match era(headers, call.meta.as_ref(), &call.name)? {
            // Who closes the connection takes the call back with it.
            Era::Stateless => return Some(json(&self.stateless.direct.begin(call).answer.await)),
            Era::Session(id) => id,
        };
        // The stream of a long call tells that it still runs, and can be resumed.
        if !tool.is_short() {
            return None;
        }
        let (direct, in_use) = self.sessions.direct(id, principal)?;
        let mut call = direct.begin(call);
        let cancelled = call.cancelled.clone();
        let open = in_use.for_call(call.id.clone(), cancelled.clone());
        let answer = match call.at_once().await {
            Some(answer) => Some(answer),
            // A session goes on with a call when nobody waits for its answer any more.
            None => {
                let taken = taken.cloned();
                let rest = tokio::spawn(async move {
                    let answer = call.answer.await;
                    drop((open, taken));
                    answer
                });
                rest.await.ok()
            }
        };
        Some(match answer {
            // What is cancelled is not answered.
            _ if cancelled.is_cancelled() => with(empty(StatusCode::OK), CONTENT_TYPE, HeaderValue::from_static(EVENTS)),
            Some(answer) => json(&answer),
            None => empty(StatusCode::INTERNAL_SERVER_ERROR),
        })
    }
}

fn json(answer: &ServerJsonRpcMessage) -> Answer {
    match serde_json::to_vec(answer) {
        Ok(body) => with(
            Response::new(Outgoing::from(body)),
            CONTENT_TYPE,
            HeaderValue::from_static(JSON),
        ),
        Err(_) => empty(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// The short road of calls that belong to no session.
pub(super) struct Stateless {
    pub(super) direct: Direct,
    /// What makes a peer of rmcp's: a service that nobody ever asks anything.
    _service: RunningService<RoleServer, Arc<Session>>,
}

impl Stateless {
    pub(super) fn new(session: Session) -> Self {
        let session = Arc::new(session);
        let service = serve_directly(Arc::clone(&session), Nobody, None);
        let peer = service.peer().clone();
        Self {
            direct: Direct::new(session, peer),
            _service: service,
        }
    }
}

/// The other side where there is none.
struct Nobody;

impl Transport<RoleServer> for Nobody {
    type Error = ServiceError;

    fn send(&mut self, _: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        std::future::ready(Err(ServiceError::TransportClosed))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        std::future::pending().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn meta(value: serde_json::Value) -> RequestMetaObject {
        RequestMetaObject::from(value.as_object().unwrap().clone())
    }

    #[test]
    fn calls_of_sessions() {
        for (all, expected) in [
            (&[(SESSION, "a")][..], Some(Era::Session("a"))),
            (&[(SESSION, "a"), (VERSION, "2025-11-25")], Some(Era::Session("a"))),
            (&[(VERSION, "2025-11-25")], None),
            (&[(SESSION, "a"), (SESSION, "a")], None),
            (&[(SESSION, "a"), (VERSION, "2025-11-24")], None),
            (&[(SESSION, "a"), (VERSION, "2026-07-28")], None),
            (&[(SESSION, "a"), (VERSION, "2025-11-25"), (VERSION, "2025-11-25")], None),
        ] {
            assert_eq!(era(&headers(all), None, "add"), expected, "{all:?}");
        }
        let asked = headers(&[(SESSION, "a")]);
        assert_eq!(era(&asked, Some(&meta(json!({"progressToken": 1}))), "add"), None);
        assert_eq!(era(&asked, Some(&meta(json!({"other": 1}))), "add"), Some(Era::Session("a")));
    }

    #[test]
    fn calls_of_the_stateless_era() {
        const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
        const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
        let whole = json!({VERSION_KEY: "2026-07-28", CAPABILITIES: {}});
        let plain = [(VERSION, "2026-07-28"), (METHOD, "tools/call"), (NAME, "add")];
        let is_plain = |all: &[(&'static str, &str)], said: &serde_json::Value| {
            era(&headers(all), Some(&meta(said.clone())), "add") == Some(Era::Stateless)
        };
        assert!(is_plain(&plain, &whole));
        // A session that is named besides does not matter.
        assert!(is_plain(&[&plain[..], &[(SESSION, "a")]].concat(), &whole));
        for missing in 0..plain.len() {
            let mut others = plain.to_vec();
            others.remove(missing);
            assert!(!is_plain(&others, &whole), "{others:?}");
        }
        for more in [(NAME, "add"), (METHOD, "tools/call"), ("mcp-param-a", "1")] {
            assert!(!is_plain(&[&plain[..], &[more]].concat(), &whole), "{more:?}");
        }
        for said in [
            json!({VERSION_KEY: "2026-07-28"}),
            json!({CAPABILITIES: {}}),
            json!({VERSION_KEY: "2025-11-25", CAPABILITIES: {}}),
            json!({VERSION_KEY: "2027-01-01", CAPABILITIES: {}}),
            json!({VERSION_KEY: "2026-07-28", CAPABILITIES: {}, "progressToken": "a"}),
        ] {
            assert!(!is_plain(&plain, &said), "{said}");
        }
    }
}

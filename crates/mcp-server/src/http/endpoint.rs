//! What a request gets.
//!
//! rmcp speaks the protocol. This stands before it: it decides who may ask, bounds what is read, tells what is wrong with a message
//! where rmcp only says that it is, and answers what is not the protocol.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ALLOW, AUTHORIZATION, CONNECTION,
    CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use rmcp::model::ErrorData;
use rmcp::transport::StreamableHttpService;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::access::{Access, Refusal};
use super::answer::{Answer, empty, error, refused, text, with};
use super::auth::{Authentication, Principal};
use super::body::{BodyError, Outgoing, Room};
use super::headers::{EVENTS, JSON, accepts_both, accepts_events, is_json};
use super::sessions::{CURRENT, Current, Refused, Sessions};
use super::shortcut::Stateless;
use crate::handler::Server;
use crate::handler::Session;
use crate::message::{Received, id_of, parse, trimmed};
use crate::metrics::{self, Metrics};

const METHODS: &str = "GET, POST, DELETE";
const LAST_EVENT_ID: &str = "last-event-id";

/// What a browser may remember of a preflight, in seconds.
const PREFLIGHT_AGE: &str = "600";

pub(super) struct Endpoint {
    pub(super) protocol: StreamableHttpService<Arc<Session>, Sessions>,
    pub(super) sessions: Sessions,
    pub(super) stateless: Stateless,
    pub(super) access: Access,
    pub(super) authentication: Authentication,
    pub(super) room: Room,
    pub(super) server: Server,
    pub(super) metrics: Metrics,
    /// No more requests come, and streams without an end have to end.
    pub(super) shutdown: CancellationToken,
}

/// How a connection came in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    /// The address of this machine that the client reached.
    pub(super) local: IpAddr,
    /// There is no room for it but to be told so.
    pub(super) is_spare: bool,
}

impl Endpoint {
    pub(super) async fn answer(&self, request: Request<Incoming>, seat: Seat) -> Answer {
        let (path, answer) = match request.uri().path() {
            "/mcp" => ("/mcp", self.guarded(request, seat).await),
            "/metrics" => ("/metrics", self.guarded(request, seat).await),
            "/healthz" => ("/healthz", for_reading(&request, || text(StatusCode::OK, "ok"))),
            "/readyz" => ("/readyz", for_reading(&request, || self.readiness())),
            _ => {
                let hint = "there is nothing here: MCP is spoken at /mcp";
                ("other", text(StatusCode::NOT_FOUND, hint))
            }
        };
        self.metrics.request(path, answer.status().as_u16());
        answer
    }

    fn readiness(&self) -> Answer {
        if self.shutdown.is_cancelled() {
            return text(StatusCode::SERVICE_UNAVAILABLE, "shutting down");
        }
        match self.server.readiness() {
            Ok(()) => text(StatusCode::OK, "ready"),
            Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, why.to_string()),
        }
    }

    fn metrics(&self) -> Answer {
        match self.metrics.text() {
            Ok(text) => {
                let answer = Response::new(Outgoing::from(text));
                with(answer, CONTENT_TYPE, HeaderValue::from_static(metrics::CONTENT_TYPE))
            }
            Err(_) => empty(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }

    /// What only those may have who are allowed to.
    async fn guarded(&self, request: Request<Incoming>, seat: Seat) -> Answer {
        let readable_by = match self.access.check(request.uri(), request.headers(), seat.local) {
            Ok(origin) => origin,
            Err(refusal) => {
                let (host, origin) = (request.headers().get(HOST), request.headers().get(ORIGIN));
                tracing::info!(?refusal, ?host, ?origin, "a request was refused");
                return match refusal {
                    Refusal::NoHost => refused(StatusCode::BAD_REQUEST, "the request does not name a host that can be read"),
                    Refusal::Host => refused(
                        StatusCode::FORBIDDEN,
                        "the `Host` of the request is none of this server: `--allowed-host` adds one",
                    ),
                    Refusal::Origin => refused(
                        StatusCode::FORBIDDEN,
                        "pages of this `Origin` may not ask this server: `--allowed-origin` lets them",
                    ),
                };
            }
        };
        let Some(origin) = readable_by else {
            return self.authenticated(request, seat).await;
        };
        let asked = request.headers().get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        let is_preflight = request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        let mut answer = match is_preflight {
            true => preflight(asked),
            false => self.authenticated(request, seat).await,
        };
        let headers = answer.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate"),
        );
        headers.append(VARY, HeaderValue::from_static("Origin"));
        answer
    }

    async fn authenticated(&self, mut request: Request<Incoming>, seat: Seat) -> Answer {
        let is_metrics = request.uri().path() == "/metrics";
        match *request.method() {
            Method::GET | Method::HEAD if is_metrics => {}
            Method::GET | Method::POST | Method::DELETE if !is_metrics => {}
            _ => return not_allowed(if is_metrics { "GET, HEAD" } else { METHODS }),
        }
        let principal = match self.authentication.principal(request.headers()).await {
            Ok(principal) => principal,
            Err(challenge) => {
                let answer = refused(
                    StatusCode::UNAUTHORIZED,
                    "this server wants its token: `Authorization: Bearer TOKEN`",
                );
                return with(answer, WWW_AUTHENTICATE, challenge.0);
            }
        };
        // It has been looked at, and whatever is told of the request later need not tell it.
        request.headers_mut().remove(AUTHORIZATION);
        if is_metrics {
            return self.metrics();
        }
        if seat.is_spare {
            return busy("there are too many connections");
        }
        request.extensions_mut().insert(principal.clone());
        match *request.method() {
            Method::POST => self.post(request, principal).await,
            Method::GET => self.get(request, principal).await,
            _ => self.delete(request, principal).await,
        }
    }

    async fn post(&self, request: Request<Incoming>, principal: Principal) -> Answer {
        if !accepts_both(request.headers()) {
            return refused(
                StatusCode::NOT_ACCEPTABLE,
                "the client has to accept both application/json and text/event-stream",
            );
        }
        if !is_json(request.headers()) {
            return refused(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the body has to be application/json, in UTF-8 and not compressed",
            );
        }
        let (mut parts, body) = request.into_parts();
        let (body, taken) = match self.room.read(body).await {
            Ok(read) => read,
            Err(error) => return self.unread(error),
        };
        let body = body.slice_ref(trimmed(&body));
        // A session goes on with a request when nobody waits for its answer any more, and so it keeps its room.
        let taken = taken.map(Arc::new);
        if let Some(answer) = self.short_cut(&parts.headers, &body, &principal, taken.as_ref()).await {
            return answer.map(|body| body.holding(taken));
        }
        // Before rmcp makes anything of it. What is no JSON ends here as well.
        if component2json::check_json(&body).is_err() {
            return wrong(&body);
        }
        parts
            .headers
            .insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        if let Some(taken) = &taken {
            parts.extensions.insert(Arc::clone(taken));
        }
        self.ask(Request::from_parts(parts, body.clone()), principal, taken).await
    }

    fn unread(&self, error: BodyError) -> Answer {
        let answer = match error {
            BodyError::TooLarge => {
                let why = format!(
                    "the message is longer than {} bytes: `--max-body` sets that",
                    self.room.max_body()
                );
                refused(StatusCode::PAYLOAD_TOO_LARGE, why)
            }
            BodyError::NoRoom => busy("there is no room for a message of this size just now"),
            BodyError::Slow => refused(StatusCode::REQUEST_TIMEOUT, "the message did not come in time"),
            BodyError::Broken(error) => {
                tracing::debug!(%error, "a body could not be read");
                refused(StatusCode::BAD_REQUEST, "the message could not be read to its end")
            }
        };
        with(answer, CONNECTION, HeaderValue::from_static("close"))
    }

    async fn get(&self, request: Request<Incoming>, principal: Principal) -> Answer {
        if !accepts_events(request.headers()) {
            return refused(StatusCode::NOT_ACCEPTABLE, "the client has to accept text/event-stream");
        }
        let (mut parts, _) = request.into_parts();
        // The stream of a request is resumed by an id with the number of that in it, and ends with the answer.
        let resumed = parts.headers.get(LAST_EVENT_ID);
        let ends_by_itself = resumed.is_some_and(|id| id.as_bytes().contains(&b'/'));
        parts.headers.insert(ACCEPT, HeaderValue::from_static(EVENTS));
        let answer = self.ask(Request::from_parts(parts, Bytes::new()), principal, None).await;
        match ends_by_itself {
            true => answer,
            false => answer.map(|body| body.until(self.shutdown.clone())),
        }
    }

    async fn delete(&self, request: Request<Incoming>, principal: Principal) -> Answer {
        let mut answer = self.ask(request.map(|_| Bytes::new()), principal, None).await;
        // One of the official clients takes any other success for a failure.
        if answer.status() == StatusCode::ACCEPTED {
            *answer.status_mut() = StatusCode::NO_CONTENT;
        }
        answer
    }

    async fn ask(&self, request: Request<Bytes>, principal: Principal, taken: Option<Arc<OwnedSemaphorePermit>>) -> Answer {
        let current = Arc::new(Current::new(principal, request.body().clone()));
        let asked = CURRENT.scope(Arc::clone(&current), self.protocol.handle(request.map(Full::new)));
        let answer = asked.await;
        if let Some(why) = current.refused.get() {
            return without_session(*why, &current.body);
        }
        explained(answer, &current.body).await.map(|body| body.holding(taken))
    }
}

/// Answers `GET` and `HEAD`, for probes.
fn for_reading(request: &Request<Incoming>, answer: impl FnOnce() -> Answer) -> Answer {
    match *request.method() {
        Method::GET | Method::HEAD => answer(),
        _ => not_allowed("GET, HEAD"),
    }
}

fn not_allowed(methods: &'static str) -> Answer {
    let answer = refused(StatusCode::METHOD_NOT_ALLOWED, format!("the methods here are {methods}"));
    with(answer, ALLOW, HeaderValue::from_static(methods))
}

fn busy(why: &str) -> Answer {
    let later = ErrorData::internal_error(format!("{why}: try again later"), None);
    let answer = error(StatusCode::SERVICE_UNAVAILABLE, None, later);
    with(answer, RETRY_AFTER, HeaderValue::from_static("1"))
}

/// The answer to a browser that asks on behalf of a page whether it may ask.
fn preflight(asked: Option<HeaderValue>) -> Answer {
    let mut answer = empty(StatusCode::NO_CONTENT);
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(PREFLIGHT_AGE));
    // Parameters of tools can be headers, so there is no list of those that can come.
    if let Some(asked) = asked {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked);
    }
    answer
}

fn without_session(why: Refused, body: &[u8]) -> Answer {
    match why {
        Refused::Full => busy("there are too many sessions"),
        Refused::TooLong => {
            let too_long = ErrorData::invalid_params("the capabilities and the name of the client are too long", None);
            error(StatusCode::BAD_REQUEST, id_of(body), too_long)
        }
        Refused::Unknown => refused(StatusCode::NOT_FOUND, "there is no such session"),
    }
}

/// The answer to a body that is no message.
fn wrong(body: &[u8]) -> Answer {
    match parse(body) {
        Received::Wrong { id, error: why } => error(StatusCode::BAD_REQUEST, id, why),
        Received::Ignored if !body.is_empty() => empty(StatusCode::ACCEPTED),
        Received::Ignored => {
            let why = ErrorData::parse_error("there is no message", None);
            error(StatusCode::BAD_REQUEST, None, why)
        }
        Received::Call(_) | Received::Message(_) => refused(StatusCode::BAD_REQUEST, "the message cannot be read"),
    }
}

/// rmcp's answer, with what it says in plain text said as the protocol says it.
async fn explained(answer: Response<BoxBody<Bytes, Infallible>>, body: &[u8]) -> Answer {
    let status = answer.status();
    let is_message = |headers: &HeaderMap| {
        headers
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes() == JSON.as_bytes())
    };
    if status.is_success() || is_message(answer.headers()) {
        return answer.map(Outgoing::new);
    }
    // The content type was looked at before: this is about the content.
    if status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return wrong(body);
    }
    let (parts, text) = answer.into_parts();
    let Ok(text) = text.collect().await;
    let text = String::from_utf8_lossy(&text.to_bytes()).into_owned();
    let text = match (status, text) {
        (StatusCode::BAD_REQUEST, text) if text.contains("Session ID is required") => {
            "there is no session: send `initialize` first and its `Mcp-Session-Id` with what follows, or the headers and `_meta` of 2026-07-28"
                .to_owned()
        }
        (StatusCode::NOT_FOUND, text) if text.contains("Session not found") => {
            "there is no such session: begin a new one with `initialize`".to_owned()
        }
        (_, text) => text,
    };
    let why = match status.is_server_error() {
        true => {
            tracing::error!("a request failed: {text}");
            ErrorData::internal_error("the request could not be handled", None)
        }
        false => ErrorData::invalid_request(text, None),
    };
    let answer = error(status, id_of(body), why);
    match parts.headers.get(ALLOW) {
        Some(allowed) => with(answer, ALLOW, allowed.clone()),
        None => answer,
    }
}

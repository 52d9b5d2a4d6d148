//! MCP over Streamable HTTP, as a client: the requests that rmcp's transport makes, with what is kept of the answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use http::{HeaderName, HeaderValue, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use url::Url;

use super::Era;
use super::wire::{MAX_MESSAGE, Wire};
use crate::{ConnectError, Endpoint};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: usize = 5;
/// How much of an answer that is no message is shown.
const MAX_SHOWN: usize = 200;
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";

type Failure = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The transport to a server.
pub(crate) fn transport(
    endpoint: &Endpoint,
    era: Era,
    tls: rustls::ClientConfig,
    wire: Wire,
) -> Result<StreamableHttpClientTransport<Web>, ConnectError> {
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("host/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none());
    // No proxy can reach what is on this machine.
    let builder = if endpoint.is_on_this_machine() {
        builder.no_proxy()
    } else {
        builder
    };
    let client = builder.build().map_err(|error| ConnectError::Setup(error.to_string()))?;
    let web = Web {
        client,
        endpoint: Arc::new(endpoint.clone()),
        probing: era == Era::Auto,
        wire,
    };
    let config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str());
    Ok(StreamableHttpClientTransport::with_client(web, config))
}

#[derive(Clone)]
pub(crate) struct Web {
    client: reqwest::Client,
    endpoint: Arc<Endpoint>,
    /// Is it still to be found out which era the server is of?
    probing: bool,
    wire: Wire,
}

impl Web {
    fn request(&self, method: http::Method, url: &Url, headers: &HashMap<HeaderName, HeaderValue>) -> reqwest::RequestBuilder {
        let mut request = self.client.request(method, url.clone());
        for (name, value) in headers.iter().chain(&self.endpoint.headers) {
            request = request.header(name, value);
        }
        request
    }

    /// Sends a request, and sends it again where the same server says so. What leads to another server is a failure: the headers may
    /// hold secrets, and it is not the server that was named.
    async fn send(&self, make: impl Fn(&Url) -> reqwest::RequestBuilder) -> Result<reqwest::Response, Failure> {
        let mut url = self.endpoint.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let response = make(&url).send().await.map_err(|error| {
                self.wire.fail(ConnectError::Unreachable {
                    url: self.endpoint.shown(),
                    problem: causes(&error),
                });
                StreamableHttpError::Client(error)
            })?;
            // The others would turn a message into a question for a page.
            if !matches!(
                response.status(),
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
            ) {
                return Ok(response);
            }
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let Some(next) = to.and_then(|to| url.join(to).ok()) else {
                return Ok(response);
            };
            if next.origin() != url.origin() {
                let to = next.origin().ascii_serialization();
                self.wire.fail(ConnectError::Redirect {
                    url: self.endpoint.shown(),
                    to: to.clone(),
                });
                return Err(StreamableHttpError::UnexpectedServerResponse(
                    format!("it leads to {to}").into(),
                ));
            }
            url = next;
        }
        Err(StreamableHttpError::UnexpectedServerResponse("it leads in circles".into()))
    }

    /// An answer that is none of the protocol.
    fn unexpected(&self, status: StatusCode, body: &[u8]) -> Failure {
        let shown = String::from_utf8_lossy(body.get(..MAX_SHOWN).unwrap_or(body)).into_owned();
        let url = self.endpoint.shown();
        self.wire.fail(match status {
            StatusCode::UNAUTHORIZED => ConnectError::Unauthorized { url },
            StatusCode::FORBIDDEN => ConnectError::Forbidden { url, body: shown },
            _ => ConnectError::Status {
                url,
                status: status.to_string(),
                body: shown,
            },
        });
        StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}").into())
    }

    /// Events as they come, all of them together no larger than a message may be.
    fn events(&self, response: reqwest::Response) -> Events {
        let wire = self.wire.clone();
        let events = SseStream::from_bytes_stream(limited(response, self.wire.clone()));
        let events = events.map(move |event| {
            event.map(|mut event| {
                let message = event.data.as_ref().and_then(|data| wire.received(data.as_bytes()));
                if let Some(message) = message {
                    event.data = Some(message.to_string());
                }
                event
            })
        });
        events.boxed()
    }
}

impl StreamableHttpClient for Web {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        _: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.wire.sending(&message);
        let body = Bytes::from(serde_json::to_vec(&message)?);
        let response = self
            .send(|url| {
                let request = self.request(http::Method::POST, url, &headers);
                let request = request.header(ACCEPT, format!("{JSON}, {EVENTS}")).header(CONTENT_TYPE, JSON);
                let request = match &session {
                    Some(session) => request.header(SESSION, session.as_ref()),
                    None => request,
                };
                request.body(body.clone())
            })
            .await?;
        let status = response.status();
        let request = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request),
            _ => None,
        };
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return match request {
                Some(_) => Err(self.unexpected(status, b"")),
                None => Ok(StreamableHttpPostResponse::Accepted),
            };
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        let new_session = header(&response, SESSION);
        let content_type = header(&response, CONTENT_TYPE.as_str()).unwrap_or_default();
        if status.is_success() && content_type.starts_with(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response), new_session));
        }
        let answer = read(response, self.wire.clone()).await;
        let parsed = self.wire.message(&answer);
        let is_error = matches!(parsed, Some(ServerJsonRpcMessage::Error(_)));
        let is_auth_failure = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let is_probe = self.probing && request.is_some_and(|request| matches!(request.request, ClientRequest::DiscoverRequest(_)));
        match (parsed, request) {
            (parsed, Some(request)) if is_probe && session.is_none() && status.is_client_error() && !is_auth_failure => {
                // An older server: it does not know the method, or not without a session. Its error may carry any id.
                let error = match parsed {
                    Some(ServerJsonRpcMessage::Error(error)) => error.error,
                    _ => ErrorData::invalid_request(format!("HTTP {status}"), None),
                };
                let message = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
                Ok(StreamableHttpPostResponse::Json(message, None))
            }
            (Some(parsed), _) if status.is_success() || (is_error && !is_auth_failure) => {
                Ok(StreamableHttpPostResponse::Json(parsed, new_session))
            }
            // A notification has no answer, whatever came.
            (_, None) if status.is_success() => Ok(StreamableHttpPostResponse::Accepted),
            _ => Err(self.unexpected(status, &answer)),
        }
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failure> {
        // Only to go on with an answer that broke off. What a server would say unasked is of no interest here.
        let Some(last_event) = last_event else {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        };
        let response = self
            .send(|url| {
                let request = self.request(http::Method::GET, url, &headers);
                let request = request.header(ACCEPT, EVENTS).header(LAST_EVENT, &last_event);
                match &session {
                    Some(session) => request.header(SESSION, session.as_ref()),
                    None => request,
                }
            })
            .await?;
        let is_events = header(&response, CONTENT_TYPE.as_str()).is_some_and(|kind| kind.starts_with(EVENTS));
        if !response.status().is_success() || !is_events {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(self.events(response))
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let request = |url: &Url| {
            self.request(http::Method::DELETE, url, &headers)
                .header(SESSION, session.as_ref())
        };
        // A server that keeps its sessions says so with an error, and that is all right.
        self.send(request).await.map(drop)
    }
}

fn header(response: &reqwest::Response, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

/// The body in parts; it ends where it becomes too large.
fn limited(response: reqwest::Response, wire: Wire) -> impl Stream<Item = Result<Bytes, reqwest::Error>> {
    stream::unfold((response, 0, wire), |(mut response, read, wire)| async move {
        let part = response.chunk().await.transpose()?;
        let read = read + part.as_ref().map_or(0, Bytes::len);
        if read > MAX_MESSAGE {
            wire.fail(ConnectError::TooLarge { limit: MAX_MESSAGE });
            return None;
        }
        Some((part, (response, read, wire)))
    })
}

/// The whole body, as far as it can be read.
async fn read(response: reqwest::Response, wire: Wire) -> Vec<u8> {
    let mut body = Vec::new();
    let mut parts = std::pin::pin!(limited(response, wire));
    while let Some(Ok(part)) = parts.next().await {
        body.extend_from_slice(&part);
    }
    body
}

/// The innermost cause says what happened; those around it say "error sending request".
fn causes(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

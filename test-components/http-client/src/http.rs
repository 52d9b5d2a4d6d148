//! Requests over `wasi:http`.

use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest, RequestOptions, Scheme,
    http_error_code,
};
use wasip2::io::streams::StreamError;

use crate::{Request, text};

/// What one read asks for at most.
const CHUNK: u64 = 64 * 1024;
/// What `blocking-write-and-flush` takes at most.
const WRITE: usize = 4096;

/// An answer whose body was not read yet.
pub struct Answer(IncomingResponse);

impl Answer {
    pub fn status(&self) -> u16 {
        self.0.status()
    }

    pub fn headers(&self) -> Vec<(String, String)> {
        let entries = self.0.headers().entries();
        entries.into_iter().map(|(name, value)| (name, text(&value))).collect()
    }

    /// Hands over the body in pieces.
    pub fn read(&self, mut take: impl FnMut(&[u8])) -> Result<(), String> {
        let body = self.0.consume().map_err(|()| "body: taken already")?;
        let stream = body.stream().map_err(|()| "body: taken already")?;
        loop {
            match stream.blocking_read(CHUNK) {
                Ok(bytes) => take(&bytes),
                Err(StreamError::Closed) => break,
                Err(error) => return Err(format!("body: {}", stream_error_name(&error))),
            }
        }
        // A stream is a child of its body, which cannot be finished before it is gone.
        drop(stream);
        drop(IncomingBody::finish(body));
        Ok(())
    }
}

/// A request for what is at a URL. Only where the parts begin is looked at; whether they make sense is for the host to say.
pub fn get(url: &str) -> Result<Request, String> {
    let (scheme, rest) = url.split_once("://").ok_or_else(|| format!("url: no scheme in {url}"))?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    Ok(Request {
        method: "GET".to_owned(),
        scheme: Some(scheme.to_owned()),
        authority: Some(authority.to_owned()),
        path: Some(path),
        headers: Vec::new(),
        body: None,
        timeout_ms: None,
    })
}

/// Sends a request, part by part as it is, and waits for the head of the answer.
pub fn send(request: &Request) -> Result<Answer, String> {
    let headers = Fields::new();
    for (name, value) in &request.headers {
        headers
            .append(name, value.as_bytes())
            .map_err(|error| format!("header {name}: {}", error_name(&error)))?;
    }
    let outgoing = OutgoingRequest::new(headers);
    outgoing
        .set_method(&method(&request.method))
        .map_err(|()| "method: refused")?;
    outgoing
        .set_scheme(request.scheme.as_deref().map(scheme).as_ref())
        .map_err(|()| "scheme: refused")?;
    outgoing
        .set_authority(request.authority.as_deref())
        .map_err(|()| "authority: refused")?;
    outgoing
        .set_path_with_query(request.path.as_deref())
        .map_err(|()| "path: refused")?;

    // Whoever asks for the body's handle has a body, if an empty one.
    let body = match &request.body {
        Some(text) => Some((outgoing.body().map_err(|()| "body: taken already")?, text)),
        None => None,
    };
    let answer = outgoing_handler::handle(outgoing, options(request)?).map_err(|error| handler_error(&error))?;
    // The host reads the body while it sends, so the body has to come after the request.
    if let Some((body, text)) = body
        && let Err(error) = write(body, text)
    {
        // A host that refuses the request refuses the body too, and the first of the two says why.
        if let Some(Ok(Err(reason))) = answer.get() {
            return Err(handler_error(&reason));
        }
        return Err(error);
    }
    answer.subscribe().block();
    match answer.get() {
        Some(Ok(Ok(response))) => Ok(Answer(response)),
        Some(Ok(Err(error))) => Err(handler_error(&error)),
        _ => Err("handler: no answer".to_owned()),
    }
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "CONNECT" => Method::Connect,
        "OPTIONS" => Method::Options,
        "TRACE" => Method::Trace,
        "PATCH" => Method::Patch,
        other => Method::Other(other.to_owned()),
    }
}

fn scheme(name: &str) -> Scheme {
    match name {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.to_owned()),
    }
}

fn options(request: &Request) -> Result<Option<RequestOptions>, String> {
    let Some(milliseconds) = request.timeout_ms else {
        return Ok(None);
    };
    let nanoseconds = Some(u64::from(milliseconds) * 1_000_000);
    let options = RequestOptions::new();
    options
        .set_connect_timeout(nanoseconds)
        .and_then(|()| options.set_first_byte_timeout(nanoseconds))
        .and_then(|()| options.set_between_bytes_timeout(nanoseconds))
        .map_err(|()| "timeout: refused")?;
    Ok(Some(options))
}

fn write(body: OutgoingBody, text: &str) -> Result<(), String> {
    let stream = body.write().map_err(|()| "body: taken already")?;
    for bytes in text.as_bytes().chunks(WRITE) {
        stream
            .blocking_write_and_flush(bytes)
            .map_err(|error| format!("body: {}", stream_error_name(&error)))?;
    }
    drop(stream);
    OutgoingBody::finish(body, None).map_err(|error| format!("body: {}", error_name(&error)))
}

fn handler_error(error: &ErrorCode) -> String {
    format!("handler: {}", error_name(error))
}

fn stream_error_name(error: &StreamError) -> String {
    match error {
        StreamError::Closed => "closed".to_owned(),
        StreamError::LastOperationFailed(error) => match http_error_code(error) {
            Some(code) => error_name(&code),
            None => error.to_debug_string(),
        },
    }
}

/// The name of a case as WIT has it, in small letters, and what comes with it: `ErrorCode::ConnectionRefused` is
/// `connection-refused`.
fn error_name(error: &impl std::fmt::Debug) -> String {
    let error = format!("{error:?}");
    let case = error.split_once("::").map_or(error.as_str(), |(_, case)| case);
    let (name, payload) = case.split_at(case.find(|c: char| !c.is_alphanumeric()).unwrap_or(case.len()));
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push('-');
        }
        words.extend(letter.to_lowercase());
    }
    words + payload
}

//! Answers that are not rmcp's.

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use rmcp::model::{ErrorData, RequestId};

use super::body::Outgoing;
use super::headers::JSON;
use crate::message::Orphan;

pub(super) type Answer = Response<Outgoing>;

pub(super) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Outgoing::from(""));
    *answer.status_mut() = status;
    answer
}

/// For people and probes.
pub(super) fn text(status: StatusCode, text: impl Into<String>) -> Answer {
    let mut answer = Response::new(Outgoing::from(text.into() + "\n"));
    *answer.status_mut() = status;
    with(answer, CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))
}

/// For clients.
pub(super) fn error(status: StatusCode, id: Option<RequestId>, error: ErrorData) -> Answer {
    let body = serde_json::to_vec(&Orphan::new(id, error)).unwrap_or_default();
    let mut answer = Response::new(Outgoing::from(body));
    *answer.status_mut() = status;
    with(answer, CONTENT_TYPE, HeaderValue::from_static(JSON))
}

/// A request that cannot be taken as it is.
pub(super) fn refused(status: StatusCode, why: impl Into<String>) -> Answer {
    error(status, None, ErrorData::invalid_request(why.into(), None))
}

pub(super) fn with(mut answer: Answer, name: HeaderName, value: HeaderValue) -> Answer {
    answer.headers_mut().insert(name, value);
    answer
}

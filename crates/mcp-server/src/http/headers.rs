//! What a request says of its form and of the form of the answer it wants.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};

pub(super) const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";

/// Whether a client takes JSON and events, as it has to: an answer is the one or the other. Whoever takes anything takes both.
pub(super) fn accepts_both(headers: &HeaderMap) -> bool {
    let accepted = accepted(headers);
    let takes = |kind: &str| accepted.iter().any(|range| range == kind || range == "*/*");
    (takes(JSON) || takes("application/*")) && (takes(EVENTS) || takes("text/*"))
}

pub(super) fn accepts_events(headers: &HeaderMap) -> bool {
    let accepted = accepted(headers);
    accepted
        .iter()
        .any(|range| matches!(range.as_str(), "*/*" | "text/*" | EVENTS))
}

/// The media ranges that a client takes, in lower case.
fn accepted(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges = values.flat_map(|value| value.split(','));
    ranges.filter_map(accepted_range).collect()
}

fn accepted_range(text: &str) -> Option<String> {
    let mut parts = text.split(';').map(|part| part.trim().to_ascii_lowercase());
    let range = parts.next()?;
    let is_refused = parts.any(|part| {
        let quality = part.strip_prefix("q=").and_then(|quality| quality.parse::<f32>().ok());
        quality.is_some_and(|quality| quality <= 0.0)
    });
    (!is_refused).then_some(range)
}

/// Whether a body is JSON, in UTF-8 and as it is.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    let (Some(kind), None) = (kinds.next().and_then(|kind| kind.to_str().ok()), kinds.next()) else {
        return false;
    };
    let mut parts = kind.split(';').map(|part| part.trim().to_ascii_lowercase());
    let is_json = parts.next().is_some_and(|kind| kind == JSON);
    let is_utf8 = |part: String| match part.strip_prefix("charset=") {
        Some(charset) => matches!(charset.trim_matches('"'), "utf-8" | "utf8" | "us-ascii"),
        None => true,
    };
    let is_plain = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity"));
    is_json && parts.all(is_utf8) && is_plain
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn with(name: http::HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(&name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn answers_that_a_client_takes() {
        for (values, both, events) in [
            (&["application/json, text/event-stream"][..], true, true),
            (&["text/event-stream;q=0.5,Application/JSON;charset=utf-8"], true, true),
            (&["application/json", "text/event-stream"], true, true),
            (&["*/*"], true, true),
            (&["application/*"], false, false),
            (&["application/*, text/*"], true, true),
            (&["application/json, text/*"], true, true),
            (&["application/json, text/event-stream;q=0"], false, false),
            (&["application/json"], false, false),
            (&["text/event-stream"], false, true),
            (&["text/html"], false, false),
            (&[""], false, false),
            (&[], false, false),
        ] {
            let headers = with(ACCEPT, values);
            assert_eq!(
                (accepts_both(&headers), accepts_events(&headers)),
                (both, events),
                "{values:?}"
            );
        }
    }

    #[test]
    fn bodies_that_are_json() {
        for (values, expected) in [
            (&["application/json"][..], true),
            (&["Application/JSON; charset=UTF-8"], true),
            (&["application/json;charset=\"utf-8\""], true),
            (&["application/json; charset=iso-8859-1"], false),
            (&["application/jsonp"], false),
            (&["application/json-rpc"], false),
            (&["text/plain"], false),
            (&["application/json", "text/plain"], false),
            (&[], false),
        ] {
            assert_eq!(is_json(&with(CONTENT_TYPE, values)), expected, "{values:?}");
        }
        let mut packed = with(CONTENT_TYPE, &["application/json"]);
        packed.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        assert!(!is_json(&packed));
    }
}

//! Downloads, which go on where they broke off.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{CONTENT_RANGE, ETAG, HeaderValue, IF_RANGE, LAST_MODIFIED, RANGE};

use crate::http::{Answer, Http, Request};
use crate::source::shown;
use crate::{ClientOptions, FetchError, HttpsUrl, Progress};

/// What has arrived of a download. Who keeps it, on disk for example, can go on with it later, in another process too.
///
/// The server is asked to go on only if the file is still the one that these bytes are the beginning of. That the bytes
/// themselves are as they arrived is up to whoever kept them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    pub bytes: Vec<u8>,
    /// Without one the download starts anew.
    pub validator: Option<Validator>,
}

/// What tells one version of a file from another: a strong `ETag`, or else the date of `Last-Modified`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validator(HeaderValue);

impl Validator {
    fn of(answer: &Answer) -> Option<Self> {
        match answer.header(ETAG) {
            Some(etag) => etag.parse().ok(),
            None => answer.header(LAST_MODIFIED)?.parse().ok(),
        }
    }
}

impl FromStr for Validator {
    type Err = ();

    /// A weak `ETag` (`W/"…"`) is refused: it promises a like meaning, and not the same bytes.
    fn from_str(text: &str) -> Result<Self, ()> {
        let is_etag = text.len() > 1 && text.starts_with('"') && text.ends_with('"');
        let is_date = text.ends_with(" GMT");
        let is_short = text.len() <= 1024;
        if !(is_short && (is_etag || is_date)) {
            return Err(());
        }
        HeaderValue::from_str(text).map(Self).map_err(|_| ())
    }
}

impl fmt::Display for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_str().unwrap_or_default())
    }
}

/// Downloads into `partial` until it is whole; what broke off is taken up again a few times.
pub(crate) async fn download(
    http: &Http,
    options: &ClientOptions,
    url: &HttpsUrl,
    partial: &mut Partial,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Result<Vec<u8>, FetchError> {
    let mut tries = 0;
    loop {
        match attempt(http, options, url, partial, progress).await {
            Ok(()) => return Ok(std::mem::take(partial).bytes),
            Err(error) if error.is_transient() && tries < options.max_retries => {
                tries += 1;
                tracing::debug!(%error, tries, "download broke off");
                tokio::time::sleep(Duration::from_millis(200) * tries).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// One request, and as much of its answer as arrives.
async fn attempt(
    http: &Http,
    options: &ClientOptions,
    url: &HttpsUrl,
    partial: &mut Partial,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Result<(), FetchError> {
    let limit = options.max_size.bytes();
    let mut request = Request::new(Method::GET, url.as_url().clone());
    let mut asked_to_go_on = false;
    if let Some(Validator(validator)) = partial.validator.as_ref().filter(|_| !partial.bytes.is_empty())
        && let Ok(range) = HeaderValue::from_str(&format!("bytes={}-", partial.bytes.len()))
    {
        request = request.header(RANGE, range).header(IF_RANGE, validator.clone());
        asked_to_go_on = true;
    }
    let mut answer = http.follow(request).await?;
    let total = match answer.status().as_u16() {
        200 => {
            *partial = Partial {
                bytes: Vec::new(),
                validator: Validator::of(&answer),
            };
            answer.content_length()
        }
        206 if asked_to_go_on && goes_on(&answer, partial) => ContentRange::of(&answer).map(|range| range.total),
        // Another part than the one asked for, or a file that has become shorter.
        206 | 416 if asked_to_go_on => {
            *partial = Partial::default();
            return Err(FetchError::WrongPart { url: url.shown() });
        }
        _ => return Err(answer.unexpected()),
    };
    answer.check_encoding()?;
    let mut fits = total.is_none_or(|total| total <= limit);
    while fits {
        let received = partial.bytes.len() as u64;
        progress(Progress { received, total });
        let chunk = match (answer.chunk().await, total) {
            (Err(FetchError::Broken { .. }), Some(_)) => None,
            (chunk, _) => chunk?,
        };
        match (chunk, total) {
            (Some(chunk), _) => {
                partial.bytes.extend_from_slice(&chunk);
                fits = partial.bytes.len() as u64 <= total.unwrap_or(limit);
            }
            (None, Some(expected)) if received < expected => {
                let url = shown(&answer.url);
                return Err(FetchError::EndedEarly { url, received, expected });
            }
            (None, _) => return Ok(()),
        }
    }
    *partial = Partial::default();
    let limit = options.max_size;
    Err(FetchError::TooLarge { url: url.shown(), limit })
}

/// Does this answer continue these bytes, of the same version of the file?
fn goes_on(answer: &Answer, partial: &Partial) -> bool {
    let same_version = Validator::of(answer).is_none_or(|validator| Some(validator) == partial.validator);
    let length = partial.bytes.len() as u64;
    let continues = ContentRange::of(answer).is_some_and(|range| {
        let to_the_end = range.end.checked_add(1) == Some(range.total);
        range.start == length && to_the_end
    });
    same_version && continues
}

/// `Content-Range: bytes START-END/TOTAL`. Where `TOTAL` is `*`, nothing would tell that the end is missing, so that is none.
struct ContentRange {
    start: u64,
    end: u64,
    total: u64,
}

impl ContentRange {
    fn of(answer: &Answer) -> Option<Self> {
        let (range, total) = answer.header(CONTENT_RANGE)?.strip_prefix("bytes ")?.split_once('/')?;
        let (start, end) = range.split_once('-')?;
        Some(Self {
            start: start.parse().ok()?,
            end: end.parse().ok()?,
            total: total.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strong_validators_are_kept() {
        for text in ["\"abc\"", "\"\"", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            assert_eq!(text.parse::<Validator>().unwrap().to_string(), text);
        }
        for text in ["W/\"abc\"", "", "\"", "abc", "\"a\nb\"", "yesterday"] {
            assert_eq!(text.parse::<Validator>(), Err(()), "{text}");
        }
    }
}

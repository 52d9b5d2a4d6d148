//! Requests, and the rules that all of them keep: who may be reached, where redirects may lead, how long a server may take.
//!
//! Redirects are followed here and not by reqwest, so that every hop is checked and credentials stay with the host that they are
//! for. There are no cookies, no compression, and HTTP/1.1 only: all that is fetched here is one body after the other.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper_util::client::proxy::matcher::Matcher;
use policy::Timeout;
use reqwest::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use reqwest::{Method, Response, StatusCode};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use url::{Host, Url};

use crate::address::{NotPublic, Resolver};
use crate::reference::is_loopback;
use crate::source::shown;
use crate::{ClientOptions, FetchError, Network};

const MAX_REDIRECTS: usize = 5;

/// Which addresses the next request may go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// A person named the address, or all before it were private, too.
    Anywhere,
    /// A server on a public address names it.
    Public,
}

#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// For the origin of `url` only.
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) body: Option<Bytes>,
    pub(crate) reach: Reach,
    /// The URL that led here.
    pub(crate) named_by: String,
}

impl Request {
    pub(crate) fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            named_by: shown(&url),
            url,
            headers: HeaderMap::new(),
            authorization: None,
            body: None,
            reach: Reach::Anywhere,
        }
    }

    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}

pub(crate) struct Answer {
    response: Response,
    /// Where it came from in the end.
    pub(crate) url: Url,
    /// Where the server that was asked first may send us.
    pub(crate) reach: Reach,
    stall: Timeout,
}

pub(crate) struct Http {
    /// Through the proxies of the environment, which look up names themselves.
    proxied: reqwest::Client,
    direct: reqwest::Client,
    /// Dials public addresses only.
    public: reqwest::Client,
    proxies: Option<Matcher>,
    network: Arc<dyn Network>,
    connect: Timeout,
    stall: Timeout,
}

impl Http {
    pub(crate) fn new(options: &ClientOptions, network: Arc<dyn Network>) -> Result<Self, FetchError> {
        let tls = tls(options)?;
        let build = |only_public, proxied| {
            let resolver = Resolver {
                network: Arc::clone(&network),
                only_public,
            };
            let builder = reqwest::Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .user_agent(concat!("host/", env!("CARGO_PKG_VERSION")))
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(options.connect_timeout.duration())
                .dns_resolver(Arc::new(resolver));
            let builder = if proxied { builder } else { builder.no_proxy() };
            builder.build().map_err(|error| FetchError::Setup(error.to_string()))
        };
        Ok(Self {
            proxied: build(false, true)?,
            direct: build(false, false)?,
            public: build(true, false)?,
            proxies: options.proxies.then(Matcher::from_env),
            network,
            connect: options.connect_timeout,
            stall: options.stall_timeout,
        })
    }

    /// Sends a request and follows where it leads.
    pub(crate) async fn follow(&self, mut request: Request) -> Result<Answer, FetchError> {
        let first = request.url.clone();
        let mut first_reach = None;
        let mut seen = vec![first.clone()];
        loop {
            let answer = self.send(request.clone()).await?;
            let first_reach = *first_reach.get_or_insert(answer.reach);
            let Some(next) = next_hop(&first, &answer)? else {
                return Ok(Answer {
                    reach: first_reach,
                    ..answer
                });
            };
            if seen.contains(&next) {
                return Err(FetchError::RedirectLoop { url: shown(&first) });
            }
            if seen.len() > MAX_REDIRECTS {
                let limit = MAX_REDIRECTS;
                return Err(FetchError::TooManyRedirects {
                    url: shown(&first),
                    limit,
                });
            }
            seen.push(next.clone());
            if next.origin() != request.url.origin() {
                request.authorization = None;
            }
            request.reach = answer.reach;
            request.named_by = shown(&request.url);
            request.url = next;
        }
    }

    /// Sends one request. A redirect is an answer like any other.
    pub(crate) async fn send(&self, request: Request) -> Result<Answer, FetchError> {
        let url = request.url;
        let is_proxied = self.is_proxied(&url);
        let private_address = || FetchError::PrivateAddress {
            from: request.named_by.clone(),
            to: shown(&url),
        };
        // An address that is written in a URL is never looked up, so `Resolver` does not see it.
        if request.reach == Reach::Public && literal(&url).is_some_and(|ip| !self.network.is_public(ip)) {
            return Err(private_address());
        }
        let client = match request.reach {
            _ if is_proxied => &self.proxied,
            Reach::Anywhere => &self.direct,
            Reach::Public => &self.public,
        };
        let has_body = request.body.is_some();
        let mut builder = client
            .request(request.method, url.clone())
            .headers(request.headers)
            .header(ACCEPT_ENCODING, "identity");
        if let Some(authorization) = request.authorization {
            builder = builder.header(AUTHORIZATION, authorization);
        }
        if let Some(body) = request.body {
            builder = builder.body(body);
        }
        let sent = builder.send();
        let response = if has_body {
            // While a body goes out nothing comes in, for as long as that takes; the whole has its own deadline.
            sent.await
        } else {
            let patience = self.connect.duration().saturating_add(self.stall.duration());
            within(patience, sent).await.ok_or_else(|| stalled(&url, self.stall))?
        };
        let response = response.map_err(|error| match find::<NotPublic>(&error) {
            Some(NotPublic) => private_address(),
            None => self.story(&url, error),
        })?;
        let reach = match response.remote_addr() {
            // The address is that of the proxy, so only the name is left to judge by.
            _ if is_proxied => match literal(&url) {
                Some(ip) if !self.network.is_public(ip) => request.reach,
                _ => Reach::Public,
            },
            Some(address) if !self.network.is_public(address.ip()) => request.reach,
            _ => Reach::Public,
        };
        Ok(Answer {
            response,
            url,
            reach,
            stall: self.stall,
        })
    }

    fn is_proxied(&self, url: &Url) -> bool {
        let intercepts = |proxies: &Matcher| url.as_str().parse().is_ok_and(|uri| proxies.intercept(&uri).is_some());
        !is_loopback(url) && self.proxies.as_ref().is_some_and(intercepts)
    }

    /// What an error of reqwest means for people.
    fn story(&self, url: &Url, error: reqwest::Error) -> FetchError {
        let name = shown(url);
        match find::<rustls::Error>(&error) {
            Some(rustls::Error::InvalidCertificate(problem)) => {
                return FetchError::Certificate {
                    url: name,
                    problem: problem.to_string(),
                };
            }
            Some(rustls::Error::InvalidMessage(_)) => return FetchError::NotTls { url: name },
            _ => {}
        }
        let (is_timeout, is_connect) = (error.is_timeout(), error.is_connect());
        let problem = cause(error);
        if is_timeout {
            FetchError::Connect {
                url: name,
                problem: format!("no answer within {}", self.connect),
            }
        } else if is_connect {
            FetchError::Connect { url: name, problem }
        } else {
            FetchError::Broken { url: name, problem }
        }
    }
}

impl Answer {
    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// A header that is text.
    pub(crate) fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers().get(name)?.to_str().ok()
    }

    pub(crate) fn content_length(&self) -> Option<u64> {
        self.header(CONTENT_LENGTH)?.parse().ok()
    }

    /// Refuses a body that is compressed: its size and its digest would be those of something else.
    pub(crate) fn check_encoding(&self) -> Result<(), FetchError> {
        let is_plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
        if self.headers().get_all(CONTENT_ENCODING).iter().all(is_plain) {
            return Ok(());
        }
        Err(FetchError::Encoded { url: shown(&self.url) })
    }

    /// The next bytes of the body, or none at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        let chunk = within(self.stall.duration(), self.response.chunk()).await;
        chunk
            .ok_or_else(|| stalled(&self.url, self.stall))?
            .map_err(|error| FetchError::Broken {
                url: shown(&self.url),
                problem: cause(error),
            })
    }

    /// The whole of a body that is not larger than this.
    pub(crate) async fn body(mut self, limit: policy::ByteSize, mut progress: impl FnMut(u64)) -> Result<Vec<u8>, FetchError> {
        self.check_encoding()?;
        let mut fits = self.content_length().is_none_or(|length| length <= limit.bytes());
        let mut bytes = Vec::new();
        while fits {
            match self.chunk().await? {
                Some(chunk) => bytes.extend_from_slice(&chunk),
                None => return Ok(bytes),
            }
            fits = bytes.len() as u64 <= limit.bytes();
            progress(bytes.len() as u64);
        }
        let url = shown(&self.url);
        Err(FetchError::TooLarge { url, limit })
    }

    pub(crate) fn unexpected(&self) -> FetchError {
        FetchError::Status {
            url: shown(&self.url),
            status: self.status().as_u16(),
        }
    }

    pub(crate) fn protocol(&self, problem: impl Into<String>) -> FetchError {
        FetchError::Protocol {
            url: shown(&self.url),
            problem: problem.into(),
        }
    }
}

/// Where an answer leads, if it is a redirect.
fn next_hop(first: &Url, answer: &Answer) -> Result<Option<Url>, FetchError> {
    if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let target = answer.header(LOCATION).and_then(|location| answer.url.join(location).ok());
    let Some(mut next) = target else {
        return Err(answer.unexpected());
    };
    next.set_fragment(None);
    check_target(first, &answer.url, &next)?;
    Ok(Some(next))
}

/// May a server send us to this URL at all? Plain HTTP stays on this machine, and starts there.
pub(crate) fn check_target(first: &Url, from: &Url, to: &Url) -> Result<(), FetchError> {
    let refused = |problem| {
        // With a password in it, only the host can be told.
        let to = format!("{}://{}", to.scheme(), to.host_str().unwrap_or_default());
        Err(FetchError::Redirect {
            from: shown(from),
            to,
            problem,
        })
    };
    let may_be_plain = first.scheme() == "http" && is_loopback(to);
    match to.scheme() {
        _ if !to.username().is_empty() || to.password().is_some() => refused("a URL with credentials in it"),
        "https" => Ok(()),
        "http" if may_be_plain => Ok(()),
        _ => refused("not https"),
    }
}

fn literal(url: &Url) -> Option<std::net::IpAddr> {
    match url.host()? {
        Host::Domain(_) => None,
        Host::Ipv4(ip) => Some(ip.into()),
        Host::Ipv6(ip) => Some(ip.into()),
    }
}

/// Whom to trust: the authorities of the system, and those of the person. For other clients that connect on the person's behalf.
pub fn tls(options: &ClientOptions) -> Result<rustls::ClientConfig, FetchError> {
    let mut roots = rustls::RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    for error in &system.errors {
        tracing::debug!(%error, "certificates of the system could not be read");
    }
    roots.add_parsable_certificates(system.certs);
    for path in &options.ca_files {
        let refused = |problem: String| FetchError::CaFile {
            path: path.clone(),
            problem,
        };
        let pem = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
        let mut found = 0;
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|error| refused(error.to_string()))?;
            roots.add(certificate).map_err(|error| refused(error.to_string()))?;
            found += 1;
        }
        if found == 0 {
            return Err(refused("there is none in it".to_owned()));
        }
    }
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| FetchError::Setup(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, future).await.ok()
}

fn stalled(url: &Url, limit: Timeout) -> FetchError {
    FetchError::Stalled { url: shown(url), limit }
}

/// The error of this type among the causes of an error.
fn find<'a, T: std::error::Error + 'static>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // An I/O error does not count what it wraps as its source.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}

/// The last cause, which is the one that people know: `Connection refused`.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut last: &dyn std::error::Error = &error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

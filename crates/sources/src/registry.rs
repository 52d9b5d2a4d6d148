//! The protocol of registries (OCI distribution), as much of it as is needed to fetch and store one artifact.
//!
//! These few requests are made here and not by `oci-client`, which reads whole answers into memory before it looks at them, and
//! follows redirects to wherever they lead.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use policy::ByteSize;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use url::Url;

use crate::credentials::{Credential, Login};
use crate::http::{Answer, Http, Reach, Request, check_target};
use crate::manifest::{ACCEPTED, Annotations, Descriptor, MANIFEST, Manifest, Unclear, written};
use crate::reference::is_loopback;
use crate::source::shown;
use crate::{ClientOptions, Digest, FetchError, Layer, OciReference, Progress, Published};

const MAX_MANIFEST: ByteSize = ByteSize::from_mib(4);
const MAX_TOKEN: ByteSize = ByteSize::from_mib(1);
const MAX_TEXT: u64 = 64 * 1024;
const MAX_TEXTS: usize = 8;
const MAX_LAYERS: usize = 64;
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// An artifact that was fetched. All but the digests is the publisher's word.
#[derive(Clone, Debug)]
pub struct Pulled {
    pub wasm: Vec<u8>,
    /// Of what the reference names: the manifest, or the index over it.
    pub digest: Digest,
    /// Of the layer with the WebAssembly.
    pub media_type: String,
    pub config_media_type: Option<String>,
    pub other_layers: Vec<Layer>,
    pub annotations: Annotations,
}

/// An artifact that was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    pub digest: Digest,
    /// It, by tag and digest.
    pub reference: OciReference,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Pull,
    Push,
}

/// A conversation with one registry about one repository.
pub(crate) struct Session<'a> {
    http: &'a Http,
    options: &'a ClientOptions,
    reference: &'a OciReference,
    access: Access,
    /// `https://REGISTRY/v2/REPOSITORY/`
    base: Url,
    /// Where the registry may send us: it decides, once it has answered from a public address.
    reach: Reach,
    authorization: Option<HeaderValue>,
    login: Option<Login>,
}

impl<'a> Session<'a> {
    pub(crate) async fn open(
        http: &'a Http,
        options: &'a ClientOptions,
        reference: &'a OciReference,
        access: Access,
    ) -> Result<Self, FetchError> {
        let mut base = base(reference, "https")?;
        if is_loopback(&base) {
            // As Docker does: on this machine a registry may speak plain HTTP, but it is asked for TLS first.
            let hello = Request::new(Method::GET, base.join("/v2/").unwrap_or_else(|_| base.clone()));
            match http.send(hello).await {
                Err(FetchError::NotTls { .. }) => base = self::base(reference, "http")?,
                answer => drop(answer?),
            }
        }
        Ok(Self {
            http,
            options,
            reference,
            access,
            base,
            reach: Reach::Anywhere,
            authorization: None,
            login: None,
        })
    }

    pub(crate) async fn resolve(mut self) -> Result<Digest, FetchError> {
        Ok(self.manifest(&self.reference.selector()).await?.1)
    }

    pub(crate) async fn pull(mut self, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<Pulled, FetchError> {
        let (mut manifest, digest) = self.manifest(&self.reference.selector()).await?;
        if manifest.is_index() {
            let one = manifest.wasm_manifest().map_err(|unclear| self.unclear(unclear))?;
            let digest = self.digest_of(one)?;
            manifest = self.manifest(&digest.to_string()).await?.0;
        }
        let wasm_layer = manifest.wasm_layer().map_err(|unclear| self.unclear(unclear))?;
        let total = Some(wasm_layer.size);
        let wasm = self
            .blob(wasm_layer, |received| progress(Progress { received, total }))
            .await?;

        let mut other_layers = Vec::new();
        let others = manifest.layers.iter().filter(|layer| !std::ptr::eq(*layer, wasm_layer));
        let mut texts = 0;
        for layer in others.take(MAX_LAYERS) {
            let is_wanted = layer.is_text() && layer.size <= MAX_TEXT && texts < MAX_TEXTS;
            let text = if is_wanted {
                texts += 1;
                String::from_utf8(self.blob(layer, |_| {}).await?).ok()
            } else {
                None
            };
            other_layers.push(layer.layer(text));
        }
        Ok(Pulled {
            wasm,
            digest,
            media_type: wasm_layer.media_type.clone(),
            config_media_type: manifest.config.as_ref().map(|config| config.media_type.clone()),
            other_layers,
            annotations: manifest.annotations.clone().unwrap_or_default(),
        })
    }

    pub(crate) async fn push(mut self, wasm: Vec<u8>, about: &Published) -> Result<Pushed, FetchError> {
        let (config, manifest) = written(&wasm, about).map_err(|error| FetchError::Setup(error.to_string()))?;
        self.upload(wasm.into()).await?;
        self.upload(config.into()).await?;

        let digest = Digest::of(&manifest);
        let request = Request::new(Method::PUT, self.url(&["manifests", &self.reference.selector()]))
            .header(CONTENT_TYPE, HeaderValue::from_static(MANIFEST));
        let answer = self
            .send(Request {
                body: Some(manifest.into()),
                ..request
            })
            .await?;
        if answer.status() != StatusCode::CREATED {
            return Err(answer.unexpected());
        }
        check_digest(&answer, digest)?;
        Ok(Pushed {
            digest,
            reference: self.reference.pinned(digest),
        })
    }

    /// A manifest and its digest, by tag or by digest.
    async fn manifest(&mut self, selector: &str) -> Result<(Manifest, Digest), FetchError> {
        let request =
            Request::new(Method::GET, self.url(&["manifests", selector])).header(ACCEPT, HeaderValue::from_static(ACCEPTED));
        let answer = self.send(request).await?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Err(FetchError::NotFound(self.reference.to_string())),
            _ => return Err(answer.unexpected()),
        }
        let url = shown(&answer.url);
        let promised = answer.header(CONTENT_DIGEST).and_then(|digest| digest.parse().ok());
        let body = answer.body(MAX_MANIFEST, |_| {}).await?;
        let found = Digest::of(&body);
        // Who asked for a digest gets that one, whatever the header says.
        let expected = selector.parse().ok().or(promised).unwrap_or(found);
        if found != expected {
            return Err(FetchError::WrongDigest { url, expected, found });
        }
        let manifest = serde_json::from_slice(&body).map_err(|error| FetchError::Protocol {
            url,
            problem: format!(
                "its manifest cannot be read, at line {} and column {}",
                error.line(),
                error.column()
            ),
        })?;
        Ok((manifest, found))
    }

    /// The bytes of a layer, exactly those that its descriptor promises.
    async fn blob(&mut self, layer: &Descriptor, progress: impl FnMut(u64)) -> Result<Vec<u8>, FetchError> {
        let expected = self.digest_of(layer)?;
        let url = self.url(&["blobs", &expected.to_string()]);
        let limit = self.options.max_size;
        if layer.size > limit.bytes() {
            return Err(FetchError::TooLarge { url: shown(&url), limit });
        }
        let answer = self.send(Request::new(Method::GET, url)).await?;
        if answer.status() != StatusCode::OK {
            return Err(answer.unexpected());
        }
        let url = shown(&answer.url);
        let promised = ByteSize::from_bytes(layer.size);
        let bytes = answer.body(promised, progress).await.map_err(|error| match error {
            FetchError::TooLarge { url, .. } => FetchError::Protocol {
                url,
                problem: format!("it sends more than the {} bytes that its manifest promises", layer.size),
            },
            other => other,
        })?;
        let received = bytes.len() as u64;
        if received < layer.size {
            let expected = layer.size;
            return Err(FetchError::EndedEarly { url, received, expected });
        }
        match Digest::of(&bytes) {
            found if found == expected => Ok(bytes),
            found => Err(FetchError::WrongDigest { url, expected, found }),
        }
    }

    fn digest_of(&self, part: &Descriptor) -> Result<Digest, FetchError> {
        part.digest.parse().map_err(|_| FetchError::Protocol {
            url: shown(&self.base),
            problem: "its manifest has a digest that is no SHA-256".to_owned(),
        })
    }

    /// Stores bytes, unless the registry has them.
    async fn upload(&mut self, bytes: Bytes) -> Result<(), FetchError> {
        let digest = Digest::of(&bytes);
        let there = self
            .send(Request::new(Method::HEAD, self.url(&["blobs", &digest.to_string()])))
            .await?;
        match there.status() {
            StatusCode::OK => return Ok(()),
            StatusCode::NOT_FOUND => {}
            _ => return Err(there.unexpected()),
        }
        let start = Request::new(Method::POST, self.url(&["blobs", "uploads", ""]));
        let started = self
            .send(Request {
                body: Some(Bytes::new()),
                ..start
            })
            .await?;
        if started.status() != StatusCode::ACCEPTED {
            return Err(started.unexpected());
        }
        let location = started.header(LOCATION).and_then(|location| started.url.join(location).ok());
        let mut place = location.ok_or_else(|| started.protocol("it does not say where to upload to"))?;
        place.query_pairs_mut().append_pair("digest", &digest.to_string());
        check_target(&self.base, &self.base, &place)?;

        let request = Request::new(Method::PUT, place).header(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        let stored = self
            .send(Request {
                body: Some(bytes),
                ..request
            })
            .await?;
        match stored.status() {
            StatusCode::CREATED | StatusCode::NO_CONTENT => check_digest(&stored, digest),
            _ => Err(stored.unexpected()),
        }
    }

    /// Sends a request, with credentials once the registry asks for them.
    async fn send(&mut self, mut request: Request) -> Result<Answer, FetchError> {
        let to_the_registry = request.url.origin() == self.base.origin();
        let mut asked = false;
        loop {
            request.reach = self.reach;
            request.named_by = shown(&self.base);
            request.authorization = self.authorization.clone().filter(|_| to_the_registry);
            // A body is sent to the place that was named for it, or not at all.
            let answer = if request.body.is_none() {
                self.http.follow(request.clone()).await?
            } else {
                self.http.send(request.clone()).await?
            };
            if to_the_registry {
                self.reach = answer.reach;
            }
            match answer.status() {
                // Tokens are short-lived, so every request may have to ask anew, once.
                StatusCode::UNAUTHORIZED if !asked && answer.url.origin() == self.base.origin() => {
                    asked = true;
                    self.log_in(answer.headers()).await?;
                }
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(self.denied()),
                _ => return Ok(answer),
            }
        }
    }

    /// Answers the challenge of a registry.
    async fn log_in(&mut self, headers: &HeaderMap) -> Result<(), FetchError> {
        if self.login.is_none() {
            let logins = self.options.logins.clone();
            let registry = self.reference.registry().to_owned();
            let found = tokio::task::spawn_blocking(move || logins.find(&registry)).await;
            self.login = found.map_err(|error| FetchError::Setup(error.to_string()))??;
        }
        let credential = self.login.as_ref().map(|login| login.credential.clone());
        let challenge = Challenge::of(headers).ok_or_else(|| FetchError::Protocol {
            url: shown(&self.base),
            problem: "it wants credentials in a form that is not known here".to_owned(),
        })?;
        let authorization = match (challenge, credential) {
            (_, Some(Credential::Bearer(token))) => format!("Bearer {}", token.reveal()),
            (Challenge::Bearer { realm, service }, credential) => {
                format!("Bearer {}", self.token(realm, service, credential).await?)
            }
            (Challenge::Basic, Some(Credential::Password { user, password })) => basic(&user, password.reveal()),
            (Challenge::Basic, _) => return Err(self.denied()),
        };
        self.authorization = Some(sensitive(&authorization).ok_or_else(|| self.denied())?);
        Ok(())
    }

    /// Asks the place that the registry named for a token, with the credentials if there are some.
    async fn token(&self, realm: Url, service: Option<String>, credential: Option<Credential>) -> Result<String, FetchError> {
        check_target(&self.base, &self.base, &realm)?;
        let request = self.token_request(realm, service.as_deref(), credential.as_ref());
        // A redirect would be asked to take credentials elsewhere, so none is followed.
        let answer = self.http.send(request).await?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(self.denied()),
            _ => return Err(answer.unexpected()),
        }
        let refused = answer.protocol("there is no token in its answer");
        let body = answer.body(MAX_TOKEN, |_| {}).await?;
        let token: Option<Token> = serde_json::from_slice(&body).ok();
        token.and_then(|token| token.token.or(token.access_token)).ok_or(refused)
    }

    fn token_request(&self, mut realm: Url, service: Option<&str>, credential: Option<&Credential>) -> Request {
        let actions = match self.access {
            Access::Pull => "pull",
            Access::Push => "pull,push",
        };
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("scope", &format!("repository:{}:{actions}", repository(self.reference)));
        query.extend_pairs(service.map(|service| ("service", service)));
        let mut request = if let Some(Credential::Identity(token)) = credential {
            query
                .append_pair("grant_type", "refresh_token")
                .append_pair("client_id", "host");
            query.append_pair("refresh_token", token.reveal());
            let form = HeaderValue::from_static("application/x-www-form-urlencoded");
            let request = Request::new(Method::POST, realm).header(CONTENT_TYPE, form);
            Request {
                body: Some(query.finish().into()),
                ..request
            }
        } else {
            let all = [realm.query().unwrap_or_default(), &query.finish()].join("&");
            realm.set_query(Some(all.trim_start_matches('&')));
            Request::new(Method::GET, realm)
        };
        if let Some(Credential::Password { user, password }) = credential {
            request.authorization = sensitive(&basic(user, password.reveal()));
        }
        request.reach = self.reach;
        request.named_by = shown(&self.base);
        request
    }

    /// A URL below that of the repository.
    fn url(&self, parts: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        url
    }

    fn denied(&self) -> FetchError {
        let login = match &self.login {
            Some(login) => format!("the user of the credentials in {}", login.origin),
            None => "somebody without credentials".to_owned(),
        };
        FetchError::Denied {
            registry: self.reference.registry().to_owned(),
            repository: self.reference.repository().to_owned(),
            login,
        }
    }

    fn unclear(&self, Unclear { problem, contents, hint }: Unclear) -> FetchError {
        FetchError::NoWasm {
            reference: self.reference.to_string(),
            problem,
            contents,
            hint,
        }
    }
}

/// How a registry wants to be convinced.
enum Challenge {
    Basic,
    /// By a token, from another place.
    Bearer {
        realm: Url,
        service: Option<String>,
    },
}

impl Challenge {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let texts = headers
            .get_all(WWW_AUTHENTICATE)
            .iter()
            .filter_map(|value| value.to_str().ok());
        texts
            .filter_map(|text| {
                http_auth::parser::ChallengeParser::new(text)
                    .collect::<Result<Vec<_>, _>>()
                    .ok()
            })
            .flatten()
            .find_map(|challenge| {
                let parameter = |name: &str| {
                    let found = challenge.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
                    found.map(|(_, value)| value.to_unescaped())
                };
                match challenge.scheme.to_ascii_lowercase().as_str() {
                    "basic" => Some(Self::Basic),
                    "bearer" => Some(Self::Bearer {
                        realm: parameter("realm")?.parse().ok()?,
                        service: parameter("service"),
                    }),
                    _ => None,
                }
            })
    }
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

fn base(reference: &OciReference, scheme: &str) -> Result<Url, FetchError> {
    // The registry of Docker Hub has another name than its users know.
    let host = match reference.registry() {
        "docker.io" | "index.docker.io" => "registry-1.docker.io",
        other => other,
    };
    let url = format!("{scheme}://{host}/v2/{}/", repository(reference));
    url.parse().map_err(|error: url::ParseError| FetchError::Protocol {
        url,
        problem: error.to_string(),
    })
}

/// What has no owner on Docker Hub is in its library.
fn repository(reference: &OciReference) -> String {
    let repository = reference.repository();
    match reference.registry() {
        "docker.io" | "index.docker.io" if !repository.contains('/') => format!("library/{repository}"),
        _ => repository.to_owned(),
    }
}

fn check_digest(answer: &Answer, expected: Digest) -> Result<(), FetchError> {
    match answer.header(CONTENT_DIGEST).and_then(|digest| digest.parse().ok()) {
        Some(found) if found != expected => Err(FetchError::WrongDigest {
            url: shown(&answer.url),
            expected,
            found,
        }),
        _ => Ok(()),
    }
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

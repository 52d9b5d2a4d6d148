//! What can go wrong on the way. URLs are named without their queries, which can hold tokens, and nothing of a body is shown.

use std::path::PathBuf;

use policy::{ByteSize, Timeout};

use crate::Digest;

/// Why there are no bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    #[error(
        "the certificates of `{path}` could not be read: {problem}\nhint: `--ca-file` takes a file with certificates in PEM form"
    )]
    CaFile { path: PathBuf, problem: String },
    #[error("the client could not be set up: {0}")]
    Setup(String),

    #[error("`{url}` could not be reached: {problem}\nhint: check the name, the connection and, behind a proxy, HTTPS_PROXY")]
    Connect { url: String, problem: String },
    #[error("`{url}` does not speak TLS\nhint: plain HTTP is used for registries on this machine only (`localhost`, 127.0.0.1)")]
    NotTls { url: String },
    #[error(
        "the certificate of `{url}` is not trusted: {problem}\n\
         hint: if it is from an authority of your own, name that one's certificate with `--ca-file` or HOST_CA_FILE; \
         if no site is trusted, install the system's certificates (`ca-certificates`)"
    )]
    Certificate { url: String, problem: String },
    #[error("the connection to `{url}` broke: {problem}\nhint: try again")]
    Broken { url: String, problem: String },
    #[error("`{url}` sent nothing for {limit}\nhint: try again later")]
    Stalled { url: String, limit: Timeout },
    #[error("`{what}` was not complete after {limit}\nhint: try again, or download it in another way and give the path")]
    Deadline { what: String, limit: Timeout },

    #[error("`{url}` answered with status {status}{}", status_hint(*status))]
    Status { url: String, status: u16 },
    #[error("`{url}` is larger than {limit}, the most that is fetched")]
    TooLarge { url: String, limit: ByteSize },
    #[error("`{url}` ended after {received} of {expected} bytes\nhint: try again")]
    EndedEarly { url: String, received: u64, expected: u64 },
    #[error("`{url}` continued with another part than the one asked for\nhint: try again")]
    WrongPart { url: String },
    #[error("`{url}` answers compressed, though asked not to\nhint: download it in another way and give the path")]
    Encoded { url: String },

    #[error("`{url}` leads on to more than {limit} other places\nhint: give the URL where the file really is")]
    TooManyRedirects { url: String, limit: usize },
    #[error("`{url}` leads in a circle\nhint: give the URL where the file really is")]
    RedirectLoop { url: String },
    #[error("`{from}` leads on to `{to}`, which is {problem}\nhint: give the URL where the file really is")]
    Redirect {
        from: String,
        to: String,
        problem: &'static str,
    },
    #[error(
        "`{from}` leads on to `{to}`, which is an address of a private network\n\
         hint: servers may not send this host there; if it is meant, give that address yourself"
    )]
    PrivateAddress { from: String, to: String },

    #[error(
        "`{registry}` does not let {login} use `{repository}`\n\
         hint: log in with `docker login {registry}`, or set HOST_REGISTRY, HOST_REGISTRY_USERNAME and HOST_REGISTRY_PASSWORD; \
         a name that does not exist can look the same"
    )]
    Denied {
        registry: String,
        repository: String,
        /// Who asked: `somebody without credentials`, or whose credentials they were.
        login: String,
    },
    #[error(
        "the credentials for `{registry}` in `{path}` cannot be used: {problem}\nhint: `docker login {registry}` writes them anew"
    )]
    Credentials {
        registry: String,
        path: PathBuf,
        problem: String,
    },
    #[error("there is no `{0}`\nhint: check the name and the tag; what is private can look the same until `docker login`")]
    NotFound(String),
    #[error("`{url}` does not answer as a registry does: {problem}")]
    Protocol { url: String, problem: String },
    #[error(
        "`{url}` sent bytes with the digest {found}, and not {expected}\nhint: they were changed or damaged on the way, or in the registry"
    )]
    WrongDigest { url: String, expected: Digest, found: Digest },
    #[error("`{reference}` has {problem}; in it are {contents}\nhint: {hint}")]
    NoWasm {
        reference: String,
        problem: &'static str,
        contents: String,
        hint: &'static str,
    },
    #[error("`{0}` has a digest, and what is pushed gets its own\nhint: leave out the `@sha256:…`")]
    PushByDigest(String),
}

impl FetchError {
    /// Could the same request go well a moment later?
    pub(crate) fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Broken { .. } | Self::Stalled { .. } | Self::EndedEarly { .. } | Self::WrongPart { .. }
        )
    }
}

fn status_hint(status: u16) -> &'static str {
    match status {
        401 | 403 => "\nhint: downloads are anonymous; fetch it with your credentials in another way and give the path",
        404 | 410 => "\nhint: check the URL; nothing is there",
        429 => "\nhint: too many requests were made; wait, or log in to the registry",
        500..=599 => "\nhint: the server has a problem; try again later",
        _ => "\nhint: open the URL in a browser to see what the server offers there",
    }
}

//! The names of sources, as people write them.
//!
//! Text is parsed here, once, and without looking at the disk or the network: the same text always means the same source.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{OciReference, OciReferenceError};

/// Where a component is.
///
/// | text                                 | means                                                      |
/// |--------------------------------------|------------------------------------------------------------|
/// | `x.wasm`, `./x.wasm`, `/a`, `tools/` | a file or a directory of this machine                      |
/// | `file:///a/b.wasm`                   | the same, as a URL: absolute, `%20` for a space            |
/// | `https://example.com/x.wasm`         | a download                                                 |
/// | `oci://ghcr.io/user/tool:1.0`        | an artifact of a registry: see [`OciReference`]            |
///
/// What was parsed prints as a text that is parsed to the same source.
///
/// ```
/// let source: sources::Source = "oci://ghcr.io/user/tool:1.0".parse()?;
/// assert_eq!(source.suggested_name(), "tool");
/// assert_eq!(source.to_string(), "oci://ghcr.io/user/tool:1.0");
/// # Ok::<(), sources::SourceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Source {
    File(PathBuf),
    Https(HttpsUrl),
    Oci(OciReference),
}

impl Source {
    /// The text from which an id can be made: the name of the file, of the last part of the URL or of the repository. It is
    /// never empty, and otherwise it is what somebody wrote: neither safe as a path nor unique.
    pub fn suggested_name(&self) -> String {
        let name = match self {
            Self::File(path) => without_wasm(path),
            Self::Https(url) => url.file_name(),
            Self::Oci(reference) => reference.name().to_owned(),
        };
        if name.is_empty() { "component".to_owned() } else { name }
    }
}

/// The name of a file without the endings of WebAssembly.
fn without_wasm(path: &Path) -> String {
    let endings = ["wasm", "wat"];
    let is_wasm = path
        .extension()
        .is_some_and(|extension| endings.iter().any(|ending| extension.eq_ignore_ascii_case(ending)));
    let name = if is_wasm { path.file_stem() } else { path.file_name() };
    name.unwrap_or_default().to_string_lossy().into_owned()
}

impl Source {
    /// A file, if its path can be written down and read again.
    pub fn file(path: &Path) -> Result<Self, SourceError> {
        let text = path.to_str().ok_or_else(|| SourceError::NotText(path.to_owned()))?;
        refuse_control_characters(text)?;
        Ok(Self::File(path.to_owned()))
    }

    /// For people: the query of a URL is left out, because it may carry a secret.
    pub fn shown(&self) -> String {
        match self {
            Self::Https(url) => url.shown(),
            other => other.to_string(),
        }
    }
}

impl FromStr for Source {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        if text.is_empty() {
            return Err(SourceError::Empty);
        }
        refuse_control_characters(text)?;
        match split_scheme(text) {
            Some((scheme, rest)) => match scheme.to_ascii_lowercase().as_str() {
                "https" => text.parse().map(Self::Https),
                "oci" => Ok(Self::Oci(rest.parse()?)),
                "file" => file_path(text).map(Self::File),
                "http" => Err(SourceError::PlainHttp(without_query(text).to_owned())),
                _ => Err(SourceError::Scheme(scheme.to_owned())),
            },
            None if looks_like_a_registry(text) => Err(SourceError::ForgottenScheme(text.to_owned())),
            None => Ok(Self::File(text.into())),
        }
    }
}

/// `SCHEME://REST`. A drive (`C:\`) is none: it has no `//`.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme.then_some((scheme, rest))
}

/// URL parsers drop tabs and newlines silently; in a terminal or a log, other characters of this kind forge what people see.
fn refuse_control_characters(text: &str) -> Result<(), SourceError> {
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(SourceError::ControlCharacter(c)),
        None => Ok(()),
    }
}

fn file_path(text: &str) -> Result<PathBuf, SourceError> {
    let refused = || SourceError::FileUrl(text.to_owned());
    let url = Url::parse(text).map_err(|_| refused())?;
    if url.host_str().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(refused());
    }
    let path = url.to_file_path().map_err(|()| refused())?;
    // `%0A` is decoded only now; and what is no Unicode could not be printed.
    refuse_control_characters(path.to_str().ok_or_else(refused)?)?;
    Ok(path)
}

/// Is this `ghcr.io/user/tool:1`, of which somebody forgot the `oci://`? What could as well be a path counts as one.
fn looks_like_a_registry(text: &str) -> bool {
    let Some((host, rest)) = text.split_once('/') else {
        return false;
    };
    let name = rest.rsplit('/').next().unwrap_or_default();
    let has_version = name.contains([':', '@']);
    let well_known_ending = [".io", ".com", ".dev", ".net", ".org"].iter().any(|end| host.ends_with(end));
    let hosted = host == "localhost" || host.contains(['.', ':']);
    hosted
        && !host.starts_with('.')
        && text.parse::<OciReference>().is_ok()
        && (has_version || (well_known_ending && !name.contains('.')))
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Https(url) => url.fmt(f),
            Self::Oci(reference) => write!(f, "oci://{reference}"),
        }
    }
}

impl TryFrom<String> for Source {
    type Error = SourceError;

    fn try_from(text: String) -> Result<Self, SourceError> {
        text.parse()
    }
}

impl From<Source> for String {
    fn from(source: Source) -> Self {
        source.to_string()
    }
}

/// A URL that is `https`, names a host, and carries neither credentials nor a fragment.
///
/// It prints whole, with its query, because it is stored so. A query can hold a token: what people and logs see is
/// [`HttpsUrl::shown`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpsUrl(Url);

impl HttpsUrl {
    pub(crate) fn as_url(&self) -> &Url {
        &self.0
    }

    /// The URL without its query.
    pub fn shown(&self) -> String {
        shown(&self.0)
    }

    /// The last part of the path, decoded and without its ending; the host where there is no path.
    fn file_name(&self) -> String {
        let last = self
            .0
            .path_segments()
            .and_then(|parts| parts.rev().find(|part| !part.is_empty()));
        match last {
            Some(last) => {
                let last = percent_decode_str(last).decode_utf8_lossy();
                without_wasm(Path::new(&*last))
            }
            None => self.0.host_str().unwrap_or_default().to_owned(),
        }
    }
}

/// A URL without what may be secret in it.
pub(crate) fn shown(url: &Url) -> String {
    without_query(url.as_str()).to_owned()
}

fn without_query(url: &str) -> &str {
    url.split_once(['?', '#']).map_or(url, |(before, _)| before)
}

impl FromStr for HttpsUrl {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        refuse_control_characters(text)?;
        let url = Url::parse(text).map_err(|error| SourceError::Url {
            url: without_query(text).to_owned(),
            error,
        })?;
        if url.scheme() != "https" {
            return Err(SourceError::PlainHttp(shown(&url)));
        }
        if !url.username().is_empty() || url.password().is_some() {
            // Not with the text: it holds the password.
            return Err(SourceError::Userinfo);
        }
        if url.fragment().is_some() {
            return Err(SourceError::Fragment(shown(&url)));
        }
        Ok(Self(url))
    }
}

impl fmt::Display for HttpsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

/// Why a text names no source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    #[error("the path `{}` is no text\nhint: rename the file", .0.display())]
    NotText(PathBuf),
    #[error("the source is empty\nhint: give a path, `https://…` or `oci://REGISTRY/REPOSITORY:TAG`")]
    Empty,
    #[error("the source has a control character, {0:?}\nhint: it may have come with a copied text; type it anew")]
    ControlCharacter(char),
    #[error(
        "`{0}` is plain HTTP, which anybody on the way can change\nhint: use `https://`, or download it yourself and give the path"
    )]
    PlainHttp(String),
    #[error("`{0}://` is no kind of source\nhint: give a path, `https://…` or `oci://REGISTRY/REPOSITORY:TAG`")]
    Scheme(String),
    #[error("`{0}` looks like an artifact in a registry\nhint: write `oci://{0}`; if it is a path, write `./{0}`")]
    ForgottenScheme(String),
    #[error("`{0}` is no URL of a file of this machine\nhint: write `file:///` and the absolute path, or just the path")]
    FileUrl(String),
    #[error("`{url}` is no URL: {error}\nhint: write it as in `https://example.com/tool.wasm`")]
    Url { url: String, error: url::ParseError },
    #[error(
        "the URL has a user name or a password in it, which others can read in the list of processes and in files\n\
         hint: downloads are anonymous; for a registry use `docker login`, or set HOST_REGISTRY, HOST_REGISTRY_USERNAME and HOST_REGISTRY_PASSWORD"
    )]
    Userinfo,
    #[error("`{0}` has a fragment, which a server never sees\nhint: leave out the `#` and what follows it")]
    Fragment(String),
    #[error(transparent)]
    Oci(#[from] OciReferenceError),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn sources_are_read_and_printed() {
        let pinned = format!("oci://ghcr.io/user/tool@{DIGEST}");
        let both = format!("oci://ghcr.io/user/tool:1@{DIGEST}");
        for (text, kind, printed, name) in [
            ("x.wasm", "file", "x.wasm", "x"),
            ("./x.wasm", "file", "./x.wasm", "x"),
            ("/a/b.wasm", "file", "/a/b.wasm", "b"),
            ("/a/b.c.WASM", "file", "/a/b.c.WASM", "b.c"),
            ("tools.d/", "file", "tools.d/", "tools.d"),
            ("a/v1.2", "file", "a/v1.2", "v1.2"),
            (".", "file", ".", "component"),
            ("/", "file", "/", "component"),
            ("a b.wasm", "file", "a b.wasm", "a b"),
            ("./ghcr.io/user/tool:1", "file", "./ghcr.io/user/tool:1", "tool:1"),
            ("plugins.d/all", "file", "plugins.d/all", "all"),
            ("example.com/x.wasm", "file", "example.com/x.wasm", "x"),
            ("file:///a/b%20c.wasm", "file", "/a/b c.wasm", "b c"),
            ("file:///a/%2e%2e/b.wasm", "file", "/b.wasm", "b"),
            ("https://example.com/x.wasm", "https", "https://example.com/x.wasm", "x"),
            ("HTTPS://Example.COM/a/x.wasm", "https", "https://example.com/a/x.wasm", "x"),
            ("https://example.com", "https", "https://example.com/", "example.com"),
            (
                "https://example.com/x%20y/?token=1",
                "https",
                "https://example.com/x%20y/?token=1",
                "x y",
            ),
            ("https://2130706433/x", "https", "https://127.0.0.1/x", "x"),
            ("oci://ghcr.io/user/tool:1.0", "oci", "oci://ghcr.io/user/tool:1.0", "tool"),
            ("oci://ghcr.io/user/tool", "oci", "oci://ghcr.io/user/tool:latest", "tool"),
            ("oci://localhost:5000/tool", "oci", "oci://localhost:5000/tool:latest", "tool"),
            ("oci://[::1]:5000/a/tool:x", "oci", "oci://[::1]:5000/a/tool:x", "tool"),
            (&pinned, "oci", &pinned, "tool"),
            (&both, "oci", &both, "tool"),
        ] {
            let source: Source = text.parse().unwrap();
            let found = match &source {
                Source::File(_) => "file",
                Source::Https(_) => "https",
                Source::Oci(_) => "oci",
            };
            assert_eq!(
                (found, source.to_string().as_str(), source.suggested_name().as_str()),
                (kind, printed, name),
                "{text}"
            );
            assert_eq!(source.to_string().parse(), Ok(source.clone()), "{text}");
            let json = serde_json::to_string(&source).unwrap();
            assert_eq!(serde_json::from_str::<Source>(&json).unwrap(), source);
        }
    }

    #[test]
    fn errors_teach_the_form() {
        for (text, part) in [
            ("", "hint: give a path"),
            (
                "http://example.com/x.wasm?token=1",
                "`http://example.com/x.wasm` is plain HTTP",
            ),
            ("s3://bucket/x.wasm", "`s3://` is no kind of source"),
            ("ftp://example.com/x.wasm", "`ftp://` is no kind of source"),
            ("ghcr.io/user/tool:1", "write `oci://ghcr.io/user/tool:1`"),
            ("ghcr.io/user/tool", "write `oci://ghcr.io/user/tool`"),
            ("localhost:5000/tool:1", "write `oci://localhost:5000/tool:1`"),
            ("https://user:secret@example.com/x.wasm", "hint: downloads are anonymous"),
            ("https://user@example.com/x.wasm", "`docker login`"),
            ("https://example.com/x.wasm#part", "leave out the `#`"),
            ("https://", "is no URL"),
            ("https://exa mple.com/", "is no URL"),
            ("https://example.com/\n", "control character, '\\n'"),
            ("x\0.wasm", "control character, '\\0'"),
            ("\u{1b}[2J", "control character"),
            ("file:///a%00b", "control character"),
            ("file://server/a", "is no URL of a file of this machine"),
            ("file:///a?b", "is no URL of a file of this machine"),
            ("file:///a%ff", "is no URL of a file of this machine"),
            ("oci://user/tool", "names no registry"),
            ("oci://", "names no registry"),
        ] {
            let error = text.parse::<Source>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
            assert!(error.contains("hint: "), "{text}: {error}");
            assert!(!error.contains("secret") && !error.contains("token"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_prints_as_itself(text in "(https://|oci://|file:///|\\./|)[a-z0-9./:@%?_\\-]{0,40}|\\PC{0,30}") {
            if let Ok(source) = text.parse::<Source>() {
                prop_assert_eq!(source.to_string().parse(), Ok(source.clone()));
                prop_assert!(!source.suggested_name().is_empty());
            }
        }
    }
}

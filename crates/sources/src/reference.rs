//! Names of artifacts in registries.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use url::{Host, Url};

use crate::{Digest, DigestError};

/// An artifact in a registry: `REGISTRY/REPOSITORY`, then `:TAG`, `@sha256:…` or both.
///
/// The registry is always named, because a default would be one that somebody else chose. Without tag and digest the tag is
/// `latest`, as for `docker` and `oras`. With both, the digest decides, and the tag is a note for people.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OciReference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

impl OciReference {
    /// The host of the registry, with its port if it has one of its own.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    pub fn repository(&self) -> &str {
        &self.repository
    }

    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// The same artifact, by what it is instead of by what it is called.
    #[must_use]
    pub fn pinned(&self, digest: Digest) -> Self {
        Self {
            digest: Some(digest),
            ..self.clone()
        }
    }

    /// The last part of the repository.
    pub fn name(&self) -> &str {
        self.repository.rsplit('/').next().unwrap_or_default()
    }

    /// What comes after `manifests/` in a request.
    pub(crate) fn selector(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, Some(tag)) => tag.clone(),
            (None, None) => "latest".to_owned(),
        }
    }
}

impl FromStr for OciReference {
    type Err = OciReferenceError;

    fn from_str(text: &str) -> Result<Self, OciReferenceError> {
        let (name, digest) = match text.split_once('@') {
            Some((_, digest)) if !digest.contains(':') => return Err(OciReferenceError::Userinfo),
            Some((before, _)) if !before.contains('/') => return Err(OciReferenceError::Userinfo),
            Some((name, digest)) => (name, Some(digest.parse()?)),
            None => (text, None),
        };
        let (registry, path) = name.split_once('/').unwrap_or((name, ""));
        if !is_registry(registry) {
            return Err(OciReferenceError::Registry(text.to_owned()));
        }
        let (repository, tag) = match path.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path, None),
        };
        if repository.len() > 255 || !repository.split('/').all(is_repository_part) {
            return Err(OciReferenceError::Repository(repository.to_owned()));
        }
        if let Some(tag) = tag.filter(|tag| !is_tag(tag)) {
            return Err(OciReferenceError::Tag(tag.to_owned()));
        }
        let tag = match (tag, digest) {
            (None, None) => Some("latest"),
            (tag, _) => tag,
        };
        Ok(Self {
            registry: registry.to_ascii_lowercase(),
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest,
        })
    }
}

/// A host that shows itself as one, by a dot, a port or the name `localhost`: `user/tool` names none.
fn is_registry(text: &str) -> bool {
    let shows_itself = text.contains(['.', ':']) || text.eq_ignore_ascii_case("localhost");
    // The characters are those that a host and a port can have, so that nothing else of a URL can hide in it.
    let characters = text.chars().all(|c| c.is_ascii_alphanumeric() || ".-:[]".contains(c));
    shows_itself && characters && Url::parse(&format!("https://{text}/")).is_ok_and(|url| url.has_host())
}

/// `[a-z0-9]+`, joined by `.`, `_`, `__` or dashes: the grammar of the distribution specification.
fn is_repository_part(text: &str) -> bool {
    let is_alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let separators = text.split(is_alphanumeric).filter(|separator| !separator.is_empty());
    text.starts_with(is_alphanumeric)
        && text.ends_with(is_alphanumeric)
        && separators
            .into_iter()
            .all(|separator| matches!(separator, "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-'))
}

fn is_tag(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (1..=128).contains(&text.len()) && text.starts_with(is_word) && text.chars().all(|c| is_word(c) || ".-".contains(c))
}

/// Does this host stay on this machine, whatever the network does? These are the hosts that Docker speaks plain HTTP to.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => IpAddr::from(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::from(ip).is_loopback(),
        None => false,
    }
}

impl fmt::Display for OciReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

/// Why a text names no artifact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OciReferenceError {
    #[error("`{0}` names no registry\nhint: write `oci://REGISTRY/REPOSITORY:TAG`, as in `oci://ghcr.io/user/tool:1.0`")]
    Registry(String),
    #[error("`{0}` is no repository\nhint: it is of lower-case letters, digits and single `.`, `_`, `-` and `/` between them")]
    Repository(String),
    #[error("`{0}` is no tag\nhint: it is at most 128 letters, digits, `_`, `.` and `-`, and starts with neither `.` nor `-`")]
    Tag(String),
    #[error(
        "there is an `@` that starts no digest, or a user name before the registry\n\
         hint: a digest is written `REPOSITORY@sha256:…`; for credentials use `docker login`, or set HOST_REGISTRY, HOST_REGISTRY_USERNAME and HOST_REGISTRY_PASSWORD"
    )]
    Userinfo,
    #[error(transparent)]
    Digest(#[from] DigestError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_fall_into_their_parts() {
        let digest = Digest::of(b"");
        for (text, registry, repository, tag, pinned) in [
            ("ghcr.io/user/tool:1.0", "ghcr.io", "user/tool", Some("1.0"), None),
            ("GHCR.io/a/b/c", "ghcr.io", "a/b/c", Some("latest"), None),
            ("localhost/tool", "localhost", "tool", Some("latest"), None),
            ("127.0.0.1:5000/tool:V_1", "127.0.0.1:5000", "tool", Some("V_1"), None),
            (
                "[::1]:5000/a.b/c__d/e--f",
                "[::1]:5000",
                "a.b/c__d/e--f",
                Some("latest"),
                None,
            ),
            (&format!("docker.io/u/t@{digest}"), "docker.io", "u/t", None, Some(digest)),
            (
                &format!("docker.io/u/t:1@{digest}"),
                "docker.io",
                "u/t",
                Some("1"),
                Some(digest),
            ),
        ] {
            let reference: OciReference = text.parse().unwrap();
            let parts = (
                reference.registry(),
                reference.repository(),
                reference.tag(),
                reference.digest(),
            );
            assert_eq!(parts, (registry, repository, tag, pinned), "{text}");
        }
    }

    #[test]
    fn what_names_no_artifact_is_refused() {
        let long = format!("ghcr.io/{}", "a".repeat(256));
        for text in [
            "",
            "tool",
            "user/tool",
            "ghcr.io",
            "ghcr.io/",
            "ghcr.io//tool",
            "/user/tool",
            "ghcr.io/User/tool",
            "ghcr.io/a/../b",
            "ghcr.io/a/%2e%2e/b",
            "ghcr.io/a/b:",
            "ghcr.io/a/b:.x",
            "ghcr.io/a/b:x/y",
            "ghcr.io/a/b@",
            "ghcr.io/a/b@sha256:12",
            "ghcr.io/a/b@md5:00",
            "user@ghcr.io/a/b",
            "user:pw@ghcr.io/a/b",
            "ghcr.io?x/a/b",
            "ghcr.io/a/b?x",
            "ghcr.io/a_/b",
            "ghcr.io/a..b",
            "ghcr.io/a___b",
            "ghcr.io:99999/a",
            "ghcr.io/a b",
            "ghcr.io\\x/a",
            "ghcr.io/ä",
            &long,
        ] {
            let error = text.parse::<OciReference>().unwrap_err().to_string();
            assert!(error.contains("\nhint: "), "{text}: {error}");
            assert!(!error.contains("pw"), "{error}");
        }
    }
}

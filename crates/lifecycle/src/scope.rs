//! Which sources an agent may load from.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use sources::Source;
use wildmatch::WildMatchPattern;

/// `*` stands for any text. Nothing else is special: a `?` belongs to a URL.
type Glob = WildMatchPattern<'*', '\0'>;

/// A pattern of sources, parsed once.
///
/// | text                             | means                                                             |
/// |----------------------------------|-------------------------------------------------------------------|
/// | `oci://ghcr.io/my-team/*`        | what is below that path of that registry                          |
/// | `https://*.example.com/tools/*`  | the same, of any subdomain of that host; not of the host itself   |
/// | `/srv/components/*`              | files in that directory and below, wherever links and `..` lead   |
///
/// Scheme and host are compared as such: a `*` in the path never reaches into them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct SourcePattern(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Remote { scheme: String, host: String, path: Glob },
    File { folder: PathBuf, name: Glob },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no pattern of sources\nhint: write `oci://HOST/PATH/*`, `https://HOST/PATH/*` (`*.HOST` for its subdomains), or \
     `/absolute/directory/*`"
)]
pub struct SourcePatternError(String);

impl TryFrom<String> for SourcePattern {
    type Error = SourcePatternError;

    fn try_from(text: String) -> Result<Self, SourcePatternError> {
        let refused = || SourcePatternError(text.clone());
        if let Some((scheme, rest)) = text.split_once("://") {
            let (host, path) = rest.split_once('/').ok_or_else(refused)?;
            let bare = host.strip_prefix("*.").unwrap_or(host);
            if !["https", "oci"].contains(&scheme) || bare.is_empty() || bare.contains(['*', '@']) || path.is_empty() {
                return Err(refused());
            }
            return Ok(Self(Kind::Remote {
                scheme: scheme.to_owned(),
                host: host.to_ascii_lowercase(),
                path: Glob::new(path),
            }));
        }
        let (folder, name) = text.rsplit_once('/').ok_or_else(refused)?;
        if !text.starts_with('/') || folder.contains('*') || name.is_empty() {
            return Err(refused());
        }
        Ok(Self(Kind::File {
            folder: Path::new(&format!("{folder}/")).to_owned(),
            name: Glob::new(name),
        }))
    }
}

impl SourcePattern {
    /// Whether a source is one of these. A file counts by where it really is.
    pub(crate) fn admits(&self, source: &Source) -> bool {
        match (&self.0, source) {
            (Kind::File { folder, name }, Source::File(path)) => {
                let (Ok(folder), Ok(path)) = (folder.canonicalize(), path.canonicalize()) else {
                    return false;
                };
                let rest = path.strip_prefix(folder).ok().and_then(Path::to_str);
                rest.is_some_and(|rest| name.matches(rest))
            }
            (Kind::Remote { scheme, host, path }, Source::Https(_) | Source::Oci(_)) => {
                let text = source.to_string();
                let parts = text
                    .split_once("://")
                    .and_then(|(scheme, rest)| Some((scheme, rest.split_once('/')?)));
                let Some((of_scheme, (of_host, of_path))) = parts else {
                    return false;
                };
                let of_host = of_host.to_ascii_lowercase();
                let same_host = match host.strip_prefix('*') {
                    Some(domain) => of_host.ends_with(domain),
                    None => of_host == *host,
                };
                of_scheme == scheme && same_host && path.matches(of_path)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_admits_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let root = root.to_str().unwrap();
        for path in ["ok", "ok/below", "okay"] {
            std::fs::create_dir(folder.path().join(path)).unwrap();
        }
        for path in ["ok/a.wasm", "ok/below/b.wasm", "okay/c.wasm", "d.wasm"] {
            crate::write_atomically(&folder.path().join(path), b"").unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path().join("d.wasm"), folder.path().join("ok/link.wasm")).unwrap();
        for (pattern, source, admitted) in [
            ("https://example.com/*", "https://example.com/x.wasm", true),
            ("https://Example.com/*", "https://EXAMPLE.com/a/b.wasm", true),
            ("https://example.com/*", "https://example.com.evil.org/x.wasm", false),
            ("https://example.com/*", "https://sub.example.com/x.wasm", false),
            ("https://example.com/*", "https://evil.org/example.com/x.wasm", false),
            ("https://example.com/*", "https://example.com:8443/x.wasm", false),
            ("https://*.example.com/*", "https://a.example.com/x.wasm", true),
            ("https://*.example.com/*", "https://127.0.0.1/.example.com/x.wasm", false),
            ("https://*.example.com/*", "https://evilexample.com/x.wasm", false),
            ("https://example.com/x.wasm?v=1", "https://example.com/x.wasm?v=1", true),
            ("https://example.com/x.wasm?v=1", "https://example.com/x.wasmzv=1", false),
            ("https://example.com/tools/*", "https://example.com/tools/../x.wasm", false),
            ("oci://ghcr.io/me/*", "oci://ghcr.io/me/tool:1", true),
            ("oci://ghcr.io/me/*", "oci://ghcr.io/meany/tool:1", false),
            ("oci://ghcr.io/me/*", "https://ghcr.io/me/tool", false),
            ("ROOT/ok/*", "ROOT/ok/a.wasm", true),
            ("ROOT/ok/*", "ROOT/ok/below/b.wasm", true),
            ("ROOT/ok/*", "ROOT/okay/c.wasm", false),
            ("ROOT/ok/*", "ROOT/ok/../d.wasm", false),
            ("ROOT/ok/*", "ROOT/ok/link.wasm", false),
            ("ROOT/ok/*", "ROOT/ok/missing.wasm", false),
            ("ROOT/ok/a.wasm", "ROOT/ok/a.wasm", true),
        ] {
            let (pattern, source) = (pattern.replace("ROOT", root), source.replace("ROOT", root));
            let parsed = SourcePattern::try_from(pattern.clone()).unwrap();
            assert_eq!(parsed.admits(&source.parse().unwrap()), admitted, "{pattern} {source}");
        }
    }

    #[test]
    fn what_could_never_match_is_refused() {
        for text in [
            "",
            "*",
            "x/*",
            "~/x/*",
            "/srv/*/x",
            "/srv/",
            "https://example.com",
            "https://*/x",
            "https://e*.com/x",
            "http://example.com/*",
        ] {
            assert!(SourcePattern::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}

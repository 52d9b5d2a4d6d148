//! Where a server is: a command that is started, or an address.

use std::fmt;
use std::path::PathBuf;

use http::{HeaderMap, HeaderName, HeaderValue};
use url::{Host, Url};

/// A server that can be connected to.
#[derive(Clone, Debug)]
pub enum Target {
    Command(ServerCommand),
    Http(Endpoint),
}

/// A program that speaks MCP on its stdin and stdout. It runs with the rights of whoever starts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCommand {
    pub program: String,
    pub arguments: Vec<String>,
    /// Besides the environment of this process.
    pub environment: Vec<(String, String)>,
    pub directory: Option<PathBuf>,
}

/// A server behind an address, with what is sent along to it.
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
}

/// Why a text is no target.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error("`stdio:` needs a command, as in `stdio:npx server`")]
    NoCommand,
    #[error("`{0}` cannot be split into words: a quote is open")]
    OpenQuote(String),
    #[error("`{url}` is no address: {problem}")]
    Url { url: String, problem: String },
    #[error("`{0}` is no header\nhint: write it as `Name: value`")]
    Header(String),
    #[error("the header `{0}` belongs to the protocol and cannot be set")]
    ReservedHeader(HeaderName),
    #[error("a token is not sent to `{0}` without encryption\nhint: use `https://`")]
    Unencrypted(String),
}

/// Those that a connection sets itself, besides all that begin with `mcp-`.
const RESERVED: [&str; 7] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "transfer-encoding",
];

impl Target {
    /// Reads `stdio:COMMAND ARGUMENTS…` or an address. `None` is neither.
    pub fn parse(text: &str) -> Option<Result<Self, TargetError>> {
        if let Some(line) = text.strip_prefix("stdio:") {
            return Some(ServerCommand::parse(line).map(Self::Command));
        }
        let (scheme, _) = text.split_once("://")?;
        let is_http = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
        is_http.then(|| Endpoint::parse(text).map(Self::Http))
    }
}

impl ServerCommand {
    /// Splits a line as a shell does, and interprets nothing else in it.
    pub fn parse(line: &str) -> Result<Self, TargetError> {
        let words = shlex::split(line).ok_or_else(|| TargetError::OpenQuote(line.to_owned()))?;
        let mut words = words.into_iter();
        Ok(Self {
            program: words
                .next()
                .filter(|program| !program.is_empty())
                .ok_or(TargetError::NoCommand)?,
            arguments: words.collect(),
            environment: Vec::new(),
            directory: None,
        })
    }
}

impl Endpoint {
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let refused = |url: &str, problem: &str| TargetError::Url {
            url: url.to_owned(),
            problem: problem.to_owned(),
        };
        // Nothing after the host is repeated: it may hold a secret.
        let start = text.split(['?', '#', '@']).next().unwrap_or_default();
        let mut url = Url::parse(text).map_err(|error| refused(start, &error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refused(start, "it begins with neither `http://` nor `https://`"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            let shown = url.origin().ascii_serialization();
            return Err(refused(&shown, "it has a password in it; send one with a header"));
        }
        url.set_fragment(None);
        Ok(Self {
            url,
            headers: HeaderMap::new(),
        })
    }

    /// Adds `Name: value` to every request.
    pub fn add_header(&mut self, line: &str) -> Result<(), TargetError> {
        // The line may hold a secret, so it is not repeated; its name is.
        let name = line.split_once(':').map_or("", |(name, _)| name).trim();
        let (_, value) = line
            .split_once(':')
            .ok_or_else(|| TargetError::Header(line.split_whitespace().next().unwrap_or_default().to_owned()))?;
        self.insert(name, value.trim())
    }

    /// Sends a bearer token, but not in the clear over a network.
    pub fn set_token(&mut self, token: &str) -> Result<(), TargetError> {
        if self.url.scheme() != "https" && !self.is_on_this_machine() {
            return Err(TargetError::Unencrypted(self.shown()));
        }
        self.insert("authorization", &format!("Bearer {token}"))
    }

    fn insert(&mut self, name: &str, value: &str) -> Result<(), TargetError> {
        let refused = |_| TargetError::Header(name.to_owned());
        let name: HeaderName = name.parse().map_err(|_| TargetError::Header(name.to_owned()))?;
        if RESERVED.contains(&name.as_str()) || name.as_str().starts_with("mcp-") {
            return Err(TargetError::ReservedHeader(name));
        }
        let mut value = HeaderValue::from_str(value).map_err(refused)?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(())
    }

    /// Scheme, host and port: what holds no secret.
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    pub(crate) fn is_on_this_machine(&self) -> bool {
        match self.url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        }
    }

    /// For messages: a query may hold a key.
    pub(crate) fn shown(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.to_string()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("url", &self.shown()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_told_apart() {
        let Some(Ok(Target::Command(command))) = Target::parse("stdio:npx -y 'a server' --flag=\"x y\"") else {
            panic!("no command");
        };
        assert_eq!(command.program, "npx");
        assert_eq!(command.arguments, ["-y", "a server", "--flag=x y"]);
        assert!(matches!(Target::parse("stdio:"), Some(Err(TargetError::NoCommand))));
        assert!(matches!(Target::parse("stdio:a 'b"), Some(Err(TargetError::OpenQuote(_)))));
        assert!(matches!(Target::parse("HTTPS://example.com/mcp"), Some(Ok(Target::Http(_)))));
        assert!(Target::parse("./plugin.wasm").is_none());
        assert!(Target::parse("oci://example.com/x:1").is_none());
        let error = Target::parse("http://u:secret@h/secret").unwrap().unwrap_err().to_string();
        assert!(error.contains("http://h") && !error.contains("secret"), "{error}");
        assert!(Endpoint::parse("ftp://h/").is_err());
    }

    #[test]
    fn secrets_stay_where_they_belong() {
        let mut endpoint = Endpoint::parse("http://example.com/mcp?key=secret").unwrap();
        assert!(matches!(endpoint.set_token("secret"), Err(TargetError::Unencrypted(_))));
        for line in ["x secret", "bad name: secret", "x: secret\nb: c"] {
            let error = endpoint.add_header(line).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(matches!(
            endpoint.add_header("Mcp-Session-Id: 1"),
            Err(TargetError::ReservedHeader(_))
        ));
        endpoint.add_header("X-Api-Key: secret").unwrap();
        assert!(!format!("{endpoint:?}").contains("secret"));
        Endpoint::parse("http://127.0.0.1:1/mcp")
            .unwrap()
            .set_token("secret")
            .unwrap();
    }
}

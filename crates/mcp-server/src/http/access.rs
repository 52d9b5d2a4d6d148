//! Which requests mean this server, and from which pages they may come.
//!
//! A page of anywhere can make a browser send requests to this machine, under a name that its owner lets resolve to it. Such a request
//! names the stranger's host in `Host` or its page in `Origin`, so both are looked at before anything else.

use std::net::IpAddr;
use std::str::FromStr;

use http::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use http::uri::{Authority, Uri};

/// A name that a server is known by, with any port or one: `mcp.example.com`, `mcp.example.com:8443`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName {
    name: String,
    port: Option<u16>,
}

/// A site whose pages may ask: `https://app.example.com`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    name: String,
    /// `None` where a scheme has no usual port and none is given.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("`{0}` is no name of a host, as in `mcp.example.com` or `mcp.example.com:8443`")]
    Host(String),
    #[error("`{0}` is no origin, as in `https://app.example.com` or `http://10.0.0.5:3000`")]
    Origin(String),
}

impl FromStr for HostName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let error = || NameError::Host(text.to_owned());
        let authority: Authority = text.parse().map_err(|_| error())?;
        let port = port_of(&authority).ok_or_else(error)?;
        let name = name_of(&authority);
        match name.contains(['*', '@']) || name.is_empty() {
            true => Err(error()),
            false => Ok(Self { name, port }),
        }
    }
}

impl FromStr for Origin {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let error = || NameError::Origin(text.to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(error)?;
        let HostName { name, port } = rest.parse().map_err(|_| error())?;
        let scheme = scheme.to_ascii_lowercase();
        let usual = match scheme.as_str() {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        Ok(Self {
            scheme,
            name,
            port: port.or(usual),
        })
    }
}

impl Origin {
    /// A page that this machine serves itself.
    fn is_loopback(&self) -> bool {
        matches!(self.scheme.as_str(), "http" | "https") && is_loopback(&self.name)
    }
}

/// In lower case and without the brackets of an IPv6 address.
fn name_of(authority: &Authority) -> String {
    let host = authority.host();
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    bare.unwrap_or(host).to_ascii_lowercase()
}

/// The port, or none. `None` where there is something else in its place, or a user before the name.
fn port_of(authority: &Authority) -> Option<Option<u16>> {
    match (authority.as_str() == authority.host(), authority.port_u16()) {
        (true, _) => Some(None),
        (false, Some(port)) if authority.as_str() == format!("{}:{port}", authority.host()) => Some(Some(port)),
        (false, _) => None,
    }
}

fn is_loopback(name: &str) -> bool {
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No name of a server, or something that is none.
    NoHost,
    Host,
    Origin,
}

/// What is allowed besides this machine itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Access {
    pub(super) hosts: Vec<HostName>,
    pub(super) origins: Vec<Origin>,
}

impl Access {
    /// Checks a request that came in at an address of this machine. The origin is given back where its pages may read the answer.
    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap, local: IpAddr) -> Result<Option<HeaderValue>, Refusal> {
        let given = headers.get_all(HOST).iter().map(|value| value.to_str().unwrap_or_default());
        let mut is_named = false;
        for text in given.chain(uri.authority().map(Authority::as_str)) {
            let host = text.parse().map_err(|_| Refusal::NoHost)?;
            if !self.is_ours(&host, local) {
                return Err(Refusal::Host);
            }
            is_named = true;
        }
        if !is_named {
            return Err(Refusal::NoHost);
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => self.check_origin(value),
            (Some(_), Some(_)) => Err(Refusal::Origin),
        }
    }

    fn is_ours(&self, host: &HostName, local: IpAddr) -> bool {
        let is_local = || {
            host.name
                .parse::<IpAddr>()
                .is_ok_and(|ip| ip.to_canonical() == local.to_canonical())
        };
        let is_allowed = |allowed: &HostName| allowed.name == host.name && (allowed.port.is_none() || allowed.port == host.port);
        is_loopback(&host.name) || is_local() || self.hosts.iter().any(is_allowed)
    }

    fn check_origin(&self, value: &HeaderValue) -> Result<Option<HeaderValue>, Refusal> {
        // `null`, the origin of files and of sandboxed frames, is none of these.
        let origin: Origin = value
            .to_str()
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or(Refusal::Origin)?;
        if self.origins.contains(&origin) {
            Ok(Some(value.clone()))
        } else if origin.is_loopback() {
            Ok(None)
        } else {
            Err(Refusal::Origin)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        Access {
            hosts: ["mcp.example.com", "other.example.com:8443"]
                .map(|name| name.parse().unwrap())
                .into(),
            origins: ["https://app.example.com", "http://10.0.0.5:3000", "tauri://localhost"]
                .map(|origin| origin.parse().unwrap())
                .into(),
        }
    }

    fn check(host: Option<&str>, origin: Option<&str>) -> Result<bool, Refusal> {
        let mut headers = HeaderMap::new();
        let value = |text: &str| HeaderValue::from_str(text).unwrap();
        host.map(|host| headers.insert(HOST, value(host)));
        origin.map(|origin| headers.insert(ORIGIN, value(origin)));
        let local = IpAddr::from([192, 168, 1, 7]);
        let readable = access().check(&Uri::from_static("/mcp"), &headers, local)?;
        Ok(readable.is_some())
    }

    #[test]
    fn hosts() {
        for (host, expected) in [
            ("localhost", Ok(false)),
            ("LocalHost:8080", Ok(false)),
            ("127.0.0.1:8080", Ok(false)),
            ("127.9.9.9", Ok(false)),
            ("[::1]:8080", Ok(false)),
            ("[::ffff:127.0.0.1]", Ok(false)),
            ("192.168.1.7:8080", Ok(false)),
            ("192.168.1.8", Err(Refusal::Host)),
            ("mcp.example.com", Ok(false)),
            ("MCP.example.com:99", Ok(false)),
            ("other.example.com:8443", Ok(false)),
            ("other.example.com", Err(Refusal::Host)),
            ("other.example.com:8080", Err(Refusal::Host)),
            ("evil.com", Err(Refusal::Host)),
            ("localhost.evil.com", Err(Refusal::Host)),
            ("evil.localhost", Err(Refusal::Host)),
            ("127.0.0.1.evil.com", Err(Refusal::Host)),
            ("0.0.0.0:8080", Err(Refusal::Host)),
            ("localhost@evil.com", Err(Refusal::NoHost)),
            ("evil@localhost", Err(Refusal::NoHost)),
            ("localhost:http", Err(Refusal::NoHost)),
            ("", Err(Refusal::NoHost)),
        ] {
            assert_eq!(check(Some(host), None), expected, "{host}");
        }
        assert_eq!(check(None, None), Err(Refusal::NoHost));
    }

    #[test]
    fn every_name_of_the_server_counts() {
        let local = IpAddr::from([127, 0, 0, 1]);
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("localhost"));
        let absolute = Uri::from_static("http://evil.com/mcp");
        assert_eq!(access().check(&absolute, &headers, local), Err(Refusal::Host));
        headers.append(HOST, HeaderValue::from_static("evil.com"));
        assert_eq!(access().check(&Uri::from_static("/mcp"), &headers, local), Err(Refusal::Host));
    }

    #[test]
    fn origins() {
        for (origin, expected) in [
            ("http://localhost:3000", Ok(false)),
            ("https://127.0.0.1", Ok(false)),
            ("http://[::1]:5173", Ok(false)),
            // An answer that its pages may read is for origins that were named.
            ("https://app.example.com", Ok(true)),
            ("https://app.example.com:443", Ok(true)),
            ("HTTPS://APP.example.com", Ok(true)),
            ("http://10.0.0.5:3000", Ok(true)),
            ("tauri://localhost", Ok(true)),
            ("http://app.example.com", Err(Refusal::Origin)),
            ("https://app.example.com:8443", Err(Refusal::Origin)),
            ("http://10.0.0.5", Err(Refusal::Origin)),
            ("https://mcp.example.com", Err(Refusal::Origin)),
            ("chrome-extension://localhost", Err(Refusal::Origin)),
            ("http://localhost.evil.com", Err(Refusal::Origin)),
            ("http://localhost@evil.com", Err(Refusal::Origin)),
            ("http://localhost/", Err(Refusal::Origin)),
            ("localhost", Err(Refusal::Origin)),
            ("null", Err(Refusal::Origin)),
            ("", Err(Refusal::Origin)),
        ] {
            assert_eq!(check(Some("localhost"), Some(origin)), expected, "{origin}");
        }
    }

    #[test]
    fn names_that_are_none() {
        for text in [
            "",
            "*",
            "*.example.com",
            "https://example.com",
            "example.com/mcp",
            "example.com:x",
            "a b",
        ] {
            assert!(text.parse::<HostName>().is_err(), "{text}");
        }
        for text in [
            "null",
            "*",
            "example.com",
            "https://example.com/",
            "https://*.example.com",
            "https://",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
    }
}

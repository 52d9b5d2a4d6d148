//! Rules for the network, and the places that they speak of.
//!
//! This module says what a rule and a place are. Which rules let a guest go where is decided in `decision`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

use crate::text::as_text;
use crate::{DnsName, DnsNameError};

/// How a guest talks to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    Http,
    Https,
    Tcp,
    Udp,
}

as_text!(Scheme, "How a component talks to a host.", ["https"]);

impl Scheme {
    pub const ALL: [Self; 4] = [Self::Http, Self::Https, Self::Tcp, Self::Udp];

    pub const fn default_port(self) -> Option<u16> {
        match self {
            Self::Http => Some(80),
            Self::Https => Some(443),
            Self::Tcp | Self::Udp => None,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

impl FromStr for Scheme {
    type Err = SchemeError;

    fn from_str(text: &str) -> Result<Self, SchemeError> {
        Self::ALL
            .into_iter()
            .find(|scheme| scheme.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| SchemeError(text.to_owned()))
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no scheme; use `http`, `https`, `tcp` or `udp`, or none for all of them", .0.escape_debug())]
pub struct SchemeError(String);

/// All ports, or some of them.
///
/// | text        | means                             |
/// |-------------|-----------------------------------|
/// | `443`       | one port                          |
/// | `8000-8999` | from the first to the last        |
/// | `80,443`    | several, each a port or a range   |
/// | `*`         | all                               |
///
/// It prints sorted, with ranges that touch as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ports(Option<Box<[(u16, u16)]>>);

as_text!(
    Ports,
    "Ports: one, a range, several with commas, or `*` for all.",
    ["443", "8000-8999", "80,443", "*"]
);

impl Ports {
    pub const ANY: Self = Self(None);

    /// One port. There is no port 0.
    pub fn one(port: u16) -> Option<Self> {
        Self::of([(port, port)]).ok()
    }

    /// Inclusive ranges, in any order.
    fn of(ranges: impl IntoIterator<Item = (u16, u16)>) -> Result<Self, PortsError> {
        let mut ranges: Vec<_> = ranges.into_iter().collect();
        ranges.sort_unstable();
        let mut merged: Vec<(u16, u16)> = Vec::new();
        for (first, last) in ranges {
            if first == 0 {
                return Err(PortsError::Zero);
            }
            if first > last {
                return Err(PortsError::Reversed { first, last });
            }
            match merged.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => merged.push((first, last)),
            }
        }
        // Every port one by one is every port: a rule must not look narrower than it is.
        Ok(Self((*merged != [(1, u16::MAX)]).then(|| merged.into())))
    }

    pub fn is_any(&self) -> bool {
        self.0.is_none()
    }

    pub fn contains(&self, port: u16) -> bool {
        match &self.0 {
            None => true,
            Some(ranges) => ranges.iter().any(|(first, last)| (first..=last).contains(&&port)),
        }
    }
}

impl FromStr for Ports {
    type Err = PortsError;

    fn from_str(text: &str) -> Result<Self, PortsError> {
        if text == "*" {
            return Ok(Self::ANY);
        }
        let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => digits.parse::<u16>().map_err(|_| PortsError::NoPort(digits.to_owned())),
            // `u16` would read a sign.
            false => Err(PortsError::NoPort(digits.to_owned())),
        };
        let range = |text: &str| match text.split_once('-') {
            Some((first, last)) => Ok((number(first)?, number(last)?)),
            None => number(text).map(|port| (port, port)),
        };
        Self::of(text.split(',').map(range).collect::<Result<Vec<_>, _>>()?)
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(ranges) = &self.0 else {
            return f.write_str("*");
        };
        for (place, (first, last)) in ranges.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortsError {
    #[error(
        "`{}` is no port; write a number from 1 to 65535, a range as in `8000-8999`, several as in `80,443`, or `*` \
         for all",
        .0.escape_debug()
    )]
    NoPort(String),
    #[error("there is no port 0; write `*` for all ports")]
    Zero,
    #[error("`{first}-{last}` is a range without ports; write the smaller port first, as in `{last}-{first}`")]
    Reversed { first: u16, last: u16 },
}

/// The hosts that a rule speaks of.
///
/// | text                          | means                                                           |
/// |-------------------------------|-----------------------------------------------------------------|
/// | `*`                           | every name, and every address that is not special               |
/// | `localhost`                   | this machine: `localhost`, names below it, and its own addresses |
/// | `api.example.com`             | that name                                                       |
/// | `*.example.com`               | every name below it, not itself                                 |
/// | `10.0.0.0/8`, `[fd00::/8]`    | the addresses of that network                                   |
/// | `192.168.1.5`, `[::1]`        | that address                                                    |
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    Any,
    Localhost,
    Name(DnsName),
    Below(DnsName),
    Addresses(IpNet),
}

as_text!(
    HostPattern,
    "Hosts: a name, the names below one (`*.example.com`), an address, a network, `localhost`, or `*`.",
    ["api.example.com", "*.example.com", "10.0.0.0/8", "[::1]", "localhost", "*"]
);

impl HostPattern {
    /// The narrowest pattern for a host.
    pub fn only(host: &Host) -> Self {
        match host {
            Host::Name(name) if name.is_localhost() => Self::Localhost,
            Host::Name(name) => Self::Name(name.clone()),
            Host::Address(address) => Self::Addresses((*address).into()),
        }
    }
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        if text.is_empty() {
            return Err(HostPatternError::Empty);
        }
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner
                .strip_suffix(']')
                .filter(|inner| inner.contains(':'))
                .ok_or_else(|| HostPatternError::Brackets(text.to_owned()))?;
            return addresses(inner).map(Self::Addresses);
        }
        if text.contains(':') || text.split('/').next().is_some_and(|start| start.parse::<IpAddr>().is_ok()) {
            return addresses(text).map(Self::Addresses);
        }
        if text.contains(['/', '?', '#']) {
            return Err(HostPatternError::Path(text.to_owned()));
        }
        if text == "*" {
            return Ok(Self::Any);
        }
        let (name, below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        if name.contains('*') {
            return Err(HostPatternError::Wildcard(text.to_owned()));
        }
        match name.parse::<DnsName>() {
            Ok(name) if below => Ok(Self::Below(name)),
            Ok(name) if name.as_str() == "localhost" => Ok(Self::Localhost),
            Ok(name) => Ok(Self::Name(name)),
            Err(DnsNameError::Number(_)) => Err(match Host::parse(name) {
                Ok(Host::Address(meant)) => HostPatternError::Disguise {
                    text: text.to_owned(),
                    meant,
                },
                _ => HostPatternError::Address(text.to_owned()),
            }),
            Err(error) => Err(HostPatternError::Name(error)),
        }
    }
}

/// An address, or a network as its first address and the length of its prefix.
fn addresses(text: &str) -> Result<IpNet, HostPatternError> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| HostPatternError::Address(text.to_owned()))?;
    let Some(length) = length else {
        return Ok(address.into());
    };
    if length.is_empty() || length.bytes().any(|byte| !byte.is_ascii_digit()) {
        return Err(HostPatternError::Path(text.to_owned()));
    }
    let network = length
        .parse()
        .ok()
        .and_then(|length| IpNet::new(address, length).ok())
        .ok_or_else(|| HostPatternError::Prefix {
            text: text.to_owned(),
            most: IpNet::from(address).max_prefix_len(),
        })?;
    match network.trunc() {
        whole if whole == network => Ok(network),
        whole => Err(HostPatternError::HostBits {
            text: text.to_owned(),
            network: HostPattern::Addresses(whole).to_string(),
            address: HostPattern::Addresses(address.into()).to_string(),
        }),
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Localhost => f.write_str("localhost"),
            Self::Name(name) => write!(f, "{name}"),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::Addresses(network) => {
                let is_one = network.prefix_len() == network.max_prefix_len();
                match (network, is_one) {
                    (IpNet::V4(network), true) => write!(f, "{}", network.addr()),
                    (IpNet::V4(network), false) => write!(f, "{network}"),
                    (IpNet::V6(network), true) => write!(f, "[{}]", network.addr()),
                    (IpNet::V6(network), false) => write!(f, "[{network}]"),
                }
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostPatternError {
    #[error("a rule names a host; write it as in `api.example.com`, or `*` for all hosts")]
    Empty,
    #[error(
        "`{}` has a `*` that stands for a part of a name; \
         `*` stands for all hosts, and `*.example.com` for the names below one",
        .0.escape_debug()
    )]
    Wildcard(String),
    #[error(
        "`{}` has a path, and rules know hosts only; \
         write the host alone, as in `https://api.example.com`",
        .0.escape_debug()
    )]
    Path(String),
    #[error("`{}` is another spelling of an address; write `{meant}`", .text.escape_debug())]
    Disguise { text: String, meant: IpAddr },
    #[error(
        "`{}` is no address; write one as in `192.168.1.5` or `[::1]`, and a network as in `10.0.0.0/8` or \
         `[fd00::/8]`",
        .0.escape_debug()
    )]
    Address(String),
    #[error(
        "`{}` has brackets, which are for IPv6; write an address as in `[::1]`, or a network as in \
         `[fd00::/8]`",
        .0.escape_debug()
    )]
    Brackets(String),
    #[error("`{text}` is no network: the number after its `/` is at most {most}")]
    Prefix { text: String, most: u8 },
    #[error("`{text}` is not the start of its network; write `{network}` for the network, or `{address}` for the address")]
    HostBits { text: String, network: String, address: String },
    #[error(transparent)]
    Name(DnsNameError),
}

/// One rule of `--allow-net` or `--deny-net`.
///
/// The text is `[SCHEME://]HOST[:PORT]`. Without a scheme it speaks of all schemes. Without a port it speaks of the port that
/// `http` or `https` have, and of all ports otherwise; `:*` is all ports, too.
///
/// | text                       | means                                             |
/// |----------------------------|---------------------------------------------------|
/// | `https://api.example.com`  | that host, port 443                               |
/// | `https://*.example.com:*`  | the hosts below it, all ports                     |
/// | `tcp://10.1.0.0/16:5432`   | addresses of that network, port 5432              |
/// | `example.com`              | that host, all schemes, all ports                 |
///
/// ```
/// let rule: policy::NetworkRule = "https://Example.com:443".parse()?;
/// assert_eq!(rule.to_string(), "https://example.com");
/// # Ok::<(), policy::NetworkRuleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NetworkRule {
    /// `None` is every scheme.
    pub scheme: Option<Scheme>,
    pub host: HostPattern,
    pub ports: Ports,
}

as_text!(
    NetworkRule,
    "Hosts that a component may reach, as `[SCHEME://]HOST[:PORT]`: the scheme is `http`, `https`, `tcp` or `udp`; the host is \
     a name, `*.NAME` for the names below it, an address, a network, `localhost` or `*`; the port is one, a range, several with \
     commas, or `*`.",
    [
        "https://api.example.com",
        "https://*.example.com",
        "tcp://10.1.0.0/16:5432",
        "localhost:8080"
    ]
);

impl NetworkRule {
    /// The narrowest rule for a place. `None` for port 0, which is no port.
    pub fn only(destination: &Destination) -> Option<Self> {
        Some(Self {
            scheme: Some(destination.scheme),
            host: HostPattern::only(&destination.host),
            ports: Ports::one(destination.port)?,
        })
    }

    /// The scheme, the host and the ports of a text, where it has them.
    pub(crate) fn parts(text: &str) -> Result<(Option<Scheme>, HostPattern, Option<Ports>), NetworkRuleError> {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.parse()?), rest),
            None => (None, text),
        };
        if rest.contains('@') {
            return Err(NetworkRuleError::User);
        }
        let (host, ports) = match rest.split_once(']') {
            // Inside brackets, colons are of the address.
            Some((_, after)) if rest.starts_with('[') => match after.strip_prefix(':') {
                Some(ports) => (rest.strip_suffix(after).unwrap_or(rest), Some(ports)),
                None => (rest, None),
            },
            // Two colons are an address without a port.
            _ => match rest.rsplit_once(':') {
                Some((host, ports)) if !host.contains(':') => (host, Some(ports)),
                _ => (rest, None),
            },
        };
        let host = host.parse()?;
        match ports {
            Some(ports) if ports.contains(['/', '?', '#']) => Err(HostPatternError::Path(text.to_owned()).into()),
            Some(ports) => Ok((scheme, host, Some(ports.parse()?))),
            None => Ok((scheme, host, None)),
        }
    }

    /// The ports of a rule that names none.
    fn default_ports(scheme: Option<Scheme>) -> Ports {
        let port = scheme.and_then(Scheme::default_port);
        port.and_then(Ports::one).unwrap_or(Ports::ANY)
    }
}

impl FromStr for NetworkRule {
    type Err = NetworkRuleError;

    fn from_str(text: &str) -> Result<Self, NetworkRuleError> {
        let (scheme, host, ports) = Self::parts(text)?;
        let ports = ports.unwrap_or_else(|| Self::default_ports(scheme));
        Ok(Self { scheme, host, ports })
    }
}

impl fmt::Display for NetworkRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(scheme) = self.scheme {
            write!(f, "{scheme}://")?;
        }
        write!(f, "{}", self.host)?;
        match self.ports == Self::default_ports(self.scheme) {
            true => Ok(()),
            false => write!(f, ":{}", self.ports),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkRuleError {
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    #[error(transparent)]
    Host(#[from] HostPatternError),
    #[error(transparent)]
    Ports(#[from] PortsError),
    // Not shown: what stands there may be a password.
    #[error(
        "a rule has a user before its `@`, and rules know hosts only; \
         write the host alone, as in `https://api.example.com`"
    )]
    User,
}

/// The host that a guest asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    Name(DnsName),
    Address(IpAddr),
}

impl Host {
    /// Reads a host as browsers do: `0x7f.1`, `2130706433` and `[::ffff:127.0.0.1]` are all the address `127.0.0.1`.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        match url::Host::parse(text).map_err(|_| HostError::NoHost(text.to_owned()))? {
            url::Host::Domain(name) => Ok(Self::Name(name.parse()?)),
            url::Host::Ipv4(address) => Ok(Self::Address(address.into())),
            url::Host::Ipv6(address) => Ok(Self::Address(address.to_canonical())),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{name}"),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error(
        "`{}` is no host; a host is a name as in `api.example.com`, or an address as in `192.0.2.1` or \
         `[::1]`",
        .0.escape_debug()
    )]
    NoHost(String),
    #[error(transparent)]
    Name(#[from] DnsNameError),
}

/// Where a guest wants to go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Destination {
    pub scheme: Scheme,
    pub host: Host,
    pub port: u16,
}

/// With the port, even if it is the one that the scheme has.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme, self.host, self.port)
    }
}

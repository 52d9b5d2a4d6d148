//! Where a guest may go.
//!
//! A name says nothing about where a connection ends, so there are three questions: may this name be looked up, may this place
//! be asked for, and may this address be dialled for it. Whoever connects asks the last one about the very address that it
//! dials, for each connection and each redirect. A denial beats every grant, and no grant of a name reaches an address that is
//! special.

use std::fmt;
use std::net::IpAddr;

use crate::special::guises;
use crate::{
    Denial, Destination, DnsName, Grants, Host, HostPattern, NetworkRule, Permission, Ports, Rule, Scheme, Special, special,
};

impl Grants {
    /// May a name be looked up? Only if some connection to it could be allowed.
    pub fn may_look_up(&self, name: &DnsName) -> Result<(), Refusal> {
        let host = Host::Name(name.clone());
        let covers_all = |rule: &&NetworkRule| rule.scheme.is_none() && rule.ports.is_any() && rule.host.forbids(&host);
        let refusal = |reason, remedy| {
            Err(Refusal {
                asked: Asked::Name(name.clone()),
                reason,
                remedy,
            })
        };
        if let Some(rule) = self.denied_network.iter().find(covers_all) {
            return refusal(Reason::denied(rule), None);
        }
        if self.all || self.network.iter().any(|rule| rule.host.admits(&host)) {
            return Ok(());
        }
        let remedy = NetworkRule {
            scheme: None,
            host: HostPattern::only(&host),
            ports: Ports::ANY,
        };
        refusal(Reason::NotGranted, Some(allow(remedy)))
    }

    /// May a place be asked for? That is known before anything is looked up.
    pub fn may_ask(&self, asked: &Destination) -> Result<(), Refusal> {
        let Destination { scheme, host, port } = asked;
        let is_denied = |rule: &&NetworkRule| rule.forbids(*scheme, *port) && rule.host.forbids(host);
        if let Some(rule) = self.denied_network.iter().find(is_denied) {
            return Err(Refusal::of(asked, Reason::denied(rule), None));
        }
        let is_allowed = |rule: &NetworkRule| rule.speaks_of(*scheme, *port) && rule.host.admits(host);
        if self.all || self.network.iter().any(is_allowed) {
            return Ok(());
        }
        // Where `*` would do for another address, say why it does not for this one.
        let is_any = |rule: &NetworkRule| rule.speaks_of(*scheme, *port) && rule.host == HostPattern::Any;
        let reason = match host {
            Host::Address(address) if self.network.iter().any(is_any) => Reason::of_address(*address),
            _ => Reason::NotGranted,
        };
        Err(Refusal::of(asked, reason, NetworkRule::only(asked)))
    }

    /// May this address be dialled for a place?
    pub fn may_connect(&self, asked: &Destination, address: IpAddr) -> Result<(), Refusal> {
        self.may_ask(asked)?;
        let dialled = Destination {
            host: Host::Address(address),
            ..asked.clone()
        };
        // Who asks for an address gets no other.
        if matches!(asked.host, Host::Address(host) if host != address) {
            self.may_ask(&dialled)?;
        }
        let Destination { scheme, port, .. } = *asked;
        let is_denied = |rule: &&NetworkRule| rule.forbids(scheme, port) && rule.host.forbids_address(address);
        if let Some(rule) = self.denied_network.iter().find(is_denied) {
            return Err(Refusal::of(asked, Reason::denied(rule), None));
        }
        let Some(special) = special(address) else {
            return Ok(());
        };
        let reaches = |rule: &NetworkRule| {
            rule.speaks_of(scheme, port)
                && match &rule.host {
                    HostPattern::Addresses(network) => network.contains(&address),
                    HostPattern::Localhost => address.is_loopback() && rule.host.admits(&asked.host),
                    HostPattern::Any | HostPattern::Name(_) | HostPattern::Below(_) => false,
                }
        };
        if self.all || self.network.iter().any(reaches) {
            return Ok(());
        }
        let is_this_machine = address.is_loopback() && matches!(&asked.host, Host::Name(name) if name.is_localhost());
        let remedy = NetworkRule::only(if is_this_machine { asked } else { &dialled });
        Err(Refusal::of(asked, Reason::Special { address, special }, remedy))
    }
}

impl NetworkRule {
    fn speaks_of(&self, scheme: Scheme, port: u16) -> bool {
        self.scheme.is_none_or(|own| own == scheme) && self.ports.contains(port)
    }

    /// A denial of HTTP holds for raw sockets, too: whoever has one can speak HTTP by itself.
    fn forbids(&self, scheme: Scheme, port: u16) -> bool {
        let is_http = matches!(self.scheme, Some(Scheme::Http | Scheme::Https));
        self.speaks_of(scheme, port) || is_http && scheme == Scheme::Tcp && self.ports.contains(port)
    }
}

impl HostPattern {
    /// Does a grant with this pattern let a guest ask for a host?
    fn admits(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, Host::Address(address)) => special(*address).is_none(),
            (Self::Localhost, Host::Address(address)) => address.is_loopback(),
            (Self::Addresses(network), Host::Address(address)) => network.contains(address),
            (Self::Name(_) | Self::Below(_), Host::Address(_)) => false,
            (_, Host::Name(name)) => self.matches_name(name),
        }
    }

    /// Does a denial with this pattern keep a guest from asking for a host?
    fn forbids(&self, host: &Host) -> bool {
        match host {
            Host::Name(name) => self.matches_name(name),
            Host::Address(address) => self.forbids_address(*address),
        }
    }

    /// Does a denial with this pattern keep an address from being dialled, in whichever way it is spelled?
    fn forbids_address(&self, address: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::Localhost => guises(address).any(|guise| guise.is_loopback()),
            Self::Addresses(network) => guises(address).any(|guise| network.contains(&guise)),
            Self::Name(_) | Self::Below(_) => false,
        }
    }

    fn matches_name(&self, name: &DnsName) -> bool {
        match self {
            Self::Any => true,
            Self::Localhost => name.is_localhost(),
            Self::Name(own) => own == name,
            Self::Below(parent) => name.is_below(parent),
            Self::Addresses(_) => false,
        }
    }
}

fn allow(rule: NetworkRule) -> Rule {
    Rule::Allow(Permission::Net(rule))
}

/// A "no", why, and what would make it a "yes".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub asked: Asked,
    pub reason: Reason,
    /// The narrowest rule that helps. None where a denial is the reason: it would not help to allow more.
    pub remedy: Option<Rule>,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The addresses of a name.
    Name(DnsName),
    Destination(Destination),
}

/// Why it is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    NotGranted,
    Denied(Box<Rule>),
    Special { address: IpAddr, special: Special },
}

impl Reason {
    fn denied(rule: &NetworkRule) -> Self {
        Self::Denied(Box::new(Rule::Deny(Denial::Net(rule.clone()))))
    }

    fn of_address(address: IpAddr) -> Self {
        match special(address) {
            Some(special) => Self::Special { address, special },
            None => Self::NotGranted,
        }
    }
}

impl Refusal {
    fn of(asked: &Destination, reason: Reason, remedy: Option<NetworkRule>) -> Self {
        Self {
            asked: Asked::Destination(asked.clone()),
            reason,
            remedy: remedy.map(allow),
        }
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.asked {
            Asked::Name(name) => write!(f, "`{name}` may not be looked up")?,
            Asked::Destination(destination) => write!(f, "`{destination}` may not be reached")?,
        }
        match &self.reason {
            Reason::NotGranted => f.write_str(": nothing allows it"),
            Reason::Denied(rule) => write!(f, ": `{rule}` denies it"),
            Reason::Special { address, special } => {
                write!(
                    f,
                    ": it is at `{address}`, {special}. Only a rule for such an address allows that"
                )
            }
        }
    }
}

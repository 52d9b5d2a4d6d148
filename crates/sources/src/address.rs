//! Which addresses a server may send us to, and who looks up names.
//!
//! A person may name any address. A server may not make us reach into the network of this machine: a redirect from a public
//! address goes to public addresses only. This is decided on the addresses that are then dialled, never on names.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve};

/// The addresses of a name, once they are known.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// How names become addresses, and which addresses count as public. Tests have one of their own.
pub trait Network: Send + Sync + 'static {
    fn resolve(&self, name: &str) -> Resolving;

    fn is_public(&self, ip: IpAddr) -> bool;
}

/// The resolver of the operating system, and [`is_public`].
#[derive(Clone, Copy, Debug)]
pub struct SystemNetwork;

impl Network for SystemNetwork {
    fn resolve(&self, name: &str) -> Resolving {
        let name = name.to_owned();
        Box::pin(async move {
            Ok(tokio::net::lookup_host((name, 0))
                .await?
                .map(|address| address.ip())
                .collect())
        })
    }

    fn is_public(&self, ip: IpAddr) -> bool {
        is_public(ip)
    }
}

/// Is this an address of the public internet? Not so loopback, private and link-local networks, metadata services, multicast,
/// reserved and documentation ranges, nor an IPv6 address in which such an IPv4 address is embedded.
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    // From the IANA registry of special-purpose addresses.
    !matches!(
        (a, b, c),
        (0 | 10 | 127 | 224..=255, ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 168, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    )
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match ip.segments() {
        // Mapped, and translated by NAT64.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        // 6to4.
        [0x2002, high, low, ..] => embedded(high, low),
        // Special purposes, Teredo among them, and documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// The resolver that reqwest dials by: what it leaves out is never dialled.
pub(crate) struct Resolver {
    pub(crate) network: Arc<dyn Network>,
    pub(crate) only_public: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> reqwest::dns::Resolving {
        let network = Arc::clone(&self.network);
        let only_public = self.only_public;
        Box::pin(async move {
            let found = network.resolve(name.as_str()).await?;
            let kept: Vec<SocketAddr> = found
                .iter()
                .filter(|ip| !only_public || network.is_public(**ip))
                // The port is that of the URL.
                .map(|ip| SocketAddr::new(*ip, 0))
                .collect();
            if kept.is_empty() && !found.is_empty() {
                return Err(NotPublic.into());
            }
            Ok(Box::new(kept.into_iter()) as Addrs)
        })
    }
}

/// All addresses of a name are such that a server may not send us there.
#[derive(Debug)]
pub(crate) struct NotPublic;

impl fmt::Display for NotPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a public address")
    }
}

impl std::error::Error for NotPublic {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_are_told_from_others() {
        for (public, addresses) in [
            (
                true,
                &[
                    "1.1.1.1",
                    "93.184.216.34",
                    "100.63.255.255",
                    "100.128.0.0",
                    "172.15.0.1",
                    "172.32.0.1",
                    "192.0.1.1",
                    "198.20.0.1",
                    "223.255.255.255",
                    "2606:4700:4700::1111",
                    "2001:4860:4860::8888",
                    "::ffff:1.1.1.1",
                    "64:ff9b::1.1.1.1",
                    "2002:101:101::1",
                    "3fff:1000::1",
                ][..],
            ),
            (
                false,
                &[
                    "0.0.0.0",
                    "10.0.0.1",
                    "100.64.0.1",
                    "127.0.0.1",
                    "127.255.255.255",
                    "169.254.169.254",
                    "172.16.0.1",
                    "172.31.255.255",
                    "192.0.0.1",
                    "192.0.2.1",
                    "192.168.1.1",
                    "198.18.0.1",
                    "198.51.100.1",
                    "203.0.113.1",
                    "224.0.0.1",
                    "240.0.0.1",
                    "255.255.255.255",
                    "::",
                    "::1",
                    "::127.0.0.1",
                    "::ffff:127.0.0.1",
                    "::ffff:169.254.169.254",
                    "64:ff9b::7f00:1",
                    "64:ff9b:1::1",
                    "2002:7f00:1::1",
                    "2001::1",
                    "2001:db8::1",
                    "3fff::1",
                    "fc00::1",
                    "fd00:ec2::254",
                    "fe80::1",
                    "fec0::1",
                    "ff02::1",
                    "100::1",
                    "5f00::1",
                ][..],
            ),
        ] {
            for address in addresses {
                assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
            }
        }
    }
}

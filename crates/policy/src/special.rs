//! Addresses that are not simply another host of the internet.
//!
//! From the registries of special-purpose addresses that IANA keeps for IPv4 and IPv6, and the addresses at which clouds tell
//! a machine its secrets. An address that carries an IPv4 address is also judged as that one.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is special about an address: no rule for names, and no `*`, reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Special {
    Unspecified,
    Loopback,
    Private,
    LinkLocal,
    /// Where a cloud tells a machine its credentials.
    Metadata,
    Multicast,
    Broadcast,
    Documentation,
    Benchmarking,
    Reserved,
    SharedAddressSpace,
    UniqueLocal,
    /// It leads to another network, through a translator or a relay.
    Tunnel,
    /// A service of the internet itself, such as the sinks of AS112.
    Infrastructure,
}

impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "an address of no host in particular",
            Self::Loopback => "an address of this machine",
            Self::Private => "an address of a private network",
            Self::LinkLocal => "an address of the local link",
            Self::Metadata => "an address at which a cloud tells a machine its credentials",
            Self::Multicast => "an address of many hosts at once",
            Self::Broadcast => "the address of every host nearby",
            Self::Documentation => "an address for examples",
            Self::Benchmarking => "an address for measurements",
            Self::Reserved => "a reserved address",
            Self::SharedAddressSpace => "an address inside a provider's network",
            Self::UniqueLocal => "an address of a local network",
            Self::Tunnel => "an address that leads into another network",
            Self::Infrastructure => "an address of the internet's own services",
        })
    }
}

/// What is special about an address, if anything is.
pub fn special(address: IpAddr) -> Option<Special> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<Special> {
    Some(match address.octets() {
        [169, 254, 169, 254] | [169, 254, 170, 2 | 23] | [168, 63, 129, 16] | [100, 100, 100, 200] | [192, 0, 0, 192] => {
            Special::Metadata
        }
        [0, ..] => Special::Unspecified,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Special::Private,
        [100, 64..=127, ..] => Special::SharedAddressSpace,
        [127, ..] => Special::Loopback,
        [169, 254, ..] => Special::LinkLocal,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Special::Documentation,
        [192, 0, 0, _] => Special::Reserved,
        [192, 31, 196, _] | [192, 175, 48, _] => Special::Infrastructure,
        [192, 52, 193, _] | [192, 88, 99, _] => Special::Tunnel,
        [198, 18 | 19, ..] => Special::Benchmarking,
        [224..=239, ..] => Special::Multicast,
        [255, 255, 255, 255] => Special::Broadcast,
        [240..=255, ..] => Special::Reserved,
        _ => return None,
    })
}

fn special_v6(address: Ipv6Addr) -> Option<Special> {
    let inner = || carried(address).into_iter().flatten().find_map(special_v4);
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(Special::Unspecified),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(Special::Loopback),
        // An IPv4 host is dialled, or a host of the internet behind the translator that a network without IPv4 has.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => inner(),
        // Deprecated forms of IPv4 in IPv6, 6to4, a network's own translators, and Teredo.
        [0, 0, 0, 0, 0, 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => inner().or(Some(Special::Reserved)),
        [0x2002, ..] => inner().or(Some(Special::Tunnel)),
        // Which of the addresses that it may carry is the one: unknown.
        [0x64, 0xff9b, 1, ..] | [0x2001, 0, ..] => Some(Special::Tunnel),
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254 | 0x23] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => Some(Special::Metadata),
        [0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe] => Some(Special::Metadata),
        [0xfc00..=0xfdff, ..] => Some(Special::UniqueLocal),
        [0xfe80..=0xfebf, ..] => Some(Special::LinkLocal),
        // Site-local, which is deprecated and still in use.
        [0xfec0..=0xfeff, ..] => Some(Special::Private),
        [0xff00..=0xffff, ..] => Some(Special::Multicast),
        [0x2001, 2, 0, ..] => Some(Special::Benchmarking),
        [0x2001, 3, ..] => Some(Special::Tunnel),
        [0x2001, 4, 0x112, ..] | [0x2620, 0x4f, 0x8000, ..] => Some(Special::Infrastructure),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some(Special::Documentation),
        [0x2001, 0..=0x1ff, ..] => Some(Special::Reserved),
        // Hosts of the internet have addresses of 2000::/3, and of nothing else.
        [0x2000..=0x3fff, ..] => inner(),
        _ => Some(Special::Reserved),
    }
}

/// The IPv4 addresses that an IPv6 address may carry. Where a network chooses their place, all that it can choose.
fn carried(address: Ipv6Addr) -> [Option<Ipv4Addr>; 5] {
    const LAST: [usize; 4] = [12, 13, 14, 15];
    let octets = address.octets();
    let at = |places: [usize; 4]| {
        let [a, b, c, d] = places.map(|place| octets.get(place).copied());
        Some(Ipv4Addr::new(a?, b?, c?, d?))
    };
    match address.segments() {
        // Mapped, compatible, translated, and the well-known prefix of NAT64.
        [0, 0, 0, 0, 0, 0xffff | 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            [at(LAST), None, None, None, None]
        }
        // RFC 6052, section 2.2: the place depends on the length of the prefix, and octet 8 is left out.
        [0x64, 0xff9b, 1, ..] => [at(LAST), at([6, 7, 9, 10]), at([7, 9, 10, 11]), at([9, 10, 11, 12]), None],
        [0x2002, ..] => [at([2, 3, 4, 5]), isatap(address), None, None, None],
        // Teredo: the server as it is, the client with all its bits turned.
        [0x2001, 0, ..] => {
            let client = at(LAST).map(|client| Ipv4Addr::from_bits(!client.to_bits()));
            [at([4, 5, 6, 7]), client, isatap(address), None, None]
        }
        _ => [isatap(address), None, None, None, None],
    }
}

/// ISATAP: the lower half of the address names an IPv4 host, whatever network the upper half names.
fn isatap(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))),
        _ => None,
    }
}

/// All addresses that a denial of one of them has to stop: the address, and every other spelling of where it leads.
pub(crate) fn guises(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    let inner = match address {
        IpAddr::V4(address) => [Some(address), None, None, None, None],
        IpAddr::V6(address) => carried(address),
    };
    let inner = inner.into_iter().flatten();
    // Who connects to no address in particular is connected to this machine.
    let is_none = address.is_unspecified() || inner.clone().any(|inner| inner.is_unspecified());
    let machine = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
    let machine = machine.into_iter().filter(move |_| is_none);
    std::iter::once(address)
        .chain(machine)
        .chain(inner.flat_map(|inner| [inner.into(), inner.to_ipv6_mapped().into()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registries_are_known() {
        use Special::*;
        for (text, expected) in [
            ("0.0.0.0", Some(Unspecified)),
            ("0.1.2.3", Some(Unspecified)),
            ("1.1.1.1", None),
            ("8.8.8.8", None),
            ("10.0.0.1", Some(Private)),
            ("11.0.0.1", None),
            ("100.63.255.255", None),
            ("100.64.0.1", Some(SharedAddressSpace)),
            ("100.127.255.255", Some(SharedAddressSpace)),
            ("100.128.0.0", None),
            ("100.100.100.200", Some(Metadata)),
            ("127.0.0.1", Some(Loopback)),
            ("127.255.255.254", Some(Loopback)),
            ("168.63.129.16", Some(Metadata)),
            ("168.63.129.17", None),
            ("169.254.0.1", Some(LinkLocal)),
            ("169.254.169.254", Some(Metadata)),
            ("169.254.170.2", Some(Metadata)),
            ("172.15.255.255", None),
            ("172.16.0.1", Some(Private)),
            ("172.31.255.255", Some(Private)),
            ("172.32.0.0", None),
            ("192.0.0.9", Some(Reserved)),
            ("192.0.0.192", Some(Metadata)),
            ("192.0.1.1", None),
            ("192.0.2.1", Some(Documentation)),
            ("192.31.196.1", Some(Infrastructure)),
            ("192.52.193.1", Some(Tunnel)),
            ("192.88.99.1", Some(Tunnel)),
            ("192.168.0.1", Some(Private)),
            ("192.175.48.1", Some(Infrastructure)),
            ("198.17.255.255", None),
            ("198.18.0.1", Some(Benchmarking)),
            ("198.19.255.255", Some(Benchmarking)),
            ("198.51.100.1", Some(Documentation)),
            ("203.0.113.1", Some(Documentation)),
            ("224.0.0.1", Some(Multicast)),
            ("239.255.255.255", Some(Multicast)),
            ("240.0.0.1", Some(Reserved)),
            ("255.255.255.255", Some(Broadcast)),
            ("::", Some(Unspecified)),
            ("::1", Some(Loopback)),
            ("::2", Some(Unspecified)),
            ("::127.0.0.1", Some(Loopback)),
            ("::8.8.8.8", Some(Reserved)),
            ("::ffff:127.0.0.1", Some(Loopback)),
            ("::ffff:10.0.0.1", Some(Private)),
            ("::ffff:8.8.8.8", None),
            ("::ffff:0:127.0.0.1", Some(Loopback)),
            ("64:ff9b::8.8.8.8", None),
            ("64:ff9b::169.254.169.254", Some(Metadata)),
            ("64:ff9b:1::8.8.8.8", Some(Tunnel)),
            ("64:ff9b:1::10.0.0.1", Some(Tunnel)),
            ("64:ff9b:1:7f00:0:100::", Some(Tunnel)),
            ("64:ff9b:2::1", Some(Reserved)),
            ("100::1", Some(Reserved)),
            ("100:0:0:1::1", Some(Reserved)),
            ("2001::1", Some(Tunnel)),
            ("2001:0:808:808::f7f7:f7f7", Some(Tunnel)),
            ("2001:0:808:808::80ff:fffe", Some(Tunnel)),
            ("2001:1::1", Some(Reserved)),
            ("2001:2::1", Some(Benchmarking)),
            ("2001:3::1", Some(Tunnel)),
            ("2001:4:112::1", Some(Infrastructure)),
            ("2001:10::1", Some(Reserved)),
            ("2001:20::1", Some(Reserved)),
            ("2001:30::1", Some(Reserved)),
            ("2001:200::1", None),
            ("2001:4860:4860::8888", None),
            ("2001:db8::1", Some(Documentation)),
            ("2002:7f00:1::", Some(Loopback)),
            ("2002:808:808::1", Some(Tunnel)),
            ("2606:4700::1111", None),
            ("2606:4700::5efe:10.0.0.1", Some(Private)),
            ("2606:4700::200:5efe:10.0.0.1", Some(Private)),
            ("2606:4700::5efe:8.8.8.8", None),
            ("2620:4f:8000::1", Some(Infrastructure)),
            ("3fff::1", Some(Documentation)),
            ("3fff:1000::1", None),
            ("4000::1", Some(Reserved)),
            ("5f00::1", Some(Reserved)),
            ("fc00::1", Some(UniqueLocal)),
            ("fd00:ec2::254", Some(Metadata)),
            ("fd12::1", Some(UniqueLocal)),
            ("fe80::1", Some(LinkLocal)),
            ("fec0::1", Some(Private)),
            ("ff02::1", Some(Multicast)),
        ] {
            assert_eq!(special(text.parse().unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn an_address_is_known_in_all_its_guises() {
        for (text, inner) in [
            ("127.0.0.1", "::ffff:127.0.0.1"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("64:ff9b::10.0.0.1", "10.0.0.1"),
            ("64:ff9b:1:7f00:0:100::", "127.0.0.1"),
            ("2002:a00:1::5", "10.0.0.1"),
            ("2001:0:a00:1::", "10.0.0.1"),
            ("2001:0:808:808::80ff:fffe", "127.0.0.1"),
            ("2606:4700::5efe:10.0.0.1", "10.0.0.1"),
            ("::ffff:0:10.0.0.1", "10.0.0.1"),
            ("::10.0.0.1", "::ffff:10.0.0.1"),
        ] {
            let inner: IpAddr = inner.parse().unwrap();
            assert!(guises(text.parse().unwrap()).any(|guise| guise == inner), "{text}");
        }
    }
}

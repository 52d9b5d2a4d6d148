//! Policy text → decision.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use component2json::without_hidden;
use policy::{
    Asked, ByteSize, Destination, DnsName, Grants, Host, HostPattern, NetworkRule, Ports, Reason, Refusal, Rule, Scheme,
    SecretName, Timeout, Variable, read_wassette, special,
};

use crate::{Broken, ensure};

/// Of a long text the first lines count: every place is held against every address.
const MAX_LINES: usize = 24;

/// Where a name may lead, whatever the text says.
const ADDRESSES: [IpAddr; 12] = [
    v4(93, 184, 216, 34),
    v4(127, 0, 0, 1),
    v4(10, 0, 0, 5),
    v4(192, 168, 1, 5),
    v4(169, 254, 169, 254),
    v4(0, 0, 0, 0),
    v4(224, 0, 0, 1),
    v6([0x2606, 0x4700, 0, 0, 0, 0, 0, 0x1111]),
    v6([0, 0, 0, 0, 0, 0, 0, 1]),
    v6([0xfd00, 0, 0, 0, 0, 0, 0, 1]),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 1]),
    v6([0, 0, 0, 0, 0, 0xffff, 0x7f00, 1]),
];

const fn v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

const fn v6([a, b, c, d, e, f, g, h]: [u16; 8]) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h))
}

/// A line is a rule, as on the command line, or a place, as in `https://example.com:443`, and maybe an address after a space. The
/// whole is also read as a policy file of Wassette.
pub fn policy_decision(bytes: &[u8]) -> Result<(), Broken> {
    let text = String::from_utf8_lossy(bytes);
    check_wassette(&text)?;
    let mut grants = Grants::default();
    let mut places = Vec::new();
    let mut addresses = ADDRESSES.to_vec();
    for line in text.lines().take(MAX_LINES) {
        check_texts(line)?;
        if let Ok(rule) = line.parse::<Rule>() {
            let before = grants.clone();
            match rule {
                // One that contradicts another changes nothing.
                Rule::Allow(permission) => {
                    if grants.allow(permission).is_err() {
                        ensure!(grants == before, "a grant that is refused changes something: `{line}`");
                    }
                }
                Rule::Deny(denial) => grants.deny(denial),
            }
            continue;
        }
        let (place, address) = line.split_once(' ').unwrap_or((line, ""));
        addresses.extend(address.parse::<IpAddr>());
        places.extend(destination(place));
    }
    check_grants(&grants)?;
    for place in &places {
        for address in &addresses {
            check_connection(&grants, place, *address)?;
        }
    }
    Ok(())
}

/// `https://example.com:443`
fn destination(text: &str) -> Option<Destination> {
    let (scheme, rest) = text.split_once("://")?;
    let (host, port) = rest.rsplit_once(':')?;
    Some(Destination {
        scheme: scheme.parse().ok()?,
        host: Host::parse(host).ok()?,
        port: port.parse().ok()?,
    })
}

/// Whatever a text is read as, it prints as something that is read as the same.
fn check_texts(text: &str) -> Result<(), Broken> {
    check_text::<Rule>(text)?;
    check_text::<NetworkRule>(text)?;
    check_text::<HostPattern>(text)?;
    check_text::<Ports>(text)?;
    check_text::<Scheme>(text)?;
    check_text::<DnsName>(text)?;
    check_text::<Variable>(text)?;
    check_text::<SecretName>(text)?;
    check_text::<ByteSize>(text)?;
    check_text::<Timeout>(text)?;
    if let Ok(host) = Host::parse(text) {
        let again = Host::parse(&host.to_string());
        ensure!(again.as_ref() == Ok(&host), "{host:?} is read again as {again:?}");
        if let Host::Address(IpAddr::V6(address)) = host {
            ensure!(address.to_ipv4_mapped().is_none(), "an IPv4 address is hidden in {address}");
        }
    }
    Ok(())
}

fn check_text<T: FromStr<Err: fmt::Display> + fmt::Display + fmt::Debug + PartialEq>(text: &str) -> Result<(), Broken> {
    match text.parse::<T>() {
        Ok(value) => {
            let printed = value.to_string();
            let again = printed.parse::<T>();
            ensure!(
                again.as_ref().is_ok_and(|again| *again == value),
                "`{text}` is {value:?} and prints as `{printed}`, which is not"
            );
        }
        Err(error) => {
            let message = error.to_string();
            ensure!(!message.is_empty(), "no words for what is wrong with `{text}`");
            // What the person typed may be in it, but nothing that steers a terminal.
            ensure!(without_hidden(&message) == message, "hidden characters in {message:?}");
        }
    }
    Ok(())
}

fn check_wassette(text: &str) -> Result<(), Broken> {
    match read_wassette(text) {
        Ok(policy) => check_grants(&policy.grants),
        Err(error) => {
            // A file that ends too early has its mistake at the end of it. To YAML, a carriage return alone ends a line, too.
            let lines = text.split(['\n', '\r']).count() + 1;
            ensure!((1..=lines).contains(&error.line), "line {} of {lines}: {error}", error.line);
            let message = error.to_string();
            ensure!(without_hidden(&message) == message, "hidden characters in {message:?}");
            Ok(())
        }
    }
}

/// Grants are what their rules say, on the command line and on disk.
fn check_grants(grants: &Grants) -> Result<(), Broken> {
    let mut left = grants.clone();
    let mut again = Grants::default();
    for rule in grants.rules() {
        let text = rule.to_string();
        ensure!(text.parse::<Rule>().as_ref() == Ok(&rule), "`{text}` is not read as {rule:?}");
        ensure!(left.remove(&rule), "`{text}` is there and cannot be taken back");
        match rule {
            Rule::Allow(permission) => {
                let allowed = again.allow(permission);
                ensure!(allowed.is_ok(), "`{text}` contradicts what it stood beside: {allowed:?}");
            }
            Rule::Deny(denial) => again.deny(denial),
        }
    }
    ensure!(left.is_empty(), "something is left when all is taken back: {left:?}");
    ensure!(again == *grants, "the rules of {grants:?} give {again:?}");
    ensure!(
        grants.clone().and(grants) == *grants,
        "twice is not the same as once: {grants:?}"
    );
    let kept = serde_json::to_string(grants).map_err(|error| Broken(format!("grants that cannot be kept: {error}")))?;
    let read = serde_json::from_str::<Grants>(&kept)
        .map_err(|error| Broken(format!("kept grants that cannot be read: {error}: {kept}")))?;
    ensure!(read == *grants, "kept grants are others: {kept}");
    Ok(())
}

fn check_connection(grants: &Grants, place: &Destination, address: IpAddr) -> Result<(), Broken> {
    let asked = grants.may_ask(place);
    let connected = grants.may_connect(place, address);
    let nothing = Grants::default();
    ensure!(
        nothing.may_ask(place).is_err() && nothing.may_connect(place, address).is_err(),
        "nothing is granted, and {place} may be reached"
    );
    if let Host::Name(name) = &place.host {
        ensure!(
            nothing.may_look_up(name).is_err(),
            "nothing is granted, and {name} may be looked up"
        );
        let looked_up = grants.may_look_up(name);
        ensure!(
            asked.is_err() || looked_up.is_ok(),
            "{place} may be asked for, and {name} not looked up"
        );
        check_refusal(&looked_up, |asked| *asked == Asked::Name(name.clone()))?;
    }
    ensure!(
        connected.is_err() || asked.is_ok(),
        "{place} may be reached, and not asked for"
    );
    for answer in [&asked, &connected] {
        check_refusal(answer, |asked| matches!(asked, Asked::Destination(_)))?;
    }

    // What is denied is denied, whatever else is granted.
    let all_but = Grants {
        all: true,
        denied_network: grants.denied_network.clone(),
        ..Grants::default()
    };
    if all_but.may_connect(place, address).is_err() {
        ensure!(connected.is_err(), "{place} at {address} is denied, and may be reached");
        if let IpAddr::V4(inner) = address {
            for guise in guises(inner) {
                ensure!(
                    grants.may_connect(place, guise).is_err(),
                    "{place} at {address} is denied, and at {guise} it is not"
                );
            }
        }
    }
    // And only that is: more grants never make less of what is allowed.
    let more = Grants {
        all: true,
        ..grants.clone()
    };
    ensure!(
        connected.is_err() || more.may_connect(place, address).is_ok(),
        "with all granted, {place} may not be reached"
    );

    if connected.is_ok() {
        check_special(grants, place, address)?;
    }
    check_remedies(grants, place, address)
}

fn check_refusal(answer: &Result<(), Refusal>, is_about: impl Fn(&Asked) -> bool) -> Result<(), Broken> {
    let Err(refusal) = answer else { return Ok(()) };
    ensure!(is_about(&refusal.asked), "a refusal of something else: {refusal:?}");
    ensure!(!refusal.to_string().contains('\n'), "a refusal of several lines: {refusal}");
    let is_denied = matches!(refusal.reason, Reason::Denied(_));
    ensure!(
        !is_denied || refusal.remedy.is_none(),
        "a denial that a grant should help against: {refusal:?}"
    );
    Ok(())
}

/// An address that is no host of the internet is never reached by a rule for something else.
fn check_special(grants: &Grants, place: &Destination, address: IpAddr) -> Result<(), Broken> {
    ensure!(
        special(address).is_some() || !is_inside(address),
        "{address} is special, and nobody says so"
    );
    let is_meant = |rule: &NetworkRule| match &rule.host {
        HostPattern::Addresses(network) => network.contains(&address),
        HostPattern::Localhost => address.is_loopback(),
        HostPattern::Any | HostPattern::Name(_) | HostPattern::Below(_) => false,
    };
    ensure!(
        special(address).is_none() || grants.all || grants.network.iter().any(is_meant),
        "{place} may be reached at {address}, which no rule names"
    );
    Ok(())
}

/// What the standard library knows of addresses that lead inside.
fn is_inside(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
                || address.is_multicast()
                || address.is_broadcast()
                || address.is_documentation()
        }
        IpAddr::V6(address) => {
            address.is_loopback()
                || address.is_unspecified()
                || address.is_multicast()
                || address.is_unique_local()
                || address.is_unicast_link_local()
        }
    }
}

/// Other spellings of an IPv4 address: mapped, through a translator, and through 6to4.
fn guises(address: Ipv4Addr) -> [IpAddr; 3] {
    let [a, b, c, d] = address.octets();
    let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    [
        address.to_ipv6_mapped().into(),
        v6([0x64, 0xff9b, 0, 0, 0, 0, high, low]),
        v6([0x2002, high, low, 0, 0, 0, 0, 1]),
    ]
}

/// Who does what each refusal says gets through, or is told that it is denied.
fn check_remedies(grants: &Grants, place: &Destination, address: IpAddr) -> Result<(), Broken> {
    let mut grants = grants.clone();
    for _ in 0..4 {
        let Err(refusal) = grants.may_connect(place, address) else {
            return Ok(());
        };
        let before = grants.clone();
        match refusal.remedy {
            Some(Rule::Allow(permission)) => {
                let allowed = grants.allow(permission);
                ensure!(
                    allowed.is_ok() && grants != before,
                    "the remedy changes nothing: {place} at {address}"
                );
            }
            Some(rule) => return Err(Broken(format!("the remedy is no grant: {rule}"))),
            // There is no port 0, and so no rule for it.
            None if matches!(refusal.reason, Reason::Denied(_)) || place.port == 0 => return Ok(()),
            None => return Err(Broken(format!("no remedy for {refusal}"))),
        }
    }
    Err(Broken(format!("no end of remedies for {place} at {address}")))
}

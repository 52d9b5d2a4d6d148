//! What holds for all rules and all places.

#![cfg(test)]

use std::fmt::{Debug, Display};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::IpNet;
use policy::{
    Denial, Destination, DnsName, Grants, Host, HostPattern, NetworkRule, Permission, Ports, Reason, Rule, Scheme, SecretName,
    Variable, VariableName, special,
};
use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};

/// Few names, so that rules and places meet.
fn names() -> impl Strategy<Value = DnsName> {
    let label = prop_oneof![Just("a"), Just("b"), Just("example"), Just("com"), Just("localhost")];
    proptest::collection::vec(label, 1..4).prop_map(|labels| labels.join(".").parse().unwrap())
}

/// Special ones and disguises often, others too.
fn addresses() -> BoxedStrategy<IpAddr> {
    let v4 = prop_oneof![
        any::<Ipv4Addr>(),
        (0..4_u8).prop_map(|last| Ipv4Addr::new(10, 0, 0, last)),
        (0..4_u8).prop_map(|last| Ipv4Addr::new(127, 0, 0, last)),
        Just(Ipv4Addr::new(169, 254, 169, 254)),
        Just(Ipv4Addr::new(8, 8, 8, 8)),
    ];
    let disguise = (v4.clone(), 0..6_u8).prop_map(|(inner, form)| {
        let [a, b, c, d] = inner.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        Ipv6Addr::from_segments(match form {
            0 => [0, 0, 0, 0, 0, 0xffff, high, low],
            1 => [0, 0, 0, 0, 0, 0, high, low],
            2 => [0x64, 0xff9b, 0, 0, 0, 0, high, low],
            3 => [0x2002, high, low, 0, 0, 0, 0, 1],
            4 => [0x2606, 0x4700, 0, 0, 0x200, 0x5efe, high, low],
            _ => [0x2001, 0, 0x808, 0x808, 0, 0, !high, !low],
        })
    });
    let v6 = prop_oneof![any::<Ipv6Addr>(), disguise, Just(Ipv6Addr::LOCALHOST)];
    prop_oneof![v4.prop_map(IpAddr::V4), v6.prop_map(IpAddr::V6)].boxed()
}

fn hosts() -> impl Strategy<Value = Host> {
    prop_oneof![
        names().prop_map(Host::Name),
        addresses().prop_map(|address| Host::Address(address.to_canonical())),
    ]
}

fn schemes() -> impl Strategy<Value = Scheme> {
    proptest::sample::select(Scheme::ALL.to_vec())
}

fn port() -> impl Strategy<Value = u16> {
    prop_oneof![Just(80), Just(443), 1..=u16::MAX]
}

fn ports() -> impl Strategy<Value = Ports> {
    let range = (port(), port()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b)));
    let part = prop_oneof![port().prop_map(|port| port.to_string()), range];
    let some = proptest::collection::vec(part, 1..4).prop_map(|parts| parts.join(",").parse().unwrap());
    prop_oneof![Just(Ports::ANY), some]
}

fn networks() -> impl Strategy<Value = IpNet> {
    (addresses(), 0..=128_u8).prop_map(|(address, length)| {
        let most = IpNet::from(address).max_prefix_len();
        IpNet::new(address, length.min(most)).unwrap().trunc()
    })
}

/// Patterns that say nothing of addresses.
fn names_only() -> impl Strategy<Value = HostPattern> {
    prop_oneof![
        Just(HostPattern::Any),
        names()
            .prop_map(|name| HostPattern::only(&Host::Name(name)))
            .prop_filter("this machine", |host| *host != HostPattern::Localhost),
        names().prop_map(HostPattern::Below),
    ]
}

fn patterns() -> impl Strategy<Value = HostPattern> {
    prop_oneof![
        names_only(),
        Just(HostPattern::Localhost),
        networks().prop_map(HostPattern::Addresses),
    ]
}

fn rules_of(host: impl Strategy<Value = HostPattern>) -> impl Strategy<Value = NetworkRule> {
    (proptest::option::of(schemes()), host, ports()).prop_map(|(scheme, host, ports)| NetworkRule { scheme, host, ports })
}

/// In a box, as others that hold many: strategies by value are too large for the stack of a test.
fn network_rules() -> BoxedStrategy<NetworkRule> {
    rules_of(patterns()).boxed()
}

fn destinations() -> impl Strategy<Value = Destination> {
    (schemes(), hosts(), port()).prop_map(|(scheme, host, port)| Destination { scheme, host, port })
}

fn variables() -> impl Strategy<Value = Variable> {
    let name = "[A-Za-z_. -]{1,20}".prop_map(|text| text.parse::<VariableName>().unwrap());
    (name, proptest::option::of("[^\0]{0,20}")).prop_map(|(name, value)| Variable { name, value })
}

fn permissions() -> impl Strategy<Value = Permission> {
    let directory = || "[a-z/. ]{1,12}(:[a-z/. ]{1,12})?".prop_map(|text| text.parse().unwrap());
    prop_oneof![
        directory().prop_map(Permission::Read),
        directory().prop_map(Permission::Write),
        network_rules().prop_map(Permission::Net),
        variables().prop_map(Permission::Env),
        "[A-Za-z0-9_.-]{1,128}".prop_map(|text| Permission::Secret(text.parse::<SecretName>().unwrap())),
        Just(Permission::All),
    ]
}

fn denials() -> impl Strategy<Value = Denial> {
    prop_oneof![
        "[^\0]{1,12}".prop_map(|text| Denial::Read(text.into())),
        network_rules().prop_map(Denial::Net),
    ]
}

fn rules() -> BoxedStrategy<Rule> {
    prop_oneof![permissions().prop_map(Rule::Allow), denials().prop_map(Rule::Deny)].boxed()
}

fn grants() -> impl Strategy<Value = Grants> {
    proptest::collection::vec(rules(), 0..8).prop_map(|rules| {
        let mut grants = Grants::default();
        for rule in rules {
            match rule {
                // A path inside that is taken: what stands there stays.
                Rule::Allow(permission) => drop(grants.allow(permission)),
                Rule::Deny(denial) => grants.deny(denial),
            }
        }
        grants
    })
}

fn with_network(rules: Vec<NetworkRule>) -> Grants {
    Grants {
        network: rules,
        ..Grants::default()
    }
}

fn round_trip<T>(value: &T) -> Result<(), TestCaseError>
where
    T: FromStr<Err: Debug> + Display + Debug + PartialEq + Serialize + DeserializeOwned,
{
    let text = value.to_string();
    prop_assert_eq!(&text.parse::<T>().unwrap(), value);
    prop_assert_eq!(serde_json::to_value(value).unwrap(), serde_json::json!(text));
    prop_assert_eq!(&serde_json::from_value::<T>(serde_json::json!(text)).unwrap(), value);
    Ok(())
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(
        name in names(),
        ports in ports(),
        pattern in patterns(),
        rule in network_rules(),
        variable in variables(),
        any_rule in rules(),
    ) {
        round_trip(&name)?;
        round_trip(&ports)?;
        round_trip(&pattern)?;
        round_trip(&rule)?;
        round_trip(&variable)?;
        round_trip(&any_rule)?;
        match &any_rule {
            Rule::Allow(permission) => round_trip(permission)?,
            Rule::Deny(denial) => round_trip(denial)?,
        }
    }

    /// Whatever people type: an answer, never a panic, and what is accepted has one spelling.
    #[test]
    fn any_text_is_read_or_refused(text in "[a-z0-9*.:/\\[\\],@%x -]{0,24}|\\PC{0,24}") {
        if let Ok(rule) = text.parse::<NetworkRule>() {
            round_trip(&rule)?;
        }
        if let Ok(Host::Name(name)) = Host::parse(&text) {
            round_trip(&name)?;
        }
        drop(policy::read_wassette(&text));
        drop(policy::read_wassette(&format!("{{version: '1.0', permissions: {{network: {{allow: [{{host: {text}}}]}}}}}}")));
        drop(text.parse::<Rule>());
        drop(text.parse::<Permission>());
        drop(format!("--allow-{text}").parse::<Rule>());
    }

    #[test]
    fn grants_are_read_back_as_written(grants in grants()) {
        let json = serde_json::to_value(&grants).unwrap();
        prop_assert_eq!(&serde_json::from_value::<Grants>(json).unwrap(), &grants);
    }

    #[test]
    fn rules_make_the_same_grants_again(grants in grants()) {
        let mut again = Grants::default();
        for rule in grants.rules() {
            match rule {
                Rule::Allow(permission) => again.allow(permission).unwrap(),
                Rule::Deny(denial) => again.deny(denial),
            }
        }
        prop_assert_eq!(again, grants);
    }

    #[test]
    fn what_is_removed_rule_by_rule_leaves_nothing(mut grants in grants()) {
        for rule in grants.rules() {
            prop_assert!(grants.remove(&rule));
            prop_assert!(!grants.remove(&rule));
        }
        prop_assert!(grants.is_empty());
    }

    #[test]
    fn a_union_has_all_of_the_first_and_nothing_twice(first in grants(), second in grants()) {
        let both = first.clone().and(&second);
        prop_assert_eq!(&first.clone().and(&first), &first);
        prop_assert_eq!(&Grants::default().and(&first), &first);
        prop_assert_eq!(&both.clone().and(&second), &both);
        prop_assert_eq!(both.all, first.all || second.all);
        prop_assert!(both.environment.starts_with(&first.environment));
        prop_assert!(both.network.starts_with(&first.network));
        prop_assert!(both.denied_network.starts_with(&first.denied_network));
        for rule in &second.denied_network {
            prop_assert!(both.denied_network.contains(rule));
        }
    }

    #[test]
    fn who_has_no_grants_goes_nowhere(asked in destinations(), address in addresses(), name in names(), denied in network_rules()) {
        let mut grants = Grants::default();
        for _ in 0..2 {
            prop_assert!(grants.may_look_up(&name).is_err());
            prop_assert!(grants.may_ask(&asked).is_err());
            prop_assert!(grants.may_connect(&asked, address).is_err());
            grants.deny(Denial::Net(denied.clone()));
        }
    }

    #[test]
    fn a_denial_beats_every_grant(mut grants in grants(), asked in destinations(), address in addresses()) {
        let dialled = Destination { host: Host::Address(address), ..asked.clone() };
        for denied in [&asked, &dialled] {
            let mut grants = grants.clone();
            grants.all = true;
            grants.deny(Denial::Net(NetworkRule::only(denied).unwrap()));
            let refusal = grants.may_connect(&asked, address).unwrap_err();
            prop_assert!(matches!(refusal.reason, Reason::Denied(_)));
            prop_assert_eq!(refusal.remedy, None);
        }
        grants.deny(Denial::Net("*".parse().unwrap()));
        prop_assert!(grants.may_ask(&asked).is_err());
        prop_assert!(grants.may_connect(&asked, address).is_err());
    }

    /// More denials never allow more; more grants never allow less.
    #[test]
    fn decisions_are_monotonic(grants in grants(), rule in network_rules(), asked in destinations(), address in addresses()) {
        let before = grants.may_connect(&asked, address).is_ok();
        let mut more = grants.clone();
        more.allow(Permission::Net(rule.clone())).unwrap();
        prop_assert!(!before || more.may_connect(&asked, address).is_ok());
        let mut less = grants;
        less.deny(Denial::Net(rule));
        prop_assert!(before || less.may_connect(&asked, address).is_err());
    }

    #[test]
    fn no_name_and_no_wildcard_reaches_a_special_address(
        rules in proptest::collection::vec(rules_of(names_only()), 0..6),
        asked in destinations(),
        address in addresses(),
    ) {
        if special(address).is_some() {
            prop_assert!(with_network(rules).may_connect(&asked, address).is_err());
        }
    }

    /// A rule for this machine reaches this machine, and only under its own names.
    #[test]
    fn localhost_is_this_machine(
        more in proptest::collection::vec(network_rules(), 0..4),
        asked in destinations(),
        address in addresses(),
    ) {
        let mut rules: Vec<_> = more.into_iter().filter(|rule| !matches!(rule.host, HostPattern::Addresses(_))).collect();
        rules.extend(["localhost", "*"].map(|rule| rule.parse().unwrap()));
        let is_this_machine = match &asked.host {
            Host::Name(name) => name.is_localhost(),
            Host::Address(host) => host.is_loopback(),
        };
        if special(address).is_some() {
            let may = with_network(rules).may_connect(&asked, address).is_ok();
            prop_assert_eq!(may, address.is_loopback() && is_this_machine);
        }
    }

    #[test]
    fn who_may_connect_may_ask_and_look_up(grants in grants(), asked in destinations(), address in addresses()) {
        if grants.may_connect(&asked, address).is_ok() {
            prop_assert!(grants.may_ask(&asked).is_ok());
            if let Host::Name(name) = &asked.host {
                prop_assert!(grants.may_look_up(name).is_ok());
            }
        }
    }

    /// One remedy for the name, and one for the address.
    #[test]
    fn remedies_help(grants in grants(), asked in destinations(), address in addresses()) {
        let address = match asked.host {
            Host::Address(host) => host,
            Host::Name(_) => address,
        };
        let mut grants = grants;
        for _ in 0..2 {
            let Err(refusal) = grants.may_connect(&asked, address) else { break };
            let Some(Rule::Allow(permission)) = refusal.remedy else { break };
            prop_assert_eq!(permission.to_string().parse::<Permission>().unwrap(), permission.clone());
            grants.allow(permission).unwrap();
        }
        if let Err(refusal) = grants.may_connect(&asked, address) {
            prop_assert!(matches!(refusal.reason, Reason::Denied(_)), "{refusal}");
        }
    }
}

//! Tables of texts: each line of `tables/*.txt` has a text and, after ` => `, what becomes of it. `BLESS=1` writes the latter.

#![cfg(test)]

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use policy::{Denial, Destination, Grants, Host, LimitSettings, NetworkRule, Rule, read_wassette};

const ARROW: &str = " => ";

#[test]
fn network_rules() {
    check("network_rules", read_and_print::<NetworkRule>);
}

#[test]
fn rules() {
    check("rules", read_and_print::<Rule>);
}

#[test]
fn hosts() {
    check("hosts", |text| match Host::parse(text) {
        Ok(Host::Name(name)) => format!("name {name}"),
        Ok(Host::Address(address)) => format!("address {address}"),
        Err(error) => format!("no: {error}"),
    });
}

/// What a policy of Wassette has in one line, as flow style allows.
#[test]
fn wassette() {
    check("wassette", |text| wassette_rules(text).join(" "));
}

/// `NAME.yaml` is a policy of Wassette, `NAME.txt` what it is here.
#[test]
fn wassette_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wassette");
    let mut seen = 0;
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let rules = wassette_rules(&std::fs::read_to_string(&path).unwrap());
            compare(&path.with_extension("txt"), &format!("{}\n", rules.join("\n")));
            seen += 1;
        }
    }
    assert!(seen > 0);
}

fn wassette_rules(text: &str) -> Vec<String> {
    match read_wassette(text) {
        Ok(policy) => {
            let rules = policy.grants.rules().into_iter().map(|rule| rule.to_string());
            let memory = policy.limits.max_memory.map(|memory| format!("max_memory={memory}"));
            let others = LimitSettings {
                max_memory: None,
                ..policy.limits
            };
            assert_eq!(others, LimitSettings::default());
            rules.chain(memory).chain(["yes".to_owned()]).collect()
        }
        Err(error) => vec![format!("no: {error}")],
    }
}

#[test]
fn decisions() {
    let mut grants = Grants::default();
    check("decisions", |line| {
        if line.is_empty() {
            grants = Grants::default();
            return String::new();
        }
        if line.starts_with("--") {
            match line.parse().unwrap() {
                Rule::Allow(permission) => grants.allow(permission).unwrap(),
                Rule::Deny(denial @ Denial::Net(_)) => grants.deny(denial),
                Rule::Deny(Denial::Read(_)) => panic!("`{line}` decides nothing here"),
            }
            return String::new();
        }
        answer(&grants, line)
    });
}

fn answer(grants: &Grants, question: &str) -> String {
    let answer = if let Some(name) = question.strip_prefix("look up ") {
        grants.may_look_up(&name.parse().unwrap())
    } else if let Some(place) = question.strip_prefix("ask ") {
        grants.may_ask(&destination(place))
    } else {
        let (place, address) = question.strip_prefix("connect ").unwrap().split_once(" at ").unwrap();
        grants.may_connect(&destination(place), address.parse().unwrap())
    };
    match answer {
        Ok(()) => "yes".to_owned(),
        Err(refusal) => {
            let remedy = refusal.remedy.as_ref().map(|rule| format!(" [{rule}]"));
            format!("no: {refusal}{}", remedy.unwrap_or_default())
        }
    }
}

fn destination(text: &str) -> Destination {
    let (scheme, rest) = text.split_once("://").unwrap();
    let (host, port) = rest.rsplit_once(':').unwrap();
    Destination {
        scheme: scheme.parse().unwrap(),
        host: Host::parse(host).unwrap(),
        port: port.parse().unwrap(),
    }
}

/// What is printed must be read back as the same, by serde too.
fn read_and_print<T>(text: &str) -> String
where
    T: FromStr<Err: Display> + Display + PartialEq + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    match text.parse::<T>() {
        Ok(read) => {
            let printed = read.to_string();
            assert_eq!(printed.parse::<T>().ok().as_ref(), Some(&read), "{text}");
            let json = serde_json::json!(printed);
            assert_eq!(serde_json::to_value(&read).unwrap(), json, "{text}");
            assert_eq!(serde_json::from_value::<T>(json).unwrap(), read, "{text}");
            printed
        }
        Err(error) => format!("no: {error}"),
    }
}

/// Lines that start with `#` are for readers. A text that could not be seen is in quotes, as JSON has it.
fn check(name: &str, mut answer: impl FnMut(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/tables")
        .join(format!("{name}.txt"));
    let table = std::fs::read_to_string(&path).unwrap();
    let mut now = String::new();
    for line in table.lines() {
        let text = line.split_once(ARROW).map_or(line, |(text, _)| text).trim_end();
        now.push_str(text);
        if !text.starts_with('#') {
            let plain = match text.starts_with('"') {
                true => serde_json::from_str(text).unwrap(),
                false => text.to_owned(),
            };
            // An empty line is one between blocks; the empty text is `""`.
            let result = match text.is_empty() && name != "decisions" {
                true => String::new(),
                false => answer(&plain),
            };
            if !result.is_empty() {
                now.push_str(ARROW);
                now.push_str(&result);
            }
        }
        now.push('\n');
    }
    compare(&path, &now);
}

fn compare(path: &Path, now: &str) {
    if std::env::var_os("BLESS").is_some() {
        #[expect(clippy::disallowed_methods, reason = "a file of this repository, which git keeps")]
        std::fs::write(path, now).unwrap();
        return;
    }
    let before = std::fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().display();
    for (expected, found) in before.lines().zip(now.lines()) {
        assert_eq!(found, expected, "{name}; `BLESS=1 cargo test -p policy` rewrites it");
    }
    assert_eq!(now.lines().count(), before.lines().count(), "{name}");
}

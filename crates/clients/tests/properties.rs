//! Whatever a file looks like: installing twice is installing once, and uninstalling takes back what installing did.

#![cfg(test)]

use clients::{Change, Client, EditError, Entry, Transport};
use proptest::prelude::*;

fn entry(http: bool) -> Entry {
    let transport = if http {
        Transport::Http {
            url: "http://127.0.0.1:8080/mcp".to_owned(),
            headers: vec![("X-Tenant".to_owned(), "a: #b".to_owned())],
        }
    } else {
        Transport::Stdio {
            command: r"C:\opt\host\host.exe".to_owned(),
            args: vec!["serve".to_owned(), "it's \"this\"".to_owned()],
            env: vec![("A".to_owned(), "é\n".to_owned())],
        }
    };
    Entry {
        name: "ours".parse().unwrap(),
        transport,
    }
}

/// Installs, installs again, uninstalls; and the same with a change in between.
fn round_trip(client: Client, before: &str, http: bool) -> Result<String, EditError> {
    let entry = entry(http);
    let servers = client.servers(before)?;
    let installed = client.install(Some(before), &entry, false)?;
    assert_eq!(installed.change, Change::Added);
    let with_ours = client.servers(&installed.text)?;
    let (last, others) = with_ours.split_last().unwrap();
    assert_eq!((last.name.as_str(), others), ("ours", servers.as_slice()));
    let again = client.install(Some(&installed.text), &entry, false)?;
    assert_eq!(again.change, Change::None);
    assert_eq!(again.text, installed.text);
    let uninstalled = client.uninstall(&installed.text, entry.name.as_str(), "")?;
    assert_eq!(uninstalled.change, Change::Removed);
    assert_eq!(client.servers(&uninstalled.text)?, servers);
    if !http {
        let mut other = entry.clone();
        other.transport = Transport::Stdio {
            command: "host".to_owned(),
            args: vec!["serve".to_owned()],
            env: Vec::new(),
        };
        let mut text = installed.text;
        for entry in [&other, &entry] {
            let replaced = client.install(Some(&text), entry, false)?;
            assert_eq!(replaced.change, Change::Replaced);
            text = replaced.text;
        }
        let gone = client.uninstall(&text, entry.name.as_str(), "")?;
        assert_eq!(gone.text, uninstalled.text);
    }
    Ok(uninstalled.text)
}

/// A JSON value.
#[derive(Clone, Debug)]
enum Json {
    Scalar(&'static str),
    List(Vec<Json>),
    Object(Vec<Json>),
}

fn json() -> impl Strategy<Value = Json> {
    let scalars = [
        "1",
        "-2.50e3",
        "true",
        "null",
        "\"a\"",
        "\"}, // \\\" {\"",
        "\"\"",
        "\"é\\u0041\"",
    ];
    let scalar = prop::sample::select(scalars.to_vec()).prop_map(Json::Scalar);
    scalar.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::List),
            prop::collection::vec(inner, 0..4).prop_map(Json::Object),
        ]
    })
}

/// Writes with what may stand between any two tokens.
struct Writer<'a> {
    gaps: std::iter::Cycle<std::slice::Iter<'a, usize>>,
    newline: &'a str,
    text: String,
}

const GAPS: &[&str] = &[
    "",
    "",
    " ",
    "\n",
    "\n  ",
    "\n\t",
    "  \n\n    ",
    "/* c */",
    " // c }\n",
    "/* a\n b */ ",
    "\n// c\n  ",
];

impl Writer<'_> {
    fn gap(&mut self) {
        let gap = GAPS[*self.gaps.next().unwrap()];
        self.text.push_str(&gap.replace('\n', self.newline));
    }

    fn token(&mut self, token: &str) {
        self.gap();
        self.text.push_str(token);
    }

    fn value(&mut self, value: &Json) {
        match value {
            Json::Scalar(text) => self.token(text),
            Json::List(items) => {
                self.token("[");
                self.items(items, |writer, _, item| writer.value(item));
                self.token("]");
            }
            Json::Object(items) => self.object(items, "k"),
        }
    }

    fn object(&mut self, items: &[Json], prefix: &str) {
        self.token("{");
        self.items(items, |writer, index, item| writer.member(&format!("{prefix}{index}"), item));
        self.token("}");
    }

    fn member(&mut self, key: &str, value: &Json) {
        self.token(&format!("\"{key}\""));
        self.token(":");
        self.value(value);
    }

    fn items<T>(&mut self, items: &[T], write: impl Fn(&mut Self, usize, &T)) {
        for (index, item) in items.iter().enumerate() {
            write(self, index, item);
            let is_last = index + 1 == items.len();
            if !is_last || self.gaps.next().unwrap().is_multiple_of(3) {
                self.token(",");
            }
        }
    }
}

proptest! {
    #[test]
    fn json_is_given_back(
        settings in prop::collection::vec(json(), 0..4),
        servers in prop::option::of(prop::collection::vec(json(), 0..4)),
        place in 0_usize..4,
        gaps in prop::collection::vec(0..GAPS.len(), 1..80),
        crlf: bool,
        bom: bool,
        http: bool,
    ) {
        let newline = if crlf { "\r\n" } else { "\n" };
        let mut writer = Writer { gaps: gaps.iter().cycle(), newline, text: String::new() };
        let has_others = servers.as_ref().is_some_and(|servers| !servers.is_empty());
        let mut members: Vec<(String, Json)> = settings.into_iter().enumerate().map(|(index, value)| (format!("s{index}"), value)).collect();
        if let Some(servers) = servers {
            members.insert(place.min(members.len()), ("mcpServers".to_owned(), Json::Object(servers)));
        }
        writer.token("{");
        writer.items(&members, |writer, _, (key, value)| writer.member(key, value));
        writer.token("}");
        writer.gap();
        let before = format!("{}{}", if bom { "\u{feff}" } else { "" }, writer.text);
        let after = round_trip(Client::Cursor, &before, http).unwrap();
        if has_others {
            prop_assert_eq!(after, before);
        }
    }

    #[test]
    fn what_is_ragged_is_never_damaged(text in "[-{}\\[\\]:,\"'#&*!|>=./\\\\a1 \n\r\t\u{e9}]{0,60}") {
        for client in [Client::VsCode, Client::Codex, Client::Goose] {
            let _ = round_trip(client, &text, false);
        }
    }

    #[test]
    fn toml_is_given_back(lines in prop::collection::vec(prop::sample::select(TOML), 0..12), end in 0_usize..3, crlf: bool, http: bool) {
        let text = format!("{}{}", lines.join("\n"), "\n".repeat(end));
        let before = if crlf { text.replace('\n', "\r\n") } else { text };
        if let Ok(after) = round_trip(Client::Codex, &before, http) && !before.trim().is_empty() {
            prop_assert_eq!(after, before);
        }
    }

    #[test]
    fn yaml_is_given_back(lines in prop::collection::vec(prop::sample::select(YAML), 0..12), end in 0_usize..3, crlf: bool, http: bool) {
        let text = format!("{}{}", lines.join("\n"), "\n".repeat(end));
        let before = if crlf { text.replace('\n', "\r\n") } else { text };
        let has_others = Client::Goose.servers(&before).is_ok_and(|servers| !servers.is_empty());
        if let Ok(after) = round_trip(Client::Goose, &before, http) && has_others {
            prop_assert_eq!(after, before);
        }
    }
}

const TOML: &[&str] = &[
    "a = 1",
    "b.c = '''\n[mcp_servers.ours]\n'''",
    "[x]",
    "[x.y] # c",
    "[[z]]",
    "[mcp_servers]",
    "[mcp_servers.a]",
    "[mcp_servers.a.env]",
    "[mcp_servers.b] # c",
    "command = \"x\"",
    "args = [\n  'a', # [x]\n]",
    "d = { e = 1 }",
    "  # c",
    "# [mcp_servers.ours]",
    "",
    "  ",
];

const YAML: &[&str] = &[
    "a: 1",
    "b: |",
    "b2: >-",
    "  text: of it",
    "extensions:",
    "extensions: # c",
    "  one:",
    "  two: # c",
    "    enabled: true",
    "    type: stdio",
    "    cmd: 'x: y'",
    "    args:",
    "    - a",
    "      - b # c",
    "    text: |+",
    "    c: {d: [1]}",
    "z:",
    "  # c",
    "# c",
    "",
    "    ",
];

#[test]
fn depth_is_no_danger() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("- ", ""), ("a = [", ""), ("{a: ", "}")] {
        let text = format!("{}{}", open.repeat(100_000), close.repeat(100_000));
        for client in [Client::VsCode, Client::Codex, Client::Goose] {
            let _ = round_trip(client, &text, false);
            let _ = round_trip(client, &format!("a: {text}"), false);
        }
    }
}

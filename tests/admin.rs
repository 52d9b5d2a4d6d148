//! The management tools: there with `--allow-agent-admin` only, and within what the person allows in `host.toml`.

#![cfg(test)]

mod support;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use support::client::{Client, ERAS, Era};
use support::{Home, guest, text};

/// `lifecycle::RESERVED_NAMES`, as clients see them.
const TOOLS: [&str; 7] = [
    "get_policy",
    "grant_permission",
    "list_components",
    "load_component",
    "reset_permissions",
    "revoke_permission",
    "unload_component",
];

/// A home whose agent may load what is in `allowed/` and grant what is in `data/`, both in the test's own folder.
struct Place {
    home: Home,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let home = Home::new();
        for folder in ["allowed", "other", "data/sub", "private"] {
            fs::create_dir_all(home.file(folder)).unwrap();
        }
        for folder in ["allowed", "other"] {
            for name in ["documented", "exit", "cli-clap"] {
                fs::copy(guest(name), home.file(&format!("{folder}/{name}.wasm"))).unwrap();
            }
        }
        home.write("data/sub/a.txt", "inside\n");
        home.write("private/a.txt", "secret\n");
        let root = home.file("").canonicalize().unwrap();
        let config = format!(
            "[agent]\nsources = [{:?}]\ndirectories = [{:?}]\n",
            root.join("allowed/*"),
            root.join("data")
        );
        home.write("home/host.toml", config);
        Self { home, root }
    }

    fn path(&self, name: &str) -> String {
        self.root.join(name).to_str().unwrap().to_owned()
    }

    fn manage(&self, era: Era) -> Client {
        Client::connect(self.home.serve(&["--allow-agent-admin"], &[]), era)
    }
}

/// The result of a management tool, after checking it against what the tool promises.
fn manage(client: &mut Client, tool: &str, arguments: Value) -> Value {
    let definition = client
        .tools()
        .into_iter()
        .find(|definition| definition["name"] == tool)
        .unwrap();
    let check = |schema: &Value, value: &Value| {
        if let Err(error) = jsonschema::draft202012::new(schema).unwrap().validate(value) {
            panic!("{tool}: {error} in {value}");
        }
    };
    check(&definition["inputSchema"], &arguments);
    let mut result = client.call(tool, arguments);
    assert_eq!(result["isError"], false, "{result}");
    check(&definition["outputSchema"], &result["structuredContent"]);
    let as_text: Value = serde_json::from_str(text(&result)).unwrap();
    assert_eq!(as_text, result["structuredContent"], "text and structure differ");
    result["structuredContent"]["result"].take()
}

fn ids(client: &mut Client) -> Vec<String> {
    let list = manage(client, "list_components", json!({}));
    let id = |component: &Value| component["id"].as_str().unwrap().to_owned();
    list["components"].as_array().unwrap().iter().map(id).collect()
}

/// What `depot cat FILE` gives, or nothing where it fails.
fn read(client: &mut Client, file: &str) -> Option<String> {
    let result = client.call("depot_cat", json!({"args": {"file": [file]}}));
    let printed = &result["structuredContent"]["result"]["stdout"];
    (result["isError"] == false).then(|| printed.as_str().unwrap().to_owned())
}

#[test]
fn without_leave_there_are_none() {
    let place = Place::new();
    for era in ERAS {
        let server = place.home.serve(&[], &[place.root.join("allowed/documented.wasm")]);
        let mut client = Client::connect(server, era);
        let names = client.tool_names();
        for tool in TOOLS {
            assert!(!names.contains(&tool.to_owned()));
            let answer = client.request("tools/call", json!({"name": tool, "arguments": {}}));
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
        client.close_well();
    }
}

#[test]
fn an_agent_loads_looks_and_unloads() {
    for era in ERAS {
        let place = Place::new();
        let mut client = place.manage(era);
        assert_eq!(client.tool_names(), TOOLS);
        assert_eq!(manage(&mut client, "list_components", json!({})), json!({"components": []}));

        for (name, tools) in [("documented", 6), ("exit", 3), ("cli-clap", 0)] {
            let before = client.tool_names().len();
            let source = place.path(&format!("allowed/{name}.wasm"));
            let report = manage(&mut client, "load_component", json!({"source": source}));
            assert_eq!(
                (&report["outcome"], &report["component"]["id"]),
                (&json!("added"), &json!(name))
            );
            client.wait_for_change();
            let names = client.tool_names();
            assert!(names.is_sorted(), "{names:?}");
            assert!(names.len() >= before + tools.max(1), "{names:?}");
            let own = report["component"]["tools"].as_array().unwrap();
            assert!(own.iter().all(|tool| names.iter().any(|name| tool == name)), "{report}");
        }
        assert_eq!(client.call("tidy_up", json!({}))["isError"], false);
        assert_eq!(ids(&mut client), ["cli-clap", "documented", "exit"]);

        let list = manage(&mut client, "list_components", json!({}));
        let middle = &list["components"][1];
        let keys: Vec<&str> = middle.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "id", "status", "reason", "source", "digest", "size", "tools", "grants", "addedAt"
            ]
        );
        assert_eq!((&middle["status"], &middle["grants"]), (&json!("ready"), &json!([])));
        assert_eq!(middle["source"], place.path("allowed/documented.wasm"));

        let again = manage(
            &mut client,
            "load_component",
            json!({"source": place.path("allowed/exit.wasm")}),
        );
        assert_eq!(again["outcome"], "unchanged");

        let gone = manage(&mut client, "unload_component", json!({"id": "documented"}));
        assert_eq!(gone, json!({"id": "documented", "outcome": "removed"}));
        client.wait_for_change();
        assert_eq!(ids(&mut client), ["cli-clap", "exit"]);
        let answer = client.request("tools/call", json!({"name": "tidy_up", "arguments": {}}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let error = client.call_error("unload_component", json!({"id": "documented"}));
        assert!(error.contains("`documented`; there is `cli-clap`, `exit`"), "{error}");
        client.close_well();
    }
}

#[test]
fn a_component_can_be_named() {
    let place = Place::new();
    let mut client = place.manage(Era::Initialize);
    let source = place.path("allowed/exit.wasm");
    let report = manage(&mut client, "load_component", json!({"source": source, "name": "way-out"}));
    assert_eq!(report["component"]["id"], "way-out");
    assert_eq!(ids(&mut client), ["way-out"]);
}

#[test]
fn only_the_bytes_that_were_meant_are_loaded() {
    let place = Place::new();
    let mut client = place.manage(Era::Initialize);
    let source = place.path("allowed/exit.wasm");
    let digest = manage(&mut client, "load_component", json!({"source": source}))["component"]["digest"].clone();
    let digest = digest.as_str().unwrap().strip_prefix("sha256:").unwrap();
    manage(&mut client, "unload_component", json!({"id": "exit"}));

    for wrong in ["0".repeat(64), "0".to_owned(), String::new()] {
        let error = client.call_error("load_component", json!({"source": source, "sha256": wrong}));
        assert!(error.contains("sha256") || error.contains("SHA-256"), "{error}");
    }
    assert!(ids(&mut client).is_empty());
    manage(&mut client, "load_component", json!({"source": source, "sha256": digest}));
    assert_eq!(ids(&mut client), ["exit"]);
}

#[test]
fn what_the_person_did_not_allow_is_not_loaded() {
    let place = Place::new();
    let mut client = place.manage(Era::Initialize);
    for source in [
        place.path("other/exit.wasm"),
        place.path("allowed/../other/exit.wasm"),
        place.path("allowed/./../other/exit.wasm"),
        "https://example.com/exit.wasm".to_owned(),
        "oci://ghcr.io/example/exit:1".to_owned(),
        format!("{}\0", place.path("allowed/exit.wasm")),
        String::new(),
    ] {
        let error = client.call_error("load_component", json!({"source": source}));
        assert!(error.contains("hint: "), "{source:?}: {error}");
    }
    assert!(ids(&mut client).is_empty());
    client.close_well();
}

#[test]
fn a_link_is_no_way_out() {
    let place = Place::new();
    std::os::unix::fs::symlink(place.path("other/exit.wasm"), place.path("allowed/link.wasm")).unwrap();
    std::os::unix::fs::symlink(place.path("private"), place.path("data/link")).unwrap();
    let mut client = place.manage(Era::Initialize);
    client.call_error("load_component", json!({"source": place.path("allowed/link.wasm")}));
    assert!(ids(&mut client).is_empty());

    manage(
        &mut client,
        "load_component",
        json!({"source": place.path("allowed/cli-clap.wasm")}),
    );
    let permission = json!({"kind": "read", "host": place.path("data/link")});
    client.call_error("grant_permission", json!({"id": "cli-clap", "permission": permission}));
    assert_eq!(read(&mut client, &place.path("data/link/a.txt")), None);
    assert_eq!(read(&mut client, &place.path("private/a.txt")), None);
}

#[test]
fn nothing_is_allowed_where_the_person_said_nothing() {
    for config in [None, Some(""), Some("[agent]\n")] {
        let place = Place::new();
        let file = place.home.directory().join("host.toml");
        match config {
            Some(config) => support::write(&file, config),
            None => fs::remove_file(file).unwrap(),
        }
        let server = place
            .home
            .serve(&["--allow-agent-admin"], &[place.root.join("allowed/cli-clap.wasm")]);
        let mut client = Client::connect(server, Era::Stateless);
        let error = client.call_error("load_component", json!({"source": place.path("allowed/exit.wasm")}));
        assert!(error.contains("hint: ") && error.contains("host.toml"), "{error}");
        let permission = json!({"kind": "read", "host": place.path("data")});
        let error = client.call_error("grant_permission", json!({"id": "cli-clap", "permission": permission}));
        assert!(error.contains("hint: ") && error.contains("host.toml"), "{error}");
        assert_eq!(ids(&mut client), ["cli-clap"]);
        client.close_well();
    }
}

#[test]
fn a_grant_is_given_used_and_taken_back() {
    for era in ERAS {
        let place = Place::new();
        let mut client = place.manage(era);
        let source = place.path("allowed/cli-clap.wasm");
        manage(&mut client, "load_component", json!({"source": source}));
        client.wait_for_change();
        let file = place.path("data/sub/a.txt");
        assert_eq!(read(&mut client, &file), None);

        let id = json!({"id": "cli-clap"});
        let before = manage(&mut client, "get_policy", id.clone());
        let keys: Vec<&str> = before.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "id",
                "digest",
                "grants",
                "serverGrants",
                "rules",
                "instance",
                "notGranted",
                "limits"
            ]
        );
        assert_eq!((&before["grants"], &before["serverGrants"]), (&json!([]), &json!([])));
        assert_eq!(before["limits"]["timeoutMs"], 30_000);

        let folder = place.path("data/sub");
        let grant = json!({"kind": "read", "host": folder});
        let after = manage(
            &mut client,
            "grant_permission",
            json!({"id": "cli-clap", "permission": grant}),
        );
        let shown = json!({"kind": "read", "host": folder, "guest": folder});
        assert_eq!(after["grants"], json!([shown]));
        assert_eq!(manage(&mut client, "get_policy", id.clone()), after);
        assert_eq!(read(&mut client, &file).as_deref(), Some("inside\n"));

        let elsewhere = json!({"kind": "write", "host": place.path("data"), "guest": "/a"});
        let both = manage(
            &mut client,
            "grant_permission",
            json!({"id": "cli-clap", "permission": elsewhere}),
        );
        assert_eq!(both["grants"], json!([elsewhere, shown]), "sorted by the path inside");
        assert_eq!(read(&mut client, "/a/sub/a.txt").as_deref(), Some("inside\n"));

        // As it was shown.
        let left = manage(
            &mut client,
            "revoke_permission",
            json!({"id": "cli-clap", "permission": shown}),
        );
        assert_eq!(left["grants"], json!([elsewhere]));
        assert_eq!(read(&mut client, &file), None);
        let error = client.call_error("revoke_permission", json!({"id": "cli-clap", "permission": shown}));
        assert!(error.contains("hint: "), "{error}");

        assert_eq!(manage(&mut client, "reset_permissions", id.clone()), before);
        assert_eq!(read(&mut client, "/a/sub/a.txt"), None);
        assert_eq!(manage(&mut client, "reset_permissions", id), before);
        // Permissions are no tools: nobody had to list those again.
        client.close_well();
    }
}

#[test]
fn what_the_person_did_not_allow_is_not_granted() {
    let place = Place::new();
    let mut client = place.manage(Era::Initialize);
    manage(
        &mut client,
        "load_component",
        json!({"source": place.path("allowed/cli-clap.wasm")}),
    );
    for host in [
        place.path("private"),
        place.path("data/../private"),
        place.path("data/sub/../../private"),
        place.path("data-other"),
        place.path(""),
        "/".to_owned(),
        "data".to_owned(),
        String::new(),
    ] {
        let permission = json!({"kind": "read", "host": host, "guest": "/data"});
        let error = client.call_error("grant_permission", json!({"id": "cli-clap", "permission": permission}));
        assert!(error.contains("hint: "), "{host:?}: {error}");
    }
    let unknown = json!({"id": "no-such", "permission": {"kind": "read", "host": place.path("data")}});
    for tool in ["grant_permission", "revoke_permission"] {
        let error = client.call_error(tool, unknown.clone());
        assert!(error.contains("`no-such`; there is `cli-clap`"), "{error}");
    }
    let policy = manage(&mut client, "get_policy", json!({"id": "cli-clap"}));
    assert_eq!(policy["grants"], json!([]));
}

/// The attack of taking a name: the tools of what was there, and what the person said of it, stay as they are.
#[test]
fn what_is_loaded_takes_no_name_and_no_place() {
    let place = Place::new();
    let config = fs::read_to_string(place.home.file("home/host.toml")).unwrap();
    let config = format!("{config}[components.cli-clap]\ncommands = ['cat']\n");
    place.home.write("home/host.toml", config);
    let server = place
        .home
        .serve(&["--allow-agent-admin"], &[place.root.join("other/cli-clap.wasm")]);
    let mut client = Client::connect(server, Era::Initialize);
    let before = client.tool_names();
    assert!(
        before.contains(&"depot_cat".to_owned()) && before.len() == 1 + TOOLS.len(),
        "{before:?}"
    );
    let source = place.path("allowed/cli-clap.wasm");
    let error = client.call_error("load_component", json!({"source": source}));
    assert!(error.contains("`cli-clap`"), "{error}");
    assert_eq!(client.tool_names(), before);
    manage(&mut client, "load_component", json!({"source": source, "name": "mine"}));
    client.wait_for_change();
    let after = client.tool_names();
    assert!(before.iter().all(|name| after.contains(name)), "{after:?}");
    assert!(after.contains(&"mine_depot_cat".to_owned()), "{after:?}");
    client.close_well();
}

#[test]
fn a_refusal_tells_nothing_of_what_is_there() {
    let place = Place::new();
    place.home.write("allowed/notes.txt", "password=secret");
    place.home.write("allowed/broken.wat", "(component $secret (");
    let mut client = place.manage(Era::Initialize);
    for (source, is_allowed) in [
        ("allowed/notes.txt", true),
        ("allowed/broken.wat", true),
        ("private/a.txt", false),
        ("private/missing", false),
    ] {
        let error = client.call_error("load_component", json!({"source": place.path(source)}));
        assert!(!error.contains("secret") && !error.contains("password"), "{error}");
        let told = if is_allowed {
            "is no component"
        } else {
            "none of the sources"
        };
        assert!(error.contains(told), "{error}");
    }
    client.close_well();
}

#[test]
fn what_the_person_granted_to_all_stays() {
    let place = Place::new();
    let options = ["--allow-agent-admin", "--allow-read", &place.path("data")];
    let server = place.home.serve(&options, &[place.root.join("allowed/cli-clap.wasm")]);
    let mut client = Client::connect(server, Era::Initialize);
    let grant = json!({"kind": "read", "host": place.path("data"), "guest": place.path("data")});
    let policy = manage(&mut client, "get_policy", json!({"id": "cli-clap"}));
    assert_eq!((&policy["grants"], &policy["serverGrants"]), (&json!([]), &json!([grant])));
    client.call_error("revoke_permission", json!({"id": "cli-clap", "permission": grant}));
    client.call_error("reset_permissions", json!({"id": "cli-clap"}));
    assert_eq!(read(&mut client, &place.path("data/sub/a.txt")).as_deref(), Some("inside\n"));
    client.close_well();
}

#[test]
fn no_component_takes_a_name_of_theirs() {
    let component = r#"(component
        (core module $m (func (export "f") (result i32) i32.const 7))
        (core instance $i (instantiate $m))
        (func (export "list-components") (result u32) (canon lift (core func $i "f"))))"#;
    let place = Place::new();
    let file = place.home.write("sly.wat", component);
    for options in [&["--allow-agent-admin"][..], &[]] {
        let mut client = Client::connect(place.home.serve(options, std::slice::from_ref(&file)), Era::Stateless);
        let names = client.tool_names();
        let other = names
            .iter()
            .find(|name| !TOOLS.contains(&name.as_str()))
            .expect("it has a tool");
        assert_eq!(client.call(other, json!({}))["structuredContent"], json!({"result": 7}));
        let answer = client.request("tools/call", json!({"name": "list_components", "arguments": {}}));
        if options.is_empty() {
            assert_eq!(names.len(), 1);
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        } else {
            assert_eq!(answer["result"]["structuredContent"]["result"]["components"][0]["id"], "sly");
        }
        client.close_well();
    }
}

#[test]
fn mistakes_are_told_with_their_place() {
    let place = Place::new();
    let mut client = place.manage(Era::Stateless);
    let error = client.call_error("get_policy", json!({"name": "x"}));
    assert_eq!(
        error,
        "$.id: missing; expected a string\n$.name: unknown field; there is `id`"
    );
    let error = client.call_error(
        "grant_permission",
        json!({"id": "x", "permission": {"kind": "run", "host": "/"}}),
    );
    assert_eq!(error, "$.permission.kind: expected one of `read`, `write`, got \"run\"");
    client.close_well();
}

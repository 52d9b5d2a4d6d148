//! `host catalog`, `host diff` and `host call` of servers, through the binary. Servers that others wrote are in `tests/servers`.

#![cfg(test)]

mod support;

use std::fs;

use serde_json::{Value, json};
use support::{Finished, Home, assert_readable, finish, guest};

/// The server of these tests: ourselves, as a command that somebody else starts.
fn ourselves(component: &str) -> String {
    format!(
        "stdio:'{}' serve '{}'",
        env!("CARGO_BIN_EXE_host"),
        guest(component).display()
    )
}

fn succeed(home: &Home, arguments: &[&str]) -> Finished {
    let finished = home.run(arguments);
    assert_eq!(finished.code, 0, "{arguments:?}: {finished:?}");
    finished
}

/// The catalogs of all test components that can be served have every definition as it is on the wire, fit the schema that is shipped,
/// and are the same a second time, and the same from outside.
#[test]
fn the_catalog_of_a_component_is_what_a_client_sees() {
    let schema: Value = serde_json::from_slice(&fs::read("schemas/catalog.schema.json").unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let home = Home::new();
    let mut seen = 0;
    for name in test_guests::all().unwrap() {
        let path = guest(&name).to_string_lossy().into_owned();
        let first = home.run(&["catalog", &path, "--json"]);
        let listed = home.run(&["tools", &path]);
        assert_eq!(first.code, listed.code, "{name}: {first:?}");
        if first.code != 0 {
            continue;
        }
        assert_eq!(home.run(&["catalog", &path, "--json"]).stdout, first.stdout, "{name}");

        let catalog: Value = serde_json::from_str(&first.stdout).unwrap();
        let errors: Vec<String> = validator.iter_errors(&catalog).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");

        let mut server = home.serve(&[], &[guest(&name)]);
        server.initialize();
        let raw = server.request("tools/list", &json!({}))["result"]["tools"].clone();
        server.close_well();
        assert_eq!(definitions(&catalog), sorted(raw), "{name}");
        seen += 1;
    }
    assert!(seen > 20, "only {seen} components were seen");
    let from_outside = |era: &str| {
        let catalog = succeed(&home, &["catalog", &ourselves("every-type"), "--json", "--era", era]).stdout;
        serde_json::from_str::<Value>(&catalog).unwrap()["items"].clone()
    };
    let within = succeed(&home, &["catalog", &guest("every-type").to_string_lossy(), "--json"]).stdout;
    let within = serde_json::from_str::<Value>(&within).unwrap()["items"].clone();
    assert_eq!(from_outside("legacy"), within);
    assert_eq!(from_outside("modern"), within);
}

/// The items of a catalog as the entries of `tools/list` that they were made of.
fn definitions(catalog: &Value) -> Value {
    let entry = |item: &Value| {
        let mut entry = item["meta"]["extensions"].as_object().cloned().unwrap_or_default();
        let mut put = |key: &str, value: &Value| {
            if !value.is_null() {
                entry.insert(key.to_owned(), value.clone());
            }
        };
        put("name", &item["name"]);
        put("title", &item["title"]);
        put("description", &item["description"]);
        put("inputSchema", &item["detail"]["input"]);
        put("outputSchema", &item["detail"]["output"]);
        put("execution", &item["detail"]["execution"]);
        put("annotations", &item["meta"]["annotations"]);
        put("icons", &item["meta"]["icons"]);
        put("_meta", &item["meta"]["_meta"]);
        Value::Object(entry)
    };
    let items = catalog["items"].as_array().unwrap().iter();
    sorted(items.filter(|item| item["type"] == "tool").map(entry).collect())
}

fn sorted(mut tools: Value) -> Value {
    tools
        .as_array_mut()
        .unwrap()
        .sort_by_key(|tool| tool["name"].as_str().unwrap().to_owned());
    tools
}

#[test]
fn a_catalog_is_written_in_four_ways() {
    let home = Home::new();
    let path = guest("documented").to_string_lossy().into_owned();
    let overview = succeed(&home, &["catalog", &path]).stdout;
    assert!(
        overview.starts_with("host 0.1.0, MCP 2026-07-28\n\nTYPE      NAME"),
        "{overview}"
    );
    assert!(overview.contains("\nresource  WIT of documented"), "{overview}");
    let page = succeed(&home, &["catalog", &path, "--markdown"]).stdout;
    assert!(page.starts_with("# "), "{page}");
    let description: Value = serde_json::from_str(&succeed(&home, &["catalog", &path, "--openapi"]).stdout).unwrap();
    assert_eq!(description["openapi"], "3.1.1");
    let file = home.file("catalog.json");
    succeed(&home, &["catalog", &path, "--json", "-o", file.to_str().unwrap()]);
    assert_eq!(
        fs::read_to_string(file).unwrap(),
        succeed(&home, &["catalog", &path, "--json"]).stdout
    );
}

#[test]
fn a_server_is_called_like_a_command() {
    let home = Home::new();
    let target = ourselves("every-type");
    let call = |arguments: &[&str]| home.run(&[&["call", &target], arguments].concat());
    let greeting = [
        &["greet", "name=Ada"][..],
        &["greet", "--name", "Ada"],
        &["greet", "--name=Ada"],
        &["greet", "--args", r#"{"name": "Ada"}"#],
        &["--timeout", "60s", "greet", "--era", "legacy", "--name", "Ada"],
    ];
    let name = tool_name(&home, "greet");
    for arguments in greeting {
        let arguments: Vec<&str> = arguments
            .iter()
            .map(|word| if *word == "greet" { name.as_str() } else { word })
            .collect();
        let called = call(&arguments);
        assert_eq!(called.code, 0, "{arguments:?}: {called:?}");
        assert!(called.stdout.contains("Hello, Ada!"), "{called:?}");
    }
    let json = call(&[&name, "name=Ada", "--json"]);
    assert_eq!(json.stdout, "{\"result\":\"Hello, Ada!\"}\n");
    assert!(call(&[]).stdout.starts_with("TOOL"));
    let help = call(&[&name, "--help"]);
    assert!(help.stdout.contains("--name <text>  [required]"), "{help:?}");

    let wrong = [
        (vec!["gret"], "hint: it has "),
        (vec![&*name, "--nmae", "Ada"], "hint: there is `name`"),
        (vec![&*name], "shows what it takes"),
        (vec![&*name, "name"], "hint: write it as `name=value`"),
        (vec![&*name, "--args", "{"], "`--args` is not JSON"),
    ];
    for (arguments, expected) in wrong {
        let called = call(&arguments);
        assert_eq!(called.code, 2, "{arguments:?}: {called:?}");
        assert!(called.stderr.contains(expected), "{arguments:?}: {called:?}");
        assert_readable(&called.stderr);
    }
    let failed = call(&[&tool_name(&home, "echo_result"), r#"value={"err":"bad"}"#]);
    assert_eq!(failed.code, 1, "{failed:?}");
}

/// The name of the tool that a function has become.
fn tool_name(home: &Home, function: &str) -> String {
    let listed = succeed(home, &["tools", guest("every-type").to_str().unwrap()]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let names = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap());
    names
        .filter(|name| name.ends_with(function))
        .min_by_key(|name| name.len())
        .unwrap()
        .to_owned()
}

#[test]
fn components_take_flags_too() {
    let home = Home::new();
    let greet = |arguments: &[&str]| finish(home.host(&["call"]).arg(guest("every-type")).arg("greet").args(arguments));
    assert_eq!(greet(&["--name", "Ada"]).stdout, "Hello, Ada!\n");
    let help = greet(&["--help"]);
    assert!(help.stdout.contains("--name <text>  [required]"), "{help:?}");
    let unknown = greet(&["--nmae", "Ada"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
}

#[test]
fn catalogs_are_compared() {
    let home = Home::new();
    let path = guest("every-type").to_string_lossy().into_owned();
    let file = home.file("old");
    succeed(&home, &["catalog", &path, "--json", "-o", file.to_str().unwrap()]);
    let same = succeed(&home, &["diff", file.to_str().unwrap(), &path]);
    assert_eq!(same.stdout, "nothing changed\n");

    let mut old: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let removed = old["items"].as_array_mut().unwrap().remove(0);
    let changed = home.write("changed.json", old.to_string());
    let broken = home.run(&["diff", &path, changed.to_str().unwrap()]);
    assert_eq!(broken.code, 1, "{broken:?}");
    assert!(broken.stdout.contains(removed["name"].as_str().unwrap()), "{broken:?}");
    let added = succeed(&home, &["diff", changed.to_str().unwrap(), &path, "--json"]);
    let added: Value = serde_json::from_str(&added.stdout).unwrap();
    assert_eq!(added["changes"][0]["breaking"], false);
    let piped = home.run_with_stdin(&["diff", "-", &path], &fs::read_to_string(&file).unwrap());
    assert_eq!(piped.stdout, "nothing changed\n", "{piped:?}");

    let refused = home.run(&["diff", home.write("x.json", "{}").to_str().unwrap(), &path]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_readable(&refused.stderr);
}

#[test]
fn the_program_describes_itself() {
    let home = Home::new();
    let version: Value = serde_json::from_str(&succeed(&home, &["--version", "--json"]).stdout).unwrap();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(version["protocolVersions"][4], "2026-07-28");
    assert_eq!(
        succeed(&home, &["--version"]).stdout,
        concat!("host ", env!("CARGO_PKG_VERSION"), "\n")
    );
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = succeed(&home, &["completions", shell]).stdout;
        assert!(script.contains("uninstall") && script.contains("allow-read"), "{shell}");
    }
    let pages = home.file("man");
    succeed(&home, &["man", pages.to_str().unwrap()]);
    let written = fs::read_dir(&pages).unwrap().count();
    assert!(written > 20, "{written}");
    assert!(
        fs::read_to_string(pages.join("host-serve.1"))
            .unwrap()
            .contains("allow\\-read")
    );
    let nothing = home.run(&[]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (2, ""));
    assert!(nothing.stderr.contains("Usage: host"), "{nothing:?}");
}

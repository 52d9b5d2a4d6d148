//! `host install`, `uninstall` and `clients` on the files of a home directory. What the bytes of an edit are is held by the tests of the
//! crate `clients`; here it is that the right file gets them, and that nothing is lost.

#![cfg(test)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clients::Client;
use serde_json::{Value, json};
use support::{Finished, Home, assert_readable, finish, guest};

/// `host` for a person whose home directory and project are in the folder of the test.
fn host(home: &Home, arguments: &[&str]) -> Command {
    let (user, project) = (home.file("user"), home.file("project"));
    fs::create_dir_all(&user).unwrap();
    fs::create_dir_all(&project).unwrap();
    let mut command = home.host(arguments);
    for variable in [
        "XDG_CONFIG_HOME",
        "FLATPAK_XDG_CONFIG_HOME",
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "GEMINI_CLI_HOME",
        "GOOSE_PATH_ROOT",
    ] {
        command.env_remove(variable);
    }
    command.env("HOME", user).current_dir(project);
    command
}

fn run(home: &Home, arguments: &[&str]) -> Finished {
    finish(&mut host(home, arguments))
}

fn succeed(home: &Home, arguments: &[&str]) -> Finished {
    let finished = run(home, arguments);
    assert_eq!(finished.code, 0, "{arguments:?}: {finished:?}");
    finished
}

fn component() -> String {
    guest("every-type").to_string_lossy().into_owned()
}

/// Every file below a folder, with its bytes.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn every_client_takes_it_once_and_gives_it_back() {
    for client in Client::ALL {
        let home = Home::new();
        let install = ["install", client.id(), &component(), "--allow-read=."];
        let installed = succeed(&home, &install);
        assert!(installed.stdout.starts_with("installed `every-type` in "), "{installed:?}");
        assert!(
            installed.stderr.contains("does not seem to be installed here"),
            "{installed:?}"
        );
        let after = files(&home.file("user"));
        let [(file, text)] = after.as_slice() else {
            panic!("{client}: {after:?}");
        };
        let text = String::from_utf8(text.clone()).unwrap();
        assert!(text.contains(env!("CARGO_BIN_EXE_host")), "an absolute path: {text}");
        assert!(
            text.contains(home.file("project").to_str().unwrap()),
            "an absolute grant: {text}"
        );
        assert!(text.contains("HOST_HOME"), "{text}");

        let again = succeed(&home, &install);
        assert!(again.stdout.starts_with("nothing to do: "), "{again:?}");
        assert_eq!(files(&home.file("user")), after, "{client}");

        let listed: Value = serde_json::from_str(&succeed(&home, &["clients", "--json"]).stdout).unwrap();
        let listed = listed["clients"]
            .as_array()
            .unwrap()
            .iter()
            .find(|listed| listed["id"] == client.id());
        let server = &listed.unwrap()["servers"][0];
        assert_eq!((&server["name"], &server["isHost"]), (&json!("every-type"), &json!(true)));
        assert_eq!(server["file"], file.to_str().unwrap());

        // What a client would start is what was meant.
        let catalog = succeed(&home, &["catalog", "every-type", "--from", client.id(), "--json"]);
        let catalog: Value = serde_json::from_str(&catalog.stdout).unwrap();
        assert!(catalog["items"].as_array().unwrap().len() > 5, "{catalog}");

        let removed = succeed(&home, &["uninstall", client.id()]);
        assert!(removed.stdout.starts_with("removed `every-type` from "), "{removed:?}");
        let left = fs::read_to_string(file).unwrap();
        assert!(matches!(left.trim(), "" | "{}"), "{client}: {left}");
        let backup = format!("{}.before-host", file.display());
        assert_eq!(fs::read_to_string(backup).unwrap(), text);
        assert!(
            succeed(&home, &["uninstall", client.id()])
                .stdout
                .starts_with("nothing to do: ")
        );
    }
}

#[test]
fn projects_have_files_of_their_own() {
    let home = Home::new();
    for client in Client::ALL {
        let installed = run(&home, &["install", client.id(), &component(), "--project"]);
        let has_projects = client.scopes().len() == 2;
        assert_eq!(installed.code, if has_projects { 0 } else { 2 }, "{installed:?}");
    }
    assert_eq!(files(&home.file("project")).len(), 6);
    assert_eq!(files(&home.file("user")).len(), 0);
}

#[test]
fn a_file_is_replaced_with_care() {
    let home = Home::new();
    let before = "{\n  // mine\n  \"mcpServers\": { \"other\": { \"command\": \"x\", \"env\": { \"KEY\": \"secret\" } } }\n}\n";
    let real = home.write("dotfiles/mcp.json", before);
    fs::create_dir_all(home.file("user/.cursor")).unwrap();
    let link = home.file("user/.cursor/mcp.json");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
    }
    let dry = succeed(&home, &["install", "cursor", &component(), "--dry-run"]);
    assert!(
        dry.stdout.contains("+    \"every-type\": {") || dry.stdout.contains("every-type"),
        "{dry:?}"
    );
    assert_eq!(fs::read_to_string(&real).unwrap(), before, "a dry run changes nothing");

    succeed(&home, &["install", "cursor", &component()]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "the link stays");
    let after = fs::read_to_string(&real).unwrap();
    assert!(after.contains("// mine") && after.contains("every-type"), "{after}");
    let backup = home.file("dotfiles/mcp.json.before-host");
    assert_eq!(fs::read_to_string(&backup).unwrap(), before);
    #[cfg(unix)]
    for file in [&real, &backup] {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            fs::metadata(file).unwrap().permissions().mode() & 0o777,
            0o600,
            "{}",
            file.display()
        );
    }
    succeed(&home, &["uninstall", "cursor"]);
    assert_eq!(fs::read_to_string(&real).unwrap(), before);
}

#[test]
fn what_cannot_be_edited_is_left_alone() {
    let home = Home::new();
    let cases: [(&str, &[u8], &str); 5] = [
        ("broken", b"{ \"mcpServers\": { ", "the file was left as it is"),
        ("no text", b"{ \"a\": \"\xff\" }", "is no text; it was left as it is"),
        ("a list", b"[]", "not a map of settings"),
        ("servers are a list", b"{ \"mcpServers\": [] }", "not a map of servers"),
        (
            "taken",
            b"{ \"mcpServers\": { \"every-type\": { \"command\": \"npx\" } } }",
            "hint: `--replace` takes the name",
        ),
    ];
    for (name, before, expected) in cases {
        let file = home.write("user/.cursor/mcp.json", before);
        let refused = run(&home, &["install", "cursor", &component()]);
        assert_eq!(refused.code, 2, "{name}: {refused:?}");
        assert!(refused.stderr.contains(expected), "{name}: {refused:?}");
        assert_readable(&refused.stderr);
        assert_eq!(fs::read(&file).unwrap(), before, "{name}");
        assert_eq!(files(&home.file("user")).len(), 1, "{name}: nothing beside it");
    }
    // One broken file does not hide the other clients.
    home.write("user/.cursor/mcp.json", "{");
    succeed(&home, &["install", "zed", &component()]);
    let listed = succeed(&home, &["clients"]);
    assert!(listed.stdout.contains("zed             yes        every-type"), "{listed:?}");
    assert!(listed.stderr.starts_with("warning: Cursor: "), "{listed:?}");
}

#[test]
fn a_server_of_somebody_else_stays() {
    let home = Home::new();
    let before = "{ \"mcpServers\": { \"files\": { \"command\": \"npx\", \"args\": [] } } }";
    let file = home.write("user/.cursor/mcp.json", before);
    assert!(succeed(&home, &["uninstall", "cursor"]).stdout.starts_with("nothing to do: "));
    let refused = run(&home, &["uninstall", "cursor", "--name", "files"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    succeed(&home, &["install", "cursor", &component(), "--name", "files", "--replace"]);
    assert!(fs::read_to_string(&file).unwrap().contains("every-type"));
}

#[test]
fn what_is_installed_is_checked_before() {
    let home = Home::new();
    let component = component();
    let cases: [(&[&str], &str); 7] = [
        (&["install"], "which client?"),
        (&["install", "emacs"], "is no client that is known here"),
        (&["install", "cursor", "absent.wasm"], "cannot be installed"),
        (&["install", "cursor", "absent"], "absent"),
        (
            &["install", "cursor", &component, "--", "--wacht"],
            "these are no options of `host serve`",
        ),
        (
            &["install", "cursor", &component, "--http", "https://example.com/mcp"],
            "leave the sources out",
        ),
        (
            &["install", "claude-desktop", "--http", "https://example.com/mcp"],
            "takes no URL",
        ),
    ];
    for (arguments, expected) in cases {
        let refused = run(&home, arguments);
        assert_eq!(refused.code, 2, "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains(expected), "{arguments:?}: {refused:?}");
    }
    assert!(files(&home.file("user")).is_empty());
}

#[test]
fn any_other_client_gets_something_to_paste() {
    let home = Home::new();
    let json = succeed(&home, &["install", "--print", "json", &component(), "--", "--watch"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let entry = &json["mcpServers"]["every-type"];
    assert_eq!(entry["command"], env!("CARGO_BIN_EXE_host"));
    assert_eq!(entry["args"], json!(["serve", component(), "--watch"]));
    let toml = succeed(
        &home,
        &[
            "install",
            "--print",
            "toml",
            "--http",
            "https://example.com/mcp",
            "--name",
            "remote",
        ],
    );
    assert!(
        toml.stdout
            .starts_with("[mcp_servers.remote]\nurl = \"https://example.com/mcp\""),
        "{toml:?}"
    );
    assert!(files(&home.file("user")).is_empty());
}

#[test]
fn every_configured_server_is_read() {
    let home = Home::new();
    succeed(&home, &["install", "cursor", &component()]);
    succeed(&home, &["install", "codex", &component()]);
    home.write(
        "user/.gemini/settings.json",
        "{ \"mcpServers\": { \"gone\": { \"command\": \"/no/such/program\", \"env\": { \"KEY\": \"secret\" } } } }",
    );
    let all = run(&home, &["catalog", "--all", "--json"]);
    assert_eq!(all.code, 1, "one of them cannot be read: {all:?}");
    let all: Value = serde_json::from_str(&all.stdout).unwrap();
    let servers: Vec<(&str, &str, bool)> = all["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| {
            let text = |key: &str| server[key].as_str().unwrap();
            (text("client"), text("name"), server.get("catalog").is_some())
        })
        .collect();
    assert_eq!(
        servers,
        [
            ("cursor", "every-type", true),
            ("gemini-cli", "gone", false),
            ("codex", "every-type", true)
        ]
    );
    let people = run(&home, &["catalog", "--all"]);
    assert!(
        people
            .stdout
            .contains("== gone in Gemini CLI\nerror: `/no/such/program` could not be started"),
        "{people:?}"
    );
    assert!(!people.stdout.contains("secret") && !people.stderr.contains("secret"));
    succeed(&home, &["catalog", "--all", "--from", "codex"]);
}

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
        "XDG_DATA_HOME",
        "FLATPAK_XDG_CONFIG_HOME",
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "GEMINI_CLI_HOME",
        "GOOSE_PATH_ROOT",
    ] {
        command.env_remove(variable);
    }
    // Whatever the system: never the files of the person who runs this.
    command.env("USERPROFILE", &user).env("APPDATA", user.join("AppData"));
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
#[cfg(unix)]
fn a_file_is_replaced_with_care() {
    use std::os::unix::fs::PermissionsExt;

    let home = Home::new();
    let before = "{\n  // mine\n  \"mcpServers\": { \"other\": { \"command\": \"x\", \"env\": { \"KEY\": \"secret\" } } }\n}\n";
    let real = home.write("dotfiles/mcp.json", before);
    fs::create_dir_all(home.file("user/.cursor")).unwrap();
    let link = home.file("user/.cursor/mcp.json");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let dry = succeed(&home, &["install", "cursor", &component(), "--dry-run"]);
    assert!(
        dry.stdout.contains(
            "
+"
        ) && dry.stdout.contains("every-type"),
        "{dry:?}"
    );
    assert_eq!(fs::read_to_string(&real).unwrap(), before, "a dry run changes nothing");

    succeed(&home, &["install", "cursor", &component()]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "the link stays");
    let after = fs::read_to_string(&real).unwrap();
    assert!(after.contains("// mine") && after.contains("every-type"), "{after}");
    let backup = home.file("dotfiles/mcp.json.before-host");
    assert_eq!(fs::read_to_string(&backup).unwrap(), before);
    for file in [&real, &backup] {
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
        assert!(
            refused.stderr.starts_with(&format!("error: `{}", file.display())),
            "{name}: {refused:?}"
        );
        assert_readable(&refused.stderr);
        assert_eq!(fs::read(&file).unwrap(), before, "{name}");
        assert_eq!(files(&home.file("user")).len(), 1, "{name}: nothing beside it");
    }
    // One broken file does not hide the other clients.
    home.write("user/.cursor/mcp.json", "{");
    succeed(&home, &["install", "zed", &component()]);
    let listed = succeed(&home, &["clients"]);
    assert!(listed.stdout.contains("zed             no         every-type"), "{listed:?}");
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
fn other_programs_are_named_host_too() {
    let home = Home::new();
    let before = "{ \"mcpServers\": { \"dns\": { \"command\": \"/usr/bin/host\", \"args\": [\"-t\", \"mx\"] } } }";
    let file = home.write("user/.cursor/mcp.json", before);
    assert!(succeed(&home, &["uninstall", "cursor"]).stdout.starts_with("nothing to do: "));
    let taken = run(&home, &["install", "cursor", &component(), "--name", "dns"]);
    assert_eq!(taken.code, 2, "{taken:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
}

#[test]
fn several_are_taken_out_at_once() {
    let home = Home::new();
    for name in ["a", "b", "c"] {
        succeed(&home, &["install", "cursor", &component(), "--name", name]);
    }
    let file = home.file("user/.cursor/mcp.json");
    let before = fs::read_to_string(&file).unwrap();
    let removed = succeed(&home, &["uninstall", "cursor"]);
    assert_eq!(removed.stdout.lines().count(), 3, "{removed:?}");
    assert_eq!(fs::read_to_string(&file).unwrap().trim(), "{}");
    let backup = home.file("user/.cursor/mcp.json.before-host");
    assert_eq!(fs::read_to_string(backup).unwrap(), before, "all of what was there before");
}

#[test]
fn many_at_once_are_all_installed() {
    let home = Home::new();
    let names: Vec<String> = (0..8).map(|number| format!("n{number}")).collect();
    let running: Vec<_> = names
        .iter()
        .map(|name| {
            host(&home, &["install", "cursor", &component(), "--name", name])
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    let text = fs::read_to_string(home.file("user/.cursor/mcp.json")).unwrap();
    for name in names {
        assert!(text.contains(&format!("\"{name}\"")), "{name} is lost: {text}");
    }
}

#[test]
fn what_a_person_added_to_an_entry_stays() {
    let home = Home::new();
    let install = ["install", "cursor", &component()];
    succeed(&home, &install);
    let file = home.file("user/.cursor/mcp.json");
    let text = fs::read_to_string(&file).unwrap();
    let text = text.replacen("\"HOST_HOME\":", "\"TOKEN\": \"t\", \"HOST_HOME\":", 1);
    support::write(&file, &text);
    assert!(succeed(&home, &install).stdout.starts_with("nothing to do: "));
    succeed(&home, &["install", "cursor", &component(), "--", "--watch"]);
    let after = fs::read_to_string(&file).unwrap();
    assert!(after.contains("--watch") && after.contains("TOKEN"), "{after}");
}

#[cfg(unix)]
#[test]
fn a_new_file_is_for_its_owner() {
    use std::os::unix::fs::PermissionsExt;

    let home = Home::new();
    let secret = "Authorization: Bearer secret";
    succeed(
        &home,
        &[
            "install",
            "claude-code",
            "--http",
            "https://example.com/mcp",
            "--header",
            secret,
        ],
    );
    let mode = fs::metadata(home.file("user/.claude.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn what_came_with_a_project_runs_only_when_asked_to() {
    let home = Home::new();
    let trace = home.file("trace");
    let command = format!("echo ran > '{}'", trace.display());
    let servers = json!({ "mcpServers": { "theirs": { "type": "stdio", "command": "sh", "args": ["-c", command] } } });
    home.write("project/.mcp.json", servers.to_string());
    for arguments in [&["catalog", "--all"][..], &["catalog", "theirs", "--from", "claude-code"]] {
        let refused = run(&home, arguments);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(!trace.exists(), "{arguments:?} started it");
    }
    run(&home, &["catalog", "theirs", "--from", "claude-code", "--project"]);
    assert!(trace.exists());
}

#[test]
fn what_is_installed_is_checked_before() {
    let home = Home::new();
    let component = component();
    let text = home.write("project/text.wasm", "no component").to_string_lossy().into_owned();
    let cases: [(&[&str], &str); 12] = [
        (&["install", "cursor", &text], "is not WebAssembly"),
        (
            &["install", "cursor", &component, "--", "--wit", "wit"],
            "has to be an absolute path",
        ),
        (
            &["install", "cursor", &component, "--", "other.wasm"],
            "name components before the `--`",
        ),
        (
            &["install", "cursor", &component, "--", "--allow-read=."],
            "grants stand before the `--`",
        ),
        (
            &["install", "cursor", "--http", "ftp://example.com"],
            "neither `http://` nor `https://`",
        ),
        (&["install", "--user"], "which client?"),
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
fn the_place_of_what_was_added_goes_along() {
    let home = Home::new();
    let mut command = host(&home, &["install", "--print", "json", &component()]);
    command.env_remove("HOST_HOME").env("XDG_DATA_HOME", home.file("data"));
    let printed: Value = serde_json::from_str(&finish(&mut command).stdout).unwrap();
    let kept = &printed["mcpServers"]["every-type"]["env"]["HOST_HOME"];
    assert_eq!(kept, home.file("data/host").to_str().unwrap());
    let mut command = host(&home, &["install", "--print", "json", &component()]);
    command.env_remove("HOST_HOME");
    let printed: Value = serde_json::from_str(&finish(&mut command).stdout).unwrap();
    assert!(printed["mcpServers"]["every-type"].get("env").is_none(), "{printed}");
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

//! What is offered changes while the host runs: with `--watch` the tools follow, and clients are told, each change once.

#![cfg(test)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use support::client::{Client, ERAS, Era};
use support::{Home, guest, wait_until, write};

const DOCUMENTED: usize = 6;
const EXIT: usize = 3;

/// Puts a component where a path says, at once, as a linker or a download does.
fn put(home: &Home, name: &str, place: &Path) {
    let whole = home.file("whole");
    fs::copy(guest(name), &whole).unwrap();
    fs::rename(whole, place).unwrap();
}

/// A watched file with a component, and its client.
fn watched(home: &Home, name: &str, era: Era) -> (PathBuf, Client) {
    let file = home.file("plugin.wasm");
    put(home, name, &file);
    let client = Client::connect(home.serve(&["--watch"], std::slice::from_ref(&file)), era);
    (file, client)
}

fn run_well(home: &Home, arguments: &[&str]) {
    let finished = home.run(arguments);
    assert_eq!(finished.code, 0, "{arguments:?}: {finished:?}");
}

#[test]
fn a_replaced_file_is_served_anew() {
    for era in ERAS {
        let home = Home::new();
        let (file, mut client) = watched(&home, "documented", era);
        assert_eq!(client.tool_names().len(), DOCUMENTED);
        for _ in 0..3 {
            put(&home, "exit", &file);
            client.wait_for_change();
            assert_eq!(client.tool_names().len(), EXIT);

            put(&home, "documented", &file);
            client.wait_for_change();
            assert_eq!(client.tool_names().len(), DOCUMENTED);
            assert_eq!(client.call("tidy_up", json!({}))["isError"], false);
        }
        // The same bytes again are no change; a telling of one would be taken for the next.
        put(&home, "documented", &file);
        put(&home, "exit", &file);
        client.wait_for_change();
        assert_eq!(client.tool_names().len(), EXIT);
        client.close_well();
    }
}

/// As `cargo clean` and a build do it.
#[test]
fn a_folder_that_is_made_anew_is_followed() {
    let home = Home::new();
    let folder = home.file("target/build");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("plugin.wasm");
    put(&home, "exit", &file);
    let mut client = Client::connect(home.serve(&["--watch"], std::slice::from_ref(&file)), Era::Initialize);
    for _ in 0..3 {
        assert_eq!(client.tool_names().len(), EXIT);
        fs::remove_dir_all(home.file("target")).unwrap();
        client.wait_for_change();
        assert!(client.tool_names().is_empty());
        fs::create_dir_all(&folder).unwrap();
        put(&home, "exit", &file);
        client.wait_for_change();
    }
    client.close_well();
}

#[test]
fn files_come_to_a_directory_and_go() {
    for era in ERAS {
        let home = Home::new();
        let folder = home.file("plugins");
        fs::create_dir(&folder).unwrap();
        put(&home, "exit", &folder.join("exit.wasm"));
        let mut client = Client::connect(home.serve(&["--watch"], std::slice::from_ref(&folder)), era);
        assert_eq!(client.tool_names().len(), EXIT);

        put(&home, "documented", &folder.join("documented.wasm"));
        client.wait_for_change();
        assert_eq!(client.tool_names().len(), EXIT + DOCUMENTED);
        // Nobody asked for what is no component.
        write(&folder.join("notes.txt"), "nothing");

        fs::remove_file(folder.join("exit.wasm")).unwrap();
        client.wait_for_change();
        assert_eq!(client.tool_names().len(), DOCUMENTED);

        fs::remove_file(folder.join("documented.wasm")).unwrap();
        client.wait_for_change();
        assert!(client.tool_names().is_empty());

        put(&home, "exit", &folder.join("exit.wasm"));
        client.wait_for_change();
        assert_eq!(client.tool_names().len(), EXIT);
        client.close_well();
    }
}

#[test]
fn a_broken_file_harms_nobody() {
    let home = Home::new();
    let folder = home.file("plugins");
    fs::create_dir(&folder).unwrap();
    put(&home, "exit", &folder.join("exit.wasm"));
    put(&home, "documented", &folder.join("documented.wasm"));
    let mut client = Client::silent(home.serve(&["--watch"], std::slice::from_ref(&folder)), Era::Stateless);
    // In place and in parts, as a careless copy does.
    let bytes = fs::read(guest("trap")).unwrap();
    for broken in [&b""[..], b"\0asm", &bytes[..bytes.len() / 2], b"no WebAssembly"] {
        write(&folder.join("exit.wasm"), broken);
        assert_eq!(client.call("tidy_up", json!({}))["isError"], false);
    }
    put(&home, "every-type", &folder.join("exit.wasm"));
    wait_until("what is whole again is served", || {
        client.tool_names().contains(&"greet".to_owned())
    });
    assert_eq!(client.call("greet", json!({"name": "you"}))["isError"], false);
    client.close_well();
}

#[test]
fn what_is_added_updated_and_removed_beside_it_is_served() {
    for era in ERAS {
        let home = Home::new();
        let file = home.file("plugin.wasm");
        put(&home, "exit", &file);
        let text = file.to_str().unwrap();
        run_well(&home, &["add", text]);
        let mut client = Client::connect(home.serve(&["--watch"], &[]), era);
        assert_eq!(client.tool_names().len(), EXIT);

        run_well(&home, &["add", guest("documented").to_str().unwrap()]);
        client.wait_for_change();
        assert_eq!(client.tool_names().len(), EXIT + DOCUMENTED);

        // A copy was added: what becomes of the file matters when somebody says so.
        put(&home, "every-type", &file);
        client.assert_heard_all();
        assert_eq!(home.run(&["update", "plugin"]).code, 1, "other tools have to be accepted");
        client.assert_heard_all();
        run_well(&home, &["update", "plugin", "--accept-changes"]);
        client.wait_for_change();
        let names = client.tool_names();
        assert!(
            names.contains(&"greet".to_owned()) && names.len() > DOCUMENTED + EXIT,
            "{names:?}"
        );
        run_well(&home, &["update", "plugin"]);

        run_well(&home, &["remove", "plugin"]);
        client.wait_for_change();
        assert_eq!(client.tool_names().len(), DOCUMENTED);
        client.close_well();
    }
}

#[test]
fn nothing_changes_without_watch() {
    let home = Home::new();
    let file = home.file("plugin.wasm");
    put(&home, "exit", &file);
    let mut client = Client::connect(home.serve(&[], std::slice::from_ref(&file)), Era::Initialize);
    put(&home, "documented", &file);
    client.assert_heard_all();
    assert_eq!(client.tool_names().len(), EXIT);
    client.close_well();
}

#[test]
fn who_did_not_subscribe_is_not_told() {
    for era in ERAS {
        let home = Home::new();
        let file = home.file("plugin.wasm");
        put(&home, "exit", &file);
        let mut client = Client::silent(home.serve(&["--watch"], std::slice::from_ref(&file)), era);
        assert_eq!(client.tool_names().len(), EXIT);
        put(&home, "documented", &file);
        wait_until("the tools are new", || client.tool_names().len() == DOCUMENTED);
        client.close_well();
    }
}

#[test]
fn two_servers_of_one_home_both_follow() {
    let home = Home::new();
    run_well(&home, &["add", guest("exit").to_str().unwrap()]);
    let mut clients = ERAS.map(|era| Client::connect(home.serve(&["--watch"], &[]), era));
    for client in &mut clients {
        assert_eq!(client.tool_names().len(), EXIT);
    }
    run_well(&home, &["remove", "exit"]);
    for mut client in clients {
        client.wait_for_change();
        assert!(client.tool_names().is_empty());
        client.close_well();
    }
}

#[test]
fn what_the_config_file_says_holds_at_once() {
    for era in ERAS {
        let home = Home::new();
        let write = |text: &str| {
            let whole = home.write("home/new.toml", text);
            fs::rename(whole, home.file("home/host.toml")).unwrap();
        };
        write("");
        let mut client = Client::connect(home.serve(&["--watch"], &[guest("cli-clap")]), era);
        let all = client.tool_names();
        assert!(all.len() > 2, "{all:?}");
        write("[components.cli-clap]\ncommands = ['cat']\n");
        client.wait_for_change();
        assert_eq!(client.tool_names(), ["depot_cat"]);
        // What is wrong is reported, and changes nothing.
        write("[components.cli-clap]\ncomands = []\n");
        client.assert_heard_all();
        assert_eq!(client.tool_names(), ["depot_cat"]);
        write("");
        client.wait_for_change();
        assert_eq!(client.tool_names(), all);
        client.close_well();
    }
}

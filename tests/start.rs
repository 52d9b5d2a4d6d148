//! A start with many components: everything is listed at once, nothing is compiled or mapped before it is needed, and what is
//! broken hides nothing else.

#![cfg(test)]
#![cfg(target_os = "linux")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use serde_json::{Value, json};
use support::{Home, Server, assert_readable, wait_until};

const MANY: usize = 100;

fn name(number: usize) -> String {
    format!("c{number:03}")
}

/// A store with so many components. Each has one tool, of its own name, that returns its number.
fn home_with(count: usize) -> Home {
    let home = Home::new();
    for number in 0..count {
        let name = name(number);
        let text = format!(
            r#"(component
                (core module $m (func (export "f") (result i32) (i32.const {number})))
                (core instance $i (instantiate $m))
                (func (export "{name}") (result u32) (canon lift (core func $i "f"))))"#
        );
        home.write(&format!("sources/{name}.wat"), text);
    }
    let added = home.run(&["add", home.file("sources").to_str().unwrap()]);
    assert_eq!(added.code, 0, "{added:?}");
    home
}

fn names(numbers: impl Iterator<Item = usize>) -> Vec<String> {
    numbers.map(name).collect()
}

fn assert_answers(server: &mut Server, number: usize) {
    let result = server.call(&name(number), &json!({}));
    assert_eq!(result["structuredContent"], json!({"result": number}));
}

/// The files of compiled code that a process has mapped.
fn mapped(server: &Server) -> usize {
    let maps = fs::read_to_string(format!("/proc/{}/maps", server.pid())).unwrap();
    let files: BTreeSet<&str> = maps
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.ends_with(".cwasm")))
        .collect();
    files.len()
}

/// All that is kept, and when it was written.
fn kept(home: &Home) -> BTreeSet<(PathBuf, SystemTime)> {
    ["cache", "components"]
        .iter()
        .flat_map(|folder| home.directory().join(folder).read_dir().unwrap())
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), path.metadata().unwrap().modified().unwrap()))
        .collect()
}

#[test]
fn a_hundred_components_are_listed_without_their_code_and_called_without_a_compiler() {
    let home = home_with(MANY);
    assert_eq!(home.cached("cwasm").len(), MANY);
    let before = kept(&home);

    let mut server = home.serve(&["--log", "info"], &[]);
    server.initialize();
    assert_eq!(server.tool_names(), names(0..MANY));
    assert_eq!(mapped(&server), 0, "nothing was called yet");
    for number in 0..MANY {
        assert_answers(&mut server, number);
        assert_eq!(mapped(&server), number + 1);
    }
    let ended = server.close();
    assert!(ended.status.success(), "{ended:?}");
    assert!(!ended.stderr.contains("compiling"), "{}", ended.stderr);
    assert_eq!(kept(&home), before, "nothing was written");
}

#[test]
fn a_broken_component_hides_no_other() {
    const BROKEN: usize = 42;
    let home = home_with(MANY);
    let list = || -> Vec<Value> {
        let listed = home.run(&["list", "--json"]);
        assert_eq!((listed.code, listed.stderr.as_str()), (0, ""));
        let list: Value = serde_json::from_str(&listed.stdout).unwrap();
        list["components"].as_array().unwrap().clone()
    };
    let digest = list()[BROKEN]["digest"].as_str().unwrap().replace("sha256:", "");
    for (file, _) in kept(&home) {
        let name = file.file_name().unwrap().to_str().unwrap();
        if name.starts_with(&digest) {
            fs::remove_file(&file).unwrap();
        }
    }

    let others: Vec<usize> = (0..MANY).filter(|number| *number != BROKEN).collect();
    let mut server = home.serve(&[], &[]);
    server.initialize();
    assert_eq!(server.tool_names(), names(others.iter().copied()));
    for number in [0, BROKEN - 1, BROKEN + 1, MANY - 1] {
        assert_answers(&mut server, number);
    }
    let ended = server.close();
    assert!(ended.status.success(), "{ended:?}");
    assert!(
        ended.stderr.contains("warning: `c042` cannot be served: "),
        "{}",
        ended.stderr
    );

    let components = list();
    let broken: Vec<&Value> = components
        .iter()
        .filter(|component| component["status"] == "broken")
        .collect();
    assert_eq!((components.len(), broken.len()), (MANY, 1));
    let reason = broken[0]["reason"].as_str().unwrap();
    assert!(reason.contains("its file is missing from the store"), "{reason}");

    // Who names it wants it.
    let served = home.run(&["serve", "c042"]);
    assert_ne!(served.code, 0, "{served:?}");
    assert_readable(&served.stderr);
    let verified = home.run(&["verify"]);
    assert_eq!(verified.code, 1, "{verified:?}");

    // Where it came from is where it can be had again.
    let updated = home.run(&["update", "c042"]);
    assert_eq!(updated.code, 0, "{updated:?}");
    let mut server = home.serve(&[], &[]);
    server.initialize();
    assert_eq!(server.tool_names(), names(0..MANY));
    assert_answers(&mut server, BROKEN);
    server.close_well();
}

#[test]
fn a_cache_that_is_gone_is_made_again_while_tools_are_served() {
    let home = home_with(MANY);
    fs::remove_dir_all(home.directory().join("cache")).unwrap();
    let mut server = home.serve(&[], &[]);
    server.initialize();
    assert_eq!(server.tool_names(), names(0..MANY));
    // The last is far from its turn.
    for number in [MANY - 1, 0, MANY / 2] {
        assert_answers(&mut server, number);
    }
    wait_until("all code is there again", || home.cached("seal").len() == MANY);
    // Whoever compiles has a look at the last one for a moment.
    wait_until("only what was called is mapped", || mapped(&server) == 3);
    server.close_well();
}

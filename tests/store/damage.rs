//! A store in which something was damaged: through the commands. Every byte of it is tried in `crates/lifecycle/tests/damage.rs`.

use std::fs;

use crate::scene::{PROGRAM, Scene, component, copy_folder, files, wit};
use crate::support::write;

type Damage = fn(&[u8]) -> Vec<u8>;

/// What can happen to a file.
const DAMAGES: [(&str, Damage); 4] = [
    ("a bit of the first byte is flipped", |bytes| {
        let mut bytes = bytes.to_vec();
        bytes[0] ^= 1;
        bytes
    }),
    ("a bit in the middle is flipped", |bytes| {
        let mut bytes = bytes.to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        bytes
    }),
    ("half of it is missing", |bytes| bytes[..bytes.len() / 2].to_vec()),
    ("it is empty", |_| vec![]),
];

#[test]
fn damage_is_reported_or_harmless() {
    let scene = Scene::new();
    scene.write("a.wat", &component("one", 1));
    scene.write("a.wit", &wit("one", "Gives one."));
    scene.write("program.wat", PROGRAM);
    scene.do_well(&["add", "a.wat", "--allow-read", "."]);
    scene.do_well(&["add", "program.wat"]);
    let good = scene.state(&scene.home());
    let calls = [("a", "one", "1\n"), ("program", "program", "hello\n")];

    for file in files(&scene.home()) {
        let original = fs::read(scene.home().join(&file)).unwrap();
        // A lock has nothing in it.
        for (what, damage) in DAMAGES.iter().filter(|_| !original.is_empty()) {
            let copy = scene.copy();
            let home = copy.path().join("home");
            let context = format!("{}: {what}", file.display());
            write(&home.join(&file), damage(&original));
            let verified = scene.run(&home, &["verify"]);
            let said = format!("{}{}", verified.stdout, verified.stderr);
            let name = file.file_stem().unwrap().to_str().unwrap();
            // All that a wrong key fits is the key itself.
            let is_named = said.contains(name) || name == "key" && said.contains("components.toml");
            assert!(verified.code == 0 || is_named, "{context}: {said}");
            for (id, tool, answer) in calls {
                let called = scene.run(&home, &["call", id, tool]);
                match called.code {
                    0 => assert_eq!(called.stdout, answer, "{context}"),
                    _ => assert!(
                        verified.code != 0 && called.stderr.starts_with("error: "),
                        "{context}: {called:?}"
                    ),
                }
            }
            let listed = scene.run(&home, &["list"]);
            assert!(matches!(listed.code, 0 | 2), "{context}: {listed:?}");
            if verified.code == 0 {
                assert_eq!(scene.state(&home), good, "{context}");
            }
        }
    }
}

/// What can be fetched or made again is good again after `update` and `verify --repair`.
#[test]
fn damage_can_be_repaired() {
    let scene = Scene::new();
    scene.write("a.wat", &component("one", 1));
    scene.do_well(&["add", "a.wat", "--allow-read", "."]);
    let good = scene.state(&scene.home());
    scene.do_well(&["gc"]);
    for file in files(&scene.home())
        .iter()
        .filter(|file| file.starts_with("components") || file.starts_with("cache"))
    {
        for is_gone in [false, true] {
            let copy = scene.copy();
            let home = copy.path().join("home");
            if is_gone {
                fs::remove_file(home.join(file)).unwrap();
            } else {
                write(&home.join(file), "damaged");
            }
            for command in [
                &["update", "a"][..],
                &["verify", "--repair"],
                &["call", "a", "one"],
                &["verify"],
            ] {
                let finished = scene.run(&home, command);
                assert_eq!(finished.code, 0, "{}: {command:?}: {finished:?}", file.display());
            }
            assert_eq!(scene.state(&home), good, "{}", file.display());
        }
    }
}

/// A backup of another time, or of another machine.
#[test]
fn a_copied_store_is_a_store() {
    let scene = Scene::new();
    scene.write("a.wat", &component("one", 1));
    scene.do_well(&["add", "a.wat"]);
    let elsewhere = scene.folder().join("elsewhere");
    copy_folder(&scene.home(), &elsewhere);
    assert_eq!(scene.state(&elsewhere), scene.state(&scene.home()));
    assert_eq!(scene.run(&elsewhere, &["verify"]).code, 0);
}

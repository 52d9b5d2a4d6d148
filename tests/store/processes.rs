//! Several processes on one store.

use std::process::{Child, Stdio};

use crate::scene::{Scene, component, files};
use crate::support::Finished;

const PROCESSES: usize = 8;

/// Runs several commands at once.
fn at_once(scene: &Scene, commands: &[Vec<String>]) -> Vec<Finished> {
    let start = |arguments: &Vec<String>| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = scene.host(&scene.home(), &arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = commands.iter().map(start).collect();
    children
        .into_iter()
        .map(|child| child.wait_with_output().unwrap().into())
        .collect()
}

fn add(name: &str) -> Vec<String> {
    vec!["add".to_owned(), name.to_owned()]
}

fn tools(scene: &Scene) -> Vec<String> {
    let tools = scene.do_well(&["list"]);
    tools
        .stdout
        .lines()
        .skip(1)
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect()
}

/// Also on no store at all: all must agree on one key, or they would find each other's files damaged.
#[test]
fn components_that_are_added_at_once_are_all_there() {
    for round in 0..5 {
        let scene = Scene::new();
        let names: Vec<String> = (0..PROCESSES).map(|number| format!("c{number}")).collect();
        for (name, answer) in names.iter().zip(0..) {
            scene.write(&format!("{name}.wat"), &component(name, answer));
        }
        let commands: Vec<_> = names.iter().map(|name| add(&format!("{name}.wat"))).collect();
        for finished in at_once(&scene, &commands) {
            assert_eq!(
                (finished.code, finished.stderr.as_str()),
                (0, ""),
                "round {round}: {finished:?}"
            );
        }
        assert_eq!(tools(&scene), names);
        scene.do_well(&["verify"]);
        for (name, answer) in names.iter().zip(0..) {
            assert_eq!(scene.do_well(&["call", name, name]).stdout, format!("{answer}\n"));
        }
    }
}

#[test]
fn a_component_that_is_added_several_times_at_once_is_there_once() {
    let scene = Scene::new();
    scene.write("a.wat", &component("one", 1));
    for finished in at_once(&scene, &vec![add("a.wat"); PROCESSES]) {
        assert_eq!((finished.code, finished.stderr.as_str()), (0, ""), "{finished:?}");
    }
    assert_eq!(tools(&scene), ["a"]);
    scene.do_well(&["verify"]);
    scene.do_well(&["gc"]);
    let kept = files(&scene.home());
    assert_eq!(kept.iter().filter(|path| path.extension().is_some()).count(), 6, "{kept:?}");
}

#[test]
fn first_starts_at_once_make_one_key() {
    for _ in 0..10 {
        let scene = Scene::new();
        scene.write("a.wat", &component("one", 1));
        let mut commands = vec![vec!["list".to_owned()]; PROCESSES - 1];
        commands.push(add("a.wat"));
        for finished in at_once(&scene, &commands) {
            assert_eq!(finished.code, 0, "{finished:?}");
        }
        assert_eq!(scene.do_well(&["call", "a", "one"]).stdout, "1\n");
        scene.do_well(&["verify"]);
    }
}

/// What was added, granted, updated and freed at the same time is as if it had happened one after the other.
#[test]
fn changes_of_different_kinds_at_once_do_not_lose_each_other() {
    let scene = Scene::new();
    for name in ["a", "b", "c", "d"] {
        scene.write(&format!("{name}.wat"), &component(name, 1));
    }
    for name in ["a.wat", "b.wat", "c.wat"] {
        scene.do_well(&["add", name]);
    }
    scene.write("b.wat", &component("b", 2));
    let commands: Vec<Vec<String>> = [
        "add d.wat",
        "remove a",
        "update b",
        "gc",
        "add c.wat --allow-read .",
        "gc",
        "verify",
        "gc",
    ]
    .iter()
    .map(|command| command.split(' ').map(str::to_owned).collect())
    .collect();
    for finished in at_once(&scene, &commands) {
        assert_eq!(finished.code, 0, "{finished:?}");
    }
    assert_eq!(tools(&scene), ["b", "c", "d"]);
    assert_eq!(scene.do_well(&["call", "b", "b"]).stdout, "2\n");
    assert!(
        scene
            .do_well(&["info", "c"])
            .stdout
            .contains(scene.folder().to_str().unwrap())
    );
    scene.do_well(&["verify"]);
}

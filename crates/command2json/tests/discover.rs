//! Programs that are asked for their help: how the tree is put together, and what becomes of those that answer oddly.

#![cfg(test)]

use command2json::{Answer, Command, Discovered, Pass, discover};

fn printed(text: &str) -> Answer {
    Answer::Printed {
        stdout: text.to_owned(),
        stderr: String::new(),
        exit_code: 0,
    }
}

fn refused(text: &str) -> Answer {
    Answer::Printed {
        stdout: String::new(),
        stderr: text.to_owned(),
        exit_code: 2,
    }
}

/// What is found of a program, and all that it was asked.
fn ask(mut answer: impl FnMut(&[&str]) -> Answer) -> (Discovered, Vec<String>) {
    let mut asked = Vec::new();
    let found = discover("tool", &mut |words| {
        asked.push(words.join(" "));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        answer(&words)
    });
    (found, asked)
}

fn names(command: &Command) -> Vec<&str> {
    command.commands.iter().map(|command| command.name.as_str()).collect()
}

const ROOT: &str = "Keeps things\n\nUsage: keep [OPTIONS] <COMMAND>\n\nCommands:\n  box   Boxes\n  old   (deprecated) Things of old\n  help  Print help\n\nOptions:\n  -n <NUM>       How many\n  -v, --verbose  Say more\n";
const BOX: &str =
    "Boxes\n\nUsage: keep box <COMMAND>\n\nCommands:\n  add   Add one\n  help  Print help\n\nOptions:\n  -h, --help  Print help\n";
const ADD: &str =
    "Usage: keep box add [OPTIONS] <NAME>\n\nArguments:\n  <NAME>  What to call it\n\nOptions:\n      --big   A big one\n";

#[test]
fn a_tree_is_followed_to_its_leaves() {
    let (found, asked) = ask(|words| match words {
        ["tool", "--help"] => printed(ROOT),
        ["keep", "box", "--help"] => printed(BOX),
        ["keep", "box", "add", "--help"] => printed(ADD),
        _ => panic!("nobody should ask {words:?}"),
    });
    assert!(found.understood && found.notes.is_empty());
    assert_eq!(asked, ["tool --help", "keep box --help", "keep box add --help"]);
    let root = found.command;
    assert_eq!((root.name.as_str(), names(&root)), ("keep", vec!["box", "old"]));
    assert!(root.commands[1].deprecated, "and so it was not asked about");
    assert_eq!(root.flags[0].pass, Some(Pass::Equals), "clap reads -n=5");
    let add = &root.commands[0].commands[0];
    assert_eq!(add.summary.as_deref(), Some("Add one"), "which its parent says of it");
    assert_eq!(add.flags[0].names, ["--big"]);
}

#[test]
fn other_ways_to_ask_are_tried() {
    let (found, asked) = ask(|words| match words {
        ["tool", "-h"] => refused("tool: unknown option\nUsage: tool [-a] [-b FILE]\n"),
        ["tool", "help"] => printed("Usage: tool [-a] [-b FILE] [-c]\n  -a  all\n  -b FILE  read this\n  -c  count\n"),
        _ => refused("what?"),
    });
    assert_eq!(asked, ["tool --help", "tool -h", "tool help"]);
    assert_eq!(found.command.flags.len(), 3, "the answer that says the most is taken");
}

#[test]
fn a_program_that_always_says_the_same_has_no_deeper_tree() {
    let (found, asked) = ask(|_| printed(ROOT));
    assert_eq!(names(&found.command), ["box", "old"]);
    assert_eq!(names(&found.command.commands[0]), [""; 0]);
    assert!(found.command.commands[0].bare);
    assert_eq!(asked.len(), 2);
}

#[test]
fn nonsense_leaves_bare_arguments() {
    let (found, asked) = ask(|_| printed("Hello, world!\n"));
    assert_eq!(asked.len(), 3);
    assert!(!found.understood && found.command.bare);
    assert_eq!((found.command.name.as_str(), found.command.args), ("tool", None));
    assert!(found.notes[0].contains("could not be understood"), "{:?}", found.notes);
}

#[test]
fn a_program_that_never_ends_is_asked_once() {
    let (found, asked) = ask(|_| Answer::Failed {
        reason: "stopped at its deadline\nhint: no".to_owned(),
        is_slow: true,
    });
    assert_eq!(asked, ["tool --help"]);
    assert_eq!(found.notes[0], "`tool --help`: stopped at its deadline");
}

#[test]
fn endless_trees_come_to_an_end() {
    let mut number = 0;
    let (found, asked) = ask(|words| {
        number += 1;
        let path = words[..words.len() - 1].join(" ");
        let commands = ["a", "b", "c"]
            .map(|name| format!("  {name}{number}  does {name}\n"))
            .concat();
        printed(&format!("Usage: {path} <COMMAND>\n\nCommands:\n{commands}"))
    });
    assert_eq!(asked.len(), 600, "{asked:?}");
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains("more commands than it was asked about")),
        "{:?}",
        found.notes
    );
}

#[test]
fn endless_answers_come_to_an_end() {
    let mut number = 0;
    let (found, asked) = ask(|words| {
        number += 1;
        let path = words[..words.len() - 1].join(" ");
        printed(&format!(
            "Usage: {path} <COMMAND>\n\nCommands:\n  a{number}  one\n  b{number}  two\n\n{}",
            "word ".repeat(200_000)
        ))
    });
    assert!(asked.len() < 20, "{}", asked.len());
    assert!(!found.notes.is_empty());
}

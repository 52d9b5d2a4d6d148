//! Command trees, the tools they become, and the command lines of calls: each file of `command_lines/` has a tree and cases. `BLESS=1` rewrites
//! the tools and the answers.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed"
)]

use std::collections::HashSet;
use std::path::PathBuf;

use command2json::{Command, Flag, Offer, Patterns, Target, tools};
use component2json::{NameParts, tool_names};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    #[serde(default, skip_serializing_if = "is_plain")]
    offer: Offered,
    command: Command,
    /// What clients see, by the name of the tool.
    #[serde(default)]
    tools: serde_json::Map<String, Value>,
    #[serde(default)]
    warnings: Vec<String>,
    cases: Vec<Case>,
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Offered {
    commands: Patterns,
    flags: Patterns,
    bundle: bool,
    flat: bool,
    json: bool,
    annotations: Vec<(Patterns, component2json::ToolAnnotations)>,
}

impl Offered {
    fn offer(&self) -> Offer {
        Offer {
            commands: self.commands.clone(),
            flags: self.flags.clone(),
            bundle: self.bundle,
            flat: self.flat,
            json: self.json,
            annotations: self.annotations.clone(),
            ..Offer::default()
        }
    }
}

fn is_plain(offered: &Offered) -> bool {
    *offered == Offered::default()
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    tool: String,
    arguments: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    argv: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stdin: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    errors: Option<Vec<String>>,
}

#[test]
fn trees_become_tools_and_calls_become_command_lines() {
    let mut files: Vec<PathBuf> = std::fs::read_dir("tests/command_lines")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 5, "this test looks in the wrong place");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let expected: Value = serde_json::from_str(&text).unwrap();
        let actual = serde_json::to_value(answered(serde_json::from_str(&text).unwrap())).unwrap();
        if std::env::var_os("BLESS").is_some() {
            #[expect(clippy::disallowed_methods, reason = "a test writes what it expects")]
            std::fs::write(&file, serde_json::to_string_pretty(&actual).unwrap() + "\n").unwrap();
        } else {
            assert_eq!(
                actual,
                expected,
                "{}: run with BLESS=1 and look at the difference",
                file.display()
            );
        }
    }
}

fn answered(mut file: File) -> File {
    let offer = file.offer.offer();
    let (tools, warnings) = tools(&file.command, &offer);
    let parts: Vec<NameParts> = tools.iter().map(|tool| tool.name.clone()).collect();
    let names = tool_names(&parts, None, 48, &HashSet::new());
    file.tools = serde_json::Map::new();
    for (tool, name) in tools.iter().zip(&names) {
        let definition = tool.definition(name.clone());
        check_schema(&definition.input_schema);
        let mut shown = json!(definition);
        shown.as_object_mut().unwrap().shift_remove("name");
        // It is the same for all that have no description of their output.
        if tool.target.plans().iter().all(|plan| plan.output.is_none()) {
            shown.as_object_mut().unwrap().shift_remove("outputSchema");
        }
        file.tools.insert(name.to_string(), shown);
    }
    file.warnings = warnings;
    for case in &mut file.cases {
        let index = names.iter().position(|name| name.as_str() == case.tool);
        let tool = &tools[index.unwrap_or_else(|| panic!("there is no `{}` among {names:?}", case.tool))];
        answer(case, &tool.target, &tool.definition(names[0].clone()).input_schema);
    }
    file
}

/// What the schema allows is accepted; a bundle's schema does not know which flags belong to which command.
fn answer(case: &mut Case, target: &Target, schema: &Value) {
    (case.argv, case.stdin, case.errors) = (None, None, None);
    let is_valid = jsonschema::is_valid(schema, &case.arguments);
    match target.command_line(&case.arguments) {
        Ok((_, line)) => {
            case.argv = Some(line.argv);
            case.stdin = (!line.stdin.is_empty()).then(|| String::from_utf8(line.stdin).unwrap());
        }
        Err(errors) => {
            let says_more_than_the_schema = matches!(target, Target::Bundle(_)) || errors.to_string().contains("NUL");
            let is_about_passing = [
                "must not start with `-`",
                "empty value",
                "may not know `--`",
                "would take the next word",
                "after `--`",
            ]
            .iter()
            .any(|words| errors.to_string().contains(words));
            assert!(
                !is_valid || says_more_than_the_schema || is_about_passing,
                "{}: {errors}",
                case.arguments
            );
            case.errors = Some(
                errors
                    .listed()
                    .iter()
                    .map(|error| format!("{}: {}", error.path, error.problem))
                    .collect(),
            );
        }
    }
}

/// The rules for all schemas: an object at the root, no list of types, no schema that is a boolean.
fn check_schema(schema: &Value) {
    jsonschema::validator_for(schema).unwrap();
    assert_eq!(schema["type"], "object");
    fn check(schema: &Value) {
        assert!(!schema["type"].is_array(), "{schema}");
        for key in ["properties", "$defs"] {
            for value in schema[key].as_object().into_iter().flat_map(|map| map.values()) {
                assert!(value.is_object(), "{schema}");
                check(value);
            }
        }
    }
    check(schema);
}

/// Flags that all commands inherit are part of every one of them: what is small in a file can be huge as a list of tools.
#[test]
fn the_tools_of_a_program_have_a_bounded_size() {
    let flag = |number: usize| Flag {
        names: vec![format!("--flag-{number}")],
        inherited: true,
        ..Flag::default()
    };
    let command = |number: usize| Command {
        name: format!("c{number}"),
        ..Command::default()
    };
    let root = Command {
        name: "app".to_owned(),
        flags: (0..3000).map(flag).collect(),
        commands: (0..2000).map(command).collect(),
        ..Command::default()
    };
    let (tools, warnings) = tools(&root, &Offer::default());
    assert!(!tools.is_empty() && tools.len() < 100, "{}", tools.len());
    assert!(
        warnings[0].contains("more commands and flags than can be offered"),
        "{warnings:?}"
    );
}

#[test]
fn many_flags_of_one_name_are_told_apart_in_no_time() {
    let flag = |number: usize| Flag {
        names: vec![
            format!("--{}", "-_".repeat(number % 2) + &"a".repeat(1 + number % 3)),
            format!("--n{number}"),
        ],
        ..Flag::default()
    };
    let root = Command {
        name: "app".to_owned(),
        flags: (0..20_000).map(flag).collect(),
        ..Command::default()
    };
    let (tools, _) = tools(&root, &Offer::default());
    let keys: HashSet<&str> = tools[0].target.plans()[0]
        .flags
        .iter()
        .map(|flag| flag.key.as_str())
        .collect();
    assert_eq!(keys.len(), 20_000);
}

//! Whatever values a call has, a program that reads its command line in the usual way sees each of them as what it was given for.

#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed"
)]

use std::collections::BTreeMap;

use command2json::{Command, Flag, Offer, Positional, ValueType, tools};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Values that somebody could hope to smuggle something with, among plain ones.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[^\\x00]{0,12}",
        "-{1,3}[a-z=]{0,8}",
        Just("--danger".to_owned()),
        Just("--".to_owned()),
        Just("-".to_owned()),
        Just("--danger=true".to_owned()),
        Just("x\n--danger\n".to_owned()),
        Just("sub".to_owned()),
        Just("=x".to_owned()),
        Just(String::new()),
    ]
}

fn flag(name: &str, ty: ValueType) -> Flag {
    Flag {
        names: vec![name.to_owned()],
        ty,
        ..Flag::default()
    }
}

/// A program with a dangerous flag, a subcommand, and inputs of all kinds that carry text.
fn program(with_subcommand: bool) -> Command {
    let sub = Command {
        name: "sub".to_owned(),
        ..Command::default()
    };
    Command {
        name: "app".to_owned(),
        runnable: Some(true),
        flags: vec![
            flag("--danger", ValueType::Bool),
            flag("--name", ValueType::String),
            flag("--label", ValueType::Map),
            Flag {
                repeated: true,
                ..flag("--tag", ValueType::String)
            },
            flag("-o", ValueType::String),
        ],
        args: Some(vec![
            Positional {
                name: "first".to_owned(),
                required: true,
                ..Positional::default()
            },
            Positional {
                name: "rest".to_owned(),
                variadic: true,
                ..Positional::default()
            },
        ]),
        commands: if with_subcommand { vec![sub] } else { vec![] },
        ..Command::default()
    }
}

/// What getopt_long, and every parser that follows its rules, makes of the words after the name of the program.
#[derive(Debug, Default, PartialEq)]
struct Parsed {
    danger: bool,
    flags: Vec<(String, String)>,
    positionals: Vec<String>,
    subcommand: Option<String>,
}

fn parse(words: &[String], has_subcommand: bool) -> Parsed {
    let mut parsed = Parsed::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--" => parsed.positionals.extend(words.by_ref().cloned()),
            "--danger" => parsed.danger = true,
            long if long.starts_with("--") => {
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, value.to_owned()),
                    None => (long, words.next().unwrap().clone()),
                };
                assert!(["--name", "--label", "--tag"].contains(&name), "{long}");
                parsed.flags.push((name.to_owned(), value));
            }
            short if short.starts_with("-o") => {
                let value = match &short[2..] {
                    "" => words.next().unwrap().clone(),
                    attached => attached.to_owned(),
                };
                parsed.flags.push(("-o".to_owned(), value));
            }
            other if other.starts_with('-') && other.len() > 1 => panic!("an unknown flag: {other}"),
            "sub" if has_subcommand && parsed.positionals.is_empty() => parsed.subcommand = Some("sub".to_owned()),
            _ => parsed.positionals.push(word.clone()),
        }
    }
    parsed
}

proptest! {
    #[test]
    fn every_value_stays_where_it_was_put(
        name in proptest::option::of(value()),
        short in proptest::option::of(value()),
        labels in proptest::collection::btree_map("[a-z-]{1,5}", value(), 0..3),
        tags in proptest::collection::vec(value(), 0..3),
        first in value(),
        rest in proptest::collection::vec(value(), 0..4),
        danger: bool,
        has_subcommand: bool,
    ) {
        let (tools, _) = tools(&program(has_subcommand), &Offer::default());
        let mut flags = Map::new();
        if let Some(name) = &name {
            flags.insert("name".to_owned(), name.as_str().into());
        }
        if let Some(short) = &short {
            flags.insert("o".to_owned(), short.as_str().into());
        }
        flags.insert("label".to_owned(), json!(labels));
        flags.insert("tag".to_owned(), json!(tags));
        flags.insert("danger".to_owned(), danger.into());
        let arguments = json!({"flags": flags, "args": {"first": first, "rest": rest}});
        let (_, line) = tools[0].target.command_line(&arguments).unwrap();

        let mut expected: Vec<(String, String)> = Vec::new();
        expected.extend(name.map(|value| ("--name".to_owned(), value)));
        expected.extend(labels.iter().map(|(key, value)| ("--label".to_owned(), format!("{key}={value}"))));
        expected.extend(tags.iter().map(|value| ("--tag".to_owned(), value.clone())));
        expected.extend(short.map(|value| ("-o".to_owned(), value)));
        let parsed = parse(&line.argv[1..], has_subcommand);
        prop_assert_eq!(parsed, Parsed {
            danger,
            flags: expected,
            positionals: [first].into_iter().chain(rest).collect(),
            subcommand: None,
        });
        prop_assert_eq!(&line.argv[0], "app");
    }

    #[test]
    fn no_json_makes_a_panic(arguments in json_value()) {
        let (tools, _) = tools(&program(true), &Offer::default());
        for tool in &tools {
            let _ = tool.target.command_line(&arguments);
        }
    }
}

#[test]
fn a_megabyte_of_arguments_is_passed_and_too_much_is_refused() {
    let (tools, _) = tools(&program(false), &Offer::default());
    let rest: Vec<String> = (0..100_000).map(|number| format!("--x{number:06}")).collect();
    let (_, line) = tools[0]
        .target
        .command_line(&json!({"args": {"first": "a", "rest": rest}}))
        .unwrap();
    assert_eq!(line.argv[1], "--");
    assert_eq!(line.argv.len(), 100_003);
    let huge = "x".repeat(5 << 20);
    let errors = tools[0].target.command_line(&json!({"args": {"first": huge}})).unwrap_err();
    assert!(errors.to_string().contains("the command line would be"), "{errors}");
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        value().prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("flags".to_owned()),
        Just("args".to_owned()),
        Just("name".to_owned()),
        Just("first".to_owned()),
        Just("label".to_owned()),
        "[a-z]{0,4}",
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(key.clone(), inner, 0..4)
                .prop_map(|map: BTreeMap<String, Value>| Value::Object(map.into_iter().collect())),
        ]
    })
}

//! `description/NAME.cli.json` and `NAME.usage.kdl` beside `NAME.expected.json`: what is read of a description. `description/merge/*.json`:
//! what is `inferred`, what is `given`, and what is `expected` of both. `description/errors.json`: what is refused, and with which words.
//! `BLESS=1` writes what is expected.
#![allow(clippy::unwrap_used, reason = "what fails in a test fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

use command2json::{DescriptionError, Given, read_cli_json, read_usage_kdl};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn descriptions_are_read_as_the_snapshots_say() {
    let mut failures = Vec::new();
    let files = files_of("tests/description", &[".cli.json", ".usage.kdl"]);
    assert!(files.len() >= 6, "the descriptions are gone");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let given = read(&file.to_string_lossy(), &text);
        let snapshot = file.with_extension("").with_extension("expected.json");
        failures.extend(compare(
            &snapshot,
            &outcome(given.map(|given| json!({"complete": given.is_complete(), "command": given.command()}))),
        ));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn what_is_given_wins_over_what_is_inferred() {
    let mut failures = Vec::new();
    let files = files_of("tests/description/merge", &[".json"]);
    assert!(files.len() >= 6, "the cases are gone");
    for file in files {
        let mut case: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let inferred = serde_json::from_value(case["inferred"].clone()).unwrap();
        let given = read_cli_json(&case["given"].to_string()).unwrap();
        case["expected"] = outcome(given.apply_to(inferred).map(|command| json!(command)));
        failures.extend(compare(&file, &case));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    let file = Path::new("tests/description/errors.json");
    let mut cases: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    for case in cases.as_array_mut().unwrap() {
        let read = match (&case["usage"], &case["text"]) {
            (Value::String(usage), _) => read("usage.kdl", usage),
            (_, Value::String(text)) => read("cli.json", text),
            _ => read("cli.json", &case["given"].to_string()),
        };
        case["error"] = read.map_err(|error| error.to_string()).unwrap_err().into();
    }
    assert_eq!(compare(file, &cases), None);
}

#[test]
fn there_are_limits() {
    let nested = |levels: usize| {
        let inner = (1..levels).fold(json!({"name": "c"}), |inner, _| json!({"name": "c", "commands": [inner]}));
        read_cli_json(&json!({"command": inner}).to_string())
    };
    assert!(nested(16).is_ok());
    assert!(matches!(nested(17), Err(DescriptionError::TooDeep { .. })));

    let many = |count: usize| {
        let commands: Vec<_> = (1..count).map(|index| json!({"name": format!("c{index}")})).collect();
        read_cli_json(&json!({"command": {"name": "c", "commands": commands}}).to_string())
    };
    assert!(many(2000).is_ok());
    assert_eq!(many(2001), Err(DescriptionError::TooManyCommands));
}

#[test]
fn hostile_usage_specs_are_refused_and_not_crashed_on() {
    let deep = |open: &str, close: &str| {
        let text = format!("bin x\n{}{}", open.repeat(100_000), close.repeat(100_000));
        read_usage_kdl(&text).unwrap_err()
    };
    for (open, close) in [
        ("cmd a {", "}"),
        ("cmd \"}\" {", "}"),
        ("cmd #\"}\"# {", "}"),
        ("/*", "*/"),
        ("cmd a /*}*/ {", "}"),
        ("a {", ""),
        // Also the rare characters that end a line end a comment.
        ("//\u{2028}a{", ""),
        ("//\u{b}a{", ""),
        ("//\u{85}a{", ""),
    ] {
        assert!(matches!(deep(open, close), DescriptionError::NotUsage(_)));
    }
    let many: String = (0..2000).map(|index| format!("cmd c{index}\n")).collect();
    assert_eq!(
        read_usage_kdl(&format!("bin x\n{many}")),
        Err(DescriptionError::TooManyCommands)
    );
}

/// What specs are made of, and what parsers fall over.
fn pieces() -> impl Strategy<Value = String> {
    let pieces = vec![
        "a",
        "1",
        "cmd",
        "cmd a",
        "flag \"-a --b <c>\"",
        "arg \"[a]…\"",
        " ",
        " ",
        "{",
        "}",
        "\"",
        "\"s\"",
        "\\",
        "\n",
        "\n",
        "#",
        "\"\"\"",
        "/*",
        "*/",
        "//",
        "/-",
        "(",
        "=",
        "help=\"b\"",
        "#true",
        ";",
        "\r",
        "#\"",
        "\"#",
        "#\"\"\"\n",
        "\n\"\"\"#",
        "\u{2028}",
        "\u{feff}",
        "\\\n",
        "…",
    ];
    prop::collection::vec(prop::sample::select(pieces), 1..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// An overflow of the stack or a parser that takes exponential time would end this test.
    #[test]
    fn no_usage_spec_is_too_much(piece in pieces(), often in prop::sample::select(vec![1, 20, 2000]), deep in 0..20usize) {
        let flat = piece.repeat(often);
        let nested = format!("{}{}", format!("cmd a {piece} {{\n").repeat(deep), "}\n".repeat(deep));
        for text in [flat, nested] {
            let is_read = read_usage_kdl(&format!("bin x\n{text}")).is_ok();
            let given = read_usage_kdl(&text);
            prop_assert!(is_read || given.is_err());
        }
    }
}

fn read(name: &str, text: &str) -> Result<Given, DescriptionError> {
    if name.ends_with(".kdl") {
        read_usage_kdl(text)
    } else {
        read_cli_json(text)
    }
}

fn outcome(result: Result<Value, DescriptionError>) -> Value {
    result.unwrap_or_else(|error| json!({"error": error.to_string()}))
}

/// Tells what differs, or makes it the expected.
fn compare(snapshot: &Path, found: &Value) -> Option<String> {
    let text = serde_json::to_string_pretty(found).unwrap() + "\n";
    if std::env::var_os("BLESS").is_some() {
        #[expect(clippy::disallowed_methods, reason = "a snapshot that is half written is blessed again")]
        fs::write(snapshot, text).unwrap();
        return None;
    }
    (fs::read_to_string(snapshot).unwrap_or_default() != text)
        .then(|| format!("{} differs; look at `git diff` after BLESS=1", snapshot.display()))
}

fn files_of(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)))
        .collect();
    files.sort();
    files
}

/// A description may come inside a program, from whoever made it.
#[test]
fn hidden_characters_and_endless_texts_are_taken_out() {
    let text = json!({"command": {
        "name": "a\u{200b}pp", "title": "T\u{202e}x", "summary": "\u{1b}[31mred", "description": "x".repeat(100_000),
        "flags": [{"names": ["--k"], "values": ["a\u{200b}"], "default": "a\u{200b}", "type": "string"}],
        "output": {"schema": {"type": "object", "properties": {"k\u{202e}": {"description": "d\u{7f}"}}}},
    }});
    let command = read_cli_json(&text.to_string()).unwrap().command().clone();
    let shown = serde_json::to_string(&command).unwrap();
    assert!(!shown.contains(['\u{200b}', '\u{202e}', '\u{1b}', '\u{7f}']), "{shown}");
    assert!(shown.len() < 5_000);
    assert_eq!((command.name.as_str(), command.title.as_deref()), ("app", Some("Tx")));
    let nothing = json!({"command": {"name": "\u{200b}"}}).to_string();
    assert!(read_cli_json(&nothing).is_err(), "a name of nothing else is none");
}

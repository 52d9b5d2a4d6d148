//! Programs with a command line, served as tools: what is listed, what a call passes on, and what comes back.

#![cfg(test)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use support::{Finished, Home, Server, assert_readable, finish, guest, text};

/// `depot` as a component, and as a core module.
const DEPOT: [&str; 2] = ["cli-clap", "cli-clap-module"];
/// `lines` likewise.
const LINES: [&str; 2] = ["cli-getopt", "cli-getopt-module"];

fn serve(home: &Home, options: &[&str], programs: &[PathBuf]) -> Server {
    let mut server = home.serve(options, programs);
    server.initialize();
    server
}

/// What a program left behind, whether it failed or not.
fn ran(server: &mut Server, tool: &str, arguments: &Value) -> Value {
    let mut result = server.call(tool, arguments);
    let ran = result["structuredContent"]["result"].take();
    assert!(ran.is_object(), "{tool} {arguments:.200}: {result:.2000}");
    assert_eq!(
        result["isError"],
        ran["exitCode"] != 0,
        "{tool} {arguments:.200}: {ran:.2000}"
    );
    ran
}

/// The rows of a table: as JSON, each of them stays on one line.
fn table<Row: DeserializeOwned>(rows: Value) -> Vec<Row> {
    serde_json::from_value(rows).unwrap()
}

/// The words that `depot echo` was started with.
fn echoed(server: &mut Server, arguments: &Value) -> Value {
    ran(server, "depot_echo", arguments)["json"].take()
}

fn listed(home: &Home, options: &[&str], program: &Path) -> BTreeMap<String, Value> {
    let finished = finish(home.host(&["tools"]).args(options).arg(program));
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let mut list: Value = serde_json::from_str(&finished.stdout).unwrap();
    let tools = list["tools"].as_array_mut().unwrap().iter_mut();
    tools
        .map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool.take()))
        .collect()
}

fn names(tools: &BTreeMap<String, Value>) -> Vec<&str> {
    tools.keys().map(String::as_str).collect()
}

/// A copy of a program in the test's own folder, where a description can lie beside it.
fn copy(home: &Home, program: &str, name: &str) -> PathBuf {
    home.write(&format!("{name}.wasm"), test_guests::bytes(program).unwrap())
}

fn call(home: &Home, program: &Path, arguments: &[&str]) -> Finished {
    finish(home.host(&["call"]).arg(program).args(arguments).current_dir(home.file("")))
}

/// A schema in a few characters: `string`, `[string]` for a list of them, `{string}` for an object with any keys, `a|b` for one of
/// several words, and what it is without being given.
fn shape(schema: &Value) -> String {
    let ty = schema["type"].as_str();
    let choices = schema["enum"].as_array().or(schema["anyOf"].as_array());
    let words = |values: &[Value]| {
        let word = |value: &Value| value.as_str().map_or_else(|| shape(value), str::to_owned);
        values.iter().map(word).collect::<Vec<_>>().join("|")
    };
    let what = match (ty, choices) {
        (_, Some(choices)) => words(choices),
        (Some("array"), _) if schema["items"].is_object() => format!("[{}]", shape(&schema["items"])),
        (Some("object"), _) if schema["additionalProperties"].is_object() => {
            format!("{{{}}}", shape(&schema["additionalProperties"]))
        }
        (Some("integer"), _) if schema["maximum"] == 64 => "count".to_owned(),
        (ty, _) => ty.unwrap_or("any").to_owned(),
    };
    match schema.get("default") {
        Some(default) => format!("{what} = {default}"),
        None => what,
    }
}

/// The shapes of an object's members, the required ones marked.
fn shapes(object: &Value) -> Vec<String> {
    assert_ne!(object["additionalProperties"].as_bool(), Some(true), "{object}");
    let required = object["required"].as_array().cloned().unwrap_or_default();
    let members = object["properties"].as_object().into_iter().flatten();
    let member = |(name, schema): (&String, &Value)| {
        let mark = if required.contains(&json!(name)) { "!" } else { "" };
        format!("{name}{mark}: {}", shape(schema))
    };
    members.map(member).collect()
}

/// What every command of `depot` inherits: the first two anywhere, the others before the command only.
const GLOBAL: [&str; 2] = ["verbose: count", "profile: string = \"default\""];
const OF_THE_ROOT: [&str; 2] = ["store: string = \".\"", "dry_run: boolean"];

#[test]
fn commands_are_tools_with_the_types_of_their_inputs() {
    /// The tools, each with its own flags and, below, its positionals.
    const TOOLS: &str = r#"
depot_add, notebook!: string, pinned: boolean, sync: boolean, index: true|false = "true", priority: string = "0", copies: integer, weight: number, kind: memo|task|web-link = "memo", author: string = "nobody in particular", tag: [string], label: {string}, notify: string, expires: string, q: boolean, P: string
    title!: string, body: string
depot_app1_cmd, text: string
depot_app1_cmd_0c32eac3, text: string
depot_bytes
depot_cat, number: boolean
    file!: [string]
depot_count, lines: boolean, words: boolean, bytes: boolean
depot_echo, loud: boolean, text: string, number: number, item: [string], color: auto|always|never|boolean
    word: [string]
depot_exec, env: {string}
    program!: string, args: [string]
depot_fail, code!: integer, message: string = "failed as asked"
depot_list, format: json|json-lines|yaml|table = "table", filter: object|string, limit: integer, color: auto|always|never|boolean
depot_remote_access_allow, network!: string
    name!: string
depot_remote_add, address: string, port: integer = 443, timeout: string = "30s", header: {string}
    name!: string, url!: string
depot_remote_remove, purge: boolean, yes: boolean
    name!: [string]
depot_tag, sort: name|count = "name"
depot_tag_delete
    tag!: [string]
depot_tag_rename
    old!: string, new!: string
depot_write, append: boolean
    file!: string, text!: string
"#;
    let mut expected: Vec<(&str, Vec<&str>, Vec<&str>)> = Vec::new();
    for line in TOOLS.trim().lines() {
        let mut members = line.trim().split(", ");
        match expected.last_mut().filter(|_| line.starts_with(' ')) {
            Some((.., args)) => args.extend(members),
            None => expected.push((members.next().unwrap(), members.collect(), vec![])),
        }
    }
    let home = Home::new();
    for program in DEPOT {
        let tools = listed(&home, &[], &guest(program));
        assert_eq!(names(&tools), expected.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
        for (name, flags, args) in &expected {
            let input = &tools[*name]["inputSchema"];
            let all: BTreeSet<String> = shapes(&input["properties"]["flags"]).into_iter().collect();
            let expected = flags.iter().chain(&GLOBAL).chain(&OF_THE_ROOT);
            assert_eq!(all, expected.map(|flag| (*flag).to_owned()).collect(), "{name}");
            assert_eq!(shapes(&input["properties"]["args"]), *args, "{name}");
            // A section with something required in it is required itself.
            let sections = [("flags", flags), ("args", args)].into_iter();
            let required = sections.filter(|(_, members)| members.iter().any(|member| member.contains("!:")));
            let required: Vec<&str> = required.map(|(section, _)| section).collect();
            assert_eq!(input.get("required").unwrap_or(&json!([])), &json!(required), "{name}");
            assert_eq!(input["properties"]["stdin"].is_object(), *name == "depot_count", "{name}");
        }
    }
    for program in LINES {
        let tools = listed(&home, &[], &guest(program));
        let input = &tools["lines"]["inputSchema"];
        assert_eq!(
            shapes(&input["properties"]["flags"]),
            [
                "match: [string]",
                "number: boolean",
                "quiet: boolean",
                "rot: integer|boolean",
                "u: boolean",
                "separator: string",
                "limit: integer",
                "hex: boolean",
            ]
        );
        assert_eq!(shapes(&input["properties"]["args"]), ["file: [string]"]);
        assert_eq!(input["properties"]["stdin"]["type"], "string");
        assert!(input.get("required").is_none(), "{input}");
    }
}

/// Both forms of a program are the same to a client.
#[test]
fn a_component_and_a_core_module_are_listed_alike() {
    let home = Home::new();
    for [component, module] in [DEPOT, LINES] {
        let tools = listed(&home, &[], &guest(component));
        assert_eq!(tools, listed(&home, &[], &guest(module)));
        for tool in tools.values() {
            assert!(tool["description"].as_str().unwrap().starts_with('`'), "{tool}");
            for schema in ["inputSchema", "outputSchema"] {
                assert_eq!(tool[schema]["type"], "object");
                jsonschema::draft202012::meta::validate(&tool[schema]).unwrap_or_else(|error| panic!("{error} in {tool}"));
            }
        }
    }
    let tools = listed(&home, &[], &guest("cli-clap"));
    let description = tools["depot_add"]["description"].as_str().unwrap();
    for part in [
        "`depot add`: Add a note",
        "put at the end of its notebook",
        "depot add --notebook work --label from=mail 'Call Ada'",
    ] {
        assert!(description.contains(part), "no {part} in {description}");
    }
    assert_eq!(tools["depot_remote_add"]["title"], "Depot remote add");
}

#[derive(Deserialize)]
struct Call {
    tool: String,
    arguments: Value,
    result: Option<Value>,
    error: Option<String>,
}

/// `calls.json` of all programs: every tool is called, and both forms of a program answer alike.
#[test]
fn the_calls_of_every_program_go_as_written() {
    let home = Home::new();
    let programs = test_guests::all()
        .unwrap()
        .into_iter()
        .filter(|name| test_guests::is_program(name));
    let programs: Vec<_> = programs.filter_map(|name| Some((test_guests::calls(&name)?, name))).collect();
    assert!(programs.len() >= 9);
    for (calls, program) in programs {
        let calls: Vec<Call> = serde_json::from_slice(&fs::read(calls).unwrap()).unwrap();
        let mut server = serve(&home, &["--timeout", "5s"], &[guest(&program)]);
        let called: BTreeSet<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
        assert_eq!(server.tool_names(), Vec::from_iter(called), "{program}");
        let tools = listed(&home, &[], &guest(&program));
        for Call {
            tool,
            arguments,
            result,
            error,
        } in &calls
        {
            let context = format!("{program} {tool} {arguments}");
            let answer = server.call(tool, arguments);
            assert_eq!(answer["isError"], error.is_some(), "{context}: {answer}");
            let error = error.as_deref().unwrap_or_default();
            assert!(text(&answer).contains(error), "{context}: {answer}");
            let structured = &answer["structuredContent"];
            if let Some(result) = result {
                assert_eq!(structured["result"], *result, "{context}");
            }
            if structured.is_object() {
                assert!(
                    jsonschema::is_valid(&tools[tool]["outputSchema"], structured),
                    "{context}: {answer}"
                );
            }
            if error.is_empty() {
                assert!(jsonschema::is_valid(&tools[tool]["inputSchema"], arguments), "{context}");
            }
        }
        server.close_well();
    }
}

/// A component's libc knows only success and failure, unless the program calls `exit-with-code` itself.
#[test]
fn exit_codes_are_as_exact_as_the_program_gives_them() {
    let home = Home::new();
    let fail = |code: u8| json!({"flags": {"code": code}});
    let wrong = json!({"flags": {"code": 300}});
    let nowhere = json!({"args": {"file": ["nowhere"]}});
    let cases = [
        ("cli-clap-module", "depot_fail", wrong.clone(), 2),
        ("cli-clap", "depot_fail", wrong, 1),
        ("cli-getopt-module", "lines", nowhere.clone(), 3),
        ("cli-getopt", "lines", nowhere, 1),
        ("cli-exit-code", "cli_exit_code", json!({}), 42),
    ];
    let codes = [0, 1, 2, 3, 42, 125, 126, 127, 128, 200, 254, 255];
    let exact = DEPOT
        .into_iter()
        .flat_map(|program| codes.map(|code| (program, "depot_fail", fail(code), code)));
    for (program, tool, arguments, code) in cases.into_iter().chain(exact) {
        let mut server = serve(&home, &[], &[guest(program)]);
        let answer = server.call(tool, &arguments);
        let ran = &answer["structuredContent"]["result"];
        assert_eq!(ran["exitCode"], code, "{program} {arguments}");
        assert_eq!(answer["isError"], code != 0, "{program} {arguments}");
        let says_so = text(&answer).ends_with(&format!("exit code {code}"));
        assert_eq!(says_so || ran["hint"].is_string(), code != 0, "{answer}");
        server.close_well();
    }
}

/// Whatever a value looks like, it arrives as the value that it was given for.
#[test]
fn no_value_becomes_a_flag() {
    let odd = [
        "--loud",
        "--",
        "-l",
        "-x",
        "-",
        "",
        " ",
        "a\nb",
        "\"'`$(ls)\\",
        "a=b",
        "--text=x",
        "-tx",
        "=",
        "é\u{1f600}",
        "echo",
    ];
    let home = Home::new();
    for program in DEPOT {
        let mut server = serve(&home, &[], &[guest(program)]);
        for value in odd {
            let could_be_a_flag = value.len() > 1 && value.starts_with('-');
            let words = if could_be_a_flag { vec!["--", value] } else { vec![value] };
            for (arguments, added) in [
                (
                    json!({"args": {"word": [value]}}),
                    words.iter().map(|word| word.to_string()).collect(),
                ),
                (json!({"args": [value]}), words.iter().map(|word| word.to_string()).collect()),
                (json!({"flags": {"text": value}}), vec![format!("--text={value}")]),
                (
                    json!({"flags": {"item": [value, "y"]}}),
                    vec![format!("--item={value}"), "--item=y".to_owned()],
                ),
            ] {
                let expected: Vec<String> = ["depot", "echo"].map(str::to_owned).into_iter().chain(added).collect();
                assert_eq!(echoed(&mut server, &arguments), json!(expected), "{arguments}");
            }
            // The program agrees on what is what.
            let arguments = json!({
                "flags": {"notebook": value, "author": value, "tag": [value, value], "label": {"k": value}, "profile": value},
                "args": {"title": value, "body": value},
            });
            let understood = ran(&mut server, "depot_add", &arguments);
            let add = &understood["json"]["command"]["add"];
            let wanted = [
                ("notebook", json!(value)),
                ("author", json!(value)),
                ("tag", json!([value, value])),
                ("label", json!([["k", value]])),
                ("title", json!(value)),
                ("body", json!(value)),
                ("pinned", json!(false)),
                ("quiet", json!(false)),
            ];
            for (key, wanted) in wanted {
                assert_eq!(add[key], wanted, "{key} of {understood}");
            }
            assert_eq!(understood["json"]["profile"], value, "{understood}");
            // Behind its own `--`, anything goes.
            let arguments = json!({"flags": {"env": {"A": value}}, "args": {"program": "p", "args": [value, value]}});
            let understood = ran(&mut server, "depot_exec", &arguments);
            let exec = &understood["json"]["command"]["exec"];
            assert_eq!(*exec, json!({"args": [value, value], "env": [["A", value]], "program": "p"}));
        }
        server.close_well();
    }
    for program in LINES {
        let mut server = serve(&home, &[], &[guest(program)]);
        for value in odd.into_iter().filter(|value| !value.is_empty()) {
            // Each line with the value before it, and only those with the value in them.
            let arguments = json!({"flags": {"number": true, "separator": value, "match": [value]}, "stdin": "other\n"});
            assert_eq!(ran(&mut server, "lines", &arguments)["stdout"], "", "{value}");
            let arguments = json!({"flags": {"number": true, "separator": value}, "stdin": "x\n"});
            assert_eq!(ran(&mut server, "lines", &arguments)["stdout"], format!("1{value}x\n"));
            if value != "-" {
                let refused = ran(&mut server, "lines", &json!({"args": {"file": [value]}}));
                assert_eq!(refused["stderr"], format!("lines: {value}: No such file or directory\n"));
            }
        }
        server.close_well();
    }
}

#[test]
fn what_could_be_mistaken_is_refused() {
    let cases: Vec<(String, Value, String)> = table(json!([
        ["depot_echo", {"args": {"word": ["a", "b\0c"]}}, "$.args.word[1]: a NUL"],
        ["depot_echo", {"args": ["b\0c"]}, "$.args[0]: a NUL"],
        ["depot_echo", {"flags": {"text": "b\0c"}}, "$.flags.text: a NUL"],
        ["depot_echo", {"flags": {"item": ["\0"]}}, "$.flags.item[0]: a NUL"],
        ["depot_exec", {"flags": {"env": {"A=B": "c"}}, "args": {"program": "p"}}, "$.flags.env.A=B: a key must not"],
        ["depot_exec", {"flags": {"env": {"": "c"}}, "args": {"program": "p"}}, "a key must not be empty"],
        ["depot_exec", {"flags": {"env": {"A": "\0"}}, "args": {"program": "p"}}, "$.flags.env.A: a NUL"],
        // Behind a `--` it would be another positional.
        ["depot_exec", {"args": {"program": "-p", "args": ["a"]}}, "$.args: a positional of this command must not start with `-`"],
        ["depot_exec", {"args": {"program": "-p"}}, "$.args"],
        ["depot_echo", {"flags": {"color": "--loud"}}, "$.flags.color: expected one of \"auto\""],
        ["depot_echo", {"flags": {"number": "1 --loud"}}, "$.flags.number: expected a number"],
        ["depot_echo", {"flags": {"verbose": 65}}, "$.flags.verbose: expected a whole number from 0 to 64"],
        ["depot_echo", {"flags": {"loud": "--text=x"}}, "$.flags.loud: expected"],
        ["depot_echo", {"flags": {"--loud=x": true}}, "$.flags: there is no `--loud=x`; there is `loud`"],
        ["depot_echo", {"flags": {"help": true}}, "there is no `help`"],
        ["depot_echo", {"flags": {"loud": true, "-l": true}}, "`-l` is given twice"],
        ["depot_echo", {"flag": {"loud": true}}, "$: there is no `flag`; there is `flags`"],
        ["depot_echo", {"stdin": "x"}, "$: there is no `stdin`"],
        ["depot_add", {"args": {"title": "x"}}, "$.flags.notebook: is required"],
        ["depot_add", {"flags": {"notebook": "x"}}, "$.args.title: is required"],
        ["depot_cat", {"args": {"file": []}}, "$.args.file: needs at least one"],
        ["depot_remote_add", {"args": ["a", "b", "c"]}, "$.args: 3 values do not fit"],
        ["depot_add", {"flags": {"notebook": "x", "kind": "tsk"}, "args": {"title": "x"}}, "$.flags.kind: expected one of"],
    ]));
    let home = Home::new();
    for program in DEPOT {
        let mut server = serve(&home, &[], &[guest(program)]);
        for (tool, arguments, part) in &cases {
            let answer = server.call(tool, arguments);
            assert_eq!(answer["isError"], true, "{arguments}: {answer}");
            assert!(answer.get("structuredContent").is_none(), "it was run: {arguments}: {answer}");
            assert!(text(&answer).contains(part), "no {part} in {}", text(&answer));
        }
        server.close_well();
    }
}

#[test]
fn a_megabyte_of_arguments_arrives() {
    let home = Home::new();
    let many: Vec<String> = (0..100_000).map(|n| format!("{n:010}")).collect();
    let long = "é\n\"=".repeat(200_000);
    for program in DEPOT {
        let mut server = serve(&home, &[], &[guest(program)]);
        for words in [many.clone(), vec![long.clone()]] {
            let echoed = echoed(&mut server, &json!({"args": {"word": words}}));
            let expected: Vec<String> = ["depot", "echo"].map(str::to_owned).into_iter().chain(words).collect();
            assert!(
                echoed == json!(expected),
                "{program} got something else: {:.200}",
                echoed.to_string()
            );
        }
        let arguments = json!({"flags": {"text": long, "item": many}});
        let echoed = echoed(&mut server, &arguments);
        let items = many.iter().map(|item| format!("--item={item}"));
        let expected: Vec<String> = ["depot".to_owned(), "echo".to_owned(), format!("--text={long}")]
            .into_iter()
            .chain(items)
            .collect();
        assert!(
            echoed == json!(expected),
            "{program} got something else: {:.200}",
            echoed.to_string()
        );
        let error = server.call_error("depot_echo", &json!({"args": {"word": [long.repeat(5)]}}));
        assert!(error.contains("$: the command line would be "), "{error:.200}");
        server.close_well();
    }
}

/// Flags of the program itself stand before the command, where alone it takes them.
#[test]
fn every_flag_is_passed_in_its_place() {
    let cases: Vec<(Value, Value)> = table(json!([
        [{}, ["depot", "echo"]],
        [{"flags": {"store": "s", "dry_run": true, "loud": true}}, ["depot", "--store=s", "--dry-run", "echo", "--loud"]],
        [{"flags": {"dry-run": true, "--loud": true}}, ["depot", "--dry-run", "echo", "--loud"]],
        [{"flags": {"dryRun": true, "loud": false}}, ["depot", "--dry-run", "echo"]],
        [{"flags": {"verbose": 3}}, ["depot", "echo", "--verbose", "--verbose", "--verbose"]],
        [{"flags": {"verbose": 0, "text": null}}, ["depot", "echo"]],
        [{"flags": {"color": true}}, ["depot", "echo", "--color"]],
        [{"flags": {"color": "never"}}, ["depot", "echo", "--color=never"]],
        [{"flags": {"color": false, "item": []}}, ["depot", "echo"]],
        [{"flags": {"number": -5}, "args": null}, ["depot", "echo", "--number=-5"]],
        [{"args": {"word": ["a", "-b"]}, "flags": {"item": ["x"]}}, ["depot", "echo", "--item=x", "--", "a", "-b"]],
        // The order is the program's, whatever the order of the arguments.
        [{"flags": {"item": ["i"], "text": "t", "loud": true}}, ["depot", "echo", "--loud", "--text=t", "--item=i"]],
    ]));
    let home = Home::new();
    for program in DEPOT {
        let mut server = serve(&home, &[], &[guest(program)]);
        for (arguments, argv) in &cases {
            assert_eq!(echoed(&mut server, arguments), *argv, "{arguments}");
        }
        // A flag that is on by itself, a pair of flags, a JSON flag, and short flags.
        let arguments =
            json!({"flags": {"notebook": "n", "index": false, "sync": false, "q": true, "P": 7}, "args": {"title": "t"}});
        let add = ran(&mut server, "depot_add", &arguments)["json"]["command"]["add"].take();
        let keys = ["index", "no_sync", "quiet", "page"].map(|key| add[key].clone());
        assert_eq!(keys, [json!(false), json!(true), json!(true), json!(7)]);
        for filter in [json!({"notebook": "home"}), json!("{\"notebook\": \"home\"}")] {
            let arguments = json!({"flags": {"filter": filter, "format": "json"}});
            assert_eq!(
                ran(&mut server, "depot_list", &arguments)["json"].as_array().unwrap().len(),
                2
            );
        }
        server.close_well();
    }
}

/// A program that is not given any input reads the end of it, and so never waits.
#[test]
fn input_is_what_was_given_or_nothing() {
    let home = Home::new();
    let mut server = serve(&home, &[], &["cli-prompt", "cli-clap", "cli-getopt-module"].map(guest));
    let asked = json!({"stdout": "Name? ", "stderr": "no name\n", "exitCode": 1});
    assert_eq!(ran(&mut server, "cli_prompt", &json!({})), asked);
    let answered = json!({"stdout": "Name? Hello, Ada!\n", "stderr": "", "exitCode": 0});
    assert_eq!(ran(&mut server, "cli_prompt", &json!({"stdin": "Ada\n"})), answered);
    let long = "one two\n".repeat(200_000);
    for (stdin, counts) in [
        (json!(null), json!({"lines": 0, "words": 0, "bytes": 0})),
        (json!(""), json!({"lines": 0, "words": 0, "bytes": 0})),
        (json!("a\0b é"), json!({"lines": 1, "words": 2, "bytes": 6})),
        (json!(long), json!({"lines": 200_000, "words": 400_000, "bytes": 1_600_000})),
    ] {
        assert_eq!(ran(&mut server, "depot_count", &json!({"stdin": stdin}))["json"], counts);
    }
    assert_eq!(ran(&mut server, "lines", &json!({}))["exitCode"], 1);
    let error = server.call_error("depot_count", &json!({"stdin": ["x"]}));
    assert_eq!(error, "$.stdin: expected a string");
    server.close_well();
}

#[test]
fn a_program_that_does_not_end_is_stopped_and_the_next_one_runs() {
    let home = Home::new();
    let mut server = serve(
        &home,
        &["--timeout", "300ms"],
        &["cli-loop", "cli-flood", "cli-warns"].map(guest),
    );
    for _ in 0..3 {
        for (tool, shows) in [("cli_loop", ""), ("flood", "All work and no play makes Jack a dull boy.\n")] {
            let answer = server.call(tool, &json!({}));
            assert_eq!(answer["isError"], true);
            assert!(answer.get("structuredContent").is_none(), "{answer:.300}");
            let error = text(&answer);
            let told = "the call was stopped at its deadline of 300ms\nhint: allow more with `--timeout`";
            assert!(error.starts_with(told) && error.contains(shows), "{error:.300}");
            assert!(error.len() < 64 << 10, "{} bytes of text", error.len());
        }
        assert_eq!(
            ran(&mut server, "warns", &json!({"flags": {"json": true}}))["json"],
            json!({"answer": 42})
        );
    }
    server.close_well();
}

/// What is too much is cut and counted. The program has done its work all the same.
#[test]
fn too_much_output_is_cut() {
    let home = Home::new();
    const LINE: &str = "All work and no play makes Jack a dull boy.\n";
    let mut server = serve(
        &home,
        &["--max-output", "10KiB", "--timeout", "5s"],
        &[guest("cli-flood"), guest("cli-clap-module")],
    );
    let three = json!({"stdout": LINE.repeat(3), "stderr": "", "exitCode": 0});
    assert_eq!(ran(&mut server, "flood", &json!({"flags": {"lines": 3}})), three);
    let cut = ran(&mut server, "flood", &json!({"flags": {"lines": 1000}}));
    let kept = cut["stdout"].as_str().unwrap();
    assert!(LINE.repeat(1000).starts_with(kept), "{kept:.300}");
    assert!((1 << 10..=10 << 10).contains(&kept.len()), "{}", kept.len());
    assert_eq!(cut["stdoutDropped"], 1000 * LINE.len() - kept.len());
    // JSON that is cut is none.
    let cut = ran(&mut server, "depot_echo", &json!({"args": {"word": ["é".repeat(8 << 10)]}}));
    assert!(
        cut.get("json").is_none() && cut["stdoutDropped"].as_u64().unwrap() > 1000,
        "{cut:.300}"
    );
    assert!(
        cut["stdout"].as_str().unwrap().ends_with('é'),
        "a character was cut in the middle"
    );
    server.close_well();
}

#[test]
fn warnings_are_no_failure() {
    let home = Home::new();
    let mut server = serve(&home, &[], &[guest("cli-warns")]);
    let answer = server.call("warns", &json!({}));
    assert_eq!(answer["isError"], false);
    let stderr = "warning: the cache is cold\nerror: this is no error, the exit code says so\n";
    let expected = json!({"stdout": "The answer is 42.\n", "stderr": stderr, "exitCode": 0});
    assert_eq!(answer["structuredContent"]["result"], expected);
    assert_eq!(text(&answer), format!("The answer is 42.\n\nstderr:\n{}", stderr.trim_end()));
    server.close_well();
    let called = call(&home, &guest("cli-warns"), &["warns"]);
    assert_eq!(
        (called.code, called.stdout.as_str(), called.stderr.as_str()),
        (0, "The answer is 42.\n", stderr)
    );
}

#[test]
fn help_that_makes_no_sense_leaves_bare_args() {
    let home = Home::new();
    for (program, tool) in [
        ("cli-nonsense", "cli_nonsense"),
        ("cli-exit-code", "cli_exit_code"),
        ("cli-prompt", "cli_prompt"),
    ] {
        let report = inspected(&home, &guest(program));
        assert_eq!(report["commandsFrom"], "nothing");
        assert!(report["notes"][0].as_str().unwrap().contains("takes bare `args`"), "{report}");
        let tools = listed(&home, &[], &guest(program));
        assert_eq!(names(&tools), [tool]);
        let input = &tools[tool]["inputSchema"]["properties"];
        assert_eq!(shape(&input["args"]), "[string]");
        assert!(input.get("flags").is_none());
    }
    let shown = finish(home.host(&["inspect"]).arg(guest("cli-nonsense"))).stdout;
    assert!(
        shown.contains("note: its help (`--help`, `-h`, `help`) could not be understood"),
        "{shown}"
    );
    // They are the whole command line, with whatever flags there are.
    let mut server = serve(&home, &[], &[guest("cli-nonsense")]);
    let ran = ran(&mut server, "cli_nonsense", &json!({"args": ["x", "--tempor", "a b", ""]}));
    assert_eq!(ran["stdout"], "cli-nonsense\nx\n--tempor\na b\n\n");
    server.close_well();
}

fn inspected(home: &Home, program: &Path) -> Value {
    let finished = finish(home.host(&["inspect", "--json"]).arg(program));
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn cancelling_stops_a_program() {
    use std::thread::sleep;
    use std::time::Duration;

    use support::{proc, wait_until};

    let home = Home::new();
    // With the short time limit of its own, `cli-loop` need not be waited for when it is asked for its help.
    inspected(&home, &guest("cli-loop"));
    let mut server = serve(
        &home,
        &["--timeout", "1h"],
        &["cli-loop", "cli-flood", "cli-warns"].map(guest),
    );
    for tool in ["cli_loop", "flood"] {
        assert_eq!(ran(&mut server, "warns", &json!({}))["exitCode"], 0);
        let before = proc::cpu_ticks(server.pid());
        let id = server.start_call(tool, &json!({}));
        wait_until("the program computes", || proc::cpu_ticks(server.pid()) > before + 20);
        server.notify("notifications/cancelled", &json!({"requestId": id}));
        wait_until("the program computes no more", || {
            let before = proc::cpu_ticks(server.pid());
            sleep(Duration::from_millis(300));
            proc::cpu_ticks(server.pid()) - before <= 1
        });
        // The next answer is the next call's.
        assert_eq!(ran(&mut server, "warns", &json!({}))["exitCode"], 0);
    }
    server.close_well();
}

#[test]
fn bytes_that_are_no_text_are_kept() {
    const BYTES: &[u8] = b"not UTF-8: \xff\xfe, nor is half of \xe2\x82\n";
    let home = Home::new();
    for program in DEPOT {
        let mut server = serve(&home, &[], &[guest(program)]);
        let encoded = json!({"stdout": STANDARD.encode(BYTES), "stderr": "", "exitCode": 0, "stdoutEncoding": "base64"});
        assert_eq!(ran(&mut server, "depot_bytes", &json!({})), encoded);
        server.close_well();
        let output = home.host(&["call"]).arg(guest(program)).arg("bytes").output().unwrap();
        assert!(
            output.status.success() && output.stdout == BYTES && output.stderr.is_empty(),
            "{output:?}"
        );
        let output = home
            .host(&["call", "--json"])
            .arg(guest(program))
            .arg("bytes")
            .output()
            .unwrap();
        assert_eq!(
            serde_json::from_slice::<Value>(&output.stdout).unwrap(),
            json!({"result": encoded})
        );
    }
}

/// For people and scripts a program is what it is without us: its streams, and that it failed.
#[test]
fn call_writes_each_stream_where_it_belongs() {
    let home = Home::new();
    // Arguments, exit code, stdout, how stderr starts.
    let cases: Vec<(Vec<String>, i32, String, String)> = table(json!([
        [
            ["list", "format=json-lines", "limit=1"],
            0,
            "{\"notebook\":\"work\",\"pinned\":true,\"priority\":2,\"title\":\"Call Ada\"}\n",
            ""
        ],
        [
            ["depot list", "--args", "{\"flags\": {\"limit\": 0}}"],
            0,
            "TITLE           NOTEBOOK  PRIORITY\n",
            ""
        ],
        [
            ["depot_echo", "word=[\"a\", \"--loud\"]", "text=x=y"],
            0,
            "[\"depot\",\"echo\",\"--text=x=y\",\"--\",\"a\",\"--loud\"]\n",
            ""
        ],
        [
            ["depot_echo", "dry-run=true", "number=5"],
            0,
            "[\"depot\",\"--dry-run\",\"echo\",\"--number=5\"]\n",
            ""
        ],
        [
            ["remote add", "name=a", "url=b", "port=x"],
            1,
            "",
            "error: $.flags.port: expected a whole number\n"
        ],
        [["count", "stdin=a b"], 0, "{\"bytes\":3,\"lines\":1,\"words\":2}\n", ""],
        [
            ["fail", "code=7"],
            1,
            "",
            "failed as asked\nerror: the program exited with code 7\n"
        ],
        [
            ["fail", "code=7", "--json"],
            1,
            "{\"result\":{\"stdout\":\"\",\"stderr\":\"failed as asked\\n\",\"exitCode\":7}}\n",
            ""
        ],
        [["fial", "code=7"], 2, "", "error: there is no tool `fial`"],
    ]));
    for program in DEPOT {
        for (arguments, code, stdout, stderr) in &cases {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let called = call(&home, &guest(program), &arguments);
            assert_eq!(
                (called.code, &called.stdout),
                (*code, stdout),
                "{arguments:?}: {}",
                called.stderr
            );
            let told = called.stderr.starts_with(stderr) && called.stderr.is_empty() == stderr.is_empty();
            assert!(told, "{arguments:?}: {}", called.stderr);
        }
    }
}

/// What a program can reach, and what it is told to ask for.
#[cfg(unix)]
#[test]
fn files_are_what_was_granted() {
    let home = Home::new();
    home.write("in/a.txt", "inside\n");
    home.write("in/sub/b.txt", "below\n");
    home.write("secret.txt", "secret\n");
    fs::create_dir(home.file("out")).unwrap();
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, home.file(name)).unwrap();
    link("a.txt", "in/good");
    link("../secret.txt", "in/up");
    link(home.file("secret.txt").to_str().unwrap(), "in/absolute");
    link("..", "in/parent");
    let root = home.file("").canonicalize().unwrap();
    let absolute = |path: &str| root.join(path).to_str().unwrap().to_owned();
    let full = |path: &str| path.replace("ROOT", root.to_str().unwrap().trim_end_matches('/'));

    /// Grants, the file to print, and what is printed or, after a `!`, a part of the complaint.
    const READ: &str = "
--allow-read=in                            | a.txt                 | inside
--allow-read=in                            | ./sub/../a.txt        | inside
--allow-read=in                            | good                  | inside
--allow-read=in                            | ROOT/in/sub/b.txt     | below
--allow-read=ROOT/in                       | a.txt                 | inside
--allow-read=in:/data                      | /data/a.txt           | inside
--allow-read=in:/data                      | a.txt                 | inside
--allow-write=in                           | a.txt                 | inside
--allow-read=in/sub --allow-read=in        | b.txt                 | below
--allow-read=in/sub --allow-read=in        | ROOT/in/a.txt         | inside
--allow-write=out --allow-read=in          | ROOT/in/a.txt         | inside
--allow-read=.                             | in/a.txt              | inside
                                           | ROOT/in/a.txt         | !`--allow-read=ROOT/in`
--allow-read=in:/data                      | ROOT/in/a.txt         | !`--allow-read=ROOT/in`
--allow-read=in                            | ROOT/secret.txt       | !`--allow-read=ROOT`
--allow-read=in                            | ../secret.txt         | !not permitted
--allow-read=in                            | ROOT/in/../secret.txt | !not permitted
--allow-read=in                            | up                    | !not permitted
--allow-read=in                            | absolute              | !not permitted
--allow-write=in                           | parent/secret.txt     | !not permitted
--allow-read=in                            | missing               | !No such file";

    /// Grants, the file to write, and a part of the complaint.
    const WRITE: &str = "
--allow-write=out                          | new.txt               |
--allow-read=in --allow-write=out          | ROOT/out/new.txt      |
--allow-write=out:/o                       | /o/new.txt            |
--allow-read=out                           | new.txt               | hint: `new.txt` is in a directory that was granted for reading only
--allow-read=out                           | new.txt               | `--allow-write=ROOT/out`
                                           | ROOT/out/new.txt      | `--allow-write=ROOT/out`
--allow-write=in                           | up                    | not permitted
--allow-write=out                          | ../in/a.txt           | not permitted";

    let rows = |table: &str| -> Vec<[String; 3]> {
        let row = |line: &str| {
            let mut cells = line.split('|').map(|cell| full(cell.trim()));
            [(); 3].map(|()| cells.next().unwrap())
        };
        table.trim_start_matches('\n').lines().map(row).collect()
    };
    for program in DEPOT {
        for [grants, file, expected] in rows(READ) {
            let file = format!("file={}", json!([file]));
            let arguments: Vec<&str> = ["cat", &file].into_iter().chain(grants.split_whitespace()).collect();
            let called = call(&home, &guest(program), &arguments);
            let context = format!("{program} {arguments:?}: {} {}", called.stdout, called.stderr);
            match expected.strip_prefix('!') {
                None => assert!(called.code == 0 && called.stdout.trim_end() == expected, "{context}"),
                Some(part) => assert!(
                    called.code == 1 && called.stdout.is_empty() && called.stderr.contains(part),
                    "{context}"
                ),
            }
        }
        for [grants, file, complaint] in rows(WRITE) {
            let file = format!("file={file}");
            let arguments: Vec<&str> = ["write", &file, "text=written"]
                .into_iter()
                .chain(grants.split_whitespace())
                .collect();
            let called = call(&home, &guest(program), &arguments);
            let context = format!("{program} {arguments:?}: {}", called.stderr);
            assert_eq!(called.code, i32::from(!complaint.is_empty()), "{context}");
            assert!(called.stderr.contains(&complaint), "{context}");
            let written = fs::read_to_string(home.file("out/new.txt")).unwrap_or_default();
            assert_eq!(written, if complaint.is_empty() { "written" } else { "" }, "{context}");
            let _ = fs::remove_file(home.file("out/new.txt"));
        }
        assert_eq!(fs::read_to_string(home.file("secret.txt")).unwrap(), "secret\n");
        assert_eq!(fs::read_to_string(home.file("in/a.txt")).unwrap(), "inside\n");
    }

    // Over the protocol, the hint is in the result.
    let mut server = serve(&home, &[], &[guest("cli-clap")]);
    let denied = ran(&mut server, "depot_cat", &json!({"args": {"file": [absolute("in/a.txt")]}}));
    assert!(
        denied["hint"].as_str().unwrap().contains(&full("`--allow-read=ROOT/in`")),
        "{denied}"
    );
    server.close_well();
}

/// Following a hint gives access.
#[test]
fn the_hint_for_a_denied_file_helps() {
    let home = Home::new();
    home.write("in/sub/a.txt", "inside\n");
    let absolute = home.file("in/sub/a.txt").canonicalize().unwrap();
    for program in [DEPOT, LINES].concat() {
        for path in [absolute.to_str().unwrap(), "in/sub/a.txt", "./in/sub/a.txt"] {
            let tool = if program.starts_with("cli-clap") { "cat" } else { "lines" };
            let file = format!("file={}", json!([path]));
            let denied = call(&home, &guest(program), &[tool, &file]);
            assert_eq!(denied.code, 1);
            let hint = denied.stderr.lines().find(|line| line.starts_with("hint: ")).unwrap();
            let flag = hint.split('`').find(|part| part.starts_with("--allow-read=")).unwrap();
            let allowed = call(&home, &guest(program), &[tool, &file, flag]);
            assert_eq!(
                (allowed.code, allowed.stdout.as_str()),
                (0, "inside\n"),
                "{program} {path} {flag}: {}",
                allowed.stderr
            );
        }
    }
}

#[test]
fn what_cannot_be_granted_is_refused_at_the_start() {
    let home = Home::new();
    home.write("in/a.txt", "inside\n");
    fs::create_dir(home.file("out")).unwrap();
    for (grants, part) in [
        (
            &["--allow-read=nowhere"][..],
            "the directory `nowhere` cannot be granted: No such file or directory",
        ),
        (
            &["--allow-write=in/a.txt"],
            "`in/a.txt` cannot be granted: it is no directory\nhint: ",
        ),
        (
            &["--allow-read=in:/x", "--allow-read=out:/x"],
            "two different directories are granted as `/x`\nhint: ",
        ),
        (&["--allow-read="], ""),
        (&["--allow-read=in:"], ""),
    ] {
        for command in ["serve", "call"] {
            let mut host = home.host(&[command]);
            host.arg(guest("cli-warns")).args(grants).current_dir(home.file(""));
            if command == "call" {
                host.arg("warns");
            }
            let refused = finish(host.stdin(std::process::Stdio::null()));
            assert_eq!(
                (refused.code, refused.stdout.as_str()),
                (2, ""),
                "{command} {grants:?}: {}",
                refused.stderr
            );
            assert!(
                refused.stderr.contains(part) && refused.stderr.starts_with("error: "),
                "{}",
                refused.stderr
            );
        }
    }
}

/// A description beside a program completes what its help says.
#[test]
fn a_description_completes_the_help() {
    let home = Home::new();
    let program = copy(&home, "cli-clap-module", "depot");
    let before = listed(&home, &[], &program);
    home.write(
        "depot.cli.json",
        json!({"command": {"name": "depot", "commands": [
            {"name": "list", "title": "All notes", "effect": "read", "openWorld": false,
             "output": {"format": "json", "force": ["--format=json"], "schema": {
                "type": "array", "items": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}}},
             "flags": [{"names": ["--filter"], "type": "json", "jsonschema": {"type": "object", "additionalProperties": false, "properties": {"notebook": {"type": "string"}}}}]},
            {"name": "add", "effect": "write", "flags": [{"names": ["--expires"], "type": "duration"}]},
            {"name": "remote", "commands": [
                {"name": "remove", "effect": "destructive", "idempotent": true},
                {"name": "add", "flags": [{"names": ["--address"], "type": "ip"}]}]},
            {"name": "exec", "hidden": true},
            {"name": "count", "summary": "Counts", "output": {"format": "text"}},
            {"name": "tag", "flags": [{"names": ["--sort"], "hidden": true}]},
        ]}})
        .to_string(),
    );
    let tools = listed(&home, &[], &program);
    let mut expected: BTreeSet<&str> = before.keys().map(String::as_str).collect();
    expected.remove("depot_exec");
    assert_eq!(names(&tools), Vec::from_iter(expected));
    assert_eq!(inspected(&home, &program)["commandsFrom"], "both");

    assert_eq!(tools["depot_list"]["title"], "All notes");
    assert!(tools["depot_count"]["description"].as_str().unwrap().contains("Counts"));
    for (tool, annotations) in [
        (
            "depot_list",
            json!({"readOnlyHint": true, "destructiveHint": false, "openWorldHint": false}),
        ),
        ("depot_add", json!({"readOnlyHint": false, "destructiveHint": false})),
        (
            "depot_remote_remove",
            json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true}),
        ),
        ("depot_echo", json!(null)),
    ] {
        assert_eq!(tools[tool]["annotations"], annotations, "{tool}");
    }
    let flags = |tool: &str| &tools[tool]["inputSchema"]["properties"]["flags"]["properties"];
    assert!(flags("depot_list").get("format").is_none(), "it is forced");
    assert!(flags("depot_tag").get("sort").is_none(), "it is hidden");
    assert!(flags("depot_add")["expires"]["pattern"].is_string());
    assert_eq!(flags("depot_list")["filter"]["properties"]["notebook"]["type"], "string");
    // What it says nothing about is as before.
    for tool in ["depot_echo", "depot_cat", "depot_tag_rename"] {
        assert_eq!(tools[tool], before[tool]);
    }

    let mut server = serve(&home, &[], std::slice::from_ref(&program));
    let filtered = ran(&mut server, "depot_list", &json!({"flags": {"filter": {"notebook": "work"}}}));
    assert_eq!(filtered["json"][0]["title"], "Call Ada");
    assert!(
        ran(&mut server, "depot_count", &json!({})).get("json").is_none(),
        "text is never parsed"
    );
    for (tool, arguments, part) in [
        (
            "depot_list",
            json!({"flags": {"filter": {"notebok": "work"}}}),
            "$.flags.filter: ",
        ),
        ("depot_list", json!({"flags": {"filter": "work"}}), "$.flags.filter: "),
        ("depot_list", json!({"flags": {"format": "yaml"}}), "there is no `format`"),
        (
            "depot_add",
            json!({"flags": {"notebook": "n", "expires": "soon"}, "args": {"title": "t"}}),
            "$.flags.expires: expected a duration",
        ),
        (
            "depot_remote_add",
            json!({"flags": {"address": "nowhere"}, "args": ["a", "b"]}),
            "$.flags.address: expected an IP address",
        ),
    ] {
        let error = server.call_error(tool, &arguments);
        assert!(error.contains(part), "{error}");
    }
    server.close_well();
}

/// Where everything is said already, the program is not run: not even one that would never end.
#[test]
fn a_complete_description_is_all_there_is() {
    let home = Home::new();
    let program = copy(&home, "cli-loop", "loop");
    let description = json!({"complete": true, "command": {"name": "spin", "summary": "Spins", "args": [],
        "flags": [{"names": ["--fast"], "type": "bool"}]}});
    home.write("loop.cli.json", description.to_string());
    let tools = listed(&home, &[], &program);
    let report = inspected(&home, &program);
    assert_eq!(report["commandsFrom"], "description");
    assert_eq!(report["notes"], json!([]), "it would say that it never answered");
    assert_eq!(names(&tools), ["spin"]);
    assert_eq!(
        shapes(&tools["spin"]["inputSchema"]["properties"]["flags"]),
        ["fast: boolean"]
    );
    let report = inspected(&home, &program);
    assert_eq!(
        (&report["commandsFrom"], &report["notes"]),
        (&json!("description"), &json!([]))
    );

    let kdl = copy(&home, "cli-clap-module", "usage");
    home.write(
        "usage.usage.kdl",
        "bin \"depot\"\nsubcommand_required #true\nabout \"Notes\"\nflag \"-v --verbose\" count=#true global=#true help=\"Say more\"\n\
         cmd \"echo\" help=\"Echoes\" {\n  flag \"-l --loud\" help=\"Loud\"\n  flag \"--item <ITEM>\" var=#true\n  arg \"[word]\" var=#true\n}\n\
         cmd \"fail\" help=\"Fails\" {\n  flag \"--code <N>\" required=#true\n}\ncmd \"bytes\" hide=#true\n",
    );
    let tools = listed(&home, &[], &kdl);
    assert_eq!(names(&tools), ["depot_echo", "depot_fail"]);
    assert_eq!(inspected(&home, &kdl)["commandsFrom"], "description");
    let flags: BTreeSet<String> = shapes(&tools["depot_echo"]["inputSchema"]["properties"]["flags"])
        .into_iter()
        .collect();
    assert_eq!(
        flags,
        ["item: [string]", "loud: boolean", "verbose: count"]
            .map(str::to_owned)
            .into()
    );
    let mut server = serve(&home, &[], &[kdl]);
    let words = echoed(
        &mut server,
        &json!({"flags": {"loud": true, "verbose": 1, "item": ["a"]}, "args": {"word": ["-x"]}}),
    );
    let words: BTreeSet<&str> = words.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(words, ["depot", "echo", "--loud", "--verbose", "--item=a", "--", "-x"].into());
    server.close_well();
}

#[test]
fn a_description_can_be_written_kept_and_embedded() {
    let home = Home::new();
    let program = copy(&home, "cli-clap", "depot");
    let path = program.to_str().unwrap();
    let inferred = listed(&home, &[], &program);
    let described = home.run(&["describe", path]);
    assert_eq!((described.code, described.stderr.as_str()), (0, ""));
    let kept = home.file("depot.cli.json");
    assert_eq!(home.run(&["describe", path, "-o", kept.to_str().unwrap()]).code, 0);
    assert_eq!(fs::read_to_string(&kept).unwrap(), described.stdout);
    // It says what is known already, and again when it is asked for what it has become.
    assert_eq!(listed(&home, &[], &program), inferred);
    assert_eq!(home.run(&["describe", path]).stdout, described.stdout);

    // Corrected by hand, and put into the program.
    let mut description: Value = serde_json::from_str(&described.stdout).unwrap();
    let commands = description["command"]["commands"].as_array_mut().unwrap();
    commands.retain(|command| command["name"] == "echo" || command["name"] == "fail");
    description["complete"] = true.into();
    let corrected = home.write("corrected.cli.json", description.to_string());
    fs::remove_file(&kept).unwrap();
    for _ in 0..2 {
        let embedded = home.run(&["describe", path, "--embed", corrected.to_str().unwrap()]);
        assert_eq!((embedded.code, embedded.stdout.as_str()), (0, ""), "{}", embedded.stderr);
        assert_eq!(names(&listed(&home, &[], &program)), ["depot_echo", "depot_fail"]);
    }
    let size = fs::metadata(&program).unwrap().len();
    assert!(
        size < test_guests::bytes("cli-clap").unwrap().len() as u64 + description.to_string().len() as u64 + 100,
        "{size}"
    );
    let elsewhere = home.file("elsewhere/other.wasm");
    fs::create_dir(elsewhere.parent().unwrap()).unwrap();
    fs::copy(&program, &elsewhere).unwrap();
    assert_eq!(names(&listed(&home, &[], &elsewhere)), ["depot_echo", "depot_fail"]);
    assert_eq!(
        call(&home, &elsewhere, &["echo", "loud=true"]).stdout,
        "[\"depot\",\"echo\",\"--loud\"]\n"
    );
    // What lies beside it comes first.
    home.write(
        "depot.cli.json",
        json!({"complete": true, "command": {"name": "depot", "commands": [{"name": "bytes"}]}}).to_string(),
    );
    assert_eq!(names(&listed(&home, &[], &program)), ["depot_bytes"]);

    let before = fs::read(&program).unwrap();
    for wrong in [
        home.write("wrong.cli.json", "{\"comand\": {}}"),
        home.file("missing.cli.json"),
        home.write("wrong.usage.kdl", "cmd {{{"),
    ] {
        let refused = home.run(&["describe", path, "--embed", wrong.to_str().unwrap()]);
        assert_eq!(refused.code, 2);
        assert_readable(&refused.stderr);
        assert!(fs::read(&program).unwrap() == before);
    }
}

#[test]
fn a_wrong_description_is_told_and_ignored() {
    let home = Home::new();
    let program = copy(&home, "cli-warns", "warns");
    let right = listed(&home, &[], &program);
    for (description, part) in [
        ("{", "not JSON"),
        ("[]", "it must be an object"),
        ("{\"command\": {\"name\": \"warns\", \"flgs\": []}}", "unknown key `flgs`"),
        (
            "{\"command\": {\"name\": \"warns\", \"flags\": [{\"names\": [\"json\"]}]}}",
            "`json` is no spelling of a flag",
        ),
        (
            "{\"command\": {\"name\": \"warns\", \"output\": {\"schema\": {\"type\": 7}}}}",
            "not a JSON Schema",
        ),
        ("{\"command\": {\"name\": \"-rf /\"}}", "is no name for a command"),
    ] {
        let file = home.write("warns.cli.json", description);
        let told = finish(home.host(&["tools"]).arg(&program));
        assert_eq!(told.code, 0);
        assert!(
            told.stderr.contains(part) && told.stderr.contains(file.to_str().unwrap()),
            "{}",
            told.stderr
        );
        assert_eq!(listed(&home, &[], &program), right);
        let report = inspected(&home, &program);
        assert_eq!(report["commandsFrom"], "help");
        assert!(report["warnings"][0].as_str().unwrap().contains(part), "{report}");
    }
}

#[test]
fn output_is_parsed_as_the_description_says() {
    let home = Home::new();
    let program = copy(&home, "cli-clap-module", "depot");
    let row = |priority: Value| json!({"title": "Call Ada", "notebook": "work", "pinned": true, "priority": priority});
    let schema = json!({"type": "array", "items": {"type": "object", "required": ["title"]}});
    let wrong_schema = json!({"type": "array", "items": {"type": "object", "properties": {"title": {"type": "integer"}}}});
    let cases = [
        (
            json!({"format": "json", "force": ["--format=json"]}),
            Ok(json!([row(json!(2))])),
        ),
        (
            json!({"format": "jsonl", "force": ["--format=json-lines"], "schema": schema}),
            Ok(json!([row(json!(2))])),
        ),
        (
            json!({"format": "yaml", "force": ["--format=yaml"], "schema": schema}),
            Ok(json!([row(json!(2))])),
        ),
        (
            json!({"format": "table", "force": ["--format=table"], "schema": schema}),
            Err(""),
        ),
        (
            json!({"format": "table"}),
            Ok(json!([{"TITLE": "Call Ada", "NOTEBOOK": "work", "PRIORITY": "2"}])),
        ),
        (
            json!({"schema": schema, "force": ["--format=json"]}),
            Ok(json!([row(json!(2))])),
        ),
        (
            json!({"format": "json", "force": ["--format=yaml"]}),
            Err("stdout is no JSON"),
        ),
        (
            json!({"format": "jsonl", "force": ["--format=table"]}),
            Err("line 1 of stdout is no JSON"),
        ),
        (
            json!({"format": "json", "force": ["--format=json"], "schema": wrong_schema}),
            Err("stdout is not as the schema says at /0/title"),
        ),
        (
            json!({"format": "json", "force": ["--format=json-lines"], "schema": {"type": "array"}}),
            Err("stdout is not as the schema says"),
        ),
    ];
    for (output, expected) in cases {
        let description = json!({"command": {"name": "depot", "commands": [{"name": "list", "output": output}]}});
        home.write("depot.cli.json", description.to_string());
        let tools = listed(&home, &[], &program);
        let mut server = serve(&home, &[], std::slice::from_ref(&program));
        let answer = server.call("depot_list", &json!({"flags": {"limit": 1}}));
        assert_eq!(answer["isError"], false);
        let structured = &answer["structuredContent"];
        jsonschema::validate(&tools["depot_list"]["outputSchema"], structured).unwrap_or_else(|error| panic!("{error}: {answer}"));
        let ran = &structured["result"];
        match expected {
            Ok(json) => assert_eq!((&ran["json"], ran.get("jsonError")), (&json, None), "{output}"),
            Err(part) => {
                assert!(ran.get("json").is_none(), "{output}: {ran}");
                assert!(ran["jsonError"].as_str().unwrap().contains(part), "{output}: {ran}");
            }
        }
        server.close_well();
    }
    // A schema that is advertised is held to.
    let description =
        json!({"command": {"name": "depot", "commands": [{"name": "list", "output": {"format": "json", "schema": schema}}]}});
    home.write("depot.cli.json", description.to_string());
    let advertised = &listed(&home, &[], &program)["depot_list"]["outputSchema"];
    assert!(advertised.to_string().contains("\"required\":[\"title\"]"), "{advertised}");
}

#[test]
fn commands_and_flags_are_chosen_by_pattern() {
    let home = Home::new();
    let program = guest("cli-clap-module");
    let cases: [(&[&str], &[&str]); 6] = [
        (
            &["--commands", "remote *"],
            &["depot_remote_access_allow", "depot_remote_add", "depot_remote_remove"],
        ),
        (
            &["--commands", "tag *", "--commands", "!tag delete"],
            &["depot_tag", "depot_tag_rename"],
        ),
        (
            &["--commands", "depot list", "--commands", "b*"],
            &["depot_bytes", "depot_list"],
        ),
        (&["--commands=?????"], &["depot_bytes", "depot_count", "depot_write"]),
        (&["--commands", "app1*"], &["depot_app1_cmd", "depot_app1_cmd_0c32eac3"]),
        (&["--commands", "app1_cmd"], &["depot_app1_cmd"]),
    ];
    for (options, expected) in cases {
        assert_eq!(names(&listed(&home, options, &program)), expected, "{options:?}");
    }
    let all = listed(&home, &[], &program);
    let fewer = listed(&home, &["--commands", "!remote *", "--commands", "!tag *"], &program);
    assert_eq!(fewer.len(), all.len() - 6);

    let flags = |options: &[&str]| {
        let tools = listed(&home, options, &program);
        shapes(&tools["depot_echo"]["inputSchema"]["properties"]["flags"])
    };
    assert_eq!(
        flags(&["--flags", "loud", "--flags", "--item"]),
        ["loud: boolean", "item: [string]"]
    );
    assert_eq!(
        flags(&["--flags", "!*o*", "--flags", "!v"]),
        ["text: string", "number: number", "item: [string]", "dry_run: boolean"]
    );
    // What is left out cannot be set.
    let mut server = serve(
        &home,
        &["--flags", "!text", "--commands", "echo"],
        std::slice::from_ref(&program),
    );
    assert_eq!(server.tool_names(), ["depot_echo"]);
    let error = server.call_error("depot_echo", &json!({"flags": {"text": "x"}}));
    assert!(error.contains("there is no `text`"), "{error}");
    server.close_well();

    for (options, part) in [
        (
            ["--commands", "!delte *"],
            "`--commands '!delte *'` matches no command of `depot`",
        ),
        (["--flags", "!tokn"], "`--flags '!tokn'` matches no flag of `depot`"),
    ] {
        let warned = finish(home.host(&["tools"]).args(options).arg(&program));
        assert_eq!(warned.code, 0);
        assert!(warned.stderr.contains(part), "{}", warned.stderr);
    }
    let nothing = finish(home.host(&["tools", "--commands", "!*"]).arg(&program));
    assert_eq!((nothing.code, nothing.stdout.as_str()), (2, ""), "{}", nothing.stderr);
    assert_readable(&nothing.stderr);
}

#[test]
fn the_config_chooses_as_well() {
    let home = Home::new();
    let program = guest("cli-clap-module");
    let config = |text: &str| home.write("host.toml", text).to_str().unwrap().to_owned();
    let file = config(
        "[components.cli-clap-module]\ncommands = ['list', 'echo', 'tag *', '!tag delete']\nflags = ['!profile', '!verbose']\njson = true\n\
         [components.cli-clap-module.annotations.list]\nreadOnlyHint = true\ntitle = 'All notes'\n\
         [components.cli-clap-module.annotations.'tag *']\ndestructiveHint = false\n[components.other]\nbundle = true\n",
    );
    let tools = listed(&home, &["--config", &file], &program);
    assert_eq!(names(&tools), ["depot_echo", "depot_list", "depot_tag", "depot_tag_rename"]);
    let flags = shapes(&tools["depot_list"]["inputSchema"]["properties"]["flags"]);
    assert!(
        !flags
            .iter()
            .any(|flag| ["format", "profile", "verbose"].iter().any(|gone| flag.starts_with(gone))),
        "{flags:?}"
    );
    assert_eq!(tools["depot_list"]["annotations"]["readOnlyHint"], true);
    assert_eq!(tools["depot_list"]["title"], "All notes");
    assert_eq!(tools["depot_tag_rename"]["annotations"], json!({"destructiveHint": false}));
    assert!(tools["depot_echo"].get("annotations").is_none());
    // What both say counts.
    assert_eq!(
        names(&listed(&home, &["--config", &file, "--commands", "!echo"], &program)),
        ["depot_list", "depot_tag", "depot_tag_rename"]
    );
    let mut server = serve(&home, &["--config", &file], std::slice::from_ref(&program));
    let forced = ran(&mut server, "depot_list", &json!({"flags": {"limit": 1}}));
    assert_eq!(forced["json"][0]["title"], "Call Ada");
    server.close_well();

    // The one in the home directory is read unless another is named.
    fs::create_dir_all(home.directory()).unwrap();
    support::write(
        &home.directory().join("host.toml"),
        "[components.cli-clap-module]\nbundle = true\n",
    );
    assert_eq!(names(&listed(&home, &[], &program)), ["depot"]);
    assert_eq!(listed(&home, &["--config", &file], &program).len(), 4);
    let flat = config("[components.cli-clap-module]\nflat = true\ncommands = ['cat']\n");
    let tools = listed(&home, &["--config", &flat], &program);
    assert!(tools["depot_cat"]["inputSchema"]["properties"]["file"].is_object());

    for (text, parts) in [
        ("[components.x]\n\ncomands = []\n", &["line 3", "`comands`"][..]),
        ("[components.x]\nbundle = 'yes'\n", &["line 2", "boolean"]),
        ("[components.x.annotations.get]\nreadonly = true\n", &["line 2", "`readonly`"]),
        ("[component.x]\n", &["line 1", "`component`"]),
        ("[components.x\n", &["line 1"]),
    ] {
        let file = config(text);
        for command in ["tools", "serve", "inspect"] {
            let refused = finish(
                home.host(&[command, "--config", &file])
                    .arg(&program)
                    .stdin(std::process::Stdio::null()),
            );
            assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{text}: {}", refused.stderr);
            assert!(
                parts.iter().chain(&[file.as_str()]).all(|part| refused.stderr.contains(part)),
                "{}",
                refused.stderr
            );
            assert_readable(&refused.stderr);
        }
    }
    let missing = finish(home.host(&["tools", "--config", "/no/such/file"]).arg(&program));
    assert_eq!(missing.code, 2);
    assert_readable(&missing.stderr);
}

#[test]
fn a_bundle_is_one_tool() {
    let home = Home::new();
    for program in DEPOT {
        let tools = listed(&home, &["--bundle"], &guest(program));
        assert_eq!(names(&tools), ["depot"]);
        let tool = &tools["depot"];
        let commands = tool["inputSchema"]["properties"]["command"]["enum"].as_array().unwrap();
        assert_eq!(commands.len(), 17);
        for command in ["add", "remote add", "app1-cmd", "app1_cmd"] {
            assert!(commands.contains(&json!(command)), "{command}");
            assert!(tool["description"].as_str().unwrap().contains(&format!("\n- {command}")));
        }
        let mut server = serve(&home, &["--bundle"], &[guest(program)]);
        let argv = ran(
            &mut server,
            "depot",
            &json!({"command": "echo", "flags": {"store": "s", "loud": true}, "args": ["-x"]}),
        );
        assert_eq!(argv["json"], json!(["depot", "--store=s", "echo", "--loud", "--", "-x"]));
        let counted = ran(&mut server, "depot", &json!({"command": "count", "stdin": "a b"}));
        assert_eq!(counted["json"]["words"], 2);
        assert_eq!(
            ran(&mut server, "depot", &json!({"command": "fail", "flags": {"code": 9}}))["exitCode"],
            9
        );
        for (arguments, part) in [
            (json!({}), "$.command: is required"),
            (
                json!({"command": "ecko"}),
                "$.command: there is no such command; there is `echo`",
            ),
            (json!({"command": "echo --loud"}), "$.command: there is no such command"),
            (json!({"command": "remote"}), "$.command: there is no such command"),
            (
                json!({"command": "echo", "flags": {"append": true}}),
                "$.flags: there is no `append`",
            ),
            (json!({"command": "cat"}), "$.args.file: is required"),
        ] {
            let error = server.call_error("depot", &arguments);
            assert!(error.contains(part), "{error}");
        }
        server.close_well();
    }
    let chosen = listed(&home, &["--bundle", "--commands", "tag *"], &guest("cli-clap"));
    assert_eq!(
        chosen["depot"]["inputSchema"]["properties"]["command"]["enum"],
        json!(["tag", "tag rename", "tag delete"])
    );
}

#[test]
fn flat_inputs_stand_side_by_side() {
    let home = Home::new();
    let tools = listed(&home, &["--flat"], &guest("cli-clap"));
    let members: BTreeSet<String> = shapes(&tools["depot_cat"]["inputSchema"]).into_iter().collect();
    let expected = ["file!: [string]", "number: boolean"]
        .iter()
        .chain(&GLOBAL)
        .chain(&OF_THE_ROOT);
    assert_eq!(members, expected.map(|member| (*member).to_owned()).collect());
    let mut server = serve(&home, &["--flat"], &[guest("cli-clap")]);
    let arguments = json!({"word": ["--loud"], "text": "t", "dry_run": true});
    assert_eq!(
        echoed(&mut server, &arguments),
        json!(["depot", "--dry-run", "echo", "--text=t", "--", "--loud"])
    );
    assert_eq!(
        ran(&mut server, "depot_count", &json!({"words": true, "stdin": "a b"}))["json"],
        json!({"words": 2})
    );
    let error = server.call_error("depot_echo", &json!({"flags": {"loud": true}}));
    assert!(error.contains("there is no `flags`"), "{error}");
    server.close_well();
    // Where two have one name, they stay apart.
    let program = copy(&home, "cli-clap-module", "depot");
    let echo = json!({"name": "echo", "flags": [{"names": ["--text"]}], "args": [{"name": "text"}]});
    home.write(
        "depot.cli.json",
        json!({"complete": true, "command": {"name": "depot", "commands": [echo]}}).to_string(),
    );
    let tools = listed(&home, &["--flat"], &program);
    assert_eq!(
        tools["depot_echo"]["inputSchema"]["properties"]
            .as_object()
            .unwrap()
            .keys()
            .collect::<Vec<_>>(),
        ["flags", "args"]
    );
    let refused = finish(home.host(&["tools", "--flat", "--bundle"]).arg(&program));
    assert_eq!(refused.code, 2);
}

#[test]
fn annotations_and_definitions_go_over_the_wire() {
    let home = Home::new();
    let program = copy(&home, "cli-warns", "warns");
    let description = json!({"command": {"name": "warns", "effect": "read", "idempotent": true, "openWorld": false,
        "flags": [{"names": ["--purge"], "type": "bool", "effect": "destructive"}]}});
    home.write("warns.cli.json", description.to_string());
    let annotations = |options: &[&str]| {
        let mut server = serve(&home, options, std::slice::from_ref(&program));
        let listed = server.request("tools/list", &json!({}));
        server.close_well();
        let file = home.file("tools.json");
        let written = finish(home.host(&["tools", "-o"]).arg(&file).args(options).arg(&program));
        assert_eq!((written.code, written.stdout.as_str()), (0, ""), "{}", written.stderr);
        assert_eq!(
            listed["result"],
            serde_json::from_slice::<Value>(&fs::read(&file).unwrap()).unwrap()
        );
        listed["result"]["tools"][0]["annotations"].clone()
    };
    let hints = |read_only: bool, destructive: bool| json!({"readOnlyHint": read_only, "destructiveHint": destructive, "idempotentHint": true, "openWorldHint": false});
    assert_eq!(annotations(&[]), hints(false, true));
    // Without the flag that destroys, the command only reads.
    assert_eq!(annotations(&["--flags", "!purge"]), hints(true, false));
}

/// What the cache holds, and since when.
fn cache(home: &Home) -> Vec<(PathBuf, SystemTime)> {
    let mut files: Vec<_> = fs::read_dir(home.directory().join("cache"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|file| (file.clone(), fs::metadata(file).unwrap().modified().unwrap()))
        .collect()
}

/// A program is asked for its help once. This one never answers, so that it shows.
#[test]
fn a_second_start_runs_nothing() {
    let home = Home::new();
    let program = copy(&home, "cli-loop", "loop");
    let first = inspected(&home, &program);
    assert_eq!(first["notes"].as_array().unwrap().len(), 2, "{first}");
    // Asked again, it would be compiled again for lack of its code.
    for (file, _) in cache(&home) {
        if file.extension().is_some_and(|extension| extension == "cwasm") {
            fs::remove_file(file).unwrap();
        }
    }
    let before = cache(&home);
    assert_eq!(inspected(&home, &program), first);
    assert_eq!(cache(&home), before);
    // A description that comes, changes or goes is a reason to look again.
    let describe = |summary: &str| {
        home.write(
            "loop.cli.json",
            json!({"complete": true, "command": {"name": "loop", "summary": summary}}).to_string(),
        );
        listed(&home, &[], &program)["loop"]["description"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(describe("One"), "`loop`: One");
    assert_eq!(describe("Two"), "`loop`: Two");
    fs::remove_file(home.file("loop.cli.json")).unwrap();
    assert_eq!(inspected(&home, &program)["notes"], first["notes"]);
}

/// How little one start allows says nothing about the program, so the next one must not suffer from it.
#[test]
fn what_is_known_does_not_depend_on_the_limits_of_the_first_start() {
    let program = guest("cli-clap-module");
    let known = listed(&Home::new(), &[], &program);
    for limits in [["--max-output", "300"], ["--max-memory", "1MiB"], ["--timeout", "1ms"]] {
        let home = Home::new();
        let first = finish(home.host(&["call"]).args(limits).arg(&program).arg("count"));
        assert_ne!(first.code, 101, "{}", first.stderr);
        assert_eq!(names(&listed(&home, &[], &program)), names(&known), "{limits:?}");
        assert_eq!(listed(&home, &[], &program), known, "{limits:?}");
    }
}

#[test]
fn many_calls_at_once_know_nothing_of_each_other() {
    let home = Home::new();
    for program in DEPOT {
        let mut server = serve(&home, &[], &[guest(program), guest("cli-prompt")]);
        let start = |n: u64| match n % 3 {
            0 => (
                "depot_echo",
                json!({"args": {"word": [n.to_string()]}}),
                format!("[\"depot\",\"echo\",\"{n}\"]\n"),
            ),
            1 => ("cli_prompt", json!({"stdin": n.to_string()}), format!("Name? Hello, {n}!\n")),
            _ => (
                "depot_fail",
                json!({"flags": {"code": n % 200, "message": n.to_string()}}),
                String::new(),
            ),
        };
        let mut open = BTreeMap::new();
        for n in 0..300 {
            let (tool, arguments, stdout) = start(n);
            open.insert(server.start_call(tool, &arguments), (n, stdout));
        }
        while !open.is_empty() {
            let answer = server.receive();
            let (n, stdout) = open.remove(&answer["id"].as_u64().unwrap()).expect("one answer to each");
            let ran = &answer["result"]["structuredContent"]["result"];
            let expected = if stdout.is_empty() {
                (n % 200, format!("{n}\n"))
            } else {
                (0, String::new())
            };
            assert_eq!(
                (ran["exitCode"].as_u64(), ran["stderr"].as_str()),
                (Some(expected.0), Some(&*expected.1)),
                "{answer}"
            );
            assert_eq!(ran["stdout"], stdout, "{answer}");
        }
        server.close_well();
    }
}

#[test]
fn two_programs_with_the_same_commands_are_both_callable() {
    let home = Home::new();
    let mut server = serve(&home, &[], &DEPOT.map(guest));
    let names = server.tool_names();
    assert_eq!(names.len(), 34);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 34);
    let mut codes = Vec::new();
    for tool in names.iter().filter(|name| name.ends_with("depot_fail")) {
        // Clap's own code tells which of the two it is.
        codes.push((
            tool.as_str(),
            ran(&mut server, tool, &json!({"flags": {"code": 300}}))["exitCode"].clone(),
        ));
    }
    assert_eq!(codes, [("cli_clap_module_depot_fail", json!(2)), ("depot_fail", json!(1))]);
    server.close_well();
    // Programs beside components, too.
    let mut server = serve(&home, &[], &["every-type", "cli-warns", "cli-getopt"].map(guest));
    assert_eq!(ran(&mut server, "warns", &json!({}))["exitCode"], 0);
    assert_eq!(
        server.call("greet", &json!({"name": "you"}))["structuredContent"],
        json!({"result": "Hello, you!"})
    );
    server.close_well();
}

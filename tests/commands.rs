//! The commands as a person or a script uses them.

#![cfg(test)]

mod support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::{Finished, Home, assert_readable, finish, guest};

fn call(home: &Home, component: &str, arguments: &[&str]) -> Finished {
    finish(home.host(&["call"]).arg(guest(component)).args(arguments))
}

#[test]
fn call_prints_for_people_and_for_programs() {
    let home = Home::new();
    let cases: [(&str, &[&str], i32, &str, &str); 16] = [
        // Code 0: the result, text as it is and anything else as JSON.
        ("every-type", &["greet", "name=Ada"], 0, "Hello, Ada!\n", ""),
        (
            "every-type",
            &["greet", "name=Ada", "--json"],
            0,
            "{\"result\":\"Hello, Ada!\"}\n",
            "",
        ),
        ("every-type", &["greet", "name=7"], 0, "Hello, 7!\n", ""),
        ("every-type", &["greet", "name=a=b"], 0, "Hello, a=b!\n", ""),
        ("trap", &["divide", "a=84", "b=2"], 0, "42\n", ""),
        ("trap", &["divide", "--args", r#"{"a": 84, "b": 2}"#], 0, "42\n", ""),
        ("trap", &["divide", "--args", r#"{"a": 84, "b": 7}"#, "b=2"], 0, "42\n", ""),
        ("every-type", &["nothing"], 0, "", ""),
        (
            "every-type",
            &["test_every_type_echo_echo_result", r#"value={"ok": 7}"#],
            0,
            "7\n",
            "",
        ),
        (
            "every-type",
            &["echo-result", r#"value={"ok": 7}"#, "--json"],
            0,
            "{\"result\":{\"ok\":7}}\n",
            "",
        ),
        (
            "every-type",
            &["echo_u64", "value=18446744073709551615", "--json"],
            0,
            "{\"result\":\"18446744073709551615\"}\n",
            "",
        ),
        // Code 1: the tool failed.
        (
            "every-type",
            &["echo-result", r#"value={"err": "bad"}"#],
            1,
            "",
            "error: bad\n",
        ),
        (
            "every-type",
            &["echo-result", r#"value={"err": "bad"}"#, "--json"],
            1,
            "{\"result\":{\"err\":\"bad\"}}\n",
            "",
        ),
        (
            "trap",
            &["divide", "a=1", "b=0"],
            1,
            "",
            "error: the component trapped: wasm trap: integer divide by zero\n",
        ),
        ("every-type", &["greet"], 1, "", "error: $.name: missing; expected a string\n"),
        (
            "evil-17-infinite-loop",
            &["spin", "--timeout", "100ms"],
            1,
            "",
            "error: the call was stopped at its deadline of 100ms\nhint: allow more with `--timeout`\n",
        ),
    ];
    for (component, arguments, code, stdout, stderr) in cases {
        let finished = call(&home, component, arguments);
        assert_eq!(
            (finished.code, finished.stdout.as_str(), finished.stderr.as_str()),
            (code, stdout, stderr),
            "{arguments:?}"
        );
    }
}

/// Code 2: nothing was called.
#[test]
fn a_wrong_command_line_is_told() {
    let home = Home::new();
    let cases: [(&[&str], &[&str]); 9] = [
        (&["gret"], &["there is no tool `gret`; there is `greet`, `"]),
        (&["echo"], &["there is no tool `echo`; there is `"]),
        (&["greet", "nmae=x"], &["there is no argument `nmae`; there is `name`"]),
        (
            &["echo-mixed", "displayname=x"],
            &["there is no argument `displayname`; there is `display_name`, `"],
        ),
        (
            &["greet", "name"],
            &["`name` is no argument", "\nhint: write it as `name=value`"],
        ),
        (&["greet", "--args", "{"], &["`--args` is not JSON"]),
        (&["greet", "--args", "[1]"], &["`--args` must be a JSON object"]),
        (&["greet", "--args", "@no-such-file"], &["`no-such-file` could not be read"]),
        (&["greet", "--timeout", "soon"], &["`soon` is no span of time"]),
    ];
    for (arguments, parts) in cases {
        let finished = call(&home, "every-type", arguments);
        assert_eq!(
            (finished.code, finished.stdout.as_str()),
            (2, ""),
            "{arguments:?}: {}",
            finished.stderr
        );
        assert_readable(&finished.stderr);
        for part in parts {
            assert!(finished.stderr.contains(part), "no {part} in {}", finished.stderr);
        }
    }
    for arguments in [
        &[][..],
        &["call"],
        &["no-such-command"],
        &["serve", "--no-such-option", "x.wasm"],
    ] {
        assert_eq!(home.run(arguments).code, 2, "{arguments:?}");
    }
}

#[test]
fn arguments_come_from_a_file_or_from_stdin() {
    let home = Home::new();
    let file = home.write("arguments.json", r#"{"a": 84, "b": 2}"#);
    let from_file = call(&home, "trap", &["divide", "--args", &format!("@{}", file.display())]);
    assert_eq!(
        (from_file.code, from_file.stdout.as_str()),
        (0, "42\n"),
        "{}",
        from_file.stderr
    );
    let component = guest("trap");
    let from_stdin = home.run_with_stdin(
        &["call", component.to_str().unwrap(), "divide", "--args", "-"],
        "{\"a\": 84,\n\"b\": 2}\n",
    );
    assert_eq!(
        (from_stdin.code, from_stdin.stdout.as_str()),
        (0, "42\n"),
        "{}",
        from_stdin.stderr
    );
}

#[test]
fn tools_go_to_stdout_or_to_a_file() {
    let home = Home::new();
    let component = guest("documented");
    let component = component.to_str().unwrap();
    let printed = home.run(&["tools", component]);
    assert_eq!((printed.code, printed.stderr.as_str()), (0, ""));
    let file = home.file("tools.json");
    let written = home.run(&["tools", component, "-o", file.to_str().unwrap()]);
    assert_eq!((written.code, written.stdout.as_str(), written.stderr.as_str()), (0, "", ""));
    assert_eq!(fs::read_to_string(&file).unwrap(), printed.stdout);

    // What is printed is what a client gets.
    let listed: Value = serde_json::from_str(&printed.stdout).unwrap();
    let mut server = home.serve(&[], &[guest("documented")]);
    server.initialize();
    assert_eq!(server.request("tools/list", &json!({}))["result"], listed);
    server.close_well();
    for tool in listed["tools"].as_array().unwrap() {
        assert!(!tool["description"].as_str().unwrap().is_empty(), "{tool}");
        for schema in ["inputSchema", "outputSchema"] {
            let Some(schema) = tool.get(schema) else { continue };
            assert_eq!(schema["type"], "object");
            jsonschema::draft202012::meta::validate(schema).unwrap_or_else(|error| panic!("{error} in {schema}"));
        }
    }

    let refused = home.run(&["tools", component, "-o", home.file("no/such/folder.json").to_str().unwrap()]);
    assert_eq!(refused.code, 2);
    assert_readable(&refused.stderr);
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn inspect_has_the_promised_keys() {
    let home = Home::new();
    let report = |name: &str| -> Value {
        let finished = finish(home.host(&["inspect", "--json"]).arg(guest(name)));
        assert_eq!((finished.code, finished.stderr.as_str()), (0, ""), "{name}");
        serde_json::from_str(&finished.stdout).unwrap()
    };
    let documented = report("documented");
    let all = [
        "path",
        "sha256",
        "size",
        "kind",
        "docs",
        "exports",
        "leftOut",
        "offers",
        "imports",
        "unknownImports",
        "mayNeed",
        "notes",
        "warnings",
    ];
    assert_eq!(keys(&documented), all);
    assert_eq!(documented["docs"], "The library as its visitors see it.");
    assert_eq!(documented["size"], test_guests::bytes("documented").unwrap().len());
    let export = &documented["exports"][2];
    assert_eq!(keys(export), ["tool", "export", "signature", "docs"]);
    assert_eq!(export["tool"], "test_documented_shelves_find_book");
    assert_eq!(export["export"], "test:documented/shelves@0.1.0.find-book");

    // Without docs the keys of the docs are not there.
    let trap = report("trap");
    assert_eq!(
        keys(&trap),
        all.iter().copied().filter(|key| *key != "docs").collect::<Vec<_>>()
    );
    assert_eq!(keys(&trap["exports"][0]), ["tool", "export", "signature"]);

    let resource = report("needs-resource");
    assert_eq!(keys(&resource["leftOut"][0]), ["export", "reason"]);
    let needs = report("evil-14-env-dump");
    assert_eq!(keys(&needs["mayNeed"][0]), ["capability", "because"]);
    let capabilities: Vec<_> = needs["mayNeed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|need| &need["capability"])
        .collect();
    assert_eq!(capabilities, ["files", "environment variables"]);
    for name in ["needs-resource", "evil-14-env-dump", "every-type"] {
        let text = finish(home.host(&["inspect"]).arg(guest(name)));
        assert_eq!(text.code, 0);
        assert!(
            text.stdout.contains(report(name)["sha256"].as_str().unwrap()),
            "{}",
            text.stdout
        );
    }
}

/// What a newcomer types off the README, and what it says that comes of it: a command may go on in the next line, and an output that is not
/// shown to its end closes with `…`.
fn examples(page: &str) -> Vec<(String, String)> {
    let mut examples: Vec<(String, String)> = Vec::new();
    let blocks = page
        .split("```console\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    for block in blocks {
        let mut is_open = false;
        for line in block.lines() {
            let is_command = line.starts_with("$ ");
            if is_command {
                examples.push((line[2..].to_owned(), String::new()));
            }
            let (command, output) = examples.last_mut().unwrap();
            match (is_command, is_open) {
                (true, _) => {}
                (false, true) => *command += &format!("\n{line}"),
                (false, false) => *output += &format!("{line}\n"),
            }
            is_open = command.matches('\'').count() % 2 == 1;
        }
    }
    examples
}

#[cfg(unix)]
#[test]
fn the_readme_shows_what_is_printed() {
    let home = Home::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_here = |command: &str| {
        let words: Vec<&str> = command.split(' ').collect();
        matches!(words[..], ["host", "call" | "inspect" | "tools", file, ..] if root.join(file).exists())
    };
    let page = fs::read_to_string(root.join("README.md")).unwrap();
    let shown: Vec<_> = examples(&page).into_iter().filter(|(command, _)| is_here(command)).collect();
    assert!(shown.len() >= 7, "{shown:?}");
    for (command, output) in shown {
        let arguments = command.strip_prefix("host ").unwrap();
        let host = home.host(&[]);
        let mut shell = std::process::Command::new("sh");
        shell
            .arg("-c")
            .arg(format!("\"$0\" {arguments} 2>&1"))
            .arg(host.get_program());
        for (name, value) in host.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let printed = finish(shell.current_dir(root)).stdout;
        match output.strip_suffix("…\n") {
            Some(beginning) => assert!(printed.starts_with(beginning), "{command}\n{printed}"),
            None => assert_eq!(printed.trim_end(), output.trim_end(), "{command}"),
        }
    }
}

#[test]
fn embedded_docs_travel_with_the_component() {
    let home = Home::new();
    let wit = test_guests::folder().join("documented/wit");
    let tools = |component: &Path| {
        let finished = finish(home.host(&["tools"]).arg(component));
        assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
        finished.stdout
    };
    // Away from its WIT a component has no docs.
    let plain = home.write("away/documented.wasm", test_guests::bytes("documented").unwrap());
    assert!(!tools(&plain).contains("The comparison is exact."));

    let with_docs = home.file("elsewhere.wasm");
    let embed = |output: Option<&Path>| {
        let mut command = home.host(&["embed-docs"]);
        command.arg(&plain).arg("--wit").arg(&wit);
        if let Some(output) = output {
            command.arg("-o").arg(output);
        }
        let finished = finish(&mut command);
        assert_eq!((finished.code, finished.stdout.as_str()), (0, ""), "{}", finished.stderr);
    };
    embed(Some(&with_docs));
    assert!(!tools(&plain).contains("The comparison is exact."));
    // All that the WIT says beside the component, the component says alone.
    assert_eq!(tools(&with_docs), tools(&guest("documented")));
    // In place, and a second time: the docs are replaced, not added.
    embed(None);
    embed(None);
    assert_eq!(fs::read(&plain).unwrap(), fs::read(&with_docs).unwrap());
    let called = home.run(&["call", plain.to_str().unwrap(), "opening-hours", "weekday=1"]);
    assert_eq!((called.code, called.stdout.as_str()), (0, "9-18\n"));

    let before = fs::read(&plain).unwrap();
    for wrong in [
        test_guests::folder().join("every-type/wit"),
        home.file("missing"),
        home.write("bad.wit", "interface {"),
    ] {
        let refused = finish(home.host(&["embed-docs"]).arg(&plain).arg("--wit").arg(wrong));
        assert_eq!(refused.code, 2);
        assert_readable(&refused.stderr);
        assert_eq!(fs::read(&plain).unwrap(), before);
    }
}

/// How often a command says that it compiles.
fn compiles(home: &Home, arguments: &[&str]) -> usize {
    let finished = finish(
        home.host(&["call"])
            .arg(guest("every-type"))
            .args(arguments)
            .env("HOST_LOG", "info"),
    );
    assert_eq!(
        (finished.code, finished.stdout.as_str()),
        (0, "Hello, you!\n"),
        "{}",
        finished.stderr
    );
    finished.stderr.matches("compiling").count()
}

#[test]
fn a_second_start_compiles_nothing() {
    let home = Home::new();
    assert_eq!(compiles(&home, &["greet", "name=you"]), 1);
    assert_eq!(compiles(&home, &["greet", "name=you"]), 0);
    let mut server = support::Server::start(home.host(&["serve"]).arg(guest("every-type")).env("HOST_LOG", "info"));
    server.initialize();
    assert_eq!(server.call("greet", &json!({"name": "you"}))["isError"], false);
    let ended = server.close();
    assert!(!ended.stderr.contains("compiling"), "{}", ended.stderr);
    // Limits are no part of the code.
    assert_eq!(
        compiles(&home, &["greet", "name=you", "--timeout", "5s", "--max-memory", "64MiB"]),
        0
    );
    // All of it can be deleted at any time.
    fs::remove_dir_all(home.directory()).unwrap();
    assert_eq!(compiles(&home, &["greet", "name=you"]), 1);
}

#[test]
fn without_a_usable_home_everything_works_anew_each_time() {
    let home = Home::new();
    let file = home.write("a-file", "no directory");
    let unusable = ["/proc/no-such-place".into(), file.clone(), file.join("below")];
    for directory in unusable {
        let finished = finish(
            home.host(&["call"])
                .arg(guest("every-type"))
                .args(["greet", "name=you"])
                .env("HOST_HOME", &directory),
        );
        assert_eq!(
            (finished.code, finished.stdout.as_str()),
            (0, "Hello, you!\n"),
            "{}: {}",
            directory.display(),
            finished.stderr
        );
        assert!(
            finished.stderr.contains(&format!("{}", directory.display())),
            "{}",
            finished.stderr
        );
    }
}

#[cfg(unix)]
#[test]
fn a_home_that_cannot_be_written_or_trusted_is_not_used() {
    use std::os::unix::fs::PermissionsExt;

    let home = Home::new();
    assert_eq!(compiles(&home, &["greet", "name=you"]), 1);
    let cache = home.directory().join("cache");
    let set_mode = |mode| fs::set_permissions(&cache, fs::Permissions::from_mode(mode)).unwrap();
    // Whether what is there is still read, and whether this user may write nevertheless, makes no difference to the answer.
    set_mode(0o500);
    compiles(&home, &["greet", "name=you"]);
    set_mode(0o777);
    assert_eq!(compiles(&home, &["greet", "name=you"]), 1);
    let warned = finish(home.host(&["call"]).arg(guest("every-type")).args(["greet", "name=you"]));
    assert!(warned.stderr.contains("can be written by others"), "{}", warned.stderr);
    set_mode(0o700);
    assert_eq!(compiles(&home, &["greet", "name=you"]), 0);
}

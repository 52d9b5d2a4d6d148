//! Rows 14 and 15: a guest that wants to know what it was not told, and to tell what it was.

use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::{Home, Server, guest};
use crate::unharmed::{Host, good};

/// What is in the environment of the host and nobody's business.
const CANARY: &str = "canary-51f0aa97";

fn serve(home: &Home, options: &[&str], attacker: &str) -> Command {
    let mut command = home.host(&["serve"]);
    command
        .args(options)
        .args([good(home), guest(attacker)])
        .env("CANARY_VARIABLE", CANARY)
        .env("GIVEN_BY_NAME", "by-name");
    command
}

fn result(server: &mut Server, tool: &str, arguments: &Value) -> Value {
    server.call(tool, arguments)["structuredContent"]["result"].take()
}

#[test]
fn row_14_environment_leak() {
    let home = Home::new();
    let mut host = Host::start(&mut serve(&home, &[], "evil-14-env-dump"));
    // The host itself has it.
    let environment = std::fs::read(format!("/proc/{}/environ", host.server.pid())).unwrap();
    assert!(String::from_utf8_lossy(&environment).contains(CANARY), "the attack");
    host.survives(|server| {
        for tool in ["variables", "arguments", "preopens"] {
            assert_eq!(result(server, tool, &json!({})), json!([]), "{tool}");
        }
        assert_eq!(result(server, "initial_directory", &json!({})), Value::Null);
    });
    host.close_well();
}

#[test]
fn row_14_only_what_is_granted() {
    let home = Home::new();
    let options = [
        "--allow-env=GIVEN_BY_NAME",
        "--allow-env=GIVEN=by-value",
        "--allow-env=NOT_THERE",
    ];
    let mut host = Host::start(&mut serve(&home, &options, "evil-14-env-dump"));
    host.survives(|server| {
        let mut seen = result(server, "variables", &json!({}));
        let seen = seen.as_array_mut().unwrap();
        seen.sort_by_key(Value::to_string);
        assert_eq!(
            *seen,
            [
                json!({"val0": "GIVEN", "val1": "by-value"}),
                json!({"val0": "GIVEN_BY_NAME", "val1": "by-name"})
            ]
        );
        assert_eq!(result(server, "arguments", &json!({})), json!([]));
        assert_eq!(result(server, "preopens", &json!({})), json!([]));
    });
    host.close_well();
}

/// A secret that is written otherwise in JSON and by a panic, with a part that looks the same everywhere.
const SECRET: &str = "s3cr3t-\"canary-1c0ffee1\"-value";
const PART: &str = "canary-1c0ffee1";

#[test]
fn row_15_secret_in_a_result() {
    let home = Home::new();
    for (file, name) in [(good(&home), "good"), (guest("evil-15-secret-leak"), "leak")] {
        let path = file.to_str().unwrap().to_owned();
        let mut arguments = vec!["add", &path, "--name", name];
        if name == "leak" {
            arguments.push("--allow-secret=TOKEN");
        }
        let added = home.run(&arguments);
        assert_eq!(added.code, 0, "{added:?}");
    }
    let set = home.run_with_stdin(&["secret", "set", "leak", "TOKEN"], SECRET);
    assert_eq!(set.code, 0, "{set:?}");
    let mut command = home.host(&["serve", "good", "leak"]);
    command.env("HOST_LOG", "debug,guest=trace");
    let mut host = Host::start(&mut command);
    host.survives(|server| {
        for tool in [
            "variable",
            "config",
            "all_config",
            "in_error",
            "in_bytes",
            "in_record",
            "on_stdout",
            "on_stderr",
            "in_panic",
        ] {
            let arguments = if tool == "all_config" {
                json!({})
            } else {
                json!({"name": "TOKEN"})
            };
            let answer = server.call(tool, &arguments);
            let mut shown = answer.to_string();
            if let ("in_bytes", Some(bytes)) = (tool, answer["structuredContent"]["result"].as_str()) {
                shown += &String::from_utf8_lossy(&STANDARD.decode(bytes).unwrap());
            }
            assert!(!shown.contains(PART), "{tool}: {shown}");
            // A person has to see that something was there.
            let is_printed = matches!(tool, "on_stdout" | "on_stderr");
            assert!(is_printed || shown.contains("[secret TOKEN]"), "{tool}: {shown}");
        }
    });
    let ended = host.server.close();
    assert!(ended.status.success(), "{ended:?}");
    assert!(!ended.stderr.contains(PART), "in the log: {}", ended.stderr);
    assert!(
        ended.stderr.contains("[secret TOKEN]"),
        "what it prints is logged: {}",
        ended.stderr
    );
    // Neither does any command show it, nor is it in a file that others can read.
    for arguments in [
        &["info", "leak"][..],
        &["info", "leak", "--json"],
        &["list", "--json"],
        &["verify"],
    ] {
        let shown = home.run(arguments);
        assert!(!format!("{}{}", shown.stdout, shown.stderr).contains(PART), "{arguments:?}");
    }
}

/// Arguments are logged by their shape, if at all; so are lines that are no messages.
#[test]
fn row_15_arguments_in_the_log() {
    let home = Home::new();
    for format in ["text", "json"] {
        let mut command = serve(&home, &["--log", "debug", "--log-format", format], "every-type");
        let mut host = Host::start(&mut command);
        host.survives(|server| {
            let greeting = server.call("greet", &json!({"name": CANARY}));
            assert_eq!(greeting["structuredContent"]["result"], format!("Hello, {CANARY}!"));
            server.call_error("greet", &json!({"nmae": CANARY}));
            server.call_error("greet", &json!({"name": [CANARY]}));
            for line in [
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"greet","token":"{CANARY}""#),
                format!(r#"{{"token":"{CANARY}"}}"#),
                CANARY.to_owned(),
            ] {
                server.send_line(line);
                assert!(server.receive()["error"].is_object());
            }
        });
        let ended = host.server.close();
        assert!(ended.status.success() && ended.lines.is_empty(), "{:?}", ended.lines);
        assert!(!ended.stderr.contains(CANARY), "{format}: {}", ended.stderr);
    }
}

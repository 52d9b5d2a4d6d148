//! Guests that loop, trap, exit, eat memory and flood: each harms its own call only, and leaves nothing behind.

#![cfg(test)]

mod support;

use std::collections::HashMap;

use serde_json::{Value, json};
use support::{Home, Server, guest, text};

/// Each with what its error must name.
fn attacks() -> Vec<(&'static str, &'static str, Value, &'static str)> {
    vec![
        (
            "trap",
            "give_up",
            json!({}),
            "the component trapped: wasm trap: wasm `unreachable` instruction executed",
        ),
        ("exit", "exit_three", json!({}), "the component exited with code"),
        ("evil-16-memory-bomb", "bomb", json!({}), "memory limit of 64MiB"),
        (
            "evil-16-memory-bomb",
            "bomb_table",
            json!({}),
            "more elements in a table than it may have",
        ),
        ("evil-17-infinite-loop", "spin", json!({}), "deadline of "),
        ("evil-17-host-sleep", "sleep", json!({"seconds": 3600}), "deadline of "),
        (
            "evil-18-deep-recursion",
            "recurse",
            json!({"from": 0}),
            "call stack exhausted",
        ),
        ("evil-19-huge-result", "amplified", json!({}), "output limit of 8MiB"),
        (
            "evil-20-stdout-flood",
            "flood_stdout",
            json!({"mebibytes": 1 << 30}),
            "deadline of ",
        ),
        (
            "evil-20-stdout-flood",
            "flood_stderr",
            json!({"mebibytes": 1 << 30}),
            "deadline of ",
        ),
    ]
}

/// A server of all attackers and of a component that has done nothing to deserve them.
fn serve(home: &Home, timeout: &str) -> Server {
    let mut components: Vec<_> = attacks().into_iter().map(|(component, ..)| component).collect();
    components.dedup();
    components.push("every-type");
    let components: Vec<_> = components.into_iter().map(guest).collect();
    let mut server = home.serve(&["--timeout", timeout, "--max-memory", "64MiB"], &components);
    server.initialize();
    server
}

#[test]
fn each_attack_ends_with_its_cause_and_what_to_do() {
    let home = Home::new();
    let mut server = serve(&home, "1s");
    for (component, tool, arguments, cause) in attacks() {
        let error = server.call_error(tool, &arguments);
        assert!(error.contains(cause), "{component} {tool}: {error}");
        let limit = ["deadline", "memory limit", "output limit", "in a table"]
            .iter()
            .any(|limit| cause.contains(limit));
        assert_eq!(
            error.contains("hint: allow more with `"),
            limit,
            "{component} {tool}: {error}"
        );
        assert_eq!(
            server.call("add", &json!({"a": 2, "b": 40}))["structuredContent"],
            json!({"result": 42}),
            "after {tool}"
        );
    }
    server.close_well();
}

#[test]
fn a_flood_never_reaches_the_protocol_and_is_cut_in_the_log() {
    let home = Home::new();
    let mut server = Server::start(
        home.host(&["serve"])
            .arg(guest("evil-20-stdout-flood"))
            .env("HOST_LOG", "guest=info"),
    );
    server.initialize();
    for tool in ["flood_stdout", "flood_stderr"] {
        assert_eq!(
            server.call(tool, &json!({"mebibytes": 16}))["structuredContent"],
            json!({"result": 16})
        );
    }
    let ended = server.close();
    assert!(ended.lines.is_empty(), "{:?}", ended.lines);
    assert_eq!(ended.stderr.matches(" more bytes]").count(), 2);
    assert!(ended.stderr.len() < 1 << 20, "{} bytes of log", ended.stderr.len());
}

#[test]
fn calls_beside_attacks_answer_as_if_alone() {
    let home = Home::new();
    let mut server = serve(&home, "3s");
    for round in 0..2 {
        let mut expected: HashMap<u64, Result<String, &str>> = HashMap::new();
        for (_, tool, arguments, cause) in attacks() {
            expected.insert(server.start_call(tool, &arguments), Err(cause));
            for caller in ["Ada", "Grace", "Mary"] {
                let name = format!("{caller} {round} {tool}");
                expected.insert(
                    server.start_call("greet", &json!({"name": name})),
                    Ok(format!("Hello, {name}!")),
                );
            }
        }
        while !expected.is_empty() {
            let answer = server.receive();
            let result = &answer["result"];
            match expected.remove(&answer["id"].as_u64().unwrap()).expect("one answer to each") {
                Ok(greeting) => assert_eq!(result["structuredContent"], json!({"result": greeting}), "{answer}"),
                Err(cause) => {
                    assert_eq!(result["isError"], true, "{answer}");
                    // Where several run at once on few processors, the deadline may come first for any of them.
                    let error = text(result);
                    assert!(error.contains(cause) || error.contains("deadline of 3s"), "{cause}: {error}");
                }
            }
        }
    }
    server.close_well();
}

/// How many attacks are under way at a time.
#[cfg(target_os = "linux")]
const AT_ONCE: usize = 8;

#[cfg(target_os = "linux")]
#[test]
fn after_ten_thousand_attacks_everything_is_where_it_was() {
    use support::proc;

    /// What the process holds.
    #[derive(Debug, PartialEq)]
    struct Held {
        kibibytes: u64,
        files: usize,
        threads: u64,
    }
    let held = |server: &Server| Held {
        kibibytes: proc::status(server.pid(), "VmRSS"),
        files: proc::open_files(server.pid()),
        threads: proc::status(server.pid(), "Threads"),
    };

    let home = Home::new();
    let mut server = serve(&home, "20ms");
    // Code that is mapped keeps its file open, so all of it has to be there before anything is counted.
    server.call("greet", &json!({"name": "you"}));
    for tool in server.tool_names().iter().filter(|tool| tool.ends_with("add")) {
        server.call(tool, &json!({"a": 2, "b": 40}));
    }
    attack(&mut server, 500);
    let before = held(&server);
    attack(&mut server, 10_000);
    let after = held(&server);
    assert!(
        after.kibibytes <= before.kibibytes + (20 << 10),
        "{before:?} became {after:?}"
    );
    assert_eq!(after.files, before.files);
    // A thread that compiled may have gone meanwhile; none may have come.
    assert!(after.threads <= before.threads, "{before:?} became {after:?}");
    assert_eq!(
        server.call("add", &json!({"a": 2, "b": 40}))["structuredContent"],
        json!({"result": 42})
    );
    server.close_well();
}

/// Makes that many failing calls: mostly quick ones, and a few that last until their deadline.
#[cfg(target_os = "linux")]
fn attack(server: &mut Server, calls: usize) {
    let mut attacks = attacks();
    // What a refused result took stays with the allocator for a while, more or less of it: that would hide a leak.
    attacks.retain(|(.., cause)| !cause.contains("output"));
    let (slow, quick): (Vec<_>, Vec<_>) = attacks.into_iter().partition(|(.., cause)| cause.contains("deadline"));
    let mut open = HashMap::new();
    let mut started = 0;
    while started < calls || !open.is_empty() {
        while started < calls && open.len() < AT_ONCE {
            let kind = if started % 20 == 0 { &slow } else { &quick };
            let (_, tool, arguments, cause) = &kind[(started / 20 + started) % kind.len()];
            open.insert(server.start_call(tool, arguments), *cause);
            started += 1;
        }
        let answer = server.receive();
        let cause = open.remove(&answer["id"].as_u64().unwrap()).expect("one answer to each");
        let error = text(&answer["result"]);
        assert!(
            answer["result"]["isError"] == true && (error.contains(cause) || error.contains("deadline")),
            "{cause}: {answer}"
        );
    }
}

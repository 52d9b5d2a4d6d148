//! Rows 16–20: a guest that takes all there is: memory, time, stack, output.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::support::client::{ERAS, Era};
use crate::support::{Home, Server, guest, proc, text, wait_until};
use crate::unharmed::{Host, assert_good, good};

/// Fails unless the call ends with this cause and with what to do about it.
fn assert_limited(server: &mut Server, tool: &str, arguments: &Value, cause: &str) {
    let error = server.call_error(tool, arguments);
    assert!(error.contains(cause), "{tool}: {error}");
    assert!(error.contains("hint: allow more with `"), "{tool}: {error}");
}

#[test]
fn row_16_memory_bomb() {
    let home = Home::new();
    let attackers = ["evil-16-memory-bomb", "evil-16-many-memories", "evil-16-http-hoard"];
    let mut host = Host::serve(&home, &["--max-memory", "64MiB"], &attackers);
    host.survives(|server| {
        assert_limited(server, "bomb", &json!({}), "memory limit of 64MiB");
        assert_limited(server, "bomb_table", &json!({}), "more elements in a table than it may have");
        // A hundred memories are too many before one of them has grown.
        server.call_error("evil_16_many_memories_add", &json!({"a": 2, "b": 40}));
        // What it hoards is outside of its memory, and goes with the call.
        server.call("hoard", &json!({"times": 1}));
        let sum = server.call("evil_16_memory_bomb_add", &json!({"a": 2, "b": 40}));
        assert_eq!(
            sum["structuredContent"],
            json!({"result": 42}),
            "the limit is one of a call, not of the component"
        );
    });
    host.close_well();
}

#[test]
fn row_16_handle_hoard() {
    let home = Home::new();
    let mut host = Host::serve(&home, &[], &["evil-16-handle-hoard"]);
    host.survives(|server| {
        let result = server.call("hoard", &json!({}));
        // It is refused the next one, or trapped for asking.
        let reached = result["structuredContent"]["result"].as_u64().unwrap_or_default();
        assert!(result["isError"] == true || reached < 100_000, "{result}");
        if result["isError"] == true {
            assert!(text(&result).contains("hint: "), "{result}");
        }
    });
    host.close_well();
}

#[test]
fn row_17_infinite_loop() {
    let home = Home::new();
    let attackers = ["evil-17-infinite-loop", "evil-17-start-loop", "evil-17-host-sleep"];
    let loops = [
        ("spin", json!({})),
        ("spin_in_realloc", json!({"text": "hi"})),
        ("spin_in_clean_up", json!({"a": 2, "b": 40})),
        ("evil_17_start_loop_add", json!({"a": 2, "b": 40})),
        ("sleep", json!({"seconds": 3600})),
    ];
    let mut host = Host::serve(&home, &["--timeout", "5s"], &attackers);
    // All of it is compiled before anybody has to be quicker than a deadline.
    for component in ["", "evil_17_infinite_loop_", "evil_17_host_sleep_"] {
        host.server.call(&format!("{component}add"), &json!({"a": 2, "b": 40}));
    }
    host.survives(|server| {
        let mut looping: HashSet<u64> = loops
            .iter()
            .map(|(tool, arguments)| server.start_call(tool, arguments))
            .collect();
        // Who comes later is answered first.
        for number in 0..20 {
            let id = server.start_call("add", &json!({"a": 2, "b": number}));
            let answer = server.receive();
            assert_eq!(answer["id"], id, "{answer}");
            assert_eq!(answer["result"]["structuredContent"], json!({"result": 2 + number}));
        }
        while !looping.is_empty() {
            let answer = server.receive();
            assert!(looping.remove(&answer["id"].as_u64().unwrap()), "{answer}");
            assert_eq!(answer["result"]["isError"], true, "{answer}");
            let error = text(&answer["result"]);
            assert!(
                error.contains("deadline of 5s") && error.contains("hint: allow more with `--timeout`"),
                "{error}"
            );
        }
    });
    host.close_well();
}

/// Counts as far as it is told.
const COUNTER: &str = r#"(component
    (core module $code
        (func (export "count") (param $to i64) (result i64)
            (local $at i64)
            (loop $on
                (local.set $at (i64.add (local.get $at) (i64.const 1)))
                (br_if $on (i64.lt_u (local.get $at) (local.get $to))))
            (local.get $at)))
    (core instance $guest (instantiate $code))
    (func (export "count") (param "to" u64) (result u64) (canon lift (core func $guest "count"))))"#;

/// A number that it takes days to count to.
const FAR: u64 = 1 << 52;

/// One call of a component at a time, and nothing but its client ends one: the next is answered only once the one before has ended.
const ONE_AT_A_TIME: [&str; 6] = ["--max-concurrent-calls", "1", "--timeout", "1h", "--max-cpu", "1h"];

/// Calls that were short run where requests are read, which saves a change of threads. The next one need not be short.
#[test]
fn row_17_a_call_that_was_always_short() {
    let home = Home::new();
    let counter = home.write("counter.wat", COUNTER);
    let mut host = Host::serve_files(&home, &ONE_AT_A_TIME, &[counter]);
    host.survives(|server| {
        let count = |server: &mut Server, to: u64| {
            let result = server.call("count", &json!({ "to": to }));
            assert_eq!(result["structuredContent"], json!({ "result": to }), "{result}");
        };
        for _ in 0..20 {
            count(server, 1);
        }
        let endless = server.start_call("count", &json!({ "to": FAR }));
        assert_eq!(server.request("ping", &json!({}))["result"], json!({}));
        assert_good(server);
        server.notify("notifications/cancelled", &json!({"requestId": endless}));
        count(server, 3);
    });
    host.close_well();
}

#[test]
fn row_17_a_call_that_was_always_short_over_http() {
    let home = Home::new();
    let components = [good(&home), home.write("counter.wat", COUNTER)];
    let server = home.serve_http(&ONE_AT_A_TIME, &components);
    for era in ERAS {
        let mut client = server.client(era);
        let mut other = server.client(Era::Initialize);
        for _ in 0..3 {
            for _ in 0..20 {
                assert_eq!(
                    client.call("count", json!({"to": 1}))["structuredContent"],
                    json!({"result": 1})
                );
            }
            let before = proc::cpu_ticks(server.pid());
            let endless = client.start("tools/call", json!({"name": "count", "arguments": {"to": FAR}}));
            wait_until("the guest computes", || proc::cpu_ticks(server.pid()) > before + 20);
            assert_eq!(other.result("ping", json!({})), json!({}));
            assert_eq!(
                client.call("add", json!({"a": 2, "b": 40}))["structuredContent"],
                json!({"result": 42})
            );
            if era == Era::Initialize {
                let cancelled = client.notify("notifications/cancelled", json!({"requestId": endless.id}));
                assert_eq!(cancelled.status, 202, "{cancelled:?}");
            }
            // Which is how the stateless era cancels.
            drop(endless);
            assert_eq!(
                client.call("count", json!({"to": 3}))["structuredContent"],
                json!({"result": 3})
            );
        }
    }
    server.close_well();
}

#[test]
fn row_18_deep_recursion() {
    let home = Home::new();
    let mut host = Host::serve(&home, &[], &["evil-18-deep-recursion"]);
    host.survives(|server| {
        let error = server.call_error("recurse", &json!({"from": 0}));
        assert!(error.contains("call stack exhausted"), "{error}");
    });
    host.close_well();
}

#[test]
fn row_19_huge_result() {
    let home = Home::new();
    let mut host = Host::serve(&home, &[], &["evil-19-huge-result"]);
    let attack = |server: &mut Server| {
        for tool in ["large_bytes", "large_text", "amplified"] {
            assert_limited(server, tool, &json!({}), "output limit of 8MiB");
        }
    };
    // The allocator keeps what a thread has freed for that thread, so each that guests run on must have had its turn before.
    for _ in 0..10 {
        attack(&mut host.server);
    }
    host.survives(attack);
    host.close_well();
}

#[test]
fn row_20_guest_stdout_flood() {
    let home = Home::new();
    let file = crate::unharmed::good(&home);
    let mut serve = home.host(&["serve"]);
    serve
        .args([file, guest("evil-20-stdout-flood")])
        .env("HOST_LOG", "guest=info");
    let mut host = Host::start(&mut serve);
    // Each line of theirs looks like an answer of ours; `Server` takes whatever is on stdout for one.
    host.survives(|server| {
        for tool in ["flood_stdout", "flood_stderr"] {
            let result = server.call(tool, &json!({"mebibytes": 128}));
            assert_eq!(result["structuredContent"], json!({"result": 128}));
        }
    });
    let ended = host.server.close();
    assert!(ended.status.success() && ended.lines.is_empty(), "{:?}", ended.lines.first());
    // Of 5 rounds, each cut, with a mark.
    assert_eq!(ended.stderr.matches(" more bytes]").count(), 10);
    assert!(ended.stderr.len() < 4 << 20, "{} bytes of log", ended.stderr.len());
}

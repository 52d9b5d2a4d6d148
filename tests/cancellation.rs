//! A call that its client has given up on: the guest stops, nothing is answered, and everything it held is free again.

#![cfg(test)]
#![cfg(target_os = "linux")]

mod support;

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use support::{Home, Server, guest, proc, wait_until};

/// No deadline ends a guest in these tests: only its client does.
const NO_DEADLINE: [&str; 2] = ["--timeout", "1h"];

fn cancel(server: &mut Server, id: u64) {
    server.notify(
        "notifications/cancelled",
        &json!({"requestId": id, "reason": "the person went home"}),
    );
}

fn wait_until_idle(server: &Server) {
    wait_until("the guest computes no more", || {
        let before = proc::cpu_ticks(server.pid());
        thread::sleep(Duration::from_millis(300));
        proc::cpu_ticks(server.pid()) - before <= 1
    });
}

fn assert_works(server: &mut Server) {
    assert_eq!(
        server.call("add", &json!({"a": 2, "b": 40}))["structuredContent"],
        json!({"result": 42})
    );
}

/// A guest that computes for ever, wherever it does so, computes no more.
#[test]
fn cancelling_stops_the_guest() {
    let calls: [(&str, &str, Value); 5] = [
        ("evil-17-infinite-loop", "spin", json!({})),
        ("evil-17-infinite-loop", "spin_in_realloc", json!({"text": "hi"})),
        ("evil-17-infinite-loop", "spin_in_clean_up", json!({"a": 2, "b": 40})),
        ("evil-20-stdout-flood", "flood_stdout", json!({"mebibytes": 1 << 30})),
        ("async-export", "yield_forever", json!({})),
    ];
    let home = Home::new();
    for (component, tool, arguments) in calls {
        let mut server = home.serve(&NO_DEADLINE, &[guest(component)]);
        server.initialize();
        assert_works(&mut server);
        let before = proc::cpu_ticks(server.pid());
        let id = server.start_call(tool, &arguments);
        wait_until("the guest computes", || proc::cpu_ticks(server.pid()) > before + 20);
        cancel(&mut server, id);
        wait_until_idle(&server);
        // The next answer is the next call's, and there is none after it.
        assert_works(&mut server);
        server.close_well();
    }
}

#[test]
fn cancelling_stops_a_guest_that_is_still_starting() {
    let home = Home::new();
    let mut server = home.serve(&NO_DEADLINE, &["evil-17-infinite-loop", "evil-17-start-loop"].map(guest));
    server.initialize();
    assert_works(&mut server);
    let before = proc::cpu_ticks(server.pid());
    let id = server.start_call("evil_17_start_loop_add", &json!({"a": 2, "b": 40}));
    wait_until("the guest computes", || proc::cpu_ticks(server.pid()) > before + 20);
    cancel(&mut server, id);
    wait_until_idle(&server);
    assert_works(&mut server);
    server.close_well();
}

/// More calls than may run at a time: what waited for its turn is cancelled as well, and all turns are free again.
#[test]
fn cancelled_calls_give_back_their_turns() {
    let home = Home::new();
    let mut server = home.serve(&NO_DEADLINE, &[guest("evil-17-host-sleep")]);
    server.initialize();
    for _ in 0..3 {
        let ids: Vec<u64> = (0..200)
            .map(|_| server.start_call("sleep", &json!({"seconds": 3600})))
            .collect();
        for id in ids {
            cancel(&mut server, id);
        }
        assert_works(&mut server);
    }
    server.close_well();
}

#[test]
fn a_stateless_client_can_cancel_too() {
    let home = Home::new();
    let mut server = home.serve(&NO_DEADLINE, &[guest("evil-17-infinite-loop")]);
    let call = |id: u64, tool: &str, arguments: Value| {
        let meta =
            json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": meta}})
    };
    server.send(&call(1, "spin", json!({})));
    wait_until("the guest computes", || proc::cpu_ticks(server.pid()) > 50);
    cancel(&mut server, 1);
    wait_until_idle(&server);
    server.send(&call(2, "add", json!({"a": 2, "b": 40})));
    let answer = server.receive();
    assert_eq!(
        (&answer["id"], &answer["result"]["structuredContent"]["result"]),
        (&json!(2), &json!(42)),
        "{answer}"
    );
    server.close_well();
}

#[test]
fn a_client_that_leaves_ends_the_server_whatever_runs() {
    let home = Home::new();
    let components = ["evil-17-infinite-loop", "evil-17-host-sleep"].map(guest);
    let mut server = home.serve(&NO_DEADLINE, &components);
    server.initialize();
    assert_works(&mut server);
    let before = proc::cpu_ticks(server.pid());
    server.start_call("spin", &json!({}));
    server.start_call("sleep", &json!({"seconds": 3600}));
    wait_until("the guest computes", || proc::cpu_ticks(server.pid()) > before + 20);
    server.close_well();
}

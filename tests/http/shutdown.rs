//! A server that is asked to end lets nobody in any more, finishes what runs, and ends well.

use serde_json::json;

use crate::numbers::running;
use crate::support::client::{ERAS, Era};
use crate::support::{Home, wait_until};
use crate::{assert_adds, serve};

#[test]
fn running_calls_are_finished() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let mut calls = Vec::new();
    for era in ERAS {
        let mut client = server.client(era);
        for seconds in [3, 5] {
            let meta = json!({"progressToken": "running"});
            let params = json!({"name": "sleep", "arguments": {"seconds": seconds}, "_meta": meta});
            let mut call = client.start("tools/call", params);
            call.wait_until_it_runs();
            calls.push((seconds, call));
        }
    }
    // Such as wait for nothing in particular hold nobody up.
    let idle = server.connect();
    let streams = ERAS.map(|era| server.client(era).listen());

    server.terminate();
    wait_until("nobody listens", || server.refuses());
    for (seconds, call) in calls {
        let answer = call.answer();
        assert_eq!(answer["result"]["structuredContent"], json!({"result": seconds}), "{answer}");
    }
    idle.closed();
    for mut stream in streams {
        // A subscription has an answer, and what was open until now ends with it.
        while let Some(message) = stream.event() {
            assert!(message.get("result").is_some(), "{message}");
        }
    }
    let ended = server.ended();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.lines.is_empty(), "{ended:?}");
}

/// Answers of which nothing was sent yet are answers too.
#[test]
fn a_call_that_streams_nothing_is_finished_too() {
    let home = Home::new();
    let server = serve(&home, &[]);
    assert_adds(&mut server.client(Era::Stateless));
    let mut calls: Vec<_> = ERAS
        .map(|era| {
            let params = json!({"name": "sleep", "arguments": {"seconds": 4}});
            server.client(era).start("tools/call", params)
        })
        .into();
    wait_until("both are under way", || running(&server) == 2.0);
    server.terminate();
    for call in &mut calls {
        let answer = call.connection.answer();
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(
            answer.message()["result"]["structuredContent"],
            json!({"result": 4}),
            "{answer:?}"
        );
    }
    let ended = server.ended();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}

#[test]
fn who_is_asked_twice_waits_for_nothing() {
    let home = Home::new();
    let server = serve(&home, &["--timeout", "1h"]);
    let meta = json!({"progressToken": "endless"});
    let params = json!({"name": "sleep", "arguments": {"seconds": 3600}, "_meta": meta});
    let mut call = server.client(Era::Stateless).start("tools/call", params);
    call.wait_until_it_runs();
    server.terminate();
    wait_until("nobody listens", || server.refuses());
    server.terminate();
    server.ended();
}

#[test]
fn a_server_that_nobody_asked_anything_ends_at_once() {
    let home = Home::new();
    let server = serve(&home, &[]);
    assert!(server.said().contains(&server.url), "{}", server.said());
    server.close_well();
}

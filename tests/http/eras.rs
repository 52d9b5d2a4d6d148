//! Both eras at one address.

use std::fs;

use serde_json::{Value, json};

use crate::support::client::{CHANGED, ERAS, Era};
use crate::support::http::{METHOD, NAME, Request, SESSION, STATELESS_VERSION, VERSION, initialize, stateless, stateless_call};
use crate::support::{Home, guest};
use crate::{assert_adds, assert_serves, good, is_42, serve};

#[test]
fn a_session_of_every_version_lists_and_calls() {
    let home = Home::new();
    let server = serve(&home, &[]);
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let opened = server.ask(&Request::post(initialize(version, &json!({})).to_string()));
        assert!(opened.status == 200 && opened.is_events(), "{opened:?}");
        let session = opened.header(SESSION).expect("a session");
        assert!(
            session.bytes().all(|byte| byte.is_ascii_graphic()) && session.len() < 8 << 10,
            "{session}"
        );
        let result = &opened.message()["result"];
        assert_eq!(result["protocolVersion"], version, "{result}");
        assert_eq!(result["capabilities"]["tools"]["listChanged"], true, "{result}");
        assert_eq!(result["serverInfo"]["name"], "host", "{result}");
        assert!(result.get("resultType").is_none(), "{result}");

        let post = |message: Value| {
            server.ask(
                &Request::post(message.to_string())
                    .with(SESSION, session)
                    .with(VERSION, version),
            )
        };
        let ready = post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!((ready.status, ready.text().as_str()), (202, ""));
        let listed = post(json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list", "params": {}}));
        assert!(listed.status == 200 && listed.is_events(), "{listed:?}");
        let message = listed.message();
        assert_eq!(
            (&message["id"], &message["result"]["tools"][0]["name"]),
            (&json!("list"), &json!("add")),
            "{message}"
        );
        let params = json!({"name": "add", "arguments": {"a": 2, "b": 40}});
        let called = post(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
        let message = called.message();
        assert!(called.status == 200 && is_42(&message), "{message}");
        assert!(message["result"].get("resultType").is_none(), "{message}");
        let pinged = post(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
        assert_eq!(pinged.message()["result"], json!({}), "{pinged:?}");
    }
    server.close_well();
}

/// Clients older than 2025-06-18 send no version with their requests.
#[test]
fn a_session_without_a_version_header_is_served() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let mut client = server.client(Era::Initialize);
    let message = client.message("tools/call", json!({"name": "add", "arguments": {"a": 2, "b": 40}}));
    let answer = server.ask(&client.post(&message).without(VERSION));
    assert!(answer.status == 200 && is_42(&answer.message()), "{answer:?}");
    server.close_well();
}

#[test]
fn a_stateless_request_stands_alone_and_is_answered_as_json() {
    let home = Home::new();
    let server = serve(&home, &[]);
    for (method, params) in [
        ("tools/call", json!({"name": "add", "arguments": {"a": 2, "b": 40}})),
        ("tools/list", json!({})),
        ("server/discover", json!({})),
    ] {
        let answer = server.client(Era::Stateless).request(method, params);
        assert!(answer.status == 200 && answer.is_json(), "{answer:?}");
        assert!(answer.header(SESSION).is_none(), "{answer:?}");
        let message = answer.message();
        assert_eq!(message["result"]["resultType"], "complete", "{message}");
    }
    server.close_well();
}

/// Whoever was told an id before may still send it: nothing is looked up by it.
#[test]
fn a_stateless_request_has_no_session_whatever_it_says() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let answer = server.ask(&good().with(SESSION, "there-is-none"));
    assert!(answer.status == 200 && is_42(&answer.message()), "{answer:?}");
    server.close_well();
}

#[test]
fn discover_tells_all_that_is_spoken() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let result = server.client(Era::Stateless).result("server/discover", json!({}));
    assert_eq!(
        result["supportedVersions"],
        json!(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]),
        "{result}"
    );
    assert_eq!(result["capabilities"]["tools"]["listChanged"], true, "{result}");
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "host",
        "{result}"
    );
    server.close_well();
}

/// Answers of every kind, one after the other, on a connection that is kept.
#[test]
fn one_connection_serves_both_eras_in_turn() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let mut session = server.client(Era::Initialize);
    let mut connection = server.connect();
    for number in 0..20 {
        for client in [&mut session, &mut server.client(Era::Stateless)] {
            let message = client.message("tools/call", json!({"name": "add", "arguments": {"a": 2, "b": number}}));
            let answer = connection.ask(&client.post(&message)).message();
            assert_eq!(answer["id"], message["id"]);
            assert_eq!(
                answer["result"]["structuredContent"],
                json!({"result": 2 + number}),
                "{answer}"
            );
        }
        assert_eq!(connection.ask(&Request::get("/healthz")).status, 200);
        assert_eq!(connection.ask(&Request::get("/nowhere")).status, 404);
        assert_eq!(connection.ask(&good().body("{")).status, 400);
    }
    server.close_well();
}

/// Requests that were sent before the first was answered are answered in order.
#[test]
fn requests_may_be_sent_ahead() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let mut connection = server.connect();
    let ahead: Vec<u8> = (0..10)
        .flat_map(|id| stateless(&stateless_call(id, "add", &json!({"a": 2, "b": id}))).bytes(server.address))
        .collect();
    connection.send_bytes(ahead).unwrap();
    for id in 0..10 {
        let message = connection.answer().message();
        assert_eq!(
            (&message["id"], &message["result"]["structuredContent"]["result"]),
            (&json!(id), &json!(2 + id)),
            "{message}"
        );
    }
    server.close_well();
}

#[test]
fn headers_of_the_stateless_era_must_say_what_the_body_says() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let cases = [
        ("no version", good().without(VERSION)),
        ("another version", good().with(VERSION, "2025-11-25")),
        ("no method", good().without(METHOD)),
        ("another method", good().with(METHOD, "tools/list")),
        ("no name", good().without(NAME)),
        ("another name", good().with(NAME, "sleep")),
    ];
    for (what, request) in cases {
        let answer = server.ask(&request);
        let message = answer.message();
        assert_eq!(
            (answer.status, &message["error"]["code"]),
            (400, &json!(-32020)),
            "{what}: {message}"
        );
        assert_eq!(message["id"], 7, "{what}: {message}");
    }
    assert_serves(&server);
    server.close_well();
}

#[test]
fn an_unknown_version_is_refused_with_those_that_are_known() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let mut message = stateless_call(7, "add", &json!({"a": 2, "b": 40}));
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let answer = server.ask(&stateless(&message).with(VERSION, "2099-01-01"));
    answer.assert_error(400, -32022, &json!(7));
    let data = &answer.message()["error"]["data"];
    assert_eq!(data["requested"], "2099-01-01", "{data}");
    assert!(
        data["supported"].as_array().unwrap().contains(&json!(STATELESS_VERSION)),
        "{data}"
    );

    // In a session there is nothing but the header that could be wrong.
    let mut client = server.client(Era::Initialize);
    let message = client.message("tools/list", json!({}));
    for wrong in ["2099-01-01", "1.0", "latest", ""] {
        let answer = server.ask(&client.post(&message).with(VERSION, wrong));
        assert_eq!(answer.status, 400, "{wrong}: {answer:?}");
    }
    assert_adds(&mut client);
    server.close_well();
}

#[test]
fn a_stateless_request_without_its_context_is_told_what_is_missing() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let mut message = stateless_call(7, "add", &json!({"a": 2, "b": 40}));
    message["params"].as_object_mut().unwrap().remove("_meta");
    server.ask(&stateless(&message)).assert_error(400, -32602, &json!(7));
    server.close_well();
}

#[test]
fn there_are_no_streams_and_no_sessions_to_end_in_the_stateless_era() {
    let home = Home::new();
    let server = serve(&home, &[]);
    for method in ["GET", "DELETE"] {
        let request = Request::new(method, "/mcp")
            .with("Accept", "text/event-stream")
            .with(VERSION, STATELESS_VERSION);
        let answer = server.ask(&request);
        assert_eq!(answer.status, 405, "{method}: {answer:?}");
        assert!(
            answer.header("Allow").is_some_and(|allowed| allowed.contains("POST")),
            "{answer:?}"
        );
    }
    server.close_well();
}

/// With `--watch`, over the stream of a session and over a subscription.
#[test]
fn clients_are_told_of_changes() {
    for era in ERAS {
        let home = Home::new();
        let folder = home.file("plugins");
        fs::create_dir(&folder).unwrap();
        fs::copy(guest("exit"), folder.join("exit.wasm")).unwrap();
        let server = home.serve_http(&["--watch"], std::slice::from_ref(&folder));
        let mut client = server.client(era);
        let before = client.tool_names();
        let mut stream = client.listen();
        fs::copy(guest("evil-17-host-sleep"), home.file("whole")).unwrap();
        fs::rename(home.file("whole"), folder.join("sleep.wasm")).unwrap();
        let told = stream.event().expect("a change");
        assert_eq!(told["method"], CHANGED, "{told}");
        let after = client.tool_names();
        assert!(after.len() > before.len() && after.contains(&"sleep".to_owned()), "{after:?}");
        server.close_well();
    }
}

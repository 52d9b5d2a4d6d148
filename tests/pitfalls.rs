//! What the library under this host leaves to whoever uses it: seventeen things that go wrong by themselves, each with its test, in
//! both eras of the protocol and over both transports, with the code of JSON-RPC and the status of HTTP that the specification asks.
//!
//! Where a thing makes no sense on a transport or in an era, its test says so.

#![cfg(test)]
#![cfg(unix)]

mod support;

#[path = "pitfalls/peer.rs"]
mod peer;

use std::cell::Cell;
use std::fs;

use peer::{with_each, with_each_that_can};
use serde_json::{Value, json};
use support::client::{CHANGED, ERAS, Era};
use support::http::{HttpServer, Request, SESSION, STATELESS_VERSION, VERSION, stateless, stateless_call};
use support::{Home, guest, text};

fn add(id: u64) -> Value {
    stateless_call(id, "add", &json!({"a": 2, "b": 40}))
}

fn assert_serves(server: &HttpServer) {
    let answer = server.ask(&stateless(&add(7)));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(
        answer.message()["result"]["structuredContent"],
        json!({"result": 42}),
        "{answer:?}"
    );
}

/// A panic of the host cannot be provoked from outside; tests beside the code do so (`handler.rs` of the server, `threads.rs` of the
/// sandbox). Nearest to it is a guest that traps in the middle of a call, in every way that there is: each is answered, and the next
/// call is too.
#[test]
fn pitfall_01_a_call_that_fails_is_answered() {
    with_each(&["trap", "evil-18-deep-recursion", "exit"], |peer| {
        for _ in 0..3 {
            for (tool, arguments) in [
                ("give_up", json!({})),
                ("divide", json!({"a": 1, "b": 0})),
                ("out_of_bounds", json!({})),
                ("bad_text", json!({})),
                ("bad_char", json!({})),
                ("recurse", json!({"from": 0})),
            ] {
                let result = peer.call(tool, arguments);
                assert_eq!(result["isError"], true, "{} {tool}: {result}", peer.name());
                assert!(!text(&result).is_empty(), "{result}");
            }
            assert_eq!(peer.call("add", json!({"a": 2, "b": 40}))["isError"], false);
        }
    });
}

/// Arguments are checked before the guest sees them, and say where they are wrong. Results are what was advertised.
#[test]
fn pitfall_02_arguments_and_results_are_validated() {
    with_each(&["trap", "every-type"], |peer| {
        for (arguments, path) in [
            (json!({"a": "2", "b": 40}), "$.a"),
            (json!({"a": 2}), "$.b"),
            (json!({"a": 2, "b": 40.5}), "$.b"),
            (json!({"a": 2, "b": 1_u64 << 40}), "$.b"),
            (json!({"a": 2, "b": 40, "c": 1}), "c"),
            (json!({"a": null, "b": [40]}), "$.a"),
        ] {
            let result = peer.call("add", arguments);
            assert_eq!(result["isError"], true, "{}: {result}", peer.name());
            assert!(text(&result).contains(path), "{}: {result}", peer.name());
        }
        let document = json!({
            "file_name": "x", "size": 1, "note": null, "origin": {"x": 1, "y": 2}, "tags": [], "checksum": "aGk=",
        });
        let calls = [
            ("add", json!({"a": 2, "b": 40})),
            ("greet", json!({"name": "you"})),
            ("test_every_type_echo_echo_u64", json!({"value": "18446744073709551615"})),
            ("test_every_type_echo_echo_f64", json!({"value": "NaN"})),
            ("test_every_type_echo_echo_tuple", json!({"value": [1, "x"]})),
            ("test_every_type_echo_echo_record", json!({"value": document})),
        ];
        let tools = peer.tools();
        for (name, arguments) in calls {
            let tool = tools.iter().find(|tool| tool["name"] == name).expect("the tool");
            let result = peer.call(name, arguments);
            assert_eq!(result["isError"], false, "{}: {result}", peer.name());
            let schema = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
            assert!(schema.is_valid(&result["structuredContent"]), "{name}: {result}");
        }
    });
}

/// Lists that a server may have or not. This one has them all, whatever it serves.
const LISTS: [&str; 3] = ["prompts/list", "resources/list", "resources/templates/list"];

/// All that is optional is declared, and is no empty promise; what is not declared is not there.
#[test]
fn pitfall_03_what_is_declared_is_there_and_nothing_else() {
    with_each(&["trap"], |peer| {
        for capability in ["prompts", "resources", "completions"] {
            assert!(peer.declared[capability].is_object(), "{}: {}", peer.name(), peer.declared);
        }
        let resources = peer.result("resources/list", json!({}))["resources"].take();
        assert_eq!(resources[0]["uri"], "wit://trap", "{}: {resources}", peer.name());
        let read = peer.result("resources/read", json!({"uri": "wit://trap"}));
        assert!(read["contents"][0]["text"].is_string(), "{}: {read}", peer.name());
        let argument = json!({"name": "a", "value": ""});
        let complete = json!({"ref": {"type": "ref/prompt", "name": "add"}, "argument": argument});
        let completed = peer.result("completion/complete", complete);
        assert_eq!(completed["completion"]["values"], json!([]), "{}", peer.name());
        for list in LISTS {
            peer.result(list, json!({}));
        }
        peer.assert_error("prompts/get", json!({"name": "x"}), -32602, 200);
        for method in [
            "tasks/list",
            "tasks/get",
            "roots/list",
            "sampling/createMessage",
            "no/such/method",
        ] {
            peer.assert_error(method, json!({}), -32601, 404);
        }
    });
}

/// A known method with parameters that it cannot have: invalid parameters, not an unknown method.
#[test]
fn pitfall_04_parameters_of_the_wrong_shape() {
    with_each(&["trap"], |peer| {
        for params in [
            json!({"name": "add", "arguments": [1]}),
            json!({"name": "add", "arguments": "a=1"}),
            json!({"name": 7, "arguments": {}}),
            json!({"arguments": {}}),
        ] {
            peer.assert_error("tools/call", params, -32602, 200);
        }
        peer.assert_error("tools/call", json!({"name": "no_such_tool", "arguments": {}}), -32602, 200);
        if peer.is_stateless() {
            peer.assert_error("subscriptions/listen", json!({"notifications": ["tools"]}), -32602, 200);
        }
        // Parameters that are no object at all make no request of the protocol.
        let (status, message) = peer.send(r#"{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": [1]}"#);
        assert_eq!(
            (&message["error"]["code"], &message["id"]),
            (&json!(-32602), &json!(9)),
            "{message}"
        );
        assert_eq!(status, status.map(|_| 400), "{}: {message}", peer.name());
    });
}

/// The level of logging is set by each request in the stateless era, and by nothing else.
#[test]
fn pitfall_05_set_level_is_of_the_older_era() {
    with_each(&["trap"], |peer| {
        for params in [json!({"level": "info"}), json!({})] {
            if peer.is_stateless() || peer.declared.get("logging").is_none() {
                peer.assert_error("logging/setLevel", params, -32601, 404);
            }
        }
    });
    with_each(&["trap", "conformance"], |peer| {
        if peer.is_stateless() {
            peer.assert_error("logging/setLevel", json!({"level": "info"}), -32601, 404);
        } else {
            assert!(peer.declared.get("logging").is_some(), "{}", peer.declared);
            assert_eq!(peer.result("logging/setLevel", json!({"level": "info"})), json!({}));
            peer.assert_error("logging/setLevel", json!({"level": "loud"}), -32602, 200);
        }
    });
}

/// In the stateless era a question ends the attempt, and comes back with its answer; never is a request sent to the client.
#[test]
fn pitfall_06_questions_of_the_stateless_era_are_no_requests() {
    let name = json!({"action": "accept", "content": {"name": "Alice"}});
    with_each_that_can(&json!({"elicitation": {}}), &["trap", "conformance"], |peer| {
        let call = json!({"name": "test_input_required_result_elicitation", "arguments": {}});
        let asked = Cell::new(0);
        let answered = peer.converse("tools/call", call.clone(), |question| {
            assert_eq!(question["method"], "elicitation/create", "{question}");
            asked.set(asked.get() + 1);
            name.clone()
        });
        assert_eq!(answered.status, peer.status(200), "{}: {answered:?}", peer.name());
        let mut result = answered.message["result"].clone();
        if peer.is_stateless() {
            assert_eq!(asked.get(), 0, "{}: {:?}", peer.name(), answered.before);
            assert_eq!(result["resultType"], "input_required", "{}: {result}", peer.name());
            let question = &result["inputRequests"]["user_name"];
            assert_eq!(question["method"], "elicitation/create", "{result}");
            let mut again = call;
            again["inputResponses"] = json!({"user_name": name});
            if let Some(state) = result.get("requestState") {
                again["requestState"] = state.clone();
            }
            result = peer.result("tools/call", again);
            assert_eq!(result["resultType"], "complete", "{result}");
        } else {
            assert_eq!(asked.get(), 1, "{}", peer.name());
        }
        assert!(text(&result).contains("Alice"), "{}: {result}", peer.name());
    });
}

fn methods(messages: &[Value]) -> Vec<&str> {
    messages.iter().filter_map(|message| message["method"].as_str()).collect()
}

/// In the stateless era nothing is logged to who did not ask for it in the same request, and no change is told to who did not subscribe.
#[test]
fn pitfall_07_nothing_is_told_to_who_did_not_ask() {
    with_each(&["trap", "conformance"], |peer| {
        if !peer.is_stateless() {
            return;
        }
        let call = |meta: Value| json!({"name": "test_logging_tool", "arguments": {}, "_meta": meta});
        let unasked = peer.request("tools/call", call(json!({})));
        assert_eq!(methods(&unasked.before), [] as [&str; 0], "{}", peer.name());
        let asked = peer.request("tools/call", call(json!({"io.modelcontextprotocol/logLevel": "info"})));
        assert!(
            methods(&asked.before).contains(&"notifications/message"),
            "{}: {asked:?}",
            peer.name()
        );
        let only_worse = peer.request("tools/call", call(json!({"io.modelcontextprotocol/logLevel": "emergency"})));
        assert_eq!(methods(&only_worse.before), [] as [&str; 0], "{}", peer.name());

        for tool in ["test_trigger_tool_change", "test_trigger_prompt_change"] {
            let told = peer.request("tools/call", json!({"name": tool, "arguments": {}}));
            assert_eq!(methods(&told.before), [] as [&str; 0], "{} {tool}", peer.name());
        }
        // It does not come late either.
        for _ in 0..10 {
            let later = peer.request("tools/list", json!({}));
            assert_eq!(methods(&later.before), [] as [&str; 0], "{}", peer.name());
        }
    });
    // In a session whoever said that it is ready is told of every change; and of messages in the log once it has set a level.
    with_each(&["trap", "conformance"], |peer| {
        if peer.is_stateless() {
            return;
        }
        peer.result("logging/setLevel", json!({"level": "info"}));
        let mut stream = peer.listen_http();
        for (tool, expected) in [
            ("test_tool_with_logging", "notifications/message"),
            ("test_trigger_tool_change", CHANGED),
        ] {
            let called = peer.request("tools/call", json!({"name": tool, "arguments": {}}));
            let mut told = called.before;
            // What belongs to no request comes by the stream of the session, and over stdio whenever it is ready.
            while !methods(&told).contains(&expected) {
                told.push(match &mut stream {
                    Some(stream) => stream.event().expect("something is told"),
                    None => peer.receive_stdio().expect("something is told"),
                });
            }
        }
    });
}

/// Over stdio there is no page that could ask. Over HTTP a page of anywhere can, and is refused before anything is read.
#[test]
fn pitfall_08_origins_are_checked() {
    let home = Home::new();
    let server = home.serve_http(&[], &[guest("trap")]);
    let session = server.client(Era::Initialize);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for request in [
        stateless(&add(7)),
        stateless(&add(7)).body("{"),
        session.post(&list),
        Request::stream(session.session()),
        Request::delete(session.session()),
    ] {
        for origin in ["https://evil.example", "null", "http://localhost.evil.example"] {
            let answer = server.ask(&request.clone().with("Origin", origin));
            assert_eq!(answer.status, 403, "{origin}: {answer:?}");
        }
        let answer = server.ask(&request.clone().with("Host", "evil.example"));
        assert_eq!(answer.status, 403, "{answer:?}");
    }
    // The session was not deleted.
    assert_eq!(
        server
            .ask(&session.post(&list).with("Origin", "http://localhost:1234"))
            .status,
        200
    );
    server.close_well();
}

/// Whatever is no message is answered: over HTTP with 400, over stdio by a line; and the client is served as before.
#[test]
fn pitfall_09_what_is_no_message_is_answered() {
    with_each(&["trap"], |peer| {
        for (body, code, id) in [
            ("{", -32700, Value::Null),
            ("Dear Sir or Madam,", -32700, Value::Null),
            (r#"[{"jsonrpc": "2.0", "id": 9, "method": "ping"}]"#, -32600, Value::Null),
            ("[]", -32600, Value::Null),
            (r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#, -32600, Value::Null),
            (r#"{"jsonrpc": "1.0", "id": 9, "method": "ping"}"#, -32600, json!(9)),
            (
                r#"{"jsonrpc": "2.0", "id": 9, "method": "tools/list", "id": 10}"#,
                -32600,
                Value::Null,
            ),
        ] {
            let (status, message) = peer.send(body);
            assert_eq!(message["error"]["code"], code, "{} {body}: {message}", peer.name());
            assert_eq!(status, status.map(|_| 400), "{} {body}: {message}", peer.name());
            // Of two ids either may have been meant.
            if !body.contains("10") {
                assert_eq!(message["id"], id, "{} {body}", peer.name());
            }
        }
    });
}

/// The part of the ninth that only HTTP has: what a client accepts, and how a session ends.
#[test]
fn pitfall_09_accept_and_delete() {
    let home = Home::new();
    let server = home.serve_http(&[], &[guest("trap")]);
    let session = server.client(Era::Initialize);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for request in [stateless(&add(7)), session.post(&list)] {
        for accepted in ["*/*", "application/*, text/*", "application/json, text/event-stream"] {
            let answer = server.ask(&request.clone().with("Accept", accepted));
            assert_eq!(answer.status, 200, "{accepted}: {answer:?}");
        }
        assert_eq!(server.ask(&request.with("Accept", "text/html")).status, 406);
    }
    let deleted = server.ask(&Request::delete(session.session()));
    assert!(
        matches!(deleted.status, 200 | 204),
        "some clients take any other for a failure: {deleted:?}"
    );
    assert_eq!(server.ask(&session.post(&list)).status, 404);
    server.close_well();
}

/// A notification before anything else ends nothing. Over HTTP it has no session that it could belong to, and is either taken or a
/// bad request, depending on the era.
#[test]
fn pitfall_10_a_notification_may_come_first() {
    let home = Home::new();
    let early = [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}),
        json!({"jsonrpc": "2.0", "method": "no/such/notification"}),
    ];
    for era in ERAS {
        let mut server = home.serve(&[], &[guest("trap")]);
        for notification in &early {
            server.send(notification);
        }
        if era == Era::Initialize {
            server.initialize();
            assert_eq!(
                server.call("add", &json!({"a": 2, "b": 40}))["structuredContent"],
                json!({"result": 42})
            );
        } else {
            server.send(&add(1));
            let answer = server.receive();
            assert_eq!(answer["result"]["structuredContent"], json!({"result": 42}), "{answer}");
        }
        server.close_well();
    }

    let server = home.serve_http(&[], &[guest("trap")]);
    for notification in &early {
        let answer = server.ask(&stateless(notification));
        assert_eq!((answer.status, answer.text().as_str()), (202, ""), "{notification}");
    }
    for notification in &early[..3] {
        let answer = server.ask(&Request::post(notification.to_string()));
        assert_eq!(answer.status, 400, "{notification}: {answer:?}");
    }
    assert_serves(&server);
    let mut client = server.client(Era::Initialize);
    assert_eq!(
        client.call("add", json!({"a": 2, "b": 40}))["structuredContent"],
        json!({"result": 42})
    );
    server.close_well();
}

/// A session in which nothing but one long call happens is in use. The time after which it would be closed is far longer than any test;
/// with other times it is tested beside the code (`http/sessions.rs`). What can be seen here is that such a call is answered, with and
/// without anybody who listens besides. Over stdio nothing is ever idle.
#[test]
fn pitfall_11_a_long_call_is_not_idle() {
    let home = Home::new();
    let server = home.serve_http(&[], &[guest("evil-17-host-sleep")]);
    let mut client = server.client(Era::Initialize);
    let stream = client.listen();
    let mut calls = vec![client.start("tools/call", json!({"name": "sleep", "arguments": {"seconds": 6}}))];
    drop(stream);
    let mut alone = server.client(Era::Initialize);
    calls.push(alone.start("tools/call", json!({"name": "sleep", "arguments": {"seconds": 6}})));
    for mut call in calls {
        assert_eq!(call.connection.head().status, 200);
        assert_eq!(call.answer()["result"]["structuredContent"], json!({"result": 6}));
    }
    // And the session is still there.
    for client in [&mut client, &mut alone] {
        assert_eq!(
            client.call("add", json!({"a": 2, "b": 40}))["structuredContent"],
            json!({"result": 42})
        );
    }
    server.close_well();
}

/// Without `initialize`, every result says who answers. In a session it was said once.
#[test]
fn pitfall_12_every_result_says_who_answers() {
    with_each(&["trap"], |peer| {
        let mut requests = vec![
            ("tools/list", json!({})),
            ("tools/call", json!({"name": "add", "arguments": {"a": 2, "b": 40}})),
            ("tools/call", json!({"name": "add", "arguments": {}})),
            ("tools/call", json!({"name": "give_up", "arguments": {}})),
        ];
        if peer.is_stateless() {
            requests.push(("server/discover", json!({})));
        }
        requests.extend(LISTS.map(|list| (list, json!({}))));
        for (method, params) in requests {
            let result = peer.result(method, params);
            let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
            if peer.is_stateless() {
                assert_eq!(server["name"], "host", "{} {method}: {result}", peer.name());
                assert_eq!(server["version"], env!("CARGO_PKG_VERSION"), "{result}");
                assert_eq!(result["resultType"], "complete", "{result}");
            } else {
                assert!(
                    server.is_null() && result.get("resultType").is_none(),
                    "{} {method}: {result}",
                    peer.name()
                );
            }
        }
    });
}

/// Parameters and fields come in the order in which their author wrote them, which is the order in which a model fills them in.
#[test]
fn pitfall_13_schemas_keep_their_order() {
    with_each(&["trap", "every-type"], |peer| {
        let tools = peer.tools();
        let record = tools
            .iter()
            .find(|tool| tool["name"] == "test_every_type_echo_echo_record")
            .expect("the tool");
        let keys = |schema: &Value| -> Vec<String> { schema["properties"].as_object().unwrap().keys().cloned().collect() };
        let fields = ["file_name", "size", "note", "origin", "tags", "checksum"];
        assert_eq!(keys(&record["inputSchema"]["properties"]["value"]), fields, "{}", peer.name());
        assert_eq!(
            keys(&record["outputSchema"]["properties"]["result"]),
            fields,
            "{}",
            peer.name()
        );
        assert!(!fields.is_sorted(), "or nothing is shown");
    });
}

/// Every tool has a description, and a name that every client takes; tools come in the same order each time.
#[test]
fn pitfall_14_tools_have_names_and_descriptions() {
    with_each(
        &["trap", "every-type", "documented", "evil-05-huge-name", "cli-clap"],
        |peer| {
            let tools = peer.tools();
            for tool in &tools {
                let name = tool["name"].as_str().expect("a name");
                let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                assert!(
                    name.len() <= 48 && name.chars().all(is_fine) && name.starts_with(|c: char| c.is_ascii_lowercase()),
                    "{name}"
                );
                let description = tool["description"].as_str().unwrap_or_default();
                assert!(!description.trim().is_empty(), "{}: {tool}", peer.name());
            }
            let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
            let mut sorted = names.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(names, sorted, "{}", peer.name());
            assert_eq!(peer.tools(), tools, "{}", peer.name());
        },
    );
}

/// Older clients take objects only, so a value of any kind is wrapped, for all alike, in the schema and in the result; and the text
/// says the same.
#[test]
fn pitfall_15_structured_content_is_an_object() {
    with_each(&["trap", "every-type"], |peer| {
        for tool in peer.tools() {
            let Some(schema) = tool.get("outputSchema") else {
                continue;
            };
            assert_eq!(schema["type"], "object", "{}: {tool}", peer.name());
            assert_eq!(schema["required"], json!(["result"]), "{}: {tool}", peer.name());
        }
        for (tool, arguments, value) in [
            ("add", json!({"a": 2, "b": 40}), json!(42)),
            ("test_every_type_echo_echo_bool", json!({"value": true}), json!(true)),
            ("test_every_type_echo_echo_list", json!({"value": [1, 2]}), json!([1, 2])),
            ("test_every_type_echo_echo_string", json!({"value": "x"}), json!("x")),
        ] {
            let result = peer.call(tool, arguments);
            assert_eq!(
                result["structuredContent"],
                json!({"result": value}),
                "{}: {result}",
                peer.name()
            );
            let same: Value = serde_json::from_str(text(&result)).unwrap();
            assert_eq!(same, result["structuredContent"], "{}", peer.name());
        }
    });
}

/// A subscription that the server ends has an answer, its last message; one that the client ends has none. Sessions have no
/// subscriptions: their streams just end.
#[test]
fn pitfall_16_a_subscription_ends_with_an_answer() {
    let home = Home::new();
    let folder = home.file("plugins");
    fs::create_dir(&folder).unwrap();
    fs::copy(guest("trap"), folder.join("trap.wat")).unwrap();
    let listen = |id: u64| {
        let mut message = add(id);
        message["method"] = json!("subscriptions/listen");
        message["params"] = json!({"notifications": {"toolsListChanged": true}, "_meta": message["params"]["_meta"]});
        message
    };
    let assert_acknowledged = |message: &Value| {
        assert_eq!(message["method"], "notifications/subscriptions/acknowledged", "{message}");
    };

    let mut server = home.serve(&[], std::slice::from_ref(&folder));
    for id in [1, 2] {
        server.send(&listen(id));
        assert_acknowledged(&server.receive());
    }
    server.notify("notifications/cancelled", &json!({"requestId": 1}));
    server.send(&add(3));
    assert_eq!(server.receive()["id"], 3);
    let ended = server.close();
    assert!(ended.status.success(), "{ended:?}");
    let last: Vec<Value> = ended.lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(last.len(), 1, "{last:?}");
    assert!(last[0]["id"] == 2 && last[0]["result"].is_object(), "{last:?}");

    let server = home.serve_http(&[], std::slice::from_ref(&folder));
    let mut open = server.connect();
    open.send(&stateless(&listen(5)));
    assert_eq!(open.head().status, 200);
    assert_acknowledged(&open.event().expect("an acknowledgement"));
    // One that just goes.
    let mut left = server.connect();
    left.send(&stateless(&listen(6)));
    assert_eq!(left.head().status, 200);
    drop(left);
    let mut session = server.client(Era::Initialize);
    let mut stream = session.listen();
    assert_serves(&server);
    server.terminate();
    let last = open.event().expect("an answer");
    assert!(last["id"] == 5 && last["result"].is_object(), "{last}");
    assert_eq!(open.event(), None);
    assert_eq!(stream.event(), None);
    let ended = server.ended();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}

/// Two small writes and a socket that waits to fill a packet cost forty milliseconds each call. That sockets do not wait is tested beside
/// the code (`http/connection.rs`); no test measures time. What can be seen here is that an answer of which nothing is streamed is one piece whose length is told first, and that many answers of a session come one
/// after the other on one connection. Over stdio there are no packets.
#[test]
fn pitfall_17_answers_come_in_one_piece() {
    let home = Home::new();
    let server = home.serve_http(&[], &[guest("trap")]);
    let mut connection = server.connect();
    for id in 0..200 {
        let answer = connection.ask(&stateless(&add(id)));
        assert!(answer.status == 200 && answer.is_json(), "{answer:?}");
        assert!(answer.header("Content-Length").is_some(), "{answer:?}");
        assert!(answer.header("Transfer-Encoding").is_none(), "{answer:?}");
        assert_eq!(answer.message()["id"], id);
    }
    let mut session = server.client(Era::Initialize);
    for _ in 0..200 {
        let message = session.message("tools/call", json!({"name": "add", "arguments": {"a": 2, "b": 40}}));
        let answer = connection.ask(&session.post(&message)).message();
        assert_eq!(answer["id"], message["id"]);
        assert_eq!(answer["result"]["structuredContent"], json!({"result": 42}), "{answer}");
    }
    // Whatever is told of a stateless request by a session's header is not believed.
    let answer = connection.ask(&stateless(&add(1)).with(SESSION, "x").with(VERSION, STATELESS_VERSION));
    assert_eq!(answer.status, 200, "{answer:?}");
    server.close_well();
}

//! Calls that take long: how far they are, and how they are called off. Over stdio and over HTTP, in either era.

use serde_json::{Value, json};

use crate::numbers::running;
use crate::support::client::{ERAS, Era};
use crate::support::http::{Connection, HttpServer, Pending, Request, stateless_meta};
use crate::support::{Home, Server, guest, wait_until};
use crate::{assert_adds, is_42};

/// One call at a time, and no deadline that could end one: the next is answered only once the one before it has ended.
const ONE_AT_A_TIME: [&str; 4] = ["--max-concurrent-calls", "1", "--timeout", "1h"];

/// Long enough for several tellings.
fn long(token: Option<&Value>) -> Value {
    let mut params = json!({"name": "sleep", "arguments": {"seconds": 4}});
    if let Some(token) = token {
        params["_meta"] = json!({"progressToken": token});
    }
    params
}

fn endless(token: &str) -> Value {
    json!({"name": "sleep", "arguments": {"seconds": 3600}, "_meta": {"progressToken": token}})
}

/// Fails unless these are tellings of progress, for this token, each of more than the one before.
fn assert_progress(told: &[Value], token: &Value) {
    assert!(!told.is_empty(), "nothing was told");
    let mut last = -1.0;
    for message in told {
        let params = &message["params"];
        assert_eq!(message["method"], "notifications/progress", "{message}");
        assert_eq!(&params["progressToken"], token, "{message}");
        assert!(message.get("id").is_none(), "{message}");
        let progress = params["progress"].as_f64().expect("a number");
        assert!(progress > last, "{told:?}");
        last = progress;
    }
}

/// Sends a request over stdio; returns what came before its answer, and the answer.
fn ask_stdio(server: &mut Server, era: Era, mut params: Value) -> (Vec<Value>, Value) {
    if era == Era::Stateless {
        let mut meta = stateless_meta(&json!({}));
        if let (Some(meta), Some(given)) = (meta.as_object_mut(), params["_meta"].as_object()) {
            meta.extend(given.clone());
        }
        params["_meta"] = meta;
    }
    let id = server.start_request("tools/call", &params);
    let mut before = Vec::new();
    loop {
        let message = server.receive();
        if message["id"] == id {
            return (before, message);
        }
        before.push(message);
    }
}

fn stdio(home: &Home, options: &[&str], era: Era) -> Server {
    let mut server = home.serve(options, &[guest("evil-17-host-sleep")]);
    if era == Era::Initialize {
        server.initialize();
    }
    server
}

#[test]
fn progress_is_told_over_stdio_to_who_asked() {
    let home = Home::new();
    for era in ERAS {
        let mut server = stdio(&home, &[], era);
        for token in [json!("a token"), json!(7)] {
            let (told, answer) = ask_stdio(&mut server, era, long(Some(&token)));
            assert_progress(&told, &token);
            assert_eq!(answer["result"]["structuredContent"], json!({"result": 4}), "{answer}");
        }
        let (told, answer) = ask_stdio(&mut server, era, long(None));
        assert!(told.is_empty(), "nobody asked for {told:?}");
        assert_eq!(answer["result"]["structuredContent"], json!({"result": 4}), "{answer}");
        server.close_well();
    }
}

#[test]
fn progress_is_told_over_http_to_who_asked() {
    let home = Home::new();
    let server = crate::serve(&home, &[]);
    for era in ERAS {
        let mut client = server.client(era);
        for token in [json!("a token"), json!(7)] {
            let answer = client.request("tools/call", long(Some(&token)));
            assert!(answer.status == 200 && answer.is_events(), "{answer:?}");
            let mut messages = answer.messages();
            let last = messages.pop().expect("an answer");
            assert_progress(&messages, &token);
            assert_eq!(last["result"]["structuredContent"], json!({"result": 4}), "{last}");
        }
        let answer = client.request("tools/call", long(None));
        let messages = answer.messages();
        assert_eq!(messages.len(), 1, "nobody asked for {messages:?}");
        assert_eq!(
            messages[0]["result"]["structuredContent"],
            json!({"result": 4}),
            "{messages:?}"
        );
        // Nothing is streamed, so nothing is a stream.
        assert_eq!(answer.is_json(), era == Era::Stateless, "{answer:?}");
    }
    server.close_well();
}

/// A call that is over before anything could be told.
#[test]
fn a_short_call_tells_nothing() {
    let home = Home::new();
    let server = crate::serve(&home, &[]);
    let mut client = server.client(Era::Stateless);
    assert_adds(&mut client);
    let params = json!({"name": "add", "arguments": {"a": 2, "b": 40}, "_meta": {"progressToken": 1}});
    let answer = client.request("tools/call", params);
    assert!(is_42(&answer.message()), "{answer:?}");
    server.close_well();
}

#[test]
fn a_cancelled_call_ends_its_guest_over_stdio() {
    let home = Home::new();
    for era in ERAS {
        let mut server = stdio(&home, &ONE_AT_A_TIME, era);
        for round in 0..3 {
            let mut params = endless("endless");
            if era == Era::Stateless {
                let mut meta = stateless_meta(&json!({}));
                meta["progressToken"] = json!("endless");
                params["_meta"] = meta;
            }
            let id = server.start_request("tools/call", &params);
            let told = server.receive();
            assert_eq!(told["method"], "notifications/progress", "{told}");
            server.notify(
                "notifications/cancelled",
                &json!({"requestId": id, "reason": "the person went home"}),
            );
            let (told, answer) = ask_stdio(&mut server, era, json!({"name": "add", "arguments": {"a": 2, "b": 40}}));
            assert!(is_42(&answer), "round {round}: {answer}");
            // What was told before it was called off may still be on its way; an answer is not.
            assert!(
                told.iter().all(|message| message["method"] == "notifications/progress"),
                "{told:?}"
            );
        }
        server.close_well();
    }
}

/// A call that is under way, and how it is called off.
fn assert_ends(server: &HttpServer, era: Era, call_off: impl Fn(&crate::HttpClient, Pending)) {
    let mut client = server.client(era);
    for _ in 0..3 {
        let mut call = client.start("tools/call", endless("endless"));
        call.wait_until_it_runs();
        call_off(&client, call);
        assert_adds(&mut client);
    }
}

#[test]
fn a_cancelled_call_ends_its_guest_in_a_session() {
    let home = Home::new();
    let server = crate::serve(&home, &ONE_AT_A_TIME);
    assert_ends(&server, Era::Initialize, |client, call| {
        let reason = json!({"requestId": call.id, "reason": "the person went home"});
        assert_eq!(client.notify("notifications/cancelled", reason).status, 202);
    });
    server.close_well();
}

/// The stateless era knows no other way to call a call off.
#[test]
fn a_closed_stream_ends_its_guest_in_the_stateless_era() {
    let home = Home::new();
    let server = crate::serve(&home, &ONE_AT_A_TIME);
    assert_ends(&server, Era::Stateless, |_, call| drop(call));
    server.close_well();
}

/// Where not even the head of the answer was sent.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_connection_ends_its_guest_in_the_stateless_era() {
    use crate::support::proc;
    let home = Home::new();
    let server = home.serve_http(&ONE_AT_A_TIME, &[guest("evil-17-infinite-loop")]);
    let mut client = server.client(Era::Stateless);
    assert_adds(&mut client);
    for _ in 0..3 {
        let before = proc::cpu_ticks(server.pid());
        let call = client.start("tools/call", json!({"name": "spin", "arguments": {}}));
        wait_until("the guest computes", || proc::cpu_ticks(server.pid()) > before + 20);
        drop(call);
        assert_adds(&mut client);
    }
    server.close_well();
}

/// A call of somebody else is not ours to cancel, not even under the same id.
#[test]
fn a_session_cancels_its_own_calls_only() {
    let home = Home::new();
    let server = crate::serve(&home, &[]);
    let (mut client, other) = (server.client(Era::Initialize), server.client(Era::Initialize));
    let mut call = client.start("tools/call", long(Some(&json!("mine"))));
    call.wait_until_it_runs();
    let answer = other.notify("notifications/cancelled", json!({"requestId": call.id}));
    assert_eq!(answer.status, 202, "{answer:?}");
    let answer = call.answer();
    assert_eq!(answer["result"]["structuredContent"], json!({"result": 4}), "{answer}");
    server.close_well();
}

/// In a session a broken connection is no cancellation: the call goes on, and whoever takes the stream up again before its end gets the
/// answer.
#[test]
fn an_answer_can_be_fetched_after_the_connection_broke() {
    let home = Home::new();
    let server = crate::serve(&home, &[]);
    let mut client = server.client(Era::Initialize);
    let mut call = client.start("tools/call", long(Some(&json!("fetched"))));
    assert_eq!(call.connection.head().status, 200);
    let (id, told) = call.connection.event_with_id().expect("progress");
    assert_eq!(told["method"], "notifications/progress", "{told}");
    let id = id.expect("an id to go on from");
    let request = call.id;
    drop(call);

    let mut connection = Connection::open(server.address);
    connection.send(&Request::stream(client.session()).with("Last-Event-ID", &id));
    assert_eq!(connection.head().status, 200);
    let resumed = Pending { id: request, connection };
    let answer = resumed.answer();
    assert_eq!(answer["result"]["structuredContent"], json!({"result": 4}), "{answer}");
    server.close_well();
}

/// Returns at once, or never.
const SPIN: &str = r#"(component
  (core module $code
    (func (export "spin") (param $forever i32) (result i32)
      (loop $again (br_if $again (local.get $forever)))
      (i32.const 42)))
  (core instance $guest (instantiate $code))
  (func (export "spin") (param "forever" bool) (result s32) (canon lift (core func $guest "spin"))))"#;

fn spin(forever: bool) -> Value {
    json!({"name": "spin", "arguments": {"forever": forever}})
}

/// Calls in a session that were short are answered in JSON, as there will be nothing to stream. One that then is not short is a call like
/// any other: it goes on when its connection is closed, and ends when it is cancelled.
#[test]
fn a_call_in_a_session_that_was_short_and_is_not() {
    let home = Home::new();
    let server = home.serve_http(&ONE_AT_A_TIME, &[home.write("spin.wat", SPIN)]);
    let mut client = server.client(Era::Initialize);
    let answer_in_json = |client: &mut crate::HttpClient| {
        wait_until("a call was short", || {
            let answer = client.request("tools/call", spin(false));
            assert!(is_42(&answer.message()), "{answer:?}");
            answer.is_json()
        });
    };
    answer_in_json(&mut client);
    let call = client.start("tools/call", spin(true));
    wait_until("it runs", || running(&server) > 0.0);
    let cancelled = json!({"requestId": call.id});
    drop(call);
    assert!(client.clone().request("tools/list", json!({})).status == 200 && running(&server) > 0.0);
    assert_eq!(client.notify("notifications/cancelled", cancelled).status, 202);
    wait_until("it has ended", || running(&server) == 0.0);
    answer_in_json(&mut client);

    // Whoever still waits is told nothing more.
    let mut call = client.start("tools/call", spin(true));
    wait_until("it runs", || running(&server) > 0.0);
    assert_eq!(
        client.notify("notifications/cancelled", json!({"requestId": call.id})).status,
        202
    );
    let answer = call.connection.answer();
    assert!(
        answer.status == 200 && answer.is_events() && answer.messages().is_empty(),
        "{answer:?}"
    );
    server.close_well();
}

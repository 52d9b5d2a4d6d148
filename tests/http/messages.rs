//! Everything that is no good message: the status that HTTP has for it, the code that JSON-RPC has for it, and the id where it can be
//! read. Whoever comes next is served.

use serde_json::{Value, json};

use crate::support::Home;
use crate::support::client::Era;
use crate::support::http::{Answer, HttpServer, METHOD, Request, STATELESS_VERSION, VERSION};
use crate::{assert_serves, good, is_42, serve};

/// A body as a client of either era, or of none, would post it.
fn ask(server: &HttpServer, body: &[u8]) -> Vec<Answer> {
    let session = server.client(Era::Initialize);
    [
        good().body(body),
        session.post(&Value::Null).body(body),
        Request::post(body),
        Request::post(body)
            .with(VERSION, STATELESS_VERSION)
            .with(METHOD, "tools/list"),
    ]
    .iter()
    .map(|request| server.ask(request))
    .collect()
}

#[test]
fn what_is_no_message_has_its_status_and_its_code() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let twice =
        r#"{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "a": 2, "b": 3}}}"#;
    let deep = format!(
        r#"{{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {{"name": "add", "arguments": {{"a": {}{}}}}}}}"#,
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    let cases: [(&[u8], i64, Value); 20] = [
        (b"", -32700, Value::Null),
        (b"   ", -32700, Value::Null),
        (b"{", -32700, Value::Null),
        (b"Dear Sir or Madam,", -32700, Value::Null),
        (br#"{"jsonrpc": "2.0", "id": 9, "method": "tools/list""#, -32700, Value::Null),
        (
            b"{\"jsonrpc\": \"2.0\", \"id\": 9, \"method\": \"p\xFFng\"}",
            -32700,
            Value::Null,
        ),
        (&[0; 100], -32700, Value::Null),
        (deep.as_bytes(), -32700, json!(9)),
        (b"[]", -32600, Value::Null),
        (br#"[{"jsonrpc": "2.0", "id": 9, "method": "ping"}]"#, -32600, Value::Null),
        (b"{}", -32600, Value::Null),
        (b"7", -32600, Value::Null),
        (b"null", -32600, Value::Null),
        (br#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#, -32600, Value::Null),
        (br#"{"jsonrpc": "2.0", "id": {}, "method": "ping"}"#, -32600, Value::Null),
        (br#"{"jsonrpc": "1.0", "id": 9, "method": "ping"}"#, -32600, json!(9)),
        (br#"{"id": 9, "method": "ping"}"#, -32600, json!(9)),
        (br#"{"jsonrpc": "2.0", "id": 9, "method": 7}"#, -32600, json!(9)),
        (twice.as_bytes(), -32600, json!(9)),
        (
            br#"{"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": []}"#,
            -32602,
            json!(9),
        ),
    ];
    for (body, code, id) in cases {
        for answer in ask(&server, body) {
            assert!(answer.is_json(), "{:.200}: {answer:?}", String::from_utf8_lossy(body));
            answer.assert_error(400, code, &id);
        }
    }
    assert_serves(&server);
    server.close_well();
}

#[test]
fn a_notification_that_nobody_knows_is_no_mistake() {
    let home = Home::new();
    let server = serve(&home, &[]);
    for era in [Era::Initialize, Era::Stateless] {
        let answer = server.client(era).notify("no/such/notification", json!({"a": 1}));
        assert_eq!((answer.status, answer.text().as_str()), (202, ""), "{era:?}");
    }
    server.close_well();
}

#[test]
fn the_body_must_be_json() {
    let home = Home::new();
    let server = serve(&home, &[]);
    for wrong in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/json",
        "",
    ] {
        assert_eq!(server.ask(&good().with("Content-Type", wrong)).status, 415, "{wrong}");
    }
    assert_eq!(server.ask(&good().without("Content-Type")).status, 415);
    for right in [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
    ] {
        let answer = server.ask(&good().with("Content-Type", right));
        assert!(answer.status == 200 && is_42(&answer.message()), "{right}: {answer:?}");
    }
    server.close_well();
}

#[test]
fn the_client_must_take_what_it_may_get() {
    let home = Home::new();
    let server = serve(&home, &[]);
    for right in [
        "application/json, text/event-stream",
        "text/event-stream,application/json",
        "application/json;q=0.9, text/event-stream;q=0.1",
        "*/*",
        "text/html, */*;q=0.8",
        "application/*, text/event-stream",
    ] {
        let answer = server.ask(&good().with("Accept", right));
        assert!(answer.status == 200 && is_42(&answer.message()), "{right}: {answer:?}");
    }
    for wrong in ["text/html", "image/*"] {
        assert_eq!(server.ask(&good().with("Accept", wrong)).status, 406, "{wrong}");
    }
    let session = server.client(Era::Initialize);
    let stream = Request::stream(session.session());
    assert_eq!(server.ask(&stream.with("Accept", "application/json")).status, 406);
    server.close_well();
}

#[test]
fn other_methods_and_other_paths_are_not_there() {
    let home = Home::new();
    let server = serve(&home, &[]);
    for method in ["PUT", "PATCH", "TRACE", "BREW"] {
        let answer = server.ask(&Request::new(method, "/mcp"));
        assert_eq!(answer.status, 405, "{method}: {answer:?}");
        let allowed = answer.header("Allow").expect("what is allowed instead").to_owned();
        for method in ["GET", "POST", "DELETE"] {
            assert!(allowed.contains(method), "{allowed}");
        }
    }
    for path in [
        "/",
        "/mcp/",
        "/mcp/x",
        "/MCP",
        "/sse",
        "/..%2fmcp",
        "/metrics/x",
        "/.well-known/oauth-protected-resource",
    ] {
        let answer = server.ask(&Request::get(path));
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
    }
    assert_serves(&server);
    server.close_well();
}

#[test]
fn a_body_that_is_too_large_is_refused_however_it_comes() {
    let home = Home::new();
    let server = serve(&home, &["--max-body", "4KiB"]);
    let padded = |length: usize| {
        let body = String::from_utf8(good().bytes(server.address)).unwrap();
        let body = body.split("\r\n\r\n").nth(1).unwrap().to_owned();
        let padding = " ".repeat(length - body.len());
        body + &padding
    };
    let fits = server.ask(&good().body(padded(4 << 10)));
    assert!(fits.status == 200 && is_42(&fits.message()), "{fits:?}");
    server
        .ask(&good().body(padded((4 << 10) + 1)))
        .assert_error(413, -32600, &Value::Null);
    // As much as a socket takes, and more.
    let mut connection = server.connect();
    let _ = connection.send_bytes(good().body(padded(16 << 20)).bytes(server.address));
    connection.answer().assert_error(413, -32600, &Value::Null);

    // What is only announced is refused before it is sent.
    let mut connection = server.connect();
    connection.send(&good().body("").with("Content-Length", "99999999999"));
    assert_eq!(connection.head().status, 413);

    // In pieces nothing is announced.
    let chunked = |body: &str| {
        let mut pieces = String::new();
        for piece in body.as_bytes().chunks(1000) {
            pieces.push_str(&format!("{:x}\r\n{}\r\n", piece.len(), String::from_utf8_lossy(piece)));
        }
        good().with("Transfer-Encoding", "chunked").body(pieces + "0\r\n\r\n")
    };
    let fits = server.ask(&chunked(&padded(4 << 10)));
    assert!(fits.status == 200 && is_42(&fits.message()), "{fits:?}");
    let mut connection = server.connect();
    let _ = connection.send_bytes(chunked(&padded(64 << 10)).bytes(server.address));
    connection.answer().assert_error(413, -32600, &Value::Null);
    assert_serves(&server);
    server.close_well();
}

/// Eight megabytes of arguments fit, as they do over stdio.
#[test]
fn a_large_body_is_read_by_default() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let mut client = server.client(Era::Stateless);
    let answer = client.call("add", json!({"a": 2, "b": 40, "c": "x".repeat(12 << 20)}));
    assert_eq!(answer["isError"], true, "{:.200}", answer.to_string());
    server.close_well();
}

#[test]
fn headers_are_limited_in_number_and_in_size() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let many = (0..2_000).fold(good(), |request, number| request.and(&format!("X-{number}"), "x"));
    let large = good().with("X-Large", &"x".repeat(1 << 20));
    let long = Request::get(&format!("/mcp?{}", "x".repeat(1 << 20)));
    for (request, statuses) in [(many, &[431][..]), (large, &[431]), (long, &[414, 431])] {
        let mut connection = server.connect();
        // It may stop reading before all is sent.
        let _ = connection.send_bytes(request.bytes(server.address));
        let answer = connection.head();
        assert!(statuses.contains(&answer.status), "{answer:?}");
    }
    assert_serves(&server);
    server.close_well();
}

#[test]
fn what_is_no_http_is_refused() {
    let home = Home::new();
    let server = serve(&home, &[]);
    for nonsense in [
        "Dear Sir or Madam,\r\n\r\n",
        "GET\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: x\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        "\u{16}\u{3}\u{1}\0\u{1}\0\0\u{1}\r\n\r\n",
    ] {
        let mut connection = server.connect();
        connection.send_bytes(nonsense).unwrap();
        let answer = connection.head();
        assert_eq!(answer.status, 400, "{nonsense:?}: {answer:?}");
        connection.closed();
    }
    assert_serves(&server);
    server.close_well();
}

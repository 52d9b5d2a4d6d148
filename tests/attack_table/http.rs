//! Rows 13 and 34: a page in a browser that finds the host on this machine, and whoever sends what no client would.

use serde_json::{Value, json};

use crate::support::client::Era;
use crate::support::http::{Answer, HttpServer, METHOD, NAME, Request, STATELESS_VERSION, VERSION, stateless, stateless_call};
use crate::support::{Home, guest};
use crate::unharmed::{Held, ROUNDS, WARM_UP, good};

/// A request that the good component answers with 42.
fn add() -> Request {
    stateless(&stateless_call(7, "add", &json!({"a": 2, "b": 40})))
}

fn assert_good(server: &HttpServer) {
    let answer = server.ask(&add());
    assert_eq!(answer.status, 200, "{answer:?}");
    let message = answer.message();
    assert_eq!(message["result"]["structuredContent"], json!({"result": 42}), "{message}");
}

/// As [`crate::unharmed::Host::survives`], for a server that anybody can connect to.
fn survives(server: &HttpServer, attack: impl Fn()) {
    let attack = |times: usize| {
        for _ in 0..times {
            attack();
            assert_good(server);
        }
    };
    attack(WARM_UP);
    let before = Held::by(server.pid());
    attack(ROUNDS);
    before.assert_still();
    assert_good(server);
}

/// Everything that a page could ask for.
fn requests(server: &HttpServer) -> Vec<Request> {
    let session = server.client(Era::Initialize);
    vec![
        add(),
        session.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})),
        Request::post(crate::support::http::initialize("2025-11-25", &json!({})).to_string()),
        Request::stream(session.session()),
        Request::delete(session.session()),
        Request::get("/metrics"),
        Request::new("OPTIONS", "/mcp").with("Access-Control-Request-Method", "POST"),
        // What a page sends without asking whether it may.
        add().with("Content-Type", "text/plain"),
    ]
}

/// Nothing was done, nothing was told, and no page may read even that.
fn assert_refused(answer: &Answer, statuses: &[u16], what: &str) {
    assert!(statuses.contains(&answer.status), "{what}: {answer:?}");
    assert!(!answer.text().contains("result"), "{what}: {answer:?}");
    assert!(answer.header("Access-Control-Allow-Origin").is_none(), "{what}: {answer:?}");
    assert!(answer.header("Mcp-Session-Id").is_none(), "{what}: {answer:?}");
}

#[test]
fn row_13_browser_to_local_http() {
    let home = Home::new();
    let server = home.serve_http(&[], &[good(&home), guest("every-type")]);
    let port = server.address.port();
    let hosts = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("evil-localhost:{port}"),
        format!("0.0.0.0:{port}"),
        format!("169.254.169.254:{port}"),
        format!("[::ffff:8.8.8.8]:{port}"),
        format!("[2001:db8::1]:{port}"),
        "2130706433".to_owned(),
    ];
    let origins = [
        "http://evil.example".to_owned(),
        format!("https://evil.example:{port}"),
        format!("http://127.0.0.1.evil.example:{port}"),
        format!("http://localhost.evil.example:{port}"),
        format!("http://localhost@evil.example:{port}"),
        format!("http://evil.example#@localhost:{port}"),
        "null".to_owned(),
        "file://".to_owned(),
        "chrome-extension://localhost".to_owned(),
        "http://[2001:db8::1]".to_owned(),
        "localhost".to_owned(),
        "http://".to_owned(),
    ];
    survives(&server, || {
        let requests = requests(&server);
        for request in &requests {
            for host in &hosts {
                assert_refused(&server.ask(&request.clone().with("Host", host)), &[403], host);
            }
            for origin in &origins {
                assert_refused(&server.ask(&request.clone().with("Origin", origin)), &[403], origin);
                // It makes no difference what else is right.
                let right = request.clone().with("Host", "localhost").with("Origin", origin);
                assert_refused(&server.ask(&right), &[403], origin);
            }
            let own = format!("127.0.0.1:{port}");
            let evil = format!("evil.example:{port}");
            // Which of two is meant, nobody can know.
            for [first, second] in [[&own, &evil], [&evil, &own]] {
                let twice = request.clone().with("Host", first).and("Host", second);
                assert_refused(&server.ask(&twice), &[400, 403], "two hosts");
            }
            let origins = [&format!("http://{own}"), &format!("http://{evil}")];
            for [first, second] in [origins, [origins[1], origins[0]]] {
                let twice = request.clone().with("Origin", first).and("Origin", second);
                assert_refused(&server.ask(&twice), &[400, 403], "two origins");
            }
            for malformed in [
                "",
                "user@127.0.0.1",
                "127.0.0.1, evil.example",
                "127.0.0.1/evil.example",
                "127.0.0.1:port",
            ] {
                assert_refused(&server.ask(&request.clone().with("Host", malformed)), &[400, 403], malformed);
            }
        }
        // The host of an absolute request line is the one that counts, and the other is no better.
        let absolute = String::from_utf8(add().bytes(server.address)).unwrap();
        let absolute = absolute.replacen("/mcp", &format!("http://evil.example:{port}/mcp"), 1);
        let mut connection = server.connect();
        connection.send_bytes(absolute).unwrap();
        assert_refused(&connection.answer(), &[400, 403], "an absolute request line");
        let mut connection = server.connect();
        connection.send_bytes("GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        assert_refused(&connection.answer(), &[400, 403], "no host");
    });

    // Everybody on this machine is welcome under all of its names.
    for host in [
        "localhost".to_owned(),
        format!("LOCALHOST:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
    ] {
        assert_eq!(server.ask(&add().with("Host", &host)).status, 200, "{host}");
    }
    for origin in [
        "http://localhost:3000",
        "http://127.0.0.1:8080",
        "https://localhost",
        "http://[::1]:5173",
    ] {
        let answer = server.ask(&add().with("Origin", origin));
        assert_eq!(answer.status, 200, "{origin}");
        assert!(answer.header("Access-Control-Allow-Origin").is_none(), "{answer:?}");
    }
    server.close_well();
}

/// A page that got as far as a socket still has no token.
#[test]
fn row_13_token_off_loopback() {
    let home = Home::new();
    let server = home.try_serve_http("0.0.0.0:0", &[], &[good(&home)]).ok().unwrap();
    let token = std::fs::read_to_string(home.directory().join("http.token"))
        .unwrap()
        .trim()
        .to_owned();
    let asked = |request: &Request| {
        let answer = server.ask(request);
        assert!(answer.status != 200 || answer.message()["result"].is_object(), "{answer:?}");
        answer.status
    };
    assert_eq!(asked(&add().token(&token)), 200);
    let before = Held::by(server.pid());
    for _ in 0..100 {
        for wrong in ["", "x", &token[1..], &format!("{token}{token}"), &"x".repeat(8 << 10)] {
            assert_eq!(asked(&add().token(wrong)), 401, "{wrong}");
        }
        assert_eq!(asked(&add()), 401);
        // With the token, and from a page all the same.
        assert_eq!(asked(&add().token(&token).with("Host", "evil.example")), 403);
        assert_eq!(asked(&add().token(&token).with("Origin", "http://evil.example")), 403);
    }
    before.assert_still();
    assert_eq!(asked(&add().token(&token)), 200);
    assert!(!server.said().contains(&token), "the token is told");
    server.close_well();
}

#[test]
fn row_34_big_body_and_bad_headers() {
    let home = Home::new();
    let server = home.serve_http(&["--max-body", "1MiB"], &[good(&home), guest("every-type")]);
    let mismatched = [
        add().without(VERSION),
        add().with(VERSION, "2025-06-18"),
        add().without(METHOD),
        add().with(METHOD, "tools/list"),
        add().with(METHOD, "TOOLS/CALL"),
        add().without(NAME),
        add().with(NAME, "greet"),
        add().with(NAME, "=?base64?!?="),
    ];
    survives(&server, || {
        let mut connection = server.connect();
        // It may stop reading before all is sent.
        let _ = connection.send_bytes(add().body(vec![b' '; 40 << 20]).bytes(server.address));
        connection.answer().assert_error(413, -32600, &Value::Null);
        let mut connection = server.connect();
        connection.send(&add().body("").with("Content-Length", &u64::MAX.to_string()));
        assert!(matches!(connection.head().status, 400 | 413 | 431));
        let chunk = format!("{:x}\r\n{}\r\n", 64 << 10, " ".repeat(64 << 10)).repeat(64);
        let mut connection = server.connect();
        let _ = connection.send_bytes(add().with("Transfer-Encoding", "chunked").body(chunk).bytes(server.address));
        connection.answer().assert_error(413, -32600, &Value::Null);

        for request in &mismatched {
            server.ask(request).assert_error(400, -32020, &json!(7));
        }
        let unknown = server.ask(&Request::post(r#"{"jsonrpc": "2.0", "id": 7, "method": "ping"}"#).with(VERSION, "9999-99-99"));
        assert_eq!(unknown.status, 400, "{unknown:?}");
        for method in ["GET", "DELETE"] {
            let request = Request::new(method, "/mcp")
                .with("Accept", "text/event-stream")
                .with(VERSION, STATELESS_VERSION);
            assert_eq!(server.ask(&request).status, 405, "{method}");
        }
        assert_eq!(server.ask(&add().with("Content-Type", "text/plain")).status, 415);
        assert_eq!(server.ask(&add().with("Accept", "text/html")).status, 406);

        let many = (0..5_000).fold(add(), |request, number| request.and(&format!("X-{number}"), "x"));
        for request in [many, add().with("X-Large", &"x".repeat(1 << 20))] {
            let mut connection = server.connect();
            let _ = connection.send_bytes(request.bytes(server.address));
            assert_eq!(connection.head().status, 431);
        }
        // Two lengths, or a length and pieces: where one message ends and the next begins must not be a matter of opinion.
        let smuggled = [
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n{}{}",
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\n folded: x\r\n\r\n",
        ];
        for bytes in smuggled {
            let mut connection = server.connect();
            connection.send_bytes(bytes).unwrap();
            let answer = connection.head();
            assert!((400..500).contains(&answer.status), "{bytes:?}: {answer:?}");
        }
    });
    server.close_well();
}

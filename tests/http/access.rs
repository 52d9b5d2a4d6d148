//! Who may ask at all. `attack_table/http.rs` has the table of hosts and origins that a browser would send.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::http::{HttpServer, Request};
use crate::support::{Finished, Home, assert_readable, guest, wait_until};
use crate::{assert_serves, good, is_42, serve};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// The path is told, after the address.
fn assert_told(server: &HttpServer, file: &Path) {
    wait_until("the file with the token is told", || {
        server.said().contains(file.to_str().unwrap())
    });
}

fn assert_admits(server: &HttpServer, token: &str) {
    let answer = server.ask(&good().token(token));
    assert!(answer.status == 200 && is_42(&answer.message()), "{answer:?}");
}

/// Nobody without the token, and nobody with a part of it.
fn assert_locked(server: &HttpServer, token: &str) {
    let bearer = |token: &str| format!("Bearer {token}");
    let wrong = [
        bearer(""),
        bearer("wrong"),
        bearer(&token[..token.len() - 1]),
        bearer(&format!("{token}x")),
        bearer(&token.chars().rev().collect::<String>()),
        format!("Basic {token}"),
        token.to_owned(),
        String::new(),
    ];
    let mut requests: Vec<Request> = wrong.iter().map(|value| good().with("Authorization", value)).collect();
    requests.push(good());
    requests.push(
        good()
            .with("Authorization", "Bearer wrong")
            .and("Authorization", &bearer(token)),
    );
    requests.push(good().with("Cookie", &format!("token={token}")));
    for request in requests {
        let answer = server.ask(&request);
        assert_eq!(answer.status, 401, "{request:?}: {answer:?}");
        assert!(
            answer.header("WWW-Authenticate").is_some_and(|how| how.starts_with("Bearer")),
            "{answer:?}"
        );
        assert!(!answer.text().contains(token), "{answer:?}");
    }
    for request in [
        Request::get("/metrics"),
        Request::get("/mcp").with("Accept", "text/event-stream"),
        Request::new("DELETE", "/mcp"),
        Request::get(&format!("/metrics?token={token}")),
    ] {
        assert_eq!(server.ask(&request).status, 401, "{request:?}");
    }
    // Whoever watches the process has no token, and learns nothing but that it lives.
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.ask(&Request::get(path)).status, 200, "{path}");
    }
    let said = server.said();
    assert!(!said.contains(token), "the token is told: {said}");
}

#[test]
fn a_token_is_made_once_and_asked_for() {
    let home = Home::new();
    let file = home.file("secrets/http.token");
    fs::create_dir(home.file("secrets")).unwrap();
    let options = ["--token-file", file.to_str().unwrap()];
    let server = serve(&home, &options);
    let token = fs::read_to_string(&file).unwrap().trim().to_owned();
    assert!(
        token.len() >= 43 && token.bytes().all(|byte| byte.is_ascii_graphic()),
        "{} characters",
        token.len()
    );
    assert_eq!(mode(&file), 0o600);
    assert_admits(&server, &token);
    // The name of the scheme has no case.
    assert_eq!(
        server.ask(&good().with("Authorization", &format!("bearer {token}"))).status,
        200
    );
    assert_locked(&server, &token);
    assert_told(&server, &file);
    server.close_well();

    // It stays what it was, also for another process.
    let server = serve(&home, &options);
    assert_eq!(fs::read_to_string(&file).unwrap().trim(), token);
    assert_admits(&server, &token);
    server.close_well();
}

#[test]
fn a_token_of_ones_own_is_its_first_line() {
    let home = Home::new();
    let token = "a-token-that-a-person-chose";
    let file = home.write("token", format!("  {token}\t\r\nand a remark\n"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).unwrap();
    let server = serve(&home, &["--token-file", file.to_str().unwrap()]);
    assert_admits(&server, token);
    assert_locked(&server, token);
    server.close_well();
}

fn assert_refused(refused: Result<HttpServer, Finished>, parts: &[&str]) {
    let Err(refused) = refused else {
        panic!("it serves: {parts:?}");
    };
    assert_ne!(refused.code, 0, "{refused:?}");
    assert_eq!(refused.stdout, "");
    assert_readable(&refused.stderr);
    for part in parts {
        assert!(refused.stderr.contains(part), "no {part} in {}", refused.stderr);
    }
}

#[test]
fn a_secret_that_is_none_is_refused() {
    let home = Home::new();
    let components = [guest("evil-17-host-sleep")];
    let long = "x".repeat(64);
    for option in ["--token-file", "--state-key-file"] {
        let file = home.write("secret", &long);
        let shown = file.to_str().unwrap();
        for readable in [0o644, 0o640, 0o604, 0o660, 0o622] {
            fs::set_permissions(&file, fs::Permissions::from_mode(readable)).unwrap();
            let refused = home.try_serve_http("127.0.0.1:0", &[option, shown], &components);
            assert_refused(refused, &[shown, "hint: "]);
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        for short in ["", "\n", "   \n", "short\n", &format!("\n{long}\n")] {
            home.write("secret", short);
            assert_refused(home.try_serve_http("127.0.0.1:0", &[option, shown], &components), &[shown]);
        }
        let folder = home.file(".");
        let refused = home.try_serve_http("127.0.0.1:0", &[option, folder.to_str().unwrap()], &components);
        assert_refused(refused, &[]);
    }
}

#[test]
fn off_loopback_there_is_always_a_token() {
    let home = Home::new();
    let components = [guest("evil-17-host-sleep")];
    let server = home.try_serve_http("0.0.0.0:0", &[], &components).ok().unwrap();
    let file = home.directory().join("http.token");
    let token = fs::read_to_string(&file).unwrap().trim().to_owned();
    assert_eq!(mode(&file), 0o600);
    assert_told(&server, &file);
    assert_admits(&server, &token);
    assert_locked(&server, &token);
    server.close_well();
}

#[test]
fn on_loopback_there_is_none_unless_it_is_wanted() {
    let home = Home::new();
    let server = serve(&home, &[]);
    assert_serves(&server);
    assert!(!home.directory().join("http.token").exists());
    server.close_well();
}

#[test]
fn a_bare_port_is_one_of_this_machine_only() {
    let home = Home::new();
    let server = home.try_serve_http("0", &[], &[guest("evil-17-host-sleep")]).ok().unwrap();
    assert!(server.url.starts_with("http://127.0.0.1:"), "{}", server.url);
    assert_serves(&server);
    server.close_well();
}

#[test]
fn a_port_that_is_taken_is_told() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let refused = home.try_serve_http(&address.to_string(), &[], &[guest("evil-17-host-sleep")]);
    assert_refused(refused, &[&address.ip().to_string(), &address.port().to_string(), "hint: "]);
}

#[test]
fn another_name_of_this_host_can_be_allowed() {
    let home = Home::new();
    let server = serve(&home, &["--allowed-host", "tools.example.com"]);
    for (host, status) in [
        ("tools.example.com", 200),
        ("tools.example.com:8443", 200),
        ("TOOLS.example.com", 200),
        ("evil.tools.example.com", 403),
        ("example.com", 403),
        ("tools.example.com.evil.example", 403),
    ] {
        assert_eq!(server.ask(&good().with("Host", host)).status, status, "{host}");
    }
    assert_serves(&server);
    server.close_well();
}

/// A page that was allowed may ask, and may read what is answered; another may not even ask whether it may.
#[test]
fn a_page_can_be_allowed() {
    const PAGE: &str = "https://app.example.com";
    const ALLOWED: &str = "Access-Control-Allow-Origin";
    const NAMES: [&str; 7] = [
        "content-type",
        "authorization",
        "mcp-session-id",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "last-event-id",
    ];
    let preflight = |origin: &str| {
        Request::new("OPTIONS", "/mcp")
            .with("Origin", origin)
            .with("Access-Control-Request-Method", "POST")
            .with("Access-Control-Request-Headers", &NAMES.join(","))
    };
    let home = Home::new();
    let server = serve(&home, &["--allowed-origin", PAGE]);
    let answer = server.ask(&preflight(PAGE));
    assert!(matches!(answer.status, 200 | 204), "{answer:?}");
    assert_eq!(answer.header(ALLOWED), Some(PAGE), "{answer:?}");
    let methods = answer.header("Access-Control-Allow-Methods").expect("methods");
    assert!(
        ["GET", "POST", "DELETE"].iter().all(|method| methods.contains(method)),
        "{answer:?}"
    );
    let headers = answer
        .header("Access-Control-Allow-Headers")
        .expect("headers")
        .to_ascii_lowercase();
    for name in NAMES {
        assert!(headers.contains(name), "{name}: {answer:?}");
    }
    let answer = server.ask(&good().with("Origin", PAGE));
    assert!(answer.status == 200 && is_42(&answer.message()), "{answer:?}");
    assert_eq!(answer.header(ALLOWED), Some(PAGE), "{answer:?}");
    let exposed = answer
        .header("Access-Control-Expose-Headers")
        .expect("headers")
        .to_ascii_lowercase();
    assert!(exposed.contains("mcp-session-id"), "{answer:?}");

    for other in [
        "https://evil.example",
        "http://app.example.com",
        "https://app.example.com:8443",
        "https://app.example.com.evil.example",
        "null",
    ] {
        for request in [preflight(other), good().with("Origin", other)] {
            let answer = server.ask(&request);
            assert_eq!((answer.status, answer.header(ALLOWED)), (403, None), "{other}: {answer:?}");
        }
    }
    // A page of this machine is let in, and was not allowed to read.
    let answer = server.ask(&good().with("Origin", "http://localhost:3000"));
    assert_eq!((answer.status, answer.header(ALLOWED)), (200, None), "{answer:?}");
    server.close_well();
}

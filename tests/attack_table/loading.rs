//! Rows 25 and 26: a server that sends too much, too little or too slowly, and a component that costs more than it is worth.

use std::io::{self, Write};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::servers::{Authority, Website, ok};
use crate::support::{Home, assert_readable, wait_until};
use crate::unharmed::{GOOD, Host, assert_good, good};

const HEAD: &str = "HTTP/1.1 200 OK\r\n";

/// What a hostile server does, by path.
fn answer(request: &str, to: &mut dyn Write) -> io::Result<()> {
    let module = wat::parse_str(GOOD).unwrap();
    match request.split(' ').nth(1).unwrap_or_default() {
        "/good.wasm" => ok(&module, to),
        "/cut.wasm" => ok(&module[..module.len() / 2], to),
        "/letter.wasm" => ok(b"Dear Sir or Madam,", to),
        "/promises-more.wasm" => {
            write!(to, "{HEAD}Content-Length: {}\r\n\r\n", module.len() + 1_000)?;
            to.write_all(&module)
        }
        "/unended.wasm" => {
            write!(to, "{HEAD}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", module.len())?;
            to.write_all(&module)
        }
        "/huge.wasm" => write!(to, "{HEAD}Content-Length: 9999999999999999999\r\n\r\nx"),
        "/large.wasm" => write!(to, "{HEAD}Content-Length: {}\r\n\r\nx", 600 << 20),
        "/endless.wasm" => {
            write!(to, "{HEAD}Transfer-Encoding: chunked\r\n\r\n")?;
            let chunk = [b"100000\r\n".to_vec(), vec![0; 1 << 20], b"\r\n".to_vec()].concat();
            loop {
                to.write_all(&chunk)?;
            }
        }
        "/drip.wasm" => {
            write!(to, "{HEAD}Content-Length: 100000\r\n\r\n")?;
            loop {
                to.write_all(b"\0")?;
                to.flush()?;
                thread::sleep(Duration::from_millis(20));
            }
        }
        _ => to.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
    }
}

/// A host whose agent may load from that server.
fn serve(home: &Home, authority: &Authority, website: &Website) -> Command {
    home.write("home/host.toml", format!("[agent]\nsources = [\"{}*\"]\n", website.url("/")));
    let mut command = home.host(&["serve", "--allow-agent-admin"]);
    command.arg(good(home)).env("HOST_CA_FILE", authority.file());
    command
}

#[test]
fn row_25_lying_server() {
    let home = Home::new();
    let authority = Authority::new(&home);
    let website = Website::https(&authority, answer);
    let mut host = Host::start(&mut serve(&home, &authority, &website));
    host.survives(|server| {
        for path in [
            "/cut.wasm",
            "/letter.wasm",
            "/promises-more.wasm",
            "/unended.wasm",
            "/huge.wasm",
            "/large.wasm",
            "/missing.wasm",
        ] {
            let error = server.call_error("load_component", &json!({"source": website.url(path)}));
            assert!(error.contains(path), "{path}: {error}");
        }
        // Bytes that are not those that were meant are not even looked at.
        for path in ["/good.wasm", "/letter.wasm"] {
            let arguments = json!({"source": website.url(path), "sha256": "0".repeat(64)});
            let error = server.call_error("load_component", &arguments);
            assert!(error.contains("sha256:0000"), "{error}");
        }
    });
    host.close_well();
    let listed = home.run(&["list", "--json"]);
    assert!(listed.stdout.contains("\"components\": []"), "{listed:?}");

    // The most that is fetched is counted as it comes, where nobody says how much it will be.
    let endless = website.url("/endless.wasm");
    let refused = home.run(&["add", &endless, "--ca-file", authority.file()]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_readable(&refused.stderr);
    assert!(refused.stderr.contains("512MiB"), "{}", refused.stderr);
    let added = home.run(&["add", &website.url("/good.wasm"), "--ca-file", authority.file()]);
    assert_eq!(added.code, 0, "{added:?}");
    assert_eq!(home.run(&["verify"]).code, 0);
}

/// A download has ten minutes, which is too long for a test: that they end is tested in `sources`. Here: that nobody else waits, and
/// that who gives up is rid of it.
#[test]
fn row_25_drip_server() {
    let home = Home::new();
    let authority = Authority::new(&home);
    let website = Website::https(&authority, answer);
    let mut host = Host::start(&mut serve(&home, &authority, &website));
    host.survives(|server| {
        let id = server.start_call("load_component", &json!({"source": website.url("/drip.wasm")}));
        wait_until("it drips", || website.open() == 1);
        for _ in 0..20 {
            assert_good(server);
        }
        server.notify("notifications/cancelled", &json!({"requestId": id}));
        wait_until("the connection is given up", || website.open() == 0);
        // The next one does not have to wait for it.
        let error = server.call_error("load_component", &json!({"source": website.url("/letter.wasm")}));
        assert!(error.contains("/letter.wasm"), "{error}");
    });
    host.close_well();
}

#[test]
fn row_26_compile_bomb() {
    let home = Home::new();
    let mut host = Host::serve(&home, &["--compile-timeout=200ms"], &["evil-26-compile-bomb"]);
    assert_good(&mut host.server);
    host.survives(|server| {
        let id = server.start_call("evil_26_compile_bomb_add", &json!({"a": 2, "b": 40}));
        // Who has been compiled does not wait for who is being compiled.
        for _ in 0..20 {
            let sum = server.start_call("add", &json!({"a": 2, "b": 40}));
            let answer = server.receive();
            if answer["id"] == id {
                // It may be refused that fast.
                assert_refused_to_compile(&answer["result"]);
                assert_eq!(server.receive()["id"], sum);
                return;
            }
            assert_eq!(answer["id"], sum, "{answer}");
        }
        let answer = server.receive();
        assert_eq!(answer["id"], id, "{answer}");
        assert_refused_to_compile(&answer["result"]);
    });
    host.close_well();
}

fn assert_refused_to_compile(result: &serde_json::Value) {
    assert_eq!(result["isError"], true, "{result}");
    let error = crate::support::text(result);
    assert!(error.contains("compil") && error.contains("hint: "), "{error}");
}

//! Two thousand clients at a time, most of whom want nothing, some of whom are slow, stall, or leave in the middle: the others get
//! their answers, and what all of them held is free again.
//!
//! Nothing here is a matter of time; waiting ends late, and only so that no test hangs.

#![cfg(test)]
#![cfg(target_os = "linux")]

mod support;
#[allow(dead_code, reason = "shared with the attack table, which uses all of it")]
#[path = "attack_table/unharmed.rs"]
mod unharmed;

use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use support::client::{ERAS, Era};
use support::http::{Connection, HttpClient, HttpServer, Request, stateless, stateless_call};
use support::{Home, guest, proc};
use unharmed::{Held, good};

/// How many of each kind there are at a time: two thousand together.
const IDLE: usize = 1_200;
const STREAMS: usize = 400;
const SUBSCRIPTIONS: usize = 300;
const SLOW: usize = 60;
const STALLED: usize = 20;
const SILENT: usize = 20;

/// What a stalled reader asked for and does not read: far more than the sockets between hold.
const UNREAD: usize = 2 << 20;

/// What the process may have at most while all of them are there. A stalled reader costs its result a few times over (the value, its
/// JSON, the same again as text), any other some tens of kilobytes.
const MOST_KIBIBYTES: u64 = 1 << 20;

/// What a crowd leaves behind is left by each of them; what the allocator keeps for the next one is not, but it takes it some crowds to
/// have enough.
const MOST_CROWDS: usize = 8;

/// Both ends of a connection are files, of this process and of the server. The server raises its own limit.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let most = limit.maximum.unwrap_or(u64::MAX);
    assert!(
        most > 4_000,
        "these tests need more than 4000 open files, and {most} are allowed"
    );
}

fn serve(home: &Home) -> HttpServer {
    raise_file_limit();
    let components = [good(home), guest("every-type"), guest("evil-17-host-sleep")];
    home.serve_http(&["--max-connections", "4096"], &components)
}

fn add(number: usize) -> Request {
    stateless(&stateless_call(number as u64, "add", &json!({"a": 2, "b": number})))
}

fn assert_added(message: &Value, number: usize) {
    assert_eq!(
        (&message["id"], &message["result"]["structuredContent"]),
        (&json!(number), &json!({"result": 2 + number})),
        "{message}"
    );
}

/// Asks for its own bytes back.
fn echo(bytes: usize) -> Request {
    let value = STANDARD.encode(vec![7; bytes]);
    stateless(&stateless_call(
        1,
        "test_every_type_echo_echo_bytes",
        &json!({"value": value}),
    ))
}

/// Clients of both eras who are in nobody's way: each must get the answers to its own questions, at whatever time.
fn assert_others_are_served(server: &HttpServer) {
    thread::scope(|scope| {
        for worker in 0..8 {
            scope.spawn(move || {
                let mut client = server.client(ERAS[worker % 2]);
                // They all use the same ids.
                for number in 0..25 {
                    let name = format!("{worker} {number}");
                    let result = client.call("greet", json!({"name": name}));
                    assert_eq!(
                        result["structuredContent"],
                        json!({"result": format!("Hello, {name}!")}),
                        "{result}"
                    );
                }
                if worker % 2 == 0 {
                    end(server, &client);
                }
            });
        }
    });
}

fn end(server: &HttpServer, client: &HttpClient) {
    let answer = server.ask(&Request::delete(client.session()));
    assert!(matches!(answer.status, 200 | 204), "{answer:?}");
}

/// Those who were served once and stay.
fn idle(server: &HttpServer) -> Vec<Connection> {
    (0..IDLE)
        .map(|number| {
            let mut connection = server.connect();
            assert_added(&connection.ask(&add(number)).message(), number);
            connection
        })
        .collect()
}

/// Requests that come a byte at a time, all of them at once; between the bytes others are served.
fn trickle(server: &HttpServer) {
    let mut connections: Vec<Connection> = (0..SLOW).map(|_| server.connect()).collect();
    // All of one length, so that they end together.
    let requests: Vec<Vec<u8>> = (100..100 + SLOW).map(|number| add(number).bytes(server.address)).collect();
    let length = requests[0].len();
    for at in 0..length {
        for (connection, request) in connections.iter_mut().zip(&requests) {
            connection.send_bytes([request[at]]).unwrap();
        }
        if at % 100 == 0 {
            assert_added(&server.ask(&add(at)).message(), at);
        }
    }
    for (number, connection) in (100..).zip(&mut connections) {
        assert_added(&connection.answer().message(), number);
    }
}

/// Those who ask for much and read nothing of it.
fn stall(server: &HttpServer) -> Vec<Connection> {
    let request = echo(UNREAD);
    (0..STALLED)
        .map(|_| {
            let mut connection = server.connect();
            connection.send(&request);
            connection
        })
        .collect()
}

/// Those who leave: in every part of a request, before its answer, and in the middle of that.
fn disconnect(server: &HttpServer) {
    let whole = add(7).bytes(server.address);
    let body = whole.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    for length in [0, 1, 10, body / 2, body - 1, body, body + 1, whole.len() - 1, whole.len()] {
        for _ in 0..5 {
            let mut connection = server.connect();
            connection.send_bytes(&whole[..length]).unwrap();
            // Half of them say that they have ended, as a client does that was killed; the others just go.
            if length % 2 == 0 {
                connection.end();
            }
        }
    }
    for _ in 0..5 {
        let mut connection = server.connect();
        connection.send(&echo(UNREAD));
        // The rest is on its way, or still with the server.
        assert_eq!(connection.head().status, 200);
    }
    let mut session = server.client(Era::Initialize);
    for client in [&mut session, &mut server.client(Era::Stateless)] {
        for token in 0..5 {
            let meta = json!({"progressToken": token});
            let params = json!({"name": "sleep", "arguments": {"seconds": 2}, "_meta": meta});
            client.start("tools/call", params).wait_until_it_runs();
            client.start("tools/call", json!({"name": "greet", "arguments": {"name": "nobody"}}));
        }
    }
    // With a stream open, and with calls whose answers nobody takes.
    let _stream = session.listen();
    end(server, &session);
}

/// All of them at once. Nobody is left at its end.
fn crowd(server: &HttpServer) {
    let mut sessions: Vec<HttpClient> = (0..STREAMS).map(|_| server.client(Era::Initialize)).collect();
    let streams: Vec<Connection> = sessions.iter_mut().map(HttpClient::listen).collect();
    let mut subscriptions: Vec<Connection> = (0..SUBSCRIPTIONS).map(|_| server.client(Era::Stateless).listen()).collect();
    let stalled = stall(server);
    let silent: Vec<Connection> = (0..SILENT).map(|_| server.connect()).collect();
    let mut idle = idle(server);
    support::wait_until("everybody is connected", || {
        proc::open_files(server.pid()) >= IDLE + STREAMS + SUBSCRIPTIONS + SILENT + STALLED
    });

    trickle(server);
    assert_others_are_served(server);
    disconnect(server);
    assert_others_are_served(server);
    let now = proc::status(server.pid(), "VmRSS");
    assert!(now < MOST_KIBIBYTES, "{now} KiB with all of them there");

    // Whoever was idle is served as before on the same connection, unless the server had enough of waiting.
    for (number, connection) in idle.iter_mut().enumerate().step_by(50) {
        if connection.send_bytes(add(number).bytes(server.address)).is_ok()
            && let Ok(mut answer) = connection.try_head()
        {
            answer.body = connection.body();
            assert_added(&answer.message(), number);
        }
    }
    for session in sessions.iter_mut().step_by(50) {
        let result = session.call("add", json!({"a": 2, "b": 40}));
        assert_eq!(result["structuredContent"], json!({"result": 42}), "{result}");
    }
    for session in &sessions {
        end(server, session);
    }
    drop((idle, streams, silent, stalled));
    // Half of them break off, the others say so.
    subscriptions.truncate(SUBSCRIPTIONS / 2);
    for subscription in &mut subscriptions {
        subscription.end();
    }
}

#[test]
fn two_thousand_clients_leave_nothing_behind() {
    let home = Home::new();
    let server = serve(&home);
    assert_others_are_served(&server);
    // Code is mapped then, and the allocator has what it will have.
    crowd(&server);
    assert_others_are_served(&server);
    let mut most = Held::by(server.pid());
    for _ in 0..MOST_CROWDS {
        crowd(&server);
        match most.outgrown(Duration::from_secs(10)) {
            None => {
                assert_others_are_served(&server);
                return server.close_well();
            }
            Some(now) => most = now,
        }
    }
    panic!("each crowd leaves something behind: {most:?} after {MOST_CROWDS}");
}

/// Where there is no more room for anybody, there is again once somebody has gone.
#[test]
fn more_than_may_connect_are_turned_away() {
    const MOST: usize = 10;
    let home = Home::new();
    let server = home.serve_http(&["--max-connections", &MOST.to_string()], &[good(&home)]);
    for _ in 0..5 {
        let mut inside = Vec::new();
        // Those of the round before may not have left yet.
        support::wait_until("there is room", || {
            inside = (0..MOST).map(|_| server.connect()).collect();
            inside.iter_mut().all(|connection| connection.ask(&add(7)).status == 200)
        });
        let outside: Vec<Connection> = (0..MOST)
            .map(|_| {
                let mut connection = server.connect();
                let answer = connection.ask(&add(7));
                assert_eq!(answer.status, 503, "{answer:?}");
                assert!(answer.header("Retry-After").is_some(), "{answer:?}");
                connection
            })
            .collect();
        // Those who were there first do not suffer, and whoever watches the server still can.
        for (number, connection) in inside.iter_mut().enumerate() {
            assert_added(&connection.ask(&add(number)).message(), number);
        }
        assert_eq!(server.ask(&Request::get("/healthz")).status, 200);
        drop((inside, outside));
    }
    support::wait_until("there is room", || server.ask(&add(7)).status == 200);
    server.close_well();
}

/// Bodies that are announced and begun, and never end, hold up nobody else.
#[test]
fn bodies_that_never_end_leave_room_for_others() {
    let home = Home::new();
    let server = serve(&home);
    let begin = || {
        let begun: Vec<Connection> = (0..200)
            .map(|_| {
                let mut connection = server.connect();
                connection.send(&add(7).body("").with("Content-Length", &(30 << 20).to_string()));
                connection.send_bytes(vec![b' '; 64 << 10]).unwrap();
                connection
            })
            .collect();
        assert_others_are_served(&server);
        let now = proc::status(server.pid(), "VmRSS");
        assert!(now < MOST_KIBIBYTES, "{now} KiB for 200 bodies of 64 KiB");
        drop(begun);
        assert_others_are_served(&server);
    };
    begin();
    let before = Held::by(server.pid());
    begin();
    before.assert_still();
    server.close_well();
}

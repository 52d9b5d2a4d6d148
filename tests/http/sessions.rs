//! Sessions of the older era: what their ids are good for, how they end, and that nothing of them is kept that another process would
//! need.

use serde_json::json;

use crate::support::Home;
use crate::support::client::Era;
use crate::support::http::{HttpClient, HttpServer, Request, SESSION, SESSION_VERSION, VERSION};
use crate::{assert_adds, serve};

/// How a request of this client is answered.
fn status(client: &mut HttpClient, server: &HttpServer) -> u16 {
    let message = client.message("tools/list", json!({}));
    server.ask(&client.post(&message)).status
}

#[test]
fn an_id_that_was_never_given_is_not_found() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let mut client = server.client(Era::Initialize);
    let message = client.message("tools/list", json!({}));
    let real = client.session().to_owned();
    let another = |at: usize| {
        let mut bytes = real.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).unwrap()
    };
    let mut unknown: Vec<String> = [
        "x",
        "00000000-0000-4000-8000-000000000000",
        "../../etc/passwd",
        &"x".repeat(4 << 10),
    ]
    .map(str::to_owned)
    .into();
    // Whatever is changed in one, it is none any more.
    unknown.extend((0..real.len()).step_by(real.len() / 40 + 1).map(another));
    unknown.push(real[..real.len() - 1].to_owned());
    unknown.push(format!("{real}A"));
    unknown.push(real.to_uppercase());
    for id in unknown {
        assert_eq!(server.ask(&client.post(&message).with(SESSION, &id)).status, 404, "{id}");
        assert_eq!(server.ask(&Request::stream(&id)).status, 404, "{id}");
        assert_eq!(server.ask(&Request::delete(&id)).status, 404, "{id}");
    }
    assert_adds(&mut client);
    server.close_well();
}

#[test]
fn a_request_without_any_id_is_a_bad_one() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let mut client = server.client(Era::Initialize);
    let message = client.message("tools/list", json!({}));
    assert_eq!(server.ask(&client.post(&message).without(SESSION)).status, 400);
    assert_eq!(server.ask(&Request::stream("x").without(SESSION)).status, 400);
    assert_eq!(server.ask(&Request::delete("x").without(SESSION)).status, 400);
    server.close_well();
}

#[test]
fn a_deleted_session_is_gone() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let (mut client, mut other) = (server.client(Era::Initialize), server.client(Era::Initialize));
    let mut stream = client.listen();
    let deleted = server.ask(&Request::delete(client.session()));
    assert!(matches!(deleted.status, 200 | 204), "{deleted:?}");
    assert_eq!(stream.event(), None);
    assert_eq!(status(&mut client, &server), 404);
    assert_eq!(server.ask(&Request::stream(client.session())).status, 404);
    assert_adds(&mut other);
    server.close_well();
}

#[test]
fn every_client_has_a_session_of_its_own() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let ids: std::collections::HashSet<String> = (0..50).map(|_| server.client(Era::Initialize).session().to_owned()).collect();
    assert_eq!(ids.len(), 50);
    server.close_well();
}

/// Behind a balancer the next request may come to another process, or to the same after a restart.
#[test]
fn another_process_with_the_same_key_takes_a_session_up() {
    let [first_home, second_home, third_home] = [(); 3].map(|()| Home::new());
    let key = first_home.file("state.key");
    let options = ["--state-key-file", key.to_str().unwrap()];
    let first = serve(&first_home, &options);
    let mut client = first.client(Era::Initialize);
    assert_adds(&mut client);

    let second = serve(&second_home, &options);
    let mut there = client.at(&second);
    assert_adds(&mut there);
    let mut stream = there.listen();
    // Both go on serving it.
    assert_adds(&mut client);
    first.close_well();
    assert_adds(&mut there);

    let stranger = serve(
        &third_home,
        &["--state-key-file", third_home.file("state.key").to_str().unwrap()],
    );
    assert_eq!(status(&mut client.at(&stranger), &stranger), 404);
    stranger.close_well();

    let restarted = serve(&first_home, &options);
    assert_adds(&mut client.at(&restarted));
    restarted.close_well();
    second.close_well();
    assert!(stream.event().is_none());
}

/// Without a file that is named the key is kept in the home of the host.
#[test]
fn a_session_outlives_a_restart() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let first = serve(&home, &[]);
    let mut client = first.client(Era::Initialize);
    assert_adds(&mut client);
    first.close_well();
    let mode = std::fs::metadata(home.directory().join("http.key"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = serve(&home, &[]);
    assert_adds(&mut client.at(&second));
    second.close_well();
}

#[test]
fn a_client_that_says_too_much_of_itself_is_served_or_refused_but_gets_no_endless_id() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let mut message = crate::support::http::initialize(SESSION_VERSION, &json!({}));
    message["params"]["clientInfo"]["name"] = json!("x".repeat(1 << 20));
    message["params"]["capabilities"]["experimental"] = json!({"x": {"y": "z".repeat(1 << 20)}});
    let answer = server.ask(&Request::post(message.to_string()));
    match answer.header(SESSION) {
        Some(session) => {
            assert!(session.len() <= 8 << 10, "{} bytes", session.len());
            let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
            let request = Request::post(list.to_string())
                .with(SESSION, session)
                .with(VERSION, SESSION_VERSION);
            assert_eq!(server.ask(&request).status, 200);
        }
        None => assert!((400..500).contains(&answer.status), "{answer:?}"),
    }
    server.close_well();
}

//! Downloads from a real TLS server that answers as it is told, lies and breaks off.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests are outside of test functions"
)]

mod common;

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use Step::{End, Hang, Send};
use common::server::{Names, Script, Step, World, millis, ok, quick};
use common::write;
use policy::ByteSize;
use sources::{Client, ClientOptions, FetchError, HttpsUrl, Partial, Progress};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const FILE: &[u8] = b"\0asm and all that follows it";

#[tokio::test]
async fn a_file_arrives() {
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n\0asm \r\n17\r\nand all that follows it\r\n0\r\n\r\n".to_vec();
    let until_the_end = [b"HTTP/1.1 200 OK\r\n\r\n", FILE].concat();
    for (reply, total) in [(ok(FILE, ""), Some(28)), (chunked, None), (until_the_end, None)] {
        let world = World::new();
        let server = world.serve(move |_, _| vec![Send(reply.clone()), End]).await;
        let seen = Mutex::new(Vec::new());
        let note = |progress: Progress| seen.lock().unwrap().push(progress);
        let mut partial = Partial::default();
        let client = world.client();
        assert_eq!(
            client.download(&server.url("/x.wasm"), &mut partial, &note).await.unwrap(),
            FILE
        );
        assert_eq!(partial, Partial::default());
        assert_eq!(*seen.lock().unwrap().last().unwrap(), Progress { received: 28, total });

        let [request] = &server.requests()[..] else {
            panic!("{:?}", server.requests())
        };
        for part in ["GET /x.wasm HTTP/1.1\r\n", "\r\naccept-encoding: identity\r\n"] {
            assert!(request.contains(part), "{request}");
        }
        for header in ["authorization", "cookie", "range", "referer"] {
            assert!(!request.contains(&format!("\r\n{header}:")), "{request}");
        }
    }
}

// Redirects

/// `/hop/3` leads to `/hop/2`, and so on until the file at `/hop/0`; `/to?URL` leads to
/// that URL, and everything else to itself.
fn hops(request: &str, _: usize) -> Vec<Step> {
    let target = request.split(' ').nth(1).unwrap();
    let next = match target.strip_prefix("/hop/") {
        Some("0") => return vec![Send(ok(FILE, "")), End],
        Some(hop) => format!("/hop/{}", hop.parse::<u32>().unwrap() - 1),
        None => target.split_once('?').map_or(target, |(_, url)| url).to_owned(),
    };
    vec![
        Send(format!("HTTP/1.1 302 Found\r\nLocation: {next}\r\nContent-Length: 0\r\n\r\n").into_bytes()),
        End,
    ]
}

#[tokio::test]
async fn redirects_are_followed_up_to_five() {
    let world = World::new();
    let server = world.serve(hops).await;
    let absolute = format!("/to?{}", server.url("/hop/4"));
    for path in ["/hop/1", "/hop/5", "/to?hop/0", "/to?./a/../hop/1", &absolute] {
        assert_eq!(fetch(&world.client(), &server.url(path)).await.unwrap(), FILE, "{path}");
    }
    let error = fetch(&world.client(), &server.url("/hop/6")).await.unwrap_err();
    assert!(matches!(error, FetchError::TooManyRedirects { limit: 5, .. }), "{error}");
}

#[tokio::test]
async fn redirects_to_nowhere_good_are_refused() {
    let world = World::new();
    let server = world.serve(hops).await;
    for (target, part) in [
        ("http://localhost/x", "leads on to `http://localhost`, which is not https"),
        ("ftp://localhost/x", "which is not https"),
        ("file:///etc/passwd", "which is not https"),
        ("data:application/wasm,x", "which is not https"),
        ("https://me:secret@localhost/x", "which is a URL with credentials in it"),
        ("https://me@localhost/x", "which is a URL with credentials in it"),
        ("/circle", "leads in a circle"),
    ] {
        let error = fetch(&world.client(), &server.url(&format!("/to?{target}")))
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(part) && error.contains("\nhint: "), "{target}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

/// In the world of these tests 127.0.0.2 is on the public internet, and 127.0.0.1 in a private network.
#[tokio::test]
async fn a_public_server_cannot_send_us_into_a_private_network() {
    let world = World::new();
    let private = world.serve(hops).await;
    let public = world.serve_publicly(hops).await;
    let port = private.address.port();
    for target in [
        format!("https://127.0.0.1:{port}/hop/0"),
        format!("https://2130706433:{port}/hop/0"),
        format!("https://0x7f.1:{port}/hop/0"),
        format!("https://[::ffff:127.0.0.1]:{port}/hop/0"),
        format!("https://[::1]:{port}/hop/0"),
        format!("https://localhost:{port}/hop/0"),
        format!("https://private.test:{port}/hop/0"),
        "https://169.254.169.254/latest/meta-data".to_owned(),
        "https://metadata.test/latest/meta-data".to_owned(),
        "https://10.0.0.1/".to_owned(),
        // Over another public server.
        format!("{}?https://private.test:{port}/hop/0", public.named("public-too.test", "/to")),
    ] {
        let error = fetch(&world.client(), &public.url(&format!("/to?{target}")))
            .await
            .unwrap_err();
        assert!(matches!(error, FetchError::PrivateAddress { .. }), "{target}: {error}");
    }
    assert_eq!(private.connections(), 0, "it was dialled");

    // Of several addresses only the public ones are dialled.
    let mixed = public.named("mixed.test", "/hop/0");
    assert_eq!(
        fetch(&world.client(), &public.url(&format!("/to?{mixed}"))).await.unwrap(),
        FILE
    );
    // Who sends us from a private network to a public server cannot be sent back by that one.
    let back = format!("{}?{}", public.url("/to"), private.url("/hop/0"));
    let error = fetch(&world.client(), &private.url(&format!("/to?{back}")))
        .await
        .unwrap_err();
    assert!(matches!(error, FetchError::PrivateAddress { .. }), "{error}");
}

#[tokio::test]
async fn a_person_may_name_a_private_address() {
    let world = World::new();
    let private = world.serve(hops).await;
    let other = world.serve(hops).await;
    let hop = private.url(&format!("/to?{}", other.named("private.test", "/hop/0")));
    assert_eq!(fetch(&world.client(), &hop).await.unwrap(), FILE);
}

// Servers that take their time, or never end

#[tokio::test]
async fn a_server_that_falls_silent_is_given_up() {
    let world = World::new();
    for silent in [vec![Hang], vec![Send(ok(FILE, "")[..60].to_vec()), Hang]] {
        let server = world.serve(move |_, _| silent.clone()).await;
        let client = world.client_with(|options| {
            options.connect_timeout = millis(2000);
            options.stall_timeout = millis(500);
            options.max_retries = 0;
        });
        let error = fetch(&client, &server.url("/")).await.unwrap_err();
        assert!(matches!(error, FetchError::Stalled { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_drips_meets_the_deadline() {
    let world = World::new();
    let drops = std::iter::repeat_n([Send(b"x".to_vec()), Step::Wait(Duration::from_millis(10))], 10_000).flatten();
    let drip: Vec<Step> = [Send(
        b"HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 10000\r\n\r\n".to_vec(),
    )]
    .into_iter()
    .chain(drops)
    .collect();
    let server = world.serve(move |_, _| drip.clone()).await;
    let client = world.client_with(|options| options.total_timeout = millis(1000));
    let mut partial = Partial::default();
    let error = client.download(&server.url("/"), &mut partial, &|_| {}).await.unwrap_err();
    assert!(matches!(error, FetchError::Deadline { .. }), "{error}");
    assert!(
        !partial.bytes.is_empty() && partial.validator.is_some(),
        "what had arrived is kept"
    );
}

#[tokio::test]
async fn what_is_too_large_is_given_up_early() {
    let world = World::new();
    let head = |header: &str| Send(format!("HTTP/1.1 200 OK\r\n{header}\r\n\r\n").into_bytes());
    let endless = |step: Step| std::iter::repeat_n(step, 100_000);
    let chunk = Send([b"400\r\n".to_vec(), vec![b'x'; 1024], b"\r\n".to_vec()].concat());
    for reply in [
        [head("Transfer-Encoding: chunked")]
            .into_iter()
            .chain(endless(chunk))
            .collect::<Vec<_>>(),
        [head("X: y")].into_iter().chain(endless(Send(vec![b'x'; 1024]))).collect(),
        vec![head("Content-Length: 10001"), Hang],
        vec![head("Content-Length: 9999999999999999999"), Hang],
    ] {
        let server = world.serve(move |_, _| reply.clone()).await;
        let client = world.client_with(|options| options.max_size = ByteSize::from_bytes(10_000));
        let mut partial = Partial::default();
        let error = client
            .download(&server.url("/x?token=secret"), &mut partial, &|_| {})
            .await
            .unwrap_err();
        assert!(matches!(error, FetchError::TooLarge { .. }), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
        assert_eq!((partial, server.requests().len()), (Partial::default(), 1));
    }
}

#[tokio::test]
async fn a_file_may_be_as_large_as_the_limit() {
    let world = World::new();
    let server = world.serve(|_, _| vec![Send(ok(FILE, "")), End]).await;
    let client = world.client_with(|options| options.max_size = ByteSize::from_bytes(FILE.len() as u64));
    assert_eq!(fetch(&client, &server.url("/")).await.unwrap(), FILE);
}

// Lengths that lie

#[tokio::test]
async fn a_body_shorter_than_promised_is_no_file() {
    let world = World::new();
    let short = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort";
    let unended = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n";
    for reply in [short, unended] {
        let server = world.serve(move |_, _| vec![Send(reply.into()), End]).await;
        let client = world.client_with(|options| options.max_retries = 1);
        let error = fetch(&client, &server.url("/")).await.unwrap_err();
        assert!(
            matches!(error, FetchError::Broken { .. } | FetchError::EndedEarly { received: 5, .. }),
            "{error}"
        );
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test]
async fn nothing_is_taken_beyond_the_promised_length() {
    let world = World::new();
    let long = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nshort and some more";
    let server = world.serve(move |_, _| vec![Send(long.into()), End]).await;
    assert_eq!(fetch(&world.client(), &server.url("/")).await.unwrap(), b"short");
}

#[tokio::test]
async fn two_lengths_are_no_length() {
    let world = World::new();
    let twice = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 9\r\n\r\nshort and";
    let server = world.serve(move |_, _| vec![Send(twice.into()), End]).await;
    assert!(fetch(&world.client(), &server.url("/")).await.is_err());
}

// Going on

/// The answer to the first request breaks off after ten bytes; the others are as told.
fn breaks_off(headers: &'static str, then: impl Fn(&str) -> Vec<u8> + std::marker::Send + Sync + 'static) -> impl Script {
    move |request: &str, earlier: usize| {
        if earlier == 0 {
            let reply = ok(FILE, headers);
            vec![Send(reply[..reply.len() - FILE.len() + 10].to_vec()), End]
        } else {
            vec![Send(then(request)), End]
        }
    }
}

fn rest(headers: &str) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\n{headers}\r\n",
        FILE.len() - 10
    );
    [head.as_bytes(), &FILE[10..]].concat()
}

#[tokio::test]
async fn a_broken_download_goes_on() {
    for (headers, validator) in [
        ("ETag: \"v1\"\r\n", "\"v1\""),
        (
            "Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n",
            "Wed, 21 Oct 2015 07:28:00 GMT",
        ),
    ] {
        let world = World::new();
        let then = move |_: &str| rest(&format!("Content-Range: bytes 10-27/28\r\n{headers}"));
        let server = world.serve(breaks_off(headers, then)).await;
        assert_eq!(fetch(&world.client(), &server.url("/")).await.unwrap(), FILE);
        let [_, second] = &server.requests()[..] else {
            panic!("{:?}", server.requests())
        };
        assert!(second.contains("\r\nrange: bytes=10-\r\n"), "{second}");
        assert!(second.contains(&format!("\r\nif-range: {validator}\r\n")), "{second}");
    }
}

#[tokio::test]
async fn what_cannot_go_on_starts_anew() {
    const V1: &str = "ETag: \"v1\"\r\n";
    let whole = || ok(FILE, "");
    for (what, headers, second, requests) in [
        ("the server knows no ranges", V1, whole(), 2),
        ("no validator", "", whole(), 2),
        ("a weak validator", "ETag: W/\"v1\"\r\n", whole(), 2),
        (
            "a weak validator beside a date",
            "ETag: W/\"v1\"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n",
            whole(),
            2,
        ),
        (
            "another version in spite of If-Range",
            V1,
            rest("Content-Range: bytes 10-27/28\r\nETag: \"v2\"\r\n"),
            3,
        ),
        ("another start", V1, rest("Content-Range: bytes 9-27/28\r\n"), 3),
        ("another end", V1, rest("Content-Range: bytes 10-20/28\r\n"), 3),
        ("an unknown end", V1, rest("Content-Range: bytes 10-27/*\r\n"), 3),
        ("no range", V1, rest(""), 3),
        (
            "ranges of nonsense",
            V1,
            rest("Content-Range: bytes 10-99999999999999999999/x\r\n"),
            3,
        ),
        (
            "the largest number",
            V1,
            rest("Content-Range: bytes 10-18446744073709551615/28\r\n"),
            3,
        ),
        (
            "too short now",
            V1,
            b"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n".to_vec(),
            3,
        ),
    ] {
        let world = World::new();
        let goes_on = headers == V1;
        let then = move |request: &str| {
            if goes_on && !request.contains("range: ") {
                whole()
            } else {
                second.clone()
            }
        };
        let server = world.serve(breaks_off(headers, then)).await;
        assert_eq!(fetch(&world.client(), &server.url("/")).await.unwrap(), FILE, "{what}");
        assert_eq!(server.requests().len(), requests, "{what}");
        assert_eq!(server.requests()[1].contains("range: "), goes_on, "{what}");
    }
}

#[tokio::test]
async fn a_file_that_changed_meanwhile_is_the_new_one() {
    let world = World::new();
    let server = world
        .serve(breaks_off("ETag: \"v1\"\r\n", |_| ok(b"new", "ETag: \"v2\"\r\n")))
        .await;
    assert_eq!(fetch(&world.client(), &server.url("/")).await.unwrap(), b"new");
}

#[tokio::test]
async fn another_process_goes_on() {
    let world = World::new();
    let then = |_: &str| rest("Content-Range: bytes 10-27/28\r\nETag: \"v1\"\r\n");
    let server = world.serve(breaks_off("ETag: \"v1\"\r\n", then)).await;
    let mut partial = Partial::default();
    let client = world.client_with(|options| options.max_retries = 0);
    let error = client.download(&server.url("/"), &mut partial, &|_| {}).await.unwrap_err();
    assert!(matches!(error, FetchError::EndedEarly { received: 10, .. }), "{error}");

    let (kept, validator) = (partial.bytes.clone(), partial.validator.unwrap().to_string());
    assert_eq!((&kept[..], validator.as_str()), (&FILE[..10], "\"v1\""));
    let mut partial = Partial {
        bytes: kept,
        validator: Some(validator.parse().unwrap()),
    };
    let bytes = world
        .client()
        .download(&server.url("/"), &mut partial, &|_| {})
        .await
        .unwrap();
    assert_eq!(bytes, FILE);
}

#[tokio::test]
async fn who_stops_waiting_can_go_on() {
    let world = World::new();
    let begun = [Send([&ok(FILE, "ETag: \"v1\"\r\n")[..], b""].concat()[..70].to_vec()), Hang];
    let server = world.serve(move |_, _| begun.to_vec()).await;
    let (client, url, mut partial) = (world.client(), server.url("/"), Partial::default());
    let arrived = tokio::sync::Notify::new();
    let note = |progress: Progress| {
        if progress.received > 0 {
            arrived.notify_one();
        }
    };
    tokio::select! {
        _ = client.download(&url, &mut partial, &note) => panic!("it hangs"),
        () = arrived.notified() => {}
    }
    assert!(!partial.bytes.is_empty() && FILE.starts_with(&partial.bytes));
}

// Answers that are no file

#[tokio::test]
async fn other_answers_are_errors_that_show_no_secret() {
    let world = World::new();
    for (reply, part) in [
        (
            "404 Not Found\r\nContent-Length: 14\r\n\r\n<h1>secret</h1",
            "answered with status 404\nhint: ",
        ),
        ("500 Oh\r\nContent-Length: 0\r\n\r\n", "answered with status 500\nhint: "),
        ("403 No\r\nContent-Length: 0\r\n\r\n", "hint: downloads are anonymous"),
        ("204 No Content\r\n\r\n", "answered with status 204"),
        (
            "206 Partial Content\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\nhello",
            "answered with status 206",
        ),
        ("302 Found\r\nContent-Length: 0\r\n\r\n", "answered with status 302"),
        ("304 Not Modified\r\n\r\n", "answered with status 304"),
        (
            "200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
            "answers compressed",
        ),
        (
            "200 OK\r\nContent-Encoding: identity, br\r\nContent-Length: 5\r\n\r\nhello",
            "answers compressed",
        ),
    ] {
        let server = world
            .serve(move |_, _| vec![Send(format!("HTTP/1.1 {reply}").into_bytes()), End])
            .await;
        let error = fetch(&world.client(), &server.url("/x?token=secret"))
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{error}");
        assert!(!error.contains("secret"), "{error}");
        assert_eq!(server.requests().len(), 1, "{error}");
    }
}

#[tokio::test]
async fn servers_that_cannot_be_trusted_or_reached() {
    let world = World::new();
    let server = world.serve(hops).await;
    let stranger = Client::new(quick()).unwrap();
    let error = fetch(&stranger, &server.url("/hop/0")).await.unwrap_err();
    assert!(matches!(error, FetchError::Certificate { .. }), "{error}");
    assert!(error.to_string().contains("`--ca-file`"), "{error}");

    let error = fetch(&world.client(), &server.named("wrong-name.test", "/hop/0"))
        .await
        .unwrap_err();
    assert!(matches!(error, FetchError::Certificate { .. }), "{error}");

    let plain = world.serve_plainly(hops).await;
    let error = fetch(&world.client(), &plain.url("/hop/0")).await.unwrap_err();
    assert!(matches!(error, FetchError::NotTls { .. }), "{error}");

    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = fetch(&world.client(), &format!("https://{nobody}/").parse().unwrap())
        .await
        .unwrap_err();
    assert!(matches!(error, FetchError::Connect { .. }), "{error}");
    let error = fetch(&world.client(), &"https://unknown.test/".parse().unwrap())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("could not be reached: no such name"), "{error}");
}

// Proxies

/// Variables are those of a process, so another process is the client.
#[tokio::test]
async fn proxies_of_the_environment_are_used() {
    let world = World::new();
    let server = world.serve_publicly(hops).await;
    let local = world.serve(hops).await;
    let proxy = proxy_to(server.address).await;
    let mut client = std::process::Command::new(std::env::current_exe().unwrap());
    client
        .args(["--exact", "behind_a_proxy", "--ignored"])
        .env("HTTPS_PROXY", format!("http://{proxy}"))
        .env("TEST_CA_FILE", world.authority.ca_file())
        .env("TEST_URL", local.url("/hop/0").to_string())
        .env("TEST_PORT", server.address.port().to_string());
    let output = tokio::task::spawn_blocking(move || client.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    // Two downloads through the proxy, of which one has two hops.
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
#[ignore = "the other half of `proxies_of_the_environment_are_used`"]
async fn behind_a_proxy() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let options = ClientOptions {
        ca_files: vec![variable("TEST_CA_FILE").into()],
        proxies: true,
        ..quick()
    };
    let client = Client::with_network(options, std::sync::Arc::new(Names)).unwrap();
    // Only the proxy knows these names.
    let url = |name: &str, path: &str| format!("https://{name}:{}{path}", variable("TEST_PORT"));
    let next = url("proxied-too.test", "/hop/0");
    let found = fetch(&client, &url("proxied.test", &format!("/to?{next}")).parse().unwrap()).await;
    assert_eq!(found.unwrap(), FILE);

    let next = url("10.0.0.1", "/hop/0");
    let found = fetch(&client, &url("proxied.test", &format!("/to?{next}")).parse().unwrap()).await;
    assert!(matches!(found, Err(FetchError::PrivateAddress { .. })), "{found:?}");
    // What is on this machine is not asked for elsewhere.
    let found = fetch(&client, &variable("TEST_URL").parse().unwrap()).await;
    assert_eq!(found.unwrap(), FILE);
}

/// A proxy for which every name is that of one server.
async fn proxy_to(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    request.push(client.read_u8().await.unwrap());
                }
                assert!(request.starts_with(b"CONNECT proxied"));
                let mut server = TcpStream::connect(server).await.unwrap();
                client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await.unwrap();
                // Either side may hang up without a word.
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    address
}

#[test]
fn certificates_that_are_none_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    write(&empty, b"nothing here");
    let broken = folder.path().join("broken.pem");
    write(&broken, b"-----BEGIN CERTIFICATE-----\naGk=\n-----END CERTIFICATE-----\n");
    for path in [empty, broken, folder.path().join("missing.pem")] {
        let error = Client::new(ClientOptions {
            ca_files: vec![path.clone()],
            ..quick()
        });
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains(path.to_str().unwrap()) && error.contains("\nhint: "),
            "{error}"
        );
    }
}

async fn fetch(client: &Client, url: &HttpsUrl) -> Result<Vec<u8>, FetchError> {
    client.download(url, &mut Partial::default(), &|_| {}).await
}

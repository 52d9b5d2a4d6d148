//! Registries that lie, never end, or want our credentials to go elsewhere.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests are outside of test functions"
)]

mod common;

use std::collections::BTreeMap;
use std::time::SystemTime;

use Step::{End, Send};
use common::server::{Script, Server, Step, World, ok};
use serde_json::json;
use sources::{Client, Credential, Digest, FetchError, Logins, OciReference, Published, Secret};

const WASM: &[u8] = b"\0asm and all that follows it";

#[tokio::test]
async fn credentials_do_not_follow_a_redirect() {
    let world = World::new();
    let storage = world.serve(|_, _| vec![Send(ok(WASM, "")), End]).await;
    let blob = redirect(storage.url("/blob?signature=1"));
    let registry = world.serve(asking(r#"Basic realm="here""#, manifest(), blob)).await;
    let pulled = pull(&with_password(&world), &registry).await.unwrap();
    assert_eq!(pulled, WASM);
    let [request] = &storage.requests()[..] else {
        panic!("{:?}", storage.requests())
    };
    assert!(!request.contains("authorization"), "{request}");
    assert!(registry.requests().last().unwrap().contains("\r\nauthorization: Basic "));
}

#[tokio::test]
async fn a_public_registry_cannot_send_us_into_a_private_network() {
    let world = World::new();
    let private = world.serve(|_, _| vec![Send(ok(WASM, "")), End]).await;
    let targets = [
        private.url("/x"),
        private.named("private.test", "/x"),
        private.named("localhost", "/x"),
    ];
    for target in targets {
        let registry = world.serve_publicly(serving(manifest(), redirect(&target))).await;
        let error = pull(&with_password(&world), &registry).await.unwrap_err();
        assert!(matches!(error, FetchError::PrivateAddress { .. }), "{error}");

        let challenge = format!(r#"Bearer realm="{target}""#);
        let registry = world.serve_publicly(asking(&challenge, manifest(), ok(WASM, ""))).await;
        let error = pull(&with_password(&world), &registry).await.unwrap_err();
        assert!(matches!(error, FetchError::PrivateAddress { .. }), "{error}");

        let registry = world.serve_publicly(uploading_to(target.to_string())).await;
        let error = push(&with_password(&world), &registry).await.unwrap_err();
        assert!(matches!(error, FetchError::PrivateAddress { .. }), "{error}");
    }
    assert_eq!(private.connections(), 0, "it was dialled");
}

#[tokio::test]
async fn credentials_go_over_tls_only() {
    let world = World::new();
    let plain = world
        .serve_plainly(|_, _| vec![Send(ok(br#"{"token": "t"}"#, "")), End])
        .await;
    let target = format!("http://{}/", plain.address);
    let challenge = format!(r#"Bearer realm="{target}""#);
    let registry = world.serve(asking(&challenge, manifest(), ok(WASM, ""))).await;
    let error = pull(&with_password(&world), &registry).await.unwrap_err();
    assert!(
        matches!(
            error,
            FetchError::Redirect {
                problem: "not https",
                ..
            }
        ),
        "{error}"
    );

    let registry = world.serve(uploading_to(target)).await;
    let error = push(&with_password(&world), &registry).await.unwrap_err();
    assert!(
        matches!(
            error,
            FetchError::Redirect {
                problem: "not https",
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(plain.connections(), 0, "it was dialled");
}

#[tokio::test]
async fn an_upload_elsewhere_takes_no_credentials_along() {
    let world = World::new();
    let storage = world
        .serve(|_, _| vec![Send(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n".to_vec()), End])
        .await;
    let registry = world.serve(uploading_to(storage.url("/upload?state=1").to_string())).await;
    push(&with_password(&world), &registry).await.unwrap();
    let requests = storage.requests();
    assert_eq!(requests.len(), 2, "the component and its config");
    for request in requests {
        assert!(
            request.starts_with("PUT /upload?state=1&digest=sha256%3A") && !request.contains("authorization"),
            "{request}"
        );
    }
}

#[tokio::test]
async fn a_token_server_may_not_send_us_on() {
    let world = World::new();
    let elsewhere = world.serve(|_, _| vec![Send(ok(br#"{"token": "t"}"#, "")), End]).await;
    let next = redirect(elsewhere.url("/"));
    let tokens = world.serve(move |_, _| vec![Send(next.clone()), End]).await;
    let challenge = format!(r#"Bearer realm="{}""#, tokens.url("/token?secret=x"));
    let registry = world.serve(asking(&challenge, manifest(), ok(WASM, ""))).await;
    let error = pull(&with_password(&world), &registry).await.unwrap_err();
    assert!(matches!(error, FetchError::Status { status: 307, .. }), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn a_challenge_that_makes_no_sense_is_an_error() {
    let world = World::new();
    for challenge in [
        "",
        "Negotiate",
        "Bearer",
        "Bearer realm=\"nowhere\"",
        "Bearer realm=\"",
        "\u{1}",
    ] {
        let registry = world.serve(asking(challenge, manifest(), ok(WASM, ""))).await;
        let error = pull(&with_password(&world), &registry).await.unwrap_err();
        assert!(
            matches!(error, FetchError::Protocol { .. } | FetchError::Broken { .. }),
            "{challenge}: {error}"
        );
    }
}

#[tokio::test]
async fn answers_without_end_are_given_up() {
    let world = World::new();
    let endless = [b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b' '; 5 << 20]].concat();
    let promised = b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n".to_vec();
    for (manifest, blob) in [
        (endless.clone(), ok(WASM, "")),
        (promised, ok(WASM, "")),
        (manifest(), endless),
        (manifest(), ok(&[WASM, b"x"].concat(), "")),
    ] {
        let registry = world.serve(serving(manifest, blob)).await;
        let error = pull(&world.client(), &registry).await.unwrap_err();
        assert!(
            matches!(error, FetchError::TooLarge { .. } | FetchError::Protocol { .. }),
            "{error}"
        );
    }
}

#[tokio::test]
async fn manifests_that_lie_are_refused() {
    let world = World::new();
    let layer =
        |digest: &str| json!({"schemaVersion": 2, "layers": [{"mediaType": "application/wasm", "digest": digest, "size": 28}]});
    let index = json!({"schemaVersion": 2, "manifests": [{"mediaType": "x", "digest": "../../secret", "size": 1}]});
    let right = Digest::of(WASM).to_string();
    for (manifest, headers, part) in [
        (layer("../../../other/blobs/x"), String::new(), "a digest that is no SHA-256"),
        (layer("sha512:00"), String::new(), "a digest that is no SHA-256"),
        (layer(&right.to_uppercase()), String::new(), "a digest that is no SHA-256"),
        (index, String::new(), "a digest that is no SHA-256"),
        (layer(&Digest::of(b"other").to_string()), String::new(), "and not sha256:"),
        (
            layer(&right),
            format!("Docker-Content-Digest: {right}\r\n"),
            "and not sha256:",
        ),
        (
            json!({"schemaVersion": 2}),
            String::new(),
            "has no WebAssembly; in it are no layers at all",
        ),
        (json!([]), String::new(), "its manifest cannot be read"),
        (json!("secret"), String::new(), "its manifest cannot be read"),
    ] {
        let manifest = ok(manifest.to_string().as_bytes(), &headers);
        let registry = world.serve(serving(manifest, ok(WASM, ""))).await;
        let error = pull(&world.client(), &registry).await.unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains("secret"), "{error}");
        assert!(
            registry
                .requests()
                .iter()
                .all(|request| request.contains(" /v2/ ") || request.contains(" /v2/tool/"))
        );
    }
}

#[tokio::test]
async fn another_manifest_than_the_pinned_one_is_refused() {
    let world = World::new();
    let registry = world.serve(serving(manifest(), ok(WASM, ""))).await;
    let pinned = reference(&registry).pinned(Digest::of(b"other"));
    for error in [
        world.client().pull(&pinned, &|_| {}).await.map(drop).unwrap_err(),
        world.client().resolve(&pinned).await.map(drop).unwrap_err(),
    ] {
        assert!(matches!(error, FetchError::WrongDigest { .. }), "{error}");
    }
}

// Helpers

async fn pull(client: &Client, registry: &Server) -> Result<Vec<u8>, FetchError> {
    let pulled = client.pull(&reference(registry), &|_| {}).await?;
    Ok(pulled.wasm)
}

async fn push(client: &Client, registry: &Server) -> Result<(), FetchError> {
    let about = Published {
        component: None,
        author: None,
        created: SystemTime::UNIX_EPOCH,
        title: "tool.wasm".to_owned(),
        annotations: BTreeMap::new(),
    };
    client.push(&reference(registry), WASM.to_vec(), &about).await?;
    Ok(())
}

fn reference(registry: &Server) -> OciReference {
    format!("{}/tool:1", registry.address).parse().unwrap()
}

fn with_password(world: &World) -> Client {
    let password = Credential::Password {
        user: "me".to_owned(),
        password: Secret::new("open sesame"),
    };
    world.client_with(|options| {
        options.logins = Logins {
            given: Some((password, None)),
            files: vec![],
        };
    })
}

fn manifest() -> Vec<u8> {
    let layer = json!({"mediaType": "application/wasm", "digest": Digest::of(WASM), "size": WASM.len()});
    ok(json!({"schemaVersion": 2, "layers": [layer]}).to_string().as_bytes(), "")
}

fn redirect(target: impl std::fmt::Display) -> Vec<u8> {
    format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n").into_bytes()
}

/// A registry that has one manifest and one blob.
fn serving(manifest: Vec<u8>, blob: Vec<u8>) -> impl Script {
    move |request: &str, _| {
        let reply = if request.contains("/manifests/") { &manifest } else { &blob };
        vec![Send(reply.clone()), End]
    }
}

/// The same, for who brings credentials.
fn asking(challenge: &str, manifest: Vec<u8>, blob: Vec<u8>) -> impl Script {
    let denied = format!("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: {challenge}\r\nContent-Length: 0\r\n\r\n").into_bytes();
    let serving = serving(manifest, blob);
    move |request: &str, earlier| {
        if request.contains("\r\nauthorization: ") {
            serving(request, earlier)
        } else {
            vec![Send(denied.clone()), End]
        }
    }
}

/// A registry that has nothing, wants a password, and takes uploads somewhere else.
fn uploading_to(place: String) -> impl Script {
    move |request: &str, _| {
        let reply = match request.split(' ').next().unwrap() {
            _ if !request.contains("\r\nauthorization: ") => "401 Unauthorized\r\nWWW-Authenticate: Basic realm=x".to_owned(),
            "HEAD" => "404 Not Found".to_owned(),
            "POST" => format!("202 Accepted\r\nLocation: {place}"),
            _ => "201 Created".to_owned(),
        };
        vec![
            Send(format!("HTTP/1.1 {reply}\r\nContent-Length: 0\r\n\r\n").into_bytes()),
            End,
        ]
    }
}

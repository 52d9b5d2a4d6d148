//! Pulls and pushes, with Debian's `docker-registry` as the other side, and with artifacts that other tools write.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests are outside of test functions"
)]

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Once};
use std::time::{Duration, SystemTime};

use common::server::{Names, Server, Step, quick};
use common::{Authority, write};
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::secrets::RegistryAuth;
use oci_wasm::{Component, WasmClient, WasmConfig};
use policy::ByteSize;
use serde_json::{Value, json};
use sources::{Client, ClientOptions, Credential, Digest, FetchError, Interfaces, Logins, OciReference, Published, Pulled, Secret};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const TITLE: &str = "org.opencontainers.image.title";
/// `htpasswd -B` of the user `me` with the password `open sesame`.
const HTPASSWD: &str = "me:$2y$05$abcdefghijklmnopqrstuupx2xBUC4954936wVIjyyPHmUBFu0wCW\n";

// What we write and read

#[tokio::test]
async fn what_is_pushed_is_pulled() {
    let registry = Registry::start("");
    let client = registry.client();
    let reference = registry.reference("user/tool:1");
    let about = Published {
        annotations: annotations(&[("org.opencontainers.image.description", "A tool")]),
        ..published(None)
    };
    let pushed = client.push(&reference, component(), &about).await.unwrap();
    assert_eq!(pushed.reference.to_string(), format!("{reference}@{}", pushed.digest));

    let by_digest = registry.reference(&format!("user/tool@{}", pushed.digest));
    for name in [&reference, &pushed.reference, &by_digest] {
        let pulled = pull(&client, name).await.unwrap();
        assert_eq!((pulled.wasm, pulled.digest), (component(), pushed.digest));
        assert_eq!(pulled.media_type, "application/wasm");
        assert_eq!(
            pulled.config_media_type.as_deref(),
            Some("application/vnd.wasm.config.v0+json")
        );
        assert_eq!((pulled.annotations, pulled.other_layers), (about.annotations.clone(), vec![]));
        assert_eq!(client.resolve(name).await.unwrap(), pushed.digest);
    }

    // A tag moves; what it named stays.
    let moved = client.push(&reference, module(), &published(None)).await.unwrap();
    assert_eq!(pull(&client, &reference).await.unwrap().wasm, module());
    assert_eq!(client.resolve(&reference).await.unwrap(), moved.digest);
    assert_eq!(pull(&client, &by_digest).await.unwrap().wasm, component());
    // The same again is the same.
    assert_eq!(client.push(&reference, module(), &published(None)).await.unwrap(), moved);

    let error = client.push(&by_digest, module(), &published(None)).await.unwrap_err();
    assert!(matches!(error, FetchError::PushByDigest(_)), "{error}");
}

#[tokio::test]
async fn progress_is_told() {
    let registry = Registry::start("");
    let (client, reference) = (registry.client(), registry.reference("tool:1"));
    client.push(&reference, component(), &published(None)).await.unwrap();
    let last = std::sync::Mutex::new(None);
    client
        .pull(&reference, &|progress| *last.lock().unwrap() = Some(progress))
        .await
        .unwrap();
    let size = component().len() as u64;
    assert_eq!(
        last.into_inner().unwrap().map(|last| (last.received, last.total)),
        Some((size, Some(size)))
    );
}

// What `wkg` writes and reads, by the library behind it

#[tokio::test]
async fn wkg_reads_what_we_write_and_we_read_what_it_writes() {
    let registry = Registry::start("");
    let client = registry.client();
    let (ours, theirs) = (registry.reference("ours:1"), registry.reference("theirs:1"));
    let annotations = annotations(&[("org.opencontainers.image.version", "1.0.0")]);

    let wkg = wkg();
    let (config, layer) = WasmConfig::from_raw_component(component(), Some("me".to_owned())).unwrap();
    let Component {
        exports,
        imports,
        target,
    } = Component::from_raw_component(component()).unwrap();
    let name = |reference: &OciReference| reference.to_string().parse::<oci_client::Reference>().unwrap();
    let anonymous = RegistryAuth::Anonymous;
    wkg.push(&name(&theirs), &anonymous, layer, config, Some(annotations.clone()))
        .await
        .unwrap();
    assert_eq!(pull(&client, &theirs).await.unwrap().wasm, component());

    let about = Published {
        author: Some("me".to_owned()),
        annotations,
        ..published(Some(Interfaces {
            exports,
            imports,
            target,
        }))
    };
    client.push(&ours, component(), &about).await.unwrap();
    let image = wkg.pull(&name(&ours), &anonymous).await.unwrap();
    assert_eq!(image.layers[0].data, component());
    let (_, config, _) = wkg.pull_manifest_and_config(&name(&ours), &anonymous).await.unwrap();
    assert_eq!((config.os.as_str(), config.architecture.as_str()), ("wasip2", "wasm"));

    // Apart from the time and the title, the two are the same.
    let forms = [registry.form("ours").await, registry.form("theirs").await];
    assert_eq!(forms[0], forms[1]);

    let (config, layer) = WasmConfig::from_raw_module(module(), None).unwrap();
    wkg.push(&name(&theirs), &anonymous, layer, config, None).await.unwrap();
    client.push(&ours, module(), &published(None)).await.unwrap();
    assert_eq!(pull(&client, &theirs).await.unwrap().wasm, module());
    let forms = [registry.form("ours").await, registry.form("theirs").await];
    assert_eq!(forms[0], forms[1]);
}

// What others write

#[tokio::test]
async fn artifacts_of_other_tools_are_read() {
    let registry = Registry::start("");
    for (media_type, title) in [
        ("application/wasm", None),
        ("application/wasm", Some("tool.wasm")),
        ("application/vnd.wasm.content.layer.v1+wasm", Some("module.wasm")),
        ("application/vnd.bytecodealliance.wasm.component.layer.v0+wasm", None),
        ("application/octet-stream", Some("tool.wasm")),
    ] {
        let layer = registry.blob(media_type, title, &component()).await;
        let digest = registry.manifest("oras", "1", &registry.image(&[layer]).await).await;
        let pulled = pull(&registry.client(), &registry.reference("oras:1")).await.unwrap();
        assert_eq!(
            (pulled.wasm, pulled.digest, pulled.media_type.as_str()),
            (component(), digest, media_type)
        );
        assert_eq!(pulled.config_media_type.as_deref(), Some("application/vnd.oci.empty.v1+json"));
    }
}

#[tokio::test]
async fn short_texts_beside_the_component_are_shown() {
    let registry = Registry::start("");
    let long = vec![b'x'; 64 * 1024 + 1];
    let layers = [
        registry
            .blob("application/vnd.wassette.policy+yaml", Some("policy.yaml"), b"version: '1.0'")
            .await,
        registry.blob("application/wasm", Some("tool.wasm"), &component()).await,
        registry.blob("text/markdown", Some("README.md"), &long[1..]).await,
        registry.blob("text/markdown", Some("LONG.md"), &long).await,
        registry.blob("text/plain", None, b"\xff\xfe").await,
        registry.blob("application/octet-stream", Some("data.bin"), b"data").await,
    ];
    registry.manifest("many", "1", &registry.image(&layers).await).await;
    let pulled = pull(&registry.client(), &registry.reference("many:1")).await.unwrap();
    assert_eq!(pulled.wasm, component());
    let shown: Vec<_> = pulled
        .other_layers
        .iter()
        .map(|layer| (layer.title.as_deref(), layer.size, layer.text.as_ref().map(String::len)))
        .collect();
    assert_eq!(
        shown,
        [
            (Some("policy.yaml"), 14, Some(14)),
            (Some("README.md"), 65536, Some(65536)),
            (Some("LONG.md"), 65537, None),
            (None, 2, None),
            (Some("data.bin"), 4, None),
        ]
    );
    assert_eq!(pulled.other_layers[0].text.as_deref(), Some("version: '1.0'"));
}

#[tokio::test]
async fn what_has_not_one_component_is_listed() {
    let registry = Registry::start("");
    let tar = registry
        .blob("application/vnd.oci.image.layer.v1.tar+gzip", None, b"tar")
        .await;
    let wasm = registry.blob("application/wasm", None, &component()).await;
    let other = registry.blob("application/wasm", Some("other.wasm"), &module()).await;
    for (layers, part) in [
        (vec![], "has no WebAssembly; in it are no layers at all\nhint: "),
        (
            vec![tar.clone()],
            "has no WebAssembly; in it are `application/vnd.oci.image.layer.v1.tar+gzip`\nhint: ",
        ),
        (
            vec![wasm, tar, other],
            "has more than one WebAssembly layer; in it are `application/wasm`, `",
        ),
    ] {
        registry.manifest("unclear", "1", &registry.image(&layers).await).await;
        let error = pull(&registry.client(), &registry.reference("unclear:1"))
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[tokio::test]
async fn an_index_leads_to_the_one_for_wasm() {
    let registry = Registry::start("");
    let wasm = registry.blob("application/wasm", None, &component()).await;
    let tar = registry.blob("application/vnd.oci.image.layer.v1.tar", None, b"tar").await;
    let mut entries = Vec::new();
    for (layer, os, architecture) in [
        (tar, "linux", "amd64"),
        (wasm.clone(), "wasip2", "wasm"),
        (wasm, "wasip1", "wasm"),
    ] {
        let manifest = registry.image(&[layer]).await;
        let digest = registry.manifest("multi", os, &manifest).await;
        let size = manifest.to_string().len();
        entries.push(
            json!({"mediaType": MANIFEST, "digest": digest, "size": size, "platform": {"os": os, "architecture": architecture}}),
        );
    }
    let index = |entries: &[Value]| json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries});
    let client = registry.client();
    let reference = registry.reference("multi:1");

    let digest = registry.manifest("multi", "1", &index(&entries[..2])).await;
    let pulled = pull(&client, &reference).await.unwrap();
    assert_eq!((pulled.wasm, pulled.digest), (component(), digest));
    assert_eq!(client.resolve(&reference).await.unwrap(), digest);

    registry.manifest("multi", "1", &index(&entries)).await;
    let error = pull(&client, &reference).await.unwrap_err().to_string();
    assert!(
        error.contains("more than one variant") && error.contains(entries[1]["digest"].as_str().unwrap()),
        "{error}"
    );

    registry.manifest("multi", "1", &index(&entries[..1])).await;
    let error = pull(&client, &reference).await.unwrap_err().to_string();
    assert!(
        error.contains("no variant for WebAssembly; in it are `linux/amd64 sha256:"),
        "{error}"
    );
}

// What is missing, damaged or too large

#[tokio::test]
async fn what_is_missing_is_said_to_be() {
    let registry = Registry::start("");
    let client = registry.client();
    client
        .push(&registry.reference("tool:1"), component(), &published(None))
        .await
        .unwrap();
    for name in ["tool:2", "other:1", &format!("tool@{}", Digest::of(b"other"))] {
        let error = pull(&client, &registry.reference(name)).await.unwrap_err();
        assert!(matches!(error, FetchError::NotFound(_)), "{name}: {error}");
    }
}

#[tokio::test]
async fn what_was_changed_in_the_registry_is_refused() {
    let registry = Registry::start("");
    let (client, reference) = (registry.client(), registry.reference("tool:1"));
    let pushed = client.push(&reference, component(), &published(None)).await.unwrap();

    let mut other = component();
    *other.last_mut().unwrap() ^= 1;
    write(&registry.blob_path(Digest::of(&component())), &other);
    let error = pull(&client, &reference).await.unwrap_err();
    assert!(matches!(error, FetchError::WrongDigest { .. }), "{error}");

    write(&registry.blob_path(Digest::of(&component())), &other[..4]);
    let error = pull(&client, &reference).await.unwrap_err();
    assert!(matches!(error, FetchError::EndedEarly { received: 4, .. }), "{error}");

    write(&registry.blob_path(Digest::of(&component())), &[other, vec![0]].concat());
    let error = pull(&client, &reference).await.unwrap_err();
    assert!(matches!(error, FetchError::Protocol { .. }), "{error}");

    let manifest = registry.blob_path(pushed.digest);
    let text = std::fs::read_to_string(&manifest).unwrap();
    write(&manifest, text.replace("\"layers\"", "\"Layers\"").as_bytes());
    assert!(pull(&client, &pushed.reference).await.is_err());
}

#[tokio::test]
async fn what_is_too_large_is_not_fetched() {
    let registry = Registry::start("");
    let reference = registry.reference("tool:1");
    registry
        .client()
        .push(&reference, vec![0; 1001], &published(None))
        .await
        .unwrap();
    let options = ClientOptions {
        max_size: ByteSize::from_bytes(1000),
        ..quick()
    };
    let error = pull(&Client::new(options).unwrap(), &reference).await.unwrap_err();
    assert!(matches!(error, FetchError::TooLarge { .. }), "{error}");
}

// Credentials and certificates

#[tokio::test]
async fn a_registry_with_passwords() {
    let registry = Registry::with_passwords();
    let reference = registry.reference("user/tool:1");
    let host = reference.registry().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.json");
    // `bWU6b3BlbiBzZXNhbWU=` is `me:open sesame`.
    write(
        &config,
        json!({"auths": {&host: {"auth": "bWU6b3BlbiBzZXNhbWU="}}})
            .to_string()
            .as_bytes(),
    );
    let with = |logins: Logins| Client::new(ClientOptions { logins, ..quick() }).unwrap();
    let given = |password: &str, only: Option<&str>| Logins {
        given: Some((
            Credential::Password {
                user: "me".to_owned(),
                password: Secret::new(password),
            },
            only.map(str::to_owned),
        )),
        files: vec![],
    };
    let file = Logins {
        given: None,
        files: vec![config.clone()],
    };

    for logins in [given("open sesame", None), given("open sesame", Some(&host)), file] {
        let client = with(logins);
        client.push(&reference, component(), &published(None)).await.unwrap();
        assert_eq!(pull(&client, &reference).await.unwrap().wasm, component());
    }
    for (logins, part) in [
        (
            Logins::default(),
            "does not let somebody without credentials use `user/tool`".to_owned(),
        ),
        (
            given("wrong secret", None),
            "does not let the user of the credentials in HOST_REGISTRY_… use".to_owned(),
        ),
        (
            given("open sesame", Some("ghcr.io")),
            "somebody without credentials".to_owned(),
        ),
    ] {
        let client = with(logins);
        for error in [
            pull(&client, &reference).await.unwrap_err(),
            client.push(&reference, component(), &published(None)).await.unwrap_err(),
        ] {
            let text = error.to_string();
            assert!(
                text.contains(&part) && text.contains(&format!("`docker login {host}`")),
                "{text}"
            );
            assert!(
                !format!("{text}{error:?}{client:?}").contains("sesame") && !text.contains("wrong"),
                "{text}"
            );
        }
    }
    write(
        &config,
        json!({"auths": {&host: {"auth": "bWU6d3Jvbmc="}}}).to_string().as_bytes(),
    );
    let error = pull(
        &with(Logins {
            given: None,
            files: vec![config.clone()],
        }),
        &reference,
    )
    .await
    .unwrap_err()
    .to_string();
    assert!(error.contains(config.to_str().unwrap()), "{error}");
}

/// The registry sends us to another server for a token, as all the large ones do.
#[tokio::test]
async fn a_registry_with_tokens() {
    let answer = |body: &str| vec![Step::Send(common::server::ok(body.as_bytes(), "")), Step::End];
    let tokens = Server::start([127, 0, 0, 1], None, move |request, _| match () {
        () if request.contains("wrong") => vec![
            Step::Send(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n".to_vec()),
            Step::End,
        ],
        () if request.starts_with("POST") => answer(r#"{"access_token": "t"}"#),
        () => answer(r#"{"token": "t"}"#),
    })
    .await;
    let registry = Registry::start(&format!(
        "auth: {{silly: {{realm: 'http://{}/token?x=y', service: the registry}}}}",
        tokens.address
    ));
    let reference = registry.reference("user/tool:1");
    let with = |credential: Option<Credential>| {
        let logins = Logins {
            given: credential.map(|credential| (credential, None)),
            files: vec![],
        };
        Client::new(ClientOptions { logins, ..quick() }).unwrap()
    };
    let password = Credential::Password {
        user: "me".to_owned(),
        password: Secret::new("open sesame"),
    };
    with(Some(password))
        .push(&reference, component(), &published(None))
        .await
        .unwrap();
    let scope = "scope=repository%3Auser%2Ftool%3A";
    let request = tokens.requests().pop().unwrap();
    assert!(
        request.starts_with(&format!(
            "GET /token?x=y&{scope}pull%2Cpush&service=the+registry HTTP/1.1\r\n"
        )),
        "{request}"
    );
    assert!(
        request.contains("\r\nauthorization: Basic bWU6b3BlbiBzZXNhbWU=\r\n"),
        "{request}"
    );

    assert_eq!(pull(&with(None), &reference).await.unwrap().wasm, component());
    let request = tokens.requests().pop().unwrap();
    assert!(
        request.starts_with(&format!("GET /token?x=y&{scope}pull&service")) && !request.contains("authorization"),
        "{request}"
    );

    pull(&with(Some(Credential::Identity(Secret::new("refresh")))), &reference)
        .await
        .unwrap();
    let request = tokens.requests().pop().unwrap();
    assert!(
        request.starts_with("POST /token?x=y HTTP/1.1\r\n") && request.contains("&refresh_token=refresh"),
        "{request}"
    );

    let asked = tokens.requests().len();
    pull(&with(Some(Credential::Bearer(Secret::new("t")))), &reference)
        .await
        .unwrap();
    assert_eq!(tokens.requests().len(), asked, "a token needs no other");
}

#[tokio::test]
async fn a_registry_with_a_certificate_of_its_own() {
    let authority = Authority::new();
    let registry = Registry::with_certificate(&authority);
    let reference = registry.reference("tool:1");
    let client = Client::new(ClientOptions {
        ca_files: vec![authority.ca_file()],
        ..quick()
    })
    .unwrap();
    client.push(&reference, component(), &published(None)).await.unwrap();
    assert_eq!(pull(&client, &reference).await.unwrap().wasm, component());

    let error = pull(&registry.client(), &reference).await.unwrap_err();
    assert!(matches!(error, FetchError::Certificate { .. }), "{error}");
    assert!(error.to_string().contains("`--ca-file`"), "{error}");
}

#[tokio::test]
async fn only_this_machine_is_spoken_to_without_tls() {
    let registry = Registry::start("");
    let client = Client::with_network(quick(), Arc::new(Names)).unwrap();
    // The name of another machine, though it is this one.
    let reference = format!("private.test:{}/tool:1", registry.port()).parse().unwrap();
    let error = pull(&client, &reference).await.unwrap_err();
    assert!(matches!(error, FetchError::NotTls { .. }), "{error}");
    let local: OciReference = format!("localhost:{}/tool:1", registry.port()).parse().unwrap();
    assert!(matches!(pull(&client, &local).await, Err(FetchError::NotFound(_))));
}

// Helpers

async fn pull(client: &Client, reference: &OciReference) -> Result<Pulled, FetchError> {
    client.pull(reference, &|_| {}).await
}

fn component() -> Vec<u8> {
    wat::parse_str(r#"(component (import "a:b/c" (instance)) (export "d:e/f" (instance 0)))"#).unwrap()
}

fn module() -> Vec<u8> {
    wat::parse_str(r#"(module (func (export "_start")))"#).unwrap()
}

fn published(component: Option<Interfaces>) -> Published {
    Published {
        component,
        author: None,
        created: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000),
        title: "tool.wasm".to_owned(),
        annotations: BTreeMap::new(),
    }
}

fn annotations(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn wkg() -> WasmClient {
    use_ring();
    WasmClient::new(oci_client::Client::new(ClientConfig {
        protocol: ClientProtocol::Http,
        ..ClientConfig::default()
    }))
}

/// reqwest on its own does not know which cryptography to use.
fn use_ring() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| rustls::crypto::ring::default_provider().install_default().unwrap());
}

/// A registry of its own for each test, on a port that is free.
struct Registry {
    process: Child,
    folder: tempfile::TempDir,
    address: String,
}

impl Registry {
    /// With these lines at the end of its configuration.
    fn start(configuration: &str) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), configuration, "")
    }

    fn with_passwords() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("htpasswd");
        write(&path, HTPASSWD.as_bytes());
        let auth = format!("auth: {{htpasswd: {{realm: here, path: '{}'}}}}", path.display());
        Self::start_in(folder, &auth, "")
    }

    fn with_certificate(authority: &Authority) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let identity = authority.identity(&["127.0.0.1"]);
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| folder.path().join(name));
        write(&certificate, identity.certificate.as_bytes());
        write(&key, identity.key.as_bytes());
        let tls = format!(
            ", tls: {{certificate: '{}', key: '{}'}}",
            certificate.display(),
            key.display()
        );
        Self::start_in(folder, "", &tls)
    }

    fn start_in(folder: tempfile::TempDir, configuration: &str, http: &str) -> Self {
        let data = folder.path().join("data");
        let config = folder.path().join("config.yml");
        let text = format!(
            "version: 0.1\nlog: {{level: info, accesslog: {{disabled: true}}}}\n\
             storage: {{filesystem: {{rootdirectory: '{}'}}}}\nhttp: {{addr: '127.0.0.1:0'{http}}}\n{configuration}\n",
            data.display()
        );
        write(&config, text.as_bytes());
        let started = Command::new("docker-registry")
            .arg("serve")
            .arg(&config)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        let mut process = match started {
            Ok(process) => process,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                panic!("these tests need a registry: run `scripts/test`, or `apt-get install docker-registry`")
            }
            Err(error) => panic!("`docker-registry` cannot be run: {error}"),
        };
        let mut log = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let address = loop {
            let line = log.next().unwrap_or_else(|| panic!("the registry ended: {said:#?}")).unwrap();
            if let Some((_, rest)) = line.split_once("listening on ") {
                break rest.split(['"', ',', ' ']).next().unwrap().to_owned();
            }
            said.push(line);
        };
        // Nobody reads the rest, but it has to go somewhere.
        std::thread::spawn(move || log.for_each(drop));
        Self {
            process,
            folder,
            address,
        }
    }

    fn client(&self) -> Client {
        Client::new(quick()).unwrap()
    }

    fn reference(&self, name: &str) -> OciReference {
        format!("{}/{name}", self.address).parse().unwrap()
    }

    fn port(&self) -> &str {
        self.address.rsplit(':').next().unwrap()
    }

    fn blob_path(&self, digest: Digest) -> PathBuf {
        let hex = digest.to_string().split_off("sha256:".len());
        let blobs = self.folder.path().join("data/docker/registry/v2/blobs/sha256");
        blobs.join(&hex[..2]).join(hex).join("data")
    }

    // By hand, as any tool could.

    async fn request(&self, method: reqwest::Method, path: &str, media_type: &str, body: Vec<u8>) -> reqwest::Response {
        use_ring();
        let url = if path.starts_with("http") {
            path.to_owned()
        } else {
            format!("http://{}{path}", self.address)
        };
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client
            .request(method, url)
            .header("content-type", media_type)
            .header("accept", MANIFEST)
            .body(body);
        let response = request.send().await.unwrap();
        assert!(response.status().is_success(), "{response:?}");
        response
    }

    /// Stores a blob where every repository of these tests finds it, and gives its descriptor.
    async fn blob(&self, media_type: &str, title: Option<&str>, bytes: &[u8]) -> Value {
        let digest = Digest::of(bytes);
        for repository in ["oras", "many", "unclear", "multi"] {
            let path = format!("/v2/{repository}/blobs/uploads/");
            let started = self.request(reqwest::Method::POST, &path, "", vec![]).await;
            let place = format!("{}&digest={digest}", started.headers()["location"].to_str().unwrap());
            self.request(reqwest::Method::PUT, &place, "application/octet-stream", bytes.to_vec())
                .await;
        }
        let mut descriptor = json!({"mediaType": media_type, "digest": digest, "size": bytes.len()});
        if let Some(title) = title {
            descriptor["annotations"] = json!({TITLE: title});
        }
        descriptor
    }

    /// The manifest that `oras push` writes for these layers.
    async fn image(&self, layers: &[Value]) -> Value {
        let config = self.blob("application/vnd.oci.empty.v1+json", None, b"{}").await;
        json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": "application/vnd.unknown.artifact.v1",
            "config": config, "layers": layers,
        })
    }

    async fn manifest(&self, repository: &str, tag: &str, manifest: &Value) -> Digest {
        let bytes = manifest.to_string().into_bytes();
        let digest = Digest::of(&bytes);
        let path = format!("/v2/{repository}/manifests/{tag}");
        self.request(reqwest::Method::PUT, &path, manifest["mediaType"].as_str().unwrap(), bytes)
            .await;
        digest
    }

    /// The manifest and the config of an artifact, without what depends on the time.
    async fn form(&self, repository: &str) -> (Value, Value) {
        let get = async |path: String| {
            let response = self.request(reqwest::Method::GET, &path, "", vec![]).await;
            serde_json::from_slice::<Value>(&response.bytes().await.unwrap()).unwrap()
        };
        let mut manifest = get(format!("/v2/{repository}/manifests/1")).await;
        let mut config = get(format!(
            "/v2/{repository}/blobs/{}",
            manifest["config"]["digest"].as_str().unwrap()
        ))
        .await;
        assert!(config["created"].take().is_string());
        for volatile in ["digest", "size"] {
            manifest["config"][volatile].take();
        }
        // Ours has a title, without which `oras pull` writes no file.
        manifest["layers"][0].as_object_mut().unwrap().remove("annotations");
        (manifest, config)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

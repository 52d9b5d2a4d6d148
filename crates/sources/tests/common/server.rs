//! A server that answers as it is told, and the names under which it is found.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use Step::{End, Hang, Send};
use policy::Timeout;
use sources::{Client, ClientOptions, HttpsUrl, Logins, Network, Resolving};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{Authority, Identity};

/// An authority, and clients that trust it.
pub(crate) struct World {
    pub(crate) authority: Authority,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            authority: Authority::new(),
        }
    }

    pub(crate) fn client(&self) -> Client {
        self.client_with(|_| {})
    }

    pub(crate) fn client_with(&self, change: impl FnOnce(&mut ClientOptions)) -> Client {
        let mut options = ClientOptions {
            ca_files: vec![self.authority.ca_file()],
            ..quick()
        };
        change(&mut options);
        Client::with_network(options, Arc::new(Names)).unwrap()
    }

    pub(crate) async fn serve(&self, script: impl Script) -> Server {
        Server::start([127, 0, 0, 1], Some(self.identity()), script).await
    }

    pub(crate) async fn serve_publicly(&self, script: impl Script) -> Server {
        Server::start([127, 0, 0, 2], Some(self.identity()), script).await
    }

    pub(crate) async fn serve_plainly(&self, script: impl Script) -> Server {
        Server::start([127, 0, 0, 1], None, script).await
    }

    pub(crate) fn identity(&self) -> Identity {
        let names = [
            "127.0.0.1",
            "127.0.0.2",
            "localhost",
            "private.test",
            "public-too.test",
            "mixed.test",
            "proxied.test",
            "proxied-too.test",
        ];
        self.authority.identity(&names)
    }
}

/// Options that do not look at the machine of the test.
pub(crate) fn quick() -> ClientOptions {
    ClientOptions {
        logins: Logins::default(),
        proxies: false,
        ..ClientOptions::default()
    }
}

pub(crate) fn millis(millis: u64) -> Timeout {
    Timeout::from_millis(NonZeroU64::new(millis).unwrap())
}

pub(crate) struct Names;

impl Network for Names {
    fn resolve(&self, name: &str) -> Resolving {
        let public = Ipv4Addr::new(127, 0, 0, 2);
        let metadata = Ipv4Addr::new(169, 254, 169, 254);
        let found = match name {
            "localhost" | "private.test" | "wrong-name.test" => Ok(vec![Ipv4Addr::LOCALHOST]),
            "public-too.test" => Ok(vec![public]),
            "metadata.test" => Ok(vec![metadata]),
            "mixed.test" => Ok(vec![Ipv4Addr::LOCALHOST, metadata, public]),
            _ => Err(std::io::Error::other("no such name")),
        };
        let found = found.map(|addresses| addresses.into_iter().map(IpAddr::from).collect());
        Box::pin(std::future::ready(found))
    }

    fn is_public(&self, ip: IpAddr) -> bool {
        ip == IpAddr::from([127, 0, 0, 2]) || sources::is_public(ip)
    }
}

/// What a server does with a request, which it is shown with the number of those before it.
pub(crate) trait Script: Fn(&str, usize) -> Vec<Step> + std::marker::Send + Sync + 'static {}

impl<T: Fn(&str, usize) -> Vec<Step> + std::marker::Send + Sync + 'static> Script for T {}

#[derive(Clone)]
pub(crate) enum Step {
    Send(Vec<u8>),
    Wait(Duration),
    Hang,
    /// Says good-bye in TLS, so that only HTTP can tell whether something is missing.
    End,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    connections: Mutex<usize>,
    requests: Mutex<Vec<String>>,
}

impl Server {
    pub(crate) async fn start(ip: [u8; 4], identity: Option<Identity>, script: impl Script) -> Self {
        let listener = TcpListener::bind(SocketAddr::from((ip, 0))).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let (shared, script) = (Arc::clone(&state), Arc::new(script));
        let tls = identity.map(|identity| acceptor(&identity));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (state, script, tls) = (Arc::clone(&shared), Arc::clone(&script), tls.clone());
                *state.connections.lock().unwrap() += 1;
                tokio::spawn(async move {
                    match tls {
                        // A client may not like the certificate.
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                answer(stream, &state, &*script).await;
                            }
                        }
                        None => answer(stream, &state, &*script).await,
                    }
                });
            }
        });
        Self { address, state }
    }

    pub(crate) fn url(&self, path: &str) -> HttpsUrl {
        self.named(&self.address.ip().to_string(), path)
    }

    pub(crate) fn named(&self, name: &str, path: &str) -> HttpsUrl {
        format!("https://{name}:{}{path}", self.address.port()).parse().unwrap()
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.requests.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.state.connections.lock().unwrap()
    }
}

fn acceptor(identity: &Identity) -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    Arc::new(config).into()
}

/// One request and its answer; then the connection ends.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, state: &State, script: &dyn Script) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => request.push(byte),
            Err(_) => return,
        }
        const TLS_HANDSHAKE: u8 = 22;
        if request == [TLS_HANDSHAKE] {
            // What a plain server says to that.
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            return;
        }
    }
    let mut request = String::from_utf8(request).unwrap();
    if let Some((_, length)) = request.split_once("content-length: ") {
        let mut body = vec![0; length.lines().next().unwrap().parse().unwrap()];
        stream.read_exact(&mut body).await.unwrap();
        request += &String::from_utf8_lossy(&body);
    }
    let steps = {
        let mut requests = state.requests.lock().unwrap();
        requests.push(request.clone());
        script(&request, requests.len() - 1)
    };
    for step in steps {
        let done = match step {
            Send(bytes) => stream.write_all(&bytes).await.and(stream.flush().await),
            Step::Wait(time) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
            Hang => std::future::pending().await,
            End => stream.shutdown().await,
        };
        // The client has gone.
        if done.is_err() {
            return;
        }
    }
}

pub(crate) fn ok(body: &[u8], headers: &str) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

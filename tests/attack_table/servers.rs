//! Real servers on this machine, which answer as they are told and count who came.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::support::Home;

/// A server. Its threads end with the process of the tests.
pub(crate) struct Website {
    address: SocketAddr,
    is_https: bool,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    open: AtomicUsize,
    requests: Mutex<Vec<String>>,
}

/// What a server does with the head of a request.
pub(crate) trait Answer: Fn(&str, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static {}

impl<T: Fn(&str, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static> Answer for T {}

impl Website {
    /// Listens at an address such as `127.0.0.1:0`.
    pub(crate) fn http(address: &str, answer: impl Answer) -> Self {
        Self::start(address, None, answer)
    }

    pub(crate) fn https(authority: &Authority, answer: impl Answer) -> Self {
        Self::start("127.0.0.1:0", Some(authority.server()), answer)
    }

    fn start(address: &str, tls: Option<Arc<ServerConfig>>, answer: impl Answer) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let is_https = tls.is_some();
        let seen = Arc::<Seen>::default();
        let (answer, shared) = (Arc::new(answer), Arc::clone(&seen));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                shared.connections.fetch_add(1, Ordering::SeqCst);
                shared.open.fetch_add(1, Ordering::SeqCst);
                let (answer, seen, tls) = (Arc::clone(&answer), Arc::clone(&shared), tls.clone());
                thread::spawn(move || {
                    // Clients that hang up are what is tested.
                    let _ = match tls.map(ServerConnection::new) {
                        Some(connection) => serve(StreamOwned::new(connection.unwrap(), stream), &seen, &*answer),
                        None => serve(stream, &seen, &*answer),
                    };
                    seen.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, is_https, seen }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.address)
    }

    /// How many have connected.
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// How many are connected still.
    pub(crate) fn open(&self) -> usize {
        self.seen.open.load(Ordering::SeqCst)
    }

    /// The heads of all requests.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }
}

/// One request and its answer.
fn serve(mut stream: impl Read + Write, seen: &Seen, answer: &dyn Answer) -> io::Result<()> {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    seen.requests.lock().unwrap().push(request.clone());
    answer(&request, &mut stream)?;
    stream.flush()
}

/// A complete answer.
pub(crate) fn ok(body: &[u8], to: &mut dyn Write) -> io::Result<()> {
    write!(
        to,
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    to.write_all(body)
}

/// An answer that leads elsewhere.
pub(crate) fn redirect(location: &str, to: &mut dyn Write) -> io::Result<()> {
    write!(
        to,
        "HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

/// An authority for certificates that nobody knows but who is given its file.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    file: PathBuf,
}

impl Authority {
    pub(crate) fn new(home: &Home) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new([]).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&key).unwrap();
        Self {
            file: home.write("ca.pem", certificate.pem()),
            issuer: Issuer::new(parameters, key),
        }
    }

    /// For `--ca-file` and HOST_CA_FILE.
    pub(crate) fn file(&self) -> &str {
        self.file.to_str().unwrap()
    }

    fn server(&self) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        Arc::new(config)
    }
}

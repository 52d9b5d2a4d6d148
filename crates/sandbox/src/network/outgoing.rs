//! Requests of `wasi:http`. A redirect is no matter of ours: the guest that follows one makes another request.

use std::sync::Arc;
use std::time::Duration;

use http::header::HOST;
use http::uri::{Authority, PathAndQuery};
use http_body_util::BodyExt as _;
use policy::{Destination, Host, Reason, Scheme};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use super::ConnectError;
use super::body::{Allowance, Connection, Received};
use crate::confinement::Confinement;
use crate::denials::{Denials, Denied};

/// What is shown of a host that a guest asked for.
const SHOWN_HOST: usize = 100;

/// The buffer of a connection, and with it the largest header of a response.
const MAX_BUFFER: usize = 64 << 10;

type Sent = Box<dyn Future<Output = Result<(), Error>> + Send>;
type Answered = Result<(http::Response<WasiBody>, Sent), Error>;

/// Sends the requests of one guest.
pub(crate) struct Outgoing {
    confinement: Arc<Confinement>,
    denials: Denials,
    allowance: Allowance,
}

impl Outgoing {
    pub(crate) fn new(confinement: Arc<Confinement>, denials: Denials) -> Self {
        Self {
            allowance: Allowance::new(confinement.limits.max_received.bytes()),
            confinement,
            denials,
        }
    }

    /// A new call begins, with all that it may receive.
    pub(crate) fn renew(&mut self) {
        self.allowance = Allowance::new(self.confinement.limits.max_received.bytes());
    }
}

impl WasiHttpHooks for Outgoing {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Sent,
    ) -> Box<dyn Future<Output = Answered> + Send> {
        let (confinement, denials) = (Arc::clone(&self.confinement), self.denials.clone());
        let allowance = self.allowance.clone();
        Box::new(async move {
            let destination = match destination(&request) {
                Ok(destination) => destination,
                Err(what) => {
                    denials.add(Denied { what, remedy: None });
                    return Err(Error::HttpRequestUriInvalid);
                }
            };
            send(&confinement, &destination, request, options, allowance, denials.clone())
                .await
                .map_err(|error| match error {
                    SendError::Http(error) => error,
                    SendError::Connect(error) => error.into_http(&denials),
                })
        })
    }
}

/// Where a request wants to go, or what is wrong with that.
fn destination(request: &http::Request<WasiBody>) -> Result<Destination, String> {
    let uri = request.uri();
    let authority = uri.authority().map_or("", Authority::as_str);
    let shown: String = authority.chars().take(SHOWN_HOST).collect();
    let scheme = match uri.scheme_str() {
        Some("http") => Scheme::Http,
        Some("https") | None => Scheme::Https,
        Some(_) => return Err(format!("a request to `{shown}` with a scheme that is neither http nor https")),
    };
    if authority.contains('@') {
        return Err(format!("a request to `{shown}`, with a user in the name of the host"));
    }
    let no_host = |_| format!("a request to `{shown}`, which is no host");
    let host = uri.host().unwrap_or_default();
    let port = match uri.authority().and_then(Authority::port) {
        Some(port) => port.as_u16(),
        None => scheme.default_port().unwrap_or_default(),
    };
    Ok(Destination {
        scheme,
        host: Host::parse(host).map_err(no_host)?,
        port,
    })
}

enum SendError {
    Connect(ConnectError),
    Http(Error),
}

impl From<Error> for SendError {
    fn from(error: Error) -> Self {
        Self::Http(error)
    }
}

impl ConnectError {
    fn into_http(self, denials: &Denials) -> Error {
        match self {
            Self::Refused(refusal) => {
                let prohibited = matches!(refusal.reason, Reason::Special { .. });
                denials.add(*refusal);
                if prohibited {
                    Error::DestinationIpProhibited
                } else {
                    Error::HttpRequestDenied
                }
            }
            Self::LookUp(error) => Error::DnsError {
                rcode: Some(error.to_string()),
                info_code: None,
            },
            Self::Connect(error) => Error::Connect(error),
            Self::TimedOut => Error::ConnectionTimeout,
        }
    }
}

/// The shorter of what the guest asks for and what it may have at most.
fn within(asked: Option<Duration>, most: Duration) -> Duration {
    asked.unwrap_or(most).min(most)
}

async fn send(
    confinement: &Confinement,
    destination: &Destination,
    mut request: http::Request<WasiBody>,
    options: Option<RequestOptions>,
    allowance: Allowance,
    denials: Denials,
) -> Result<(http::Response<WasiBody>, Sent), SendError> {
    let options = options.unwrap_or_default();
    let limits = &confinement.limits;
    let connecting = within(options.connect_timeout, limits.connect_timeout.duration());
    let stream = confinement
        .network
        .connect(&confinement.grants, destination, connecting)
        .await
        .map_err(SendError::Connect)?;
    // What was checked is what is asked for: whatever header the guest set, the server reads the host that was dialled.
    let host = request.uri().authority().map_or("", Authority::as_str).to_owned();
    let host = host.parse().map_err(|_| Error::HttpRequestUriInvalid)?;
    request.headers_mut().insert(HOST, host);
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.unwrap_or_else(|| PathAndQuery::from_static("/")).into();
    let patience = within(options.between_bytes_timeout, limits.timeout.duration());
    let first_byte = within(options.first_byte_timeout, limits.timeout.duration());
    let exchange = async {
        match destination.scheme {
            Scheme::Https => {
                let stream = secure(confinement, destination, stream, connecting).await?;
                exchange(stream, request).await
            }
            _ => exchange(stream, request).await,
        }
    };
    let (response, connection) = tokio::time::timeout(first_byte.saturating_add(connecting), exchange)
        .await
        .map_err(|_| Error::ConnectionReadTimeout)??;
    let response = response.map(|incoming| {
        let received = Received {
            incoming,
            allowance,
            denials,
            patience,
            waiting: Box::pin(tokio::time::sleep(patience)),
            _connection: connection,
        };
        received.boxed_unsync()
    });
    Ok((response, Box::new(std::future::ready(Ok(())))))
}

/// TLS, for the name that was asked for.
async fn secure<S: AsyncRead + AsyncWrite + Unpin>(
    confinement: &Confinement,
    destination: &Destination,
    stream: S,
    within: Duration,
) -> Result<tokio_rustls::client::TlsStream<S>, Error> {
    let network = Arc::clone(&confinement.network);
    let tls = tokio::task::spawn_blocking(move || network.tls())
        .await
        .map_err(|_| Error::ConfigurationError)?
        .map_err(|error| Error::InternalError(Some(error)))?;
    let name = match &destination.host {
        Host::Address(address) => ServerName::from(*address),
        Host::Name(name) => ServerName::try_from(name.as_str().to_owned()).map_err(|_| Error::HttpRequestUriInvalid)?,
    };
    let connecting = TlsConnector::from(tls).connect(name, stream);
    tokio::time::timeout(within, connecting)
        .await
        .map_err(|_| Error::ConnectionTimeout)?
        .map_err(Error::Tls)
}

/// Sends a request over a connection, and waits for the head of its response.
async fn exchange<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    request: http::Request<WasiBody>,
) -> Result<(http::Response<hyper::body::Incoming>, Connection), Error> {
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(MAX_BUFFER)
        .handshake(TokioIo::new(stream))
        .await?;
    let connection = Connection(tokio::spawn(async move {
        // What goes wrong is told where the response is read.
        let _ = connection.await;
    }));
    let response = sender.send_request(request).await?;
    Ok((response, connection))
}

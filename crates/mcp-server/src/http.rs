//! MCP over HTTP, both eras at one address, and what those who run a server ask it besides.
//!
//! | path       | what                                                               | for whom                                    |
//! |------------|--------------------------------------------------------------------|---------------------------------------------|
//! | `/mcp`     | the protocol                                                       | known hosts and origins, with the token     |
//! | `/metrics` | what was counted, for Prometheus                                   | likewise                                    |
//! | `/healthz` | 200 as long as the process lives                                   | anybody                                     |
//! | `/readyz`  | 200 when a call would be answered, else 503 and why it would not   | anybody                                     |

mod access;
mod answer;
mod auth;
mod body;
mod connection;
mod endpoint;
mod headers;
mod lanes;
mod session_id;
mod sessions;
mod shortcut;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lifecycle::Key;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

pub use access::{HostName, NameError, Origin};
pub use auth::{Authentication, Principal, Token};

use access::Access;
use body::Room;
use endpoint::Endpoint;
use lanes::Lanes;
use session_id::SessionIds;
use sessions::{Current, Sessions};
use shortcut::Stateless;

use crate::handler::{Server, Session};

/// The longest message that is read, unless told otherwise: as over stdio.
pub const DEFAULT_MAX_BODY: usize = 32 << 20;

/// Connections that are open at the same time, unless told otherwise.
pub const DEFAULT_MAX_CONNECTIONS: usize = 4096;

/// Bodies of the largest size that are worked on at the same time.
const LARGE_BODIES: usize = 8;

/// Connections beyond the most, which are told that they are too many.
const SPARE_CONNECTIONS: usize = 64;

/// Connections that wait to be accepted.
const BACKLOG: u32 = 4096;

/// How long running calls may take once the server shuts down.
const GRACE: Duration = Duration::from_secs(30);

/// How often idle sessions are looked for.
const SWEEP: Duration = Duration::from_secs(30);

/// How long nothing is accepted after that failed, as it does when there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How a server is served over HTTP.
#[derive(Clone)]
pub struct HttpOptions {
    /// Names of this server besides those of this machine and the address that it listens at.
    pub allowed_hosts: Vec<HostName>,
    /// Sites whose pages may ask and read the answers. Pages of this machine may ask.
    pub allowed_origins: Vec<Origin>,
    pub authentication: Authentication,
    /// Seals ids of sessions and the state of requests: replicas that share it can go on for one another.
    pub state_key: Key,
    pub max_body: usize,
    pub max_connections: usize,
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("allowed_hosts", &self.allowed_hosts)
            .field("allowed_origins", &self.allowed_origins)
            .field("authentication", &self.authentication)
            .field("max_body", &self.max_body)
            .field("max_connections", &self.max_connections)
            .finish_non_exhaustive()
    }
}

/// Listens at an address.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A server that is started again need not wait for the connections of the one before. On Windows this would mean that another
    // process may take the same address.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves clients until `shutdown`, and then until what runs has ended, but not for ever.
pub async fn serve_http(
    server: Server,
    listener: TcpListener,
    options: HttpOptions,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let server = server.with_state_key(&options.state_key);
    let serving = server.clone();
    let metrics = server.metrics().clone();
    let sessions = Sessions::new(SessionIds::new(&options.state_key), metrics.clone());
    let mut config = StreamableHttpServerConfig::default()
        // Checked before, together with the origin.
        .disable_allowed_hosts()
        .with_max_request_body_bytes(usize::MAX)
        .with_json_response(true);
    config.session_store = Some(Arc::new(sessions.clone()));
    let stateless = Stateless::new(Session::new(server.clone(), shutdown.child_token(), CancellationToken::new()));
    let asked_all = shutdown.clone();
    let protocol = StreamableHttpService::new(
        move || {
            let session = Session::new(server.clone(), asked_all.child_token(), Current::gone());
            Ok(Current::handled_by(Arc::new(session)))
        },
        Arc::new(sessions.clone()),
        config,
    );
    let endpoint = Arc::new(Endpoint {
        protocol,
        sessions: sessions.clone(),
        stateless,
        access: Access {
            hosts: options.allowed_hosts,
            origins: options.allowed_origins,
        },
        authentication: options.authentication,
        room: Room::new(options.max_body, options.max_body.saturating_mul(LARGE_BODIES)),
        server: serving,
        metrics,
        shutdown: shutdown.clone(),
    });
    let mut connections = Connections {
        tasks: JoinSet::new(),
        lanes: Lanes::start()?,
        room: Arc::new(Semaphore::new(options.max_connections)),
        spare: Arc::new(Semaphore::new(SPARE_CONNECTIONS)),
        endpoint,
    };
    let mut sweep = interval(SWEEP);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => connections.serve(stream),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(ended) = connections.tasks.join_next() => note_panic(ended),
            _ = sweep.tick() => sessions.close_idle(),
        }
    }
    drop(listener);
    let all_ended = async {
        while let Some(ended) = connections.tasks.join_next().await {
            note_panic(ended);
        }
    };
    if timeout(GRACE, all_ended).await.is_err() {
        tracing::warn!("some calls did not end in time and are given up");
    }
    Ok(())
}

fn note_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!("a connection was lost: the host itself failed. Please report this");
    }
}

/// The connections that are open.
struct Connections {
    tasks: JoinSet<()>,
    lanes: Lanes,
    room: Arc<Semaphore>,
    spare: Arc<Semaphore>,
    endpoint: Arc<Endpoint>,
}

impl Connections {
    fn serve(&mut self, stream: TcpStream) {
        let seat = Arc::clone(&self.room).try_acquire_owned();
        let is_spare = seat.is_err();
        // Whoever comes when even the places for being told so are taken is not told anything.
        let Ok(seat) = seat.or_else(|_| Arc::clone(&self.spare).try_acquire_owned()) else {
            return;
        };
        let (Some(lane), Ok(stream)) = (self.lanes.next(), stream.into_std()) else {
            return;
        };
        let endpoint = Arc::clone(&self.endpoint);
        let open = endpoint.metrics.connection();
        let served = async move {
            // Its events now come to the thread that serves it.
            if let Ok(stream) = TcpStream::from_std(stream) {
                connection::serve(stream, endpoint, is_spare).await;
            }
            drop((seat, open));
        };
        self.tasks.spawn_on(served, lane);
    }
}

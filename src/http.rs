//! `host serve --http`: where to listen, who may ask, and when to stop.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, bail};
use clap::Args;
use lifecycle::{Key, default_home};
use mcp_server::{
    Authentication, DEFAULT_MAX_BODY, DEFAULT_MAX_CONNECTIONS, HostName, HttpOptions, Origin, Server, Token, listen, serve_http,
};
use policy::ByteSize;
use tokio::net::TcpListener;

use crate::output;

/// The file with the token, where one is needed and none is named.
const TOKEN_FILE: &str = "http.token";

/// The file with the key that seals ids of sessions and the state of requests, where none is named.
const STATE_KEY_FILE: &str = "http.key";

/// How components are served over HTTP.
#[derive(Args)]
#[command(next_help_heading = "Over HTTP")]
pub(crate) struct HttpArguments {
    /// Serve any number of clients over HTTP, at a port of this machine (`8080`; `0` picks one) or at an address (`0.0.0.0:8080`);
    /// MCP is spoken at `/mcp`, and there are `/healthz`, `/readyz` and `/metrics`
    #[arg(long, value_name = "[HOST:]PORT")]
    http: Option<Address>,
    /// Let only clients in that send the token in this file; it is made if it does not exist. Other machines always need the token,
    /// by default that in `$HOST_HOME/http.token`
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    /// A name that clients know this server by, as in `mcp.example.com`, besides those of this machine; can be repeated
    #[arg(long, value_name = "NAME[:PORT]", requires = "http")]
    allowed_host: Vec<HostName>,
    /// Let pages of a site ask this server, as in `https://app.example.com`; can be repeated
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allowed_origin: Vec<Origin>,
    /// The longest message that is read, as in `4MiB` [default: 32MiB]
    #[arg(long, value_name = "SIZE", requires = "http")]
    max_body: Option<ByteSize>,
    /// Connections that may be open at the same time [default: 4096]
    #[arg(long, value_name = "NUMBER", requires = "http")]
    max_connections: Option<NonZeroU32>,
    /// The key that seals ids of sessions and the state of requests, made if it does not exist: servers that share it can take up each other's sessions
    /// [default: `$HOST_HOME/http.key`]
    #[arg(long, value_name = "FILE", requires = "http")]
    state_key_file: Option<PathBuf>,
}

/// Where to listen. A port alone is one of this machine for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Address {
    host: String,
    port: u16,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let port = port
            .parse()
            .map_err(|_| "expected a port, as in `8080`, or an address with one, as in `127.0.0.1:8080` or `[::1]:8080`")?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if bare.is_none() && host.contains([':', '/']) {
            return Err("expected an address with a port, as in `127.0.0.1:8080` or `[::1]:8080`".to_owned());
        }
        let host = match bare.unwrap_or(host) {
            "" => Ipv4Addr::LOCALHOST.to_string(),
            host => host.to_owned(),
        };
        Ok(Self { host, port })
    }
}

impl Address {
    /// The addresses that the name stands for.
    fn resolve(&self) -> anyhow::Result<Vec<SocketAddr>> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found: Vec<SocketAddr> = found
            .with_context(|| format!("`{}` is no address of this machine", self.host))?
            .collect();
        if found.is_empty() {
            bail!("`{}` is no address of this machine", self.host);
        }
        Ok(found)
    }
}

/// Everything that is needed to serve.
pub(crate) struct Http {
    address: Address,
    addresses: Vec<SocketAddr>,
    options: HttpOptions,
    token_file: Option<PathBuf>,
    tools: usize,
}

impl HttpArguments {
    pub(crate) fn is_set(&self) -> bool {
        self.http.is_some()
    }

    /// Reads the keys, and makes those that are missing. `None` where nothing is served over HTTP.
    pub(crate) fn prepare(self, tools: usize) -> anyhow::Result<Option<Http>> {
        let Some(address) = self.http else {
            return Ok(None);
        };
        let addresses = address.resolve()?;
        let is_private = addresses.iter().all(|address| address.ip().to_canonical().is_loopback());
        let token_file = match (self.token_file, is_private) {
            (Some(file), _) => Some(file),
            (None, true) => None,
            (None, false) => Some(in_home(TOKEN_FILE)?),
        };
        let authentication = match &token_file {
            Some(file) => Authentication::Token(Token::from(&Key::of_file(file)?)),
            None => Authentication::Open,
        };
        let state_key = match self.state_key_file {
            Some(file) => Key::of_file(&file)?,
            None => Key::of_file(&in_home(STATE_KEY_FILE)?)?,
        };
        let max_body = self
            .max_body
            .map_or(Ok(DEFAULT_MAX_BODY), |size| usize::try_from(size.bytes()))?;
        let max_connections = self
            .max_connections
            .map_or(Ok(DEFAULT_MAX_CONNECTIONS), |max| usize::try_from(max.get()))?;
        let options = HttpOptions {
            allowed_hosts: self.allowed_host,
            allowed_origins: self.allowed_origin,
            authentication,
            state_key,
            max_body,
            max_connections,
        };
        Ok(Some(Http {
            address,
            addresses,
            options,
            token_file,
            tools,
        }))
    }
}

fn in_home(name: &str) -> anyhow::Result<PathBuf> {
    let home = default_home().context("there is no place for keys\nhint: name one: `HOST_HOME=DIR`")?;
    Ok(home.join(name))
}

impl Http {
    /// Serves until a signal comes, and then what runs to its end, unless a second one comes.
    pub(crate) async fn serve(self, server: Server) -> anyhow::Result<()> {
        // Before anybody knows the address, so that nobody can be too early with a signal.
        let mut signals = Signals::new()?;
        let (listener, address) = self.listen()?;
        let noun = if self.tools == 1 { "tool" } else { "tools" };
        output::note(&format!("serving {} {noun} at http://{address}/mcp", self.tools));
        if let Some(file) = &self.token_file {
            output::note(&format!("clients need the token in `{}`", file.display()));
        }
        let shutdown = tokio_util::sync::CancellationToken::new();
        let serving = serve_http(server, listener, self.options, shutdown.clone());
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            served = &mut serving => return Ok(served?),
            () = signals.next() => shutdown.cancel(),
        }
        tokio::select! {
            served = serving => Ok(served?),
            () = signals.next() => Ok(()),
        }
    }

    /// Listens at the first of the addresses that can be had.
    fn listen(&self) -> anyhow::Result<(TcpListener, SocketAddr)> {
        let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in &self.addresses {
            match listen(*address).and_then(|listener| Ok((listener.local_addr()?, listener))) {
                Ok((address, listener)) => return Ok((listener, address)),
                Err(error) => failed = error,
            }
        }
        let Address { host, port } = &self.address;
        let hint = match failed.kind() {
            io::ErrorKind::AddrInUse => {
                let free = SocketAddr::new(
                    self.addresses
                        .first()
                        .map_or(IpAddr::from(Ipv4Addr::LOCALHOST), SocketAddr::ip),
                    0,
                );
                format!("\nhint: another program listens there; `--http {free}` picks a free port")
            }
            io::ErrorKind::PermissionDenied => "\nhint: take a port above 1023".to_owned(),
            io::ErrorKind::AddrNotAvailable => "\nhint: this machine has no such address".to_owned(),
            _ => String::new(),
        };
        bail!("cannot listen at `{host}`, port {port}: {failed}{hint}");
    }
}

/// The signals that end a server.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    #[cfg(not(unix))]
    fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, host, port) in [
            ("8080", "127.0.0.1", 8080),
            (":8080", "127.0.0.1", 8080),
            ("0", "127.0.0.1", 0),
            ("localhost:8080", "localhost", 8080),
            ("0.0.0.0:80", "0.0.0.0", 80),
            ("[::1]:8080", "::1", 8080),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.host.as_str(), address.port), (host, port), "{text}");
        }
        for text in [
            "",
            "localhost",
            "127.0.0.1",
            "::1",
            "::1:8080",
            "127.0.0.1:99999",
            "http://localhost:8080",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}

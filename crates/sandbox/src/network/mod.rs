//! The way from a guest to the network. `wasi:http` and sockets go through the same decision, which is made on the address that is dialled:
//! a name is looked up once, and no other address than those that were found and admitted is ever connected to.

mod body;
mod outgoing;
mod sockets;

pub(crate) use outgoing::Outgoing;
pub(crate) use sockets::{Sockets, check_lookups};

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use policy::{Destination, DnsName, Grants, Host, Refusal};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use wasmtime_wasi::async_trait;

/// Finds the addresses of names.
#[async_trait]
pub trait Resolver: Send + Sync {
    async fn addresses(&self, name: &DnsName) -> std::io::Result<Vec<IpAddr>>;
}

/// As this machine does it.
struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn addresses(&self, name: &DnsName) -> std::io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
        Ok(found.map(|address| address.ip().to_canonical()).collect())
    }
}

/// Makes the settings for TLS. Reading the certificates of a system takes tens of milliseconds, so it is done at the first request.
type MakeTls = Box<dyn Fn() -> Result<ClientConfig, String> + Send + Sync>;

/// How the network is reached, by those who may. One for the whole process.
pub struct Network {
    resolver: Box<dyn Resolver>,
    make_tls: MakeTls,
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

impl Network {
    pub fn new(make_tls: impl Fn() -> Result<ClientConfig, String> + Send + Sync + 'static) -> Self {
        Self::with_resolver(make_tls, SystemResolver)
    }

    pub fn with_resolver(
        make_tls: impl Fn() -> Result<ClientConfig, String> + Send + Sync + 'static,
        resolver: impl Resolver + 'static,
    ) -> Self {
        Self {
            resolver: Box::new(resolver),
            make_tls: Box::new(make_tls),
            tls: OnceLock::new(),
        }
    }

    /// For guests that may not use it.
    pub(crate) fn none() -> Self {
        Self::new(|| Err("no TLS was set up".to_owned()))
    }

    /// This may take a while: for threads that may block.
    fn tls(&self) -> Result<Arc<ClientConfig>, String> {
        self.tls.get_or_init(|| (self.make_tls)().map(Arc::new)).clone()
    }

    /// The addresses of a destination that may be dialled, in order.
    async fn admitted(&self, grants: &Grants, destination: &Destination) -> Result<Vec<IpAddr>, ConnectError> {
        grants.may_ask(destination)?;
        let found = match &destination.host {
            Host::Address(address) => vec![*address],
            // It means this machine, whatever a name server says (RFC 6761).
            Host::Name(name) if name.is_localhost() => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            Host::Name(name) => self.resolver.addresses(name).await.map_err(ConnectError::LookUp)?,
        };
        let mut refused = None;
        let mut admitted = Vec::new();
        for address in found {
            match grants.may_connect(destination, address) {
                Ok(()) => admitted.push(address),
                Err(refusal) => refused = refused.or(Some(refusal)),
            }
        }
        match (admitted.is_empty(), refused) {
            (true, Some(refusal)) => Err(refusal.into()),
            (true, None) => Err(ConnectError::LookUp(std::io::ErrorKind::NotFound.into())),
            (false, _) => Ok(admitted),
        }
    }

    /// A connection to the first address of a destination that answers.
    async fn connect(&self, grants: &Grants, destination: &Destination, within: Duration) -> Result<TcpStream, ConnectError> {
        let connect = async {
            let mut failed = None;
            for address in self.admitted(grants, destination).await? {
                match TcpStream::connect((address, destination.port)).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => failed = Some(error),
                }
            }
            let nobody = || std::io::ErrorKind::NotFound.into();
            Err(ConnectError::Connect(failed.unwrap_or_else(nobody)))
        };
        match tokio::time::timeout(within, connect).await {
            Ok(connected) => connected,
            Err(_) => Err(ConnectError::TimedOut),
        }
    }
}

/// Why there is no connection.
enum ConnectError {
    Refused(Box<Refusal>),
    LookUp(std::io::Error),
    Connect(std::io::Error),
    TimedOut,
}

impl From<Refusal> for ConnectError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use policy::{Permission, Scheme};

    use super::*;

    /// Gives another answer each time it is asked.
    struct Rebinding(Vec<IpAddr>, Arc<AtomicUsize>);

    #[async_trait]
    impl Resolver for Rebinding {
        async fn addresses(&self, _: &DnsName) -> std::io::Result<Vec<IpAddr>> {
            let turn = self.1.fetch_add(1, Ordering::SeqCst);
            Ok(vec![self.0[turn.min(self.0.len() - 1)]])
        }
    }

    fn grants(rules: &[&str]) -> Grants {
        let mut grants = Grants::default();
        for rule in rules {
            grants.allow(rule.parse::<Permission>().unwrap()).unwrap();
        }
        grants
    }

    fn destination(host: &str, port: u16) -> Destination {
        Destination {
            scheme: Scheme::Http,
            host: Host::parse(host).unwrap(),
            port,
        }
    }

    /// Row 10: a name that is public when it is checked and loopback when it is used.
    #[tokio::test]
    async fn row_10_a_name_is_looked_up_once_and_its_address_is_dialled() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let turns = Arc::new(AtomicUsize::new(0));
        // The first address is nobody's; the second is where the attacker wants to get.
        let answers = vec!["203.0.113.1".parse().unwrap(), "127.0.0.1".parse().unwrap()];
        let network = Network::with_resolver(|| Err(String::new()), Rebinding(answers, Arc::clone(&turns)));
        let name = format!("net=*:{port}");
        let within = Duration::from_millis(300);
        for lookups in 1..=2 {
            let connected = network
                .connect(&grants(&[&name]), &destination("rebind.example.com", port), within)
                .await;
            assert!(connected.is_err());
            assert_eq!(turns.load(Ordering::SeqCst), lookups, "one lookup for one connection");
        }
        assert!(listener.accept().is_err(), "nobody was connected to");
    }

    #[tokio::test]
    async fn of_several_addresses_only_those_that_are_admitted_are_dialled() {
        struct Both;
        #[async_trait]
        impl Resolver for Both {
            async fn addresses(&self, _: &DnsName) -> std::io::Result<Vec<IpAddr>> {
                Ok(["10.0.0.1", "198.51.100.7", "8.8.8.8"]
                    .map(|text| text.parse().unwrap())
                    .to_vec())
            }
        }
        let network = Network::with_resolver(|| Err(String::new()), Both);
        let asked = destination("both.example.com", 80);
        let admitted = network.admitted(&grants(&["net=both.example.com"]), &asked).await;
        assert_eq!(admitted.ok(), Some(vec!["8.8.8.8".parse().unwrap()]));
        let rules = ["net=both.example.com", "net=10.0.0.0/8:80"];
        let admitted = network.admitted(&grants(&rules), &asked).await;
        assert_eq!(admitted.ok().map(|all| all.len()), Some(2));
        assert!(
            network.admitted(&grants(&["net=10.0.0.0/8"]), &asked).await.is_err(),
            "the name itself is not granted"
        );
    }
}

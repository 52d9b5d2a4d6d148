//! Sockets: every address that a guest wants to reach is checked, and names are looked up only where that is granted.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use policy::{Destination, DnsName, Host, Scheme};
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup as p2;
use wasmtime_wasi::p2::bindings::sockets::network as p2_network;
use wasmtime_wasi::p3::bindings::sockets::ip_name_lookup as p3;
use wasmtime_wasi::p3::bindings::sockets::types as p3_types;
use wasmtime_wasi::sockets::{SocketAddrUse, WasiSocketsView};

use crate::confinement::Confinement;
use crate::denials::{Denials, Denied};
use crate::guest::Guest;

/// Names that one guest may look up, so that what is remembered of them stays small.
const MAX_LOOKUPS: usize = 256;

/// What one guest may do with sockets; clones share it.
#[derive(Clone)]
pub(crate) struct Sockets {
    confinement: Arc<Confinement>,
    denials: Denials,
    names: Arc<Mutex<Names>>,
}

/// The names that were looked up.
#[derive(Default)]
struct Names {
    /// Where they led to: a rule that names a host covers these.
    found: HashMap<IpAddr, Vec<DnsName>>,
    lookups: usize,
    /// Those of WASI 0.2 whose answers are still being read, by their handle.
    open: HashMap<u32, DnsName>,
}

impl Sockets {
    pub(crate) fn new(confinement: Arc<Confinement>, denials: Denials) -> Self {
        Self {
            confinement,
            denials,
            names: Arc::default(),
        }
    }

    /// Lets a guest have sockets that can reach what is granted.
    pub(crate) fn allow(&self, wasi: &mut WasiCtxBuilder) {
        let sockets = self.clone();
        wasi.allow_tcp(true)
            .allow_udp(true)
            .allow_ip_name_lookup(true)
            .socket_addr_check(move |address, purpose| {
                let admitted = sockets.admits(address, purpose);
                Box::pin(std::future::ready(admitted)) as Pin<Box<dyn Future<Output = bool> + Send + Sync>>
            });
    }

    /// A new call begins, which may look up as many names as any other.
    pub(crate) fn renew(&self) {
        self.names().lookups = 0;
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admits(&self, address: SocketAddr, purpose: SocketAddrUse) -> bool {
        let scheme = match purpose {
            SocketAddrUse::TcpConnect => Scheme::Tcp,
            SocketAddrUse::UdpSend | SocketAddrUse::UdpReceive => Scheme::Udp,
            // Whoever connects is bound to some free port before.
            SocketAddrUse::TcpBind | SocketAddrUse::UdpBind if address.ip().is_unspecified() && address.port() == 0 => return true,
            _ => {
                self.denials.add(Denied {
                    what: format!("to listen on {address}, which no guest may do"),
                    remedy: None,
                });
                return false;
            }
        };
        let port = address.port();
        let address = address.ip();
        let destination = |host| Destination { scheme, host, port };
        let plain = destination(Host::Address(address.to_canonical()));
        let refusal = match self.confinement.grants.may_connect(&plain, address) {
            Ok(()) => return true,
            Err(refusal) => refusal,
        };
        let names = self.names().found.get(&address.to_canonical()).cloned().unwrap_or_default();
        let mut by_name = None;
        for name in names {
            let named = destination(Host::Name(name));
            match self.confinement.grants.may_connect(&named, address) {
                Ok(()) => return true,
                Err(refusal) => by_name = Some(refusal),
            }
        }
        // What comes unasked for is no wish of the guest.
        if !matches!(purpose, SocketAddrUse::UdpReceive) {
            self.denials.add(by_name.unwrap_or(refusal));
        }
        false
    }

    /// The name that a text is, if it may be looked up; none for an address, which needs no lookup.
    fn look_up(&self, text: &str) -> Result<Option<DnsName>, Refused> {
        let name = match Host::parse(text) {
            Ok(Host::Name(name)) => name,
            Ok(Host::Address(_)) => return Ok(None),
            Err(_) => return Err(Refused::NoName),
        };
        if let Err(refusal) = self.confinement.grants.may_look_up(&name) {
            self.denials.add(refusal);
            return Err(Refused::Denied);
        }
        let mut names = self.names();
        names.lookups += 1;
        if names.lookups > MAX_LOOKUPS {
            drop(names);
            self.denials.add(Denied {
                what: format!("to look up more than {MAX_LOOKUPS} names in one call"),
                remedy: None,
            });
            return Err(Refused::Denied);
        }
        Ok(Some(name))
    }

    fn found(&self, name: &DnsName, address: IpAddr) {
        let mut names = self.names();
        let known = names.found.entry(address.to_canonical()).or_default();
        if !known.contains(name) {
            known.push(name.clone());
        }
    }
}

enum Refused {
    NoName,
    Denied,
}

/// Puts the check of names before the lookups of a linker that has `wasi:sockets` already.
pub(crate) fn check_lookups(linker: &mut Linker<Guest>, concurrency: bool) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    check_p2(linker)?;
    if concurrency {
        check_p3(linker)?;
    }
    linker.allow_shadowing(false);
    Ok(())
}

fn check_p2(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut instance = linker.instance("wasi:sockets/ip-name-lookup@0.2.12")?;
    instance.func_wrap(
        "resolve-addresses",
        |mut store, (network, text): (Resource<p2_network::Network>, String)| {
            use p2::Host as _;
            let guest = store.data_mut();
            let name = match guest.sockets.look_up(&text) {
                Ok(name) => name,
                Err(Refused::NoName) => return Ok((Err(p2_network::ErrorCode::InvalidArgument),)),
                Err(Refused::Denied) => return Ok((Err(p2_network::ErrorCode::AccessDenied),)),
            };
            let text = name.as_ref().map_or(text, DnsName::to_string);
            let found = match WasiSocketsView::sockets(guest).resolve_addresses(network, text) {
                Ok(found) => found,
                Err(error) => return Ok((Err(error.downcast()?),)),
            };
            let mut names = guest.sockets.names();
            match name {
                Some(name) => names.open.insert(found.rep(), name),
                None => names.open.remove(&found.rep()),
            };
            drop(names);
            Ok((Ok(found),))
        },
    )?;
    instance.func_wrap(
        "[method]resolve-address-stream.resolve-next-address",
        |mut store, (stream,): (Resource<p2::ResolveAddressStream>,)| {
            use p2::HostResolveAddressStream as _;
            let guest = store.data_mut();
            let name = guest.sockets.names().open.get(&stream.rep()).cloned();
            let next = match WasiSocketsView::sockets(guest).resolve_next_address(stream) {
                Ok(next) => next,
                Err(error) => return Ok((Err(error.downcast()?),)),
            };
            if let (Some(name), Some(address)) = (name, &next) {
                let address = match address {
                    p2_network::IpAddress::Ipv4((a, b, c, d)) => IpAddr::from([*a, *b, *c, *d]),
                    p2_network::IpAddress::Ipv6((a, b, c, d, e, f, g, h)) => IpAddr::from([*a, *b, *c, *d, *e, *f, *g, *h]),
                };
                guest.sockets.found(&name, address);
            }
            Ok((Ok(next),))
        },
    )?;
    Ok(())
}

fn check_p3(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut instance = linker.instance("wasi:sockets/ip-name-lookup@0.3.0")?;
    instance.func_wrap_concurrent("resolve-addresses", |store, (text,): (String,)| {
        Box::pin(async move {
            let sockets = store.with(|mut access| access.data_mut().sockets.clone());
            let name = match sockets.look_up(&text) {
                Ok(Some(name)) => name,
                Ok(None) => {
                    let address = match Host::parse(&text) {
                        Ok(Host::Address(address)) => vec![p3_types::IpAddress::from(address)],
                        _ => vec![],
                    };
                    return Ok((Ok(address),));
                }
                Err(Refused::NoName) => return Ok((Err(p3::ErrorCode::InvalidArgument),)),
                Err(Refused::Denied) => return Ok((Err(p3::ErrorCode::AccessDenied),)),
            };
            let found = match sockets.confinement.network.resolver.addresses(&name).await {
                Ok(found) => found,
                Err(_) => return Ok((Err(p3::ErrorCode::NameUnresolvable),)),
            };
            for address in &found {
                sockets.found(&name, *address);
            }
            Ok((Ok(found.into_iter().map(p3_types::IpAddress::from).collect::<Vec<_>>()),))
        })
    })
}

//! Bare sockets, through `wasi:sockets` itself: std would add its own reading of names and addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wasip2::io::streams::{InputStream, OutputStream, StreamError};
use wasip2::sockets::instance_network::instance_network;
use wasip2::sockets::ip_name_lookup::resolve_addresses;
use wasip2::sockets::network::{
    ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress, Ipv6SocketAddress, Network,
};
use wasip2::sockets::tcp::{ShutdownType, TcpSocket};
use wasip2::sockets::tcp_create_socket::create_tcp_socket;
use wasip2::sockets::udp::OutgoingDatagram;
use wasip2::sockets::udp_create_socket::create_udp_socket;

use crate::text;

/// What one read asks for at most.
const CHUNK: u64 = 64 * 1024;
/// What `blocking-write-and-flush` takes at most.
const WRITE: usize = 4096;

/// Who says to whom a datagram goes.
#[derive(PartialEq)]
pub enum Receiver {
    InDatagram,
    OfSocket,
}

/// An IP address as text.
pub fn literal(address: &str) -> Result<IpAddr, String> {
    address.parse().map_err(|_| format!("address: {address} is no IP address"))
}

/// All addresses of a name.
pub fn resolve(name: &str) -> Result<Vec<IpAddr>, String> {
    let failed = at("resolve");
    let stream = resolve_addresses(&instance_network(), name).map_err(failed)?;
    let mut addresses = Vec::new();
    loop {
        match stream.resolve_next_address() {
            Ok(Some(address)) => addresses.push(from_wasi(address)),
            Ok(None) => return Ok(addresses),
            Err(ErrorCode::WouldBlock) => stream.subscribe().block(),
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Connects, sends the text, says that this was all, and reads until the other side ends.
pub fn exchange(address: IpAddr, port: u16, sent: &str) -> Result<String, String> {
    let network = instance_network();
    let socket = create_tcp_socket(family(address)).map_err(at("tcp-create"))?;
    let (input, output) = connect(&socket, &network, to_wasi(address, port))?;
    for bytes in sent.as_bytes().chunks(WRITE) {
        output
            .blocking_write_and_flush(bytes)
            .map_err(|error| failure("tcp-send", &error))?;
    }
    socket.shutdown(ShutdownType::Send).map_err(at("tcp-shutdown"))?;
    let mut received = Vec::new();
    loop {
        match input.blocking_read(CHUNK) {
            Ok(bytes) => received.extend(bytes),
            Err(StreamError::Closed) => return Ok(text(&received)),
            Err(error) => return Err(failure("tcp-receive", &error)),
        }
    }
}

fn connect(socket: &TcpSocket, network: &Network, remote: IpSocketAddress) -> Result<(InputStream, OutputStream), String> {
    let failed = at("tcp-connect");
    socket.start_connect(network, remote).map_err(failed)?;
    loop {
        match socket.finish_connect() {
            Err(ErrorCode::WouldBlock) => socket.subscribe().block(),
            other => return other.map_err(failed),
        }
    }
}

/// Sends one datagram.
pub fn send_datagram(address: IpAddr, port: u16, sent: &str, receiver: Receiver) -> Result<(), String> {
    let family = family(address);
    let remote = to_wasi(address, port);
    let socket = create_udp_socket(family).map_err(at("udp-create"))?;
    // A socket has to be bound before it sends.
    let local = match family {
        IpAddressFamily::Ipv4 => Ipv4Addr::UNSPECIFIED.into(),
        IpAddressFamily::Ipv6 => Ipv6Addr::UNSPECIFIED.into(),
    };
    socket
        .start_bind(&instance_network(), to_wasi(local, 0))
        .map_err(at("udp-bind"))?;
    socket.finish_bind().map_err(at("udp-bind"))?;
    let connected = receiver == Receiver::OfSocket;
    let (_, outgoing) = socket.stream(connected.then_some(remote)).map_err(at("udp-stream"))?;
    let failed = at("udp-send");
    while outgoing.check_send().map_err(failed)? == 0 {
        outgoing.subscribe().block();
    }
    let datagram = OutgoingDatagram {
        data: sent.as_bytes().to_vec(),
        remote_address: (!connected).then_some(remote),
    };
    match outgoing.send(&[datagram]).map_err(failed)? {
        1 => Ok(()),
        _ => Err("udp-send: not sent".to_owned()),
    }
}

/// Listens at all IPv4 addresses, and gives the port.
pub fn listen(port: u16) -> Result<u16, String> {
    let socket = create_tcp_socket(IpAddressFamily::Ipv4).map_err(at("tcp-create"))?;
    let everywhere = to_wasi(Ipv4Addr::UNSPECIFIED.into(), port);
    socket.start_bind(&instance_network(), everywhere).map_err(at("tcp-bind"))?;
    socket.finish_bind().map_err(at("tcp-bind"))?;
    socket.start_listen().map_err(at("tcp-listen"))?;
    socket.finish_listen().map_err(at("tcp-listen"))?;
    match socket.local_address().map_err(at("tcp-listen"))? {
        IpSocketAddress::Ipv4(local) => Ok(local.port),
        IpSocketAddress::Ipv6(local) => Ok(local.port),
    }
}

/// Tells at which step an error came.
fn at(step: &'static str) -> impl Fn(ErrorCode) -> String + Copy {
    move |error| format!("{step}: {}", error.name())
}

fn failure(step: &str, error: &StreamError) -> String {
    match error {
        StreamError::Closed => format!("{step}: closed"),
        StreamError::LastOperationFailed(error) => format!("{step}: {}", error.to_debug_string()),
    }
}

fn family(address: IpAddr) -> IpAddressFamily {
    match address {
        IpAddr::V4(_) => IpAddressFamily::Ipv4,
        IpAddr::V6(_) => IpAddressFamily::Ipv6,
    }
}

fn from_wasi(address: IpAddress) -> IpAddr {
    match address {
        IpAddress::Ipv4((a, b, c, d)) => Ipv4Addr::new(a, b, c, d).into(),
        IpAddress::Ipv6((a, b, c, d, e, f, g, h)) => Ipv6Addr::new(a, b, c, d, e, f, g, h).into(),
    }
}

fn to_wasi(address: IpAddr, port: u16) -> IpSocketAddress {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            IpSocketAddress::Ipv4(Ipv4SocketAddress {
                port,
                address: (a, b, c, d),
            })
        }
        IpAddr::V6(address) => {
            let [a, b, c, d, e, f, g, h] = address.segments();
            IpSocketAddress::Ipv6(Ipv6SocketAddress {
                port,
                flow_info: 0,
                address: (a, b, c, d, e, f, g, h),
                scope_id: 0,
            })
        }
    }
}

//! Bare sockets of WASI 0.3.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wasip3::sockets::ip_name_lookup::resolve_addresses;
use wasip3::sockets::types::{
    IpAddress, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress, Ipv6SocketAddress, TcpSocket, UdpSocket,
};
use wasip3::wit_stream;

use crate::failure;

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
pub async fn resolve(name: String) -> Result<Vec<IpAddr>, String> {
    let addresses = resolve_addresses(name).await.map_err(|error| failure("resolve", error))?;
    let from_wasi = |address| match address {
        IpAddress::Ipv4((a, b, c, d)) => Ipv4Addr::new(a, b, c, d).into(),
        IpAddress::Ipv6((a, b, c, d, e, f, g, h)) => Ipv6Addr::new(a, b, c, d, e, f, g, h).into(),
    };
    Ok(addresses.into_iter().map(from_wasi).collect())
}

/// Connects, sends the text, says that this was all, and reads until the other side ends.
pub async fn exchange(address: IpAddr, port: u16, text: &str) -> Result<String, String> {
    let socket = TcpSocket::create(family(address)).map_err(|error| failure("tcp-create", error))?;
    socket
        .connect(to_wasi(address, port))
        .await
        .map_err(|error| failure("tcp-connect", error))?;
    let (mut writer, reader) = wit_stream::new();
    let sent = socket.send(reader);
    writer.write_all(text.as_bytes().to_vec()).await;
    drop(writer);
    sent.await.map_err(|error| failure("tcp-send", error))?;
    let (stream, end) = socket.receive();
    let received = stream.collect().await;
    end.await.map_err(|error| failure("tcp-receive", error))?;
    Ok(String::from_utf8_lossy(&received).into_owned())
}

/// Sends one datagram.
pub async fn send_datagram(address: IpAddr, port: u16, text: &str, receiver: Receiver) -> Result<(), String> {
    let socket = UdpSocket::create(family(address)).map_err(|error| failure("udp-create", error))?;
    let remote = to_wasi(address, port);
    let connected = receiver == Receiver::OfSocket;
    if connected {
        socket.connect(remote).map_err(|error| failure("udp-connect", error))?;
    }
    socket
        .send(text.as_bytes().to_vec(), (!connected).then_some(remote))
        .await
        .map_err(|error| failure("udp-send", error))
}

fn family(address: IpAddr) -> IpAddressFamily {
    match address {
        IpAddr::V4(_) => IpAddressFamily::Ipv4,
        IpAddr::V6(_) => IpAddressFamily::Ipv6,
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

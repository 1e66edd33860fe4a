//! Whether IP may fragment what a socket sends. It may not, so that probes of the path MTU mean something: quinn-udp sets DF
//! (`IP_PMTUDISC_PROBE`). A chunk that was cut for a larger packet before a path shrank has no other way to arrive.

use std::io;

use tokio::net::UdpSocket;

/// The system's word for a datagram that is longer than the interface takes.
#[cfg(target_os = "linux")]
pub(crate) fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_too_long(_: &io::Error) -> bool {
    false
}

/// Allows it from here on, or forbids it again.
#[cfg(target_os = "linux")]
pub(crate) fn allow(socket: &UdpSocket, allowed: bool) -> io::Result<()> {
    use rustix::net::sockopt::{
        Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
    };
    if socket.local_addr()?.is_ipv4() {
        let rule = if allowed { Ipv4PathMtuDiscovery::DONT } else { Ipv4PathMtuDiscovery::PROBE };
        set_ip_mtu_discover(socket, rule)?;
    } else {
        let rule = if allowed { Ipv6PathMtuDiscovery::DONT } else { Ipv6PathMtuDiscovery::PROBE };
        set_ipv6_mtu_discover(socket, rule)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn allow(_: &UdpSocket, _: bool) -> io::Result<()> {
    Ok(())
}

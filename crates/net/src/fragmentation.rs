//! IP fragmentation of sent datagrams. Fragmentation is disabled by default, because path MTU probes must not be fragmented:
//! quinn-udp sets DF (`IP_PMTUDISC_PROBE`). It is enabled for chunks that were sized for larger packets before a path's MTU shrank,
//! since they cannot arrive otherwise.

use std::io;

use tokio::net::UdpSocket;

/// Returns `true` if the error reports a datagram that exceeds the interface's MTU.
#[cfg(target_os = "linux")]
pub(crate) fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_too_long(_: &io::Error) -> bool {
    false
}

/// Enables or disables fragmentation from now on.
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

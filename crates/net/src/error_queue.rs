//! Error queue of a UDP socket, through which Linux reports ICMP messages with the beginning of the causing packet.
//!
//! Other systems report nothing for unconnected sockets.

use std::net::SocketAddr;

use anabranch_core::Refusal;
use tokio::net::UdpSocket;

/// Number of bytes read of a reported packet. The endpoint needs 20 bytes.
#[cfg(target_os = "linux")]
const QUOTED_BYTES: usize = 64;

/// Maximum number of reports read from a socket at a time.
#[cfg(target_os = "linux")]
const MOST_REPORTS: usize = 64;

/// Enables or disables the reports of a socket. Unread reports are dropped.
#[cfg(target_os = "linux")]
pub(crate) fn enable(socket: &UdpSocket, enabled: bool) -> std::io::Result<()> {
    use nix::sys::socket::{setsockopt, sockopt};
    let is_ipv4 = socket.local_addr()?.is_ipv4();
    if is_ipv4 {
        setsockopt(socket, sockopt::Ipv4RecvErr, &enabled)?;
    } else {
        setsockopt(socket, sockopt::Ipv6RecvErr, &enabled)?;
    }
    Ok(())
}

/// Reads the waiting reports. `take` receives the destination of each packet, the reason, and the beginning of its UDP payload.
/// Returns the number of reports.
#[cfg(target_os = "linux")]
pub(crate) fn read(socket: &UdpSocket, mut take: impl FnMut(SocketAddr, Refusal, &[u8])) -> usize {
    use std::io::IoSliceMut;
    use std::os::fd::AsRawFd;

    use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};

    let mut quoted = [0; QUOTED_BYTES];
    let mut control = [0; 512];
    for count in 0..MOST_REPORTS {
        let mut parts = [IoSliceMut::new(&mut quoted)];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let received = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags);
        let Ok(report) = received else { return count };
        let destination = report.address.as_ref().and_then(address);
        let refusal = report.cmsgs().into_iter().flatten().find_map(|message| match message {
            ControlMessageOwned::Ipv4RecvErr(error, _) => {
                icmp_v4(error.ee_origin, error.ee_type, error.ee_code)
            }
            ControlMessageOwned::Ipv6RecvErr(error, _) => {
                icmp_v6(error.ee_origin, error.ee_type, error.ee_code)
            }
            _ => None,
        });
        let length = report.bytes.min(QUOTED_BYTES);
        if let (Some(destination), Some(refusal)) = (destination, refusal) {
            take(destination, refusal, &quoted[..length]);
        }
    }
    MOST_REPORTS
}

#[cfg(target_os = "linux")]
fn address(storage: &nix::sys::socket::SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|v4| SocketAddr::from(*v4));
    v4.or_else(|| storage.as_sockaddr_in6().map(|v6| SocketAddr::from(*v6)))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn enable(_: &UdpSocket, _: bool) -> std::io::Result<()> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn read(_: &UdpSocket, _: impl FnMut(SocketAddr, Refusal, &[u8])) -> usize {
    0
}

/// Reads type and code of an ICMPv4 message (RFC 792, RFC 1812 section 5.2.7.1).
//= docs/rfc9260.txt#section-10
//# ICMP1)  An implementation MAY ignore all ICMPv4 messages where the type field is not set to "Destination Unreachable".
#[cfg(target_os = "linux")]
fn icmp_v4(origin: u8, kind: u8, code: u8) -> Option<Refusal> {
    const ORIGIN_ICMP: u8 = 2;
    const DESTINATION_UNREACHABLE: u8 = 3;
    if (origin, kind) != (ORIGIN_ICMP, DESTINATION_UNREACHABLE) {
        return None;
    }
    match code {
        0 | 6 | 11 => Some(Refusal::NoRoute),
        1 | 7 | 8 | 12 => Some(Refusal::HostUnreachable),
        // Protocol unreachable. RFC 6951 section 5.5 treats a closed UDP port in the same way.
        2 | 3 => Some(Refusal::PortClosed),
        9 | 10 | 13 => Some(Refusal::Prohibited),
        _ => None,
    }
}

/// Reads type and code of an ICMPv6 message (RFC 4443 section 3).
//= docs/rfc9260.txt#section-10
//# ICMP2)  An implementation MAY ignore all ICMPv6 messages where the type field is not "Destination Unreachable",
//# "Parameter Problem", or "Packet Too Big".
//= docs/rfc9260.txt#section-10
//# ICMP4)  An implementation MAY ignore all ICMPv6 messages of type "Parameter Problem" if the code is not "Unrecognized
//# Next Header Type Encountered".
#[cfg(target_os = "linux")]
fn icmp_v6(origin: u8, kind: u8, code: u8) -> Option<Refusal> {
    const ORIGIN_ICMP6: u8 = 3;
    const DESTINATION_UNREACHABLE: u8 = 1;
    const PARAMETER_PROBLEM: u8 = 4;
    match (origin, kind, code) {
        (ORIGIN_ICMP6, DESTINATION_UNREACHABLE, 0) => Some(Refusal::NoRoute),
        (ORIGIN_ICMP6, DESTINATION_UNREACHABLE, 1 | 5 | 6) => Some(Refusal::Prohibited),
        (ORIGIN_ICMP6, DESTINATION_UNREACHABLE, 2 | 3) => Some(Refusal::HostUnreachable),
        (ORIGIN_ICMP6, DESTINATION_UNREACHABLE, 4) | (ORIGIN_ICMP6, PARAMETER_PROBLEM, 1) => {
            Some(Refusal::PortClosed)
        }
        _ => None,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_icmp_messages_about_an_unreachable_destination_are_refusals() {
        let of_v4 = |code| icmp_v4(2, 3, code);
        assert_eq!(of_v4(0), Some(Refusal::NoRoute));
        assert_eq!(of_v4(1), Some(Refusal::HostUnreachable));
        assert_eq!([of_v4(2), of_v4(3)], [Some(Refusal::PortClosed); 2]);
        assert_eq!(of_v4(13), Some(Refusal::Prohibited));
        // Fragmentation needed, source quench, time exceeded, parameter problem, and an error of this host.
        assert_eq!(
            [of_v4(4), icmp_v4(2, 4, 0), icmp_v4(2, 11, 0), icmp_v4(2, 12, 0), icmp_v4(1, 3, 3)],
            [None; 5]
        );
        assert_eq!(icmp_v6(3, 1, 4), Some(Refusal::PortClosed));
        assert_eq!(icmp_v6(3, 4, 1), Some(Refusal::PortClosed));
        assert_eq!([icmp_v6(3, 2, 0), icmp_v6(3, 3, 0), icmp_v6(3, 4, 0), icmp_v6(2, 1, 4)], [None; 4]);
    }
}

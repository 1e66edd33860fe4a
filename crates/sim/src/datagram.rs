//! Packets as hosts send and receive them: addresses, encapsulation and payload.

use std::net::IpAddr;

use anabranch_core::units::WireBytes;

/// Address of a host's interface.
pub type Address = IpAddr;

/// Encapsulation of an SCTP packet in IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Encapsulation {
    /// Directly, as IP protocol 132.
    #[default]
    None,
    /// In a UDP datagram (RFC 6951).
    Udp {
        /// UDP port of the sender.
        source_port: u16,
        /// UDP port of the receiver.
        destination_port: u16,
    },
}

/// Addresses and encapsulation of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Envelope {
    /// Interface that sends the packet.
    pub source: Address,
    /// Interface that receives the packet.
    pub destination: Address,
    /// Encapsulation between IP and the payload.
    pub encapsulation: Encapsulation,
}

impl Envelope {
    /// Returns the envelope of a packet directly on IP.
    pub const fn plain(source: Address, destination: Address) -> Self {
        Envelope { source, destination, encapsulation: Encapsulation::None }
    }

    /// Returns a packet with this envelope.
    pub(crate) const fn around(self, payload: &[u8]) -> Datagram<'_> {
        let Envelope { source, destination, encapsulation } = self;
        Datagram { source, destination, encapsulation, payload }
    }

    /// Returns the bytes that a packet with `payload` bytes occupies on a link: 20 for IPv4 or 40 for IPv6, 8 for UDP
    /// encapsulation, and the payload.
    pub const fn wire_bytes(&self, payload: usize) -> WireBytes {
        let ip = if self.source.is_ipv4() { 20 } else { 40 };
        let udp = match self.encapsulation {
            Encapsulation::None => 0,
            Encapsulation::Udp { .. } => 8,
        };
        WireBytes::new(ip + udp + payload as u64)
    }
}

/// A packet as a host receives it and a [`Tap`](crate::tap::Tap) observes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Interface that sent the packet.
    pub source: Address,
    /// Interface that received the packet.
    pub destination: Address,
    /// Encapsulation between IP and the payload.
    pub encapsulation: Encapsulation,
    /// Bytes of the SCTP packet. Bytes of user data that is only counted are meaningless.
    pub payload: &'a [u8],
}

impl Datagram<'_> {
    /// Returns the packet's addresses and encapsulation.
    pub const fn envelope(&self) -> Envelope {
        Envelope { source: self.source, destination: self.destination, encapsulation: self.encapsulation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn wire_bytes_include_ip_and_udp() {
        let v4 = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
        let udp = Encapsulation::Udp { source_port: 9899, destination_port: 9899 };
        assert_eq!(Envelope::plain(v4, v4).wire_bytes(1480), WireBytes::new(1500));
        assert_eq!(Envelope::plain(v6, v6).wire_bytes(100), WireBytes::new(140));
        let wrapped = Envelope { source: v4, destination: v4, encapsulation: udp };
        assert_eq!(wrapped.wire_bytes(100), WireBytes::new(128));
    }
}

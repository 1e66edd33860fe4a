//! Packets as hosts send and receive them: addresses, what is between IP and SCTP, and the bytes.

use std::net::IpAddr;

use anabranch_core::units::WireBytes;

/// The address of a host's interface.
pub type Address = IpAddr;

/// How an SCTP packet rides on IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Encapsulation {
    /// Directly, as IP protocol 132.
    #[default]
    None,
    /// In a UDP datagram (RFC 6951).
    Udp {
        /// The sender's UDP port.
        source_port: u16,
        /// The receiver's UDP port.
        destination_port: u16,
    },
}

/// Everything about a packet but its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Envelope {
    /// The interface it leaves from.
    pub source: Address,
    /// The interface it goes to.
    pub destination: Address,
    /// What is between IP and the payload.
    pub encapsulation: Encapsulation,
}

impl Envelope {
    /// An envelope of a packet that rides directly on IP.
    pub const fn plain(source: Address, destination: Address) -> Self {
        Envelope { source, destination, encapsulation: Encapsulation::None }
    }

    /// The packet in this envelope.
    pub(crate) const fn around(self, payload: &[u8]) -> Datagram<'_> {
        let Envelope { source, destination, encapsulation } = self;
        Datagram { source, destination, encapsulation, payload }
    }

    /// The bytes that a packet with `payload` bytes in this envelope occupies on a link: 20 for IPv4 or 40
    /// for IPv6, 8 for UDP where it is used, and the payload.
    pub const fn wire_bytes(&self, payload: usize) -> WireBytes {
        let ip = if self.source.is_ipv4() { 20 } else { 40 };
        let udp = match self.encapsulation {
            Encapsulation::None => 0,
            Encapsulation::Udp { .. } => 8,
        };
        WireBytes::new(ip + udp + payload as u64)
    }
}

/// A packet as a host receives it and as a [`Tap`](crate::tap::Tap) sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The interface it came from.
    pub source: Address,
    /// The interface it came to.
    pub destination: Address,
    /// What was between IP and the payload.
    pub encapsulation: Encapsulation,
    /// The bytes of the SCTP packet. Where user data is only counted, what stands in its place means nothing.
    pub payload: &'a [u8],
}

impl Datagram<'_> {
    /// Everything but the payload.
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

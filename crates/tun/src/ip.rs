//! Headers of IP packets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::message::FLOWS;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const ICMPV6: u8 = 58;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// Fields of an IP packet that decide on its treatment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Number of the transport protocol; that of the next header for IPv6.
    pub protocol: u8,
    /// Ports of source and destination. A fragment has none, because only the first one contains them.
    pub ports: Option<(u16, u16)>,
    /// Set for an ICMP message that reports an error of another packet (RFC 792, RFC 4443).
    pub is_icmp_error: bool,
}

impl Header {
    /// Reads the header of a packet. Returns `None` if the packet is malformed or longer than its header says.
    pub fn read(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => read_v4(packet),
            6 => read_v6(packet),
            _ => None,
        }
    }

    /// Returns `true` for a packet that concerns one link only and is never forwarded: to a group, or from an address without meaning
    /// outside the link, such as those of neighbor discovery.
    pub fn stays_on_link(&self) -> bool {
        let from_link = match self.source {
            IpAddr::V4(source) => source.is_unspecified() || source.is_link_local(),
            IpAddr::V6(source) => source.is_unspecified() || source.is_unicast_link_local(),
        };
        from_link || self.destination.is_multicast()
    }

    /// Returns the number of the packet's flow: a hash of addresses, protocol and ports.
    pub fn flow(&self) -> u16 {
        let mut hash = Fnv(0xCBF2_9CE4_8422_2325);
        for address in [self.source, self.destination] {
            match address {
                IpAddr::V4(address) => hash.add(&address.octets()),
                IpAddr::V6(address) => hash.add(&address.octets()),
            }
        }
        hash.add(&[self.protocol]);
        if let Some((source, destination)) = self.ports {
            hash.add(&source.to_be_bytes());
            hash.add(&destination.to_be_bytes());
        }
        let mixed = hash.0 ^ hash.0 >> 32 ^ hash.0 >> 16;
        (mixed % u64::from(FLOWS)) as u16
    }
}

/// Hash of Fowler, Noll and Vo (FNV-1a).
pub(crate) struct Fnv(pub(crate) u64);

impl Fnv {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn read_v4(packet: &[u8]) -> Option<Header> {
    let header_bytes = usize::from(packet[0] & 0xF) * 4;
    if header_bytes < 20 || packet.len() < header_bytes || usize::from(word(packet, 2)?) != packet.len() {
        return None;
    }
    let address = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
    let is_fragment = word(packet, 6)? & 0x3FFF != 0;
    let (protocol, payload) = (packet[9], &packet[header_bytes..]);
    let is_icmp_error = protocol == ICMP && matches!(payload.first(), Some(3 | 4 | 5 | 11 | 12));
    Some(Header {
        source: address(12).into(),
        destination: address(16).into(),
        protocol,
        ports: if is_fragment { None } else { ports(protocol, payload) },
        is_icmp_error,
    })
}

fn read_v6(packet: &[u8]) -> Option<Header> {
    if packet.len() < 40 || usize::from(word(packet, 4)?) + 40 != packet.len() {
        return None;
    }
    let address = |at: usize| packet[at..at + 16].try_into().map(|octets: [u8; 16]| Ipv6Addr::from(octets));
    // Headers of extensions have no ports.
    let (protocol, payload) = (packet[6], &packet[40..]);
    Some(Header {
        source: address(8).ok()?.into(),
        destination: address(24).ok()?.into(),
        protocol,
        ports: ports(protocol, payload),
        is_icmp_error: protocol == ICMPV6 && matches!(payload.first(), Some(1..=4)),
    })
}

fn ports(protocol: u8, payload: &[u8]) -> Option<(u16, u16)> {
    match protocol {
        TCP | UDP | DCCP | SCTP | UDP_LITE => Some((word(payload, 0)?, word(payload, 2)?)),
        _ => None,
    }
}

/// Reads any bytes as a packet.
#[cfg(any(test, feature = "fuzzing"))]
pub fn read_all(bytes: &[u8]) {
    if let Some(header) = Header::read(bytes) {
        assert!(header.flow() < FLOWS && bytes.len() >= 20);
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Returns an IPv4 packet with these ports and 8 bytes of payload behind them.
    pub(crate) fn packet(
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: u8,
        ports: (u16, u16),
    ) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 32, 0, 0, 0, 0, 64, protocol, 0, 0];
        bytes.extend(source.octets());
        bytes.extend(destination.octets());
        bytes.extend(ports.0.to_be_bytes());
        bytes.extend(ports.1.to_be_bytes());
        bytes.extend([0; 8]);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::testing::packet;
    use super::*;

    const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const THERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

    #[test]
    fn addresses_and_ports_are_read() {
        let header = Header::read(&packet(HERE, THERE, TCP, (1, 443))).expect("a header");
        assert_eq!((header.source, header.destination), (HERE.into(), THERE.into()));
        assert_eq!((header.ports, header.protocol), (Some((1, 443)), TCP));
    }

    #[test]
    fn fragments_and_other_protocols_have_no_ports() {
        let mut fragment = packet(HERE, THERE, UDP, (1, 2));
        fragment[6] = 0x20;
        assert_eq!(Header::read(&fragment).expect("a header").ports, None);
        let unreachable = packet(HERE, THERE, ICMP, (0x0301, 0));
        let header = Header::read(&unreachable).expect("a header");
        assert_eq!((header.ports, header.is_icmp_error), (None, true));
        let echo = packet(HERE, THERE, ICMP, (0x0800, 0));
        assert!(!Header::read(&echo).expect("a header").is_icmp_error);
    }

    #[test]
    fn packets_with_wrong_lengths_or_versions_are_refused() {
        let whole = packet(HERE, THERE, TCP, (1, 2));
        for length in 0..whole.len() {
            assert_eq!(Header::read(&whole[..length]), None);
        }
        for first in [0x44, 0x55, 0x65, 0x4F] {
            let mut changed = whole.clone();
            changed[0] = first;
            assert_eq!(Header::read(&changed), None, "{first:x}");
        }
        let mut longer = whole;
        longer.push(0);
        assert_eq!(Header::read(&longer), None);
    }

    #[test]
    fn ipv6_packets_are_read() {
        let mut bytes = vec![0x60, 0, 0, 0, 0, 4, UDP, 64];
        bytes.extend([1; 16]);
        bytes.extend([2; 16]);
        bytes.extend([0, 53, 0, 54]);
        let header = Header::read(&bytes).expect("a header");
        assert_eq!(header.ports, Some((53, 54)));
        assert_eq!(header.destination, IpAddr::from([2; 16]));
        bytes.push(0);
        assert_eq!(Header::read(&bytes), None);
        bytes.pop();
        for (kind, is_error) in [(0, false), (1, true), (2, true), (4, true), (5, false), (128, false)] {
            (bytes[6], bytes[40]) = (ICMPV6, kind);
            let header = Header::read(&bytes).expect("a header");
            assert_eq!((header.ports, header.is_icmp_error), (None, is_error));
        }
        // A fragment and a packet with options for hops have no ports.
        for extension in [44, 0] {
            bytes[6] = extension;
            assert_eq!(Header::read(&bytes).expect("a header").ports, None);
        }
    }

    #[test]
    fn packets_of_one_link_are_recognised() {
        let stays = |source: &str, destination: &str| {
            let (source, destination) =
                (source.parse().expect(source), destination.parse().expect(destination));
            Header { source, destination, protocol: UDP, ports: None, is_icmp_error: false }.stays_on_link()
        };
        assert!(stays("::", "ff02::16") && stays("fe80::1", "2001:db8::1") && stays("fd00::2", "ff02::2"));
        assert!(stays("10.0.0.1", "224.0.0.22") && stays("169.254.0.1", "192.0.2.1"));
        assert!(!stays("fd00::2", "2001:db8::1") && !stays("10.0.0.1", "192.0.2.1"));
    }

    #[test]
    fn flows_of_different_ports_have_different_numbers_mostly() {
        let flow = |port| Header::read(&packet(HERE, THERE, TCP, (port, 443))).expect("a header").flow();
        let mut numbers: Vec<u16> = (1000..1100).map(flow).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert!(numbers.len() > 85, "{}", numbers.len());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            read_all(&bytes);
        }

        #[test]
        fn changed_packets_are_read_without_a_panic(at in 0..32usize, byte: u8) {
            let mut bytes = packet(HERE, THERE, TCP, (1, 2));
            bytes[at] = byte;
            read_all(&bytes);
        }
    }
}

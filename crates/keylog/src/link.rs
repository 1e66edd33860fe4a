//! Link layers below IP, for the link types that tcpdump writes on Linux and macOS (<https://www.tcpdump.org/linktypes.html>).
//!
//! etherparse reads IP with its extensions and UDP. Of link layers it reads only Ethernet and Linux cooked capture v1. Therefore
//! this module removes the headers below IP, each of which has a fixed format.

use etherparse::SlicedPacket;
use pcap_parser::Linktype;
use pcap_parser::data::{PacketData, get_packetdata_nflog};

const PPP: i32 = 9;
/// Link type of raw IP in captures that BSD systems write.
const RAW_BSD: i32 = 12;
const RAW_OPENBSD: i32 = 14;
const PPP_SERIAL: i32 = 50;
const PPP_ETHER: i32 = 51;
const CISCO_HDLC: i32 = 104;
const IP_OVER_IEEE1394: i32 = 138;
/// Link type of Apple's header before each packet of `tcpdump -i any` and `-i pktap`, with its original number.
const PKTAP_FIRST: i32 = 149;
const PPP_PPPD: i32 = 166;
const PKTAP: i32 = 258;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86DD;
const VLAN_TAGS: [u16; 3] = [0x8100, 0x88A8, 0x9100];
const PPPOE_SESSION: u16 = 0x8864;
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;

/// Maximum number of VLAN tags before a packet. Two are usual.
const MOST_TAGS: usize = 8;

/// Result of reading a link layer.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one at a time, and none is stored")]
pub(crate) enum Link<'c> {
    /// Headers from IP on.
    Ip(SlicedPacket<'c>),
    /// The packet does not contain IP, or is damaged.
    NoIp,
    /// The packet ends within a header, or before the end that its IP header states.
    CutOff,
    /// The link type is not supported.
    Unknown,
}

/// Reads a packet of this link type up to UDP.
pub(crate) fn read(link: Linktype, bytes: &[u8]) -> Link<'_> {
    match remove(link, bytes) {
        Removed::Ip(ip) => slice(ip),
        Removed::NoIp => Link::NoIp,
        Removed::CutOff => Link::CutOff,
        Removed::Unknown => Link::Unknown,
    }
}

/// Returns the name of a link type, for messages.
pub(crate) fn name(link: Linktype) -> String {
    let known = match link.0 {
        105 => "IEEE802_11, Wi-Fi frames",
        127 => "IEEE802_11_RADIO, Wi-Fi frames",
        189 | 220 => "USB",
        187 | 201 | 251 | 254 => "Bluetooth",
        253 => "NETLINK",
        _ => return link.0.to_string(),
    };
    format!("{} ({known})", link.0)
}

/// Outcome of removing the headers below IP.
enum Removed<'c> {
    Ip(&'c [u8]),
    NoIp,
    CutOff,
    Unknown,
}

fn remove(link: Linktype, bytes: &[u8]) -> Removed<'_> {
    match (link, link.0) {
        (Linktype::ETHERNET, _) => ethernet(bytes),
        (Linktype::LINUX_SLL, _) => after_type(bytes, 14, 16),
        (Linktype::LINUX_SLL2, _) => after_type(bytes, 0, 20),
        (Linktype::NULL | Linktype::LOOP, _) => loopback(bytes),
        (Linktype::RAW | Linktype::IPV4 | Linktype::IPV6, _) | (_, RAW_BSD | RAW_OPENBSD) => {
            Removed::Ip(bytes)
        }
        (Linktype::NFLOG, _) => netfilter_log(bytes),
        (_, PPP | PPP_SERIAL) => ppp(bytes),
        // The first byte is the direction, in place of the address.
        (_, PPP_PPPD) => {
            bytes.get(1..).map_or(Removed::CutOff, |rest| ppp(rest.strip_prefix(&[3]).unwrap_or(rest)))
        }
        (_, PPP_ETHER) => pppoe(bytes),
        (_, CISCO_HDLC) => after_type(bytes, 2, 4),
        (_, IP_OVER_IEEE1394) => after_type(bytes, 16, 18),
        (_, PKTAP | PKTAP_FIRST) => pktap(bytes),
        _ => Removed::Unknown,
    }
}

fn slice(ip: &[u8]) -> Link<'_> {
    match SlicedPacket::from_ip(ip) {
        Ok(sliced) => Link::Ip(sliced),
        Err(etherparse::err::packet::SliceError::Len(_)) => Link::CutOff,
        Err(_) => Link::NoIp,
    }
}

fn ethernet(bytes: &[u8]) -> Removed<'_> {
    match u16_at(bytes, 12) {
        // Values up to 1500 are the length of an IEEE 802.3 frame, whose type follows in an LLC header.
        Some(length) if length <= 1500 => match bytes.get(14..20) {
            Some([0xAA, 0xAA, 3, 0, 0, 0]) => after_type(bytes, 20, 22),
            Some(_) => Removed::NoIp,
            None => Removed::CutOff,
        },
        _ => after_type(bytes, 12, 14),
    }
}

/// Removes a header with an EtherType at `at`, and the tags that follow it.
fn after_type(bytes: &[u8], at: usize, header: usize) -> Removed<'_> {
    let (Some(mut ether_type), Some(mut rest)) = (u16_at(bytes, at), bytes.get(header..)) else {
        return Removed::CutOff;
    };
    for _ in 0..MOST_TAGS {
        match ether_type {
            IPV4 | IPV6 => return Removed::Ip(rest),
            PPPOE_SESSION => return pppoe(rest),
            tag if VLAN_TAGS.contains(&tag) => {
                let (Some(inner), Some(behind)) = (u16_at(rest, 2), rest.get(4..)) else {
                    return Removed::CutOff;
                };
                (ether_type, rest) = (inner, behind);
            }
            _ => return Removed::NoIp,
        }
    }
    Removed::NoIp
}

/// Removes the address family, which is in the byte order of the capturing machine. Each system numbers IPv6 differently; the IP
/// header determines the version.
fn loopback(bytes: &[u8]) -> Removed<'_> {
    const FAMILIES: [u32; 5] = [2, 10, 24, 28, 30];
    let Some((family, rest)) = bytes.split_first_chunk() else { return Removed::CutOff };
    let family = u32::from_le_bytes(*family);
    if FAMILIES.contains(&family) || FAMILIES.contains(&family.swap_bytes()) {
        Removed::Ip(rest)
    } else {
        Removed::NoIp
    }
}

/// Removes a PPP header. Address and control may be absent, and the protocol may be one byte (RFC 1661 sections 6.5 and 6.6).
fn ppp(bytes: &[u8]) -> Removed<'_> {
    let rest = bytes.strip_prefix(&[0xFF, 3]).unwrap_or(bytes);
    let Some(&first) = rest.first() else { return Removed::CutOff };
    let (protocol, header) = if first & 1 == 1 { (Some(u16::from(first)), 1) } else { (u16_at(rest, 0), 2) };
    match protocol {
        Some(PPP_IPV4 | PPP_IPV6) => Removed::Ip(&rest[header..]),
        Some(_) => Removed::NoIp,
        None => Removed::CutOff,
    }
}

/// Removes a PPPoE header (RFC 2516): six bytes before the protocol.
fn pppoe(bytes: &[u8]) -> Removed<'_> {
    match bytes.get(6..) {
        // A nonzero code is a discovery packet.
        Some(rest) if bytes[1] == 0 => ppp(rest),
        Some(_) => Removed::NoIp,
        None => Removed::CutOff,
    }
}

/// Removes Apple's header: its length and the link type of the packet, in little-endian order on all of Apple's machines.
fn pktap(bytes: &[u8]) -> Removed<'_> {
    let word = |at: usize| bytes.get(at..at + 4)?.first_chunk().map(|word| u32::from_le_bytes(*word));
    let (Some(length), Some(inner)) = (word(0), word(8)) else { return Removed::CutOff };
    let Some(rest) = usize::try_from(length).ok().and_then(|length| bytes.get(length..)) else {
        return Removed::CutOff;
    };
    match i32::try_from(inner) {
        Ok(PKTAP | PKTAP_FIRST) | Err(_) => Removed::NoIp,
        Ok(inner) => remove(Linktype(inner), rest),
    }
}

fn netfilter_log(bytes: &[u8]) -> Removed<'_> {
    match get_packetdata_nflog(bytes, bytes.len()) {
        Some(PacketData::L3(IPV4 | IPV6, ip)) => Removed::Ip(ip),
        _ => Removed::NoIp,
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|pair| u16::from_be_bytes(*pair))
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    fn ip(version: u8) -> Vec<u8> {
        let builder = match version {
            4 => PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64),
            _ => PacketBuilder::ipv6([1; 16], [2; 16], 64),
        };
        let mut packet = Vec::new();
        builder.udp(1, 2).write(&mut packet, &[7; 20]).expect("memory");
        packet
    }

    /// Headers below IP, by link type.
    fn headers(version: u8) -> Vec<(i32, Vec<u8>)> {
        let ether_type: [u8; 2] = if version == 4 { [8, 0] } else { [0x86, 0xDD] };
        let ppp: [u8; 2] = if version == 4 { [0, 0x21] } else { [0, 0x57] };
        let bsd: u8 = if version == 4 { 2 } else { 30 };
        let addresses = [0; 12];
        let with = |parts: &[&[u8]]| parts.concat();
        let mut pktap = vec![0; 108];
        (pktap[0], pktap[8]) = (108, 1);
        vec![
            (1, with(&[&addresses, &ether_type])),
            (1, with(&[&addresses, &[0x81, 0, 0, 5], &ether_type])),
            (1, with(&[&addresses, &[0x88, 0xA8, 0, 5, 0x81, 0, 0, 6], &ether_type])),
            (
                1,
                with(&[
                    &addresses,
                    &[0x91, 0, 0, 5, 0x81, 0, 0, 6, 0x81, 0, 0, 7, 0x81, 0, 0, 8],
                    &ether_type,
                ]),
            ),
            (1, with(&[&addresses, &[0x88, 0x64, 0x11, 0, 0, 1, 0, 9], &ppp])),
            (1, with(&[&addresses, &[0, 90, 0xAA, 0xAA, 3, 0, 0, 0], &ether_type])),
            (0, vec![bsd, 0, 0, 0]),
            (0, vec![0, 0, 0, bsd]),
            (0, vec![if version == 4 { 2 } else { 10 }, 0, 0, 0]),
            (108, vec![0, 0, 0, if version == 4 { 2 } else { 24 }]),
            (101, Vec::new()),
            (12, Vec::new()),
            (14, Vec::new()),
            (if version == 4 { 228 } else { 229 }, Vec::new()),
            (113, with(&[&[0; 14], &ether_type])),
            (113, with(&[&[0; 14], &[0x81, 0, 0, 5], &ether_type])),
            (276, with(&[&ether_type, &[0; 18]])),
            (276, with(&[&[0x81, 0], &[0; 18], &[0, 5], &ether_type])),
            (9, with(&[&[0xFF, 3], &ppp])),
            (9, ppp.to_vec()),
            (9, vec![ppp[1]]),
            (50, with(&[&[0xFF, 3], &ppp])),
            (51, with(&[&[0x11, 0, 0, 1, 0, 9], &ppp])),
            (166, with(&[&[1, 3], &ppp])),
            (166, with(&[&[0], &ppp])),
            (104, with(&[&[0x0F, 0], &ether_type])),
            (138, with(&[&[0; 16], &ether_type])),
            (258, with(&[&pktap, &addresses, &ether_type])),
            (149, with(&[&pktap, &addresses, &ether_type])),
            (239, with(&[&[if version == 4 { 2 } else { 10 }, 0, 0, 0], &nflog_length(version), &[9, 0]])),
        ]
    }

    fn nflog_length(version: u8) -> [u8; 2] {
        (4 + ip(version).len() as u16).to_le_bytes()
    }

    #[test]
    fn ip_is_found_behind_each_link_layer() {
        for version in [4, 6] {
            for (link, header) in headers(version) {
                let bytes = [header, ip(version)].concat();
                match read(Linktype(link), &bytes) {
                    Link::Ip(sliced) => assert!(sliced.transport.is_some(), "{link}, IPv{version}"),
                    other => panic!("{link}, IPv{version}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn truncated_packet_is_rejected_without_panic() {
        for (link, header) in headers(4) {
            let bytes = [header, ip(4)].concat();
            for length in 0..bytes.len() {
                assert!(
                    !matches!(read(Linktype(link), &bytes[..length]), Link::Ip(_) | Link::Unknown),
                    "{link}: {length}"
                );
            }
        }
    }

    #[test]
    fn other_content_and_other_link_types_are_distinguished() {
        let arp = [&[0; 12][..], &[8, 6], &[0; 28]].concat();
        assert!(matches!(read(Linktype(1), &arp), Link::NoIp));
        let discovery = [&[0; 12][..], &[0x88, 0x63, 0x11, 9, 0, 0, 0, 4, 0, 0, 0, 0]].concat();
        assert!(matches!(read(Linktype(1), &discovery), Link::NoIp));
        assert!(matches!(read(Linktype(127), &[0; 60]), Link::Unknown));
        assert!(name(Linktype(127)).starts_with("127 (IEEE802_11_RADIO"));
        assert_eq!(name(Linktype(4000)), "4000");
        // A header that names its own link type must not recurse.
        let mut nested = vec![0; 108];
        (nested[0], nested[8], nested[9]) = (12, 2, 1);
        assert!(matches!(read(Linktype(258), &nested), Link::NoIp));
    }
}

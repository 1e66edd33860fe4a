//! Messages of the protocol: unordered messages of an association, each with a type in its first byte. Numbers are big-endian.
//!
//! The client sends [`Message::Hello`], and the gateway answers with [`Message::Welcome`] or [`Message::Refused`]. All further messages
//! are packets and probes.
//!
//! If the gateway permits the lane, the client also opens streams, each for one TCP connection. Their messages are those of
//! [`anabranch_forward::message`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use thiserror::Error;

/// Version of the protocol.
pub const VERSION: u8 = 2;
/// Number of flows of a direction. Flows with the same hash share a sequence.
pub const FLOWS: u16 = 1024;
/// Maximum length of an IP packet, in bytes.
pub const MAX_PACKET_BYTES: usize = 65_535;
/// Length of the header in front of each IP packet, in bytes.
pub const HEADER_BYTES: usize = 11;

/// Bytes behind the type of the first messages, which other protocols on the same port do not have.
const MAGIC: [u8; 4] = *b"ANBT";

const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const REFUSED: u8 = 3;
const PACKET: u8 = 4;
const PROBE: u8 = 5;

/// Reason for which a gateway carries no packets of a user.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// All addresses of the network are assigned.
    #[error("all addresses of the gateway's network are assigned; give `gateway --tun` a larger network")]
    NoAddress,
    /// The versions of the two sides differ.
    #[error("the two sides have different versions; use the same version of anabranch")]
    Version,
}

impl Refusal {
    const ALL: [Refusal; 2] = [Refusal::NoAddress, Refusal::Version];

    fn code(self) -> u8 {
        self as u8 + 1
    }
}

/// Addresses of a host in a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4 address.
    pub v4: Ipv4Addr,
    /// IPv6 address, unless the tunnel carries IPv4 only.
    pub v6: Option<Ipv6Addr>,
}

impl Addresses {
    /// Returns `true` if this is one of the addresses.
    pub fn contains(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.v4 == address,
            IpAddr::V6(address) => self.v6 == Some(address),
        }
    }

    /// Returns the addresses.
    pub fn iter(&self) -> impl Iterator<Item = IpAddr> + use<> {
        [Some(IpAddr::from(self.v4)), self.v6.map(IpAddr::from)].into_iter().flatten()
    }

    fn encode(&self) -> Vec<u8> {
        let v6 = self.v6.map(|address| address.octets());
        [&self.v4.octets()[..], v6.as_ref().map_or(&[], |octets| &octets[..])].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (v4, rest) = bytes.split_first_chunk::<4>()?;
        let v6 = match rest {
            [] => None,
            rest => Some(Ipv6Addr::from(<[u8; 16]>::try_from(rest).ok()?)),
        };
        Some(Addresses { v4: (*v4).into(), v6 })
    }
}

/// Permission to end TCP connections at both sides, and to carry each as a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// The gateway serves no streams.
    Forbidden,
    /// The gateway connects to targets of streams, within the policy for packets.
    Permitted,
}

impl Lane {
    const ALL: [Lane; 2] = [Lane::Forbidden, Lane::Permitted];

    fn code(self) -> u8 {
        self as u8
    }
}

/// IP packet with its place in a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Number of the flow, below [`FLOWS`].
    pub flow: u16,
    /// Number of the packet in its flow, from 0. It wraps around.
    pub sequence: u32,
    /// Time at which the packet was sent, in microseconds of the sender's clock. It wraps around.
    pub sent_us: u32,
    /// IP packet.
    pub payload: Bytes,
}

/// Message in either direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Request of a client for an address.
    Hello {
        /// Version of the client.
        version: u8,
    },
    /// Answer of the gateway: it carries packets.
    Welcome {
        /// Addresses of the client.
        addresses: Addresses,
        /// Permission for TCP connections as streams.
        lane: Lane,
    },
    /// Answer of the gateway: it carries no packets.
    Refused(Refusal),
    /// IP packet.
    Packet(Packet),
    /// Message that is acknowledged and has no other effect.
    Probe,
}

/// Error: the bytes are no message.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("malformed message")]
pub struct Malformed;

impl Message {
    /// Returns `true` if these bytes begin a tunnel of any version.
    pub fn is_hello(bytes: &[u8]) -> bool {
        bytes.first() == Some(&HELLO) && bytes.get(1..5) == Some(&MAGIC)
    }

    /// Returns the bytes of the message.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Message::Hello { version } => first(HELLO, &[*version]),
            Message::Welcome { addresses, lane } => {
                first(WELCOME, &[&[lane.code()][..], &addresses.encode()].concat())
            }
            Message::Refused(reason) => first(REFUSED, &[reason.code()]),
            Message::Probe => vec![PROBE],
            Message::Packet(packet) => {
                let mut bytes = Vec::with_capacity(HEADER_BYTES + packet.payload.len());
                bytes.push(PACKET);
                bytes.extend(packet.flow.to_be_bytes());
                bytes.extend(packet.sequence.to_be_bytes());
                bytes.extend(packet.sent_us.to_be_bytes());
                bytes.extend(&packet.payload);
                bytes
            }
        }
    }

    /// Reads the bytes of a message. The payload of a packet shares its memory with them.
    ///
    /// # Errors
    /// Returns [`Malformed`].
    pub fn decode(bytes: &Bytes) -> Result<Self, Malformed> {
        match bytes.first() {
            Some(&PACKET) => packet(bytes).map(Message::Packet),
            Some(&PROBE) if bytes.len() == 1 => Some(Message::Probe),
            Some(&kind) if bytes.get(1..5) == Some(&MAGIC) => answer(kind, &bytes[5..]),
            _ => None,
        }
        .ok_or(Malformed)
    }
}

fn first(kind: u8, rest: &[u8]) -> Vec<u8> {
    [&[kind][..], &MAGIC, rest].concat()
}

fn answer(kind: u8, rest: &[u8]) -> Option<Message> {
    match (kind, rest) {
        (HELLO, [version]) => Some(Message::Hello { version: *version }),
        (WELCOME, [code, addresses @ ..]) => {
            let lane = Lane::ALL.into_iter().find(|lane| lane.code() == *code)?;
            Some(Message::Welcome { addresses: Addresses::decode(addresses)?, lane })
        }
        (REFUSED, [code]) => {
            Refusal::ALL.into_iter().find(|reason| reason.code() == *code).map(Message::Refused)
        }
        _ => None,
    }
}

fn packet(bytes: &Bytes) -> Option<Packet> {
    if bytes.len() <= HEADER_BYTES || bytes.len() > HEADER_BYTES + MAX_PACKET_BYTES {
        return None;
    }
    let word = |at: usize| bytes[at..at + 4].try_into().map(u32::from_be_bytes).ok();
    let flow = u16::from_be_bytes([bytes[1], bytes[2]]);
    let payload = bytes.slice(HEADER_BYTES..);
    (flow < FLOWS).then_some(Packet { flow, sequence: word(3)?, sent_us: word(7)?, payload })
}

/// Decodes any bytes, and checks that an accepted message has one form.
#[cfg(any(test, feature = "fuzzing"))]
pub fn decode_all(bytes: &[u8]) {
    if let Ok(message) = Message::decode(&Bytes::copy_from_slice(bytes)) {
        assert_eq!(message.encode(), bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOTH: Addresses =
        Addresses { v4: Ipv4Addr::new(10, 177, 0, 2), v6: Some(Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, 2)) };

    fn messages() -> Vec<Message> {
        vec![
            Message::Hello { version: VERSION },
            Message::Welcome { addresses: BOTH, lane: Lane::Forbidden },
            Message::Welcome { addresses: Addresses { v6: None, ..BOTH }, lane: Lane::Permitted },
            Message::Refused(Refusal::NoAddress),
            Message::Refused(Refusal::Version),
            Message::Probe,
            Message::Packet(Packet {
                flow: FLOWS - 1,
                sequence: u32::MAX,
                sent_us: 7,
                payload: Bytes::from_static(b"E"),
            }),
        ]
    }

    #[test]
    fn messages_are_equal_after_decoding() {
        for message in messages() {
            assert_eq!(Message::decode(&message.encode().into()), Ok(message));
        }
    }

    #[test]
    fn shortened_and_extended_messages_are_malformed() {
        for message in messages() {
            let bytes = message.encode();
            // A welcome without its IPv6 address is one of a gateway that assigns none.
            let shorter = bytes.len() - usize::from(message == messages()[1]) * 16;
            for length in (0..bytes.len()).filter(|length| shorter == bytes.len() || *length != shorter) {
                assert_eq!(Message::decode(&Bytes::copy_from_slice(&bytes[..length])), Err(Malformed));
            }
            if !matches!(message, Message::Packet(_)) {
                assert_eq!(Message::decode(&[&bytes[..], b"x"].concat().into()), Err(Malformed));
            }
        }
    }

    #[test]
    fn packet_beyond_a_bound_is_malformed() {
        let mut packet = Packet { flow: FLOWS, sequence: 0, sent_us: 0, payload: Bytes::from_static(b"E") };
        assert_eq!(Message::decode(&Message::Packet(packet.clone()).encode().into()), Err(Malformed));
        (packet.flow, packet.payload) = (0, vec![0; MAX_PACKET_BYTES + 1].into());
        assert_eq!(Message::decode(&Message::Packet(packet).encode().into()), Err(Malformed));
    }

    #[test]
    fn hello_of_any_version_and_length_is_recognised() {
        assert!(Message::is_hello(b"\x01ANBT\x09 more") && !Message::is_hello(b"\x01ANBF"));
        assert!(!Message::is_hello(b"\x01ANB"));
    }

    #[test]
    fn fuzz_target_begins_with_messages_of_this_version() {
        let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/tun_messages");
        let seeds = std::fs::read_dir(seeds).expect("a folder");
        let bytes =
            seeds.map(|seed| Bytes::from(std::fs::read(seed.expect("an entry").path()).expect("a file")));
        assert_eq!(bytes.filter(|bytes| Message::decode(bytes).is_ok()).count(), 5);
    }

    proptest! {
        #[test]
        fn decoded_bytes_have_one_form(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            decode_all(&bytes);
        }

        #[test]
        fn changed_messages_are_decoded_without_a_panic(which in 0..7usize, at in 0..20usize, byte: u8) {
            let mut bytes = messages()[which].encode();
            let length = bytes.len();
            bytes[at % length] = byte;
            decode_all(&bytes);
        }
    }
}

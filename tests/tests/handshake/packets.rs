//! All packets of an association, from INIT to SHUTDOWN COMPLETE, against the general rules of RFC 9260 for packets.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::time::Span;
use anabranch_core::{AssociationEvent, SendOptions};
use anabranch_wire::{Chunk, DataView, PacketView};
use bytes::Bytes;

use crate::rig::craft::{COOKIE_ACK, COOKIE_ECHO, DATA, INIT, INIT_ACK, SACK, SHUTDOWN_COMPLETE};
use crate::rig::wires::{Packet, Wires};
use crate::rig::{PORT, association};

/// Maximum SCTP packet length on the rig's paths: 1500 bytes less an IPv4 header.
const PACKET_BYTES: usize = 1480;

/// Number of streams of the rig's associations.
const STREAMS: u16 = 8;

/// A message with its send options.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sent {
    payload: Vec<u8>,
    stream: u16,
    ppid: u32,
    unordered: bool,
}

fn messages(of: u8) -> Vec<Sent> {
    let sizes = [1, 3, 4, 100, 1452, 1453, 1456, 5000, 20_000];
    let lengths = sizes.iter().cycle().take(45).enumerate();
    lengths
        .map(|(n, &length)| Sent {
            payload: (0..length).map(|at| of ^ (n + at) as u8).collect(),
            stream: n as u16 % 5,
            ppid: 1000 + n as u32,
            unordered: n % 4 == 3,
        })
        .collect()
}

fn send(wires: &mut Wires, node: usize) {
    for message in messages(node as u8) {
        let Sent { payload, stream, ppid, unordered } = message;
        let options = SendOptions { stream, ppid, unordered, ..SendOptions::default() };
        wires.nodes[node].only_mut().send(Bytes::from(payload), options).expect("it takes it");
    }
}

/// Runs a whole association over two networks, in which every `lost`th packet with DATA does not arrive.
fn whole_association(lost: u32) -> Wires {
    let mut wires = Wires::pair(2, &association("sctp"));
    let mut data = 0;
    wires.loses = Box::new(move |p| {
        data += u32::from(p.kinds().contains(&DATA));
        p.kinds().contains(&DATA) && data % lost == 0
    });
    wires.connect(0, 1);
    send(&mut wires, 0);
    wires.run_until("it is up", Span::from_secs(5), |w| w.nodes[1].reported(&AssociationEvent::Connected));
    send(&mut wires, 1);
    wires.run_until("all is acknowledged", Span::from_secs(600), |w| {
        let mut drop = Vec::new();
        w.nodes.iter_mut().for_each(|node| while node.only_mut().recv(&mut drop).is_some() {});
        w.nodes.iter().all(|node| node.only().buffered_bytes() == 0)
    });
    let now = wires.now;
    wires.nodes[0].only_mut().shutdown(now);
    wires.run(Span::from_secs(5));
    assert!(wires.nodes.iter().all(|node| node.reported(&AssociationEvent::Closed)));
    wires
}

/// Returns the packets that a node has sent.
fn from(wires: &Wires, node: usize) -> Vec<&Packet> {
    wires.log.iter().filter(|p| wires.nodes[node].addresses.contains(&p.from)).collect()
}

fn data_chunks(packet: &Packet) -> Vec<DataView<'_>> {
    let view = PacketView::parse(&packet.bytes).expect("it is a packet");
    let chunks = view.chunks().map(|chunk| chunk.expect("whole").decode().expect("it can be read"));
    chunks.filter_map(|chunk| if let Chunk::Data(data) = chunk { Some(data) } else { None }).collect()
}

/// Returns the tag and the TSN in a node's INIT or INIT ACK.
fn named(wires: &Wires, node: usize) -> (u32, u32) {
    let kind = if node == 0 { INIT } else { INIT_ACK };
    let bytes = &wires.sent(kind)[0].bytes;
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    (number(16), number(28))
}

//= docs/rfc9260.txt#section-1.3
//= type=test
//# All transport addresses used by an SCTP endpoint MUST use the same port number but can use multiple IP addresses.
//= docs/rfc9260.txt#section-3.1
//= type=test
//# On transmit, the value of the Verification Tag MUST be set to the value of the Initiate Tag received from the peer
//# endpoint during the association initialization, with the following exceptions:
//= docs/rfc9260.txt#section-3.1
//= type=test
//# *  A packet containing an INIT chunk MUST have a zero Verification Tag.
//= docs/rfc9260.txt#section-3.2
//= type=test
//# The total length of a chunk (including Type, Length, and Value fields) MUST be a multiple of 4 bytes.
//= docs/rfc9260.txt#section-3.3.2
//= type=test
//# This value MUST be placed into the Verification Tag field of every SCTP packet that the receiver of the INIT chunk
//# transmits within this association.
//= docs/rfc9260.txt#section-3.3.3
//= type=test
//# This value MUST be placed into the Verification Tag field of every SCTP packet that the receiver of the INIT ACK chunk
//# transmits within this association.
//= docs/rfc9260.txt#section-3.3.3
//= type=test
//# The Initiate Tag MUST NOT take the value 0.
//= docs/rfc9260.txt#section-5.1
//= type=test
//# In the INIT chunk, "A" MUST provide its Verification Tag (Tag_A) in the Initiate Tag field.
//= docs/rfc9260.txt#section-5.3.1
//= type=test
//# Moreover, the Verification Tag value used by either endpoint in a given association MUST NOT change during the life
//# time of an association.
//= docs/rfc9260.txt#section-6.10
//= type=test
//# The total size of the resultant SCTP packet MUST be less that or equal to the current PMTU.
//= docs/rfc9260.txt#section-8.5
//= type=test
//# When sending an SCTP packet, the endpoint MUST fill in the Verification Tag field of the outbound packet with the tag
//# value in the Initiate Tag parameter of the INIT or INIT ACK chunk received from its peer.
//= docs/rfc9260.txt#section-8.5.1
//= type=test
//# A) Rules for packets carrying an INIT chunk: *  The sender MUST set the Verification Tag of the packet to 0.
//= docs/rfc9260.txt#section-8.5.1
//= type=test
//# C) Rules for packets carrying a SHUTDOWN COMPLETE chunk: *  When sending a SHUTDOWN COMPLETE chunk, if the receiver of
//# the SHUTDOWN ACK chunk has a TCB, then the destination endpoint's tag MUST be used and the T bit MUST NOT be set.
//= docs/rfc9260.txt#section-8.5.1
//= type=test
//# D) Rules for packets carrying a COOKIE ECHO chunk: *  When sending a COOKIE ECHO chunk, the endpoint MUST use the
//# value of the Initiate Tag received in the INIT ACK chunk.
#[test]
fn packets_have_ports_tag_and_a_length_within_the_path_mtu() {
    for lost in [5, u32::MAX] {
        let wires = whole_association(lost);
        for node in [0, 1] {
            let (tag, _) = named(&wires, 1 - node);
            for packet in from(&wires, node) {
                let expected = if packet.kind() == INIT { 0 } else { tag };
                assert_eq!(packet.tag(), expected, "{:?}", packet.kinds());
                let view = PacketView::parse(&packet.bytes).expect("it is a packet");
                assert_eq!((view.header().source_port, view.header().destination_port), (PORT, PORT));
                assert!(packet.bytes.len() <= PACKET_BYTES && packet.bytes.len() % 4 == 0);
            }
        }
        assert_ne!(named(&wires, 0).0, 0);
        assert_ne!(named(&wires, 1).0, 0);
    }
}

//= docs/rfc9260.txt#section-3
//= type=test
//# INIT, INIT ACK, and SHUTDOWN COMPLETE chunks MUST NOT be bundled with any other chunk into an SCTP packet.
//= docs/rfc9260.txt#section-5.1
//= type=test
//# The COOKIE ECHO chunk MAY be bundled with any pending outbound DATA chunks, but it MUST be the first chunk in the
//# packet and, until the COOKIE ACK chunk is returned, the sender MUST NOT send any other packets to the peer.
//= docs/rfc9260.txt#section-5.1
//= type=test
//# A COOKIE ACK chunk MAY be bundled with any pending DATA chunks (and/or SACK chunks), but the COOKIE ACK chunk MUST be
//# the first chunk in the packet.
//= docs/rfc9260.txt#section-5.1
//= type=test
//# They MUST be the only chunks present in the SCTP packets that carry them.
//= docs/rfc9260.txt#section-5.1.5
//= type=test
//# The COOKIE ACK chunk MAY be bundled with an outbound DATA chunk or SACK chunk; however, the COOKIE ACK chunk MUST be
//# the first chunk in the SCTP packet.
//= docs/rfc9260.txt#section-6
//= type=test
//# Control chunks MUST come before DATA chunks in the packet.
//= docs/rfc9260.txt#section-6.10
//= type=test
//# When bundling control chunks with DATA chunks, an endpoint MUST place control chunks first in the outbound SCTP
//# packet.
//= docs/rfc9260.txt#section-6.10
//= type=test
//# The transmitter MUST transmit DATA chunks within an SCTP packet in increasing order of TSN.
//= docs/rfc9260.txt#section-6.10
//= type=test
//# An endpoint MUST NOT bundle INIT, INIT ACK, or SHUTDOWN COMPLETE chunks with any other chunks.
#[test]
fn chunks_are_bundled_as_allowed() {
    for lost in [5, u32::MAX] {
        let wires = whole_association(lost);
        for kinds in wires.log.iter().map(Packet::kinds) {
            let alone = kinds.iter().any(|kind| [INIT, INIT_ACK, SHUTDOWN_COMPLETE].contains(kind));
            assert!(!alone || kinds.len() == 1, "{kinds:?}");
            let first = kinds.iter().position(|kind| [COOKIE_ECHO, COOKIE_ACK].contains(kind));
            assert!(first.is_none_or(|at| at == 0), "{kinds:?}");
            let data = kinds.iter().position(|&kind| kind == DATA).unwrap_or(kinds.len());
            assert!(kinds[data..].iter().all(|&kind| kind == DATA), "{kinds:?}");
        }
        for packet in &wires.log {
            assert!(data_chunks(packet).is_sorted_by(|a, b| a.tsn().is_before(b.tsn())));
        }
    }
}

//= docs/rfc9260.txt#section-3.3.1
//= type=test
//# The TSNs of DATA chunks sent SHOULD be strictly sequential.
//= docs/rfc9260.txt#section-5
//= type=test
//# Before the first data transmission can take place from one SCTP endpoint ("A") to another SCTP endpoint ("Z"), the two
//# endpoints MUST complete an initialization process in order to set up an SCTP association between them.
//= docs/rfc9260.txt#section-6.5
//= type=test
//# Every DATA chunk MUST carry a valid stream identifier.
//= docs/rfc9260.txt#section-6.9
//= type=test
//# 2)  The transmitter MUST then assign, in sequence, a separate TSN to each of the DATA chunks in the series.
#[test]
fn data_follows_the_handshake_in_sequence_and_is_resent_unchanged() {
    for lost in [5, u32::MAX] {
        let wires = whole_association(lost);
        for node in [0, 1] {
            let mut expected = named(&wires, node).1;
            let mut known = BTreeMap::new();
            for packet in from(&wires, node) {
                for data in data_chunks(packet) {
                    assert!(!data.payload().is_empty() && data.stream().get() < STREAMS);
                    let content = (data.stream(), data.ssn(), data.ppid(), data.payload().to_vec());
                    let before = known.insert(data.tsn().get(), content.clone());
                    assert_eq!(before.as_ref().unwrap_or(&content), &content);
                    if before.is_none() {
                        assert_eq!(data.tsn().get(), expected, "the next TSN");
                        expected = expected.wrapping_add(1);
                    }
                }
            }
            let up = wires.log.iter().position(|p| p.kind() == COOKIE_ECHO).expect("an echo");
            let first = wires.log.iter().position(|p| p.kinds().contains(&DATA)).expect("data");
            assert!(up < first);
        }
    }
}

//= docs/rfc9260.txt#section-3.3.1
//= type=test
//# If an unordered user message is fragmented, each fragment of the message MUST have its U bit set to 1.
//= docs/rfc9260.txt#section-3.3.1
//= type=test
//# This field MUST be sent even in fragmented DATA chunks (to make sure it is available for agents in the middle of the
//# network).
//= docs/rfc9260.txt#section-3.3.1
//= type=test
//# An unfragmented user message MUST have both the B and E bits set to 1.
//= docs/rfc9260.txt#section-3.3.1
//= type=test
//# This means that the TSNs for each fragment of a fragmented user message MUST be strictly sequential.
//= docs/rfc9260.txt#section-6.5
//= type=test
//# The Stream Sequence Number in all the outgoing streams MUST start from 0 when the association is established.
//= docs/rfc9260.txt#section-6.9
//= type=test
//# If an endpoint supports fragmentation, it MUST fragment a user message if the size of the user message to be sent
//# causes the outbound SCTP packet size to exceed the current PMTU.
//= docs/rfc9260.txt#section-6.9
//= type=test
//# If the user indicates that the user message is to be delivered using unordered delivery, then the U flag of each DATA
//# chunk of the user message MUST be set to 1.
#[test]
fn fragments_have_stream_ppid_and_flags_of_their_message() {
    for lost in [5, u32::MAX] {
        let wires = whole_association(lost);
        for node in [0, 1] {
            let mut seen = BTreeSet::new();
            let chunks = from(&wires, node).into_iter().flat_map(data_chunks);
            let mut next_ssn = [0_u16; STREAMS as usize];
            let (mut whole, mut got) = (Vec::new(), Vec::new());
            for data in chunks.filter(|data| seen.insert(data.tsn().get())) {
                let (flags, stream) = (data.flags(), data.stream().get());
                assert_eq!(flags.beginning, whole.is_empty(), "the B bit");
                whole.extend_from_slice(data.payload());
                let ssn = &mut next_ssn[usize::from(stream)];
                assert!(flags.unordered || data.ssn().get() == *ssn, "the SSN of every fragment");
                if flags.ending {
                    *ssn += u16::from(!flags.unordered);
                    let (payload, unordered) = (std::mem::take(&mut whole), flags.unordered);
                    got.push(Sent { payload, stream, ppid: data.ppid(), unordered });
                }
            }
            assert!(got == messages(node as u8), "{} messages", got.len());
        }
    }
}

//= docs/rfc9260.txt#section-5.1
//= type=test
//# After the reception of the first DATA chunk in an association, the endpoint MUST immediately respond with a SACK chunk
//# to acknowledge the DATA chunk.
//= docs/rfc9260.txt#section-6.2
//= type=test
//# An SCTP receiver MUST NOT generate more than one SACK chunk for every incoming packet, other than to update the
//# offered window as the receiving application consumes new data.
#[test]
fn packet_gets_at_most_one_sack_and_first_data_an_immediate_one() {
    for lost in [5, u32::MAX] {
        let wires = whole_association(lost);
        for node in [0, 1] {
            let sacks = from(&wires, node).iter().filter(|p| p.kinds().contains(&SACK)).count();
            let data = from(&wires, 1 - node).iter().filter(|p| p.kinds().contains(&DATA)).count();
            assert!(sacks > 0 && sacks <= data, "{sacks} SACKs for {data} packets");
        }
        let first = from(&wires, 0).into_iter().find(|p| p.kinds().contains(&DATA)).expect("data").sent;
        let answer = from(&wires, 1).into_iter().find(|p| p.kinds().contains(&SACK)).expect("a SACK").sent;
        assert_eq!(answer, first + wires.delay);
    }
}

//= docs/rfc9260.txt#section-6.1
//= type=test
//# A)  At any given time, the data sender MUST NOT transmit new data to any destination transport address if its peer's
//# rwnd indicates that the peer has no buffer space (i.e., rwnd is smaller than the size of the next DATA chunk; see
//# Section 6.2.1), except for zero window probes.
//= docs/rfc9260.txt#section-6.1
//= type=test
//# B)  At any given time, the sender MUST NOT transmit new data to a given transport address if it has cwnd + (PMDCS - 1)
//# or more bytes of data outstanding to that transport address.
//= docs/rfc9260.txt#section-6.1
//= type=test
//# The breach of cwnd MUST constitute one packet only.
//= docs/rfc9260.txt#section-6.1
//= type=test
//# When the window is full (i.e., transmission is disallowed by rule A and/or rule B), the sender MAY still accept send
//# requests from its upper layer but MUST transmit no more DATA chunks until some or all of the outstanding DATA chunks
//# are acknowledged and transmission is allowed by rule A and rule B again.
//= docs/rfc9260.txt#section-7.2
//= type=test
//# The slow-start and congestion avoidance algorithms MUST be used by an endpoint to control the amount of data being
//# injected into the network.
#[test]
fn sender_stays_within_cwnd_plus_a_packet_and_the_peer_buffer() {
    let mut wires = Wires::connected(1);
    let buffer = association("sctp").recv_buffer_bytes;
    let message = Bytes::from(vec![7; 1452]);
    for _ in 0..2 * buffer / 1452 {
        let taken = wires.nodes[0].only_mut().send(message.clone(), SendOptions::default());
        assert_eq!(taken, Ok(()), "what the window does not admit waits");
    }
    let mut most = 0;
    wires.run_until("the buffer of the reader is full", Span::from_secs(60), |w| {
        let path = w.nodes[0].only().paths()[0];
        let limit = path.cwnd.get() + path.largest_chunk.get() - 1;
        assert!(path.in_flight.get() <= limit, "{} B in flight of {limit}", path.in_flight.get());
        most = most.max(w.nodes[1].only().held_bytes());
        most + 1452 > buffer
    });
    wires.run(Span::from_secs(30));
    assert!(wires.nodes[1].only().held_bytes() <= buffer);
}

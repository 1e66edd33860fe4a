//! Limit of data sent to an unverified address: at most three times the data received from it.

use anabranch_core::time::Span;
use anabranch_core::{Discard, Handled};
use anabranch_wire::{Header, InitRepr, PacketView, PacketWriter, Param, Tsn};
use proptest::prelude::*;

use crate::guard::net::{Net, PORT, at, config, ip, pair};
use crate::rig::craft::{COOKIE_ACK, COOKIE_ECHO, HEARTBEAT, kinds, packet};

const VICTIM: u8 = 66;

fn init(params: &[Param<'_>]) -> Vec<u8> {
    let repr = InitRepr {
        initiate_tag: 4711,
        a_rwnd: 100_000,
        outbound_streams: 10,
        inbound_streams: 10,
        initial_tsn: Tsn::new(1),
    };
    packet(0, |w| w.init(&repr, params.iter().copied()))
}

/// Returns a server with this number of addresses.
fn server(addresses: u8) -> Net {
    let mut net = Net::new();
    let addresses: Vec<_> = (0..addresses).map(|n| at(ip(n, 9), PORT)).collect();
    net.site(&addresses, Some(config()));
    net
}

//= docs/rfc9260.txt#section-3.3.11
//= type=test
//# An implementation SHOULD make the cookie as small as possible to ensure interoperability.
//= docs/rfc9260.txt#section-12.4
//= type=test
//# An SCTP implementation SHOULD attempt to make the INIT ACK chunk as small as possible to reduce the possibility of
//# byte amplification attacks.
#[test]
fn the_shortest_init_is_answered_with_three_times_its_length_at_most() {
    for addresses in [1, 2, 8] {
        let mut net = server(addresses);
        let bytes = init(&[]);
        assert_eq!(bytes.len(), 32);
        assert_eq!(net.inject(0, ip(0, 9), at(ip(5, VICTIM), 1), &bytes), Handled::Replied);
        assert!(net.log[0].bytes.len() <= 96, "{} B", net.log[0].bytes.len());
    }
}

#[test]
fn init_ack_is_limited_by_the_length_of_the_init() {
    let mut net = server(8);
    let listed: Vec<_> = (0..8).map(|n| Param::Ipv4Address([10, 1, n, 1].into())).collect();
    net.inject(0, ip(0, 9), at(ip(5, VICTIM), 1), &init(&listed));
    let view = PacketView::parse(&net.log[0].bytes).expect("a packet");
    let Ok(anabranch_wire::Chunk::InitAck(ack)) =
        view.chunks().next().expect("a chunk").expect("whole").decode()
    else {
        panic!("an INIT ACK")
    };
    let addresses = ack.params().flatten().filter(|param| matches!(param, Param::Ipv4Address(_)));
    assert_eq!(addresses.count(), 8);
}

#[test]
fn cookie_from_another_address_directs_no_data_there() {
    let mut net = Net::new();
    net.site(&[at(ip(0, 1), PORT)], None);
    net.site(&[at(ip(0, 9), PORT)], Some(config()));
    net.loses = Box::new(|datagram| datagram.kind() == COOKIE_ECHO);
    net.connect(0, &[(ip(0, 1), at(ip(0, 9), PORT))], config());
    net.run(Span::from_millis(50));
    let echo = net.log.iter().find(|datagram| datagram.kind() == COOKIE_ECHO).expect("an echo").clone();
    let victim = at(ip(5, VICTIM), 1);
    assert!(matches!(net.inject(1, ip(0, 9), victim, &echo.bytes), Handled::New(_)));
    net.send(1, 100);
    net.run(Span::from_secs(30));
    let (count, bytes) = net.sent_to(victim.ip());
    assert!(count > 0 && bytes <= 3 * echo.bytes.len(), "{count} datagrams, {bytes} B");
}

//= docs/rfc9260.txt#section-5.4
//= type=test
//# *  A COOKIE ACK chunk MAY be sent to an UNCONFIRMED address, but it MUST be bundled with a HEARTBEAT chunk including a
//# nonce.
#[test]
fn cookie_ack_to_an_unconfirmed_address_carries_a_heartbeat() {
    let mut net = Net::new();
    net.site(&[at(ip(0, 1), PORT)], None);
    net.site(&[at(ip(0, 9), PORT)], Some(config()));
    net.loses = Box::new(|datagram| datagram.kind() == COOKIE_ECHO);
    net.connect(0, &[(ip(0, 1), at(ip(0, 9), PORT))], config());
    net.run(Span::from_millis(50));
    let echo = net.log.iter().find(|datagram| datagram.kind() == COOKIE_ECHO).expect("an echo").clone();
    let victim = at(ip(5, VICTIM), 1);
    // The first repetition opens the association, and the second one is a copy.
    for _ in 0..2 {
        let mark = net.log.len();
        net.inject(1, ip(0, 9), victim, &echo.bytes);
        let kinds: Vec<Vec<u8>> = net.log[mark..].iter().map(|datagram| kinds(&datagram.bytes)).collect();
        assert_eq!(kinds, [[COOKIE_ACK, HEARTBEAT]]);
    }
    // The handshake itself confirms the address to which the INIT ACK was sent.
    let mark = net.log.len();
    net.loses = Box::new(|_| false);
    net.run(Span::from_secs(2));
    let usual = net.log[mark..].iter().find(|datagram| datagram.kind() == COOKIE_ACK).expect("an answer");
    assert_ne!(usual.to, victim);
}

#[test]
fn a_seen_source_that_never_answers_is_forgotten() {
    let mut net = pair();
    let tag = net.tag_to(ip(0, 9));
    let heartbeat = packet(tag, |w| w.heartbeat(b"0123456789abcdef"));
    net.inject(1, ip(0, 9), at(ip(5, VICTIM), 1), &heartbeat);
    assert_eq!(net.sites[1].paths().len(), 2);
    net.run(Span::from_secs(60));
    assert_eq!(net.sites[1].paths().len(), 1);
    assert!(net.sent_to(ip(5, VICTIM)).1 <= 3 * heartbeat.len());
}

/// Returns any packet from an unverified source, with a right, wrong or zero tag.
fn arbitrary_packet() -> impl Strategy<Value = (u8, usize, u8)> {
    (0..10_u8, 1..1200_usize, 0..4_u8)
}

fn write(kind: u8, length: usize, tag: u32) -> Vec<u8> {
    let filler = vec![b'x'; length];
    match kind {
        0 => init(&[]),
        1 => init(&[Param::Ipv4Address([1, 2, 3, 4].into()); 6]),
        2 => packet(tag, |w| w.heartbeat(&filler)),
        3 => packet(tag, |w| w.cookie_echo(&filler)),
        4 => packet(tag, |w| w.shutdown_ack()),
        5 => packet(tag, |w| w.raw_parts(anabranch_wire::ChunkType(0xC9), 0, &filler)),
        6 => packet(tag, |w| w.cookie_ack()),
        7 => packet(tag, |w| w.heartbeat(&filler[..4.min(length)])),
        8 => {
            let header = Header { source_port: PORT, destination_port: PORT, verification_tag: tag };
            let mut bytes = vec![0; 64];
            let length = PacketWriter::new(&mut bytes, header).expect("room").finish();
            bytes.truncate(length);
            bytes
        }
        _ => packet(tag, |w| w.sack(&anabranch_wire::SackRepr::default(), [], [])),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn source_gets_at_most_three_times_its_bytes(
        packets in prop::collection::vec(arbitrary_packet(), 1..40),
        busy: bool,
    ) {
        let mut net = pair();
        let right = net.tag_to(ip(0, 9));
        if busy {
            net.send(1, 50);
        }
        let (victim, mut came) = (at(ip(5, VICTIM), 4000), 0);
        for (kind, length, tag) in packets {
            let bytes = write(kind, length, [right, right, 0, 12_345][usize::from(tag)]);
            came += bytes.len();
            net.inject(1, ip(0, 9), victim, &bytes);
            net.run(Span::from_millis(100));
            prop_assert!(net.sent_to(victim.ip()).1 <= 3 * came);
        }
        net.run(Span::from_secs(30));
        prop_assert!(net.sent_to(victim.ip()).1 <= 3 * came);
    }
}

#[test]
fn a_question_too_short_for_its_answer_is_counted() {
    let mut net = server(1);
    // Zero streams are refused with a cause, which fits; a cookie over IPv6 does not fit in the shortest INIT.
    let from = at("2001:db8::1".parse().expect("an address"), 9);
    let handled = net.inject(0, ip(0, 9), from, &init(&[]));
    assert_eq!(handled, Handled::Discarded(Discard::ShortQuestion));
    assert_eq!(net.inject(0, ip(0, 9), from, &init(&[Param::ForwardTsnSupported; 3])), Handled::Replied);
}

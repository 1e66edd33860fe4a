//! A peer that does not support FORWARD-TSN, or accepts fewer streams.

use anabranch_core::time::Span;
use anabranch_core::{AbandonCause, AssociationEvent, Reliability, SendError};
use anabranch_tests::duo::Duo;
use anabranch_tests::network::{Packet, Side};
use anabranch_wire::{Chunk, checksum};

use anabranch_tests::sight;

use crate::partial::rig::{A, B, abandoned, forwards, lifetime, setup, statistics};

#[test]
fn forward_tsn_is_negotiated_between_two_endpoints() {
    let duo = Duo::connected(setup(1, "sctp"));
    for side in [A, B] {
        assert_eq!(duo.nodes[side].association().supports_partial_reliability(), Some(true));
    }
}

/// Replaces FORWARD-TSN-Supported in the INIT ACK by an unknown parameter to be skipped.
fn without_support(mut packet: Packet) -> Packet {
    let at =
        packet.bytes.windows(4).position(|four| four == [0xC0, 0x00, 0x00, 0x04]).expect("it is announced");
    packet.bytes[at] = 0x8F;
    packet.bytes[8..12].fill(0);
    let sum = checksum(&packet.bytes);
    packet.bytes[8..12].copy_from_slice(&sum.to_le_bytes());
    packet
}

/// Returns a pair in which A has sent its INIT to a peer without FORWARD-TSN, and the answer.
fn answered() -> (Duo, Packet) {
    let mut duo = Duo::new(setup(1, "sctp"));
    duo.kept = Some(Vec::new());
    duo.network.set_filter(|packet| packet.from == Side::A);
    duo.connect();
    duo.run(Span::from_millis(60));
    let is_init_ack = |packet: &&Packet| sight::holds(packet, |chunk| matches!(chunk, Chunk::InitAck(_)));
    let answer =
        duo.kept.iter().flatten().map(|(_, packet)| packet).find(is_init_ack).expect("B answers").clone();
    duo.network.clear_filter();
    (duo, without_support(answer))
}

fn go_on(duo: &mut Duo, answer: &Packet) {
    let now = duo.now;
    duo.nodes[A].handle(now, answer);
    let up = |duo: &Duo| duo.nodes[A].association().is_established();
    assert!(duo.run_until(Span::from_secs(1), up));
}

#[test]
fn send_with_a_limit_fails_if_the_peer_lacks_forward_tsn() {
    let (mut duo, answer) = answered();
    go_on(&mut duo, &answer);
    assert_eq!(duo.nodes[A].association().supports_partial_reliability(), Some(false));
    for reliability in [lifetime(100), Reliability::MaxRetransmissions(0), Reliability::Priority(1)] {
        let refused = duo.send_limited(Side::A, 1_000, 0, false, reliability);
        assert_eq!(refused, Some(Err(SendError::NoPartialReliability)), "{reliability:?}");
    }
    assert_eq!(duo.send(Side::A, 1_000, 0, false), Some(Ok(())));
    assert!(!duo.nodes[A].was_told(&AssociationEvent::NoPartialReliability), "nothing was promised");
}

#[test]
fn message_queued_before_the_handshake_becomes_reliable_and_reported() {
    let (mut duo, answer) = answered();
    assert_eq!(duo.nodes[A].association().supports_partial_reliability(), None);
    for _ in 0..20 {
        let sent = duo.send_limited(Side::A, 1_000, 0, false, lifetime(300));
        assert_eq!(sent, Some(Ok(())));
    }
    go_on(&mut duo, &answer);
    // Packets of the first round trip are lost, and their data is due for retransmission after its lifetime.
    duo.network.set_filter(|packet| sight::tsns(packet).is_empty());
    duo.run(Span::from_millis(400));
    duo.network.clear_filter();
    assert!(duo.nodes[A].was_told(&AssociationEvent::NoPartialReliability));
    assert!(duo.run_until(Span::from_secs(20), |duo| duo.all_arrived(Side::A)));
    let unsent = abandoned(&duo).len() as u64;
    assert!(abandoned(&duo).iter().all(|&(_, _, sent)| !sent), "only unsent messages are abandoned");
    assert_eq!((duo.flows[A].delivered_messages, unsent > 0), (20 - unsent, true));
    assert_eq!((forwards(&duo).len(), statistics(&duo, A).abandoned.chunks), (0, 0));
}

/// Returns a pair in which A requests four streams and B accepts one.
fn short_of_streams() -> Duo {
    let mut setup = setup(1, "sctp");
    setup.sides[B].streams = 1;
    let mut duo = Duo::new(setup);
    duo.connect();
    duo
}

#[test]
fn message_for_a_missing_stream_is_abandoned_and_reported() {
    let mut duo = short_of_streams();
    for (stream, unordered, reliability) in [
        (3, false, Reliability::Full),
        (0, false, Reliability::Full),
        (1, true, Reliability::Full),
        (2, false, lifetime(5_000)),
        (0, false, lifetime(60_000)),
        (1, false, Reliability::Priority(1)),
    ] {
        let taken = duo.send_limited(Side::A, 3_000, stream, unordered, reliability);
        assert_eq!(taken, Some(Ok(())), "nobody knows yet what B takes");
    }
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.all_arrived(Side::A)));
    let refused = [0, 2, 3, 5].map(|message| (message, AbandonCause::Streams, false));
    assert_eq!(abandoned(&duo), refused);
    assert_eq!(duo.flows[A].delivered_messages, 2);
    let counted = statistics(&duo, A).abandoned;
    assert_eq!((counted.by_streams.unsent, counted.messages(), counted.bytes), (4, 4, 4 * 3_000));
    assert_eq!(duo.send(Side::A, 1, 1, false), Some(Err(SendError::NoSuchStream { stream: 1, streams: 1 })));
}

#[test]
fn message_for_a_missing_stream_frees_its_buffer_space() {
    let mut setup = setup(1, "sctp");
    setup.sides[B].streams = 1;
    setup.sides[A].send_buffer_bytes = Some(4_000);
    let mut duo = Duo::new(setup);
    duo.connect();
    assert_eq!(duo.send(Side::A, 4_000, 2, false), Some(Ok(())));
    assert!(matches!(duo.send(Side::A, 1_000, 0, false), Some(Err(SendError::BufferFull { .. }))));
    duo.run(Span::from_millis(200));
    assert!(duo.nodes[A].was_told(&AssociationEvent::Writable));
    assert_eq!(duo.send(Side::A, 4_000, 0, false), Some(Ok(())));
}

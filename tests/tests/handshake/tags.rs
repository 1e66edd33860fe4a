//! Verification tags of packets (RFC 9260 sections 8.5 and 8.5.1).

use anabranch_core::time::Span;
use anabranch_core::{AbortReason, AssociationEvent, Discard, Handled};
use anabranch_wire::{Chunk, InitRepr, PacketView, Param, SackRepr, Tsn};

use crate::handshake::{data_flows, tags};
use crate::rig::craft::{COOKIE_ACK, INIT_ACK, SHUTDOWN_COMPLETE, packet, with_tag};
use crate::rig::wires::Wires;
use crate::rig::{address, association};

const BY_PEER: AssociationEvent = AssociationEvent::Aborted(AbortReason::ByPeer);

/// Passes node 1 a packet from its peer.
fn inject(wires: &mut Wires, bytes: &[u8]) -> Handled {
    wires.inject(1, address(0, 1), address(0, 2), bytes)
}

fn init(tag: u32) -> Vec<u8> {
    let repr = InitRepr {
        initiate_tag: 99,
        a_rwnd: 10_000,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn::new(5),
    };
    packet(tag, |w| w.init(&repr, []))
}

//= docs/rfc9260.txt#section-8.5
//= type=test
//# When receiving an SCTP packet, the endpoint MUST ensure that the value in the Verification Tag field of the received
//# SCTP packet matches its own tag.
//= docs/rfc9260.txt#section-8.5
//= type=test
//# If the received Verification Tag value does not match the receiver's own tag value, the receiver MUST silently discard
//# the packet and MUST NOT process it any further, except for those cases listed in Section 8.5.1 below.
#[test]
fn a_packet_of_the_peer_under_a_wrong_tag_is_dropped_without_an_answer() {
    let mut wires = Wires::connected(1);
    let right = tags(&wires)[1];
    let before = format!("{:?}", wires.nodes[1].only());
    let mark = wires.log.len();
    let good: Vec<Vec<u8>> = vec![
        packet(0, |w| w.sack(&SackRepr::default(), [], [])),
        packet(0, |w| w.data(&anabranch_wire::DataRepr::default(), b"data")),
        packet(0, |w| w.heartbeat(b"0123456789abcdef")),
        packet(0, |w| w.heartbeat_ack(b"0123456789abcdef")),
        packet(0, |w| w.shutdown(Tsn::new(1))),
        packet(0, |w| w.shutdown_ack()),
        packet(0, |w| w.shutdown_complete(false)),
        packet(0, |w| w.abort(false, [])),
        packet(0, |w| w.cookie_ack()),
        packet(0, |w| w.forward_tsn(Tsn::new(1), [])),
    ];
    for tag in [right ^ 1, right.swap_bytes(), 1, u32::MAX] {
        for bytes in &good {
            let handled = inject(&mut wires, &with_tag(bytes, tag));
            assert!(matches!(handled, Handled::Discarded(_)), "{handled:?}: {bytes:?}");
        }
    }
    assert_eq!(wires.nodes[1].endpoint.discards().total(), 4 * good.len() as u64);
    assert_eq!(wires.since(mark), []);
    assert_eq!(format!("{:?}", wires.nodes[1].only()), before);
    data_flows(&mut wires);
}

//= docs/rfc9260.txt#section-8.5.1
//= type=test
//# *  The receiver of an ABORT chunk MUST accept the packet if the Verification Tag field of the packet matches its own
//# tag and the T bit is not set OR if it is set to its Peer's Tag and the T bit is set in the Chunk Flags.
//= docs/rfc9260.txt#section-8.5.1
//= type=test
//# Otherwise, the receiver MUST silently discard the packet and take no further action.
//= docs/rfc9260.txt#section-9.1
//= type=test
//# An endpoint receiving an ABORT chunk MUST apply the special Verification Tag check rules described in Section 8.5.1.
#[test]
fn an_abort_counts_under_our_tag_or_reflected_under_the_peers() {
    for (reflected, mine, counts) in
        [(false, true, true), (true, false, true), (false, false, false), (true, true, false)]
    {
        let mut wires = Wires::connected(1);
        let [theirs, ours] = tags(&wires);
        let tag = if mine { ours } else { theirs };
        inject(&mut wires, &packet(tag, |w| w.abort(reflected, [])));
        assert_eq!(wires.nodes[1].reported(&BY_PEER), counts, "T {reflected}, our tag {mine}");
        let discards = wires.nodes[1].endpoint.discards().total();
        assert_eq!(discards, u64::from(!counts), "T {reflected}, our tag {mine}");
    }
}

//= docs/rfc9260.txt#section-9.2
//= type=test
//# If the endpoint is in the SHUTDOWN-ACK-SENT state, the endpoint SHOULD stop the T2-shutdown timer and remove all
//# knowledge of the association (and thus the association enters the CLOSED state).
#[test]
fn a_shutdown_complete_counts_under_our_tag_or_reflected_under_the_peers() {
    for (reflected, mine, counts) in
        [(false, true, true), (true, false, true), (false, false, false), (true, true, false)]
    {
        let mut wires = Wires::connected(1);
        let [theirs, ours] = tags(&wires);
        wires.loses = Box::new(|p| p.kind() == SHUTDOWN_COMPLETE);
        let now = wires.now;
        wires.nodes[0].only_mut().shutdown(now);
        wires.run(Span::from_millis(100));
        let tag = if mine { ours } else { theirs };
        inject(&mut wires, &packet(tag, |w| w.shutdown_complete(reflected)));
        let closed = wires.nodes[1].reported(&AssociationEvent::Closed);
        assert_eq!(closed, counts, "T {reflected}, our tag {mine}");
    }
}

//= docs/rfc9260.txt#section-8.5.1
//= type=test
//# An endpoint MUST ignore the SHUTDOWN COMPLETE chunk if it is not in the SHUTDOWN-ACK-SENT state.
//= docs/rfc9260.txt#section-9.2
//= type=test
//# Upon reception of the SHUTDOWN COMPLETE chunk, the endpoint verifies that it is in the SHUTDOWN-ACK-SENT state; if it
//# is not, the chunk SHOULD be discarded.
#[test]
fn a_shutdown_complete_before_its_time_changes_nothing() {
    let mut wires = Wires::connected(1);
    let ours = tags(&wires)[1];
    inject(&mut wires, &packet(ours, |w| w.shutdown_complete(false)));
    data_flows(&mut wires);
}

//= docs/rfc9260.txt#section-8.5.1
//= type=test
//# Otherwise, the receiver MUST silently discard the packet.
#[test]
fn an_init_under_a_tag_is_dropped() {
    let mut wires = Wires::connected(1);
    let ours = tags(&wires)[1];
    let mark = wires.log.len();
    for tag in [1, ours] {
        assert_eq!(inject(&mut wires, &init(tag)), Handled::Discarded(Discard::VerificationTag));
        let stranger = wires.inject(1, address(0, 9), address(0, 2), &init(tag));
        assert_eq!(stranger, Handled::Discarded(Discard::VerificationTag));
    }
    assert_eq!(wires.since(mark), []);
    data_flows(&mut wires);
}

//= docs/rfc9260.txt#section-3
//= type=test
//# INIT, INIT ACK, and SHUTDOWN COMPLETE chunks MUST NOT be bundled with any other chunk into an SCTP packet.
//= docs/rfc9260.txt#section-5.1
//= type=test
//# An INIT or INIT ACK chunk MUST NOT be bundled with any other chunk.
//= docs/rfc9260.txt#section-6.10
//= type=test
//# An endpoint MUST NOT bundle INIT, INIT ACK, or SHUTDOWN COMPLETE chunks with any other chunks.
//= docs/rfc9260.txt#section-8.5.1
//= type=test
//# *  When an endpoint receives an SCTP packet with the Verification Tag set to 0, it SHOULD verify that the packet
//# contains only an INIT chunk.
//= docs/rfc9260.txt#section-12.3
//= type=test
//# The receiver of an INIT chunk MUST silently discard the INIT chunk and all further chunks if the INIT chunk is bundled
//# with other chunks or the packet has a non- zero Verification Tag.
#[test]
fn an_init_that_is_not_alone_is_dropped() {
    let mut wires = Wires::connected(1);
    let mark = wires.log.len();
    let behind = [&init(0)[..], &packet(0, |w| w.cookie_ack())[12..]].concat();
    let before = [&packet(0, |w| w.cookie_ack())[..], &init(0)[12..]].concat();
    for mut bytes in [behind, before] {
        crate::rig::craft::fix_checksum(&mut bytes);
        for from in [address(0, 1), address(0, 9)] {
            let handled = wires.inject(1, from, address(0, 2), &bytes);
            assert!(matches!(handled, Handled::Discarded(_)), "{handled:?}");
        }
    }
    assert_eq!(wires.since(mark), []);
}

//= docs/rfc9260.txt#section-3.3.2
//= type=test
//# If the value of the Initiate Tag in a received INIT chunk is found to be 0, the receiver MUST silently discard the
//# packet.
//= docs/rfc9260.txt#section-3.3.2
//= type=test
//# A receiver of an INIT chunk with the OS value set to 0 MUST discard the packet, SHOULD send a packet in response
//# containing an ABORT chunk and using the Initiate Tag as the Verification Tag, and MUST NOT change the state of any
//# existing association.
//= docs/rfc9260.txt#section-3.3.2
//= type=test
//# A receiver of an INIT chunk with the MIS value set to 0 MUST discard the packet, SHOULD send a packet in response
//# containing an ABORT chunk and using the Initiate Tag as the Verification Tag, and MUST NOT change the state of any
//# existing association.
//= docs/rfc9260.txt#section-5.1
//= type=test
//# If an endpoint receives an INIT, INIT ACK, or COOKIE ECHO chunk but decides not to establish the new association due
//# to missing mandatory parameters in the received INIT or INIT ACK chunk, invalid parameter values, or lack of local
//# resources, it SHOULD respond with an ABORT chunk.
//= docs/rfc9260.txt#section-5.1
//= type=test
//# The Verification Tag field in the common header of the outbound SCTP packet containing the ABORT chunk MUST be set to
//# the Initiate Tag value of the received INIT or INIT ACK chunk this ABORT chunk is responding to.
#[test]
fn init_without_tag_is_dropped_and_without_streams_refused() {
    let mut wires = Wires::pair(1, &association("sctp"));
    let repr = InitRepr { a_rwnd: 5000, outbound_streams: 1, inbound_streams: 1, ..InitRepr::default() };
    let untagged = packet(0, |w| w.init(&repr, []));
    assert_eq!(inject(&mut wires, &untagged), Handled::Discarded(Discard::BadInit));
    assert_eq!(wires.log, []);
    for (outbound_streams, inbound_streams) in [(0, 1), (1, 0)] {
        let repr = InitRepr { initiate_tag: 77, outbound_streams, inbound_streams, ..repr };
        assert_eq!(inject(&mut wires, &packet(0, |w| w.init(&repr, []))), Handled::Replied);
        let abort = wires.log.last().expect("an answer");
        assert_eq!((abort.kinds(), abort.tag()), (vec![crate::rig::craft::ABORT], 77));
    }
    assert_eq!(wires.nodes[1].count(), 0);
}

#[test]
fn off_path_attacker_without_the_tag_ends_no_handshake() {
    let mut wires = Wires::pair(1, &association("sctp"));
    wires.loses = Box::new(|p| p.kind() == INIT_ACK);
    wires.connect(0, 1);
    wires.run(Span::from_millis(50));
    // The peer's tag is still unknown; although it may be represented as zero, zero must not become a valid tag.
    for reflected in [false, true] {
        let abort = packet(0, |w| w.abort(reflected, []));
        wires.inject(0, address(0, 2), address(0, 1), &abort);
        let complete = packet(0, |w| w.shutdown_complete(reflected));
        wires.inject(0, address(0, 2), address(0, 1), &complete);
    }
    assert!(!wires.nodes[0].reported(&BY_PEER));
    wires.loses = Box::new(|_| false);
    wires.run(Span::from_secs(3));
    data_flows(&mut wires);
}

//= docs/rfc9260.txt#section-8.5.1
//= type=test
//# E) Rules for packets carrying a SHUTDOWN ACK chunk: *  If the receiver is in COOKIE-ECHOED or COOKIE-WAIT state, the
//# procedures in Section 8.4 SHOULD be followed; in other words, it is treated as an OOTB packet.
//= docs/rfc9260.txt#section-9.2
//= type=test
//# The sender of the INIT or COOKIE ECHO chunk SHOULD respond to the receipt of a SHUTDOWN ACK chunk with a stand-alone
//# SHUTDOWN COMPLETE chunk in an SCTP packet with the Verification Tag field of its common header set to the same tag
//# that was received in the packet containing the SHUTDOWN ACK chunk.
#[test]
fn shutdown_ack_in_handshake_gets_reflected_shutdown_complete() {
    // RFC 9260 section 8.5.1 E: the peer still holds an association of the previous incarnation.
    let mut wires = Wires::pair(1, &association("sctp"));
    wires.loses = Box::new(|p| p.kind() == INIT_ACK);
    wires.connect(0, 1);
    let old = packet(4711, |w| w.shutdown_ack());
    assert_eq!(wires.inject(0, address(0, 2), address(0, 1), &old), Handled::Replied);
    let answer = wires.log.last().expect("an answer");
    assert_eq!((answer.kinds(), answer.tag(), answer.bytes[13]), (vec![SHUTDOWN_COMPLETE], 4711, 1));
}

#[test]
fn unexpected_answers_are_counted_without_effect() {
    let mut wires = Wires::connected(1);
    for kind in [INIT_ACK, COOKIE_ACK] {
        let old = wires.sent(kind).remove(0);
        let before = wires.nodes[0].endpoint.discards().of(Discard::Unexpected);
        let mark = wires.log.len();
        wires.replay(&old);
        assert_eq!(wires.nodes[0].endpoint.discards().of(Discard::Unexpected), before + 1, "type {kind}");
        assert_eq!(wires.since(mark), []);
    }
    assert_eq!(wires.nodes[0].times_told(&AssociationEvent::Connected), 1);
    data_flows(&mut wires);
}

#[test]
fn init_ack_offers_the_configuration_within_the_streams_of_the_init() {
    let mut wires = Wires::pair(1, &association("sctp"));
    inject(&mut wires, &init(0));
    let answer = wires.sent(INIT_ACK).remove(0);
    assert_eq!(answer.tag(), 99);
    let view = PacketView::parse(&answer.bytes).expect("it is a packet");
    let chunk = view.chunks().next().expect("one chunk").expect("whole");
    let Ok(Chunk::InitAck(ack)) = chunk.decode() else { panic!("no INIT ACK") };
    // The INIT allows one inbound stream (RFC 9260 section 3.3.3).
    assert_eq!((ack.outbound_streams(), ack.inbound_streams(), ack.a_rwnd()), (1, 8, 256 * 1024));
    let listed = ack.params().filter(|p| matches!(p, Ok(Param::Ipv4Address(_) | Param::Ipv6Address(_))));
    assert_eq!(listed.count(), 0, "its only address is where the packet comes from");
}

#[test]
fn a_listed_address_of_another_family_than_ours_is_no_path() {
    let mut wires = Wires::pair(1, &association("sctp"));
    let repr = InitRepr {
        initiate_tag: 99,
        a_rwnd: 10_000,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn::new(5),
    };
    let other = Param::Ipv6Address([0xfd00, 0, 0, 0, 0, 0, 0, 1].into());
    let same = Param::Ipv4Address([10, 0, 0, 7].into());
    inject(&mut wires, &packet(0, |w| w.init(&repr, [other, same])));
    let answer = wires.sent(INIT_ACK).remove(0);
    let view = PacketView::parse(&answer.bytes).expect("it is a packet");
    let chunk = view.chunks().next().expect("one chunk").expect("whole");
    let Ok(Chunk::InitAck(ack)) = chunk.decode() else { panic!("no INIT ACK") };
    let cookie =
        ack.params().find_map(|p| if let Ok(Param::StateCookie(cookie)) = p { Some(cookie) } else { None });
    let echo = packet(ack.initiate_tag(), |w| w.cookie_echo(cookie.expect("there is a cookie")));
    assert!(matches!(inject(&mut wires, &echo), Handled::New(_)));
    let association = wires.nodes[1].only();
    let remotes: Vec<_> = association
        .paths()
        .iter()
        .filter_map(|p| association.path_address(p.id))
        .map(|path| path.remote)
        .collect();
    assert_eq!(remotes, [address(0, 1), address(0, 7)]);
}

//! Packets for which there is no association (RFC 9260 section 8.4).

use anabranch_core::time::Span;
use anabranch_core::{AssociationEvent, Discard, Handled};
use anabranch_wire::{Cause, DataRepr, SackRepr, Tsn};

use crate::rig::craft::{ABORT, COOKIE_ACK, SHUTDOWN_COMPLETE, packet, raw};
use crate::rig::wires::{Packet, Wires};
use crate::rig::{address, association};

const TAG: u32 = 0x0BAD_CAFE;

/// What a listener that knows nobody makes of a packet, and what it answers.
fn answer(bytes: &[u8]) -> (Handled, Vec<Packet>) {
    let mut wires = Wires::pair(1, &association("sctp"));
    let handled = wires.inject(1, address(0, 1), address(0, 2), bytes);
    assert_eq!(wires.nodes[1].count(), 0);
    (handled, wires.log)
}

fn data(tag: u32) -> Vec<u8> {
    packet(tag, |w| w.data(&DataRepr::default(), b"data"))
}

#[test]
fn most_packets_out_of_the_blue_are_answered_by_an_abort_with_their_own_tag() {
    let packets = [
        data(TAG),
        packet(TAG, |w| w.sack(&SackRepr::default(), [], [])),
        packet(TAG, |w| w.heartbeat(b"info")),
        packet(TAG, |w| w.heartbeat_ack(b"info")),
        packet(TAG, |w| w.shutdown(Tsn::new(1))),
        packet(TAG, |w| w.error([Cause::OutOfResource])),
        packet(TAG, |w| w.forward_tsn(Tsn::new(1), [])),
        raw(TAG, &[0xC9, 0, 0, 4]),
    ];
    for bytes in packets {
        let (handled, log) = answer(&bytes);
        assert_eq!(handled, Handled::Replied, "{bytes:?}");
        let [abort] = &log[..] else { panic!("{} answers to {bytes:?}", log.len()) };
        assert_eq!((abort.kinds(), abort.tag(), abort.bytes[13] & 1), (vec![ABORT], TAG, 1));
        assert_eq!((abort.from, abort.to), (address(0, 2), address(0, 1)));
    }
}

#[test]
fn a_shutdown_ack_out_of_the_blue_is_answered_by_shutdown_complete_with_its_own_tag() {
    let (handled, log) = answer(&packet(TAG, |w| w.shutdown_ack()));
    assert_eq!(handled, Handled::Replied);
    let [complete] = &log[..] else { panic!("{} answers", log.len()) };
    assert_eq!((complete.kinds(), complete.tag()), (vec![SHUTDOWN_COMPLETE], TAG));
    assert_eq!(complete.bytes[13] & 1, 1);
}

#[test]
fn what_could_be_an_answer_to_an_answer_is_not_answered() {
    let stale = Cause::StaleCookie { staleness_us: 1 };
    let bundled = [&data(TAG)[..], &packet(TAG, |w| w.abort(false, []))[12..]].concat();
    let packets = [
        packet(TAG, |w| w.abort(false, [])),
        packet(TAG, |w| w.abort(true, [])),
        packet(TAG, |w| w.shutdown_complete(false)),
        packet(TAG, |w| w.shutdown_complete(true)),
        packet(TAG, |w| w.cookie_ack()),
        packet(TAG, |w| w.error([stale])),
        raw(TAG, &bundled[12..]),
    ];
    for bytes in packets {
        let (handled, log) = answer(&bytes);
        assert_eq!(handled, Handled::Discarded(Discard::OutOfTheBlue), "{bytes:?}");
        assert_eq!(log, []);
    }
}

#[test]
fn a_packet_for_another_port_or_from_port_zero_is_dropped() {
    for at in [1, 3] {
        let mut bytes = data(TAG);
        bytes[at - 1..=at].fill(0);
        crate::rig::craft::fix_checksum(&mut bytes);
        let (handled, log) = answer(&bytes);
        assert_eq!((handled, log), (Handled::Discarded(Discard::OutOfTheBlue), Vec::new()));
    }
}

#[test]
fn two_endpoints_never_answer_each_others_answers() {
    let mut wires = Wires::pair(1, &association("sctp"));
    wires.inject(1, address(0, 1), address(0, 2), &data(TAG));
    wires.inject(1, address(0, 1), address(0, 2), &packet(TAG, |w| w.shutdown_ack()));
    wires.run(Span::from_secs(10));
    assert_eq!(wires.log.len(), 2);
}

#[test]
fn an_association_that_is_over_still_lets_its_peer_end_and_drops_the_rest_until_it_is_forgotten() {
    let mut wires = Wires::connected(1);
    wires.loses = Box::new(|p| p.kind() == SHUTDOWN_COMPLETE);
    let now = wires.now;
    wires.nodes[0].only_mut().shutdown(now);
    wires.run(Span::from_millis(200));
    assert!(wires.nodes[0].told(&AssociationEvent::Closed));
    assert!(!wires.nodes[1].told(&AssociationEvent::Closed));
    // The peer's SHUTDOWN-ACK comes again and must find an answer.
    wires.loses = Box::new(|_| false);
    wires.run(Span::from_secs(5));
    assert!(wires.nodes[1].told(&AssociationEvent::Closed));
    let last = wires.log.last().expect("packets were sent");
    assert_eq!((last.kinds(), last.bytes[13] & 1), (vec![SHUTDOWN_COMPLETE], 1));
    // Data that took a slower way than the last chunks is no reason to call a good end a bad one.
    let late = wires.sent(COOKIE_ACK).remove(0);
    let (from, to, late) = (late.from, late.to, data(late.tag()));
    let mark = wires.log.len();
    assert!(matches!(wires.inject(0, from, to, &late), Handled::Discarded(_)));
    assert_eq!(wires.since(mark), []);
    // Once the association is forgotten it is out of the blue like any other.
    let id = wires.nodes[0].endpoint.associations().next().expect("it is not forgotten");
    assert!(wires.nodes[0].endpoint.forget(id));
    assert_eq!(wires.inject(0, from, to, &late), Handled::Replied);
    assert_eq!(wires.log.last().map(Packet::kind), Some(ABORT));
}

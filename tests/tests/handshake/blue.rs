//! Packets for which there is no association (RFC 9260 section 8.4).

use anabranch_core::time::Span;
use anabranch_core::{AssociationEvent, Discard, Handled};
use anabranch_wire::{Cause, DataRepr, SackRepr, Tsn};

use crate::rig::craft::{ABORT, COOKIE_ACK, SHUTDOWN_COMPLETE, packet, raw};
use crate::rig::wires::{Packet, Wires};
use crate::rig::{address, association};

const TAG: u32 = 0x0BAD_CAFE;

/// Returns the result of a packet at a listener without associations, and its answers.
fn answer(bytes: &[u8]) -> (Handled, Vec<Packet>) {
    let mut wires = Wires::pair(1, &association("sctp"));
    let handled = wires.inject(1, address(0, 1), address(0, 2), bytes);
    assert_eq!(wires.nodes[1].count(), 0);
    (handled, wires.log)
}

fn data(tag: u32) -> Vec<u8> {
    packet(tag, |w| w.data(&DataRepr::default(), b"data"))
}

//= docs/rfc9260.txt#section-3.3.7
//= type=test
//# If the Verification Tag is reflected, the T bit MUST be set to 1.
//= docs/rfc9260.txt#section-8.4
//= type=test
//# 8)  The receiver SHOULD respond to the sender of the OOTB packet with an ABORT chunk.
//= docs/rfc9260.txt#section-8.4
//= type=test
//# When sending the ABORT chunk, the receiver of the OOTB packet MUST fill in the Verification Tag field of the outbound
//# packet with the value found in the Verification Tag field of the OOTB packet and set the T bit in the Chunk Flags to
//# indicate that the Verification Tag is reflected.
//= docs/rfc9260.txt#section-8.4
//= type=test
//# After sending this ABORT chunk, the receiver of the OOTB packet MUST discard the OOTB packet and MUST NOT take any
//# further action.
//= docs/rfc9260.txt#section-8.5.1
//= type=test
//# *  If the ABORT chunk is sent in response to an OOTB packet, the endpoint MUST follow the procedure described in
//# Section 8.4.
#[test]
fn most_ootb_packets_are_answered_by_abort_with_their_tag() {
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

//= docs/rfc9260.txt#section-3.1
//= type=test
//# *  A packet containing a SHUTDOWN COMPLETE chunk with the T bit set MUST have the Verification Tag copied from the
//# packet with the SHUTDOWN ACK chunk.
//= docs/rfc9260.txt#section-3.3.13
//= type=test
//# If the Verification Tag is reflected, the T bit MUST be set to 1.
//= docs/rfc9260.txt#section-8.4
//= type=test
//# 5)  If the packet contains a SHUTDOWN ACK chunk, the receiver SHOULD respond to the sender of the OOTB packet with a
//# SHUTDOWN COMPLETE chunk.
//= docs/rfc9260.txt#section-8.4
//= type=test
//# When sending the SHUTDOWN COMPLETE chunk, the receiver of the OOTB packet MUST fill in the Verification Tag field of
//# the outbound packet with the Verification Tag received in the SHUTDOWN ACK chunk and set the T bit in the Chunk Flags
//# to indicate that the Verification Tag is reflected.
//= docs/rfc9260.txt#section-8.5.1
//= type=test
//# Only where no TCB exists SHOULD the sender use the Verification Tag from the SHUTDOWN ACK chunk and MUST set the T
//# bit.
#[test]
fn ootb_shutdown_ack_is_answered_by_shutdown_complete_with_its_tag() {
    let (handled, log) = answer(&packet(TAG, |w| w.shutdown_ack()));
    assert_eq!(handled, Handled::Replied);
    let [complete] = &log[..] else { panic!("{} answers", log.len()) };
    assert_eq!((complete.kinds(), complete.tag()), (vec![SHUTDOWN_COMPLETE], TAG));
    assert_eq!(complete.bytes[13] & 1, 1);
}

//= docs/rfc9260.txt#section-8.4
//= type=test
//# 2)  If the OOTB packet contains an ABORT chunk, the receiver MUST silently discard the OOTB packet and take no further
//# action.
//= docs/rfc9260.txt#section-8.4
//= type=test
//# 6)  If the packet contains a SHUTDOWN COMPLETE chunk, the receiver SHOULD silently discard the packet and take no
//# further action.
//= docs/rfc9260.txt#section-8.4
//= type=test
//# 7)  If the packet contains an ERROR chunk with the "Stale Cookie" error cause or a COOKIE ACK chunk, the SCTP packet
//# SHOULD be silently discarded.
#[test]
fn possible_answer_to_an_answer_is_not_answered() {
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

//= docs/rfc9260.txt#section-3.1
//= type=test
//# The Source Port Number 0 MUST NOT be used.
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

//= docs/rfc9260.txt#section-3.3.7
//= type=test
//# Moreover, under any circumstances, an endpoint that receives an ABORT chunk MUST NOT respond to that ABORT chunk by
//# sending an ABORT chunk of its own.
//= docs/rfc9260.txt#section-9.1
//= type=test
//# An endpoint MUST NOT respond to any received packet that contains an ABORT chunk (also see Section 8.4).
#[test]
fn two_endpoints_never_answer_each_others_answers() {
    let mut wires = Wires::pair(1, &association("sctp"));
    wires.inject(1, address(0, 1), address(0, 2), &data(TAG));
    wires.inject(1, address(0, 1), address(0, 2), &packet(TAG, |w| w.shutdown_ack()));
    wires.run(Span::from_secs(10));
    assert_eq!(wires.log.len(), 2);
}

#[test]
fn ended_association_answers_shutdown_and_drops_other_packets() {
    let mut wires = Wires::connected(1);
    wires.loses = Box::new(|p| p.kind() == SHUTDOWN_COMPLETE);
    let now = wires.now;
    wires.nodes[0].only_mut().shutdown(now);
    wires.run(Span::from_millis(200));
    assert!(wires.nodes[0].reported(&AssociationEvent::Closed));
    assert!(!wires.nodes[1].reported(&AssociationEvent::Closed));
    // The peer's SHUTDOWN-ACK is repeated and must be answered.
    wires.loses = Box::new(|_| false);
    wires.run(Span::from_secs(5));
    assert!(wires.nodes[1].reported(&AssociationEvent::Closed));
    let last = wires.log.last().expect("packets were sent");
    assert_eq!((last.kinds(), last.bytes[13] & 1), (vec![SHUTDOWN_COMPLETE], 1));
    // Delayed data that arrives after the last chunks does not turn a graceful end into a failure.
    let late = wires.sent(COOKIE_ACK).remove(0);
    let (from, to, late) = (late.from, late.to, data(late.tag()));
    let mark = wires.log.len();
    assert!(matches!(wires.inject(0, from, to, &late), Handled::Discarded(_)));
    assert_eq!(wires.since(mark), []);
    // After the association is forgotten, the packet is out of the blue like any other.
    let id = wires.nodes[0].endpoint.associations().next().expect("it is not forgotten");
    assert!(wires.nodes[0].endpoint.forget(id));
    assert_eq!(wires.inject(0, from, to, &late), Handled::Replied);
    assert_eq!(wires.log.last().map(Packet::kind), Some(ABORT));
}

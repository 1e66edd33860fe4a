//! Reports that an INIT was not delivered (RFC 9260 section 10, RFC 6951 section 5.5).

use anabranch_core::time::Span;
use anabranch_core::{AbortReason, AssociationEvent, AssociationId, PathAddress, Refusal, SendOptions};
use bytes::Bytes;

use crate::handshake::data_flows;
use crate::rig::craft::{COOKIE_ECHO, INIT, INIT_ACK};
use crate::rig::wires::{Packet, Wires};
use crate::rig::{address, association};

/// Bytes up to the Initiate Tag.
const QUOTED: usize = 20;

/// Returns a pair whose first node connects over these networks, and whose wires lose every packet that begins with this chunk.
fn connecting(networks: u8, stagger: bool, loses: u8) -> (Wires, AssociationId) {
    let mut wires = Wires::pair(networks, &association("sctp"));
    wires.loses = Box::new(move |packet| packet.kind() == loses);
    let mut config = association("sctp");
    config.profile.init_stagger = stagger.then_some(Span::from_millis(250));
    let pairs: Vec<_> = (0..networks).map(|network| (address(network, 1), address(network, 2))).collect();
    let id = wires.connect_over(0, &pairs, config);
    (wires, id)
}

/// Reports that a packet was not delivered, with this quotation. Returns the association that the endpoint found.
fn report(wires: &mut Wires, packet: &Packet, quoted: &[u8], refusal: Refusal) -> Option<AssociationId> {
    let path = PathAddress::from((packet.from, packet.to));
    let found = wires.nodes[0].endpoint.packet_refused(wires.now, path, quoted, refusal);
    wires.drain();
    found
}

fn latest(wires: &Wires, kind: u8) -> Packet {
    wires.sent(kind).pop().expect("a packet")
}

//= docs/rfc9260.txt#section-10
//= type=test
//# If it does contain an INIT chunk and the association is in the COOKIE-WAIT state, handle the ICMP message like an
//# ABORT chunk.
#[test]
fn quotation_of_an_unanswered_init_ends_the_attempt() {
    let (mut wires, id) = connecting(1, false, INIT);
    let init = latest(&wires, INIT);
    assert_eq!(report(&mut wires, &init, &init.bytes[..QUOTED], Refusal::PortClosed), Some(id));
    let reason = AbortReason::Refused(Refusal::PortClosed);
    assert!(wires.nodes[0].reported(&AssociationEvent::Aborted(reason)));
    let sent = wires.log.len();
    wires.run(Span::from_secs(60));
    assert_eq!(wires.log.len(), sent, "nothing is sent afterwards");
    assert!(wires.nodes[0].endpoint.forget(id));
}

//= docs/rfc9260.txt#section-10
//= type=test
//# ICMP6)  An implementation MUST validate that the Verification Tag contained in the ICMP message matches the
//# Verification Tag of the peer.
//= docs/rfc9260.txt#section-10
//= type=test
//# If the ICMP message is too short or the chunk type or the Initiate Tag does not match, silently discard the packet.
//= docs/rfc9260.txt#section-10
//= type=test
//# If the association cannot be found, an implementation SHOULD ignore the ICMP message.
#[test]
fn quotation_without_our_tag_or_of_another_packet_ends_nothing() {
    let (mut wires, id) = connecting(1, false, INIT);
    let init = latest(&wires, INIT);
    for length in 0..QUOTED {
        assert_eq!(
            report(&mut wires, &init, &init.bytes[..length], Refusal::PortClosed),
            None,
            "{length} bytes"
        );
    }
    // These are the bytes of ports, verification tag, chunk type and Initiate Tag. The checksum, flags and length are not compared.
    for at in (0..8).chain([12]).chain(16..QUOTED) {
        for bit in 0..8 {
            let mut forged = init.bytes.clone();
            forged[at] ^= 1 << bit;
            assert_eq!(report(&mut wires, &init, &forged, Refusal::PortClosed), None, "byte {at}, bit {bit}");
        }
    }
    let elsewhere = Packet { to: address(0, 9), ..init.clone() };
    assert_eq!(report(&mut wires, &elsewhere, &init.bytes, Refusal::PortClosed), None);
    wires.loses = Box::new(|_| false);
    wires.run(Span::from_secs(5));
    assert!(wires.nodes[0].reported(&AssociationEvent::Connected));
    assert_eq!(report(&mut wires, &init, &init.bytes, Refusal::PortClosed), None);
    assert!(!wires.nodes[0].endpoint.init_refused(
        wires.now,
        id,
        (address(0, 1), address(0, 2)).into(),
        Refusal::NoRoute
    ));
    data_flows(&mut wires);
}

#[test]
fn refusal_after_the_init_ack_ends_nothing() {
    let (mut wires, _) = connecting(1, false, COOKIE_ECHO);
    let init = latest(&wires, INIT);
    wires.run_until("a COOKIE ECHO", Span::from_secs(1), |wires| !wires.sent(COOKIE_ECHO).is_empty());
    let echo = latest(&wires, COOKIE_ECHO);
    for packet in [&init, &echo] {
        assert_eq!(report(&mut wires, packet, &packet.bytes, Refusal::PortClosed), None);
    }
    wires.loses = Box::new(|_| false);
    wires.run(Span::from_secs(10));
    data_flows(&mut wires);
}

#[test]
fn attempt_continues_at_once_on_a_path_that_is_not_refused() {
    for stagger in [false, true] {
        let (mut wires, id) = connecting(2, stagger, INIT);
        wires.loses = Box::new(|_| false);
        let init = latest(&wires, INIT);
        assert_eq!((init.to, wires.sent(INIT).len()), (address(0, 2), 1));
        assert_eq!(report(&mut wires, &init, &init.bytes, Refusal::HostUnreachable), Some(id));
        wires.run_until("the second INIT", Span::from_millis(1), |wires| wires.sent(INIT).len() == 2);
        assert_eq!(latest(&wires, INIT).to, address(1, 2), "with stagger: {stagger}");
        wires.run(Span::from_secs(1));
        assert!(wires.nodes[0].reported(&AssociationEvent::Connected));
        data_flows(&mut wires);
    }
}

#[test]
fn attempt_ends_when_every_path_is_refused_with_the_most_telling_reason() {
    let (mut wires, id) = connecting(3, true, INIT);
    for (network, refusal) in [(0, Refusal::NoRoute), (1, Refusal::PortClosed), (2, Refusal::HostUnreachable)]
    {
        let to = address(network, 2);
        wires.run_until("an INIT", Span::from_millis(1), |wires| latest(wires, INIT).to == to);
        assert!(!wires.nodes[0].only().is_closed());
        let init = latest(&wires, INIT);
        assert_eq!(report(&mut wires, &init, &init.bytes, refusal), Some(id));
    }
    let reason = AbortReason::Refused(Refusal::PortClosed);
    assert!(wires.nodes[0].reported(&AssociationEvent::Aborted(reason)));
}

#[test]
fn retransmitted_init_leaves_refused_paths_out() {
    for stagger in [false, true] {
        let (mut wires, _) = connecting(2, stagger, INIT);
        let init = latest(&wires, INIT);
        report(&mut wires, &init, &init.bytes, Refusal::HostUnreachable);
        let mark = wires.log.len();
        wires.run(Span::from_secs(20));
        let later = wires.since(mark);
        assert!(
            later.len() > 2 && later.iter().all(|packet| packet.to == address(1, 2)),
            "with stagger: {stagger}"
        );
        assert_eq!(wires.nodes[0].only().unanswered_init().count(), 1);
    }
}

#[test]
fn late_answer_on_a_refused_path_opens_the_association() {
    let (mut wires, _) = connecting(2, true, INIT_ACK);
    wires.run_until("an INIT ACK", Span::from_secs(1), |wires| !wires.sent(INIT_ACK).is_empty());
    let answer = latest(&wires, INIT_ACK);
    let init = wires.sent(INIT).remove(0);
    report(&mut wires, &init, &init.bytes, Refusal::HostUnreachable);
    wires.loses = Box::new(|_| false);
    wires.replay(&answer);
    wires.run(Span::from_secs(1));
    let message = Bytes::from_static(b"over a path that was refused");
    assert_eq!(wires.nodes[0].only_mut().send(message, SendOptions::default()), Ok(()));
    data_flows_after(&mut wires);
}

fn data_flows_after(wires: &mut Wires) {
    wires.run(Span::from_secs(5));
    let mut bytes = Vec::new();
    assert!(wires.nodes[1].only_mut().recv(&mut bytes).is_some());
}

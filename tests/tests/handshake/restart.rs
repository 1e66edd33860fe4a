//! A peer without its former state connects again (RFC 9260 sections 5.2.2 and 5.2.4.1).

use anabranch_core::time::Span;
use anabranch_core::{AbortReason, AssociationEvent, SendError, SendOptions};
use anabranch_wire::{Cause, Chunk, PacketView, Param};
use bytes::Bytes;

use crate::handshake::{data_flows, read};
use crate::rig::craft::{ABORT, COOKIE_ECHO, ERROR, SHUTDOWN_ACK, SHUTDOWN_COMPLETE, packet};
use crate::rig::wires::Wires;
use crate::rig::{address, association};

fn restart_and_connect(wires: &mut Wires) {
    wires.replace(0, 7, association("sctp"));
    wires.connect(0, 1);
    wires.run(Span::from_secs(10));
}

//= docs/rfc9260.txt#section-5.2.2
//= type=test
//# Unless otherwise stated, upon receipt of an unexpected INIT chunk for this association, the endpoint MUST generate an
//# INIT ACK chunk with a State Cookie.
//= docs/rfc9260.txt#section-5.2.2
//= type=test
//# The outbound SCTP packet containing this INIT ACK chunk MUST carry a Verification Tag value equal to the Initiate Tag
//# found in the unexpected INIT chunk.
//= docs/rfc9260.txt#section-5.2.2
//= type=test
//# And the INIT ACK chunk MUST contain a new Initiate Tag (randomly generated; see Section 5.3.1).
//= docs/rfc9260.txt#section-5.2.4
//= type=test
//# *  A RESTART notification SHOULD be sent to the ULP instead of a COMMUNICATION LOST notification.
#[test]
fn a_restarted_peer_gets_the_old_association_renewed() {
    for networks in [1, 2, 3] {
        let mut wires = Wires::connected(networks);
        data_flows(&mut wires);
        restart_and_connect(&mut wires);
        assert_eq!(wires.nodes[1].count(), 1);
        assert_eq!(wires.nodes[1].times_told(&AssociationEvent::Restarted), 1);
        assert!(wires.nodes[0].reported(&AssociationEvent::Connected));
        data_flows(&mut wires);
    }
}

#[test]
fn a_peer_may_restart_again_and_again() {
    let mut wires = Wires::connected(1);
    for times in 1..5 {
        restart_and_connect(&mut wires);
        assert_eq!(wires.nodes[1].times_told(&AssociationEvent::Restarted), times);
        data_flows(&mut wires);
    }
}

#[test]
fn data_queued_for_the_old_peer_is_not_sent_to_the_new_one() {
    let mut wires = Wires::connected(1);
    let unread = Bytes::from_static(b"unread");
    wires.nodes[0].only_mut().send(unread, SendOptions::default()).expect("it is up");
    wires.run(Span::from_secs(1));
    wires.loses = Box::new(|p| p.to == address(0, 1));
    for _ in 0..20 {
        let old = Bytes::from_static(&[7; 5000]);
        wires.nodes[1].only_mut().send(old, SendOptions::default()).expect("it is up");
    }
    wires.run(Span::from_secs(3));
    assert_eq!(wires.nodes[1].only().buffered_bytes(), 100_000);
    wires.loses = Box::new(|_| false);
    restart_and_connect(&mut wires);
    let renewed = wires.nodes[1].only();
    assert_eq!((renewed.buffered_bytes(), renewed.readable_bytes()), (0, 0));
    assert_eq!(renewed.paths().iter().map(|p| p.in_flight.get()).sum::<u64>(), 0);
    assert_eq!(read(&mut wires.nodes[0]), Vec::<Vec<u8>>::new());
    data_flows(&mut wires);
}

#[test]
fn waiting_application_is_notified_of_space_after_a_restart() {
    let mut config = association("sctp");
    config.send_buffer_bytes = Some(10_000);
    let mut wires = Wires::pair(1, &config);
    wires.connect(0, 1);
    wires.run(Span::from_secs(1));
    wires.loses = Box::new(|p| p.to == address(0, 1));
    let message = Bytes::from_static(&[7; 9000]);
    assert_eq!(wires.nodes[1].only_mut().send(message.clone(), SendOptions::default()), Ok(()));
    let refused = wires.nodes[1].only_mut().send(message, SendOptions::default());
    assert_eq!(refused, Err(SendError::BufferFull { free_bytes: 1000 }));
    wires.loses = Box::new(|_| false);
    restart_and_connect(&mut wires);
    assert!(wires.nodes[1].reported(&AssociationEvent::Writable));
}

#[test]
fn a_restart_survives_the_loss_of_any_of_its_packets() {
    for lost in 1..=8 {
        let mut wires = Wires::connected(1);
        let mut count = 0;
        wires.loses = Box::new(move |_| {
            count += 1;
            count == lost
        });
        restart_and_connect(&mut wires);
        assert_eq!(wires.nodes[1].times_told(&AssociationEvent::Restarted), 1, "lost {lost}");
        data_flows(&mut wires);
    }
}

//= docs/rfc9260.txt#section-5.2.4
//= type=test
//# For any case not shown in Table 12, the cookie SHOULD be silently discarded.
#[test]
fn an_old_cookie_of_a_restart_does_not_restart_again() {
    let mut wires = Wires::connected(1);
    restart_and_connect(&mut wires);
    data_flows(&mut wires);
    for echo in wires.sent(COOKIE_ECHO) {
        wires.replay(&echo);
    }
    assert_eq!(wires.nodes[1].count(), 1);
    assert_eq!(wires.nodes[1].times_told(&AssociationEvent::Restarted), 1);
    data_flows(&mut wires);
}

//= docs/rfc9260.txt#section-5.2.2
//= type=test
//# Before responding, the endpoint MUST check to see if the unexpected INIT chunk adds new addresses to the association.
//= docs/rfc9260.txt#section-5.2.2
//= type=test
//# If new addresses are added to the association, the endpoint MUST respond with an ABORT chunk, copying the 'Initiate
//# Tag' of the unexpected INIT chunk into the 'Verification Tag' of the outbound packet carrying the ABORT chunk.
//= docs/rfc9260.txt#section-5.2.2
//= type=test
//# After sending the INIT ACK or ABORT chunk, the endpoint MUST take no further actions, i.e., the existing association,
//# including its current state, and the corresponding TCB MUST NOT be changed.
#[test]
fn restart_with_a_new_address_is_refused_and_keeps_the_association() {
    let mut wires = Wires::connected(1);
    wires.nodes[0].addresses.push(address(1, 1));
    let before = format!("{:?}", wires.nodes[1].only());
    wires.replace(0, 7, association("sctp"));
    let pair = (address(0, 1), address(0, 2));
    wires.connect_over(0, &[pair], association("sctp"));
    let mark = wires.log.len();
    // The restart takes at most until the next HEARTBEAT of the old association.
    wires.run(Span::from_millis(50));
    let abort = wires.since(mark).iter().find(|p| p.kind() == ABORT).expect("it is refused").clone();
    let view = PacketView::parse(&abort.bytes).expect("it is a packet");
    let chunk = view.chunks().next().expect("one chunk").expect("whole");
    let Ok(Chunk::Abort(abort)) = chunk.decode() else { panic!("no ABORT") };
    let Some(Ok(Cause::RestartWithNewAddresses(list))) = abort.causes().next() else { panic!("no cause") };
    let new: Vec<_> = list.iter().map(|p| p.expect("a parameter")).collect();
    assert_eq!(new, [Param::Ipv4Address([10, 1, 0, 1].into())]);
    assert!(wires.nodes[0].reported(&AssociationEvent::Aborted(AbortReason::ByPeer)));
    assert_eq!(format!("{:?}", wires.nodes[1].only()), before);
}

//= docs/rfc9260.txt#section-9.2
//= type=test
//# If an endpoint is in the SHUTDOWN-ACK-SENT state and receives an INIT chunk (e.g., if the SHUTDOWN COMPLETE chunk was
//# lost) with source and destination transport addresses (either in the IP addresses or in the INIT chunk) that belong to
//# this association, it SHOULD discard the INIT chunk and retransmit the SHUTDOWN ACK chunk.
#[test]
fn a_path_that_was_removed_stays_out_of_use_when_the_peer_restarts() {
    let mut wires = Wires::connected(2);
    let now = wires.now;
    let removed = wires.nodes[1].only().paths()[1].id;
    wires.nodes[1].only_mut().remove_path(now, removed).expect("another one is left");
    restart_and_connect(&mut wires);
    assert_eq!(wires.nodes[1].times_told(&AssociationEvent::Restarted), 1);
    assert_eq!(wires.nodes[1].only().path_address(removed), None);
    let mark = wires.log.len();
    data_flows(&mut wires);
    assert!(wires.since(mark).iter().all(|p| p.from != address(1, 2)), "nothing leaves there");
}

#[test]
fn restart_during_shutdown_ends_the_old_association_first() {
    // RFC 9260 section 9.2: an INIT in SHUTDOWN-ACK-SENT is dropped, and the SHUTDOWN-ACK is retransmitted.
    let mut wires = Wires::connected(1);
    wires.loses = Box::new(|p| p.kind() == SHUTDOWN_COMPLETE);
    let now = wires.now;
    wires.nodes[0].only_mut().shutdown(now);
    wires.run(Span::from_millis(100));
    assert!(!wires.nodes[1].reported(&AssociationEvent::Closed));
    wires.loses = Box::new(|_| false);
    wires.replace(0, 7, association("sctp"));
    wires.connect(0, 1);
    let before = wires.sent(SHUTDOWN_ACK).len();
    wires.run(Span::from_millis(45));
    assert_eq!(wires.sent(SHUTDOWN_ACK).len(), before + 1);
    assert!(wires.nodes[1].reported(&AssociationEvent::Closed));
    wires.run(Span::from_secs(5));
    assert!(wires.nodes[0].reported(&AssociationEvent::Connected), "the next INIT finds the way free");
}

//= docs/rfc9260.txt#section-5.2.4
//= type=test
//# If the endpoint is in the SHUTDOWN-ACK-SENT state and recognizes that the peer has restarted (Action A), it MUST NOT
//# set up a new association but instead resend the SHUTDOWN ACK chunk and send an ERROR chunk with a "Cookie Received
//# While Shutting Down" error cause to its peer.
#[test]
fn restart_cookie_in_the_last_step_of_a_shutdown_is_refused() {
    // RFC 9260 section 5.2.4 D: the SHUTDOWN-ACK is retransmitted, with an ERROR that states the cause.
    let mut wires = Wires::connected(1);
    let mut old = Vec::new();
    std::mem::swap(&mut old, &mut wires.log);
    wires.loses = Box::new(|p| p.kind() == COOKIE_ECHO || p.kind() == SHUTDOWN_COMPLETE);
    wires.replace(0, 7, association("sctp"));
    wires.connect(0, 1);
    wires.run(Span::from_millis(50));
    let echo = wires.sent(COOKIE_ECHO).remove(0);
    // The old peer has requested a shutdown, and this is its last packet.
    let to_old = old.iter().rfind(|p| p.to == address(0, 2)).expect("packets were sent").tag();
    let cumulative =
        anabranch_wire::Tsn::new(wires.nodes[1].only().association_facts().cumulative_tsn as u32);
    let shutdown = packet(to_old, |w| w.shutdown(cumulative));
    wires.inject(1, address(0, 1), address(0, 2), &shutdown);
    let mark = wires.log.len();
    wires.replay(&echo);
    let mut answers: Vec<u8> = wires.since(mark).iter().flat_map(|p| p.kinds()).collect();
    answers.sort_unstable();
    assert_eq!(answers, [SHUTDOWN_ACK, ERROR]);
    assert!(!wires.nodes[1].reported(&AssociationEvent::Restarted));
}

//! Ends of associations: graceful with everything delivered, or immediate.

use anabranch_core::profile::Profile;
use anabranch_core::time::Span;
use anabranch_core::{AbortReason, AssociationEvent, SendError};
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::{Packet, Side};
use anabranch_tests::sight;
use anabranch_wire::Chunk;

const A: usize = Side::A as usize;
const B: usize = Side::B as usize;

fn both_over(duo: &Duo) -> bool {
    duo.is_over(Side::A) && duo.is_over(Side::B)
}

fn assert_good_end(duo: &Duo) {
    for side in Side::BOTH {
        assert_eq!(duo.nodes[side.index()].ended, Some(AssociationEvent::Closed), "{side:?}");
        assert!(duo.all_arrived(side), "{side:?} has messages that did not arrive");
    }
}

fn is_shutdown_complete(packet: &Packet) -> bool {
    sight::holds(packet, |chunk| matches!(chunk, Chunk::ShutdownComplete { .. }))
}

//= docs/rfc9260.txt#section-3.3.8
//= type=test
//# An endpoint in an association MUST use this chunk to initiate a graceful close of the association with its peer.
//= docs/rfc9260.txt#section-3.3.9
//= type=test
//# This chunk MUST be used to acknowledge the receipt of the SHUTDOWN chunk at the completion of the shutdown process;
//# see Section 9.2 for details.
//= docs/rfc9260.txt#section-3.3.13
//= type=test
//# This chunk MUST be used to acknowledge the receipt of the SHUTDOWN ACK chunk at the completion of the shutdown
//# process; see Section 9.2 for details.
//= docs/rfc9260.txt#section-4
//= type=test
//# 6)  In the SHUTDOWN-RECEIVED state, the endpoint MUST transmit or retransmit data and leave this state when all data
//# in queue is transmitted.
//= docs/rfc9260.txt#section-9.2
//= type=test
//# An endpoint SHOULD ensure that all its outstanding DATA chunks have been acknowledged before initiating the shutdown
//# procedure.
//= docs/rfc9260.txt#section-9.2
//= type=test
//# An endpoint SHOULD reject any new data request from its upper layer if it is in the SHUTDOWN-PENDING, SHUTDOWN-SENT,
//# SHUTDOWN-RECEIVED, or SHUTDOWN-ACK-SENT state.
#[test]
fn a_shutdown_waits_for_what_is_outstanding_on_both_sides() {
    for profile in Profile::NAMES {
        let mut duo = Duo::connected(Setup::new(2, "cmt", profile));
        for side in Side::BOTH {
            duo.send_all(side, 10_000, 20);
        }
        duo.shutdown(Side::A);
        assert_eq!(duo.send(Side::A, 1, 0, false), Some(Err(SendError::Closing)));
        assert!(duo.run_until(Span::from_secs(30), both_over), "{profile}");
        assert!(duo.nodes[B].was_told(&AssociationEvent::ShutdownReceived));
        assert_good_end(&duo);
    }
}

#[test]
fn both_sides_may_shut_down_at_once() {
    for outstanding in [0, 20] {
        let mut duo = Duo::connected(Setup::new(1, "sctp", "rfc9260"));
        for side in Side::BOTH {
            duo.send_all(side, 10_000, outstanding);
            duo.shutdown(side);
        }
        assert!(duo.run_until(Span::from_secs(30), both_over));
        assert_good_end(&duo);
    }
}

//= docs/rfc9260.txt#section-9.1
//= type=test
//# When an endpoint decides to abort an existing association, it MUST send an ABORT chunk to its peer endpoint.
//= docs/rfc9260.txt#section-9.1
//= type=test
//# After checking the Verification Tag, the receiving endpoint MUST remove the association from its record and SHOULD
//# report the termination to its upper layer.
#[test]
fn an_abort_ends_both_sides_at_once() {
    let mut duo = Duo::connected(Setup::new(2, "cmt", "rfc9260"));
    duo.send_all(Side::A, 10_000, 20);
    duo.abort(Side::A);
    duo.settle();
    duo.run(Span::from_millis(25));
    assert_eq!(duo.nodes[A].ended, Some(AssociationEvent::Aborted(AbortReason::ByApplication)));
    assert_eq!(duo.nodes[B].ended, Some(AssociationEvent::Aborted(AbortReason::ByPeer)));
}

#[test]
fn a_peer_that_missed_the_abort_learns_of_it_with_its_next_packet() {
    let mut duo = Duo::connected(Setup::new(1, "sctp", "rfc9260"));
    duo.cut(0, true);
    duo.abort(Side::A);
    duo.settle();
    duo.cut(0, false);
    duo.send_all(Side::B, 100, 1);
    duo.run(Span::from_millis(100));
    assert_eq!(duo.nodes[B].ended, Some(AssociationEvent::Aborted(AbortReason::ByPeer)));
}

#[test]
fn a_shutdown_during_the_handshake_delivers_what_was_queued_before_it() {
    // The association was just connected, the INIT has arrived, or the cookie is on its way back.
    for wait_ms in [0, 30, 60] {
        let mut duo = Duo::new(Setup::new(1, "sctp", "rfc9260"));
        duo.connect();
        duo.send_all(Side::A, 5_000, 3);
        duo.run(Span::from_millis(wait_ms));
        duo.shutdown(Side::A);
        assert_eq!(duo.send(Side::A, 1, 0, false), Some(Err(SendError::Closing)));
        assert!(duo.run_until(Span::from_secs(10), both_over), "after {wait_ms} ms");
        assert_good_end(&duo);
        assert_eq!(duo.flows[A].delivered_messages, 3);
    }
}

//= docs/rfc9260.txt#section-9.2
//= type=test
//# If there are still outstanding DATA chunks left, the SHUTDOWN chunk receiver MUST continue to follow normal data
//# transmission procedures defined in Section 6, until all outstanding DATA chunks are acknowledged; however, the
//# SHUTDOWN chunk receiver MUST NOT accept new data from its SCTP user.
#[test]
fn data_that_waits_for_the_last_path_leaves_though_the_peer_shuts_down() {
    // ns-2's initiator waits for the confirmation of every path. One remains unconfirmed for some time while the peer shuts down.
    let mut duo = Duo::new(Setup::new(2, "cmt", "ns2"));
    duo.cut(1, true);
    duo.connect();
    duo.send_all(Side::A, 1_000, 3);
    duo.run(Span::from_secs(1));
    assert_eq!(duo.flows[A].delivered_messages, 0);
    duo.shutdown(Side::B);
    duo.run(Span::from_secs(1));
    assert!(duo.nodes[A].was_told(&AssociationEvent::ShutdownReceived));
    duo.cut(1, false);
    assert!(duo.run_until(Span::from_secs(60), both_over));
    assert_good_end(&duo);
}

//= docs/rfc9260.txt#section-9.2
//= type=test
//# Upon the receipt of the SHUTDOWN ACK chunk, the sender of the SHUTDOWN chunk MUST stop the T2-shutdown timer, send a
//# SHUTDOWN COMPLETE chunk to its peer, and remove all record of the association.
#[test]
fn a_shutdown_whose_last_packet_is_lost_ends_well_all_the_same() {
    let mut duo = Duo::connected(Setup::new(1, "sctp", "rfc9260"));
    let mut lost = false;
    duo.network.set_filter(move |packet| !is_shutdown_complete(packet) || std::mem::replace(&mut lost, true));
    duo.shutdown(Side::A);
    assert!(duo.run_until(Span::from_secs(5), both_over));
    assert_good_end(&duo);
}

#[test]
fn packets_that_overtake_shutdown_complete_are_harmless() {
    // B has answered the SHUTDOWN and still sends a HEARTBEAT, on a path that is faster than the one of the SHUTDOWN chunks: A has
    // finished by then, but B has not learnt it yet.
    let mut duo = Duo::connected(Setup::new(2, "sctp", "rfc9260"));
    duo.run(Span::from_secs(1));
    duo.link(0).delay = Span::from_millis(400);
    duo.shutdown(Side::A);
    duo.run(Span::from_millis(850));
    assert!(duo.is_over(Side::A) && !duo.is_over(Side::B));
    let (local, remote) = (duo.setup.address(Side::B, 1), duo.setup.address(Side::A, 0));
    let now = duo.now;
    let b = duo.nodes[B].try_association_mut().expect("it awaits the end");
    b.add_path(now, (local, remote)).expect("it is another pair");
    assert!(duo.run_until(Span::from_secs(5), both_over));
    assert_good_end(&duo);
}

#[test]
fn a_late_cookie_does_not_open_an_association_that_is_over_again() {
    let mut duo = Duo::new(Setup::new(1, "sctp", "rfc9260"));
    duo.kept = Some(Vec::new());
    duo.connect();
    duo.run(Span::from_secs(1));
    let is_echo = |packet: &Packet| sight::holds(packet, |chunk| matches!(chunk, Chunk::CookieEcho { .. }));
    let echo =
        duo.kept.iter().flatten().find(|(_, packet)| is_echo(packet)).map(|(_, packet)| packet.clone());
    duo.shutdown(Side::A);
    assert!(duo.run_until(Span::from_secs(5), both_over));
    let now = duo.now;
    duo.network.send(now, echo.expect("a COOKIE-ECHO was sent"));
    duo.run(Span::from_secs(1));
    assert_eq!(duo.nodes[B].endpoint.associations().count(), 1);
    assert_good_end(&duo);
}

#[test]
fn a_handshake_that_the_peer_has_aborted_ends_though_the_abort_was_lost() {
    // B accepts the cookie and aborts at once; the ABORT and the COOKIE-ACK are lost, so A retransmits its cookie.
    let mut duo = Duo::new(Setup::new(1, "sctp", "rfc9260"));
    duo.connect();
    duo.run(Span::from_millis(74));
    duo.cut(0, true);
    duo.run(Span::from_millis(10));
    assert!(duo.nodes[B].try_association().is_some());
    duo.abort(Side::B);
    duo.settle();
    duo.cut(0, false);
    assert!(duo.run_until(Span::from_secs(3), both_over));
    assert_eq!(duo.nodes[A].ended, Some(AssociationEvent::Aborted(AbortReason::ByPeer)));
}

#[test]
fn a_side_that_only_receives_ends_well_though_a_path_was_cut_unnoticed() {
    // A sends on both paths and detects that the first is cut. B only receives: its primary path is the cut one.
    for pairs in [2, 3] {
        let mut duo = Duo::connected(Setup::new(pairs, "cmt", "rfc9260"));
        duo.run(Span::from_secs(1));
        duo.send_all(Side::A, 10_000, 50);
        duo.run(Span::from_millis(50));
        (0..pairs - 1).for_each(|pair| duo.cut(pair, true));
        let delivered = |duo: &Duo| duo.flows[A].delivered_messages == 50;
        assert!(duo.run_until(Span::from_secs(600), delivered), "{pairs} pairs");
        duo.shutdown(Side::A);
        assert!(duo.run_until(Span::from_secs(5), both_over), "{pairs} pairs");
        assert_good_end(&duo);
    }
}

#[test]
fn an_unanswered_shutdown_is_tried_on_every_path() {
    for alive in 0..3 {
        let mut duo = Duo::connected(Setup::new(3, "cmt", "rfc9260"));
        duo.run(Span::from_secs(1));
        (0..3).filter(|pair| *pair != alive).for_each(|pair| duo.cut(pair, true));
        duo.shutdown(Side::A);
        assert!(duo.run_until(Span::from_secs(60), both_over), "only path {alive} works");
        assert_good_end(&duo);
    }
}

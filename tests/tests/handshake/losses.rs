//! Handshakes and shutdowns survive losses, or end with a reason.

use anabranch_core::time::Span;
use anabranch_core::{AbortReason, AssociationEvent, PathId, PathState, SendError, SendOptions};
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::Side;
use bytes::Bytes;

use crate::handshake::{data_flows, read};
use crate::rig::craft::{
    COOKIE_ACK, COOKIE_ECHO, DATA, INIT, INIT_ACK, SHUTDOWN, SHUTDOWN_ACK, SHUTDOWN_COMPLETE,
};
use crate::rig::wires::Wires;
use crate::rig::{address, association};

/// Returns a pair that loses the first packets that begin with a chunk of this type.
fn losing(networks: u8, kind: u8, times: u32) -> Wires {
    let mut wires = Wires::pair(networks, &association("sctp"));
    let mut left = times;
    wires.loses = Box::new(move |packet| {
        let lost = packet.kind() == kind && left > 0;
        left -= u32::from(lost);
        lost
    });
    wires
}

//= docs/rfc9260.txt#section-4
//= type=test
//# 2)  If the T1-init timer expires, the endpoint MUST retransmit the INIT chunk and restart the T1-init timer.
//= docs/rfc9260.txt#section-4
//= type=test
//# 3)  If the T1-cookie timer expires, the endpoint MUST retransmit COOKIE ECHO chunk and restart the T1-cookie timer.
//= docs/rfc9260.txt#section-5.1
//= type=test
//# The T1-init timer and T1-cookie timer SHOULD follow the same rules given in Section 6.3.
//= docs/rfc9260.txt#section-5.1.4
//= type=test
//# When an endpoint (in the COOKIE-WAIT state) receives an INIT ACK chunk with a State Cookie parameter, it MUST
//# immediately send a COOKIE ECHO chunk to its peer with the received State Cookie.
//= docs/rfc9260.txt#section-5.1.4
//= type=test
//# If the timer expires, the endpoint MUST retransmit the COOKIE ECHO chunk and restart the T1-cookie timer.
#[test]
fn loss_of_any_handshake_chunk_is_repaired() {
    for kind in [INIT, INIT_ACK, COOKIE_ECHO, COOKIE_ACK] {
        for (networks, times) in [(1, 1), (1, 3), (2, 1), (2, 2)] {
            let mut wires = losing(networks, kind, times);
            wires.connect(0, 1);
            wires.run(Span::from_secs(30));
            for node in &wires.nodes {
                assert_eq!(node.count(), 1, "chunk {kind} lost {times} times on {networks}");
                assert_eq!(
                    node.times_told(&AssociationEvent::Connected),
                    1,
                    "chunk {kind} lost {times} times"
                );
            }
            data_flows(&mut wires);
        }
    }
}

//= docs/rfc9260.txt#section-4
//= type=test
//# This MUST be repeated up to 'Max.Init.Retransmits' times.
#[test]
fn init_and_cookie_echo_may_each_be_retransmitted_as_often_as_is_allowed() {
    let mut config = association("sctp");
    config.profile.max_init_retransmits = 2;
    let mut wires = Wires::pair(1, &association("sctp"));
    let mut left = [(INIT, 2), (COOKIE_ECHO, 2)];
    wires.loses = Box::new(move |packet| {
        let counted = left.iter_mut().find(|(kind, times)| *kind == packet.kind() && *times > 0);
        counted.map(|(_, times)| *times -= 1).is_some()
    });
    wires.connect_over(0, &[(address(0, 1), address(0, 2))], config);
    wires.run(Span::from_secs(60));
    assert_eq!(wires.nodes[0].times_told(&AssociationEvent::Connected), 1);
}

#[test]
fn retries_leave_no_trace_in_the_time_out() {
    let mut wires = losing(1, INIT, 2);
    wires.connect(0, 1);
    wires.run_until("connected", Span::from_secs(10), |w| w.nodes[0].reported(&AssociationEvent::Connected));
    // RFC 9260 section 6.3.1 C1: the wait doubled for the INITs, but no sample has been taken.
    assert!(wires.nodes[0].only().paths()[0].rto <= Span::from_secs(1));
}

//= docs/rfc9260.txt#section-3.3.11
//= type=test
//# This chunk MUST precede any DATA chunk sent within the association but MAY be bundled with one or more DATA chunks in
//# the same packet.
#[test]
fn data_sent_before_the_association_is_up_arrives_once_it_is() {
    for kind in [INIT, INIT_ACK, COOKIE_ECHO, COOKIE_ACK] {
        let mut wires = losing(1, kind, 1);
        wires.connect(0, 1);
        let early = Bytes::from_static(b"early");
        wires.nodes[0].only_mut().send(early, SendOptions::default()).expect("it is taken");
        wires.run(Span::from_secs(10));
        assert_eq!(read(&mut wires.nodes[1]), [b"early"]);
    }
}

//= docs/rfc9260.txt#section-5.1
//= type=test
//# Retransmissions of INIT chunks and COOKIE ECHO chunks SHOULD use all addresses of the peer similar to retransmissions
//# of DATA chunks.
#[test]
fn data_leaves_with_the_cookie_ack_and_waits_for_no_heartbeat() {
    // RFC 9260 section 5.4: the handshake confirms the address that it used.
    let mut wires = Wires::pair(2, &association("sctp"));
    wires.connect(0, 1);
    wires.nodes[0]
        .only_mut()
        .send(Bytes::from_static(b"first"), SendOptions::default())
        .expect("it is taken");
    wires.run(Span::from_secs(1));
    let acknowledged = wires.sent(COOKIE_ACK)[0].sent + wires.delay;
    let data = wires.log.iter().find(|p| p.kinds().contains(&DATA)).expect("it is sent");
    assert_eq!(data.sent, acknowledged);
}

#[test]
fn an_association_comes_up_over_the_second_path_when_the_first_is_dead() {
    let mut wires = Wires::pair(2, &association("sctp"));
    let dead = [address(0, 1), address(0, 2)];
    wires.loses = Box::new(move |p| dead.contains(&p.from) || dead.contains(&p.to));
    wires.connect(0, 1);
    wires.run(Span::from_secs(30));
    assert!(wires.nodes.iter().all(|n| n.times_told(&AssociationEvent::Connected) == 1));
    data_flows(&mut wires);
    // The failed path is not used, and becomes active after its return.
    let first = wires.nodes[0].only().paths()[0].state;
    assert!(matches!(first, PathState::Unconfirmed | PathState::Inactive), "{first:?}");
    wires.loses = Box::new(|_| false);
    wires.run(Span::from_secs(200));
    assert!(wires.nodes[0].only().paths().iter().all(|p| p.state == PathState::Active));
}

#[test]
fn a_handshake_survives_a_path_that_works_in_one_direction_only() {
    // The first COOKIE-ECHO arrives, but no packet returns on that path: the next one arrives on another.
    let mut wires = Wires::pair(2, &association("sctp"));
    let mut replies = 0;
    wires.loses = Box::new(move |p| {
        replies += u32::from(p.from == address(0, 2));
        p.from == address(0, 2) && replies > 1
    });
    wires.connect(0, 1);
    wires.run(Span::from_secs(30));
    assert!(wires.nodes.iter().all(|n| n.times_told(&AssociationEvent::Connected) == 1));
    assert_eq!(wires.nodes[1].count(), 1);
}

#[test]
fn cookie_repeated_over_another_address_pair_is_accepted() {
    // The caller has one address, the peer two, of which it can send from the second only.
    let mut wires = Wires::new();
    wires.add(1, 1, association("sctp"));
    wires.add(2, 1, association("sctp"));
    let second = address(1, 2);
    wires.nodes[1].addresses.push(second);
    wires.loses = Box::new(|p| p.kind() != INIT_ACK && p.from == address(0, 2));
    let pairs = [(address(0, 1), address(0, 2)), (address(0, 1), second)];
    wires.connect_over(0, &pairs, association("sctp"));
    wires.run(Span::from_secs(30));
    assert!(wires.nodes.iter().all(|n| n.times_told(&AssociationEvent::Connected) == 1));
    assert_eq!(wires.nodes[1].count(), 1);
}

//= docs/rfc9260.txt#section-4
//= type=test
//# This MUST be repeated up to 'Max.Init.Retransmits' times.
//= docs/rfc9260.txt#section-4
//= type=test
//# After that, the endpoint MUST abort the initialization process and report the error to the SCTP user.
#[test]
fn attempt_ends_after_the_allowed_init_retries() {
    for networks in [1, 2] {
        let mut wires = losing(networks, INIT, u32::MAX);
        wires.connect(0, 1);
        wires.run(Span::from_secs(600));
        // Max.Init.Retransmits is 8, so there are nine in all.
        assert_eq!(wires.sent(INIT).len(), 9);
        assert_eq!(wires.nodes[0].events.len(), 1);
        assert!(wires.nodes[0].reported(&AssociationEvent::Aborted(AbortReason::NoAnswer)));
        assert_eq!(wires.nodes[0].endpoint.poll_timeout(), None);
        let id = wires.nodes[0].events[0].0;
        assert!(wires.nodes[0].endpoint.forget(id));
    }
}

#[test]
fn attempt_ends_without_a_cookie_ack() {
    let mut wires = losing(1, COOKIE_ECHO, u32::MAX);
    wires.connect(0, 1);
    wires.run(Span::from_secs(600));
    assert_eq!(wires.sent(COOKIE_ECHO).len(), 9);
    assert!(wires.nodes[0].reported(&AssociationEvent::Aborted(AbortReason::NoAnswer)));
}

#[test]
fn a_listener_that_refuses_ends_the_handshake_at_once() {
    let mut wires = Wires::pair(1, &association("sctp"));
    let mut deaf = crate::rig::endpoint(vec![address(0, 2)], association("sctp"));
    deaf.accept = None;
    wires.nodes[1].endpoint = anabranch_core::Endpoint::new(wires.now, deaf, [9; 32]);
    wires.connect(0, 1);
    wires.run(Span::from_secs(1));
    assert!(wires.nodes[0].reported(&AssociationEvent::Aborted(AbortReason::ByPeer)));
}

//= docs/rfc9260.txt#section-9.2
//= type=test
//# If the timer expires, the endpoint MUST resend the SHUTDOWN chunk with the updated last sequential TSN received from
//# its peer.
//= docs/rfc9260.txt#section-9.2
//= type=test
//# If the receiver of the SHUTDOWN chunk has no more outstanding DATA chunks, the SHUTDOWN chunk receiver MUST send a
//# SHUTDOWN ACK chunk and start a T2-shutdown timer of its own, entering the SHUTDOWN-ACK- SENT state.
//= docs/rfc9260.txt#section-9.2
//= type=test
//# If the timer expires, the endpoint MUST resend the SHUTDOWN ACK chunk.
#[test]
fn loss_of_any_shutdown_chunk_is_repaired() {
    for kind in [SHUTDOWN, SHUTDOWN_ACK, SHUTDOWN_COMPLETE] {
        for (networks, times) in [(1, 1), (1, 3), (2, 1), (2, 3)] {
            let mut wires = losing(networks, kind, times);
            wires.connect(0, 1);
            wires.run(Span::from_secs(2));
            let now = wires.now;
            wires.nodes[0].only_mut().shutdown(now);
            wires.run(Span::from_secs(30));
            for node in &wires.nodes {
                assert_eq!(node.times_told(&AssociationEvent::Closed), 1, "chunk {kind} lost {times} times");
            }
        }
    }
}

//= docs/rfc9260.txt#section-9.2
//= type=test
//# If an endpoint is in the SHUTDOWN-SENT state and receives a SHUTDOWN chunk from its peer, the endpoint SHOULD respond
//# immediately with a SHUTDOWN ACK chunk to its peer and move into the SHUTDOWN-ACK-SENT state, restarting its
//# T2-shutdown timer.
#[test]
fn two_shutdowns_at_once_end_gracefully() {
    for lost in 0..8 {
        let mut wires = Wires::connected(1);
        let mut count = 0;
        wires.loses = Box::new(move |_| {
            count += 1;
            count == lost
        });
        let now = wires.now;
        for node in &mut wires.nodes {
            node.only_mut().shutdown(now);
        }
        wires.run(Span::from_secs(30));
        assert!(wires.nodes.iter().all(|n| n.times_told(&AssociationEvent::Closed) == 1), "lost {lost}");
    }
}

//= docs/rfc9260.txt#section-4
//= type=test
//# 5)  In the SHUTDOWN-RECEIVED state, the endpoint MUST NOT accept any new send requests from its SCTP user.
//= docs/rfc9260.txt#section-4
//= type=test
//# 7)  In the SHUTDOWN-ACK-SENT state, the endpoint MUST NOT accept any new send requests from its SCTP user.
//= docs/rfc9260.txt#section-9.2
//= type=test
//# An endpoint SHOULD reject any new data request from its upper layer if it is in the SHUTDOWN-PENDING, SHUTDOWN-SENT,
//# SHUTDOWN-RECEIVED, or SHUTDOWN-ACK-SENT state.
#[test]
fn a_side_whose_peer_has_shut_down_takes_no_more_messages() {
    let mut wires = Wires::connected(1);
    let message = || Bytes::from_static(b"a message");
    wires.loses = Box::new(|p| p.kind() == DATA);
    assert_eq!(wires.nodes[0].only_mut().send(message(), SendOptions::default()), Ok(()));
    let now = wires.now;
    wires.nodes[1].only_mut().shutdown(now);
    wires.run(Span::from_millis(100));
    assert!(wires.nodes[0].reported(&AssociationEvent::ShutdownReceived));
    let refused = wires.nodes[0].only_mut().send(message(), SendOptions::default());
    assert_eq!(refused, Err(SendError::Closing), "while its data is outstanding");
    wires.loses = Box::new(|p| p.kind() == SHUTDOWN_COMPLETE);
    wires.run(Span::from_secs(5));
    assert!(!wires.sent(SHUTDOWN_ACK).is_empty());
    assert!(!wires.nodes[0].reported(&AssociationEvent::Closed));
    let refused = wires.nodes[0].only_mut().send(message(), SendOptions::default());
    assert_eq!(refused, Err(SendError::Closing), "while its SHUTDOWN ACK is unanswered");
}

#[test]
fn init_is_not_repeated_on_a_path_that_was_removed() {
    let setup = Setup::new(3, "cmt", "rfc9260");
    let removed = setup.address(Side::A, 1);
    let mut duo = Duo::new(setup);
    duo.kept = Some(Vec::new());
    duo.network.set_filter(|_| false);
    duo.connect();
    let now = duo.now;
    let association = duo.nodes[Side::A.index()].try_association_mut().expect("it opens one");
    association.remove_path(now, PathId::new(1)).expect("it is not the only path");
    duo.run(Span::from_secs(60));
    let kept = duo.kept.as_ref().expect("packets are kept");
    assert!(kept.len() > 3, "INIT is repeated");
    assert!(kept.iter().all(|(_, packet)| packet.source != removed));
}

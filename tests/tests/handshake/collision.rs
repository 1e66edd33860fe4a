//! Both sides connect at once (RFC 9260 sections 5.2.1 and 5.2.4).

use anabranch_core::AssociationEvent;
use anabranch_core::time::Span;

use crate::handshake::data_flows;
use crate::rig::association;
use crate::rig::wires::Wires;

/// Connects both sides, the second one later by this span, and loses the n-th packet.
fn collide(later: Span, networks: u8, lost: Option<usize>) {
    let mut wires = Wires::pair(networks, &association("sctp"));
    let mut count = 0;
    wires.loses = Box::new(move |_| {
        count += 1;
        Some(count) == lost
    });
    wires.connect(0, 1);
    wires.run(later);
    assert_eq!(wires.nodes[1].count(), 0, "it does not know of the first one's wish yet");
    wires.connect(1, 0);
    wires.run(Span::from_secs(30));
    for node in &wires.nodes {
        assert_eq!(node.count(), 1, "later {later:?}, lost {lost:?}");
        assert_eq!(node.times_told(&AssociationEvent::Connected), 1, "later {later:?}, lost {lost:?}");
        assert!(!node.reported(&AssociationEvent::Restarted), "later {later:?}, lost {lost:?}");
    }
    data_flows(&mut wires);
}

//= docs/rfc9260.txt#section-5.2.1
//= type=test
//# Upon receipt of an INIT chunk in the COOKIE-WAIT state, an endpoint MUST respond with an INIT ACK chunk using the same
//# parameters it sent in its original INIT chunk (including its Initiate Tag, unchanged).
//= docs/rfc9260.txt#section-5.2.1
//= type=test
//# Upon receipt of an INIT chunk in the COOKIE-ECHOED state, an endpoint MUST respond with an INIT ACK chunk using the
//# same parameters it sent in its original INIT chunk (including its Initiate Tag, unchanged), provided that no new
//# address has been added to the forming association.
//= docs/rfc9260.txt#section-5.2.4
//= type=test
//# The endpoint SHOULD stay in or enter the ESTABLISHED state, but it MUST update its peer's Verification Tag from the
//# State Cookie, stop any T1-init or T1-cookie timers that might be running, and send a COOKIE ACK chunk.
//= docs/rfc9260.txt#section-5.2.1
//= type=test
//# The endpoint MUST also generate a State Cookie with the INIT ACK chunk.
#[test]
fn two_sides_that_connect_at_once_get_one_association() {
    for millis in 0..30 {
        collide(Span::from_millis(millis), 1, None);
    }
}

#[test]
fn a_collision_over_two_paths_gives_one_association() {
    for millis in [0, 5, 15, 25] {
        collide(Span::from_millis(millis), 2, None);
    }
}

//= docs/rfc9260.txt#section-5.2.1
//= type=test
//# After that, the endpoint MUST NOT change its state, the T1-init timer MUST be left running, and the corresponding TCB
//# MUST NOT be destroyed.
#[test]
fn a_collision_survives_the_loss_of_any_of_its_packets() {
    for millis in [0, 5, 15, 25] {
        for lost in 1..=14 {
            collide(Span::from_millis(millis), 1, Some(lost));
        }
    }
}

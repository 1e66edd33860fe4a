//! Paths that fail while messages are abandoned.

use anabranch_core::Reliability;
use anabranch_core::time::Span;
use anabranch_tests::network::Side;

use crate::partial::rig::{A, come_to_rest, connected, forward_tsn, lifetime, send, setup, statistics};

#[test]
fn forward_tsn_lost_on_a_dead_path_is_sent_on_another() {
    for scheme in ["sctp", "cmt", "cmt-pf"] {
        let mut duo = connected(setup(2, scheme));
        duo.cut(0, true);
        for _ in 0..20 {
            send(&mut duo, 1_000, lifetime(150));
            duo.run(Span::from_millis(100));
        }
        come_to_rest(&mut duo, Span::from_secs(300));
        let second = duo.setup.address(Side::A, 1);
        let skips = duo.kept.iter().flatten().filter(|(_, packet)| forward_tsn(packet).is_some());
        assert!(skips.clone().any(|(_, packet)| packet.source == second), "{scheme}");
        // After the detection of the failure the second path carries everything in time.
        for _ in 0..20 {
            send(&mut duo, 1_000, Reliability::Full);
        }
        come_to_rest(&mut duo, Span::from_secs(300));
        let counted = statistics(&duo, A);
        assert!(counted.abandoned.messages() > 0, "{scheme}: {counted:?}");
    }
}

#[test]
fn removed_path_loses_no_forward_tsn() {
    let mut duo = connected(setup(2, "cmt"));
    duo.cut(0, true);
    duo.cut(1, true);
    for _ in 0..8 {
        send(&mut duo, 1_000, lifetime(60));
    }
    duo.run(Span::from_millis(80));
    assert!(statistics(&duo, A).forward_tsns_sent > 0);
    let now = duo.now;
    let association = duo.nodes[A].try_association_mut().expect("it is up");
    association.remove_path(now, anabranch_core::PathId::new(0)).expect("there is another");
    duo.cut(1, false);
    come_to_rest(&mut duo, Span::from_secs(60));
}

#[test]
fn outage_of_all_paths_keeps_only_reliable_messages() {
    let mut duo = connected(setup(2, "cmt"));
    for pair in 0..2 {
        duo.cut(pair, true);
    }
    for number in 0..100 {
        send(&mut duo, 1_000, if number % 10 == 9 { Reliability::Full } else { lifetime(100) });
        duo.run(Span::from_millis(20));
    }
    for pair in 0..2 {
        duo.cut(pair, false);
    }
    come_to_rest(&mut duo, Span::from_secs(120));
    let counted = statistics(&duo, A);
    assert!(counted.abandoned.messages() >= 80, "{counted:?}");
    assert!(duo.flows[A].delivered_messages >= 10);
}

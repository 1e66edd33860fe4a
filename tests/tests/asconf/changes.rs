//! Added and deleted addresses between two endpoints of this project.

use anabranch_core::time::Span;
use anabranch_core::{AssociationEvent, PathError, SharedKey};
use anabranch_tests::duo::Duo;
use anabranch_tests::network::Side;
use anabranch_tests::sight;
use anabranch_wire::{Chunk, Param};

use crate::asconf::rig::{
    Keys, active, add, association, connected, data_flows, extra, inject, remove, setup,
};

fn is_asconf(chunk: &Chunk<'_>) -> bool {
    matches!(chunk, Chunk::Asconf(_))
}

#[test]
fn asconf_is_done_if_both_sides_want_it() {
    for (a, b) in [(true, true), (true, false), (false, true), (false, false)] {
        let setup = setup(1)
            .with_side(Side::A, |config| config.address_changes.asconf = a)
            .with_side(Side::B, |config| config.address_changes.asconf = b);
        let mut duo = connected(setup);
        for side in Side::BOTH {
            assert_eq!(duo.nodes[side.index()].association().does_asconf(), a && b, "{a} {b}");
        }
        data_flows(&mut duo);
    }
}

#[test]
fn new_address_is_announced_before_other_packets_use_it() {
    for side in Side::BOTH {
        let mut duo = connected(setup(1));
        let new = extra(side, 0);
        add(&mut duo, side, new);
        let from_new = |duo: &Duo| -> Vec<_> {
            let kept = duo.kept.iter().flatten().map(|(_, packet)| packet.clone());
            kept.filter(|packet| packet.source == new).collect()
        };
        assert!(from_new(&duo).iter().all(|packet| sight::holds(packet, is_asconf)));
        assert_eq!(from_new(&duo).len(), 1);
        duo.run(Span::from_secs(1));
        assert_eq!(active(&duo, side).len(), 2);
        assert_eq!(active(&duo, side.other()).len(), 2);
        let before = from_new(&duo).len();
        data_flows(&mut duo);
        assert!(from_new(&duo).len() > before + 10, "it carries data");
    }
}

#[test]
fn a_translated_address_is_added_as_the_peer_sees_it() {
    let mut duo = connected(setup(1));
    let (real, seen) = (extra(Side::A, 0), extra(Side::A, 77));
    duo.network.translate(real, seen);
    add(&mut duo, Side::A, real);
    duo.run(Span::from_secs(1));
    assert!(active(&duo, Side::A).iter().any(|(local, _)| *local == real));
    assert!(active(&duo, Side::B).iter().any(|(_, remote)| *remote == seen));
    data_flows(&mut duo);
}

#[test]
fn a_path_of_the_handshake_whose_address_is_translated_comes_into_use() {
    let mut duo = Duo::new(setup(2));
    let (real, seen) = (duo.setup.address(Side::A, 1), extra(Side::A, 77));
    duo.network.translate(real, seen);
    duo.connect();
    duo.run(Span::from_secs(20));
    assert_eq!(active(&duo, Side::A).len(), 2);
    assert!(active(&duo, Side::B).iter().any(|(_, remote)| *remote == seen));
}

#[test]
fn deleted_address_is_used_in_neither_direction() {
    for side in Side::BOTH {
        let mut duo = connected(setup(2));
        let old = duo.setup.address(side, 1);
        remove(&mut duo, side, old);
        duo.run(Span::from_secs(1));
        assert_eq!(active(&duo, side).len(), 1);
        assert_eq!(active(&duo, side.other()).len(), 1);
        let kept = duo.kept.as_ref().map_or(0, Vec::len);
        data_flows(&mut duo);
        let after = &duo.kept.as_ref().expect("packets are kept")[kept..];
        assert!(after.iter().all(|(_, packet)| packet.source != old && packet.destination != old));
    }
}

#[test]
fn data_of_a_deleted_path_moves_to_others() {
    let mut duo = connected(setup(2));
    duo.send_all(Side::A, 10_000, 50);
    let old = duo.setup.address(Side::A, 1);
    duo.cut(1, true);
    remove(&mut duo, Side::A, old);
    assert!(duo.run_until(Span::from_secs(10), |duo| duo.all_arrived(Side::A)));
}

#[test]
fn all_addresses_of_a_side_are_replaced_while_data_flows() {
    for side in Side::BOTH {
        let mut duo = connected(setup(2));
        for round in 0..3 {
            for from in Side::BOTH {
                duo.send_all(from, 10_000, 50);
            }
            let old: Vec<_> = active(&duo, side).iter().map(|(local, _)| *local).collect();
            for number in 0..2 {
                add(&mut duo, side, extra(side, round * 2 + number));
            }
            duo.run(Span::from_millis(500));
            for local in old {
                remove(&mut duo, side, local);
            }
            data_flows(&mut duo);
            let mut now: Vec<_> = active(&duo, side).iter().map(|(local, _)| *local).collect();
            now.dedup();
            assert_eq!(now, [extra(side, round * 2), extra(side, round * 2 + 1)]);
        }
        assert_eq!(duo.nodes[side.index()].association().statistics().timeouts, 0);
    }
}

#[test]
fn only_address_may_be_removed_before_another_is_added() {
    let mut duo = connected(setup(1));
    duo.send_all(Side::A, 10_000, 100);
    duo.run(Span::from_millis(60));
    let old = duo.setup.address(Side::A, 0);
    duo.cut(0, true);
    remove(&mut duo, Side::A, old);
    duo.run(Span::from_secs(5));
    assert!(!duo.all_arrived(Side::A));
    add(&mut duo, Side::A, extra(Side::A, 0));
    assert!(duo.run_until(Span::from_secs(2), |duo| duo.all_arrived(Side::A)));
    duo.run(Span::from_secs(1));
    assert_eq!(active(&duo, Side::A), [(extra(Side::A, 0), duo.setup.address(Side::B, 0))]);
    assert_eq!(active(&duo, Side::B).len(), 1);
}

#[test]
fn an_address_that_comes_back_before_it_was_deleted_is_tried_at_once() {
    let mut duo = connected(setup(1));
    let old = duo.setup.address(Side::A, 0);
    duo.cut(0, true);
    remove(&mut duo, Side::A, old);
    duo.run(Span::from_secs(3));
    duo.cut(0, false);
    add(&mut duo, Side::A, old);
    duo.run(Span::from_millis(100));
    data_flows(&mut duo);
    assert_eq!(duo.nodes[0].association().statistics().asconfs_sent, 0);
}

#[test]
fn address_removed_and_readded_during_announcement_stays() {
    let mut duo = connected(setup(2));
    let new = extra(Side::A, 0);
    duo.network.set_filter(move |packet| packet.destination != new);
    add(&mut duo, Side::A, new);
    duo.run(Span::from_millis(10));
    remove(&mut duo, Side::A, new);
    duo.run(Span::from_millis(10));
    add(&mut duo, Side::A, new);
    duo.network.clear_filter();
    duo.run(Span::from_secs(10));
    assert!(active(&duo, Side::A).iter().any(|(local, _)| *local == new));
    assert!(active(&duo, Side::B).iter().any(|(_, remote)| *remote == new));
}

#[test]
fn silent_former_address_keeps_the_association_that_announces_another() {
    let mut duo = connected(setup(1));
    let (old, new) = (duo.setup.address(Side::A, 0), extra(Side::A, 0));
    duo.network.set_filter(|_| false);
    duo.send_all(Side::A, 10_000, 10);
    add(&mut duo, Side::A, new);
    remove(&mut duo, Side::A, old);
    // A has retransmitted the announcement too rarely to consider the peer unreachable.
    duo.run(Span::from_secs(220));
    assert!(!duo.is_over(Side::A), "the association ended: {:?}", duo.nodes[0].ended);
}

#[test]
fn an_asconf_from_a_new_address_shows_that_the_peer_is_there() {
    let mut setup = setup(1);
    setup.sides[1].profile.association_max_retrans = 4;
    let mut duo = connected(setup);
    let (old, new) = (duo.setup.address(Side::A, 0), extra(Side::A, 0));
    // B receives from A, but A receives nothing from B.
    duo.network.set_filter(|packet| packet.from == Side::A);
    duo.send_all(Side::B, 10_000, 10);
    // Errors 1 to 4 of B are at 1, 3, 7 and 15 s.
    duo.run(Span::from_secs(20));
    add(&mut duo, Side::A, new);
    remove(&mut duo, Side::A, old);
    // The fifth is at 31 s.
    duo.run(Span::from_secs(20));
    duo.network.set_filter(move |packet| packet.source != old && packet.destination != old);
    data_flows(&mut duo);
}

#[test]
fn a_translated_address_is_deleted_without_its_name_once_only_one_is_left() {
    let mut duo = connected(setup(1));
    duo.network.translate(extra(Side::A, 0), extra(Side::A, 77));
    add(&mut duo, Side::A, extra(Side::A, 0));
    duo.run(Span::from_secs(1));
    let first = duo.setup.address(Side::A, 0);
    remove(&mut duo, Side::A, extra(Side::A, 0));
    duo.run(Span::from_secs(1));
    assert_eq!(active(&duo, Side::B), [(duo.setup.address(Side::B, 0), first)]);
}

#[test]
fn requests_pass_loss_repetition_and_reordering() {
    for seed in 0..20 {
        let mut duo = connected(setup(1));
        duo.network = anabranch_tests::network::Network::new(
            anabranch_tests::network::Link { loss: 300, duplicate: 200, reorder: 300, ..duo.setup.link },
            seed,
        );
        for number in 0..3 {
            add(&mut duo, Side::A, extra(Side::A, number));
            duo.run(Span::from_millis(200));
        }
        let first = duo.setup.address(Side::A, 0);
        duo.run(Span::from_secs(2));
        remove(&mut duo, Side::A, first);
        duo.run(Span::from_secs(120));
        duo.network.heal();
        duo.run(Span::from_secs(200));
        let locals: Vec<_> = active(&duo, Side::A).iter().map(|(local, _)| *local).collect();
        assert_eq!(locals, [0, 1, 2].map(|number| extra(Side::A, number)), "seed {seed}");
        assert_eq!(active(&duo, Side::B).len(), 3, "seed {seed}");
        data_flows(&mut duo);
    }
}

#[test]
fn filtered_new_address_does_not_block_later_requests() {
    let mut duo = connected(setup(1));
    let (blocked, open) = (extra(Side::A, 0), extra(Side::A, 1));
    duo.network.set_filter(move |packet| packet.source != blocked && packet.destination != blocked);
    add(&mut duo, Side::A, blocked);
    add(&mut duo, Side::A, open);
    duo.run(Span::from_secs(30));
    assert!(active(&duo, Side::A).iter().any(|(local, _)| *local == open));
    assert!(!duo.is_over(Side::A));
    data_flows(&mut duo);
}

#[test]
fn peer_sends_to_the_requested_primary_address() {
    let sctp = |config: &mut anabranch_core::AssociationConfig| {
        let asconf = config.address_changes.clone();
        *config = anabranch_tests::duo::config("sctp", "rfc9260");
        config.address_changes = asconf;
    };
    let mut duo = connected(setup(2).with(sctp));
    let second = duo.setup.address(Side::A, 1);
    let now = duo.now;
    association(&mut duo, Side::A).prefer_local_address(now, second).expect("it is ours");
    duo.run(Span::from_secs(1));
    let kept = duo.kept.as_ref().map_or(0, Vec::len);
    duo.send_all(Side::B, 5_000, 10);
    duo.run(Span::from_secs(2));
    let after = &duo.kept.as_ref().expect("packets are kept")[kept..];
    let data: Vec<_> =
        after.iter().filter(|(_, p)| p.from == Side::B && !sight::tsns(p).is_empty()).collect();
    assert!(!data.is_empty() && data.iter().all(|(_, packet)| packet.destination == second));
    let unknown = association(&mut duo, Side::A).prefer_local_address(now, extra(Side::A, 9));
    assert_eq!(unknown, Err(PathError::Unknown));
}

#[test]
fn sides_that_connect_at_once_agree_on_a_key() {
    let mut setup = setup(1);
    setup.collide = true;
    let mut duo = connected(setup);
    for side in Side::BOTH {
        assert!(duo.nodes[side.index()].association().does_asconf());
        add(&mut duo, side, extra(side, 0));
        duo.run(Span::from_secs(1));
    }
    assert_eq!(active(&duo, Side::A).len(), 3);
}

#[test]
fn one_sided_shared_secret_prevents_address_changes() {
    let key = |secret: &str| Some(SharedKey { id: 1, secret: secret.into() });
    let good = setup(1).with(|config| config.address_changes.shared_key = key("a"));
    let bad = good.clone().with_side(Side::B, |config| config.address_changes.shared_key = key("b"));
    for (setup, paths) in [(good, 2), (bad, 1)] {
        let mut duo = connected(setup);
        add(&mut duo, Side::A, extra(Side::A, 0));
        duo.run(Span::from_secs(1));
        assert_eq!(active(&duo, Side::B).len(), paths);
        data_flows(&mut duo);
    }
}

#[test]
fn peer_without_asconf_gets_no_request() {
    let mut duo = connected(setup(1).with_side(Side::B, |config| config.address_changes.asconf = false));
    add(&mut duo, Side::A, extra(Side::A, 0));
    duo.run(Span::from_secs(5));
    let kept = duo.kept.iter().flatten();
    assert!(!kept.into_iter().any(|(_, packet)| sight::holds(packet, is_asconf)));
    data_flows(&mut duo);
    assert!(!duo.nodes[0].was_told(&AssociationEvent::Closed));
}

#[test]
fn announced_address_is_tried_from_the_least_used_local_one() {
    // First with both of B's addresses, then after B has taken the second one out of use.
    for both in [true, false] {
        let mut duo = connected(setup(2));
        let keys = Keys::of(&duo, b"");
        let (source, second) = (duo.setup.address(Side::A, 0), duo.setup.address(Side::A, 1));
        if !both {
            let local = duo.setup.address(Side::B, 1);
            remove(&mut duo, Side::B, local);
            duo.run(Span::from_secs(2));
        }
        let named = extra(Side::A, 1);
        let params = [
            Param::DeleteIp { correlation: 1, address: second },
            Param::AddIp { correlation: 2, address: named },
        ];
        let sent = inject(&mut duo, Side::A, source, keys.asconf(Side::A, 0, &params));
        let probe = sent.iter().find(|packet| packet.destination == named).expect("a HEARTBEAT");
        assert_eq!(probe.source, duo.setup.address(Side::B, usize::from(both)));
    }
}

#[test]
fn host_that_moves_during_an_outage_reconnects() {
    for (side, sends) in [(Side::A, Side::A), (Side::A, Side::B), (Side::B, Side::A), (Side::B, Side::B)] {
        // From 40 s on, the new path has failed before the peer learns of its address.
        for silence in [5, 40, 160] {
            let mut duo = connected(setup(1));
            let (old, new) = (duo.setup.address(side, 0), extra(side, 0));
            duo.send_all(sends, 10_000, 50);
            duo.run(Span::from_millis(30));
            duo.network.set_filter(|_| false);
            add(&mut duo, side, new);
            remove(&mut duo, side, old);
            duo.run(Span::from_secs(silence));
            duo.network.set_filter(move |packet| packet.source != old && packet.destination != old);
            // The ASCONF is retransmitted once per RTO, of 60 s at most, and every other time from the old address.
            let arrived = duo.run_until(Span::from_secs(180), |duo| duo.all_arrived(sends));
            assert!(arrived, "{side:?} moved, {sends:?} sends, {silence} s of silence");
            assert_eq!(active(&duo, side), [(new, duo.setup.address(side.other(), 0))]);
        }
    }
}

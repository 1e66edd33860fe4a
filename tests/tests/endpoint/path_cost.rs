//! Costs of paths: reports to the peer, and data on the paths that both sides' costs permit.

use anabranch_core::time::{Span, Time};
use anabranch_core::{AssociationConfig, PathCost, PathId};
use anabranch_schemes::costs::honour_costs;
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::hostile::craft::fix_checksum;
use anabranch_tests::network::{Packet, Side};
use anabranch_tests::sight;
use anabranch_wire::Chunk;

fn honouring(config: &mut AssociationConfig) {
    config.scheme = honour_costs(config.scheme.clone());
}

fn setup() -> Setup {
    Setup::new(2, "cmt+min-rtt", "net").with(honouring)
}

/// Sets the cost of A's address of a pair.
fn set_cost(duo: &mut Duo, pair: usize, cost: PathCost) {
    set_cost_of(duo, Side::A, pair, cost);
}

fn set_cost_of(duo: &mut Duo, side: Side, pair: usize, cost: PathCost) {
    let (now, address) = (duo.now, duo.setup.address(side, pair));
    duo.nodes[side.index()].try_association_mut().expect("it is open").set_local_cost(now, address, cost);
    duo.settle();
}

fn cost(duo: &Duo, side: Side, pair: usize) -> PathCost {
    let (local, remote) = (duo.setup.address(side, pair), duo.setup.address(side.other(), pair));
    let node = &duo.nodes[side.index()];
    node.association().paths()[node.path_of(local, remote)].cost
}

/// Returns the pair of links that a packet uses.
fn pair_of(duo: &Duo, packet: &Packet) -> usize {
    (0..duo.setup.pairs)
        .find(|pair| Side::BOTH.iter().any(|side| duo.setup.address(*side, *pair) == packet.source))
        .expect("an address of a pair")
}

/// Counts the packets with DATA of a side on a pair since this time.
fn data_packets(duo: &Duo, from: Side, pair: usize, since: Time) -> usize {
    let kept = duo.kept.iter().flatten();
    let of_side = kept.filter(|(at, packet)| *at >= since && packet.from == from);
    of_side.filter(|(_, packet)| !sight::tsns(packet).is_empty() && pair_of(duo, packet) == pair).count()
}

fn reports_cost(packet: &Packet) -> bool {
    sight::holds(packet, |chunk| matches!(chunk, Chunk::Heartbeat(view) if view.path_cost().is_some()))
}

fn metered() -> Duo {
    let mut duo = Duo::connected(setup());
    duo.kept = Some(Vec::new());
    set_cost(&mut duo, 1, PathCost::Metered);
    duo.run(Span::from_secs(1));
    duo
}

#[test]
fn cost_of_one_side_is_seen_by_both() {
    let duo = metered();
    for side in Side::BOTH {
        assert_eq!(cost(&duo, side, 0), PathCost::Free, "{side:?}");
        assert_eq!(cost(&duo, side, 1), PathCost::Metered, "{side:?}");
    }
}

#[test]
fn metered_path_carries_no_data_of_either_side_that_fits_free_paths() {
    let mut duo = metered();
    let since = duo.now;
    for _ in 0..100 {
        for side in Side::BOTH {
            duo.send_all(side, 2_000, 1);
        }
        duo.run(Span::from_millis(60));
    }
    for side in Side::BOTH {
        assert!(duo.all_arrived(side));
        assert!(data_packets(&duo, side, 0, since) > 100, "{side:?}");
        assert_eq!(data_packets(&duo, side, 1, since), 0, "{side:?}");
    }
}

#[test]
fn metered_path_carries_data_of_both_sides_while_free_path_is_cut() {
    let mut duo = metered();
    duo.cut(0, true);
    let since = duo.now;
    for side in Side::BOTH {
        duo.send_all(side, 2_000, 20);
    }
    assert!(duo.run_until(Span::from_secs(20), |duo| Side::BOTH.iter().all(|side| duo.all_arrived(*side))));
    for side in Side::BOTH {
        assert!(data_packets(&duo, side, 1, since) > 0, "{side:?}");
    }
    duo.cut(0, false);
    duo.run(Span::from_secs(200));
    let since = duo.now;
    for side in Side::BOTH {
        duo.send_all(side, 2_000, 3);
    }
    duo.run(Span::from_secs(2));
    for side in Side::BOTH {
        assert!(duo.all_arrived(side));
        let free = &duo.nodes[side.index()].association().paths()[0];
        let state = (free.state, free.error_count);
        assert_eq!(data_packets(&duo, side, 1, since), 0, "{side:?} after the free path returned: {state:?}");
    }
}

#[test]
fn bulk_data_uses_metered_path_after_a_second_of_full_windows() {
    let mut duo = Duo::connected(setup().with(|config| config.recv_buffer_bytes = 4 << 20));
    duo.kept = Some(Vec::new());
    set_cost(&mut duo, 1, PathCost::Metered);
    duo.run(Span::from_secs(1));
    // Losses keep the window below the peer's.
    duo.link(0).loss = 20;
    let since = duo.now;
    duo.send_all(Side::A, 2_000, 2_000);
    duo.run(Span::from_millis(900));
    assert_eq!(data_packets(&duo, Side::A, 1, since), 0);
    duo.run(Span::from_secs(2));
    assert!(data_packets(&duo, Side::A, 1, since) > 0);
}

#[test]
fn lost_report_of_a_cost_is_repeated_after_rto() {
    let mut duo = Duo::connected(setup());
    let mut lost = 0;
    duo.network.set_filter(move |packet| {
        let is_lost = lost < 2 && reports_cost(packet);
        lost += usize::from(is_lost);
        !is_lost
    });
    set_cost(&mut duo, 1, PathCost::Backup);
    duo.run(Span::from_millis(500));
    assert_eq!(cost(&duo, Side::B, 1), PathCost::Free);
    duo.run(Span::from_secs(10));
    assert_eq!(cost(&duo, Side::B, 1), PathCost::Backup);
}

#[test]
fn path_that_becomes_free_is_reported_again_like_other_costs() {
    let mut duo = metered();
    set_cost(&mut duo, 1, PathCost::Free);
    duo.run(Span::from_secs(1));
    assert_eq!(cost(&duo, Side::B, 1), PathCost::Free);
    duo.kept = Some(Vec::new());
    duo.run(Span::from_secs(120));
    let reports = duo.kept.iter().flatten().filter(|(_, packet)| reports_cost(packet));
    assert!(reports.count() >= 3, "a late report of the earlier cost is corrected");
}

#[test]
fn cost_that_is_lifted_before_its_acknowledgement_is_reported_as_free() {
    let mut duo = Duo::connected(setup());
    duo.run(Span::from_secs(1));
    // B receives the report, and its acknowledgement is lost.
    duo.network.set_filter(|packet| {
        packet.from == Side::A || !sight::holds(packet, |chunk| matches!(chunk, Chunk::HeartbeatAck(_)))
    });
    set_cost(&mut duo, 1, PathCost::Backup);
    duo.run(Span::from_millis(200));
    assert_eq!(cost(&duo, Side::B, 1), PathCost::Backup);
    duo.network.set_filter(|_| true);
    set_cost(&mut duo, 1, PathCost::Free);
    duo.run(Span::from_millis(500));
    assert_eq!(cost(&duo, Side::B, 1), PathCost::Free);
}

#[test]
fn path_without_a_cost_reports_none() {
    let mut duo = Duo::connected(setup());
    duo.kept = Some(Vec::new());
    duo.run(Span::from_secs(120));
    assert!(duo.kept.iter().flatten().all(|(_, packet)| !reports_cost(packet)));
}

#[test]
fn cost_set_before_the_handshake_reaches_the_peer() {
    let mut duo = Duo::new(setup());
    duo.connect();
    set_cost(&mut duo, 0, PathCost::Metered);
    set_cost(&mut duo, 1, PathCost::Backup);
    duo.run(Span::from_secs(3));
    for side in Side::BOTH {
        assert_eq!(cost(&duo, side, 0), PathCost::Metered, "{side:?}");
        assert_eq!(cost(&duo, side, 1), PathCost::Backup, "{side:?}");
    }
}

#[test]
fn undefined_cost_of_a_peer_is_ignored() {
    let mut duo = Duo::connected(setup());
    duo.network.set_tampering(|packet| {
        let parameter = [0xBF, 0x70, 0, 5];
        if let Some(at) = packet.bytes.windows(4).position(|bytes| bytes == parameter) {
            packet.bytes[at + 4] = 3;
            fix_checksum(&mut packet.bytes);
        }
        true
    });
    set_cost(&mut duo, 1, PathCost::Metered);
    duo.run(Span::from_secs(5));
    assert_eq!(cost(&duo, Side::A, 1), PathCost::Metered);
    assert_eq!(cost(&duo, Side::B, 1), PathCost::Free);
}

#[test]
fn peer_cannot_move_data_to_a_path_with_an_own_cost() {
    let mut duo = metered();
    set_cost_of(&mut duo, Side::B, 0, PathCost::Backup);
    duo.run(Span::from_secs(1));
    assert_eq!(cost(&duo, Side::A, 0), PathCost::Free);
    assert_eq!(cost(&duo, Side::A, 1), PathCost::Metered);
}

#[test]
fn cost_of_a_path_that_this_side_has_removed_sets_no_other() {
    let mut duo = Duo::connected(setup());
    let now = duo.now;
    let b = duo.nodes[Side::B.index()].try_association_mut().expect("it is open");
    b.remove_path(now, PathId::new(1)).expect("it has another");
    set_cost(&mut duo, 1, PathCost::Backup);
    duo.run(Span::from_secs(5));
    assert_eq!(cost(&duo, Side::B, 0), PathCost::Free);
}

#[test]
fn peer_that_makes_every_path_a_backup_gets_data_nevertheless() {
    let mut duo = metered();
    set_cost(&mut duo, 0, PathCost::Backup);
    set_cost(&mut duo, 1, PathCost::Backup);
    duo.run(Span::from_secs(1));
    duo.send_all(Side::B, 2_000, 20);
    duo.run(Span::from_secs(5));
    assert!(duo.all_arrived(Side::B));
}

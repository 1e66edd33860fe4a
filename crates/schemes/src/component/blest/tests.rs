//! Tests of BLEST's estimate, its check of the send window, and the steps of lambda, each computed by hand.

use super::*;
use crate::testing::{M, World, bytes, path};
use anabranch_core::PathState;
use anabranch_core::policy::{SentTransmission, WaitFor};
use anabranch_core::profile::Profile;
use anabranch_core::time::Span;
use anabranch_core::units::WindowBytes;

const PUBLISHED: BlestRules = BlestRules {
    lambda: 1.2,
    least: 1.0,
    most: 1.3,
    up: 0.04,
    down: 0.01,
    slow_start: true,
    evidence: BlockingEvidence::Any,
};

/// Creates a full path of 20 ms with a window of ten chunks in congestion avoidance, and one of 100 ms with two chunks in flight.
fn world(peer_window: u64) -> World {
    let mut world = World::new(Profile::rfc9260_multipath(), 2);
    for (facts, (rtt, flight)) in world.paths.iter_mut().zip([(20, 10), (100, 2)]) {
        facts.rtt.smoothed = Some(Span::from_millis(rtt));
        facts.rtt.min = facts.rtt.smoothed;
        facts.cwnd = bytes(10 * M);
        facts.ssthresh = bytes(5 * M);
        facts.in_flight = bytes(flight * M);
    }
    world.association.peer_window = WindowBytes::new(peer_window);
    world
}

fn waits(world: &mut World, scheduler: &mut Blest) -> bool {
    match world.pick(scheduler).choice {
        Pick::Wait(WaitFor::Path(id)) if id == path(0) => true,
        Pick::Path(id) if id == path(1) => false,
        other => panic!("{other:?}"),
    }
}

/// Returns lambda in thousandths after a pick one round trip of the slow path later.
fn next_lambda(world: &mut World, scheduler: &mut Blest) -> u32 {
    world.now += Span::from_millis(100);
    world.pick(scheduler);
    (scheduler.lambda * 1000.0).round() as u32
}

/// Returns a scheduler after its first pick, from which steps are counted.
fn begun(rules: BlestRules, world: &mut World) -> Blest {
    let mut scheduler = Blest::new(rules);
    world.pick(&mut scheduler);
    scheduler
}

fn retransmitted_early(world: &mut World, scheduler: &mut Blest, previous_path: Option<PathId>) {
    let kind = SendKind::HeadOfLine;
    let sent = SentTransmission { path: path(0), previous_path, tsn: 1, bytes: bytes(M), kind };
    world.dispatch(scheduler, &Event::Sent(&sent));
}

#[test]
fn the_fastest_path_is_used_while_it_has_room() {
    let mut world = world(0);
    world.paths[0].in_flight = bytes(9 * M);
    assert_eq!(world.pick(&mut Blest::new(PUBLISHED)).choice, Pick::Path(path(0)));
}

#[test]
fn in_congestion_avoidance_the_fast_window_grows_by_a_chunk_per_round() {
    // r = 100/20 = 5; X = 1468 (10 + 4/2) 5 = 88080; 1.2 X = 105696.
    let decision = world(90_000).pick(&mut Blest::new(PUBLISHED));
    assert_eq!(decision.reason.figure, "wanted_by_fastest_bytes");
    assert!((decision.reason.value - 105_696.0).abs() < 1e-6, "{:?}", decision.reason);
}

#[test]
fn fractional_ratio_is_not_rounded() {
    // r = 50/20 = 2.5; X = 1468 (10 + 1.5/2) 2.5 = 39452.5; 1.2 X = 47343.
    let mut world = world(90_000);
    world.paths[1].rtt.smoothed = Some(Span::from_millis(50));
    let value = world.pick(&mut Blest::new(PUBLISHED)).reason.value;
    assert!((value - 47_343.0).abs() < 1e-6, "{value}");
}

#[test]
fn in_slow_start_the_fast_window_doubles_in_every_round_that_has_begun() {
    for (slow_ms, expected) in [
        // r = 5: 14680 (2^5 - 1) = 455080; times 1.2.
        (100, 546_096.0),
        // r = 2.5, that is, three rounds: 14680 (2^3 - 1) = 102760; times 1.2.
        (50, 123_312.0),
        // r = 1000, limited to 16: 14680 (2^16 - 1) = 962053800; times 1.2.
        (20_000, 1_154_464_560.0),
    ] {
        let mut world = world(90_000);
        world.paths[0].ssthresh = bytes(10 * M);
        world.paths[1].rtt.smoothed = Some(Span::from_millis(slow_ms));
        let value = world.pick(&mut Blest::new(PUBLISHED)).reason.value;
        assert!((value - expected).abs() < 1e-3, "{slow_ms} ms: {value}");
    }
}

#[test]
fn without_the_variant_slow_start_is_estimated_as_congestion_avoidance() {
    let mut world = world(90_000);
    world.paths[0].ssthresh = bytes(10 * M);
    let value = world.pick(&mut Blest::new(BlestRules { slow_start: false, ..PUBLISHED })).reason.value;
    assert!((value - 105_696.0).abs() < 1e-6, "{value}");
}

#[test]
fn the_slow_path_is_left_unused_if_the_fast_one_would_miss_the_window() {
    // 12 outstanding chunks are 17616 B, and 2 + 1 chunks on the slow path 4404 B: 13212 B and the peer's window are left to the
    // fast path. It wants 105696 B, so 92484 B of the peer's window just suffice.
    assert!(!waits(&mut world(92_485), &mut Blest::new(PUBLISHED)));
    assert!(waits(&mut world(92_483), &mut Blest::new(PUBLISHED)));
}

#[test]
fn larger_slow_flight_keeps_the_window_and_shrinks_the_fast_share() {
    let mut world = world(92_485 - 3 * M);
    world.paths[1].in_flight = bytes(5 * M);
    // Its data is added to the send window and subtracted from it: 92485 - 4404 + 22020 - 8808 = 101293 < 105696.
    assert!(waits(&mut world, &mut Blest::new(PUBLISHED)));
}

#[test]
fn a_first_pick_begins_the_first_period_and_changes_nothing() {
    let mut world = world(90_000);
    assert_eq!((begun(PUBLISHED, &mut world).lambda * 1000.0).round(), 1200.0);
}

#[test]
fn lambda_steps_down_once_in_each_round_trip_of_the_slow_path() {
    let mut world = world(90_000);
    let mut scheduler = begun(PUBLISHED, &mut world);
    world.now += Span::from_millis(99);
    world.pick(&mut scheduler);
    assert_eq!(scheduler.lambda, 1.2);
    world.now += Span::from_millis(1);
    world.pick(&mut scheduler);
    world.pick(&mut scheduler);
    assert_eq!((scheduler.lambda * 1000.0).round(), 1190.0);
    // The minimum sample counts, not the smoothed time.
    world.paths[1].rtt.min = Some(Span::from_millis(60));
    world.now += Span::from_millis(60);
    world.pick(&mut scheduler);
    assert_eq!((scheduler.lambda * 1000.0).round(), 1180.0);
    // Without a minimum the smoothed time counts.
    world.paths[1].rtt.min = None;
    world.now += Span::from_millis(99);
    world.pick(&mut scheduler);
    assert_eq!((scheduler.lambda * 1000.0).round(), 1180.0);
}

#[test]
fn lambda_steps_up_after_blocking_and_stays_within_its_bounds() {
    let mut world = world(90_000);
    let mut scheduler = begun(PUBLISHED, &mut world);
    let mut steps = Vec::new();
    for _ in 0..4 {
        world.dispatch(&mut scheduler, &Event::Blocked { hole: Some(path(1)) });
        steps.push(next_lambda(&mut world, &mut scheduler));
    }
    assert_eq!(steps, [1240, 1280, 1300, 1300]);
    let down: Vec<u32> = (0..32).map(|_| next_lambda(&mut world, &mut scheduler)).collect();
    assert_eq!(down[..3], [1290, 1280, 1270]);
    assert_eq!(down[28..], [1010, 1000, 1000, 1000]);
}

#[test]
fn blocking_is_forgotten_once_it_has_been_answered() {
    let mut world = world(90_000);
    let mut scheduler = begun(PUBLISHED, &mut world);
    world.dispatch(&mut scheduler, &Event::Blocked { hole: Some(path(1)) });
    assert_eq!(next_lambda(&mut world, &mut scheduler), 1240);
    assert_eq!(next_lambda(&mut world, &mut scheduler), 1230);
}

#[test]
fn blocking_by_the_fastest_path_does_not_raise_lambda() {
    let mut world = world(90_000);
    let mut scheduler = begun(PUBLISHED, &mut world);
    for hole in [None, Some(path(0))] {
        world.dispatch(&mut scheduler, &Event::Blocked { hole });
        retransmitted_early(&mut world, &mut scheduler, hole);
    }
    assert!(!scheduler.blocked);
}

#[test]
fn evidence_is_counted_as_configured() {
    let mut world = world(90_000);
    for (evidence, by_window, by_retransmission) in [
        (BlockingEvidence::Any, true, true),
        (BlockingEvidence::ClosedWindow, true, false),
        (BlockingEvidence::OpportunisticRetransmission, false, true),
    ] {
        let rules = BlestRules { evidence, ..PUBLISHED };
        let mut scheduler = Blest::new(rules);
        world.dispatch(&mut scheduler, &Event::Blocked { hole: Some(path(1)) });
        assert_eq!(scheduler.blocked, by_window, "{evidence:?}");
        let mut scheduler = Blest::new(rules);
        retransmitted_early(&mut world, &mut scheduler, Some(path(1)));
        assert_eq!(scheduler.blocked, by_retransmission, "{evidence:?}");
    }
}

#[test]
fn other_transmissions_are_no_evidence() {
    let mut world = world(90_000);
    let mut scheduler = Blest::new(PUBLISHED);
    let (previous_path, kind) = (Some(path(1)), SendKind::Retransmission);
    let sent = SentTransmission { path: path(0), previous_path, tsn: 1, bytes: bytes(M), kind };
    world.dispatch(&mut scheduler, &Event::Sent(&sent));
    assert!(!scheduler.blocked);
}

#[test]
fn a_larger_lambda_waits_where_a_smaller_one_sends() {
    // 1.0 X = 88080 B and 1.3 X = 114504 B, with 90000 - 4404 + 17616 = 103212 B left.
    for (lambda, expected) in [(1.0, false), (1.3, true)] {
        let rules = BlestRules { lambda, ..PUBLISHED };
        assert_eq!(waits(&mut world(90_000), &mut Blest::new(rules)), expected, "{lambda}");
    }
}

#[test]
fn a_beginning_outside_the_bounds_is_brought_inside() {
    assert_eq!(Blest::new(BlestRules { lambda: 2.0, ..PUBLISHED }).lambda, 1.3);
    assert_eq!(Blest::new(BlestRules { lambda: 0.5, ..PUBLISHED }).lambda, 1.0);
}

#[test]
fn inactive_or_unmeasured_fast_path_is_not_awaited() {
    let mut failed = world(0);
    failed.paths[0].state = PathState::PotentiallyFailed;
    let mut unknown = world(0);
    unknown.paths[0].rtt.smoothed = None;
    for mut world in [failed, unknown] {
        assert!(!waits(&mut world, &mut Blest::new(PUBLISHED)));
    }
}

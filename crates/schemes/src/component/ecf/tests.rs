//! Tests of both inequalities of Algorithm 1 and its hysteresis, each case computed by hand.

use super::*;
use crate::testing::{M, World, bytes, path};
use anabranch_core::PathState;
use anabranch_core::policy::{Refusal, WaitFor};
use anabranch_core::profile::Profile;
use anabranch_core::time::Span;

const PUBLISHED: EcfRules = EcfRules { beta: 0.25, deviations: 1.0, whole_windows: false };

/// Creates a fast full path and a slow one with room, both with windows of ten chunks and no variation, and `chunks` to send.
fn world(fast_ms: u64, slow_ms: u64, chunks: u64) -> World {
    let mut world = World::new(Profile::rfc9260_multipath(), 2);
    for (facts, rtt) in world.paths.iter_mut().zip([fast_ms, slow_ms]) {
        facts.rtt.smoothed = Some(Span::from_millis(rtt));
        facts.cwnd = bytes(10 * M);
    }
    world.paths[0].in_flight = bytes(10 * M);
    queue(&mut world, chunks);
    world
}

/// Queues chunks of 1468 B, which carry 1452 B each.
fn queue(world: &mut World, chunks: u64) {
    world.association.queued_bytes = chunks * (M - 16);
}

fn ecf() -> EarliestCompletion {
    EarliestCompletion::new(PUBLISHED)
}

fn waits(world: &mut World, scheduler: &mut EarliestCompletion) -> bool {
    match world.pick(scheduler).choice {
        Pick::Wait(WaitFor::Path(id)) if id == path(0) => true,
        Pick::Path(id) if id == path(1) => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_fastest_path_is_used_while_it_has_room() {
    let mut world = world(20, 100, 20);
    world.paths[0].in_flight = bytes(9 * M);
    let decision = world.pick(&mut ecf());
    assert_eq!(decision.choice, Pick::Path(path(0)));
    assert_eq!((decision.reason.figure, decision.reason.value), ("srtt_ms", 20.0));
}

#[test]
fn waits_if_the_fast_path_completes_earlier_and_the_slow_cannot_help() {
    // (1 + 20/10) 20 ms = 60 ms < 100 ms, and 20/10 * 100 ms = 200 ms >= 2 * 20 ms.
    let decision = world(20, 100, 20).pick(&mut ecf());
    assert_eq!(decision.choice, Pick::Wait(WaitFor::Path(path(0))));
    assert_eq!((decision.reason.figure, decision.reason.value), ("completion_s", 0.06));
    assert_eq!(decision.refused.as_slice(), [(path(0), Refusal::WindowFull), (path(1), Refusal::Preference)]);
}

#[test]
fn large_backlog_uses_the_slow_path() {
    // (1 + 50/10) 20 ms = 120 ms >= 100 ms.
    let decision = world(20, 100, 50).pick(&mut ecf());
    assert_eq!((decision.choice, decision.reason.value), (Pick::Path(path(1)), 0.12));
}

#[test]
fn data_that_the_slow_path_completes_earlier_is_not_held_back() {
    // (1 + 3/10) 20 ms = 26 ms < 100 ms, but 3/10 * 100 ms = 30 ms < 2 * 20 ms.
    let decision = world(20, 100, 3).pick(&mut ecf());
    assert_eq!(decision.choice, Pick::Path(path(1)));
    assert!((decision.reason.value - 0.03).abs() < 1e-12, "{:?}", decision.reason);
}

#[test]
fn at_equality_the_first_test_fails_and_the_second_holds() {
    // (1 + 30/10) 125 ms = 500 ms.
    assert!(!waits(&mut world(125, 500, 30), &mut ecf()));
    // 5/10 * 500 ms = 250 ms = 2 * 125 ms.
    assert!(waits(&mut world(125, 500, 5), &mut ecf()));
}

#[test]
fn counting_whole_windows_a_little_data_waits_too() {
    // (1 + 1) 20 ms = 40 ms < 100 ms, and 1 * 100 ms >= 40 ms.
    let mut scheduler = EarliestCompletion::new(EcfRules { whole_windows: true, ..PUBLISHED });
    assert!(waits(&mut world(20, 100, 3), &mut scheduler));
}

#[test]
fn counting_whole_windows_changes_nothing_about_more_than_one() {
    for (chunks, expected) in [(20, true), (50, false)] {
        let mut scheduler = EarliestCompletion::new(EcfRules { whole_windows: true, ..PUBLISHED });
        assert_eq!(waits(&mut world(20, 100, chunks), &mut scheduler), expected, "{chunks}");
    }
}

#[test]
fn begun_wait_continues_beyond_its_starting_condition() {
    let (mut world, mut scheduler) = (world(20, 100, 45), ecf());
    // (1 + 45/10) 20 ms = 110 ms: not below 100 ms, but below 1.25 * 100 ms.
    assert!(!waits(&mut world, &mut scheduler));
    queue(&mut world, 20);
    assert!(waits(&mut world, &mut scheduler));
    queue(&mut world, 45);
    assert!(waits(&mut world, &mut scheduler));
    // (1 + 60/10) 20 ms = 140 ms is above 125 ms too and ends it.
    queue(&mut world, 60);
    assert!(!waits(&mut world, &mut scheduler));
    queue(&mut world, 45);
    assert!(!waits(&mut world, &mut scheduler));
}

#[test]
fn a_little_data_on_the_slow_path_does_not_end_the_wait() {
    let (mut world, mut scheduler) = (world(20, 100, 20), ecf());
    assert!(waits(&mut world, &mut scheduler));
    queue(&mut world, 3);
    assert!(!waits(&mut world, &mut scheduler));
    queue(&mut world, 45);
    assert!(waits(&mut world, &mut scheduler));
}

#[test]
fn without_beta_there_is_no_hysteresis() {
    let mut scheduler = EarliestCompletion::new(EcfRules { beta: 0.0, ..PUBLISHED });
    let mut world = world(20, 100, 20);
    assert!(waits(&mut world, &mut scheduler));
    queue(&mut world, 45);
    assert!(!waits(&mut world, &mut scheduler));
}

#[test]
fn a_change_of_paths_ends_the_wait() {
    for event in [Event::PathAdded(path(1)), Event::PathRemoved(path(1))] {
        let (mut world, mut scheduler) = (world(20, 100, 20), ecf());
        assert!(waits(&mut world, &mut scheduler));
        world.dispatch(&mut scheduler, &event);
        queue(&mut world, 45);
        assert!(!waits(&mut world, &mut scheduler));
    }
}

#[test]
fn larger_variation_favours_waiting_in_the_first_test() {
    // 110 ms < 100 ms + 15 ms, the larger of 5 ms and 15 ms; and 450 ms >= 40 ms + 15 ms.
    for (deviations, expected) in [(1.0, true), (0.0, false), (0.5, false)] {
        let mut scheduler = EarliestCompletion::new(EcfRules { deviations, ..PUBLISHED });
        let mut world = world(20, 100, 45);
        world.paths[0].rtt.variance = Some(Span::from_millis(5));
        world.paths[1].rtt.variance = Some(Span::from_millis(15));
        assert_eq!(waits(&mut world, &mut scheduler), expected, "{deviations}");
    }
}

#[test]
fn larger_variation_favours_sending_in_the_second_test() {
    // 5/10 * 100 ms = 50 ms >= 40 ms, but not 40 ms + 15 ms.
    let mut world = world(20, 100, 5);
    assert!(waits(&mut world, &mut ecf()));
    world.paths[0].rtt.variance = Some(Span::from_millis(15));
    assert!(!waits(&mut world, &mut ecf()));
}

#[test]
fn the_windows_of_both_paths_count() {
    // Half the window on the fast path: (1 + 20/5) 20 ms = 100 ms is not below 100 ms.
    let mut small = world(20, 100, 20);
    small.paths[0].cwnd = bytes(5 * M);
    assert!(!waits(&mut small, &mut ecf()));
    // Ten times the window on the slow path: 20/100 * 100 ms = 20 ms < 40 ms.
    let mut wide = world(20, 100, 20);
    wide.paths[1].cwnd = bytes(100 * M);
    assert!(!waits(&mut wide, &mut ecf()));
}

#[test]
fn of_several_slow_paths_the_fastest_is_weighed() {
    let mut world = World::new(Profile::rfc9260_multipath(), 3);
    for (facts, rtt) in world.paths.iter_mut().zip([20, 100, 30]) {
        facts.rtt.smoothed = Some(Span::from_millis(rtt));
        facts.cwnd = bytes(10 * M);
    }
    world.paths[0].in_flight = bytes(10 * M);
    queue(&mut world, 20);
    // (1 + 20/10) 20 ms = 60 ms >= 30 ms.
    assert_eq!(world.pick(&mut ecf()).choice, Pick::Path(path(2)));
}

#[test]
fn inactive_or_unmeasured_fast_path_is_not_awaited() {
    let mut failed = world(20, 100, 20);
    failed.paths[0].state = PathState::PotentiallyFailed;
    let mut unknown = world(20, 100, 20);
    unknown.paths[0].rtt.smoothed = None;
    for mut world in [failed, unknown] {
        assert!(!waits(&mut world, &mut ecf()));
    }
}

//! Tests of STTF's rounds in both phases, its choice and its plans, each computed by hand.

use super::*;
use crate::testing::{M, World, bytes, path};
use anabranch_core::PathState;
use anabranch_core::profile::Profile;

const SMOOTHED: ShortestTransfer =
    ShortestTransfer::new(TransferRtt::Smoothed, Replanning::EverySendOpportunity);

/// Creates paths of 20 ms and 100 ms with windows of four chunks in slow start. The first is full, and `bound` chunks wait there.
fn world(bound: u64) -> World {
    let mut world = World::new(Profile::rfc9260_multipath(), 2);
    for (facts, rtt) in world.paths.iter_mut().zip([20, 100]) {
        facts.rtt.smoothed = Some(Span::from_millis(rtt));
        facts.cwnd = bytes(4 * M);
        facts.ssthresh = bytes(1000 * M);
    }
    world.paths[0].in_flight = bytes(4 * M);
    world.paths[0].bound = bytes(bound * M);
    world
}

/// Returns the rounds of a path with these figures in chunks.
fn rounds(cwnd: u64, ssthresh: u64, flight: u64) -> Rounds {
    let mut world = World::new(Profile::rfc9260_multipath(), 1);
    world.paths[0].cwnd = bytes(cwnd * M);
    world.paths[0].ssthresh = bytes(ssthresh * M);
    world.paths[0].in_flight = bytes(flight * M);
    Rounds::of(&world.paths[0], &world.view())
}

fn round_of(cwnd: u64, ssthresh: u64, flight: u64, ahead: u64) -> u64 {
    rounds(cwnd, ssthresh, flight).first_beyond(ahead * M)
}

#[test]
fn data_within_the_free_window_is_sent_in_the_first_round() {
    // 4 - 1 = 3 are free; then 8 in the next round make 11.
    assert_eq!([0, 2, 3, 10, 11].map(|ahead| round_of(4, 100, 1, ahead)), [0, 0, 1, 1, 2]);
}

#[test]
fn the_window_doubles_per_round_in_slow_start() {
    // Full: 8, 8+16 = 24, 24+32 = 56 are sent after rounds 1, 2, 3.
    assert_eq!([0, 7, 8, 23, 24, 55, 56].map(|ahead| round_of(4, 100, 4, ahead)), [1, 1, 2, 2, 3, 3, 4]);
}

#[test]
fn window_grows_by_a_chunk_per_round_in_congestion_avoidance() {
    // Full: 11, 11+12 = 23, 23+13 = 36.
    assert_eq!([0, 10, 11, 22, 23, 35, 36].map(|ahead| round_of(10, 5, 10, ahead)), [1, 1, 2, 2, 3, 3, 4]);
}

#[test]
fn slow_start_ends_one_chunk_above_ssthresh() {
    // 4, then 8, then not 16 but 10+1 = 11, then 12: 8, 19, 31.
    assert_eq!([7, 8, 18, 19, 30, 31].map(|ahead| round_of(4, 10, 4, ahead)), [1, 2, 2, 3, 3, 4]);
    // 4, 8, 16, then 17: 8, 24, 41.
    assert_eq!([23, 24, 40, 41].map(|ahead| round_of(4, 16, 4, ahead)), [2, 3, 3, 4]);
    // At ssthresh the next window is one chunk above it.
    assert_eq!([4, 5].map(|ahead| round_of(4, 4, 4, ahead)), [1, 2]);
}

#[test]
fn more_in_flight_than_the_window_leaves_nothing_free() {
    assert_eq!([0, 8].map(|ahead| round_of(4, 100, 9, ahead)), [1, 2]);
}

#[test]
fn a_last_packet_may_overshoot_the_window() {
    // 4380 B allow three chunks by the rule of RFC 9260 section 6.1 B, since 2936 B are less than 4380 B.
    let world = World::new(Profile::rfc9260_multipath(), 1);
    let round = |ahead| Rounds::of(&world.paths[0], &world.view()).first_beyond(ahead);
    assert_eq!([2 * M, 4379, 4380].map(round), [0, 0, 1]);
}

#[test]
fn the_closed_form_agrees_with_going_round_by_round() {
    for (cwnd, ssthresh) in [(1, 0), (2, 1), (10, 3), (37, 36), (4, 30)] {
        for ahead in (0..3_000_000).step_by(7919) {
            let mut stepped = rounds(cwnd, ssthresh, cwnd);
            while stepped.capacity <= ahead {
                stepped.advance();
            }
            assert_eq!(rounds(cwnd, ssthresh, cwnd).first_beyond(ahead), stepped.number, "{cwnd} {ahead}");
        }
    }
}

#[test]
fn a_path_without_a_window_begins_with_one_chunk() {
    // Nothing is free; then 2, 2+4 = 6.
    assert_eq!([0, 1, 2, 5, 6].map(|ahead| round_of(0, 100, 0, ahead)), [1, 1, 2, 2, 3]);
}

#[test]
fn the_fast_path_is_queued_on_until_the_slow_one_is_earlier() {
    // On the slow path a chunk arrives after 50 ms, on the fast one after 20 ms (rounds + 0.5): 30 ms with less than 8 ahead, 50 ms
    // with less than 24, and then 70 ms.
    let figure = |bound| {
        let decision = world(bound).pick(&mut { SMOOTHED });
        (decision.choice, decision.reason.value)
    };
    assert_eq!(figure(0), (Pick::Bind(path(0)), 30.0));
    assert_eq!(figure(7), (Pick::Bind(path(0)), 30.0));
    assert_eq!(figure(23), (Pick::Bind(path(0)), 50.0));
    assert_eq!(figure(24), (Pick::Path(path(1)), 50.0));
}

#[test]
fn a_window_with_room_is_used_at_once() {
    let mut world = world(0);
    world.paths[0].in_flight = bytes(3 * M);
    let decision = world.pick(&mut { SMOOTHED });
    assert_eq!((decision.choice, decision.reason.value), (Pick::Path(path(0)), 10.0));
}

#[test]
fn latest_sample_is_used_if_configured() {
    let mut world = world(0);
    world.paths[0].rtt.latest = Some(Span::from_millis(80));
    world.paths[1].rtt.latest = Some(Span::from_millis(100));
    // 80 ms * 1.5 = 120 ms against 50 ms.
    let latest = &mut ShortestTransfer::new(TransferRtt::Latest, Replanning::EverySendOpportunity);
    assert_eq!(world.pick(latest).choice, Pick::Path(path(1)));
    assert_eq!(world.pick(&mut { SMOOTHED }).choice, Pick::Bind(path(0)));
}

#[test]
fn a_plan_that_still_holds_is_kept() {
    // 8 chunks after 30 ms and 16 after 50 ms, when the fast path is the first of equals.
    assert!(!{ SMOOTHED }.replan(&world(24).view()));
    assert!(!{ SMOOTHED }.replan(&world(0).view()));
}

#[test]
fn slower_path_returns_planned_chunks() {
    let mut world = world(24);
    world.paths[0].rtt.smoothed = Some(Span::from_millis(30));
    // 8 after 45 ms on the first path, 4 after 50 ms on the second, the other 12 after 75 ms on the first: 20 and 4.
    assert!({ SMOOTHED }.replan(&world.view()));
}

#[test]
fn a_difference_of_one_chunk_is_not_worth_a_new_plan() {
    let mut world = world(24);
    world.paths[0].rtt.smoothed = Some(Span::from_millis(30));
    world.paths[1].in_flight = bytes(3 * M);
    assert!(!{ SMOOTHED }.replan(&world.view()), "23 and 1");
    world.paths[1].in_flight = bytes(2 * M);
    assert!({ SMOOTHED }.replan(&world.view()), "22 and 2");
}

#[test]
fn new_plan_omits_paths_beyond_share_or_out_of_service() {
    let slower = || {
        let mut world = world(24);
        world.paths[0].rtt.smoothed = Some(Span::from_millis(30));
        world
    };
    let mut no_share = slower();
    no_share.paths[1].within_share = false;
    let mut failed = slower();
    failed.paths[1].state = PathState::PotentiallyFailed;
    for world in [no_share, failed] {
        assert!(!{ SMOOTHED }.replan(&world.view()));
    }
}

#[test]
fn a_path_that_is_not_measured_is_planned_with_its_free_window_only() {
    let mut world = world(24);
    world.paths[1].rtt.smoothed = None;
    world.paths[1].in_flight = bytes(3 * M);
    assert!(!{ SMOOTHED }.replan(&world.view()), "23 and 1");
    world.paths[1].in_flight = bytes(0);
    assert!({ SMOOTHED }.replan(&world.view()), "20 and 4");
    world.paths[0].rtt.smoothed = None;
    assert!(!{ SMOOTHED }.replan(&world.view()), "24 chunks have no better place than where they are");
}

#[test]
fn placing_chunks_one_by_one_gives_the_plan() {
    let mut world = World::new(Profile::rfc9260_multipath(), 3);
    for (facts, (rtt, cwnd, ssthresh)) in world.paths.iter_mut().zip([(21, 3, 7), (50, 10, 5), (170, 6, 100)])
    {
        facts.rtt.smoothed = Some(Span::from_millis(rtt));
        facts.cwnd = bytes(cwnd * M + 100);
        facts.ssthresh = bytes(ssthresh * M);
        facts.in_flight = facts.cwnd;
    }
    for _ in 0..300 {
        let Pick::Bind(id) = world.pick(&mut { SMOOTHED }).choice else { panic!("all are full") };
        world.paths[id.index()].bound += bytes(M);
        assert!(!{ SMOOTHED }.replan(&world.view()));
    }
    assert!(world.paths.iter().all(|facts| !facts.bound.is_zero()));
}

#[test]
fn plans_are_compared_once_in_the_least_round_trip_or_never() {
    // Bound data is distributed as in the test above: 22 and 2, where 23 and 1 would be correct or better.
    let mut world = world(24);
    world.paths[0].bound = bytes(0);
    let [mut often, mut seldom, mut never] =
        [Replanning::EverySendOpportunity, Replanning::EveryRoundTrip, Replanning::Never]
            .map(|replanning| ShortestTransfer::new(TransferRtt::Smoothed, replanning));
    let least = world.paths.iter().filter_map(|path| path.rtt.smoothed).min().expect("measured paths");
    let answers = [&mut often, &mut seldom, &mut never].map(|one| one.replan(&world.view()));
    assert_eq!(answers[0], answers[1]);
    assert!(!answers[2]);
    world.now += least - Span::from_nanos(1);
    assert!(!seldom.is_due(&world.view()) && often.is_due(&world.view()) && !never.is_due(&world.view()));
    world.now += Span::from_nanos(1);
    assert!(seldom.is_due(&world.view()));
    assert!(!seldom.is_due(&world.view()), "once");
}

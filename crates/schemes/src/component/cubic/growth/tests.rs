use super::*;
use crate::component::cubic::curve::{ALPHA, BETA, cube_root};
use crate::congestion::testing::{grow, grown, paths};
use crate::testing::{M, World, bytes, path};
use anabranch_core::policy::{LossCause, PathAck};
use anabranch_core::time::Time;

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn dispatch(rule: &mut CubicGrowth, world: &World, event: &Event<'_>) {
    rule.on_event(event, &world.view());
}

fn lose(rule: &mut CubicGrowth, world: &mut World, cause: LossCause) {
    dispatch(rule, world, &Event::LossEvent { path: path(0), cause });
    let cut = (BETA * world.paths[0].cwnd.get() as f64) as u64;
    world.paths[0].cwnd = bytes(cut);
    world.paths[0].ssthresh = bytes(cut - 1);
}

/// Returns the window after the time from `from` to `to` in milliseconds, with a window acknowledged per round trip.
fn after(rule: &mut CubicGrowth, world: &mut World, from: u64, to: u64) -> u64 {
    let rtt = world.paths[0].rtt.smoothed.expect("it is set").as_nanos() / 1_000_000;
    for ms in (from..=to).step_by(rtt as usize) {
        world.now = at(ms);
        let cwnd = world.paths[0].cwnd.get();
        grown(rule, world, 0, cwnd);
    }
    world.paths[0].cwnd.get()
}

#[test]
fn cube_roots() {
    for x in [0.0, 1e-9, 0.3, 1.0, 2.0, 27.0, 12_345.678, 1e12] {
        let root = cube_root(x);
        assert!((root * root * root - x).abs() <= 1e-12 * x.max(1e-9), "{x}: {root}");
    }
}

/// W_max of 1000 chunks, reduced to 700: K = cbrt(300 / 0.4) = 9.086 s. At K the window is 1000 chunks again.
#[test]
fn the_window_is_back_where_it_was_after_k_seconds_and_flat_around_it() {
    let mut world = paths(&[(1000 * M, 100)]);
    let mut rule = CubicGrowth::new(true);
    lose(&mut rule, &mut world, LossCause::FastRetransmit);
    let chunks = |window: u64| window as f64 / M as f64;
    // 1000 - 0.4 x (9.086 - t)^3: at 4 s (and a round trip) 1000 - 0.4 x 4.986^3 = 950.4.
    let early = chunks(after(&mut rule, &mut world, 0, 4_000));
    assert!((early - 950.4).abs() < 2.0, "{early}");
    let plateau = chunks(after(&mut rule, &mut world, 4_100, 9_000));
    assert!((plateau - 1000.0).abs() < 1.0, "{plateau}");
    // 0.4 x 4^3 = 25.6 beyond.
    let beyond = chunks(after(&mut rule, &mut world, 9_100, 13_000));
    assert!((beyond - 1025.6).abs() < 2.0, "{beyond}");
}

#[test]
fn a_small_window_grows_as_the_standard_would() {
    // W_max = 10 chunks, reduced to 7: the curve needs cbrt(3 / 0.4) = 1.96 s for 3 chunks; the standard at 20 ms needs far less.
    let mut world = paths(&[(10 * M, 20)]);
    let mut rule = CubicGrowth::new(true);
    lose(&mut rule, &mut world, LossCause::FastRetransmit);
    // 0.53 chunks per round trip until 10 chunks are reached: 6 round trips.
    let window = after(&mut rule, &mut world, 0, 100);
    assert!((window as f64 / M as f64 - (7.0 + 6.0 * ALPHA)).abs() < 0.1, "{window}");
}

#[test]
fn growth_in_a_round_trip_is_at_most_by_half() {
    let mut world = paths(&[(10 * M, 20_000)]);
    let mut rule = CubicGrowth::new(true);
    assert_eq!(after(&mut rule, &mut world, 0, 0), 11 * M, "as the standard would");
    assert_eq!(after(&mut rule, &mut world, 20_000, 20_000), 11 * M * 3 / 2, "W(20 s) is 3210 chunks");
}

#[test]
fn fast_convergence_lowers_the_target_below_the_last_maximum() {
    for (fast_convergence, aims) in [(true, 85_000.0), (false, 100_000.0)] {
        let mut rule = CubicGrowth::new(fast_convergence);
        let mut world = paths(&[(200_000, 100)]);
        lose(&mut rule, &mut world, LossCause::FastRetransmit);
        world.paths[0].cwnd = bytes(100_000);
        dispatch(&mut rule, &world, &Event::LossEvent { path: path(0), cause: LossCause::FastRetransmit });
        assert_eq!(rule.curves[0].w_max, Some(aims));
    }
}

#[test]
fn after_t3_the_curve_begins_where_congestion_avoidance_does() {
    let mut rule = CubicGrowth::new(true);
    let mut world = paths(&[(200_000, 100)]);
    lose(&mut rule, &mut world, LossCause::Timeout);
    assert!(grow(&mut rule, &world, 0, M).is_some());
    let epoch = rule.curves[0].epoch.expect("it has begun");
    assert_eq!((epoch.k, epoch.w_max), (0.0, 140_000.0));
}

#[test]
fn time_in_which_the_window_is_not_in_full_use_does_not_count() {
    let window = |idle: u64| {
        let mut world = paths(&[(1000 * M, 100)]);
        let mut rule = CubicGrowth::new(true);
        lose(&mut rule, &mut world, LossCause::FastRetransmit);
        after(&mut rule, &mut world, 0, 1_000);
        let part = PathAck { cumulative: bytes(M), in_flight_before: bytes(5 * M), ..PathAck::default() };
        for ms in (1_100..1_100 + idle).step_by(100) {
            world.now = at(ms);
            let done = SackDone { paths: &[part], new_cumulative: true, cumulative: 1 };
            dispatch(&mut rule, &world, &Event::SackDone(&done));
        }
        after(&mut rule, &mut world, 1_100 + idle, 2_000 + idle)
    };
    assert_eq!(window(0), window(60_000));
}

#[test]
fn slow_start_follows_the_standard_and_an_added_path_restarts() {
    let mut world = paths(&[(10_000, 100)]);
    world.paths[0].ssthresh = bytes(20_000);
    let mut rule = CubicGrowth::new(true);
    assert_eq!(grow(&mut rule, &world, 0, M).map(|change| change.window.cwnd), Some(bytes(10_000 + M)));
    lose(&mut rule, &mut world, LossCause::FastRetransmit);
    dispatch(&mut rule, &world, &Event::PathAdded(path(0)));
    assert_eq!(rule.curves[0].w_max, None);
}

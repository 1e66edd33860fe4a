//! Tests of OLIA with worked numbers.

use super::*;
use crate::congestion::testing::{grow, grown, paths};
use crate::testing::{M, World, bytes, path};
use anabranch_core::policy::{LossCause, PathAck, SackDone};

fn flow(index: usize, cwnd: f64, rtt: f64) -> Flow {
    Flow { path: path(index), cwnd, rtt }
}

/// Returns the alpha of each path, given l of each.
fn alphas(flows: &[Flow], bytes: &[f64], best: BestPaths) -> Vec<f64> {
    let figure = |flow: &Flow| best.figure(bytes[flow.path.index()], flow.rtt);
    flows.iter().map(|own| alpha(own.path, flows, figure)).collect()
}

const DRAFT: BestPaths = BestPaths::BytesSquaredPerRtt;
const LINUX: BestPaths = BestPaths::BytesPerRttSquared;

#[test]
fn a_best_path_that_is_not_the_widest_takes_from_the_widest() {
    // n = 2; B = {0} and M = {1}: alpha is +1/(2 x 1) and -1/(2 x 1).
    let flows = [flow(0, 10_000.0, 0.1), flow(1, 20_000.0, 0.1)];
    assert_eq!(alphas(&flows, &[50_000.0, 30_000.0], DRAFT), [0.5, -0.5]);
}

#[test]
fn best_path_with_the_widest_window_shifts_no_share() {
    let flows = [flow(0, 10_000.0, 0.1), flow(1, 20_000.0, 0.1)];
    assert_eq!(alphas(&flows, &[30_000.0, 50_000.0], DRAFT), [0.0, 0.0]);
}

#[test]
fn shares_are_divided_by_the_number_of_paths_and_of_those_in_the_set() {
    // n = 3; B = {0}, M = {1, 2}: +1/3, and -1/(3 x 2) for each of the widest.
    let flows = [flow(0, 10_000.0, 0.1), flow(1, 20_000.0, 0.1), flow(2, 20_000.0, 0.1)];
    assert_eq!(alphas(&flows, &[9000.0, 5000.0, 5000.0], DRAFT), [1.0 / 3.0, -1.0 / 6.0, -1.0 / 6.0]);
    // B = {0, 1}, M = {2}: +1/(3 x 2) for each of the best, -1/3.
    let flows = [flow(0, 10_000.0, 0.1), flow(1, 15_000.0, 0.1), flow(2, 20_000.0, 0.1)];
    assert_eq!(alphas(&flows, &[9000.0, 9000.0, 5000.0], DRAFT), [1.0 / 6.0, 1.0 / 6.0, -1.0 / 3.0]);
    // B = {0}, M = {2}: the path in neither set has 0.
    assert_eq!(alphas(&flows, &[9000.0, 8000.0, 5000.0], DRAFT), [1.0 / 3.0, 0.0, -1.0 / 3.0]);
}

#[test]
fn widest_path_among_the_best_gains_no_share() {
    // B = {0, 1}, M = {1}: B without M is {0}, so path 1 loses growth although it is among the best.
    let flows = [flow(0, 10_000.0, 0.1), flow(1, 20_000.0, 0.1)];
    assert_eq!(alphas(&flows, &[9000.0, 9000.0], DRAFT), [0.5, -0.5]);
}

#[test]
fn draft_and_linux_disagree_about_the_best_path() {
    // l^2/rtt: 10,000^2/0.1 = 1e9 and 15,000^2/0.2 = 1.125e9. l/rtt^2: 1e6 and 3.75e5. Path 0 is the narrower one.
    let flows = [flow(0, 10_000.0, 0.1), flow(1, 20_000.0, 0.2)];
    assert_eq!(alphas(&flows, &[10_000.0, 15_000.0], DRAFT), [0.0, 0.0]);
    assert_eq!(alphas(&flows, &[10_000.0, 15_000.0], LINUX), [0.5, -0.5]);
}

#[test]
fn the_bytes_between_losses_are_the_larger_of_the_last_two_counts() {
    let mut rule = OliaGrowth::new(DRAFT);
    let mut world = paths(&[(10_000, 100), (10_000, 100)]);
    let mut tell = |rule: &mut OliaGrowth, event: &Event<'_>| {
        world.with(|view, _| rule.on_event(event, view));
    };
    let mut seen = Vec::new();
    let loss = Event::LossEvent { path: path(0), cause: LossCause::FastRetransmit };
    for step in [Some(3000), Some(2000), None, Some(4000), Some(2000), None, None] {
        match step {
            Some(n) => {
                let acks = [PathAck { cumulative: bytes(n - 500), gap: bytes(500), ..PathAck::default() }];
                let done = SackDone { paths: &acks, new_cumulative: true, cumulative: 1 };
                tell(&mut rule, &Event::SackDone(&done));
            }
            None => tell(&mut rule, &loss),
        }
        seen.push(rule.losses[0].bytes());
    }
    // l2 grows to 5000, becomes l1; l2 grows to 4000 and 6000, becomes l1; an immediate loss leaves zero.
    assert_eq!(seen, [3000, 5000, 5000, 5000, 6000, 6000, 0]);
    assert_eq!(rule.losses[1], Losses::default());
    tell(&mut rule, &Event::PathAdded(path(0)));
    assert_eq!(rule.losses[0], Losses::default());
}

/// Creates two paths of 10,000 B and 20,000 B, both of 100 ms, with l as given.
fn two(l: [u64; 2]) -> (World, OliaGrowth) {
    let mut rule = OliaGrowth::new(DRAFT);
    for (losses, between) in rule.losses.iter_mut().zip(l) {
        losses.between = between;
    }
    (paths(&[(10_000, 100), (20_000, 100)]), rule)
}

#[test]
fn without_a_shift_only_the_first_term_counts() {
    let (mut world, mut rule) = two([0, 50_000]);
    // w/rtt^2 = 1e6, (sum of rates)^2 = (3e5)^2 = 9e10: 1.111e-5 x 1468 x 1468 = 23.94 B.
    assert_eq!(grown(&mut rule, &mut world, 0, M), (10_023, 0));
    // For path 1: rates 100,230 and 200,000: 2e6 / 300,230^2 x 1468^2 = 47.82 B.
    assert_eq!(grown(&mut rule, &mut world, 1, M), (20_047, 0));
}

#[test]
fn the_best_path_gains_and_the_widest_shrinks() {
    let (mut world, mut rule) = two([50_000, 0]);
    // 23.94 B + 0.5 / 10,000 x 1468 x 1468 = 107.75 B: 131.69 B.
    assert_eq!(grown(&mut rule, &mut world, 0, M), (10_131, 0));
    // 2e6 / 301,310^2 x 1468^2 = 47.47 B, less 0.5 / 20,000 x 1468^2 = 53.88 B: -6.40 B, and 20,000 - 6.40 = 19,993.6.
    assert_eq!(grown(&mut rule, &mut world, 1, M), (19_993, 0));
    // The 0.6 B left over are kept: rates 101,310 and 199,930, 1.9993e6 / 301,240^2 x 1468^2 = 47.48 B, less 53.90 B: -6.42 B.
    // 19,993.6 - 6.42 = 19,987.2.
    assert_eq!(grown(&mut rule, &mut world, 1, M), (19_987, 0));
}

#[test]
fn a_single_path_grows_by_one_chunk_per_window() {
    let mut world = paths(&[(14_680, 80)]);
    let mut rule = OliaGrowth::new(LINUX);
    let (cwnd, _) = grown(&mut rule, &mut world, 0, 14_680);
    assert!((14_680 + M - 1..=14_680 + M).contains(&cwnd), "{cwnd}");
}

#[test]
fn slow_start_is_not_coupled_and_an_unmeasured_path_grows_as_if_alone() {
    let (mut world, mut rule) = two([50_000, 0]);
    world.paths[1].ssthresh = bytes(20_000);
    assert_eq!(grow(&mut rule, &world, 1, 5000).map(|change| change.window.cwnd), Some(bytes(21_468)));
    world.paths[0].rtt.smoothed = None;
    // 1468 / 10,000 of 1468 B are 215.5 B.
    assert_eq!(grown(&mut rule, &mut world, 0, M), (10_215, 0));
}

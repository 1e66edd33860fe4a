//! Helpers for tests of rules: the windows that a [`World`] shows, and single calls of a rule.

use anabranch_core::MAX_PATHS;
use anabranch_core::policy::{LossCause, PathFacts, Window};
use anabranch_core::profile::Profile;
use anabranch_core::time::Span;

use crate::congestion::{Acknowledged, Change, Cut, Growth, PathLoss};
use crate::testing::{World, bytes, path};

/// Creates paths in congestion avoidance, each with a window in bytes and a smoothed round-trip time in milliseconds.
pub(crate) fn paths(figures: &[(u64, u64)]) -> World {
    let mut world = World::new(Profile::ns2_multipath(), figures.len());
    for (facts, &(cwnd, rtt)) in world.paths.iter_mut().zip(figures) {
        facts.cwnd = bytes(cwnd);
        facts.ssthresh = bytes(1000);
        facts.rtt.smoothed = Some(Span::from_millis(rtt));
    }
    world
}

fn window(facts: &PathFacts) -> Window {
    Window { cwnd: facts.cwnd, ssthresh: facts.ssthresh, partial_bytes_acked: facts.partial_bytes_acked }
}

fn windows(world: &World) -> [Window; MAX_PATHS] {
    std::array::from_fn(|index| world.paths.get(index).map_or(Window::default(), window))
}

/// Returns the result of a rule for `acked` bytes acknowledged on a path, all of which count in congestion avoidance.
pub(crate) fn grow(rule: &mut dyn Growth, world: &World, index: usize, acked: u64) -> Option<Change> {
    let mut windows = windows(world);
    windows[index].partial_bytes_acked += bytes(acked);
    let view = world.view();
    rule.grow(&Acknowledged { path: path(index), bytes: bytes(acked), windows: &windows, view: &view })
}

/// Like [`grow`], and applies the new window to the path. Returns its cwnd and partial bytes acked.
pub(crate) fn grown(rule: &mut dyn Growth, world: &mut World, index: usize, acked: u64) -> (u64, u64) {
    let change = grow(rule, world, index, acked);
    let facts = &mut world.paths[index];
    match change {
        Some(Change { window, .. }) => {
            facts.cwnd = window.cwnd;
            facts.partial_bytes_acked = window.partial_bytes_acked;
        }
        None => facts.partial_bytes_acked += bytes(acked),
    }
    (facts.cwnd.get(), facts.partial_bytes_acked.get())
}

/// Returns cwnd and ssthresh after a loss on a path, according to a rule.
pub(crate) fn cut(rule: &mut dyn Cut, world: &World, index: usize, cause: LossCause) -> (u64, u64) {
    let windows = windows(world);
    let view = world.view();
    let change = rule.cut(&PathLoss { path: path(index), cause, windows: &windows, view: &view });
    assert!(change.window.partial_bytes_acked.is_zero(), "{change:?}");
    (change.window.cwnd.get(), change.window.ssthresh.get())
}

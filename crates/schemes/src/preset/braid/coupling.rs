//! Coupling of the paths that experience congestion at one bottleneck (RFC 6356).
//!
//! Paths that share a bottleneck must together take the share of one flow: they grow as one flow and are reduced together. A loss
//! shows whether they share a queue, because a shared queue is then long for both paths. (RFC 8382 section 3 compares the delays of
//! paths over 50 intervals; only losses matter here, and they need no interval.)
//!
//! Paths with short queues are not coupled. Slow start fills a queue and causes losses, shared or not, and two paths that begin
//! together do so at the same time. Therefore neither its losses nor its queue count.

use anabranch_core::time::Span;
use anabranch_core::{MAX_PATHS, PathId};

use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "coupling",
    rule: text!(
        "a path is congested in competitive mode, and for max({} base, {}) after a congestion loss; two \
         congested paths are one flow if s > (1 + min(f, {})) / 2, where s = the share of one path's \
         congestion losses at which the other path's queue was long, without slow start on either (EWMA \
         with weight {}, 1 at first), f = the share of all packets that met its long queue; each of n \
         paths that are one flow counts 1 / n of the acknowledged bytes and has 1 / n of CUBIC's C and \
         alpha; all of them are reduced together",
        CONGESTED_ROUNDS,
        CONGESTED_LEAST,
        MOST_BACKGROUND,
        WEIGHT,
    ),
    file: file!(),
}];

/// Time for which a path counts as congested after a congestion loss. Beside four flows at 10 Mbit/s a path has a loss every few
/// seconds; CUBIC regains a window of 70 chunks in about four seconds.
pub(super) const CONGESTED_ROUNDS: u64 = 20;
pub(super) const CONGESTED_LEAST: Span = Span::from_secs(10);

/// Returns the share of growth of each of `congested` paths that form one flow.
pub(super) fn share_of_growth(congested: usize) -> f64 {
    1.0 / congested.max(1) as f64
}

/// EWMA weight, as in RFC 6298's smoothed round-trip time.
const WEIGHT: f64 = 1.0 / 8.0;
/// Limit of the background share. A queue that is long most of the time, as beside flows that fill it, hardly shows whose it is.
const MOST_BACKGROUND: f64 = 0.5;

/// Share of another path's congestion losses at which this path's queue was long, by the other path.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedQueue {
    long: [f64; MAX_PATHS],
}

impl Default for SharedQueue {
    /// Assumes shared queues without evidence, which does not harm other flows.
    fn default() -> Self {
        SharedQueue { long: [1.0; MAX_PATHS] }
    }
}

impl SharedQueue {
    /// Records a loss of the other path, with the state of this path's queue at that time.
    pub(super) fn other_lost(&mut self, other: PathId, long: bool) {
        let share = &mut self.long[other.index()];
        *share += WEIGHT * (f64::from(u8::from(long)) - *share);
    }

    /// Returns `true` if the other path shares the queue. An unshared queue is long at those losses only as often as at all times.
    pub(super) fn is_with(&self, other: PathId, share_of_long: f64) -> bool {
        self.long[other.index()] > 0.5 * (1.0 + share_of_long.min(MOST_BACKGROUND))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::path;

    #[test]
    fn a_path_alone_grows_in_full_and_n_paths_by_an_nth_each() {
        assert!((share_of_growth(1) - 1.0).abs() < 1e-9);
        assert!((share_of_growth(4) - 0.25).abs() < 1e-9);
        assert!((share_of_growth(0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_queue_is_shared_until_losses_on_the_other_path_find_it_short() {
        let mut queue = SharedQueue::default();
        assert!(queue.is_with(path(1), 0.3));
        (0..4).for_each(|_| queue.other_lost(path(1), false));
        assert!(!queue.is_with(path(1), 0.3));
        (0..8).for_each(|_| queue.other_lost(path(1), true));
        assert!(queue.is_with(path(1), 0.3));
    }

    #[test]
    fn queue_equally_long_without_losses_is_not_shared() {
        let mut queue = SharedQueue::default();
        (0..40).for_each(|n| queue.other_lost(path(1), n % 2 == 0));
        assert!(!queue.is_with(path(1), 0.5));
    }

    #[test]
    fn a_queue_that_is_always_long_counts_as_shared() {
        let mut queue = SharedQueue::default();
        (0..40).for_each(|n| queue.other_lost(path(1), n % 10 != 0));
        assert!(queue.is_with(path(1), 0.9));
    }
}

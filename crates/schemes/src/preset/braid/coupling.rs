//! Coupling of the paths that meet congestion at one bottleneck (RFC 6356).
//!
//! Paths that share a bottleneck must together take what one flow takes there: they grow as one flow and are cut together.
//! Whether a queue is shared shows when it loses packets: if it is, it is long for both paths then (RFC 8382 section 3 compares
//! what the paths' delays do over 50 intervals; losses are what matters here, and need no interval). Paths whose own
//! queues are short are not coupled at all. A slow start fills a queue and loses whether it is shared or not, and two that begin
//! together do so together: neither its losses nor its queue say anything.

use anabranch_core::{MAX_PATHS, PathId};

use crate::definition::Equation;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "coupling",
    rule: "a path meets congestion while it competes, and for max(20 base, 10 s) after a loss by congestion; two paths that do \
           are one flow if s > (1 + min(f, 1/2)) / 2, where s = the share of the one's losses by congestion at which the \
           other's queue was long, neither being in slow start (EWMA, weight 1 / 8, 1 at first), f = the share of all packets that met its long queue; each of n paths \
           that are one flow counts 1 / n of the bytes acknowledged and has 1 / n of CUBIC's C and alpha; a cut is for all of them",
    file: file!(),
}];

/// What each of so many paths that are one flow has of its growth.
pub(super) fn share_of_growth(congested: usize) -> f64 {
    1.0 / congested.max(1) as f64
}

/// As in RFC 6298's smoothed round-trip time.
const WEIGHT: f64 = 1.0 / 8.0;
/// A queue that is long for most of the time, as beside flows that fill it, says little of whose it is: more is not asked for.
const MOST_BACKGROUND: f64 = 0.5;

/// How often a path's queue was long when another path lost a packet to congestion, by the other path.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedQueue {
    long: [f64; MAX_PATHS],
}

impl Default for SharedQueue {
    /// Without evidence the queue is shared: that does no harm to others.
    fn default() -> Self {
        SharedQueue { long: [1.0; MAX_PATHS] }
    }
}

impl SharedQueue {
    /// The other path lost a packet, and this path's queue was long then or not.
    pub(super) fn other_lost(&mut self, other: PathId, long: bool) {
        let share = &mut self.long[other.index()];
        *share += WEIGHT * (f64::from(u8::from(long)) - *share);
    }

    /// Whether the queue is the other path's too. Otherwise it would be long at those losses as often as at all times.
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
    fn a_queue_that_is_long_at_losses_as_often_as_at_other_times_is_not_shared() {
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

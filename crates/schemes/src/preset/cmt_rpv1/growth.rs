//! Growth rule of CMT/RPv1 (Dreibholz, Becke, Pulinthanath, Rathgeb 2010): the standard's steps multiplied by the path's share of
//! all slow-start thresholds, ssthresh_i / sum of ssthresh_k.

use anabranch_core::policy::{Event, EventSet, View};

use crate::congestion::growth::pooled::grow;
use crate::congestion::growth::threshold_share;
use crate::congestion::{Acknowledged, Change, Growth};
use crate::definition::Equation;

pub(super) const RULES: &[Equation] = &[
    Equation {
        name: "slow start",
        rule: "cwnd_i grows by min(bytes_acked, M) s_i, rounded up",
        file: file!(),
    },
    Equation {
        name: "congestion avoidance",
        rule: "cwnd_i grows by M s_i, rounded up, for each window acknowledged",
        file: file!(),
    },
];

/// Growth for resource pooling by slow-start thresholds.
#[derive(Clone, Debug)]
pub struct ResourcePoolingV1Growth;

impl Growth for ResourcePoolingV1Growth {
    copied!(Growth);

    fn events(&self) -> EventSet {
        EventSet::NONE
    }

    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>) {}

    fn grow(&mut self, acknowledged: &Acknowledged<'_>) -> Option<Change> {
        let share = threshold_share(acknowledged.path, acknowledged.windows, acknowledged.view);
        grow(acknowledged, share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{grown, paths};
    use crate::testing::{World, bytes};
    use anabranch_core::PathState;

    /// Creates two paths with thresholds of 30,000 B and 10,000 B: shares of 3/4 and 1/4.
    fn two(cwnd: u64) -> World {
        let mut world = paths(&[(cwnd, 100), (cwnd, 100)]);
        world.paths[0].ssthresh = bytes(30_000);
        world.paths[1].ssthresh = bytes(10_000);
        world
    }

    #[test]
    fn slow_start_adds_the_share_of_what_was_acked_or_of_one_chunk() {
        // 3/4 of 1468 is 1101, 1/4 of 1468 is 367, 3/4 of 999 is 749.25 and rounded up 750.
        for (index, acked, cwnd) in [(0, 2936, 6101), (1, 1468, 5367), (0, 999, 5750)] {
            assert_eq!(grown(&mut ResourcePoolingV1Growth, &mut two(5000), index, acked), (cwnd, acked));
        }
    }

    #[test]
    fn congestion_avoidance_adds_the_share_of_one_chunk_per_window() {
        let mut world = two(40_000);
        assert_eq!(grown(&mut ResourcePoolingV1Growth, &mut world, 0, 39_999), (40_000, 39_999));
        assert_eq!(grown(&mut ResourcePoolingV1Growth, &mut world, 0, 2000), (41_101, 1999));
        assert_eq!(grown(&mut ResourcePoolingV1Growth, &mut world, 1, 40_000), (40_367, 0));
    }

    #[test]
    fn three_equal_paths_have_a_third_each() {
        let mut world = paths(&[(40_000, 100), (40_000, 100), (40_000, 100)]);
        // 1468 / 3 = 489.33.
        assert_eq!(grown(&mut ResourcePoolingV1Growth, &mut world, 2, 40_000).0, 40_490);
    }

    #[test]
    fn paths_out_of_service_have_no_share_and_unset_thresholds_equal_ones() {
        let mut world = two(40_000);
        world.paths[1].state = PathState::Inactive;
        assert_eq!(grown(&mut ResourcePoolingV1Growth, &mut world, 0, 40_000).0, 41_468);
        let mut world = two(40_000);
        world.paths.iter_mut().for_each(|facts| facts.ssthresh = bytes(0));
        assert_eq!(grown(&mut ResourcePoolingV1Growth, &mut world, 0, 40_000).0, 40_734);
    }
}

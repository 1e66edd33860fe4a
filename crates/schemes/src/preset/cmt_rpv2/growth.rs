//! Growth rule of CMT/RPv2 (Dreibholz, Becke, Adhari, Rathgeb 2011): the standard's steps multiplied by the path's share of all
//! rates, (cwnd_i / srtt_i) / sum of (cwnd_k / srtt_k).

use anabranch_core::policy::{Event, EventSet, View};

use crate::congestion::growth::pooled::{grow, rate_share};
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

/// Growth for resource pooling by rates.
#[derive(Clone, Debug)]
pub struct ResourcePoolingV2Growth;

impl Growth for ResourcePoolingV2Growth {
    copied!(Growth);

    fn events(&self) -> EventSet {
        EventSet::NONE
    }

    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>) {}

    fn grow(&mut self, acknowledged: &Acknowledged<'_>) -> Option<Change> {
        grow(acknowledged, rate_share(acknowledged.path, acknowledged.windows, acknowledged.view))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{grown, paths};
    use crate::testing::bytes;

    #[test]
    fn the_share_is_that_of_the_rates() {
        // Rates 10,000/0.1 = 1e5 and 60,000/0.2 = 3e5: shares of 1/4 and 3/4.
        let mut world = paths(&[(10_000, 100), (60_000, 200)]);
        assert_eq!(grown(&mut ResourcePoolingV2Growth, &mut world, 0, 10_000), (10_367, 0));
        let mut world = paths(&[(10_000, 100), (60_000, 200)]);
        assert_eq!(grown(&mut ResourcePoolingV2Growth, &mut world, 1, 60_001), (61_101, 1));
    }

    #[test]
    fn slow_start_has_the_same_share() {
        let mut world = paths(&[(10_000, 100), (60_000, 200)]);
        world.paths[0].ssthresh = bytes(20_000);
        // A quarter of 1468 is 367, a quarter of 1001 is 250.25 and rounded up 251.
        assert_eq!(grown(&mut ResourcePoolingV2Growth, &mut world, 0, 5000).0, 10_367);
        let mut world = paths(&[(10_000, 100), (60_000, 200)]);
        world.paths[0].ssthresh = bytes(20_000);
        assert_eq!(grown(&mut ResourcePoolingV2Growth, &mut world, 0, 1001).0, 10_251);
    }

    #[test]
    fn a_path_whose_round_trip_time_is_unknown_has_an_equal_share() {
        let mut world = paths(&[(10_000, 100), (60_000, 200), (20_000, 50)]);
        world.paths[0].rtt.smoothed = None;
        // 1468 / 3 rounded up.
        assert_eq!(grown(&mut ResourcePoolingV2Growth, &mut world, 0, 10_000).0, 10_490);
        // It has no rate that would reduce the share of others: 3e5 of 3e5 + 4e5.
        assert_eq!(grown(&mut ResourcePoolingV2Growth, &mut world, 1, 60_000).0, 60_000 + 630);
    }
}

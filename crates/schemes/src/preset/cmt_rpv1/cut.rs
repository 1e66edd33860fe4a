//! Reduction rule of CMT/RPv1 (Dreibholz, Becke, Pulinthanath, Rathgeb 2010; floors as in INET): the reduction is half of the sum of
//! all windows, ssthresh_i = max(cwnd_i - sum of cwnd_k / 2, M, rpMin M ssthresh_i / sum of ssthresh_k).

use anabranch_core::policy::{Event, EventSet, LossCause, Reason, View, Window};
use anabranch_core::units::ChunkBytes;

use crate::congestion::cut::Floor;
use crate::congestion::growth::{coupled_paths, part, threshold_share};
use crate::congestion::{Change, Cut, PathLoss};
use crate::definition::Equation;

pub(super) const RULES: &[Equation] = &[
    Equation {
        name: "fast retransmit",
        rule: "ssthresh = max(cwnd_i - sum of cwnd_k / 2, M, rpMin M s_i), cwnd = ssthresh",
        file: file!(),
    },
    Equation { name: "T3", rule: "the same ssthresh, cwnd = max(M, M s_i)", file: file!() },
];

/// Reduction for resource pooling by slow-start thresholds.
#[derive(Clone, Debug)]
pub struct ResourcePoolingV1Cut {
    /// rpMin: minimum threshold in chunks, multiplied by the path's share.
    pub least: f64,
    /// Floor of the threshold.
    pub floor: Floor,
}

impl Cut for ResourcePoolingV1Cut {
    copied!(Cut);

    fn events(&self) -> EventSet {
        EventSet::NONE
    }

    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>) {}

    fn cut(&mut self, loss: &PathLoss<'_>) -> Change {
        let PathLoss { path, cause, windows, view } = *loss;
        let (own, largest) = (loss.window(), loss.facts().largest_chunk);
        let share = threshold_share(path, windows, view);
        let total: ChunkBytes = coupled_paths(path, view).map(|facts| windows[facts.id.index()].cwnd).sum();
        let published = largest.max(part(largest, self.least * share));
        let floor = self.floor.bytes(published, cause, largest, view.profile);
        let ssthresh = (own.cwnd - total.over(2)).max(floor);
        let (cwnd, rule) = match cause {
            LossCause::Timeout => (largest.max(part(largest, share)), "T3 expired (RPv1)"),
            _ => (ssthresh, "reduced by half of all windows (RPv1)"),
        };
        Change {
            window: Window { cwnd, ssthresh, partial_bytes_acked: ChunkBytes::ZERO },
            reason: Reason::figure(rule, "total_cwnd_bytes", total.get() as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{cut, paths};
    use crate::testing::{World, bytes};
    use LossCause::{FastRetransmit, Rescheduled, Timeout};

    const RULE: ResourcePoolingV1Cut = ResourcePoolingV1Cut { least: 1.0, floor: Floor::Published };

    /// Creates two paths with windows of 50,000 B and 10,000 B and thresholds of 30,000 B and 10,000 B.
    fn two() -> World {
        let mut world = paths(&[(50_000, 100), (10_000, 100)]);
        world.paths[0].ssthresh = bytes(30_000);
        world.paths[1].ssthresh = bytes(10_000);
        world
    }

    #[test]
    fn path_is_cut_by_half_of_all_windows() {
        let mut rule = RULE;
        // 50,000 - 60,000 / 2 = 20,000; of 10,000 one chunk is left.
        assert_eq!(cut(&mut rule, &two(), 0, FastRetransmit), (20_000, 20_000));
        assert_eq!(cut(&mut rule, &two(), 0, Rescheduled), (20_000, 20_000));
        assert_eq!(cut(&mut rule, &two(), 1, FastRetransmit), (1468, 1468));
        assert_eq!(cut(&mut rule, &paths(&[(20_000, 100)]), 0, FastRetransmit), (10_000, 10_000), "alone");
    }

    #[test]
    fn a_time_out_has_the_same_threshold_and_one_chunk() {
        let mut rule = RULE;
        assert_eq!(cut(&mut rule, &two(), 0, Timeout), (1468, 20_000));
        assert_eq!(cut(&mut rule, &two(), 1, Timeout), (1468, 1468));
    }

    #[test]
    fn the_least_threshold_is_a_number_of_chunks_times_the_share() {
        // 6 x 1468 x 1/4 = 2202; 5 x 1468 / 4 = 1835; 2 x 1468 / 4 = 734 is below one chunk.
        for (least, expected) in [(6.0, 2202), (5.0, 1835), (2.0, 1468), (0.0, 1468)] {
            let mut rule = ResourcePoolingV1Cut { least, ..RULE };
            assert_eq!(cut(&mut rule, &two(), 1, FastRetransmit), (expected, expected), "rpMin {least}");
        }
    }

    #[test]
    fn the_profiles_floor_may_take_its_place() {
        let mut rule = ResourcePoolingV1Cut { floor: Floor::Profile, ..RULE };
        let mut world = two();
        world.profile.timeout_floor = 3;
        assert_eq!(cut(&mut rule, &world, 1, FastRetransmit), (2936, 2936));
        assert_eq!(cut(&mut rule, &world, 1, Timeout), (1468, 4404));
    }
}

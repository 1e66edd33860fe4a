//! Reduction rule of CMT/RPv2 (Dreibholz, Becke, Adhari, Rathgeb 2011; floors as in INET): with the rate B = cwnd / srtt, a path
//! loses the fraction max(1/2, sum of B_k / (2 B_i)) of its window, as if it alone had to halve the sum of all rates.

use anabranch_core::policy::{Event, EventSet, LossCause, Reason, View, Window};
use anabranch_core::units::ChunkBytes;

use crate::congestion::cut::{Floor, nearest};
use crate::congestion::growth::{Flow, Flows};
use crate::congestion::{Change, Cut, PathLoss};
use crate::definition::Equation;

pub(super) const RULES: &[Equation] = &[
    Equation {
        name: "fast retransmit",
        rule: "ssthresh = max(cwnd_i (1 - f), rpMin M), cwnd = ssthresh, with f = max(1/2, sum of B_k / (2 B_i)), B = cwnd / srtt",
        file: file!(),
    },
    Equation { name: "T3", rule: "the same ssthresh, cwnd = M", file: file!() },
];

/// Reduction for resource pooling by rates.
#[derive(Clone, Debug)]
pub struct ResourcePoolingV2Cut {
    /// rpMin: minimum threshold in chunks.
    pub least: f64,
    /// Floor of the threshold.
    pub floor: Floor,
}

impl Cut for ResourcePoolingV2Cut {
    copied!(Cut);

    fn events(&self) -> EventSet {
        EventSet::NONE
    }

    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>) {}

    fn cut(&mut self, loss: &PathLoss<'_>) -> Change {
        let PathLoss { path, cause, windows, view } = *loss;
        let (own, largest) = (loss.window(), loss.facts().largest_chunk);
        let flows = Flows::of(path, windows, view);
        // A path with an unknown rate is treated alone, and a single path is halved.
        let factor = flows.find(path).map_or(0.5, |own| factor(own, flows.all()));
        let published = nearest(largest.get() as f64 * self.least);
        let floor = self.floor.bytes(published, cause, largest, view.profile);
        let ssthresh = nearest(own.cwnd.get() as f64 * (1.0 - factor)).max(floor);
        let (cwnd, rule) = match cause {
            LossCause::Timeout => (largest, "T3 expired (RPv2)"),
            _ => (ssthresh, "reduced by half of all rates (RPv2)"),
        };
        Change {
            window: Window { cwnd, ssthresh, partial_bytes_acked: ChunkBytes::ZERO },
            reason: Reason::figure(rule, "cut_factor", factor),
        }
    }
}

/// Returns the fraction of its window that a path loses.
fn factor(own: Flow, flows: &[Flow]) -> f64 {
    let sum: f64 = flows.iter().map(Flow::rate).sum();
    (0.5 * sum / own.rate()).max(0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{cut, paths};
    use LossCause::{FastRetransmit, Rescheduled, Timeout};

    const RULE: ResourcePoolingV2Cut = ResourcePoolingV2Cut { least: 1.0, floor: Floor::Published };

    #[test]
    fn path_is_cut_by_at_most_half_of_all_rates() {
        // Rates 8e5 and 2e5: the first loses 1e6 / 1.6e6 = 0.625 of 40,000 B, the second 2.5 times its window.
        let world = paths(&[(40_000, 50), (20_000, 100)]);
        let mut rule = RULE;
        assert_eq!(cut(&mut rule, &world, 0, FastRetransmit), (15_000, 15_000));
        assert_eq!(cut(&mut rule, &world, 0, Rescheduled), (15_000, 15_000));
        assert_eq!(cut(&mut rule, &world, 1, FastRetransmit), (1468, 1468));
    }

    #[test]
    fn a_single_path_and_one_whose_rate_is_unknown_are_halved() {
        let mut world = paths(&[(40_000, 50), (20_000, 100)]);
        world.paths[1].rtt.smoothed = None;
        let mut rule = RULE;
        assert_eq!(cut(&mut rule, &world, 0, FastRetransmit), (20_000, 20_000));
        assert_eq!(cut(&mut rule, &world, 1, FastRetransmit), (10_000, 10_000));
    }

    #[test]
    fn a_time_out_has_the_same_threshold_and_one_chunk() {
        let world = paths(&[(40_000, 50), (20_000, 100)]);
        assert_eq!(cut(&mut ResourcePoolingV2Cut { ..RULE }, &world, 0, Timeout), (1468, 15_000));
    }

    #[test]
    fn the_least_threshold_is_a_number_of_chunks_or_the_profiles() {
        let mut world = paths(&[(40_000, 50), (20_000, 100)]);
        world.profile.timeout_floor = 3;
        let mut rule = ResourcePoolingV2Cut { least: 2.5, ..RULE };
        assert_eq!(cut(&mut rule, &world, 1, FastRetransmit), (3670, 3670));
        let mut rule = ResourcePoolingV2Cut { floor: Floor::Profile, ..RULE };
        assert_eq!(cut(&mut rule, &world, 1, FastRetransmit), (2936, 2936));
        assert_eq!(cut(&mut rule, &world, 1, Timeout), (1468, 4404));
    }
}

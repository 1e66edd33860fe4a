//! BALIA's decrease (draft-walid-mptcp-congestion-control): w_r shrinks by w_r / 2 min(alpha_r, 1.5). Its increase is in
//! `growth.rs`.

use anabranch_core::policy::{Event, EventSet, LossCause, Reason, View};

use crate::congestion::cut::{after_fast_retransmit, after_timeout, nearest};
use crate::congestion::growth::Flows;
use crate::congestion::{Change, Cut, PathLoss};
use crate::definition::Equation;
use crate::preset::mptcp_balia::growth::alpha;

pub(super) const RULES: &[Equation] =
    &[Equation { name: "decrease", rule: "cwnd_r shrinks by cwnd_r / 2 min(alpha_r, 1.5)", file: file!() }];

/// Balanced linked adaptation's decrease. After T3 its result is the threshold, and the window is one chunk.
#[derive(Clone, Debug)]
pub struct BaliaCut;

impl Cut for BaliaCut {
    copied!(Cut);

    fn events(&self) -> EventSet {
        EventSet::NONE
    }

    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>) {}

    fn cut(&mut self, loss: &PathLoss<'_>) -> Change {
        let (window, facts, profile) = (loss.window(), loss.facts(), loss.view.profile);
        let flows = Flows::of(loss.path, loss.windows, loss.view);
        // Without a round-trip time the path is treated alone, and alpha_r of a single path is 1.
        let alpha = flows.find(loss.path).map_or(1.0, |own| alpha(own, flows.all()));
        let left = nearest(remaining(window.cwnd.get() as f64, alpha));
        let (window, rule) = match loss.cause {
            LossCause::Timeout => (after_timeout(window, left, facts, profile), "T3 expired (BALIA)"),
            _ => (after_fast_retransmit(left, facts, profile), "balanced decrease (BALIA)"),
        };
        Change { window, reason: Reason::figure(rule, "alpha", alpha) }
    }
}

/// Returns the window after the decrease.
fn remaining(cwnd: f64, alpha: f64) -> f64 {
    cwnd - cwnd / 2.0 * alpha.min(1.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{cut, paths};
    use LossCause::{FastRetransmit, Rescheduled, Timeout};

    #[test]
    fn the_decrease_is_a_half_to_three_quarters() {
        let left = [1.0, 1.2, 1.5, 4.0].map(|alpha| remaining(10_000.0, alpha));
        assert_eq!(left, [5000.0, 4000.0, 2500.0, 2500.0]);
    }

    #[test]
    fn the_fastest_path_is_halved_and_a_slow_one_loses_more() {
        // Rates 4e5, 5e5 and 1e5: alpha is 1.25, 1 and 5.
        let world = paths(&[(40_000, 100), (25_000, 50), (20_000, 200)]);
        let cuts = [0, 1, 2].map(|index| cut(&mut BaliaCut, &world, index, FastRetransmit));
        // 40,000 - 20,000 x 1.25 = 15,000; 12,500; 20,000 - 10,000 x 1.5 = 5000.
        assert_eq!(cuts, [(15_000, 15_000), (12_500, 12_500), (5000, 5000)]);
        assert_eq!(cut(&mut BaliaCut, &world, 0, Rescheduled), (15_000, 15_000));
    }

    #[test]
    fn a_time_out_leaves_one_chunk_and_the_decrease_as_threshold() {
        let world = paths(&[(40_000, 100), (25_000, 50)]);
        assert_eq!(cut(&mut BaliaCut, &world, 0, Timeout), (1468, 15_000));
    }

    #[test]
    fn the_profiles_floor_holds() {
        // 5000 - 2500 x 1.5 = 1250 is below 2 x 1468.
        let world = paths(&[(5000, 100), (50_000, 100)]);
        assert_eq!(cut(&mut BaliaCut, &world, 0, FastRetransmit), (2936, 2936));
        assert_eq!(cut(&mut BaliaCut, &world, 0, Timeout), (1468, 2936));
    }

    #[test]
    fn a_path_without_a_round_trip_time_is_halved() {
        let mut world = paths(&[(20_000, 100), (50_000, 100)]);
        world.paths[0].rtt.smoothed = None;
        assert_eq!(cut(&mut BaliaCut, &world, 0, FastRetransmit), (10_000, 10_000));
    }
}

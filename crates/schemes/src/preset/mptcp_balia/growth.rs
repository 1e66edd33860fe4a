//! Increase of BALIA, the balanced linked adaptation of draft-walid-mptcp-congestion-control. Its decrease is in `cut.rs`.

use anabranch_core::policy::{Event, EventKind, EventSet, Reason, View};

use crate::congestion::growth::Flow;
use crate::congestion::growth::coupled::{Fractions, Gain, largest};
use crate::congestion::{Acknowledged, Change, Growth};
use crate::definition::Equation;

pub(super) const RULES: &[Equation] = &[
    Equation { name: "alpha_r", rule: "max(x_k) / x_r with x = w / rtt", file: file!() },
    Equation {
        name: "increase",
        rule: "cwnd_r grows by (x_r / rtt_r) / (sum of x_k)^2 (1 + alpha_r)/2 (4 + alpha_r)/5 M bytes_acked",
        file: file!(),
    },
];

/// Balanced linked adaptation's increase.
#[derive(Clone, Debug, Default)]
pub struct BaliaGrowth {
    fractions: Fractions,
}

impl Growth for BaliaGrowth {
    copied!(Growth);

    fn events(&self) -> EventSet {
        EventSet::of(&[EventKind::PathAdded])
    }

    fn on_event(&mut self, event: &Event<'_>, _: &View<'_>) {
        self.fractions.on_event(event);
    }

    fn grow(&mut self, acknowledged: &Acknowledged<'_>) -> Option<Change> {
        self.fractions.grow(acknowledged, |own, flows| gain(own, flows.all()))
    }
}

/// Returns the draft's alpha_r = max(x_k) / x_r with x = w / rtt: the ratio of the fastest path's rate to this one's.
pub(crate) fn alpha(own: Flow, flows: &[Flow]) -> f64 {
    largest(flows.iter().map(Flow::rate)) / own.rate()
}

/// Returns the draft's increase: (x_r / rtt_r) / (sum of x_k)^2 (1 + alpha_r)/2 (4 + alpha_r)/5, times bytes acknowledged and the
/// largest chunk.
fn gain(own: Flow, flows: &[Flow]) -> Gain {
    let rate: f64 = flows.iter().map(Flow::rate).sum();
    let alpha = alpha(own, flows);
    Gain {
        per_byte: own.rate() / own.rtt / (rate * rate) * ((1.0 + alpha) / 2.0) * ((4.0 + alpha) / 5.0),
        reason: Reason::figure("balanced linked increase (BALIA)", "alpha", alpha),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{grow, grown, paths};
    use crate::testing::{M, bytes, path};

    fn flow(index: usize, cwnd: f64, rtt: f64) -> Flow {
        Flow { path: path(index), cwnd, rtt }
    }

    #[test]
    fn alpha_compares_a_path_with_the_fastest() {
        // Rates 1e5, 2e5 and 4e5 B/s.
        let flows = [flow(0, 10_000.0, 0.1), flow(1, 20_000.0, 0.1), flow(2, 8000.0, 0.02)];
        assert_eq!(flows.map(|own| alpha(own, &flows)), [4.0, 2.0, 1.0]);
    }

    #[test]
    fn the_increase_of_two_paths() {
        // Rates 1e5 and 2e5: alpha is 2 and 1. Path 0: 1e5/0.1 / 9e10 x 3/2 x 6/5 = 2e-5. Path 1: 2e5/0.1 / 9e10 = 2.222e-5.
        let flows = [flow(0, 10_000.0, 0.1), flow(1, 20_000.0, 0.1)];
        let gains = flows.map(|own| gain(own, &flows).per_byte);
        assert!((gains[0] - 2e-5).abs() < 1e-17 && (gains[1] - 2e6 / 9e10).abs() < 1e-17, "{gains:?}");
        assert_eq!(gain(flows[0], &flows).reason.value, 2.0);
    }

    #[test]
    fn the_increase_of_three_paths() {
        // Rates 1e5, 2e5 and 4e5, in all 7e5. Path 0: 1e6 / 4.9e11 x 5/2 x 8/5 = 8.163e-6.
        let flows = [flow(0, 10_000.0, 0.1), flow(1, 20_000.0, 0.1), flow(2, 8000.0, 0.02)];
        let gain = gain(flows[0], &flows).per_byte;
        assert!((gain - 4e6 / 4.9e11).abs() < 1e-17, "{gain}");
    }

    #[test]
    fn growth_in_worked_bytes() {
        // 2e-5 x 1468 x 1468 = 43.1 B.
        let mut world = paths(&[(10_000, 100), (20_000, 100)]);
        let mut rule = BaliaGrowth::default();
        assert_eq!(grown(&mut rule, &mut world, 0, M), (10_043, 0));
        // alpha = 2/1.0043 = 1.99143...; 1.0043e6 / 300,430^2 x 1.49572 x 1.19829 = 1.99428e-5, x 1468^2 = 42.977 B;
        // with 0.1 B left over 43.08 B.
        assert_eq!(grown(&mut rule, &mut world, 0, M), (10_086, 0));
    }

    #[test]
    fn a_single_path_grows_by_one_chunk_per_window() {
        let mut world = paths(&[(14_680, 80)]);
        let (cwnd, _) = grown(&mut BaliaGrowth::default(), &mut world, 0, 14_680);
        assert!((14_680 + M - 1..=14_680 + M).contains(&cwnd), "{cwnd}");
    }

    #[test]
    fn slow_start_is_not_coupled_and_an_unmeasured_path_grows_as_if_alone() {
        let mut world = paths(&[(10_000, 100), (20_000, 100)]);
        world.paths[1].ssthresh = bytes(20_000);
        let mut rule = BaliaGrowth::default();
        assert_eq!(grow(&mut rule, &world, 1, 5000).map(|change| change.window.cwnd), Some(bytes(21_468)));
        world.paths[0].rtt.smoothed = None;
        // 1468 / 10,000 of 1468 B are 215.5 B.
        assert_eq!(grown(&mut rule, &mut world, 0, M), (10_215, 0));
    }
}

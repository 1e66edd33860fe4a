//! `mptcp-lia`: CMT with the linked increases of RFC 6356.
//!
//! LIA, the linked increases of RFC 6356: at a shared bottleneck all paths together take the share that one flow on the best of
//! them would, and no path grows faster than a flow of its own.

use anabranch_core::policy::{Event, EventKind, EventSet, Policies, Reason, View};

use crate::ack::delayed::{SACK_DELAY, SACK_EVERY, dac};
use crate::congestion::control::cuc;
use crate::congestion::cut::{floor, floored};
use crate::congestion::growth::Flow;
use crate::congestion::growth::coupled::{Fractions, Gain, largest};
use crate::congestion::{Acknowledged, Change, Growth, GrowthGate, WindowControl};
use crate::definition::{Card, Choice, Equation, Parameter, Preset, Role, Values};
use crate::loss::missing_reports::{TRIGGER, sfr};
use crate::preset::cmt;
use crate::retransmit::rtx;

const PARAMETERS: &[Parameter] =
    &[rtx("rtx-cwnd"), TRIGGER, sfr(true), cuc(true), dac(true), SACK_EVERY, SACK_DELAY, floor("profile")];

/// Choice shared by all coupled rules.
pub(crate) const COUPLED_PATHS: Choice = Choice {
    question: "Which paths are coupled?",
    answer: "The active ones with a smoothed round-trip time. A path out of service carries no data. A path without a sample \
             grows as if it were alone, and does not count for others.",
    parameter: "",
};

/// Choice shared by all coupled rules.
pub(crate) const BYTES_COUNTED: Choice = Choice {
    question: "Which acknowledgements count, and when does the window move?",
    answer: "In congestion avoidance those that count toward the standard's next step, under the same condition and only for a \
             window in full use. The window grows at once by the resulting bytes; fractions of a byte are kept.",
    parameter: "",
};

pub(crate) const BASE: Choice = Choice {
    question: "How does it differ without MPTCP's subflows?",
    answer: "One sequence space for all paths, with CMT's repairs in place of a sequence space per subflow. Scheduler and \
             retransmission are those of `cmt`, so that a comparison with it shows only the rule of growth.",
    parameter: "sfr, cuc, dac, rtx",
};

pub(crate) const LINKED_INCREASE: Equation = Equation {
    name: "RFC 6356 section 3",
    rule: "cwnd_i grows by min(alpha bytes_acked M / cwnd_total, bytes_acked M / cwnd_i)",
    file: file!(),
};

const CARD: Card = Card {
    summary: &[
        "As `cmt`, but in congestion avoidance the paths' windows together grow like that of one flow on the best",
        "path, and none grows faster than a single flow. Slow start and reductions are the standard's.",
    ],
    equations: &[&[
        LINKED_INCREASE,
        Equation {
            name: "RFC 6356 section 4.1, equation 2",
            rule: "alpha = cwnd_total max(cwnd_i / rtt_i^2) / (sum of cwnd_i / rtt_i)^2",
            file: file!(),
        },
    ]],
    choices: &[&[
        COUPLED_PATHS,
        BYTES_COUNTED,
        Choice {
            question: "How often is alpha computed?",
            answer: "At every step, as the RFC defines it. It also permits once per round trip to save work.",
            parameter: "",
        },
        BASE,
    ]],
};

pub(crate) const PRESET: Preset = Preset {
    name: "mptcp-lia",
    about: "CMT with MPTCP's linked increases: fair to others if paths share a bottleneck",
    source: "RFC 6356",
    multipath: true,
    coupled: true,
    unfair_because: "",
    owns: &[Role::CongestionControl],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

fn build(values: &Values) -> Policies {
    let control = WindowControl::new(GrowthGate::from_values(values)).with_growth(LiaGrowth::default());
    Policies { congestion: Box::new(control), ..cmt::build(values) }
}

/// Linked increases.
#[derive(Clone, Debug, Default)]
pub struct LiaGrowth {
    fractions: Fractions,
}

impl Growth for LiaGrowth {
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

/// RFC 6356 section 3: min(alpha / cwnd_total, 1 / cwnd_i), times bytes acknowledged and the largest chunk.
fn gain(own: Flow, flows: &[Flow]) -> Gain {
    let total: f64 = flows.iter().map(|flow| flow.cwnd).sum();
    let alpha = alpha(total, flows);
    let (coupled, alone) = (alpha / total, 1.0 / own.cwnd);
    if coupled < alone {
        Gain { per_byte: coupled, reason: Reason::figure("linked increase (LIA)", "alpha", alpha) }
    } else {
        Gain { per_byte: alone, reason: Reason::figure("linked increase (LIA), as if alone", "alpha", alpha) }
    }
}

/// RFC 6356 section 4.1, equation 2: cwnd_total max(cwnd_i / rtt_i^2) / (sum of cwnd_i / rtt_i)^2.
fn alpha(total: f64, flows: &[Flow]) -> f64 {
    let rate: f64 = flows.iter().map(Flow::rate).sum();
    total * largest(flows.iter().map(|flow| flow.rate() / flow.rtt)) / (rate * rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{grow, grown, paths};
    use crate::testing::{M, bytes, path};

    fn flow(index: usize, cwnd: f64, rtt: f64) -> Flow {
        Flow { path: path(index), cwnd, rtt }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12 * b.abs()
    }

    #[test]
    fn alpha_of_two_equal_paths_is_a_half() {
        // 20,000 x (10,000 / 0.01) / (10,000/0.1 + 10,000/0.1)^2 = 20,000 x 1e6 / (2e5)^2 = 0.5.
        let flows = [flow(0, 10_000.0, 0.1), flow(1, 10_000.0, 0.1)];
        assert!(close(alpha(20_000.0, &flows), 0.5));
        // min(0.5 / 20,000, 1 / 10,000): a quarter of the growth of a flow of its own.
        assert!(close(gain(flows[0], &flows).per_byte, 0.5 / 20_000.0));
    }

    #[test]
    fn alpha_of_two_unlike_paths() {
        // Rates 10,000/0.1 = 1e5 and 20,000/0.2 = 1e5; cwnd/rtt^2 = 1e6 and 5e5; 30,000 x 1e6 / (2e5)^2 = 0.75.
        let flows = [flow(0, 10_000.0, 0.1), flow(1, 20_000.0, 0.2)];
        assert!(close(alpha(30_000.0, &flows), 0.75));
        assert!(close(gain(flows[1], &flows).per_byte, 0.75 / 30_000.0));
    }

    #[test]
    fn alpha_of_three_paths() {
        // Rates 1e5, 1e5, 2e5, in all 4e5; cwnd/rtt^2 = 1e6, 5e5, 8e6; cwnds 10,000 + 20,000 + 5000 = 35,000.
        // 35,000 x 8e6 / 1.6e11 = 1.75.
        let flows = [flow(0, 10_000.0, 0.1), flow(1, 20_000.0, 0.2), flow(2, 5000.0, 0.025)];
        assert!(close(alpha(35_000.0, &flows), 1.75));
        let gains = flows.map(|own| gain(own, &flows).per_byte);
        // 1.75 / 35,000 = 1/20,000; it is as large as the second path's 1/20,000 and below the others' 1/10,000 and 1/5000.
        assert!(gains.into_iter().all(|gain| close(gain, 1.0 / 20_000.0)), "{gains:?}");
    }

    #[test]
    fn no_path_grows_faster_than_alone() {
        // Rates 5e5 and 1e5; cwnd/rtt^2 = 5e7 and 1e5; total 105,000; alpha = 105,000 x 5e7 / 3.6e11 = 14.583...;
        // alpha / total = 1.3888e-4 is more than 1 / 100,000, so the second path grows as if alone.
        let flows = [flow(0, 5000.0, 0.01), flow(1, 100_000.0, 1.0)];
        assert!(close(alpha(105_000.0, &flows), 105_000.0 * 5e7 / 3.6e11));
        let gain = gain(flows[1], &flows);
        assert!(close(gain.per_byte, 1.0 / 100_000.0));
        assert_eq!(gain.reason.rule, "linked increase (LIA), as if alone");
    }

    #[test]
    fn a_single_path_grows_by_one_chunk_per_window() {
        let own = flow(0, 14_680.0, 0.08);
        assert!(close(alpha(own.cwnd, &[own]), 1.0));
        let mut world = paths(&[(14_680, 80)]);
        assert_eq!(grown(&mut LiaGrowth::default(), &mut world, 0, 14_680), (14_680 + M, 0));
    }

    #[test]
    fn growth_in_worked_bytes_keeps_its_fractions() {
        // Two paths of 10,000 B and 100 ms: each byte acknowledged gives 0.5 / 20,000 x 1468 = 0.0367 B, 1468 of them 53.8756 B.
        let mut world = paths(&[(10_000, 100), (10_000, 100)]);
        let mut rule = LiaGrowth::default();
        assert_eq!(grown(&mut rule, &mut world, 0, 1468), (10_053, 0));
        // Windows 10,053 and 10,000: the rates are 100,530 and 100,000, cwnd/rtt^2 at most 1,005,300;
        // 1,005,300 / 200,530^2 x 1468 x 1468 = 53.8746 B, with 0.8756 B left over from before 54.75 B.
        assert_eq!(grown(&mut rule, &mut world, 0, 1468), (10_107, 0));
    }

    #[test]
    fn many_small_acks_give_as_much_as_few_large_ones() {
        let after = |step: u64| {
            let mut world = paths(&[(50_000, 100), (50_000, 100)]);
            let mut rule = LiaGrowth::default();
            for _ in 0..20_000 / step {
                grown(&mut rule, &mut world, 0, step);
            }
            world.paths[0].cwnd.get()
        };
        // 0.5 / 100,000 x 1468 = 0.00734 B per byte: 10 bytes give 0.07 B, 20,000 bytes 146.8 B.
        assert_eq!(after(20_000), 50_146);
        assert!((50_145..=50_147).contains(&after(10)), "{}", after(10));
    }

    #[test]
    fn slow_start_is_not_coupled() {
        let mut world = paths(&[(10_000, 100), (10_000, 100)]);
        world.paths[0].ssthresh = bytes(10_000);
        let change = grow(&mut LiaGrowth::default(), &world, 0, 2936).expect("growth");
        assert_eq!((change.window.cwnd.get(), change.reason.rule), (11_468, "slow start"));
    }

    #[test]
    fn a_path_without_a_round_trip_time_grows_as_if_alone() {
        let mut world = paths(&[(14_680, 100), (10_000, 100)]);
        world.paths[0].rtt.smoothed = None;
        let change = grow(&mut LiaGrowth::default(), &world, 0, 1468).expect("growth");
        // 1468 / 14,680 of a chunk.
        assert_eq!(change.window.cwnd.get(), 14_680 + 146);
        assert_eq!(change.reason.rule, "grows uncoupled without a round-trip time");
    }
}

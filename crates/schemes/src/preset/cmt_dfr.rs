//! `cmt-dfr`: CMT with a delay-based fast retransmission policy.
//!
//! The delay-based fast retransmission policy of 2018 (its equations 6 to 8 and Algorithm 1): fast retransmit reduces the window by
//! a fraction equal to the smoothed round-trip time in seconds.

use anabranch_core::MAX_PATHS;
use anabranch_core::policy::{
    Event, EventKind, EventSet, LossCause, PathFacts, Policies, Reason, View, Window,
};
use anabranch_core::profile::Profile;
use anabranch_core::units::ChunkBytes;

use crate::ack::delayed::{SACK_DELAY, SACK_EVERY, dac};
use crate::congestion::control::cuc;
use crate::congestion::cut::{Floor, floored, halve, nearest, own_floor};
use crate::congestion::{Change, Cut, GrowthGate, PathLoss, WindowControl};
use crate::definition::{Card, Choice, Equation, Kind, Length, Parameter, Preset, Role, Value, Values};
use crate::loss::missing_reports::{TEXT_HAS_FOUR_REPORTS, TRIGGER, sfr};
use crate::preset::cmt;
use crate::retransmit::rtx;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "alpha",
        kind: Kind::Decimal { min: 0.0, max: 1.0 },
        unit: "",
        default: Value::Decimal(0.25),
        about: "weight of a new sample in the smoothed round-trip time by which windows are reduced",
        source: "the paper's RTO.Alpha: 0.25; RFC 9260 section 6.3.1: 0.125",
    },
    Parameter {
        name: "mtu",
        kind: Kind::Length,
        unit: "",
        default: Value::Length(Length::Bytes(1500)),
        about: "MTU: the window after T3, and a quarter of the floor",
        source: "Algorithm 1, line 2: 1500 bytes",
    },
    rtx("rtx-cwnd"),
    TRIGGER,
    sfr(true),
    cuc(true),
    dac(true),
    SACK_EVERY,
    SACK_DELAY,
    own_floor("Algorithm 1: 4 MTU"),
];

const CARD: Card = Card {
    summary: &[
        "As `cmt`, but a fast retransmit reduces the window by the fraction that the smoothed round-trip time",
        "is of a second: 5 % at 50 ms, a half at 500 ms, everything down to the floor from one second on.",
    ],
    equations: &[&[
        Equation {
            name: "equation 6",
            rule: "SRTT = first RTT, then (1 - alpha) SRTT + alpha RTT",
            file: file!(),
        },
        Equation {
            name: "equation 7",
            rule: "ssthresh = max(cwnd - cwnd SRTT, 4 MTU), SRTT in seconds",
            file: file!(),
        },
        Equation { name: "equation 8", rule: "cwnd = ssthresh", file: file!() },
        Equation {
            name: "Algorithm 1, lines 10 and 11 (T3)",
            rule: "ssthresh = max(cwnd / 2, 4 MTU), cwnd = 1 MTU",
            file: file!(),
        },
    ]],
    choices: &[&[
        Choice {
            question: "What is the unit of SRTT?",
            answer: "Seconds, as a plain number: only then the factors of equation 7 are between 0 and 1 for usual paths.",
            parameter: "",
        },
        Choice {
            question: "What is the weight of a new sample?",
            answer: "0.25, which the paper calls RTO.Alpha, although it is 1/8 in RFC 9260 and ns-2. This SRTT is separate \
                     from that of the retransmission time-out.",
            parameter: "alpha",
        },
        Choice {
            question: "What is the MTU?",
            answer: "1500 bytes as printed, including headers, where ns-2 counts 1468. The window after T3 is at least the \
                     largest chunk, so that it can send one.",
            parameter: "mtu",
        },
        Choice {
            question: "Should the compared schemes have its floor?",
            answer: "The paper's floor of 4 MTU is twice that of ns-2's CMT agent, which alone is an advantage with frequent \
                     losses. `floor=profile` sets the same floor as for the others.",
            parameter: "floor",
        },
        Choice {
            question: "How often does it reduce the window, and how without a sample?",
            answer: "Once per window, as fast retransmit does otherwise. Without a sample the window is halved.",
            parameter: "",
        },
        TEXT_HAS_FOUR_REPORTS,
    ]],
};

pub(crate) const PRESET: Preset = Preset {
    name: "cmt-dfr",
    about: "CMT whose fast retransmit reduces a window by the smoothed round-trip time in seconds",
    source: "Verma, Sharma, Kumar 2018, New Delay-based Fast Retransmission Policy for CMT-SCTP: equations 6 to 8, Algorithm 1",
    multipath: true,
    coupled: false,
    unfair_because: "Its fast retransmit reduces a window by the round-trip time in seconds, a tenth at 100 ms where others \
                     remove a half, so it gets several times the share of two flows.",
    owns: &[Role::CongestionControl],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

fn build(values: &Values) -> Policies {
    let cut = SrttFractionCut::new(values.decimal("alpha"), values.length("mtu"), Floor::from_values(values));
    let control = WindowControl::new(GrowthGate::from_values(values)).with_cut(cut);
    Policies { congestion: Box::new(control), ..cmt::build(values) }
}

/// ssthresh = max(cwnd - cwnd SRTT, 4 MTU), cwnd = ssthresh; after T3 max(cwnd / 2, 4 MTU) and one MTU.
#[derive(Clone, Debug)]
pub struct SrttFractionCut {
    alpha: f64,
    mtu: Length,
    floor: Floor,
    /// Smoothed round-trip time per path, in seconds.
    smoothed: [Option<f64>; MAX_PATHS],
}

impl SrttFractionCut {
    /// Creates the rule with the weight of new samples in the smoothed round-trip time, an MTU, and a choice of the floor.
    pub fn new(alpha: f64, mtu: Length, floor: Floor) -> Self {
        SrttFractionCut { alpha, mtu, floor, smoothed: [None; MAX_PATHS] }
    }

    fn mtu(&self, path: &PathFacts) -> ChunkBytes {
        nearest(self.mtu.bytes(path.largest_chunk))
    }

    fn floor(&self, cause: LossCause, path: &PathFacts, profile: &Profile) -> ChunkBytes {
        self.floor.bytes(self.mtu(path).times(4), cause, path.largest_chunk, profile)
    }
}

impl Cut for SrttFractionCut {
    copied!(Cut);

    fn events(&self) -> EventSet {
        EventSet::of(&[EventKind::PathAdded, EventKind::RttSample])
    }

    fn on_event(&mut self, event: &Event<'_>, _: &View<'_>) {
        match *event {
            Event::PathAdded(path) => self.smoothed[path.index()] = None,
            Event::RttSample { path, rtt, .. } => {
                let smoothed = &mut self.smoothed[path.index()];
                *smoothed = Some(smooth(*smoothed, rtt.as_secs_f64(), self.alpha));
            }
            _ => {}
        }
    }

    fn cut(&mut self, loss: &PathLoss<'_>) -> Change {
        let (window, facts, profile) = (loss.window(), loss.facts(), loss.view.profile);
        let floor = self.floor(loss.cause, facts, profile);
        let (cwnd, ssthresh, reason) = match (loss.cause, self.smoothed[loss.path.index()]) {
            // Algorithm 1, lines 10 and 11.
            (LossCause::Timeout, _) => {
                let half = window.cwnd.over(2);
                let reason = Reason::figure("T3 expired", "half_bytes", half.get() as f64);
                (self.mtu(facts).max(facts.largest_chunk), half.max(floor), reason)
            }
            // Equations 7 and 8.
            (_, Some(smoothed)) => {
                let ssthresh = nearest(remaining(window.cwnd.get() as f64, smoothed)).max(floor);
                (ssthresh, ssthresh, Reason::figure("reduced by the smoothed delay", "srtt_s", smoothed))
            }
            // Without a sample there is no delay to use.
            (cause, None) => {
                let halved = halve(window, cause, facts, profile);
                let ssthresh = window.cwnd.over(2).max(floor);
                (ssthresh, ssthresh, halved.reason)
            }
        };
        Change { window: Window { cwnd, ssthresh, partial_bytes_acked: ChunkBytes::ZERO }, reason }
    }
}

/// Equation 6.
fn smooth(smoothed: Option<f64>, sample: f64, alpha: f64) -> f64 {
    smoothed.map_or(sample, |smoothed| (1.0 - alpha) * smoothed + alpha * sample)
}

/// Equation 7 without its floor; negative if the smoothed round-trip time exceeds one second.
fn remaining(cwnd: f64, smoothed: f64) -> f64 {
    cwnd - cwnd * smoothed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{cut, paths};
    use crate::testing::{World, path};
    use LossCause::{FastRetransmit, Rescheduled, Timeout};
    use anabranch_core::time::Span;

    fn rule() -> SrttFractionCut {
        SrttFractionCut::new(0.25, Length::Bytes(1500), Floor::Published)
    }

    fn sample(rule: &mut SrttFractionCut, world: &World, index: usize, ms: u64) {
        let (rtt, path) = (Span::from_millis(ms), path(index));
        rule.on_event(&Event::RttSample { path, rtt, heartbeat: false }, &world.view());
    }

    /// Returns the window and threshold after fast retransmit, with one sample.
    fn left(cwnd: u64, ms: u64) -> (u64, u64) {
        let (world, mut rule) = (paths(&[(cwnd, 1)]), rule());
        sample(&mut rule, &world, 0, ms);
        cut(&mut rule, &world, 0, FastRetransmit)
    }

    #[test]
    fn srtt_starts_at_the_first_sample_and_moves_by_a_quarter() {
        assert_eq!(smooth(None, 0.1, 0.25), 0.1);
        assert!((smooth(Some(0.1), 0.3, 0.25) - 0.15).abs() < 1e-15);
        assert!((smooth(Some(0.1), 0.3, 0.125) - 0.125).abs() < 1e-15);
    }

    #[test]
    fn fast_retransmit_takes_the_delay_in_seconds() {
        // 20,000 - 20,000 x 0.1 = 18,000; with half a second it halves; 20,001 x 0.95 = 19,000.95.
        assert_eq!([left(20_000, 100), left(20_000, 500)], [(18_000, 18_000), (10_000, 10_000)]);
        assert_eq!(left(20_001, 50), (19_001, 19_001));
    }

    #[test]
    fn four_mtu_are_left_even_where_that_raises_the_window() {
        // 5000 x 0.9 = 4500 is below 6000; from one second on the whole window is removed.
        assert_eq!([left(5000, 100), left(20_000, 1000), left(20_000, 3000)], [(6000, 6000); 3]);
    }

    #[test]
    fn a_time_out_halves_and_leaves_one_mtu() {
        let (mut rule, world) = (rule(), paths(&[(20_000, 1), (8000, 1)]));
        assert_eq!(cut(&mut rule, &world, 0, Timeout), (1500, 10_000));
        assert_eq!(cut(&mut rule, &world, 1, Timeout), (1500, 6000));
        let mut small = SrttFractionCut::new(0.25, Length::Bytes(500), Floor::Published);
        assert_eq!(cut(&mut small, &world, 1, Timeout), (1468, 4000), "never below the largest chunk");
    }

    #[test]
    fn every_path_has_its_own_delay_from_data_and_heartbeats() {
        let (mut rule, world) = (rule(), paths(&[(20_000, 1), (20_000, 1)]));
        sample(&mut rule, &world, 0, 100);
        let rtt = Span::from_millis(300);
        rule.on_event(&Event::RttSample { path: path(0), rtt, heartbeat: true }, &world.view());
        sample(&mut rule, &world, 1, 200);
        // 0.75 x 0.1 + 0.25 x 0.3 = 0.15: 17,000; and 20,000 x 0.8 = 16,000.
        assert_eq!(cut(&mut rule, &world, 0, FastRetransmit), (17_000, 17_000));
        assert_eq!(cut(&mut rule, &world, 1, Rescheduled), (16_000, 16_000));
    }

    #[test]
    fn path_without_sample_or_added_again_is_halved() {
        let (mut rule, world) = (rule(), paths(&[(20_000, 1), (8000, 1)]));
        assert_eq!(cut(&mut rule, &world, 0, FastRetransmit), (10_000, 10_000));
        assert_eq!(cut(&mut rule, &world, 1, FastRetransmit), (6000, 6000));
        sample(&mut rule, &world, 0, 100);
        rule.on_event(&Event::PathAdded(path(0)), &world.view());
        assert_eq!(cut(&mut rule, &world, 0, FastRetransmit), (10_000, 10_000));
    }

    #[test]
    fn the_mtu_may_be_the_largest_chunk_and_the_floor_the_profiles() {
        let (world, mut chunks) =
            (paths(&[(5000, 1)]), SrttFractionCut::new(0.25, Length::Chunks(1.0), Floor::Published));
        sample(&mut chunks, &world, 0, 100);
        assert_eq!(cut(&mut chunks, &world, 0, FastRetransmit), (5872, 5872));
        assert_eq!(cut(&mut chunks, &world, 0, Timeout), (1468, 5872));
        let mut profiles = SrttFractionCut::new(0.25, Length::Bytes(1500), Floor::Profile);
        sample(&mut profiles, &world, 0, 100);
        assert_eq!(cut(&mut profiles, &world, 0, FastRetransmit), (4500, 4500));
        assert_eq!(cut(&mut profiles, &world, 0, Timeout), (1500, 2936));
    }
}

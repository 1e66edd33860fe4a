//! `a-cmt`: CMT whose windows grow by the difference between expected and actual rate.
//!
//! The growth rule of A-CMT (Verma, Kumar 2017) and of DB-CMT's D-DSP (equations 1 to 4). TCP Vegas decides by the same figure.

use anabranch_core::policy::{Event, EventSet, Policies, Reason, RttFacts, View, Window};
use anabranch_core::time::Span;
use anabranch_core::units::ChunkBytes;

use crate::ack::delayed::{SACK_DELAY, SACK_EVERY, dac};
use crate::congestion::control::cuc;
use crate::congestion::cut::{floor, floored};
use crate::congestion::growth::standard::{slow_start, spend_window};
use crate::congestion::{Acknowledged, Change, Growth, GrowthGate, WindowControl};
use crate::definition::{
    Card, Choice, ChoiceParameter, Equation, Kind, Length, Parameter, Preset, Role, Value, Values,
};
use crate::loss::missing_reports::{TRIGGER, sfr};
use crate::preset::cmt;
use crate::retransmit::rtx;

pub(crate) const LAMBDA: Parameter = Parameter {
    name: "lambda",
    kind: Kind::Length,
    unit: "",
    default: Value::Length(Length::Chunks(1.0)),
    about: "rate difference below which a window grows by a whole chunk",
    source: "not published; TCP Vegas's alpha in ns-2: 1 packet",
};

pub(crate) const DELTA: Parameter = Parameter {
    name: "delta",
    kind: Kind::Length,
    unit: "",
    default: Value::Length(Length::Chunks(3.0)),
    about: "rate difference above which a window does not grow",
    source: "not published; TCP Vegas's beta in ns-2: 3 packets",
};

pub(crate) const RTT: ChoiceParameter<RttSource> = ChoiceParameter {
    name: "rtt",
    options: &[("srtt", RttSource::Smoothed), ("latest", RttSource::Latest)],
    default: "srtt",
    about: "current round-trip time of a path: smoothed, or the latest sample",
    source: "DB-CMT section 4.1 says RTT only",
};

pub(crate) const APPLY: ChoiceParameter<Applies> = ChoiceParameter {
    name: "apply",
    options: &[("avoidance", Applies::Avoidance), ("every-sack", Applies::EverySack)],
    default: "avoidance",
    about: "event for which the rate difference decides: each step of congestion avoidance, or each SACK for which a window \
            may grow",
    source: "DB-CMT equation 4 does not say",
};

const PARAMETERS: &[Parameter] = &[
    LAMBDA,
    DELTA,
    RTT.parameter(),
    APPLY.parameter(),
    rtx("rtx-cwnd"),
    TRIGGER,
    sfr(true),
    cuc(true),
    dac(true),
    SACK_EVERY,
    SACK_DELAY,
    floor("profile"),
];

pub(crate) const RULES: &[Equation] = &[
    Equation {
        name: "DB-CMT equations 1 to 3",
        rule: "D = (cwnd / RTTmin - cwnd / RTT) RTTmin = cwnd (1 - RTTmin / RTT)",
        file: file!(),
    },
    Equation {
        name: "DB-CMT equation 4",
        rule: "cwnd grows by M if D < lambda, by M / 2 if lambda <= D <= delta, not at all if D > delta",
        file: file!(),
    },
];

pub(crate) const RATE_DIFFERENCE_CHOICES: &[Choice] = &[
    Choice {
        question: "How large are lambda and delta?",
        answer: "1 and 3 largest chunks. DB-CMT refers to a threshold estimation in the A-CMT paper, of which no copy was \
                 available. TCP Vegas decides by the same D, with thresholds of 1 and 3 packets in ns-2.",
        parameter: "lambda, delta",
    },
    Choice {
        question: "What happens if D equals lambda or delta?",
        answer: "The window grows by half a chunk: equation 4 does not define either case, and the middle one is the nearest \
                 to both sides.",
        parameter: "",
    },
    Choice {
        question: "Which round-trip time is RTT, and over which time is RTTmin the minimum?",
        answer: "The smoothed one, because a single late sample would stop growth, and the minimum since the path exists. A \
                 path without a sample has no known queue, and grows.",
        parameter: "rtt",
    },
    Choice {
        question: "When does equation 4 apply?",
        answer: "In congestion avoidance, in place of one chunk for each window acknowledged. A window of acknowledgements is \
                 used up in all three cases. According to DB-CMT's text, every scheme doubles its window in slow start.",
        parameter: "apply",
    },
];

const CARD: Card = Card {
    summary: &[
        "As `cmt`, but in congestion avoidance a window grows by a whole chunk, by half a chunk or not at all,",
        "if the estimated queue of the path is short, moderate or long. Losses halve windows.",
    ],
    equations: &[RULES],
    choices: &[
        &[Choice {
            question: "What is A-CMT?",
            answer: "The growth of DB-CMT's equation 4 without its other two parts, since DB-CMT says that it adds those to \
                     A-CMT. The A-CMT paper itself was not available.",
            parameter: "",
        }],
        RATE_DIFFERENCE_CHOICES,
    ],
};

pub(crate) const PRESET: Preset = Preset {
    name: "a-cmt",
    about: "CMT whose windows grow by the difference between expected and actual rate",
    source: "Verma, Kumar 2017, as the DB-CMT paper describes it",
    multipath: true,
    coupled: false,
    unfair_because: "Its windows stop growing once delta bytes of its own are in a queue, while a flow that only reacts to \
                     losses grows until the queue is full: like TCP Vegas beside Reno, it gets less than one flow's share.",
    owns: &[Role::CongestionControl],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

fn build(values: &Values) -> Policies {
    let control = WindowControl::new(GrowthGate::from_values(values))
        .with_growth(RateDifferenceGrowth::from_values(values));
    Policies { congestion: Box::new(control), ..cmt::build(values) }
}

/// Source of a path's current round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttSource {
    /// Smoothed round-trip time.
    Smoothed,
    /// Latest sample.
    Latest,
}

impl RttSource {
    /// Returns the path's current and minimum round-trip time in seconds, or `None` before the first sample.
    pub fn with_least(self, rtt: &RttFacts) -> Option<(f64, f64)> {
        let present = match self {
            RttSource::Smoothed => rtt.smoothed,
            RttSource::Latest => rtt.latest,
        };
        let (present, least) = (present.filter(|rtt| !rtt.is_zero())?, rtt.min?);
        Some((present.as_secs_f64(), Span::min(least, present).as_secs_f64()))
    }
}

/// DB-CMT equations 1 to 3: D = (cwnd / RTTmin - cwnd / RTT) RTTmin = cwnd (1 - RTTmin / RTT), the bytes queued on the path beyond
/// its minimum delay. Returns zero before the first sample.
pub fn rate_difference(cwnd: ChunkBytes, rtt: &RttFacts, source: RttSource) -> f64 {
    source.with_least(rtt).map_or(0.0, |(present, least)| cwnd.get() as f64 * (1.0 - least / present))
}

/// Events at which equation 4 replaces the standard's growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    /// In congestion avoidance, once per acknowledged window, where the standard would add one chunk.
    Avoidance,
    /// At every SACK that lets the window grow, in slow start and in congestion avoidance.
    EverySack,
}

/// DB-CMT equation 4.
#[derive(Clone, Debug)]
pub struct RateDifferenceGrowth {
    /// Difference below which the window grows by one chunk.
    pub lambda: Length,
    /// Difference above which the window does not grow. In between it grows by half a chunk.
    pub delta: Length,
    /// Source of the path's current round-trip time.
    pub rtt: RttSource,
    /// SACKs at which the rule applies.
    pub applies: Applies,
}

impl RateDifferenceGrowth {
    pub(crate) fn from_values(values: &Values) -> Self {
        RateDifferenceGrowth {
            lambda: values.length("lambda"),
            delta: values.length("delta"),
            rtt: RTT.get(values),
            applies: APPLY.get(values),
        }
    }

    /// Returns the step of equation 4, which leaves equality open. This implementation counts a difference equal to a threshold as
    /// between the two.
    fn step(&self, difference: f64, largest: ChunkBytes) -> (ChunkBytes, &'static str) {
        if difference < self.lambda.bytes(largest) {
            (largest, "a light load: one chunk")
        } else if difference <= self.delta.bytes(largest) {
            (largest.over(2), "a moderate load: half a chunk")
        } else {
            (ChunkBytes::ZERO, "a heavy load: no growth")
        }
    }
}

impl Growth for RateDifferenceGrowth {
    copied!(Growth);

    fn events(&self) -> EventSet {
        EventSet::NONE
    }

    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>) {}

    fn grow(&mut self, acknowledged: &Acknowledged<'_>) -> Option<Change> {
        let (window, facts) = (acknowledged.window(), acknowledged.facts());
        let spent = match self.applies {
            Applies::EverySack => Window { partial_bytes_acked: ChunkBytes::ZERO, ..window },
            Applies::Avoidance => {
                let change = slow_start(window, acknowledged.bytes, acknowledged.slow_start_limit());
                if change.is_some() {
                    return change;
                }
                spend_window(window)?
            }
        };
        let difference = rate_difference(window.cwnd, &facts.rtt, self.rtt);
        let (step, rule) = self.step(difference, facts.largest_chunk);
        Some(Change {
            window: Window { cwnd: window.cwnd + step, ..spent },
            reason: Reason::figure(rule, "rate_difference_bytes", difference),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{grow, grown, paths};
    use crate::testing::{M, World, bytes};

    fn rule() -> RateDifferenceGrowth {
        RateDifferenceGrowth {
            lambda: Length::Chunks(1.0),
            delta: Length::Chunks(3.0),
            rtt: RttSource::Smoothed,
            applies: Applies::Avoidance,
        }
    }

    /// Creates one path with a window in bytes and a current and minimum round-trip time in milliseconds.
    fn one(cwnd: u64, present: u64, least: u64) -> World {
        let mut world = paths(&[(cwnd, present)]);
        world.paths[0].rtt.min = Some(Span::from_millis(least));
        world
    }

    #[test]
    fn the_difference_is_the_window_times_what_queueing_adds() {
        let of = |cwnd, present, least| {
            rate_difference(bytes(cwnd), &one(cwnd, present, least).paths[0].rtt, RttSource::Smoothed)
        };
        // 20,000 x (1 - 100/120) = 3333.3; with an empty queue 0; with a queue as long as the path 10,000.
        assert!((of(20_000, 120, 100) - 20_000.0 / 6.0).abs() < 1e-9);
        assert_eq!([of(20_000, 100, 100), of(20_000, 200, 100)], [0.0, 10_000.0]);
    }

    #[test]
    fn unmeasured_rtt_gives_no_difference() {
        let mut world = one(20_000, 120, 100);
        let rtt = world.paths[0].rtt;
        assert_eq!(rate_difference(bytes(20_000), &rtt, RttSource::Latest), 0.0);
        assert_eq!(rate_difference(bytes(20_000), &RttFacts { min: None, ..rtt }, RttSource::Smoothed), 0.0);
        world.paths[0].rtt.smoothed = Some(Span::ZERO);
        assert_eq!(rate_difference(bytes(20_000), &world.paths[0].rtt, RttSource::Smoothed), 0.0);
        world.paths[0].rtt = RttFacts { smoothed: Some(Span::from_millis(50)), min: rtt.min, ..rtt };
        assert_eq!(rate_difference(bytes(20_000), &world.paths[0].rtt, RttSource::Smoothed), 0.0);
    }

    #[test]
    fn light_moderate_and_heavy_load_add_one_half_and_no_chunk() {
        // With RTT = 200 ms and RTTmin = 100 ms, D is half the window. lambda = 1468 and delta = 4404; equality is between.
        let cases = [(2935, M), (2936, 734), (2938, 734), (8806, 734), (8808, 734), (8809, 0), (20_000, 0)];
        for (cwnd, step) in cases {
            let mut world = one(cwnd, 200, 100);
            assert_eq!(grown(&mut rule(), &mut world, 0, cwnd + 5), (cwnd + step, 5), "window {cwnd}");
        }
    }

    #[test]
    fn window_is_unchanged_until_a_window_is_acked() {
        assert_eq!(grown(&mut rule(), &mut one(5000, 200, 100), 0, 4999), (5000, 4999));
    }

    #[test]
    fn slow_start_is_the_standards_unless_the_rule_applies_to_every_sack() {
        let mut world = one(20_000, 200, 100);
        world.paths[0].ssthresh = bytes(65_536);
        let change = grow(&mut rule(), &world, 0, 2936).expect("growth");
        assert_eq!((change.window.cwnd.get(), change.reason.rule), (20_000 + M, "slow start"));
        let mut every = RateDifferenceGrowth { applies: Applies::EverySack, ..rule() };
        assert_eq!(grown(&mut every, &mut world, 0, 2936), (20_000, 0), "a heavy load");
        let mut world = one(5000, 200, 100);
        assert_eq!(grown(&mut every, &mut world, 0, 700), (5734, 0), "a moderate load");
        assert_eq!(grown(&mut every, &mut one(2000, 200, 100), 0, 700), (3468, 0), "a light load");
    }

    #[test]
    fn thresholds_are_lengths_and_the_round_trip_time_may_be_the_latest() {
        let mut world = one(20_000, 200, 100);
        world.paths[0].rtt.latest = Some(Span::from_millis(125));
        // 20,000 x (1 - 100/125) = 4000.
        let with = |lambda, delta| RateDifferenceGrowth {
            lambda: Length::Bytes(lambda),
            delta: Length::Bytes(delta),
            rtt: RttSource::Latest,
            ..rule()
        };
        let step = |lambda, delta| {
            let change =
                grow(&mut with(lambda, delta), &world, 0, 20_000).expect("a window was acknowledged");
            assert!((change.reason.value - 4000.0).abs() < 1e-9);
            change.window.cwnd.get() - 20_000
        };
        assert_eq!([step(4001, 9000), step(1000, 4001), step(1000, 3999)], [M, M / 2, 0]);
        world.paths[0].rtt.latest = None;
        assert_eq!(grown(&mut with(1000, 3999), &mut world, 0, 20_000).0, 20_000 + M, "not measured");
    }
}

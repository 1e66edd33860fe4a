//! `ecf`: earliest completion first.
//!
//! Earliest Completion First (Lim, Nahum, Towsley, Gibbens, CoNEXT 2017, Algorithm 1): if only a slower path has room, compares
//! completion on it with completion on the fastest path, and waits for the fastest if that completes earlier.

use anabranch_core::policy::{
    Context, Decision, Event, EventKind, EventSet, Pick, Policies, Reason, Scheduler, SendAsk, Slot, View,
};
use anabranch_core::profile::Profile;

use crate::component::min_rtt::lowest;
use crate::definition::{Card, Choice, Component, Equation, Kind, Parameter, Role, Value, Values};
use crate::scheduler::by_rtt::{Alternatives, Ranking};
use crate::scheduler::{Unmeasured, window};

pub(crate) const FILE: &str = file!();

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "beta",
        kind: Kind::Decimal { min: 0.0, max: 10.0 },
        unit: "",
        default: Value::Decimal(0.25),
        about: "factor by which a wait that has begun may last longer",
        source: "Lim et al. 2017; Linux MPTCP v0.95",
    },
    Parameter {
        name: "deviations",
        kind: Kind::Decimal { min: 0.0, max: 10.0 },
        unit: "RTTVAR",
        default: Value::Decimal(1.0),
        about: "measure of the standard deviation of a round-trip time",
        source: "Lim et al. 2017; 2 in Linux MPTCP v0.95",
    },
    Parameter::switch(
        "whole-windows",
        false,
        "count at least one window of data, on either path",
        "Linux MPTCP v0.95; not in Lim et al. 2017",
    ),
];

const CARD: Card = Card {
    summary: &[
        "New data goes to the path with the lowest round-trip time of those with room, as with `min-rtt`,",
        "unless that is not the fastest path. Then all queued data is considered: if the fastest path would",
        "complete it before a packet on the slower one is acknowledged, and the slower one could not",
        "complete it before the fastest can be used, new data waits for the fastest path.",
    ],
    equations: &[&[
        Equation {
            name: "Algorithm 1, first test",
            rule: "(1 + k/CWND_f) RTT_f < (1 + waiting beta) (RTT_s + delta), delta = max(sigma_f, sigma_s)",
            file: file!(),
        },
        Equation {
            name: "Algorithm 1, second test",
            rule: "k/CWND_s RTT_s >= 2 RTT_f + delta: wait, waiting = 1; otherwise use the slower path",
            file: file!(),
        },
        Equation {
            name: "Algorithm 1, hysteresis",
            rule: "waiting = 0 when the first test fails; the second test does not reset it",
            file: file!(),
        },
    ]],
    choices: &[&[
        Choice {
            question: "What is k?",
            answer: "All queued data that is not bound to a path, including the next chunk, in chunk bytes as if every chunk \
                     were like the next one.",
            parameter: "whole-windows",
        },
        Choice {
            question: "What is sigma, which a sender does not measure?",
            answer: "RTTVAR, the deviation of RFC 9260; Linux uses twice that.",
            parameter: "deviations",
        },
        Choice {
            question: "When does new data not wait for the fastest path?",
            answer: "If that is not active, has no round-trip sample or no data in flight, or if a share of a buffer blocks it \
                     instead of its window: its next acknowledgement would not open it.",
            parameter: "",
        },
        Choice {
            question: "What happens if the slower path has not been measured?",
            answer: "It is used, which measures it.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "ecf",
    about: "Waits for the fastest path if this completes all queued data earlier",
    source: "Lim, Nahum, Towsley, Gibbens 2017; Linux MPTCP v0.95",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let rules = EcfRules {
        beta: values.decimal("beta"),
        deviations: values.decimal("deviations"),
        whole_windows: values.switch("whole-windows"),
    };
    Policies { scheduler: Box::new(EarliestCompletion::new(rules)), ..policies }
}

/// Numeric settings of ECF's publication and its implementation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EcfRules {
    /// Factor by which a wait that has begun may last longer (beta).
    pub beta: f64,
    /// Number of RTTVAR that represent the standard deviation of a round-trip time.
    pub deviations: f64,
    /// Set if the data to send counts as one window at least, as in Linux.
    pub whole_windows: bool,
}

/// Scheduler that waits for the fastest path if all waiting data then arrives earlier.
#[derive(Debug)]
pub struct EarliestCompletion {
    rules: EcfRules,
    /// Set while the scheduler waits: the hysteresis of Algorithm 1.
    waiting: bool,
}

/// Result of Algorithm 1.
#[derive(Debug)]
enum Verdict {
    /// The fast path completes everything within this many seconds, waiting included.
    Wait(f64),
    /// The fast path alone needs this many seconds, no less than the slow one.
    FastNoSooner(f64),
    /// The slow path completes within this many seconds, before the fast one could be used twice.
    SlowSoonEnough(f64),
}

impl EarliestCompletion {
    /// Creates a scheduler that is not waiting.
    pub fn new(rules: EcfRules) -> Self {
        EarliestCompletion { rules, waiting: false }
    }

    fn weigh(&self, alternatives: &Alternatives<'_>, unassigned: f64) -> Verdict {
        let rules = self.rules;
        let (fast, slow) = (alternatives.fast_rtt.as_secs_f64(), alternatives.slow_rtt.as_secs_f64());
        let variation =
            alternatives.fast.rtt.variance.max(alternatives.slow.rtt.variance).unwrap_or_default();
        let delta = rules.deviations * variation.as_secs_f64();
        let windows = |of: f64| {
            let windows = unassigned / of;
            if rules.whole_windows { windows.max(1.0) } else { windows }
        };
        // First test: (1 + k/CWND_f) RTT_f < (1 + waiting beta)(RTT_s + delta).
        let by_fast = (1.0 + windows(window(alternatives.fast))) * fast;
        let margin = if self.waiting { 1.0 + rules.beta } else { 1.0 };
        if by_fast >= margin * (slow + delta) {
            return Verdict::FastNoSooner(by_fast);
        }
        // Second test: k/CWND_s RTT_s >= 2 RTT_f + delta.
        let by_slow = windows(window(alternatives.slow)) * slow;
        if by_slow >= 2.0 * fast + delta { Verdict::Wait(by_fast) } else { Verdict::SlowSoonEnough(by_slow) }
    }
}

/// Returns the queued bytes without a path, in chunk bytes, as if all chunks had the size of the next one.
fn unassigned(ask: &SendAsk, view: &View<'_>) -> f64 {
    let chunk = ask.chunk.get().max(1);
    let payload = chunk.saturating_sub(DATA_HEADER).max(1);
    view.association.queued_bytes as f64 * chunk as f64 / payload as f64
}

/// Length of the header of a DATA chunk, in bytes (RFC 9260 section 3.3.1).
const DATA_HEADER: u64 = 16;

impl Slot for EarliestCompletion {
    fn events(&self, _: &Profile) -> EventSet {
        EventSet::of(&[EventKind::PathAdded, EventKind::PathRemoved])
    }

    fn on_event(&mut self, event: &Event<'_>, _: &View<'_>, _: &mut Context<'_>) {
        // The path for which the scheduler waited may no longer be the fastest.
        if matches!(event, Event::PathAdded(_) | Event::PathRemoved(_)) {
            self.waiting = false;
        }
    }
}

impl Scheduler for EarliestCompletion {
    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let ranking = Ranking::of(view, Unmeasured::First);
        let Some(alternatives) = ranking.alternatives(ask, view) else {
            let reason = lowest(&ranking);
            return ranking.send(reason);
        };
        match self.weigh(&alternatives, unassigned(ask, view)) {
            Verdict::Wait(by_fast) => {
                self.waiting = true;
                let reason = Reason::figure(
                    "the fastest path completes earlier although it is full",
                    "completion_s",
                    by_fast,
                );
                ranking.wait_for(alternatives.fast.id, reason)
            }
            Verdict::FastNoSooner(by_fast) => {
                self.waiting = false;
                ranking.send(Reason::figure(
                    "the fastest path would not complete earlier",
                    "completion_s",
                    by_fast,
                ))
            }
            Verdict::SlowSoonEnough(by_slow) => ranking.send(Reason::figure(
                "completed before the fastest path can be used",
                "completion_s",
                by_slow,
            )),
        }
    }
}

#[cfg(test)]
mod tests;

//! `blest`: blocking estimation.
//!
//! BLEST (Ferlin, Alay, Mehani, Boreli, IFIP Networking 2016): if only a slower path has room, it stays unused when the data that
//! it would keep in the send window until its acknowledgement would block the fastest path.

use anabranch_core::PathId;
use anabranch_core::policy::{
    Context, Decision, Event, EventKind, EventSet, Pick, Policies, Reason, Scheduler, SendAsk, SendKind,
    Slot, View,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::Time;
use anabranch_core::units::ChunkBytes;

use crate::component::min_rtt::lowest;
use crate::definition::{
    Card, Choice, ChoiceParameter, Component, Equation, Kind, Parameter, Role, Value, Values, text,
};
use crate::scheduler::by_rtt::{Alternatives, Ranking, fastest};
use crate::scheduler::{Unmeasured, window};

const fn decimal(name: &'static str, most: f64, default: f64, about: &'static str) -> Parameter {
    Parameter {
        name,
        kind: Kind::Decimal { min: 0.0, max: most },
        unit: "",
        default: Value::Decimal(default),
        about,
        source: "Linux MPTCP v0.95",
    }
}

const EVIDENCE: ChoiceParameter<BlockingEvidence> = ChoiceParameter {
    name: "evidence",
    options: &[
        ("any", BlockingEvidence::Any),
        ("closed-window", BlockingEvidence::ClosedWindow),
        ("retransmission", BlockingEvidence::OpportunisticRetransmission),
    ],
    default: "any",
    about: "evidence of blocking: the peer's window closed, the head of line retransmitted early, or either",
    source: "Ferlin et al. 2016: retransmission of the head of line; Linux: its cause",
};

const PARAMETERS: &[Parameter] = &[
    decimal("lambda", 10.0, 1.2, "initial correction factor of the estimate"),
    decimal("lambda-min", 10.0, 1.0, "least value of the factor"),
    decimal("lambda-max", 10.0, 1.3, "greatest value of the factor"),
    decimal("step-up", 1.0, 0.04, "increase of the factor after blocking"),
    decimal("step-down", 1.0, 0.01, "decrease of the factor after a round trip without blocking"),
    Parameter::switch(
        "slow-start",
        true,
        "assume that a fast path in slow start doubles its window per round",
        "Linux MPTCP v0.95; not in Ferlin et al. 2016",
    ),
    EVIDENCE.parameter(),
];

const CARD: Card = Card {
    summary: &[
        "New data goes to the path with the lowest round-trip time of those with room, as with `min-rtt`,",
        "unless that is not the fastest path. Then the data that the fastest path would send until the slower",
        "path's acknowledgement is estimated. If the send window is too small for it beside the data on the slower",
        "path, new data waits for the fastest path. Experience corrects the estimate by a factor.",
    ],
    equations: &[&[
        Equation {
            name: "estimate X",
            rule: "X = MSS (CWND_f + (r - 1)/2) r, r = RTT_s/RTT_f; in slow start CWND_f (2^ceil(r) - 1)",
            file: file!(),
        },
        Equation {
            name: "skip test",
            rule: "wait if lambda X > |SW| - MSS_s (inflight_s + 1)",
            file: file!(),
        },
        Equation {
            name: "adaptation",
            rule: "once per minimum RTT_s: lambda += `step-up` if blocking has occurred since, else -= `step-down`; within \
                   `lambda-min` and `lambda-max`",
            file: file!(),
        },
    ]],
    choices: &[&[
        Choice {
            question: "What is the send window SW, which SCTP does not have?",
            answer: "The peer's free window plus the outstanding data: the bytes that can be in flight together.",
            parameter: "",
        },
        Choice {
            question: "How does a fast path in slow start count?",
            answer: text!(
                "By the sum of doubled windows over whole rounds, at most {} of them, while cwnd <= \
                 ssthresh. Linux does so only before the first loss, which a finite ssthresh does not \
                 show.",
                MOST_DOUBLINGS,
            ),
            parameter: "slow-start",
        },
        Choice {
            question: "What shows that the estimate was too small?",
            answer: "The peer's window closes, or an opportunistic retransmission takes place, while the head of line was last \
                     sent on another path than the fastest. Linux takes the first as evidence of the second, on any path.",
            parameter: "evidence",
        },
        Choice {
            question: "When is lambda adapted?",
            answer: "When a slower path is considered and its minimum round-trip time has passed since the last step. The \
                     first time only begins the period.",
            parameter: "",
        },
        Choice {
            question: "When does new data not wait for the fastest path?",
            answer: "If that is not active, has no round-trip sample or no data in flight, or if a share of a buffer blocks it \
                     instead of its window.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "blest",
    about: "Leaves a slower path unused if it would block the fastest one in the send window",
    source: "Ferlin, Alay, Mehani, Boreli 2016; Linux MPTCP v0.95",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let rules = BlestRules {
        lambda: values.decimal("lambda"),
        least: values.decimal("lambda-min"),
        most: values.decimal("lambda-max"),
        up: values.decimal("step-up"),
        down: values.decimal("step-down"),
        slow_start: values.switch("slow-start"),
        evidence: EVIDENCE.get(values),
    };
    Policies { scheduler: Box::new(Blest::new(rules)), ..policies }
}

/// Evidence of blocking that the scheduler should have prevented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockingEvidence {
    /// A closed window or an opportunistic retransmission.
    Any,
    /// The peer's window closed while the head-of-line chunk was on a path other than the fastest.
    ClosedWindow,
    /// The head-of-line chunk was retransmitted from such a path while it was in flight.
    OpportunisticRetransmission,
}

/// Numeric settings of BLEST's publication and its implementation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlestRules {
    /// Initial correction factor of the estimate (lambda).
    pub lambda: f64,
    /// Minimum correction factor.
    pub least: f64,
    /// Maximum correction factor.
    pub most: f64,
    /// Increment after blocking.
    pub up: f64,
    /// Decrement without blocking.
    pub down: f64,
    /// Set if a fast path in slow start is expected to double its window.
    pub slow_start: bool,
    /// Evidence that counts as blocking.
    pub evidence: BlockingEvidence,
}

/// Leaves a slower path unused if it would block the fastest.
#[derive(Clone, Debug)]
pub struct Blest {
    rules: BlestRules,
    lambda: f64,
    /// Set if blocking occurred since lambda was last adapted.
    blocked: bool,
    adapted_at: Option<Time>,
}

/// Maximum number of doublings, which exceed any window; the same as in Linux.
const MOST_DOUBLINGS: u32 = 16;

impl Blest {
    /// Creates a scheduler with the correction factor at its initial value.
    pub fn new(rules: BlestRules) -> Self {
        let mut scheduler = Blest { rules, lambda: rules.lambda, blocked: false, adapted_at: None };
        scheduler.bound();
        scheduler
    }

    fn bound(&mut self) {
        self.lambda = self.lambda.min(self.rules.most).max(self.rules.least);
    }

    /// Adapts lambda by one step, once per round trip of the slow path, by the evidence since the previous step.
    fn adapt(&mut self, alternatives: &Alternatives<'_>, now: Time) {
        let round = alternatives.slow.rtt.min.unwrap_or(alternatives.slow_rtt);
        let began = *self.adapted_at.get_or_insert(now);
        if now == began || now.since(began) < round {
            return;
        }
        self.lambda += if self.blocked { self.rules.up } else { -self.rules.down };
        self.bound();
        self.blocked = false;
        self.adapted_at = Some(now);
    }

    /// Returns X: the bytes that the fast path sends during one round trip of the slow one.
    fn fast_bytes(&self, alternatives: &Alternatives<'_>) -> f64 {
        let fast = alternatives.fast;
        let cwnd = window(fast);
        let ratio = alternatives.slow_rtt.as_nanos() as f64 / alternatives.fast_rtt.as_nanos() as f64;
        if self.rules.slow_start && fast.cwnd <= fast.ssthresh {
            // w (2^r - 1): the sum of w, 2w, 4w, ... over r rounds, rounded up.
            let rounds = (ratio.ceil() as u32).min(MOST_DOUBLINGS);
            cwnd * f64::from((1_u32 << rounds) - 1)
        } else {
            // MSS (w + (r - 1)/2) r: the window grows by one chunk in each of r rounds.
            (cwnd + fast.largest_chunk.get() as f64 * (ratio - 1.0) / 2.0) * ratio
        }
    }

    fn note_blocking(&mut self, evidence: BlockingEvidence, path: Option<PathId>, view: &View<'_>) {
        let counts = self.rules.evidence == BlockingEvidence::Any || self.rules.evidence == evidence;
        let slow = path.is_some_and(|id| fastest(view).is_some_and(|fast| fast.id != id));
        self.blocked |= counts && slow;
    }
}

/// Returns the part of the send window left to the fast path if the slow one takes this chunk too. The send window is the peer's
/// window plus all outstanding data.
fn left_to_fast(alternatives: &Alternatives<'_>, chunk: ChunkBytes, view: &View<'_>) -> f64 {
    let send_window = view.association.peer_window.get() as f64 + view.total_outstanding().get() as f64;
    send_window - (alternatives.slow.in_flight + chunk).get() as f64
}

impl Slot for Blest {
    fn events(&self, _: &Profile) -> EventSet {
        EventSet::of(&[EventKind::Blocked, EventKind::Sent])
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, _: &mut Context<'_>) {
        match *event {
            Event::Blocked { hole } => self.note_blocking(BlockingEvidence::ClosedWindow, hole, view),
            Event::Sent(sent) if sent.kind == SendKind::HeadOfLine => {
                self.note_blocking(BlockingEvidence::OpportunisticRetransmission, sent.previous_path, view);
            }
            _ => {}
        }
    }
}

impl Scheduler for Blest {
    copied!(Scheduler);

    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let ranking = Ranking::of(view, Unmeasured::First);
        let Some(alternatives) = ranking.alternatives(ask, view) else {
            let reason = lowest(&ranking);
            return ranking.send(reason);
        };
        self.adapt(&alternatives, view.now);
        let wanted = self.lambda * self.fast_bytes(&alternatives);
        // lambda X > |SW| - MSS (inflight_s + 1): not on the slow path.
        if wanted > left_to_fast(&alternatives, ask.chunk, view) {
            let reason = Reason::figure(
                "the slower path would block the fastest path",
                "wanted_by_fastest_bytes",
                wanted,
            );
            ranking.wait_for(alternatives.fast.id, reason)
        } else {
            let rule = "the send window has room for the slower path too";
            ranking.send(Reason::figure(rule, "wanted_by_fastest_bytes", wanted))
        }
    }
}

#[cfg(test)]
mod tests;

//! `sttf`: shortest transfer time first.
//!
//! STTF (Hurtig, Grinnemo, Brunstrom, Ferlin, Alay, Kuhn, "Low-Latency Scheduling in MPTCP", IEEE/ACM Transactions on Networking
//! 2019): each chunk is assigned to the path on which it arrives earliest, including the wait there and the growth of the path's
//! window meanwhile. A chunk may wait for a full path, and may be reassigned while it waits.

use anabranch_core::MAX_PATHS;
use anabranch_core::policy::{Context, Decision, PathFacts, Pick, Policies, Scheduler, SendAsk, View};
use anabranch_core::time::{Span, Time};

use crate::definition::{Card, Choice, ChoiceParameter, Component, Equation, Parameter, Role, Values};
use crate::scheduler::arrival::{after_rounds, earliest};
use crate::scheduler::free;

const RTT: ChoiceParameter<TransferRtt> = ChoiceParameter {
    name: "rtt",
    options: &[("smoothed", TransferRtt::Smoothed), ("latest", TransferRtt::Latest)],
    default: "smoothed",
    about: "round-trip time that predicts a transfer",
    source: "Hurtig et al. 2019; `latest` in their kernel",
};

const REPLAN: ChoiceParameter<Replanning> = ChoiceParameter {
    name: "replan",
    options: &[
        ("round-trip", Replanning::EveryRoundTrip),
        ("send-opportunity", Replanning::EverySendOpportunity),
        ("never", Replanning::Never),
    ],
    default: "round-trip",
    about: "frequency at which bound data is compared with a new plan: once in the minimum round-trip time, in every send \
            opportunity, or never",
    source: "Hurtig et al. 2019 compare in every call of the scheduler",
};

const PARAMETERS: &[Parameter] = &[RTT.parameter(), REPLAN.parameter()];

const CARD: Card = Card {
    summary: &[
        "Each chunk goes to the path on which it is expected to arrive first, even if that path is full: queued",
        "data is sent in rounds of one round trip, each with a larger window. The chunk is bound to the path and",
        "waits in its queue. Queued data is assigned again as soon as a new plan differs",
        "by more than one chunk on some path.",
    ],
    equations: &[&[
        Equation {
            name: "transfer time",
            rule: "rtt/2 if the chunk fits the free window behind the bound data; else rounds rtt + rtt/2",
            file: file!(),
        },
        Equation {
            name: "rounds",
            rule: "each round sends a window: w = min(2w, ssthresh + MSS) if w <= ssthresh, else w + MSS",
            file: file!(),
        },
        Equation {
            name: "pre-scheduling",
            rule: "assign all bound data again if |planned_i - bound_i| > 1 chunk on some path",
            file: file!(),
        },
    ]],
    choices: &[&[
        Choice {
            question: "Which round-trip time counts?",
            answer: "The smoothed one, which a single delayed acknowledgement hardly changes.",
            parameter: "rtt",
        },
        Choice {
            question: "Where does slow start end within the rounds?",
            answer: "One chunk above ssthresh, as when ssthresh is a power of two times the window in the authors' \
                     code; for other ratios their code does not follow their own rule of growth.",
            parameter: "",
        },
        Choice {
            question: "When does a chunk fit a window that is not a whole number of chunks?",
            answer: "When less than the window is ahead of it, since RFC 9260 lets the last packet overshoot.",
            parameter: "",
        },
        Choice {
            question: "How often is the plan checked?",
            answer: "At the start of a send opportunity, at most once in the minimum smoothed round-trip time. Assigning a \
                     window of chunks again at every SACK costs as much as the window is large, and within a round trip \
                     little changes. The comparison is made by windows instead of chunks, which gives the same plan.",
            parameter: "replan",
        },
        Choice {
            question: "How does a path without a round-trip sample count?",
            answer: "It carries the data that can be sent at once, which measures it. No data waits for it.",
            parameter: "",
        },
        Choice {
            question: "Does the authors' retransmission of the head of line belong to it?",
            answer: "No: opportunistic retransmission is a separate component.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "sttf",
    about: "Binds each chunk to the path on which it arrives first, with predicted window growth",
    source: "Hurtig et al. 2019; its authors' kernel (mptcp_sttf.c)",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let scheduler = ShortestTransfer::new(RTT.get(values), REPLAN.get(values));
    Policies { scheduler: Box::new(scheduler), ..policies }
}

/// Round-trip time that predicts a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferRtt {
    /// Smoothed round-trip time.
    Smoothed,
    /// Latest sample, as in the authors' kernel.
    Latest,
}

/// Frequency of comparing the plan with the bound data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replanning {
    /// At the start of every send opportunity. Reassigning a window of chunks at each SACK costs time proportional to the window.
    EverySendOpportunity,
    /// At most once per smallest smoothed round-trip time of the active paths: no new information about the others arrives earlier.
    EveryRoundTrip,
    /// Bound data is never reassigned.
    Never,
}

/// Scheduler: earliest arrival with windows that grow.
#[derive(Clone, Debug)]
pub struct ShortestTransfer {
    rtt: TransferRtt,
    replanning: Replanning,
    /// Time of the latest comparison.
    compared_at: Option<Time>,
}

impl ShortestTransfer {
    /// Creates a scheduler with a kind of round-trip time and a rule for comparing plans.
    pub const fn new(rtt: TransferRtt, replanning: Replanning) -> Self {
        ShortestTransfer { rtt, replanning, compared_at: None }
    }

    /// Returns `true` if plans must be compared now.
    fn is_due(&mut self, view: &View<'_>) -> bool {
        let due = match self.replanning {
            Replanning::EverySendOpportunity => true,
            Replanning::Never => false,
            Replanning::EveryRoundTrip => {
                let least = view.active().filter_map(|path| path.rtt.smoothed).min().unwrap_or_default();
                self.compared_at.is_none_or(|at| at + least <= view.now)
            }
        };
        if due {
            self.compared_at = Some(view.now);
        }
        due
    }

    fn rtt_of(&self, path: &PathFacts) -> Option<Span> {
        match self.rtt {
            TransferRtt::Smoothed => path.rtt.smoothed,
            TransferRtt::Latest => path.rtt.latest,
        }
    }

    /// Returns `true` if bound data would be distributed differently now, by more than one chunk on some path.
    fn plan_differs(&self, view: &View<'_>) -> bool {
        let mut plans: [Option<PathPlan>; MAX_PATHS] = [const { None }; MAX_PATHS];
        for path in view.active() {
            plans[path.id.index()] = Some(PathPlan::of(path, self.rtt_of(path), view));
        }
        let mut left: u64 = plans.iter().flatten().map(|plan| plan.bound).sum();
        while left > 0 {
            let open = plans.iter_mut().flatten().filter(|plan| plan.room() > 0);
            let Some(plan) = open.min_by_key(|plan| plan.arrival()) else {
                return false;
            };
            left -= plan.fill(left);
        }
        plans.iter().flatten().any(|plan| plan.planned.abs_diff(plan.bound) > 1)
    }
}

ignores_events! { ShortestTransfer }

impl Scheduler for ShortestTransfer {
    copied!(Scheduler);

    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        // The chunk is sent after rounds * rtt, and arrives rtt/2 later.
        let arrival = |path: &PathFacts, rtt: Span| {
            after_rounds(Rounds::of(path, view).first_beyond(path.bound.get()), rtt)
        };
        earliest(ask, view, |path| self.rtt_of(path), arrival)
    }

    fn replan(&mut self, view: &View<'_>) -> bool {
        self.is_due(view) && self.plan_differs(view)
    }
}

/// Future rounds of a path. The first one sends the free part of the window, each later one a whole grown window. A chunk is sent
/// in a round if less than the round's capacity is ahead of it, since the last packet may overshoot a window.
struct Rounds {
    number: u64,
    /// Bytes sent by the end of the round.
    capacity: u64,
    window: u64,
    ssthresh: u64,
    chunk: u64,
}

impl Rounds {
    fn of(path: &PathFacts, view: &View<'_>) -> Self {
        let chunk = path.largest_chunk.get().max(1);
        let capacity = free(path, view).get();
        Rounds {
            number: 0,
            capacity,
            window: path.cwnd.get().max(chunk),
            ssthresh: path.ssthresh.get(),
            chunk,
        }
    }

    /// Advances to the next round: doubles the window in slow start, which ends one chunk above ssthresh, then adds one chunk.
    fn advance(&mut self) {
        self.window = if self.window <= self.ssthresh {
            self.window.saturating_mul(2).min(self.ssthresh.saturating_add(self.chunk))
        } else {
            self.window.saturating_add(self.chunk)
        };
        self.capacity = self.capacity.saturating_add(self.window);
        self.number += 1;
    }

    /// Returns the round in which a chunk with this many bytes ahead of it is sent.
    fn first_beyond(mut self, ahead: u64) -> u64 {
        while self.capacity <= ahead {
            if self.window > self.ssthresh {
                return self.number + self.linear_rounds(ahead - self.capacity);
            }
            self.advance();
        }
        self.number
    }

    /// Returns the least n with (w+m) + (w+2m) + ... + (w+nm) = n w + m n (n+1)/2 above `ahead`: one more than the integer part of
    /// the positive root of m n^2 + (2w+m) n - 2 ahead.
    fn linear_rounds(&self, ahead: u64) -> u64 {
        let (window, chunk, ahead) = (u128::from(self.window), u128::from(self.chunk), u128::from(ahead));
        let b = 2 * window + chunk;
        let square = b * b + 8 * chunk * ahead;
        // The square almost always fits into 64 bits, which are several times as fast.
        let root = u64::try_from(square).map_or_else(|_| square.isqrt(), |square| u128::from(square.isqrt()));
        ((root - b) / (2 * chunk) + 1) as u64
    }
}

/// Path in a plan, in chunks.
struct PathPlan {
    rounds: Rounds,
    rtt: Option<Span>,
    /// Chunks bound to the path.
    bound: u64,
    /// Chunks assigned by the plan.
    planned: u64,
    /// Maximum that the plan may assign.
    most: u64,
}

impl PathPlan {
    fn of(path: &PathFacts, rtt: Option<Span>, view: &View<'_>) -> Self {
        let rounds = Rounds::of(path, view);
        let bound = path.bound.get().div_ceil(rounds.chunk);
        // A path beyond its buffer share gets no more chunks; an unmeasured one gets the chunks that can be sent at once.
        let most = if path.within_share { u64::MAX } else { bound };
        let most = if rtt.is_some() { most } else { most.min(rounds.capacity.div_ceil(rounds.chunk)) };
        let mut plan = PathPlan { rounds, rtt, bound, planned: 0, most };
        plan.open();
        plan
    }

    /// Advances to the first round with room.
    fn open(&mut self) {
        while self.planned < self.most && self.room() == 0 {
            self.rounds.advance();
        }
    }

    /// Returns the number of chunks that can still be sent in this round.
    fn room(&self) -> u64 {
        self.rounds.capacity.div_ceil(self.rounds.chunk).min(self.most) - self.planned
    }

    fn arrival(&self) -> Span {
        self.rtt.map_or(Span::ZERO, |rtt| after_rounds(self.rounds.number, rtt))
    }

    /// Assigns the chunks sent in this round, at most `left`. Returns their number.
    fn fill(&mut self, left: u64) -> u64 {
        let taken = self.room().min(left);
        self.planned += taken;
        self.open();
        taken
    }
}

#[cfg(test)]
mod tests;

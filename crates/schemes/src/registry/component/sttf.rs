//! `sttf`: shortest transfer time first.

use anabranch_core::policy::Policies;

use crate::registry::component::unchanged;
use crate::registry::component::{Component, Role};
use crate::registry::{Card, Choice, Equation, Kind, Parameter, Value, Values};
use crate::scheduler::{Replanning, ShortestTransfer, TransferRtt};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "rtt",
        kind: Kind::Choice(&["smoothed", "latest"]),
        unit: "",
        default: Value::Choice("smoothed"),
        about: "round-trip time that predicts a transfer",
        source: "Hurtig et al. 2019; `latest` in their kernel",
    },
    Parameter {
        name: "replan",
        kind: Kind::Choice(&["round-trip", "turn", "never"]),
        unit: "",
        default: Value::Choice("round-trip"),
        about: "how often what is bound is compared with a new plan: once in the least round-trip time, in every send opportunity, never",
        source: "Hurtig et al. 2019 compare in every call of the scheduler",
    },
];

const PLACE: &str = "crates/schemes/src/scheduler/sttf.rs";

const CARD: Card = Card {
    summary: &[
        "Each chunk goes to the path on which it is expected to arrive first, full as that may be: what",
        "waits there leaves in rounds of one round trip, each with a larger window. The chunk is bound to",
        "the path and waits in its queue. What waits is placed anew as soon as it would be spread",
        "otherwise by more than one chunk on some path.",
    ],
    equations: &[
        Equation {
            name: "transfer time",
            rule: "rtt/2 if the chunk fits the free window behind what is bound; else rounds rtt + rtt/2",
            place: PLACE,
        },
        Equation {
            name: "rounds",
            rule: "each round sends a window: w = min(2w, ssthresh + MSS) if w <= ssthresh, else w + MSS",
            place: PLACE,
        },
        Equation {
            name: "pre-scheduling",
            rule: "place all that is bound anew if |planned_i - bound_i| > 1 chunk on some path",
            place: PLACE,
        },
    ],
    choices: &[
        Choice {
            question: "Which round-trip time?",
            answer: "The smoothed one, which a single delayed acknowledgement does not move.",
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
            answer: "As a send opportunity begins, at most once in the least smoothed round-trip time: placing a window of \
                     chunks anew at every SACK costs as much as the window is large, and before a round trip little \
                     new is known. The comparison goes window by window instead of chunk by chunk, which gives the \
                     same plan.",
            parameter: "replan",
        },
        Choice {
            question: "What of a path that has not been measured?",
            answer: "It takes what can leave at once, which measures it, and nothing waits for it.",
            parameter: "",
        },
        Choice {
            question: "Does the authors' retransmission of the head of line belong to it?",
            answer: "Not here: relief of the head of line is a component of its own.",
            parameter: "",
        },
    ],
};

pub(crate) const COMPONENT: Component = Component {
    name: "sttf",
    about: "Binds each chunk to the path on which it arrives first, window growth foreseen",
    source: "Hurtig et al. 2019; its authors' kernel (mptcp_sttf.c)",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    profile: unchanged,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let rtt = if values.choice("rtt") == "latest" { TransferRtt::Latest } else { TransferRtt::Smoothed };
    let replanning = match values.choice("replan") {
        "turn" => Replanning::EveryTurn,
        "never" => Replanning::Never,
        _ => Replanning::EveryRoundTrip,
    };
    Policies { scheduler: Box::new(ShortestTransfer::new(rtt, replanning)), ..policies }
}

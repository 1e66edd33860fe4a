//! `blest`: blocking estimation.

use anabranch_core::policy::Policies;

use crate::registry::component::unchanged;
use crate::registry::component::{Component, Role};
use crate::registry::preset::shared::switch;
use crate::registry::{Card, Choice, Equation, Kind, Parameter, Value, Values};
use crate::scheduler::{Blest, BlestRules, HeldUpBy};

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

const PARAMETERS: &[Parameter] = &[
    decimal("lambda", 10.0, 1.2, "correction factor of the estimate at the beginning"),
    decimal("lambda-min", 10.0, 1.0, "its least value"),
    decimal("lambda-max", 10.0, 1.3, "its greatest value"),
    decimal("step-up", 1.0, 0.04, "what is added to it after blocking"),
    decimal("step-down", 1.0, 0.01, "what is taken off it after a round trip without blocking"),
    switch(
        "slow-start",
        true,
        "expect a fast path in slow start to double its window per round",
        "Linux MPTCP v0.95; not in Ferlin et al. 2016",
    ),
    Parameter {
        name: "evidence",
        kind: Kind::Choice(&["any", "closed-window", "relief"]),
        unit: "",
        default: Value::Choice("any"),
        about: "what counts as blocking: the peer's window closed, the head of line sent again, or either",
        source: "Ferlin et al. 2016: retransmission of the head of line; Linux: its occasion",
    },
];

const PLACE: &str = "crates/schemes/src/scheduler/blest.rs";

const CARD: Card = Card {
    summary: &[
        "New data goes to the path with the lowest round-trip time of those with room, as with `min-rtt`,",
        "unless that is not the fastest path. Then what the fastest would send until the slower one's",
        "acknowledgement is estimated. If the send window is too small for that beside what the slower path",
        "would hold, new data waits for the fastest. A factor corrects the estimate by experience.",
    ],
    equations: &[
        Equation {
            name: "estimate X",
            rule: "X = MSS (CWND_f + (r - 1)/2) r, r = RTT_s/RTT_f; in slow start CWND_f (2^ceil(r) - 1)",
            place: PLACE,
        },
        Equation {
            name: "skip test",
            rule: "wait if lambda X > |SW| - MSS_s (inflight_s + 1)",
            place: PLACE,
        },
        Equation {
            name: "adaptation",
            rule: "once per least RTT_s: lambda += 0.04 if something was blocked since, else -= 0.01; in [1, 1.3]",
            place: PLACE,
        },
    ],
    choices: &[
        Choice {
            question: "What is the send window SW, which SCTP does not have?",
            answer: "What the peer still offers plus what is outstanding: the bytes that could be on their way \
                     together.",
            parameter: "",
        },
        Choice {
            question: "What of a fast path in slow start?",
            answer: "The sum of doubled windows over whole rounds, at most 16, while cwnd <= ssthresh. Linux does so \
                     only before the first loss, which no finite ssthresh shows.",
            parameter: "slow-start",
        },
        Choice {
            question: "What shows that the estimate was too small?",
            answer: "The peer's window closing, or a relieving copy, while the head of line was last sent on a path \
                     other than the fastest. Linux takes the first for the second and asks for no path.",
            parameter: "evidence",
        },
        Choice {
            question: "When is lambda adapted?",
            answer: "As a slower path is considered and its least round-trip sample has passed since the last step; \
                     the first time only begins the period.",
            parameter: "",
        },
        Choice {
            question: "When is the fastest path not waited for?",
            answer: "When it is not active, when its round-trip time is unknown, when nothing is in flight on it, \
                     and when a share of a buffer rather than its window refuses it.",
            parameter: "",
        },
    ],
};

pub(crate) const COMPONENT: Component = Component {
    name: "blest",
    about: "Leaves a slower path unused if it would block the fastest in the send window",
    source: "Ferlin, Alay, Mehani, Boreli 2016; Linux MPTCP v0.95",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    profile: unchanged,
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
        held_up_by: match values.choice("evidence") {
            "closed-window" => HeldUpBy::ClosedWindow,
            "relief" => HeldUpBy::Relief,
            _ => HeldUpBy::Any,
        },
    };
    Policies { scheduler: Box::new(Blest::new(rules)), ..policies }
}

//! `opportunistic`: copies of the head of line while the peer's window is closed.

use anabranch_core::policy::Policies;

use crate::congestion::Penalised;
use crate::registry::component::{Component, Role, unchanged};
use crate::registry::preset::shared::switch;
use crate::registry::{Card, Choice, Equation, Kind, Parameter, Value, Values};
use crate::retransmit::{Condition, Opportunistic};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "when",
        kind: Kind::Choice(&["linux", "always"]),
        unit: "",
        default: Value::Choice("linux"),
        about: "copy where the slow path is much slower or has a small window, or whenever a path has room",
        source: "MPTCP in Linux 0.9x; Raiciu et al. 2012 copies always",
    },
    switch(
        "penalise",
        false,
        "halve the window of the slower path that holds the head of line when it is copied",
        "Raiciu et al. 2012, penalisation; Linux MPTCP v0.9x",
    ),
];

const CARD: Card = Card {
    summary: &[
        "While the peer's window keeps new data back, the fastest path with room that does not carry the",
        "head of line yet sends a copy of it. The chunk is not lost and no window is cut; whichever copy",
        "arrives first opens the window.",
    ],
    equations: &[Equation {
        name: "mptcp_rcv_buf_optimization",
        rule: "copy if cwnd_slow <= 4 chunks or 4 * srtt_fast < srtt_slow",
        place: "crates/schemes/src/retransmit/opportunistic.rs",
    }],
    choices: &[
        Choice {
            question: "When is a copy worth it?",
            answer: "As in Linux; the paper copies whenever a path has room.",
            parameter: "when",
        },
        Choice {
            question: "Which path is the fastest?",
            answer: "The one with the least smoothed round-trip time; one without comes last, the lowest id first among equals.",
            parameter: "",
        },
        Choice {
            question: "What if several slow paths carry the chunk?",
            answer: "They are asked in order of id: the first with a small window decides for the copy, the first that is not \
                     much slower against it, as Linux's loop does.",
            parameter: "",
        },
        Choice {
            question: "Is the slow path penalised?",
            answer: "Only if asked for, so that copying alone can be compared. Then its window is halved, at most once \
                     in the fast path's round-trip time.",
            parameter: "penalise",
        },
    ],
};

pub(crate) const COMPONENT: Component = Component {
    name: "opportunistic",
    about: "Copies the head of line to a fast path while the peer's window is closed",
    source: "Raiciu et al. 2012; MPTCP in Linux",
    role: Role::Relief,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    profile: unchanged,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let condition = match values.choice("when") {
        "always" => Condition::Always,
        _ => Condition::MuchSlower,
    };
    let retransmit = Box::new(Opportunistic { inner: policies.retransmit, condition });
    let congestion = match values.switch("penalise") {
        true => Box::new(Penalised::new(policies.congestion)),
        false => policies.congestion,
    };
    Policies { retransmit, congestion, ..policies }
}

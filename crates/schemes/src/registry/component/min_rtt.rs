//! `min-rtt`: the path with the lowest round-trip time.

use anabranch_core::policy::Policies;

use crate::congestion::Penalised;
use crate::registry::component::unchanged;
use crate::registry::component::{Component, Role};
use crate::registry::preset::shared::switch;
use crate::registry::{Card, Choice, Equation, Kind, Parameter, Value, Values};
use crate::retransmit::{Condition, Opportunistic};
use crate::scheduler::{MinRtt, Unmeasured};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "unmeasured",
        kind: Kind::Choice(&["first", "last"]),
        unit: "",
        default: Value::Choice("first"),
        about: "rank of a path whose round-trip time is not known yet",
        source: "first in Linux, where a smoothed time begins at zero",
    },
    switch(
        "opportunistic",
        false,
        "while the peer's window holds data back, send the head of line again on the fastest path with room",
        "Raiciu et al. 2012, opportunistic retransmission; Linux MPTCP v0.9x",
    ),
    switch(
        "penalise",
        false,
        "then also halve the window of the slower path that holds the head of line",
        "Raiciu et al. 2012, penalisation; Linux MPTCP v0.9x",
    ),
];

const CARD: Card = Card {
    summary: &[
        "Each packet of new data goes to the path with the lowest smoothed round-trip time of those",
        "with room. It never waits while any path has room.",
    ],
    equations: &[Equation {
        name: "get_available_subflow",
        rule: "argmin of srtt over active paths with outstanding < cwnd; of equal ones the lowest id",
        place: "crates/schemes/src/scheduler/min_rtt.rs",
    }],
    choices: &[
        Choice {
            question: "Where does a path stand that has not been measured?",
            answer: "First, as in Linux: only what is sent on it measures it.",
            parameter: "unmeasured",
        },
        Choice {
            question: "Does Linux's relief of the receive buffer belong to the scheduler?",
            answer: "It is part of Linux's default scheduler, but changes retransmission and windows. It is off by \
                     default, so that the choice of paths alone can be compared.",
            parameter: "opportunistic",
        },
        Choice {
            question: "And its penalisation of the slower path?",
            answer: "Likewise off by default. It answers a copy of the head of line, so it does nothing without them.",
            parameter: "penalise",
        },
    ],
};

pub(crate) const COMPONENT: Component = Component {
    name: "min-rtt",
    about: "New data on the path with the lowest round-trip time of those with room",
    source: "Linux MPTCP v0.9x, default scheduler; Raiciu et al. 2012; Paasch et al. 2014",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    profile: unchanged,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let unmeasured = if values.choice("unmeasured") == "last" { Unmeasured::Last } else { Unmeasured::First };
    let mut policies = Policies { scheduler: Box::new(MinRtt { unmeasured }), ..policies };
    if values.switch("opportunistic") {
        let inner = policies.retransmit;
        policies.retransmit = Box::new(Opportunistic { inner, condition: Condition::MuchSlower });
    }
    if values.switch("penalise") {
        policies.congestion = Box::new(Penalised::new(policies.congestion));
    }
    policies
}

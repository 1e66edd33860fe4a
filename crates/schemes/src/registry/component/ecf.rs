//! `ecf`: earliest completion first.

use anabranch_core::policy::Policies;

use crate::registry::component::unchanged;
use crate::registry::component::{Component, Role};
use crate::registry::preset::shared::switch;
use crate::registry::{Card, Choice, Equation, Kind, Parameter, Value, Values};
use crate::scheduler::{EarliestCompletion, EcfRules};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "beta",
        kind: Kind::Decimal { min: 0.0, max: 10.0 },
        unit: "",
        default: Value::Decimal(0.25),
        about: "by how much longer a wait that has begun may last",
        source: "Lim et al. 2017; Linux MPTCP v0.95",
    },
    Parameter {
        name: "deviations",
        kind: Kind::Decimal { min: 0.0, max: 10.0 },
        unit: "RTTVAR",
        default: Value::Decimal(1.0),
        about: "what stands for the standard deviation of a round-trip time",
        source: "Lim et al. 2017; 2 in Linux MPTCP v0.95",
    },
    switch(
        "whole-windows",
        false,
        "count what is to be sent as one window at least, on either path",
        "Linux MPTCP v0.95; not in Lim et al. 2017",
    ),
];

const PLACE: &str = "crates/schemes/src/scheduler/ecf.rs";

const CARD: Card = Card {
    summary: &[
        "New data goes to the path with the lowest round-trip time of those with room, as with `min-rtt`,",
        "unless that is not the fastest path. Then all that is queued is weighed: if the fastest path would",
        "complete it before a packet on the slower one is acknowledged, and the slower one could not",
        "complete it before the fastest can be used, new data waits for the fastest.",
    ],
    equations: &[
        Equation {
            name: "Algorithm 1, first test",
            rule: "(1 + k/CWND_f) RTT_f < (1 + waiting beta) (RTT_s + delta), delta = max(sigma_f, sigma_s)",
            place: PLACE,
        },
        Equation {
            name: "Algorithm 1, second test",
            rule: "k/CWND_s RTT_s >= 2 RTT_f + delta: wait, waiting = 1; otherwise use the slower path",
            place: PLACE,
        },
        Equation {
            name: "Algorithm 1, hysteresis",
            rule: "waiting = 0 when the first test fails; the second leaves it as it is",
            place: PLACE,
        },
    ],
    choices: &[
        Choice {
            question: "What is k?",
            answer: "All that is queued and has no path yet, the next chunk included, in chunk bytes as if every \
                     chunk were like the next one.",
            parameter: "whole-windows",
        },
        Choice {
            question: "What is sigma, which a sender does not measure?",
            answer: "RTTVAR, the deviation that RFC 9260 keeps; Linux takes twice that.",
            parameter: "deviations",
        },
        Choice {
            question: "When is the fastest path not waited for?",
            answer: "When it is not active, when its round-trip time is unknown, when nothing is in flight on it, \
                     and when a share of a buffer rather than its window refuses it: its next acknowledgement \
                     would not open it.",
            parameter: "",
        },
        Choice {
            question: "What if the slower path has not been measured?",
            answer: "It is used, which measures it.",
            parameter: "",
        },
    ],
};

pub(crate) const COMPONENT: Component = Component {
    name: "ecf",
    about: "Waits for the fastest path if all that is queued is completed earlier so",
    source: "Lim, Nahum, Towsley, Gibbens 2017; Linux MPTCP v0.95",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    profile: unchanged,
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

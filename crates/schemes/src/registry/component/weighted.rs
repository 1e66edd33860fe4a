//! `weighted`: shares in bytes by given weights.

use anabranch_core::policy::Policies;

use crate::registry::component::unchanged;
use crate::registry::component::{Component, Role};
use crate::registry::{Card, Choice, Equation, Kind, Length, Parameter, Value, Values, Weights};
use crate::scheduler::Weighted;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "weights",
        kind: Kind::Weights,
        unit: "",
        default: Value::Weights(Weights::EQUAL),
        about: "bytes of new data that the paths carry in proportion to each other, in order of their ids",
        source: "Shreedhar and Varghese 1996",
    },
    Parameter {
        name: "limit",
        kind: Kind::Length,
        unit: "",
        default: Value::Length(Length::Chunks(10.0)),
        about: "most that a path may be behind or ahead of its share; more is forgotten",
        source: "ours",
    },
];

const CARD: Card = Card {
    summary: &[
        "Each packet of new data goes to the path with room that is furthest behind its share in bytes.",
        "Shares are those of the active paths. A path whose window is full catches up afterwards, within",
        "the limit; where windows are full most of the time they decide, and the weights do not.",
    ],
    equations: &[Equation {
        name: "deficit",
        rule: "credit_i += b w_i / sum of w over active paths, for each b bytes sent; credit_carrier -= b",
        place: "crates/schemes/src/scheduler/weighted.rs",
    }],
    choices: &[
        Choice {
            question: "Does a path earn while it cannot send?",
            answer: "Yes while it is active, up to the limit, so that a short full window does not shift the \
                     shares. Out of service it earns nothing and begins at zero when it returns.",
            parameter: "limit",
        },
        Choice {
            question: "Does new data wait for the path whose turn it is?",
            answer: "No. A window with room is always used.",
            parameter: "",
        },
        Choice {
            question: "Do retransmissions count?",
            answer: "No. Only the first transmission of a chunk is scheduled here.",
            parameter: "",
        },
    ],
};

pub(crate) const COMPONENT: Component = Component {
    name: "weighted",
    about: "New data shared between the paths by weights, in bytes",
    source: "deficit round robin: Shreedhar and Varghese 1996",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    profile: unchanged,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let scheduler = Weighted::new(values.weights("weights"), values.length("limit"));
    Policies { scheduler: Box::new(scheduler), ..policies }
}

//! `otias`: out-of-order transmission for in-order arrival.

use anabranch_core::policy::Policies;

use crate::registry::component::unchanged;
use crate::registry::component::{Component, Role};
use crate::registry::{Card, Choice, Equation, Kind, Parameter, Value, Values};
use crate::scheduler::{Otias, WaitRounding};

const PARAMETERS: &[Parameter] = &[Parameter {
    name: "rounding",
    kind: Kind::Choice(&["down", "begun"]),
    unit: "",
    default: Value::Choice("down"),
    about: "round trips that a chunk waits: whole windows ahead of it, or the one it is in as well",
    source: "down: Yang, Wang, Amer 2014 and the kernel module of MP-DCCP",
}];

const PLACE: &str = "crates/schemes/src/scheduler/otias.rs";

const CARD: Card = Card {
    summary: &[
        "Each chunk goes to the path on which it is expected to arrive first, full as that may be: what",
        "waits there leaves one window per round trip, and windows are expected to stay as they are. The",
        "chunk is bound to the path and waits in its queue until it leaves.",
    ],
    equations: &[
        Equation {
            name: "RTT_to_wait",
            rule: "0 if bound_j < free_j, else floor((bound_j - free_j) / cwnd_j)",
            place: PLACE,
        },
        Equation { name: "T", rule: "argmin over j of (RTT_to_wait_j + 0.5) srtt_j", place: PLACE },
    ],
    choices: &[
        Choice {
            question: "Is a full path with nothing queued a path without wait?",
            answer: "By the published floor it is, although an acknowledgement has to come first. Kept.",
            parameter: "rounding",
        },
        Choice {
            question: "What of a path that has not been measured?",
            answer: "It takes what can leave at once, which measures it, and nothing waits for it.",
            parameter: "",
        },
        Choice {
            question: "Are decisions revised?",
            answer: "No, as published; only what is bound to a path that leaves service is placed anew.",
            parameter: "",
        },
    ],
};

pub(crate) const COMPONENT: Component = Component {
    name: "otias",
    about: "Binds each chunk to the path on which it arrives first, windows as they are",
    source: "Yang, Wang, Amer 2014",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    profile: unchanged,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let rounding =
        if values.choice("rounding") == "begun" { WaitRounding::Begun } else { WaitRounding::Down };
    Policies { scheduler: Box::new(Otias { rounding }), ..policies }
}

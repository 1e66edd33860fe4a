//! `redundant`: every packet on every path with room.

use anabranch_core::policy::Policies;

use crate::registry::component::unchanged;
use crate::registry::component::{Component, Role};
use crate::registry::{Card, Choice, Equation, Values};
use crate::scheduler::Redundant;

const CARD: Card = Card {
    summary: &[
        "Each packet of new data is sent at once on every path that has room, so that the fastest copy",
        "counts and a loss on one path costs nothing. Throughput is that of one path.",
    ],
    equations: &[Equation {
        name: "redundant",
        rule: "a copy on each active path with outstanding < cwnd",
        place: "crates/schemes/src/scheduler/redundant.rs",
    }],
    choices: &[
        Choice {
            question: "Does a path that was full at the time get its copy later?",
            answer: "No. It goes on with the data that is new when it has room. In Linux each path walks through the \
                     send queue at a pace of its own, so that a slower path may send what has arrived by then.",
            parameter: "",
        },
        Choice {
            question: "Is a probe of the peer's closed window copied?",
            answer: "No. It is one packet beyond what the peer offered (RFC 9260 section 6.1 A).",
            parameter: "",
        },
    ],
};

pub(crate) const COMPONENT: Component = Component {
    name: "redundant",
    about: "Every packet of new data on every path with room at once",
    source: "Frommgen et al. 2016; Linux MPTCP v0.9x, mptcp_redundant",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: &[],
    card: CARD,
    profile: unchanged,
    apply,
};

fn apply(_: &Values, policies: Policies) -> Policies {
    Policies { scheduler: Box::new(Redundant), ..policies }
}

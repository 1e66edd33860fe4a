//! `round-robin`: packet by packet over the paths in turn.

use anabranch_core::policy::Policies;

use crate::registry::component::unchanged;
use crate::registry::component::{Component, Role};
use crate::registry::{Card, Choice, Equation, Values};
use crate::scheduler::RoundRobin;

const CARD: Card = Card {
    summary: &[
        "Each packet of new data goes to the next path with room after the one that carried the packet",
        "before. A path without room is passed over and owed nothing.",
    ],
    equations: &[Equation {
        name: "mptcp_rr with num_segments = 1, cwnd_limited = Y",
        rule: "the first path with room in the order last+1, last+2, ..., last",
        place: "crates/schemes/src/scheduler/round_robin.rs",
    }],
    choices: &[Choice {
        question: "Does the circle stop at a path without room?",
        answer: "No. Linux fills every window as well unless told otherwise, and stopping would idle the others.",
        parameter: "",
    }],
};

pub(crate) const COMPONENT: Component = Component {
    name: "round-robin",
    about: "New data packet by packet over the paths in turn",
    source: "Linux MPTCP v0.9x, mptcp_rr; Paasch et al. 2014",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: &[],
    card: CARD,
    profile: unchanged,
    apply,
};

fn apply(_: &Values, policies: Policies) -> Policies {
    Policies { scheduler: Box::new(RoundRobin), ..policies }
}

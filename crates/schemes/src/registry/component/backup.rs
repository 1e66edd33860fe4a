//! `backup`: one path at a time.

use anabranch_core::policy::Policies;

use crate::registry::component::unchanged;
use crate::registry::component::{Component, Role};
use crate::registry::{Card, Choice, Equation, Values};
use crate::scheduler::PrimaryOnly;

const CARD: Card = Card {
    summary: &[
        "New data goes on the primary path while that is active, otherwise on the active path with the",
        "lowest id. The others carry new data only when no earlier one is active; a full window is waited",
        "for. The scheduler of `sctp`, for the windows and retransmissions of another scheme.",
    ],
    equations: &[Equation {
        name: "backup",
        rule: "the first active path in the order primary, 0, 1, 2, ...",
        place: "crates/schemes/src/scheduler/primary.rs",
    }],
    choices: &[Choice {
        question: "Is a backup path used while the first one is full?",
        answer: "No: RFC 8684 has a backup path carry data only while no other is available, and a full window is \
                 open again after a round trip.",
        parameter: "",
    }],
};

pub(crate) const COMPONENT: Component = Component {
    name: "backup",
    about: "New data on one path at a time, the others as stand-ins",
    source: "RFC 8684 section 3.3.8; RFC 9260 section 6.4",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: &[],
    card: CARD,
    profile: unchanged,
    apply,
};

fn apply(_: &Values, policies: Policies) -> Policies {
    Policies { scheduler: Box::new(PrimaryOnly), ..policies }
}

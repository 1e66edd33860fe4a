//! `nr-sack`: acknowledgements that let the sender forget.

use anabranch_core::policy::Policies;

use crate::ack::NonRenegable;
use crate::registry::component::{Component, Role, unchanged};
use crate::registry::{Card, Choice, Equation, Kind, Parameter, Value, Values};

const PARAMETERS: &[Parameter] = &[Parameter {
    name: "keeps",
    kind: Kind::Choice(&["all", "delivered"]),
    unit: "",
    default: Value::Choice("all"),
    about: "what the receiver never drops: all that has arrived, or what the application was handed",
    source: "Yilmaz et al. 2010; ns-2.35 has the latter only",
}];

const CARD: Card = Card {
    summary: &[
        "The receiver answers with NR-SACKs, whose second list of gap blocks names what it will never drop.",
        "The sender releases that at once instead of keeping it until the cumulative TSN passes it, which",
        "frees its send buffer while a hole is open. It frees nothing at the receiver, and changes nothing",
        "for a sender whose buffer has no limit. When SACKs are sent stays as it was.",
    ],
    equations: &[Equation {
        name: "draft-natarajan-tsvwg-sctp-nrsack",
        rule: "release TSN if it is in an NR gap block; loss and windows as with the union of both lists",
        place: "crates/schemes/src/ack/non_renegable.rs",
    }],
    choices: &[Choice {
        question: "What does a receiver promise to keep?",
        answer: "All of it, since this one never drops what it has acknowledged. Promising only what was handed to the \
                 application, as ns-2 does, is the same as SACK on a single ordered stream: nothing behind a hole is handed over.",
        parameter: "keeps",
    }],
};

pub(crate) const COMPONENT: Component = Component {
    name: "nr-sack",
    about: "Acknowledges with NR-SACKs, so that the sender releases what has arrived behind a hole",
    source: "Yilmaz et al. 2010; draft-natarajan-tsvwg-sctp-nrsack; ns-2.35",
    role: Role::Acknowledgement,
    needs_multipath: false,
    parameters: PARAMETERS,
    card: CARD,
    profile: unchanged,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let keeps_all = values.choice("keeps") != "delivered";
    Policies { ack: Box::new(NonRenegable { inner: policies.ack, keeps_all }), ..policies }
}

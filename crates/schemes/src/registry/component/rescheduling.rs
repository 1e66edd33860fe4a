//! `rescheduling`: the head of line moves to the path whose data waits behind it.

use anabranch_core::policy::Policies;

use crate::registry::component::split::{PATHS, SIDE, sharers, side};
use crate::registry::component::{Component, Role, unchanged};
use crate::registry::{Card, Choice, Equation, Kind, Parameter, Value, Values};
use crate::retransmit::{Limit, Rescheduling, ReschedulingSettings};

const PARAMETERS: &[Parameter] = &[
    SIDE,
    Parameter {
        name: "limit",
        kind: Kind::Choice(&["whole", "share"]),
        unit: "",
        default: Value::Choice("whole"),
        about: "compare with the whole buffer, or with a path's equal share as `split` makes them",
        source: "INET: a share if buffers are split",
    },
    PATHS,
    Parameter {
        name: "threshold",
        kind: Kind::Decimal { min: 0.01, max: 1.0 },
        unit: "",
        default: Value::Decimal(0.5),
        about: "blocking fraction from which on the head of line moves",
        source: "Adhari et al. 2011; INET: 0.5",
    },
    Parameter {
        name: "age",
        kind: Kind::Decimal { min: 0.0, max: 100.0 },
        unit: "",
        default: Value::Decimal(0.0),
        about: "smoothed round trips that it must have been under way for",
        source: "INET: none for a chunk of another path; 2 for one of the same path",
    },
];

const PLACE: &str = "crates/schemes/src/retransmit/rescheduling.rs";

const CARD: Card = Card {
    summary: &[
        "Where the data of a path that has arrived and waits behind a hole fills half of a buffer, the chunk",
        "that is missing moves to that path, if it has room and is not in recovery. The path that the chunk",
        "was on answers as to a loss. No chunk moves twice.",
    ],
    equations: &[
        Equation {
            name: "blocking fraction",
            rule: "(b_p - out_p) / limit >= 0.5, for the sender's or the receiver's limit",
            place: PLACE,
        },
        Equation { name: "sender's limit", rule: "S [/ n]", place: PLACE },
        Equation {
            name: "receiver's limit",
            rule: "(peer's window + all in the send buffer) [/ n]",
            place: PLACE,
        },
    ],
    choices: &[
        Choice {
            question: "Of several blocked paths, which one takes the chunk?",
            answer: "The one with the largest fraction. INET takes the first that it comes to in its sending order, which here is \
                     the scheduler's affair.",
            parameter: "",
        },
        Choice {
            question: "Must the chunk have been under way for a time?",
            answer: "No. INET asks for two round trips only of a chunk that the blocked path itself carries, and such a chunk \
                     stays here: fast retransmit and T3 look after it.",
            parameter: "age",
        },
        Choice {
            question: "Whole buffer, or a share of it?",
            answer: "Whole, as INET does unless buffers are split too.",
            parameter: "limit",
        },
        Choice {
            question: "What if `nr-sack` is added too?",
            answer: "What an NR-SACK releases does not count as waiting: with `keeps=all` hardly anything is left to notice a \
                     blocked receiver by.",
            parameter: "",
        },
        Choice { question: "What is n?", answer: "The active paths, as for `split`.", parameter: "paths" },
        Choice {
            question: "What of chunks that are lost and wait?",
            answer: "They count as waiting, as in INET, where only what is in the network is outstanding. Chunks bound to the path \
                     and not sent do not: they wait for its window.",
            parameter: "",
        },
        Choice {
            question: "Is the old path paused if it is in recovery already?",
            answer: "No; INET's pause of one round trip is left out, since a path in recovery is cut once only here too.",
            parameter: "",
        },
    ],
};

pub(crate) const COMPONENT: Component = Component {
    name: "rescheduling",
    about: "Moves the head of line to a path whose data fills half of a buffer behind it",
    source: "Adhari, Dreibholz et al. 2011 (chunk rescheduling); INET",
    role: Role::Relief,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    profile: unchanged,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let settings = ReschedulingSettings {
        side: side(values),
        limit: if values.choice("limit") == "share" { Limit::Share } else { Limit::Whole },
        sharers: sharers(values),
        threshold: values.decimal("threshold"),
        age: values.decimal("age"),
    };
    Policies { retransmit: Box::new(Rescheduling::new(policies.retransmit, settings)), ..policies }
}

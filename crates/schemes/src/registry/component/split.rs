//! `split`: equal shares of the buffers for all paths.

use anabranch_core::policy::Policies;

use crate::buffer::{Occupancy, Sharers, Side, Split};
use crate::registry::component::{Component, Role, unchanged};
use crate::registry::{Card, Choice, Equation, Kind, Parameter, Value, Values};

pub(crate) const SIDE: Parameter = Parameter {
    name: "side",
    kind: Kind::Choice(&["sender", "receiver", "both"]),
    unit: "",
    default: Value::Choice("both"),
    about: "whose buffer",
    source: "Dreibholz et al. 2010; INET and usrsctp offer the three",
};

pub(crate) const PATHS: Parameter = Parameter {
    name: "paths",
    kind: Kind::Choice(&["active", "all"]),
    unit: "",
    default: Value::Choice("active"),
    about: "which paths have a share",
    source: "INET: all; no publication has paths out of service",
};

const PARAMETERS: &[Parameter] = &[
    SIDE,
    Parameter {
        name: "by",
        kind: Kind::Choice(&["queued", "outstanding"]),
        unit: "",
        default: Value::Choice("queued"),
        about: "what a path takes up: all it has in the send buffer, or what is outstanding",
        source: "INET: queued; usrsctp, and INET on demand: outstanding",
    },
    PATHS,
];

pub(crate) fn side(values: &Values) -> Side {
    match values.choice("side") {
        "sender" => Side::Sender,
        "receiver" => Side::Receiver,
        _ => Side::Both,
    }
}

pub(crate) fn sharers(values: &Values) -> Sharers {
    if values.choice("paths") == "all" { Sharers::All } else { Sharers::Active }
}

const PLACE: &str = "crates/schemes/src/buffer/split.rs";

const CARD: Card = Card {
    summary: &[
        "A path takes new data only while what it has in a buffer is within its equal share, so that a slow",
        "path cannot fill the buffer that a fast one needs. A path with nothing always takes a chunk.",
        "Equal shares suit paths of like speed: a share below a path's window holds that path back.",
    ],
    equations: &[
        Equation { name: "sender split", rule: "refuse if b_i + M > S / n", place: PLACE },
        Equation {
            name: "receiver split",
            rule: "refuse if b_i + M > (peer's window + all outstanding) / n + M",
            place: PLACE,
        },
    ],
    choices: &[
        Choice {
            question: "What does path i have in a buffer (b_i)?",
            answer: "All that is still in the send buffer, acknowledged by gap blocks or not, as in INET. It throttles a fast \
                     path by what waits behind a slow one's hole; what is outstanding does not.",
            parameter: "by",
        },
        Choice {
            question: "What if `nr-sack` is added too?",
            answer: "What an NR-SACK releases is no longer in the send buffer, and so takes up nothing of either share, although the \
                     receiver still holds it. What is outstanding is the same with and without it.",
            parameter: "by",
        },
        Choice {
            question: "What is n?",
            answer: "The active paths: a share for one that may not send would lie idle.",
            parameter: "paths",
        },
        Choice {
            question: "In what unit?",
            answer: "b_i in chunk bytes, buffers as they are counted, without adjusting for headers of 16 B per chunk.",
            parameter: "",
        },
        Choice {
            question: "What if a share is less than a chunk?",
            answer: "A path that has nothing takes one all the same: nothing would ever open it.",
            parameter: "",
        },
    ],
};

pub(crate) const COMPONENT: Component = Component {
    name: "split",
    about: "Splits the send buffer, the receive buffer or both into equal shares for the paths",
    source: "Dreibholz et al. 2010; Adhari et al. 2011; INET; usrsctp",
    role: Role::BufferSharing,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    profile: unchanged,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let by = match values.choice("by") {
        "outstanding" => Occupancy::Outstanding,
        _ => Occupancy::Queued,
    };
    Policies { buffer: Box::new(Split { side: side(values), by, sharers: sharers(values) }), ..policies }
}

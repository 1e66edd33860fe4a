//! `sctp`: single-path SCTP.

use anabranch_core::policy::Policies;

use crate::buffer::Unshared;
use crate::congestion::{GrowthGate, WindowControl};
use crate::estimator::MeasuredLossRate;
use crate::failover::Plain;
use crate::registry::preset::shared::{
    SACK_DELAY, SACK_EVERY, TRIGGER, acks, floor, floored, missing_reports, retransmit,
};
use crate::registry::preset::{Preset, rules};
use crate::registry::{Card, Choice, Equation, Kind, Parameter, Role, Value, Values};
use crate::scheduler::PrimaryOnly;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "rtx",
        kind: Kind::Choice(&["alternate-on-timeout", "alternate", "rtx-same"]),
        unit: "",
        default: Value::Choice("alternate-on-timeout"),
        about: "where a lost chunk goes again",
        source: "RFC 9260 section 6.4.1; `alternate` is ns-2's default",
    },
    TRIGGER,
    SACK_EVERY,
    SACK_DELAY,
    floor("profile"),
];

const CARD: Card = Card {
    summary: &[
        "New data goes on the primary path; while that is not active, on the next active one. What fast",
        "retransmit finds goes again where it was, what times out on another active path if there is one. A",
        "path is out of service after six errors in a row.",
    ],
    equations: &[
        Equation {
            name: "RFC 9260 section 6.4, new data",
            rule: "on the primary path; while that is not active, on the first active one",
            place: "crates/schemes/src/scheduler/primary.rs",
        },
        rules::SLOW_START,
        rules::AVOIDANCE,
        rules::CUMULATIVE_GROWTH,
        rules::CUT,
        rules::FAST_RETRANSMIT,
        Equation {
            name: "RFC 9260 sections 6.3.3 E4 and 6.4.1, retransmission",
            rule: "what timed out goes to the next active path after its own, what fast retransmit found stays",
            place: "crates/schemes/src/retransmit/alternate.rs",
        },
        rules::DELAYED_ACKS,
        rules::PATH_FAILURE,
    ],
    choices: &[
        rules::CHOICE_TRIGGER,
        Choice {
            question: "Where does a fast retransmission go?",
            answer: "Where the chunk was: the standard sends only what timed out elsewhere. `rtx=alternate` sends both to another \
                     path, as ns-2's base agent does by default; `rtx=rtx-same` sends both where they were.",
            parameter: "rtx",
        },
        rules::CHOICE_AROUND,
    ],
};

pub(crate) const PRESET: Preset = Preset {
    name: "sctp",
    about: "Single-path SCTP: new data on the primary path, the others only as stand-ins",
    source: "RFC 9260",
    multipath: false,
    coupled: false,
    unfair_because: "",
    owns: &[Role::Scheduler],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

pub(crate) fn build(values: &Values) -> Policies {
    Policies {
        estimator: Box::new(MeasuredLossRate::default()),
        scheduler: Box::new(PrimaryOnly),
        congestion: Box::new(WindowControl::new(GrowthGate::Cumulative)),
        loss: Box::new(missing_reports(values)),
        retransmit: retransmit(values),
        ack: Box::new(acks(values)),
        buffer: Box::new(Unshared),
        failover: Box::new(Plain),
    }
}

//! `sctp`: single-path SCTP.

use anabranch_core::policy::{LeaveHeadOfLine, Policies, RetransmitPath};

use crate::ack::DelayedAcks;
use crate::ack::delayed::{DELAYED_ACKS, SACK_DELAY, SACK_EVERY};
use crate::buffer::Unshared;
use crate::component::backup::{PRIMARY_FIRST, PrimaryOnly};
use crate::congestion::control::{AVOIDANCE, CUMULATIVE_GROWTH, CUT, SLOW_START};
use crate::congestion::cut::{floor, floored};
use crate::congestion::{GrowthGate, WindowControl};
use crate::definition::{Card, Choice, ChoiceParameter, Parameter, Preset, Role, Values};
use crate::estimator::MeasuredLossRate;
use crate::failover::ErrorCounter;
use crate::failover::error_counter::PATH_FAILURE;
use crate::loss::MissingReports;
use crate::loss::missing_reports::{FAST_RETRANSMIT, TRIGGER};
use crate::retransmit::alternate::ALTERNATE;
use crate::retransmit::{Alternate, MakeRetransmitPath, Same};

pub(crate) const CHOICE_TRIGGER: Choice = Choice {
    question: "How many missing reports declare a chunk lost?",
    answer: "Three, as in RFC 9260 and in ns-2.35; RFC 2960 and the text of the papers have four.",
    parameter: "trigger",
};

pub(crate) const CHOICE_AROUND: Choice = Choice {
    question: "Which floors, limits and timers apply?",
    answer: "Those of the profile. `rfc9260` keeps ssthresh at 4 M or more and stops growth in fast recovery; the multipath \
             row of `ns2` has a floor of 2 M and lets windows grow there, as ns-2's CMT agent does.",
    parameter: "",
};

const RTX: ChoiceParameter<MakeRetransmitPath> = ChoiceParameter {
    name: "rtx",
    options: &[
        ("alternate-on-timeout", || Box::new(Alternate { fast_retransmissions_too: false })),
        ("alternate", || Box::new(Alternate { fast_retransmissions_too: true })),
        ("rtx-same", || Box::new(Same)),
    ],
    default: "alternate-on-timeout",
    about: "path of a retransmission",
    source: "RFC 9260 section 6.4.1; `alternate` is ns-2's default",
};

const PARAMETERS: &[Parameter] = &[RTX.parameter(), TRIGGER, SACK_EVERY, SACK_DELAY, floor("profile")];

const CARD: Card = Card {
    summary: &[
        "New data goes to the primary path; while that is not active, to the next active one. Fast retransmit",
        "uses the previous path of the chunk, and a time-out another active path if there is one. A path is",
        "out of service after six consecutive errors.",
    ],
    equations: &[&[
        PRIMARY_FIRST,
        SLOW_START,
        AVOIDANCE,
        CUMULATIVE_GROWTH,
        CUT,
        FAST_RETRANSMIT,
        ALTERNATE,
        DELAYED_ACKS,
        PATH_FAILURE,
    ]],
    choices: &[&[
        CHOICE_TRIGGER,
        Choice {
            question: "On which path is a fast retransmission sent?",
            answer: "On the previous path of the chunk: the standard uses other paths only after time-outs. `rtx=alternate` \
                     uses another path for both, as ns-2's base agent does by default; `rtx=rtx-same` uses the previous path \
                     for both.",
            parameter: "rtx",
        },
        CHOICE_AROUND,
    ]],
};

pub(crate) const PRESET: Preset = Preset {
    name: "sctp",
    about: "Single-path SCTP: new data on the primary path, the others only while it is not active",
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

fn build(values: &Values) -> Policies {
    policies(values, RTX.get(values)())
}

/// Returns the policies of RFC 9260 with this retransmission policy.
pub(crate) fn policies(values: &Values, retransmit: Box<dyn RetransmitPath>) -> Policies {
    Policies {
        estimator: Box::new(MeasuredLossRate::default()),
        scheduler: Box::new(PrimaryOnly),
        congestion: Box::new(WindowControl::new(GrowthGate::Cumulative)),
        loss: Box::new(MissingReports::from_values(values)),
        retransmit,
        head_of_line: Box::new(LeaveHeadOfLine),
        ack: Box::new(DelayedAcks::from_values(values)),
        buffer: Box::new(Unshared),
        failover: Box::new(ErrorCounter),
    }
}

//! Paths for retransmissions. The path that a policy prefers must have room. There is no second choice (ns-2), unless a policy
//! states one.

pub(crate) mod alternate;
pub(crate) mod asap;
pub(crate) mod best;
pub(crate) mod same;
pub(crate) mod soonest;

pub use alternate::Alternate;
pub use asap::Asap;
pub use best::{Best, Preference};
pub use same::Same;
pub use soonest::Soonest;

use anabranch_core::policy::{
    Decision, HeadOfLine, PathFacts, Reason, Refusal, Refused, RetransmitChoice, RetransmitPath, WaitFor,
};

use crate::definition::{ChoiceParameter, Parameter, Value};

/// Constructor of a retransmission policy.
pub(crate) type MakeRetransmitPath = fn() -> Box<dyn RetransmitPath>;

pub(crate) const RTX: ChoiceParameter<MakeRetransmitPath> = ChoiceParameter {
    name: "rtx",
    options: &[
        ("rtx-same", || Box::new(Same)),
        ("rtx-asap", || Box::new(Asap)),
        ("rtx-cwnd", || Box::new(Best { by: Preference::Cwnd })),
        ("rtx-ssthresh", || Box::new(Best { by: Preference::Ssthresh })),
        ("rtx-lossrate", || Box::new(Best { by: Preference::ProfileLossRate })),
        ("rtx-lossrate-measured", || Box::new(Best { by: Preference::LossRate })),
        ("rtx-cl", || Box::new(Best { by: Preference::CwndThenLossRate })),
        ("rtx-soonest", || Box::new(Soonest)),
    ],
    default: "rtx-cwnd",
    about: "path of a retransmission",
    source: "Iyengar 2006, section on retransmission policies; `rtx-cl`: DB-CMT section 4.2; `rtx-soonest`: this project",
};

pub(crate) const fn rtx(default: &'static str) -> Parameter {
    Parameter { default: Value::Choice(default), ..RTX.parameter() }
}

/// Retransmits on `path` if it has room, and waits otherwise.
pub(crate) fn if_room(path: &PathFacts, reason: Reason, mut refused: Refused) -> Decision<RetransmitChoice> {
    if path.admits_retransmission() {
        return Decision::with_refused(RetransmitChoice::Path(path.id), reason, refused);
    }
    let _ = refused.try_push((path.id, no_room(path)));
    Decision::with_refused(RetransmitChoice::Wait(WaitFor::Window), reason, refused)
}

/// Returns the reason for which an active path cannot take a retransmission.
pub(crate) fn no_room(path: &PathFacts) -> Refusal {
    if path.resend_burst_left == 0 {
        Refusal::Burst
    } else if !path.has_room_for_retransmission() {
        if path.is_below_cap() { Refusal::WindowFull } else { Refusal::InFlightCap }
    } else {
        Refusal::Paced
    }
}

pub(crate) fn nowhere() -> Decision<RetransmitChoice> {
    Decision::new(RetransmitChoice::Wait(WaitFor::Window), Reason::rule("no path is active"))
}

/// Returns the reason for which a path cannot carry the head-of-line chunk or another copy of it, if there is one.
pub(crate) fn head_of_line_refusal(path: &PathFacts, head: &HeadOfLine) -> Option<Refusal> {
    if !path.is_active() {
        return Some(Refusal::State);
    }
    if head.in_flight_on.contains(path.id) {
        return Some(Refusal::Preference);
    }
    (!path.admits_retransmission()).then(|| no_room(path))
}

//! `cmt-pf`: CMT with a potentially failed state.

use anabranch_core::policy::Policies;

use crate::congestion::WindowControl;
use crate::failover::PotentiallyFailed;
use crate::registry::preset::shared::{
    SACK_DELAY, SACK_EVERY, TRIGGER, cuc, dac, floor, floored, gate, rtx, sfr,
};
use crate::registry::preset::{Preset, cmt};
use crate::registry::{Card, Kind, Parameter, Role, Value, Values};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "pf",
        kind: Kind::Choice(&["pf1", "pf2"]),
        unit: "",
        default: Value::Choice("pf2"),
        about: "window of a path that answers its probe: one chunk (pf1) or two (pf2)",
        source: "Natarajan 2009; ns-2's default is two",
    },
    rtx("rtx-cwnd"),
    TRIGGER,
    sfr(true),
    cuc(true),
    dac(true),
    SACK_EVERY,
    SACK_DELAY,
    floor("profile"),
];

const CARD: Card = Card {
    summary: &[
        "As `cmt`, but one time-out or unanswered HEARTBEAT takes a path out of service until it answers",
        "a probe or an unambiguous acknowledgement arrives. With no path active, the potentially failed",
        "one with the fewest errors serves.",
    ],
    equations: &[],
    choices: &[],
};

pub(crate) const PRESET: Preset = Preset {
    name: "cmt-pf",
    about: "CMT with a potentially-failed state: one time-out takes a path out until it answers a probe",
    source: "Natarajan et al. 2008, 2009; ns-2.35; RFC 7829",
    multipath: true,
    owns: &[Role::Failover],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

pub(crate) fn build(values: &Values) -> Policies {
    let chunks = if values.choice("pf") == "pf1" { 1 } else { 2 };
    Policies {
        congestion: Box::new(WindowControl::new(gate(values)).after_probe(chunks)),
        failover: Box::new(PotentiallyFailed),
        ..cmt::build(values)
    }
}

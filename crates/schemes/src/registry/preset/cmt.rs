//! `cmt`: concurrent multipath transfer with its three repairs.

use anabranch_core::policy::Policies;

use crate::congestion::WindowControl;
use crate::registry::preset::shared::{
    SACK_DELAY, SACK_EVERY, TRIGGER, cuc, dac, floor, floored, gate, rtx, sfr,
};
use crate::registry::preset::{Preset, sctp};
use crate::registry::{Card, Parameter, Values};
use crate::scheduler::RotatingWindowFill;

const PARAMETERS: &[Parameter] =
    &[rtx("rtx-cwnd"), TRIGGER, sfr(true), cuc(true), dac(true), SACK_EVERY, SACK_DELAY, floor("profile")];

const CARD: Card = Card {
    summary: &[
        "New data fills each path's window in turn, beginning after the path that last carried some.",
        "Only acknowledgements of a chunk's own path report it missing, a path's window grows with its",
        "own pseudo-cumulative TSN, and gaps do not hurry SACKs, which say how many packets they answer.",
    ],
    equations: &[],
    choices: &[],
};

pub(crate) const PRESET: Preset = Preset {
    name: "cmt",
    about: "Concurrent multipath transfer with split fast retransmit, window update and delayed acks of its own",
    source: "Iyengar, Amer, Stewart 2006; ns-2.35",
    multipath: true,
    owns: &[],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

pub(crate) fn build(values: &Values) -> Policies {
    Policies {
        scheduler: Box::new(RotatingWindowFill::default()),
        congestion: Box::new(WindowControl::new(gate(values))),
        ..sctp::build(values)
    }
}

//! `cmt`: concurrent multipath transfer with its three repairs.

use anabranch_core::policy::Policies;

use crate::congestion::WindowControl;
use crate::registry::preset::shared::{
    SACK_DELAY, SACK_EVERY, TRIGGER, cuc, dac, floor, floored, gate, rtx, sfr,
};
use crate::registry::preset::{Preset, rules, sctp};
use crate::registry::{Card, Parameter, Values};
use crate::scheduler::RotatingWindowFill;

const PARAMETERS: &[Parameter] =
    &[rtx("rtx-cwnd"), TRIGGER, sfr(true), cuc(true), dac(true), SACK_EVERY, SACK_DELAY, floor("profile")];

const CARD: Card = Card {
    summary: &[
        "New data fills each path's window in turn, all in one sequence of TSNs, which then arrive out of",
        "order. Plain SCTP takes that for loss, keeps windows from growing and sends a SACK for each packet.",
        "Three repairs answer this: only acknowledgements of a chunk's own path report it missing (SFR), a",
        "path's window grows with its own pseudo-cumulative TSN (CUC), and gaps do not hurry SACKs, which say",
        "what they answer (DAC).",
    ],
    equations: &[
        rules::WINDOW_FILL,
        rules::SLOW_START,
        rules::AVOIDANCE,
        rules::CUT,
        rules::SFR,
        rules::CUC_SEARCH,
        rules::CUC_GROWTH,
        rules::DAC_RECEIVER,
        rules::DAC_SENDER,
        rules::RTX_BEST,
        rules::RTX_ASAP,
        rules::RTX_SAME,
        rules::PATH_FAILURE,
    ],
    choices: &[
        rules::CHOICE_TRIGGER,
        rules::CHOICE_SCHEDULING,
        rules::CHOICE_NEW_ACK,
        rules::CHOICE_CUC,
        rules::CHOICE_DAC_FLAGS,
        rules::CHOICE_DAC_TIMER,
        rules::CHOICE_RTX,
        rules::CHOICE_RTX_FULL,
        rules::CHOICE_RTX_TIE,
        rules::CHOICE_LOSS_RATE,
        rules::CHOICE_TIMEOUT_MARKS,
        rules::CHOICE_AROUND,
    ],
};

pub(crate) const PRESET: Preset = Preset {
    name: "cmt",
    about: "Concurrent multipath transfer with split fast retransmit, window update and delayed acks of its own",
    source: "Iyengar, Amer, Stewart 2006; ns-2.35",
    multipath: true,
    coupled: false,
    unfair_because: "",
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

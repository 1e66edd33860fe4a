//! `naive-cmt`: data on all paths without CMT's repairs.

use crate::ack::delayed::{DELAYED_ACKS, SACK_DELAY, SACK_EVERY, dac};
use crate::congestion::control::{AVOIDANCE, CUMULATIVE_GROWTH, CUT, SLOW_START, cuc};
use crate::congestion::cut::{floor, floored};
use crate::definition::{Card, Choice, Parameter, Preset};
use crate::failover::error_counter::PATH_FAILURE;
use crate::loss::missing_reports::{FAST_RETRANSMIT, TRIGGER, sfr};
use crate::preset::cmt;
use crate::preset::cmt::{
    CHOICE_LOSS_RATE, CHOICE_RTX, CHOICE_RTX_FULL, CHOICE_RTX_TIE, CHOICE_SCHEDULING, CHOICE_TIMEOUT_MARKS,
    WINDOW_FILL,
};
use crate::preset::sctp::{CHOICE_AROUND, CHOICE_TRIGGER};
use crate::retransmit::asap::RTX_ASAP;
use crate::retransmit::best::RTX_BEST;
use crate::retransmit::rtx;
use crate::retransmit::same::RTX_SAME;

const PARAMETERS: &[Parameter] =
    &[rtx("rtx-cwnd"), TRIGGER, sfr(false), cuc(false), dac(false), SACK_EVERY, SACK_DELAY, floor("profile")];

const CARD: Card = Card {
    summary: &[
        "The scheduler and the retransmission policy of `cmt` without its three repairs: reordering between",
        "paths counts as loss, windows wait for the association's cumulative TSN, and every packet that arrives",
        "behind a gap is acknowledged at once. It shows the benefit of the repairs.",
    ],
    equations: &[&[
        WINDOW_FILL,
        SLOW_START,
        AVOIDANCE,
        CUMULATIVE_GROWTH,
        CUT,
        FAST_RETRANSMIT,
        DELAYED_ACKS,
        RTX_BEST,
        RTX_ASAP,
        RTX_SAME,
        PATH_FAILURE,
    ]],
    choices: &[&[
        Choice {
            question: "What is naive about it?",
            answer: "The papers compare with a naive scheme and do not define it. Here it is `cmt` without SFR, CUC and DAC, \
                     as ns-2 runs with its three switches off. Single repairs can be switched on.",
            parameter: "sfr",
        },
        CHOICE_TRIGGER,
        CHOICE_SCHEDULING,
        CHOICE_RTX,
        CHOICE_RTX_FULL,
        CHOICE_RTX_TIE,
        CHOICE_LOSS_RATE,
        CHOICE_TIMEOUT_MARKS,
        CHOICE_AROUND,
    ]],
};

pub(crate) const PRESET: Preset = Preset {
    name: "naive-cmt",
    about: "Data on all paths at once without CMT's three repairs",
    source: "Iyengar, Amer, Stewart 2006, as the baseline; ns-2 with its three switches off",
    multipath: true,
    coupled: false,
    unfair_because: "",
    owns: &[],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build: cmt::build,
};

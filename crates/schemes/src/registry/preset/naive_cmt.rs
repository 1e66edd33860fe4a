//! `naive-cmt`: data on all paths without CMT's repairs.

use crate::registry::preset::shared::{SACK_DELAY, SACK_EVERY, TRIGGER, cuc, dac, floor, floored, rtx, sfr};
use crate::registry::preset::{Preset, cmt, rules};
use crate::registry::{Card, Choice, Parameter};

const PARAMETERS: &[Parameter] =
    &[rtx("rtx-cwnd"), TRIGGER, sfr(false), cuc(false), dac(false), SACK_EVERY, SACK_DELAY, floor("profile")];

const CARD: Card = Card {
    summary: &[
        "The scheduler and the retransmission policy of `cmt` with its three repairs off: reordering between",
        "paths is taken for loss, windows wait for the association's cumulative TSN, and every packet that",
        "arrives beside a gap is acknowledged at once. It shows what the repairs are for.",
    ],
    equations: &[
        rules::WINDOW_FILL,
        rules::SLOW_START,
        rules::AVOIDANCE,
        rules::CUMULATIVE_GROWTH,
        rules::CUT,
        rules::FAST_RETRANSMIT,
        rules::DELAYED_ACKS,
        rules::RTX_BEST,
        rules::RTX_ASAP,
        rules::RTX_SAME,
        rules::PATH_FAILURE,
    ],
    choices: &[
        Choice {
            question: "What is naive about it?",
            answer: "The papers compare with a naive scheme and do not define it. Here it is `cmt` with SFR, CUC and DAC off, as ns-2 \
                     runs with its three switches off, and nothing else changed; one repair at a time can be put back.",
            parameter: "sfr",
        },
        rules::CHOICE_TRIGGER,
        rules::CHOICE_SCHEDULING,
        rules::CHOICE_RTX,
        rules::CHOICE_RTX_FULL,
        rules::CHOICE_RTX_TIE,
        rules::CHOICE_LOSS_RATE,
        rules::CHOICE_TIMEOUT_MARKS,
        rules::CHOICE_AROUND,
    ],
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

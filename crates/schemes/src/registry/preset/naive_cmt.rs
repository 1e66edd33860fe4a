//! `naive-cmt`: data on all paths without CMT's repairs.

use crate::registry::preset::shared::{SACK_DELAY, SACK_EVERY, TRIGGER, cuc, dac, floor, floored, rtx, sfr};
use crate::registry::preset::{Preset, cmt};
use crate::registry::{Card, Parameter};

const PARAMETERS: &[Parameter] =
    &[rtx("rtx-cwnd"), TRIGGER, sfr(false), cuc(false), dac(false), SACK_EVERY, SACK_DELAY, floor("profile")];

const CARD: Card = Card {
    summary: &[
        "The scheduler and the retransmission policy of `cmt` with its three repairs off: reordering",
        "between paths is taken for loss, windows wait for the association's cumulative TSN, and",
        "every packet that arrives beside a gap is acknowledged at once.",
    ],
    equations: &[],
    choices: &[],
};

pub(crate) const PRESET: Preset = Preset {
    name: "naive-cmt",
    about: "Data on all paths at once without CMT's three repairs",
    source: "Iyengar, Amer, Stewart 2006, as the baseline; ns-2 with its three switches off",
    multipath: true,
    owns: &[],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build: cmt::build,
};

//! `mptcp-balia`: CMT with balanced linked adaptation.

use anabranch_core::policy::Policies;

use crate::ack::delayed::{SACK_DELAY, SACK_EVERY, dac};
use crate::congestion::control::cuc;
use crate::congestion::cut::{floor, floored};
use crate::congestion::{GrowthGate, WindowControl};
use crate::definition::{Card, Choice, Parameter, Preset, Role, Values};
use crate::loss::missing_reports::{TRIGGER, sfr};
use crate::preset::cmt;
use crate::preset::mptcp_balia::cut::BaliaCut;
use crate::preset::mptcp_balia::growth::BaliaGrowth;
use crate::preset::mptcp_lia::{BASE, BYTES_COUNTED, COUPLED_PATHS};
use crate::retransmit::rtx;

pub mod cut;
pub mod growth;

const PARAMETERS: &[Parameter] =
    &[rtx("rtx-cwnd"), TRIGGER, sfr(true), cuc(true), dac(true), SACK_EVERY, SACK_DELAY, floor("profile")];

const CARD: Card = Card {
    summary: &[
        "As `cmt`, but in congestion avoidance windows grow coupled, and a loss reduces a path's window more if",
        "the path is slower than the fastest one: by a half on the fastest path, up to three quarters on others.",
        "Slow start is the standard's.",
    ],
    equations: &[growth::RULES, cut::RULES],
    choices: &[&[
        Choice {
            question: "Is alpha_r of the decrease a whole number?",
            answer: "No. Linux rounds it down, so that a path counts as slow only when another one is twice as fast.",
            parameter: "",
        },
        Choice {
            question: "What is the effect of T3?",
            answer: "ssthresh is the result of the decrease, and the window is one chunk.",
            parameter: "",
        },
        Choice {
            question: "What is the least threshold?",
            answer: "The same as for the other schemes; the draft has none.",
            parameter: "floor",
        },
        COUPLED_PATHS,
        BYTES_COUNTED,
        BASE,
    ]],
};

pub(crate) const PRESET: Preset = Preset {
    name: "mptcp-balia",
    about: "CMT with MPTCP's balanced linked adaptation",
    source: "draft-walid-mptcp-congestion-control; Peng et al. 2013",
    multipath: true,
    coupled: true,
    unfair_because: "",
    owns: &[Role::CongestionControl],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

fn build(values: &Values) -> Policies {
    let control = WindowControl::new(GrowthGate::from_values(values))
        .with_growth(BaliaGrowth::default())
        .with_cut(BaliaCut);
    Policies { congestion: Box::new(control), ..cmt::build(values) }
}

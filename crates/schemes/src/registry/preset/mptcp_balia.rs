//! `mptcp-balia`: CMT with balanced linked adaptation.

use anabranch_core::policy::Policies;

use crate::congestion::WindowControl;
use crate::congestion::cut::BaliaCut;
use crate::congestion::growth::BaliaGrowth;
use crate::registry::preset::mptcp_lia::{BASE, BYTES_COUNTED, COUPLED_PATHS};
use crate::registry::preset::shared::{
    SACK_DELAY, SACK_EVERY, TRIGGER, cuc, dac, floor, floored, gate, rtx, sfr,
};
use crate::registry::preset::{Preset, cmt};
use crate::registry::{Card, Choice, Equation, Parameter, Values};

const PARAMETERS: &[Parameter] =
    &[rtx("rtx-cwnd"), TRIGGER, sfr(true), cuc(true), dac(true), SACK_EVERY, SACK_DELAY, floor("profile")];

const CARD: Card = Card {
    summary: &[
        "As `cmt`, but in congestion avoidance windows grow coupled, and a loss costs a path more the slower",
        "it is beside the fastest: a half of its window on the fastest path, up to three quarters on others.",
        "Slow start is the standard's.",
    ],
    equations: &[
        Equation {
            name: "alpha_r",
            rule: "max(x_k) / x_r with x = w / rtt",
            place: "crates/schemes/src/congestion/growth/balia.rs",
        },
        Equation {
            name: "increase",
            rule: "cwnd_r grows by (x_r / rtt_r) / (sum of x_k)^2 (1 + alpha_r)/2 (4 + alpha_r)/5 M bytes_acked",
            place: "crates/schemes/src/congestion/growth/balia.rs",
        },
        Equation {
            name: "decrease",
            rule: "cwnd_r shrinks by cwnd_r / 2 min(alpha_r, 1.5)",
            place: "crates/schemes/src/congestion/cut/balia.rs",
        },
    ],
    choices: &[
        Choice {
            question: "Is alpha_r of the decrease a whole number?",
            answer: "No. Linux rounds it down there, so that a path counts as slow only when another one is twice as fast.",
            parameter: "",
        },
        Choice {
            question: "What does T3 do?",
            answer: "ssthresh is what the decrease leaves, the window one chunk.",
            parameter: "",
        },
        Choice {
            question: "What is the least threshold?",
            answer: "The same as for the other schemes; the draft gives none.",
            parameter: "floor",
        },
        COUPLED_PATHS,
        BYTES_COUNTED,
        BASE,
    ],
};

pub(crate) const PRESET: Preset = Preset {
    name: "mptcp-balia",
    about: "CMT with MPTCP's balanced linked adaptation",
    source: "draft-walid-mptcp-congestion-control; Peng et al. 2013",
    multipath: true,
    coupled: true,
    unfair_because: "",
    owns: &[],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

fn build(values: &Values) -> Policies {
    let control = WindowControl::new(gate(values)).growing(BaliaGrowth::default()).cutting(BaliaCut);
    Policies { congestion: Box::new(control), ..cmt::build(values) }
}

//! `mptcp-olia`: CMT with opportunistic linked increases.

use anabranch_core::policy::Policies;

use crate::congestion::WindowControl;
use crate::congestion::growth::{BestPaths, OliaGrowth};
use crate::registry::preset::mptcp_lia::{BASE, BYTES_COUNTED, COUPLED_PATHS};
use crate::registry::preset::shared::{
    SACK_DELAY, SACK_EVERY, TRIGGER, cuc, dac, floor, floored, gate, rtx, sfr,
};
use crate::registry::preset::{Preset, cmt};
use crate::registry::{Card, Choice, Equation, Kind, Parameter, Value, Values};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "best",
        kind: Kind::Choice(&["draft", "linux"]),
        unit: "",
        default: Value::Choice("draft"),
        about: "figure of the best paths, with l the bytes between losses: l^2 / rtt (draft) or l / rtt^2 (linux)",
        source: "draft-khalili-mptcp-congestion-control; Linux mptcp_olia.c",
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

const PLACE: &str = "crates/schemes/src/congestion/growth/olia.rs";

const CARD: Card = Card {
    summary: &[
        "As `cmt`, but in congestion avoidance windows grow coupled, and a further term moves window from",
        "the paths that have the largest to those that deliver most between losses and have not.",
        "Slow start and cuts are the standard's.",
    ],
    equations: &[
        Equation {
            name: "increase",
            rule: "cwnd_r grows by ((w_r / rtt_r^2) / (sum of w_p / rtt_p)^2 + alpha_r / w_r) M bytes_acked",
            place: PLACE,
        },
        Equation {
            name: "alpha_r, with best paths B and largest windows M of n paths",
            rule: "1 / (n |B - M|) for r in B - M; -1 / (n |M|) for r in M if B - M is not empty; else 0",
            place: PLACE,
        },
        Equation {
            name: "bytes between losses",
            rule: "l = max(l1, l2): acknowledged between the last two losses, and since the last",
            place: PLACE,
        },
    ],
    choices: &[
        Choice {
            question: "Which paths are the best?",
            answer: "Those with the largest l^2 / rtt, by the draft. Linux compares l / rtt^2.",
            parameter: "best",
        },
        Choice {
            question: "What is a loss, for l1 and l2?",
            answer: "What cuts the window: fast retransmit once per window, and T3. Several chunks lost in one window are one.",
            parameter: "",
        },
        Choice {
            question: "May a window shrink by a negative alpha?",
            answer: "Yes, by the draft, down to one chunk.",
            parameter: "",
        },
        COUPLED_PATHS,
        BYTES_COUNTED,
        BASE,
    ],
};

pub(crate) const PRESET: Preset = Preset {
    name: "mptcp-olia",
    about: "CMT with MPTCP's opportunistic linked increases",
    source: "draft-khalili-mptcp-congestion-control; Khalili et al. 2013",
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
    let linux = values.choice("best") == "linux";
    let best = if linux { BestPaths::BytesPerRttSquared } else { BestPaths::BytesSquaredPerRtt };
    let control = WindowControl::new(gate(values)).growing(OliaGrowth::new(best));
    Policies { congestion: Box::new(control), ..cmt::build(values) }
}

//! `mptcp-lia`: CMT with the linked increases of RFC 6356.

use anabranch_core::policy::Policies;

use crate::congestion::WindowControl;
use crate::congestion::growth::LiaGrowth;
use crate::registry::preset::shared::{
    SACK_DELAY, SACK_EVERY, TRIGGER, cuc, dac, floor, floored, gate, rtx, sfr,
};
use crate::registry::preset::{Preset, cmt};
use crate::registry::{Card, Choice, Equation, Parameter, Values};

const PARAMETERS: &[Parameter] =
    &[rtx("rtx-cwnd"), TRIGGER, sfr(true), cuc(true), dac(true), SACK_EVERY, SACK_DELAY, floor("profile")];

/// What holds for every coupled rule.
pub(crate) const COUPLED_PATHS: Choice = Choice {
    question: "Which paths are coupled?",
    answer: "The active ones that have a round-trip time, the smoothed one. A path out of service carries no data to be fair \
             about. A path without a sample grows as if it were alone, and counts for no other.",
    parameter: "",
};

/// What holds for every coupled rule.
pub(crate) const BYTES_COUNTED: Choice = Choice {
    question: "Which acknowledgements count, and when does the window move?",
    answer: "In congestion avoidance those that count toward the standard's next step, under the same gate and for a window in \
             full use only. The window moves at once by the bytes that they give it; fractions of a byte are kept.",
    parameter: "",
};

pub(crate) const BASE: Choice = Choice {
    question: "What is it without MPTCP's subflows?",
    answer: "One sequence space for all paths, with CMT's repairs in place of a sequence space per subflow. Scheduler and \
             retransmission are those of `cmt`, so that a comparison with it shows the rule of growth alone.",
    parameter: "sfr, cuc, dac, rtx",
};

const CARD: Card = Card {
    summary: &[
        "As `cmt`, but in congestion avoidance the paths' windows together grow as that of one flow on the",
        "best path would, and none grows faster than a flow of its own. Slow start and cuts are the standard's.",
    ],
    equations: &[
        Equation {
            name: "RFC 6356 section 3",
            rule: "cwnd_i grows by min(alpha bytes_acked M / cwnd_total, bytes_acked M / cwnd_i)",
            place: "crates/schemes/src/congestion/growth/lia.rs",
        },
        Equation {
            name: "RFC 6356 section 4.1, equation 2",
            rule: "alpha = cwnd_total max(cwnd_i / rtt_i^2) / (sum of cwnd_i / rtt_i)^2",
            place: "crates/schemes/src/congestion/growth/lia.rs",
        },
    ],
    choices: &[
        COUPLED_PATHS,
        BYTES_COUNTED,
        Choice {
            question: "How often is alpha computed?",
            answer: "At every step, as the RFC's definition has it. It allows for once per round trip to save work.",
            parameter: "",
        },
        BASE,
    ],
};

pub(crate) const PRESET: Preset = Preset {
    name: "mptcp-lia",
    about: "CMT with MPTCP's linked increases: fair to others where paths share a bottleneck",
    source: "RFC 6356",
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
    let control = WindowControl::new(gate(values)).growing(LiaGrowth::default());
    Policies { congestion: Box::new(control), ..cmt::build(values) }
}

//! `cmt-rpv2`: CMT with resource pooling by rates.

use anabranch_core::policy::Policies;

use crate::congestion::control::{FIRST_WINDOW, SHARED_FIRST_WINDOW};
use crate::congestion::cut::{Floor, floored};
use crate::congestion::growth::pooled;
use crate::congestion::{GrowthGate, WindowControl};
use crate::definition::{Card, Choice, Preset, Role, Values};
use crate::preset::cmt_rpv2::cut::ResourcePoolingV2Cut;
use crate::preset::cmt_rpv2::growth::ResourcePoolingV2Growth;
use crate::preset::{cmt, cmt_rpv1};

pub mod cut;
pub mod growth;

const CARD: Card = Card {
    summary: &[
        "As `cmt`, but all paths share one resource: a window grows by the path's part of the sum of all",
        "rates cwnd / srtt times what the standard would add, and a loss takes from the path half of the",
        "sum of all rates, as far as it has as much.",
    ],
    equations: &[&[pooled::RATE_SHARE], growth::RULES, cut::RULES, &[SHARED_FIRST_WINDOW]],
    choices: &[&[
        Choice {
            question: "Which paths share?",
            answer: "The active ones, and the path in question whatever its state.",
            parameter: "",
        },
        Choice {
            question: "What of a path without a round-trip time?",
            answer: "It grows by an equal share and is halved by a loss; it counts for no other path.",
            parameter: "",
        },
        Choice {
            question: "What is the least threshold, and does the first window depend on the number of paths?",
            answer: "As in the author's own implementation in INET, since the papers' texts could not be read: rpMin chunks; \
                     the four chunks of the standard's first window are shared by all paths.",
            parameter: "rp-min, floor, initial-window",
        },
        Choice {
            question: "How does one compare it with schemes that have a larger floor?",
            answer: "With `floor=profile`, `2` or `4`, which takes the place of its own least threshold.",
            parameter: "floor",
        },
    ]],
};

pub(crate) const PRESET: Preset = Preset {
    name: "cmt-rpv2",
    about: "CMT with resource pooling, version 2: paths share by rates",
    source: "Dreibholz, Becke, Adhari, Rathgeb 2011; INET",
    multipath: true,
    coupled: true,
    unfair_because: "",
    owns: &[Role::CongestionControl],
    parameters: cmt_rpv1::PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

fn build(values: &Values) -> Policies {
    let cut = ResourcePoolingV2Cut { least: values.decimal("rp-min"), floor: Floor::from_values(values) };
    let control = WindowControl::new(GrowthGate::from_values(values))
        .with_growth(ResourcePoolingV2Growth)
        .with_cut(cut)
        .with_first_window(FIRST_WINDOW.get(values));
    Policies { congestion: Box::new(control), ..cmt::build(values) }
}

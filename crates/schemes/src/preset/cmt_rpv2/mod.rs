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
        "As `cmt`, but all paths share one resource: a window grows by the standard's increment times the path's",
        "share of the sum of all rates cwnd / srtt, and a loss removes half of the sum of all rates from the",
        "path, as far as its rate is large enough.",
    ],
    equations: &[&[pooled::RATE_SHARE], growth::RULES, cut::RULES, &[SHARED_FIRST_WINDOW]],
    choices: &[&[
        Choice {
            question: "Which paths share?",
            answer: "The active ones, and the path in question in any state.",
            parameter: "",
        },
        Choice {
            question: "How does a path without a round-trip time count?",
            answer: "It grows by an equal share and is halved by a loss; it does not count for other paths.",
            parameter: "",
        },
        Choice {
            question: "What is the least threshold, and does the first window depend on the number of paths?",
            answer: "As in the author's own implementation in INET, since the papers' texts were not available: rpMin chunks; \
                     the four chunks of the standard's initial window are shared by all paths.",
            parameter: "rp-min, floor, initial-window",
        },
        Choice {
            question: "How is it compared with schemes that have a larger floor?",
            answer: "With `floor=profile`, `2` or `4`, which replaces its own least threshold.",
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

//! `cmt-rpv1`: CMT with resource pooling by slow-start thresholds.

use anabranch_core::policy::Policies;

use crate::ack::delayed::{SACK_DELAY, SACK_EVERY, dac};
use crate::congestion::control::{FIRST_WINDOW, SHARED_FIRST_WINDOW, cuc};
use crate::congestion::cut::{Floor, floored, own_floor};
use crate::congestion::growth::pooled;
use crate::congestion::{GrowthGate, WindowControl};
use crate::definition::{Card, Choice, Kind, Parameter, Preset, Role, Value, Values};
use crate::loss::missing_reports::{TRIGGER, sfr};
use crate::preset::cmt;
use crate::preset::cmt_rpv1::cut::ResourcePoolingV1Cut;
use crate::preset::cmt_rpv1::growth::ResourcePoolingV1Growth;
use crate::retransmit::rtx;

pub mod cut;
pub mod growth;

pub(crate) const RP_MIN: Parameter = Parameter {
    name: "rp-min",
    kind: Kind::Decimal { min: 0.0, max: 100.0 },
    unit: "",
    default: Value::Decimal(1.0),
    about: "least slow-start threshold of resource pooling, in largest chunks",
    source: "INET: cmtRPMinCwnd, 1",
};

/// Parameters of both versions.
pub(super) const PARAMETERS: &[Parameter] = &[
    RP_MIN,
    FIRST_WINDOW.parameter(),
    rtx("rtx-cwnd"),
    TRIGGER,
    sfr(true),
    cuc(true),
    dac(true),
    SACK_EVERY,
    SACK_DELAY,
    own_floor("INET: one chunk, or `rp-min` of them"),
];

const CARD: Card = Card {
    summary: &[
        "As `cmt`, but all paths share one resource: a window grows by the standard's increment times the path's",
        "share of the sum of all slow-start thresholds, and a loss removes half of the sum of all windows",
        "from the path with the loss, as far as its window is large enough.",
    ],
    equations: &[&[pooled::THRESHOLD_SHARE], growth::RULES, cut::RULES, &[SHARED_FIRST_WINDOW]],
    choices: &[&[
        Choice {
            question: "Which paths share?",
            answer: "The active ones, and the path in question in any state.",
            parameter: "",
        },
        Choice {
            question: "What is the share if no threshold is set?",
            answer: "An equal one, as before the peer has advertised a window.",
            parameter: "",
        },
        Choice {
            question: "What is the least threshold, and does the first window depend on the number of paths?",
            answer: "As in the author's own implementation in INET, since the papers' texts were not available: one chunk, or \
                     rpMin chunks times the share; the four chunks of the standard's initial window are shared by all paths.",
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
    name: "cmt-rpv1",
    about: "CMT with resource pooling, version 1: paths share by slow-start thresholds",
    source: "Dreibholz, Becke, Pulinthanath, Rathgeb 2010; INET",
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
    let cut = ResourcePoolingV1Cut { least: values.decimal("rp-min"), floor: Floor::from_values(values) };
    let control = WindowControl::new(GrowthGate::from_values(values))
        .with_growth(ResourcePoolingV1Growth)
        .with_cut(cut)
        .with_first_window(FIRST_WINDOW.get(values));
    Policies { congestion: Box::new(control), ..cmt::build(values) }
}

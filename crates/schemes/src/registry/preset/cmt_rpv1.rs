//! `cmt-rpv1`: CMT with resource pooling by slow-start thresholds.

use anabranch_core::policy::Policies;

use crate::congestion::WindowControl;
use crate::congestion::cut::ResourcePoolingV1Cut;
use crate::congestion::growth::ResourcePoolingV1Growth;
use crate::registry::preset::shared::{
    INITIAL_WINDOW, RP_MIN, SACK_DELAY, SACK_EVERY, TRIGGER, cuc, dac, first_window, floored, gate,
    own_floor, rtx, sfr, whose_floor,
};
use crate::registry::preset::{Preset, cmt};
use crate::registry::{Card, Choice, Equation, Parameter, Values};

/// The same for both versions.
pub(super) const PARAMETERS: &[Parameter] = &[
    RP_MIN,
    INITIAL_WINDOW,
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
        "As `cmt`, but all paths share one resource: a window grows by the path's part of the sum of all",
        "slow-start thresholds times what the standard would add, and a loss takes half of the sum of all",
        "windows from the path that suffered it, as far as it has as much.",
    ],
    equations: &[
        Equation {
            name: "share",
            rule: "s_i = ssthresh_i / sum of ssthresh_k",
            place: "crates/schemes/src/congestion/growth/pooled.rs",
        },
        Equation {
            name: "slow start",
            rule: "cwnd_i grows by min(bytes_acked, M) s_i, rounded up",
            place: "crates/schemes/src/congestion/growth/resource_pooling_v1.rs",
        },
        Equation {
            name: "congestion avoidance",
            rule: "cwnd_i grows by M s_i, rounded up, for each window acknowledged",
            place: "crates/schemes/src/congestion/growth/resource_pooling_v1.rs",
        },
        Equation {
            name: "fast retransmit",
            rule: "ssthresh = max(cwnd_i - sum of cwnd_k / 2, M, rpMin M s_i), cwnd = ssthresh",
            place: "crates/schemes/src/congestion/cut/resource_pooling_v1.rs",
        },
        Equation {
            name: "T3",
            rule: "the same ssthresh, cwnd = max(M, M s_i)",
            place: "crates/schemes/src/congestion/cut/resource_pooling_v1.rs",
        },
        Equation {
            name: "first window",
            rule: "min(4 M / n, max(2 M, 4380)), rounded up, and at least M, with n paths",
            place: "crates/schemes/src/congestion/control.rs",
        },
    ],
    choices: &[
        Choice {
            question: "Which paths share?",
            answer: "The active ones, and the path in question whatever its state.",
            parameter: "",
        },
        Choice {
            question: "What is the share if no threshold is set?",
            answer: "An equal one; so it is before the peer has advertised a window.",
            parameter: "",
        },
        Choice {
            question: "What is the least threshold, and does the first window depend on the number of paths?",
            answer: "As in the author's own implementation in INET, since the papers' texts could not be read: one chunk, or rpMin chunks times the share; \
                     the four chunks of the standard's first window are shared by all paths.",
            parameter: "rp-min, floor, initial-window",
        },
        Choice {
            question: "How does one compare it with schemes that have a larger floor?",
            answer: "With `floor=profile`, `2` or `4`, which takes the place of its own least threshold.",
            parameter: "floor",
        },
    ],
};

pub(crate) const PRESET: Preset = Preset {
    name: "cmt-rpv1",
    about: "CMT with resource pooling, version 1: paths share by slow-start thresholds",
    source: "Dreibholz, Becke, Pulinthanath, Rathgeb 2010; INET",
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
    let cut = ResourcePoolingV1Cut { least: values.decimal("rp-min"), floor: whose_floor(values) };
    let control = WindowControl::new(gate(values))
        .growing(ResourcePoolingV1Growth)
        .cutting(cut)
        .beginning(first_window(values));
    Policies { congestion: Box::new(control), ..cmt::build(values) }
}

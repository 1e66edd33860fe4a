//! `cmt-rpv2`: CMT with resource pooling by rates.

use anabranch_core::policy::Policies;

use crate::congestion::WindowControl;
use crate::congestion::cut::ResourcePoolingV2Cut;
use crate::congestion::growth::ResourcePoolingV2Growth;
use crate::registry::preset::shared::{first_window, floored, gate, whose_floor};
use crate::registry::preset::{Preset, cmt, cmt_rpv1};
use crate::registry::{Card, Choice, Equation, Values};

const CARD: Card = Card {
    summary: &[
        "As `cmt`, but all paths share one resource: a window grows by the path's part of the sum of all",
        "rates cwnd / srtt times what the standard would add, and a loss takes from the path half of the",
        "sum of all rates, as far as it has as much.",
    ],
    equations: &[
        Equation {
            name: "share",
            rule: "s_i = (cwnd_i / srtt_i) / sum of (cwnd_k / srtt_k)",
            place: "crates/schemes/src/congestion/growth/pooled.rs",
        },
        Equation {
            name: "slow start",
            rule: "cwnd_i grows by min(bytes_acked, M) s_i, rounded up",
            place: "crates/schemes/src/congestion/growth/resource_pooling_v2.rs",
        },
        Equation {
            name: "congestion avoidance",
            rule: "cwnd_i grows by M s_i, rounded up, for each window acknowledged",
            place: "crates/schemes/src/congestion/growth/resource_pooling_v2.rs",
        },
        Equation {
            name: "fast retransmit",
            rule: "ssthresh = max(cwnd_i (1 - f), rpMin M), cwnd = ssthresh, with f = max(1/2, sum of B_k / (2 B_i)), B = cwnd / srtt",
            place: "crates/schemes/src/congestion/cut/resource_pooling_v2.rs",
        },
        Equation {
            name: "T3",
            rule: "the same ssthresh, cwnd = M",
            place: "crates/schemes/src/congestion/cut/resource_pooling_v2.rs",
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
    ],
};

pub(crate) const PRESET: Preset = Preset {
    name: "cmt-rpv2",
    about: "CMT with resource pooling, version 2: paths share by rates",
    source: "Dreibholz, Becke, Adhari, Rathgeb 2011; INET",
    multipath: true,
    coupled: true,
    unfair_because: "",
    owns: &[],
    parameters: cmt_rpv1::PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

fn build(values: &Values) -> Policies {
    let cut = ResourcePoolingV2Cut { least: values.decimal("rp-min"), floor: whose_floor(values) };
    let control = WindowControl::new(gate(values))
        .growing(ResourcePoolingV2Growth)
        .cutting(cut)
        .beginning(first_window(values));
    Policies { congestion: Box::new(control), ..cmt::build(values) }
}

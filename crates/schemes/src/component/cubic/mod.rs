//! `cubic`: windows that grow with time since the latest loss.

use anabranch_core::policy::Policies;

use crate::component::cubic::cut::CubicCut;
use crate::component::cubic::growth::CubicGrowth;
use crate::congestion::control::{PF, cuc};
use crate::congestion::{GrowthGate, WindowControl};
use crate::definition::{Card, Choice, Component, Parameter, Role, Values};

mod cut;
mod growth;

const PARAMETERS: &[Parameter] = &[
    Parameter::switch(
        "fast-convergence",
        true,
        "a flow whose window was cut below the one before gives more room to others",
        "RFC 9438 section 4.7",
    ),
    cuc(true),
    PF.parameter(),
];

const CARD: Card = Card {
    summary: &[
        "On each path the window grows with the time since its latest loss, steeply until it is near the",
        "window at which that happened, slowly around it, and then steeply again. It is never below what the",
        "standard's growth would have reached meanwhile. A loss leaves 0.7 of a window. Linux, Windows and",
        "Apple's systems use it for TCP, so it is what most other traffic does.",
    ],
    equations: &[growth::RULES, cut::RULES],
    choices: &[&[
        Choice {
            question: "TCP has one path. What of several?",
            answer: "Every path has a window and a curve of its own; they are not coupled.",
            parameter: "",
        },
        Choice { question: "What is a segment?", answer: "The path's largest DATA chunk.", parameter: "" },
        Choice {
            question: "Slow start?",
            answer: "The profile's, with its limit for each SACK and its exit (HyStart++ under `net`).",
            parameter: "",
        },
        Choice {
            question: "Which acknowledgements let a window grow?",
            answer: "With CUC those that advance the path's own pseudo-cumulative TSN, as in `cmt`; otherwise those that \
                     advance the association's cumulative TSN.",
            parameter: "cuc",
        },
        Choice {
            question: "What if the application, a receive window or another path leaves the window unused (section 5.8)?",
            answer: "That time does not count: the curve goes on where it stopped once the window is in full use.",
            parameter: "",
        },
        Choice {
            question: "Is a reduction undone if the loss was none (section 4.9)?",
            answer: "No, as no other control here does it.",
            parameter: "",
        },
        Choice {
            question: "What is the least threshold after a loss?",
            answer: "The profile's or the scheme's `floor`; section 4.6 has two segments.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "cubic",
    about: "CUBIC on each path: windows grow with the time since the latest loss, which leaves 0.7 of a window",
    source: "RFC 9438",
    role: Role::CongestionControl,
    needs_multipath: false,
    parameters: PARAMETERS,
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let growth = CubicGrowth::new(values.switch("fast-convergence"));
    let control = WindowControl::new(GrowthGate::from_values(values))
        .with_growth(growth)
        .with_cut(CubicCut)
        .with_window_after_probe(PF.get(values));
    Policies { congestion: Box::new(control), ..policies }
}

/// RFC 9438 section 4.6: what a loss leaves of a window.
const BETA: f64 = 0.7;

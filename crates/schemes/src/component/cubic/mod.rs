//! `cubic`: windows that grow with time since the latest loss.

use anabranch_core::policy::Policies;

use crate::component::cubic::cut::CubicCut;
use crate::component::cubic::growth::CubicGrowth;
use crate::congestion::control::{PF, cuc};
use crate::congestion::{GrowthGate, WindowControl};
use crate::definition::{Card, Choice, Component, Parameter, Role, Values};

pub(crate) mod curve;
mod cut;
mod growth;

const PARAMETERS: &[Parameter] = &[
    Parameter::switch(
        "fast-convergence",
        true,
        "a flow whose window is reduced below the previous maximum leaves more room to others",
        "RFC 9438 section 4.7",
    ),
    cuc(true),
    PF.parameter(),
];

const CARD: Card = Card {
    summary: &[
        "On each path the window grows with the time since its latest loss: steeply until it is near the window",
        "at that loss, slowly around it, and then steeply again. It is never below the window that the standard's",
        "growth would have reached. A loss reduces the window to 0.7 of its size. Linux, Windows and Apple's",
        "systems use it for TCP, so most other traffic behaves like this.",
    ],
    equations: &[curve::RULES, cut::RULES],
    choices: &[&[
        Choice {
            question: "TCP has one path. How are several paths handled?",
            answer: "Every path has its own window and curve; they are not coupled.",
            parameter: "",
        },
        Choice { question: "What is a segment?", answer: "The path's largest DATA chunk.", parameter: "" },
        Choice {
            question: "How does slow start work?",
            answer: "The profile's, with its limit for each SACK and its exit (HyStart++ under `net`).",
            parameter: "",
        },
        Choice {
            question: "Which acknowledgements increase a window?",
            answer: "With CUC those that advance the path's pseudo-cumulative TSN, as in `cmt`; otherwise those that advance \
                     the association's cumulative TSN.",
            parameter: "cuc",
        },
        Choice {
            question: "What happens if the application, a receive window or another path leaves the window unused (section \
                       5.8)?",
            answer: "That time does not count: the curve continues where it stopped once the window is in full use.",
            parameter: "",
        },
        Choice {
            question: "Is a reduction reverted if the loss was spurious (section 4.9)?",
            answer: "No, as with all other congestion controls here.",
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
    about: "CUBIC on each path: windows grow with the time since the latest loss, which reduces them to 0.7",
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

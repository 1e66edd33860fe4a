//! `db-cmt`: delay-based CMT, with its three parts D-DSP, RTX-CL and D-FRP.

use anabranch_core::policy::Policies;

use crate::ack::delayed::{SACK_DELAY, SACK_EVERY, dac};
use crate::congestion::control::cuc;
use crate::congestion::cut::{floor, floored};
use crate::congestion::{GrowthGate, WindowControl};
use crate::definition::{Card, Choice, ChoiceParameter, Parameter, Preset, Role, Values};
use crate::loss::missing_reports::{TEXT_HAS_FOUR_REPORTS, TRIGGER, sfr};
use crate::preset::a_cmt::{APPLY, DELTA, LAMBDA, RTT, RateDifferenceGrowth};
use crate::preset::db_cmt::ascending_backlog::AscendingBacklog;
use crate::preset::db_cmt::rtt_ratio::{CutWindow, RttRatioCut};
use crate::preset::{a_cmt, cmt};
use crate::retransmit::best::RTX_CL;
use crate::retransmit::rtx;

pub mod ascending_backlog;
pub mod rtt_ratio;

const ASCENDING: ChoiceParameter<bool> = ChoiceParameter {
    name: "order",
    options: &[("rotating", false), ("ascending-d", true)],
    default: "rotating",
    about: "order in which windows are filled: in turn as in `cmt`, or by ascending rate difference",
    source: "DB-CMT section 4.1 gives no rule for it",
};

const FRP_WINDOW: ChoiceParameter<CutWindow> = ChoiceParameter {
    name: "frp-window",
    options: &[("threshold", CutWindow::Threshold), ("equation", CutWindow::Equation)],
    default: "threshold",
    about: "window after D-FRP: the new threshold with its floor, or the result of equation 5",
    source: "DB-CMT equation 5 sets cwnd only",
};

const PARAMETERS: &[Parameter] = &[
    Parameter::switch("dsp", true, "windows grow by the rate difference (D-DSP)", "DB-CMT section 4.1"),
    Parameter::switch(
        "frp",
        true,
        "fast retransmit reduces the window by the queueing delay (D-FRP)",
        "DB-CMT section 4.3",
    ),
    LAMBDA,
    DELTA,
    RTT.parameter(),
    APPLY.parameter(),
    ASCENDING.parameter(),
    FRP_WINDOW.parameter(),
    rtx("rtx-cl"),
    TRIGGER,
    sfr(true),
    cuc(true),
    dac(true),
    SACK_EVERY,
    SACK_DELAY,
    floor("profile"),
];

const CARD: Card = Card {
    summary: &[
        "As `a-cmt`, but a fast retransmit reduces a window only by the share of queueing in the round-trip time",
        "(D-FRP), and lost chunks are retransmitted on the path with the largest window, among equals with the",
        "lowest loss rate (RTX-CL). `dsp`, `frp` and `rtx` switch the three parts; all off is `cmt`.",
    ],
    equations: &[a_cmt::RULES, rtt_ratio::RULES, &[RTX_CL]],
    choices: &[
        a_cmt::RATE_DIFFERENCE_CHOICES,
        &[
            Choice {
                question: "Does D-DSP also place data?",
                answer: "No: new data fills windows in turn, as in `cmt`. According to the text, less loaded paths get more \
                         data, which their faster growing windows cause. The algorithm itself is printed as a picture that is \
                         not in the text.",
                parameter: "order",
            },
            Choice {
                question: "What are ssthresh and the least window after D-FRP?",
                answer: "ssthresh is the result of equation 5, but at least the floor, and cwnd is set to it, as after the \
                         standard's fast retransmit. An unchanged threshold would return the path to slow start.",
                parameter: "frp-window, floor",
            },
            Choice {
                question: "How often does D-FRP reduce the window, and how without a sample?",
                answer: "Once per window, as fast retransmit does otherwise. Without a sample the window is halved.",
                parameter: "",
            },
            Choice {
                question: "What is the effect of T3?",
                answer: "That of the standard; the paper changes only fast retransmit.",
                parameter: "",
            },
            TEXT_HAS_FOUR_REPORTS,
            Choice {
                question: "Which loss rate does RTX-CL compare?",
                answer: "The measured one, bytes lost over bytes sent. ns-2 knows a link's true rate from the script.",
                parameter: "",
            },
        ],
    ],
};

pub(crate) const PRESET: Preset = Preset {
    name: "db-cmt",
    about: "Delay-based CMT: growth by rate difference, reductions by queueing delay, retransmission by window and loss rate",
    source: "the paper that proposes DB-CMT, sections 4.1 to 4.3: D-DSP, RTX-CL, D-FRP",
    multipath: true,
    coupled: false,
    unfair_because: "As in `a-cmt`, its windows stop growing once delta bytes of their own are in a queue, and a flow that \
                     only reacts to losses fills the queue beside it, so it gets less than one flow's share. With `dsp=false` \
                     its smaller reductions give it more than two.",
    owns: &[Role::CongestionControl],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

fn build(values: &Values) -> Policies {
    let policies = Policies { congestion: Box::new(control(values)), ..cmt::build(values) };
    if ASCENDING.get(values) {
        return Policies { scheduler: Box::new(AscendingBacklog { rtt: RTT.get(values) }), ..policies };
    }
    policies
}

fn control(values: &Values) -> WindowControl {
    let mut control = WindowControl::new(GrowthGate::from_values(values));
    if values.switch("dsp") {
        control = control.with_growth(RateDifferenceGrowth::from_values(values));
    }
    if values.switch("frp") {
        control = control.with_cut(RttRatioCut { rtt: RTT.get(values), window: FRP_WINDOW.get(values) });
    }
    control
}

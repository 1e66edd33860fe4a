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
    about: "in which order windows are filled: in turn as `cmt` does, or by ascending rate difference",
    source: "DB-CMT section 4.1 gives no rule for it",
};

const FRP_WINDOW: ChoiceParameter<CutWindow> = ChoiceParameter {
    name: "frp-window",
    options: &[("threshold", CutWindow::Threshold), ("equation", CutWindow::Equation)],
    default: "threshold",
    about: "window after D-FRP: the new threshold with its floor, or what equation 5 leaves",
    source: "DB-CMT equation 5 sets cwnd only",
};

const PARAMETERS: &[Parameter] = &[
    Parameter::switch("dsp", true, "windows grow by the rate difference (D-DSP)", "DB-CMT section 4.1"),
    Parameter::switch(
        "frp",
        true,
        "fast retransmit cuts by the queueing delay (D-FRP)",
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
        "As `a-cmt`, and what fast retransmit finds costs a window only the part that queueing has added",
        "to the round trip (D-FRP), and lost chunks go where the window is largest, among equals where the",
        "loss rate is lowest (RTX-CL). `dsp`, `frp` and `rtx` switch the three parts; all off is `cmt`.",
    ],
    equations: &[a_cmt::RULES, rtt_ratio::RULES, &[RTX_CL]],
    choices: &[
        a_cmt::RATE_DIFFERENCE_CHOICES,
        &[
            Choice {
                question: "Does D-DSP also place data?",
                answer: "No: new data fills windows in turn, as in `cmt`. The text says that less loaded paths get more, which their \
                     faster growing windows bring about; the algorithm itself is printed as a picture that is not in the text.",
                parameter: "order",
            },
            Choice {
                question: "What are ssthresh and the least window after D-FRP?",
                answer: "ssthresh is what equation 5 leaves, but at least the floor, and cwnd is set to it, as after the standard's \
                     fast retransmit. A threshold left where it was would send the path back into slow start.",
                parameter: "frp-window, floor",
            },
            Choice {
                question: "How often does D-FRP cut, and what if nothing is measured?",
                answer: "Once per window, as fast retransmit does otherwise. Without a sample the window is halved.",
                parameter: "",
            },
            Choice {
                question: "What does T3 do?",
                answer: "What the standard says; the paper changes fast retransmit only.",
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
    about: "Delay-based CMT: growth by rate difference, cuts by queueing delay, retransmission by window and loss rate",
    source: "the paper that proposes DB-CMT, sections 4.1 to 4.3: D-DSP, RTX-CL, D-FRP",
    multipath: true,
    coupled: false,
    unfair_because: "As `a-cmt`, its windows stop growing once delta bytes of their own wait in a queue, and a flow \
                     that only reacts to loss fills the queue beside it, so it takes less than one flow's share. With \
                     `dsp=false` its smaller cuts make it take more than two.",
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

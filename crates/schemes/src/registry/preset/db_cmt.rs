//! `db-cmt`: delay-based CMT, with its three parts D-DSP, RTX-CL and D-FRP.

use anabranch_core::policy::Policies;

use crate::congestion::WindowControl;
use crate::congestion::cut::{CutWindow, RttRatioCut};
use crate::registry::preset::shared::{
    APPLY, DELTA, LAMBDA, RTT, SACK_DELAY, SACK_EVERY, TRIGGER, cuc, dac, floor, floored, gate,
    rate_difference_growth, rtt_source, rtx, sfr, switch,
};
use crate::registry::preset::{Preset, a_cmt, cmt};
use crate::registry::{Card, Choice, Equation, Kind, Parameter, Value, Values};
use crate::scheduler::AscendingBacklog;

const PARAMETERS: &[Parameter] = &[
    switch("dsp", true, "windows grow by the rate difference (D-DSP)", "DB-CMT section 4.1"),
    switch("frp", true, "fast retransmit cuts by the queueing delay (D-FRP)", "DB-CMT section 4.3"),
    LAMBDA,
    DELTA,
    RTT,
    APPLY,
    Parameter {
        name: "order",
        kind: Kind::Choice(&["rotating", "ascending-d"]),
        unit: "",
        default: Value::Choice("rotating"),
        about: "in which order windows are filled: in turn as `cmt` does, or by ascending rate difference",
        source: "DB-CMT section 4.1 gives no rule for it",
    },
    Parameter {
        name: "frp-window",
        kind: Kind::Choice(&["threshold", "equation"]),
        unit: "",
        default: Value::Choice("threshold"),
        about: "window after D-FRP: the new threshold with its floor, or what equation 5 leaves",
        source: "DB-CMT equation 5 sets cwnd only",
    },
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
    equations: &[
        a_cmt::EXPECTED_RATE,
        a_cmt::GROWTH,
        Equation {
            name: "equation 5 (D-FRP)",
            rule: "cwnd = cwnd - cwnd (RTT - RTTmin) / RTT = cwnd RTTmin / RTT",
            place: "crates/schemes/src/congestion/cut/rtt_ratio.rs",
        },
        Equation {
            name: "Algorithm 2 (RTX-CL)",
            rule: "the path with the largest cwnd; of several the one with the lowest loss rate; of several any",
            place: "crates/schemes/src/retransmit/best.rs",
        },
    ],
    choices: &[
        a_cmt::THRESHOLDS,
        a_cmt::EQUALITY,
        a_cmt::PRESENT_RTT,
        a_cmt::APPLICATION,
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
        Choice {
            question: "How many missing reports make a chunk lost?",
            answer: "Three. The paper's text says four, but it ran on ns-2.35, whose default is three, and nowhere says that \
                     it was changed; the schemes it is compared with count alike.",
            parameter: "trigger",
        },
        Choice {
            question: "Which loss rate does RTX-CL compare?",
            answer: "The measured one, bytes lost over bytes sent. ns-2 knows a link's true rate from the script.",
            parameter: "",
        },
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
    owns: &[],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

fn build(values: &Values) -> Policies {
    let policies = Policies { congestion: Box::new(control(values)), ..cmt::build(values) };
    if values.choice("order") == "ascending-d" {
        return Policies { scheduler: Box::new(AscendingBacklog { rtt: rtt_source(values) }), ..policies };
    }
    policies
}

fn control(values: &Values) -> WindowControl {
    let mut control = WindowControl::new(gate(values));
    if values.switch("dsp") {
        control = control.growing(rate_difference_growth(values));
    }
    if values.switch("frp") {
        let equation = values.choice("frp-window") == "equation";
        let window = if equation { CutWindow::Equation } else { CutWindow::Threshold };
        control = control.cutting(RttRatioCut { rtt: rtt_source(values), window });
    }
    control
}

//! `cmt-dfr`: CMT with a delay-based fast retransmission policy.

use anabranch_core::policy::Policies;

use crate::congestion::WindowControl;
use crate::congestion::cut::SrttFractionCut;
use crate::registry::preset::shared::{
    SACK_DELAY, SACK_EVERY, TRIGGER, cuc, dac, floored, gate, own_floor, rtx, sfr, whose_floor,
};
use crate::registry::preset::{Preset, cmt};
use crate::registry::{Card, Choice, Equation, Kind, Length, Parameter, Value, Values};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "alpha",
        kind: Kind::Decimal { min: 0.0, max: 1.0 },
        unit: "",
        default: Value::Decimal(0.25),
        about: "weight of a new sample in the smoothed round-trip time that cuts windows",
        source: "the paper's RTO.Alpha: 0.25; RFC 9260 section 6.3.1: 0.125",
    },
    Parameter {
        name: "mtu",
        kind: Kind::Length,
        unit: "",
        default: Value::Length(Length::Bytes(1500)),
        about: "MTU: the window after T3, and a quarter of the floor",
        source: "Algorithm 1, line 2: 1500 bytes",
    },
    rtx("rtx-cwnd"),
    TRIGGER,
    sfr(true),
    cuc(true),
    dac(true),
    SACK_EVERY,
    SACK_DELAY,
    own_floor("Algorithm 1: 4 MTU"),
];

const PLACE: &str = "crates/schemes/src/congestion/cut/srtt_fraction.rs";

const CARD: Card = Card {
    summary: &[
        "As `cmt`, but what fast retransmit finds costs a window as large a part as the smoothed round-trip",
        "time has of a second: 5 % at 50 ms, a half at 500 ms, all but the floor from one second on.",
    ],
    equations: &[
        Equation {
            name: "equation 6",
            rule: "SRTT = first RTT, then (1 - alpha) SRTT + alpha RTT",
            place: PLACE,
        },
        Equation {
            name: "equation 7",
            rule: "ssthresh = max(cwnd - cwnd SRTT, 4 MTU), SRTT in seconds",
            place: PLACE,
        },
        Equation { name: "equation 8", rule: "cwnd = ssthresh", place: PLACE },
        Equation {
            name: "Algorithm 1, lines 10 and 11 (T3)",
            rule: "ssthresh = max(cwnd / 2, 4 MTU), cwnd = 1 MTU",
            place: PLACE,
        },
    ],
    choices: &[
        Choice {
            question: "In which unit is SRTT?",
            answer: "In seconds, as a plain number: only so are the factors of equation 7 between 0 and 1 for usual paths.",
            parameter: "",
        },
        Choice {
            question: "Which weight has a new sample?",
            answer: "0.25, which the paper calls RTO.Alpha, although RFC 9260 and ns-2 have 1/8 there. This SRTT is kept apart \
                     from the one that sets the retransmission time-out.",
            parameter: "alpha",
        },
        Choice {
            question: "What is the MTU?",
            answer: "1500 bytes as printed, header included, where ns-2 counts 1468. The window after T3 is never below the \
                     largest chunk, so that it can send one.",
            parameter: "mtu",
        },
        Choice {
            question: "Should the schemes it is compared with have its floor?",
            answer: "The paper's floor of 4 MTU is twice that of ns-2's CMT agent, which helps it by itself when losses are many. \
                     `floor=profile` gives it the same floor as the others.",
            parameter: "floor",
        },
        Choice {
            question: "How often does it cut, and what if nothing is measured?",
            answer: "Once per window, as fast retransmit does otherwise. Without a sample the window is halved.",
            parameter: "",
        },
        Choice {
            question: "How many missing reports make a chunk lost?",
            answer: "Three, ns-2's default. The paper's text says four.",
            parameter: "trigger",
        },
    ],
};

pub(crate) const PRESET: Preset = Preset {
    name: "cmt-dfr",
    about: "CMT whose fast retransmit cuts a window by the smoothed round-trip time in seconds",
    source: "Verma, Sharma, Kumar 2018, New Delay-based Fast Retransmission Policy for CMT-SCTP: equations 6 to 8, Algorithm 1",
    multipath: true,
    coupled: false,
    unfair_because: "Its fast retransmit takes off as much of a window as the round trip has seconds, a tenth at 100 ms \
                     where others take off half, so it takes several times what two flows would.",
    owns: &[],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

fn build(values: &Values) -> Policies {
    let cut = SrttFractionCut::new(values.decimal("alpha"), values.length("mtu"), whose_floor(values));
    let control = WindowControl::new(gate(values)).cutting(cut);
    Policies { congestion: Box::new(control), ..cmt::build(values) }
}

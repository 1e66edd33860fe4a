//! `a-cmt`: CMT whose windows grow by the difference between expected and actual rate.

use anabranch_core::policy::Policies;

use crate::congestion::WindowControl;
use crate::registry::preset::shared::{
    APPLY, DELTA, LAMBDA, RTT, SACK_DELAY, SACK_EVERY, TRIGGER, cuc, dac, floor, floored, gate,
    rate_difference_growth, rtx, sfr,
};
use crate::registry::preset::{Preset, cmt};
use crate::registry::{Card, Choice, Equation, Parameter, Values};

const PARAMETERS: &[Parameter] = &[
    LAMBDA,
    DELTA,
    RTT,
    APPLY,
    rtx("rtx-cwnd"),
    TRIGGER,
    sfr(true),
    cuc(true),
    dac(true),
    SACK_EVERY,
    SACK_DELAY,
    floor("profile"),
];

pub(crate) const EXPECTED_RATE: Equation = Equation {
    name: "DB-CMT equations 1 to 3",
    rule: "D = (cwnd / RTTmin - cwnd / RTT) RTTmin = cwnd (1 - RTTmin / RTT)",
    place: "crates/schemes/src/congestion/growth/rate_difference.rs",
};

pub(crate) const GROWTH: Equation = Equation {
    name: "DB-CMT equation 4",
    rule: "cwnd grows by M if D < lambda, by M / 2 if lambda <= D <= delta, not at all if D > delta",
    place: "crates/schemes/src/congestion/growth/rate_difference.rs",
};

pub(crate) const THRESHOLDS: Choice = Choice {
    question: "How large are lambda and delta?",
    answer: "1 and 3 largest chunks. DB-CMT refers to a threshold estimation in the A-CMT paper, of which no copy could be read. \
             D is the figure by which TCP Vegas decides, whose thresholds in ns-2 are 1 and 3 packets.",
    parameter: "lambda, delta",
};

pub(crate) const EQUALITY: Choice = Choice {
    question: "What if D equals lambda or delta?",
    answer: "Half a chunk: equation 4 leaves both cases open, and the middle one is the nearest to either side.",
    parameter: "",
};

pub(crate) const PRESENT_RTT: Choice = Choice {
    question: "Which round-trip time is RTT, and over what time is RTTmin the least?",
    answer: "The smoothed one, because a single late sample would stop growth, and the least since the path exists. \
             A path without a sample holds nothing back as far as is known, and grows.",
    parameter: "rtt",
};

pub(crate) const APPLICATION: Choice = Choice {
    question: "When does equation 4 apply?",
    answer: "In congestion avoidance, in place of the one chunk for each window acknowledged; a window's worth of \
             acknowledgements is spent in all three cases. DB-CMT's text has every scheme double its window in slow start.",
    parameter: "apply",
};

const CARD: Card = Card {
    summary: &[
        "As `cmt`, but in congestion avoidance a window grows by a whole chunk, half a chunk or not at all,",
        "as the bytes that the path seems to queue are few, moderate or many. Losses halve windows.",
    ],
    equations: &[EXPECTED_RATE, GROWTH],
    choices: &[
        Choice {
            question: "What is A-CMT?",
            answer: "The growth of DB-CMT's equation 4 without its other two parts, since DB-CMT says that it adds those to \
                     A-CMT. The A-CMT paper itself could not be read.",
            parameter: "",
        },
        THRESHOLDS,
        EQUALITY,
        PRESENT_RTT,
        APPLICATION,
    ],
};

pub(crate) const PRESET: Preset = Preset {
    name: "a-cmt",
    about: "CMT whose windows grow by the difference between expected and actual rate",
    source: "Verma, Kumar 2017, as the DB-CMT paper describes it",
    multipath: true,
    coupled: false,
    unfair_because: "Its windows stop growing once delta bytes of their own wait in a queue, while a flow that only \
                     reacts to loss goes on until the queue is full: like TCP Vegas beside Reno it takes less than one \
                     flow's share.",
    owns: &[],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

fn build(values: &Values) -> Policies {
    let control = WindowControl::new(gate(values)).growing(rate_difference_growth(values));
    Policies { congestion: Box::new(control), ..cmt::build(values) }
}

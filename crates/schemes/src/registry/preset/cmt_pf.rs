//! `cmt-pf`: CMT with a potentially failed state.

use anabranch_core::policy::Policies;

use crate::congestion::WindowControl;
use crate::failover::PotentiallyFailed;
use crate::registry::preset::shared::{
    SACK_DELAY, SACK_EVERY, TRIGGER, cuc, dac, floor, floored, gate, rtx, sfr,
};
use crate::registry::preset::{Preset, cmt, rules};
use crate::registry::{Card, Choice, Equation, Kind, Parameter, Role, Value, Values};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "pf",
        kind: Kind::Choice(&["pf1", "pf2"]),
        unit: "",
        default: Value::Choice("pf2"),
        about: "window of a path that answers its probe: one chunk (pf1) or two (pf2)",
        source: "Natarajan 2009; ns-2's default is two",
    },
    rtx("rtx-cwnd"),
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
        "As `cmt`, but one T3 expiry or unanswered HEARTBEAT makes a path potentially failed: it gets no",
        "data, and a HEARTBEAT at once and at each RTO, which doubles each time. An answer, or the",
        "acknowledgement of a chunk that was sent once and there, brings it back. With no path active, the",
        "potentially failed one with the fewest errors serves.",
    ],
    equations: &[
        Equation {
            name: "PF, entry",
            rule: "T3 expiry or unanswered HEARTBEAT on an active path: potentially failed; errors > Path.Max.Retrans (5): inactive",
            place: "crates/schemes/src/failover/potentially_failed.rs",
        },
        Equation {
            name: "PF, probing",
            rule: "a HEARTBEAT at once, then one per RTO; each that stays unanswered: RTO = min(2 RTO, 60 s), errors + 1, windows \
                   unchanged",
            place: "crates/schemes/src/failover/mod.rs",
        },
        Equation {
            name: "PF, return",
            rule: "HEARTBEAT-ACK: active, errors = 0, cwnd = 1 M (PF1) or 2 M (PF2), ssthresh as T3 left it; acknowledgement of a \
                   chunk sent once: active, errors = 0, cwnd as it is",
            place: "crates/schemes/src/congestion/control.rs",
        },
        Equation {
            name: "PF, no path active",
            rule: "of the potentially failed paths the one with the fewest errors, of those the one that failed last, of those one \
                   by coin: active with cwnd = 1 M",
            place: "crates/schemes/src/failover/potentially_failed.rs",
        },
        rules::WINDOW_FILL,
        rules::SLOW_START,
        rules::AVOIDANCE,
        rules::CUT,
        rules::SFR,
        rules::CUC_SEARCH,
        rules::CUC_GROWTH,
        rules::DAC_RECEIVER,
        rules::DAC_SENDER,
        rules::RTX_BEST,
        rules::RTX_ASAP,
        rules::RTX_SAME,
    ],
    choices: &[
        Choice {
            question: "With which window does a path that answered its probe begin?",
            answer: "Two chunks, which is ns-2's default: the probe took a round trip in which slow start would have doubled one.",
            parameter: "pf",
        },
        Choice {
            question: "Does the acknowledgement of a chunk that was sent more than once bring its path back?",
            answer: "No: it may belong to the copy on another path. So it is in ns-2.",
            parameter: "",
        },
        Choice {
            question: "Which retransmission policies avoid potentially failed paths?",
            answer: "All, while another path is active. In ns-2 RTX-SAME and RTX-LOSSRATE do not.",
            parameter: "rtx",
        },
        Choice {
            question: "Does a path that was put into service for want of a better one become potentially failed again?",
            answer: "As the profile says: yes in `rfc9260`; in `ns2` only the error that makes the counter one has that effect, \
                     and such a path keeps its counter.",
            parameter: "",
        },
        rules::CHOICE_TRIGGER,
        rules::CHOICE_SCHEDULING,
        rules::CHOICE_NEW_ACK,
        rules::CHOICE_CUC,
        rules::CHOICE_DAC_FLAGS,
        rules::CHOICE_DAC_TIMER,
        rules::CHOICE_RTX,
        rules::CHOICE_RTX_FULL,
        rules::CHOICE_RTX_TIE,
        rules::CHOICE_LOSS_RATE,
        rules::CHOICE_TIMEOUT_MARKS,
        rules::CHOICE_AROUND,
    ],
};

pub(crate) const PRESET: Preset = Preset {
    name: "cmt-pf",
    about: "CMT with a potentially-failed state: one time-out takes a path out until it answers a probe",
    source: "Natarajan et al. 2008, 2009; ns-2.35; RFC 7829",
    multipath: true,
    coupled: false,
    unfair_because: "",
    owns: &[Role::Failover],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

pub(crate) fn build(values: &Values) -> Policies {
    let chunks = if values.choice("pf") == "pf1" { 1 } else { 2 };
    Policies {
        congestion: Box::new(WindowControl::new(gate(values)).after_probe(chunks)),
        failover: Box::new(PotentiallyFailed),
        ..cmt::build(values)
    }
}

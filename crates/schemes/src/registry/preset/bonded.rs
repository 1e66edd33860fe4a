//! `bonded`: what live links are bonded with unless another scheme is asked for.

use anabranch_core::policy::Policies;
use anabranch_core::profile::{Profile, T3Restart};

use crate::buffer::{Occupancy, Sharers, Side, Split};
use crate::failover::Impatient;
use crate::loss::{Rack, RackSettings};
use crate::registry::preset::shared::{
    SACK_EVERY, TRIGGER, acks, cuc, dac, floor, floored, rtx, sfr, switch,
};
use crate::registry::preset::{Preset, cmt_pf, rules};
use crate::registry::{Card, Choice, Equation, Kind, Parameter, Role, Value, Values};
use crate::retransmit::{Condition, Opportunistic};
use crate::scheduler::{EarliestCompletion, EcfRules};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "pf",
        kind: Kind::Choice(&["pf1", "pf2"]),
        unit: "",
        default: Value::Choice("pf2"),
        about: "window of a path that answers its probe: one chunk (pf1) or two (pf2)",
        source: "Natarajan 2009",
    },
    Parameter {
        name: "patience",
        kind: Kind::Count { min: 1, max: 1000 },
        unit: "round trips",
        default: Value::Number(3),
        about: "silence after which a path gets no new data while another one is active",
        source: "users' reports of links that die slowly; no publication",
    },
    switch("tail-probe", true, "probe a tail that nothing acknowledges", "RFC 8985 section 7"),
    rtx("rtx-soonest"),
    TRIGGER,
    sfr(true),
    cuc(true),
    dac(true),
    SACK_EVERY,
    Parameter {
        name: "sack-delay",
        kind: Kind::Milliseconds { min: 0, max: 500 },
        unit: "ms",
        default: Value::Number(50),
        about: "longest delay of a SACK, ours and, for the probe of a single chunk, the peer's",
        source: "RFC 9260 section 6.2: at most 500; the profile `net` delays no longer than 50",
    },
    floor("profile"),
];

const CARD: Card = Card {
    summary: &[
        "`cmt-pf` put together with what keeps a bad path from slowing a good one down: new data goes to the",
        "path with the lowest round-trip time and waits for it where that completes earlier (ECF), no path may",
        "fill more than its share of the buffers, the head of line is copied to a fast path when it closes the",
        "peer's window, and losses are found by time, tails included (RACK-TLP). It is the default of `anabranch-net`.",
    ],
    equations: &[
        Equation { name: "ECF", rule: "as `+ecf`", place: "crates/schemes/src/scheduler/ecf.rs" },
        Equation {
            name: "opportunistic retransmission",
            rule: "as `+opportunistic`, without its penalty",
            place: "crates/schemes/src/retransmit/opportunistic.rs",
        },
        Equation {
            name: "buffer splitting",
            rule: "as `+split(by=outstanding)`",
            place: "crates/schemes/src/buffer/split.rs",
        },
        Equation {
            name: "RTX-SOONEST",
            rule: "the active path with the least SRTT, counted twice where its window is full; it is waited for then",
            place: "crates/schemes/src/retransmit/soonest.rs",
        },
        Equation {
            name: "T3",
            rule: "restarts with every acknowledgement on its path: RACK finds what is lost on a path that answers",
            place: "crates/core/src/association/sack_in.rs",
        },
        Equation { name: "RACK-TLP", rule: "as `+rack`", place: "crates/schemes/src/loss/rack.rs" },
        Equation {
            name: "PF",
            rule: "as `cmt-pf`",
            place: "crates/schemes/src/failover/potentially_failed.rs",
        },
        Equation {
            name: "silence",
            rule: "something is in flight and nothing was answered for `patience` SRTT + 4 RTTVAR + the longest delay of a SACK, and \
                   another path is active: potentially failed, a HEARTBEAT at once; window and chunks in flight stay as they are",
            place: "crates/schemes/src/failover/impatient.rs",
        },
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
            question: "Is it published?",
            answer: "Its parts are, each with a card of its own; the combination is ours.",
            parameter: "",
        },
        rules::CHOICE_TRIGGER,
        rules::CHOICE_NEW_ACK,
        rules::CHOICE_CUC,
        rules::CHOICE_DAC_FLAGS,
        rules::CHOICE_DAC_TIMER,
        Choice {
            question: "Where does a lost chunk go again?",
            answer: "Where it arrives soonest. By the largest window (RTX-CWND) chunks lost on a fast path with small \
                     windows went to a path sixty times as slow, and held everything back there.",
            parameter: "rtx",
        },
        rules::CHOICE_LOSS_RATE,
        rules::CHOICE_TIMEOUT_MARKS,
        rules::CHOICE_AROUND,
    ],
};

pub(crate) const PRESET: Preset = Preset {
    name: "bonded",
    about: "For live links: the fastest path first and waited for, no path slowed down by another, losses found by time",
    source: "Lim et al. 2017; Raiciu et al. 2012; Dreibholz et al. 2010; Natarajan et al. 2009; RFC 7829; RFC 8985",
    multipath: true,
    coupled: false,
    unfair_because: "",
    owns: &[Role::Scheduler, Role::LossDetection, Role::BufferSharing, Role::Relief, Role::Failover],
    parameters: PARAMETERS,
    card: CARD,
    profile,
    build,
};

/// T3 is for silence alone: what is lost on a path that answers, RACK finds.
fn profile(values: &Values, row: Profile) -> Profile {
    Profile { t3_restart: T3Restart::Any, ..floored(values, row) }
}

fn build(values: &Values) -> Policies {
    let base = cmt_pf::build(values);
    let rack = RackSettings {
        divisor: 4,
        reports_count: true,
        tail_probe: values.switch("tail-probe"),
        ack_delay: values.milliseconds("sack-delay"),
    };
    let ecf = EcfRules { beta: 0.25, deviations: 1.0, whole_windows: false };
    Policies {
        scheduler: Box::new(EarliestCompletion::new(ecf)),
        buffer: Box::new(Split { side: Side::Both, by: Occupancy::Outstanding, sharers: Sharers::Active }),
        loss: Box::new(Rack::new(base.loss, rack)),
        retransmit: Box::new(Opportunistic { inner: base.retransmit, condition: Condition::MuchSlower }),
        ack: Box::new(acks(values)),
        failover: Box::new(Impatient { inner: base.failover, rounds: values.number("patience") }),
        ..base
    }
}

//! `braid`: short queues where possible, random losses distinguished from congestion, and in-order data within the receive window.

use anabranch_core::policy::{LeaveHeadOfLine, LossDetection, Policies, Scheduler};
use anabranch_core::profile::{CopyFate, Profile, T3Restart};

use crate::ack::DelayedAcks;
use crate::ack::delayed::{SACK_EVERY, dac};
use crate::buffer::Unshared;
use crate::component::ecf::{EarliestCompletion, EcfRules};
use crate::component::rack::{Rack, RackSettings};
use crate::congestion::cut::{floor, floored};
use crate::definition::{Kind, Parameter, Preset, Role, Value, Values};
use crate::estimator::MeasuredLossRate;
use crate::loss::MissingReports;
use crate::loss::missing_reports::{TRIGGER, sfr};
use crate::preset::bonded::SilenceFailover;
use crate::preset::braid::chunk_timer::ChunkTimer;
use crate::preset::braid::control::{BraidControl, Parts};
use crate::preset::braid::head_of_line_retransmission::HeadOfLineRetransmission;
use crate::preset::braid::in_order::InOrder;
use crate::preset::braid::model::PathModel;
use crate::preset::braid::redundant_retransmission::RedundantRetransmission;
use crate::preset::braid::soonest::SoonestForAll;
use crate::preset::cmt_pf::PotentiallyFailed;

mod acceleration;
mod ambiguous_rtt;
mod card;
pub mod chunk_timer;
pub mod control;
mod coupling;
mod drain;
pub mod head_of_line_retransmission;
pub mod in_order;
mod loss;
mod lossy_plateau;
mod mode;
pub mod model;
mod pace;
mod path_probe;
mod policer;
pub mod redundant_retransmission;
mod round_trips;
mod sack_wait;
mod shortfall;
pub mod soonest;
mod supervisor;
mod validation;
mod window;

const PARAMETERS: &[Parameter] = &[
    Parameter::switch(
        "delay",
        true,
        "without competing flows on a path, keep its queue short; without it windows grow until packets are lost",
        "Brakmo, O'Malley, Peterson 1994; Arun, Balakrishnan 2018",
    ),
    Parameter::switch(
        "noise",
        true,
        "losses that are as frequent at short queues do not reduce the window; without it every loss does",
        "this project",
    ),
    Parameter::switch(
        "coupling",
        true,
        "congested paths grow and are reduced as one flow; without it each takes the share of a flow",
        "RFC 6356",
    ),
    Parameter::switch(
        "pacing",
        true,
        "packets are spaced over the round trip; without it only windows limit them",
        "RFC 9002 section 7.7",
    ),
    Parameter::switch(
        "in-order",
        true,
        "new data goes where it arrives in order within the receive window; without it as `+ecf`",
        "this project",
    ),
    Parameter::switch(
        "chunk-timer",
        true,
        "a retransmission without a timely acknowledgement is lost again; without it RACK and T3 detect the loss",
        "this project",
    ),
    Parameter::switch(
        "copies",
        true,
        "a late head of line is copied to another path while the peer's window is closed",
        "Raiciu et al. 2012",
    ),
    Parameter::switch(
        "double",
        true,
        "retransmits on two paths when the peer's window would close before the acknowledgement arrives; without it on one",
        "this project",
    ),
    Parameter::switch(
        "supervisor",
        true,
        "withdraws paths while all together deliver less in order than the best one alone; without it the scheduler decides",
        "this project",
    ),
    Parameter {
        name: "silence",
        kind: Kind::Count { min: 1, max: 1000 },
        unit: "round trips",
        default: Value::Number(3),
        about: "silence after which a path gets no new data while another one is active",
        source: "as in `bonded`",
    },
    TRIGGER,
    sfr(true),
    dac(true),
    Parameter { default: Value::Number(1), ..SACK_EVERY },
    Parameter {
        name: "sack-delay",
        kind: Kind::Milliseconds { min: 0, max: 500 },
        unit: "ms",
        default: Value::Number(50),
        about: "longest delay of a SACK, for this side's SACKs and, for the probe of a single chunk, the peer's",
        source: "RFC 9260 section 6.2: at most 500; the profile `net` delays at most 50",
    },
    // CUBIC's (RFC 9438 section 4.6): beside four flows and a short queue, the fair share is less than four chunks.
    floor("2"),
];

pub(crate) const PRESET: Preset = Preset {
    name: "braid",
    about: "Short queues, distinction of random losses from congestion, in-order arrival within the receive window",
    source: "RFC 9438; RFC 9406; RFC 6356; RFC 8985; Brakmo et al. 1994; Arun, Balakrishnan 2018; the combination is new",
    multipath: true,
    coupled: true,
    unfair_because: "",
    owns: &[
        Role::Scheduler,
        Role::CongestionControl,
        Role::LossDetection,
        Role::OpportunisticRetransmission,
        Role::Failover,
        Role::Pacing,
    ],
    parameters: PARAMETERS,
    card: card::CARD,
    profile,
    build,
};

/// Restricts T3 to silence, because RACK detects losses on a path that answers, and judges copies. A path whose chunks are all
/// copied to other paths would otherwise show neither its queue nor its losses.
fn profile(values: &Values, row: Profile) -> Profile {
    Profile { t3_restart: T3Restart::Any, copy_fate: CopyFate::Judged, ..floored(values, row) }
}

fn build(values: &Values) -> Policies {
    let parts = Parts {
        delay: values.switch("delay"),
        noise: values.switch("noise"),
        coupling: values.switch("coupling"),
        pacing: values.switch("pacing"),
    };
    Policies {
        estimator: Box::new(PathModel::new(
            Box::new(MeasuredLossRate::default()),
            values.switch("supervisor"),
        )),
        scheduler: scheduler(values),
        congestion: Box::new(BraidControl::new(parts)),
        loss: loss_detection(values),
        retransmit: if values.switch("double") {
            Box::new(RedundantRetransmission::default())
        } else {
            Box::new(SoonestForAll)
        },
        head_of_line: if values.switch("copies") {
            Box::new(HeadOfLineRetransmission)
        } else {
            Box::new(LeaveHeadOfLine)
        },
        ack: Box::new(DelayedAcks::from_values(values)),
        buffer: Box::new(Unshared),
        failover: Box::new(SilenceFailover {
            inner: Box::new(PotentiallyFailed),
            rounds: values.number("silence"),
        }),
    }
}

fn scheduler(values: &Values) -> Box<dyn Scheduler> {
    match values.switch("in-order") {
        true => Box::new(InOrder),
        false => {
            Box::new(EarliestCompletion::new(EcfRules { beta: 0.25, deviations: 1.0, whole_windows: false }))
        }
    }
}

fn loss_detection(values: &Values) -> Box<dyn LossDetection> {
    let settings = RackSettings {
        recovery_probe: false,
        repeated_probes: true,
        divisor: 4,
        reports_count: true,
        tail_probe: true,
        ack_delay: values.milliseconds("sack-delay"),
    };
    let rack = Box::new(Rack::new(Box::new(MissingReports::from_values(values)), settings));
    if values.switch("chunk-timer") { Box::new(ChunkTimer::new(rack)) } else { rack }
}

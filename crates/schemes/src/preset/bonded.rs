//! `bonded`: the default scheme for live links.
//!
//! A path that has not answered for some round trips gets no new data until it does, long before T3 may declare its failure. Data
//! sent on a silent path would block the data on other paths.

use anabranch_core::policy::{
    Context, Decision, Event, EventSet, LivenessEffect, LivenessProof, PathFailover, Policies, Probing, Slot,
    View,
};
use anabranch_core::profile::{Profile, T3Restart};
use anabranch_core::time::{Span, Time};
use anabranch_core::{PathId, PathState};

use crate::ack::DelayedAcks;
use crate::ack::delayed::{SACK_EVERY, dac};
use crate::component::ecf::{EarliestCompletion, EcfRules};
use crate::component::opportunistic::{Condition, Opportunistic};
use crate::component::rack::{Rack, RackSettings};
use crate::component::split::{Occupancy, SharingPaths, Side, Split};
use crate::component::{ecf, opportunistic, rack, split};
use crate::congestion::control::{PF, cuc};
use crate::congestion::cut::{floor, floored};
use crate::definition::{
    Card, Choice, Equation, Kind, Parameter, Preset, Role, SACK_PROCESSING, Value, Values,
};
use crate::loss::missing_reports::{TRIGGER, sfr};
use crate::preset::cmt::{
    CHOICE_CUC, CHOICE_DAC_FLAGS, CHOICE_DAC_TIMER, CHOICE_LOSS_RATE, CHOICE_NEW_ACK, CHOICE_TIMEOUT_MARKS,
};

use crate::preset::sctp::{CHOICE_AROUND, CHOICE_TRIGGER};
use crate::preset::{cmt, cmt_pf};
use crate::retransmit::rtx;
use crate::retransmit::soonest::RTX_SOONEST;

pub(crate) const FILE: &str = file!();

const PARAMETERS: &[Parameter] = &[
    PF.parameter(),
    Parameter {
        name: "silence",
        kind: Kind::Count { min: 1, max: 1000 },
        unit: "round trips",
        default: Value::Number(3),
        about: "silence after which a path gets no new data while another one is active",
        source: "users' reports of links that fail slowly; no publication",
    },
    Parameter::switch("tail-probe", true, "probe a tail without acknowledgements", "RFC 8985 section 7"),
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
        about: "longest delay of a SACK, for this side's SACKs and, for the probe of a single chunk, the peer's",
        source: "RFC 9260 section 6.2: at most 500; the profile `net` delays at most 50",
    },
    floor("profile"),
];

const CARD: Card = Card {
    summary: &[
        "`cmt-pf` with components that keep a bad path from slowing a good one down: new data goes to the path with",
        "the lowest round-trip time and waits for it if it completes earlier (ECF), no path may fill more than its",
        "share of the buffers, the head of line is copied to a fast path when it closes the peer's window, and",
        "losses are detected by time, including tails (RACK-TLP). It is the default of `anabranch-net`.",
    ],
    equations: &[
        &[
            Equation { name: "ECF", rule: "as `+ecf`", file: ecf::FILE },
            Equation {
                name: "opportunistic retransmission",
                rule: "as `+opportunistic`, without its penalty",
                file: opportunistic::FILE,
            },
            Equation { name: "buffer splitting", rule: "as `+split(by=outstanding)`", file: split::FILE },
            RTX_SOONEST,
            Equation {
                name: "T3",
                rule: "restarts with every acknowledgement on its path: RACK detects losses on a path that answers",
                file: SACK_PROCESSING,
            },
            Equation { name: "RACK-TLP", rule: "as `+rack`", file: rack::FILE },
            Equation { name: "PF", rule: "as `cmt-pf`", file: cmt_pf::FILE },
            Equation {
                name: "silence",
                rule: "data is in flight, no answer arrived for `silence` SRTT + 4 RTTVAR + the longest delay of a SACK, and \
                       another path is active: potentially failed, a HEARTBEAT at once; window and chunks in flight do not \
                       change",
                file: file!(),
            },
        ],
        cmt::RULES,
    ],
    choices: &[&[
        Choice {
            question: "Is it published?",
            answer: "Its parts are, each with a card of its own; the combination is new.",
            parameter: "",
        },
        CHOICE_TRIGGER,
        CHOICE_NEW_ACK,
        CHOICE_CUC,
        CHOICE_DAC_FLAGS,
        CHOICE_DAC_TIMER,
        Choice {
            question: "Where is a lost chunk retransmitted?",
            answer: "On the path on which it arrives soonest. By the largest window (RTX-CWND), chunks lost on a fast path \
                     with small windows were retransmitted on a path sixty times as slow, and blocked all later data there.",
            parameter: "rtx",
        },
        CHOICE_LOSS_RATE,
        CHOICE_TIMEOUT_MARKS,
        CHOICE_AROUND,
    ]],
};

pub(crate) const PRESET: Preset = Preset {
    name: "bonded",
    about: "For live links: waits for the fastest path, keeps paths from slowing each other down, detects losses by time",
    source: "Lim et al. 2017; Raiciu et al. 2012; Dreibholz et al. 2010; Natarajan et al. 2009; RFC 7829; RFC 8985",
    multipath: true,
    coupled: false,
    unfair_because: "",
    owns: &[
        Role::Scheduler,
        Role::LossDetection,
        Role::BufferSharing,
        Role::OpportunisticRetransmission,
        Role::Failover,
    ],
    parameters: PARAMETERS,
    card: CARD,
    profile,
    build,
};

/// Restricts T3 to silence. RACK detects losses on a path that answers.
fn profile(values: &Values, row: Profile) -> Profile {
    Profile { t3_restart: T3Restart::Any, ..floored(values, row) }
}

fn build(values: &Values) -> Policies {
    let base = cmt_pf::build(values);
    let rack = RackSettings {
        repeated_probes: false,
        recovery_probe: false,
        divisor: 4,
        reports_count: true,
        tail_probe: values.switch("tail-probe"),
        ack_delay: values.milliseconds("sack-delay"),
    };
    let ecf = EcfRules { beta: 0.25, deviations: 1.0, whole_windows: false };
    Policies {
        scheduler: Box::new(EarliestCompletion::new(ecf)),
        buffer: Box::new(Split {
            side: Side::Both,
            by: Occupancy::Outstanding,
            sharers: SharingPaths::Active,
        }),
        loss: Box::new(Rack::new(base.loss, rack)),
        head_of_line: Box::new(Opportunistic { condition: Condition::MuchSlower }),
        ack: Box::new(DelayedAcks::from_values(values)),
        failover: Box::new(SilenceFailover { inner: base.failover, rounds: values.number("silence") }),
        ..base
    }
}

/// Policy that makes a silent path potentially failed.
pub struct SilenceFailover {
    /// Policy for all other events.
    pub inner: Box<dyn PathFailover>,
    /// Number of round trips of silence.
    pub rounds: u32,
}

impl Slot for SilenceFailover {
    forward! { inner:
        fn events(&self, profile: &Profile) -> EventSet;
        fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) -> ();
        fn deadline(&self) -> Option<Time>;
    }
}

impl PathFailover for SilenceFailover {
    fn copied(&self) -> Option<Box<dyn PathFailover>> {
        Some(Box::new(SilenceFailover { inner: self.inner.copied()?, ..*self }))
    }

    forward! { inner:
        fn on_error(&mut self, path: PathId, by_heartbeat: bool, view: &View<'_>) -> Decision<PathState>;
        fn on_proof(&mut self, path: PathId, proof: LivenessProof, view: &View<'_>) -> LivenessEffect;
        fn probing(&self, path: PathId, view: &View<'_>) -> Probing;
        fn promote(&mut self, view: &View<'_>, context: &mut Context<'_>) -> Option<Decision<PathId>>;
    }

    /// Returns the round trips plus four deviations (as in RTO, RFC 9260 section 6.3.1) plus the peer's maximum SACK delay.
    fn silence_limit(&self, path: PathId, view: &View<'_>) -> Option<Span> {
        let rtt = &view.path(path).rtt;
        let (smoothed, variance) = rtt.smoothed.zip(rtt.variance)?;
        Some(smoothed.times(u64::from(self.rounds)) + variance.times(4) + view.profile.sack_delay_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::cmt_pf::PotentiallyFailed;
    use crate::testing::{World, path};
    use anabranch_core::profile::Profile;

    #[test]
    fn silence_limit_is_rtts_plus_deviations_plus_the_sack_delay() {
        let policy = SilenceFailover { inner: Box::new(PotentiallyFailed), rounds: 3 };
        let mut world = World::new(Profile::net().multipath(), 2);
        assert_eq!(policy.silence_limit(path(0), &world.view()), None, "nothing was measured");
        world.paths[0].rtt.smoothed = Some(Span::from_millis(20));
        world.paths[0].rtt.variance = Some(Span::from_millis(5));
        assert_eq!(policy.silence_limit(path(0), &world.view()), Some(Span::from_millis(60 + 20 + 50)));
    }
}

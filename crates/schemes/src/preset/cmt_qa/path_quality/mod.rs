//! CMT-QA's path quality estimation model, PQEM (Xu et al. 2013, section 4). It measures the time that a path takes per byte at
//! every loss, and after every period in which no loss is expected. It withdraws a path whose losses recur within its time-out.

pub(crate) mod group;
pub(crate) mod sampling;

pub use group::GroupSpan;
pub use sampling::Bound;

use anabranch_core::policy::{
    Context, Estimates, Event, EventKind, EventSet, LossCause, PathEstimator, PathFacts, SendKind,
    SentTransmission, Slot, View,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId, PathState};

use crate::definition::{ChoiceParameter, Equation, Values};
use crate::estimator::MeasuredLossRate;
use crate::preset::cmt_qa::path_quality::group::Throughput;
use crate::preset::cmt_qa::path_quality::sampling::{LossFreeTime, Samples};

pub(crate) const RULES: &[Equation] = &[Equation {
    name: "section 4, text after equation 6",
    rule: "a path whose interval is less than RTO is marked inactive",
    file: file!(),
}];

pub(super) const BOUND: ChoiceParameter<Bound> = ChoiceParameter {
    name: "bound",
    options: &[("upper", Bound::Upper), ("mean", Bound::Mean), ("lower", Bound::Lower)],
    default: "upper",
    about: "pqem: end of the confidence interval that counts",
    source: "Xu 2013, equation 6, names none",
};

pub(super) const QUANTILE: ChoiceParameter<f64> = ChoiceParameter {
    name: "confidence",
    options: &[("80", 1.282), ("90", 1.645), ("95", 1.96), ("98", 2.326), ("99", 2.576)],
    default: "95",
    about: "pqem: level of the confidence interval in percent",
    source: "Xu 2013, section 4 and Table 1",
};

pub(super) const INITIAL_SAMPLE: ChoiceParameter<InitialSample> = ChoiceParameter {
    name: "initial-sample",
    options: &[
        ("rtt", InitialSample::RoundTrips),
        ("heartbeat", InitialSample::HeartbeatIntervals),
        ("none", InitialSample::Nothing),
    ],
    default: "rtt",
    about: "pqem: three times the first round-trip time, or HB.interval, or no initial sample",
    source: "Xu 2013, section 4: three heartbeat intervals",
};

pub(super) const GROUP: ChoiceParameter<GroupSpan> = ChoiceParameter {
    name: "group",
    options: &[("interval", GroupSpan::Interval), ("window", GroupSpan::Window)],
    default: "interval",
    about: "pqem: Q is measured over the data that enters between two updates, or over a window of data",
    source: "Xu 2013, equation 1",
};

pub(super) const LOSS_UNIT: ChoiceParameter<LossUnit> = ChoiceParameter {
    name: "loss-unit",
    options: &[("event", LossUnit::Event), ("chunk", LossUnit::Chunk)],
    default: "event",
    about: "pqem: a loss is an event that reduces a window, or each chunk declared lost",
    source: "Xu 2013, Algorithm 1, lines 16 to 20",
};

pub(super) const INACTIVE_BELOW: ChoiceParameter<WithdrawalLimit> = ChoiceParameter {
    name: "inactive-below",
    options: &[
        ("rto", WithdrawalLimit::Rto),
        ("unclamped", WithdrawalLimit::Unclamped),
        ("never", WithdrawalLimit::Unlimited),
    ],
    default: "rto",
    about: "pqem: a path is withdrawn if its loss-free time is below RTO, or below SRTT + 4 RTTVAR, or never",
    source: "Xu 2013, section 4",
};

pub(super) const READMIT: ChoiceParameter<Readmission> = ChoiceParameter {
    name: "readmit",
    options: &[
        ("heartbeat", Readmission::Heartbeat),
        ("interval", Readmission::Interval),
        ("recovery", Readmission::Recovery),
    ],
    default: "heartbeat",
    about: "pqem: a withdrawn path returns with an answered HEARTBEAT, after its interval, or not before it failed",
    source: "Xu 2013, section 6, for paths that timed out",
};

/// Initial sample, "three heartbeat intervals".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialSample {
    /// Three times the path's first round-trip time.
    RoundTrips,
    /// Three times HB.interval.
    HeartbeatIntervals,
    /// No initial sample.
    Nothing,
}

/// Unit in which samples and Q count losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossUnit {
    /// Each chunk that is declared lost.
    Chunk,
    /// Each event that reduces a window: once per window for fast retransmit, and each T3.
    Event,
}

/// Limit below which the confidence interval of a path's loss-free time withdraws the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithdrawalLimit {
    /// Current retransmission time-out.
    Rto,
    /// SRTT + 4 RTTVAR, without the minimum of the time-out and without back-off.
    Unclamped,
    /// No limit: no path is withdrawn.
    Unlimited,
}

/// Event that readmits a withdrawn path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readmission {
    /// An answered HEARTBEAT.
    Heartbeat,
    /// The end of the interval.
    Interval,
    /// The failure and recovery of the path.
    Recovery,
}

/// Choices where the publication is silent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QualityRules {
    /// Figure that represents the confidence interval.
    pub bound: Bound,
    /// Quantile of the normal distribution for its level (Table 1).
    pub quantile: f64,
    /// First sample.
    pub initial: InitialSample,
    /// Group of chunks over which Q is measured.
    pub group: GroupSpan,
    /// Event that ends a sample.
    pub losses: LossUnit,
    /// Time that a path has to work without loss.
    pub withdrawal_limit: WithdrawalLimit,
    /// Minimum number of samples before a path is judged, including the initial one.
    pub samples_to_judge: u64,
    /// Event that ends a withdrawal.
    pub readmission: Readmission,
}

impl QualityRules {
    pub(super) fn from_values(values: &Values) -> Self {
        QualityRules {
            bound: BOUND.get(values),
            quantile: QUANTILE.get(values),
            initial: INITIAL_SAMPLE.get(values),
            group: GROUP.get(values),
            losses: LOSS_UNIT.get(values),
            withdrawal_limit: INACTIVE_BELOW.get(values),
            samples_to_judge: u64::from(values.number("judge-after")),
            readmission: READMIT.get(values),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct PathQuality {
    throughput: Throughput,
    loss_free: LossFreeTime,
    samples: Samples,
    /// Set once the initial sample was taken.
    begun: bool,
    seconds_per_byte: Option<f64>,
    /// End of the current interval; `None` until a chunk enters.
    update_at: Option<Time>,
    withdrawn: bool,
    /// Time at which the withdrawal ends.
    readmit_at: Option<Time>,
}

impl PathQuality {
    fn update(&mut self, rules: &QualityRules) {
        self.update_at = None;
        self.seconds_per_byte = self.throughput.update(rules.group).or(self.seconds_per_byte);
    }

    fn readmit(&mut self) {
        self.withdrawn = false;
        self.readmit_at = None;
    }

    fn interval(&self, rules: &QualityRules) -> Option<Span> {
        self.samples.confidence(rules.bound, rules.quantile)
    }
}

/// Path quality estimation model of all paths.
#[derive(Clone, Debug)]
pub struct QualityEstimator {
    rules: QualityRules,
    paths: [PathQuality; MAX_PATHS],
    /// RTX-LOSSRATE's figure, so that it can be used with this estimator.
    loss_rate: MeasuredLossRate,
}

impl QualityEstimator {
    /// Creates an estimator without samples.
    pub fn new(rules: QualityRules) -> Self {
        QualityEstimator {
            rules,
            paths: [PathQuality::default(); MAX_PATHS],
            loss_rate: MeasuredLossRate::default(),
        }
    }

    fn path(&mut self, id: PathId) -> &mut PathQuality {
        &mut self.paths[id.index()]
    }

    fn entered(&mut self, id: PathId, tsn: u64, bytes: ChunkBytes, view: &View<'_>) {
        let limit = match self.rules.group {
            GroupSpan::Interval => None,
            GroupSpan::Window => Some(view.path(id).cwnd),
        };
        let rules = self.rules;
        let path = self.path(id);
        path.throughput.enter(tsn, bytes, view.now, limit);
        if path.update_at.is_none() {
            path.update_at = path.interval(&rules).map(|span| view.now + span.max(shortest(view.path(id))));
        }
    }

    fn sent(&mut self, sent: &SentTransmission, view: &View<'_>) {
        self.path(sent.path).loss_free.chunk_left(view.now);
        if sent.kind == SendKind::New && !self.path(sent.path).throughput.has_entered(sent.tsn) {
            self.entered(sent.path, sent.tsn, sent.bytes, view);
        }
    }

    /// Records the initial sample: "three heartbeat intervals" (section 4).
    fn measured(&mut self, id: PathId, rtt: Span, view: &View<'_>) {
        let initial = match self.rules.initial {
            InitialSample::RoundTrips => Some(rtt),
            InitialSample::HeartbeatIntervals => Some(view.profile.heartbeat_interval),
            InitialSample::Nothing => None,
        };
        let path = self.path(id);
        if let Some(initial) = initial.filter(|_| !std::mem::replace(&mut path.begun, true)) {
            path.samples.add(initial.times(3));
        }
    }

    fn lost(&mut self, id: PathId, view: &View<'_>) {
        let rules = self.rules;
        let path = self.path(id);
        let sample = path.loss_free.loss_detected();
        path.update(&rules);
        if let Some(sample) = sample {
            path.samples.add(sample);
            self.judge(id, view);
        }
    }

    /// Withdraws a path whose confidence interval is less than RTO, because losses recur before a time-out would reveal them: it is
    /// marked inactive (section 4, after equation 6).
    fn judge(&mut self, id: PathId, view: &View<'_>) {
        let (rules, facts) = (self.rules, view.path(id));
        let limit = match rules.withdrawal_limit {
            WithdrawalLimit::Rto => Some(facts.rto),
            WithdrawalLimit::Unclamped => unclamped_rto(facts),
            WithdrawalLimit::Unlimited => None,
        };
        let path = self.path(id);
        let judged = path.samples.count() >= rules.samples_to_judge;
        let (Some(limit), Some(interval), true) = (limit, path.interval(&rules), judged) else { return };
        path.withdrawn = interval < limit;
        let ends = path.withdrawn && rules.readmission == Readmission::Interval;
        path.readmit_at = ends.then(|| view.now + interval.max(shortest(facts)));
    }

    /// Handles the end of the confidence interval: the second event at which Q is updated (section 4).
    fn elapsed(&mut self, view: &View<'_>) {
        for path in &mut self.paths {
            if path.update_at.is_some_and(|at| at <= view.now) {
                path.update(&self.rules);
            }
            if path.readmit_at.is_some_and(|at| at <= view.now) {
                path.readmit();
            }
        }
    }
}

/// "If the evaluation interval is too short (e.g. shorter than or as short as the RTT), it may not correctly reflect the path
/// condition" (section 4): the minimum is SRTT, and a millisecond.
fn shortest(path: &PathFacts) -> Span {
    path.rtt.smoothed.unwrap_or_default().max(Span::from_millis(1))
}

/// RFC 9260 section 6.3.1 C3 without C6 and C7.
fn unclamped_rto(path: &PathFacts) -> Option<Span> {
    Some(path.rtt.smoothed? + path.rtt.variance?.times(4))
}

impl Slot for QualityEstimator {
    fn events(&self, profile: &Profile) -> EventSet {
        EventSet::of(&[
            EventKind::PathAdded,
            EventKind::PathState,
            EventKind::Bound,
            EventKind::Unbound,
            EventKind::Abandoned,
            EventKind::Sent,
            EventKind::Acked,
            EventKind::RttSample,
            EventKind::Lost,
            EventKind::LossEvent,
            EventKind::Deadline,
        ])
        .union(self.loss_rate.events(profile))
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.loss_rate.on_event(event, view, context);
        let (rules, now) = (self.rules, view.now);
        match *event {
            Event::PathAdded(id) => *self.path(id) = PathQuality::default(),
            Event::PathState { path, to: PathState::Active, .. } => self.path(path).readmit(),
            Event::Bound { path, tsn, bytes } => self.entered(path, tsn, bytes, view),
            Event::Unbound { path, tsn, bytes } | Event::Abandoned { path, tsn, bytes } => {
                self.path(path).throughput.give_up(tsn, bytes, rules.group);
            }
            Event::Sent(sent) => self.sent(sent, view),
            // A chunk that was sent twice may have used another path. It left the group when it was lost.
            Event::Acked(acked) if acked.sent_once => {
                self.path(acked.path).throughput.leave(acked.tsn, acked.bytes, now, rules.group);
            }
            Event::RttSample { path, rtt, heartbeat } => {
                self.measured(path, rtt, view);
                if heartbeat && rules.readmission == Readmission::Heartbeat {
                    self.path(path).readmit();
                }
            }
            Event::Lost { path, tsn, bytes, cause, .. } => {
                if rules.losses == LossUnit::Chunk && cause != LossCause::Rescheduled {
                    self.lost(path, view);
                }
                self.path(path).throughput.give_up(tsn, bytes, rules.group);
            }
            Event::LossEvent { path, cause }
                if rules.losses == LossUnit::Event && cause != LossCause::Rescheduled =>
            {
                self.lost(path, view);
            }
            Event::Deadline => self.elapsed(view),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.paths.iter().flat_map(|path| [path.update_at, path.readmit_at]).flatten().min()
    }
}

impl PathEstimator for QualityEstimator {
    copied!(PathEstimator);

    fn estimates(&self, path: PathId) -> Estimates {
        let quality = &self.paths[path.index()];
        Estimates {
            seconds_per_byte: quality.seconds_per_byte,
            withdrawn: quality.withdrawn,
            ..self.loss_rate.estimates(path)
        }
    }
}

#[cfg(test)]
mod tests;

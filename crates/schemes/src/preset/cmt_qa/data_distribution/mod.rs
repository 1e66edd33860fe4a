//! CMT-QA's data distribution scheduler, DDS (Xu et al. 2013, section 5, Algorithm 2). A period lasts as long as the slowest path
//! takes for a window. In each period, data is assigned to the path that is predicted to deliver it first, and waits in that path's
//! own queue for room in its window.

pub(crate) mod formulas;

use anabranch_core::policy::{
    Context, Decision, Event, EventKind, EventSet, PathFacts, Pick, Reason, Refusal, Refused, Scheduler,
    SendAsk, Slot, View, WaitFor,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};
use anabranch_core::{MAX_PATHS, PathId, PathSet};

use crate::definition::{ChoiceParameter, Equation, Values};
use crate::estimator::advised;

pub(crate) use formulas::{delivery_time, handling_time, rounds};

pub(crate) const RULES: &[Equation] = &[Equation {
    name: "Algorithm 2",
    rule: "until P_d ends: to the path with the least T_i; D_i += cwnd_i + (k - 1) MTU",
    file: file!(),
}];

pub(super) const PIECE: ChoiceParameter<Piece> = ChoiceParameter {
    name: "piece",
    options: &[("round", Piece::Round), ("chunk", Piece::Chunk)],
    default: "round",
    about: "dds: data assigned at a time: a path's whole round, or one chunk",
    source: "Xu 2013, Algorithm 2, line 20; text before equation 11",
};

pub(super) const DISTRIBUTED: ChoiceParameter<Distributed> = ChoiceParameter {
    name: "distributed",
    options: &[("period", Distributed::Period), ("undelivered", Distributed::Undelivered)],
    default: "period",
    about: "dds: D_i is the data assigned to a path in this period, or the data that it has not delivered",
    source: "Xu 2013, equation 12",
};

pub(super) const D_MAX: ChoiceParameter<Allowance> = ChoiceParameter {
    name: "d-max",
    options: &[
        ("running", Allowance::Running),
        ("period", Allowance::Period),
        ("none", Allowance::PeerWindow),
    ],
    default: "running",
    about: "dds: D_max is computed for each chunk, or once for a whole period, or only the peer's window counts",
    source: "Xu 2013, equation 7; Algorithm 2 has none",
};

pub(super) const QUEUE: ChoiceParameter<QueueBound> = ChoiceParameter {
    name: "queue",
    options: &[
        ("window", QueueBound::Window),
        ("clamped", QueueBound::Clamped),
        ("pooled", QueueBound::Pooled),
        ("rounds", QueueBound::Frequency),
    ],
    default: "window",
    about: "dds: a path gets data while its own window has room; or while any window has room, each counted separately or all \
            together; or for the rounds of a period",
    source: "Xu 2013, section 5, text around equation 7 and after Algorithm 2",
};

/// Minimum period. A period of zero, from a Q of zero, could repeat forever at one point in time.
const SHORTEST_PERIOD: Span = Span::from_millis(1);

/// Amount placed in one run of Algorithm 2's inner loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// One chunk (text before equation 11).
    Chunk,
    /// The whole round of the path (Algorithm 2, line 20).
    Round,
}

/// Meaning of D_i, the data assigned to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distributed {
    /// Data of this period, and data of the previous period that still waits in its queue.
    Period,
    /// Data that has not been acknowledged.
    Undelivered,
}

/// Time at which D_max (equation 7) is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// At the start of the period, for all of it.
    Period,
    /// Before each chunk, so that a window that opens within a period is used in the same period.
    Running,
    /// Never: as Algorithm 2 is printed, only the peer's window limits.
    PeerWindow,
}

/// Room that equation 7 counts, which also bounds the data waiting in a path's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueBound {
    /// The path's own window: cwnd_i - outstanding_i is "the data amount that allowed transmitting for path i" (after equation 7),
    /// and the assigned amount depends on "the cwnd value of the current path" and on D_max (after Algorithm 2).
    Window,
    /// The free parts of all windows. Data waiting for one path takes no room from another, but may exceed its window.
    Clamped,
    /// The sum of all windows minus all outstanding and waiting data: data waiting for one path takes room from the others.
    Pooled,
    /// Like `Pooled`, and at most as many rounds as fit into a period: P_d / T_handle_i, rounded up.
    Frequency,
}

/// Choices where the publication is silent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistributionRules {
    /// Amount placed at a time.
    pub piece: Piece,
    /// Data that D_i counts.
    pub distributed: Distributed,
    /// Time at which D_max is evaluated.
    pub allowance: Allowance,
    /// Bound of a path's queue.
    pub queue_bound: QueueBound,
    /// Factor of the shortest T_handle above which a path is left out; 0 leaves none out.
    pub closeness: f64,
    /// Set if data that still waits in the queues at the start of a period is reassigned.
    pub replans: bool,
}

impl DistributionRules {
    pub(super) fn from_values(values: &Values) -> Self {
        DistributionRules {
            piece: PIECE.get(values),
            distributed: DISTRIBUTED.get(values),
            allowance: D_MAX.get(values),
            queue_bound: QUEUE.get(values),
            closeness: values.decimal("closeness"),
            replans: values.switch("replan"),
        }
    }
}

/// Data distribution scheduler.
#[derive(Clone, Debug)]
pub struct DataDistribution {
    rules: DistributionRules,
    /// End of the period; `None` before the first.
    ends: Option<Time>,
    /// D_max at the start of the period.
    allowance: u64,
    /// Bytes assigned to all paths in this period.
    given: u64,
    /// Data D_i assigned to each path.
    distributed: [u64; MAX_PATHS],
    /// Number of rounds of each path that fit into the period.
    frequency: [u64; MAX_PATHS],
    /// Path in whose round the scheduler is, and the bytes left of that round.
    round: Option<(PathId, u64)>,
}

/// Prediction of Algorithm 2 for one path.
#[derive(Clone, Copy, Debug)]
struct Prediction {
    path: PathId,
    rounds: u64,
    arrival_s: f64,
}

impl Prediction {
    /// Line 15: returns the earlier prediction; of equals the first.
    fn earlier(self, other: Self) -> Self {
        if other.arrival_s < self.arrival_s { other } else { self }
    }
}

impl DataDistribution {
    /// Creates a scheduler before its first period.
    pub fn new(rules: DistributionRules) -> Self {
        DataDistribution {
            rules,
            ends: None,
            allowance: 0,
            given: 0,
            distributed: [0; MAX_PATHS],
            frequency: [0; MAX_PATHS],
            round: None,
        }
    }

    /// Returns the paths with close capabilities (text before equation 10).
    fn subset(&self, view: &View<'_>) -> PathSet {
        let advised = advised(view);
        if self.rules.closeness == 0.0 {
            return advised;
        }
        let times = || advised.iter().map(|id| (id, handling_time(view.path(id))));
        let shortest = times().map(|(_, time)| time).fold(f64::INFINITY, f64::min);
        times().filter(|(_, time)| *time <= shortest * self.rules.closeness).map(|(id, _)| id).collect()
    }

    fn is_over(&self, now: Time) -> bool {
        self.ends.is_none_or(|end| end <= now)
    }

    /// Lines 1 to 8 of Algorithm 2, and D_max.
    fn begin(&mut self, subset: PathSet, view: &View<'_>) {
        let period = formulas::period(subset.iter().map(|id| handling_time(view.path(id))));
        for path in view.paths {
            self.distributed[path.id.index()] = path.bound.get();
            self.frequency[path.id.index()] = formulas::frequency(period, handling_time(path));
        }
        self.ends = Some(view.now + Span::from_secs_f64(period).max(SHORTEST_PERIOD));
        self.allowance = self.room(subset, view);
        self.given = 0;
        self.round = None;
    }

    fn room(&self, subset: PathSet, view: &View<'_>) -> u64 {
        match self.rules.allowance {
            Allowance::Period | Allowance::Running => self.most_data(subset, view),
            Allowance::PeerWindow => view.association.peer_window.get(),
        }
    }

    /// Returns the amount that may still be distributed now.
    fn allowed(&self, subset: PathSet, view: &View<'_>) -> u64 {
        match self.rules.allowance {
            Allowance::Period => self.allowance.saturating_sub(self.given),
            Allowance::Running | Allowance::PeerWindow => self.room(subset, view),
        }
    }

    /// Lines 13 and 14: returns k for the path's data plus the next chunk, and its predicted arrival.
    ///
    /// The printed k, for D_i alone, and therefore T_i would be 0 for a path without data. With a window of one packet, line 20
    /// would then add nothing to D_i forever.
    fn predict(&self, path: &PathFacts, ask: &SendAsk, view: &View<'_>) -> Prediction {
        let distributed = match self.rules.distributed {
            Distributed::Period => self.distributed[path.id.index()],
            Distributed::Undelivered => (path.bound + view.outstanding(path.id)).get(),
        };
        let data = distributed.saturating_add(ask.chunk.get());
        let rounds = rounds(path.cwnd.get(), path.largest_chunk.get(), data);
        Prediction { path: path.id, rounds, arrival_s: delivery_time(rounds, handling_time(path)) }
    }

    /// Returns the prediction for a path, or the reason for assigning it nothing more in this period.
    fn outlook(
        &self,
        path: &PathFacts,
        ask: &SendAsk,
        subset: PathSet,
        view: &View<'_>,
    ) -> Result<Prediction, Refusal> {
        if !subset.contains(path.id) {
            return Err(left_out(path));
        }
        let prediction = self.predict(path, ask, view);
        let allowed = match self.rules.queue_bound {
            QueueBound::Window if free_unbound(path, view) == 0 => return Err(Refusal::WindowFull),
            QueueBound::Frequency => prediction.rounds <= self.frequency[path.id.index()],
            QueueBound::Window | QueueBound::Clamped | QueueBound::Pooled => true,
        };
        if allowed && path.within_share { Ok(prediction) } else { Err(Refusal::BufferShare) }
    }

    /// Equation 7 for the paths in use, with the data in the queues already subtracted.
    fn most_data(&self, subset: PathSet, view: &View<'_>) -> u64 {
        let paths = subset.iter().map(|id| view.path(id));
        let peer_window = view.association.peer_window.get();
        match self.rules.queue_bound {
            QueueBound::Window | QueueBound::Clamped => {
                formulas::most_data(paths.map(|path| free_unbound(path, view)), 0, peer_window)
            }
            QueueBound::Pooled | QueueBound::Frequency => {
                let bound = view.paths.iter().map(|path| path.bound.get()).fold(0, u64::saturating_add);
                formulas::most_data(paths.map(|path| free(path, view)), bound, peer_window)
            }
        }
    }

    /// Lines 10 to 19: returns the path of the current round while it has room, or the one with the earliest predicted arrival.
    fn place(&mut self, ask: &SendAsk, subset: PathSet, view: &View<'_>) -> Decision<Pick> {
        let mut outlooks = [Err(Refusal::State); MAX_PATHS];
        for path in view.paths {
            outlooks[path.id.index()] = self.outlook(path, ask, subset, view);
        }
        let refusals = |chosen: Option<PathId>| -> Refused {
            let others = view.paths.iter().map(|path| path.id).filter(|id| Some(*id) != chosen);
            others.map(|id| (id, outlooks[id.index()].err().unwrap_or(Refusal::Preference))).collect()
        };
        let Some(earliest) = outlooks.iter().flatten().copied().reduce(Prediction::earlier) else {
            let refused = refusals(None);
            let window_opens = refused.as_slice().iter().any(|(_, why)| *why == Refusal::WindowFull);
            return if window_opens { windows_reserved(refused) } else { self.wait_for_period(refused) };
        };
        let unfinished = self.round.filter(|&(_, left)| left > 0 && self.rules.piece == Piece::Round);
        if let Some((id, left)) = unfinished.filter(|(id, _)| outlooks[id.index()].is_ok()) {
            let reason = Reason::figure("continues with the path's round", "round_left_bytes", left as f64);
            return Decision::with_refused(Pick::Bind(id), reason, refusals(Some(id)));
        }
        let path = view.path(earliest.path);
        let round = formulas::round_bytes(earliest.rounds, path.cwnd.get(), path.largest_chunk.get());
        self.round = Some((path.id, round));
        let reason = Reason::figure("earliest predicted arrival", "arrival_s", earliest.arrival_s);
        Decision::with_refused(Pick::Bind(path.id), reason, refusals(Some(path.id)))
    }

    fn wait_for_period(&mut self, refused: Refused) -> Decision<Pick> {
        let Some(end) = self.ends else {
            return Decision::with_refused(
                Pick::Wait(WaitFor::Window),
                Reason::rule("no path to use"),
                refused,
            );
        };
        let reason = Reason::rule("the period's data is assigned");
        Decision::with_refused(Pick::Wait(WaitFor::Until(end)), reason, refused)
    }

    fn try_period(&mut self, ask: &SendAsk, subset: PathSet, view: &View<'_>) -> Decision<Pick> {
        if self.allowed(subset, view) > 0 {
            return self.place(ask, subset, view);
        }
        match self.rules.allowance {
            Allowance::Period => self.wait_for_period(all_full(subset, view)),
            Allowance::Running | Allowance::PeerWindow => windows_reserved(all_full(subset, view)),
        }
    }

    fn given(&mut self, path: PathId, bytes: u64) {
        let distributed = &mut self.distributed[path.index()];
        *distributed = distributed.saturating_add(bytes);
        self.given = self.given.saturating_add(bytes);
        if let Some((_, left)) = self.round.as_mut().filter(|(id, _)| *id == path) {
            *left = left.saturating_sub(bytes);
        }
    }

    fn on_returned(&mut self, path: PathId, bytes: u64) {
        let distributed = &mut self.distributed[path.index()];
        *distributed = distributed.saturating_sub(bytes);
        self.given = self.given.saturating_sub(bytes);
    }
}

/// Returns cwnd_i - outstanding_i.
fn free(path: &PathFacts, view: &View<'_>) -> u64 {
    (path.cwnd - view.outstanding(path.id)).get()
}

/// Returns the part of [`free`] for which no chunk waits yet.
fn free_unbound(path: &PathFacts, view: &View<'_>) -> u64 {
    free(path, view).saturating_sub(path.bound.get())
}

/// Returns the reason for which a path is not in the subset.
fn left_out(path: &PathFacts) -> Refusal {
    if path.is_active() && !path.estimates.withdrawn { Refusal::Preference } else { Refusal::State }
}

/// Returns the refusals when nothing may be distributed at all.
fn all_full(subset: PathSet, view: &View<'_>) -> Refused {
    let why = |path: &PathFacts| if subset.contains(path.id) { Refusal::WindowFull } else { left_out(path) };
    view.paths.iter().map(|path| (path.id, why(path))).collect()
}

fn windows_reserved(refused: Refused) -> Decision<Pick> {
    Decision::with_refused(
        Pick::Wait(WaitFor::Window),
        Reason::rule("all room in the windows is assigned"),
        refused,
    )
}

/// Returns `true` if no data is in flight or waiting whose acknowledgement could open a window.
fn is_idle(view: &View<'_>) -> bool {
    view.paths
        .iter()
        .all(|path| path.in_flight.is_zero() && path.lost_unsent.is_zero() && path.bound.is_zero())
}

/// A chunk beyond the peer's window is sent at once or not at all, on the path where it arrives first.
fn probe(view: &View<'_>) -> Decision<Pick> {
    let open = view.paths.iter().filter(|path| view.refusal(path.id).is_none());
    let best = open.reduce(|best, path| if handling_time(path) < handling_time(best) { path } else { best });
    let others = view.paths.iter().filter(|path| best.is_none_or(|best| best.id != path.id));
    let refused =
        others.map(|path| (path.id, view.refusal(path.id).unwrap_or(Refusal::Preference))).collect();
    let Some(path) = best else { return windows_reserved(refused) };
    let reason = Reason::figure("probes the peer's window", "arrival_s", handling_time(path));
    Decision::with_refused(Pick::Path(path.id), reason, refused)
}

impl Slot for DataDistribution {
    fn events(&self, _: &Profile) -> EventSet {
        EventSet::of(&[EventKind::Bound, EventKind::Unbound, EventKind::PathAdded])
    }

    fn on_event(&mut self, event: &Event<'_>, _: &View<'_>, _: &mut Context<'_>) {
        match *event {
            Event::Bound { path, bytes, .. } => self.given(path, bytes.get()),
            Event::Unbound { path, bytes, .. } => self.on_returned(path, bytes.get()),
            // The facts of a period do not cover a new path.
            Event::PathAdded(path) => {
                self.distributed[path.index()] = 0;
                self.ends = None;
            }
            _ => {}
        }
    }
}

impl Scheduler for DataDistribution {
    copied!(Scheduler);

    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        if ask.window_probe {
            return probe(view);
        }
        let subset = self.subset(view);
        if self.is_over(view.now) {
            // In a period that begins with every window full, nothing could be distributed.
            if self.room(subset, view) == 0 {
                return windows_reserved(all_full(subset, view));
            }
            self.begin(subset, view);
        }
        let decision = self.try_period(ask, subset, view);
        if matches!(decision.choice, Pick::Wait(_)) && is_idle(view) && self.room(subset, view) > 0 {
            // All distributed data of the period has arrived, so waiting for its end gains nothing.
            self.begin(subset, view);
            return self.try_period(ask, subset, view);
        }
        decision
    }

    /// Returns `true` if data waits on a path that is no longer used, which is then reassigned. At the start of a period, other
    /// data keeps its path unless the rules state otherwise: the publication removes no data from a path's buffer.
    fn replan(&mut self, view: &View<'_>) -> bool {
        let subset = self.subset(view);
        let stranded = view.paths.iter().any(|path| !path.bound.is_zero() && !subset.contains(path.id));
        (stranded && !subset.is_empty()) || (self.rules.replans && self.is_over(view.now))
    }
}

#[cfg(test)]
mod tests;

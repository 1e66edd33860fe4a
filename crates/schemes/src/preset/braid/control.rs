//! Congestion control: passes measurements to the models, and applies their decisions to the windows.

use anabranch_core::policy::{
    AckedTransmission, CongestionControl, Context, Event, EventKind, EventSet, LossCause, Pacing, PathAck,
    PathFacts, Reason, Slot, View, Window,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId};

use crate::component::cubic::curve::BETA;
use crate::preset::braid::acceleration::Acceleration;
use crate::preset::braid::ambiguous_rtt::AmbiguousRtt;
use crate::preset::braid::coupling::{CONGESTED_LEAST, CONGESTED_ROUNDS, SharedQueue, share_of_growth};
use crate::preset::braid::drain::{Drain, LEAST_PACKETS, SHARE};
use crate::preset::braid::loss::LossClassifier;
use crate::preset::braid::lossy_plateau::LossyPlateau;
use crate::preset::braid::mode::{
    Mode, PersistentQueue, Round, SLOW_START_DIVISOR, SLOW_START_QUEUE, Step, TARGET_PACKETS, after_round,
};
use crate::preset::braid::pace::{GAIN, SLOW_START_GAIN, pace};
use crate::preset::braid::policer::{Fate, HIGH, Outcome, PolicerTest};
use crate::preset::braid::validation::Validation;
use crate::preset::braid::window::PathWindow;

/// Duration of a packet at a bottleneck of 1 Mbit/s, used before a rate was measured.
const UNMEASURED_PACKET: Span = Span::from_millis(12);
/// Free chunks up to which a window counts as in full use, because pacing delays the next packet.
const SLACK_CHUNKS: u64 = 2;
/// Threshold during the first slow start: above any window, and small enough that sums do not overflow.
const NO_THRESHOLD: ChunkBytes = ChunkBytes::new(1 << 40);
/// Parts that can be switched off.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// Keeps the queue short without competing flows.
    pub delay: bool,
    /// Ignores losses without a long queue.
    pub noise: bool,
    /// Couples paths that experience congestion.
    pub coupling: bool,
    /// Paces packets.
    pub pacing: bool,
}

/// Queueing delay, and its upper bound if data did not wait at the peer for its SACK.
#[derive(Clone, Copy, Debug)]
struct QueueRange {
    queue: Span,
    limit: Span,
}

impl QueueRange {
    /// Returns the range of the latest round trip.
    fn of(facts: &PathFacts) -> Self {
        let queue = queue(facts);
        QueueRange { queue, limit: facts.estimates.queueing_limit.unwrap_or(queue) }
    }

    fn min(self, other: Self) -> Self {
        QueueRange { queue: self.queue.min(other.queue), limit: self.limit.min(other.limit) }
    }
}

/// State of the current round trip.
#[derive(Clone, Copy, Debug, Default)]
struct CurrentRound {
    began: Time,
    least_queue: Option<QueueRange>,
    used: bool,
}

/// Congestion control state of one path.
#[derive(Clone, Debug)]
struct PathControl {
    mode: Mode,
    window: PathWindow,
    validation: Validation,
    judge: LossClassifier,
    lossy_plateau: LossyPlateau,
    round: CurrentRound,
    drain: Drain,
    acceleration: Acceleration,
    congested_at: Option<Time>,
    shared: SharedQueue,
    policer: PolicerTest,
    ambiguous_rtt: AmbiguousRtt,
    pacing: Pacing,
    reason: Reason,
}

impl PathControl {
    fn new(facts: &PathFacts, view: &View<'_>) -> Self {
        let first = view.profile.initial_window.for_chunk(facts.largest_chunk, facts.ipv6);
        PathControl {
            mode: Mode::SlowStart,
            window: PathWindow::new(first.get() as f64),
            validation: Validation::default(),
            judge: LossClassifier::default(),
            lossy_plateau: LossyPlateau::default(),
            round: CurrentRound::default(),
            drain: Drain::default(),
            acceleration: Acceleration::default(),
            congested_at: None,
            shared: SharedQueue::default(),
            policer: PolicerTest::new(view.now),
            ambiguous_rtt: AmbiguousRtt::new(view.now),
            pacing: Pacing::OFF,
            reason: Reason::rule("initial window"),
        }
    }

    /// Returns `true` if the path experiences congestion.
    fn is_congested(&self, facts: &PathFacts, now: Time) -> bool {
        let lately = base(facts).times(CONGESTED_ROUNDS).max(CONGESTED_LEAST);
        matches!(self.mode, Mode::Competitive { .. })
            || self.congested_at.is_some_and(|at| now.since(at) < lately)
    }

    /// Returns `true` if the path experiences congestion at the same bottleneck as the other path.
    fn is_coupled_with(&self, other: PathId, facts: &PathFacts, now: Time) -> bool {
        self.is_congested(facts, now) && self.shared.is_with(other, self.judge.share_of_long())
    }

    /// Processes the acknowledgement of a packet sent at this time. Returns the round that it ends, if any.
    fn acked(&mut self, sent_at: Time, facts: &PathFacts, now: Time) -> Option<Round> {
        let queue = QueueRange::of(facts);
        self.judge.delivered(sent_at, round_trip(facts), base(facts), now);
        let (in_flight, chunk) = (facts.in_flight.get() as f64, facts.largest_chunk.get() as f64);
        if self.window.is_exceeded_by(in_flight, chunk, now) {
            // The queue was caused by a larger window.
            self.round = CurrentRound { began: now, ..CurrentRound::default() };
            return None;
        }
        self.round.least_queue = Some(self.round.least_queue.map_or(queue, |least| least.min(queue)));
        if sent_at < self.round.began {
            return None;
        }
        let over = std::mem::replace(&mut self.round, CurrentRound { began: now, ..CurrentRound::default() });
        over.least_queue.map(|least| self.round_with(least, over.used, facts, now))
    }

    fn round_with(&self, least: QueueRange, used: bool, facts: &PathFacts, now: Time) -> Round {
        let (from, to) = SLOW_START_QUEUE;
        Round {
            queue_packets: in_packets(least.queue, facts),
            queue_packets_limit: in_packets(least.limit, facts),
            ends_slow_start: least.queue > base(facts).over(SLOW_START_DIVISOR).clamp(from, to),
            used,
            draining: self.drain.is_under_way(now),
            cwnd: self.window.cwnd(),
            chunk: facts.largest_chunk.get() as f64,
        }
    }

    fn end_round(&mut self, round: &Round, facts: &PathFacts, now: Time) {
        match self.mode {
            Mode::Delay(_) | Mode::Competitive { .. } if round.queue_packets >= LEAST_PACKETS => {
                let competing = matches!(self.mode, Mode::Competitive { .. });
                self.drain.round_with_queue(competing, now, round_trip(facts));
            }
            _ => self.drain.mark_unneeded(now),
        }
        let (mode, step) = after_round(self.mode, round);
        self.mode = mode;
        match mode {
            Mode::Delay(_) => self.acceleration.end_round(round, now),
            Mode::SlowStart | Mode::Competitive { .. } => self.acceleration.stop(),
        }
        let rule = match step {
            Step::Keep => return,
            Step::FillPath => {
                self.window.end_slow_start(filled(facts).min(round.cwnd));
                "a queue builds: slow start ends"
            }
            Step::Shrink(cwnd) => {
                self.window.set(cwnd);
                "the flow's own queue is long enough"
            }
            Step::Compete(cwnd) => {
                self.window.restart(cwnd);
                "other flows fill the queue"
            }
            Step::Relax => "no other flow fills the queue",
            Step::OwnQueue => {
                self.window.set(filled(facts).min(round.cwnd));
                "no other flow refills a drained queue"
            }
        };
        self.reason = Reason::figure(rule, "queue_packets", round.queue_packets);
    }

    /// Grows by bytes acknowledged while the window was in full use.
    fn grow(&mut self, acked: f64, share: f64, facts: &PathFacts, now: Time) {
        self.round.used = true;
        match self.mode {
            Mode::SlowStart => {
                self.window.double(acked);
                self.reason = Reason::figure("slow start", "acked_bytes", acked);
            }
            Mode::Delay(persistent) if persistent.rounds > 0 || self.is_queue_long_enough(facts) => {}
            Mode::Delay(_) | Mode::Competitive { .. } => self.avoid_congestion(acked, share, facts, now),
        }
    }

    /// Grows along CUBIC's curve, or faster while the queue stays empty.
    fn avoid_congestion(&mut self, acked: f64, share: f64, facts: &PathFacts, now: Time) {
        let (cwnd, chunk) = (self.window.cwnd(), facts.largest_chunk.get() as f64);
        self.window.follow_curve(now, round_trip(facts), acked, share, chunk);
        self.reason = Reason::figure("toward the curve (CUBIC)", "share_of_growth", share);
        let Some(growth) = self.acceleration.growth(cwnd, share * chunk) else { return };
        let accelerated = cwnd + growth * acked / cwnd;
        if accelerated > self.window.cwnd() {
            self.window.set(accelerated);
            self.reason = Reason::figure("the queue stays empty", "bytes_per_round", growth);
        }
    }

    fn is_queue_long_enough(&self, facts: &PathFacts) -> bool {
        in_packets(queue(facts), facts) > TARGET_PACKETS
    }

    /// Reduces a window that the path has not used.
    fn validate(&mut self, facts: &PathFacts, view: &View<'_>) {
        let initial = view.profile.initial_window.for_chunk(facts.largest_chunk, facts.ipv6).get() as f64;
        let reduced = self.validation.reduced(self.window.cwnd(), initial, round_trip(facts), view.now);
        if let Some(cwnd) = reduced {
            self.window.set(cwnd);
            self.reason = Reason::rule("more than the path has carried");
        }
    }

    /// Reduces the window after congestion on this path or on one coupled with it.
    fn cut(&mut self, facts: &PathFacts, parts: Parts, view: &View<'_>, reason: Reason) {
        let floor = facts.largest_chunk.times(view.profile.fast_retransmit_floor).get() as f64;
        let before = self.window.cwnd();
        let in_use = self.validation.in_use(before, facts.in_flight);
        match &mut self.mode {
            Mode::SlowStart => {
                self.window.cut_slow_start(view.now, filled(facts), in_use, floor);
                self.mode = parts.after_slow_start();
            }
            Mode::Delay(persistent) => {
                self.window.cut(view.now, in_use, floor);
                persistent.held_bytes *= (BETA * in_use / before).min(1.0);
            }
            Mode::Competitive { .. } => self.window.cut(view.now, in_use, floor),
        }
        self.reason = reason;
    }

    /// Tests whether losses grow with the rate. If they do, the rate of the path bounds its window.
    fn test_for_policer(&mut self, fate: &Fate, facts: &PathFacts, parts: Parts, view: &View<'_>) {
        // Packets sent with more in flight than a reduced window are lost or delivered as before the reduction. At a full queue,
        // losses of an overshoot would look like those of a policer.
        if !parts.noise || !self.window.is_new(fate.sent_at) {
            return;
        }
        if !facts.limiter.is_congestion_control() {
            self.policer.restart(view.now);
            return;
        }
        let Some(rate) = self.policer.take(fate, base(facts), view.now) else { return };
        let held =
            HIGH * rate * base(facts).as_secs_f64() + TARGET_PACKETS * facts.largest_chunk.get() as f64;
        if self.mode == Mode::SlowStart {
            self.mode = parts.after_slow_start();
        }
        self.window.end_slow_start(held.min(self.window.cwnd()));
        self.reason = Reason::figure("losses grow with the rate", "bytes_per_second", rate);
    }

    /// Ends slow start if more data in flight are lost.
    fn test_for_lossy_plateau(&mut self, facts: &PathFacts, parts: Parts, now: Time) {
        if self.mode != Mode::SlowStart || !parts.noise {
            return;
        }
        let Some(share) = self.lossy_plateau.lost_at_plateau(round_trip(facts), now) else { return };
        self.mode = parts.after_slow_start();
        self.window.end_slow_start(filled(facts).min(self.window.cwnd()));
        self.reason = Reason::figure("losses in place of deliveries: slow start ends", "lost_share", share);
    }

    fn pace(&mut self, facts: &PathFacts, parts: Parts, now: Time) {
        let Some(base) = facts.estimates.propagation.filter(|_| parts.pacing || parts.delay) else { return };
        let cap = self.drain.is_under_way(now).then(|| SHARE * bdp(facts));
        let cwnd = self.window.cwnd();
        let pacing = match self.mode {
            Mode::SlowStart => pace(SLOW_START_GAIN, cwnd, base, cap),
            Mode::Delay(_) => pace(GAIN, cwnd, mean_base(facts), cap),
            Mode::Competitive { .. } => pace(GAIN, cwnd, round_trip(facts), cap),
        };
        let most = self.policer.ceiling(now);
        let pacing =
            Pacing { rate: pacing.rate.map(|rate| most.map_or(rate, |most| rate.min(most))), ..pacing };
        self.pacing = if parts.pacing { pacing } else { Pacing { rate: None, ..pacing } };
    }
}

impl Parts {
    /// Returns the mode after slow start: delay mode, or competitive mode if the delay rule is disabled.
    fn after_slow_start(self) -> Mode {
        if self.delay {
            Mode::Delay(PersistentQueue::default())
        } else {
            Mode::Competitive { empty_rounds: 0 }
        }
    }
}

/// Returns the path's round-trip time without queues.
fn base(facts: &PathFacts) -> Span {
    facts.estimates.propagation.unwrap_or_default()
}

/// Returns the path's mean round-trip time without queues, over the paths on which its SACKs return.
fn mean_base(facts: &PathFacts) -> Span {
    let own = facts.rtt.recent_min.zip(facts.rtt.smoothed).map(|(own, mean)| own.min(mean));
    own.map_or(base(facts), |own| own.max(base(facts)))
}

/// Returns the queueing delay in the latest round trip.
fn queue(facts: &PathFacts) -> Span {
    facts.estimates.queueing.unwrap_or_default()
}

/// Returns the latest round-trip time.
fn round_trip(facts: &PathFacts) -> Span {
    base(facts) + queue(facts)
}

/// Returns the bandwidth-delay product in bytes: the data in flight on a full path with an empty queue.
fn bdp(facts: &PathFacts) -> f64 {
    let rate = facts.estimates.bottleneck_rate.map_or(0.0, |rate| rate.as_bps() as f64 / 8.0);
    rate * mean_base(facts).as_secs_f64()
}

/// Returns a window that fills the path, and its queue with the target of an uncontested flow.
fn filled(facts: &PathFacts) -> f64 {
    let target = TARGET_PACKETS * facts.largest_chunk.get() as f64;
    (bdp(facts) + target).max(2.0 * target)
}

/// Converts a queueing delay to packets of this path.
fn in_packets(queue: Span, facts: &PathFacts) -> f64 {
    let chunk_bits = facts.largest_chunk.get() as f64 * 8.0;
    let rate = facts.estimates.bottleneck_rate.map(|rate| rate.as_bps() as f64).filter(|rate| *rate > 0.0);
    let packet = rate.map_or(UNMEASURED_PACKET.as_secs_f64(), |rate| chunk_bits / rate);
    queue.as_secs_f64() / packet
}

/// Congestion control of all paths.
#[derive(Clone, Debug)]
pub struct BraidControl {
    parts: Parts,
    paths: [Option<Box<PathControl>>; MAX_PATHS],
    /// Path and send time of the transmissions that the current SACK acknowledges beyond doubt.
    acked: Vec<(PathId, Time)>,
}

impl BraidControl {
    /// Creates the control with these parts.
    pub fn new(parts: Parts) -> Self {
        BraidControl { parts, paths: Default::default(), acked: Vec::new() }
    }

    fn begin(&mut self, path: PathId, view: &View<'_>) {
        self.paths[path.index()] = Some(Box::new(PathControl::new(view.path(path), view)));
    }

    fn path(&mut self, path: PathId) -> Option<&mut PathControl> {
        self.paths[path.index()].as_deref_mut()
    }

    fn acked(&mut self, acked: &AckedTransmission, view: &View<'_>) {
        let (facts, parts) = (view.path(acked.path), self.parts);
        let fate = Fate {
            sent_at: acked.stamps.sent_at,
            bytes: acked.bytes.get() as f64,
            outcome: Outcome::Delivered,
        };
        let Some(path) = self.path(acked.path) else { return };
        path.lossy_plateau.delivered(fate.sent_at);
        path.test_for_policer(&fate, facts, parts, view);
        path.ambiguous_rtt.acked(acked.certain, view.now);
        if acked.certain {
            self.acked.push((acked.path, acked.stamps.sent_at));
        }
    }

    /// Processes the round-trip times of a SACK. A SACK that returns on another path, or after a lost one, acknowledges packets
    /// that arrived well before it was sent. Each of them is assigned the queue of the latest.
    fn take_round_trips(&mut self, view: &View<'_>) {
        let acked = std::mem::take(&mut self.acked);
        for &(path, sent_at) in &acked {
            let (facts, delay) = (view.path(path), self.parts.delay);
            let Some(path) = self.path(path) else { continue };
            if let Some(round) = path.acked(sent_at, facts, view.now).filter(|_| delay) {
                path.end_round(&round, facts, view.now);
            }
        }
        self.acked = acked;
        self.acked.clear();
    }

    fn sack_done(&mut self, acks: &[PathAck], view: &View<'_>) {
        let parts = self.parts;
        for (facts, ack) in view.paths.iter().zip(acks) {
            let acked = ack.newly_acked().get() as f64;
            let share = self.share_of_growth(facts.id, view);
            let Some(path) = self.path(facts.id) else { continue };
            let delivered = ack.sample.map(|sample| sample.delivered);
            path.validation.take(delivered, round_trip(facts), view.now);
            path.lossy_plateau.grew_to(delivered.unwrap_or_default(), view.now);
            let most = (ack.in_flight_before + facts.largest_chunk.times(SLACK_CHUNKS)).get() as f64;
            if acked > 0.0 && most > path.window.cwnd() && path.policer.ceiling(view.now).is_none() {
                path.grow(acked, share, facts, view.now);
            }
            path.validate(facts, view);
            path.test_for_lossy_plateau(facts, parts, view.now);
        }
    }

    /// Returns the factor applied to the growth of an uncoupled path.
    fn share_of_growth(&self, path: PathId, view: &View<'_>) -> f64 {
        let facts = view.path(path);
        let control = |path: PathId| self.paths[path.index()].as_deref();
        let is_congested = control(path).is_some_and(|own| own.is_congested(facts, view.now));
        if !self.parts.coupling || !is_congested {
            return 1.0;
        }
        let coupled = view.active().filter(|other| {
            let with = control(other.id).filter(|_| other.id != path);
            with.is_some_and(|control| control.is_coupled_with(path, other, view.now))
        });
        share_of_growth(1 + coupled.count())
    }

    fn lost(&mut self, path: PathId, bytes: ChunkBytes, sent_at: Time, view: &View<'_>) {
        let (parts, facts) = (self.parts, view.path(path));
        let Some(own) = self.path(path) else { return };
        own.lossy_plateau.lost(sent_at);
        let in_burst = own.judge.is_of_the_latest_burst(sent_at);
        let outcome = if in_burst { Outcome::LostInBurst } else { Outcome::Lost };
        own.test_for_policer(&Fate { sent_at, bytes: bytes.get() as f64, outcome }, facts, parts, view);
        if own.ambiguous_rtt.is_too_long(facts, view.now) {
            own.ambiguous_rtt = AmbiguousRtt::new(view.now);
            own.cut(facts, parts, view, Reason::rule("a loss, and no recent round-trip sample"));
            return;
        }
        let is_noise = !own.judge.is_congestion(sent_at, base(facts)) && parts.noise;
        if is_noise || !own.window.is_new(sent_at) {
            return;
        }
        let in_slow_start = own.mode == Mode::SlowStart;
        own.cut(facts, parts, view, Reason::rule("a loss at a long queue"));
        // A path in slow start fills its queue regardless of other flows, so its losses are no sign of them.
        if in_slow_start {
            return;
        }
        own.congested_at = Some(view.now);
        own.acceleration.lost(queue(facts), base(facts), view.now);
        if parts.coupling {
            self.cut_others(path, sent_at, view);
        }
    }

    /// Reduces the windows of paths at the same bottleneck together with that of the path with the loss.
    fn cut_others(&mut self, lost_on: PathId, sent_at: Time, view: &View<'_>) {
        let parts = self.parts;
        for facts in view.active().filter(|facts| facts.id != lost_on) {
            let Some(path) = self.path(facts.id).filter(|path| path.mode != Mode::SlowStart) else {
                continue;
            };
            path.shared.other_lost(lost_on, path.judge.was_long(sent_at, base(facts)));
            if path.is_coupled_with(lost_on, facts, view.now) && path.window.is_new(sent_at) {
                path.cut(facts, parts, view, Reason::rule("a loss on a coupled path"));
                path.acceleration.lost(queue(facts), base(facts), view.now);
            }
        }
    }

    fn timed_out(&mut self, path: PathId, view: &View<'_>) {
        let facts = view.path(path);
        let Some(path) = self.path(path) else { return };
        // Losses during an outage do not indicate the rate, and later deliveries do not indicate the rate before.
        path.policer.restart(view.now);
        path.lossy_plateau.restart(view.now);
        path.ambiguous_rtt = AmbiguousRtt::new(view.now);
        if !facts.in_flight.is_zero() {
            return;
        }
        path.window.silence(facts.largest_chunk.get() as f64);
        path.reason = Reason::rule("no acknowledgement before T3 expired");
    }

    fn pace(&mut self, view: &View<'_>) {
        let parts = self.parts;
        for facts in view.paths {
            if let Some(path) = self.path(facts.id) {
                path.pace(facts, parts, view.now);
            }
        }
    }
}

impl Slot for BraidControl {
    fn events(&self, _: &Profile) -> EventSet {
        EventSet::of(&[
            EventKind::PathAdded,
            EventKind::PathRebound,
            EventKind::Established,
            EventKind::Acked,
            EventKind::SackDone,
            EventKind::Lost,
            EventKind::LossEvent,
        ])
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, _: &mut Context<'_>) {
        match *event {
            Event::PathAdded(path) | Event::PathRebound(path) => self.begin(path, view),
            Event::Established => view.paths.iter().for_each(|facts| self.begin(facts.id, view)),
            Event::Acked(acked) => self.acked(acked, view),
            Event::SackDone(done) => {
                self.take_round_trips(view);
                self.sack_done(done.paths, view);
                self.pace(view);
            }
            Event::Lost { path, bytes, sent_at, cause, .. } if cause != LossCause::Rescheduled => {
                self.lost(path, bytes, sent_at, view);
            }
            Event::LossEvent { path, cause: LossCause::Timeout } => {
                self.timed_out(path, view);
                self.pace(view);
            }
            _ => {}
        }
    }
}

impl CongestionControl for BraidControl {
    copied!(CongestionControl);

    fn window(&self, path: PathId) -> Window {
        let Some(path) = self.paths[path.index()].as_deref() else { return Window::default() };
        Window {
            cwnd: ChunkBytes::new(path.window.cwnd() as u64),
            ssthresh: path.window.ssthresh().map_or(NO_THRESHOLD, |bytes| ChunkBytes::new(bytes as u64)),
            partial_bytes_acked: ChunkBytes::ZERO,
        }
    }

    fn pacing(&self, path: PathId) -> Pacing {
        self.paths[path.index()].as_deref().map_or(Pacing::OFF, |path| path.pacing)
    }

    fn last_reason(&self, path: PathId) -> Reason {
        self.paths[path.index()].as_deref().map_or(Reason::rule("no path"), |path| path.reason)
    }

    fn set_window(&mut self, path: PathId, window: Window, reason: Reason, view: &View<'_>) {
        let least = view.path(path).largest_chunk;
        let Some(path) = self.path(path) else { return };
        path.window.set(window.cwnd.max(least).get() as f64);
        path.reason = reason;
    }
}

#[cfg(test)]
mod tests;

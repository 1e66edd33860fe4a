//! The scheme's policies and what they see: the only place that shows a [`View`] to a policy or tells it of an [`Event`].

use std::sync::Arc;

use crate::entropy::Entropy;
use crate::path::take_rtt_sample;
use crate::path_id::{PathId, PathSet, PathState};
use crate::policy::{
    AckForm, AckTiming, Arrival, AssociationFacts, Context, Decision, Event, HeadOfLineAction,
    HeadOfLineBlocking, Holes, Life, LossTasks, LostChunk, Missing, MissingVerdict, Pacing, PathFacts, Pick,
    Policies, Probing, ProofOfLife, Reason, RetransmitChoice, SackView, SendAsk, SendKind, View, Window,
};
use crate::profile::{BurstArming, Profile};
use crate::send::{PathBytes, Sender};
use crate::time::{Rate, Span, Time, earliest};
use crate::trace::TraceLog;

const A_CHUNK_AT_LEAST: Reason = Reason::rule("one largest chunk at least");

/// What congestion control has changed of a path's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WindowChange {
    pub(crate) window: Window,
    pub(crate) reason: Reason,
}

#[derive(Debug)]
pub(crate) struct PolicyState {
    /// The rules around the scheme. They do not change.
    pub(crate) profile: Arc<Profile>,
    policies: Policies,
    entropy: Entropy,
    /// No more than [`MAX_PATHS`](crate::path_id::MAX_PATHS).
    path_facts: Vec<PathFacts>,
    association_facts: AssociationFacts,
    /// Decisions that the driver has not taken yet.
    pub(crate) trace: TraceLog,
}

/// What policies see.
impl PolicyState {
    pub(crate) fn new(profile: Arc<Profile>, policies: Policies, entropy: Entropy) -> Self {
        PolicyState {
            profile,
            policies,
            entropy,
            path_facts: Vec::new(),
            association_facts: AssociationFacts::default(),
            trace: TraceLog::default(),
        }
    }

    /// The peer has restarted: its scheme begins anew.
    #[inline]
    pub(crate) fn restart(&mut self, policies: Policies) {
        self.policies = policies;
    }

    #[inline]
    pub(crate) fn facts(&self) -> &[PathFacts] {
        &self.path_facts
    }

    #[inline]
    pub(crate) fn facts_mut(&mut self) -> &mut [PathFacts] {
        &mut self.path_facts
    }

    #[inline]
    pub(crate) fn path(&self, id: PathId) -> &PathFacts {
        &self.path_facts[id.index()]
    }

    #[inline]
    pub(crate) fn path_mut(&mut self, id: PathId) -> &mut PathFacts {
        &mut self.path_facts[id.index()]
    }

    /// Puts the facts of a path in place; its id may have been another path's.
    pub(crate) fn set_path(&mut self, facts: PathFacts) {
        match self.path_facts.get_mut(facts.id.index()) {
            Some(place) => *place = facts,
            None => {
                // Most associations have one or two.
                self.path_facts.reserve_exact(1);
                self.path_facts.push(facts);
            }
        }
    }

    pub(crate) fn set_primary(&mut self, id: PathId) {
        for facts in &mut self.path_facts {
            facts.primary = facts.id == id;
        }
    }

    /// Takes a round-trip sample into a path's estimate, which sets its RTO.
    pub(crate) fn take_rtt_sample(&mut self, id: PathId, rtt: Span) {
        let facts = &mut self.path_facts[id.index()];
        facts.rto = take_rtt_sample(&mut facts.rtt, rtt, &self.profile);
    }

    /// Doubles a path's RTO (RFC 9260 section 6.3.3 E2).
    pub(crate) fn back_off(&mut self, id: PathId) {
        let facts = &mut self.path_facts[id.index()];
        facts.rto = facts.rto.times(2).min(self.profile.rto_max);
    }

    /// The RTO of a path without samples.
    #[inline]
    pub(crate) fn reset_rto(&mut self, id: PathId) {
        self.path_facts[id.index()].rto = self.profile.rto_initial;
    }

    /// Says how many packets may still leave on a path in this opportunity after `used`; `None` is no limit.
    pub(crate) fn limit_burst(&mut self, id: PathId, used: Option<u32>) {
        let facts = &mut self.path_facts[id.index()];
        // A paced path has no bursts for Max.Burst to limit.
        let Some(used) = used.filter(|_| facts.pacing.rate.is_none()) else {
            (facts.burst_left, facts.resend_burst_left) = (u32::MAX, u32::MAX);
            return;
        };
        // ns-2 tests after it has sent a retransmission, so a fifth may leave.
        let late = matches!(self.profile.burst_arming, BurstArming::AfterRecoveredLoss { .. });
        //= docs/rfc9260.txt#section-6.1
        //# D)  When the time comes for the sender to transmit new DATA chunks, the protocol parameter 'Max.Burst' SHOULD
        //# be used to limit the number of packets sent.
        //= docs/rfc9260.txt#section-6.1
        //# When calculating the number of packets to transmit, and particularly when using the formula above, cwnd SHOULD
        //# NOT be changed permanently.
        facts.burst_left = self.profile.max_burst.saturating_sub(used);
        facts.resend_burst_left = (self.profile.max_burst + u32::from(late)).saturating_sub(used);
    }

    #[inline]
    pub(crate) fn association_facts(&self) -> &AssociationFacts {
        &self.association_facts
    }

    #[inline]
    pub(crate) fn note_new_data_path(&mut self, path: PathId) {
        self.association_facts.last_new_data_path = Some(path);
    }

    #[inline]
    pub(crate) fn set_foreign_sack_flags(&mut self, foreign: bool) {
        self.association_facts.foreign_sack_flags = foreign;
    }

    /// Takes over what has changed in the sender's accounts.
    #[inline]
    pub(crate) fn publish(&mut self, sender: &mut Sender) {
        for path in sender.take_changed().iter() {
            if let Some(facts) = self.path_facts.get_mut(path.index()) {
                let PathBytes { in_flight, lost_unsent, bound, held, sent, lost, delivered } =
                    *sender.bytes(path);
                facts.in_flight = in_flight;
                facts.lost_unsent = lost_unsent;
                facts.bound = bound;
                facts.held = held;
                facts.sent = sent;
                facts.lost = lost;
                facts.delivered = delivered;
            }
        }
        let facts = &mut self.association_facts;
        facts.peer_window = sender.window().available();
        facts.peer_window_advertised = sender.window().advertised();
        facts.peer_window_initial = sender.window().initial();
        facts.send_buffer_limit = sender.buffer_limit();
    }

    /// Brings those facts up to date that take a look at the queue and the outstanding chunks.
    pub(crate) fn refresh(&mut self, sender: &Sender) {
        let facts = &mut self.association_facts;
        facts.queued_bytes = sender.queue().bytes();
        facts.send_buffer_free = sender.buffer_free();
        facts.cumulative_tsn = sender.outstanding().cumulative();
        facts.head_of_line = sender.head_of_line();
    }

    /// Everything a policy may see, now.
    #[inline]
    pub(crate) fn view(&self, now: Time) -> View<'_> {
        View { now, profile: &self.profile, paths: &self.path_facts, association: &self.association_facts }
    }

    /// The same beside the policies, which may change, and their randomness.
    fn split(&mut self, now: Time) -> (&mut Policies, View<'_>, Context<'_>) {
        let view = View {
            now,
            profile: &self.profile,
            paths: &self.path_facts,
            association: &self.association_facts,
        };
        (&mut self.policies, view, Context { entropy: &mut self.entropy })
    }
}

/// What policies are told.
impl PolicyState {
    /// Tells every slot of an event, estimators first and congestion control second, so that the others see their figures.
    pub(crate) fn dispatch_event(&mut self, event: &Event<'_>, now: Time) {
        let (policies, view, mut context) = self.split(now);
        policies.estimator.on_event(event, &view, &mut context);
        policies.congestion.on_event(event, &view, &mut context);
        policies.scheduler.on_event(event, &view, &mut context);
        policies.loss.on_event(event, &view, &mut context);
        policies.retransmit.on_event(event, &view, &mut context);
        policies.head_of_line.on_event(event, &view, &mut context);
        policies.ack.on_event(event, &view, &mut context);
        policies.buffer.on_event(event, &view, &mut context);
        policies.failover.on_event(event, &view, &mut context);
    }

    /// Tells the scheduler alone.
    pub(crate) fn tell_scheduler(&mut self, event: &Event<'_>, now: Time) {
        let (policies, view, mut context) = self.split(now);
        policies.scheduler.on_event(event, &view, &mut context);
    }

    /// The nearest deadline of any slot.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let p = &self.policies;
        earliest([
            p.estimator.deadline(),
            p.congestion.deadline(),
            p.scheduler.deadline(),
            p.loss.deadline(),
            p.retransmit.deadline(),
            p.head_of_line.deadline(),
            p.ack.deadline(),
            p.buffer.deadline(),
            p.failover.deadline(),
        ])
    }

    /// Takes over a path's figures; whether the estimator has withdrawn it with this event.
    pub(crate) fn adopt_estimates(&mut self, id: PathId) -> bool {
        let facts = &mut self.path_facts[id.index()];
        let before = facts.estimates.withdrawn;
        facts.estimates = self.policies.estimator.estimates(id);
        let withdrawn = facts.estimates.withdrawn && !before;
        withdrawn && facts.is_active()
    }

    /// Takes over a path's window. RFC 9260 sections 7.2.1 and 7.2.3 let no cwnd fall below one PMDCS, and the size of a path's
    /// packets changes without congestion control having a part in it: the bound is kept here, for every policy.
    pub(crate) fn adopt_window(&mut self, id: PathId, now: Time) -> Option<WindowChange> {
        let window = self.window_of_a_chunk(id, now);
        let facts = self.path_mut(id);
        facts.partial_bytes_acked = window.partial_bytes_acked;
        if facts.cwnd == window.cwnd && facts.ssthresh == window.ssthresh {
            return None;
        }
        facts.cwnd = window.cwnd;
        facts.ssthresh = window.ssthresh;
        Some(WindowChange { window, reason: self.policies.congestion.last_reason(id) })
    }

    /// Takes over how a path is paced. What holds a path longer than the longest time-out would hold it for ever, and so would a
    /// cap below one largest chunk.
    pub(crate) fn adopt_pacing(&mut self, id: PathId) -> Option<(Pacing, Reason)> {
        let wanted = self.policies.congestion.pacing(id);
        let rate = wanted.rate.map(|rate| rate.max(self.slowest_rate(id)));
        let facts = self.path_mut(id);
        let pacing =
            Pacing { rate, in_flight_cap: wanted.in_flight_cap.map(|cap| cap.max(facts.largest_chunk)) };
        let changed = facts.pacing != pacing;
        facts.pacing = pacing;
        changed.then(|| (pacing, self.policies.congestion.last_reason(id)))
    }

    /// The rate of one largest chunk in the longest retransmission time-out.
    fn slowest_rate(&self, id: PathId) -> Rate {
        let bits = self.path(id).largest_chunk.get().saturating_mul(8_000);
        let milliseconds = (self.profile.rto_max.as_nanos() / 1_000_000).max(1);
        Rate::from_bps((bits / milliseconds).max(1))
    }

    /// A path's window, which is raised to one largest chunk first if it is smaller.
    fn window_of_a_chunk(&mut self, id: PathId, now: Time) -> Window {
        let least = self.path(id).largest_chunk;
        let window = self.policies.congestion.window(id);
        if window.cwnd >= least {
            return window;
        }
        let raised = Window { cwnd: least, ..window };
        let (policies, view, _) = self.split(now);
        policies.congestion.set_window(id, raised, A_CHUNK_AT_LEAST, &view);
        let window = policies.congestion.window(id);
        Window { cwnd: window.cwnd.max(least), ..window }
    }
}

/// Whether windows may have changed with this event.
pub(crate) fn concerns_windows(event: &Event<'_>) -> bool {
    match event {
        Event::SendOpportunity(_) | Event::Blocked { .. } => false,
        // Only a copy of the head of line is a reason to change a window (penalisation).
        Event::Sent(sent) => sent.kind == SendKind::HeadOfLine,
        _ => true,
    }
}

/// What policies are asked.
impl PolicyState {
    /// Where the next chunk of new data goes, once buffer sharing has said which paths may take it.
    pub(crate) fn pick(&mut self, ask: &SendAsk, now: Time) -> Decision<Pick> {
        for index in 0..self.path_facts.len() {
            let admits = self.policies.buffer.admits(PathId::new(index), ask.chunk, &self.view(now));
            self.path_facts[index].within_share = admits;
        }
        let (policies, view, mut context) = self.split(now);
        policies.scheduler.pick(ask, &view, &mut context)
    }

    /// Whether bound chunks go back to be placed anew.
    pub(crate) fn replan(&mut self, now: Time) -> bool {
        let (policies, view, _) = self.split(now);
        policies.scheduler.replan(&view)
    }

    /// The path of a retransmission.
    pub(crate) fn route(&mut self, chunk: &LostChunk, now: Time) -> Decision<RetransmitChoice> {
        let (policies, view, mut context) = self.split(now);
        policies.retransmit.route(chunk, &view, &mut context)
    }

    /// What to do about the head of line.
    pub(crate) fn handle_head_of_line(
        &mut self,
        blocking: &HeadOfLineBlocking,
        now: Time,
    ) -> Option<Decision<HeadOfLineAction>> {
        let (policies, view, mut context) = self.split(now);
        policies.head_of_line.handle(blocking, &view, &mut context)
    }

    pub(crate) fn holes(&mut self, sack: &SackView<'_>, now: Time) -> Holes {
        let (policies, view, _) = self.split(now);
        policies.loss.holes(sack, &view)
    }

    pub(crate) fn missing(&mut self, chunk: &Missing, sack: &SackView<'_>, now: Time) -> MissingVerdict {
        let (policies, view, _) = self.split(now);
        policies.loss.missing(chunk, sack, &view)
    }

    pub(crate) fn timed_out(&mut self, chunk: &Missing, now: Time) -> bool {
        let (policies, view, _) = self.split(now);
        policies.loss.timed_out(chunk, &view)
    }

    pub(crate) fn loss_tasks(&mut self, now: Time) -> LossTasks {
        let (policies, view, _) = self.split(now);
        policies.loss.due(&view)
    }

    pub(crate) fn probes(&mut self, now: Time) -> PathSet {
        let (policies, view, _) = self.split(now);
        policies.estimator.probes(&view)
    }

    pub(crate) fn overdue(&mut self, chunk: &Missing, now: Time) -> bool {
        let (policies, view, _) = self.split(now);
        policies.loss.overdue(chunk, &view)
    }

    #[inline]
    pub(crate) fn ack_form(&self) -> AckForm {
        self.policies.ack.form()
    }

    pub(crate) fn ack_timing(&mut self, arrival: &Arrival, now: Time) -> AckTiming {
        let (policies, view, _) = self.split(now);
        policies.ack.timing(arrival, &view).choice
    }

    pub(crate) fn sack_flags(&self, packets: u32, by_timer: bool) -> u8 {
        match self.association_facts.foreign_sack_flags {
            true => 0,
            false => self.policies.ack.flags(packets, by_timer, &self.profile),
        }
    }

    pub(crate) fn state_after_error(
        &mut self,
        path: PathId,
        by_heartbeat: bool,
        now: Time,
    ) -> Decision<PathState> {
        let (policies, view, _) = self.split(now);
        policies.failover.on_error(path, by_heartbeat, &view)
    }

    pub(crate) fn state_after_proof(&mut self, path: PathId, proof: ProofOfLife, now: Time) -> Life {
        let (policies, view, _) = self.split(now);
        policies.failover.on_proof(path, proof, &view)
    }

    #[inline]
    pub(crate) fn probing(&self, path: PathId, now: Time) -> Probing {
        self.policies.failover.probing(path, &self.view(now))
    }

    #[inline]
    pub(crate) fn silence_limit(&self, path: PathId, now: Time) -> Option<Span> {
        self.policies.failover.silence_limit(path, &self.view(now))
    }

    pub(crate) fn promote(&mut self, now: Time) -> Option<Decision<PathId>> {
        let (policies, view, mut context) = self.split(now);
        policies.failover.promote(&view, &mut context)
    }
}

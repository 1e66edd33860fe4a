//! Policies of the scheme. All calls to them and events for them pass through here.

use crate::entropy::Entropy;
use crate::path_id::{PathId, PathSet, PathState};
use crate::paths::Paths;
use crate::policy::{
    AckForm, AckTiming, Arrival, Context, Decision, Estimates, Event, HeadOfLineAction, HeadOfLineBlocking,
    Holes, Life, LossTasks, LostChunk, Missing, MissingVerdict, Pacing, Pick, Policies, Probing, ProofOfLife,
    Reason, RetransmitChoice, SackView, SendAsk, SendKind, View, Window,
};
use crate::profile::Profile;
use crate::send::Sender;
use crate::time::{Span, Time, earliest};

const A_CHUNK_AT_LEAST: Reason = Reason::rule("one largest chunk at least");

/// Returns the view of the policies: facts of the paths, and facts of the association from the sender.
#[inline]
pub(crate) fn view<'a>(now: Time, paths: &'a Paths, sender: &'a Sender) -> View<'a> {
    View { now, profile: paths.profile(), paths: paths.all_facts(), association: sender.facts() }
}

/// Policies of the scheme, and their source of randomness.
#[derive(Debug)]
pub(crate) struct PolicyState {
    slots: Policies,
    entropy: Entropy,
}

/// Events, and figures of policies.
impl PolicyState {
    pub(crate) fn new(slots: Policies, entropy: Entropy) -> Self {
        PolicyState { slots, entropy }
    }

    /// Replaces the policies, because the peer has restarted.
    #[inline]
    pub(crate) fn restart(&mut self, slots: Policies) {
        self.slots = slots;
    }

    /// Delivers an event to every slot, to estimators first and congestion control second, so that the others see their figures.
    pub(crate) fn deliver(&mut self, event: &Event<'_>, view: &View<'_>) {
        let slots = &mut self.slots;
        let mut context = Context { entropy: &mut self.entropy };
        slots.estimator.on_event(event, view, &mut context);
        slots.congestion.on_event(event, view, &mut context);
        slots.scheduler.on_event(event, view, &mut context);
        slots.loss.on_event(event, view, &mut context);
        slots.retransmit.on_event(event, view, &mut context);
        slots.head_of_line.on_event(event, view, &mut context);
        slots.ack.on_event(event, view, &mut context);
        slots.buffer.on_event(event, view, &mut context);
        slots.failover.on_event(event, view, &mut context);
    }

    /// Delivers an event to the scheduler alone.
    pub(crate) fn deliver_to_scheduler(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.slots.scheduler.on_event(event, view, &mut Context { entropy: &mut self.entropy });
    }

    /// Returns the earliest deadline of all slots.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let slots = &self.slots;
        earliest([
            slots.estimator.deadline(),
            slots.congestion.deadline(),
            slots.scheduler.deadline(),
            slots.loss.deadline(),
            slots.retransmit.deadline(),
            slots.head_of_line.deadline(),
            slots.ack.deadline(),
            slots.buffer.deadline(),
            slots.failover.deadline(),
        ])
    }

    #[inline]
    pub(crate) fn estimates(&self, id: PathId) -> Estimates {
        self.slots.estimator.estimates(id)
    }

    #[inline]
    pub(crate) fn pacing(&self, id: PathId) -> Pacing {
        self.slots.congestion.pacing(id)
    }

    /// Returns the reason of the latest change of a path's window or pacing.
    #[inline]
    pub(crate) fn window_reason(&self, id: PathId) -> Reason {
        self.slots.congestion.last_reason(id)
    }

    /// Returns a path's window, after raising it to one largest chunk if it is smaller. RFC 9260 sections 7.2.1 and 7.2.3 let no
    /// cwnd fall below one PMDCS. The packet size of a path changes without congestion control, so the limit is enforced here for
    /// all policies.
    pub(crate) fn window(&mut self, id: PathId, view: &View<'_>) -> Window {
        let least = view.path(id).largest_chunk;
        let window = self.slots.congestion.window(id);
        if window.cwnd >= least {
            return window;
        }
        let raised = Window { cwnd: least, ..window };
        self.slots.congestion.set_window(id, raised, A_CHUNK_AT_LEAST, view);
        let window = self.slots.congestion.window(id);
        Window { cwnd: window.cwnd.max(least), ..window }
    }
}

/// Returns `true` if windows may have changed with this event.
pub(crate) fn concerns_windows(event: &Event<'_>) -> bool {
    match event {
        Event::SendOpportunity(_) | Event::Blocked { .. } => false,
        // Only a copy of the head-of-line chunk may change a window (penalisation).
        Event::Sent(sent) => sent.kind == SendKind::HeadOfLine,
        _ => true,
    }
}

/// Decisions of the policies.
impl PolicyState {
    /// Asks the scheduler for the path of the next chunk of new data, after asking buffer sharing which paths may take it.
    pub(crate) fn pick(
        &mut self,
        ask: &SendAsk,
        now: Time,
        paths: &mut Paths,
        sender: &Sender,
    ) -> Decision<Pick> {
        for id in paths.ids() {
            let admits = self.slots.buffer.admits(id, ask.chunk, &view(now, paths, sender));
            paths.set_within_share(id, admits);
        }
        let mut context = Context { entropy: &mut self.entropy };
        self.slots.scheduler.pick(ask, &view(now, paths, sender), &mut context)
    }

    /// Returns `true` if the scheduler wants to place bound chunks again.
    pub(crate) fn replan(&mut self, view: &View<'_>) -> bool {
        self.slots.scheduler.replan(view)
    }

    /// Asks for the path of a retransmission.
    pub(crate) fn route(&mut self, chunk: &LostChunk, view: &View<'_>) -> Decision<RetransmitChoice> {
        self.slots.retransmit.route(chunk, view, &mut Context { entropy: &mut self.entropy })
    }

    /// Asks for a measure against head-of-line blocking.
    pub(crate) fn handle_head_of_line(
        &mut self,
        blocking: &HeadOfLineBlocking,
        view: &View<'_>,
    ) -> Option<Decision<HeadOfLineAction>> {
        self.slots.head_of_line.handle(blocking, view, &mut Context { entropy: &mut self.entropy })
    }

    pub(crate) fn holes(&mut self, sack: &SackView<'_>, view: &View<'_>) -> Holes {
        self.slots.loss.holes(sack, view)
    }

    pub(crate) fn missing(
        &mut self,
        chunk: &Missing,
        sack: &SackView<'_>,
        view: &View<'_>,
    ) -> MissingVerdict {
        self.slots.loss.missing(chunk, sack, view)
    }

    pub(crate) fn timed_out(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        self.slots.loss.timed_out(chunk, view)
    }

    pub(crate) fn loss_tasks(&mut self, view: &View<'_>) -> LossTasks {
        self.slots.loss.due(view)
    }

    pub(crate) fn probes(&mut self, view: &View<'_>) -> PathSet {
        self.slots.estimator.probes(view)
    }

    pub(crate) fn overdue(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        self.slots.loss.overdue(chunk, view)
    }

    #[inline]
    pub(crate) fn ack_form(&self) -> AckForm {
        self.slots.ack.form()
    }

    pub(crate) fn ack_timing(&mut self, arrival: &Arrival, view: &View<'_>) -> AckTiming {
        self.slots.ack.timing(arrival, view).choice
    }

    pub(crate) fn sack_flags(&self, packets: u32, by_timer: bool, profile: &Profile) -> u8 {
        self.slots.ack.flags(packets, by_timer, profile)
    }

    pub(crate) fn state_after_error(
        &mut self,
        path: PathId,
        by_heartbeat: bool,
        view: &View<'_>,
    ) -> Decision<PathState> {
        self.slots.failover.on_error(path, by_heartbeat, view)
    }

    pub(crate) fn state_after_proof(&mut self, path: PathId, proof: ProofOfLife, view: &View<'_>) -> Life {
        self.slots.failover.on_proof(path, proof, view)
    }

    #[inline]
    pub(crate) fn probing(&self, path: PathId, view: &View<'_>) -> Probing {
        self.slots.failover.probing(path, view)
    }

    #[inline]
    pub(crate) fn silence_limit(&self, path: PathId, view: &View<'_>) -> Option<Span> {
        self.slots.failover.silence_limit(path, view)
    }

    pub(crate) fn promote(&mut self, view: &View<'_>) -> Option<Decision<PathId>> {
        self.slots.failover.promote(view, &mut Context { entropy: &mut self.entropy })
    }
}

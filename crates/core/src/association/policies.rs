//! Policies of the scheme. All calls to them and events for them pass through here.

use std::fmt;

use crate::entropy::Entropy;
use crate::path_id::{PathId, PathSet, PathState};
use crate::paths::Paths;
use crate::policy::{
    AckForm, AckTiming, Arrival, Context, Decision, Estimates, Event, EventKind, EventSet, HeadOfLineAction,
    HeadOfLineBlocking, Holes, LivenessEffect, LivenessProof, LossTasks, LostChunk, Missing, MissingVerdict,
    Pacing, Pick, Policies, Probing, Reason, RetransmitChoice, SackView, SendAsk, SendKind, Slot, View,
    Window,
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

/// Slots in the order in which they receive an event: estimators first and congestion control second, so that the others see their
/// figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotName {
    Estimator,
    Congestion,
    Scheduler,
    Loss,
    Retransmit,
    HeadOfLine,
    Ack,
    Buffer,
    Failover,
}

impl SlotName {
    const COUNT: usize = 9;

    const ALL: [SlotName; SlotName::COUNT] = [
        SlotName::Estimator,
        SlotName::Congestion,
        SlotName::Scheduler,
        SlotName::Loss,
        SlotName::Retransmit,
        SlotName::HeadOfLine,
        SlotName::Ack,
        SlotName::Buffer,
        SlotName::Failover,
    ];

    fn of(self, slots: &mut Policies) -> &mut dyn Slot {
        match self {
            SlotName::Estimator => &mut *slots.estimator,
            SlotName::Congestion => &mut *slots.congestion,
            SlotName::Scheduler => &mut *slots.scheduler,
            SlotName::Loss => &mut *slots.loss,
            SlotName::Retransmit => &mut *slots.retransmit,
            SlotName::HeadOfLine => &mut *slots.head_of_line,
            SlotName::Ack => &mut *slots.ack,
            SlotName::Buffer => &mut *slots.buffer,
            SlotName::Failover => &mut *slots.failover,
        }
    }
}

/// Set of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SlotSet(u16);

impl SlotSet {
    const NONE: SlotSet = SlotSet(0);
    const ALL: SlotSet = SlotSet((1 << SlotName::COUNT) - 1);

    #[inline]
    const fn only(slot: SlotName) -> Self {
        SlotSet(1 << slot as u16)
    }

    #[inline]
    fn insert(&mut self, slots: SlotSet) {
        self.0 |= slots.0;
    }

    #[inline]
    const fn contains(self, slot: SlotName) -> bool {
        self.0 & SlotSet::only(slot).0 != 0
    }

    #[inline]
    fn iter(self) -> impl Iterator<Item = SlotName> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let slot = SlotName::ALL.get(left.trailing_zeros() as usize).copied();
            left &= left.wrapping_sub(1);
            slot
        })
    }
}

/// Returns the readers of each kind of event. With `reads_all` every slot reads every kind, regardless of its declaration.
fn readers(slots: &mut Policies, profile: &Profile, reads_all: bool) -> [SlotSet; EventKind::ALL.len()] {
    let mut readers = [SlotSet::NONE; EventKind::ALL.len()];
    for slot in SlotName::ALL {
        let events = if reads_all { EventSet::ALL } else { slot.of(slots).events(profile) };
        for kind in EventKind::ALL.into_iter().filter(|kind| events.contains(*kind)) {
            readers[kind as usize].insert(SlotSet::only(slot));
        }
    }
    readers
}

/// Policies of the scheme, and their source of randomness.
pub(crate) struct PolicyState {
    slots: Policies,
    entropy: Entropy,
    /// Declarations of policies are ignored (see [`AssociationConfig::ignores_declarations`](crate::AssociationConfig)).
    reads_all: bool,
    /// Slots that read an event, by its kind.
    readers: [SlotSet; EventKind::ALL.len()],
    /// Slots that read an event after their figures were adopted.
    news: SlotSet,
    /// Slots whose deadline may have changed since it was read.
    stale: SlotSet,
    deadlines: [Option<Time>; SlotName::COUNT],
    /// Earliest of the deadlines.
    earliest: Option<Time>,
}

impl PolicyState {
    /// Returns an independent copy in the same state, if the policies can be copied.
    pub(crate) fn copied(&self) -> Option<Self> {
        let slots = self.slots.copied()?;
        Some(PolicyState { slots, entropy: self.entropy.clone(), ..*self })
    }
}

/// Shows the policies and their randomness alone. The other fields say which answers are up to date.
impl fmt::Debug for PolicyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PolicyState { slots, entropy, .. } = self;
        f.debug_struct("PolicyState").field("slots", slots).field("entropy", entropy).finish_non_exhaustive()
    }
}

/// Events, and figures of policies.
impl PolicyState {
    /// Creates the state of an association under these rules. `reads_all` ignores the policies' declarations.
    pub(crate) fn new(mut slots: Policies, entropy: Entropy, profile: &Profile, reads_all: bool) -> Self {
        PolicyState {
            readers: readers(&mut slots, profile, reads_all),
            slots,
            entropy,
            reads_all,
            news: SlotSet::ALL,
            stale: SlotSet::ALL,
            deadlines: [None; SlotName::COUNT],
            earliest: None,
        }
    }

    /// Replaces the policies, because the peer has restarted.
    pub(crate) fn restart(&mut self, mut slots: Policies, profile: &Profile) {
        self.readers = readers(&mut slots, profile, self.reads_all);
        self.slots = slots;
        (self.news, self.stale) = (SlotSet::ALL, SlotSet::ALL);
    }

    /// Returns `true` if a policy reads this kind of event.
    #[inline]
    pub(crate) fn reads(&self, kind: EventKind) -> bool {
        self.readers[kind as usize] != SlotSet::NONE
    }

    /// Delivers an event to the slots that read it, in the order of [`SlotName`].
    pub(crate) fn deliver(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.deliver_to_slots(self.readers[event.kind() as usize], event, view);
    }

    /// Delivers an event to the scheduler alone, if it reads it.
    pub(crate) fn deliver_to_scheduler(&mut self, event: &Event<'_>, view: &View<'_>) {
        if self.readers[event.kind() as usize].contains(SlotName::Scheduler) {
            self.deliver_to_slots(SlotSet::only(SlotName::Scheduler), event, view);
        }
    }

    fn deliver_to_slots(&mut self, readers: SlotSet, event: &Event<'_>, view: &View<'_>) {
        self.news.insert(readers);
        self.stale.insert(readers);
        let mut context = Context { entropy: &mut self.entropy };
        for slot in readers.iter() {
            slot.of(&mut self.slots).on_event(event, view, &mut context);
        }
    }

    /// Returns the earliest deadline of any slot. Only slots that read an event or decided since the last call are asked.
    pub(crate) fn deadline(&mut self) -> Option<Time> {
        if self.reads_all {
            self.stale = SlotSet::ALL;
        }
        let mut changed = false;
        for slot in std::mem::replace(&mut self.stale, SlotSet::NONE).iter() {
            let deadline = slot.of(&mut self.slots).deadline();
            changed |= std::mem::replace(&mut self.deadlines[slot as usize], deadline) != deadline;
        }
        if changed {
            self.earliest = earliest(self.deadlines);
        }
        self.earliest
    }

    /// Returns `true` once after congestion control has read an event.
    #[inline]
    pub(crate) fn take_window_news(&mut self) -> bool {
        self.take_news(SlotName::Congestion)
    }

    /// Returns `true` once after the estimator has read an event.
    #[inline]
    pub(crate) fn take_estimate_news(&mut self) -> bool {
        self.take_news(SlotName::Estimator)
    }

    #[inline]
    fn take_news(&mut self, slot: SlotName) -> bool {
        let has_news = self.reads_all || self.news.contains(slot);
        self.news.0 &= !SlotSet::only(slot).0;
        has_news
    }

    /// Makes congestion control and the estimator count as having read an event.
    pub(crate) fn note_news(&mut self) {
        self.news.insert(SlotSet::ALL);
    }

    /// Returns `true` if windows or estimates may differ from those adopted.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.reads_all || self.news.contains(SlotName::Congestion) || self.news.contains(SlotName::Estimator)
    }

    /// Notes a decision of a slot, which may change its deadline.
    #[inline]
    fn note_decision(&mut self, slot: SlotName) {
        self.stale.insert(SlotSet::only(slot));
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
        self.note_decision(SlotName::Congestion);
        self.slots.congestion.set_window(id, raised, A_CHUNK_AT_LEAST, view);
        let window = self.slots.congestion.window(id);
        Window { cwnd: window.cwnd.max(least), ..window }
    }
}

/// Returns `true` if figures are adopted at an event of this kind.
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
        self.note_decision(SlotName::Scheduler);
        let mut context = Context { entropy: &mut self.entropy };
        self.slots.scheduler.pick(ask, &view(now, paths, sender), &mut context)
    }

    /// Returns `true` if the scheduler wants to place bound chunks again.
    pub(crate) fn replan(&mut self, view: &View<'_>) -> bool {
        self.note_decision(SlotName::Scheduler);
        self.slots.scheduler.replan(view)
    }

    /// Asks for the path of a retransmission.
    pub(crate) fn route(&mut self, chunk: &LostChunk, view: &View<'_>) -> Decision<RetransmitChoice> {
        self.note_decision(SlotName::Retransmit);
        self.slots.retransmit.route(chunk, view, &mut Context { entropy: &mut self.entropy })
    }

    /// Returns `true` if an answer to wait holds for all lost chunks.
    pub(crate) fn wait_holds(&self, view: &View<'_>) -> bool {
        !self.reads_all && self.slots.retransmit.wait_holds(view)
    }

    /// Asks for a measure against head-of-line blocking.
    pub(crate) fn handle_head_of_line(
        &mut self,
        blocking: &HeadOfLineBlocking,
        view: &View<'_>,
    ) -> Option<Decision<HeadOfLineAction>> {
        self.note_decision(SlotName::HeadOfLine);
        self.slots.head_of_line.handle(blocking, view, &mut Context { entropy: &mut self.entropy })
    }

    pub(crate) fn holes(&mut self, sack: &SackView<'_>, view: &View<'_>) -> Holes {
        self.note_decision(SlotName::Loss);
        self.slots.loss.holes(sack, view)
    }

    pub(crate) fn missing(
        &mut self,
        chunk: &Missing,
        sack: &SackView<'_>,
        view: &View<'_>,
    ) -> MissingVerdict {
        self.note_decision(SlotName::Loss);
        self.slots.loss.missing(chunk, sack, view)
    }

    pub(crate) fn timed_out(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        self.note_decision(SlotName::Loss);
        self.slots.loss.timed_out(chunk, view)
    }

    pub(crate) fn loss_tasks(&mut self, view: &View<'_>) -> LossTasks {
        self.note_decision(SlotName::Loss);
        self.slots.loss.due(view)
    }

    pub(crate) fn probes(&mut self, view: &View<'_>) -> PathSet {
        self.note_decision(SlotName::Estimator);
        self.slots.estimator.probes(view)
    }

    pub(crate) fn overdue(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        self.note_decision(SlotName::Loss);
        self.slots.loss.overdue(chunk, view)
    }

    #[inline]
    pub(crate) fn ack_form(&self) -> AckForm {
        self.slots.ack.form()
    }

    pub(crate) fn ack_timing(&mut self, arrival: &Arrival, view: &View<'_>) -> AckTiming {
        self.note_decision(SlotName::Ack);
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
        self.note_decision(SlotName::Failover);
        self.slots.failover.on_error(path, by_heartbeat, view)
    }

    pub(crate) fn state_after_proof(
        &mut self,
        path: PathId,
        proof: LivenessProof,
        view: &View<'_>,
    ) -> LivenessEffect {
        self.note_decision(SlotName::Failover);
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
        self.note_decision(SlotName::Failover);
        self.slots.failover.promote(view, &mut Context { entropy: &mut self.entropy })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::association::testing::{Rig, at, plain_policies};
    use crate::policy::{CongestionControl, SentTransmission};
    use crate::units::ChunkBytes;

    /// Congestion control that counts the events that reach it, and the questions about its figures.
    #[derive(Clone, Default)]
    struct Counting {
        declared: Vec<EventKind>,
        heard: Arc<Mutex<Vec<EventKind>>>,
        windows: Arc<AtomicU32>,
        deadlines: Arc<AtomicU32>,
    }

    impl Counting {
        fn reading(declared: &[EventKind]) -> Self {
            Counting { declared: declared.to_vec(), ..Counting::default() }
        }

        /// Returns a rig with one path and this control, and forgets what its construction asked.
        fn rig(&self, reads_all: bool) -> Rig {
            let mut rig = Rig::new(1, Profile::rfc9260());
            let slots = Policies { congestion: Box::new(self.clone()), ..plain_policies() };
            rig.policies = PolicyState::new(slots, Entropy::new([7; 32]), &Profile::rfc9260(), reads_all);
            rig.dispatcher().adopt_windows();
            rig.policies.deadline();
            self.take();
            rig
        }

        /// Returns the number of reads of windows and of deadlines since the last call.
        fn take(&self) -> (u32, u32) {
            (self.windows.swap(0, Ordering::Relaxed), self.deadlines.swap(0, Ordering::Relaxed))
        }
    }

    impl Slot for Counting {
        fn events(&self, _: &Profile) -> EventSet {
            EventSet::of(&self.declared)
        }

        fn on_event(&mut self, event: &Event<'_>, _: &View<'_>, _: &mut Context<'_>) {
            self.heard.lock().expect("no test panicked").push(event.kind());
        }

        fn deadline(&self) -> Option<Time> {
            self.deadlines.fetch_add(1, Ordering::Relaxed);
            Some(at(9))
        }
    }

    impl CongestionControl for Counting {
        fn window(&self, _: PathId) -> Window {
            self.windows.fetch_add(1, Ordering::Relaxed);
            Window { cwnd: ChunkBytes::new(16_000), ..Window::default() }
        }

        fn pacing(&self, _: PathId) -> Pacing {
            Pacing::OFF
        }

        fn last_reason(&self, _: PathId) -> Reason {
            A_CHUNK_AT_LEAST
        }

        fn set_window(&mut self, _: PathId, _: Window, _: Reason, _: &View<'_>) {}
    }

    fn path() -> PathId {
        PathId::new(0)
    }

    fn sent(kind: SendKind) -> SentTransmission {
        SentTransmission { path: path(), previous_path: None, tsn: 1, bytes: ChunkBytes::new(116), kind }
    }

    #[test]
    fn policy_gets_the_kinds_that_it_declares_and_no_others() {
        let events = [Event::Established, Event::Idle(path()), Event::PathRebound(path()), Event::Deadline];
        for (reads_all, expected) in [
            (false, vec![EventKind::Idle, EventKind::Deadline]),
            (true, events.iter().map(Event::kind).collect()),
        ] {
            let control = Counting::reading(&[EventKind::Deadline, EventKind::Idle]);
            let mut rig = control.rig(reads_all);
            events.iter().for_each(|event| rig.dispatcher().dispatch(event));
            assert_eq!(*control.heard.lock().expect("no test panicked"), expected);
        }
    }

    #[test]
    fn windows_and_deadlines_are_read_again_after_declared_events_alone() {
        let control = Counting::reading(&[EventKind::Idle]);
        let mut rig = control.rig(false);
        for (event, reads) in [(Event::Deadline, (0, 0)), (Event::Idle(path()), (1, 1))] {
            rig.dispatcher().dispatch(&event);
            assert_eq!(rig.policies.deadline(), Some(at(9)), "it is remembered");
            assert_eq!(control.take(), reads, "{event:?}");
        }
    }

    #[test]
    fn window_changed_by_a_transmission_is_adopted_at_the_next_event() {
        let control = Counting::reading(&[EventKind::Sent]);
        let mut rig = control.rig(false);
        rig.dispatcher().dispatch(&Event::Sent(&sent(SendKind::New)));
        assert_eq!(control.take().0, 0);
        rig.dispatcher().dispatch(&Event::Idle(path()));
        assert_eq!(control.take().0, 1, "although no policy reads that event");
        rig.dispatcher().dispatch(&Event::Sent(&sent(SendKind::HeadOfLine)));
        assert_eq!(control.take().0, 1, "a copy of the head of line may change it at once");
    }
}

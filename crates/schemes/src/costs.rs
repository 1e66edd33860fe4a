//! Costs of paths: a wrapper around the policies of any scheme that hides paths which are too expensive now.
//!
//! RFC 8684 section 3.3.8 has backup subflows that carry data only while no other one is available. This wrapper has a further
//! class between these and free paths.

use std::sync::Arc;

use anabranch_core::policy::{
    Context, Decision, Event, EventKind, EventSet, HeadOfLineAction, HeadOfLineBlocking, HeadOfLineHandling,
    LostChunk, PathFacts, Pick, Policies, Reason, Refusal, RetransmitChoice, RetransmitPath, Scheduler,
    Scheme, SendAsk, Slot, View, WaitFor,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};
use anabranch_core::{MAX_PATHS, PathCost, PathId, PathSet, PathState};

/// Time for which data has to wait for full windows of all free paths before metered paths carry any.
pub const FULL_BEFORE_METERED: Span = Span::from_secs(1);

/// Time without a decision after which no data waits any more. It is longer than the wait, whose timer may be late.
const PAUSE: Span = FULL_BEFORE_METERED.times(2);

const HIDDEN: Reason = Reason::rule("cheaper paths suffice");

/// Returns a scheme that uses paths as their [cost](PathFacts::cost) permits, and otherwise decides as the given one. Without costs
/// all decisions are the same.
///
/// * Free paths are always used.
/// * Metered paths carry new data while no free path works. They also carry the data for which no free path has room, once data
///   has waited for [`FULL_BEFORE_METERED`] without a pause.
/// * Backup paths carry data while no other path works.
///
/// A path works if it is active without two errors in a row. Retransmissions and copies use the cheapest working paths, and others
/// only while these have data in flight.
pub fn honour_costs(scheme: Arc<dyn Scheme>) -> Arc<dyn Scheme> {
    Arc::new(Honouring(scheme))
}

struct Honouring(Arc<dyn Scheme>);

impl Scheme for Honouring {
    fn policies(&self) -> Policies {
        let policies = self.0.policies();
        Policies {
            scheduler: Box::new(CostScheduler::new(policies.scheduler)),
            retransmit: Box::new(CostRetransmit { inner: policies.retransmit }),
            head_of_line: Box::new(CostHeadOfLine { inner: policies.head_of_line }),
            ..policies
        }
    }

    fn is_multipath(&self) -> bool {
        self.0.is_multipath()
    }

    fn profile(&self, row: Profile) -> Profile {
        self.0.profile(row)
    }
}

/// Consecutive errors after which an active path no longer counts as working. Some schemes keep a path active for many more.
const SUSPICIOUS_ERRORS: u32 = 2;

/// Returns `true` if the path is active and not suspected to have failed.
pub(crate) fn works(path: &PathFacts) -> bool {
    path.is_active() && path.error_count < SUSPICIOUS_ERRORS
}

/// Returns the cost of the cheapest working path, or else of the cheapest active one.
fn cheapest(view: &View<'_>) -> Option<PathCost> {
    let working = view.paths.iter().filter(|path| works(path)).map(|path| path.cost).min();
    working.or_else(|| view.active().map(|path| path.cost).min())
}

/// Returns `true` if all paths have the same cost, so that none is hidden.
fn is_uniform(view: &View<'_>) -> bool {
    view.paths.windows(2).all(|pair| pair[0].cost == pair[1].cost)
}

/// Calls `ask` with a view in which other paths than these are inactive.
fn with_only<T>(visible: PathSet, view: &View<'_>, ask: impl FnOnce(&View<'_>) -> T) -> T {
    let Some(first) = view.paths.first() else { return ask(view) };
    let mut paths: [PathFacts; MAX_PATHS] = [*first; MAX_PATHS];
    let paths = &mut paths[..view.paths.len()];
    for (shown, facts) in paths.iter_mut().zip(view.paths) {
        *shown = *facts;
        if !visible.contains(facts.id) && facts.is_active() {
            shown.state = PathState::Inactive;
        }
    }
    ask(&View { paths, ..*view })
}

/// Lists hidden paths as refused in favour of a cheaper one, instead of by a state that they do not have.
fn explain<T>(decision: &mut Decision<T>, visible: PathSet, view: &View<'_>) {
    for (id, why) in &mut decision.refused {
        if *why == Refusal::State && !visible.contains(*id) && view.path(*id).is_active() {
            *why = Refusal::Preference;
        }
    }
}

/// Demand beyond the free paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pressure {
    /// A free path had room at the end of the latest send opportunity.
    #[default]
    None,
    /// Data waits for free paths since this time.
    Waiting(Time),
    /// Data has waited for long enough.
    Lasting,
}

/// Scheduler that hides paths which are too expensive now.
struct CostScheduler {
    inner: Box<dyn Scheduler>,
    pressure: Pressure,
    /// Set if no free path had room at the latest decision.
    was_full: bool,
    /// Time of the latest decision.
    decided_at: Time,
}

impl CostScheduler {
    fn new(inner: Box<dyn Scheduler>) -> Self {
        CostScheduler { inner, pressure: Pressure::default(), was_full: false, decided_at: Time::ZERO }
    }

    /// Returns the time at which metered paths may carry data.
    fn due(&self) -> Option<Time> {
        match self.pressure {
            Pressure::Waiting(since) => Some(since + FULL_BEFORE_METERED),
            Pressure::None | Pressure::Lasting => None,
        }
    }

    fn age(&mut self, now: Time) {
        if self.due().is_some_and(|due| due <= now) {
            self.pressure = Pressure::Lasting;
        }
    }

    /// Updates the pressure before a decision. While data waits, decisions follow each other within round trips.
    fn begin_decision(&mut self, now: Time) {
        if now.since(self.decided_at) > PAUSE {
            self.pressure = Pressure::None;
        }
        self.decided_at = now;
        self.age(now);
    }

    /// Returns the paths that may carry the next packet of new data.
    fn visible(&mut self, view: &View<'_>) -> PathSet {
        let Some(cheapest) = cheapest(view) else { return every(view) };
        let is_full = cheapest == PathCost::Free
            && view.active().all(|path| path.cost != PathCost::Free || view.refusal(path.id).is_some());
        self.was_full = is_full;
        if is_full && self.pressure == Pressure::None {
            self.pressure = Pressure::Waiting(view.now);
        }
        let needs_metered = is_full && self.pressure == Pressure::Lasting;
        let most = if needs_metered { PathCost::Metered } else { cheapest };
        view.paths.iter().filter(|path| path.cost <= most).map(|path| path.id).collect()
    }
}

/// Returns `true` if a decision sends the last data that waits, to within one packet.
fn ends_queue(decision: &Decision<Pick>, view: &View<'_>) -> bool {
    let path = match decision.choice {
        Pick::Path(path) | Pick::Bind(path) => Some(path),
        Pick::Copies(paths) => paths.first(),
        Pick::Wait(_) => None,
    };
    path.is_some_and(|path| view.association.queued_bytes <= view.path(path).largest_chunk.get())
}

fn every(view: &View<'_>) -> PathSet {
    view.paths.iter().map(|path| path.id).collect()
}

impl Slot for CostScheduler {
    fn events(&self, profile: &Profile) -> EventSet {
        EventSet::of(&[EventKind::SendOpportunity, EventKind::Deadline]).union(self.inner.events(profile))
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        match event {
            Event::SendOpportunity(_) if !self.was_full => self.pressure = Pressure::None,
            Event::SendOpportunity(_) | Event::Deadline => self.age(view.now),
            _ => {}
        }
        self.inner.on_event(event, view, context);
    }

    fn deadline(&self) -> Option<Time> {
        [self.due(), self.inner.deadline()].into_iter().flatten().min()
    }
}

impl Scheduler for CostScheduler {
    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, context: &mut Context<'_>) -> Decision<Pick> {
        if is_uniform(view) {
            return self.inner.pick(ask, view, context);
        }
        self.begin_decision(view.now);
        let visible = self.visible(view);
        let mut decision = with_only(visible, view, |shown| self.inner.pick(ask, shown, context));
        if ends_queue(&decision, view) {
            (self.pressure, self.was_full) = (Pressure::None, false);
        }
        explain(&mut decision, visible, view);
        decision
    }

    /// Bound chunks leave a path that has become too expensive.
    fn replan(&mut self, view: &View<'_>) -> bool {
        let is_lasting = self.pressure == Pressure::Lasting;
        let most = cheapest(view).map(|most| if is_lasting { most.max(PathCost::Metered) } else { most });
        let is_hidden = |path: &PathFacts| most.is_some_and(|most| path.cost > most);
        let is_misplaced = |path: &PathFacts| !path.bound.is_zero() && is_hidden(path);
        self.inner.replan(view) || (!is_uniform(view) && view.paths.iter().any(is_misplaced))
    }
}

/// Returns the paths that may carry retransmissions and copies: the cheapest active ones, and those with data in flight.
fn visible_again(view: &View<'_>) -> PathSet {
    let cheapest = cheapest(view);
    let may_carry =
        |path: &&PathFacts| cheapest.is_none_or(|most| path.cost <= most) || !path.in_flight.is_zero();
    view.paths.iter().filter(may_carry).map(|path| path.id).collect()
}

/// Policy for retransmissions that hides paths which are too expensive now.
struct CostRetransmit {
    inner: Box<dyn RetransmitPath>,
}

impl Slot for CostRetransmit {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.inner.on_event(event, view, context);
    }

    forward! { inner:
        fn events(&self, profile: &Profile) -> EventSet;
        fn deadline(&self) -> Option<Time>;
    }
}

impl RetransmitPath for CostRetransmit {
    fn route(
        &mut self,
        chunk: &LostChunk,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) -> Decision<RetransmitChoice> {
        if is_uniform(view) {
            return self.inner.route(chunk, view, context);
        }
        let visible = visible_again(view);
        let mut decision = with_only(visible, view, |shown| self.inner.route(chunk, shown, context));
        // Some policies retransmit on the path of the loss in any state.
        if decision.choice.path().is_some_and(|path| !visible.contains(path) && view.path(path).is_active()) {
            return reroute(&decision, visible, view);
        }
        explain(&mut decision, visible, view);
        decision
    }

    fn wait_holds(&self, view: &View<'_>) -> bool {
        is_uniform(view) && self.inner.wait_holds(view)
    }
}

/// Replaces a hidden path of a retransmission by the first visible one with room.
fn reroute(
    decision: &Decision<RetransmitChoice>,
    visible: PathSet,
    view: &View<'_>,
) -> Decision<RetransmitChoice> {
    let usable =
        |path: &&PathFacts| visible.contains(path.id) && path.is_active() && path.admits_retransmission();
    let path = view.paths.iter().find(usable).map(|path| path.id);
    let choice = path.map_or(RetransmitChoice::Wait(WaitFor::Window), RetransmitChoice::Path);
    let hidden = decision.choice.path().map(|hidden: PathId| (hidden, Refusal::Preference));
    Decision::with_refused(choice, HIDDEN, hidden.into_iter().collect())
}

/// Policy for the head of line that hides paths which are too expensive now.
struct CostHeadOfLine {
    inner: Box<dyn HeadOfLineHandling>,
}

impl Slot for CostHeadOfLine {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.inner.on_event(event, view, context);
    }

    forward! { inner:
        fn events(&self, profile: &Profile) -> EventSet;
        fn deadline(&self) -> Option<Time>;
    }
}

impl HeadOfLineHandling for CostHeadOfLine {
    fn handle(
        &mut self,
        blocking: &HeadOfLineBlocking,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) -> Option<Decision<HeadOfLineAction>> {
        if is_uniform(view) {
            return self.inner.handle(blocking, view, context);
        }
        let visible = visible_again(view);
        let decision = with_only(visible, view, |shown| self.inner.handle(blocking, shown, context));
        decision.map(|mut decision| {
            explain(&mut decision, visible, view);
            decision
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::parse;
    use crate::testing::{M, World, bytes, lost_on, path};
    use PathCost::{Backup, Free, Metered};
    use anabranch_core::policy::LossCause;

    fn policies(scheme: &str) -> Policies {
        honour_costs(parse(scheme).expect(scheme).into_scheme()).policies()
    }

    fn world(costs: &[PathCost]) -> World {
        let mut world = World::new(Profile::rfc9260().multipath(), costs.len());
        world.association.queued_bytes = 100 * M;
        for (facts, cost) in world.paths.iter_mut().zip(costs) {
            facts.cost = *cost;
        }
        world
    }

    fn fill(world: &mut World, index: usize) {
        world.paths[index].in_flight = world.paths[index].cwnd;
    }

    fn picked(world: &mut World, policies: &mut Policies) -> Option<PathId> {
        world.begin_send_opportunity(&mut *policies.scheduler);
        match world.pick(&mut *policies.scheduler).choice {
            Pick::Path(path) => Some(path),
            Pick::Copies(paths) => paths.first(),
            Pick::Bind(_) | Pick::Wait(_) => None,
        }
    }

    #[test]
    fn metered_path_carries_data_after_a_second_of_full_free_windows() {
        let (mut world, mut policies) = (world(&[Free, Metered, Backup]), policies("cmt+min-rtt"));
        fill(&mut world, 0);
        assert_eq!(picked(&mut world, &mut policies), None);
        let begun = world.now;
        assert_eq!(policies.scheduler.deadline(), Some(begun + FULL_BEFORE_METERED));
        world.now = begun + Span::from_millis(999);
        assert_eq!(picked(&mut world, &mut policies), None);
        world.now = begun + FULL_BEFORE_METERED;
        assert_eq!(picked(&mut world, &mut policies), Some(path(1)));
        assert_eq!(policies.scheduler.deadline(), None);
        fill(&mut world, 1);
        assert_eq!(picked(&mut world, &mut policies), None, "a backup path is not for full windows");
    }

    #[test]
    fn late_timer_opens_metered_paths_too() {
        let (mut world, mut policies) = (world(&[Free, Metered]), policies("cmt+min-rtt"));
        fill(&mut world, 0);
        assert_eq!(picked(&mut world, &mut policies), None);
        world.now += FULL_BEFORE_METERED + Span::from_millis(5);
        world.dispatch(&mut *policies.scheduler, &Event::Deadline);
        assert_eq!(picked(&mut world, &mut policies), Some(path(1)));
    }

    #[test]
    fn room_on_a_free_path_ends_the_use_of_metered_paths() {
        let (mut world, mut policies) = (world(&[Free, Metered]), policies("cmt+min-rtt"));
        fill(&mut world, 0);
        picked(&mut world, &mut policies);
        world.now += FULL_BEFORE_METERED;
        assert_eq!(picked(&mut world, &mut policies), Some(path(1)));
        world.paths[0].in_flight = bytes(0);
        assert_eq!(picked(&mut world, &mut policies), Some(path(0)));
        fill(&mut world, 0);
        assert_eq!(picked(&mut world, &mut policies), None, "the wait begins again");
    }

    #[test]
    fn data_after_a_pause_waits_for_free_paths_again() {
        for pauses in [false, true] {
            let (mut world, mut policies) = (world(&[Free, Metered]), policies("cmt+min-rtt"));
            fill(&mut world, 0);
            picked(&mut world, &mut policies);
            world.now += FULL_BEFORE_METERED;
            if pauses {
                // The last data leaves, or is abandoned.
                world.now += PAUSE;
            } else {
                world.association.queued_bytes = M / 2;
                assert_eq!(picked(&mut world, &mut policies), Some(path(1)));
                world.association.queued_bytes = 100 * M;
            }
            world.paths[0].in_flight = bytes(0);
            assert_eq!(picked(&mut world, &mut policies), Some(path(0)));
            fill(&mut world, 0);
            // The same send opportunity has more data than the window.
            let more = world.pick(&mut *policies.scheduler).choice;
            assert!(matches!(more, Pick::Wait(_)), "{more:?}");
        }
    }

    #[test]
    fn metered_path_is_used_at_once_without_active_free_path() {
        let (mut world, mut policies) = (world(&[Free, Metered, Backup]), policies("cmt+min-rtt"));
        world.paths[0].state = PathState::PotentiallyFailed;
        assert_eq!(picked(&mut world, &mut policies), Some(path(1)));
    }

    #[test]
    fn backup_path_is_used_without_any_other_active_path() {
        let (mut world, mut policies) = (world(&[Free, Metered, Backup]), policies("cmt+min-rtt"));
        world.paths[0].state = PathState::Inactive;
        world.paths[1].state = PathState::Unconfirmed;
        assert_eq!(picked(&mut world, &mut policies), Some(path(2)));
    }

    #[test]
    fn active_free_path_with_two_errors_in_a_row_hides_no_other() {
        let (mut world, mut policies) = (world(&[Free, Metered, Backup]), policies("cmt+min-rtt"));
        fill(&mut world, 0);
        world.paths[0].error_count = 1;
        assert_eq!(picked(&mut world, &mut policies), None);
        world.paths[0].error_count = SUSPICIOUS_ERRORS;
        assert_eq!(picked(&mut world, &mut policies), Some(path(1)));
    }

    #[test]
    fn bound_chunks_leave_a_path_whose_cost_rises() {
        let (mut world, mut policies) = (world(&[Free, Free]), policies("cmt+min-rtt"));
        world.paths[1].bound = bytes(M);
        assert!(!policies.scheduler.replan(&world.view()));
        world.paths[1].cost = Metered;
        assert!(policies.scheduler.replan(&world.view()));
        fill(&mut world, 0);
        picked(&mut world, &mut policies);
        world.now += FULL_BEFORE_METERED;
        picked(&mut world, &mut policies);
        assert!(!policies.scheduler.replan(&world.view()), "metered paths may carry data now");
        world.paths[1].cost = Backup;
        assert!(policies.scheduler.replan(&world.view()));
    }

    #[test]
    fn hidden_path_is_refused_as_a_preference() {
        let (mut world, mut policies) = (world(&[Free, Metered]), policies("cmt+min-rtt"));
        let decision = world.pick(&mut *policies.scheduler);
        assert_eq!(decision.choice, Pick::Path(path(0)));
        assert_eq!(decision.refused.as_slice(), [(path(1), Refusal::Preference)]);
    }

    #[test]
    fn retransmission_uses_metered_path_only_while_it_carries_data() {
        for scheme in ["cmt(rtx=rtx-same)", "cmt(rtx=rtx-asap)", "braid"] {
            let (mut world, mut policies) = (world(&[Free, Metered]), policies(scheme));
            let lost = lost_on(1, LossCause::FastRetransmit);
            let idle = world.route(&mut *policies.retransmit, lost).choice.path();
            assert_eq!(idle, Some(path(0)), "{scheme}");
            fill(&mut world, 0);
            assert_eq!(world.route(&mut *policies.retransmit, lost).choice.path(), None, "{scheme}");
            world.paths[1].in_flight = bytes(M);
            let busy = world.route(&mut *policies.retransmit, lost).choice.path();
            assert_eq!(busy, Some(path(1)), "{scheme}");
        }
    }

    #[test]
    fn paths_of_one_cost_are_used_as_without_costs() {
        for cost in [Free, Metered, Backup] {
            let (mut world, mut policies) = (world(&[cost, cost]), policies("cmt+min-rtt"));
            fill(&mut world, 0);
            assert_eq!(picked(&mut world, &mut policies), Some(path(1)), "{cost:?}");
        }
    }
}

//! Copies of marked messages: a wrapper around the scheduler of any multipath scheme.
//!
//! The component [`redundant`](crate::component::redundant) sends everything on all paths. This wrapper sends a second copy of
//! messages for which the application asks, such as the datagrams of a call, and leaves other data as it is.

use std::sync::Arc;

use anabranch_core::policy::{
    Context, Decision, Event, EventSet, PathFacts, Pick, Policies, Reason, Scheduler, Scheme, SendAsk, Slot,
    View,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};
use anabranch_core::{PathCost, PathId};

use crate::costs::works;

/// Time between two packets of a voice call: the next packet reveals the loss of the previous one at the earliest.
const LOSS_REVEALED_AFTER: Span = Span::from_millis(20);

/// Returns a scheme that sends a copy of chunks of [marked](SendAsk::duplicate) messages on a second path, and otherwise decides as
/// the given one. Schemes that use one path are returned as they are.
///
/// The second path works, is free of cost, and has room. A copy on it can arrive before a retransmission on the first path could:
/// half of its round trip is at most one and a half round trips of the first path, and the time that reveals a loss. Of several such
/// paths, the one with the shortest round trip is used.
pub fn duplicate_marked(scheme: Arc<dyn Scheme>) -> Arc<dyn Scheme> {
    if scheme.is_multipath() { Arc::new(Duplicating(scheme)) } else { scheme }
}

struct Duplicating(Arc<dyn Scheme>);

impl Scheme for Duplicating {
    fn policies(&self) -> Policies {
        let policies = self.0.policies();
        Policies { scheduler: Box::new(DuplicateScheduler { inner: policies.scheduler }), ..policies }
    }

    fn is_multipath(&self) -> bool {
        self.0.is_multipath()
    }

    fn profile(&self, row: Profile) -> Profile {
        self.0.profile(row)
    }
}

/// Scheduler that adds a second path to the choice for marked chunks.
struct DuplicateScheduler {
    inner: Box<dyn Scheduler>,
}

impl Slot for DuplicateScheduler {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.inner.on_event(event, view, context);
    }

    forward! { inner:
        fn events(&self, profile: &Profile) -> EventSet;
        fn deadline(&self) -> Option<Time>;
    }
}

impl Scheduler for DuplicateScheduler {
    fn copied(&self) -> Option<Box<dyn Scheduler>> {
        Some(Box::new(DuplicateScheduler { inner: self.inner.copied()? }))
    }

    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, context: &mut Context<'_>) -> Decision<Pick> {
        let decision = self.inner.pick(ask, view, context);
        // A window probe is one packet beyond the peer's window; a copy would exceed it further.
        if !ask.duplicate || ask.window_probe {
            return decision;
        }
        let Pick::Path(first) = decision.choice else { return decision };
        match second_path(first, view) {
            Some((second, srtt)) => with_copy(decision, [first, second], srtt),
            None => decision,
        }
    }

    forward! { inner:
        fn replan(&mut self, view: &View<'_>) -> bool;
    }
}

/// Returns the path for a copy of a chunk that is sent on `first`, with its round-trip time.
fn second_path(first: PathId, view: &View<'_>) -> Option<(PathId, Span)> {
    let longest = view.path(first).rtt.smoothed?.times(3) + LOSS_REVEALED_AFTER.times(2);
    let may_carry = |path: &&PathFacts| {
        path.id != first
            && path.cost == PathCost::Free
            && works(path)
            && !path.estimates.withdrawn
            && view.refusal(path.id).is_none()
    };
    let srtt = |path: &PathFacts| path.rtt.smoothed.map(|srtt| (path.id, srtt));
    let nearest = view.paths.iter().filter(may_carry).filter_map(srtt).min_by_key(|(_, srtt)| *srtt);
    nearest.filter(|(_, srtt)| *srtt <= longest)
}

fn with_copy(decision: Decision<Pick>, paths: [PathId; 2], srtt: Span) -> Decision<Pick> {
    let reason = Reason::figure("a copy of a marked message", "srtt_ms", srtt.as_millis_f64());
    let refused = decision.refused.into_iter().filter(|(path, _)| !paths.contains(path)).collect();
    Decision::with_refused(Pick::Copies(paths.into_iter().collect()), reason, refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::honour_costs;
    use crate::registry::parse;
    use crate::testing::{ASK, World, bytes, path};
    use anabranch_core::PathState;
    use anabranch_core::policy::WaitFor;

    const MARKED: SendAsk = SendAsk { duplicate: true, ..ASK };

    fn scheduler(scheme: &str) -> Box<dyn Scheduler> {
        let scheme = parse(scheme).expect(scheme).into_scheme();
        honour_costs(duplicate_marked(scheme)).policies().scheduler
    }

    /// Returns active paths with these round-trip times in ms.
    fn world(srtts_ms: &[u64]) -> World {
        let mut world = World::new(Profile::rfc9260().multipath(), srtts_ms.len());
        for (facts, srtt) in world.paths.iter_mut().zip(srtts_ms) {
            facts.rtt.smoothed = Some(Span::from_millis(*srtt));
        }
        world
    }

    fn picked(world: &mut World, ask: SendAsk) -> Pick {
        let mut scheduler = scheduler("cmt+min-rtt");
        world.with(|view, context| scheduler.pick(&ask, view, context)).choice
    }

    fn copies(indices: [usize; 2]) -> Pick {
        Pick::Copies(indices.into_iter().map(path).collect())
    }

    #[test]
    fn marked_chunk_is_copied_to_the_nearest_other_path() {
        assert_eq!(picked(&mut world(&[30, 20, 25]), MARKED), copies([1, 2]));
        assert_eq!(picked(&mut world(&[30, 20, 25]), ASK), Pick::Path(path(1)));
    }

    #[test]
    fn copied_path_is_not_listed_as_refused() {
        let mut world = world(&[20, 25, 30]);
        let mut scheduler = scheduler("cmt+min-rtt");
        let decision = world.with(|view, context| scheduler.pick(&MARKED, view, context));
        assert_eq!(decision.refused.iter().map(|(path, _)| path.index()).collect::<Vec<_>>(), [2]);
        assert_eq!((decision.reason.figure, decision.reason.value), ("srtt_ms", 25.0));
    }

    #[test]
    fn copy_arrives_before_a_retransmission_could() {
        assert_eq!(picked(&mut world(&[20, 100]), MARKED), copies([0, 1]));
        assert_eq!(picked(&mut world(&[20, 101]), MARKED), Pick::Path(path(0)));
        // The scheme measures the second path with this chunk.
        let mut unmeasured = world(&[20, 20]);
        unmeasured.paths[1].rtt.smoothed = None;
        assert_eq!(picked(&mut unmeasured, MARKED), Pick::Path(path(1)));
    }

    #[test]
    fn path_without_room_gets_no_copy() {
        let mut world = world(&[20, 25]);
        world.paths[1].in_flight = world.paths[1].cwnd;
        assert_eq!(picked(&mut world, MARKED), Pick::Path(path(0)));
        world.paths[0].in_flight = world.paths[0].cwnd;
        assert_eq!(picked(&mut world, MARKED), Pick::Wait(WaitFor::Window));
        world.paths[1].in_flight = bytes(0);
        assert_eq!(picked(&mut world, MARKED), Pick::Path(path(1)));
    }

    #[test]
    fn failing_path_gets_no_copy() {
        let mut world = world(&[20, 25]);
        world.paths[1].error_count = 2;
        assert_eq!(picked(&mut world, MARKED), Pick::Path(path(0)));
        world.paths[1].error_count = 0;
        world.paths[1].estimates.withdrawn = true;
        assert_eq!(picked(&mut world, MARKED), Pick::Path(path(0)));
        world.paths[1].estimates.withdrawn = false;
        world.paths[1].state = PathState::PotentiallyFailed;
        assert_eq!(picked(&mut world, MARKED), Pick::Path(path(0)));
    }

    #[test]
    fn paths_with_a_cost_get_no_copy() {
        for cost in [PathCost::Metered, PathCost::Backup] {
            let mut world = world(&[20, 25]);
            world.paths[1].cost = cost;
            assert_eq!(picked(&mut world, MARKED), Pick::Path(path(0)), "{cost:?}");
            world.paths[0].cost = cost;
            assert_eq!(picked(&mut world, MARKED), Pick::Path(path(0)), "{cost:?}");
        }
    }

    #[test]
    fn window_probe_is_sent_once() {
        let probe = SendAsk { window_probe: true, ..MARKED };
        assert_eq!(picked(&mut world(&[20, 25]), probe), Pick::Path(path(0)));
    }

    #[test]
    fn scheme_with_one_path_is_not_wrapped() {
        let scheme = parse("sctp").expect("a preset").into_scheme();
        assert!(Arc::ptr_eq(&scheme, &duplicate_marked(Arc::clone(&scheme))));
    }
}

//! Shared part of the schedulers that rank paths by smoothed round-trip time: min-RTT, and schedulers that start from its choice
//! but may wait for the fastest path.

use anabranch_core::PathId;
use anabranch_core::policy::{Decision, PathFacts, Pick, Reason, Refusal, Refused, SendAsk, View, WaitFor};
use anabranch_core::time::Span;

use crate::scheduler::window;

/// Rank of a path whose round-trip time has not been measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmeasured {
    /// Before all others, so that it is measured, as in Linux, where a smoothed time begins at zero.
    First,
    /// After all others.
    Last,
}

/// Ranking of the paths with room.
pub(crate) struct Ranking<'a> {
    /// Path with the lowest smoothed round-trip time; if times are equal, the path with the lowest id.
    pub(crate) best: Option<&'a PathFacts>,
    /// Other paths, with reasons.
    refused: Refused,
}

impl<'a> Ranking<'a> {
    pub(crate) fn of(view: &View<'a>, unmeasured: Unmeasured) -> Self {
        let mut ranking = Ranking { best: None, refused: Refused::new() };
        for path in view.paths {
            match view.refusal(path.id) {
                Some(why) => ranking.refused.push((path.id, why)),
                None => ranking.compare(path, unmeasured),
            }
        }
        ranking
    }

    fn compare(&mut self, path: &'a PathFacts, unmeasured: Unmeasured) {
        let rank = |path: &PathFacts| match unmeasured {
            Unmeasured::First => (false, path.rtt.smoothed),
            Unmeasured::Last => (path.rtt.smoothed.is_none(), path.rtt.smoothed),
        };
        match self.best {
            Some(best) if rank(best) <= rank(path) => self.refused.push((path.id, Refusal::Preference)),
            Some(best) => {
                self.refused.push((best.id, Refusal::Preference));
                self.best = Some(path);
            }
            None => self.best = Some(path),
        }
    }

    /// Chooses the best path for this reason, or waits if no path has room.
    pub(crate) fn send(self, reason: Reason) -> Decision<Pick> {
        match self.best {
            Some(path) => Decision::with_refused(Pick::Path(path.id), reason, self.refused),
            None => {
                let reason = Reason::rule("no path has room");
                Decision::with_refused(Pick::Wait(WaitFor::Window), reason, self.refused)
            }
        }
    }

    /// Chooses no path although the best has room, and waits for another one.
    pub(crate) fn wait_for(mut self, fast: PathId, reason: Reason) -> Decision<Pick> {
        if let Some(path) = self.best {
            self.refused.push((path.id, Refusal::Preference));
        }
        Decision::with_refused(Pick::Wait(WaitFor::Path(fast)), reason, self.refused)
    }

    /// Binds the chunk to the queue of a path, although the best path may have room.
    pub(crate) fn bind(mut self, to: PathId, reason: Reason) -> Decision<Pick> {
        if let Some(path) = self.best.filter(|path| path.id != to) {
            self.refused.push((path.id, Refusal::Preference));
        }
        self.refused.retain(|(id, _)| *id != to);
        Decision::with_refused(Pick::Bind(to), reason, self.refused)
    }

    /// Returns the fastest path and the best path with room, or `None` if waiting is no option.
    pub(crate) fn alternatives(&self, ask: &SendAsk, view: &View<'a>) -> Option<Alternatives<'a>> {
        let (slow, fast) = (self.best?, fastest(view)?);
        // Waiting is useful only if an acknowledgement opens the path's window or its pacing timer is pending. A buffer share opens
        // at an unrelated time, and a path with nothing in flight receives no acknowledgement.
        let soon = match view.refusal(fast.id)? {
            Refusal::WindowFull | Refusal::InFlightCap | Refusal::Burst => !fast.in_flight.is_zero(),
            Refusal::Paced => true,
            Refusal::State | Refusal::BufferShare | Refusal::Withdrawn | Refusal::Preference => false,
        };
        if !soon || ask.window_probe {
            return None;
        }
        let (fast_rtt, slow_rtt) = (fast.rtt.smoothed?, slow.rtt.smoothed?);
        (!fast_rtt.is_zero()).then_some(Alternatives { fast, fast_rtt, slow, slow_rtt })
    }
}

/// Two paths between which a scheduler decides: the fastest, which is full, and the best with room.
pub(crate) struct Alternatives<'a> {
    pub(crate) fast: &'a PathFacts,
    /// Smoothed round-trip time of the fast path, not zero.
    pub(crate) fast_rtt: Span,
    pub(crate) slow: &'a PathFacts,
    /// Smoothed round-trip time of the slow path.
    pub(crate) slow_rtt: Span,
}

/// Returns the delivery rate according to window and round-trip time, in bytes per second, or `None` before it was measured.
pub(crate) fn bytes_per_second(path: &PathFacts) -> Option<f64> {
    let seconds = path.rtt.smoothed.filter(|rtt| !rtt.is_zero())?.as_secs_f64();
    Some(window(path) / seconds)
}

/// Returns `true` if a chunk may be bound to a path that has no room now but will have soon.
pub(crate) fn may_queue(path: &PathFacts, view: &View<'_>) -> bool {
    path.within_share && !matches!(view.refusal(path.id), Some(Refusal::State | Refusal::BufferShare))
}

/// Returns the active path with the lowest smoothed round-trip time, full or not; if times are equal, the path with the lowest id.
pub(crate) fn fastest<'a>(view: &View<'a>) -> Option<&'a PathFacts> {
    view.active().filter(|path| path.rtt.smoothed.is_some()).min_by_key(|path| path.rtt.smoothed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ASK, World, bytes, path};
    use anabranch_core::PathState;
    use anabranch_core::profile::Profile;

    /// Creates paths with these smoothed round-trip times in milliseconds. The first is full.
    fn world(rtts: &[u64]) -> World {
        let mut world = World::new(Profile::rfc9260_multipath(), rtts.len());
        for (facts, rtt) in world.paths.iter_mut().zip(rtts) {
            facts.rtt.smoothed = Some(Span::from_millis(*rtt));
        }
        world.paths[0].in_flight = bytes(4380);
        world
    }

    fn alternatives(world: &World) -> Option<(usize, usize)> {
        let alternatives = Ranking::of(&world.view(), Unmeasured::First).alternatives(&ASK, &world.view());
        alternatives.map(|c| (c.fast.id.index(), c.slow.id.index()))
    }

    #[test]
    fn the_fastest_path_competes_with_the_best_of_those_that_have_room() {
        assert_eq!(alternatives(&world(&[20, 100, 80])), Some((0, 2)));
    }

    #[test]
    fn fast_path_with_a_spent_burst_is_awaited() {
        let mut world = world(&[20, 100]);
        world.paths[0].in_flight = bytes(1);
        assert_eq!(alternatives(&world), None, "it has room, so it is the best itself");
        world.paths[0].burst_left = 0;
        assert_eq!(alternatives(&world), Some((0, 1)));
    }

    #[test]
    fn no_competition_if_the_fast_path_is_inactive_or_unmeasured() {
        let mut inactive = world(&[20, 100]);
        inactive.paths[0].state = PathState::PotentiallyFailed;
        let mut unmeasured = world(&[20, 100]);
        unmeasured.paths[0].rtt.smoothed = None;
        let mut instant = world(&[20, 100]);
        instant.paths[0].rtt.smoothed = Some(Span::ZERO);
        let mut slow_unmeasured = world(&[20, 100]);
        slow_unmeasured.paths[1].rtt.smoothed = None;
        for world in [inactive, unmeasured, instant, slow_unmeasured] {
            assert_eq!(alternatives(&world), None);
        }
    }

    #[test]
    fn path_with_an_empty_flight_is_not_awaited() {
        let mut all_lost = world(&[20, 100]);
        all_lost.profile.lost_counts_until_resent = true;
        all_lost.paths[0].in_flight = bytes(0);
        all_lost.paths[0].lost_unsent = bytes(4380);
        assert_eq!(alternatives(&all_lost), None);
        let mut no_share = world(&[20, 100]);
        no_share.paths[0].in_flight = bytes(1);
        no_share.paths[0].within_share = false;
        assert_eq!(alternatives(&no_share), None);
    }

    #[test]
    fn of_equally_fast_paths_the_first_is_the_fastest() {
        let world = world(&[50, 20, 20]);
        assert_eq!(fastest(&world.view()).map(|p| p.id), Some(path(1)));
    }

    #[test]
    fn a_window_probe_waits_for_nothing() {
        let world = world(&[20, 100]);
        let probe = SendAsk { window_probe: true, ..ASK };
        assert!(Ranking::of(&world.view(), Unmeasured::First).alternatives(&probe, &world.view()).is_none());
    }
}

//! Earliest Completion First (Lim, Nahum, Towsley, Gibbens, CoNEXT 2017, Algorithm 1): when only a slower path has room, weigh
//! what is still to be sent against the time until the fastest path could take it, and wait for that if all is done sooner so.

use anabranch_core::policy::{Context, Decision, Event, Pick, Reason, Scheduler, SendAsk, Slot, View};
use anabranch_core::time::Time;

use crate::scheduler::by_rtt::{Contest, Ranking};
use crate::scheduler::min_rtt::lowest;
use crate::scheduler::{Unmeasured, window};

/// What ECF's publication and its implementation set by number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EcfRules {
    /// How much longer a wait that has begun may last (beta).
    pub beta: f64,
    /// How many RTTVAR stand for the standard deviation of a round-trip time.
    pub deviations: f64,
    /// Whether what is to be sent counts as one window at least, as in Linux.
    pub whole_windows: bool,
}

/// Waits for the fastest path if all is completed earlier so.
#[derive(Debug)]
pub struct EarliestCompletion {
    rules: EcfRules,
    /// Whether it waits already: the hysteresis of Algorithm 1.
    waiting: bool,
}

/// What Algorithm 1 finds.
#[derive(Debug)]
enum Verdict {
    /// The fast path, waited for, completes everything within this many seconds.
    Wait(f64),
    /// Even the fast path needs this many seconds.
    FastNoSooner(f64),
    /// The slow path is done before the fast one could be used twice, within this many seconds.
    SlowSoonEnough(f64),
}

impl EarliestCompletion {
    /// Not waiting yet.
    pub fn new(rules: EcfRules) -> Self {
        EarliestCompletion { rules, waiting: false }
    }

    fn weigh(&self, contest: &Contest<'_>, unassigned: f64) -> Verdict {
        let rules = self.rules;
        let (fast, slow) = (contest.fast_rtt.as_secs_f64(), contest.slow_rtt.as_secs_f64());
        let variation = contest.fast.rtt.variance.max(contest.slow.rtt.variance).unwrap_or_default();
        let delta = rules.deviations * variation.as_secs_f64();
        let windows = |of: f64| {
            let windows = unassigned / of;
            if rules.whole_windows { windows.max(1.0) } else { windows }
        };
        // First test: (1 + k/CWND_f) RTT_f < (1 + waiting beta)(RTT_s + delta).
        let by_fast = (1.0 + windows(window(contest.fast))) * fast;
        let patience = if self.waiting { 1.0 + rules.beta } else { 1.0 };
        if by_fast >= patience * (slow + delta) {
            return Verdict::FastNoSooner(by_fast);
        }
        // Second test: k/CWND_s RTT_s >= 2 RTT_f + delta.
        let by_slow = windows(window(contest.slow)) * slow;
        if by_slow >= 2.0 * fast + delta { Verdict::Wait(by_fast) } else { Verdict::SlowSoonEnough(by_slow) }
    }
}

/// What is queued and has no path, in chunk bytes, as if all chunks were like the next one.
fn unassigned(ask: &SendAsk, view: &View<'_>) -> f64 {
    let chunk = ask.chunk.get().max(1);
    let payload = chunk.saturating_sub(DATA_HEADER).max(1);
    view.association.queued_bytes as f64 * chunk as f64 / payload as f64
}

/// A DATA chunk's header (RFC 9260 section 3.3.1).
const DATA_HEADER: u64 = 16;

impl Slot for EarliestCompletion {
    fn on_event(&mut self, event: &Event<'_>, _: &View<'_>, _: &mut Context<'_>) {
        // The wait was for a path that may be another one now.
        if matches!(event, Event::PathAdded(_) | Event::PathRemoved(_)) {
            self.waiting = false;
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl Scheduler for EarliestCompletion {
    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let ranking = Ranking::of(ask, view, Unmeasured::First);
        let Some(contest) = ranking.contest(ask, view) else {
            let reason = lowest(&ranking);
            return ranking.send(reason);
        };
        match self.weigh(&contest, unassigned(ask, view)) {
            Verdict::Wait(by_fast) => {
                self.waiting = true;
                let reason = Reason::figure(
                    "the fastest path completes earlier though it is full",
                    "completion_s",
                    by_fast,
                );
                ranking.wait_for(contest.fast.id, reason)
            }
            Verdict::FastNoSooner(by_fast) => {
                self.waiting = false;
                ranking.send(Reason::figure(
                    "the fastest path would not complete earlier",
                    "completion_s",
                    by_fast,
                ))
            }
            Verdict::SlowSoonEnough(by_slow) => ranking.send(Reason::figure(
                "done before the fastest path could be used",
                "completion_s",
                by_slow,
            )),
        }
    }

    fn replan(&mut self, _: &View<'_>) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::PathState;
    use anabranch_core::policy::{Refusal, WaitFor};
    use anabranch_core::profile::Profile;
    use anabranch_core::time::Span;

    const PUBLISHED: EcfRules = EcfRules { beta: 0.25, deviations: 1.0, whole_windows: false };

    /// A fast full path and a slow one with room, both with windows of ten chunks, no variation, and `chunks` to be sent.
    fn world(fast_ms: u64, slow_ms: u64, chunks: u64) -> World {
        let mut world = World::new(Profile::rfc9260_multipath(), 2);
        for (facts, rtt) in world.paths.iter_mut().zip([fast_ms, slow_ms]) {
            facts.rtt.smoothed = Some(Span::from_millis(rtt));
            facts.cwnd = bytes(10 * M);
        }
        world.paths[0].in_flight = bytes(10 * M);
        queue(&mut world, chunks);
        world
    }

    /// Chunks of 1468 B carry 1452 B each.
    fn queue(world: &mut World, chunks: u64) {
        world.association.queued_bytes = chunks * (M - 16);
    }

    fn ecf() -> EarliestCompletion {
        EarliestCompletion::new(PUBLISHED)
    }

    fn waits(world: &mut World, scheduler: &mut EarliestCompletion) -> bool {
        match world.pick(scheduler).choice {
            Pick::Wait(WaitFor::Path(id)) if id == path(0) => true,
            Pick::Path(id) if id == path(1) => false,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_fastest_path_is_used_while_it_has_room() {
        let mut world = world(20, 100, 20);
        world.paths[0].in_flight = bytes(9 * M);
        let decision = world.pick(&mut ecf());
        assert_eq!(decision.choice, Pick::Path(path(0)));
        assert_eq!((decision.reason.figure, decision.reason.value), ("srtt_ms", 20.0));
    }

    #[test]
    fn it_waits_if_the_fast_path_completes_earlier_and_the_slow_one_is_of_no_use_meanwhile() {
        // (1 + 20/10) 20 ms = 60 ms < 100 ms, and 20/10 * 100 ms = 200 ms >= 2 * 20 ms.
        let decision = world(20, 100, 20).pick(&mut ecf());
        assert_eq!(decision.choice, Pick::Wait(WaitFor::Path(path(0))));
        assert_eq!((decision.reason.figure, decision.reason.value), ("completion_s", 0.06));
        assert_eq!(
            decision.refused.as_slice(),
            [(path(0), Refusal::WindowFull), (path(1), Refusal::Preference)]
        );
    }

    #[test]
    fn with_much_to_send_the_fast_path_alone_would_be_no_sooner() {
        // (1 + 50/10) 20 ms = 120 ms >= 100 ms.
        let decision = world(20, 100, 50).pick(&mut ecf());
        assert_eq!((decision.choice, decision.reason.value), (Pick::Path(path(1)), 0.12));
    }

    #[test]
    fn what_the_slow_path_completes_before_the_fast_one_could_is_not_held_back() {
        // (1 + 3/10) 20 ms = 26 ms < 100 ms, but 3/10 * 100 ms = 30 ms < 2 * 20 ms.
        let decision = world(20, 100, 3).pick(&mut ecf());
        assert_eq!(decision.choice, Pick::Path(path(1)));
        assert!((decision.reason.value - 0.03).abs() < 1e-12, "{:?}", decision.reason);
    }

    #[test]
    fn counting_whole_windows_a_little_data_waits_too() {
        // (1 + 1) 20 ms = 40 ms < 100 ms, and 1 * 100 ms >= 40 ms.
        let mut scheduler = EarliestCompletion::new(EcfRules { whole_windows: true, ..PUBLISHED });
        assert!(waits(&mut world(20, 100, 3), &mut scheduler));
    }

    #[test]
    fn counting_whole_windows_changes_nothing_about_more_than_one() {
        for (chunks, expected) in [(20, true), (50, false)] {
            let mut scheduler = EarliestCompletion::new(EcfRules { whole_windows: true, ..PUBLISHED });
            assert_eq!(waits(&mut world(20, 100, chunks), &mut scheduler), expected, "{chunks}");
        }
    }

    #[test]
    fn a_wait_that_has_begun_goes_on_beyond_the_point_where_it_would_begin() {
        let (mut world, mut scheduler) = (world(20, 100, 45), ecf());
        // (1 + 45/10) 20 ms = 110 ms: not below 100 ms, but below 1.25 * 100 ms.
        assert!(!waits(&mut world, &mut scheduler));
        queue(&mut world, 20);
        assert!(waits(&mut world, &mut scheduler));
        queue(&mut world, 45);
        assert!(waits(&mut world, &mut scheduler));
        // (1 + 60/10) 20 ms = 140 ms is above 125 ms too and ends it.
        queue(&mut world, 60);
        assert!(!waits(&mut world, &mut scheduler));
        queue(&mut world, 45);
        assert!(!waits(&mut world, &mut scheduler));
    }

    #[test]
    fn a_little_data_on_the_slow_path_does_not_end_the_wait() {
        let (mut world, mut scheduler) = (world(20, 100, 20), ecf());
        assert!(waits(&mut world, &mut scheduler));
        queue(&mut world, 3);
        assert!(!waits(&mut world, &mut scheduler));
        queue(&mut world, 45);
        assert!(waits(&mut world, &mut scheduler));
    }

    #[test]
    fn without_beta_there_is_no_hysteresis() {
        let mut scheduler = EarliestCompletion::new(EcfRules { beta: 0.0, ..PUBLISHED });
        let mut world = world(20, 100, 20);
        assert!(waits(&mut world, &mut scheduler));
        queue(&mut world, 45);
        assert!(!waits(&mut world, &mut scheduler));
    }

    #[test]
    fn a_change_of_paths_ends_the_wait() {
        for event in [Event::PathAdded(path(1)), Event::PathRemoved(path(1))] {
            let (mut world, mut scheduler) = (world(20, 100, 20), ecf());
            assert!(waits(&mut world, &mut scheduler));
            world.tell(&mut scheduler, &event);
            queue(&mut world, 45);
            assert!(!waits(&mut world, &mut scheduler));
        }
    }

    #[test]
    fn the_larger_variation_speaks_for_waiting_in_the_first_test() {
        // 110 ms < 100 ms + 15 ms, the larger of 5 ms and 15 ms; and 450 ms >= 40 ms + 15 ms.
        for (deviations, expected) in [(1.0, true), (0.0, false), (0.5, false)] {
            let mut scheduler = EarliestCompletion::new(EcfRules { deviations, ..PUBLISHED });
            let mut world = world(20, 100, 45);
            world.paths[0].rtt.variance = Some(Span::from_millis(5));
            world.paths[1].rtt.variance = Some(Span::from_millis(15));
            assert_eq!(waits(&mut world, &mut scheduler), expected, "{deviations}");
        }
    }

    #[test]
    fn it_speaks_against_waiting_in_the_second() {
        // 5/10 * 100 ms = 50 ms >= 40 ms, but not 40 ms + 15 ms.
        let mut world = world(20, 100, 5);
        assert!(waits(&mut world, &mut ecf()));
        world.paths[0].rtt.variance = Some(Span::from_millis(15));
        assert!(!waits(&mut world, &mut ecf()));
    }

    #[test]
    fn the_windows_of_both_paths_count() {
        // Half the window on the fast path: (1 + 20/5) 20 ms = 100 ms is not below 100 ms.
        let mut small = world(20, 100, 20);
        small.paths[0].cwnd = bytes(5 * M);
        assert!(!waits(&mut small, &mut ecf()));
        // Ten times the window on the slow path: 20/100 * 100 ms = 20 ms < 40 ms.
        let mut wide = world(20, 100, 20);
        wide.paths[1].cwnd = bytes(100 * M);
        assert!(!waits(&mut wide, &mut ecf()));
    }

    #[test]
    fn of_several_slow_paths_the_fastest_is_weighed() {
        let mut world = World::new(Profile::rfc9260_multipath(), 3);
        for (facts, rtt) in world.paths.iter_mut().zip([20, 100, 30]) {
            facts.rtt.smoothed = Some(Span::from_millis(rtt));
            facts.cwnd = bytes(10 * M);
        }
        world.paths[0].in_flight = bytes(10 * M);
        queue(&mut world, 20);
        // (1 + 20/10) 20 ms = 60 ms >= 30 ms.
        assert_eq!(world.pick(&mut ecf()).choice, Pick::Path(path(2)));
    }

    #[test]
    fn a_fast_path_that_is_not_active_or_not_measured_is_not_waited_for() {
        let mut failed = world(20, 100, 20);
        failed.paths[0].state = PathState::PotentiallyFailed;
        let mut unknown = world(20, 100, 20);
        unknown.paths[0].rtt.smoothed = None;
        for mut world in [failed, unknown] {
            assert!(!waits(&mut world, &mut ecf()));
        }
    }
}

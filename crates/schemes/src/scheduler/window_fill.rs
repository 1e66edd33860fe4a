//! CMT's scheduler as ns-2 runs it: in each send opportunity every path's window is filled in turn, beginning with the path
//! after the one that last carried new data.
//!
//! It is not packet round robin: consecutive TSNs go to one path, and in a steady state the path whose data was acknowledged
//! gets the new data.

use anabranch_core::PathId;
use anabranch_core::policy::{
    Context, Decision, Event, Pick, Reason, Refused, Scheduler, SendAsk, Slot, View, WaitFor,
};
use anabranch_core::time::Time;

use crate::scheduler::refusal;

/// Fills each path's window in turn, with a rotating start.
#[derive(Debug, Default)]
pub struct RotatingWindowFill {
    /// Where the present opportunity began.
    start: usize,
    /// How many paths it has passed over.
    passed: usize,
}

impl Slot for RotatingWindowFill {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, _: &mut Context<'_>) {
        if let Event::TurnBegins(_) = event {
            self.start = view.association.last_new_data_path.map_or(0, |p| p.index() + 1);
            self.passed = 0;
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl Scheduler for RotatingWindowFill {
    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let mut refused = Refused::new();
        let paths = view.paths.len();
        // A path that has been passed over is not visited again in this opportunity: nothing can free its window meanwhile.
        while self.passed < paths {
            let id = PathId::new((self.start + self.passed) % paths);
            match refusal(view.path(id), ask, view) {
                None => {
                    let free = view.path(id).cwnd - view.outstanding(id);
                    let reason = Reason::figure(
                        "fills the window of the path in turn",
                        "free_bytes",
                        free.get() as f64,
                    );
                    return Decision::with_refused(Pick::Path(id), reason, refused);
                }
                Some(why) => {
                    refused.push((id, why));
                    self.passed += 1;
                }
            }
        }
        Decision::with_refused(Pick::Wait(WaitFor::Window), Reason::rule("every window is full"), refused)
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
    use anabranch_core::policy::Refusal;
    use anabranch_core::profile::Profile;

    /// Sends one packet where the scheduler says; `None` if it waits.
    fn send(world: &mut World, scheduler: &mut RotatingWindowFill) -> Option<usize> {
        let Pick::Path(id) = world.pick(scheduler).choice else { return None };
        world.paths[id.index()].in_flight += bytes(M);
        world.association.last_new_data_path = Some(id);
        Some(id.index())
    }

    /// The paths of all packets that leave in one send opportunity.
    fn turn(world: &mut World, scheduler: &mut RotatingWindowFill) -> Vec<usize> {
        world.begin_turn(scheduler);
        std::iter::from_fn(|| send(world, scheduler)).collect()
    }

    #[test]
    fn one_window_is_filled_before_the_next() {
        let mut world = World::new(Profile::ns2_multipath(), 2);
        // 4380 B admit a third packet of 1468 B, because 2936 B are less than 4380 B.
        assert_eq!(turn(&mut world, &mut RotatingWindowFill::default()), [0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn the_reason_names_the_free_part_of_the_window() {
        let mut world = World::new(Profile::ns2_multipath(), 1);
        let mut scheduler = RotatingWindowFill::default();
        world.begin_turn(&mut scheduler);
        let mut free = Vec::new();
        for _ in 0..3 {
            let reason = world.pick(&mut scheduler).reason;
            assert_eq!(reason.figure, "free_bytes");
            free.push(reason.value);
            world.paths[0].in_flight += bytes(M);
        }
        assert_eq!(free, [4380.0, 2912.0, 1444.0]);
    }

    #[test]
    fn a_turn_starts_after_the_path_that_last_carried_new_data() {
        let mut world = World::new(Profile::ns2_multipath(), 3);
        let mut scheduler = RotatingWindowFill::default();
        for (last, first) in [(None, 0), (Some(path(0)), 1), (Some(path(1)), 2), (Some(path(2)), 0)] {
            world.association.last_new_data_path = last;
            world.begin_turn(&mut scheduler);
            assert_eq!(world.pick(&mut scheduler).choice, Pick::Path(path(first)), "after {last:?}");
        }
    }

    #[test]
    fn within_a_turn_the_start_stays_where_it_was() {
        let mut world = World::new(Profile::ns2_multipath(), 3);
        world.association.last_new_data_path = Some(path(0));
        assert_eq!(turn(&mut world, &mut RotatingWindowFill::default()), [1, 1, 1, 2, 2, 2, 0, 0, 0]);
    }

    #[test]
    fn in_a_steady_state_the_path_whose_data_was_acked_gets_the_new_data() {
        let mut world = World::new(Profile::ns2_multipath(), 2);
        let mut scheduler = RotatingWindowFill::default();
        turn(&mut world, &mut scheduler);
        for acked in [1, 1, 0, 1, 0, 0] {
            world.paths[acked].in_flight -= bytes(2 * M);
            assert_eq!(turn(&mut world, &mut scheduler), [acked, acked]);
        }
    }

    #[test]
    fn a_path_that_was_passed_over_is_not_visited_again_in_the_same_turn() {
        let mut world = World::new(Profile::ns2_multipath(), 2);
        let mut scheduler = RotatingWindowFill::default();
        world.paths[0].in_flight = bytes(4404);
        world.begin_turn(&mut scheduler);
        assert_eq!(send(&mut world, &mut scheduler), Some(1));
        world.paths[0].in_flight = bytes(0);
        assert_eq!(send(&mut world, &mut scheduler), Some(1));
        assert_eq!(send(&mut world, &mut scheduler), Some(1));
        assert_eq!(send(&mut world, &mut scheduler), None);
        assert_eq!(turn(&mut world, &mut scheduler), [0, 0, 0]);
    }

    #[test]
    fn paths_that_are_not_active_and_paths_without_burst_are_skipped_and_named() {
        let mut world = World::new(Profile::ns2_multipath(), 5);
        let mut scheduler = RotatingWindowFill::default();
        world.paths[0].state = PathState::PotentiallyFailed;
        world.paths[1].state = PathState::Inactive;
        world.paths[2].state = PathState::Unconfirmed;
        world.paths[3].burst_left = 0;
        world.begin_turn(&mut scheduler);
        let decision = world.pick(&mut scheduler);
        assert_eq!(decision.choice, Pick::Path(path(4)));
        let state = |index| (path(index), Refusal::State);
        assert_eq!(decision.refused.as_slice(), [state(0), state(1), state(2), (path(3), Refusal::Burst)]);
    }

    #[test]
    fn with_every_window_full_it_waits_and_says_why_of_each_path() {
        let mut world = World::new(Profile::ns2_multipath(), 3);
        let mut scheduler = RotatingWindowFill::default();
        world.paths[0].in_flight = bytes(4380);
        world.paths[1].state = PathState::Inactive;
        world.paths[1].in_flight = bytes(4380);
        world.paths[2].in_flight = bytes(5872);
        world.paths[2].burst_left = 0;
        world.association.last_new_data_path = Some(path(1));
        world.begin_turn(&mut scheduler);
        let decision = world.pick(&mut scheduler);
        assert_eq!(decision.choice, Pick::Wait(WaitFor::Window));
        // In the order of the visit; the state goes before the window, the window before the burst.
        assert_eq!(
            decision.refused.as_slice(),
            [(path(2), Refusal::WindowFull), (path(0), Refusal::WindowFull), (path(1), Refusal::State)]
        );
    }

    #[test]
    fn lost_chunks_take_room_in_the_window_only_where_the_profile_counts_them() {
        for (profile, expected) in [(Profile::ns2_multipath(), 1), (Profile::rfc9260_multipath(), 0)] {
            let counts = profile.lost_counts_until_resent;
            let mut world = World::new(profile, 2);
            let mut scheduler = RotatingWindowFill::default();
            world.paths[0].in_flight = bytes(2 * M);
            world.paths[0].lost_unsent = bytes(M);
            world.begin_turn(&mut scheduler);
            assert_eq!(send(&mut world, &mut scheduler), Some(expected), "counts: {counts}");
        }
    }
}

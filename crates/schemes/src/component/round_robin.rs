//! `round-robin`: uses the paths in turn, packet by packet.
//!
//! Uses the paths in turn, packet by packet (`mptcp_rr` of Linux MPTCP v0.9x with one segment per visit).

use anabranch_core::PathId;
use anabranch_core::policy::{
    Context, Decision, Pick, Policies, Reason, Refusal, Refused, Scheduler, SendAsk, View, WaitFor,
};

use crate::definition::{Card, Choice, Component, Equation, Role, Values};

const CARD: Card = Card {
    summary: &[
        "Each packet of new data goes to the next path with room after the one that carried the previous",
        "packet. A path without room is skipped, without compensation later.",
    ],
    equations: &[&[Equation {
        name: "mptcp_rr with num_segments = 1, cwnd_limited = Y",
        rule: "the first path with room in the order last+1, last+2, ..., last",
        file: file!(),
    }]],
    choices: &[&[Choice {
        question: "Does the rotation stop at a path without room?",
        answer: "No. Linux also fills every window by default, and stopping would leave the other paths idle.",
        parameter: "",
    }]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "round-robin",
    about: "New data packet by packet over the paths in turn",
    source: "Linux MPTCP v0.9x, mptcp_rr; Paasch et al. 2014",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: &[],
    card: CARD,
    apply,
};

fn apply(_: &Values, policies: Policies) -> Policies {
    Policies { scheduler: Box::new(RoundRobin), ..policies }
}

/// Scheduler: the next path with room after the one that carried the latest new data.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin;

ignores_events! { RoundRobin }

impl Scheduler for RoundRobin {
    copied!(Scheduler);

    fn pick(&mut self, _: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let paths = view.paths.len();
        let start = view.association.last_new_data_path.map_or(0, |path| path.index() + 1);
        let mut refused = Refused::new();
        let mut choice = None;
        for visit in 0..paths {
            let id = PathId::new((start + visit) % paths);
            match view.refusal(id) {
                None if choice.is_none() => choice = Some(id),
                None => refused.push((id, Refusal::Preference)),
                Some(why) => refused.push((id, why)),
            }
        }
        match choice {
            Some(id) => {
                Decision::with_refused(Pick::Path(id), Reason::rule("the next path in turn"), refused)
            }
            None => {
                let reason = Reason::rule("no path has room");
                Decision::with_refused(Pick::Wait(WaitFor::Window), reason, refused)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::PathState;
    use anabranch_core::profile::Profile;

    /// Returns the paths of all packets that are sent until the scheduler waits.
    fn turn(world: &mut World) -> Vec<usize> {
        std::iter::from_fn(|| {
            let Pick::Path(id) = world.pick(&mut RoundRobin).choice else { return None };
            world.paths[id.index()].in_flight += bytes(M);
            world.association.last_new_data_path = Some(id);
            Some(id.index())
        })
        .collect()
    }

    #[test]
    fn each_packet_goes_to_the_next_path() {
        let mut world = World::new(Profile::rfc9260_multipath(), 3);
        assert_eq!(turn(&mut world), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn turn_continues_at_the_end_of_the_previous_one() {
        let mut world = World::new(Profile::rfc9260_multipath(), 3);
        world.association.last_new_data_path = Some(path(1));
        assert_eq!(turn(&mut world)[..4], [2, 0, 1, 2]);
    }

    #[test]
    fn paths_without_room_are_left_out_of_the_circle() {
        let mut world = World::new(Profile::rfc9260_multipath(), 4);
        world.paths[1].state = PathState::Inactive;
        world.paths[2].in_flight = bytes(2 * M);
        // Path 2 has room for one packet, paths 0 and 3 for three: 2936 B in flight are less than 4380 B.
        assert_eq!(turn(&mut world), [0, 2, 3, 0, 3, 0, 3]);
    }

    #[test]
    fn every_other_path_is_named_with_why_it_was_not_chosen() {
        let mut world = World::new(Profile::rfc9260_multipath(), 4);
        world.paths[0].state = PathState::Unconfirmed;
        world.paths[1].burst_left = 0;
        let decision = world.pick(&mut RoundRobin);
        assert_eq!(decision.choice, Pick::Path(path(2)));
        assert_eq!(
            decision.refused.as_slice(),
            [(path(0), Refusal::State), (path(1), Refusal::Burst), (path(3), Refusal::Preference)]
        );
    }

    #[test]
    fn with_every_window_full_it_waits() {
        let mut world = World::new(Profile::rfc9260_multipath(), 2);
        turn(&mut world);
        assert_eq!(world.pick(&mut RoundRobin).choice, Pick::Wait(WaitFor::Window));
    }
}

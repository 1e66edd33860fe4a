//! RTX-ASAP (Iyengar 2006): any active path with room. Of several, ns-2 selects one by coin flips along the list, uniform for two
//! only.

use anabranch_core::policy::{
    Context, Decision, LostChunk, Reason, Refusal, Refused, RetransmitChoice, RetransmitPath, View,
};

use crate::definition::Equation;
use crate::retransmit::{no_room, nowhere};

pub(crate) const RTX_ASAP: Equation = Equation {
    name: "RTX-ASAP",
    rule: "an active path with outstanding < cwnd; of several one by coin tosses",
    file: file!(),
};

/// Retransmits on any path with room.
#[derive(Clone, Debug, Default)]
pub struct Asap;

ignores_events! { Asap }

impl RetransmitPath for Asap {
    copied!(RetransmitPath);

    fn route(
        &mut self,
        _: &LostChunk,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) -> Decision<RetransmitChoice> {
        let mut chosen = None;
        let mut refused = Refused::new();
        for path in view.paths {
            if !path.is_active() {
                refused.push((path.id, Refusal::State));
            } else if !path.admits_retransmission() {
                refused.push((path.id, no_room(path)));
            } else if chosen.is_none() || !context.coin() {
                chosen = Some(path.id);
            }
        }
        match chosen {
            Some(id) => {
                Decision::with_refused(RetransmitChoice::Path(id), Reason::rule("has room now"), refused)
            }
            None => Decision { refused, ..nowhere() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, bytes, lost_on, path, routed};
    use anabranch_core::PathState;
    use anabranch_core::policy::{LossCause, WaitFor};
    use anabranch_core::profile::Profile;

    fn route(world: &mut World) -> Decision<RetransmitChoice> {
        world.route(&mut Asap, lost_on(0, LossCause::FastRetransmit))
    }

    #[test]
    fn the_only_path_with_room_is_chosen_and_the_others_are_named() {
        let mut world = World::new(Profile::ns2_multipath(), 4);
        world.paths[0].in_flight = bytes(4380);
        world.paths[2].state = PathState::PotentiallyFailed;
        world.paths[3].state = PathState::Inactive;
        for seed in 0..20 {
            world.reseed(seed);
            let decision = route(&mut world);
            assert_eq!(decision.choice, RetransmitChoice::Path(path(1)));
            let expected =
                [(path(0), Refusal::WindowFull), (path(2), Refusal::State), (path(3), Refusal::State)];
            assert_eq!(decision.refused.as_slice(), expected);
        }
    }

    #[test]
    fn two_paths_with_room_are_chosen_equally_often() {
        let counts = World::new(Profile::ns2_multipath(), 2).tally(|world| routed(&route(world)));
        assert!(counts.iter().all(|count| (75..=125).contains(count)), "{counts:?} of 200");
    }

    #[test]
    fn last_of_three_gets_half_and_the_first_two_a_quarter_each() {
        // Each further path replaces the candidate with probability 1/2: 1/2 * 1/2, 1/2 * 1/2, 1/2.
        let counts = World::new(Profile::ns2_multipath(), 3).tally(|world| routed(&route(world)));
        assert!((30..=70).contains(&counts[0]), "{counts:?} of 200");
        assert!((30..=70).contains(&counts[1]), "{counts:?} of 200");
        assert!((75..=125).contains(&counts[2]), "{counts:?} of 200");
    }

    #[test]
    fn exempt_packet_counts_as_room_and_spent_burst_does_not() {
        let mut world = World::new(Profile::ns2_multipath(), 2);
        world.paths[0].in_flight = bytes(4380);
        world.paths[0].exempt_packets = 1;
        world.paths[1].resend_burst_left = 0;
        assert_eq!(route(&mut world).choice, RetransmitChoice::Path(path(0)));
        world.paths[0].resend_burst_left = 0;
        assert_eq!(route(&mut world).choice, RetransmitChoice::Wait(WaitFor::Window));
    }

    #[test]
    fn without_room_anywhere_it_waits() {
        let mut world = World::new(Profile::ns2_multipath(), 2);
        world.paths[0].in_flight = bytes(4380);
        world.paths[1].state = PathState::Inactive;
        let decision = route(&mut world);
        assert_eq!(decision.choice, RetransmitChoice::Wait(WaitFor::Window));
        assert_eq!(decision.refused.as_slice(), [(path(0), Refusal::WindowFull), (path(1), Refusal::State)]);
    }
}

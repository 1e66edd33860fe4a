//! RTX-SAME (Iyengar 2006): the path of the latest transmission until it is inactive, then the next one.

use anabranch_core::PathState;
use anabranch_core::policy::{
    Context, Decision, LostChunk, Reason, Refused, RetransmitChoice, RetransmitPath, View,
};

use crate::definition::Equation;
use crate::retransmit::{if_room, nowhere};

pub(crate) const RTX_SAME: Equation = Equation {
    name: "RTX-SAME",
    rule: "the path on which it was sent, until that is out of service; then the next one",
    file: file!(),
};

/// Retransmits on the path of the latest transmission.
#[derive(Clone, Debug, Default)]
pub struct Same;

ignores_events! { Same }

impl RetransmitPath for Same {
    copied!(RetransmitPath);

    fn route(
        &mut self,
        chunk: &LostChunk,
        view: &View<'_>,
        _: &mut Context<'_>,
    ) -> Decision<RetransmitChoice> {
        let usable = |state| matches!(state, PathState::Active | PathState::PotentiallyFailed);
        let n = view.paths.len();
        let start = chunk.path.index();
        // A potentially failed path still counts as the same path, because ns-2 skips only inactive ones. But while another path is
        // active, this implementation sends nothing to a path that may have failed.
        let any_active = view.active().next().is_some();
        let next = (0..n)
            .map(|step| &view.paths[(start + step) % n])
            .find(|p| if any_active { p.is_active() } else { usable(p.state) });
        match next {
            Some(path) => if_room(path, Reason::rule("the path on which it was sent before"), Refused::new()),
            None => nowhere(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, bytes, lost_on, path};
    use anabranch_core::policy::{LossCause, Refusal, WaitFor};
    use anabranch_core::profile::Profile;

    use PathState::{Active, Inactive, PotentiallyFailed, Unconfirmed};

    /// Returns the route of a chunk lost on path 1 with paths in these states.
    fn from_the_second(states: [PathState; 3]) -> RetransmitChoice {
        let mut world = World::new(Profile::ns2_multipath(), 3);
        for (facts, state) in world.paths.iter_mut().zip(states) {
            facts.state = state;
        }
        let choices = [LossCause::FastRetransmit, LossCause::Timeout]
            .map(|cause| world.route(&mut Same, lost_on(1, cause)).choice);
        assert_eq!(choices[0], choices[1], "the cause changes nothing");
        choices[0]
    }

    #[test]
    fn a_chunk_stays_on_its_path_while_that_is_active() {
        assert_eq!(from_the_second([Active; 3]), RetransmitChoice::Path(path(1)));
        assert_eq!(from_the_second([Inactive, Active, Inactive]), RetransmitChoice::Path(path(1)));
    }

    #[test]
    fn chunk_of_an_inactive_path_moves_to_the_next() {
        assert_eq!(from_the_second([Active, Inactive, Active]), RetransmitChoice::Path(path(2)));
        assert_eq!(from_the_second([Active, Inactive, Inactive]), RetransmitChoice::Path(path(0)));
    }

    #[test]
    fn a_potentially_failed_path_keeps_its_chunks_only_if_no_path_is_active() {
        let none = [PotentiallyFailed, PotentiallyFailed, Inactive];
        assert_eq!(from_the_second(none), RetransmitChoice::Path(path(1)));
        assert_eq!(from_the_second([Active, PotentiallyFailed, Inactive]), RetransmitChoice::Path(path(0)));
    }

    #[test]
    fn without_a_path_to_send_on_it_waits() {
        assert_eq!(
            from_the_second([Inactive, Inactive, Unconfirmed]),
            RetransmitChoice::Wait(WaitFor::Window)
        );
    }

    #[test]
    fn full_window_is_awaited_unless_a_packet_is_exempt() {
        let mut world = World::new(Profile::ns2_multipath(), 2);
        world.paths[1].in_flight = bytes(4380);
        let lost = lost_on(1, LossCause::FastRetransmit);
        let decision = world.route(&mut Same, lost);
        assert_eq!(decision.choice, RetransmitChoice::Wait(WaitFor::Window));
        assert_eq!(decision.refused.as_slice(), [(path(1), Refusal::WindowFull)]);
        world.paths[1].exempt_packets = 1;
        assert_eq!(world.route(&mut Same, lost).choice, RetransmitChoice::Path(path(1)));
    }
}

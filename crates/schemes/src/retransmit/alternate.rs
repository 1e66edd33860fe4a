//! Single-path SCTP: chunks lost by time-out are retransmitted on another active path if there is one, those found by fast
//! retransmit on the same path (RFC 9260 sections 6.3.3 E4 and 6.4.1).

use anabranch_core::policy::{
    Context, Decision, LossCause, LostChunk, Reason, Refused, RetransmitChoice, RetransmitPath, View,
};

use crate::definition::Equation;
use crate::retransmit::{if_room, nowhere};

pub(crate) const ALTERNATE: Equation = Equation {
    name: "RFC 9260 sections 6.3.3 E4 and 6.4.1, retransmission",
    rule: "after a time-out on the next active path, after fast retransmit on the same path",
    file: file!(),
};

/// Retransmits after time-outs on an alternate path, otherwise on the same.
#[derive(Clone, Debug)]
pub struct Alternate {
    /// Set if fast retransmissions use the alternate path too (ns-2's `rtxToAlt_`).
    pub fast_retransmissions_too: bool,
}

ignores_events! { Alternate }

impl RetransmitPath for Alternate {
    copied!(RetransmitPath);

    fn route(
        &mut self,
        chunk: &LostChunk,
        view: &View<'_>,
        _: &mut Context<'_>,
    ) -> Decision<RetransmitChoice> {
        //= docs/rfc9260.txt#section-6.4
        //# Furthermore, when its peer is multi-homed, an endpoint SHOULD try to retransmit a chunk that timed out to an
        //# active destination transport address that is different from the last destination address to which the chunk
        //# was sent.
        //= docs/rfc9260.txt#section-6.4
        //# When its peer is multi-homed, an endpoint SHOULD send fast retransmissions to the same destination transport
        //# address to which the original data was sent.
        let away = chunk.cause == LossCause::Timeout || self.fast_retransmissions_too;
        let n = view.paths.len();
        let first = usize::from(away);
        let next =
            (first..=n).map(|step| &view.paths[(chunk.path.index() + step) % n]).find(|p| p.is_active());
        match next {
            Some(path) => {
                let moved = path.id != chunk.path;
                let rule = if moved { "an alternate path" } else { "the path on which it was sent before" };
                if_room(path, Reason::rule(rule), Refused::new())
            }
            None => nowhere(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, bytes, lost_on, path};
    use anabranch_core::PathState;
    use anabranch_core::policy::{Refusal, WaitFor};
    use anabranch_core::profile::Profile;

    const ON_TIMEOUT: Alternate = Alternate { fast_retransmissions_too: false };
    const ALWAYS: Alternate = Alternate { fast_retransmissions_too: true };

    fn route(world: &mut World, policy: Alternate, from: usize, cause: LossCause) -> RetransmitChoice {
        let mut policy = policy;
        world.route(&mut policy, lost_on(from, cause)).choice
    }

    //= docs/rfc9260.txt#section-6.4
    //= type=test
    //# Furthermore, when its peer is multi-homed, an endpoint SHOULD try to retransmit a chunk that timed out to an
    //# active destination transport address that is different from the last destination address to which the chunk was
    //# sent.
    #[test]
    fn timed_out_chunk_moves_to_the_next_active_path() {
        let mut world = World::new(Profile::rfc9260(), 3);
        world.paths[1].state = PathState::PotentiallyFailed;
        let to = [0, 1, 2].map(|from| route(&mut world, ON_TIMEOUT, from, LossCause::Timeout));
        assert_eq!(
            to,
            [
                RetransmitChoice::Path(path(2)),
                RetransmitChoice::Path(path(2)),
                RetransmitChoice::Path(path(0))
            ]
        );
    }

    //= docs/rfc9260.txt#section-6.4
    //= type=test
    //# When its peer is multi-homed, an endpoint SHOULD send fast retransmissions to the same destination transport
    //# address to which the original data was sent.
    #[test]
    fn fast_retransmission_stays_on_its_path_unless_configured() {
        let mut world = World::new(Profile::rfc9260(), 2);
        assert_eq!(
            route(&mut world, ON_TIMEOUT, 0, LossCause::FastRetransmit),
            RetransmitChoice::Path(path(0))
        );
        assert_eq!(route(&mut world, ALWAYS, 0, LossCause::FastRetransmit), RetransmitChoice::Path(path(1)));
        assert_eq!(route(&mut world, ALWAYS, 0, LossCause::Timeout), RetransmitChoice::Path(path(1)));
    }

    #[test]
    fn chunk_stays_on_its_path_without_another_active_one() {
        let mut world = World::new(Profile::rfc9260(), 2);
        world.paths[1].state = PathState::Inactive;
        assert_eq!(route(&mut world, ON_TIMEOUT, 0, LossCause::Timeout), RetransmitChoice::Path(path(0)));
        assert_eq!(route(&mut world, ALWAYS, 0, LossCause::FastRetransmit), RetransmitChoice::Path(path(0)));
        let mut single = World::new(Profile::rfc9260(), 1);
        assert_eq!(route(&mut single, ON_TIMEOUT, 0, LossCause::Timeout), RetransmitChoice::Path(path(0)));
    }

    #[test]
    fn fast_retransmission_avoids_an_inactive_path() {
        let mut world = World::new(Profile::rfc9260(), 3);
        world.paths[1].state = PathState::Inactive;
        assert_eq!(
            route(&mut world, ON_TIMEOUT, 1, LossCause::FastRetransmit),
            RetransmitChoice::Path(path(2))
        );
    }

    #[test]
    fn with_no_path_active_it_waits() {
        let mut world = World::new(Profile::rfc9260(), 2);
        world.paths[0].state = PathState::Inactive;
        world.paths[1].state = PathState::Unconfirmed;
        for cause in [LossCause::FastRetransmit, LossCause::Timeout] {
            assert_eq!(route(&mut world, ON_TIMEOUT, 0, cause), RetransmitChoice::Wait(WaitFor::Window));
        }
    }

    #[test]
    fn full_alternate_path_is_awaited_despite_room_on_the_old() {
        let mut world = World::new(Profile::rfc9260(), 2);
        world.paths[1].in_flight = bytes(4380);
        let mut policy = ON_TIMEOUT;
        let decision = world.route(&mut policy, lost_on(0, LossCause::Timeout));
        assert_eq!(decision.choice, RetransmitChoice::Wait(WaitFor::Window));
        assert_eq!(decision.refused.as_slice(), [(path(1), Refusal::WindowFull)]);
    }
}

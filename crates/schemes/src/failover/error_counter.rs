//! Path failure by error counter (RFC 9260 section 8.2).

use anabranch_core::policy::{
    Context, Decision, LivenessEffect, LivenessProof, PathFailover, Probing, Reason, View,
};
use anabranch_core::{PathId, PathState};

use crate::definition::Equation;
use crate::failover::probing;

pub(crate) const PATH_FAILURE: Equation = Equation {
    name: "RFC 9260 section 8.2, path failure",
    rule: "consecutive T3 expiries and unanswered HEARTBEATs > Path.Max.Retrans (5): the path is inactive until an \
           acknowledgement proves that it works",
    file: file!(),
};

/// Policy that keeps a path active until Path.Max.Retrans is exceeded.
#[derive(Clone, Debug, Default)]
pub struct ErrorCounter;

ignores_events! { ErrorCounter }

impl PathFailover for ErrorCounter {
    copied!(PathFailover);

    fn on_error(&mut self, path: PathId, _: bool, view: &View<'_>) -> Decision<PathState> {
        let facts = view.path(path);
        let errors = Reason::figure("consecutive errors", "errors", f64::from(facts.error_count));
        //= docs/rfc9260.txt#section-8.2
        //# When the value in the error counter exceeds the protocol parameter 'Path.Max.Retrans' of that destination
        //# address, the endpoint SHOULD mark the destination transport address as inactive, and a notification SHOULD be
        //# sent to the upper layer.
        //= docs/rfc9260.txt#section-8.3
        //# When the value of this counter exceeds the protocol parameter 'Path.Max.Retrans', the endpoint SHOULD mark the
        //# corresponding destination address as inactive if it is not so marked and SHOULD also report to the upper layer
        //# the change in reachability of this destination address.
        let failed = facts.error_count > view.profile.path_max_retrans;
        Decision::new(if failed { PathState::Inactive } else { facts.state }, errors)
    }

    fn on_proof(&mut self, _: PathId, _: LivenessProof, _: &View<'_>) -> LivenessEffect {
        LivenessEffect { state: PathState::Active, clears_errors: true }
    }

    fn probing(&self, path: PathId, view: &View<'_>) -> Probing {
        probing(view.path(path))
    }

    fn promote(&mut self, _: &View<'_>, _: &mut Context<'_>) -> Option<Decision<PathId>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, path};
    use anabranch_core::profile::Profile;

    /// Returns the state after the error that increased the counter to `errors`.
    fn after(errors: u32, state: PathState) -> PathState {
        let mut world = World::new(Profile::rfc9260(), 1);
        world.paths[0].state = state;
        world.paths[0].error_count = errors;
        let by_t3 = ErrorCounter.on_error(path(0), false, &world.view());
        assert_eq!(by_t3.reason.value, f64::from(errors));
        assert_eq!(ErrorCounter.on_error(path(0), true, &world.view()), by_t3, "a HEARTBEAT counts like T3");
        by_t3.choice
    }

    //= docs/rfc9260.txt#section-8.3
    //= type=test
    //# When the value of this counter exceeds the protocol parameter 'Path.Max.Retrans', the endpoint SHOULD mark the
    //# corresponding destination address as inactive if it is not so marked and SHOULD also report to the upper layer the
    //# change in reachability of this destination address.
    #[test]
    fn the_sixth_error_in_a_row_makes_a_path_inactive() {
        // Path.Max.Retrans is 5.
        assert_eq!([1, 2, 5].map(|errors| after(errors, PathState::Active)), [PathState::Active; 3]);
        assert_eq!([6, 7].map(|errors| after(errors, PathState::Active)), [PathState::Inactive; 2]);
    }

    #[test]
    fn an_unconfirmed_path_stays_so_until_it_fails() {
        assert_eq!(after(5, PathState::Unconfirmed), PathState::Unconfirmed);
        assert_eq!(after(6, PathState::Unconfirmed), PathState::Inactive);
    }

    #[test]
    fn the_limit_is_the_profiles() {
        let mut world = World::new(Profile { path_max_retrans: 0, ..Profile::rfc9260() }, 1);
        world.paths[0].error_count = 1;
        assert_eq!(ErrorCounter.on_error(path(0), false, &world.view()).choice, PathState::Inactive);
    }

    //= docs/rfc9260.txt#section-8.2
    //= type=test
    //# When an outstanding TSN is acknowledged or a HEARTBEAT chunk sent to that address is acknowledged with a HEARTBEAT
    //# ACK chunk, the endpoint SHOULD clear the error counter of the destination transport address to which the DATA
    //# chunk was last sent (or HEARTBEAT chunk was sent) and SHOULD also report to the upper layer when an inactive
    //# destination address is marked as active.
    //= docs/rfc9260.txt#section-8.3
    //= type=test
    //# Whenever a HEARTBEAT ACK chunk arrives, the sender SHOULD clear the error counter of the destination that the
    //# HEARTBEAT chunk was sent to.
    #[test]
    fn any_proof_brings_a_path_back_and_clears_its_errors() {
        let world = World::new(Profile::rfc9260(), 1);
        let alive = LivenessEffect { state: PathState::Active, clears_errors: true };
        for proof in [LivenessProof::Unambiguous, LivenessProof::Ambiguous, LivenessProof::Heartbeat] {
            assert_eq!(ErrorCounter.on_proof(path(0), proof, &world.view()), alive);
        }
    }

    #[test]
    fn a_path_in_good_health_is_probed_when_idle_and_any_other_at_every_rto() {
        let mut world = World::new(Profile::rfc9260(), 1);
        let mut probing = |state, error_count| {
            world.paths[0].state = state;
            world.paths[0].error_count = error_count;
            ErrorCounter.probing(path(0), &world.view())
        };
        assert_eq!(probing(PathState::Active, 0), Probing::WhenIdle);
        assert_eq!(probing(PathState::Active, 1), Probing::EveryRto);
        for state in [PathState::Unconfirmed, PathState::PotentiallyFailed, PathState::Inactive] {
            assert_eq!(probing(state, 0), Probing::EveryRto);
        }
    }

    #[test]
    fn error_counter_promotes_no_path() {
        let mut world = World::new(Profile::rfc9260(), 2);
        world.paths[0].state = PathState::PotentiallyFailed;
        world.paths[1].state = PathState::Inactive;
        assert_eq!(world.with(|view, context| ErrorCounter.promote(view, context)), None);
    }
}

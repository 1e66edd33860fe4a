//! CMT-QA's path states (Xu et al. 2013, section 6): "once timeout occurs on a path, it should be marked with an inactive status",
//! and HEARTBEATs detect its recovery.
//!
//! The potentially failed state of CMT-PF serves as this inactive status: the path gets no data and is probed at every RTO until it
//! answers. As in all schemes, it becomes inactive in the sense of RFC 9260 after too many errors.

use anabranch_core::policy::{Context, Decision, LivenessEffect, LivenessProof, PathFailover, Probing, View};
use anabranch_core::{PathId, PathState};

use crate::definition::Equation;
use crate::failover::ErrorCounter;
use crate::preset::cmt_pf::PotentiallyFailed;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "section 6",
    rule: "a path that timed out is inactive until it answers a HEARTBEAT",
    file: file!(),
}];

/// Failover: out of service after any T3 expiry, until an answer.
#[derive(Clone, Debug, Default)]
pub struct QualityAware;

ignores_events! { QualityAware }

impl PathFailover for QualityAware {
    copied!(PathFailover);

    /// Reacts only to time-outs: an unanswered HEARTBEAT increases the error counter, as in the standard.
    fn on_error(&mut self, path: PathId, by_heartbeat: bool, view: &View<'_>) -> Decision<PathState> {
        let decision = ErrorCounter.on_error(path, by_heartbeat, view);
        match decision.choice {
            PathState::Active if !by_heartbeat => {
                Decision { choice: PathState::PotentiallyFailed, ..decision }
            }
            _ => decision,
        }
    }

    fn on_proof(&mut self, path: PathId, proof: LivenessProof, view: &View<'_>) -> LivenessEffect {
        PotentiallyFailed.on_proof(path, proof, view)
    }

    fn probing(&self, path: PathId, view: &View<'_>) -> Probing {
        // A path that its estimator has withdrawn counts as inactive too, and an answer readmits it.
        if view.path(path).estimates.withdrawn {
            Probing::EveryRto
        } else {
            PotentiallyFailed.probing(path, view)
        }
    }

    fn promote(&mut self, view: &View<'_>, context: &mut Context<'_>) -> Option<Decision<PathId>> {
        PotentiallyFailed.promote(view, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, path};
    use anabranch_core::profile::Profile;

    /// Returns the state after the error that increased the counter to `errors`.
    fn after(profile: Profile, errors: u32, by_heartbeat: bool, state: PathState) -> PathState {
        let mut world = World::new(profile, 1);
        world.paths[0].state = state;
        world.paths[0].error_count = errors;
        let decision = QualityAware.on_error(path(0), by_heartbeat, &world.view());
        assert_eq!(decision.reason.value, f64::from(errors));
        decision.choice
    }

    #[test]
    fn time_out_takes_a_path_out_of_service_in_every_profile() {
        for profile in [Profile::ns2_multipath(), Profile::rfc9260_multipath()] {
            for errors in 1..=5 {
                let state = after(profile.clone(), errors, false, PathState::Active);
                assert_eq!(state, PathState::PotentiallyFailed, "{} {errors}", profile.name);
            }
            assert_eq!(after(profile, 6, false, PathState::Active), PathState::Inactive);
        }
    }

    #[test]
    fn a_heartbeat_without_answer_is_an_error_and_no_time_out() {
        let profile = Profile::ns2_multipath();
        assert_eq!(after(profile.clone(), 1, true, PathState::Active), PathState::Active);
        assert_eq!(after(profile, 6, true, PathState::Active), PathState::Inactive);
    }

    #[test]
    fn inactive_path_keeps_its_state_until_the_error_limit() {
        let profile = Profile::rfc9260_multipath;
        for state in [PathState::PotentiallyFailed, PathState::Unconfirmed, PathState::Inactive] {
            assert_eq!(after(profile(), 2, false, state), state);
            assert_eq!(after(profile(), 6, false, state), PathState::Inactive);
        }
    }

    #[test]
    fn a_path_out_of_service_is_probed_at_every_rto_until_it_answers() {
        let mut world = World::new(Profile::rfc9260_multipath(), 1);
        assert_eq!(QualityAware.probing(path(0), &world.view()), Probing::WhenIdle);
        world.paths[0].estimates.withdrawn = true;
        assert_eq!(QualityAware.probing(path(0), &world.view()), Probing::EveryRto, "withdrawn");
        world.paths[0].estimates.withdrawn = false;
        world.paths[0].state = PathState::PotentiallyFailed;
        world.paths[0].error_count = 1;
        assert_eq!(QualityAware.probing(path(0), &world.view()), Probing::EveryRto);
        let back = LivenessEffect { state: PathState::Active, clears_errors: true };
        assert_eq!(QualityAware.on_proof(path(0), LivenessProof::Heartbeat, &world.view()), back);
        let ambiguous = QualityAware.on_proof(path(0), LivenessProof::Ambiguous, &world.view());
        assert_eq!(ambiguous, LivenessEffect { state: PathState::PotentiallyFailed, clears_errors: false });
    }

    #[test]
    fn with_no_path_active_one_that_timed_out_serves() {
        let mut world = World::new(Profile::rfc9260_multipath(), 2);
        for (facts, errors) in world.paths.iter_mut().zip([2, 1]) {
            facts.state = PathState::PotentiallyFailed;
            facts.error_count = errors;
        }
        let promoted = world.with(|view, context| QualityAware.promote(view, context));
        assert_eq!(promoted.map(|decision| decision.choice), Some(path(1)));
    }
}

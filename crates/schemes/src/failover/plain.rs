//! Failure by error counter alone (RFC 9260 section 8.2).

use anabranch_core::policy::{Context, Decision, Event, Life, PathFailover, Probing, ProofOfLife, Reason, Slot, View};
use anabranch_core::time::Time;
use anabranch_core::{PathId, PathState};

use crate::failover::probing;

/// Active until Path.Max.Retrans is exceeded.
#[derive(Debug, Default)]
pub struct Plain;

impl Slot for Plain {
    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>, _: &mut Context<'_>) {}

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl PathFailover for Plain {
    fn on_error(&mut self, path: PathId, _: bool, view: &View<'_>) -> Decision<PathState> {
        let facts = view.path(path);
        let errors = Reason::figure("consecutive errors", "errors", f64::from(facts.error_count));
        let failed = facts.error_count > view.profile.path_max_retrans;
        Decision::new(if failed { PathState::Inactive } else { facts.state }, errors)
    }

    fn on_proof(&mut self, _: PathId, _: ProofOfLife, _: &View<'_>) -> Life {
        Life { state: PathState::Active, clears_errors: true }
    }

    fn probing(&self, path: PathId, view: &View<'_>) -> Probing {
        probing(view.path(path))
    }

    fn promote(&mut self, _: &View<'_>, _: &mut Context<'_>) -> Option<Decision<PathId>> {
        None
    }
}

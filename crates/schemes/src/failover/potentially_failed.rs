//! CMT-PF (Natarajan 2008, 2009): a path that times out once is not trusted with data until it answers a probe.

use anabranch_core::policy::{Context, Decision, Event, Life, PathFailover, Probing, ProofOfLife, Reason, Slot, View};
use anabranch_core::time::Time;
use anabranch_core::{PathId, PathState};

use crate::failover::probing;

/// Active, potentially failed after one error, inactive after too many.
#[derive(Debug, Default)]
pub struct PotentiallyFailed;

impl Slot for PotentiallyFailed {
    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>, _: &mut Context<'_>) {}

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl PathFailover for PotentiallyFailed {
    fn on_error(&mut self, path: PathId, _: bool, view: &View<'_>) -> Decision<PathState> {
        let facts = view.path(path);
        let errors = Reason::figure("consecutive errors", "errors", f64::from(facts.error_count));
        let state = match facts.state {
            _ if facts.error_count > view.profile.path_max_retrans => PathState::Inactive,
            // ns-2 enters the state only when the counter becomes one, so that a path which was promoted while others are
            // no better keeps sending.
            PathState::Active if facts.error_count == 1 || !view.profile.pf_at_first_error_only => {
                PathState::PotentiallyFailed
            }
            state => state,
        };
        Decision::new(state, errors)
    }

    /// An ack of a chunk that was sent more than once does not say on which path it travelled.
    fn on_proof(&mut self, path: PathId, proof: ProofOfLife, view: &View<'_>) -> Life {
        match proof {
            ProofOfLife::Unambiguous | ProofOfLife::Heartbeat => Life { state: PathState::Active, clears_errors: true },
            ProofOfLife::Ambiguous => Life { state: view.path(path).state, clears_errors: false },
        }
    }

    fn probing(&self, path: PathId, view: &View<'_>) -> Probing {
        probing(view.path(path))
    }

    /// With every path potentially failed: the one with fewest errors; of those the one that failed last; of those by coin.
    fn promote(&mut self, view: &View<'_>, context: &mut Context<'_>) -> Option<Decision<PathId>> {
        let mut best: Option<(u32, Time, PathId)> = None;
        for path in view.paths.iter().filter(|p| p.state == PathState::PotentiallyFailed) {
            let since = path.potentially_failed_since.unwrap_or(Time::ZERO);
            let better = best.is_none_or(|(errors, latest, _)| {
                path.error_count < errors
                    || (path.error_count == errors && (since > latest || (since == latest && context.coin())))
            });
            if better {
                best = Some((path.error_count, since, path.id));
            }
        }
        let (errors, _, id) = best?;
        Some(Decision::new(id, Reason::figure("fewest errors of the potentially failed", "errors", f64::from(errors))))
    }
}

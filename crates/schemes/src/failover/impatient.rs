//! A path that has not answered for some round trips gets no new data until it does, long before T3 may say that it failed:
//! what is sent into silence holds back what others carry.

use anabranch_core::policy::{
    Context, Decision, Event, Life, PathFailover, Probing, ProofOfLife, Slot, View,
};
use anabranch_core::time::{Span, Time};
use anabranch_core::{PathId, PathState};

/// Potentially failed by silence, around a policy that decides everything else.
pub struct Impatient {
    /// Decides everything else.
    pub inner: Box<dyn PathFailover>,
    /// Round trips of silence.
    pub rounds: u32,
}

impl Slot for Impatient {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.inner.on_event(event, view, context);
    }

    fn deadline(&self) -> Option<Time> {
        self.inner.deadline()
    }
}

impl PathFailover for Impatient {
    fn on_error(&mut self, path: PathId, by_heartbeat: bool, view: &View<'_>) -> Decision<PathState> {
        self.inner.on_error(path, by_heartbeat, view)
    }

    fn on_proof(&mut self, path: PathId, proof: ProofOfLife, view: &View<'_>) -> Life {
        self.inner.on_proof(path, proof, view)
    }

    fn probing(&self, path: PathId, view: &View<'_>) -> Probing {
        self.inner.probing(path, view)
    }

    fn promote(&mut self, view: &View<'_>, context: &mut Context<'_>) -> Option<Decision<PathId>> {
        self.inner.promote(view, context)
    }

    /// The round trips, four deviations (as in RTO, RFC 9260 section 6.3.1), and the longest that the peer may delay a SACK.
    fn patience(&self, path: PathId, view: &View<'_>) -> Option<Span> {
        let rtt = &view.path(path).rtt;
        let (smoothed, variance) = rtt.smoothed.zip(rtt.variance)?;
        Some(smoothed.times(u64::from(self.rounds)) + variance.times(4) + view.profile.sack_delay_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failover::PotentiallyFailed;
    use crate::testing::{World, path};
    use anabranch_core::profile::Profile;

    #[test]
    fn patience_is_some_round_trips_with_deviations_and_the_delay_of_a_sack() {
        let policy = Impatient { inner: Box::new(PotentiallyFailed), rounds: 3 };
        let mut world = World::new(Profile::net_multipath(), 2);
        assert_eq!(policy.patience(path(0), &world.view()), None, "nothing was measured");
        world.paths[0].rtt.smoothed = Some(Span::from_millis(20));
        world.paths[0].rtt.variance = Some(Span::from_millis(5));
        assert_eq!(policy.patience(path(0), &world.view()), Some(Span::from_millis(60 + 20 + 50)));
    }
}

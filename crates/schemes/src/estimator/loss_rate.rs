//! Share of a path's transmissions that were declared lost.
//!
//! ns-2's RTX-LOSSRATE reads the link's true loss rate from the script. A real sender has to measure it.

use anabranch_core::policy::{
    Context, Estimates, Event, EventKind, EventSet, PathEstimator, PathFacts, Slot, View,
};
use anabranch_core::profile::Profile;
use anabranch_core::{MAX_PATHS, PathId};

/// Bytes lost divided by bytes sent, since the path exists.
#[derive(Clone, Debug, Default)]
pub struct MeasuredLossRate {
    rates: [Option<f64>; MAX_PATHS],
}

impl MeasuredLossRate {
    fn measure(&mut self, facts: &PathFacts) {
        if !facts.sent.is_zero() {
            self.rates[facts.id.index()] = Some(facts.lost.get() as f64 / facts.sent.get() as f64);
        }
    }
}

impl Slot for MeasuredLossRate {
    fn events(&self, _: &Profile) -> EventSet {
        EventSet::of(&[EventKind::PathAdded, EventKind::Lost, EventKind::SackDone])
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, _: &mut Context<'_>) {
        match *event {
            Event::PathAdded(path) => self.rates[path.index()] = None,
            Event::Lost { path, .. } => self.measure(view.path(path)),
            Event::SackDone(done) => {
                let acked = view.paths.iter().zip(done.paths).filter(|(_, ack)| !ack.newly_acked().is_zero());
                acked.for_each(|(facts, _)| self.measure(facts));
            }
            _ => {}
        }
    }
}

impl PathEstimator for MeasuredLossRate {
    copied!(PathEstimator);

    fn estimates(&self, path: PathId) -> Estimates {
        Estimates { loss_rate: self.rates[path.index()], ..Estimates::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::policy::{LossCause, PathAck, SackDone};
    use anabranch_core::profile::Profile;
    use anabranch_core::time::Time;

    fn lost(index: usize) -> Event<'static> {
        Event::Lost {
            path: path(index),
            tsn: 5,
            bytes: bytes(M),
            sent_at: Time::default(),
            cause: LossCause::FastRetransmit,
        }
    }

    /// Processes a SACK that acknowledges a chunk of one path.
    fn sack(world: &mut World, estimator: &mut MeasuredLossRate, index: usize) {
        let mut paths = [PathAck::default(); 2];
        paths[index].cumulative = bytes(M);
        let done = SackDone { paths: &paths, new_cumulative: true, cumulative: 5 };
        world.dispatch(estimator, &Event::SackDone(&done));
    }

    /// Returns a world in which path 0 has lost 2 of the 8 chunks that it sent.
    fn two_of_eight() -> World {
        let mut world = World::new(Profile::ns2_multipath(), 2);
        world.paths[0].sent = bytes(8 * M);
        world.paths[0].lost = bytes(2 * M);
        world
    }

    #[test]
    fn loss_rate_is_unknown_before_an_ack_or_a_loss() {
        let mut world = two_of_eight();
        let mut estimator = MeasuredLossRate::default();
        world.begin_send_opportunity(&mut estimator);
        assert_eq!(estimator.estimates(path(0)).loss_rate, None);
    }

    #[test]
    fn the_rate_is_bytes_lost_over_bytes_sent() {
        let mut world = two_of_eight();
        let mut estimator = MeasuredLossRate::default();
        world.dispatch(&mut estimator, &lost(0));
        assert_eq!(estimator.estimates(path(0)).loss_rate, Some(0.25));
        assert_eq!(estimator.estimates(path(1)).loss_rate, None);
    }

    #[test]
    fn acks_bring_the_rate_down_as_more_is_sent() {
        let mut world = two_of_eight();
        let mut estimator = MeasuredLossRate::default();
        world.dispatch(&mut estimator, &lost(0));
        world.paths[0].sent = bytes(16 * M);
        assert_eq!(estimator.estimates(path(0)).loss_rate, Some(0.25));
        sack(&mut world, &mut estimator, 0);
        assert_eq!(estimator.estimates(path(0)).loss_rate, Some(0.125));
    }

    #[test]
    fn a_path_that_delivers_all_has_rate_zero() {
        let mut world = two_of_eight();
        let mut estimator = MeasuredLossRate::default();
        world.paths[1].sent = bytes(M);
        sack(&mut world, &mut estimator, 1);
        assert_eq!(estimator.estimates(path(1)).loss_rate, Some(0.0));
    }

    #[test]
    fn a_path_that_sent_nothing_has_no_rate() {
        let mut world = World::new(Profile::ns2_multipath(), 1);
        let mut estimator = MeasuredLossRate::default();
        world.dispatch(&mut estimator, &lost(0));
        assert_eq!(estimator.estimates(path(0)).loss_rate, None);
    }

    #[test]
    fn a_new_path_under_an_old_id_begins_without_a_rate() {
        let mut world = two_of_eight();
        world.paths[1] = anabranch_core::policy::PathFacts { id: path(1), ..world.paths[0] };
        let mut estimator = MeasuredLossRate::default();
        world.dispatch(&mut estimator, &lost(0));
        world.dispatch(&mut estimator, &lost(1));
        world.dispatch(&mut estimator, &Event::PathAdded(path(0)));
        assert_eq!(estimator.estimates(path(0)).loss_rate, None);
        assert_eq!(estimator.estimates(path(1)).loss_rate, Some(0.25));
    }
}

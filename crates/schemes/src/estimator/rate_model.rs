//! Model of each path that several slots read: its bottleneck rate, its round-trip time without queues, and its current queueing
//! delay (the "max bandwidth" and "minimum round-trip time" of draft-ietf-ccwg-bbr section 2).
//!
//! The estimator's slot handles every event first. Therefore congestion control, schedulers and loss detection see the same state
//! after the event, in [`PathFacts::estimates`](anabranch_core::policy::PathFacts).

use anabranch_core::policy::{
    Context, DeliverySample, Estimates, Event, EventKind, EventSet, PathEstimator, PathFacts, Slot, View,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::ChunkBytes;
use anabranch_core::windowed::WindowedMax;
use anabranch_core::{MAX_PATHS, PathId, PathSet};

/// Number of round trips for which a rate counts, since the path may become slower. BBR version 1 uses 10.
pub const RATE_ROUNDS: u64 = 10;

/// Model of one path.
#[derive(Clone, Copy, Debug, Default)]
struct Model {
    rate: WindowedMax<Rate>,
    rounds: u64,
    /// Delivered bytes at the end of the round: the round ends when a packet is acknowledged that was sent after this many.
    round_ends_at: ChunkBytes,
    queueing: Option<Span>,
}

impl Model {
    fn take(&mut self, sample: &DeliverySample, facts: &PathFacts, rate_rounds: u64) {
        if sample.stamps.delivered >= self.round_ends_at {
            self.rounds += 1;
            self.round_ends_at = facts.delivered;
        }
        // If something other than congestion control limited the sender, the path may be faster than the sample, but not slower.
        let counts = |rate: &Rate| {
            sample.limiter().is_congestion_control() || self.rate.get().is_none_or(|most| *rate >= most)
        };
        if let Some(rate) = sample.rate.filter(counts) {
            self.rate.update(self.rounds, rate, rate_rounds);
        }
        if let (Some(rtt), Some(least)) = (sample.rtt, facts.rtt.recent_min) {
            self.queueing = Some(rtt - least);
        }
    }
}

/// Estimator that adds the model to the figures of another estimator.
pub struct RateModel {
    inner: Box<dyn PathEstimator>,
    rate_rounds: u64,
    models: [Model; MAX_PATHS],
    propagation: [Option<Span>; MAX_PATHS],
}

impl RateModel {
    /// Wraps an estimator, whose figures are published too, with a memory of [`RATE_ROUNDS`].
    pub fn new(inner: Box<dyn PathEstimator>) -> Self {
        RateModel {
            inner,
            rate_rounds: RATE_ROUNDS,
            models: [Model::default(); MAX_PATHS],
            propagation: [None; MAX_PATHS],
        }
    }

    /// Sets another memory, in round trips.
    pub fn with_rate_rounds(self, rate_rounds: u64) -> Self {
        RateModel { rate_rounds, ..self }
    }
}

impl Slot for RateModel {
    fn events(&self, profile: &Profile) -> EventSet {
        EventSet::of(&[EventKind::PathAdded, EventKind::PathRebound, EventKind::SackDone])
            .union(self.inner.events(profile))
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.inner.on_event(event, view, context);
        match event {
            Event::PathAdded(path) | Event::PathRebound(path) => {
                self.models[path.index()] = Model::default();
                self.propagation[path.index()] = None;
            }
            Event::SackDone(done) => {
                for (facts, ack) in view.paths.iter().zip(done.paths) {
                    self.propagation[facts.id.index()] = facts.rtt.recent_min;
                    if let Some(sample) = &ack.sample {
                        self.models[facts.id.index()].take(sample, facts, self.rate_rounds);
                    }
                }
            }
            _ => {}
        }
    }

    forward! { inner:
        fn deadline(&self) -> Option<Time>;
    }
}

impl PathEstimator for RateModel {
    fn copied(&self) -> Option<Box<dyn PathEstimator>> {
        Some(Box::new(RateModel { inner: self.inner.copied()?, ..*self }))
    }

    fn estimates(&self, path: PathId) -> Estimates {
        let model = &self.models[path.index()];
        Estimates {
            bottleneck_rate: model.rate.get(),
            propagation: self.propagation[path.index()],
            queueing: model.queueing,
            rounds: model.rounds,
            ..self.inner.estimates(path)
        }
    }

    forward! { inner:
        fn probes(&mut self, view: &View<'_>) -> PathSet;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimator::MeasuredLossRate;
    use crate::testing::{World, bytes, path};
    use anabranch_core::policy::{Limiter, PathAck, SackDone, SendStamps};
    use anabranch_core::profile::Profile;

    struct Rig {
        world: World,
        model: RateModel,
    }

    impl Rig {
        fn new() -> Self {
            let mut world = World::new(Profile::rfc9260(), 1);
            world.paths[0].rtt.recent_min = Some(Span::from_millis(40));
            let mut model = RateModel::new(Box::new(MeasuredLossRate::default()));
            world.dispatch(&mut model, &Event::PathAdded(path(0)));
            Rig { world, model }
        }

        /// Processes a SACK. Its sample has this rate and limiter, and was sent when `delivered` bytes had been delivered.
        fn sample(&mut self, kbps: u64, limiter: Limiter, delivered: u64) -> Estimates {
            let stamps = SendStamps { delivered: bytes(delivered), limiter, ..SendStamps::default() };
            self.world.paths[0].delivered = bytes(delivered + 10_000);
            let sample = DeliverySample {
                stamps,
                delivered: bytes(10_000),
                send_elapsed: Span::from_millis(50),
                ack_elapsed: Span::from_millis(50),
                lost: ChunkBytes::ZERO,
                rtt: Some(Span::from_millis(50)),
                rate: Some(Rate::from_bps(kbps * 1_000)),
            };
            let ack = PathAck { sample: Some(sample), ..PathAck::default() };
            let done = SackDone { paths: &[ack], new_cumulative: true, cumulative: 9 };
            self.world.dispatch(&mut self.model, &Event::SackDone(&done));
            self.model.estimates(path(0))
        }
    }

    fn kbps(estimates: Estimates) -> Option<u64> {
        estimates.bottleneck_rate.map(|rate| rate.as_bps() / 1_000)
    }

    #[test]
    fn the_rate_is_the_largest_of_its_rounds() {
        let mut rig = Rig::new();
        assert_eq!(kbps(rig.sample(8_000, Limiter::Window, 0)), Some(8_000));
        for round in 1..=10 {
            assert_eq!(kbps(rig.sample(5_000, Limiter::Pacing, round * 10_000)), Some(8_000), "{round}");
        }
        let estimates = rig.sample(5_000, Limiter::Window, 110_000);
        assert_eq!((kbps(estimates), estimates.rounds), (Some(5_000), 12));
    }

    #[test]
    fn limited_rate_sample_never_lowers_the_estimate() {
        let mut rig = Rig::new();
        rig.sample(8_000, Limiter::Window, 0);
        for round in 1..=30 {
            assert_eq!(kbps(rig.sample(100, Limiter::Application, round * 10_000)), Some(8_000));
        }
        assert_eq!(kbps(rig.sample(9_000, Limiter::PeerWindow, 400_000)), Some(9_000));
    }

    #[test]
    fn the_round_trip_beyond_the_least_one_is_queue() {
        let estimates = Rig::new().sample(8_000, Limiter::Window, 0);
        assert_eq!(estimates.propagation, Some(Span::from_millis(40)));
        assert_eq!(estimates.queueing, Some(Span::from_millis(10)));
    }

    #[test]
    fn several_samples_of_a_round_are_one_round() {
        let mut rig = Rig::new();
        rig.sample(8_000, Limiter::Window, 0);
        rig.sample(8_000, Limiter::Window, 5_000);
        assert_eq!(rig.sample(8_000, Limiter::Window, 9_999).rounds, 1);
        assert_eq!(rig.sample(8_000, Limiter::Window, 19_999).rounds, 2);
    }
}

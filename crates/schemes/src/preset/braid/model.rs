//! Model of each path for all slots: delivery rate, round-trip time without queues, and queue.
//!
//! [`RateModel`](crate::estimator::RateModel) keeps the maximum rate until congestion control itself limits the path. This model
//! forgets with time: if the receive window is the limit, that may never happen, and an old rate becomes obsolete.

use anabranch_core::policy::{
    Context, DeliverySample, Estimates, Event, EventKind, EventSet, PathEstimator, PathFacts, Slot, View,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::windowed::WindowedMax;
use anabranch_core::{MAX_PATHS, PathId, PathSet};

use crate::definition::{Equation, text};
use crate::preset::braid::path_probe::PathProbe;
use crate::preset::braid::round_trips::{self, RoundTrips};
use crate::preset::braid::sack_wait::SackWait;
use crate::preset::braid::shortfall::Shortfall;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "rate",
    rule: text!(
        "maximum delivery rate of the last max({} SRTT, {}), independently of the path's limit; if the SACK \
         returned on another path, the interval of a sample may be as short as the base",
        MEMORY_ROUNDS,
        LEAST_MEMORY,
    ),
    file: file!(),
}];

/// BBR's memory of rates (BBRv1, BtlBwFilterLen), in round trips.
const MEMORY_ROUNDS: u64 = 10;
/// Minimum memory: on a short path, ten round trips contain too few packets to show the rate.
const LEAST_MEMORY: Span = Span::from_secs(1);

/// Estimator that adds the model to the figures of another estimator.
pub struct PathModel {
    inner: Box<dyn PathEstimator>,
    rates: [WindowedMax<Rate>; MAX_PATHS],
    /// Maximum rates within the memory of round-trip times.
    largest_rates: [WindowedMax<Rate>; MAX_PATHS],
    trips: [RoundTrips; MAX_PATHS],
    path_probes: [PathProbe; MAX_PATHS],
    waits: SackWait,
    /// `None` if the paths are not supervised.
    shortfall: Option<Shortfall>,
    /// Paths whose probes have become due and were not requested yet.
    due: PathSet,
}

impl PathModel {
    /// Wraps an estimator, whose other figures are published too. If `supervised`, a path that reduces the goodput is withdrawn.
    pub fn new(inner: Box<dyn PathEstimator>, supervised: bool) -> Self {
        PathModel {
            inner,
            rates: [WindowedMax::default(); MAX_PATHS],
            largest_rates: [WindowedMax::default(); MAX_PATHS],
            trips: Default::default(),
            path_probes: [PathProbe::default(); MAX_PATHS],
            waits: SackWait::default(),
            shortfall: supervised.then(Shortfall::default),
            due: PathSet::EMPTY,
        }
    }
}

fn memory(facts: &PathFacts) -> Span {
    facts.rtt.smoothed.unwrap_or_default().times(MEMORY_ROUNDS).max(LEAST_MEMORY)
}

/// Returns the rate of a sample. Core rejects an interval below the minimum RTT of chunks whose SACK returned on their own path. If
/// SACKs return on a faster path, every interval is shorter than that, and the base over all return paths is the bound.
fn delivery_rate(sample: &DeliverySample, base: Option<Span>) -> Option<Rate> {
    let interval = sample.interval();
    let returned_on_another_path = sample.rtt.is_none();
    let is_plausible =
        returned_on_another_path && !interval.is_zero() && base.is_some_and(|base| interval >= base);
    let of_interval = || sample.delivered.get().saturating_mul(8_000_000_000) / interval.as_nanos();
    sample.rate.or_else(|| is_plausible.then(|| Rate::from_bps(of_interval())))
}

impl Slot for PathModel {
    fn events(&self, profile: &Profile) -> EventSet {
        EventSet::of(&[
            EventKind::PathAdded,
            EventKind::PathRebound,
            EventKind::PathState,
            EventKind::Sent,
            EventKind::Acked,
            EventKind::SackDone,
            EventKind::Deadline,
        ])
        .union(self.inner.events(profile))
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.inner.on_event(event, view, context);
        match event {
            Event::PathAdded(path) | Event::PathRebound(path) => {
                self.rates[path.index()] = WindowedMax::default();
                self.largest_rates[path.index()] = WindowedMax::default();
                self.trips[path.index()] = RoundTrips::default();
                self.trips.iter_mut().for_each(|trips| trips.discard_return_samples(*path));
            }
            Event::Acked(acked) if acked.certain => {
                let time = view.now.since(acked.stamps.sent_at);
                let waited = self.waits.acked(acked.path, acked.sack_path, view.now);
                self.trips[acked.path.index()].take(time, acked.sack_path, waited, view.now);
            }
            Event::SackDone(done) => {
                for (facts, ack) in view.paths.iter().zip(done.paths) {
                    self.trips[facts.id.index()].forget_old(view.now);
                    let base = self.trips[facts.id.index()].base();
                    let Some(rate) = ack.sample.and_then(|sample| delivery_rate(&sample, base)) else {
                        continue;
                    };
                    let window = memory(facts).as_nanos();
                    self.rates[facts.id.index()].update(view.now.as_nanos(), rate, window);
                    let window = round_trips::MEMORY.as_nanos();
                    self.largest_rates[facts.id.index()].update(view.now.as_nanos(), rate, window);
                }
            }
            Event::Deadline => {
                for facts in view.paths {
                    if self.path_probes[facts.id.index()].is_due(view.now) {
                        self.due.insert(facts.id);
                    }
                }
            }
            Event::PathState { path, to, .. } => {
                self.path_probes[path.index()].changed(*to, view.path(*path), view.now);
            }
            _ => {}
        }
        if let Some(shortfall) = &mut self.shortfall {
            shortfall.on_event(event, view);
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.path_probes.iter().filter_map(PathProbe::due).chain(self.inner.deadline()).min()
    }
}

impl PathEstimator for PathModel {
    fn copied(&self) -> Option<Box<dyn PathEstimator>> {
        Some(Box::new(PathModel {
            inner: self.inner.copied()?,
            trips: self.trips.clone(),
            shortfall: self.shortfall.clone(),
            ..*self
        }))
    }

    fn estimates(&self, path: PathId) -> Estimates {
        let trips = &self.trips[path.index()];
        Estimates {
            bottleneck_rate: self.rates[path.index()].get(),
            propagation: trips.base(),
            queueing: trips.queue(),
            queueing_limit: trips.queue_limit(),
            longest_queueing: trips.longest_queue(),
            largest_rate: self.largest_rates[path.index()].get(),
            withdrawn: self.shortfall.as_ref().is_some_and(|each| each.withdrawn().contains(path)),
            ..self.inner.estimates(path)
        }
    }

    fn probes(&mut self, view: &View<'_>) -> PathSet {
        let mut paths = self.inner.probes(view);
        for path in std::mem::take(&mut self.due).iter() {
            paths.insert(path);
        }
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimator::MeasuredLossRate;
    use crate::testing::{World, bytes, path};
    use anabranch_core::policy::{Limiter, PathAck, SackDone, SendStamps};
    use anabranch_core::profile::Profile;
    use anabranch_core::units::ChunkBytes;

    fn measure(world: &mut World, estimator: &mut PathModel, ms: u64, kbps: u64) -> Option<u64> {
        world.now = Time::from_nanos(ms * 1_000_000);
        let sample = DeliverySample {
            stamps: SendStamps { limiter: Limiter::PeerWindow, ..SendStamps::default() },
            delivered: bytes(10_000),
            send_elapsed: Span::from_millis(50),
            ack_elapsed: Span::from_millis(50),
            lost: ChunkBytes::ZERO,
            rtt: None,
            rate: Some(Rate::from_bps(kbps * 1000)),
        };
        let ack = PathAck { sample: Some(sample), ..PathAck::default() };
        let done = SackDone { paths: &[ack], new_cumulative: true, cumulative: 9 };
        world.dispatch(estimator, &Event::SackDone(&done));
        estimator.estimates(path(0)).bottleneck_rate.map(|rate| rate.as_bps() / 1000)
    }

    #[test]
    fn sample_that_returned_on_a_faster_path_counts_from_the_base_on() {
        let ms = Span::from_millis;
        let sample = |interval: u64, rtt: Option<Span>| DeliverySample {
            stamps: SendStamps::default(),
            delivered: bytes(10_000),
            send_elapsed: ms(0),
            ack_elapsed: ms(interval),
            lost: ChunkBytes::ZERO,
            rtt,
            rate: None,
        };
        for (interval, rtt, kbps) in
            [(80, None, Some(1_000)), (79, None, None), (80, Some(ms(80)), None), (0, None, None)]
        {
            let rate = delivery_rate(&sample(interval, rtt), Some(ms(80)));
            assert_eq!(rate.map(|rate| rate.as_bps() / 1_000), kbps, "{interval} {rtt:?}");
        }
        assert_eq!(delivery_rate(&sample(80, None), None), None);
    }

    #[test]
    fn largest_recent_rate_counts_and_expires_on_any_limited_path() {
        let mut world = World::new(Profile::rfc9260(), 1);
        world.paths[0].rtt.smoothed = Some(Span::from_millis(200));
        let mut estimator = PathModel::new(Box::new(MeasuredLossRate::default()), true);
        let mut rate = |ms, kbps| measure(&mut world, &mut estimator, ms, kbps);
        assert_eq!(rate(0, 8_000), Some(8_000));
        assert_eq!(rate(1_900, 3_000), Some(8_000), "ten round trips are two seconds");
        assert_eq!(rate(2_100, 2_000), Some(3_000));
    }
}

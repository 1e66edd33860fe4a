//! Growth by the difference between the expected and the actual rate, as in A-CMT (Verma, Kumar 2017) and in DB-CMT's D-DSP
//! (equations 1 to 4). TCP Vegas decides by the same figure.

use anabranch_core::policy::{Event, Reason, RttFacts, View, Window};
use anabranch_core::time::Span;
use anabranch_core::units::ChunkBytes;

use crate::congestion::growth::standard::{slow_start, spend_window};
use crate::congestion::{Acknowledged, Change, Growth};
use crate::registry::Length;

/// Which round-trip time stands for a path's present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttSource {
    /// The smoothed one.
    Smoothed,
    /// The latest sample.
    Latest,
}

impl RttSource {
    /// The path's present and its least round-trip time in seconds; `None` before the first sample.
    pub fn with_least(self, rtt: &RttFacts) -> Option<(f64, f64)> {
        let present = match self {
            RttSource::Smoothed => rtt.smoothed,
            RttSource::Latest => rtt.latest,
        };
        let (present, least) = (present.filter(|rtt| !rtt.is_zero())?, rtt.min?);
        Some((present.as_secs_f64(), Span::min(least, present).as_secs_f64()))
    }
}

/// DB-CMT equations 1 to 3: D = (cwnd / RTTmin - cwnd / RTT) RTTmin = cwnd (1 - RTTmin / RTT), the bytes that the path holds
/// beyond what its least delay explains. Nothing is known to be held before the first sample.
pub fn rate_difference(cwnd: ChunkBytes, rtt: &RttFacts, source: RttSource) -> f64 {
    source.with_least(rtt).map_or(0.0, |(present, least)| cwnd.get() as f64 * (1.0 - least / present))
}

/// When equation 4 takes the place of the standard's growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    /// In congestion avoidance, once per window acknowledged, where the standard would add one chunk.
    Avoidance,
    /// At every SACK that lets the window grow, in slow start and congestion avoidance alike.
    EverySack,
}

/// DB-CMT equation 4.
#[derive(Debug)]
pub struct RateDifferenceGrowth {
    /// Below this difference the window grows by one chunk.
    pub lambda: Length,
    /// Above this one not at all, and between by half a chunk.
    pub delta: Length,
    /// The path's present round-trip time.
    pub rtt: RttSource,
    /// When it applies.
    pub applies: Applies,
}

impl RateDifferenceGrowth {
    /// The step of equation 4. It leaves equality open: a difference that equals a threshold is between the two.
    fn step(&self, difference: f64, largest: ChunkBytes) -> (ChunkBytes, &'static str) {
        if difference < self.lambda.bytes(largest) {
            (largest, "a light load: one chunk")
        } else if difference <= self.delta.bytes(largest) {
            (largest.over(2), "a moderate load: half a chunk")
        } else {
            (ChunkBytes::ZERO, "a heavy load: no growth")
        }
    }
}

impl Growth for RateDifferenceGrowth {
    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>) {}

    fn grow(&mut self, acknowledged: &Acknowledged<'_>) -> Option<Change> {
        let (window, facts) = (acknowledged.window(), acknowledged.facts());
        let spent = match self.applies {
            Applies::EverySack => Window { partial_bytes_acked: ChunkBytes::ZERO, ..window },
            Applies::Avoidance => {
                let change = slow_start(window, acknowledged.bytes, acknowledged.slow_start_limit());
                if change.is_some() {
                    return change;
                }
                spend_window(window)?
            }
        };
        let difference = rate_difference(window.cwnd, &facts.rtt, self.rtt);
        let (step, rule) = self.step(difference, facts.largest_chunk);
        Some(Change {
            window: Window { cwnd: window.cwnd + step, ..spent },
            reason: Reason::figure(rule, "rate_difference_bytes", difference),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{grow, grown, paths};
    use crate::testing::{M, World, bytes};

    fn rule() -> RateDifferenceGrowth {
        RateDifferenceGrowth {
            lambda: Length::Chunks(1.0),
            delta: Length::Chunks(3.0),
            rtt: RttSource::Smoothed,
            applies: Applies::Avoidance,
        }
    }

    /// One path with a window in bytes, a present and a least round-trip time in milliseconds.
    fn one(cwnd: u64, present: u64, least: u64) -> World {
        let mut world = paths(&[(cwnd, present)]);
        world.paths[0].rtt.min = Some(Span::from_millis(least));
        world
    }

    #[test]
    fn the_difference_is_the_window_times_what_queueing_adds() {
        let of = |cwnd, present, least| {
            rate_difference(bytes(cwnd), &one(cwnd, present, least).paths[0].rtt, RttSource::Smoothed)
        };
        // 20,000 x (1 - 100/120) = 3333.3; with an empty queue 0; with a queue as long as the path 10,000.
        assert!((of(20_000, 120, 100) - 20_000.0 / 6.0).abs() < 1e-9);
        assert_eq!([of(20_000, 100, 100), of(20_000, 200, 100)], [0.0, 10_000.0]);
    }

    #[test]
    fn what_is_not_measured_makes_no_difference() {
        let mut world = one(20_000, 120, 100);
        let rtt = world.paths[0].rtt;
        assert_eq!(rate_difference(bytes(20_000), &rtt, RttSource::Latest), 0.0);
        assert_eq!(rate_difference(bytes(20_000), &RttFacts { min: None, ..rtt }, RttSource::Smoothed), 0.0);
        world.paths[0].rtt.smoothed = Some(Span::ZERO);
        assert_eq!(rate_difference(bytes(20_000), &world.paths[0].rtt, RttSource::Smoothed), 0.0);
        world.paths[0].rtt = RttFacts { smoothed: Some(Span::from_millis(50)), min: rtt.min, ..rtt };
        assert_eq!(rate_difference(bytes(20_000), &world.paths[0].rtt, RttSource::Smoothed), 0.0);
    }

    #[test]
    fn a_light_load_adds_a_chunk_a_moderate_one_half_and_a_heavy_one_nothing() {
        // With RTT = 200 ms and RTTmin = 100 ms, D is half the window. lambda = 1468 and delta = 4404; equality is between.
        let cases = [(2935, M), (2936, 734), (2938, 734), (8806, 734), (8808, 734), (8809, 0), (20_000, 0)];
        for (cwnd, step) in cases {
            let mut world = one(cwnd, 200, 100);
            assert_eq!(grown(&mut rule(), &mut world, 0, cwnd + 5), (cwnd + step, 5), "window {cwnd}");
        }
    }

    #[test]
    fn nothing_happens_before_a_window_is_acknowledged() {
        assert_eq!(grown(&mut rule(), &mut one(5000, 200, 100), 0, 4999), (5000, 4999));
    }

    #[test]
    fn slow_start_is_the_standards_unless_the_rule_applies_to_every_sack() {
        let mut world = one(20_000, 200, 100);
        world.paths[0].ssthresh = bytes(65_536);
        let change = grow(&mut rule(), &world, 0, 2936).expect("growth");
        assert_eq!((change.window.cwnd.get(), change.reason.rule), (20_000 + M, "slow start"));
        let mut every = RateDifferenceGrowth { applies: Applies::EverySack, ..rule() };
        assert_eq!(grown(&mut every, &mut world, 0, 2936), (20_000, 0), "a heavy load");
        let mut world = one(5000, 200, 100);
        assert_eq!(grown(&mut every, &mut world, 0, 700), (5734, 0), "a moderate load");
        assert_eq!(grown(&mut every, &mut one(2000, 200, 100), 0, 700), (3468, 0), "a light load");
    }

    #[test]
    fn thresholds_are_lengths_and_the_round_trip_time_may_be_the_latest() {
        let mut world = one(20_000, 200, 100);
        world.paths[0].rtt.latest = Some(Span::from_millis(125));
        // 20,000 x (1 - 100/125) = 4000.
        let with = |lambda, delta| RateDifferenceGrowth {
            lambda: Length::Bytes(lambda),
            delta: Length::Bytes(delta),
            rtt: RttSource::Latest,
            ..rule()
        };
        let step = |lambda, delta| {
            let change =
                grow(&mut with(lambda, delta), &world, 0, 20_000).expect("a window was acknowledged");
            assert!((change.reason.value - 4000.0).abs() < 1e-9);
            change.window.cwnd.get() - 20_000
        };
        assert_eq!([step(4001, 9000), step(1000, 4001), step(1000, 3999)], [M, M / 2, 0]);
        world.paths[0].rtt.latest = None;
        assert_eq!(grown(&mut with(1000, 3999), &mut world, 0, 20_000).0, 20_000 + M, "not measured");
    }
}

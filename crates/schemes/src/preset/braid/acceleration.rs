//! Faster growth in delay mode while the queue of a path stays empty.
//!
//! A window in full use without a queue is smaller than the path's capacity. Along CUBIC's curve it needs many seconds to follow a
//! capacity that has risen by several times, as that of mobile networks does. As Copa's velocity, the growth doubles in each round.
//!
//! Beside a flow that reduces its window at losses, an empty queue is no sign of spare capacity: both flows are recovering. A loss
//! therefore suspends the acceleration, unless the queue was longer than the base round trip. Flows that halve their windows do not
//! empty such a queue.

use anabranch_core::time::{Span, Time};

use crate::definition::{Equation, text};
use crate::preset::braid::drain::LEAST_PACKETS;
use crate::preset::braid::mode::Round;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "Copa, velocity",
    rule: text!(
        "delay mode: after {} rounds in a row with the window in full use and q < {}, even with the waits for \
         SACKs, the window grows by v M in a round, v = 1, 2, 4, ..., at most {} cwnd; not within {} of a \
         congestion loss at a queue shorter than base",
        STEADY_ROUNDS,
        LEAST_PACKETS,
        MOST_SHARE,
        SUSPENSION,
    ),
    file: file!(),
}];

/// Number of rounds without a queue after which the growth doubles (Arun, Balakrishnan 2018).
const STEADY_ROUNDS: u32 = 3;
/// Maximum growth in a round, as a share of the window: half of slow start's.
const MOST_SHARE: f64 = 0.5;
/// Time for which other flows are assumed to share a short queue. CUBIC regains a window of 340 chunks in six seconds.
const SUSPENSION: Span = Span::from_secs(10);
/// Bound of the exponent: a window of 2^30 chunks is never reached.
const MOST_DOUBLINGS: u32 = 30;

/// Acceleration of a path's window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acceleration {
    /// Number of consecutive rounds with the window in full use and without a queue.
    rounds: u32,
    suspended_until: Time,
}

impl Acceleration {
    /// Records a round in delay mode.
    pub(super) fn end_round(&mut self, round: &Round, now: Time) {
        let is_free = round.used && round.queue_packets_limit < LEAST_PACKETS && now >= self.suspended_until;
        self.rounds = if is_free { self.rounds.saturating_add(1) } else { 0 };
    }

    /// Ends the acceleration.
    pub(super) fn stop(&mut self) {
        self.rounds = 0;
    }

    /// Records a congestion loss, and the queueing delay of the path then.
    pub(super) fn lost(&mut self, queue: Span, base: Span, now: Time) {
        self.stop();
        if queue < base {
            self.suspended_until = now + SUSPENSION;
        }
    }

    /// Returns the growth in bytes per round, or `None` if the window follows CUBIC's curve.
    pub(super) fn growth(&self, cwnd: f64, chunk: f64) -> Option<f64> {
        let doublings = self.rounds.checked_sub(STEADY_ROUNDS)?.min(MOST_DOUBLINGS);
        Some((chunk * f64::from(1_u32 << doublings)).min(MOST_SHARE * cwnd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: f64 = 1000.0;
    const BASE: Span = Span::from_millis(50);

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn round(queue_packets_limit: f64, used: bool) -> Round {
        Round {
            queue_packets: 0.0,
            queue_packets_limit,
            ends_slow_start: false,
            used,
            draining: false,
            cwnd: 20.0 * CHUNK,
            chunk: CHUNK,
        }
    }

    /// Returns the acceleration after this number of rounds without a queue.
    fn after(rounds: u32) -> Acceleration {
        let mut acceleration = Acceleration::default();
        (0..rounds).for_each(|_| acceleration.end_round(&round(0.9, true), at(0)));
        acceleration
    }

    #[test]
    fn growth_doubles_after_three_rounds_without_a_queue() {
        let chunks = |rounds| after(rounds).growth(20.0 * CHUNK, CHUNK).map(|bytes| bytes / CHUNK);
        let grown: Vec<_> = (2..8).map(chunks).collect();
        assert_eq!(grown, [None, Some(1.0), Some(2.0), Some(4.0), Some(8.0), Some(10.0)], "at most half");
        assert_eq!(chunks(100_000), Some(10.0));
    }

    #[test]
    fn queue_or_unused_window_ends_the_acceleration() {
        for (queue_packets, used) in [(1.0, true), (0.0, false)] {
            let mut acceleration = after(9);
            acceleration.end_round(&round(queue_packets, used), at(0));
            assert_eq!(acceleration.growth(CHUNK, CHUNK), None, "{queue_packets} {used}");
        }
    }

    #[test]
    fn loss_at_a_queue_shorter_than_the_base_suspends_it_for_ten_seconds() {
        for (queue, suspended) in [(Span::from_millis(49), true), (BASE, false)] {
            let mut acceleration = after(9);
            acceleration.lost(queue, BASE, at(1_000));
            assert_eq!(acceleration.growth(CHUNK, CHUNK), None);
            (0..4).for_each(|_| acceleration.end_round(&round(0.0, true), at(10_999)));
            assert_eq!(acceleration.growth(CHUNK, CHUNK).is_none(), suspended, "{queue:?}");
            (0..4).for_each(|_| acceleration.end_round(&round(0.0, true), at(11_000)));
            assert!(acceleration.growth(CHUNK, CHUNK).is_some());
        }
    }
}

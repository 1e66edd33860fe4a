//! Validation of a path's window by use (RFC 7661; RFC 9002 section 7.8).
//!
//! A window shows the capacity of a path only as far as its data was delivered. The rest may be left from a faster time, or from a
//! time in which other paths carried less. Such a window would send a burst that the path has never carried, and a reduction to 0.7
//! of it would not reduce the data in flight.

use anabranch_core::time::{Span, Time};
use anabranch_core::units::ChunkBytes;
use anabranch_core::windowed::WindowedMax;

use crate::definition::{Equation, text};
use crate::preset::braid::round_trips::MEMORY;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "RFC 7661, window validation",
    rule: text!(
        "D = largest number of bytes delivered in a round trip within max({} round trips, {}), D_max = the same \
         within {}; cwnd <= {} D_max + initial window: a larger one is reduced to that, to {} of it at most, once \
         per round trip; congestion with cwnd > {} D: the reduction starts at max(D, bytes in flight)",
        RECENT_ROUNDS,
        LEAST_RECENT,
        MEMORY,
        MULTIPLE,
        LEAST_SHARE,
        MULTIPLE,
    ),
    file: file!(),
}];

/// Maximum window in units of the bytes delivered in a round trip: a window up to this multiple is validated (RFC 7661 section 4.3).
/// Slow start reaches it, because each delivered byte releases two.
const MULTIPLE: f64 = 2.0;
/// Number of round trips of recent use (RFC 7661 section 4.2, pipeACK sampling period).
const RECENT_ROUNDS: u64 = 3;
/// Minimum time of recent use (the same).
const LEAST_RECENT: Span = Span::from_secs(1);
/// Share of the window that a reduction keeps. The first packets after an idle time have delivered little yet (RFC 7661 section 4.4.3
/// halves the window too).
const LEAST_SHARE: f64 = 0.5;

/// Use of a path's window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Validation {
    /// Largest number of bytes delivered in a recent round trip.
    recent: WindowedMax<ChunkBytes>,
    /// The same within the memory of round-trip times.
    remembered: WindowedMax<ChunkBytes>,
    reduced_at: Option<Time>,
}

impl Validation {
    /// Records a SACK, and the bytes that the path delivered in the round trip of its newest packet; `None` if the SACK acknowledged
    /// no packet of the path.
    pub(super) fn take(&mut self, delivered: Option<ChunkBytes>, round_trip: Span, now: Time) {
        // An unused path delivers nothing, which counts from its first delivery on.
        let Some(delivered) = delivered.or_else(|| self.recent.get().map(|_| ChunkBytes::ZERO)) else {
            return;
        };
        let recent = round_trip.times(RECENT_ROUNDS).max(LEAST_RECENT);
        self.recent.update(now.as_nanos(), delivered, recent.as_nanos());
        self.remembered.update(now.as_nanos(), delivered, MEMORY.as_nanos());
    }

    /// Returns the window to which this one must be reduced, or `None` if it may stay. Windows are in bytes.
    pub(super) fn reduced(&mut self, cwnd: f64, initial: f64, round_trip: Span, now: Time) -> Option<f64> {
        let bound = MULTIPLE * self.remembered.get()?.get() as f64 + initial;
        if cwnd <= bound || self.reduced_at.is_some_and(|at| now.since(at) < round_trip) {
            return None;
        }
        self.reduced_at = Some(now);
        Some(bound.max(LEAST_SHARE * cwnd))
    }

    /// Returns the part of a window that a reduction after congestion starts from, in bytes.
    pub(super) fn in_use(&self, cwnd: f64, in_flight: ChunkBytes) -> f64 {
        let Some(delivered) = self.recent.get() else { return cwnd };
        let is_validated = cwnd <= MULTIPLE * delivered.get() as f64;
        if is_validated { cwnd } else { cwnd.min(delivered.max(in_flight).get() as f64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INITIAL: f64 = 4_000.0;
    const RTT: Span = Span::from_millis(100);

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Use of a path that delivered these kB per round trip, for as many round trips each, and the time of the last one.
    fn used(rounds: &[(u64, u64)]) -> (Validation, Time) {
        let (mut validation, mut now) = (Validation::default(), at(0));
        for &(kbytes, count) in rounds {
            for _ in 0..count {
                now += RTT;
                validation.take(Some(ChunkBytes::new(kbytes * 1_000)), RTT, now);
            }
        }
        (validation, now)
    }

    #[test]
    fn window_is_bounded_by_twice_the_delivered_bytes_and_initial_window() {
        let (mut validation, now) = used(&[(50, 1)]);
        assert_eq!(validation.reduced(104_000.0, INITIAL, RTT, now), None);
        assert_eq!(validation.reduced(104_001.0, INITIAL, RTT, now), Some(104_000.0));
    }

    #[test]
    fn window_is_halved_at_most_and_once_per_round_trip() {
        let (mut validation, now) = used(&[(50, 1)]);
        assert_eq!(validation.reduced(400_000.0, INITIAL, RTT, now), Some(200_000.0));
        assert_eq!(validation.reduced(200_000.0, INITIAL, RTT, now + Span::from_millis(99)), None);
        assert_eq!(validation.reduced(200_000.0, INITIAL, RTT, now + RTT), Some(104_000.0));
    }

    #[test]
    fn window_of_an_unused_path_falls_to_the_initial_one_after_20_s() {
        let (mut validation, mut now) = used(&[(50, 1)]);
        let (mut cwnd, first) = (104_000.0, now);
        while now.since(first) < Span::from_secs(22) {
            now += RTT;
            validation.take(None, RTT, now);
            if let Some(reduced) = validation.reduced(cwnd, INITIAL, RTT, now) {
                assert!(now.since(first) >= MEMORY, "{now:?}");
                cwnd = reduced;
            }
        }
        assert!((cwnd - INITIAL).abs() < 1e-9, "{cwnd}");
    }

    #[test]
    fn window_without_any_delivery_is_neither_bounded_nor_reduced() {
        let mut validation = Validation::default();
        validation.take(None, RTT, at(1));
        assert_eq!(validation.reduced(1e9, INITIAL, RTT, at(1)), None);
        assert!((validation.in_use(1e9, ChunkBytes::ZERO) - 1e9).abs() < 1e-9);
    }

    #[test]
    fn reduction_starts_at_the_part_in_use_of_an_unvalidated_window() {
        let (validation, _) = used(&[(50, 1)]);
        for (cwnd, in_flight, expected) in [
            (100_000.0, 10_000, 100_000.0),
            (100_001.0, 10_000, 50_000.0),
            (400_000.0, 80_000, 80_000.0),
            (400_000.0, 900_000, 400_000.0),
        ] {
            let in_use = validation.in_use(cwnd, ChunkBytes::new(in_flight));
            assert!((in_use - expected).abs() < 1e-9, "{cwnd} {in_flight}: {in_use}");
        }
    }

    #[test]
    fn recent_use_covers_three_round_trips_and_at_least_a_second() {
        let in_use = |rounds| used(&[(50, 1), (10, rounds)]).0.in_use(100_000.0, ChunkBytes::ZERO);
        assert!((in_use(10) - 100_000.0).abs() < 1e-9, "a second has not passed");
        assert!((in_use(11) - 10_000.0).abs() < 1e-9, "{}", in_use(11));
    }
}

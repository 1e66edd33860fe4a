//! Buffers that grow with the rate of the paths, up to the configured limits.
//!
//! Several paths need as much buffer as all of them together carry in a round trip of the slowest one, and as much again while a
//! loss is repaired. That amount is known only during the transfer. Buffers do not shrink: an advertised window is a promise (RFC
//! 9260 section 6.2).

use crate::association::Association;
use crate::path_id::PathState;
use crate::time::{Span, Time};
use crate::units::WindowBytes;

/// Size of a buffer in round trips of data.
const ROUND_TRIPS: u64 = 2;

/// RTT assumed for a path without samples: a side that only receives has none at first.
const UNMEASURED: Span = Span::from_millis(100);

/// Minimum round trip: shorter measurements depend on the processor rather than on the paths.
const SHORTEST_ROUND: Span = Span::from_millis(1);

/// Bytes that the application has read in the current round trip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) began: Time,
    pub(crate) bytes: u64,
}

impl Association {
    /// Returns the receive buffer, in the unit of the profile's window.
    pub(crate) fn recv_buffer(&self) -> WindowBytes {
        let initial = WindowBytes::new(self.config.recv_buffer_bytes);
        self.receiver.as_ref().map_or(initial, |receiver| receiver.buffer())
    }

    /// Records bytes that the application has read. If it reads nearly a buffer per round trip, the buffer is the limit and grows.
    pub(crate) fn consider_recv_growth(&mut self, bytes: u64) {
        let Some(growth) = self.config.buffer_growth else { return };
        if self.recv_buffer().get() >= growth.largest_recv_bytes {
            return;
        }
        self.reading.bytes += bytes;
        let (round, passed) = (self.longest_round_trip(), self.now.since(self.reading.began));
        if passed < round {
            return;
        }
        let carried = carried_in(self.reading.bytes, passed, round);
        self.reading = Reading { began: self.now, bytes: 0 };
        let wanted = carried.saturating_mul(ROUND_TRIPS).min(growth.largest_recv_bytes);
        if let Some(receiver) = &mut self.receiver {
            receiver.grow(WindowBytes::new(wanted));
        }
    }

    /// Grows the send buffer with windows and rates after an acknowledgement.
    pub(crate) fn consider_send_growth(&mut self) {
        let (Some(growth), Some(limit)) = (self.config.buffer_growth, self.sender.buffer_limit()) else {
            return;
        };
        if limit >= growth.largest_send_bytes {
            return;
        }
        let round = self.longest_round_trip();
        let active = self.paths.all_facts().iter().filter(|facts| facts.state == PathState::Active);
        let (mut windows, mut carried) = (0_u64, 0_u64);
        for facts in active {
            windows += facts.cwnd.get();
            let rate = facts.delivery_rate.map_or(0, |rate| rate.as_bps());
            carried = carried.saturating_add(carried_in(rate / 8, Span::from_secs(1), round));
        }
        let wanted = windows.max(carried).saturating_mul(ROUND_TRIPS).min(growth.largest_send_bytes);
        self.update_sender(|sender| sender.grow_buffer(wanted));
    }

    fn longest_round_trip(&self) -> Span {
        let active = self.paths.all_facts().iter().filter(|facts| facts.state == PathState::Active);
        let times = active.map(|facts| facts.rtt.smoothed.unwrap_or(UNMEASURED));
        times.max().unwrap_or(UNMEASURED).max(SHORTEST_ROUND)
    }
}

/// Returns the bytes carried in `round` at the rate of `bytes` in `passed`, which is not zero.
fn carried_in(bytes: u64, passed: Span, round: Span) -> u64 {
    let carried = u128::from(bytes) * u128::from(round.as_nanos()) / u128::from(passed.as_nanos().max(1));
    u64::try_from(carried).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_per_round_trip_are_independent_of_the_interval() {
        assert_eq!(carried_in(1_000, Span::from_millis(10), Span::from_millis(100)), 10_000);
        assert_eq!(carried_in(1_000, Span::from_secs(2), Span::from_millis(100)), 50);
        assert_eq!(carried_in(u64::MAX, Span::from_nanos(1), Span::from_secs(60)), u64::MAX);
    }
}

//! Buffers that grow with what the paths carry, up to what the configuration allows.
//!
//! Several paths need as much room as all of them together carry in a round trip of the slowest one, and as much again while a
//! loss is repaired. How much that is shows only in operation. Buffers do not shrink: what was advertised was promised
//! (RFC 9260 section 6.2).

use crate::association::Association;
use crate::path_id::PathState;
use crate::time::{Span, Time};
use crate::units::WindowBytes;

/// What is carried in a round trip, that many times.
const ROUND_TRIPS: u64 = 2;

/// The round-trip time of a path that none was measured on: a side that only receives has no samples at first.
const UNMEASURED: Span = Span::from_millis(100);

/// Shorter rounds say more about the processor than about the paths.
const SHORTEST_ROUND: Span = Span::from_millis(1);

/// What the application has read in the present round trip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) began: Time,
    pub(crate) bytes: u64,
}

impl Association {
    /// The receive buffer, in the unit of the profile's window.
    pub(crate) fn recv_buffer(&self) -> WindowBytes {
        let initial = WindowBytes::new(self.config.recv_buffer_bytes);
        self.receiver.as_ref().map_or(initial, |receiver| receiver.buffer())
    }

    /// The application has read `bytes`. If it reads nearly a buffer in a round trip, the buffer is what limits it.
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

    /// Something was acknowledged, so windows and rates may have grown.
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

/// How much is carried in `round` by what carries `bytes` in `passed`, which is not zero.
fn carried_in(bytes: u64, passed: Span, round: Span) -> u64 {
    let carried = u128::from(bytes) * u128::from(round.as_nanos()) / u128::from(passed.as_nanos().max(1));
    u64::try_from(carried).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_carried_in_a_round_trip_follows_from_any_stretch_of_time() {
        assert_eq!(carried_in(1_000, Span::from_millis(10), Span::from_millis(100)), 10_000);
        assert_eq!(carried_in(1_000, Span::from_secs(2), Span::from_millis(100)), 50);
        assert_eq!(carried_in(u64::MAX, Span::from_nanos(1), Span::from_secs(60)), u64::MAX);
    }
}

//! Slow start exit when queues grow (HyStart++, RFC 9406 section 4.2, without its conservative phase). A window that doubles until
//! a loss overshoots by the whole capacity of path and queue, and most of that is lost at once.

use anabranch_core::policy::AckedTransmission;
use anabranch_core::time::{Span, Time};

/// RFC 9406 section 4.3: N_RTT_SAMPLE.
const LEAST_SAMPLES: u32 = 8;
/// MIN_RTT_THRESH.
const LEAST_RISE: Span = Span::from_millis(4);
/// MAX_RTT_THRESH.
const MOST_RISE: Span = Span::from_millis(16);
/// MIN_RTT_DIVISOR.
const DIVISOR: u64 = 8;

/// Round-trip times of one path, by round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrips {
    /// Start of the round: chunks sent from this time on belong to the next round.
    round_began: Time,
    earlier: Option<Span>,
    lowest: Option<Span>,
    samples: u32,
}

impl RoundTrips {
    /// Processes an acknowledgement. Returns `true` if the round-trip times since the previous round show a growing queue.
    pub(super) fn rising(&mut self, acked: &AckedTransmission, now: Time) -> bool {
        // Skips retransmitted chunks, whose acknowledgements are ambiguous, and acknowledgements that returned on another path.
        // With a long and a short return path, rounds would seem to shrink and grow.
        if !acked.sent_once || !acked.returned_on_same_path() {
            return false;
        }
        if acked.stamps.sent_at >= self.round_began {
            *self = RoundTrips { round_began: now, earlier: self.lowest, lowest: None, samples: 0 };
        }
        let rtt = now.since(acked.stamps.sent_at);
        self.lowest = Some(self.lowest.map_or(rtt, |lowest| lowest.min(rtt)));
        self.samples += 1;
        let (Some(earlier), Some(lowest)) = (self.earlier, self.lowest) else { return false };
        let rise = earlier.over(DIVISOR).max(LEAST_RISE).min(MOST_RISE);
        self.samples >= LEAST_SAMPLES && lowest >= earlier + rise
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::PathId;
    use anabranch_core::policy::SendStamps;
    use anabranch_core::units::ChunkBytes;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn acked(sent_ms: u64, sent_once: bool) -> AckedTransmission {
        AckedTransmission {
            path: PathId::new(0),
            tsn: 1,
            bytes: ChunkBytes::new(1468),
            stamps: SendStamps { sent_at: at(sent_ms), ..SendStamps::default() },
            sent_once,
            certain: sent_once,
            cumulative: true,
            sack_path: Some(PathId::new(0)),
        }
    }

    /// Runs a round of ten packets, sent one by one from `begin`, with these round-trip times. Returns `true` on a rise.
    fn round(trips: &mut RoundTrips, begin: u64, rtts: impl Fn(u64) -> u64) -> bool {
        (0..10).any(|n| trips.rising(&acked(begin + n, true), at(begin + n + rtts(n))))
    }

    #[test]
    fn rtt_rise_of_an_eighth_ends_slow_start() {
        for (second, seen) in [(100, false), (111, false), (113, true), (160, true)] {
            let mut trips = RoundTrips::default();
            assert!(!round(&mut trips, 0, |_| 100));
            assert_eq!(round(&mut trips, 101, |_| second), seen, "{second} ms");
        }
    }

    #[test]
    fn one_fast_packet_of_a_round_shows_an_empty_queue() {
        let mut trips = RoundTrips::default();
        assert!(!round(&mut trips, 0, |_| 100));
        assert!(!round(&mut trips, 101, |n| if n == 0 { 100 } else { 160 }));
    }

    #[test]
    fn retransmitted_or_otherwise_acked_chunk_is_no_sample() {
        let mut trips = RoundTrips::default();
        assert!(!round(&mut trips, 0, |_| 100));
        assert!((0..10).all(|n| !trips.rising(&acked(101 + n, false), at(400 + n))));
        let elsewhere = |sent| AckedTransmission { sack_path: None, ..acked(sent, true) };
        assert!((0..10).all(|n| !trips.rising(&elsewhere(101 + n), at(400 + n))));
    }
}

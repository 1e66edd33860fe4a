//! A token bucket in front of a link's queue.

use anabranch_core::time::{Rate, Time};
use anabranch_core::units::WireBytes;

use crate::error::{ConfigError, require};

/// Drops packets that exceed a rate, without delaying any. Tokens are wire bytes. They arrive at `rate`, up to `burst`, and the
/// bucket is full at the start of the run. A packet that exceeds the tokens is dropped and uses none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policer {
    /// Rate that passes in the long run.
    pub rate: Rate,
    /// Wire bytes that pass at once after a long pause. A larger packet never passes. If it is less than two packets, tokens
    /// overflow between packets, and less than the rate passes.
    pub burst: WireBytes,
}

/// Tokens per byte. A rate of 1 bit/s gains one token per nanosecond, so that fractions of bytes are never lost.
const TOKENS_PER_BYTE: u128 = 8_000_000_000;

impl Policer {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        require(self.rate.as_bps() > 0, "policer rate", "must be more than zero")?;
        require(self.burst > WireBytes::ZERO, "policer burst", "must be more than zero")
    }

    fn most_tokens(&self) -> u128 {
        tokens_of(self.burst)
    }
}

fn tokens_of(bytes: WireBytes) -> u128 {
    u128::from(bytes.get()) * TOKENS_PER_BYTE
}

/// State of a policer.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    policer: Policer,
    tokens: u128,
    filled: Time,
}

impl TokenBucket {
    pub(crate) fn new(policer: Policer) -> Self {
        TokenBucket { policer, tokens: policer.most_tokens(), filled: Time::ZERO }
    }

    /// Returns `true` if a packet of this size passes, and removes its tokens.
    pub(crate) fn passes(&mut self, now: Time, size: WireBytes) -> bool {
        let nanos = now.since(self.filled).as_nanos();
        // Neither factor has more than 64 bits, and the sum is limited to the tokens of a burst.
        let gained = u128::from(self.policer.rate.as_bps()) * u128::from(nanos);
        self.tokens = self.tokens.saturating_add(gained).min(self.policer.most_tokens());
        self.filled = self.filled.max(now);
        let left = self.tokens.checked_sub(tokens_of(size));
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::time::Span;

    const RATE: Rate = Rate::from_bps(1_500_000);

    fn bucket(burst: u64) -> TokenBucket {
        TokenBucket::new(Policer { rate: RATE, burst: WireBytes::new(burst) })
    }

    /// Returns the number of packets of `size` bytes that pass within 10 s of a constant rate.
    fn passed(bucket: &mut TokenBucket, bps: u64, size: u64) -> u64 {
        let packets = bps * 10 / (8 * size);
        let at = |n: u64| Time::from_nanos(n * 8 * size * 1_000_000_000 / bps);
        (0..packets).filter(|&n| bucket.passes(at(n), WireBytes::new(size))).count() as u64
    }

    #[test]
    fn constant_traffic_passes_at_the_rate_within_a_packet_and_the_burst() {
        // 1250 packets of 1500 bytes are 1.5 Mbit/s for 10 s.
        assert_eq!(passed(&mut bucket(1500), 1_500_000, 1500), 1250, "all of it");
        for bps in [1_600_000, 3_000_000, 4_500_001, 100_000_000] {
            for burst in [3000, 15_000] {
                // The last packet arrives before the last token.
                let expected = 1250 + burst / 1500 - 1;
                let passed = passed(&mut bucket(burst), bps, 1500);
                assert!(passed.abs_diff(expected) <= 1, "{passed} at {bps} bit/s with {burst} B");
            }
        }
    }

    #[test]
    fn small_packets_lose_no_fraction_of_a_byte() {
        // At this rate no packet takes a whole number of nanoseconds.
        let policer = Policer { rate: Rate::from_bps(7), burst: WireBytes::new(6) };
        let mut bucket = TokenBucket::new(policer);
        let seconds = 8 * 9000;
        let passed =
            (0..seconds * 10).filter(|n| bucket.passes(Time::from_nanos(n * 100_000_000), WireBytes::new(3)));
        // 7 bit/s gain 62,999.9 bytes up to the last packet, and the bucket was full.
        assert_eq!(passed.count(), 63_005 / 3);
    }

    #[test]
    fn burst_up_to_the_bucket_size_passes_whenever_the_bucket_is_full() {
        let mut bucket = bucket(6000);
        let mut burst = |at_ms: u64| {
            let at = Time::ZERO + Span::from_millis(at_ms);
            (0..10).filter(|_| bucket.passes(at, WireBytes::new(1500))).count()
        };
        // 6000 bytes of tokens take 32 ms.
        assert_eq!([burst(0), burst(31), burst(63), burst(95), burst(100_000)], [4, 3, 4, 4, 4]);
    }

    #[test]
    fn a_packet_that_is_dropped_takes_no_tokens_from_smaller_ones() {
        let mut bucket = bucket(1000);
        assert!(!bucket.passes(Time::ZERO, WireBytes::new(1001)));
        assert!(bucket.passes(Time::ZERO, WireBytes::new(1000)));
        assert!(!bucket.passes(Time::ZERO, WireBytes::new(1)));
    }

    #[test]
    fn the_largest_figures_do_not_overflow() {
        let policer = Policer { rate: Rate::from_bps(u64::MAX), burst: WireBytes::new(u64::MAX) };
        let mut bucket = TokenBucket::new(policer);
        for at in [0, 1, u64::MAX] {
            assert!(bucket.passes(Time::from_nanos(at), WireBytes::new(u64::MAX / 4)));
        }
        assert!(policer.check().is_ok());
        assert!(Policer { rate: Rate::from_bps(0), ..policer }.check().is_err());
        assert!(Policer { burst: WireBytes::ZERO, ..policer }.check().is_err());
    }
}

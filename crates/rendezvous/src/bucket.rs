//! Token bucket.

use anabranch_core::time::Time;

/// Token bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    /// Tokens times a second in nanoseconds.
    filled: u64,
    since: Time,
}

const NANOS: u64 = 1_000_000_000;

impl Bucket {
    pub(crate) fn full(now: Time, burst: u64) -> Self {
        Bucket { filled: burst.saturating_mul(NANOS), since: now }
    }

    /// Takes `amount` tokens, if there are as many. They are added at `rate` per second, up to `burst`.
    pub(crate) fn take(&mut self, now: Time, amount: u64, rate: u64, burst: u64) -> bool {
        let added = now.since(self.since).as_nanos().saturating_mul(rate);
        self.filled = self.filled.saturating_add(added).min(burst.saturating_mul(NANOS));
        self.since = self.since.max(now);
        let cost = amount.saturating_mul(NANOS);
        let is_enough = self.filled >= cost;
        if is_enough {
            self.filled -= cost;
        }
        is_enough
    }
}

#[cfg(test)]
mod tests {
    use anabranch_core::time::Span;

    use super::*;

    #[test]
    fn bucket_takes_no_tokens_from_the_past_or_beyond_its_burst() {
        let mut bucket = Bucket::full(Time::ZERO + Span::from_secs(1), 2);
        assert!(bucket.take(Time::ZERO, 2, 1, 2), "an earlier time is the latest one");
        assert!(!bucket.take(Time::ZERO, 1, 1, 2));
        let late = Time::ZERO + Span::from_secs(u64::from(u32::MAX));
        assert!(bucket.take(late, 2, u64::MAX, 2) && !bucket.take(late, 1, u64::MAX, 2));
    }
}

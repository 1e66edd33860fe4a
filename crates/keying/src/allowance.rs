//! Rate limit with bursts.

use anabranch_core::time::{Span, Time};

/// Token bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    most: u32,
    every: Span,
    left: u32,
    counted_to: Time,
}

impl Allowance {
    /// Creates a bucket with `most` tokens that gains one token per `every`.
    pub(crate) fn new(now: Time, most: u32, every: Span) -> Self {
        Allowance { most, every, left: most, counted_to: now }
    }

    /// Takes a token. Returns `true` if there was one.
    pub(crate) fn take(&mut self, now: Time) -> bool {
        let every = self.every.as_nanos().max(1);
        let gained = now.since(self.counted_to).as_nanos() / every;
        self.counted_to += Span::from_nanos(gained.saturating_mul(every));
        let gained = u32::try_from(gained).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(gained).min(self.most);
        let may = self.left > 0;
        self.left -= u32::from(may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_followed_by_the_rate() {
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let mut allowance = Allowance::new(at(0), 2, Span::from_secs(1));
        let taken: Vec<bool> = [0, 0, 0, 999, 1_000, 1_001, 2_000]
            .into_iter()
            .map(|millis| allowance.take(at(millis)))
            .collect();
        assert_eq!(taken, [true, true, false, false, true, false, true]);
    }

    #[test]
    fn rest_gains_no_more_than_a_burst() {
        let mut allowance = Allowance::new(Time::ZERO, 2, Span::from_millis(1));
        let later = Time::ZERO + Span::from_secs(3_600);
        assert_eq!([0; 3].map(|_| allowance.take(later)), [true, true, false]);
    }
}

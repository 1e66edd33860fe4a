//! Rates of signed requests.

use anabranch_core::Source;
use anabranch_core::time::Time;

use crate::bucket::Bucket;
use crate::secret::Secret;

/// Number of counters, each for the sources with one hash. Memory does not grow with the number of sources.
const BUCKETS: usize = 1024;

/// Requests per second of the sources of a counter, and as many at once.
const PER_SOURCE: u64 = 100;

/// Requests per second of all sources, and as many at once. Verifying a signature takes about 50 microseconds.
const TOTAL: u64 = 2000;

/// Counters of signed requests.
#[derive(Debug)]
pub(super) struct Rates {
    of_sources: Vec<Bucket>,
    total: Bucket,
}

impl Rates {
    pub(super) fn new(now: Time) -> Self {
        Rates { of_sources: vec![Bucket::full(now, PER_SOURCE); BUCKETS], total: Bucket::full(now, TOTAL) }
    }

    /// Returns `true` if a request of this source may be verified.
    pub(super) fn admits(&mut self, now: Time, secret: &Secret, source: Source) -> bool {
        let bucket = secret.hash(source) as usize % BUCKETS;
        self.of_sources[bucket].take(now, 1, PER_SOURCE, PER_SOURCE) && self.total.take(now, 1, TOTAL, TOTAL)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_core::time::Span;

    use super::*;

    #[test]
    fn requests_above_the_rate_of_a_source_leave_others_alone() {
        let secret = Secret::new([1; 32]);
        let mut rates = Rates::new(Time::ZERO);
        let source = |last| Source::V4([192, 0, 2, last]);
        let admitted = (0..500).filter(|_| rates.admits(Time::ZERO, &secret, source(1))).count();
        assert_eq!(admitted, PER_SOURCE as usize);
        assert!(rates.admits(Time::ZERO, &secret, source(2)));
        let later = Time::ZERO + Span::from_millis(100);
        let admitted = (0..500).filter(|_| rates.admits(later, &secret, source(1))).count();
        assert_eq!(admitted, 10);
    }

    #[test]
    fn all_sources_together_have_a_rate() {
        let secret = Secret::new([1; 32]);
        let mut rates = Rates::new(Time::ZERO);
        let sources = (0..=255).flat_map(|a| (0..=255).map(move |b| Source::V4([10, 0, a, b])));
        let admitted = sources.filter(|source| rates.admits(Time::ZERO, &secret, *source)).count();
        assert_eq!(admitted, TOTAL as usize);
    }
}

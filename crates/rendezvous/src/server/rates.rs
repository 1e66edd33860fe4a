//! Rates of signed requests.

use anabranch_core::Source;
use anabranch_core::time::Time;

use crate::bucket::Bucket;
use crate::secret::Secret;

/// Number of counters, each for the sources with one hash. Memory does not grow with the number of sources.
const BUCKETS: usize = 1024;

/// Requests per second of the sources of a counter, and as many at once.
const PER_SOURCE: u64 = 100;

/// Requests per second that only the sources of a counter can use.
const RESERVED: u64 = 1;

/// Reserved requests at once: registrations and calls of all sockets of a host.
const RESERVED_BURST: u64 = 16;

/// Further requests per second of all sources, and as many at once. Verifying a signature takes about 50 microseconds.
const COMMON: u64 = 1000;

/// Requests of the sources of a counter.
#[derive(Clone, Debug)]
struct Share {
    all: Bucket,
    reserved: Bucket,
}

/// Counters of signed requests.
#[derive(Debug)]
pub(super) struct Rates {
    of_sources: Vec<Share>,
    common: Bucket,
}

impl Rates {
    pub(super) fn new(now: Time) -> Self {
        let share = Share { all: Bucket::full(now, PER_SOURCE), reserved: Bucket::full(now, RESERVED_BURST) };
        Rates { of_sources: vec![share; BUCKETS], common: Bucket::full(now, COMMON) }
    }

    /// Returns `true` if a request of this source may be verified. Busy sources share the common requests, and leave others their
    /// reserved ones.
    pub(super) fn admits(&mut self, now: Time, secret: &Secret, source: Source) -> bool {
        let share = &mut self.of_sources[secret.hash(source) as usize % BUCKETS];
        share.all.take(now, 1, PER_SOURCE, PER_SOURCE)
            && (share.reserved.take(now, 1, RESERVED, RESERVED_BURST)
                || self.common.take(now, 1, COMMON, COMMON))
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

    /// Returns the sources, without those that share the counter of the quiet one.
    fn busy(secret: &Secret, quiet: Source) -> Vec<Source> {
        let all = (0..=255).flat_map(|a| (0..4).map(move |b| Source::V4([10, 0, b, a])));
        let counter = |source| secret.hash(source) as usize % BUCKETS;
        all.filter(|source| counter(*source) != counter(quiet)).collect()
    }

    #[test]
    fn busy_sources_leave_a_quiet_one_its_requests() {
        let secret = Secret::new([1; 32]);
        let quiet = Source::V4([192, 0, 2, 1]);
        for count in [20, 60, 900] {
            let (sources, mut rates) = (busy(&secret, quiet), Rates::new(Time::ZERO));
            let mut admitted = 0;
            // Each busy source tries 200 requests per second.
            for step in 0..800_u64 {
                let now = Time::ZERO + Span::from_millis(5 * step);
                let of_busy =
                    sources.iter().take(count).filter(|source| rates.admits(now, &secret, **source));
                admitted += of_busy.count() as u64;
                assert!(step % 200 != 0 || rates.admits(now, &secret, quiet), "beside {count} sources");
            }
            let reserved = count as u64 * (RESERVED_BURST + 4 * RESERVED);
            assert!((4_900..=5 * COMMON + reserved).contains(&admitted), "{admitted} of {count} sources");
        }
    }

    #[test]
    fn all_sources_together_have_a_rate() {
        let secret = Secret::new([1; 32]);
        let mut rates = Rates::new(Time::ZERO);
        let sources = || (0..=255).flat_map(|a| (0..=255).map(move |b| Source::V4([10, 0, a, b])));
        let mut admitted =
            |now: Time| sources().filter(|source| rates.admits(now, &secret, *source)).count() as u64;
        let counters = BUCKETS as u64;
        assert_eq!(admitted(Time::ZERO), counters * RESERVED_BURST + COMMON);
        assert_eq!(admitted(Time::ZERO + Span::from_secs(1)), counters * RESERVED + COMMON);
    }
}

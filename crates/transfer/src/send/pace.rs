//! Rate limit of a sender.

use std::num::NonZeroU64;
use std::time::Duration;

use tokio::time::Instant;

/// Maximum delay, of a timer or of the machine, that a sender compensates. If delays were not compensated, each segment would be
/// late by up to a tick of the timer, and the rate would stay at half of a high limit.
const CATCH_UP: Duration = Duration::from_millis(100);

/// Maximum number of user bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit(pub NonZeroU64);

impl RateLimit {
    /// Returns the time that this number of bytes takes at the limit.
    fn time_of(self, bytes: usize) -> Duration {
        let nanos = bytes as u128 * 1_000_000_000 / u128::from(self.0.get());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Pacing of a sender: each segment is sent after the time that its bytes take at the rate limit.
#[derive(Debug)]
pub(super) struct Pace {
    rate: Option<RateLimit>,
    /// Time at which the latest segment was due.
    last: Instant,
    /// Time at which the waiting segment may be sent.
    next: Option<Instant>,
}

impl Pace {
    pub(super) fn new(rate: Option<RateLimit>, now: Instant) -> Self {
        Pace { rate, last: now, next: None }
    }

    /// Returns the time at which the waiting segment may be sent; `None` for immediately. Repeated calls return the same time.
    fn leaves(&mut self, bytes: usize, now: Instant) -> Option<Instant> {
        let rate = self.rate?;
        let since = self.last.max(now.checked_sub(CATCH_UP).unwrap_or(now));
        Some(*self.next.get_or_insert_with(|| since + rate.time_of(bytes)))
    }

    pub(super) fn sent(&mut self) {
        self.last = self.next.take().unwrap_or(self.last);
    }

    /// Waits until the waiting segment of `bytes` bytes may be sent. Cancel-safe.
    pub(super) async fn ready(&mut self, bytes: usize) {
        if let Some(leaves) = self.leaves(bytes, Instant::now()) {
            tokio::time::sleep_until(leaves).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::MAX_SEGMENT_BYTES;

    const MILLISECOND: Duration = Duration::from_millis(1);

    fn pace(bits_per_second: u64, now: Instant) -> Pace {
        Pace::new(NonZeroU64::new(bits_per_second / 8).map(RateLimit), now)
    }

    /// Returns the time at which a timer of tokio's expires: at the next millisecond, and later on a busy machine.
    fn over(start: Instant, deadline: Instant, late: Duration) -> Instant {
        let millis = deadline.duration_since(start).as_nanos().div_ceil(MILLISECOND.as_nanos());
        start + MILLISECOND * u32::try_from(millis).expect("a short test") + late
    }

    /// Returns the bits per second of a sender that always has something to send.
    fn reached(bits_per_second: u64, mut late: impl FnMut() -> Duration) -> f64 {
        let start = Instant::now();
        let (mut now, mut pace, mut bytes) = (start, pace(bits_per_second, start), 0);
        while now - start < Duration::from_secs(30) {
            if let Some(leaves) = pace.leaves(MAX_SEGMENT_BYTES, now).filter(|leaves| *leaves > now) {
                now = over(start, leaves, late());
            }
            pace.sent();
            bytes += MAX_SEGMENT_BYTES;
        }
        bytes as f64 * 8.0 / (now - start).as_secs_f64()
    }

    #[test]
    fn late_timers_do_not_slow_a_limited_sender_down() {
        for rate in [1, 10, 50, 100, 200, 400, 1000].map(|megabits| megabits * 1_000_000) {
            let mut random = fastrand::Rng::with_seed(rate);
            for (what, reached) in [
                ("ticks of the timer", reached(rate, || Duration::ZERO)),
                ("a busy machine", reached(rate, || MILLISECOND * random.u32(0..40))),
            ] {
                let ratio = reached / rate as f64;
                assert!((0.98..=1.001).contains(&ratio), "{rate} bit/s, {what}: {ratio}");
            }
        }
    }

    #[test]
    fn idle_sender_gains_no_burst() {
        let start = Instant::now();
        let mut pace = pace(80_000_000, start);
        let now = start + Duration::from_secs(60);
        let mut at_once = 0;
        while pace.leaves(10_000, now).is_some_and(|leaves| leaves <= now) {
            pace.sent();
            at_once += 10_000;
        }
        assert_eq!(at_once, 1_000_000, "a tenth of a second's");
    }

    #[test]
    fn polling_does_not_change_the_time_of_a_segment() {
        let start = Instant::now();
        let mut pace = pace(8_000, start);
        let leaves = pace.leaves(1_000, start);
        assert_eq!(leaves, Some(start + Duration::from_secs(1)));
        assert_eq!(pace.leaves(1_000, start + Duration::from_millis(900)), leaves);
        pace.sent();
        assert_eq!(pace.leaves(1_000, start + Duration::from_secs(1)), Some(start + Duration::from_secs(2)));
    }

    #[test]
    fn without_a_limit_no_segment_waits() {
        let now = Instant::now();
        assert_eq!(Pace::new(None, now).leaves(1, now), None);
    }
}

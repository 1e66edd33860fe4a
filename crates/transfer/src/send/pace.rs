//! A limit on how fast data leaves.

use std::num::NonZeroU64;
use std::time::Duration;

use tokio::time::Instant;

/// Most user bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit(pub NonZeroU64);

/// When the next segment may leave.
#[derive(Debug)]
pub(super) struct Pace {
    rate: Option<RateLimit>,
    next: Instant,
}

impl Pace {
    pub(super) fn new(rate: Option<RateLimit>) -> Self {
        Pace { rate, next: Instant::now() }
    }

    pub(super) fn sent(&mut self, bytes: usize) {
        if let Some(RateLimit(rate)) = self.rate {
            let nanos = (bytes as u128 * 1_000_000_000 / u128::from(rate.get())).min(u128::from(u64::MAX));
            let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
            self.next = self.next.max(Instant::now()) + Duration::from_nanos(nanos);
        }
    }

    /// Comes when the next one may leave.
    pub(super) async fn ready(&self) {
        if self.rate.is_some() {
            tokio::time::sleep_until(self.next).await;
        }
    }
}

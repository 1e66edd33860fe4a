//! Monotonic clock, the only source of time.

use std::time::Duration;

use anabranch_core::time::Time;
use tokio::time::Instant;

/// Maximum waiting time: longer than any run, and within the range of tokio's timers.
const FAR: Duration = Duration::from_secs(86_400 * 365);

/// Monotonic clock that starts with its endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Clock { epoch: Instant::now() }
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns the instant of `time`, or of a year from now if that is earlier.
    pub(crate) fn instant(&self, time: Time) -> Instant {
        let far = Instant::now() + FAR;
        self.epoch.checked_add(Duration::from_nanos(time.as_nanos())).map_or(far, |at| at.min(far))
    }
}

//! The wall clock: the one place where time comes in.

use std::time::Duration;

use anabranch_core::time::Time;
use tokio::time::Instant;

/// About as long as anything runs; tokio's timers overflow beyond.
const FAR: Duration = Duration::from_secs(86_400 * 365);

/// A monotonic clock that began when its host did.
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

    /// When this clock says `time`, or in a year if that is later.
    pub(crate) fn instant(&self, time: Time) -> Instant {
        let far = Instant::now() + FAR;
        self.epoch.checked_add(Duration::from_nanos(time.as_nanos())).map_or(far, |at| at.min(far))
    }
}

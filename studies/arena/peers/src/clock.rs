//! Time since the start of a run, on the system's monotonic clock.

use std::time::Duration;

use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Instant, sleep_until};

/// Clock whose time zero is the start of the run.
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    /// Returns a clock with this time of the system's monotonic clock as its start. Fails if the start is over.
    pub(crate) fn new(start: Duration) -> anyhow::Result<Self> {
        let ahead = start.checked_sub(time_of(ClockId::Monotonic)).context("the start is over")?;
        Ok(Clock { start: Instant::now() + ahead })
    }

    /// Returns the seconds since the start. Zero before it.
    pub(crate) fn now(&self) -> f64 {
        Instant::now().saturating_duration_since(self.start).as_secs_f64()
    }

    /// Returns the instant of a time after the start.
    pub(crate) fn at(&self, time: Duration) -> Instant {
        self.start + time
    }

    /// Waits until a time after the start.
    pub(crate) async fn until(&self, time: Duration) {
        sleep_until(self.at(time)).await;
    }
}

/// Returns the processor time of this process.
pub(crate) fn processor_time() -> Duration {
    time_of(ClockId::ProcessCPUTime)
}

fn time_of(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default())
}

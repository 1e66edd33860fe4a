//! Time since the start of a run, on the system's monotonic clock.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Instant, sleep_until};

/// Clock whose time zero is the start of the run.
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    /// Returns a clock with this time of the system's monotonic clock as its start, which may be over.
    pub(crate) fn new(start: Duration) -> Self {
        let (now, here) = (time_of(ClockId::Monotonic), Instant::now());
        Clock { start: here + start.saturating_sub(now) - now.saturating_sub(start) }
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

//! Precise timer.
//!
//! Tokio's timers tick once per millisecond, about the transmission time of a packet of 1,500 bytes at 10 Mbit/s. With them the relay
//! would send packets late, by a tick on average, and in bursts. Rates would still be exact, because a link computes departure times
//! independently of the timer. A thread that sleeps on a condition variable wakes within some tens of microseconds and notifies the
//! waiting task. (A Linux timerfd needs no thread, but Tokio accepts foreign file descriptors only in unsafe code.)

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anabranch_core::time::Span;
use tokio::sync::Notify;

/// Timer for which one future at a time may wait.
pub(crate) struct Alarm(Arc<Bell>);

struct Bell {
    plan: Mutex<Plan>,
    changed: Condvar,
    rung: Notify,
}

#[derive(Default)]
struct Plan {
    due: Option<Instant>,
    /// Time until which the thread sleeps unless it is notified; unlimited if `None`.
    asleep_until: Option<Instant>,
    ended: bool,
}

impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        let bell = Arc::new(Bell { plan: Mutex::default(), changed: Condvar::new(), rung: Notify::new() });
        let own = Arc::clone(&bell);
        thread::Builder::new().name("relay-alarm".to_owned()).spawn(move || own.ring_in_time())?;
        Ok(Alarm(bell))
    }

    /// Returns after `span`, or never if it is `None`. The caller may drop the future and call this method again.
    pub(crate) async fn after(&self, span: Option<Span>) {
        // A time too far away for the clock is never reached.
        let due = span.and_then(|span| Instant::now().checked_add(span.into()));
        let Some(due) = due else { return std::future::pending().await };
        self.0.set(due);
        // The notification may be left over from a dropped future.
        while Instant::now() < due {
            tokio::select! {
                () = self.0.rung.notified() => {}
                // On a busy machine the thread may get a processor later than this task.
                () = tokio::time::sleep_until(due.into()) => {}
            }
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.changed.notify_one();
    }
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, due: Instant) {
        let mut plan = self.lock();
        plan.due = Some(due);
        // A thread that wakes too early sleeps again, which costs less than notifying it every time.
        if plan.asleep_until.is_none_or(|until| due < until) {
            self.changed.notify_one();
        }
    }

    fn ring_in_time(&self) {
        let mut plan = self.lock();
        while !plan.ended {
            let left = plan.due.map(|due| due.saturating_duration_since(Instant::now()));
            plan.asleep_until = plan.due;
            plan = match left {
                None => self.changed.wait(plan).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => {
                    plan.due = None;
                    self.rung.notify_one();
                    plan
                }
                Some(left) => {
                    let woken = self.changed.wait_timeout(plan, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn alarm_expires_after_its_time_and_not_before() {
        let alarm = Alarm::new().expect("a thread");
        for micros in [0, 1, 300, 2500] {
            let before = Instant::now();
            alarm.after(Some(Span::from_micros(micros))).await;
            assert!(before.elapsed() >= Duration::from_micros(micros));
        }
    }

    #[tokio::test]
    async fn cancelled_alarm_does_not_affect_the_next() {
        let alarm = Alarm::new().expect("a thread");
        for given_up in [100, 60_000_000] {
            tokio::select! {
                biased;
                () = tokio::time::sleep(Duration::from_millis(3)) => {}
                () = alarm.after(Some(Span::from_micros(given_up))) => {}
            }
            let before = Instant::now();
            alarm.after(Some(Span::from_millis(5))).await;
            assert!(before.elapsed() >= Duration::from_millis(5));
        }
    }

    #[tokio::test]
    async fn alarm_without_deadline_never_expires() {
        let alarm = Alarm::new().expect("a thread");
        for never in [None, Some(Span::from_nanos(u64::MAX))] {
            tokio::select! {
                () = alarm.after(never) => panic!("the alarm expired"),
                () = tokio::time::sleep(Duration::from_millis(3)) => {}
            }
        }
    }
}

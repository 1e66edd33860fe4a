//! CoDel for one flow, after the pseudocode of RFC 8289 section 5.

use std::time::{Duration, Instant};

/// Time for which a packet waits without congestion. The association accepts packets in bursts.
const TARGET: Duration = Duration::from_millis(10);
/// Time for which the wait has to exceed the target before packets are dropped: a long round-trip time.
const INTERVAL: Duration = Duration::from_millis(100);
/// Queue length that is never congestion, in bytes: one packet.
const MTU: usize = 1500;

#[derive(Debug, Default)]
pub(crate) struct Codel {
    /// Time at which dropping begins unless the wait falls below the target before.
    first_above: Option<Instant>,
    drop_next: Option<Instant>,
    count: u32,
    /// Count with which the latest state of dropping began.
    last_count: u32,
    is_dropping: bool,
}

impl Codel {
    /// Returns `true` if the packet that was removed has to be dropped. `waited` is its time in the queue, and `left_bytes` the
    /// length of the queue behind it.
    pub(crate) fn drops(&mut self, now: Instant, waited: Duration, left_bytes: usize) -> bool {
        let is_congested = self.is_congested(now, waited, left_bytes);
        if !is_congested {
            self.is_dropping = false;
            return false;
        }
        if self.is_dropping {
            let due = self.drop_next.filter(|next| now >= *next);
            if let Some(due) = due {
                self.count += 1;
                self.drop_next = Some(self.after(due));
            }
            return due.is_some();
        }
        self.is_dropping = true;
        // A queue that exceeds the target soon after it was controlled resumes near the drop rate that controlled it.
        let was_recent = self.drop_next.is_some_and(|next| now < next + 16 * INTERVAL);
        let delta = self.count.wrapping_sub(self.last_count);
        self.count = if was_recent && delta > 1 { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = Some(self.after(now));
        true
    }

    fn is_congested(&mut self, now: Instant, waited: Duration, left_bytes: usize) -> bool {
        if waited < TARGET || left_bytes <= MTU {
            self.first_above = None;
            return false;
        }
        let first_above = *self.first_above.get_or_insert(now + INTERVAL);
        now >= first_above
    }

    fn after(&self, time: Instant) -> Instant {
        time + INTERVAL.div_f64(f64::from(self.count).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn short_burst_loses_nothing_and_standing_queue_loses_more_and_more() {
        let (start, mut codel) = (Instant::now(), Codel::default());
        let mut drops = |from: u64, to: u64, waited: u64| {
            let times = from..to;
            times.filter(|time| codel.drops(start + ms(*time), ms(waited), 10_000)).count()
        };
        assert_eq!(drops(0, 99, 50), 0);
        assert_eq!(drops(99, 200, 5), 0);
        let first = drops(200, 700, 50);
        let second = drops(700, 1200, 50);
        assert!(first >= 3 && second > first, "{first} {second}");
        assert_eq!(drops(1200, 1300, 5), 0);
    }

    #[test]
    fn queue_that_was_controlled_lately_resumes_at_its_drop_rate() {
        // The gap is shorter or longer than 16 intervals.
        for (gap, resumes) in [(200, true), (3000, false)] {
            let (start, mut codel) = (Instant::now(), Codel::default());
            let mut drops = |from: u64, to: u64, waited: u64| {
                (from..to).filter(|time| codel.drops(start + ms(*time), ms(waited), 10_000)).count()
            };
            drops(0, 2000, 50);
            drops(2000, 2000 + gap, 5);
            let again = drops(2000 + gap, 2400 + gap, 50);
            assert_eq!(again > 8, resumes, "{again} drops after {gap} ms");
        }
    }

    #[test]
    fn last_packet_of_a_queue_is_kept() {
        let (start, mut codel) = (Instant::now(), Codel::default());
        assert!((0..1000).all(|time| !codel.drops(start + ms(time), ms(500), 1000)));
    }
}

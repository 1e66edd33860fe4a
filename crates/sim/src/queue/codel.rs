//! CoDel, RFC 8289: drops at the head of a queue in which every packet has waited too long for an interval.

use anabranch_core::time::{Span, Time};
use anabranch_core::units::WireBytes;

use super::fifo::{Fifo, Queued};
use crate::error::{ConfigError, require};

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// Acceptable waiting time of a persistent queue.
    pub target: Span,
    /// Time for which the waiting time has to exceed the target before the first drop: a worst-case round-trip time.
    pub interval: Span,
    /// Size of the largest packet. A queue of at most this many bytes is never dropped from.
    pub largest_packet: WireBytes,
}

impl Default for CoDel {
    /// Returns the values of RFC 8289, sections 4.2 and 4.3, for packets of 1500 bytes.
    fn default() -> Self {
        CoDel {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            largest_packet: WireBytes::new(1500),
        }
    }
}

impl CoDel {
    /// Checks the ranges of the parameters.
    ///
    /// # Errors
    /// Returns an error if the target is zero, or not shorter than the interval.
    pub fn validate(&self) -> Result<(), ConfigError> {
        require(!self.target.is_zero(), "codel target", "must be more than zero")?;
        require(self.target < self.interval, "codel target", "must be shorter than the interval")
    }
}

/// State of CoDel for one queue, named as in the pseudo-code of RFC 8289, section 5.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CoDelState {
    /// End of the interval that began when the waiting time exceeded the target.
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl CoDelState {
    /// Takes the next packet out and drops those that the control law selects. A queue that is not empty gives a packet.
    pub(super) fn dequeue(
        &mut self,
        config: &CoDel,
        now: Time,
        fifo: &mut Fifo,
        mut drop: impl FnMut(Queued),
    ) -> Option<Queued> {
        let (mut head, mut ok_to_drop) = self.take(config, now, fifo);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                head.into_iter().for_each(&mut drop);
                self.count = self.count.saturating_add(1);
                (head, ok_to_drop) = self.take(config, now, fifo);
                self.dropping = ok_to_drop;
                if ok_to_drop {
                    self.drop_next = control_law(config, self.drop_next, self.count);
                }
            }
        } else if ok_to_drop {
            head.into_iter().for_each(&mut drop);
            (head, _) = self.take(config, now, fifo);
            self.dropping = true;
            // A queue that exceeds the target soon after it was controlled resumes near the drop rate that controlled it.
            let delta = self.count.wrapping_sub(self.last_count);
            let is_recent = now.since(self.drop_next) < config.interval.times(16);
            self.count = if delta > 1 && is_recent { delta } else { 1 };
            self.drop_next = control_law(config, now, self.count);
            self.last_count = self.count;
        }
        head
    }

    /// Takes the head out and returns with it `true` if it may be dropped (`dodequeue` of the pseudo-code).
    fn take(&mut self, config: &CoDel, now: Time, fifo: &mut Fifo) -> (Option<Queued>, bool) {
        let head = fifo.pop();
        let is_short = fifo.bytes() <= config.largest_packet;
        let is_above = head.is_some_and(|head| now.since(head.since) >= config.target) && !is_short;
        if !is_above {
            self.first_above = None;
            return (head, false);
        }
        let end = *self.first_above.get_or_insert(now + config.interval);
        (head, now >= end)
    }
}

/// Returns the time of the drop that follows one at `time`: the drop rate grows with the square root of the number of drops.
fn control_law(config: &CoDel, time: Time, count: u32) -> Time {
    let nanos = config.interval.as_nanos() as f64 / libm::sqrt(f64::from(count));
    time + Span::from_nanos(nanos as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::fifo::tests::packets;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// Takes a packet out each 10 ms from a queue that is refilled so that each one has waited for `waited` ms, and returns the times
    /// of the drops.
    fn drops(waited: u64, until: u64) -> Vec<u64> {
        let (config, mut state, mut fifo) = (CoDel::default(), CoDelState::default(), Fifo::default());
        let mut dropped = Vec::new();
        for ms in (waited..until).step_by(10) {
            // The queue holds packets enough for all drops.
            packets(10).for_each(|queued| fifo.push(Queued { since: at(ms - waited), ..queued }));
            assert!(state.dequeue(&config, at(ms), &mut fifo, |_| dropped.push(ms)).is_some());
            while fifo.pop().is_some() {}
        }
        dropped
    }

    #[test]
    fn short_waiting_time_drops_nothing() {
        assert_eq!(drops(4, 10_000), []);
    }

    #[test]
    fn persistent_waiting_time_drops_after_an_interval_at_a_growing_rate() {
        // The interval ends at 105 ms, at which the pseudo-code drops; the next drops are due 100/sqrt(1), 100/sqrt(2) ms later, and
        // take place at the first packet from then on.
        assert_eq!(drops(5, 500), [105, 205, 285, 335, 385, 435, 475]);
    }

    #[test]
    fn queue_of_one_packet_is_never_dropped_from() {
        let (config, mut state, mut fifo) = (CoDel::default(), CoDelState::default(), Fifo::default());
        for ms in 1000..2000 {
            packets(2).for_each(|queued| fifo.push(Queued { since: Time::ZERO, ..queued }));
            assert!(state.dequeue(&config, at(ms), &mut fifo, |_| panic!("dropped")).is_some());
            assert!(fifo.pop().is_some());
        }
    }

    #[test]
    fn next_episode_resumes_near_the_former_drop_rate() {
        let (config, mut state, mut fifo) = (CoDel::default(), CoDelState::default(), Fifo::default());
        let mut dequeue = |ms: u64, waited: u64| {
            packets(100).for_each(|queued| fifo.push(Queued { since: at(ms - waited), ..queued }));
            let mut dropped = 0;
            state.dequeue(&config, at(ms), &mut fifo, |_| dropped += 1);
            while fifo.pop().is_some() {}
            (dropped, state.count)
        };
        let controlled = (1000..2000).map(|ms| dequeue(ms, 20)).last().map(|(_, count)| count);
        assert!(controlled.is_some_and(|count| count > 10), "{controlled:?}");
        assert_eq!(dequeue(2000, 0).0, 0);
        let again = (2001..2102).map(|ms| dequeue(ms, 20)).find(|(dropped, _)| *dropped > 0);
        assert_eq!(again.map(|(_, count)| count), controlled.map(|count| count - 1));
        // Long after the last drop, the rate starts again.
        assert_eq!(dequeue(20_000, 0).0, 0);
        let later = (20_001..20_102).map(|ms| dequeue(ms, 20)).find(|(dropped, _)| *dropped > 0);
        assert_eq!(later, Some((1, 1)));
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let target = Span::from_millis(100);
        assert!(CoDel { target, ..CoDel::default() }.validate().is_err());
        assert!(CoDel { target: Span::ZERO, ..CoDel::default() }.validate().is_err());
        assert!(CoDel::default().validate().is_ok());
    }
}

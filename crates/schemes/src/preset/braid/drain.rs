//! Periodic draining of the queue, so that the round-trip time without queues can be measured.
//!
//! A flow that keeps two packets in the queue never measures an empty queue. Eventually its minimum round-trip time would include
//! the delay of these two packets, and it would aim at four.
//!
//! In competitive mode a flow keeps the queue long, and cannot detect other flows. If the rate falls or the other flows end, it
//! would fill the buffer.

use anabranch_core::time::{Span, Time};

use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "drain",
    rule: text!(
        "q >= {} in every round of {} (delay mode) or {} (competitive mode): for {} round trips at most \
         {} rate base_m may be in flight",
        LEAST_PACKETS,
        EVERY_ALONE,
        EVERY_COMPETING,
        ROUNDS,
        SHARE,
    ),
    file: file!(),
}];

/// Interval without competing flows: several times within the memory of round-trip times, so that an attempt may fail.
const EVERY_ALONE: Span = Span::from_secs(5);
/// Interval in competitive mode, as in BBR's original ProbeRTT (draft-cardwell-iccrg-bbr-congestion-control-00): each time the
/// other flows take the released capacity.
const EVERY_COMPETING: Span = Span::from_secs(10);
/// Number of packets in the queue from which on it has to be drained.
pub(super) const LEAST_PACKETS: f64 = 1.0;
/// One round trip to drain the queue, one to measure it.
const ROUNDS: u64 = 2;
/// Data in flight during a drain, as a fraction of the bandwidth-delay product (BBR's ProbeBW_DOWN uses 0.9 for a longer time).
pub(super) const SHARE: f64 = 0.75;

/// Schedule for draining a path's queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drain {
    empty_at: Time,
    until: Option<Time>,
}

impl Drain {
    /// Records that the queue was empty, or that the path must not be drained now.
    pub(super) fn mark_unneeded(&mut self, now: Time) {
        self.empty_at = now;
    }

    /// Records a round in which the queue was not empty.
    pub(super) fn round_with_queue(&mut self, competing: bool, now: Time, rtt: Span) {
        let every = if competing { EVERY_COMPETING } else { EVERY_ALONE };
        if now.since(self.empty_at) > every {
            self.until = Some(now + rtt.times(ROUNDS));
            self.empty_at = now;
        }
    }

    pub(super) fn is_under_way(&self, now: Time) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    const RTT: Span = Span::from_millis(50);

    #[test]
    fn queue_nonempty_for_five_seconds_is_drained_for_two_rtts() {
        let mut drain = Drain::default();
        drain.mark_unneeded(at(1_000));
        drain.round_with_queue(false, at(6_000), RTT);
        assert!(!drain.is_under_way(at(6_000)));
        drain.round_with_queue(false, at(6_001), RTT);
        assert!(drain.is_under_way(at(6_100)) && !drain.is_under_way(at(6_101)));
        drain.round_with_queue(false, at(6_200), RTT);
        assert!(!drain.is_under_way(at(6_201)), "once in five seconds");
    }

    #[test]
    fn competitive_queue_is_drained_after_ten_seconds() {
        let mut drain = Drain::default();
        drain.mark_unneeded(at(1_000));
        drain.round_with_queue(true, at(11_000), RTT);
        assert!(!drain.is_under_way(at(11_000)));
        drain.round_with_queue(true, at(11_001), RTT);
        assert!(drain.is_under_way(at(11_100)));
    }
}

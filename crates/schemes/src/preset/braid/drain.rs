//! Emptying the queue now and then, so that the round trip without queues can be measured.
//!
//! A flow that keeps two packets in the queue never sees an empty one. After a while its least round trip would be that with
//! two packets, and with the next two it would aim at four.
//!
//! A flow that believes itself beside others keeps the queue long, and cannot see whether there is anybody else. A fallen rate or
//! flows that have ended would leave it alone with a queue as long as the buffer.

use anabranch_core::time::{Span, Time};

use crate::definition::Equation;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "drain",
    rule: "q >= 1 in every round of 5 s (alone) or 10 s (competing): for 2 round trips 0.75 rate base may be in flight at most",
    file: file!(),
}];

/// Several times within the memory of round trips, so that an attempt may fail.
const EVERY_ALONE: Span = Span::from_secs(5);
/// As BBR's ProbeRTT at first (draft-cardwell-iccrg-bbr-congestion-control-00): each time the others take what the flow leaves.
const EVERY_COMPETING: Span = Span::from_secs(10);
/// One to empty the queue, one to measure it.
const ROUNDS: u64 = 2;
/// What may be in flight meanwhile, of what the path holds without a queue (BBR's ProbeBW_DOWN has 0.9 for a longer time).
pub(super) const SHARE: f64 = 0.75;

/// When a path's queue is emptied.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drain {
    empty_at: Time,
    until: Option<Time>,
}

impl Drain {
    /// The queue was empty, or the path is not meant to be drained now.
    pub(super) fn not_needed(&mut self, now: Time) {
        self.empty_at = now;
    }

    /// A round is over in which the queue was not empty.
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
    fn a_queue_that_was_not_empty_for_five_seconds_is_drained_for_two_round_trips() {
        let mut drain = Drain::default();
        drain.not_needed(at(1_000));
        drain.round_with_queue(false, at(6_000), RTT);
        assert!(!drain.is_under_way(at(6_000)));
        drain.round_with_queue(false, at(6_001), RTT);
        assert!(drain.is_under_way(at(6_100)) && !drain.is_under_way(at(6_101)));
        drain.round_with_queue(false, at(6_200), RTT);
        assert!(!drain.is_under_way(at(6_201)), "once in five seconds");
    }

    #[test]
    fn beside_others_it_is_drained_after_ten_seconds() {
        let mut drain = Drain::default();
        drain.not_needed(at(1_000));
        drain.round_with_queue(true, at(11_000), RTT);
        assert!(!drain.is_under_way(at(11_000)));
        drain.round_with_queue(true, at(11_001), RTT);
        assert!(drain.is_under_way(at(11_100)));
    }
}

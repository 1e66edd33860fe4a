//! Losses on a path whose round-trip time is no longer measured.
//!
//! Only chunks that were sent once are measured (Karn). If the rate of a link falls and its queue is several round trips long, all
//! acknowledged chunks may be spurious retransmissions. Their copies keep the queue full, and no sample reveals it. RFC 6298
//! section 5.5 requires caution of timers in that case. The same applies to the window: while no valid RTT sample exists, every
//! loss counts as congestion.

use anabranch_core::policy::PathFacts;
use anabranch_core::time::Time;

use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "losses without round-trip samples",
    rule: text!(
        "for {} (SRTT + 4 RTTVAR), and for {} chunks, only retransmitted chunks were acknowledged: a \
         loss is congestion",
        ROUND_TRIPS,
        LEAST_CHUNKS,
    ),
    file: file!(),
}];

/// Number of round trips: one in which a loss is detected, and one in which the retransmission arrives; then new data is measured.
const ROUND_TRIPS: u64 = 2;
/// Minimum number of chunks, which a small window does not contain: a single burst of losses is not all that is acknowledged.
const LEAST_CHUNKS: u32 = 16;

/// Acknowledgements since the latest RTT sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct AmbiguousRtt {
    since: Time,
    retransmitted: u32,
}

impl AmbiguousRtt {
    pub(super) fn new(now: Time) -> Self {
        AmbiguousRtt { since: now, retransmitted: 0 }
    }

    /// Records an acknowledged chunk.
    pub(super) fn acked(&mut self, sent_once: bool, now: Time) {
        if sent_once {
            *self = AmbiguousRtt::new(now);
        } else {
            self.retransmitted = self.retransmitted.saturating_add(1);
        }
    }

    /// Returns `true` if a loss now counts as congestion for lack of RTT samples.
    pub(super) fn is_too_long(&self, facts: &PathFacts, now: Time) -> bool {
        let variance = facts.rtt.variance.unwrap_or_default();
        let round_trip = facts.rtt.smoothed.map_or(facts.rto, |smoothed| smoothed + variance.times(4));
        self.retransmitted >= LEAST_CHUNKS && now.since(self.since) > round_trip.times(ROUND_TRIPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;
    use anabranch_core::profile::Profile;
    use anabranch_core::time::Span;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// Creates a path with a round-trip time of 100 ms and a variation of 25 ms: 200 ms with four deviations.
    fn facts() -> PathFacts {
        let mut world = World::new(Profile::rfc9260(), 1);
        world.paths[0].rtt.smoothed = Some(Span::from_millis(100));
        world.paths[0].rtt.variance = Some(Span::from_millis(25));
        world.paths[0]
    }

    #[test]
    fn sixteen_ambiguous_acks_in_two_rtts_are_too_long() {
        let mut ambiguous_rtt = AmbiguousRtt::new(at(1_000));
        (0..15).for_each(|_| ambiguous_rtt.acked(false, at(1_100)));
        assert!(!ambiguous_rtt.is_too_long(&facts(), at(5_000)), "a burst of losses was repaired");
        ambiguous_rtt.acked(false, at(1_100));
        assert!(!ambiguous_rtt.is_too_long(&facts(), at(1_400)));
        assert!(ambiguous_rtt.is_too_long(&facts(), at(1_401)));
    }

    #[test]
    fn chunk_that_was_sent_once_restarts_the_count() {
        let mut ambiguous_rtt = AmbiguousRtt::new(at(1_000));
        (0..40).for_each(|_| ambiguous_rtt.acked(false, at(1_100)));
        ambiguous_rtt.acked(true, at(2_000));
        (0..16).for_each(|_| ambiguous_rtt.acked(false, at(2_100)));
        assert!(!ambiguous_rtt.is_too_long(&facts(), at(2_400)));
        assert!(ambiguous_rtt.is_too_long(&facts(), at(2_401)));
    }
}

//! Whether a path loses packets while nothing measures its round trip any more.
//!
//! Only chunks that were sent once are measured (Karn). If the rate of a link falls and its queue is several round trips long, all
//! that is acknowledged may be chunks that were taken for lost too soon and sent again: their copies keep the queue full, and nothing
//! tells that it is. What RFC 6298 section 5.5 asks of timers holds for the window then: as long as the round trip is not known, a
//! loss is congestion.

use anabranch_core::policy::PathFacts;
use anabranch_core::time::Time;

use crate::definition::Equation;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "a loss that nothing measures",
    rule: "for 2 (SRTT + 4 RTTVAR), and for 16 chunks, only chunks that had been sent again were acknowledged: a loss is congestion",
    file: file!(),
}];

/// A round trip in which a loss is found, and one in which the chunk arrives that was sent again; then new data is measured.
const ROUND_TRIPS: u64 = 2;
/// Chunks that a small window cannot hold: what one burst of losses takes is not all that is acknowledged.
const LEAST_CHUNKS: u32 = 16;

/// What was acknowledged since a round trip was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unmeasured {
    since: Time,
    sent_again: u32,
}

impl Unmeasured {
    pub(super) fn new(now: Time) -> Self {
        Unmeasured { since: now, sent_again: 0 }
    }

    /// A chunk was acknowledged.
    pub(super) fn acked(&mut self, sent_once: bool, now: Time) {
        if sent_once {
            *self = Unmeasured::new(now);
        } else {
            self.sent_again = self.sent_again.saturating_add(1);
        }
    }

    /// Whether a loss now is congestion, since nothing tells otherwise.
    pub(super) fn is_too_long(&self, facts: &PathFacts, now: Time) -> bool {
        let variance = facts.rtt.variance.unwrap_or_default();
        let round_trip = facts.rtt.smoothed.map_or(facts.rto, |smoothed| smoothed + variance.times(4));
        self.sent_again >= LEAST_CHUNKS && now.since(self.since) > round_trip.times(ROUND_TRIPS)
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

    /// A path with a round trip of 100 ms that varies by 25: 200 ms with four deviations.
    fn facts() -> PathFacts {
        let mut world = World::new(Profile::rfc9260(), 1);
        world.paths[0].rtt.smoothed = Some(Span::from_millis(100));
        world.paths[0].rtt.variance = Some(Span::from_millis(25));
        world.paths[0]
    }

    #[test]
    fn two_round_trips_with_nothing_but_sixteen_chunks_sent_again_are_too_long() {
        let mut unmeasured = Unmeasured::new(at(1_000));
        (0..15).for_each(|_| unmeasured.acked(false, at(1_100)));
        assert!(!unmeasured.is_too_long(&facts(), at(5_000)), "a burst of losses was repaired");
        unmeasured.acked(false, at(1_100));
        assert!(!unmeasured.is_too_long(&facts(), at(1_400)));
        assert!(unmeasured.is_too_long(&facts(), at(1_401)));
    }

    #[test]
    fn a_chunk_that_was_sent_once_begins_anew() {
        let mut unmeasured = Unmeasured::new(at(1_000));
        (0..40).for_each(|_| unmeasured.acked(false, at(1_100)));
        unmeasured.acked(true, at(2_000));
        (0..16).for_each(|_| unmeasured.acked(false, at(2_100)));
        assert!(!unmeasured.is_too_long(&facts(), at(2_400)));
        assert!(unmeasured.is_too_long(&facts(), at(2_401)));
    }
}

//! Queueing delay derived from round-trip times (Arun and Balakrishnan 2018, sections 2.1 and 2.2).

use anabranch_core::time::{Span, Time};
use anabranch_core::windowed::{WindowedMax, WindowedMin};

use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "section 2.1, queueing delay",
    rule: text!(
        "dq = RTTstanding - RTTmin: the minimum round-trip times of the last srtt / 2 and of the last {}",
        MIN_MEMORY,
    ),
    file: file!(),
}];

const MIN_MEMORY: Span = Span::from_secs(10);
/// Section 2.2: number of round trips for which a sample counts for the maximum.
pub(super) const MAX_MEMORY_ROUNDS: u64 = 4;
/// Fraction of the maximum delay below which the queue is nearly empty.
pub(super) const NEARLY_EMPTY: f64 = 0.1;

/// Round-trip times of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delays {
    standing: WindowedMin<Span>,
    least: WindowedMin<Span>,
    largest: WindowedMax<Span>,
    empty_at: Time,
}

impl Delays {
    /// Processes the round-trip time of an acknowledged chunk.
    pub(super) fn take(&mut self, rtt: Span, smoothed: Span, now: Time) {
        let at = now.as_nanos();
        let standing = self.standing.update(at, rtt, smoothed.over(2).as_nanos());
        let least = self.least.update(at, rtt, MIN_MEMORY.as_nanos());
        let largest = self.largest.update(at, rtt, smoothed.times(MAX_MEMORY_ROUNDS).as_nanos());
        let most = (largest - least).as_secs_f64();
        if (standing - least).as_secs_f64() <= NEARLY_EMPTY * most {
            self.empty_at = now;
        }
    }

    pub(super) fn standing_rtt(&self) -> Option<Span> {
        self.standing.get()
    }

    /// Returns dq, the queueing delay.
    pub(super) fn queueing(&self) -> Span {
        self.standing.get().zip(self.least.get()).map_or(Span::ZERO, |(standing, least)| standing - least)
    }

    /// Returns the time at which the queue was last nearly empty.
    pub(super) fn empty_at(&self) -> Time {
        self.empty_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_is_the_recent_minimum_above_the_overall_minimum() {
        let mut delays = Delays::default();
        let mut take = |at: u64, rtt| {
            let now = Time::from_nanos(at * 1_000_000);
            delays.take(Span::from_millis(rtt), Span::from_millis(100), now);
            (delays.queueing(), delays.empty_at() == now)
        };
        assert_eq!(take(1, 40), (Span::ZERO, true));
        assert_eq!(take(20, 90), (Span::ZERO, true));
        // The 40 ms are older than half of a smoothed round-trip time.
        assert_eq!(take(60, 80), (Span::from_millis(40), false));
        assert_eq!(take(70, 44), (Span::from_millis(4), true));
        assert_eq!(take(80, 60), (Span::from_millis(4), true));
    }
}

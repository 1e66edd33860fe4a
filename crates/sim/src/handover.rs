//! Times of handovers.

use anabranch_core::time::{Span, Time};

use crate::error::{ConfigError, require};
use crate::rng::Stream;

/// Times at which a station changes its point of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// Start of the first handover, since the beginning of the run.
    pub first: Span,
    /// Time between the starts of two handovers; `None` for one handover.
    pub every: Option<Span>,
    /// Set to draw the time from the end of a handover to the next one from an exponential distribution, with `every` as the mean
    /// time between two starts.
    pub is_random: bool,
    /// Duration for which the links are down.
    pub outage: Span,
}

impl Handover {
    /// Checks that a handover ends before the next one starts.
    ///
    /// # Errors
    /// Returns an error if `every` is not more than `outage`.
    pub fn check(&self) -> Result<(), ConfigError> {
        require(
            self.every.is_none_or(|every| every > self.outage),
            "every",
            "must be more than the outage of a handover",
        )
    }

    /// Returns the start and the end of each handover. Only random times use `stream`.
    pub fn times(self, stream: Stream) -> HandoverTimes {
        HandoverTimes { handover: self, next: Some(Time::ZERO + self.first), stream }
    }
}

/// Starts and ends of handovers, in order.
#[derive(Clone, Debug)]
pub struct HandoverTimes {
    handover: Handover,
    next: Option<Time>,
    stream: Stream,
}

impl Iterator for HandoverTimes {
    type Item = (Time, Time);

    fn next(&mut self) -> Option<(Time, Time)> {
        let start = self.next?;
        let Handover { every, is_random, outage, .. } = self.handover;
        let end = start + outage;
        let mut pause = |mean: Span| {
            let drawn = Span::from_secs_f64(self.stream.exponential(mean.as_secs_f64()));
            if is_random { drawn } else { mean }
        };
        self.next = every.map(|every| end + pause(every - outage).max(SHORTEST_PAUSE));
        Some((start, end))
    }
}

impl HandoverTimes {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        self.handover.check()
    }
}

/// Shortest time between two handovers.
const SHORTEST_PAUSE: Span = Span::from_nanos(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seeds;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn times(handover: Handover, count: usize) -> Vec<(Time, Time)> {
        handover.times(Seeds::new(1, 0).stream(&["handover"])).take(count).collect()
    }

    const ONE: Handover =
        Handover { first: Span::from_secs(3), every: None, is_random: false, outage: Span::from_millis(50) };

    #[test]
    fn handover_without_period_takes_place_once() {
        assert_eq!(times(ONE, 9), [(ms(3000), ms(3050))]);
    }

    #[test]
    fn period_is_the_time_between_starts() {
        let handover = Handover { every: Some(Span::from_secs(2)), ..ONE };
        assert_eq!(times(handover, 3), [(ms(3000), ms(3050)), (ms(5000), ms(5050)), (ms(7000), ms(7050))]);
    }

    #[test]
    fn random_handovers_have_the_mean_period_and_do_not_overlap() {
        let handover = Handover { every: Some(Span::from_secs(2)), is_random: true, ..ONE };
        let found = times(handover, 2001);
        assert!(found.windows(2).all(|pair| pair[0].1 < pair[1].0));
        let mean = found[2000].0.since(found[0].0).as_secs_f64() / 2000.0;
        assert!((1.9..2.1).contains(&mean), "{mean}");
    }

    #[test]
    fn period_that_is_no_longer_than_the_outage_is_refused() {
        assert!(Handover { every: Some(Span::from_millis(50)), ..ONE }.check().is_err());
        assert!(Handover { every: Some(Span::from_millis(51)), ..ONE }.check().is_ok());
    }
}

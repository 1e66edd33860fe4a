//! What round trips say of a path: its time without queues, and how long its queue is.
//!
//! A SACK acknowledges data of all paths and comes back on one of them. So a path has two times without queues: one of
//! acknowledgements that came back the same way, and one of those that came another way. Either is held against its own.

use anabranch_core::time::{Span, Time};
use anabranch_core::windowed::WindowedMin;

use crate::definition::Equation;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "round trips",
    rule: "base_w = the least time of the last 20 s among acknowledgements by way w (the same path, or another); base = the less \
           of both; queue = time - base_w; only chunks sent once are measured",
    file: file!(),
}];

/// Twice the 10 s of BBR (draft-ietf-ccwg-bbr section 2.14.2, MinRTTFilterLen) and Copa. Theirs is renewed by draining at its end;
/// beside flows that fill the queue a drain empties nothing, and the base has to be of before they came or of one of their cuts.
const MEMORY: Span = Span::from_secs(20);

/// A path's round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrips {
    base_by_way: [WindowedMin<Span>; 2],
    queue: Option<Span>,
}

impl RoundTrips {
    /// Takes in the time until an acknowledgement.
    pub(super) fn take(&mut self, time: Span, same_way: bool, now: Time) {
        let (at, window) = (now.as_nanos(), MEMORY.as_nanos());
        let queue = time - self.base_by_way[usize::from(same_way)].update(at, time, window);
        self.queue = Some(queue);
    }

    /// The round trip without queues; `None` until one was measured.
    pub(super) fn base(&self) -> Option<Span> {
        self.base_by_way.iter().filter_map(WindowedMin::get).min()
    }

    /// How much of the latest round trip was queue.
    pub(super) fn queue(&self) -> Option<Span> {
        self.queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// The queue after this measurement.
    fn queue(trips: &mut RoundTrips, time: u64, same_way: bool, now: u64) -> u64 {
        trips.take(ms(time), same_way, at(now));
        trips.queue().map_or(0, |queue| queue.as_nanos() / 1_000_000)
    }

    #[test]
    fn the_queue_is_what_exceeds_the_least_time_of_the_same_way() {
        let mut trips = RoundTrips::default();
        assert_eq!((trips.base(), trips.queue()), (None, None));
        assert_eq!(queue(&mut trips, 100, true, 0), 0);
        assert_eq!(queue(&mut trips, 60, false, 1), 0, "another way is no faster path");
        assert_eq!(queue(&mut trips, 130, true, 2), 30);
        assert_eq!(queue(&mut trips, 70, false, 3), 10);
        assert_eq!(trips.base(), Some(ms(60)));
    }

    #[test]
    fn a_time_counts_for_twenty_seconds() {
        let mut trips = RoundTrips::default();
        queue(&mut trips, 50, true, 0);
        assert_eq!(queue(&mut trips, 80, true, 19_000), 30);
        assert_eq!(queue(&mut trips, 90, true, 20_500), 10);
        assert_eq!(trips.base(), Some(ms(80)));
    }
}

//! Round-trip times of a path: its base without queues, and its queueing delay.
//!
//! A SACK acknowledges data of all paths and returns on one of them. Therefore a path has one base per return path, and each
//! acknowledgement is compared with those that returned on the same path.

use anabranch_core::PathId;
use anabranch_core::time::{Span, Time};
use anabranch_core::windowed::{WindowedMax, WindowedMin};

use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "round trips",
    rule: text!(
        "base_w = minimum time of the last {} among acknowledgements that returned on path w; base = the \
         minimum of these; queue = time - base_w, minus the time since the previous SACK on path w if \
         this is another path than that of the data; measured are chunks sent once, and copies that the \
         peer reports as duplicates",
        MEMORY,
    ),
    file: file!(),
}];

/// Memory of round-trip times: twice the 10 s of BBR (draft-ietf-ccwg-bbr section 2.14.2, MinRTTFilterLen) and Copa. They drain the
/// path at its end to renew the minimum. Beside flows that fill the queue a drain has no effect, and the base has to predate them
/// or come from one of their reductions.
pub(super) const MEMORY: Span = Span::from_secs(20);

/// Round-trip times of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundTrips {
    /// Base by return path: index 0 is no path of the association, then each path by its index.
    base_by_way: Vec<WindowedMin<Span>>,
    queue: Option<Span>,
    queue_limit: Option<Span>,
    longest_queue: WindowedMax<Span>,
}

fn index(way: Option<PathId>) -> usize {
    way.map_or(0, |path| 1 + path.index())
}

impl RoundTrips {
    /// Records the time until an acknowledgement that returned on this path, and the longest time that the data may have waited for
    /// it at the peer.
    pub(super) fn take(&mut self, time: Span, way: Option<PathId>, waited: Span, now: Time) {
        let (at, window, way) = (now.as_nanos(), MEMORY.as_nanos(), index(way));
        if self.base_by_way.len() <= way {
            self.base_by_way.resize_with(way + 1, WindowedMin::default);
        }
        let limit = time - self.base_by_way[way].update(at, time, window);
        let queue = limit - waited;
        (self.queue, self.queue_limit) = (Some(queue), Some(limit));
        self.longest_queue.update(at, queue, window);
    }

    /// Forgets a long queue without newer samples within the memory of round-trip times.
    pub(super) fn forget_old(&mut self, now: Time) {
        let since = |at: u64| now.since(Time::from_nanos(at));
        if self.longest_queue.at().is_some_and(|at| since(at) > MEMORY) {
            self.longest_queue = WindowedMax::default();
        }
    }

    /// Returns the longest queueing delay within the memory of round-trip times.
    pub(super) fn longest_queue(&self) -> Option<Span> {
        self.longest_queue.get()
    }

    /// Discards the samples that returned on this path, because its route has changed.
    pub(super) fn discard_return_samples(&mut self, path: PathId) {
        if let Some(base) = self.base_by_way.get_mut(index(Some(path))) {
            *base = WindowedMin::default();
        }
    }

    /// Returns the round-trip time without queues, or `None` before the first sample.
    pub(super) fn base(&self) -> Option<Span> {
        self.base_by_way.iter().filter_map(WindowedMin::get).min()
    }

    /// Returns the queueing delay in the latest round trip.
    pub(super) fn queue(&self) -> Option<Span> {
        self.queue
    }

    /// Returns the upper bound of the queueing delay in the latest round trip: data may not have waited for its SACK.
    pub(super) fn queue_limit(&self) -> Option<Span> {
        self.queue_limit
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

    /// Returns the queueing delay after this sample.
    fn queue(trips: &mut RoundTrips, time: u64, way: usize, now: u64) -> u64 {
        trips.take(ms(time), Some(PathId::new(way)), Span::ZERO, at(now));
        trips.queue().map_or(0, |queue| queue.as_nanos() / 1_000_000)
    }

    #[test]
    fn the_queue_is_what_exceeds_the_least_time_of_the_same_way() {
        let mut trips = RoundTrips::default();
        assert_eq!((trips.base(), trips.queue()), (None, None));
        assert_eq!(queue(&mut trips, 100, 0, 0), 0);
        assert_eq!(queue(&mut trips, 60, 1, 1), 0, "another way is no faster path");
        assert_eq!(queue(&mut trips, 80, 2, 1), 0, "a third way is no queue");
        assert_eq!(queue(&mut trips, 130, 0, 2), 30);
        assert_eq!(queue(&mut trips, 70, 1, 3), 10);
        assert_eq!(trips.base(), Some(ms(60)));
    }

    #[test]
    fn wait_for_the_sack_is_no_queue() {
        let mut trips = RoundTrips::default();
        queue(&mut trips, 60, 1, 0);
        for (waited, expected) in [(10, 20), (30, 0), (40, 0)] {
            trips.take(ms(90), Some(PathId::new(1)), ms(waited), at(1));
            assert_eq!(trips.queue(), Some(ms(expected)), "{waited}");
            assert_eq!(trips.queue_limit(), Some(ms(30)), "{waited}");
        }
        assert_eq!((trips.longest_queue(), trips.base()), (Some(ms(20)), Some(ms(60))));
    }

    #[test]
    fn rebound_path_discards_its_return_times() {
        let mut trips = RoundTrips::default();
        queue(&mut trips, 60, 1, 0);
        trips.discard_return_samples(PathId::new(1));
        trips.discard_return_samples(PathId::new(7));
        assert_eq!(queue(&mut trips, 90, 1, 1), 0);
    }

    #[test]
    fn the_longest_queue_is_forgotten_after_twenty_seconds_without_another() {
        let mut trips = RoundTrips::default();
        queue(&mut trips, 50, 0, 0);
        queue(&mut trips, 90, 0, 1_000);
        queue(&mut trips, 60, 0, 2_000);
        trips.forget_old(at(21_000));
        assert_eq!(trips.longest_queue(), Some(ms(40)));
        trips.forget_old(at(21_001));
        assert_eq!(trips.longest_queue(), None);
    }

    #[test]
    fn a_time_counts_for_twenty_seconds() {
        let mut trips = RoundTrips::default();
        queue(&mut trips, 50, 0, 0);
        assert_eq!(queue(&mut trips, 80, 0, 19_000), 30);
        assert_eq!(queue(&mut trips, 90, 0, 20_500), 10);
        assert_eq!(trips.base(), Some(ms(80)));
    }
}

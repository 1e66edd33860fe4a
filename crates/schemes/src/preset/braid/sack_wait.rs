//! Waits of arrived data for the SACK that acknowledges it.
//!
//! The peer sends each SACK on the path of its latest DATA. If this path returns SACKs faster than the path of the data, its next
//! SACK is the first that acknowledges the data, and the peer sends it only once DATA has arrived on that path. Beside a slow path,
//! the wait is longer than most queues. If it counted as a queue, random losses would count as congestion.

use anabranch_core::time::{Span, Time};
use anabranch_core::{MAX_PATHS, PathId};

/// Times of the SACKs that returned on each path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SackWait([SackTimes; MAX_PATHS]);

#[derive(Clone, Copy, Debug, Default)]
struct SackTimes {
    latest: Option<Time>,
    previous: Option<Time>,
}

impl SackWait {
    /// Records an acknowledgement that returned on the path `way`. Returns the longest time that data of the path may have waited
    /// for it at the peer: since the peer sent the previous SACK there.
    pub(super) fn acked(&mut self, path: PathId, way: Option<PathId>, now: Time) -> Span {
        let Some(way) = way else { return Span::ZERO };
        let times = &mut self.0[way.index()];
        if times.latest != Some(now) {
            *times = SackTimes { latest: Some(now), previous: times.latest };
        }
        times.previous.filter(|_| way != path).map_or(Span::ZERO, |previous| now.since(previous))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::path;

    /// Returns the wait in milliseconds of data of a path, for an acknowledgement that returns on another path or on none.
    fn wait(waits: &mut SackWait, data: usize, way: Option<usize>, ms: u64) -> u64 {
        let now = Time::ZERO + Span::from_millis(ms);
        waits.acked(path(data), way.map(path), now).as_nanos() / 1_000_000
    }

    #[test]
    fn data_waits_since_the_previous_sack_on_the_other_path() {
        let mut waits = SackWait::default();
        assert_eq!(wait(&mut waits, 1, Some(0), 100), 0, "there is no previous SACK");
        assert_eq!(wait(&mut waits, 0, Some(0), 110), 0);
        assert_eq!(wait(&mut waits, 1, Some(0), 125), 15);
        assert_eq!(wait(&mut waits, 2, Some(1), 130), 0, "SACKs on other paths do not count");
    }

    #[test]
    fn all_data_of_a_sack_waits_since_the_one_before() {
        let mut waits = SackWait::default();
        wait(&mut waits, 1, Some(0), 100);
        assert_eq!([1, 2, 1].map(|data| wait(&mut waits, data, Some(0), 120)), [20, 20, 20]);
    }

    #[test]
    fn data_does_not_wait_for_sacks_of_its_own_or_an_unknown_path() {
        let mut waits = SackWait::default();
        for ms in [100, 120] {
            assert_eq!((wait(&mut waits, 0, Some(0), ms), wait(&mut waits, 0, None, ms)), (0, 0));
        }
    }
}

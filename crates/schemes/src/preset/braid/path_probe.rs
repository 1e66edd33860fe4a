//! Probing of potentially failed paths.
//!
//! A burst of losses that affects a whole flight looks like a failure, and ends after some packets. With one HEARTBEAT per RTO,
//! which is a second or more and backs off, a fast path stays unused for many times as long.

use anabranch_core::PathState;
use anabranch_core::policy::PathFacts;
use anabranch_core::time::{Span, Time};

use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "probes of a potentially failed path",
    rule: text!(
        "besides the HEARTBEAT of each RTO, one after each max(SRTT + 4 RTTVAR, t / {}, {}), t = the \
         time since it failed",
        PART_OF_SILENCE,
        LEAST,
    ),
    file: file!(),
}];

/// Divisor of the silence. A minute of it costs about a hundred packets, regardless of the round-trip time: a burst of losses that
/// lasts for a number of packets rather than for a time ends with them.
const PART_OF_SILENCE: u64 = 16;
/// Minimum interval: several times the clock granularity of current machines (RFC 9260).
const LEAST: Span = Span::from_millis(10);

/// Probes of a path while it is potentially failed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathProbe {
    probing: Option<Probing>,
}

#[derive(Clone, Copy, Debug)]
struct Probing {
    failed_at: Time,
    round_trip: Span,
    due: Time,
}

impl PathProbe {
    /// Handles a change of the path's state.
    pub(super) fn changed(&mut self, to: PathState, facts: &PathFacts, now: Time) {
        let measured = facts.rtt.smoothed.filter(|_| to == PathState::PotentiallyFailed);
        self.probing = measured.map(|smoothed| {
            let round_trip = (smoothed + facts.rtt.variance.unwrap_or_default().times(4)).max(LEAST);
            Probing { failed_at: now, round_trip, due: now + round_trip }
        });
    }

    /// Returns the time of the next probe.
    pub(super) fn due(&self) -> Option<Time> {
        self.probing.map(|probing| probing.due)
    }

    /// Returns `true` if a probe is due, and schedules the next one.
    pub(super) fn is_due(&mut self, now: Time) -> bool {
        let Some(probing) = self.probing.as_mut().filter(|probing| probing.due <= now) else { return false };
        let silence = now.since(probing.failed_at);
        probing.due = now + probing.round_trip.max(silence.over(PART_OF_SILENCE));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;
    use anabranch_core::profile::Profile;

    /// Returns the times of probes within a minute, in milliseconds, for a path with this round-trip time that failed at 0.
    fn probes(round_trip: u64) -> Vec<u64> {
        let mut world = World::new(Profile::rfc9260(), 1);
        world.paths[0].rtt.smoothed = Some(Span::from_millis(round_trip));
        let mut path_probe = PathProbe::default();
        path_probe.changed(PathState::PotentiallyFailed, &world.paths[0], Time::ZERO);
        let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
        (0..60_000).filter(|ms| path_probe.is_due(at(*ms))).collect()
    }

    #[test]
    fn probes_leave_at_the_scale_of_the_round_trip_and_become_rare() {
        let left = probes(100);
        assert_eq!(left[..5], [100, 200, 300, 400, 500]);
        assert!(left[left.len() - 1] - left[left.len() - 2] > 2_000, "{left:?}");
        assert!((60..120).contains(&left.len()), "{}", left.len());
    }

    #[test]
    fn a_path_without_delay_is_not_flooded() {
        assert!(probes(0).len() < 180, "{}", probes(0).len());
    }

    #[test]
    fn recovered_path_gets_no_probe() {
        let mut world = World::new(Profile::rfc9260(), 1);
        world.paths[0].rtt.smoothed = Some(Span::from_millis(100));
        let mut path_probe = PathProbe::default();
        path_probe.changed(PathState::PotentiallyFailed, &world.paths[0], Time::ZERO);
        assert!(path_probe.due().is_some());
        for state in [PathState::Active, PathState::Inactive] {
            path_probe.changed(state, &world.paths[0], Time::ZERO);
            assert_eq!(path_probe.due(), None);
        }
    }

    #[test]
    fn a_path_that_was_never_measured_waits_for_its_rto() {
        let world = World::new(Profile::rfc9260(), 1);
        let mut path_probe = PathProbe::default();
        path_probe.changed(PathState::PotentiallyFailed, &world.paths[0], Time::ZERO);
        assert_eq!(path_probe.due(), None);
    }
}

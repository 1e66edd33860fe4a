//! Round-trip times and retransmission time-outs.

use crate::path_id::PathId;
use crate::paths::Paths;
use crate::policy::RttFacts;
use crate::profile::Profile;
use crate::time::{Span, Time};

impl Paths {
    /// Adds a round-trip sample to a path's estimate, which sets its RTO.
    pub(crate) fn take_rtt_sample(&mut self, id: PathId, rtt: Span) {
        let facts = &mut self.facts[id.index()];
        facts.rto = take_rtt_sample(&mut facts.rtt, rtt, &self.profile);
    }

    /// Doubles a path's RTO (RFC 9260 section 6.3.3 E2).
    pub(crate) fn back_off(&mut self, id: PathId) {
        let facts = &mut self.facts[id.index()];
        facts.rto = facts.rto.times(2).min(self.profile.rto_max);
    }

    /// Reverts the back-off of a path without samples.
    pub(crate) fn reset_rto(&mut self, id: PathId) {
        self.facts[id.index()].rto = self.profile.rto_initial;
    }

    /// Limits the RTO to its initial value after a handshake with retries.
    pub(crate) fn cap_rto(&mut self, id: PathId) {
        let facts = &mut self.facts[id.index()];
        facts.rto = facts.rto.min(self.profile.rto_initial);
    }

    /// Starts to measure the round trip of a chunk, unless one is measured on this path.
    pub(crate) fn begin_measurement(&mut self, id: PathId, tsn: u64) {
        self.paths[id.index()].measuring.get_or_insert(tsn);
    }

    /// Ends the RTT measurement if it measures this chunk. Returns `true` if it was.
    pub(crate) fn end_measurement_of(&mut self, id: PathId, tsn: u64) -> bool {
        self.paths[id.index()].measuring.take_if(|measured| *measured == tsn).is_some()
    }

    /// Discards the measurement on a path: a sample of this round trip could include a loss.
    pub(crate) fn cancel_measurement(&mut self, id: PathId) {
        self.paths[id.index()].measuring = None;
    }

    /// Updates the minimum RTT of a path by a chunk that was sent once and acknowledged on the path itself.
    pub(crate) fn note_least_rtt(&mut self, id: PathId, sent_at: Time, now: Time) {
        let window = self.profile.min_rtt_window.as_nanos();
        let least = self.paths[id.index()].least_rtt.update(now.as_nanos(), now.since(sent_at), window);
        self.facts[id.index()].rtt.recent_min = Some(least);
    }
}

/// Adds a round-trip sample to the estimate and returns the new RTO (RFC 9260 section 6.3.1, C2, C3, C6, C7).
fn take_rtt_sample(rtt: &mut RttFacts, sample: Span, profile: &Profile) -> Span {
    rtt.latest = Some(sample);
    rtt.min = Some(rtt.min.map_or(sample, |m| m.min(sample)));
    let (smoothed, variance) = match (rtt.smoothed, rtt.variance) {
        (Some(smoothed), Some(variance)) => {
            let error = smoothed.abs_diff(sample);
            (smoothed.times(7).over(8) + sample.over(8), variance.times(3).over(4) + error.over(4))
        }
        _ => (sample, sample.over(2)),
    };
    rtt.smoothed = Some(smoothed);
    rtt.variance = Some(variance);
    (smoothed + variance.times(4)).max(profile.rto_min).min(profile.rto_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_sets_the_estimate_and_later_ones_move_it() {
        let profile = Profile { rto_min: Span::from_millis(1), ..Profile::rfc9260() };
        let mut rtt = RttFacts::default();
        assert_eq!(take_rtt_sample(&mut rtt, Span::from_millis(100), &profile), Span::from_millis(300));
        assert_eq!(rtt.variance, Some(Span::from_millis(50)));
        // SRTT 7/8 * 100 + 1/8 * 180 = 110; RTTVAR 3/4 * 50 + 1/4 * 80 = 57.5; RTO = 110 + 230 = 340.
        assert_eq!(take_rtt_sample(&mut rtt, Span::from_millis(180), &profile), Span::from_millis(340));
        assert_eq!(rtt.smoothed, Some(Span::from_millis(110)));
        assert_eq!(rtt.min, Some(Span::from_millis(100)));
    }

    #[test]
    fn the_time_out_stays_within_its_bounds() {
        let mut rtt = RttFacts::default();
        assert_eq!(take_rtt_sample(&mut rtt, Span::from_millis(10), &Profile::rfc9260()), Span::from_secs(1));
        assert_eq!(take_rtt_sample(&mut rtt, Span::from_secs(600), &Profile::rfc9260()), Span::from_secs(60));
    }
}

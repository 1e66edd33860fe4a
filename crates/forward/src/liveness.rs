//! Detection of a gateway that is gone although the association has not ended, such as after a crash.

use std::time::{Duration, Instant};

/// Time without any packet of the peer, while data waits for an acknowledgement, after which the gateway is suspected.
const SUSPECTED_AFTER: Duration = Duration::from_millis(1200);
/// Time without any packet of the peer after which open connections are worth a probe.
const PROBED_AFTER: Duration = Duration::from_secs(3);

/// Result of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The peer has been heard, or nothing is expected of it.
    Alive,
    /// A probe must be sent, because nothing else would be acknowledged.
    Probe,
    /// The peer has been silent for this time while data waits.
    Silent(Duration),
}

/// State of an association as far as its counters show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Sum of counters that grow with the packets of the peer.
    pub heard: u64,
    /// Set if data waits for an acknowledgement.
    pub is_unacknowledged: bool,
    /// Set if connections are open or requested.
    pub is_used: bool,
}

/// Detection of a silent gateway from observations of its association.
#[derive(Debug)]
pub struct Liveness {
    heard: u64,
    heard_at: Instant,
    waits_since: Option<Instant>,
}

impl Liveness {
    /// Returns the state at the beginning of an association.
    pub fn new(now: Instant) -> Self {
        Liveness { heard: 0, heard_at: now, waits_since: None }
    }

    /// Records an observation, and returns the result.
    pub fn observe(&mut self, now: Instant, observation: Observation) -> Verdict {
        if observation.heard != self.heard || !observation.is_used {
            self.heard = observation.heard;
            self.heard_at = now;
            self.waits_since = None;
        }
        if observation.is_unacknowledged && observation.is_used {
            self.waits_since.get_or_insert(now);
        } else {
            self.waits_since = None;
        }
        let silence = self.waits_since.map_or(Duration::ZERO, |since| now.duration_since(since));
        if silence >= SUSPECTED_AFTER {
            Verdict::Silent(silence)
        } else if self.waits_since.is_none() && now.duration_since(self.heard_at) >= PROBED_AFTER {
            Verdict::Probe
        } else {
            Verdict::Alive
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Observation = Observation { heard: 1, is_unacknowledged: false, is_used: true };
    const WAITING: Observation = Observation { is_unacknowledged: true, ..IDLE };

    fn at(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    #[test]
    fn peer_is_silent_if_no_packet_answers_waiting_data() {
        let start = Instant::now();
        let mut liveness = Liveness::new(start);
        assert_eq!(liveness.observe(start, WAITING), Verdict::Alive);
        assert_eq!(liveness.observe(at(start, 1199), WAITING), Verdict::Alive);
        assert_eq!(liveness.observe(at(start, 1200), WAITING), Verdict::Silent(SUSPECTED_AFTER));
        assert_eq!(liveness.observe(at(start, 1300), Observation { heard: 2, ..WAITING }), Verdict::Alive);
        assert_eq!(liveness.observe(at(start, 2400), Observation { heard: 2, ..WAITING }), Verdict::Alive);
    }

    #[test]
    fn idle_connections_are_probed_and_an_unused_association_is_not() {
        let start = Instant::now();
        let mut liveness = Liveness::new(start);
        assert_eq!(liveness.observe(start, IDLE), Verdict::Alive);
        assert_eq!(liveness.observe(at(start, 2999), IDLE), Verdict::Alive);
        assert_eq!(liveness.observe(at(start, 3000), IDLE), Verdict::Probe);
        let unused = Observation { is_used: false, ..WAITING };
        assert_eq!(liveness.observe(at(start, 9000), unused), Verdict::Alive);
        assert_eq!(liveness.observe(at(start, 90_000), unused), Verdict::Alive);
    }
}

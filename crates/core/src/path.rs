//! A path: a pair of a local and a remote address, with its own timers, round-trip estimate and HEARTBEAT state.

use crate::address::PathAddress;
use crate::mtu::MtuSearch;
use crate::pacer::Pacer;
use crate::path_id::PathId;
use crate::policy::RttFacts;
use crate::profile::Profile;
use crate::time::{Span, Time, earliest};
use crate::windowed::WindowedMin;

/// What is known of the address at a path's far end, and so how much may be sent there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The application gave it, or it has proved itself: as much as windows admit.
    Trusted,
    /// The peer listed it, and nothing has come from it: small HEARTBEATs.
    Listed,
    /// Packets came from it, which may be forged.
    Seen {
        /// What may still be sent there.
        allowance_bytes: u64,
    },
}

/// Source of a path's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathSource {
    /// The application named them, or the peer listed its address.
    Named,
    /// A packet came from there.
    Learned,
    /// The driver offered them because the peer had reported its address.
    Offered,
}

/// A HEARTBEAT that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingHeartbeat {
    pub(crate) nonce: u64,
    pub(crate) sent_at: Time,
}

/// The timers of a path. `None` is not running.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathTimers {
    /// T3-rtx.
    pub(crate) t3: Option<Time>,
    /// The next tail probe follows one that nothing has answered, and does not start T3 anew.
    pub(crate) repeats_tail_probe: bool,
    /// The next HEARTBEAT of an idle path.
    pub(crate) heartbeat: Option<Time>,
    /// When an unanswered HEARTBEAT counts as an error.
    pub(crate) heartbeat_timeout: Option<Time>,
    /// When a path that sent nothing counts as idle for one RTO more.
    pub(crate) idle: Option<Time>,
    /// How often that has expired since the path carried DATA.
    pub(crate) idle_rtos: u8,
    /// When the path has failed unless something that it carried is answered before.
    pub(crate) silence: Option<Time>,
    /// When the time is over that the failover policy lets a path be silent.
    pub(crate) silence_limit: Option<Time>,
    /// When a probe of the packet size is lost, or the next one is due.
    pub(crate) mtu: Option<Time>,
}

impl PathTimers {
    pub(crate) fn next(&self) -> Option<Time> {
        earliest([
            self.t3,
            self.heartbeat,
            self.heartbeat_timeout,
            self.idle,
            self.silence,
            self.silence_limit,
            self.mtu,
        ])
    }
}

/// CUC version 2's two searches on a path: the earliest outstanding TSN sent once, and the earliest sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PseudoCumulative {
    pub(crate) expected: u64,
    pub(crate) find: bool,
    pub(crate) expected_retransmitted: u64,
    pub(crate) find_retransmitted: bool,
}

impl PseudoCumulative {
    fn new() -> Self {
        PseudoCumulative { expected: 0, find: true, expected_retransmitted: 0, find_retransmitted: true }
    }

    /// Both searches start again: something moved.
    pub(crate) fn search_again(&mut self) {
        self.find = true;
        self.find_retransmitted = true;
    }
}

/// What the endpoint keeps about a path beside the facts that policies see.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) address: PathAddress,
    /// SCTP bytes that fit one packet.
    //= docs/rfc9260.txt#section-7.3
    //# An endpoint MUST maintain separate PMTU estimates for each destination address of its peer.
    pub(crate) packet_bytes: usize,
    /// The search for a larger size, where there is one.
    pub(crate) mtu: Option<MtuSearch>,
    /// A probe of it that waits for its answer, and its size.
    pub(crate) pending_mtu_probe: Option<(PendingHeartbeat, usize)>,
    pub(crate) removed: bool,
    /// How often the peer was told of our address.
    pub(crate) announcements: u8,
    pub(crate) standing: Standing,
    pub(crate) source: PathSource,
    /// A path between the same addresses with another port, which this one may have become.
    pub(crate) successor: Option<PathId>,
    pub(crate) timers: PathTimers,
    /// The TSN whose first ack will be a round-trip sample (RFC 9260 section 6.3.1 C4: one at a time).
    pub(crate) measuring: Option<u64>,
    pub(crate) pending_heartbeat: Option<PendingHeartbeat>,
    /// A HEARTBEAT of the peer has delayed the one that is due next.
    pub(crate) yielded: bool,
    pub(crate) pseudo: PseudoCumulative,
    /// Losses up to this TSN belong to a window that has been cut; 0 if none has.
    pub(crate) recovery_point: u64,
    /// The highest one so far, for [`RecoveryPoint::HighestOutstandingUnlessLower`](crate::profile::RecoveryPoint).
    pub(crate) highest_recovery_point: u64,
    /// Set by the latest fast-retransmit event: the path lost something and may send one packet beyond its window.
    pub(crate) lost_in_event: bool,
    pub(crate) burst_used: u32,
    pub(crate) pacer: Pacer,
    pub(crate) least_rtt: WindowedMin<Span>,
}

impl Path {
    pub(crate) fn new(address: PathAddress, packet_bytes: usize) -> Self {
        Path {
            address,
            packet_bytes,
            mtu: None,
            pending_mtu_probe: None,
            removed: false,
            announcements: 0,
            standing: Standing::Trusted,
            source: PathSource::Named,
            successor: None,
            timers: PathTimers::default(),
            measuring: None,
            pending_heartbeat: None,
            yielded: false,
            pseudo: PseudoCumulative::new(),
            recovery_point: 0,
            highest_recovery_point: 0,
            lost_in_event: false,
            burst_used: 0,
            pacer: Pacer::default(),
            least_rtt: WindowedMin::default(),
        }
    }
}

/// Takes a round-trip sample into the estimate and returns the new RTO (RFC 9260 section 6.3.1, C2, C3, C6, C7).
pub(crate) fn take_rtt_sample(rtt: &mut RttFacts, sample: Span, profile: &Profile) -> Span {
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

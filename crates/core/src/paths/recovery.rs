//! Fast recovery of a path: its recovery point, and the packet that may exceed the window.

use crate::path_id::PathId;
use crate::paths::Paths;
use crate::profile::RecoveryPoint;
use crate::time::Time;

/// Fast-recovery state of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathRecovery {
    /// TSN up to which losses belong to a window that has been cut; 0 if none has.
    pub(crate) point: u64,
    /// Highest point so far, for [`RecoveryPoint::HighestOutstandingUnlessLower`].
    highest_point: u64,
    /// `true` if the path lost a chunk in the latest fast-retransmit event and may send one packet beyond its window.
    lost_in_event: bool,
    /// Time of the latest cut.
    cut_at: Option<Time>,
}

impl Paths {
    /// Starts fast recovery: the window was cut for losses up to the highest TSN that is outstanding on the path.
    pub(crate) fn begin_recovery(&mut self, id: PathId, highest: u64, now: Time) {
        let recovery = &mut self.paths[id.index()].recovery;
        recovery.cut_at = Some(now);
        let forgotten = self.profile.recovery_point == RecoveryPoint::HighestOutstandingUnlessLower
            && highest < recovery.highest_point;
        if forgotten {
            recovery.point = 0;
        } else {
            recovery.highest_point = highest;
            recovery.point = highest;
        }
        self.facts[id.index()].recovery_point = Some(recovery.point);
    }

    /// Returns `true` if the window was not cut since this time: the loss of a packet sent then still causes a cut.
    pub(crate) fn is_uncut_since(&self, id: PathId, sent_at: Time) -> bool {
        self.paths[id.index()].recovery.cut_at.is_none_or(|cut_at| sent_at > cut_at)
    }

    /// Ends fast recovery. Losses up to the recovery point still belong to the window that was cut.
    pub(crate) fn end_recovery(&mut self, id: PathId) {
        self.facts[id.index()].recovery_point = None;
    }

    /// Starts a fast-retransmit event, in which no path has lost a chunk yet.
    pub(crate) fn begin_loss_event(&mut self) {
        for path in &mut self.paths {
            path.recovery.lost_in_event = false;
        }
    }

    pub(crate) fn note_loss_in_event(&mut self, id: PathId) {
        self.paths[id.index()].recovery.lost_in_event = true;
    }

    /// Permits each path with a loss in a fast-retransmit event one packet beyond its window.
    //= docs/rfc9260.txt#section-7.2.4
    //# When a Fast Retransmit is being performed, the sender SHOULD ignore the value of cwnd and SHOULD NOT delay
    //# retransmission for this single packet.
    pub(crate) fn grant_exemptions(&mut self, event: bool) {
        for (path, facts) in self.paths.iter().zip(&mut self.facts) {
            facts.exempt_packets = u32::from(event && path.recovery.lost_in_event);
        }
    }

    /// Uses an exemption for a packet that left. Returns `true` if the packet would have exceeded the window.
    pub(crate) fn use_exemption(&mut self, id: PathId) -> bool {
        let facts = &mut self.facts[id.index()];
        if facts.exempt_packets == 0 {
            return false;
        }
        facts.exempt_packets -= 1;
        facts.in_flight > facts.cwnd
    }
}

//! Costs of paths: reports to the peer in HEARTBEATs, and those of the peer.
//!
//! A HEARTBEAT on a path with a cost carries it in a parameter of its own, so a report needs no address, which a NAT would change.
//! Its answer acknowledges the report. A peer that does not know the parameter ignores it (RFC 9260 section 3.2.1).

use crate::address::LocalEnd;
use crate::association::Association;
use crate::path_cost::PathCost;
use crate::path_id::{PathId, PathState};
use crate::policy::OpportunityCause;
use crate::protection::ChunkProtection;
use crate::time::Time;

impl Association {
    /// Sets the cost of paths that begin at a local end, also of later ones, and reports it to the peer. Repeats an unanswered report
    /// if the cost is already set.
    ///
    /// Policies see the higher one of the costs that both sides have set, except that the peer's leaves a path cheaper than those
    /// with a higher own cost.
    pub fn set_local_cost(&mut self, now: Time, end: impl Into<LocalEnd>, cost: PathCost) {
        self.clock(now);
        self.paths.set_local_cost(end.into(), cost);
        if self.is_closed() || self.is_opening() {
            return;
        }
        self.report_costs();
        self.open_opportunity(OpportunityCause::Policy, true);
    }

    /// Returns the cost that was set for a local end.
    pub fn local_cost(&self, end: impl Into<LocalEnd>) -> PathCost {
        self.paths.local_cost(end.into())
    }

    /// Sends a HEARTBEAT on each working path whose cost the peer has not acknowledged. Other paths are probed anyway.
    pub(crate) fn report_costs(&mut self) {
        let owes =
            |id: &PathId| self.paths.owes_cost(*id) && self.paths.facts(*id).state == PathState::Active;
        let paths: Vec<PathId> = self.paths.live().filter(owes).collect();
        for id in paths {
            self.send_heartbeat(id);
        }
    }

    /// Adopts a cost that a HEARTBEAT of the peer reports. An unprotected one has no effect on a protected association, and neither
    /// has an unknown value.
    pub(crate) fn take_peer_cost(&mut self, source: PathId, code: Option<u8>, cover: ChunkProtection) {
        let is_trusted = cover == ChunkProtection::Record || self.protection.agreed().is_none();
        if let Some(cost) = code.and_then(PathCost::from_code).filter(|_| is_trusted) {
            self.paths.set_peer_cost(source, cost);
        }
    }
}

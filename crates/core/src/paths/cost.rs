//! Costs of paths: the own one, which belongs to the local end, the peer's, and the one that the peer has acknowledged.

use crate::address::LocalEnd;
use crate::path_cost::PathCost;
use crate::path_id::PathId;
use crate::paths::Paths;

/// Costs that both sides have set for a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathCosts {
    pub(crate) own: PathCost,
    pub(crate) peer: PathCost,
    report: CostReport,
}

/// State of the peer's knowledge of an own cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CostReport {
    /// No cost was reported. The peer takes the path as free.
    #[default]
    Never,
    /// The latest report is not acknowledged: the peer has this cost or an earlier one.
    Sent,
    /// The peer has acknowledged this cost. An earlier report may still arrive, so HEARTBEATs repeat it.
    Acknowledged(PathCost),
}

impl Paths {
    /// Sets the cost of a local end for its paths, also for later ones.
    pub(crate) fn set_local_cost(&mut self, end: LocalEnd, cost: PathCost) {
        self.local_costs.retain(|(other, _)| *other != end);
        if cost != PathCost::Free {
            self.local_costs.push((end, cost));
        }
        for id in self.ids() {
            self.adopt_own_cost(id);
        }
    }

    /// Returns the cost of a local end.
    pub(crate) fn local_cost(&self, end: LocalEnd) -> PathCost {
        let own = self.local_costs.iter().find(|(other, _)| *other == end);
        own.map_or(PathCost::Free, |(_, cost)| *cost)
    }

    /// Sets the cost that the peer has reported for a path.
    pub(crate) fn set_peer_cost(&mut self, id: PathId, cost: PathCost) {
        self.paths[id.index()].costs.peer = cost;
        self.refresh_cost(id);
    }

    /// Copies the peer's cost of a path to one between the same hosts, until the peer reports that one's.
    pub(crate) fn inherit_peer_cost(&mut self, from: PathId, to: PathId) {
        let cost = self[from].costs.peer;
        self.set_peer_cost(to, cost);
    }

    /// Returns the own cost that the next HEARTBEAT reports; `None` if the peer needs no report.
    pub(crate) fn cost_to_report(&self, id: PathId) -> Option<PathCost> {
        let PathCosts { own, report, .. } = self[id].costs;
        (own != PathCost::Free || report != CostReport::Never).then_some(own)
    }

    /// Returns `true` if the peer has not acknowledged the own cost of a path.
    pub(crate) fn owes_cost(&self, id: PathId) -> bool {
        let PathCosts { own, report, .. } = self[id].costs;
        match report {
            CostReport::Never => own != PathCost::Free,
            CostReport::Sent => true,
            CostReport::Acknowledged(cost) => own != cost,
        }
    }

    /// Records that a HEARTBEAT reports this cost.
    pub(super) fn note_cost_report(&mut self, id: PathId, cost: PathCost) {
        let report = &mut self.paths[id.index()].costs.report;
        if *report != CostReport::Acknowledged(cost) {
            *report = CostReport::Sent;
        }
    }

    /// Records that the peer has acknowledged a cost.
    pub(super) fn acknowledge_cost(&mut self, id: PathId, cost: PathCost) {
        self.paths[id.index()].costs.report = CostReport::Acknowledged(cost);
    }

    /// Forgets all acknowledgements of costs, because the peer may not have accepted them.
    pub(crate) fn forget_cost_reports(&mut self) {
        for path in &mut self.paths {
            if path.costs.report != CostReport::Never {
                path.costs.report = CostReport::Sent;
            }
        }
    }

    /// Adopts the cost of the path's local end.
    pub(super) fn adopt_own_cost(&mut self, id: PathId) {
        let end = self.paths[id.index()].address.local_end();
        self.paths[id.index()].costs.own = self.local_cost(end);
        self.refresh_cost(id);
    }

    /// A peer cannot move data to local ends with a higher cost: its report leaves the path cheaper than those.
    fn refresh_cost(&mut self, id: PathId) {
        let PathCosts { own, peer, .. } = self.paths[id.index()].costs;
        let higher = self.local_costs.iter().map(|(_, cost)| *cost).filter(|cost| *cost > own).min();
        let most = higher.map_or(PathCost::Backup, PathCost::next_cheaper);
        self.facts[id.index()].cost = own.max(peer.min(most));
    }
}

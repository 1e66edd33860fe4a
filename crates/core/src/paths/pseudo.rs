//! Pseudo-cumulative TSNs of a path (CUC version 2, Iyengar 2006, as in ns-2).

use crate::path_id::PathId;
use crate::paths::Paths;

/// State of the two searches on a path: for the lowest outstanding TSN sent once, and for the lowest one sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PseudoCumulative {
    pub(crate) expected: u64,
    find: bool,
    pub(crate) expected_retransmitted: u64,
    find_retransmitted: bool,
}

impl PseudoCumulative {
    pub(super) const fn new() -> Self {
        PseudoCumulative { expected: 0, find: true, expected_retransmitted: 0, find_retransmitted: true }
    }

    /// Restarts both searches after a change.
    fn search_again(&mut self) {
        self.find = true;
        self.find_retransmitted = true;
    }
}

impl Paths {
    /// Restarts both searches on a path.
    pub(crate) fn search_pseudo_again(&mut self, id: PathId) {
        self.paths[id.index()].pseudo.search_again();
    }

    /// Records that a gap block acknowledged a chunk. Returns `true` if that advances a pseudo-cumulative TSN of the path.
    pub(crate) fn advance_pseudo(&mut self, id: PathId, tsn: u64) -> bool {
        let pseudo = &mut self.paths[id.index()].pseudo;
        pseudo.find |= tsn == pseudo.expected;
        pseudo.find_retransmitted |= tsn == pseudo.expected_retransmitted;
        tsn == pseudo.expected || tsn == pseudo.expected_retransmitted
    }

    /// Continues the searches on a path. `earliest` finds the lowest TSN sent once, or for `true` the lowest one sent again.
    pub(crate) fn find_pseudo(&mut self, id: PathId, earliest: impl Fn(bool) -> Option<u64>) {
        let pseudo = &mut self.paths[id.index()].pseudo;
        if pseudo.find
            && let Some(tsn) = earliest(false)
        {
            pseudo.expected = tsn;
            pseudo.find = false;
        }
        if pseudo.find_retransmitted
            && let Some(tsn) = earliest(true)
        {
            pseudo.expected_retransmitted = tsn;
            pseudo.find_retransmitted = false;
        }
    }

    /// Ends every wait for the acknowledgement of a chunk that was abandoned: RTT measurements and searches.
    pub(crate) fn stop_waiting_for(&mut self, tsn: u64) {
        for path in &mut self.paths {
            path.measuring.take_if(|measured| *measured == tsn);
            if path.pseudo.expected == tsn || path.pseudo.expected_retransmitted == tsn {
                path.pseudo.search_again();
            }
        }
    }
}

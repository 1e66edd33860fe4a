//! Invariants of an association between calls, for tests.

use crate::association::Association;
use crate::association::state::State;
use crate::path_id::PathId;
use crate::policy::PathFacts;
use crate::send::PathBytes;

impl Association {
    /// Compares all running totals with a recount.
    ///
    /// # Panics
    /// Panics if a total differs, and prints both values.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.sender.check();
        for id in self.paths.ids() {
            self.check_published(id);
            self.check_path(id);
        }
        self.check_windows();
        self.check_gap_acked();
        let primaries = self.paths.live().filter(|id| self.paths.facts(*id).primary).count();
        assert_eq!(primaries, 1, "exactly one live path is the primary");
        let probe = self.sender.window_probe();
        assert!(
            probe.is_none_or(|tsn| self.sender.outstanding().get(tsn).is_some()),
            "the window probe {probe:?} is outstanding"
        );
    }

    /// Checks that no chunk in the known gap blocks is awaited: SACKs are searched only for TSNs outside of them.
    fn check_gap_acked(&self) {
        let outstanding = self.sender.outstanding();
        let mut known = self.recovery.known_blocks().iter().flat_map(|&(start, end)| start..=end);
        let awaited = |tsn: &u64| outstanding.get(*tsn).is_some_and(|chunk| chunk.state.is_awaited());
        assert!(
            self.recovery.names_unsent() || !known.any(|tsn| awaited(&tsn)),
            "a chunk in a known block is awaited"
        );
    }

    /// Checks that the facts for policies equal the sender's counts.
    fn check_published(&self, id: PathId) {
        let PathFacts { in_flight, lost_unsent, bound, held, sent, lost, delivered, .. } =
            *self.paths.facts(id);
        let published = PathBytes { in_flight, lost_unsent, bound, held, sent, lost, delivered };
        assert_eq!(published, *self.sender.bytes(id), "counts of {id:?}");
    }

    fn check_path(&self, id: PathId) {
        let (path, facts) = (&self.paths[id], self.paths.facts(id));
        assert!(
            facts.bound.is_zero() || facts.is_active(),
            "{id:?} is {:?} and has chunks bound to it",
            facts.state
        );
        if path.removed || self.is_closed() {
            assert_eq!(path.timers.next(), None, "{id:?} is out of use and has a timer: {:?}", path.timers);
        }
        if path.removed {
            assert!(facts.in_flight.is_zero(), "{id:?} is removed and has {:?} in flight", facts.in_flight);
        } else if !self.is_closed() {
            assert_eq!(
                path.timers.t3.is_some(),
                !facts.in_flight.is_zero() || self.sender.awaits_forward_tsn(id),
                "T3 of {id:?} beside {:?} in flight",
                facts.in_flight
            );
        }
    }

    fn check_windows(&self) {
        if matches!(self.state, State::CookieWait { .. } | State::CookieEchoed { .. } | State::Closed { .. })
        {
            return;
        }
        for facts in self.paths.all_facts() {
            assert!(facts.cwnd >= facts.largest_chunk, "cwnd of {:?} is {:?}", facts.id, facts.cwnd);
        }
    }
}

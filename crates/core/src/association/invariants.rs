//! A recount of what an association keeps as running totals, for tests: each total must equal the sum of its parts.

use crate::association::{Association, State};
use crate::path::{MAX_PATHS, PathId};
use crate::send::{Chunk, ChunkState};
use crate::units::{ChunkBytes, WindowBytes};

/// Sums over the records of chunks and transmissions.
#[derive(Default)]
struct Recount {
    in_flight: [ChunkBytes; MAX_PATHS],
    lost_unsent: [ChunkBytes; MAX_PATHS],
    transmissions: [u32; MAX_PATHS],
    bound: [ChunkBytes; MAX_PATHS],
    held: [ChunkBytes; MAX_PATHS],
    bound_tsns: [Vec<u64>; MAX_PATHS],
    unplaced: Vec<u64>,
    window_bound: WindowBytes,
    window_in_flight: WindowBytes,
    window_lost: WindowBytes,
    payload_bytes: u64,
    lost: Vec<u64>,
    unacked: Vec<u64>,
}

impl Association {
    /// Compares all running totals with a recount.
    ///
    /// # Panics
    /// With what differs, if one does.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.outstanding.check_links();
        let recount = self.recount();
        self.check_totals(&recount);
        for id in (0..self.paths.len()).map(PathId::new) {
            self.check_path(id, &recount);
        }
        self.check_windows();
        let primaries = self.live_paths().filter(|id| self.facts[id.index()].primary).count();
        assert_eq!(primaries, 1, "exactly one live path is the primary");
    }

    fn recount(&self) -> Recount {
        let mut recount = Recount::default();
        for (tsn, chunk) in self.outstanding.iter() {
            recount.payload_bytes += chunk.draft.payload.len() as u64;
            let path = chunk.path.index();
            let placed =
                !matches!(chunk.state, ChunkState::Bound { placed: false } | ChunkState::NonRenegable);
            if placed {
                recount.held[path] += chunk.bytes();
            }
            match chunk.state {
                ChunkState::Acked => {}
                ChunkState::NonRenegable => assert!(chunk.draft.payload.is_empty(), "TSN {tsn} is let go"),
                ChunkState::Bound { placed } => {
                    recount.unacked.push(tsn);
                    recount.window_bound += self.cost_of(chunk);
                    if placed {
                        recount.bound[path] += chunk.bytes();
                        recount.bound_tsns[path].push(tsn);
                    } else {
                        recount.unplaced.push(tsn);
                    }
                }
                ChunkState::InFlight => {
                    recount.unacked.push(tsn);
                    recount.window_in_flight += self.cost_of(chunk);
                }
                ChunkState::Lost(_) => {
                    recount.unacked.push(tsn);
                    recount.lost.push(tsn);
                    recount.lost_unsent[chunk.path.index()] += chunk.bytes();
                    recount.window_lost += self.cost_of(chunk);
                }
            }
            self.recount_flights(tsn, chunk, &mut recount);
        }
        recount
    }

    fn recount_flights(&self, tsn: u64, chunk: &Chunk, recount: &mut Recount) {
        let mut flights = 0;
        for transmission in self.outstanding.transmissions_of(tsn) {
            recount.transmissions[transmission.path.index()] += 1;
            if transmission.in_flight {
                flights += 1;
                recount.in_flight[transmission.path.index()] += transmission.bytes;
            }
        }
        assert_eq!(
            chunk.state == ChunkState::InFlight,
            flights > 0,
            "TSN {tsn} is {:?} with {flights} flights",
            chunk.state
        );
        let Some(latest) = self.outstanding.latest_of(tsn) else {
            assert!(matches!(chunk.state, ChunkState::Bound { .. }), "TSN {tsn} was never sent");
            return;
        };
        assert_eq!(latest.path, chunk.path, "TSN {tsn} names the path of its latest transmission");
        assert!(flights == 0 || latest.in_flight, "TSN {tsn} has a flight beside an ended latest one");
    }

    fn cost_of(&self, chunk: &Chunk) -> WindowBytes {
        self.profile.window_cost(chunk.draft.payload.len() as u64, 1)
    }

    fn check_totals(&self, recount: &Recount) {
        assert_eq!(self.window_in_flight, recount.window_in_flight, "window_in_flight");
        assert_eq!(self.window_lost, recount.window_lost, "window_lost");
        assert_eq!(self.window_bound, recount.window_bound, "window_bound");
        assert_eq!(self.bound.unplaced().collect::<Vec<_>>(), recount.unplaced, "chunks without a path");
        assert_eq!(self.outstanding.payload_bytes(), recount.payload_bytes, "outstanding payload bytes");
        assert_eq!(self.queue.bytes(), self.queue.recounted_bytes(), "queued bytes");
        assert_eq!(self.lost.iter().collect::<Vec<_>>(), recount.lost, "the list of lost chunks");
        let mut unacked = Vec::new();
        let mut next = self.outstanding.first_unacked();
        while let Some(tsn) = next {
            unacked.push(tsn);
            next = self.outstanding.next_unacked(tsn);
        }
        assert_eq!(unacked, recount.unacked, "the list of unacknowledged chunks");
        let probe = self.probe.map(|p| p.tsn);
        assert!(
            probe.is_none_or(|tsn| self.outstanding.get(tsn).is_some()),
            "the window probe {probe:?} is outstanding"
        );
    }

    fn check_path(&self, id: PathId, recount: &Recount) {
        let (path, facts) = (&self.paths[id.index()], &self.facts[id.index()]);
        let orphans: ChunkBytes = path.orphans.iter().map(|orphan| orphan.bytes).sum();
        assert_eq!(facts.in_flight, recount.in_flight[id.index()] + orphans, "in_flight of {id:?}");
        assert_eq!(facts.bound, recount.bound[id.index()], "bound of {id:?}");
        assert_eq!(facts.held, recount.held[id.index()], "held of {id:?}");
        assert_eq!(self.bound.of(id).collect::<Vec<_>>(), recount.bound_tsns[id.index()], "bound to {id:?}");
        assert!(
            facts.bound.is_zero() || facts.is_active(),
            "{id:?} is {:?} and has chunks bound to it",
            facts.state
        );
        assert_eq!(facts.lost_unsent, recount.lost_unsent[id.index()], "lost_unsent of {id:?}");
        assert_eq!(path.transmissions, recount.transmissions[id.index()], "transmissions of {id:?}");
        if path.removed || self.is_closed() {
            assert_eq!(path.timers.next(), None, "{id:?} is out of use and has a timer: {:?}", path.timers);
        }
        if path.removed {
            assert!(facts.in_flight.is_zero(), "{id:?} is removed and has {:?} in flight", facts.in_flight);
        } else if !self.is_closed() {
            assert_eq!(
                path.timers.t3.is_some(),
                !facts.in_flight.is_zero(),
                "T3 of {id:?} beside {:?} in flight",
                facts.in_flight
            );
        }
    }

    fn check_windows(&self) {
        if matches!(self.state, State::CookieWait { .. } | State::CookieEchoed { .. } | State::Closed) {
            return;
        }
        for facts in &self.facts {
            assert!(facts.cwnd >= facts.largest_chunk, "cwnd of {:?} is {:?}", facts.id, facts.cwnd);
        }
    }
}

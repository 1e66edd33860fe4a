//! Recount of the sender's running totals, for tests: each total must equal the sum of its parts.

use crate::path_id::{MAX_PATHS, PathId};
use crate::profile::Profile;
use crate::send::chunk_list::assert_same;
use crate::send::{Chunk, ChunkState, DuplicateCopy, PathBytes, Sender};
use crate::units::{ChunkBytes, WindowBytes};

/// Sums over the records of chunks and transmissions.
#[derive(Default)]
struct RecordSums {
    paths: [PathRecount; MAX_PATHS],
    unplaced: Vec<u64>,
    window_bound: WindowBytes,
    window_in_flight: WindowBytes,
    window_lost: WindowBytes,
    payload_bytes: u64,
    lost: Vec<u64>,
    unacked: Vec<u64>,
}

#[derive(Default)]
struct PathRecount {
    bytes: PathBytes,
    transmissions: u32,
    bound: Vec<u64>,
}

impl Sender {
    /// Compares all running totals with a recount.
    ///
    /// # Panics
    /// Panics if a total differs, and prints both values.
    pub(crate) fn check(&self) {
        self.outstanding().check_lists();
        self.check_abandoned();
        if self.published_head == self.outstanding().head_version() {
            assert_eq!(self.facts().head_of_line, self.head_of_line(), "the head of line in the facts");
        }
        let recount = self.recount();
        self.check_totals(&recount);
        for (index, counted) in recount.paths.iter().enumerate() {
            self.check_path(PathId::new(index), counted);
        }
    }

    fn recount(&self) -> RecordSums {
        let mut recount = RecordSums::default();
        for (tsn, chunk) in self.outstanding().iter() {
            recount.payload_bytes += chunk.draft.payload.len() as u64;
            self.recount_chunk(tsn, chunk, &mut recount);
            self.recount_flights(tsn, chunk, &mut recount);
        }
        recount
    }

    fn recount_chunk(&self, tsn: u64, chunk: &Chunk, recount: &mut RecordSums) {
        let (bytes, cost) = (chunk.bytes(), cost_of(self.profile(), chunk));
        let path = &mut recount.paths[chunk.path.index()];
        if !matches!(
            chunk.state,
            ChunkState::Bound { placed: false } | ChunkState::NonRenegable | ChunkState::Abandoned
        ) {
            path.bytes.held += bytes;
        }
        if chunk.state.is_awaited() {
            recount.unacked.push(tsn);
        }
        match chunk.state {
            ChunkState::Acked => {}
            ChunkState::NonRenegable | ChunkState::Abandoned => {
                assert!(chunk.draft.payload.is_empty(), "TSN {tsn} is let go");
            }
            ChunkState::Bound { placed } => {
                recount.window_bound += cost;
                if placed {
                    path.bytes.bound += bytes;
                    path.bound.push(tsn);
                } else {
                    recount.unplaced.push(tsn);
                }
            }
            ChunkState::InFlight => recount.window_in_flight += cost,
            ChunkState::Lost(_) => {
                recount.lost.push(tsn);
                path.bytes.lost_unsent += bytes;
                recount.window_lost += cost;
            }
        }
    }

    fn recount_flights(&self, tsn: u64, chunk: &Chunk, recount: &mut RecordSums) {
        let mut flights = 0;
        for transmission in self.outstanding().transmissions_of(tsn) {
            let path = &mut recount.paths[transmission.path.index()];
            path.transmissions += 1;
            if transmission.in_flight {
                flights += 1;
                path.bytes.in_flight += transmission.bytes;
            }
        }
        assert_eq!(
            chunk.state == ChunkState::InFlight,
            flights > 0,
            "TSN {tsn} is {:?} with {flights} flights",
            chunk.state
        );
        let Some(latest) = self.outstanding().latest_of(tsn) else {
            let unsent = matches!(chunk.state, ChunkState::Bound { .. } | ChunkState::Abandoned);
            assert!(unsent, "TSN {tsn} was never sent");
            return;
        };
        assert_eq!(latest.path, chunk.path, "TSN {tsn} names the path of its latest transmission");
        assert!(flights == 0 || latest.in_flight, "TSN {tsn} has a flight beside an ended latest one");
    }

    fn check_totals(&self, recount: &RecordSums) {
        assert_eq!(self.window().in_flight(), recount.window_in_flight, "window in flight");
        assert_eq!(self.window().lost(), recount.window_lost, "window of lost chunks");
        assert_eq!(self.window().bound(), recount.window_bound, "window of bound chunks");
        let unplaced = || recount.unplaced.iter().copied();
        assert_same(|| self.bound().unplaced(), unplaced, || "chunks without a path".to_owned());
        assert_eq!(self.outstanding().payload_bytes(), recount.payload_bytes, "outstanding payload bytes");
        self.queue().check();
        assert_eq!(self.held().bytes(), self.held().recounted_bytes(), "held bytes");
        let lost = || recount.lost.iter().copied();
        assert_same(|| self.lost().iter(), lost, || "the list of lost chunks".to_owned());
        let after = |tsn: &u64| self.outstanding().next_unacked(*tsn);
        let unacked = || std::iter::successors(self.outstanding().first_unacked(), after);
        let counted = || recount.unacked.iter().copied();
        assert_same(unacked, counted, || "the list of unacknowledged chunks".to_owned());
    }

    fn check_path(&self, id: PathId, recount: &PathRecount) {
        let duplicates: ChunkBytes = self.duplicates(id).map(|copy: &DuplicateCopy| copy.bytes).sum();
        let bytes = self.bytes(id);
        assert_eq!(bytes.in_flight, recount.bytes.in_flight + duplicates, "in_flight of {id:?}");
        assert_eq!(bytes.bound, recount.bytes.bound, "bound of {id:?}");
        assert_eq!(bytes.held, recount.bytes.held, "held of {id:?}");
        assert_eq!(bytes.lost_unsent, recount.bytes.lost_unsent, "lost_unsent of {id:?}");
        let bound = || recount.bound.iter().copied();
        assert_same(|| self.bound().of(id), bound, || format!("chunks bound to {id:?}"));
        assert_eq!(self.transmissions(id), recount.transmissions, "transmissions of {id:?}");
    }
}

fn cost_of(profile: &Profile, chunk: &Chunk) -> WindowBytes {
    profile.window_cost(chunk.draft.payload.len() as u64, 1)
}

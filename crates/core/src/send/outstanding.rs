//! Chunks that have a TSN and are not yet cumulatively acknowledged, and their transmissions.
//!
//! A chunk and a transmission are two records: several transmissions may belong to one chunk, each with its own path, time and
//! delivery stamps, and outstanding bytes, round-trip times and losses belong to transmissions. Chunks live in a ring indexed
//! by TSN; those that are not acknowledged are also linked in TSN order, so that walking a SACK costs as many steps as it has
//! block edges, holes and newly acknowledged chunks.

use std::collections::VecDeque;

use slab::Slab;

use crate::intervals::{self, Interval};
use crate::path_id::PathId;
use crate::policy::{HeadOfLine, LossCause, SendStamps};
use crate::send::{Draft, LIST_ROOM};
use crate::units::ChunkBytes;

/// No TSN: unwrapped TSNs begin above 2^32.
const NONE: u64 = 0;

/// Names a transmission record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransmissionId(u32);

/// One transmission of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    pub(crate) path: PathId,
    pub(crate) bytes: ChunkBytes,
    pub(crate) stamps: SendStamps,
    /// Neither acknowledged nor declared lost nor superseded.
    pub(crate) in_flight: bool,
    /// The chunk's transmission before this one.
    pub(crate) previous: Option<TransmissionId>,
}

/// Where a chunk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkState {
    /// It has a TSN and waits in the queue of its path to be sent for the first time, or for a path if `placed` is false.
    Bound {
        placed: bool,
    },
    InFlight,
    Lost(LossCause),
    /// The receiver has it and may still drop it, as long as the cumulative TSN has not passed it.
    Acked,
    /// The receiver has it for good, and its payload is no longer held here (NR-SACK).
    NonRenegable,
    /// Its message was given up; a FORWARD-TSN passes over it. Its payload is no longer held here.
    Abandoned,
}

impl ChunkState {
    /// Whether the receiver is known to have it.
    pub(crate) fn is_acked(self) -> bool {
        matches!(self, ChunkState::Acked | ChunkState::NonRenegable)
    }

    /// Whether its acknowledgement is waited for.
    pub(crate) fn is_awaited(self) -> bool {
        matches!(self, ChunkState::Bound { .. } | ChunkState::InFlight | ChunkState::Lost(_))
    }
}

/// A chunk with a TSN.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) draft: Draft,
    pub(crate) state: ChunkState,
    pub(crate) reports: u32,
    /// Fast-retransmitted or timed out before: only T3 may mark it again (RFC 9260 section 7.2.4 item 5).
    pub(crate) recovered_before: bool,
    pub(crate) transmissions: u32,
    /// Transmissions that repaired a loss; further copies are not among them.
    pub(crate) retransmissions: u32,
    /// `None` until it is sent.
    pub(crate) latest: Option<TransmissionId>,
    /// The path of the latest transmission, or the one it is bound to.
    pub(crate) path: PathId,
    previous_unacked: u64,
    next_unacked: u64,
}

impl Chunk {
    /// Bytes with the chunk header, without padding.
    pub(crate) fn bytes(&self) -> ChunkBytes {
        self.draft.chunk_bytes()
    }
}

/// The ring of chunks.
#[derive(Debug)]
pub(crate) struct Outstanding {
    /// The TSN of the first chunk in the ring.
    base: u64,
    chunks: VecDeque<Chunk>,
    first_unacked: u64,
    last_unacked: u64,
    transmissions: Slab<Transmission>,
    /// What gap blocks cover, as disjoint inclusive intervals above the cumulative TSN, in order.
    gap_acked: Vec<Interval>,
    /// Memory in which the next ones are made.
    united: Vec<Interval>,
    /// What the receiver has said it keeps for good (NR-SACK), above the cumulative TSN.
    kept: Vec<Interval>,
    payload_bytes: u64,
}

impl Outstanding {
    pub(crate) fn new(initial_tsn: u64) -> Self {
        Outstanding {
            base: initial_tsn,
            chunks: VecDeque::new(),
            first_unacked: NONE,
            last_unacked: NONE,
            transmissions: Slab::new(),
            gap_acked: Vec::with_capacity(LIST_ROOM),
            united: Vec::with_capacity(LIST_ROOM),
            kept: Vec::new(),
            payload_bytes: 0,
        }
    }

    /// The TSN the next new chunk will get.
    pub(crate) fn next_tsn(&self) -> u64 {
        self.base + self.chunks.len() as u64
    }

    /// The highest TSN known to be acknowledged cumulatively.
    pub(crate) fn cumulative(&self) -> u64 {
        self.base - 1
    }

    pub(crate) fn len(&self) -> usize {
        self.chunks.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// User bytes held until they are cumulatively acknowledged.
    pub(crate) fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    pub(crate) fn get(&self, tsn: u64) -> Option<&Chunk> {
        self.chunks.get(usize::try_from(tsn.checked_sub(self.base)?).ok()?)
    }

    pub(crate) fn get_mut(&mut self, tsn: u64) -> Option<&mut Chunk> {
        self.chunks.get_mut(usize::try_from(tsn.checked_sub(self.base)?).ok()?)
    }

    fn transmission(&self, id: TransmissionId) -> &Transmission {
        &self.transmissions[id.0 as usize]
    }

    /// The earliest TSN that is not acknowledged.
    pub(crate) fn first_unacked(&self) -> Option<u64> {
        (self.first_unacked != NONE).then_some(self.first_unacked)
    }

    /// The next TSN after `tsn` that is not acknowledged; `tsn` itself must not be.
    pub(crate) fn next_unacked(&self, tsn: u64) -> Option<u64> {
        self.get(tsn).map(|c| c.next_unacked).filter(|&t| t != NONE)
    }

    /// Appends a chunk that is bound to a path and not yet sent, and returns its TSN.
    pub(crate) fn push(&mut self, draft: Draft, path: PathId) -> u64 {
        let tsn = self.next_tsn();
        self.payload_bytes += draft.payload.len() as u64;
        self.chunks.push_back(Chunk {
            draft,
            state: ChunkState::Bound { placed: true },
            reports: 0,
            recovered_before: false,
            transmissions: 0,
            retransmissions: 0,
            latest: None,
            path,
            previous_unacked: self.last_unacked,
            next_unacked: NONE,
        });
        self.link_after(self.last_unacked, tsn);
        tsn
    }

    /// Adds a transmission to a chunk, which is in flight from here on.
    pub(crate) fn add_transmission(&mut self, tsn: u64, mut transmission: Transmission) {
        let Some(chunk) = self.get(tsn) else { return };
        transmission.previous = chunk.latest;
        let path = transmission.path;
        let id = TransmissionId(self.transmissions.insert(transmission) as u32);
        if let Some(chunk) = self.get_mut(tsn) {
            chunk.state = ChunkState::InFlight;
            chunk.latest = Some(id);
            chunk.path = path;
            chunk.transmissions += 1;
        }
    }

    /// The latest transmission of a chunk; `None` if it was never sent.
    pub(crate) fn latest_of(&self, tsn: u64) -> Option<&Transmission> {
        self.get(tsn)?.latest.map(|id| self.transmission(id))
    }

    /// Ends the flight of all a chunk's transmissions and tells each one, the latest first.
    pub(crate) fn end_flights(&mut self, tsn: u64, ended: impl FnMut(&Transmission)) {
        self.end_flights_that(tsn, |_| true, ended);
    }

    /// The same for those on one path.
    pub(crate) fn end_flights_on(&mut self, tsn: u64, path: PathId, ended: impl FnMut(&Transmission)) {
        self.end_flights_that(tsn, |copy| copy.path == path, ended);
    }

    fn end_flights_that(
        &mut self,
        tsn: u64,
        which: impl Fn(&Transmission) -> bool,
        mut ended: impl FnMut(&Transmission),
    ) {
        let mut next = self.get(tsn).and_then(|c| c.latest);
        while let Some(id) = next {
            let transmission = &mut self.transmissions[id.0 as usize];
            next = transmission.previous;
            if transmission.in_flight && which(transmission) {
                transmission.in_flight = false;
                ended(transmission);
            }
        }
    }

    /// Puts the latest transmission of a chunk back in flight: its acknowledgement was taken back.
    pub(crate) fn resume_flight(&mut self, tsn: u64) {
        if let Some(id) = self.get(tsn).and_then(|c| c.latest) {
            self.transmissions[id.0 as usize].in_flight = true;
        }
    }

    /// The receiver keeps these TSNs for good: lets go of the payloads of those that are acknowledged, and tells each one's
    /// path and chunk bytes. An NR-SACK repeats what earlier ones said; only what is new costs anything.
    pub(crate) fn keep(&mut self, start: u64, end: u64, mut released: impl FnMut(PathId, ChunkBytes)) {
        let (start, end) = (start.max(self.base), end.min(self.next_tsn() - 1));
        if start > end {
            return;
        }
        let mut kept = std::mem::take(&mut self.kept);
        intervals::forget_up_to(&mut kept, self.cumulative());
        for (first, last) in intervals::uncovered(&kept, start, end) {
            for (path, bytes) in (first..=last).filter_map(|tsn| self.release(tsn)) {
                released(path, bytes);
            }
        }
        intervals::insert(&mut kept, (start, end));
        self.kept = kept;
    }

    fn release(&mut self, tsn: u64) -> Option<(PathId, ChunkBytes)> {
        let chunk = self.get_mut(tsn).filter(|c| c.state == ChunkState::Acked)?;
        let (path, bytes) = (chunk.path, chunk.bytes());
        chunk.state = ChunkState::NonRenegable;
        let payload = std::mem::take(&mut chunk.draft.payload);
        self.payload_bytes -= payload.len() as u64;
        Some((path, bytes))
    }

    /// Takes a chunk out of the list of unacknowledged ones.
    pub(crate) fn mark_acked(&mut self, tsn: u64) {
        self.unlink(tsn);
        if let Some(chunk) = self.get_mut(tsn) {
            chunk.state = ChunkState::Acked;
        }
    }

    /// Gives a chunk up, and lets go of its payload. Its flights are to be ended before.
    pub(crate) fn mark_abandoned(&mut self, tsn: u64) {
        if self.get(tsn).is_some_and(|chunk| chunk.state.is_awaited()) {
            self.unlink(tsn);
        }
        let Some(chunk) = self.get_mut(tsn) else { return };
        chunk.state = ChunkState::Abandoned;
        let payload = std::mem::take(&mut chunk.draft.payload);
        self.payload_bytes -= payload.len() as u64;
    }

    fn unlink(&mut self, tsn: u64) {
        let Some(chunk) = self.get_mut(tsn) else { return };
        let (previous, next) = (chunk.previous_unacked, chunk.next_unacked);
        chunk.previous_unacked = NONE;
        chunk.next_unacked = NONE;
        match self.get_mut(previous) {
            Some(chunk) => chunk.next_unacked = next,
            None => self.first_unacked = next,
        }
        match self.get_mut(next) {
            Some(chunk) => chunk.previous_unacked = previous,
            None => self.last_unacked = previous,
        }
    }

    /// Takes an acknowledgement back: the chunk is in flight again.
    pub(crate) fn unmark_acked(&mut self, tsn: u64) {
        let before = (self.base..tsn).rev().find(|&t| self.get(t).is_some_and(|c| c.state.is_awaited()));
        if let Some(chunk) = self.get_mut(tsn) {
            chunk.state = ChunkState::InFlight;
        }
        self.resume_flight(tsn);
        self.link_after(before.unwrap_or(NONE), tsn);
    }

    fn link_after(&mut self, previous: u64, tsn: u64) {
        let next = match self.get_mut(previous) {
            Some(chunk) => std::mem::replace(&mut chunk.next_unacked, tsn),
            None => std::mem::replace(&mut self.first_unacked, tsn),
        };
        if let Some(chunk) = self.get_mut(tsn) {
            chunk.previous_unacked = previous;
            chunk.next_unacked = next;
        }
        match self.get_mut(next) {
            Some(chunk) => chunk.previous_unacked = tsn,
            None => self.last_unacked = tsn,
        }
    }

    /// Removes the first chunk, which must be acknowledged, with its transmissions; tells each transmission's path.
    pub(crate) fn pop(&mut self, mut released: impl FnMut(PathId)) -> Option<Chunk> {
        let chunk = self.chunks.pop_front()?;
        self.base += 1;
        self.payload_bytes -= chunk.draft.payload.len() as u64;
        let mut next = chunk.latest;
        while let Some(id) = next {
            let transmission = self.transmissions.remove(id.0 as usize);
            released(transmission.path);
            next = transmission.previous;
        }
        Some(chunk)
    }

    /// The highest TSN whose latest transmission went to `path` and that does not wait to be sent, again or at all.
    pub(crate) fn highest_on(&self, path: PathId) -> Option<u64> {
        let waits = |state| matches!(state, ChunkState::Lost(_) | ChunkState::Bound { .. });
        let sent = |c: &Chunk| c.latest.is_some() && !waits(c.state);
        let back = self.chunks.iter().rev().position(|c| c.path == path && sent(c))?;
        Some(self.next_tsn() - 1 - back as u64)
    }

    /// The highest TSN in flight whose latest transmission went to `path`.
    pub(crate) fn highest_in_flight_on(&self, path: PathId) -> Option<u64> {
        let mut next = Some(self.last_unacked).filter(|&tsn| tsn != NONE);
        while let Some((tsn, chunk)) = next.and_then(|tsn| self.get(tsn).map(|chunk| (tsn, chunk))) {
            if chunk.path == path && chunk.state == ChunkState::InFlight {
                return Some(tsn);
            }
            next = Some(chunk.previous_unacked).filter(|&tsn| tsn != NONE);
        }
        None
    }

    /// The earliest TSN before `limit` whose latest transmission went to `path` and that is not acknowledged.
    pub(crate) fn earliest_on(&self, path: PathId, limit: u64) -> Option<u64> {
        let mut next = self.first_unacked();
        while let Some(tsn) = next.filter(|&t| t < limit) {
            if self.get(tsn).is_some_and(|c| c.path == path && c.latest.is_some()) {
                return Some(tsn);
            }
            next = self.next_unacked(tsn);
        }
        None
    }

    pub(crate) fn gap_acked(&self) -> &[Interval] {
        &self.gap_acked
    }

    /// Forgets intervals up to the cumulative TSN and adds `blocks`. Whether these cover all that was known: they do nearly
    /// always, and then they are all that is known.
    pub(crate) fn add_gap_acked(&mut self, blocks: &[Interval]) -> bool {
        let cumulative = self.cumulative();
        let all_covered = intervals::hold_above(blocks, &self.gap_acked, cumulative);
        if all_covered {
            self.set_gap_acked(blocks);
        } else {
            intervals::forget_up_to(&mut self.gap_acked, cumulative);
            intervals::unite(&self.gap_acked, blocks, &mut self.united);
            std::mem::swap(&mut self.gap_acked, &mut self.united);
        }
        all_covered
    }

    /// Replaces the intervals.
    pub(crate) fn set_gap_acked(&mut self, blocks: &[Interval]) {
        self.gap_acked.clear();
        self.gap_acked.extend_from_slice(blocks);
    }

    /// All chunks with their TSNs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Chunk)> {
        (self.base..).zip(&self.chunks)
    }

    /// What policies see of the earliest chunk that is not acknowledged.
    pub(crate) fn head_of_line(&self, tsn: u64) -> Option<HeadOfLine> {
        let chunk = self.get(tsn)?;
        let in_flight_on = self.transmissions_of(tsn).filter(|t| t.in_flight).map(|t| t.path).collect();
        Some(HeadOfLine {
            tsn,
            bytes: chunk.bytes(),
            path: chunk.path,
            in_flight_on,
            sent_at: self.latest_of(tsn).map(|t| t.stamps.sent_at),
            transmissions: chunk.transmissions,
        })
    }

    /// A chunk's transmissions, latest first.
    pub(crate) fn transmissions_of(&self, tsn: u64) -> impl Iterator<Item = &Transmission> {
        let latest = self.get(tsn).and_then(|c| c.latest);
        std::iter::successors(latest.map(|id| self.transmission(id)), |t| {
            t.previous.map(|id| self.transmission(id))
        })
    }

    /// Checks the list of unacknowledged chunks against itself, in both directions.
    ///
    /// # Panics
    /// If they differ.
    pub(crate) fn check_links(&self) {
        let (mut before, mut next) = (NONE, self.first_unacked);
        while let Some(chunk) = self.get(next) {
            assert_eq!(chunk.previous_unacked, before, "the link from TSN {next} back");
            (before, next) = (next, chunk.next_unacked);
        }
        assert_eq!((before, next), (self.last_unacked, NONE), "the end of the unacknowledged chunks");
        let named: usize =
            (self.base..).take(self.chunks.len()).map(|tsn| self.transmissions_of(tsn).count()).sum();
        assert_eq!(named, self.transmissions.len(), "every transmission belongs to a chunk");
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::send::{SendOptions, SendQueue};

    fn transmission(path: usize) -> Transmission {
        Transmission {
            path: PathId::new(path),
            bytes: ChunkBytes::new(17),
            stamps: SendStamps::default(),
            in_flight: true,
            previous: None,
        }
    }

    fn draft() -> Draft {
        let mut queue = SendQueue::new(1, 0);
        queue.push(Bytes::from_static(b"x"), SendOptions::default(), None);
        queue.cut(9).expect("a message waits")
    }

    fn send(outstanding: &mut Outstanding, path: usize) -> u64 {
        let tsn = outstanding.push(draft(), PathId::new(path));
        outstanding.add_transmission(tsn, transmission(path));
        tsn
    }

    fn unacked(outstanding: &Outstanding) -> Vec<u64> {
        std::iter::successors(outstanding.first_unacked(), |&t| outstanding.next_unacked(t)).collect()
    }

    const FIRST: u64 = 1 << 32;

    #[test]
    fn the_list_of_unacknowledged_chunks_stays_in_order_through_acks_and_reneging() {
        let mut outstanding = Outstanding::new(FIRST);
        for _ in 0..6 {
            send(&mut outstanding, 0);
        }
        for tsn in [FIRST + 1, FIRST + 5, FIRST] {
            outstanding.mark_acked(tsn);
        }
        assert_eq!(unacked(&outstanding), [FIRST + 2, FIRST + 3, FIRST + 4]);
        outstanding.unmark_acked(FIRST + 5);
        outstanding.unmark_acked(FIRST + 1);
        assert_eq!(unacked(&outstanding), [FIRST + 1, FIRST + 2, FIRST + 3, FIRST + 4, FIRST + 5]);
        outstanding.pop(|_| ());
        assert_eq!(outstanding.cumulative(), FIRST);
        assert_eq!(send(&mut outstanding, 0), FIRST + 6);
        assert_eq!(unacked(&outstanding).last(), Some(&(FIRST + 6)));
    }

    #[test]
    fn what_the_receiver_keeps_is_let_go_once_however_often_it_says_so() {
        let mut outstanding = Outstanding::new(FIRST);
        for _ in 0..6 {
            send(&mut outstanding, 0);
        }
        for tsn in [FIRST + 1, FIRST + 2, FIRST + 4] {
            outstanding.mark_acked(tsn);
        }
        let mut keep = |start, end| {
            let mut released = 0;
            outstanding.keep(FIRST + start, FIRST + end, |_, _| released += 1);
            released
        };
        assert_eq!([keep(1, 1), keep(1, 2), keep(1, 4), keep(0, 4), keep(9, 20)], [1, 1, 1, 0, 0]);
        assert_eq!(outstanding.payload_bytes(), 3);
        assert!(outstanding.get(FIRST + 4).is_some_and(|c| c.state == ChunkState::NonRenegable));
    }

    #[test]
    fn every_copy_of_a_chunk_is_released_with_it() {
        let mut outstanding = Outstanding::new(FIRST);
        send(&mut outstanding, 0);
        outstanding.add_transmission(FIRST, transmission(1));
        let mut ended = Vec::new();
        outstanding.end_flights(FIRST, |t| ended.push(t.path.index()));
        assert_eq!(ended, [1, 0]);
        outstanding.mark_acked(FIRST);
        let mut released = Vec::new();
        outstanding.pop(|path| released.push(path.index()));
        assert_eq!(released, [1, 0]);
        assert!(outstanding.transmissions.is_empty());
    }

    #[test]
    fn the_flights_on_one_path_end_without_those_on_others_and_only_once() {
        let mut outstanding = Outstanding::new(FIRST);
        send(&mut outstanding, 0);
        for path in [1, 0] {
            outstanding.add_transmission(FIRST, transmission(path));
        }
        let mut ended_on = |path: usize| {
            let mut ended = 0;
            outstanding.end_flights_on(FIRST, PathId::new(path), |t| ended += t.path.index() + 1);
            ended
        };
        assert_eq!([ended_on(0), ended_on(0), ended_on(1), ended_on(1)], [2, 0, 2, 0]);
        outstanding.resume_flight(FIRST);
        let flying: Vec<bool> = outstanding.transmissions_of(FIRST).map(|t| t.in_flight).collect();
        assert_eq!(flying, [true, false, false], "the latest one flies again");
    }

    #[test]
    fn user_bytes_are_held_until_their_chunk_leaves_or_the_receiver_keeps_it() {
        let mut outstanding = Outstanding::new(FIRST);
        assert!(outstanding.is_empty());
        for _ in 0..3 {
            send(&mut outstanding, 0);
        }
        assert_eq!((outstanding.len(), outstanding.payload_bytes()), (3, 3));
        assert_eq!(outstanding.next_tsn(), FIRST + 3);
        outstanding.mark_acked(FIRST);
        outstanding.mark_acked(FIRST + 1);
        outstanding.keep(FIRST + 1, FIRST + 1, |path, bytes| {
            assert_eq!((path, bytes), (PathId::new(0), ChunkBytes::new(17)), "with the chunk's header");
        });
        assert_eq!(outstanding.payload_bytes(), 2);
        outstanding.pop(|_| ());
        assert_eq!((outstanding.len(), outstanding.payload_bytes(), outstanding.cumulative()), (2, 1, FIRST));
        outstanding.pop(|_| ());
        assert_eq!((outstanding.payload_bytes(), outstanding.cumulative()), (1, FIRST + 1));
        assert!(!outstanding.is_empty());
    }

    #[test]
    fn what_the_receiver_keeps_is_sought_only_among_chunks_that_are_here() {
        let mut outstanding = Outstanding::new(FIRST);
        for _ in 0..3 {
            send(&mut outstanding, 0);
        }
        outstanding.mark_acked(FIRST);
        outstanding.mark_acked(FIRST + 2);
        let mut released = 0;
        outstanding.keep(0, u64::MAX, |_, _| released += 1);
        assert_eq!(released, 2, "the chunk between them is not acknowledged");
        outstanding.keep(FIRST + 3, FIRST + 3, |_, _| released += 1);
        assert_eq!(released, 2, "nothing was sent there");
    }

    #[test]
    fn gap_blocks_add_up_until_the_cumulative_tsn_passes_them() {
        let mut outstanding = Outstanding::new(FIRST);
        for _ in 0..9 {
            send(&mut outstanding, 0);
        }
        assert!(outstanding.add_gap_acked(&[(FIRST + 6, FIRST + 6), (FIRST + 8, FIRST + 8)]));
        assert!(!outstanding.add_gap_acked(&[(FIRST + 2, FIRST + 3), (FIRST + 7, FIRST + 7)]));
        assert_eq!(outstanding.gap_acked(), [(FIRST + 2, FIRST + 3), (FIRST + 6, FIRST + 8)]);
        for tsn in FIRST..FIRST + 4 {
            outstanding.mark_acked(tsn);
            outstanding.pop(|_| ());
        }
        assert!(!outstanding.add_gap_acked(&[]));
        assert_eq!(outstanding.gap_acked(), [(FIRST + 6, FIRST + 8)]);
        assert!(outstanding.add_gap_acked(&[(FIRST + 5, FIRST + 8)]), "they cover what was known");
        outstanding.set_gap_acked(&[(FIRST + 5, FIRST + 5)]);
        assert_eq!(outstanding.gap_acked(), [(FIRST + 5, FIRST + 5)]);
    }

    #[test]
    fn policies_see_where_the_head_of_line_is_in_flight_and_how_often_it_was_sent() {
        let mut outstanding = Outstanding::new(FIRST);
        let tsn = outstanding.push(draft(), PathId::new(2));
        let head = outstanding.head_of_line(tsn).expect("it is here");
        assert_eq!((head.tsn, head.path, head.sent_at, head.transmissions), (FIRST, PathId::new(2), None, 0));
        assert_eq!(head.in_flight_on.len(), 0);
        for path in [0, 1] {
            outstanding.add_transmission(tsn, transmission(path));
        }
        outstanding.end_flights_on(tsn, PathId::new(0), |_| ());
        let head = outstanding.head_of_line(tsn).expect("it is here");
        assert_eq!(
            (head.path, head.sent_at, head.transmissions),
            (PathId::new(1), Some(crate::time::Time::ZERO), 2)
        );
        assert_eq!(head.in_flight_on, [PathId::new(1)].into_iter().collect());
        assert!(
            outstanding.head_of_line(FIRST - 1).is_none() && outstanding.head_of_line(FIRST + 1).is_none()
        );
    }

    #[test]
    fn chunks_that_wait_to_be_sent_are_not_what_a_path_has_outstanding() {
        let mut outstanding = Outstanding::new(FIRST);
        let path = PathId::new(0);
        let bound = outstanding.push(draft(), path);
        assert_eq!((outstanding.earliest_on(path, u64::MAX), outstanding.highest_on(path)), (None, None));
        outstanding.add_transmission(bound, transmission(0));
        send(&mut outstanding, 0);
        assert_eq!(
            (outstanding.earliest_on(path, u64::MAX), outstanding.highest_on(path)),
            (Some(FIRST), Some(FIRST + 1))
        );
        assert_eq!(outstanding.earliest_on(path, FIRST), None, "the limit itself is not before it");
        outstanding.get_mut(FIRST + 1).expect("it is here").state = ChunkState::Lost(LossCause::Timeout);
        assert_eq!(outstanding.highest_on(path), Some(FIRST), "a lost one waits to be sent again");
    }

    #[test]
    fn a_path_knows_its_earliest_and_highest_chunks() {
        let mut outstanding = Outstanding::new(FIRST);
        for path in [0, 1, 0, 1] {
            send(&mut outstanding, path);
        }
        assert_eq!(outstanding.earliest_on(PathId::new(1), u64::MAX), Some(FIRST + 1));
        outstanding.mark_acked(FIRST + 1);
        assert_eq!(outstanding.earliest_on(PathId::new(1), u64::MAX), Some(FIRST + 3));
        assert_eq!(outstanding.highest_on(PathId::new(0)), Some(FIRST + 2));
        assert_eq!(outstanding.highest_on(PathId::new(2)), None);
    }
}

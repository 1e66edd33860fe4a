//! Chunks that have a TSN and are not yet cumulatively acknowledged, and their transmissions.
//!
//! Chunks and transmissions have separate records: a chunk can have several transmissions, each with its own path, time and
//! delivery stamps. Outstanding bytes, round-trip times and losses belong to transmissions. Chunks are stored in a ring indexed by
//! TSN. Unacknowledged chunks are also linked: all of them in TSN order, and those of each path in TSN order and in the order of
//! sending. The cost of a SACK is therefore proportional to the number of chunks that it changes.

use slab::Slab;

use crate::path_id::{MAX_PATHS, PathId};
use crate::policy::{HeadOfLine, LossCause, SendStamps};
use crate::send::Draft;
use crate::send::chunk_list::{AllLinks, ChunkList, KIND, Linked, Ring, SENT, UNACKED, assert_same};
use crate::time::Time;
use crate::units::ChunkBytes;

/// Index of a transmission record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransmissionId(u32);

/// One transmission of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    pub(crate) path: PathId,
    pub(crate) bytes: ChunkBytes,
    pub(crate) stamps: SendStamps,
    /// `true` until the transmission is acknowledged, declared lost or superseded.
    pub(crate) in_flight: bool,
    /// Transmission of the chunk before this one.
    pub(crate) previous: Option<TransmissionId>,
}

/// State of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkState {
    /// The chunk has a TSN and was never sent. It waits in the queue of its path, or for a path if `placed` is `false`.
    Bound {
        placed: bool,
    },
    InFlight,
    Lost(LossCause),
    /// The receiver has the chunk and may still drop it until the cumulative TSN has passed it.
    Acked,
    /// The receiver never drops the chunk (NR-SACK), and its payload is released.
    NonRenegable,
    /// The message was abandoned; a FORWARD-TSN passes over the chunk, and its payload is released.
    Abandoned,
}

impl ChunkState {
    /// Returns `true` if the receiver is known to have the chunk.
    pub(crate) fn is_acked(self) -> bool {
        matches!(self, ChunkState::Acked | ChunkState::NonRenegable)
    }

    /// Returns `true` if the sender waits for an acknowledgement.
    pub(crate) fn is_awaited(self) -> bool {
        matches!(self, ChunkState::Bound { .. } | ChunkState::InFlight | ChunkState::Lost(_))
    }
}

/// Chunk with a TSN.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) draft: Draft,
    pub(crate) state: ChunkState,
    pub(crate) reports: u32,
    /// `true` after a fast retransmission or time-out: only T3 may mark the chunk again (RFC 9260 section 7.2.4 item 5).
    pub(crate) recovered_before: bool,
    /// `true` once a gap block has added the chunk to partial_bytes_acked of its path. A reordered SACK can revoke the
    /// acknowledgement; the next acknowledgement does not add the chunk a second time (ns-2's `eAddedToPartialBytesAcked`).
    pub(crate) counted_toward_increment: bool,
    pub(crate) transmissions: u32,
    /// Number of transmissions that repaired a loss, without further copies.
    pub(crate) retransmissions: u32,
    /// Latest transmission; `None` until the chunk is sent.
    pub(crate) latest: Option<TransmissionId>,
    /// Path of the latest transmission, or the one that the chunk is bound to.
    pub(crate) path: PathId,
    links: AllLinks,
}

impl Linked for Chunk {
    #[inline]
    fn links(&self) -> &AllLinks {
        &self.links
    }

    #[inline]
    fn links_mut(&mut self) -> &mut AllLinks {
        &mut self.links
    }
}

/// Properties by which the chunks of a path are divided into lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    is_retransmission: bool,
    /// `true` if missing reports may still mark the chunk as lost.
    judged_by_reports: bool,
}

impl Kind {
    const ALL: [Kind; 4] =
        [Kind::new(false, false), Kind::new(false, true), Kind::new(true, false), Kind::new(true, true)];

    const fn new(is_retransmission: bool, judged_by_reports: bool) -> Self {
        Kind { is_retransmission, judged_by_reports }
    }

    fn index(self) -> usize {
        usize::from(self.is_retransmission) * 2 + usize::from(self.judged_by_reports)
    }
}

/// Unacknowledged chunks that were sent on a path.
#[derive(Clone, Debug, Default)]
struct PathChunks {
    /// Lists by [`Kind`], in TSN order.
    kinds: [ChunkList<KIND>; 4],
    /// Chunks that a SACK may report as missing, in the order of their latest transmissions.
    sent: ChunkList<SENT>,
    /// Highest order of transmission so far in that list.
    newest: (Time, u64),
}

/// Place of a chunk in the lists of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    path: PathId,
    kind: Kind,
    /// Latest transmission, by which the chunk is ordered in the list of sent chunks; `None` outside that list.
    sent: Option<TransmissionId>,
}

impl Chunk {
    /// Returns the bytes with the chunk header, without padding.
    pub(crate) fn bytes(&self) -> ChunkBytes {
        self.draft.chunk_bytes()
    }
}

/// All outstanding chunks.
#[derive(Clone, Debug)]
pub(crate) struct Outstanding {
    ring: Ring<Chunk>,
    unacked: ChunkList<UNACKED>,
    by_path: [PathChunks; MAX_PATHS],
    /// `true` if missing reports also count for chunks that wait for their retransmission after a time-out.
    judges_waiting: bool,
    transmissions: Slab<Transmission>,
    payload_bytes: u64,
    /// Number of changes of the chunk that was the earliest unacknowledged one at the time.
    head_changes: u64,
}

impl Outstanding {
    pub(crate) fn new(initial_tsn: u64, judges_waiting: bool) -> Self {
        Outstanding {
            ring: Ring::new(initial_tsn),
            unacked: ChunkList::default(),
            by_path: Default::default(),
            judges_waiting,
            transmissions: Slab::new(),
            payload_bytes: 0,
            head_changes: 0,
        }
    }

    /// Returns the TSN of the next new chunk.
    pub(crate) fn next_tsn(&self) -> u64 {
        self.ring.next_tsn()
    }

    /// Returns the cumulative TSN.
    pub(crate) fn cumulative(&self) -> u64 {
        self.ring.base() - 1
    }

    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ring.len() == 0
    }

    /// Returns the user bytes that are stored until they are cumulatively acknowledged.
    pub(crate) fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    #[inline]
    pub(crate) fn get(&self, tsn: u64) -> Option<&Chunk> {
        self.ring.get(tsn)
    }

    /// Changes a chunk and moves it to the lists of its new state and path.
    pub(crate) fn change<R>(&mut self, tsn: u64, change: impl FnOnce(&mut Chunk) -> R) -> Option<R> {
        let before = self.place(self.get(tsn)?);
        let result = change(self.ring.get_mut(tsn)?);
        let after = self.place(self.get(tsn)?);
        self.touch_head(tsn);
        self.move_between_lists(tsn, before, after);
        Some(result)
    }

    /// Counts a change of a chunk or its transmissions if it is the earliest unacknowledged one.
    fn touch_head(&mut self, tsn: u64) {
        self.head_changes += u64::from(self.unacked.first() == Some(tsn));
    }

    /// Returns the earliest unacknowledged TSN with a number. Both stay the same while [`head_of_line`](Self::head_of_line) does.
    pub(crate) fn head_version(&self) -> Option<(u64, u64)> {
        self.unacked.first().map(|tsn| (tsn, self.head_changes))
    }

    /// Returns the place of a chunk; `None` if it was never sent or is acknowledged or abandoned.
    fn place(&self, chunk: &Chunk) -> Option<Place> {
        let latest = chunk.latest.filter(|_| chunk.state.is_awaited())?;
        let waits = matches!(chunk.state, ChunkState::Lost(_));
        let judged_by_reports = !chunk.recovered_before && (!waits || self.judges_waiting);
        Some(Place {
            path: chunk.path,
            kind: Kind::new(chunk.transmissions > 1, judged_by_reports),
            sent: Some(latest).filter(|_| !waits || judged_by_reports),
        })
    }

    fn move_between_lists(&mut self, tsn: u64, before: Option<Place>, after: Option<Place>) {
        let Outstanding { ring, by_path, .. } = self;
        let list = |place: Place| (place.path, place.kind);
        if before.map(list) != after.map(list) {
            if let Some(Place { path, kind, .. }) = before {
                by_path[path.index()].kinds[kind.index()].remove(ring, tsn);
            }
            if let Some(Place { path, kind, .. }) = after {
                by_path[path.index()].kinds[kind.index()].insert(ring, tsn);
            }
        }
        let transmission = |place: Place| place.sent.map(|sent| (place.path, sent));
        let (before, after) = (before.and_then(transmission), after.and_then(transmission));
        if before != after {
            if let Some((path, _)) = before {
                by_path[path.index()].sent.remove(ring, tsn);
            }
            if let Some((path, _)) = after {
                self.link_by_time(path, tsn);
            }
        }
    }

    /// Links a chunk in the order of transmissions. Its place is at the end, except after a revoked acknowledgement or loss, and
    /// for lower TSNs that are sent after higher ones at the same time.
    fn link_by_time(&mut self, path: PathId, tsn: u64) {
        let order = self.order_of(tsn);
        let Outstanding { ring, by_path, .. } = self;
        let PathChunks { sent: list, newest, .. } = &mut by_path[path.index()];
        if *newest < order {
            *newest = order;
            return list.push(ring, tsn);
        }
        let list = *list;
        let before = list.iter_back(&self.ring).find(|&other| self.order_of(other) < order);
        self.by_path[path.index()].sent.insert_behind(&mut self.ring, before, tsn);
    }

    /// Returns the time of a chunk's latest transmission, and its TSN.
    fn order_of(&self, tsn: u64) -> (Time, u64) {
        (self.latest_of(tsn).map_or(Time::ZERO, |transmission| transmission.stamps.sent_at), tsn)
    }

    fn transmission(&self, id: TransmissionId) -> &Transmission {
        &self.transmissions[id.0 as usize]
    }

    /// Returns the lowest unacknowledged TSN.
    pub(crate) fn first_unacked(&self) -> Option<u64> {
        self.unacked.first()
    }

    /// Returns all unacknowledged TSNs, in order.
    pub(crate) fn unacked(&self) -> impl Iterator<Item = u64> {
        self.unacked.iter(&self.ring)
    }

    /// Returns the next unacknowledged TSN after `tsn`, which must be unacknowledged itself.
    pub(crate) fn next_unacked(&self, tsn: u64) -> Option<u64> {
        ChunkList::<UNACKED>::next(&self.ring, tsn)
    }

    /// Appends a chunk that is bound to a path and not yet sent, and returns its TSN.
    pub(crate) fn push(&mut self, draft: Draft, path: PathId) -> u64 {
        let tsn = self.next_tsn();
        self.payload_bytes += draft.payload.len() as u64;
        self.ring.push(Chunk {
            draft,
            state: ChunkState::Bound { placed: true },
            reports: 0,
            recovered_before: false,
            counted_toward_increment: false,
            transmissions: 0,
            retransmissions: 0,
            latest: None,
            path,
            links: AllLinks::default(),
        });
        self.unacked.push(&mut self.ring, tsn);
        tsn
    }

    /// Adds a transmission to a chunk, which is then in flight.
    pub(crate) fn add_transmission(&mut self, tsn: u64, mut transmission: Transmission) {
        let Some(chunk) = self.get(tsn) else { return };
        transmission.previous = chunk.latest;
        let path = transmission.path;
        let id = TransmissionId(self.transmissions.insert(transmission) as u32);
        self.change(tsn, |chunk| {
            chunk.state = ChunkState::InFlight;
            chunk.latest = Some(id);
            chunk.path = path;
            chunk.transmissions += 1;
        });
    }

    /// Returns the latest transmission of a chunk; `None` if it was never sent.
    pub(crate) fn latest_of(&self, tsn: u64) -> Option<&Transmission> {
        self.get(tsn)?.latest.map(|id| self.transmission(id))
    }

    pub(crate) fn add_reports(&mut self, tsn: u64, reports: u32) {
        if let Some(chunk) = self.ring.get_mut(tsn) {
            chunk.reports += reports;
        }
    }

    /// Records that a gap block adds the chunk to partial_bytes_acked. Returns `true` if it is the first to do so.
    pub(crate) fn count_toward_increment(&mut self, tsn: u64) -> bool {
        let chunk = self.ring.get_mut(tsn);
        chunk.is_some_and(|chunk| !std::mem::replace(&mut chunk.counted_toward_increment, true))
    }

    /// Ends the flights of all transmissions of a chunk and calls `ended` for each, the latest first.
    pub(crate) fn end_flights(&mut self, tsn: u64, ended: impl FnMut(&Transmission)) {
        self.end_flights_that(tsn, |_| true, ended);
    }

    /// Ends the flights of a chunk on one path and calls `ended` for each, the latest first.
    pub(crate) fn end_flights_on(&mut self, tsn: u64, path: PathId, ended: impl FnMut(&Transmission)) {
        self.end_flights_that(tsn, |copy| copy.path == path, ended);
    }

    fn end_flights_that(
        &mut self,
        tsn: u64,
        which: impl Fn(&Transmission) -> bool,
        mut ended: impl FnMut(&Transmission),
    ) {
        self.touch_head(tsn);
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

    /// Puts the latest transmission of a chunk back in flight after its acknowledgement was revoked.
    pub(crate) fn resume_flight(&mut self, tsn: u64) {
        if let Some(id) = self.get(tsn).and_then(|c| c.latest) {
            self.transmissions[id.0 as usize].in_flight = true;
            self.touch_head(tsn);
        }
    }

    /// Releases the payloads of acknowledged chunks that the receiver never drops (NR-SACK), and calls `released` with the path and
    /// chunk bytes of each.
    pub(crate) fn keep(&mut self, start: u64, end: u64, mut released: impl FnMut(PathId, ChunkBytes)) {
        let outstanding = start.max(self.ring.base())..self.next_tsn().min(end.saturating_add(1));
        for (path, bytes) in outstanding.filter_map(|tsn| self.release(tsn)) {
            released(path, bytes);
        }
    }

    fn release(&mut self, tsn: u64) -> Option<(PathId, ChunkBytes)> {
        let chunk = self.ring.get_mut(tsn).filter(|c| c.state == ChunkState::Acked)?;
        let (path, bytes) = (chunk.path, chunk.bytes());
        chunk.state = ChunkState::NonRenegable;
        let payload = std::mem::take(&mut chunk.draft.payload);
        self.payload_bytes -= payload.len() as u64;
        Some((path, bytes))
    }

    /// Marks a chunk as acknowledged and removes it from the lists of unacknowledged ones.
    pub(crate) fn mark_acked(&mut self, tsn: u64) {
        self.unacked.remove(&mut self.ring, tsn);
        self.change(tsn, |chunk| chunk.state = ChunkState::Acked);
    }

    /// Marks a chunk as abandoned and releases its payload. The caller ends its flights before.
    pub(crate) fn mark_abandoned(&mut self, tsn: u64) {
        if self.get(tsn).is_some_and(|chunk| chunk.state.is_awaited()) {
            self.unacked.remove(&mut self.ring, tsn);
        }
        let payload = self.change(tsn, |chunk| {
            chunk.state = ChunkState::Abandoned;
            std::mem::take(&mut chunk.draft.payload)
        });
        self.payload_bytes -= payload.map_or(0, |payload| payload.len() as u64);
    }

    /// Revokes an acknowledgement: the chunk is in flight again.
    pub(crate) fn unmark_acked(&mut self, tsn: u64) {
        self.change(tsn, |chunk| chunk.state = ChunkState::InFlight);
        self.resume_flight(tsn);
        self.unacked.insert(&mut self.ring, tsn);
        self.head_changes += 1;
    }

    /// Removes the first chunk, which must not be awaited, with its transmissions, and calls `released` with the path of each.
    pub(crate) fn pop(&mut self, mut released: impl FnMut(PathId)) -> Option<Chunk> {
        let chunk = self.ring.pop()?;
        self.payload_bytes -= chunk.draft.payload.len() as u64;
        let mut next = chunk.latest;
        while let Some(id) = next {
            let transmission = self.transmissions.remove(id.0 as usize);
            released(transmission.path);
            next = transmission.previous;
        }
        Some(chunk)
    }

    /// Returns the highest TSN whose latest transmission used `path` and that does not wait for a transmission.
    pub(crate) fn highest_on(&self, path: PathId) -> Option<u64> {
        let waits = |state| matches!(state, ChunkState::Lost(_) | ChunkState::Bound { .. });
        let sent = |c: &Chunk| c.latest.is_some() && !waits(c.state);
        let back = self.ring.iter().rev().position(|c| c.path == path && sent(c))?;
        Some(self.next_tsn() - 1 - back as u64)
    }

    /// Returns the highest TSN in flight whose latest transmission used `path`.
    pub(crate) fn highest_in_flight_on(&self, path: PathId) -> Option<u64> {
        let in_flight = |tsn: &u64| self.get(*tsn).is_some_and(|chunk| chunk.state == ChunkState::InFlight);
        let highest = |list: &ChunkList<KIND>| list.iter_back(&self.ring).find(in_flight);
        self.by_path[path.index()].kinds.iter().filter_map(highest).max()
    }

    /// Returns the lowest unacknowledged TSN below `limit` whose latest transmission used `path`.
    pub(crate) fn earliest_on(&self, path: PathId, limit: u64) -> Option<u64> {
        let first = self.by_path[path.index()].kinds.iter().filter_map(ChunkList::first).min();
        first.filter(|&tsn| tsn < limit)
    }

    /// Returns the lowest unacknowledged TSN of a path at or after `from`, among chunks sent once, or more than once if `again`.
    pub(crate) fn earliest_sent(&self, path: PathId, again: bool, from: u64) -> Option<u64> {
        let first = |judged| {
            let list = self.by_path[path.index()].kinds[Kind::new(again, judged).index()];
            list.iter(&self.ring).find(|&tsn| tsn >= from)
        };
        match (first(false), first(true)) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Returns the chunks of a path that missing reports may still mark as lost, in TSN order: those sent once come first.
    pub(crate) fn judged_by_reports(&self, path: PathId, below: u64) -> impl Iterator<Item = u64> {
        let kinds = Kind::ALL.into_iter().filter(|kind| kind.judged_by_reports);
        let lists = kinds.map(move |kind| self.by_path[path.index()].kinds[kind.index()]);
        lists.flat_map(move |list| list.iter(&self.ring).take_while(move |&tsn| tsn < below))
    }

    /// Adds the chunks of a path below `limit` whose latest transmission was sent before a time, or at that time with a lower TSN.
    /// Chunks that wait for a retransmission are included only if reports count for them.
    ///
    /// The search takes the shorter of two walks. After an acknowledged retransmission the order of transmissions is long: it lists
    /// all chunks that left before. If chunks are lost repeatedly, the order by TSN is long.
    pub(crate) fn sent_before(&self, path: PathId, bound: (Time, u64), limit: u64, found: &mut Vec<u64>) {
        let PathChunks { sent, kinds, .. } = &self.by_path[path.index()];
        let by_time = || sent.iter(&self.ring).take_while(|&tsn| self.order_of(tsn) < bound);
        let by_tsn = || kinds.iter().flat_map(|list| list.iter(&self.ring).take_while(|&tsn| tsn < limit));
        if ends_first(by_time(), by_tsn()) {
            found.extend(by_time().filter(|&tsn| tsn < limit));
        } else {
            let is_sent = |tsn| self.get(tsn).and_then(|chunk| self.place(chunk)?.sent).is_some();
            found.extend(by_tsn().filter(|&tsn| is_sent(tsn) && self.order_of(tsn) < bound));
        }
    }

    /// Returns all chunks with their TSNs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Chunk)> {
        (self.ring.base()..).zip(self.ring.iter())
    }

    /// Describes a chunk for policies as the head-of-line chunk.
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

    /// Returns a chunk's transmissions, latest first.
    pub(crate) fn transmissions_of(&self, tsn: u64) -> impl Iterator<Item = &Transmission> {
        let latest = self.get(tsn).and_then(|c| c.latest);
        std::iter::successors(latest.map(|id| self.transmission(id)), |t| {
            t.previous.map(|id| self.transmission(id))
        })
    }

    /// Compares the lists with a scan of all chunks.
    ///
    /// # Panics
    /// Panics if a list differs from the scan.
    pub(crate) fn check_lists(&self) {
        self.unacked.check(&self.ring);
        for (index, lists) in self.by_path.iter().enumerate() {
            let places = || self.iter().filter_map(|(tsn, chunk)| Some((tsn, self.place(chunk)?)));
            let here = || places().filter(move |(_, place)| place.path.index() == index);
            for kind in Kind::ALL {
                let list = lists.kinds[kind.index()];
                list.check(&self.ring);
                let expected = || here().filter(|(_, place)| place.kind == kind).map(|(tsn, _)| tsn);
                assert_same(|| list.iter(&self.ring), expected, || format!("{kind:?} of path {index}"));
            }
            let path = PathId::new(index);
            for again in [false, true] {
                let first =
                    here().find(|(_, place)| place.kind.is_retransmission == again).map(|(tsn, _)| tsn);
                assert_eq!(self.earliest_sent(path, again, 0), first, "the first of path {index}");
            }
            assert_eq!(self.earliest_on(path, u64::MAX), here().next().map(|(tsn, _)| tsn));
            lists.sent.check(&self.ring);
            let mut sent: Vec<u64> = lists.sent.iter(&self.ring).collect();
            assert!(sent.is_sorted_by_key(|&tsn| self.order_of(tsn)), "transmissions of path {index}");
            sent.sort_unstable();
            let expected = || here().filter(|(_, place)| place.sent.is_some()).map(|(tsn, _)| tsn);
            let what = || format!("chunks of path {index} that may be reported");
            assert_same(|| sent.iter().copied(), expected, what);
        }
        let named: usize = self.iter().map(|(tsn, _)| self.transmissions_of(tsn).count()).sum();
        assert_eq!(named, self.transmissions.len(), "every transmission belongs to a chunk");
    }
}

/// Returns `true` if the first iterator has at most as many items as the second. The cost is that of the shorter one.
fn ends_first(mut one: impl Iterator, mut other: impl Iterator) -> bool {
    loop {
        if one.next().is_none() {
            return true;
        }
        if other.next().is_none() {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::send::StreamScheduler;
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
        let mut queue = SendQueue::new(1, 0, StreamScheduler::default());
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
    fn shorter_walk_is_found_without_completing_the_longer() {
        assert!(ends_first(0..3, 0..));
        assert!(!ends_first(0.., 0..3));
        assert!(ends_first(0..3, 0..3), "of two that are as long the first will do");
    }

    #[test]
    fn earlier_sent_chunks_are_found_by_either_walk() {
        let mut outstanding = Outstanding::new(FIRST, false);
        let at = |tsn: u64, time: u64| {
            let mut sent = transmission(0);
            sent.stamps.sent_at = Time::from_nanos(time);
            (tsn, sent)
        };
        for tsn in FIRST..FIRST + 12 {
            outstanding.push(draft(), PathId::new(0));
            let (tsn, sent) = at(tsn, tsn - FIRST);
            outstanding.add_transmission(tsn, sent);
        }
        for (tsn, sent) in [at(FIRST + 4, 20), at(FIRST + 1, 21)] {
            outstanding.add_transmission(tsn, sent);
        }
        outstanding.mark_acked(FIRST + 7);
        for limit in FIRST..FIRST + 14 {
            for bound in (0..23).flat_map(|time| [FIRST, FIRST + 20].map(|tsn| (Time::from_nanos(time), tsn)))
            {
                let mut found = Vec::new();
                outstanding.sent_before(PathId::new(0), bound, limit, &mut found);
                found.sort_unstable();
                let left = |tsn: &u64| outstanding.order_of(*tsn) < bound && *tsn != FIRST + 7;
                let expected: Vec<u64> = (FIRST..limit.min(FIRST + 12)).filter(left).collect();
                assert_eq!(found, expected, "{limit} {bound:?}");
            }
        }
    }

    #[test]
    fn unacknowledged_chunks_stay_in_tsn_order_through_acks_and_reneging() {
        let mut outstanding = Outstanding::new(FIRST, false);
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
    fn nr_acked_chunk_is_released_once() {
        let mut outstanding = Outstanding::new(FIRST, false);
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
        let mut outstanding = Outstanding::new(FIRST, false);
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
        let mut outstanding = Outstanding::new(FIRST, false);
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
    fn user_bytes_are_stored_until_chunk_is_released_or_nr_acked() {
        let mut outstanding = Outstanding::new(FIRST, false);
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
    fn nr_ack_is_matched_with_stored_chunks_only() {
        let mut outstanding = Outstanding::new(FIRST, false);
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
    fn policies_see_paths_and_transmissions_of_the_head_of_line() {
        let mut outstanding = Outstanding::new(FIRST, false);
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
    fn chunks_that_wait_to_be_sent_are_not_outstanding() {
        let mut outstanding = Outstanding::new(FIRST, false);
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
        outstanding.change(FIRST + 1, |chunk| chunk.state = ChunkState::Lost(LossCause::Timeout));
        assert_eq!(outstanding.highest_on(path), Some(FIRST), "a lost one waits to be sent again");
    }

    #[test]
    fn a_path_knows_its_earliest_and_highest_chunks() {
        let mut outstanding = Outstanding::new(FIRST, false);
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

//! State of the sending side of an association: queued, outstanding and lost chunks, and their cost in the peer's window.
//!
//! Each method that changes the state is one transition of a chunk: from the queue to a TSN ([`admit`](Sender::admit)), into the
//! network ([`transmit`](Sender::transmit), [`retransmit`](Sender::retransmit), [`copy`](Sender::copy)), out of it
//! ([`acknowledge`](Sender::acknowledge), [`declare_lost`](Sender::declare_lost)), back ([`revoke_loss`](Sender::revoke_loss),
//! [`renege`](Sender::renege), [`unbind`](Sender::unbind)), and to its end ([`discard`](Sender::discard), and for abandoned
//! messages [`abandon_chunk`](Sender::abandon_chunk)). All totals follow from the chunks' states; [`check`](Sender::check) recounts
//! them.

use std::sync::Arc;

use bytes::Bytes;

use crate::path_id::{MAX_PATHS, PathId, PathSet};
use crate::policy::{AssociationFacts, DeliverySample, HeadOfLine, Limiter, LossCause, SendStamps};
use crate::profile::{CopyFate, Profile};
use crate::send::delivery::{Delivered, Delivery};
use crate::send::duplicate_copies::{DuplicateCopies, DuplicateCopy, LatestDelivered};
use crate::send::held::{Held, HeldMessages};
use crate::send::partial::ForwardTsnState;
use crate::send::peer_window::{PeerWindow, WindowProbe};
use crate::send::{
    BoundQueues, Chunk, ChunkState, Draft, LostList, Outstanding, PartialReliability, PathBytes, Removed,
    SendBuffer, SendOptions, SendQueue, Transmission,
};
use crate::time::{Span, Time};
use crate::units::{ChunkBytes, WindowBytes};

#[derive(Clone, Debug, Default)]
pub(super) struct SenderPath {
    pub(super) bytes: PathBytes,
    duplicates: DuplicateCopies,
    /// Number of transmission records that name this path.
    transmissions: u32,
    delivery: Delivery,
}

/// Chunk that got its TSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub(crate) tsn: u64,
    pub(crate) bytes: ChunkBytes,
}

/// Transmission that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmitted {
    /// Path of the chunk's previous transmission, or the one that it was bound to.
    pub(crate) previous_path: PathId,
    pub(crate) bytes: ChunkBytes,
}

/// Chunk that was declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) path: PathId,
    pub(crate) bytes: ChunkBytes,
    /// Stamps of the chunk's latest transmission.
    pub(crate) stamps: SendStamps,
    /// `true` if it was lost already and waits for its retransmission.
    pub(crate) again: bool,
}

/// Chunk that was released after the cumulative TSN had passed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Discarded {
    pub(crate) tsn: u64,
    pub(crate) path: PathId,
    pub(crate) recovered_before: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// Rules of the profile, shared with the policies.
    pub(super) profile: Arc<Profile>,
    pub(super) queue: SendQueue,
    /// Messages on streams under reset.
    pub(super) held: HeldMessages,
    pub(super) outstanding: Outstanding,
    pub(super) lost: LostList,
    pub(super) bound: BoundQueues,
    pub(super) window: PeerWindow,
    pub(super) paths: [SenderPath; MAX_PATHS],
    pub(super) partial: PartialReliability,
    pub(super) buffer: SendBuffer,
    /// Paths whose counts have changed since they were taken.
    pub(super) changed: PathSet,
    pub(super) facts: AssociationFacts,
    /// Version of the head of line in the facts.
    pub(super) published_head: Option<(u64, u64)>,
    pub(super) forward: ForwardTsnState,
    pub(super) window_probe: Option<WindowProbe>,
}

/// Construction, restart and inspection.
impl Sender {
    pub(crate) fn new(
        profile: Arc<Profile>,
        queue: SendQueue,
        initial_tsn: u64,
        buffer_limit: Option<u64>,
    ) -> Self {
        Sender {
            queue,
            held: HeldMessages::default(),
            //= docs/rfc9260.txt#section-5.1
            //# When the TCB is created, each endpoint MUST set its internal Cumulative TSN Ack Point to the value of its
            //# transmitted Initial TSN minus one.
            outstanding: Outstanding::new(initial_tsn, profile.pending_losses_are_cut),
            lost: LostList::default(),
            bound: BoundQueues::default(),
            window: PeerWindow::default(),
            paths: Default::default(),
            partial: PartialReliability::new(initial_tsn),
            buffer: SendBuffer::new(buffer_limit),
            changed: PathSet::EMPTY,
            facts: AssociationFacts::default(),
            published_head: None,
            forward: ForwardTsnState::default(),
            window_probe: None,
            profile,
        }
    }

    /// Clears the state after a restart of the peer: waiting and outstanding data is lost. The next handshake sets the peer's
    /// window. Returns `true` if a message had been refused for lack of room.
    pub(crate) fn restart(&mut self, mut queue: SendQueue, initial_tsn: u64) -> bool {
        queue.adopt_priorities(&self.queue);
        self.queue = queue;
        self.held = HeldMessages::default();
        self.outstanding = Outstanding::new(initial_tsn, self.profile.pending_losses_are_cut);
        (self.facts.head_of_line, self.published_head) = (None, None);
        self.lost = LostList::default();
        self.bound = BoundQueues::default();
        self.window.forget_costs();
        self.paths = Default::default();
        self.partial = PartialReliability::new(initial_tsn);
        self.forward = ForwardTsnState::default();
        self.window_probe = None;
        self.buffer.end_wait()
    }

    /// Removes the last `bytes` user bytes of the queue, as if they had never been queued. Returns `false` and changes nothing if this
    /// is impossible.
    pub(crate) fn forget_last(&mut self, bytes: u64) -> bool {
        let forgotten = self.queue.forget_last(bytes);
        if forgotten {
            // The facts may be those of an earlier time.
            self.facts.queued_bytes = self.facts.queued_bytes.saturating_sub(bytes);
        }
        forgotten
    }

    #[inline]
    pub(crate) fn queue(&self) -> &SendQueue {
        &self.queue
    }

    #[inline]
    pub(crate) fn held(&self) -> &HeldMessages {
        &self.held
    }

    #[inline]
    pub(crate) fn outstanding(&self) -> &Outstanding {
        &self.outstanding
    }

    #[inline]
    pub(crate) fn lost(&self) -> &LostList {
        &self.lost
    }

    #[inline]
    pub(crate) fn bound(&self) -> &BoundQueues {
        &self.bound
    }

    #[inline]
    pub(crate) fn window(&self) -> &PeerWindow {
        &self.window
    }

    #[inline]
    pub(crate) fn bytes(&self, path: PathId) -> &PathBytes {
        &self.paths[path.index()].bytes
    }

    /// Returns the number of transmission records that name this path. Its id is reused only once there are none.
    #[inline]
    pub(crate) fn transmissions(&self, path: PathId) -> u32 {
        self.paths[path.index()].transmissions
    }

    #[inline]
    pub(crate) fn duplicates(&self, path: PathId) -> impl Iterator<Item = &DuplicateCopy> {
        self.paths[path.index()].duplicates.iter()
    }

    #[inline]
    pub(crate) fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Takes the paths whose counts have changed since the last call.
    #[inline]
    pub(crate) fn take_changed(&mut self) -> PathSet {
        std::mem::replace(&mut self.changed, PathSet::EMPTY)
    }

    /// Returns `true` if no chunk is in flight, bound or lost: only new transmissions can elicit an acknowledgement.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.is_flight_empty() && self.window.bound().is_zero()
    }

    /// Returns `true` if no chunk is in flight or waits for retransmission.
    #[inline]
    pub(crate) fn is_flight_empty(&self) -> bool {
        self.window.in_flight().is_zero() && self.lost.is_empty()
    }

    #[inline]
    pub(crate) fn has_bound(&self) -> bool {
        !self.window.bound().is_zero()
    }

    /// Returns `true` if all messages have been acknowledged.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.queue.is_empty() && self.outstanding.is_empty() && self.held.is_empty()
    }

    /// Returns the lowest TSN that was never sent and that the peer therefore cannot have.
    #[inline]
    pub(crate) fn lowest_unsent(&self) -> u64 {
        self.bound.lowest().unwrap_or_else(|| self.outstanding.next_tsn())
    }

    /// Returns the user bytes that are queued or not yet cumulatively acknowledged.
    #[inline]
    pub(crate) fn buffered_bytes(&self) -> u64 {
        self.queue.bytes() + self.held.bytes() + self.outstanding.payload_bytes()
    }

    /// Returns the cost of all outstanding chunks in the peer's window.
    #[inline]
    pub(crate) fn window_outstanding(&self) -> WindowBytes {
        self.window.outstanding(&self.profile)
    }

    /// Returns `true` if a chunk with this many user bytes exceeds the peer's window.
    #[inline]
    pub(crate) fn exceeds_window(&self, payload_bytes: usize) -> bool {
        self.profile.window_cost(payload_bytes as u64, 1) > self.window.available()
    }

    #[inline]
    pub(crate) fn head_of_line(&self) -> Option<HeadOfLine> {
        self.outstanding.first_unacked().and_then(|tsn| self.outstanding.head_of_line(tsn))
    }

    /// Returns the length of a chunk with its header; 0 if it is not outstanding.
    #[inline]
    pub(crate) fn chunk_len(&self, tsn: u64) -> usize {
        self.outstanding.get(tsn).map_or(0, |chunk| chunk.bytes().get() as usize)
    }

    #[inline]
    pub(crate) fn has_duplicates(&self) -> bool {
        self.paths.iter().any(|path| !path.duplicates.is_empty())
    }

    #[inline]
    pub(crate) fn has_duplicate_on(&self, path: PathId, tsn: u64) -> bool {
        self.duplicates(path).any(|copy| copy.tsn == tsn)
    }

    /// Returns the transmissions of a chunk that may still arrive, the latest first: those in flight, and duplicate copies.
    pub(crate) fn arriving(&self, tsn: u64) -> impl Iterator<Item = &Transmission> {
        self.outstanding
            .transmissions_of(tsn)
            .filter(move |copy| copy.in_flight || self.is_duplicate(tsn, copy))
    }

    fn is_duplicate(&self, tsn: u64, copy: &Transmission) -> bool {
        !copy.in_flight && self.paths[copy.path.index()].duplicates.contains(tsn, copy.stamps)
    }

    /// Returns the copy that an acknowledgement credits. Of the copies that may arrive it is the one on the path of the SACK,
    /// because the receiver answers on the path of the latest DATA (RFC 9260 section 6.4); otherwise it is the latest.
    pub(crate) fn credited_copy(&self, tsn: u64, source: Option<PathId>) -> Option<Transmission> {
        if self.outstanding.get(tsn)?.transmissions == 1 {
            return self.outstanding.latest_of(tsn).copied();
        }
        let on_source = self.arriving(tsn).find(|copy| Some(copy.path) == source);
        on_source.or_else(|| self.arriving(tsn).next()).or_else(|| self.outstanding.latest_of(tsn)).copied()
    }

    pub(super) fn cost(&self, bytes: ChunkBytes) -> WindowBytes {
        self.profile.window_cost(bytes.get().saturating_sub(self.queue.form().header_len() as u64), 1)
    }

    pub(super) fn path_mut(&mut self, path: PathId) -> &mut SenderPath {
        self.changed.insert(path);
        &mut self.paths[path.index()]
    }
}

/// Queue, send buffer and the peer's window.
impl Sender {
    /// Queues a message of the user, or holds it back if its stream is under reset.
    #[inline]
    pub(crate) fn push(&mut self, payload: Bytes, options: SendOptions, now: Time) {
        if self.held.contains(options.stream) {
            return self.held.push(Held { payload, options, sent_at: now });
        }
        self.enqueue(payload, options, now);
    }

    pub(super) fn enqueue(&mut self, payload: Bytes, options: SendOptions, now: Time) {
        let limit = self.partial.messages.add(options, self.queue.next_place(), now);
        self.queue.push(payload, options, limit);
    }

    /// Queues a message ahead of those of the user, or holds it back if its order depends on a reset.
    pub(crate) fn push_urgent(&mut self, payload: Bytes, options: SendOptions, now: Time) {
        if !options.unordered && self.held.contains(options.stream) {
            return self.held.push(Held { payload, options, sent_at: now });
        }
        self.queue.push_urgent(payload, options);
    }

    /// Queues a message of the key management.
    pub(crate) fn push_key_management(&mut self, payload: Bytes, options: SendOptions) {
        self.queue.push_key_management(payload, options);
    }

    /// Sets the number of streams that the peer accepts, and withdraws messages on others.
    pub(crate) fn limit_streams(&mut self, streams: u16) -> Vec<Removed> {
        let refused = self.queue.limit_streams(streams);
        refused.iter().filter_map(|message| message.limit).for_each(|key| self.partial.messages.settle(key));
        refused
    }

    /// Cuts the next chunk of at most `most` user bytes from the queue.
    #[inline]
    pub(crate) fn cut(&mut self, most: usize) -> Option<Draft> {
        self.queue.cut(most)
    }

    /// Ends the packet to which the latest chunks were added.
    #[inline]
    pub(crate) fn end_packet(&mut self) {
        self.queue.end_packet();
    }

    /// Sets the peer's first window, from INIT or INIT ACK.
    #[inline]
    pub(crate) fn begin_window(&mut self, window: WindowBytes) {
        self.window.begin(window);
    }

    /// Records the window that a SACK advertises.
    #[inline]
    pub(crate) fn advertise_window(&mut self, window: WindowBytes) {
        self.window.advertise(window);
    }

    /// Subtracts the cost of outstanding chunks from the window advertised last.
    #[inline]
    pub(crate) fn estimate_window(&mut self) {
        self.window.estimate(&self.profile);
    }

    /// Starts a path with an id that no transmission names.
    pub(crate) fn begin_path(&mut self, path: PathId, now: Time) {
        debug_assert_eq!(self.transmissions(path), 0, "transmissions name {path:?}");
        *self.path_mut(path) = SenderPath { delivery: Delivery::begin(now), ..SenderPath::default() };
    }
}

/// Transmission of chunks.
impl Sender {
    /// Assigns the next TSN to a chunk and charges the peer's window.
    pub(crate) fn admit(&mut self, draft: Draft, path: PathId) -> Admitted {
        //= docs/rfc9260.txt#section-3.3.1
        //# The TSNs of DATA chunks sent SHOULD be strictly sequential.
        //= docs/rfc9260.txt#section-6.9
        //# 2)  The transmitter MUST then assign, in sequence, a separate TSN to each of the DATA chunks in the series.
        let bytes = draft.chunk_bytes();
        let (limit, ending) = (draft.limit, draft.ending);
        let tsn = self.outstanding.push(draft, path);
        if let Some(key) = limit {
            self.partial.assign(key, tsn, ending);
        }
        let cost = self.cost(bytes);
        self.window.bind(cost, &self.profile);
        self.occupy(path, bytes);
        Admitted { tsn, bytes }
    }

    fn occupy(&mut self, path: PathId, bytes: ChunkBytes) {
        let counts = &mut self.path_mut(path).bytes;
        counts.bound += bytes;
        counts.held += bytes;
    }

    /// Inserts an admitted chunk into the queue of its path.
    #[inline]
    pub(crate) fn bind(&mut self, path: PathId, tsn: u64) {
        self.bound.bind(path, tsn);
    }

    /// Removes the path of the last chunk that was bound to it and not sent.
    pub(crate) fn unbind(&mut self, path: PathId) -> Option<Admitted> {
        let tsn = self.bound.unbind_last(path)?;
        let bytes = self.outstanding.change(tsn, |chunk| {
            chunk.state = ChunkState::Bound { placed: false };
            chunk.bytes()
        })?;
        let counts = &mut self.path_mut(path).bytes;
        counts.bound -= bytes;
        counts.held -= bytes;
        Some(Admitted { tsn, bytes })
    }

    /// Binds the first chunk without a path to this one.
    pub(crate) fn place(&mut self, path: PathId) -> Option<Admitted> {
        let tsn = self.bound.next_unplaced()?;
        self.bound.pop_unplaced();
        self.bound.bind(path, tsn);
        let bytes = self.outstanding.change(tsn, |chunk| {
            chunk.state = ChunkState::Bound { placed: true };
            chunk.path = path;
            chunk.bytes()
        })?;
        self.occupy(path, bytes);
        Some(Admitted { tsn, bytes })
    }

    /// Records the first transmission of a chunk, on the path that it was admitted or bound to.
    pub(crate) fn transmit(&mut self, tsn: u64, now: Time) -> Option<Transmitted> {
        let chunk = self.outstanding.get(tsn)?;
        let (path, bytes) = (chunk.path, chunk.bytes());
        if self.bound.next_of(path) == Some(tsn) {
            self.bound.pop(path);
        }
        self.window.send_bound(self.cost(bytes));
        self.path_mut(path).bytes.bound -= bytes;
        self.begin_flight(tsn, path, bytes, now);
        Some(Transmitted { previous_path: path, bytes })
    }

    /// Records the retransmission of a lost chunk.
    pub(crate) fn retransmit(&mut self, tsn: u64, path: PathId, now: Time) -> Option<Transmitted> {
        let chunk = self.outstanding.get(tsn)?;
        let (previous, bytes) = (chunk.path, chunk.bytes());
        self.lost.remove(tsn);
        self.path_mut(previous).bytes.lost_unsent -= bytes;
        self.window.retransmit(self.cost(bytes), &self.profile);
        self.outstanding.change(tsn, |chunk| {
            // A chunk that was only moved to another path repairs no loss.
            chunk.retransmissions += u32::from(chunk.state != ChunkState::Lost(LossCause::Rescheduled));
        });
        self.copy(tsn, path, now)
    }

    /// Records a further transmission of a chunk that is charged to the peer's window.
    pub(crate) fn copy(&mut self, tsn: u64, path: PathId, now: Time) -> Option<Transmitted> {
        let chunk = self.outstanding.get(tsn)?;
        let (previous_path, bytes) = (chunk.path, chunk.bytes());
        self.path_mut(previous_path).bytes.held -= bytes;
        self.path_mut(path).bytes.held += bytes;
        self.begin_flight(tsn, path, bytes, now);
        Some(Transmitted { previous_path, bytes })
    }

    fn begin_flight(&mut self, tsn: u64, path: PathId, bytes: ChunkBytes, now: Time) {
        let counts = self.path_mut(path);
        let stamps = counts.delivery.stamp(bytes, &counts.bytes, now);
        counts.bytes.in_flight += bytes;
        counts.bytes.sent += bytes;
        counts.transmissions += 1;
        let transmission = Transmission { path, bytes, stamps, in_flight: true, previous: None };
        self.outstanding.add_transmission(tsn, transmission);
    }

    /// Prepares a chunk for its retransmission, after which missing reports may not mark it again (RFC 9260 section 7.2.4 item 5,
    /// applied after time-outs too).
    pub(crate) fn prepare_retransmission(&mut self, tsn: u64, sets_immediate_bit: bool) -> Option<&Chunk> {
        self.outstanding.change(tsn, |chunk| {
            chunk.draft.immediate |=
                sets_immediate_bit && chunk.state == ChunkState::Lost(LossCause::Timeout);
            chunk.recovered_before = true;
        })?;
        self.outstanding.get(tsn)
    }

    pub(crate) fn add_reports(&mut self, tsn: u64, reports: u32) {
        self.outstanding.add_reports(tsn, reports);
    }
}

/// Losses and acknowledgements.
impl Sender {
    /// Declares a chunk lost: its latest transmission no longer counts as in flight. Copies on other paths become duplicate copies if
    /// the profile judges copies, and otherwise leave the flight too.
    pub(crate) fn declare_lost(&mut self, tsn: u64, cause: LossCause) -> Option<Loss> {
        let stamps = self.outstanding.latest_of(tsn).map(|transmission| transmission.stamps);
        let chunk = self.outstanding.get(tsn).filter(|chunk| chunk.state.is_awaited())?;
        let (path, bytes) = (chunk.path, chunk.bytes());
        let again = matches!(chunk.state, ChunkState::Lost(_));
        // A chunk that only changes its path was not lost.
        let limited = chunk.draft.limit.is_some() && cause != LossCause::Rescheduled;
        self.outstanding.change(tsn, |chunk| {
            chunk.state = ChunkState::Lost(cause);
            match cause {
                LossCause::FastRetransmit | LossCause::Rescheduled => chunk.recovered_before = true,
                LossCause::Timeout => chunk.reports = 0,
            }
        });
        if !again {
            self.end_flights_of_lost(tsn, path);
            self.lost.insert(tsn);
            self.window.release_lost(self.cost(bytes), &self.profile);
            let counts = &mut self.path_mut(path).bytes;
            counts.lost_unsent += bytes;
            counts.lost += bytes;
        }
        if limited {
            self.note_limited_loss(tsn);
        }
        Some(Loss { path, bytes, stamps: stamps.unwrap_or_default(), again })
    }

    fn end_flights_of_lost(&mut self, tsn: u64, lost_on: PathId) {
        let Sender { outstanding, paths, changed, profile, .. } = self;
        outstanding.end_flights(tsn, |copy| {
            changed.insert(copy.path);
            let path = &mut paths[copy.path.index()];
            if copy.path != lost_on && profile.copy_fate == CopyFate::Judged {
                path.duplicates.push(tsn, copy.bytes, copy.stamps);
            } else {
                path.bytes.in_flight -= copy.bytes;
            }
        });
    }

    /// Revokes the loss of a chunk that has arrived before its retransmission. Until it is acknowledged, it counts as in flight on
    /// the path of its latest transmission, unless the credited copy is a duplicate copy, which does already.
    pub(crate) fn revoke_loss(&mut self, tsn: u64, credited: &Transmission) {
        let Some(chunk) = self.outstanding.get(tsn) else { return };
        let (path, bytes) = (chunk.path, chunk.bytes());
        let counts_already = self.is_duplicate(tsn, credited);
        self.lost.remove(tsn);
        self.window.revoke_loss(self.cost(bytes));
        let counts = &mut self.path_mut(path).bytes;
        counts.lost_unsent -= bytes;
        if !counts_already {
            counts.in_flight += bytes;
        }
    }

    /// Acknowledges a chunk in the copy that is credited. The bytes of that copy stay in flight until [`settle`](Self::settle),
    /// because windows grow by the bytes in flight before a SACK. Copies on other paths become duplicates.
    pub(crate) fn acknowledge(&mut self, tsn: u64, credited: &Transmission) {
        let Some(chunk) = self.outstanding.get(tsn) else { return };
        let bytes = chunk.bytes();
        if chunk.transmissions == 1 && credited.in_flight {
            self.outstanding.end_flights(tsn, |_| ());
        } else {
            if self.is_duplicate(tsn, credited) {
                self.paths[credited.path.index()].duplicates.take_sent_with(tsn, credited.stamps);
            }
            self.end_other_flights(tsn, credited);
        }
        self.outstanding.mark_acked(tsn);
        self.window.acknowledge(self.cost(bytes));
    }

    /// See [`Outstanding::count_toward_increment`].
    #[inline]
    pub(crate) fn count_toward_increment(&mut self, tsn: u64) -> bool {
        self.outstanding.count_toward_increment(tsn)
    }

    fn end_other_flights(&mut self, tsn: u64, credited: &Transmission) {
        let Sender { outstanding, paths, changed, .. } = self;
        let mut credited_seen = false;
        outstanding.end_flights(tsn, |copy| {
            let is_credited = copy.path == credited.path && copy.stamps == credited.stamps;
            if is_credited && !std::mem::replace(&mut credited_seen, true) {
                return;
            }
            let path = &mut paths[copy.path.index()];
            changed.insert(copy.path);
            if copy.path == credited.path {
                path.bytes.in_flight -= copy.bytes;
                return;
            }
            path.duplicates.push(tsn, copy.bytes, copy.stamps);
        });
    }

    /// Counts a chunk as delivered by a path.
    pub(crate) fn deliver(&mut self, path: PathId, bytes: ChunkBytes, delivered: Delivered, now: Time) {
        let counts = self.path_mut(path);
        counts.bytes.delivered += bytes;
        counts.delivery.deliver(delivered, &counts.bytes, now);
    }

    /// Returns the delivery sample of the current SACK for a path.
    pub(crate) fn delivery_sample(
        &mut self,
        path: PathId,
        least_rtt: Option<Span>,
        now: Time,
    ) -> Option<DeliverySample> {
        let SenderPath { delivery, bytes, .. } = &mut self.paths[path.index()];
        delivery.sample(bytes, least_rtt, now)
    }

    /// Records the limit of a path's sending.
    pub(crate) fn limit(&mut self, path: PathId, limiter: Limiter) {
        let SenderPath { delivery, bytes, .. } = &mut self.paths[path.index()];
        delivery.limit(limiter, bytes);
    }

    /// Removes the bytes that a SACK acknowledged on a path from its bytes in flight.
    #[inline]
    pub(crate) fn settle(&mut self, path: PathId, newly_acked: ChunkBytes) {
        self.path_mut(path).bytes.in_flight -= newly_acked;
    }

    /// Revokes an acknowledgement by a gap block: the chunk is in flight again.
    pub(crate) fn renege(&mut self, tsn: u64) -> Option<Transmitted> {
        let chunk = self.outstanding.get(tsn).filter(|chunk| chunk.state == ChunkState::Acked)?;
        let (path, bytes) = (chunk.path, chunk.bytes());
        self.forget_duplicates_of(tsn);
        self.outstanding.unmark_acked(tsn);
        self.window.renege(self.cost(bytes));
        self.path_mut(path).bytes.in_flight += bytes;
        Some(Transmitted { previous_path: path, bytes })
    }

    /// Releases the first chunk, which must not be awaited.
    //= docs/rfc9260.txt#section-6.7
    //# Upon the reception of a SACK chunk, the endpoint MUST remove all DATA chunks that have been acknowledged by the
    //# SACK chunk's Cumulative TSN Ack from its transmit queue.
    pub(crate) fn discard(&mut self) -> Option<Discarded> {
        let tsn = self.outstanding.cumulative() + 1;
        let Sender { outstanding, paths, changed, .. } = self;
        let chunk = outstanding.pop(|path| paths[path.index()].transmissions -= 1)?;
        if !matches!(chunk.state, ChunkState::NonRenegable | ChunkState::Abandoned) {
            changed.insert(chunk.path);
            paths[chunk.path.index()].bytes.held -= chunk.bytes();
        }
        self.partial.forget_up_to(tsn);
        Some(Discarded { tsn, path: chunk.path, recovered_before: chunk.recovered_before })
    }

    /// Releases the payloads of acknowledged chunks that the receiver never drops (NR-SACK).
    pub(crate) fn keep(&mut self, start: u64, end: u64) {
        let Sender { outstanding, paths, changed, .. } = self;
        outstanding.keep(start, end, |path, bytes| {
            changed.insert(path);
            paths[path.index()].bytes.held -= bytes;
        });
    }
}

/// Copies whose chunk has arrived in another copy.
impl Sender {
    /// Ends the flights of a chunk on one path, if it has copies.
    pub(crate) fn end_copies_on(&mut self, tsn: u64, path: PathId) {
        if self.outstanding.get(tsn).is_none_or(|chunk| chunk.transmissions < 2) {
            return;
        }
        let Sender { outstanding, paths, changed, .. } = self;
        changed.insert(path);
        let counts = &mut paths[path.index()].bytes;
        outstanding.end_flights_on(tsn, path, |copy| counts.in_flight -= copy.bytes);
    }

    /// Ends duplicate copies of a path that a later packet has overtaken: the peer did not report them, so they are lost.
    pub(crate) fn end_overtaken_duplicates(&mut self, path: PathId, sent_at: Time) {
        let counts = self.path_mut(path);
        while let Some(copy) = counts.duplicates.pop_sent_before(sent_at) {
            counts.bytes.in_flight -= copy.bytes;
        }
    }

    /// Counts the packets of a SACK that have overtaken duplicate copies of the path.
    pub(crate) fn count_overtaken_duplicates(&mut self, path: PathId, delivered: &LatestDelivered) {
        self.paths[path.index()].duplicates.count_overtaken(delivered);
    }

    /// Takes a duplicate copy that is lost by the thresholds of [`DuplicateCopies::pop_lost`].
    pub(crate) fn take_lost_duplicate(
        &mut self,
        path: PathId,
        now: Time,
        longest: Span,
    ) -> Option<DuplicateCopy> {
        let counts = self.path_mut(path);
        let copy = counts.duplicates.pop_lost(now, longest)?;
        counts.bytes.in_flight -= copy.bytes;
        counts.bytes.lost += copy.bytes;
        Some(copy)
    }

    /// Ends all duplicate copies of a path, because T3 has expired or the path was removed.
    pub(crate) fn end_duplicates(&mut self, path: PathId) {
        let counts = self.path_mut(path);
        while let Some(copy) = counts.duplicates.pop() {
            counts.bytes.in_flight -= copy.bytes;
        }
    }

    /// Takes a copy that the peer reported as a duplicate. Its bytes stay in flight until [`settle`](Self::settle).
    pub(crate) fn take_duplicate(&mut self, path: PathId, tsn: u64) -> Option<DuplicateCopy> {
        self.paths[path.index()].duplicates.take(tsn)
    }

    /// Ends the flights of duplicate copies whose acknowledgement was reneged.
    fn forget_duplicates_of(&mut self, tsn: u64) {
        for (index, path) in self.paths.iter_mut().enumerate() {
            while let Some(copy) = path.duplicates.take(tsn) {
                path.bytes.in_flight -= copy.bytes;
                self.changed.insert(PathId::new(index));
            }
        }
    }
}

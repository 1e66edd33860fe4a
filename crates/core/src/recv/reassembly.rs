//! Reassembly of messages from fragments (RFC 9260 sections 6.5, 6.6 and 6.9).
//!
//! Fragments are joined by their TSNs alone: the fragments of a message have consecutive TSNs, so a fragment can only be joined
//! with its direct neighbours. A message with both ends is complete. An unordered message can then be read at once, an ordered one
//! when it is the next of its stream.
//!
//! A message too large for the receive window is read in parts. It blocks its stream until its end has been read: other messages of
//! the stream that become readable meanwhile are held back.
//!
//! Each step inspects only the neighbours of a fragment. A binary search finds the place of an ordered message among the waiting
//! ones of its stream. Storage is reused: after its largest backlog, an association stores fragments without allocation.

use super::arena::{Arena, Message, NONE, OPEN_ORDERED, OPEN_UNORDERED, READY, Slot};
use super::ring::{Following, Mark, Ring};
use crate::contents::Contents;
use crate::stream_set::StreamSet;
use anabranch_wire::Mid;
use std::collections::VecDeque;
use thiserror::Error;

/// Distance from which on an SSN counts as behind another (circular order of RFC 1982, RFC 9260 section 1.6).
const HALF: u16 = 1 << 15;

/// Message identifier and fragment sequence number of an I-DATA chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) mid: Mid,
    pub(crate) fsn: u32,
}

/// One DATA or I-DATA chunk, with its TSN unwrapped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment<'a> {
    /// Transmission sequence number.
    pub(crate) tsn: u64,
    /// Stream identifier.
    pub(crate) stream: u16,
    /// Stream sequence number of a DATA chunk; without meaning if `unordered`.
    pub(crate) ssn: u16,
    /// Payload protocol identifier, or zero in an I-DATA chunk without one.
    pub(crate) ppid: u32,
    /// Place of an I-DATA chunk.
    pub(crate) place: Option<Place>,
    /// U bit.
    pub(crate) unordered: bool,
    /// B bit.
    pub(crate) beginning: bool,
    /// E bit.
    pub(crate) ending: bool,
    /// User data.
    pub(crate) payload: &'a [u8],
}

impl Fragment<'_> {
    fn message(&self) -> Message {
        Message { stream: self.stream, ssn: self.ssn, ppid: self.ppid, unordered: self.unordered }
    }
}

/// Piece that a read has returned: a whole message, or a part of one that is too large for the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// Stream identifier.
    pub stream: u16,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// Stream sequence number, or the low bits of the message identifier of I-DATA; without meaning if `unordered`.
    pub ssn: u16,
    /// `true` if the message is not in the order of its stream.
    pub unordered: bool,
    /// `true` if the message starts here.
    pub beginning: bool,
    /// `true` if the message ends here.
    ///
    /// If the next part on the stream is a `beginning` although this one is not an ending, the peer has abandoned the rest of the
    /// message.
    pub ending: bool,
    /// Number of user bytes returned.
    pub bytes: usize,
    /// Number of fragments in which they arrived.
    pub chunks: usize,
}

/// Contradiction between a fragment and earlier ones. The fragment is not stored.
///
/// The peer has violated the protocol, for which RFC 9260 section 3.3.10.13 has an error cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Violation {
    /// The stream was not negotiated.
    #[error("fragment of a stream that does not exist")]
    NoSuchStream,
    /// The TSN is further ahead than a SACK can name; the tracker drops such a fragment before.
    #[error("fragment too far ahead of the cumulative TSN")]
    OutOfReach,
    /// A message begins at a TSN directly after a fragment that does not end its own message.
    #[error("message begins inside another one")]
    BeginsInside,
    /// A fragment without the B bit directly follows one that ends its message.
    #[error("fragment continues a message that has ended")]
    ContinuesNothing,
    /// Adjacent fragments of one message differ in stream, SSN, payload protocol or U bit.
    #[error("fragments of one message disagree")]
    Disagrees,
    /// The stream sequence number belongs to another message that has arrived already.
    #[error("two messages with the same stream sequence number")]
    RepeatedSequence,
    /// The fragment of an I-DATA message has arrived already, with another TSN.
    #[error("two fragments with the same fragment sequence number")]
    RepeatedFragment,
    /// A DATA chunk arrived on an association with I-DATA, or the reverse.
    #[error("chunk of the form that was not negotiated")]
    WrongForm,
    /// The message identifier of I-DATA is further ahead than the missing TSNs allow.
    #[error("message identifier too far ahead")]
    TooFarAhead,
    /// More unordered messages of I-DATA are unfinished than the missing TSNs allow.
    #[error("too many unfinished messages")]
    TooManyMessages,
}

/// Order of one stream.
#[derive(Clone, Debug)]
struct Stream {
    /// Next SSN to deliver.
    next: u16,
    /// SSNs and first fragments of ordered messages whose beginning has arrived, in the order of their SSNs from `next`.
    waiting: VecDeque<(u16, u32)>,
    /// Stub of the message that is being read in parts, or [`NONE`].
    stub: u32,
}

impl Stream {
    fn new(first: u16) -> Self {
        Self { next: first, waiting: VecDeque::new(), stub: NONE }
    }

    /// Returns the index of this SSN among the waiting messages, or the index at which it belongs as an error.
    ///
    /// SSNs are compared by their distance ahead of `next`, over the full 16 bits. Fewer TSNs are in flight than there are SSNs, so
    /// the distance of a correct peer is unambiguous.
    //= docs/rfc9260.txt#section-1.6
    //# Any arithmetic done on Stream Sequence Numbers SHOULD use Serial Number Arithmetic, as defined in [RFC1982], where
    //# SERIAL_BITS = 16.
    fn search(&self, ssn: u16) -> Result<usize, usize> {
        let ahead = |ssn: u16| ssn.wrapping_sub(self.next);
        // Each path delivers in order, so a message mostly belongs behind the others or before them.
        match (self.waiting.front(), self.waiting.back()) {
            (_, None) => Err(0),
            (_, Some(last)) if ahead(last.0) < ahead(ssn) => Err(self.waiting.len()),
            (Some(first), _) if ahead(ssn) < ahead(first.0) => Err(0),
            _ => self.waiting.binary_search_by_key(&ahead(ssn), |&(other, _)| ahead(other)),
        }
    }
}

/// Slots of the unfinished runs on either side of a fragment, and `abandoned` if its message has been abandoned.
struct Neighbours {
    left: Option<u32>,
    right: Option<u32>,
    abandoned: bool,
}

/// All fragments received and not yet read.
#[derive(Clone, Debug)]
pub(crate) struct Reassembly {
    arena: Arena,
    ring: Ring,
    /// Streams up to the highest one in use.
    streams: Vec<Stream>,
    /// Number of messages in the `waiting` lists of all streams.
    waiting_messages: usize,
    stream_count: u16,
    first_ssn: u16,
    readable_bytes: u64,
}

impl Reassembly {
    /// Returns the state for a peer whose first TSN is `initial_tsn` and which may send on streams below `streams`.
    pub(crate) fn new(initial_tsn: u64, streams: u16) -> Self {
        Self {
            arena: Arena::new(),
            ring: Ring::new(initial_tsn),
            streams: Vec::new(),
            waiting_messages: 0,
            stream_count: streams,
            first_ssn: 0,
            readable_bytes: 0,
        }
    }

    /// Sets the SSN that every stream delivers first, instead of zero.
    pub(crate) fn starting_with(self, first_ssn: u16) -> Self {
        Self { first_ssn, ..self }
    }

    /// Sets the form in which user data is stored.
    pub(crate) fn with_contents(self, contents: Contents) -> Self {
        Self { arena: self.arena.with_contents(contents), ..self }
    }

    /// Returns `true` if [`take`](Self::take) returns a piece without `allow_partial`.
    pub(crate) fn has_message(&self) -> bool {
        self.arena.first(READY).is_some()
    }

    /// Returns the user bytes received and not yet read, readable or not.
    pub(crate) fn held_payload_bytes(&self) -> u64 {
        self.arena.held_bytes()
    }

    /// Returns the number of fragments received and not yet read, readable or not.
    pub(crate) fn held_chunks(&self) -> u64 {
        self.arena.held_chunks()
    }

    /// Returns the user bytes that [`take`](Self::take) can return without `allow_partial`.
    pub(crate) fn readable_bytes(&self) -> u64 {
        self.readable_bytes
    }

    /// Returns the number of streams on which the peer may send.
    pub(crate) fn streams(&self) -> u16 {
        self.stream_count
    }

    /// Sets the number of streams on which the peer may send.
    pub(crate) fn set_stream_count(&mut self, streams: u16) {
        self.stream_count = streams;
    }

    /// Resets the SSNs of streams to zero (RFC 6525 section 5.2.2). Returns `false`, without any change, if a message on one of them
    /// waits for an earlier one or for its own end.
    pub(crate) fn reset(&mut self, streams: &StreamSet) -> bool {
        let blocked = |line: &Stream| !line.waiting.is_empty();
        match streams {
            StreamSet::All => {
                if self.streams.iter().any(blocked) {
                    return false;
                }
                self.streams.iter_mut().for_each(|line| line.next = 0);
                // Streams without a message so far.
                self.first_ssn = 0;
            }
            StreamSet::Listed(listed) => {
                let present = |stream: &u16| self.streams.get(usize::from(*stream));
                if listed.iter().filter_map(present).any(blocked) {
                    return false;
                }
                for &stream in listed {
                    if self.next_ssn(stream) != 0 {
                        self.stream(stream).next = 0;
                    }
                }
            }
        }
        true
    }

    /// Returns the SSN of the message that a stream delivers next.
    pub(crate) fn next_ssn(&self, stream: u16) -> u16 {
        self.streams.get(usize::from(stream)).map_or(self.first_ssn, |line| line.next)
    }

    /// Returns `true` if the missing TSNs below a new fragment suffice for all messages that its stream delivers before it.
    ///
    /// A message takes at least one TSN, and the TSNs of a stream ascend with its SSNs. An SSN that is further ahead of the next
    /// one than the fragment's TSN is beyond the cumulative TSN is therefore never reached. An SSN that was delivered before is
    /// nearly 2^16 ahead.
    pub(crate) fn awaits_sequence(&self, fragment: &Fragment<'_>) -> bool {
        let ahead = u64::from(fragment.ssn.wrapping_sub(self.next_ssn(fragment.stream)));
        fragment.unordered
            || self.continues_stub(fragment)
            || ahead < fragment.tsn.saturating_sub(self.ring.floor())
    }

    /// Returns `true` if the beginning of the fragment's message has been read: the stream is past its SSN.
    fn continues_stub(&self, fragment: &Fragment<'_>) -> bool {
        let stub = self.streams.get(usize::from(fragment.stream)).map_or(NONE, |line| line.stub);
        stub != NONE && self.arena[stub].message.fits(&fragment.message())
    }

    /// Returns `true` if a message waits for an earlier one of its stream, given that no TSN is missing. Only the message with the
    /// highest TSN may wait then, for its own end.
    pub(crate) fn is_blocked_without_gap(&self) -> bool {
        match (self.waiting_messages, self.unfinished_tail()) {
            (0, _) => false,
            (1, Some(tail)) if !tail.unordered => {
                self.streams.get(usize::from(tail.stream)).is_none_or(|line| line.next != tail.ssn)
            }
            _ => true,
        }
    }

    /// Returns the unfinished message to which the highest TSN belongs.
    fn unfinished_tail(&self) -> Option<Message> {
        let slot = self.ring.get(self.ring.highest())?.slot;
        (slot != NONE).then(|| self.arena[slot].message)
    }

    /// Stores a fragment. One that has arrived already, or lies below TSNs that a FORWARD-TSN skipped, changes nothing.
    ///
    /// # Errors
    /// Returns an error if the fragment contradicts earlier ones; nothing is changed then.
    pub(crate) fn push(&mut self, fragment: Fragment<'_>) -> Result<(), Violation> {
        if fragment.stream >= self.stream_count {
            return Err(Violation::NoSuchStream);
        }
        if fragment.tsn <= self.ring.floor() || self.ring.get(fragment.tsn).is_some() {
            return Ok(());
        }
        if self.ring.is_out_of_reach(fragment.tsn) {
            return Err(Violation::OutOfReach);
        }
        let neighbours = self.check(&fragment)?;
        if neighbours.abandoned {
            self.pass_over(&fragment, neighbours.right);
            return Ok(());
        }
        let ends = (fragment.beginning, fragment.ending);
        let slot = self.arena.insert(fragment.tsn, fragment.message(), ends, fragment.payload);
        if ends == (true, true) {
            self.ring.mark(fragment.tsn, Mark::seen(true, Following::Begins, NONE));
            self.line_up(slot, true, true);
            return Ok(());
        }
        let following = if fragment.ending { Following::Begins } else { Following::Continues };
        self.ring.mark(fragment.tsn, Mark::seen(fragment.beginning, following, slot));
        self.arrive(slot, &neighbours);
        Ok(())
    }

    /// Records the TSN of a fragment that is not stored, so that its neighbours are checked against it.
    pub(crate) fn ignore(&mut self, fragment: &Fragment<'_>) {
        let following = if fragment.ending { Following::Begins } else { Following::Either };
        self.ring.mark(fragment.tsn, Mark::seen(fragment.beginning, following, NONE));
    }

    /// Passes the fragments of the next message to `out`, each with the number of bytes that follow it, and removes the message.
    ///
    /// If `allow_partial` is set and no whole message can be read, the leading fragments of an unfinished message are returned: of
    /// an ordered one that is next in its stream, otherwise of an unordered one. RFC 9260 section 6.9 recommends this when
    /// incomplete messages use up the receive window. The rest of the message is then readable as it arrives, with or without
    /// `allow_partial`.
    ///
    /// Returns the piece with its first and last TSN.
    pub(crate) fn take(
        &mut self,
        out: impl FnMut(&[u8], usize),
        allow_partial: bool,
    ) -> Option<(ReceivedMessage, (u64, u64))> {
        let head = match self.arena.first(READY) {
            Some(head) => self.unlist_ready(head),
            None if allow_partial => self.find_open()?,
            None => return None,
        };
        let (first, last) = (self.arena[head].tsn, self.arena[self.arena[head].other_end].tsn);
        if !self.is_complete(head) {
            self.forget_ends(head);
        }
        let piece = self.hand_out(head, out);
        match (piece.beginning, piece.ending) {
            (true, true) => {}
            (true, false) => self.begin_partial(&piece, last),
            (false, false) => self.move_stub(piece.stream, last),
            (false, true) => self.end_partial(piece.stream),
        }
        Some((piece, (first, last)))
    }

    /// Reads a piece like [`take`](Self::take), without its TSNs.
    #[cfg(test)]
    pub(crate) fn read(&mut self, out: &mut Vec<u8>, allow_partial: bool) -> Option<ReceivedMessage> {
        self.take(|part, _| out.extend_from_slice(part), allow_partial).map(|(piece, _)| piece)
    }

    /// Removes messages that can no longer be completed, because the peer has abandoned all missing TSNs up to `new_cumulative`
    /// (RFC 3758 section 3.6).
    ///
    /// Messages stay if they lack no TSN or only later ones. The caller passes the skipped ordered messages to
    /// [`skip_ordered`](Self::skip_ordered), so that their streams continue.
    pub(crate) fn forward(&mut self, new_cumulative: u64) {
        if new_cumulative <= self.ring.floor() {
            return;
        }
        for tsn in self.ring.floor()..=self.ring.highest().min(new_cumulative) {
            if let Some(slot) = self.ring.get(tsn).map(|mark| mark.slot).filter(|&slot| slot != NONE)
                && self.lacks_below(slot, new_cumulative)
            {
                self.abandon(slot);
            }
        }
        // A run without a beginning that starts directly above lacks the last TSN that is skipped.
        if let Some(above) = self.ring.get(new_cumulative.saturating_add(1))
            && !above.begins
            && above.slot != NONE
            && self.lacks_below(above.slot, new_cumulative)
        {
            self.abandon(above.slot);
        }
        self.ring.skip_to(new_cumulative);
    }

    /// Continues an ordered stream after the sequence number `ssn`, as a FORWARD-TSN demands (RFC 3758 section 3.6).
    ///
    /// Complete messages up to it become readable, unfinished ones are removed.
    pub(crate) fn skip_ordered(&mut self, stream: u16, ssn: u16) {
        if stream >= self.stream_count {
            return;
        }
        let Stream { next, stub, .. } = *self.stream(stream);
        if stub != NONE && self.is_skipped(stub, ssn) {
            self.abandon(stub);
        }
        let distance = ssn.wrapping_sub(next);
        if distance >= HALF {
            return;
        }
        while let Some(&(waiting, head)) = self.stream(stream).waiting.front()
            && waiting.wrapping_sub(next) <= distance
        {
            if self.is_complete(head) {
                self.stream(stream).waiting.pop_front();
                self.waiting_messages -= 1;
                self.arena.unlist(head);
                self.dispatch(head);
            } else {
                self.abandon(head);
            }
        }
        self.stream(stream).next = ssn.wrapping_add(1);
        self.advance(stream);
    }

    /// Returns the neighbours of a fragment, or its contradiction to them.
    //= docs/rfc9260.txt#section-6.9
    //# An endpoint MUST recognize fragmented DATA chunks by examining the B/ E bits in each of the received DATA chunks
    //# and queue the fragmented DATA chunks for reassembly.
    fn check(&mut self, fragment: &Fragment<'_>) -> Result<Neighbours, Violation> {
        let left = self.ring.get(fragment.tsn - 1);
        let right = self.ring.get(fragment.tsn.saturating_add(1));
        match left.map(|mark| mark.following) {
            Some(Following::Begins) if !fragment.beginning => return Err(Violation::ContinuesNothing),
            Some(Following::Continues) if fragment.beginning => return Err(Violation::BeginsInside),
            _ => {}
        }
        match right.map(|mark| mark.begins) {
            Some(false) if fragment.ending => return Err(Violation::ContinuesNothing),
            Some(true) if !fragment.ending => return Err(Violation::BeginsInside),
            _ => {}
        }
        let joined = |mark: Option<Mark>, joins: bool| {
            mark.map(|mark| mark.slot).filter(|&slot| joins && slot != NONE)
        };
        let neighbours = Neighbours {
            left: joined(left, !fragment.beginning),
            right: joined(right, !fragment.ending),
            abandoned: !fragment.beginning && left.is_some_and(|mark| mark.following == Following::Either),
        };
        let message = fragment.message();
        let fits = |slot: u32| self.arena[slot].message.fits(&message);
        if !neighbours.left.is_none_or(fits) || !neighbours.right.is_none_or(fits) {
            return Err(Violation::Disagrees);
        }
        let takes_a_place = fragment.beginning && !fragment.unordered;
        if takes_a_place && self.stream(fragment.stream).search(fragment.ssn).is_ok() {
            return Err(Violation::RepeatedSequence);
        }
        Ok(neighbours)
    }

    /// Joins a stored fragment with its neighbours, and makes its message readable if it is complete and next.
    //= docs/rfc9260.txt#section-6
    //# The fragmentation and bundling mechanisms, as detailed in Sections 6.9 and 6.10, are OPTIONAL to implement by the
    //# data sender, but they MUST be implemented by the data receiver, i.e., an endpoint MUST properly receive and
    //# process bundled or fragmented data.
    //= docs/rfc9260.txt#section-6.9
    //# An endpoint MAY support fragmentation when sending DATA chunks, but it MUST support reassembly when receiving DATA
    //# chunks.
    fn arrive(&mut self, slot: u32, neighbours: &Neighbours) {
        let mut head = slot;
        if let Some(left) = neighbours.left {
            if self.arena[left].stub {
                self.arena[slot].continues = true;
                self.arena[left].other_end = slot;
                self.ring.set_slot(self.arena[left].tsn, NONE);
            } else {
                head = self.arena[left].other_end;
            }
        }
        let bytes_before = self.arena[head].run_bytes;
        if head != slot {
            self.join(head, slot);
        }
        if let Some(right) = neighbours.right {
            self.join(head, right);
        }
        let completed = self.is_complete(head);
        if completed {
            self.forget_ends(head);
        }
        if self.arena[head].continues {
            self.show_continuation(head, bytes_before);
        } else if self.arena[head].beginning {
            self.line_up(head, completed, head == slot);
        }
    }

    /// Joins two runs and keeps only the ends of the result in the ring.
    fn join(&mut self, first: u32, second: u32) {
        let seam = self.arena[first].other_end;
        let (left, right) = (self.arena[seam].tsn, self.arena[second].tsn);
        if seam != first {
            self.ring.set_slot(left, NONE);
        }
        if self.arena[second].other_end != second {
            self.ring.set_slot(right, NONE);
        }
        self.arena.join(first, second);
    }

    /// Removes a run from the ring, once no fragment can be joined to it.
    fn forget_ends(&mut self, head: u32) {
        let last = self.arena[head].other_end;
        self.ring.set_slot(self.arena[head].tsn, NONE);
        self.ring.set_slot(self.arena[last].tsn, NONE);
    }

    /// Makes the rest of a message readable whose first part has been read.
    fn show_continuation(&mut self, head: u32, bytes_before: u64) {
        let bytes = self.arena[head].run_bytes;
        if self.arena.is_listed(head) {
            self.readable_bytes += bytes - bytes_before;
        } else {
            self.arena.list_last(READY, head);
            self.readable_bytes += bytes;
        }
    }

    /// Puts a message whose beginning has arrived on the list of its state.
    fn line_up(&mut self, head: u32, completed: bool, has_just_begun: bool) {
        let Message { stream, ssn, unordered, .. } = self.arena[head].message;
        if unordered {
            //= docs/rfc9260.txt#section-3.3.1
            //# Therefore, the receiver MUST ignore the Stream Sequence Number field.
            //= docs/rfc9260.txt#section-3.3.1
            //# After reassembly (if necessary), unordered DATA chunks MUST be dispatched to the upper layer by the
            //# receiver without any attempt to reorder.
            //= docs/rfc9260.txt#section-6.6
            //# The sender can fill the 'Stream Sequence Number' with arbitrary value, but the receiver MUST ignore the
            //# field.
            // RFC 9260 section 6.6: it is readable as soon as it is complete, outside the order.
            if completed {
                self.arena.unlist(head);
                self.dispatch(head);
            } else if !self.arena.is_listed(head) {
                self.arena.list_last(OPEN_UNORDERED, head);
            }
        } else if !has_just_begun {
            if completed {
                self.advance(stream);
            }
        } else {
            let line = self.stream(stream);
            if completed && ssn == line.next && line.waiting.is_empty() {
                // The common case, a message in order and in one fragment, needs no place among the waiting ones.
                line.next = ssn.wrapping_add(1);
                self.dispatch(head);
            } else if let Err(place) = line.search(ssn) {
                line.waiting.insert(place, (ssn, head));
                self.waiting_messages += 1;
                self.advance(stream);
            }
        }
    }

    /// Dispatches the messages of a stream that are complete and next (RFC 9260 section 6.5).
    //= docs/rfc9260.txt#section-6.6
    //# Within a stream, an endpoint MUST deliver DATA chunks received with the U flag set to 0 to the upper layer
    //# according to the order of their Stream Sequence Number.
    //= docs/rfc9260.txt#section-6.6
    //# If DATA chunks arrive out of order of their Stream Sequence Number, the endpoint MUST hold the received DATA
    //# chunks from delivery to the ULP until they are reordered.
    fn advance(&mut self, stream: u16) {
        loop {
            let line = self.stream(stream);
            let Some(&(_, head)) = line.waiting.front().filter(|(ssn, _)| *ssn == line.next) else { return };
            if !self.is_complete(head) {
                if !self.arena.is_listed(head) {
                    self.arena.list_last(OPEN_ORDERED, head);
                }
                return;
            }
            self.leave_line(stream);
            self.arena.unlist(head);
            self.dispatch(head);
        }
    }

    /// Removes the front message from its stream's order, and awaits the next SSN.
    fn leave_line(&mut self, stream: u16) {
        let line = self.stream(stream);
        let left = line.waiting.pop_front().is_some();
        line.next = line.next.wrapping_add(1);
        self.waiting_messages -= usize::from(left);
    }

    /// Makes a complete message readable, or holds it back while another one is read in parts from its stream.
    fn dispatch(&mut self, head: u32) {
        let Message { stream, .. } = self.arena[head].message;
        let stub = self.stream(stream).stub;
        if stub == NONE {
            self.readable_bytes += self.arena[head].run_bytes;
            self.arena.list_last(READY, head);
        } else {
            self.arena.list_last(stub, head);
        }
    }

    /// Removes a run from the list of readable ones.
    fn unlist_ready(&mut self, head: u32) -> u32 {
        self.arena.unlist(head);
        self.readable_bytes -= self.arena[head].run_bytes;
        head
    }

    /// Passes a run to the reader and frees it.
    fn hand_out(&mut self, head: u32, mut out: impl FnMut(&[u8], usize)) -> ReceivedMessage {
        let run = &self.arena[head];
        let Message { stream, ssn, ppid, unordered } = run.message;
        let piece = ReceivedMessage {
            stream,
            ppid,
            ssn,
            unordered,
            beginning: run.beginning,
            ending: self.arena[run.other_end].ending,
            bytes: run.run_bytes as usize,
            chunks: run.run_chunks,
        };
        let mut rest = piece.bytes;
        self.arena.remove_run(head, |_, part| {
            rest -= part.len();
            out(part, rest);
        });
        piece
    }

    /// Finds an unfinished message that may be read in parts, and removes it from its list.
    fn find_open(&mut self) -> Option<u32> {
        for list in [OPEN_ORDERED, OPEN_UNORDERED] {
            while let Some(head) = self.arena.first(list) {
                self.arena.unlist(head);
                let Message { stream, .. } = self.arena[head].message;
                let stub = self.stream(stream).stub;
                if stub == NONE {
                    return Some(head);
                }
                // Another message of the stream is being read in parts. This one is held back until its end.
                self.arena.list_last(stub, head);
            }
        }
        None
    }

    /// Blocks a stream for one message whose first part, up to the TSN `last`, has just been read.
    fn begin_partial(&mut self, piece: &ReceivedMessage, last: u64) {
        let ReceivedMessage { stream, ssn, ppid, unordered, .. } = *piece;
        let stub = self.arena.insert_stub(last, Message { stream, ssn, ppid, unordered });
        // The stub takes the place of the run's end, so that the next fragment finds it as its neighbour.
        self.ring.set_slot(last, stub);
        self.stream(stream).stub = stub;
        if !unordered {
            self.leave_line(stream);
            self.advance(stream);
        }
    }

    /// Records that a message has been read up to the TSN `last`, which is not its end.
    fn move_stub(&mut self, stream: u16, last: u64) {
        let stub = self.stream(stream).stub;
        self.arena[stub].tsn = last;
        self.arena[stub].other_end = NONE;
        self.ring.set_slot(last, stub);
    }

    /// Unblocks a stream; the messages held back come first.
    fn end_partial(&mut self, stream: u16) {
        let stub = std::mem::replace(&mut self.stream(stream).stub, NONE);
        while let Some(head) = self.arena.first(stub) {
            self.arena.unlist(head);
            if self.is_complete(head) {
                self.dispatch(head);
            } else {
                let ordered = !self.arena[head].message.unordered;
                self.arena.list_last(if ordered { OPEN_ORDERED } else { OPEN_UNORDERED }, head);
            }
        }
        self.arena.remove_stub(stub);
    }

    /// Marks a fragment of an abandoned message as arrived without storing it.
    fn pass_over(&mut self, fragment: &Fragment<'_>, right: Option<u32>) {
        let following = if fragment.ending { Following::Begins } else { Following::Either };
        self.ring.mark(fragment.tsn, Mark::seen(false, following, NONE));
        if let Some(right) = right {
            self.abandon(right);
        }
    }

    /// Frees an unfinished message, given as a stub or as either end of a run.
    fn abandon(&mut self, slot: u32) {
        if self.arena[slot].stub && self.arena[slot].other_end == NONE {
            self.ring.abandon(self.arena[slot].tsn);
            self.end_partial(self.arena[slot].message.stream);
            return;
        }
        let end = if self.arena[slot].stub { self.arena[slot].other_end } else { slot };
        let (head, last) = self.arena.ends_of(end);
        let (continues, beginning) = (self.arena[head].continues, self.arena[head].beginning);
        let Message { stream, ssn, unordered, .. } = self.arena[head].message;
        self.ring.set_slot(self.arena[head].tsn, NONE);
        self.ring.abandon(self.arena[last].tsn);
        if continues {
            self.unlist_ready(head);
        } else {
            self.arena.unlist(head);
        }
        self.arena.remove_run(head, |_, _| {});
        if continues {
            self.end_partial(stream);
        } else if beginning && !unordered {
            let line = self.stream(stream);
            let removed = line.search(ssn).ok().and_then(|place| line.waiting.remove(place));
            self.waiting_messages -= usize::from(removed.is_some());
        }
    }

    /// Returns `true` if a stub or unfinished run needs a missing TSN up to `new_cumulative`.
    fn lacks_below(&self, slot: u32, new_cumulative: u64) -> bool {
        if self.arena[slot].stub {
            return self.arena[slot].tsn < new_cumulative;
        }
        let (head, last) = self.arena.ends_of(slot);
        let (head, last) = (&self.arena[head], &self.arena[last]);
        let lacks_start = !leads(head) && head.tsn - 1 <= new_cumulative;
        let lacks_end = !last.ending && last.tsn < new_cumulative;
        lacks_start || lacks_end
    }

    /// Returns `true` if the message that is read in parts is unfinished, ordered, and at or before the sequence number `ssn`.
    fn is_skipped(&self, stub: u32, ssn: u16) -> bool {
        let Slot { message, other_end, .. } = self.arena[stub];
        let behind = !message.unordered && ssn.wrapping_sub(message.ssn) < HALF;
        behind && (other_end == NONE || !self.is_complete(other_end))
    }

    /// Returns `true` if a run, given by its first fragment, reaches the end of its message and lacks nothing before.
    fn is_complete(&self, head: u32) -> bool {
        let run = &self.arena[head];
        leads(run) && self.arena[run.other_end].ending
    }

    fn stream(&mut self, stream: u16) -> &mut Stream {
        let at = usize::from(stream);
        if at >= self.streams.len() {
            let first = self.first_ssn;
            self.streams.resize_with(at + 1, || Stream::new(first));
        }
        &mut self.streams[at]
    }
}

/// Returns `true` if no fragment of the message is missing before this one.
fn leads(fragment: &Slot) -> bool {
    fragment.beginning || fragment.continues
}

#[cfg(test)]
mod tests;

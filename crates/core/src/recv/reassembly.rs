//! From fragments to messages (RFC 9260 sections 6.5, 6.6 and 6.9).
//!
//! Fragments are joined by their TSNs alone: the fragments of a message have consecutive TSNs, so a fragment belongs
//! to its direct neighbours or to nothing that is here. A message with both ends is complete. An unordered one can
//! then be read at once, an ordered one when it is the next of its stream.
//!
//! A message too large for the receive window is read in parts. Such a message has its stream to itself until its
//! end has been read; whatever else of the stream becomes readable meanwhile is held back.
//!
//! No step looks at more than the neighbours of a fragment, except for the place of an ordered message among those
//! that wait in its stream, which a binary search finds. Storage is kept and used again, so that once an association
//! has seen its largest backlog a fragment costs no allocation.

use super::arena::{Arena, Message, NONE, OPEN_ORDERED, OPEN_UNORDERED, READY, Slot};
use super::ring::{Following, Mark, Ring};
use crate::contents::Contents;
use std::collections::VecDeque;
use thiserror::Error;

/// SSNs from here on ahead of another are behind it (RFC 9260 section 1.6 uses the circular order of RFC 1982).
const HALF: u16 = 1 << 15;

/// One DATA chunk, with its TSN unwrapped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment<'a> {
    /// Transmission sequence number.
    pub(crate) tsn: u64,
    /// Stream identifier.
    pub(crate) stream: u16,
    /// Stream sequence number; without meaning if `unordered`.
    pub(crate) ssn: u16,
    /// Payload protocol identifier.
    pub(crate) ppid: u32,
    /// The U bit.
    pub(crate) unordered: bool,
    /// The B bit.
    pub(crate) beginning: bool,
    /// The E bit.
    pub(crate) ending: bool,
    /// User data.
    pub(crate) payload: &'a [u8],
}

impl Fragment<'_> {
    fn message(&self) -> Message {
        Message { stream: self.stream, ssn: self.ssn, ppid: self.ppid, unordered: self.unordered }
    }
}

/// What a read has handed out: a whole message, or a part of one where the receive buffer is too small for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// Stream identifier.
    pub stream: u16,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// Stream sequence number; without meaning if `unordered`.
    pub ssn: u16,
    /// Whether the message takes no part in the order of its stream.
    pub unordered: bool,
    /// Whether the message starts here.
    pub beginning: bool,
    /// Whether the message ends here.
    ///
    /// If the next part on the stream is a `beginning` although this one is not an ending, the peer has abandoned
    /// the rest of the message.
    pub ending: bool,
    /// User data handed out.
    pub bytes: usize,
    /// Fragments that it came in.
    pub chunks: usize,
}

/// How a fragment contradicts those that came before it. Nothing of it has been stored.
///
/// The peer has broken the protocol, and RFC 9260 section 3.3.10.13 has an error cause for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Violation {
    /// The stream was not negotiated.
    #[error("fragment of a stream that does not exist")]
    NoSuchStream,
    /// The TSN is further ahead than a SACK can name; it should have been dropped before it came here.
    #[error("fragment too far ahead of the cumulative TSN")]
    OutOfReach,
    /// A message begins at a TSN directly after a fragment that does not end its own message.
    #[error("message begins inside another one")]
    BeginsInside,
    /// A fragment without the B bit stands directly after one that ends its message.
    #[error("fragment continues a message that has ended")]
    ContinuesNothing,
    /// Neighbouring fragments of what must be one message differ in stream, SSN, payload protocol or U bit.
    #[error("fragments of one message disagree")]
    Disagrees,
    /// The stream sequence number belongs to another message that is here already.
    #[error("two messages with the same stream sequence number")]
    RepeatedSequence,
}

/// The order of one stream.
#[derive(Debug)]
struct Stream {
    /// The SSN that comes next.
    next: u16,
    /// Ordered messages whose beginning is here, with their first fragments, in the order of their SSNs from `next`.
    waiting: VecDeque<(u16, u32)>,
    /// The stub of the message that is being read in parts, or [`NONE`].
    stub: u32,
}

impl Stream {
    fn new(first: u16) -> Self {
        Self { next: first, waiting: VecDeque::new(), stub: NONE }
    }

    /// Where among the waiting messages this SSN belongs, and whether it is there already.
    ///
    /// SSNs are taken as the distance ahead of `next`, over the full 16 bits: the TSNs in flight are fewer than the
    /// SSNs there are, so a well-behaved peer can mean no other message.
    //= docs/rfc9260.txt#section-1.6
    //# Any arithmetic done on Stream Sequence Numbers SHOULD use Serial Number Arithmetic, as defined in [RFC1982], where
    //# SERIAL_BITS = 16.
    fn search(&self, ssn: u16) -> Result<usize, usize> {
        let next = self.next;
        self.waiting.binary_search_by_key(&ssn.wrapping_sub(next), |&(other, _)| other.wrapping_sub(next))
    }
}

/// The unfinished runs on either side of a fragment, as slots; and whether its message has been abandoned.
struct Neighbours {
    left: Option<u32>,
    right: Option<u32>,
    abandoned: bool,
}

/// All fragments received and not yet read.
#[derive(Debug)]
pub(crate) struct Reassembly {
    arena: Arena,
    ring: Ring,
    /// Grows to the highest stream in use.
    streams: Vec<Stream>,
    /// Messages in the `waiting` lists of all streams.
    waiting_messages: usize,
    stream_count: u16,
    first_ssn: u16,
    readable_bytes: u64,
}

impl Reassembly {
    /// For a peer whose first TSN is `initial_tsn` and which may send on streams below `streams`.
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

    /// Awaits this SSN first in every stream instead of zero.
    pub(crate) fn starting_with(self, first_ssn: u16) -> Self {
        Self { first_ssn, ..self }
    }

    /// One to which user data comes like this.
    pub(crate) fn with_contents(self, contents: Contents) -> Self {
        Self { arena: self.arena.with_contents(contents), ..self }
    }

    /// Whether [`take`](Self::take) has something to hand out without being allowed to begin a part of a message.
    pub(crate) fn has_message(&self) -> bool {
        self.arena.first(READY).is_some()
    }

    /// User data received and not yet read, whether it can be read or not.
    pub(crate) fn held_payload_bytes(&self) -> u64 {
        self.arena.held_bytes()
    }

    /// Fragments received and not yet read, whether they can be read or not.
    pub(crate) fn held_chunks(&self) -> u64 {
        self.arena.held_chunks()
    }

    /// User data that [`take`](Self::take) can hand out without being allowed to begin a part of a message.
    pub(crate) fn readable_bytes(&self) -> u64 {
        self.readable_bytes
    }

    /// Returns `true` if the peer may send on this stream.
    pub(crate) fn has_stream(&self, stream: u16) -> bool {
        stream < self.stream_count
    }

    /// Stream sequence number of the message that a stream delivers next.
    pub(crate) fn next_ssn(&self, stream: u16) -> u16 {
        self.streams.get(usize::from(stream)).map_or(self.first_ssn, |line| line.next)
    }

    /// Returns `true` if the missing TSNs below a new fragment may hold every message that its stream delivers before it.
    ///
    /// A message takes at least one TSN, and TSNs of a stream ascend with its sequence numbers. So a sequence number that is further
    /// ahead of the next one than the fragment is beyond the cumulative TSN will never be reached. A number that was delivered
    /// before is nearly 2^16 ahead.
    pub(crate) fn awaits_sequence(&self, fragment: &Fragment<'_>) -> bool {
        let ahead = u64::from(fragment.ssn.wrapping_sub(self.next_ssn(fragment.stream)));
        fragment.unordered
            || self.continues_stub(fragment)
            || ahead < fragment.tsn.saturating_sub(self.ring.floor())
    }

    /// Returns `true` if the beginning of the fragment's message has been read: the stream is past its sequence number.
    fn continues_stub(&self, fragment: &Fragment<'_>) -> bool {
        let stub = self.streams.get(usize::from(fragment.stream)).map_or(NONE, |line| line.stub);
        stub != NONE && self.arena[stub].message.fits(&fragment.message())
    }

    /// Returns `true` if a message waits for an earlier one of its stream, given that no TSN is missing. Only the message that the
    /// highest TSN belongs to may wait then, for its own end.
    pub(crate) fn waits_in_vain(&self) -> bool {
        match (self.waiting_messages, self.unfinished_tail()) {
            (0, _) => false,
            (1, Some(tail)) if !tail.unordered => {
                self.streams.get(usize::from(tail.stream)).is_none_or(|line| line.next != tail.ssn)
            }
            _ => true,
        }
    }

    /// The message that the highest TSN leaves unfinished.
    fn unfinished_tail(&self) -> Option<Message> {
        let slot = self.ring.get(self.ring.highest())?.slot;
        (slot != NONE).then(|| self.arena[slot].message)
    }

    /// Takes in a fragment. One that is here already, or lies below what a FORWARD-TSN skipped, changes nothing.
    ///
    /// # Errors
    /// If the fragment contradicts what is here; nothing is changed then.
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
        let following = if fragment.ending { Following::Begins } else { Following::Continues };
        self.ring.mark(fragment.tsn, Mark::seen(fragment.beginning, following, slot));
        self.arrive(slot, &neighbours);
        Ok(())
    }

    /// Counts a fragment as arrived that is good for nothing, so that its neighbours know where they stand.
    pub(crate) fn ignore(&mut self, fragment: &Fragment<'_>) {
        let following = if fragment.ending { Following::Begins } else { Following::Either };
        self.ring.mark(fragment.tsn, Mark::seen(fragment.beginning, following, NONE));
    }

    /// Hands the parts of the next message to `out`, each with the number of bytes that follow it, and forgets it.
    ///
    /// With `allow_partial`, if no whole message can be read, the leading fragments of an unfinished one are handed
    /// out: an ordered one that is next in its stream if there is any, else an unordered one. RFC 9260 section 6.9
    /// recommends this when the receive window is used up by messages that are not complete. The rest of such a
    /// message is then readable as it comes, with or without `allow_partial`.
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

    /// As [`take`](Self::take), without the TSNs.
    #[cfg(test)]
    pub(crate) fn read(&mut self, out: &mut Vec<u8>, allow_partial: bool) -> Option<ReceivedMessage> {
        self.take(|part, _| out.extend_from_slice(part), allow_partial).map(|(piece, _)| piece)
    }

    /// Gives up what can no longer be completed because the peer has abandoned all missing TSNs up to
    /// `new_cumulative` (RFC 3758 section 3.6).
    ///
    /// Messages that lack nothing, or only later TSNs, stay. The ordered messages that were skipped have to be named
    /// with [`skip_ordered`](Self::skip_ordered) for their streams to go on.
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

    /// Lets an ordered stream go on after the sequence number `ssn`, as a FORWARD-TSN demands (RFC 3758 section 3.6).
    ///
    /// Complete messages up to it become readable, unfinished ones are given up.
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

    /// What a new fragment meets, or how it contradicts it.
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

    /// Joins a stored fragment with its neighbours, and sees what has become of its message.
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

    /// Takes a run out of the ring, once nothing can join it any more.
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

    /// Puts a message whose beginning is here where it belongs now.
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
            // RFC 9260 section 6.6: it goes to the reader as soon as it is whole, past all order.
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
                // The common case, a message in order and in one fragment, waits for nothing.
                line.next = ssn.wrapping_add(1);
                self.dispatch(head);
            } else if let Err(place) = line.search(ssn) {
                line.waiting.insert(place, (ssn, head));
                self.waiting_messages += 1;
                self.advance(stream);
            }
        }
    }

    /// Lets the messages of a stream go that are complete and next (RFC 9260 section 6.5).
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

    /// Takes the front message out of its stream's order, and makes the next number the awaited one.
    fn leave_line(&mut self, stream: u16) {
        let line = self.stream(stream);
        let left = line.waiting.pop_front().is_some();
        line.next = line.next.wrapping_add(1);
        self.waiting_messages -= usize::from(left);
    }

    /// Makes a complete message readable, or holds it back while another one has the stream to itself.
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

    /// Takes a run off the list of readable ones.
    fn unlist_ready(&mut self, head: u32) -> u32 {
        self.arena.unlist(head);
        self.readable_bytes -= self.arena[head].run_bytes;
        head
    }

    /// Copies a run to the reader and frees it.
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
        self.arena.remove_run(head, |part| {
            rest -= part.len();
            out(part, rest);
        });
        piece
    }

    /// Finds an unfinished message that may be read in parts, and takes it off its list.
    fn find_open(&mut self) -> Option<u32> {
        for list in [OPEN_ORDERED, OPEN_UNORDERED] {
            while let Some(head) = self.arena.first(list) {
                self.arena.unlist(head);
                let Message { stream, .. } = self.arena[head].message;
                let stub = self.stream(stream).stub;
                if stub == NONE {
                    return Some(head);
                }
                // Another message has the stream to itself. Held back, this one is not looked at again before then.
                self.arena.list_last(stub, head);
            }
        }
        None
    }

    /// Gives a stream to one message whose first part, up to the TSN `last`, has just been read.
    fn begin_partial(&mut self, piece: &ReceivedMessage, last: u64) {
        let ReceivedMessage { stream, ssn, ppid, unordered, .. } = *piece;
        let stub = self.arena.insert_stub(last, Message { stream, ssn, ppid, unordered });
        // The stub takes the place of the run's end, so the next fragment meets it as its neighbour.
        self.ring.set_slot(last, stub);
        self.stream(stream).stub = stub;
        if !unordered {
            self.leave_line(stream);
            self.advance(stream);
        }
    }

    /// Notes that a message has been read up to the TSN `last`, and not to its end.
    fn move_stub(&mut self, stream: u16, last: u64) {
        let stub = self.stream(stream).stub;
        self.arena[stub].tsn = last;
        self.arena[stub].other_end = NONE;
        self.ring.set_slot(last, stub);
    }

    /// Opens a stream again to all its messages, those held back first.
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
        self.arena.remove_run(head, |_| {});
        if continues {
            self.end_partial(stream);
        } else if beginning && !unordered {
            let line = self.stream(stream);
            let removed = line.search(ssn).ok().and_then(|place| line.waiting.remove(place));
            self.waiting_messages -= usize::from(removed.is_some());
        }
    }

    /// Whether a stub or unfinished run needs a missing TSN up to `new_cumulative`.
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

    /// Whether the message that is read in parts is an unfinished one up to the sequence number `ssn`.
    fn is_skipped(&self, stub: u32, ssn: u16) -> bool {
        let Slot { message, other_end, .. } = self.arena[stub];
        let behind = !message.unordered && ssn.wrapping_sub(message.ssn) < HALF;
        behind && (other_end == NONE || !self.is_complete(other_end))
    }

    /// Whether a run, given by its first fragment, reaches to the end of its message and lacks nothing before.
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

/// Whether nothing of the message is missing before this fragment.
fn leads(fragment: &Slot) -> bool {
    fragment.beginning || fragment.continues
}

#[cfg(test)]
mod tests;

//! Reassembly of messages from I-DATA chunks (RFC 8260 section 2).
//!
//! The stream identifier, the U bit and the message identifier (MID) name the message of a fragment, and the fragment sequence number
//! (FSN) its place in the message. Fragments of different messages arrive in any mixture. An unordered message can be read once all
//! its fragments have arrived, an ordered one when it is also the next of its stream.
//!
//! A message too large for the receive window is read in parts, as with DATA chunks: it blocks its stream until its end has been
//! read, and messages that become readable meanwhile are held back.
//!
//! A peer sends the messages of a stream one after the other. Without a missing TSN, only the last message of a stream may therefore
//! be unfinished. This bounds the messages that a peer can open.

mod order;

use anabranch_wire::Mid;
use order::{Open, Order};

use super::arena::{Arena, Message, OPEN_ORDERED, OPEN_UNORDERED, READY};
use super::reassembly::{Fragment, Place, ReceivedMessage, Violation};
use crate::contents::Contents;
use crate::stream_set::StreamSet;

/// Message that is being read in parts.
#[derive(Clone, Debug)]
struct Partial {
    unordered: bool,
    rest: Open,
    /// Slot with the list of the messages that are held back until its end.
    stub: u32,
}

/// Messages of one stream.
#[derive(Clone, Debug)]
struct Stream {
    ordered: Order,
    unordered: Order,
    partial: Option<Partial>,
}

impl Stream {
    fn new(first: u64) -> Self {
        Stream { ordered: Order::new(first), unordered: Order::new(first), partial: None }
    }

    fn order(&self, unordered: bool) -> &Order {
        if unordered { &self.unordered } else { &self.ordered }
    }

    fn order_mut(&mut self, unordered: bool) -> &mut Order {
        if unordered { &mut self.unordered } else { &mut self.ordered }
    }

    /// Returns `true` if a message is the one that is being read in parts.
    fn is_partial(&self, unordered: bool, mid: u64) -> bool {
        self.partial.as_ref().is_some_and(|partial| partial.unordered == unordered && partial.rest.mid == mid)
    }

    /// Returns `true` if a fragment's message is not abandoned.
    fn admits(&self, unordered: bool, mid: u64, reach: u64) -> Result<bool, Violation> {
        if self.is_partial(unordered, mid) {
            return Ok(true);
        }
        self.order(unordered).admits(mid, unordered, reach)
    }
}

/// All fragments received and not yet read.
#[derive(Clone, Debug)]
pub(crate) struct Interleaved {
    arena: Arena,
    /// Streams up to the highest one in use.
    streams: Vec<Stream>,
    /// Number of ordered messages of all streams that wait for an earlier one.
    blocked: usize,
    stream_count: u16,
    first_mid: u64,
    readable_bytes: u64,
}

/// Construction and inspection.
impl Interleaved {
    /// Returns the state for a peer that may send on streams below `streams`, and counts messages from `first_mid`.
    pub(crate) fn new(streams: u16, first_mid: u16) -> Self {
        Interleaved {
            arena: Arena::new(),
            streams: Vec::new(),
            blocked: 0,
            stream_count: streams,
            first_mid: Mid::SPAN + u64::from(first_mid),
            readable_bytes: 0,
        }
    }

    /// Sets the form in which user data is stored.
    pub(crate) fn with_contents(self, contents: Contents) -> Self {
        Self { arena: self.arena.with_contents(contents), ..self }
    }

    /// Returns `true` if [`take`](Self::take) returns a piece without `allow_partial`.
    pub(crate) fn has_message(&self) -> bool {
        self.arena.first(READY).is_some()
    }

    pub(crate) fn held_payload_bytes(&self) -> u64 {
        self.arena.held_bytes()
    }

    pub(crate) fn held_chunks(&self) -> u64 {
        self.arena.held_chunks()
    }

    pub(crate) fn readable_bytes(&self) -> u64 {
        self.readable_bytes
    }

    pub(crate) fn streams(&self) -> u16 {
        self.stream_count
    }

    pub(crate) fn set_stream_count(&mut self, streams: u16) {
        self.stream_count = streams;
    }

    /// Returns the low bits of the MID of the ordered message that a stream delivers next.
    pub(crate) fn next_ssn(&self, stream: u16) -> u16 {
        self.streams.get(usize::from(stream)).map_or(self.first_mid, |line| line.ordered.next) as u16
    }

    /// Returns `true` if a message waits for an earlier one of its stream, given that no TSN is missing.
    pub(crate) fn is_blocked_without_gap(&self) -> bool {
        self.blocked > 0
    }

    /// Returns `true` unless the fragment's MID contradicts the number of missing TSNs up to its own, `reach`.
    pub(crate) fn awaits(&mut self, fragment: &Fragment<'_>, place: Place, reach: u64) -> bool {
        let line = self.stream(fragment.stream);
        let mid = line.order(fragment.unordered).unwrap(place.mid);
        line.admits(fragment.unordered, mid, reach).is_ok()
    }
}

/// Arrival of fragments.
impl Interleaved {
    /// Stores a fragment of a message that is not abandoned. `reach` is the number of TSNs from the first missing one to its own.
    ///
    /// # Errors
    /// Returns an error if the fragment contradicts earlier ones; nothing is stored then.
    pub(crate) fn push(&mut self, fragment: Fragment<'_>, place: Place, reach: u64) -> Result<(), Violation> {
        let Fragment { stream, unordered, beginning, ending, .. } = fragment;
        if stream >= self.stream_count {
            return Err(Violation::NoSuchStream);
        }
        if beginning != (place.fsn == 0) {
            return Err(Violation::ContinuesNothing);
        }
        let line = self.stream(stream);
        let mid = line.order(unordered).unwrap(place.mid);
        if !line.admits(unordered, mid, reach)? {
            return Ok(());
        }
        self.find(stream, unordered, mid)
            .map_or(Ok(()), |open| open.check(&self.arena, u64::from(place.fsn), ending))?;
        let message = Message { stream, ssn: place.mid.get() as u16, ppid: fragment.ppid, unordered };
        let slot = self.arena.insert(fragment.tsn, message, (beginning, ending), fragment.payload);
        if self.streams[usize::from(stream)].is_partial(unordered, mid) {
            self.continue_partial(stream, u64::from(place.fsn), slot);
        } else {
            self.change(stream, |this| this.arrive(stream, unordered, mid, u64::from(place.fsn), slot));
        }
        Ok(())
    }

    fn find(&self, stream: u16, unordered: bool, mid: u64) -> Option<&Open> {
        let line = &self.streams[usize::from(stream)];
        match &line.partial {
            Some(partial) if line.is_partial(unordered, mid) => Some(&partial.rest),
            _ => {
                let order = line.order(unordered);
                order.search(mid).ok().map(|at| &order.open[at])
            }
        }
    }

    /// Changes the messages of a stream, and recounts those that wait.
    fn change(&mut self, stream: u16, change: impl FnOnce(&mut Self)) {
        let blocked = |this: &Self| this.streams[usize::from(stream)].ordered.blocked();
        let before = blocked(self);
        change(self);
        self.blocked = self.blocked + blocked(self) - before;
    }

    /// Adds a fragment to its message, and makes readable what it completes.
    fn arrive(&mut self, stream: u16, unordered: bool, mid: u64, fsn: u64, slot: u32) {
        let order = self.streams[usize::from(stream)].order_mut(unordered);
        if unordered {
            order.note(mid);
        }
        let whole = self.arena[slot].beginning && self.arena[slot].ending;
        if whole && (unordered || mid == order.next) {
            // A message in one fragment that waits for none needs no place among the waiting ones.
            order.next = order.next.max(mid + 1);
            self.dispatch(slot);
        } else {
            let at = order.search(mid).unwrap_or_else(|at| {
                order.insert(at, mid);
                at
            });
            order.open[at].join(&mut self.arena, fsn, slot);
            if unordered {
                self.finish_unordered(stream, at);
            }
        }
        self.advance(stream);
    }

    /// Makes an unordered message readable if it is complete, and otherwise lists it once its beginning has arrived.
    fn finish_unordered(&mut self, stream: u16, at: usize) {
        let order = &mut self.streams[usize::from(stream)].unordered;
        let Some(head) = order.open[at].head() else { return };
        if order.open[at].is_complete(&self.arena) {
            order.remove(at);
            self.arena.unlist(head);
            self.dispatch(head);
        } else if !self.arena.is_listed(head) {
            self.arena.list_last(OPEN_UNORDERED, head);
        }
    }

    /// Dispatches the messages of a stream that are complete and next.
    fn advance(&mut self, stream: u16) {
        loop {
            let order = &mut self.streams[usize::from(stream)].ordered;
            let Some(open) = order.open.front().filter(|open| open.mid == order.next) else { return };
            let Some(head) = open.head() else { return };
            if !open.is_complete(&self.arena) {
                if !self.arena.is_listed(head) {
                    self.arena.list_last(OPEN_ORDERED, head);
                }
                return;
            }
            order.remove(0);
            order.next += 1;
            self.arena.unlist(head);
            self.dispatch(head);
        }
    }

    /// Makes a complete message readable, or holds it back while another one is read in parts from its stream.
    fn dispatch(&mut self, head: u32) {
        let stream = self.arena[head].message.stream;
        match &self.streams[usize::from(stream)].partial {
            Some(partial) => self.arena.list_last(partial.stub, head),
            None => {
                self.readable_bytes += self.arena[head].run_bytes;
                self.arena.list_last(READY, head);
            }
        }
    }

    /// Adds a fragment to the message that is being read in parts. What follows its read part is readable.
    fn continue_partial(&mut self, stream: u16, fsn: u64, slot: u32) {
        let Some(Partial { rest, .. }) = &mut self.streams[usize::from(stream)].partial else { return };
        let before = rest.head().map_or(0, |head| self.arena[head].run_bytes);
        rest.join(&mut self.arena, fsn, slot);
        let Some(head) = rest.head() else { return };
        self.readable_bytes += self.arena[head].run_bytes - before;
        self.show(head);
    }

    /// Lists the first unread fragments of a message that is being read in parts.
    fn show(&mut self, head: u32) {
        if !self.arena.is_listed(head) {
            self.arena[head].continues = true;
            self.arena.list_last(READY, head);
        }
    }

    fn stream(&mut self, stream: u16) -> &mut Stream {
        let at = usize::from(stream);
        if at >= self.streams.len() {
            let first = self.first_mid;
            self.streams.resize_with(at + 1, || Stream::new(first));
        }
        &mut self.streams[at]
    }
}

/// Pieces for the reader.
impl Interleaved {
    /// Passes the fragments of the next message to `out`, each with its TSN and the number of bytes that follow it, and removes them.
    ///
    /// If `allow_partial` is set and no whole message can be read, the leading fragments of an unfinished message are returned, as
    /// [`Reassembly::take`](super::reassembly::Reassembly::take) does.
    pub(crate) fn take(
        &mut self,
        out: impl FnMut(u64, &[u8], usize),
        allow_partial: bool,
    ) -> Option<ReceivedMessage> {
        let head = match self.arena.first(READY) {
            Some(head) => {
                self.arena.unlist(head);
                self.readable_bytes -= self.arena[head].run_bytes;
                head
            }
            None if allow_partial => self.find_open()?,
            None => return None,
        };
        let continues = self.arena[head].continues;
        let mut piece = self.hand_out(head, out);
        if continues {
            self.move_partial(&mut piece);
        } else if !piece.ending {
            self.begin_partial(&piece, head);
        }
        Some(piece)
    }

    /// Passes a run to the reader and frees it.
    fn hand_out(&mut self, head: u32, mut out: impl FnMut(u64, &[u8], usize)) -> ReceivedMessage {
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
        self.arena.remove_run(head, |tsn, part| {
            rest -= part.len();
            out(tsn, part, rest);
        });
        piece
    }

    /// Finds an unfinished message that may be read in parts, and removes it from its list.
    fn find_open(&mut self) -> Option<u32> {
        for list in [OPEN_ORDERED, OPEN_UNORDERED] {
            while let Some(head) = self.arena.first(list) {
                self.arena.unlist(head);
                let stream = self.arena[head].message.stream;
                match &self.streams[usize::from(stream)].partial {
                    None => return Some(head),
                    // Another message of the stream is being read in parts. This one is held back until its end.
                    Some(partial) => self.arena.list_last(partial.stub, head),
                }
            }
        }
        None
    }

    /// Blocks a stream for a message whose first part, at this slot, has just been read.
    fn begin_partial(&mut self, piece: &ReceivedMessage, head: u32) {
        let ReceivedMessage { stream, unordered, .. } = *piece;
        let stub = self.arena.insert_stub(0, Message::default());
        self.change(stream, |this| {
            let line = &mut this.streams[usize::from(stream)];
            let order = line.order_mut(unordered);
            let Some(at) = order.open.iter().position(|open| open.head() == Some(head)) else { return };
            let Some(mut rest) = order.open.remove(at) else { return };
            if !unordered {
                order.next = rest.mid + 1;
            }
            rest.runs.pop_front();
            rest.next = piece.chunks as u64;
            line.partial = Some(Partial { unordered, rest, stub });
            this.advance(stream);
        });
    }

    /// Records that a further part of a message has been read.
    fn move_partial(&mut self, piece: &mut ReceivedMessage) {
        let Some(Partial { rest, .. }) = &mut self.streams[usize::from(piece.stream)].partial else { return };
        piece.ppid = rest.ppid;
        rest.runs.pop_front();
        rest.next += piece.chunks as u64;
        if piece.ending {
            self.end_partial(piece.stream);
        }
    }

    /// Unblocks a stream, and frees the unread fragments of the message that blocked it. The messages held back come first.
    fn end_partial(&mut self, stream: u16) {
        let Some(Partial { rest, stub, .. }) = self.streams[usize::from(stream)].partial.take() else {
            return;
        };
        self.free(rest);
        while let Some(head) = self.arena.first(stub) {
            self.arena.unlist(head);
            let Message { unordered, .. } = self.arena[head].message;
            if self.arena[self.arena[head].other_end].ending {
                self.dispatch(head);
            } else {
                self.arena.list_last(if unordered { OPEN_UNORDERED } else { OPEN_ORDERED }, head);
            }
        }
        self.arena.remove_stub(stub);
    }

    /// Frees the fragments of a message.
    fn free(&mut self, open: Open) {
        for run in open.runs {
            if self.arena[run.head].continues {
                self.readable_bytes -= self.arena[run.head].run_bytes;
            }
            self.arena.unlist(run.head);
            self.arena.remove_run(run.head, |_, _| {});
        }
    }
}

/// Abandoned messages and resets.
impl Interleaved {
    /// Continues a stream behind the message `mid`, as an I-FORWARD-TSN demands (RFC 8260 section 2.3.1). Complete ordered messages
    /// up to it become readable, unfinished messages are removed.
    pub(crate) fn skip(&mut self, stream: u16, unordered: bool, mid: Mid) {
        if stream >= self.stream_count {
            return;
        }
        let mid = self.stream(stream).order(unordered).unwrap(mid);
        let partial = self.streams[usize::from(stream)].partial.as_ref();
        if partial.is_some_and(|partial| {
            partial.unordered == unordered
                && partial.rest.mid <= mid
                && !partial.rest.is_complete(&self.arena)
        }) {
            self.end_partial(stream);
        }
        self.change(stream, |this| {
            while let Some(open) = this.streams[usize::from(stream)].order_mut(unordered).pop_up_to(mid) {
                match open.head() {
                    Some(head) if open.is_complete(&this.arena) => {
                        this.arena.unlist(head);
                        this.dispatch(head);
                    }
                    _ => this.free(open),
                }
            }
            this.streams[usize::from(stream)].order_mut(unordered).skip_to(mid);
            this.advance(stream);
        });
    }

    /// Resets the MIDs of streams to zero (RFC 8260 section 2.3.2). Returns `false`, without any change, if a message on one of them
    /// waits for an earlier one or for a fragment.
    pub(crate) fn reset(&mut self, streams: &StreamSet) -> bool {
        let named: Vec<usize> = match streams {
            StreamSet::All => (0..self.streams.len()).collect(),
            StreamSet::Listed(listed) => {
                let counts =
                    |&stream: &u16| usize::from(stream) < self.streams.len() || self.next_ssn(stream) != 0;
                listed.iter().copied().filter(counts).map(usize::from).collect()
            }
        };
        let waits = |line: &Stream| !line.ordered.open.is_empty() || !line.unordered.open.is_empty();
        if named.iter().filter_map(|&at| self.streams.get(at)).any(waits) {
            return false;
        }
        for at in named {
            let line = self.stream(at as u16);
            line.ordered.restart();
            line.unordered.restart();
        }
        if matches!(streams, StreamSet::All) {
            // Streams without a message so far.
            self.first_mid = Mid::SPAN;
        }
        true
    }
}

#[cfg(test)]
mod tests;

//! Receiver: tracker, reassembly and receive window of an association.

use crate::contents::Contents;
use crate::intervals::{self, Interval};
use crate::profile::Profile;
use crate::recv::assembly::{Assembly, SkippedTo};
use crate::recv::interleaved::Interleaved;
use crate::recv::reassembly::{Fragment, Reassembly, ReceivedMessage, Violation};
use crate::recv::tracker::{Arrival, Tracker};
use crate::stream_set::StreamSet;
use crate::units::WindowBytes;

/// Outcome of a received DATA chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataOutcome {
    /// The chunk was stored.
    New,
    /// The chunk had arrived before.
    Duplicate,
    /// The chunk found no room, or a SACK cannot name its TSN.
    Dropped,
}

/// Blocks beyond the cumulative TSN as distances from it, divided by delivery to the application.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlocksByDelivery {
    pub(crate) unread: Vec<(u16, u16)>,
    pub(crate) read: Vec<(u16, u16)>,
}

/// Receiving side of an association.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    pub(super) tracker: Tracker,
    reassembly: Assembly,
    buffer: WindowBytes,
    /// `true` if the latest new chunk found no room.
    starved: bool,
    /// First and last TSNs beyond the cumulative one that the application has read, ascending and disjoint.
    read_beyond: Vec<Interval>,
}

impl Receiver {
    pub(crate) fn new(initial_tsn: u64, streams: u16, first_ssn: u16, buffer_bytes: u64) -> Self {
        Receiver {
            tracker: Tracker::new(initial_tsn),
            reassembly: Assembly::Consecutive(Reassembly::new(initial_tsn, streams).starting_with(first_ssn)),
            buffer: WindowBytes::new(buffer_bytes),
            starved: false,
            read_beyond: Vec::new(),
        }
    }

    /// Expects I-DATA chunks instead of DATA chunks, with messages counted from `first_mid`. The receiver is new.
    pub(crate) fn interleaved(self, first_mid: u16) -> Self {
        let reassembly = Interleaved::new(self.reassembly.streams(), first_mid);
        Receiver { reassembly: Assembly::Interleaved(reassembly), ..self }
    }

    /// Returns the TSNs that have arrived.
    #[inline]
    pub(crate) fn tracker(&self) -> &Tracker {
        &self.tracker
    }

    /// Forgets the duplicates, because a SACK has reported them.
    pub(crate) fn note_acknowledged(&mut self) {
        self.tracker.clear_duplicates();
    }

    /// Returns `true` if messages arrive in I-DATA chunks.
    pub(crate) fn is_interleaved(&self) -> bool {
        matches!(self.reassembly, Assembly::Interleaved(_))
    }

    /// Sets the form in which user data is stored.
    pub(crate) fn with_contents(self, contents: Contents) -> Self {
        Receiver { reassembly: self.reassembly.with_contents(contents), ..self }
    }

    /// Returns the cost of the held chunks in the window.
    fn held(&self, profile: &Profile) -> WindowBytes {
        profile.window_cost(self.reassembly.held_payload_bytes(), self.reassembly.held_chunks())
    }

    /// Returns the size of the whole buffer.
    pub(crate) fn buffer(&self) -> WindowBytes {
        self.buffer
    }

    /// Raises the size of the buffer. A smaller size has no effect.
    //= docs/rfc9260.txt#section-3.3.2
    //# During the life of the association, this buffer space SHOULD NOT be reduced (i.e., dedicated buffers ought not to
    //# be taken away from this association); however, an endpoint MAY change the value of a_rwnd it sends in SACK chunks.
    //= docs/rfc9260.txt#section-3.3.3
    //# During the life of the association, this buffer space SHOULD NOT be reduced (i.e., dedicated buffers ought not to
    //# be taken away from this association); however, an endpoint MAY change the value of a_rwnd it sends in SACK chunks.
    pub(crate) fn grow(&mut self, buffer: WindowBytes) {
        self.buffer = self.buffer.max(buffer);
    }

    /// Returns the free part of the buffer.
    //= docs/rfc9260.txt#section-6.2
    //# The data receiver SHOULD NOT increment a_rwnd unless it has released bytes from its receive buffer.
    //= docs/rfc9260.txt#section-6.2
    //# For example, if the receiver is holding fragmented DATA chunks in a reassembly queue, it SHOULD NOT increment
    //# a_rwnd.
    pub(crate) fn free(&self, profile: &Profile) -> WindowBytes {
        if profile.shared_receive_window { self.buffer - self.held(profile) } else { self.buffer }
    }

    /// Stores a chunk if there is room for it.
    //= docs/rfc9260.txt#section-6.2
    //= type=implication
    //# If a data receiver drops DATA chunks, it MUST NOT include them in Gap Ack Blocks in subsequent SACK chunks until
    //# they are received again via retransmission.
    //= docs/rfc9260.txt#section-6.2
    //= type=implication
    //# In addition, the endpoint SHOULD take into account the dropped data when calculating its a_rwnd.
    //= docs/rfc9260.txt#section-6.2
    //= type=implication
    //# An endpoint SHOULD NOT revoke a SACK chunk and discard data.
    //= docs/rfc9260.txt#section-6.2
    //= type=implication
    //# The data receiver SHOULD take into account that dropping data that has been acked in Gap Ack Blocks can result in
    //# suboptimal retransmission strategies in the data sender and thus in suboptimal performance.
    pub(crate) fn take(
        &mut self,
        fragment: Fragment<'_>,
        profile: &Profile,
    ) -> Result<DataOutcome, Violation> {
        let tsn = fragment.tsn;
        let judged = self.tracker.classify(tsn);
        match judged {
            Arrival::Duplicate => {
                //= docs/rfc9260.txt#section-6.2
                //# The duplicate TSN number(s) SHOULD be reported in the SACK chunk as duplicate.
                self.tracker.note_duplicate(tsn);
                return Ok(DataOutcome::Duplicate);
            }
            Arrival::OutOfReach => return Ok(DataOutcome::Dropped),
            Arrival::Next | Arrival::Beyond => {}
        }
        let next = tsn == self.tracker.cumulative() + 1;
        self.starved = !self.has_room(fragment.payload.len() as u64, next, profile);
        //= docs/rfc9260.txt#section-6.2
        //# The dropped DATA chunk(s) MUST NOT be included in the SACK chunk, as they were not accepted.
        if self.starved {
            return Ok(DataOutcome::Dropped);
        }
        let pushed = self.reassembly.push(fragment, tsn - self.tracker.cumulative());
        if pushed == Err(Violation::NoSuchStream) {
            // RFC 9260 section 6.5: it is acknowledged like any other, or the peer would retransmit it forever.
            self.reassembly.ignore(&fragment);
        } else {
            pushed?;
        }
        //= docs/rfc9260.txt#section-6.2
        //# The data receiver SHOULD take into account that the data sender will not retransmit DATA chunks that are acked
        //# via the Cumulative TSN Ack (i.e., will drop from its retransmit queue).
        self.tracker.record(tsn, judged);
        pushed.map(|()| DataOutcome::New)
    }

    /// Returns `true` if a chunk may be stored. A full buffer takes the next in-order TSN if that can free memory: that is, unless
    /// all held data waits only for the application. The limit is twice the buffer, or one chunk beyond the buffer if chunks are
    /// that large.
    //= docs/rfc9260.txt#section-6.2
    //# When the receiver's advertised window is 0, the receiver MUST drop any new incoming DATA chunk with a TSN larger
    //# than the largest TSN received so far.
    fn has_room(&self, payload_bytes: u64, next: bool, profile: &Profile) -> bool {
        let cost = profile.window_cost(payload_bytes, 1);
        if cost <= self.free(profile) || !profile.shared_receive_window {
            return true;
        }
        let frees_something = self.reassembly.readable_bytes() < self.reassembly.held_payload_bytes();
        next && profile.full_buffer_takes_next
            && (frees_something || self.reassembly.held_chunks() == 0)
            && self.held(profile) + cost <= self.buffer.times(2).max(self.buffer + cost)
    }

    pub(crate) fn read(
        &mut self,
        out: impl FnMut(&[u8], usize),
        allow_partial: bool,
    ) -> Option<ReceivedMessage> {
        let (beyond, cumulative) = (&mut self.read_beyond, self.tracker.cumulative());
        let read = |tsns: Interval| {
            if tsns.1 > cumulative {
                intervals::forget_up_to(beyond, cumulative);
                intervals::insert(beyond, tsns);
            }
        };
        self.reassembly.take(out, read, allow_partial)
    }

    /// Fills the lists, which are reused from NR-SACK to NR-SACK.
    pub(crate) fn blocks_by_delivery(&self, lists: &mut BlocksByDelivery) {
        let BlocksByDelivery { unread, read } = lists;
        unread.clear();
        read.clear();
        let cumulative = self.tracker.cumulative();
        // No TSN that a SACK cannot name is stored, so no cast truncates.
        let near = |tsn: u64| (tsn - cumulative) as u16;
        let mut done = self.read_beyond.iter().filter(|&&(_, end)| end > cumulative).peekable();
        for (start, end) in self.tracker.gap_blocks(usize::MAX) {
            let (mut at, end) = (cumulative + u64::from(start), cumulative + u64::from(end));
            while let Some(&&(first, last)) = done.peek().filter(|&&&(first, _)| first <= end) {
                if at < first {
                    unread.push((near(at), near(first - 1)));
                }
                read.push((near(first.max(at)), near(last.min(end))));
                at = last + 1;
                if last > end {
                    break;
                }
                done.next();
            }
            if at <= end {
                unread.push((near(at), near(end)));
            }
        }
    }

    /// Returns `true` if the latest new chunk found no room: the peer's chunks may be larger than the own ones.
    pub(crate) fn is_starved(&self) -> bool {
        self.starved
    }

    /// Returns `true` if a read without `allow_partial` returns a piece.
    pub(crate) fn has_message(&self) -> bool {
        self.reassembly.has_message()
    }

    pub(crate) fn readable_bytes(&self) -> u64 {
        self.reassembly.readable_bytes()
    }

    pub(crate) fn held_payload_bytes(&self) -> u64 {
        self.reassembly.held_payload_bytes()
    }

    /// Returns the number of streams on which the peer may send.
    pub(crate) fn streams(&self) -> u16 {
        self.reassembly.streams()
    }

    /// Returns `true` if the peer may send on this stream.
    pub(crate) fn has_stream(&self, stream: u16) -> bool {
        stream < self.reassembly.streams()
    }

    /// Sets the number of streams on which the peer may send.
    pub(crate) fn set_streams(&mut self, streams: u16) {
        self.reassembly.set_stream_count(streams);
    }

    /// Resets the SSNs of streams. Returns `false`, without any change, if a message on one of them waits for an earlier one or for
    /// its own end.
    pub(crate) fn reset_streams(&mut self, streams: &StreamSet) -> bool {
        self.reassembly.reset(streams)
    }

    /// Returns the SSN of the message that a stream delivers next.
    pub(crate) fn next_ssn(&self, stream: u16) -> u16 {
        self.reassembly.next_ssn(stream)
    }

    /// Returns `true` if the messages before this fragment's in its stream can all be among the TSNs that are missing below it. A
    /// fragment that has arrived already is not inspected.
    pub(crate) fn awaits_sequence(&mut self, fragment: &Fragment<'_>) -> bool {
        match self.tracker.classify(fragment.tsn) {
            Arrival::Next | Arrival::Beyond => {
                let reach = fragment.tsn - self.tracker.cumulative();
                self.reassembly.awaits_sequence(fragment, reach)
            }
            Arrival::Duplicate | Arrival::OutOfReach => true,
        }
    }

    /// Returns `true` if a message waits for an earlier one of its stream although no TSN is missing.
    pub(crate) fn is_blocked_without_gap(&self) -> bool {
        !self.tracker.has_gaps() && self.reassembly.is_blocked_without_gap()
    }

    /// Moves the cumulative TSN for a FORWARD-TSN (RFC 3758 section 3.6).
    pub(crate) fn forward(&mut self, new_cumulative: u64) {
        self.tracker.forward(new_cumulative);
        self.reassembly.forward(new_cumulative);
    }

    /// Continues a stream behind the messages that the peer has abandoned.
    pub(crate) fn skip(&mut self, skipped: SkippedTo) {
        self.reassembly.skip(skipped);
    }
}

#[cfg(test)]
mod tests {
    use anabranch_wire::{Ssn, StreamId};

    use super::*;

    const FIRST: u64 = 1 << 32;

    fn part(tsn: u64, beginning: bool, ending: bool, payload: &[u8]) -> Fragment<'_> {
        Fragment {
            tsn,
            stream: 0,
            ssn: 0,
            ppid: 0,
            place: None,
            unordered: false,
            beginning,
            ending,
            payload,
        }
    }

    #[test]
    fn full_buffer_accepts_the_in_order_chunk_that_its_content_waits_for() {
        let profile = Profile::rfc9260();
        let mut receiver = Receiver::new(FIRST, 1, 0, 100);
        assert_eq!(receiver.take(part(FIRST + 1, false, true, &[0; 100]), &profile), Ok(DataOutcome::New));
        assert_eq!(receiver.take(part(FIRST, true, false, &[0; 1000]), &profile), Ok(DataOutcome::New));
        assert_eq!(receiver.read(|_, _| (), false).map(|piece| piece.bytes), Some(1100));
    }

    #[test]
    fn a_message_is_read_in_the_parts_it_came_in_each_with_what_follows_it() {
        let profile = Profile::rfc9260();
        let mut receiver = Receiver::new(FIRST, 1, 0, 100);
        assert_eq!(receiver.take(part(FIRST + 1, false, true, b"de"), &profile), Ok(DataOutcome::New));
        assert_eq!(receiver.take(part(FIRST, true, false, b"abc"), &profile), Ok(DataOutcome::New));
        let mut parts = Vec::new();
        let piece = receiver.read(|part, rest| parts.push((part.to_vec(), rest)), false);
        assert_eq!(piece.map(|piece| (piece.bytes, piece.chunks)), Some((5, 2)));
        assert_eq!(parts, [(b"abc".to_vec(), 2), (b"de".to_vec(), 0)]);
    }

    #[test]
    fn without_receive_window_all_data_is_accepted_and_buffer_stays_free() {
        let profile = Profile { shared_receive_window: false, ..Profile::ns2_multipath() };
        let mut receiver = Receiver::new(FIRST, 1, 0, 100);
        for offset in 1..10 {
            let fragment = Fragment { ssn: offset as u16, ..part(FIRST + offset, true, true, &[0; 101]) };
            let taken = receiver.take(fragment, &profile);
            assert_eq!(taken, Ok(DataOutcome::New));
        }
        assert_eq!(receiver.free(&profile).get(), 100);
    }

    #[test]
    fn blocks_are_divided_where_the_application_has_read() {
        let profile = Profile::rfc9260();
        let mut receiver = Receiver::new(FIRST, 4, 0, 10_000);
        // The first TSN is missing. Streams 1 and 2 can be read, stream 0 cannot.
        let piece = |offset, stream, ssn| Fragment { stream, ssn, ..part(FIRST + offset, true, true, b"x") };
        for (offset, stream, ssn) in [(1, 0, 1), (2, 1, 0), (3, 1, 1), (4, 0, 2), (6, 2, 0), (8, 0, 3)] {
            assert_eq!(receiver.take(piece(offset, stream, ssn), &profile), Ok(DataOutcome::New));
        }
        let mut lists = BlocksByDelivery::default();
        receiver.blocks_by_delivery(&mut lists);
        assert_eq!((&lists.unread[..], &lists.read[..]), (&[(2, 5), (7, 7), (9, 9)][..], &[][..]));
        while receiver.read(|_, _| (), false).is_some() {}
        receiver.blocks_by_delivery(&mut lists);
        assert_eq!(lists.unread, [(2, 2), (5, 5), (9, 9)]);
        assert_eq!(lists.read, [(3, 4), (7, 7)]);
        assert_eq!(receiver.take(piece(0, 0, 0), &profile), Ok(DataOutcome::New));
        receiver.blocks_by_delivery(&mut lists);
        assert_eq!((&lists.unread[..], &lists.read[..]), (&[(4, 4)][..], &[(2, 2)][..]));
    }

    #[test]
    fn data_up_to_the_cumulative_tsn_is_in_no_block() {
        let profile = Profile::rfc9260();
        let mut receiver = Receiver::new(FIRST, 4, 0, 10_000);
        let piece = |offset, stream, ssn| Fragment { stream, ssn, ..part(FIRST + offset, true, true, b"x") };
        assert_eq!(receiver.take(piece(1, 1, 0), &profile), Ok(DataOutcome::New));
        assert!(receiver.read(|_, _| (), false).is_some());
        for (offset, stream, ssn) in [(0, 0, 0), (3, 0, 2)] {
            assert_eq!(receiver.take(piece(offset, stream, ssn), &profile), Ok(DataOutcome::New));
        }
        let mut lists = BlocksByDelivery::default();
        receiver.blocks_by_delivery(&mut lists);
        assert_eq!((&lists.unread[..], &lists.read[..]), (&[(2, 2)][..], &[][..]));
    }

    //= docs/rfc9260.txt#section-6.2
    //= type=test
    //# When the receiver's advertised window is 0, the receiver MUST drop any new incoming DATA chunk with a TSN larger
    //# than the largest TSN received so far.
    #[test]
    fn full_buffer_refuses_chunks_if_only_unread_data_waits() {
        let profile = Profile::rfc9260();
        let mut receiver = Receiver::new(FIRST, 1, 0, 100);
        assert_eq!(receiver.take(part(FIRST, true, true, &[0; 100]), &profile), Ok(DataOutcome::New));
        let next = Fragment { ssn: 1, ..part(FIRST + 1, true, true, &[0; 1]) };
        assert_eq!(receiver.take(next, &profile), Ok(DataOutcome::Dropped));
        receiver.read(|_, _| (), false);
        assert_eq!(receiver.take(next, &profile), Ok(DataOutcome::New));
    }

    #[test]
    fn a_full_buffer_takes_next_chunks_up_to_twice_its_size() {
        let profile = Profile::rfc9260();
        let mut receiver = Receiver::new(FIRST, 1, 0, 100);
        assert_eq!(receiver.take(part(FIRST + 3, false, true, &[0; 90]), &profile), Ok(DataOutcome::New));
        assert_eq!(
            receiver.take(part(FIRST + 2, false, false, &[0; 11]), &profile),
            Ok(DataOutcome::Dropped)
        );
        assert!(receiver.is_starved(), "it is not the next one");
        assert_eq!(receiver.take(part(FIRST, true, false, &[0; 60]), &profile), Ok(DataOutcome::New));
        assert!(!receiver.is_starved());
        assert_eq!(
            receiver.take(part(FIRST + 1, false, false, &[0; 51]), &profile),
            Ok(DataOutcome::Dropped)
        );
        assert_eq!(receiver.take(part(FIRST + 1, false, false, &[0; 50]), &profile), Ok(DataOutcome::New));
        assert_eq!((receiver.held_payload_bytes(), receiver.free(&profile).get()), (200, 0));
    }

    #[test]
    fn buffered_and_readable_bytes_are_counted_until_read() {
        let profile = Profile::rfc9260();
        let mut receiver = Receiver::new(FIRST, 2, 0, 100);
        assert!(!receiver.has_message());
        let other = Fragment { stream: 1, ..part(FIRST + 1, true, true, &[0; 20]) };
        assert_eq!(receiver.take(other, &profile), Ok(DataOutcome::New));
        let later = Fragment { ssn: 1, ..part(FIRST + 2, true, true, &[0; 30]) };
        assert_eq!(receiver.take(later, &profile), Ok(DataOutcome::New));
        assert!(receiver.has_message());
        assert_eq!((receiver.held_payload_bytes(), receiver.readable_bytes()), (50, 20));
        assert_eq!((receiver.free(&profile).get(), receiver.buffer().get()), (50, 100));
        assert_eq!(receiver.read(|_, _| (), false).map(|piece| piece.bytes), Some(20));
        assert_eq!((receiver.held_payload_bytes(), receiver.readable_bytes()), (30, 0));
        assert!(!receiver.has_message());
    }

    #[test]
    fn a_buffer_grows_and_never_shrinks() {
        let mut receiver = Receiver::new(FIRST, 1, 0, 100);
        receiver.grow(WindowBytes::new(99));
        assert_eq!(receiver.buffer().get(), 100);
        receiver.grow(WindowBytes::new(150));
        assert_eq!(receiver.free(&Profile::rfc9260()).get(), 150);
    }

    #[test]
    fn chunks_that_come_again_or_from_no_stream_are_acknowledged_and_not_kept() {
        let profile = Profile::rfc9260();
        let mut receiver = Receiver::new(FIRST, 1, 0, 100);
        // RFC 9260 section 6.5: a stream that does not exist is an error, and the TSN counts as arrived.
        let nowhere = Fragment { stream: 1, ..part(FIRST, true, true, b"x") };
        assert_eq!(receiver.take(nowhere, &profile), Err(Violation::NoSuchStream));
        assert_eq!(receiver.tracker.cumulative(), FIRST);
        assert_eq!(receiver.take(nowhere, &profile), Ok(DataOutcome::Duplicate));
        assert_eq!(receiver.tracker.duplicates(), [FIRST]);
        assert_eq!(receiver.held_payload_bytes(), 0);
        // Its message has ended, so the next fragment must begin one.
        let continues = receiver.take(part(FIRST + 1, false, true, b"x"), &profile);
        assert_eq!(continues, Err(Violation::ContinuesNothing));
        assert_eq!(receiver.take(part(FIRST + 1, true, true, b"x"), &profile), Ok(DataOutcome::New));
        assert_eq!(receiver.read(|_, _| (), false).map(|piece| piece.bytes), Some(1));
    }

    #[test]
    fn forward_tsn_makes_messages_behind_the_gap_readable() {
        let profile = Profile::rfc9260();
        let mut receiver = Receiver::new(FIRST, 1, 0, 100);
        let behind = Fragment { ssn: 1, ..part(FIRST + 1, true, true, b"x") };
        assert_eq!(receiver.take(behind, &profile), Ok(DataOutcome::New));
        receiver.forward(FIRST);
        assert_eq!(receiver.tracker.cumulative(), FIRST + 1);
        assert!(!receiver.has_message(), "the sequence number before it has not been skipped");
        receiver.skip(SkippedTo::Ssn(StreamId::new(0), Ssn::new(0)));
        assert_eq!(receiver.read(|_, _| (), false).map(|piece| piece.ssn), Some(1));
    }
}

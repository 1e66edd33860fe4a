//! Messages that wait to become DATA chunks. A chunk is cut, and its TSN assigned, only when its packet is built.

use std::collections::VecDeque;
use std::num::NonZeroU16;

use bytes::Bytes;

use crate::send::data_form::DataForm;
use crate::send::limited::MessageKey;
use crate::send::options::SendOptions;
use crate::send::stream_order::StreamScheduler;
use crate::send::user_messages::{Removed, UserMessages, Waiting};
use crate::stream_set::StreamSet;
use crate::units::ChunkBytes;

/// Next chunk, before it has a TSN.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) payload: Bytes,
    pub(crate) form: DataForm,
    pub(crate) stream: u16,
    /// Message identifier in I-DATA. Its low bits are the SSN in DATA.
    pub(crate) number: u32,
    /// Payload protocol identifier, or the fragment sequence number in a later fragment in I-DATA.
    pub(crate) ppid_or_fsn: u32,
    pub(crate) unordered: bool,
    pub(crate) beginning: bool,
    pub(crate) ending: bool,
    pub(crate) immediate: bool,
    pub(crate) limit: Option<MessageKey>,
}

impl Draft {
    /// Returns the bytes with the chunk header, without padding.
    pub(crate) fn chunk_bytes(&self) -> ChunkBytes {
        ChunkBytes::new(self.form.chunk_len(self.payload.len()) as u64)
    }

    pub(crate) fn ssn(&self) -> u16 {
        self.number as u16
    }
}

/// Source of the next chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    User,
    Urgent,
    KeyManagement,
}

/// Message of the next chunk. Each packet reads it several times, so it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Next {
    lane: Lane,
    /// User bytes that are in no chunk yet; zero if no message waits.
    uncut: usize,
    /// `true` if a copy of the chunk is worth its bytes.
    duplicate: bool,
}

/// Messages of the user in the order of the stream scheduler, ahead of them the urgent ones, and ahead of both the messages of the
/// key management: new keys must not wait for data that uses up the old ones.
///
/// In DATA, fragments of a message have consecutive TSNs (RFC 9260 section 6.9), so a message is cut to its end before the next one
/// is started. In I-DATA, messages on different streams interleave. Lanes may share a stream, which keeps the order of each: a
/// message gets its number when its first chunk is cut.
#[derive(Clone, Debug)]
pub(crate) struct SendQueue {
    user: UserMessages,
    urgent: VecDeque<Waiting>,
    key_management: VecDeque<Waiting>,
    next: Next,
    form: DataForm,
    /// Numbers of the current or next ordered and unordered message of each stream.
    numbers: Vec<[u32; 2]>,
    /// SSN of the first message of an added stream.
    first_ssn: u16,
    /// Number of streams that the peer accepts.
    streams: u16,
    bytes: u64,
}

impl SendQueue {
    pub(crate) fn new(streams: u16, first_ssn: u16, scheduler: StreamScheduler) -> Self {
        //= docs/rfc9260.txt#section-6.5
        //# The Stream Sequence Number in all the outgoing streams MUST start from 0 when the association is established.
        SendQueue {
            user: UserMessages::new(scheduler),
            urgent: VecDeque::new(),
            key_management: VecDeque::new(),
            next: Next { lane: Lane::User, uncut: 0, duplicate: false },
            form: DataForm::Data,
            numbers: vec![[u32::from(first_ssn); 2]; usize::from(streams)],
            first_ssn,
            streams,
            bytes: 0,
        }
    }

    /// Returns the SSN of the next ordered message of a stream; zero for a stream that does not exist.
    pub(crate) fn next_ssn(&self, stream: u16) -> u16 {
        self.numbers.get(usize::from(stream)).map_or(0, |numbers| numbers[0]) as u16
    }

    /// Sets the number of streams that the peer accepts, and withdraws waiting messages on other streams unless a part was sent.
    pub(crate) fn limit_streams(&mut self, streams: u16) -> Vec<Removed> {
        //= docs/rfc9260.txt#section-5.1.1
        //# After the association is initialized, the valid outbound stream identifier range for either endpoint MUST be
        //# 0 to min(local OS, remote MIS) - 1.
        self.streams = self.streams.min(streams);
        // A peer that accepts fewer streams in a second handshake than in its first gets the rest of a message that has begun:
        // the fragments of one message have consecutive TSNs.
        let streams = self.streams;
        self.remove(|user| user.remove_unsent(|message| message.options.stream >= streams))
    }

    /// Removes the user's messages of a stream of which no part was sent, after the last one with `end_ppid`.
    pub(crate) fn discard(&mut self, stream: u16, end_ppid: Option<u32>) -> Vec<Removed> {
        self.remove(|user| {
            let first = user.place_after(stream, end_ppid);
            user.remove_unsent(|message| message.options.stream == stream && message.place >= first)
        })
    }

    /// Removes the last `bytes` user bytes, as if they had never been queued. Returns `false` and changes nothing if this is
    /// impossible (see [`UserMessages::forget_last`]).
    pub(crate) fn forget_last(&mut self, bytes: u64) -> bool {
        let forgotten = self.user.forget_last(bytes);
        if forgotten {
            self.bytes -= bytes;
            self.find_next();
        }
        forgotten
    }

    fn remove(&mut self, from: impl FnOnce(&mut UserMessages) -> Vec<Removed>) -> Vec<Removed> {
        let removed = from(&mut self.user);
        self.find_next();
        self.bytes -= removed.iter().map(|message| message.bytes).sum::<u64>();
        removed
    }

    /// Returns `true` if a message of the user waits on a stream; with a scheduler that orders no streams, on any stream.
    pub(crate) fn has_messages_of(&self, stream: u16) -> bool {
        self.user.has_messages_of(stream)
    }

    pub(crate) fn streams(&self) -> u16 {
        self.streams
    }

    /// Adds streams.
    pub(crate) fn add_streams(&mut self, streams: u16) {
        self.streams = self.streams.saturating_add(streams);
        let known = self.numbers.len().max(usize::from(self.streams));
        self.numbers.resize(known, [u32::from(self.first_ssn); 2]);
    }

    /// Sets the form of the chunks. The queue is new, or contains messages of which no chunk was cut.
    pub(crate) fn set_form(&mut self, form: DataForm) {
        self.form = form;
        self.user.set_interleaving(form == DataForm::IData);
    }

    #[inline]
    pub(crate) fn form(&self) -> DataForm {
        self.form
    }

    /// Resets the numbers of the messages of streams.
    pub(crate) fn reset_ssns(&mut self, streams: &StreamSet) {
        match streams {
            StreamSet::All => {
                self.numbers.fill([0; 2]);
                self.first_ssn = 0;
            }
            StreamSet::Listed(listed) => {
                for stream in listed {
                    if let Some(numbers) = self.numbers.get_mut(usize::from(*stream)) {
                        *numbers = [0; 2];
                    }
                }
            }
        }
    }

    /// Returns the lowest place of a message of the user; `None` while urgent messages wait, which have no place.
    pub(crate) fn first_place(&self) -> Option<u64> {
        self.urgent.is_empty().then(|| self.user.first_place())
    }

    /// Returns the place of the user's next message. Places count messages in the order of the calls that send them.
    pub(crate) fn next_place(&self) -> u64 {
        self.user.next_place()
    }

    pub(crate) fn push(&mut self, payload: Bytes, options: SendOptions, limit: Option<MessageKey>) {
        self.bytes += payload.len() as u64;
        self.user.push(Waiting::new(payload, options, limit));
        self.find_next();
    }

    pub(crate) fn push_key_management(&mut self, payload: Bytes, options: SendOptions) {
        self.bytes += payload.len() as u64;
        self.key_management.push_back(Waiting::new(payload, options, None));
        self.finish_begun();
    }

    pub(crate) fn push_urgent(&mut self, payload: Bytes, options: SendOptions) {
        self.bytes += payload.len() as u64;
        self.urgent.push_back(Waiting::new(payload, options, None));
        self.finish_begun();
    }

    fn find_lane(&self) -> Lane {
        let begun = |lane: &VecDeque<Waiting>| lane.front().is_some_and(|message| message.cut > 0);
        match () {
            () if self.urgent.is_empty() && self.key_management.is_empty() => Lane::User,
            () if self.user.has_begun() => Lane::User,
            () if begun(&self.urgent) => Lane::Urgent,
            () if !self.key_management.is_empty() => Lane::KeyManagement,
            () => Lane::Urgent,
        }
    }

    fn search_next(&self) -> Next {
        let lane = self.find_lane();
        let message = match lane {
            Lane::User => self.user.front(),
            Lane::Urgent => self.urgent.front(),
            Lane::KeyManagement => self.key_management.front(),
        };
        Next {
            lane,
            uncut: message.map_or(0, Waiting::uncut),
            duplicate: message.is_some_and(|message| message.options.duplicate),
        }
    }

    /// Updates the next message after a change of the messages or their order.
    fn find_next(&mut self) {
        self.next = self.search_next();
    }

    fn next_mut(&mut self, lane: Lane) -> Option<&mut Waiting> {
        match lane {
            Lane::User => self.user.front_mut(),
            Lane::Urgent => self.urgent.front_mut(),
            Lane::KeyManagement => self.key_management.front_mut(),
        }
    }

    /// Has a message of the user that has begun sent to its end if the next message of another lane follows it in its stream. Updates
    /// the next message.
    fn finish_begun(&mut self) {
        for message in [self.key_management.front(), self.urgent.front()].into_iter().flatten() {
            let SendOptions { stream, unordered, .. } = message.options;
            self.user.finish_begun_on(stream, unordered);
        }
        self.find_next();
    }

    /// Records that a chunk was cut from the next message of a lane, which is removed if the chunk is its last one.
    fn end_chunk(&mut self, lane: Lane, bytes: usize, ending: bool) {
        match lane {
            Lane::User => self.user.end_chunk(bytes, ending),
            Lane::Urgent if ending => drop(self.urgent.pop_front()),
            Lane::KeyManagement if ending => drop(self.key_management.pop_front()),
            Lane::Urgent | Lane::KeyManagement => {}
        }
        self.finish_begun();
    }

    /// Returns the number of a message that has begun or is next, and advances it if the message ends.
    fn number_of(&mut self, stream: u16, unordered: bool, ending: bool) -> u32 {
        if unordered && self.form == DataForm::Data {
            //= docs/rfc9260.txt#section-6.5
            //# For unordered user messages, the Stream Sequence Number MUST NOT be changed.
            return 0;
        }
        let next = &mut self.numbers[usize::from(stream)][usize::from(unordered)];
        let number = *next;
        //= docs/rfc9260.txt#section-6.5
        //# The Stream Sequence Number of an outgoing stream MUST be incremented by 1 for each ordered user message sent on
        //# that outgoing stream.
        //= docs/rfc9260.txt#section-6.5
        //# In particular, when the Stream Sequence Number reaches the value 65535, the next Stream Sequence Number MUST be
        //# set to 0.
        *next = number.wrapping_add(u32::from(ending));
        number
    }

    /// Sets the priority of a stream for the schedulers that distinguish streams.
    pub(crate) fn set_priority(&mut self, stream: u16, priority: NonZeroU16) {
        self.user.set_priority(stream, priority);
        self.find_next();
    }

    /// Sets the priorities of streams to those of another queue.
    pub(crate) fn adopt_priorities(&mut self, other: &SendQueue) {
        self.user.adopt_priorities(&other.user);
        self.find_next();
    }

    /// Ends the packet to which the latest chunks were added.
    #[inline]
    pub(crate) fn end_packet(&mut self) {
        if self.user.end_packet() {
            self.find_next();
        }
    }

    /// Returns `true` if the stream scheduler permits the next chunk in the current packet.
    #[inline]
    pub(crate) fn shares_packet(&self) -> bool {
        self.user.shares_packet() || self.next.lane != Lane::User
    }

    /// Returns the user bytes of a stream's message at this place that are in no chunk yet.
    pub(crate) fn bytes_at(&self, stream: u16, place: u64) -> u64 {
        self.user.at_place(stream, place).map_or(0, |message| message.uncut() as u64)
    }

    /// Removes a stream's message at this place. If a part of it has left the queue, an empty last fragment is returned: it gets a
    /// TSN too, so that a FORWARD-TSN can pass over the whole message (RFC 3758 section 3.5 A3).
    pub(crate) fn withdraw(&mut self, options: SendOptions, place: u64) -> Option<Draft> {
        let message = self.user.withdraw(options.stream, place)?;
        self.bytes -= message.uncut() as u64;
        self.finish_begun();
        (message.cut > 0).then(|| self.end_of(&message))
    }

    /// Returns the last fragment of a message that has begun, without user data.
    fn end_of(&mut self, message: &Waiting) -> Draft {
        let options = message.options;
        Draft {
            payload: Bytes::new(),
            form: self.form,
            stream: options.stream,
            number: self.number_of(options.stream, options.unordered, true),
            ppid_or_fsn: options.ppid,
            unordered: options.unordered,
            beginning: false,
            ending: true,
            immediate: false,
            limit: message.limit,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the user bytes of the user's unordered messages that are in no chunk yet.
    pub(crate) fn unordered_bytes(&self) -> u64 {
        let unordered = self.user.iter().filter(|message| message.options.unordered);
        unordered.map(|message| message.uncut() as u64).sum()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.next.uncut == 0
    }

    /// Returns the number of user bytes of the next chunk, at most `most`; `None` if no message waits.
    #[inline]
    pub(crate) fn next_payload(&self, most: usize) -> Option<usize> {
        (!self.is_empty()).then(|| self.next.uncut.min(most))
    }

    /// Returns `true` if a copy of the next chunk is worth its bytes ([`SendOptions::duplicate`]).
    #[inline]
    pub(crate) fn next_is_duplicated(&self) -> bool {
        self.next.duplicate
    }

    /// Returns the payload length of the next chunk if it belongs to the key management.
    pub(crate) fn next_key_management(&self, most: usize) -> Option<usize> {
        match self.next.lane {
            Lane::User | Lane::Urgent => None,
            Lane::KeyManagement => self.next_payload(most),
        }
    }

    /// Cuts the next chunk of at most `most` user bytes.
    pub(crate) fn cut(&mut self, most: usize) -> Option<Draft> {
        //= docs/rfc9260.txt#section-3.3.1
        //# This means that the TSNs for each fragment of a fragmented user message MUST be strictly sequential.
        let lane = self.next.lane;
        let form = self.form;
        let message = self.next_mut(lane)?;
        let (start, options, limit) = (message.cut, message.options, message.limit);
        let fsn = message.fragments;
        message.fragments = fsn.wrapping_add(1);
        //= docs/rfc9260.txt#section-6
        //# 1)  When converting user messages into DATA chunks, an endpoint MUST fragment large user messages into
        //# multiple DATA chunks.
        //= docs/rfc9260.txt#section-6.9
        //# If an endpoint supports fragmentation, it MUST fragment a user message if the size of the user message to be
        //# sent causes the outbound SCTP packet size to exceed the current PMTU.
        //= docs/rfc9260.txt#section-6.9
        //# 1)  The data sender MUST break the user message into a series of DATA chunks.
        let end = message.payload.len().min(start + most);
        message.cut = end;
        let ending = end == message.payload.len();
        // The last chunk takes over the message's reference.
        let payload =
            if ending { message.payload.split_off(start) } else { message.payload.slice(start..end) };
        //= docs/rfc9260.txt#section-3.3.1
        //# When a user message is fragmented by SCTP for transport, the same Stream Sequence Number MUST be carried in
        //# each of the fragments of the message.
        let number = self.number_of(options.stream, options.unordered, ending);
        let draft = Draft {
            payload,
            form,
            stream: options.stream,
            number,
            //= docs/rfc9260.txt#section-3.3.1
            //# This field MUST be sent even in fragmented DATA chunks (to make sure it is available for agents in the
            //# middle of the network).
            ppid_or_fsn: if form == DataForm::IData && start > 0 { fsn } else { options.ppid },
            //= docs/rfc9260.txt#section-3.3.1
            //# If an unordered user message is fragmented, each fragment of the message MUST have its U bit set to 1.
            //= docs/rfc9260.txt#section-6.9
            //# If the user indicates that the user message is to be delivered using unordered delivery, then the U flag
            //# of each DATA chunk of the user message MUST be set to 1.
            unordered: options.unordered,
            //= docs/rfc9260.txt#section-3.3.1
            //# An unfragmented user message MUST have both the B and E bits set to 1.
            //= docs/rfc9260.txt#section-6.9
            //# 3)  The transmitter MUST also set the B/E bits of the first DATA chunk in the series to 10, the B/E bits
            //# of the last DATA chunk in the series to 01, and the B/E bits of all other DATA chunks in the series to 00.
            beginning: start == 0,
            ending,
            immediate: options.immediate && ending,
            limit,
        };
        self.bytes -= (end - start) as u64;
        self.end_chunk(lane, end - start, ending);
        Some(draft)
    }

    /// Returns the sum for [`bytes`](Self::bytes), recounted.
    pub(crate) fn recounted_bytes(&self) -> u64 {
        let all = self.user.iter().chain(&self.urgent).chain(&self.key_management);
        all.map(|message| message.uncut() as u64).sum()
    }

    /// Compares the running total and the next message with a recount.
    ///
    /// # Panics
    /// Panics if they differ.
    pub(crate) fn check(&self) {
        assert_eq!(self.bytes, self.recounted_bytes(), "queued bytes");
        assert_eq!(self.next, self.search_next(), "next message");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(streams: u16, first_ssn: u16) -> SendQueue {
        SendQueue::new(streams, first_ssn, StreamScheduler::default())
    }

    //= docs/rfc9260.txt#section-3.3.1
    //= type=test
    //# When a user message is fragmented by SCTP for transport, the same Stream Sequence Number MUST be carried in each
    //# of the fragments of the message.
    //= docs/rfc9260.txt#section-6
    //= type=test
    //# 1)  When converting user messages into DATA chunks, an endpoint MUST fragment large user messages into multiple
    //# DATA chunks.
    //= docs/rfc9260.txt#section-6.5
    //= type=test
    //# The Stream Sequence Number of an outgoing stream MUST be incremented by 1 for each ordered user message sent on
    //# that outgoing stream.
    //= docs/rfc9260.txt#section-6.9
    //= type=test
    //# 1)  The data sender MUST break the user message into a series of DATA chunks.
    //= docs/rfc9260.txt#section-6.9
    //= type=test
    //# 3)  The transmitter MUST also set the B/E bits of the first DATA chunk in the series to 10, the B/E bits of the
    //# last DATA chunk in the series to 01, and the B/E bits of all other DATA chunks in the series to 00.
    #[test]
    fn fragments_share_an_ssn_and_the_next_message_gets_the_next() {
        let mut queue = queue(2, u16::MAX);
        let options = SendOptions { stream: 1, ppid: 7, immediate: true, ..SendOptions::default() };
        queue.push(Bytes::from_static(b"abcde"), options, None);
        queue.push(Bytes::from_static(b"x"), SendOptions { immediate: false, ..options }, None);
        let parts: Vec<_> = std::iter::from_fn(|| queue.cut(2)).collect();
        let shape: Vec<_> =
            parts.iter().map(|d| (&d.payload[..], d.ssn(), d.beginning, d.ending, d.immediate)).collect();
        assert_eq!(
            shape,
            [
                (&b"ab"[..], u16::MAX, true, false, false),
                (&b"cd"[..], u16::MAX, false, false, false),
                (&b"e"[..], u16::MAX, false, true, true),
                (&b"x"[..], 0, true, true, false),
            ]
        );
        assert_eq!(queue.bytes(), 0);
    }

    //= docs/rfc9260.txt#section-6.5
    //= type=test
    //# For unordered user messages, the Stream Sequence Number MUST NOT be changed.
    #[test]
    fn unordered_messages_use_no_ssn() {
        let mut queue = queue(1, 5);
        queue.push(Bytes::from_static(b"u"), SendOptions { unordered: true, ..SendOptions::default() }, None);
        queue.push(Bytes::from_static(b"o"), SendOptions::default(), None);
        assert_eq!(queue.cut(10).map(|d| d.ssn()), Some(0));
        assert_eq!(queue.cut(10).map(|d| d.ssn()), Some(5));
    }

    #[test]
    fn forgotten_bytes_leave_the_queue_of_a_shorter_content() {
        let (mut long, mut short) = (queue(1, 0), queue(1, 0));
        for (queue, messages) in [(&mut long, ["abc", "def", "ghi"]), (&mut short, ["abc", "d", ""])] {
            for message in messages.into_iter().filter(|message| !message.is_empty()) {
                queue.push(Bytes::from_static(message.as_bytes()), SendOptions::default(), None);
            }
        }
        assert!(long.forget_last(5));
        assert_eq!(long.bytes(), short.bytes());
        let next = |queue: &mut SendQueue| queue.cut(10).map(|draft| (draft.payload.clone(), draft.number));
        for _ in 0..3 {
            assert_eq!(next(&mut long), next(&mut short));
        }
    }

    #[test]
    fn forgetting_a_cut_message_or_all_data_changes_nothing() {
        let mut queue = queue(1, 0);
        for message in [&b"abc"[..], b"def"] {
            queue.push(Bytes::from_static(message), SendOptions::default(), None);
        }
        assert!(!queue.forget_last(6) && !queue.forget_last(7));
        queue.cut(1);
        assert!(!queue.forget_last(4));
        assert_eq!(queue.bytes(), 5);
        assert_eq!(queue.cut(10).map(|draft| draft.payload), Some(Bytes::from_static(b"bc")));
        assert_eq!(queue.cut(10).map(|draft| draft.payload), Some(Bytes::from_static(b"def")));
    }

    #[test]
    fn queue_that_distinguishes_streams_forgets_nothing() {
        let mut queue = SendQueue::new(1, 0, StreamScheduler::RoundRobin);
        for message in [&b"abc"[..], b"def"] {
            queue.push(Bytes::from_static(message), SendOptions::default(), None);
        }
        assert!(!queue.forget_last(1));
        assert_eq!(queue.bytes(), 6);
    }

    #[test]
    fn unordered_bytes_are_those_in_no_chunk() {
        let mut queue = queue(2, 0);
        queue.push(
            Bytes::from_static(b"unordered"),
            SendOptions { unordered: true, ..SendOptions::default() },
            None,
        );
        queue.push(Bytes::from_static(b"ordered"), SendOptions { stream: 1, ..SendOptions::default() }, None);
        assert_eq!((queue.unordered_bytes(), queue.bytes()), (9, 16));
        queue.cut(4);
        assert_eq!((queue.unordered_bytes(), queue.bytes()), (5, 12));
    }

    //= docs/rfc9260.txt#section-5.1.1
    //= type=test
    //# After the association is initialized, the valid outbound stream identifier range for either endpoint MUST be 0 to
    //# min(local OS, remote MIS) - 1.
    #[test]
    fn messages_on_streams_that_the_peer_does_not_take_leave_the_queue() {
        let mut queue = queue(4, 5);
        for stream in [3, 0, 2, 1, 3] {
            queue.push(Bytes::from_static(b"ab"), SendOptions { stream, ..SendOptions::default() }, None);
        }
        let refused: Vec<_> = queue.limit_streams(2).iter().map(|r| (r.options.stream, r.bytes)).collect();
        assert_eq!(refused, [(3, 2), (2, 2), (3, 2)]);
        assert_eq!((queue.streams(), queue.bytes(), queue.recounted_bytes()), (2, 4, 4));
        let sent: Vec<_> = std::iter::from_fn(|| queue.cut(9)).map(|d| (d.stream, d.ssn())).collect();
        assert_eq!(sent, [(0, 5), (1, 5)]);
        assert!(queue.is_empty());
    }

    #[test]
    fn begun_message_continues_when_a_second_handshake_drops_its_stream() {
        let mut queue = queue(2, 5);
        for _ in 0..2 {
            queue.push(Bytes::from_static(b"ab"), SendOptions { stream: 1, ..SendOptions::default() }, None);
        }
        assert_eq!(queue.cut(1).map(|d| d.ssn()), Some(5));
        assert_eq!(queue.limit_streams(1).len(), 1, "the second one has not begun");
        assert_eq!(queue.cut(9).map(|d| (d.ssn(), d.ending)), Some((5, true)));
        assert!(queue.is_empty());
    }

    #[test]
    fn abandoned_unsent_message_uses_no_ssn() {
        let mut queue = queue(1, 5);
        for payload in [&b"abc"[..], b"de", b"f", b"gh"] {
            queue.push(Bytes::from_static(payload), SendOptions::default(), None);
        }
        assert!(queue.withdraw(SendOptions::default(), 1).is_none(), "nothing of it has left");
        assert!(queue.withdraw(SendOptions::default(), 2).is_none());
        assert_eq!((queue.bytes(), queue.bytes_at(0, 1)), (5, 0));
        let sent: Vec<_> =
            std::iter::from_fn(|| queue.cut(9)).map(|d| (d.payload.clone(), d.ssn())).collect();
        assert_eq!(sent, [(Bytes::from_static(b"abc"), 5), (Bytes::from_static(b"gh"), 6)]);
        assert_eq!((queue.is_empty(), queue.next_place()), (true, 4));
    }

    #[test]
    fn abandoned_partly_sent_message_keeps_an_end_with_its_ssn() {
        let mut queue = queue(1, u16::MAX);
        queue.push(Bytes::from_static(b"abcde"), SendOptions::default(), None);
        queue.push(Bytes::from_static(b"f"), SendOptions::default(), None);
        assert_eq!(queue.cut(2).map(|d| d.ssn()), Some(u16::MAX));
        let end = queue.withdraw(SendOptions::default(), 0).expect("two bytes have left");
        assert_eq!((end.ssn(), end.beginning, end.ending, end.payload.len()), (u16::MAX, false, true, 0));
        assert_eq!((queue.bytes(), queue.cut(2).map(|d| d.ssn())), (1, Some(0)));
    }

    #[test]
    fn key_management_precedes_all_but_a_partly_sent_message() {
        let mut queue = queue(1, 5);
        let push = |queue: &mut SendQueue, payload| queue.push(payload, SendOptions::default(), None);
        push(&mut queue, Bytes::from_static(b"abcd"));
        push(&mut queue, Bytes::from_static(b"e"));
        assert_eq!(queue.cut(2).map(|d| (d.ssn(), d.ending)), Some((5, false)));
        for payload in [&b"KLM"[..], b"N"] {
            queue.push_key_management(Bytes::from_static(payload), SendOptions::default());
        }
        assert_eq!((queue.bytes(), queue.recounted_bytes(), queue.next_payload(9)), (7, 7, Some(2)));
        let sent: Vec<_> =
            std::iter::from_fn(|| queue.cut(2)).map(|d| (d.payload.clone(), d.ssn())).collect();
        let expected = [(&b"cd"[..], 5), (b"KL", 6), (b"M", 6), (b"N", 7), (b"e", 8)];
        assert!(sent.iter().map(|(payload, ssn)| (&payload[..], *ssn)).eq(expected), "{sent:?}");
        assert!(queue.is_empty());
        assert_eq!((queue.bytes(), queue.next_place()), (0, 2));
    }

    #[test]
    fn urgent_messages_precede_those_of_the_user_but_a_partly_sent_one() {
        let mut queue = queue(1, 5);
        queue.push(Bytes::from_static(b"abc"), SendOptions::default(), None);
        queue.push(Bytes::from_static(b"d"), SendOptions::default(), None);
        assert_eq!(queue.cut(2).map(|d| d.ssn()), Some(5));
        queue.push_urgent(Bytes::from_static(b"UVW"), SendOptions::default());
        assert_eq!(queue.cut(2).map(|d| d.payload), Some(Bytes::from_static(b"c")));
        assert_eq!(queue.cut(2).map(|d| d.payload), Some(Bytes::from_static(b"UV")));
        queue.push_key_management(Bytes::from_static(b"K"), SendOptions::default());
        queue
            .push_urgent(Bytes::from_static(b"X"), SendOptions { unordered: true, ..SendOptions::default() });
        assert_eq!((queue.bytes(), queue.recounted_bytes()), (4, 4));
        let sent: Vec<_> =
            std::iter::from_fn(|| queue.cut(2)).map(|d| (d.payload.clone(), d.ssn())).collect();
        let expected = [(&b"W"[..], 6), (b"K", 7), (b"X", 0), (b"d", 8)];
        assert!(sent.iter().map(|(payload, ssn)| (&payload[..], *ssn)).eq(expected), "{sent:?}");
        assert!(queue.is_empty());
    }

    #[test]
    fn a_message_of_the_key_management_that_has_begun_is_cut_to_its_end() {
        let mut queue = queue(1, 0);
        queue.push_key_management(Bytes::from_static(b"KLM"), SendOptions::default());
        assert_eq!(queue.cut(1).map(|d| d.ending), Some(false));
        queue.push(Bytes::from_static(b"a"), SendOptions::default(), None);
        assert!(!queue.is_empty());
        let sent: Vec<_> =
            std::iter::from_fn(|| queue.cut(1)).map(|d| (d.payload.clone(), d.ssn())).collect();
        assert!(sent.iter().map(|(payload, ssn)| (&payload[..], *ssn)).eq([
            (&b"L"[..], 0),
            (b"M", 0),
            (b"a", 1)
        ]));
    }

    #[test]
    fn reset_and_added_streams_start_with_their_first_number() {
        let mut queue = queue(2, 5);
        let numbers = |queue: &mut SendQueue| {
            for stream in 0..queue.streams() {
                queue.push(Bytes::from_static(b"a"), SendOptions { stream, ..SendOptions::default() }, None);
            }
            std::iter::from_fn(|| queue.cut(9)).map(|d| d.ssn()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&mut queue), [5, 5]);
        queue.reset_ssns(&StreamSet::of([1, 7]));
        queue.add_streams(1);
        assert_eq!(numbers(&mut queue), [6, 0, 5]);
        queue.reset_ssns(&StreamSet::All);
        queue.add_streams(1);
        assert_eq!(numbers(&mut queue), [0, 0, 0, 0]);
        queue.add_streams(u16::MAX);
        assert_eq!(queue.streams(), u16::MAX);
    }

    /// Queues messages on streams, each a byte with the number of its stream and a byte that counts the stream's messages.
    fn push_on(queue: &mut SendQueue, streams: &[u16]) {
        let mut counts = [0; 8];
        for &stream in streams {
            let payload = Bytes::from(vec![stream as u8, counts[usize::from(stream)]]);
            counts[usize::from(stream)] += 1;
            queue.push(payload, SendOptions { stream, ..SendOptions::default() }, None);
        }
    }

    #[test]
    fn every_scheduler_sends_whole_messages_in_stream_order() {
        for scheduler in StreamScheduler::ALL {
            let mut queue = SendQueue::new(4, 7, scheduler);
            push_on(&mut queue, &[3, 3, 1, 0, 1, 3]);
            let drafts: Vec<_> = std::iter::from_fn(|| {
                queue.check();
                let draft = queue.cut(1);
                queue.check();
                queue.end_packet();
                draft
            })
            .collect();
            assert_eq!(drafts.len(), 12, "{scheduler:?}");
            for (first, second) in drafts.as_chunks::<2>().0.iter().map(|[first, second]| (first, second)) {
                assert!(first.beginning && second.ending, "{scheduler:?}");
                assert_eq!((first.stream, first.ssn()), (second.stream, second.ssn()), "{scheduler:?}");
                assert_eq!(second.ssn(), 7 + u16::from(second.payload[0]), "{scheduler:?}");
            }
            assert_eq!((queue.bytes(), queue.first_place()), (0, Some(6)), "{scheduler:?}");
            assert!(queue.is_empty());
        }
    }

    #[test]
    fn larger_priority_overtakes_all_but_a_partly_sent_message() {
        let mut queue = SendQueue::new(4, 0, StreamScheduler::Priority);
        queue.set_priority(2, NonZeroU16::MAX);
        push_on(&mut queue, &[0, 0]);
        assert_eq!(queue.cut(1).map(|draft| draft.stream), Some(0));
        push_on(&mut queue, &[2]);
        queue.push_urgent(Bytes::from_static(b"U"), SendOptions { stream: 1, ..SendOptions::default() });
        queue.check();
        let streams: Vec<_> = std::iter::from_fn(|| queue.cut(9)).map(|draft| draft.stream).collect();
        assert_eq!(streams, [0, 1, 2, 0]);
    }

    #[test]
    fn places_count_calls_and_first_place_waits_for_overtaken_messages() {
        let mut queue = SendQueue::new(4, 0, StreamScheduler::Priority);
        queue.set_priority(2, NonZeroU16::MAX);
        push_on(&mut queue, &[1, 2, 2]);
        assert_eq!((queue.first_place(), queue.next_place()), (Some(0), 3));
        queue.cut(9);
        queue.cut(9);
        assert_eq!(queue.first_place(), Some(0), "the first message waits");
        queue.cut(9);
        assert_eq!(queue.first_place(), Some(3));
    }

    #[test]
    fn withdrawn_message_ends_the_turn_of_its_stream() {
        for scheduler in StreamScheduler::ALL {
            let mut queue = SendQueue::new(4, 0, scheduler);
            push_on(&mut queue, &[1, 1, 2]);
            let options = SendOptions { stream: 1, ..SendOptions::default() };
            assert_eq!(queue.cut(1).map(|draft| draft.stream), Some(1), "{scheduler:?}");
            let end = queue.withdraw(options, 0).expect("one byte has left");
            assert_eq!((end.stream, end.ssn(), end.ending), (1, 0, true));
            assert!(queue.withdraw(options, 1).is_none(), "nothing of it has left");
            assert_eq!((queue.bytes(), queue.bytes_at(1, 1), queue.bytes_at(2, 2)), (2, 0, 2));
            queue.check();
            assert_eq!(queue.cut(9).map(|draft| draft.stream), Some(2), "{scheduler:?}");
            assert!(queue.is_empty(), "{scheduler:?}");
        }
    }

    #[test]
    fn refused_streams_leave_every_scheduler() {
        for scheduler in StreamScheduler::ALL {
            let mut queue = SendQueue::new(4, 0, scheduler);
            push_on(&mut queue, &[3, 0, 2, 3]);
            assert_eq!(queue.limit_streams(2).len(), 3);
            assert_eq!(queue.bytes(), 2);
            queue.check();
            assert_eq!(queue.cut(9).map(|draft| draft.stream), Some(0));
            assert!(queue.is_empty(), "{scheduler:?}");
        }
    }

    #[test]
    fn round_robin_per_packet_adds_no_chunk_of_another_stream() {
        let mut queue = SendQueue::new(4, 0, StreamScheduler::RoundRobinPerPacket);
        push_on(&mut queue, &[1, 2, 1]);
        queue.cut(9);
        assert!(queue.shares_packet());
        queue.cut(9);
        assert!(!queue.shares_packet(), "the next message belongs to stream 2");
        queue.push_urgent(Bytes::from_static(b"U"), SendOptions::default());
        assert!(queue.shares_packet(), "urgent messages are not scheduled");
        queue.cut(9);
        queue.check();
        queue.end_packet();
        queue.check();
        assert!(queue.shares_packet());
        assert_eq!(queue.cut(9).map(|draft| draft.stream), Some(2));
    }

    #[test]
    fn priorities_survive_a_restart_of_the_queue() {
        let mut former = SendQueue::new(4, 0, StreamScheduler::Priority);
        former.set_priority(2, NonZeroU16::MAX);
        let mut queue = SendQueue::new(4, 0, StreamScheduler::Priority);
        queue.adopt_priorities(&former);
        push_on(&mut queue, &[1, 2]);
        assert_eq!(queue.cut(9).map(|draft| draft.stream), Some(2));
    }

    /// Returns a queue in I-DATA form.
    fn interleaving(scheduler: StreamScheduler) -> SendQueue {
        let mut queue = SendQueue::new(4, 0, scheduler);
        queue.set_form(DataForm::IData);
        queue
    }

    /// Cuts everything, and returns stream, message identifier and fragment sequence number of each chunk.
    fn places(queue: &mut SendQueue, most: usize) -> Vec<(u16, u32, u32)> {
        let place = |draft: Draft| {
            let fsn = if draft.beginning { 0 } else { draft.ppid_or_fsn };
            (draft.stream, draft.number, fsn)
        };
        std::iter::from_fn(|| queue.cut(most)).map(place).collect()
    }

    #[test]
    fn chunks_of_streams_interleave_and_number_their_fragments() {
        let mut queue = interleaving(StreamScheduler::RoundRobin);
        for (stream, payload) in [(1, &b"abc"[..]), (2, b"de"), (1, b"f")] {
            queue.push(
                Bytes::from_static(payload),
                SendOptions { stream, ppid: 9, ..SendOptions::default() },
                None,
            );
        }
        let chunks = places(&mut queue, 1);
        assert_eq!(chunks, [(1, 0, 0), (2, 0, 0), (1, 0, 1), (2, 0, 1), (1, 0, 2), (1, 1, 0)]);
        assert!(queue.is_empty());
    }

    #[test]
    fn larger_priority_interrupts_a_message_that_has_begun() {
        let mut queue = interleaving(StreamScheduler::Priority);
        queue.set_priority(2, NonZeroU16::MAX);
        push_on(&mut queue, &[1]);
        assert_eq!(queue.cut(1).map(|draft| draft.stream), Some(1));
        push_on(&mut queue, &[2]);
        assert_eq!(places(&mut queue, 1), [(2, 0, 0), (2, 0, 1), (1, 0, 1)]);
    }

    #[test]
    fn fair_stream_with_large_messages_gets_no_more_chunks() {
        let mut queue = interleaving(StreamScheduler::FairCapacity);
        for (stream, bytes, count) in [(1, 100, 1), (2, 10, 10)] {
            for _ in 0..count {
                queue.push(
                    Bytes::from(vec![0; bytes]),
                    SendOptions { stream, ..SendOptions::default() },
                    None,
                );
            }
        }
        let first: Vec<u16> =
            places(&mut queue, 10).into_iter().map(|(stream, _, _)| stream).take(10).collect();
        assert_eq!(first.iter().filter(|&&stream| stream == 1).count(), 5, "{first:?}");
    }

    #[test]
    fn first_come_first_served_does_not_interleave() {
        let mut queue = interleaving(StreamScheduler::default());
        push_on(&mut queue, &[1, 2, 1]);
        assert_eq!(places(&mut queue, 1), [(1, 0, 0), (1, 0, 1), (2, 0, 0), (2, 0, 1), (1, 1, 0), (1, 1, 1)]);
    }

    #[test]
    fn ordered_and_unordered_messages_are_numbered_apart() {
        let mut queue = interleaving(StreamScheduler::default());
        for unordered in [false, true, true, false] {
            queue.push(Bytes::from_static(b"a"), SendOptions { unordered, ..SendOptions::default() }, None);
        }
        let numbers: Vec<_> = std::iter::from_fn(|| queue.cut(9)).map(|d| (d.unordered, d.number)).collect();
        assert_eq!(numbers, [(false, 0), (true, 0), (true, 1), (false, 1)]);
    }

    #[test]
    fn urgent_message_follows_only_a_begun_one_of_its_own_stream() {
        for (unordered, urgent_at) in [(false, 1), (true, 0)] {
            let mut queue = interleaving(StreamScheduler::RoundRobin);
            push_on(&mut queue, &[1, 2]);
            assert_eq!(queue.cut(1).map(|draft| draft.stream), Some(1));
            let options = SendOptions { stream: 1, unordered, ..SendOptions::default() };
            queue.push_urgent(Bytes::from_static(b"U"), options);
            let payloads: Vec<_> = std::iter::from_fn(|| queue.cut(1)).map(|draft| draft.payload).collect();
            assert_eq!(payloads.iter().position(|payload| payload == "U"), Some(urgent_at), "{payloads:?}");
            assert_eq!(payloads.len(), 4);
        }
    }

    #[test]
    fn abandoned_interleaved_message_keeps_an_end_with_its_number() {
        let mut queue = interleaving(StreamScheduler::RoundRobin);
        push_on(&mut queue, &[1, 2, 1]);
        assert_eq!(queue.cut(1).map(|draft| draft.stream), Some(1));
        assert_eq!(queue.cut(1).map(|draft| draft.stream), Some(2));
        let end = queue
            .withdraw(SendOptions { stream: 1, ..SendOptions::default() }, 0)
            .expect("one byte has left");
        assert_eq!((end.stream, end.number, end.ending, end.form), (1, 0, true, DataForm::IData));
        assert_eq!(queue.bytes(), queue.recounted_bytes());
        let mut rest = places(&mut queue, 1);
        rest.sort_unstable();
        assert_eq!(rest, [(1, 1, 0), (1, 1, 1), (2, 0, 1)]);
    }

    #[test]
    fn reset_numbers_both_orders_from_zero() {
        let mut queue = interleaving(StreamScheduler::default());
        for unordered in [false, true] {
            queue.push(Bytes::from_static(b"a"), SendOptions { unordered, ..SendOptions::default() }, None);
            queue.cut(9);
        }
        queue.reset_ssns(&StreamSet::All);
        for unordered in [false, true] {
            queue.push(Bytes::from_static(b"a"), SendOptions { unordered, ..SendOptions::default() }, None);
        }
        assert_eq!(places(&mut queue, 9), [(0, 0, 0), (0, 0, 0)]);
    }

    #[test]
    fn discarded_are_unsent_messages_of_one_stream_after_its_end() {
        for scheduler in [StreamScheduler::default(), StreamScheduler::RoundRobin] {
            let mut queue = SendQueue::new(3, 0, scheduler);
            for (stream, ppid) in [(1, 0), (1, 9), (1, 0), (2, 0), (1, 0)] {
                let options = SendOptions { stream, ppid, ..SendOptions::default() };
                queue.push(Bytes::from_static(b"abc"), options, None);
            }
            let discarded: Vec<u64> = queue.discard(1, Some(9)).iter().map(|message| message.bytes).collect();
            assert_eq!(discarded, [3, 3]);
            assert_eq!(queue.cut(1).map(|draft| draft.stream), Some(1));
            assert_eq!(queue.discard(1, None).len(), 1, "a part of the first message was sent");
            assert_eq!(queue.bytes(), queue.recounted_bytes());
            let rest: Vec<_> =
                std::iter::from_fn(|| queue.cut(9)).map(|d| (d.stream, d.payload.len())).collect();
            assert_eq!(rest, [(1, 2), (2, 3)]);
            assert!(!queue.has_messages_of(1));
        }
    }
}

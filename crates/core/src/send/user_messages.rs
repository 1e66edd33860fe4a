//! Messages of the user that wait to become DATA chunks, in the order of the stream scheduler.

use std::collections::VecDeque;
use std::num::NonZeroU16;

use bytes::Bytes;

use crate::send::limited::MessageKey;
use crate::send::options::SendOptions;
use crate::send::stream_order::{StreamOrder, StreamScheduler};

/// Message that was removed before a part of it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Removed {
    pub(crate) options: SendOptions,
    pub(crate) limit: Option<MessageKey>,
    pub(crate) bytes: u64,
}

/// Message that waits in the queue.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) payload: Bytes,
    /// Bytes that are in chunks already.
    pub(super) cut: usize,
    /// Number of these chunks.
    pub(super) fragments: u32,
    pub(super) options: SendOptions,
    /// Key of the message if it has a limit.
    pub(super) limit: Option<MessageKey>,
    /// Number of the user's messages that were queued before it.
    pub(super) place: u64,
}

impl Waiting {
    /// Returns a message without a place.
    pub(super) fn new(payload: Bytes, options: SendOptions, limit: Option<MessageKey>) -> Self {
        Waiting { payload, cut: 0, fragments: 0, options, limit, place: 0 }
    }

    /// Returns the bytes that are in no chunk yet.
    pub(super) fn uncut(&self) -> usize {
        self.payload.len() - self.cut
    }

    /// Returns `true` if the message was abandoned; its entry keeps the order of the others until it is the first one.
    fn is_withdrawn(&self) -> bool {
        self.payload.is_empty()
    }
}

/// Waiting messages of the user.
#[derive(Clone, Debug)]
pub(super) struct UserMessages {
    /// Messages of each stream, in the order of their places; of all streams in the first list without `order`. The first one of a
    /// list is never a withdrawn one.
    lists: Vec<VecDeque<Waiting>>,
    /// Streams with messages; `None` if messages are sent in the order of their places.
    order: Option<StreamOrder>,
    /// List whose first message is cut in part and precedes all others: in DATA, the fragments of a message have consecutive TSNs
    /// (RFC 9260 section 6.9).
    begun: Option<u16>,
    /// `true` if messages on different streams interleave.
    interleaves: bool,
    next_place: u64,
}

impl UserMessages {
    pub(super) fn new(scheduler: StreamScheduler) -> Self {
        let order = StreamOrder::new(scheduler);
        UserMessages { lists: vec![VecDeque::new()], order, begun: None, interleaves: false, next_place: 0 }
    }

    /// Lets messages on different streams interleave, unless they are sent in the order of their places.
    pub(super) fn set_interleaving(&mut self, interleaves: bool) {
        self.interleaves = interleaves && self.order.is_some();
    }

    /// Returns the list of a stream.
    fn list_of(&self, stream: u16) -> u16 {
        if self.order.is_some() { stream } else { 0 }
    }

    /// Returns the list of the next chunk, or any list if no message waits.
    #[inline]
    fn next_list(&self) -> u16 {
        match &self.order {
            None => 0,
            Some(order) => self.begun.or_else(|| order.first()).unwrap_or(0),
        }
    }

    /// Returns the message of the next chunk.
    #[inline]
    pub(super) fn front(&self) -> Option<&Waiting> {
        self.lists.get(usize::from(self.next_list()))?.front()
    }

    /// Returns the message of the next chunk. The caller reports a change with [`end_chunk`](Self::end_chunk).
    #[inline]
    pub(super) fn front_mut(&mut self) -> Option<&mut Waiting> {
        let list = usize::from(self.next_list());
        self.lists.get_mut(list)?.front_mut()
    }

    /// Records that a chunk of `bytes` user bytes was cut from the front message, and removes the message if it is `ending`.
    pub(super) fn end_chunk(&mut self, bytes: usize, ending: bool) {
        let list = self.next_list();
        if let Some(order) = &mut self.order {
            order.note_chunk(list);
        }
        if ending {
            let messages = &mut self.lists[usize::from(list)];
            let message_bytes = messages.front().map_or(0, |message| message.cut);
            messages.pop_front();
            self.begun = None;
            self.end_message(list, if self.interleaves { bytes } else { message_bytes } as u64);
        } else if !self.interleaves {
            self.begun = Some(list);
        } else if let Some(order) = &mut self.order {
            order.end_turn(list, bytes as u64);
        }
    }

    /// Has the first message of a stream sent to its end before others, if a part was cut and it has this U bit.
    pub(super) fn finish_begun_on(&mut self, stream: u16, unordered: bool) {
        let first = self.lists.get(usize::from(stream)).and_then(VecDeque::front);
        let has_begun = first.is_some_and(|first| first.cut > 0 && first.options.unordered == unordered);
        if self.interleaves && has_begun {
            self.begun.get_or_insert(stream);
        }
    }

    /// Removes withdrawn messages at the front of a list, and ends the turn of its stream.
    fn end_message(&mut self, list: u16, bytes: u64) {
        let messages = &mut self.lists[usize::from(list)];
        while messages.front().is_some_and(Waiting::is_withdrawn) {
            messages.pop_front();
        }
        let Some(order) = &mut self.order else { return };
        if bytes > 0 {
            order.end_turn(list, bytes);
        }
        if messages.is_empty() {
            order.deactivate(list);
        }
    }

    /// Returns `true` if a part of the front message was cut.
    #[inline]
    pub(super) fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Returns the lowest place of a message, or the next place if no message waits.
    pub(super) fn first_place(&self) -> u64 {
        let places = self.lists.iter().filter_map(|list| list.front()).map(|message| message.place);
        places.min().unwrap_or(self.next_place)
    }

    /// Returns the place of the next message.
    pub(super) fn next_place(&self) -> u64 {
        self.next_place
    }

    pub(super) fn push(&mut self, message: Waiting) {
        let stream = message.options.stream;
        let index = usize::from(self.list_of(stream));
        if self.lists.len() <= index {
            self.lists.resize_with(index + 1, VecDeque::new);
        }
        self.lists[index].push_back(Waiting { place: self.next_place, ..message });
        self.next_place += 1;
        if let Some(order) = &mut self.order {
            order.activate(stream);
        }
    }

    fn index_of(&self, stream: u16, place: u64) -> Option<(u16, usize)> {
        let list = self.list_of(stream);
        let messages = self.lists.get(usize::from(list))?;
        let at = messages.binary_search_by_key(&place, |message| message.place).ok()?;
        Some((list, at))
    }

    /// Returns the message of a stream at this place.
    pub(super) fn at_place(&self, stream: u16, place: u64) -> Option<&Waiting> {
        let (list, at) = self.index_of(stream, place)?;
        self.lists[usize::from(list)].get(at)
    }

    /// Removes and returns the message of a stream at this place.
    pub(super) fn withdraw(&mut self, stream: u16, place: u64) -> Option<Waiting> {
        let (list, at) = self.index_of(stream, place)?;
        let message = &mut self.lists[usize::from(list)][at];
        let withdrawn = Waiting { payload: std::mem::take(&mut message.payload), ..*message };
        message.cut = 0;
        if withdrawn.cut > 0 {
            self.begun.take_if(|begun| *begun == list);
        }
        // The turns of an interleaved message ended with its chunks.
        self.end_message(list, if self.interleaves { 0 } else { withdrawn.cut } as u64);
        Some(withdrawn)
    }

    /// Removes the messages that `matches` selects, unless a part was cut.
    pub(super) fn remove_unsent(&mut self, matches: impl Fn(&Waiting) -> bool) -> Vec<Removed> {
        let mut removed = Vec::new();
        for list in 0..self.lists.len() {
            for message in &mut self.lists[list] {
                if message.cut > 0 || message.is_withdrawn() || !matches(message) {
                    continue;
                }
                let bytes = std::mem::take(&mut message.payload).len() as u64;
                removed.push(Removed { options: message.options, limit: message.limit, bytes });
            }
            self.end_message(list as u16, 0);
        }
        removed
    }

    /// Removes the last `bytes` user bytes. Returns `false` and changes nothing unless these are in unlimited messages of which no
    /// part was cut, behind at least one other byte, and messages are sent in the order of their places.
    pub(super) fn forget_last(&mut self, bytes: u64) -> bool {
        let [messages] = &mut self.lists[..] else { return false };
        let (mut first, mut left) = (messages.len(), bytes);
        while left > 0 {
            let Some(message) = first.checked_sub(1).map(|at| &messages[at]) else { return false };
            if message.cut > 0 || message.limit.is_some() {
                return false;
            }
            let length = message.payload.len() as u64;
            if length > left {
                break;
            }
            (first, left) = (first - 1, left - length);
        }
        if self.order.is_some() || first == 0 {
            return false;
        }
        if left > 0 {
            let payload = &mut messages[first - 1].payload;
            payload.truncate(payload.len() - left as usize);
        }
        messages.truncate(first);
        true
    }

    /// Returns the place after the last message of a stream with a payload protocol identifier; zero without one.
    pub(super) fn place_after(&self, stream: u16, ppid: Option<u32>) -> u64 {
        let messages = self.lists.get(usize::from(self.list_of(stream))).into_iter().flatten().rev();
        let has_ppid =
            |message: &&Waiting| message.options.stream == stream && Some(message.options.ppid) == ppid;
        messages.filter(has_ppid).map(|message| message.place + 1).next().unwrap_or(0)
    }

    /// Returns `true` if a message waits in the list of a stream.
    pub(super) fn has_messages_of(&self, stream: u16) -> bool {
        self.lists.get(usize::from(self.list_of(stream))).is_some_and(|messages| !messages.is_empty())
    }

    /// Sets the priority of a stream, if the scheduler distinguishes streams.
    pub(super) fn set_priority(&mut self, stream: u16, priority: NonZeroU16) {
        if let Some(order) = &mut self.order {
            order.set_priority(stream, priority);
        }
    }

    /// Sets the priorities of streams to those of another queue.
    pub(super) fn adopt_priorities(&mut self, other: &UserMessages) {
        if let (Some(order), Some(other)) = (&mut self.order, &other.order) {
            other.priorities().for_each(|(stream, priority)| order.set_priority(stream, priority));
        }
    }

    /// Ends the packet to which the latest chunks were added. Returns `true` if this may change the next message.
    #[inline]
    pub(super) fn end_packet(&mut self) -> bool {
        self.order.as_mut().is_some_and(StreamOrder::end_packet)
    }

    /// Returns `true` if the next chunk may be added to the current packet.
    #[inline]
    pub(super) fn shares_packet(&self) -> bool {
        self.order.as_ref().is_none_or(|order| order.shares_packet(self.next_list()))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.lists.iter().flatten()
    }
}

//! Messages on their way from the application's tasks to the endpoint, which has the send buffer.
//!
//! The endpoint grants the room of its buffer; a message is accepted while there is some, and reaches the buffer the next time that
//! the endpoint serves the association. So the stream scheduler sees all waiting messages.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use anabranch_core::{SendOptions, SendRoom};
use bytes::Bytes;

use crate::message::QueuedMessage;
use crate::stream_state::InOrder;

/// User bytes of the messages into which a stream divides written bytes.
pub(crate) const WRITE_BYTES: usize = 32 << 10;

/// Bytes that a stream may have unsent although the send buffer is full, if the scheduler may send them before those of others.
const RESERVED_BYTES: usize = 4 << 10;

/// Maximum number of streams with such bytes.
const RESERVED_STREAMS: usize = 16;

/// Item for the endpoint.
#[derive(Debug)]
pub(crate) enum Item {
    /// Message of the application.
    Message { message: QueuedMessage, grant: Grant },
    /// End of a stream, after its messages.
    End { stream: u16, end: InOrder },
}

/// Reason for which a message was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// It has room.
    Room,
    /// It may have room once others are abandoned.
    Displaces,
}

/// Accepted messages, and the conditions to accept more.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    items: VecDeque<Item>,
    bytes: usize,
    /// Room at the last [`grant`](Self::grant).
    room: SendRoom,
    /// Bytes of each stream that were accepted without room, until the stream has no unsent ones.
    reserved: BTreeMap<u16, usize>,
    /// Set if a message was refused since the last grant.
    refused: bool,
    /// Writers of streams that wait for room.
    writers: VecDeque<Waker>,
}

impl Mailbox {
    /// Accepts a message if there is room. Returns `false` without.
    pub(crate) fn offer(&mut self, payload: &Bytes, options: SendOptions) -> bool {
        let grant = match () {
            () if (self.bytes as u64) < self.room.free_bytes => Grant::Room,
            () if self.room.displaceable && self.items.is_empty() => Grant::Displaces,
            () if self.takes_reserve(payload.len(), options.stream) => Grant::Room,
            () => {
                self.refused = true;
                return false;
            }
        };
        self.bytes += payload.len();
        self.items.push_back(Item::Message { message: QueuedMessage::new(payload.clone(), options), grant });
        true
    }

    fn takes_reserve(&mut self, bytes: usize, stream: u16) -> bool {
        let present = self.reserved.get(&stream).copied();
        let has_place = present.is_some() || self.reserved.len() < RESERVED_STREAMS;
        let bytes = present.unwrap_or(0) + bytes;
        let takes = self.room.orders_streams && has_place && bytes <= RESERVED_BYTES;
        if takes {
            self.reserved.insert(stream, bytes);
        }
        takes
    }

    /// Adds the end of a stream, which needs no room.
    pub(crate) fn end_stream(&mut self, stream: u16, end: InOrder) {
        self.items.push_back(Item::End { stream, end });
    }

    /// Wakes this writer once there is room.
    pub(crate) fn wait(&mut self, writer: Waker) {
        self.writers.push_back(writer);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the number of messages that have not reached the endpoint.
    pub(crate) fn messages(&self) -> usize {
        self.items.iter().filter(|item| matches!(item, Item::Message { .. })).count()
    }

    /// Removes everything, and accepts nothing until the next grant.
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.reserved.clear();
        (self.bytes, self.room) = (0, SendRoom::default());
    }

    /// Wakes all waiting writers.
    pub(crate) fn wake_all(&mut self) {
        self.writers.drain(..).for_each(Waker::wake);
    }

    /// Returns the next item for the endpoint.
    pub(crate) fn front(&self) -> Option<&Item> {
        self.items.front()
    }

    /// Removes the item that [`front`](Self::front) returned.
    pub(crate) fn pop(&mut self) {
        if let Some(Item::Message { message, .. }) = self.items.pop_front() {
            self.bytes -= message.payload.len();
        }
    }

    /// Grants room. `has_unsent` reports streams with messages that are not sent. Returns `true` if tasks whose messages were refused
    /// may try again.
    pub(crate) fn grant(&mut self, room: SendRoom, has_unsent: impl Fn(u16) -> bool) -> bool {
        let reserved = self.reserved.len();
        self.reserved.retain(|stream, _| has_unsent(*stream));
        self.room = room;
        let may_try = self.free() > 0 || self.reserved.len() < reserved;
        may_try && std::mem::take(&mut self.refused)
    }

    /// Returns the bytes that may be accepted; one if a message may displace others.
    fn free(&self) -> u64 {
        let free = self.room.free_bytes.saturating_sub(self.bytes as u64);
        free.max(u64::from(self.room.displaceable && self.items.is_empty()))
    }

    /// Wakes as many writers as there is room for. Returns `true` if others still wait although there is room: a writer that is
    /// woken may have given up.
    pub(crate) fn wake_writers_for_room(&mut self) -> bool {
        let woken = self.free().div_ceil(WRITE_BYTES as u64).min(self.writers.len() as u64) as usize;
        self.writers.drain(..woken).for_each(Waker::wake);
        self.free() > 0 && !self.writers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    fn room(free_bytes: u64) -> SendRoom {
        SendRoom { free_bytes, ..SendRoom::default() }
    }

    fn on(stream: u16) -> SendOptions {
        SendOptions { stream, ..SendOptions::default() }
    }

    fn offer(mailbox: &mut Mailbox, stream: u16, bytes: usize) -> bool {
        mailbox.offer(&Bytes::from(vec![0; bytes]), on(stream))
    }

    fn empty(mailbox: &mut Mailbox) {
        while mailbox.front().is_some() {
            mailbox.pop();
        }
    }

    #[test]
    fn messages_are_accepted_while_any_granted_byte_is_free() {
        let mut mailbox = Mailbox::default();
        assert!(!offer(&mut mailbox, 0, 1), "nothing is granted");
        assert!(mailbox.grant(room(100), |_| false), "the refused sender may try again");
        assert!(
            offer(&mut mailbox, 0, 99) && offer(&mut mailbox, 0, 1000),
            "one message may exceed the room"
        );
        assert!(!offer(&mut mailbox, 0, 1));
        empty(&mut mailbox);
        assert!(!mailbox.grant(room(0), |_| true) && !offer(&mut mailbox, 0, 1));
        assert!(mailbox.grant(room(1), |_| true) && offer(&mut mailbox, 0, 1));
    }

    #[test]
    fn one_message_at_a_time_may_displace_others() {
        let mut mailbox = Mailbox::default();
        let displaceable = SendRoom { displaceable: true, ..room(0) };
        mailbox.grant(displaceable, |_| false);
        assert!(offer(&mut mailbox, 0, 10) && !offer(&mut mailbox, 0, 10));
        assert!(matches!(mailbox.front(), Some(Item::Message { grant: Grant::Displaces, .. })));
        empty(&mut mailbox);
        assert!(mailbox.grant(displaceable, |_| false) && offer(&mut mailbox, 0, 10));
    }

    #[test]
    fn full_buffer_takes_a_few_bytes_of_each_stream_if_streams_are_ordered() {
        let mut mailbox = Mailbox::default();
        mailbox.grant(room(0), |_| false);
        assert!(!offer(&mut mailbox, 1, 100), "the scheduler would send it last");
        let ordered = SendRoom { orders_streams: true, ..room(0) };
        mailbox.grant(ordered, |_| false);
        assert!(!offer(&mut mailbox, 1, RESERVED_BYTES + 1));
        assert!(offer(&mut mailbox, 1, RESERVED_BYTES) && !offer(&mut mailbox, 1, 1));
        for stream in 2..=RESERVED_STREAMS as u16 {
            assert!(offer(&mut mailbox, stream, 1), "{stream}");
        }
        assert!(!offer(&mut mailbox, 100, 1), "too many streams");
        empty(&mut mailbox);
        assert!(mailbox.grant(ordered, |stream| stream != 1), "stream 1 has sent its bytes");
        assert!(offer(&mut mailbox, 1, 1) && !offer(&mut mailbox, 100, 1));
    }

    #[test]
    fn ends_of_streams_need_no_room_and_are_no_messages() {
        let mut mailbox = Mailbox::default();
        mailbox.grant(room(1), |_| false);
        assert!(offer(&mut mailbox, 3, 5));
        mailbox.end_stream(3, InOrder::Finish);
        assert_eq!((mailbox.messages(), mailbox.is_empty()), (1, false));
        mailbox.pop();
        assert!(matches!(mailbox.front(), Some(Item::End { stream: 3, end: InOrder::Finish })));
        mailbox.pop();
        assert_eq!((mailbox.messages(), mailbox.is_empty()), (0, true));
    }

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn as_many_writers_are_woken_as_there_is_room_for() {
        let woken = Arc::new(Woken::default());
        let mut mailbox = Mailbox::default();
        for _ in 0..4 {
            mailbox.wait(Arc::clone(&woken).into());
        }
        mailbox.grant(room(WRITE_BYTES as u64 + 1), |_| false);
        assert!(mailbox.wake_writers_for_room(), "two wait although there is room");
        assert_eq!(woken.0.load(Ordering::Relaxed), 2);
        mailbox.grant(room(0), |_| false);
        assert!(!mailbox.wake_writers_for_room());
        mailbox.wake_all();
        assert_eq!(woken.0.load(Ordering::Relaxed), 4);
    }
}

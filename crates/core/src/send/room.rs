//! Room in the send buffer, and messages that leave it before they are sent.

use crate::send::Sender;

impl Sender {
    #[inline]
    pub(crate) fn buffer_limit(&self) -> Option<u64> {
        self.buffer.limit()
    }

    /// Returns the free send buffer; `None` if it is unlimited.
    #[inline]
    pub(crate) fn buffer_free(&self) -> Option<u64> {
        self.buffer.free(self.buffered_bytes())
    }

    /// Returns `true` if a message has room; unlike `reserve`, it does not wait for room.
    #[inline]
    pub(crate) fn has_room(&self, payload_bytes: u64) -> bool {
        self.buffer.has_room(self.buffered_bytes(), payload_bytes)
    }

    /// Checks that a message has room. After a refusal [`take_writable`](Self::take_writable) reports when there is room.
    ///
    /// # Errors
    /// Returns the free bytes of the buffer, if the message has no room.
    pub(crate) fn reserve(&mut self, payload_bytes: u64) -> Result<(), u64> {
        self.buffer.reserve(self.buffered_bytes(), payload_bytes)
    }

    /// Returns the free bytes; `u64::MAX` if the buffer is unlimited. After zero, [`take_writable`](Self::take_writable) reports when
    /// there is room.
    pub(crate) fn request_room(&mut self) -> u64 {
        self.buffer.request(self.buffered_bytes())
    }

    /// Returns `true` once if there is room after a refusal.
    pub(crate) fn take_writable(&mut self) -> bool {
        self.buffer.take_writable(self.buffered_bytes())
    }

    /// Raises the limit of the send buffer. A smaller limit has no effect.
    #[inline]
    pub(crate) fn grow_buffer(&mut self, limit: u64) {
        self.buffer.grow(limit);
    }

    /// Returns `true` if messages may be abandoned for others.
    pub(crate) fn has_displaceable(&self) -> bool {
        self.partial.messages.has_priorities()
    }

    /// Discards the messages of a stream of which no part was sent, after the last one with `end_ppid`. Returns their bytes.
    pub(crate) fn discard_unsent(&mut self, stream: u16, end_ppid: Option<u32>) -> u64 {
        let (held, ended) = self.held.discard(stream, end_ppid);
        // The messages in the queue precede those that are held.
        let queued = if ended { Vec::new() } else { self.queue.discard(stream, end_ppid) };
        queued.iter().filter_map(|message| message.limit).for_each(|key| self.partial.messages.settle(key));
        held + queued.iter().map(|message| message.bytes).sum::<u64>()
    }
}

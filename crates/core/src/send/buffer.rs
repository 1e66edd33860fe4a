//! Limit of the send buffer.

/// Limit of the send buffer, and the wait for room. The methods get the buffered bytes.
#[derive(Clone, Debug)]
pub(crate) struct SendBuffer {
    /// `None` if the buffer is unlimited.
    limit: Option<u64>,
    /// Set after a refusal, until there is room.
    awaits_room: bool,
}

impl SendBuffer {
    pub(super) fn new(limit: Option<u64>) -> Self {
        SendBuffer { limit, awaits_room: false }
    }

    #[inline]
    pub(super) fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Returns the free bytes; `None` if the buffer is unlimited.
    #[inline]
    pub(super) fn free(&self, buffered: u64) -> Option<u64> {
        self.limit.map(|limit| limit.saturating_sub(buffered))
    }

    /// Returns `true` if a message has room. One that is larger than the whole buffer has room while the buffer is empty.
    #[inline]
    pub(super) fn has_room(&self, buffered: u64, bytes: u64) -> bool {
        self.free(buffered).is_none_or(|free| free >= bytes || buffered == 0)
    }

    /// Checks that a message has room, and waits for room if it has none.
    ///
    /// # Errors
    /// Returns the free bytes, if the message has no room.
    pub(super) fn reserve(&mut self, buffered: u64, bytes: u64) -> Result<(), u64> {
        match self.free(buffered) {
            Some(free) if !self.has_room(buffered, bytes) => {
                self.awaits_room = true;
                Err(free)
            }
            _ => Ok(()),
        }
    }

    /// Returns the free bytes, `u64::MAX` if the buffer is unlimited, and waits for room if there are none.
    pub(super) fn request(&mut self, buffered: u64) -> u64 {
        let free = self.free(buffered).unwrap_or(u64::MAX);
        self.awaits_room |= free == 0;
        free
    }

    /// Returns `true` once if there is room that was waited for.
    pub(super) fn take_writable(&mut self, buffered: u64) -> bool {
        let writable = self.awaits_room && self.free(buffered).is_none_or(|free| free > 0);
        self.awaits_room &= !writable;
        writable
    }

    /// Ends the wait for room. Returns `true` if there was one.
    pub(super) fn end_wait(&mut self) -> bool {
        std::mem::take(&mut self.awaits_room)
    }

    /// Raises the limit. A smaller limit has no effect.
    #[inline]
    pub(super) fn grow(&mut self, limit: u64) {
        self.limit = self.limit.map(|present| present.max(limit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_reported_once_after_a_refusal_or_a_request_without_room() {
        let mut buffer = SendBuffer::new(Some(100));
        assert_eq!((buffer.reserve(0, 1000), buffer.reserve(40, 60)), (Ok(()), Ok(())));
        assert!(!buffer.take_writable(0), "no message waits");
        assert_eq!(buffer.reserve(40, 61), Err(60));
        assert!(buffer.take_writable(40) && !buffer.take_writable(40));
        assert_eq!((buffer.request(99), buffer.request(100)), (1, 0));
        assert!(!buffer.take_writable(100) && buffer.take_writable(99));
        buffer.grow(150);
        buffer.grow(120);
        assert_eq!((buffer.free(100), buffer.limit()), (Some(50), Some(150)));
    }

    #[test]
    fn unlimited_buffer_has_room_for_all() {
        let mut buffer = SendBuffer::new(None);
        assert_eq!((buffer.free(1 << 40), buffer.request(1 << 40)), (None, u64::MAX));
        assert_eq!(buffer.reserve(1 << 40, 1 << 40), Ok(()));
    }
}

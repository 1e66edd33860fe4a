//! Room in the send buffer, and messages that have left the application but not the queue.
//!
//! A driver whose application runs in other tasks accepts messages without access to the association. It grants the room that
//! [`request_room`](Association::request_room) returns and passes the accepted messages on with
//! [`send_beyond`](Association::send_beyond).

use bytes::Bytes;

use crate::association::Association;
use crate::error::SendError;
use crate::send::{SendOptions, StreamScheduler};
use crate::time::Time;

/// Room for messages in the send buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendRoom {
    /// Free bytes; `u64::MAX` if the buffer is unlimited, and zero while required keys are missing.
    pub free_bytes: u64,
    /// `true` if none are free, and messages may be abandoned for others
    /// ([`Reliability::Priority`](crate::Reliability::Priority)).
    pub displaceable: bool,
    /// `true` if messages of one stream may overtake those of another
    /// ([`AssociationConfig::stream_scheduler`](crate::AssociationConfig::stream_scheduler)).
    pub orders_streams: bool,
}

impl Association {
    /// Returns the room for messages. If there is none,
    /// [`AssociationEvent::Writable`](crate::AssociationEvent::Writable) follows.
    pub fn request_room(&mut self) -> SendRoom {
        // Without required keys no message is accepted.
        let free_bytes = if self.admits_user_messages() { self.sender.request_room() } else { 0 };
        SendRoom {
            free_bytes,
            displaceable: free_bytes == 0 && self.sender.has_displaceable(),
            orders_streams: self.config.stream_scheduler != StreamScheduler::default(),
        }
    }

    /// Returns `true` if messages of a stream wait of which a part has no TSN.
    pub fn has_unsent(&self, stream: u16) -> bool {
        self.sender.queue().has_messages_of(stream) || self.sender.held().contains(stream)
    }

    /// Returns the user bytes of unordered messages that wait without a TSN. The time grows with the number of waiting messages.
    pub fn unsent_unordered_bytes(&self) -> u64 {
        self.sender.queue().unordered_bytes()
    }

    /// Discards the messages of a stream of which no part was sent. Messages up to the last one with the payload protocol
    /// identifier `end_ppid` are kept: it marks the end of earlier messages. Returns the discarded bytes.
    pub fn discard_unsent(&mut self, stream: u16, end_ppid: Option<u32>) -> u64 {
        let bytes = self.update_sender(|sender| sender.discard_unsent(stream, end_ppid));
        if bytes > 0 {
            self.consider_writable();
            self.advance_stream_changes();
            self.advance_shutdown();
        }
        bytes
    }

    /// Queues a message as [`send_at`](Self::send_at) does, without need of room in the send buffer. The caller limits the amount to
    /// [`request_room`](Self::request_room).
    ///
    /// # Errors
    /// As [`send`](Self::send), without [`SendError::BufferFull`].
    pub fn send_beyond(&mut self, now: Time, payload: Bytes, options: SendOptions) -> Result<(), SendError> {
        self.clock(now);
        self.check_message(&payload, options)?;
        self.consider_room(&payload, options);
        self.enqueue(|sender| sender.push(payload, options, now));
        Ok(())
    }
}

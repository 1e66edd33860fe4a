//! Receiving half of a stream.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, ReadBuf};

use super::error::StreamRecvError;
use crate::error::{CloseReason, RecvError};
use crate::message::Message;
use crate::shared::{Handle, Phase};
use crate::stream_state::{RecvEnd, StreamKey, UNREAD_LIMIT};

/// Receiving half of a [stream](crate::Association::open_stream): messages in order, or bytes by [`AsyncRead`].
///
/// A stream that is not read stops its sender after 64 KiB to 4 MiB, and affects no other stream.
///
/// **Dropping it** before the end [stops](Self::stop) the stream with code 0.
#[derive(Debug)]
pub struct RecvStream {
    handle: Arc<Handle>,
    key: StreamKey,
    /// Rest of the message of which [`AsyncRead`] has returned a part.
    rest: Bytes,
}

impl RecvStream {
    pub(crate) fn new(handle: Arc<Handle>, key: StreamKey) -> Self {
        RecvStream { handle, key, rest: Bytes::new() }
    }

    /// Returns the stream identifier.
    pub fn id(&self) -> u16 {
        self.key.stream
    }

    /// Returns the next message, or `None` at the end of the stream. A message larger than the association's receive buffer is
    /// delivered in pieces.
    ///
    /// Cancel-safe: only the call that returns a message removes it.
    ///
    /// # Errors
    /// Returns [`StreamRecvError`] after the last message of a stream that has not ended by
    /// [`finish`](crate::SendStream::finish).
    pub async fn recv(&mut self) -> Result<Option<Message>, StreamRecvError> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Returns the next message as [`recv`](Self::recv) does, in the form of a poll.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn poll_recv(&mut self, cx: &Context<'_>) -> Poll<Result<Option<Message>, StreamRecvError>> {
        let Handle { shared, commands } = &*self.handle;
        let mut state = shared.lock();
        let next = state.streams.poll_message(self.key, cx);
        if state.streams.has_requests() || (state.more && state.streams.unread() < UNREAD_LIMIT / 2) {
            shared.wake(&mut state, commands);
        }
        match (next, state.phase) {
            (Poll::Ready(Ok(message)), _) => Poll::Ready(Ok(Some(message))),
            (Poll::Ready(Err(RecvEnd::Finished)), _) => Poll::Ready(Ok(None)),
            (Poll::Ready(Err(RecvEnd::Reset { code })), _) => {
                Poll::Ready(Err(StreamRecvError::Reset { code }))
            }
            (Poll::Ready(Err(RecvEnd::Stalled)), _) => Poll::Ready(Err(StreamRecvError::Stalled)),
            (Poll::Ready(Err(RecvEnd::Restarted)), _) => Poll::Ready(Err(StreamRecvError::Restarted)),
            (Poll::Pending, Phase::Closed(Ok(()) | Err(CloseReason::Undelivered { .. }))) => {
                // Other stacks end their streams with the association.
                let ended =
                    if state.streams.is_controlled() { Err(StreamRecvError::Unfinished) } else { Ok(None) };
                Poll::Ready(ended)
            }
            (Poll::Pending, Phase::Closed(Err(reason))) => Poll::Ready(Err(RecvError::from(reason).into())),
            (Poll::Pending, _) => Poll::Pending,
        }
    }

    /// Discards the rest of the stream, and tells the sender to end it, with a code for its application.
    pub fn stop(&mut self, code: u32) {
        let Handle { shared, commands } = &*self.handle;
        let mut state = shared.lock();
        self.rest.clear();
        state.streams.discard(self.key, code);
        if !state.is_closed() && state.streams.has_requests() {
            shared.wake(&mut state, commands);
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        self.stop(0);
    }
}

/// Reads the user data of the messages without their boundaries.
impl AsyncRead for RecvStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            match ready!(self.poll_recv(cx))? {
                Some(message) => self.rest = message.payload,
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = self.rest.len().min(into.remaining());
        into.put_slice(&self.rest[..length]);
        self.rest.advance(length);
        Poll::Ready(Ok(()))
    }
}

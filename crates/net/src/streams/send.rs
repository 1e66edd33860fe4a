//! Sending half of a stream.

use std::future::poll_fn;
use std::io;
use std::num::NonZeroU16;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use anabranch_core::SendOptions;
use bytes::Bytes;
use tokio::io::AsyncWrite;

use super::error::StreamSendError;
use crate::mailbox::WRITE_BYTES;
use crate::shared::{Handle, State};
use crate::stream_state::{InOrder, SendEnd, StreamKey};

/// Sending half of a [stream](crate::Association::open_stream): messages in order, or bytes by [`AsyncWrite`].
///
/// A writer waits while the receiver's application has not read what was sent before. Other streams are not affected.
///
/// [`finish`](Self::finish) ends the stream. **Dropping it** without that resets the stream, so that the peer does not mistake a
/// panic for its end.
#[derive(Debug)]
pub struct SendStream {
    handle: Arc<Handle>,
    key: StreamKey,
    ppid: u32,
}

impl SendStream {
    pub(crate) fn new(handle: Arc<Handle>, key: StreamKey) -> Self {
        SendStream { handle, key, ppid: 0 }
    }

    /// Returns the stream identifier.
    pub fn id(&self) -> u16 {
        self.key.stream
    }

    /// Sets the payload protocol identifier of the following messages, 0 by default.
    pub fn set_ppid(&mut self, ppid: u32) {
        self.ppid = ppid;
    }

    /// Sets the priority of the stream, 256 by default, which [`StreamScheduler::Priority`](crate::StreamScheduler::Priority) and
    /// [`WeightedFairQueueing`](crate::StreamScheduler::WeightedFairQueueing) use.
    pub fn set_priority(&mut self, priority: NonZeroU16) {
        let mut state = self.handle.shared.lock();
        state.streams.set_priority(self.key, priority);
        self.handle.shared.wake(&mut state, &self.handle.commands);
    }

    /// Sends a message. Waits for credit of the receiver and for room in the send buffer.
    ///
    /// `Ok` means that the message is accepted. It is delivered, unless the stream is reset or the association ends other than
    /// gracefully.
    ///
    /// Cancel-safe: a future that is dropped before it returns has not accepted the message.
    ///
    /// # Errors
    /// Returns [`StreamSendError`], for an empty message as well.
    pub async fn send(&mut self, payload: impl Into<Bytes>) -> Result<(), StreamSendError> {
        let payload = payload.into();
        poll_fn(|cx| self.poll_send(cx, &payload)).await
    }

    /// Sends a message as [`send`](Self::send) does, in the form of a poll.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn poll_send(&mut self, cx: &Context<'_>, payload: &Bytes) -> Poll<Result<(), StreamSendError>> {
        let options = SendOptions { stream: self.key.stream, ppid: self.ppid, ..SendOptions::default() };
        let mut state = self.handle.shared.lock();
        state.admits(payload, options)?;
        let credit = state.streams.poll_credit(self.key, cx);
        if credit.is_pending() {
            self.wake_for_reports(&mut state);
        }
        ready!(credit).map_err(error_of)?;
        if !state.mailbox.offer(payload, options) {
            state.mailbox.wait(cx.waker().clone());
            return Poll::Pending;
        }
        state.streams.spend(self.key, payload.len());
        self.handle.shared.wake(&mut state, &self.handle.commands);
        Poll::Ready(Ok(()))
    }

    /// Ends the stream after the messages that were sent. A peer without
    /// [stream control](crate::Config::stream_control) sees a reset of the stream if it supports RFC 6525, and else no end.
    ///
    /// # Errors
    /// Returns [`StreamSendError`] if the stream has ended already.
    pub fn finish(&mut self) -> Result<(), StreamSendError> {
        self.end(InOrder::Finish)
    }

    /// Gives the stream up: messages of which no part was sent are discarded, and the reader gets
    /// [`StreamRecvError::Reset`](crate::StreamRecvError::Reset) with this code after the others.
    ///
    /// # Errors
    /// Returns [`StreamSendError`] if the stream has ended already.
    pub fn reset(&mut self, code: u32) -> Result<(), StreamSendError> {
        self.end(InOrder::Reset { code })
    }

    /// Waits until the peer reads no more of the stream. Returns its code, or `None` if the stream or the association has ended.
    ///
    /// Cancel-safe.
    pub async fn stopped(&mut self) -> Option<u32> {
        let end = poll_fn(|cx| {
            let mut state = self.handle.shared.lock();
            if state.is_closed() {
                Poll::Ready(SendEnd::Ended)
            } else {
                state.streams.poll_stopped(self.key, cx)
            }
        });
        match end.await {
            SendEnd::Stopped { code } => Some(code),
            SendEnd::Ended | SendEnd::Restarted => None,
        }
    }

    fn end(&mut self, end: InOrder) -> Result<(), StreamSendError> {
        let Self { handle, key, .. } = self;
        let mut state = handle.shared.lock();
        if state.is_closed() {
            return Err(StreamSendError::Ended);
        }
        // The messages of a half that has ended are accepted, and its identifier may be in use again.
        state.streams.end(*key).map_err(error_of)?;
        if state.is_ending().is_none() {
            state.mailbox.end_stream(key.stream, end);
        }
        handle.shared.wake(&mut state, &handle.commands);
        drop(state);
        handle.shared.opened.notify_waiters();
        Ok(())
    }

    fn wake_for_reports(&self, state: &mut State) {
        if state.streams.has_ahead() {
            self.handle.shared.wake(state, &self.handle.commands);
        }
    }
}

fn error_of(end: SendEnd) -> StreamSendError {
    match end {
        SendEnd::Stopped { code } => StreamSendError::Stopped { code },
        SendEnd::Ended => StreamSendError::Ended,
        SendEnd::Restarted => StreamSendError::Restarted,
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        // A stream that has ended stays as it is.
        let _ = self.reset(0);
    }
}

/// Each write becomes a message of at most 32 KiB. `poll_shutdown` finishes the stream.
impl AsyncWrite for SendStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let part = &bytes[..bytes.len().min(WRITE_BYTES)];
        ready!(self.poll_send(cx, &Bytes::copy_from_slice(part)))?;
        Poll::Ready(Ok(part.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.finish() {
            Ok(()) | Err(StreamSendError::Ended) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }
}

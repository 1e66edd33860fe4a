//! Stream of the events of an association.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use anabranch_core::AssociationEvent;
use thiserror::Error;
use tokio::sync::broadcast;
use tokio_stream::Stream;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;

/// Maximum number of events that wait for a slow listener. Older events are dropped.
pub(crate) const KEPT_EVENTS: usize = 256;

/// Error: the listener was too slow and missed this number of events. [`Association::paths`](crate::Association::paths) has the
/// state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} events were missed; read them faster")]
pub struct MissedEvents(pub u64);

/// Events of an association from the call of [`Association::events`](crate::Association::events) on. Excludes
/// [`Readable`](AssociationEvent::Readable) and [`Writable`](AssociationEvent::Writable), which the endpoint handles, and
/// [`Connected`](AssociationEvent::Connected), which precedes every handle.
///
/// The stream ends once the association is closed and all events were returned.
#[derive(Debug)]
pub struct Events {
    /// `None` if the association was closed before.
    receiver: Option<BroadcastStream<AssociationEvent>>,
}

impl Events {
    pub(crate) fn new(receiver: Option<broadcast::Receiver<AssociationEvent>>) -> Self {
        Events { receiver: receiver.map(BroadcastStream::new) }
    }

    /// Returns the next event, or `None` at the end of the stream.
    ///
    /// Cancel-safe: only the call that returns an event removes it.
    ///
    /// # Errors
    /// Returns [`MissedEvents`], after which the remaining events follow.
    pub async fn next(&mut self) -> Option<Result<AssociationEvent, MissedEvents>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for Events {
    type Item = Result<AssociationEvent, MissedEvents>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(receiver) = &mut self.receiver else { return Poll::Ready(None) };
        let missed = |BroadcastStreamRecvError::Lagged(events)| MissedEvents(events);
        Pin::new(receiver).poll_next(cx).map(|next| next.map(|event| event.map_err(missed)))
    }
}

//! What happens to an association, as a stream.

use anabranch_core::AssociationEvent;
use thiserror::Error;
use tokio::sync::broadcast;

/// Events that wait for a slow listener; older ones make room.
pub(crate) const KEPT_EVENTS: usize = 256;

/// The listener was too slow and missed this many events; [`Association::paths`](crate::Association::paths) says how things stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} events were missed; read them faster")]
pub struct MissedEvents(pub u64);

/// The events of an association from the call of [`Association::events`](crate::Association::events) on, except
/// [`Readable`](AssociationEvent::Readable) and [`Writable`](AssociationEvent::Writable), which the host acts on, and
/// [`Connected`](AssociationEvent::Connected), which is over when there is a handle.
#[derive(Debug)]
pub struct Events {
    receiver: Option<broadcast::Receiver<AssociationEvent>>,
}

impl Events {
    pub(crate) fn new(receiver: Option<broadcast::Receiver<AssociationEvent>>) -> Self {
        Events { receiver }
    }

    /// The next event; `None` once the association is closed and every event was returned.
    ///
    /// Cancel-safe: an event is taken only by the call that returns it.
    ///
    /// # Errors
    /// [`MissedEvents`], after which the events that are left follow.
    pub async fn next(&mut self) -> Option<Result<AssociationEvent, MissedEvents>> {
        match self.receiver.as_mut()?.recv().await {
            Ok(event) => Some(Ok(event)),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(Err(MissedEvents(missed))),
            Err(broadcast::error::RecvError::Closed) => {
                self.receiver = None;
                None
            }
        }
    }
}

//! Stream of the events of an association.

use anabranch_core::AssociationEvent;
use thiserror::Error;
use tokio::sync::broadcast;

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
#[derive(Debug)]
pub struct Events {
    receiver: Option<broadcast::Receiver<AssociationEvent>>,
}

impl Events {
    pub(crate) fn new(receiver: Option<broadcast::Receiver<AssociationEvent>>) -> Self {
        Events { receiver }
    }

    /// Returns the next event, or `None` once the association is closed and all events were returned.
    ///
    /// Cancel-safe: only the call that returns an event removes it.
    ///
    /// # Errors
    /// Returns [`MissedEvents`], after which the remaining events follow.
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

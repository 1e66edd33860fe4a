//! What happens to an association, as a stream.

use anabranch_core::{AbortReason, PathId, PathState};
use tokio::sync::broadcast;

/// Events that wait for a slow listener; older ones make room.
pub(crate) const KEPT_EVENTS: usize = 256;

/// Something that happened to an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A path changed state.
    PathState {
        /// Which.
        path: PathId,
        /// Its state now.
        state: PathState,
    },
    /// There is a new path, still to be verified: it was asked for, or the peer sent from there.
    PathAdded {
        /// Which.
        path: PathId,
    },
    /// A path is gone: it was taken away, made room for another, or its source never answered. Its id may be given to another.
    PathRemoved {
        /// Which.
        path: PathId,
    },
    /// The peer's UDP port behind a path has changed, as address translators do: what was one path is another now.
    PathRebound {
        /// The path from here on.
        path: PathId,
        /// The path until now, which is gone.
        was: PathId,
    },
    /// The peer restarted: what was queued or unread is lost, and the association is up again.
    Restarted,
    /// The peer wants to shut down: it sends no more, and what was accepted here is still delivered.
    ShutdownReceived,
    /// It ended in good order.
    Closed,
    /// It ended otherwise.
    Aborted(AbortReason),
    /// The listener was too slow and missed so many; [`Association::paths`](crate::Association::paths) says how things stand.
    Missed(u64),
}

/// The events of an association from the moment of [`Association::events`](crate::Association::events) on.
#[derive(Debug)]
pub struct Events {
    receiver: Option<broadcast::Receiver<Event>>,
}

impl Events {
    pub(crate) fn new(receiver: Option<broadcast::Receiver<Event>>) -> Self {
        Events { receiver }
    }

    /// The next event; `None` once the association is over and all have been told.
    ///
    /// Cancel-safe: an event is taken only by the call that returns it.
    pub async fn next(&mut self) -> Option<Event> {
        match self.receiver.as_mut()?.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(Event::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => {
                self.receiver = None;
                None
            }
        }
    }
}

//! Points in time that a transfer's task, its thread and its server share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time of the latest event of a kind.
#[derive(Clone, Debug)]
pub(crate) struct Moment(Arc<Mutex<Instant>>);

impl Moment {
    pub(crate) fn now() -> Self {
        Moment::at(Instant::now())
    }

    pub(crate) fn at(instant: Instant) -> Self {
        Moment(Arc::new(Mutex::new(instant)))
    }

    /// Records that the event occurs now.
    pub(crate) fn mark(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub(crate) fn latest(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.latest().elapsed()
    }
}

/// Times of a peer's latest activity.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    /// The latest message from the peer.
    pub(crate) heard: Moment,
    /// The latest progress of the transfer: an offer accepted, a block stored, a file completed.
    pub(crate) progress: Moment,
}

impl Activity {
    pub(crate) fn now() -> Self {
        Activity { heard: Moment::now(), progress: Moment::now() }
    }
}

//! Points in time that a transfer's task, its thread and its server share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// When something happened last.
#[derive(Clone, Debug)]
pub(crate) struct Moment(Arc<Mutex<Instant>>);

impl Moment {
    pub(crate) fn now() -> Self {
        Moment::at(Instant::now())
    }

    pub(crate) fn at(instant: Instant) -> Self {
        Moment(Arc::new(Mutex::new(instant)))
    }

    /// It happens again.
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

/// What a peer has done last.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    /// Anything came from it.
    pub(crate) heard: Moment,
    /// The transfer came further: an offer was accepted, a block held, a file done.
    pub(crate) progress: Moment,
}

impl Activity {
    pub(crate) fn now() -> Self {
        Activity { heard: Moment::now(), progress: Moment::now() }
    }
}

//! Associations that wait to be accepted.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anabranch_core::{FairPool, Source};
use tokio::sync::Notify;

use crate::error::AcceptError;
use crate::shared::{Handle, wait_for};

/// Associations that peers have opened and that wait for [`Endpoint::accept`](crate::Endpoint::accept).
#[derive(Debug)]
pub(crate) struct AcceptQueue {
    state: Mutex<AcceptState>,
    arrived: Notify,
}

#[derive(Debug)]
struct AcceptState {
    /// Fair pool of the numbers in `waiting`.
    places: FairPool<u64>,
    /// Associations by number. The first one has waited longest.
    waiting: BTreeMap<u64, Handle>,
    next: u64,
    endpoint_gone: bool,
    stopped: bool,
}

impl AcceptQueue {
    pub(crate) fn new(backlog: usize) -> Self {
        let state = AcceptState {
            places: FairPool::new(backlog),
            waiting: BTreeMap::new(),
            next: 0,
            endpoint_gone: false,
            stopped: false,
        };
        AcceptQueue { state: Mutex::new(state), arrived: Notify::new() }
    }

    /// Queues an association. In a full queue, it evicts an association of a source with more of them, or is refused. An evicted or
    /// refused association is dropped, which aborts it.
    pub(crate) fn offer(&self, association: Handle, source: Source) {
        let mut state = self.lock();
        if state.stopped {
            return;
        }
        let number = state.next;
        state.next += 1;
        let Ok(evicted) = state.places.insert_if_due(number, source) else { return };
        let evicted = evicted.and_then(|evicted| state.waiting.remove(&evicted));
        state.waiting.insert(number, association);
        // Dropping an association takes other locks.
        drop(state);
        drop(evicted);
        self.arrived.notify_waiters();
    }

    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.arrived.notify_waiters();
    }

    pub(crate) fn endpoint_gone(&self) {
        self.lock().endpoint_gone = true;
        self.arrived.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, AcceptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Result<Handle, AcceptError>> {
        let mut state = self.lock();
        match state.waiting.pop_first() {
            Some((number, association)) => {
                state.places.remove(&number);
                Some(Ok(association))
            }
            None if state.endpoint_gone => Some(Err(AcceptError::EndpointGone)),
            None if state.stopped => Some(Err(AcceptError::NotAccepting)),
            None => None,
        }
    }

    /// Waits for the next association. Cancel-safe.
    pub(crate) async fn next(&self) -> Result<Handle, AcceptError> {
        wait_for(&self.arrived, || self.take()).await
    }
}

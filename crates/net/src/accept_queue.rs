//! Associations that wait to be accepted.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::error::AcceptError;
use crate::shared::{Handle, wait_for};

/// Associations that peers have opened and that wait for [`Host::accept`](crate::Host::accept).
#[derive(Debug)]
pub(crate) struct AcceptQueue {
    state: Mutex<AcceptState>,
    arrived: Notify,
    backlog: usize,
}

#[derive(Debug, Default)]
struct AcceptState {
    waiting: VecDeque<Handle>,
    host_gone: bool,
    stopped: bool,
}

impl AcceptQueue {
    pub(crate) fn new(backlog: usize) -> Self {
        AcceptQueue { state: Mutex::default(), arrived: Notify::new(), backlog }
    }

    /// An association that finds no room is dropped, which aborts it.
    pub(crate) fn offer(&self, association: Handle) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.waiting.len() < self.backlog && !state.stopped {
            state.waiting.push_back(association);
            self.arrived.notify_waiters();
        }
    }

    pub(crate) fn stop(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        self.arrived.notify_waiters();
    }

    pub(crate) fn host_gone(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).host_gone = true;
        self.arrived.notify_waiters();
    }

    fn take(&self) -> Option<Result<Handle, AcceptError>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.waiting.pop_front() {
            Some(association) => Some(Ok(association)),
            None if state.host_gone => Some(Err(AcceptError::HostGone)),
            None if state.stopped => Some(Err(AcceptError::NotAccepting)),
            None => None,
        }
    }

    /// Waits for the next association. Cancel-safe.
    pub(crate) async fn next(&self) -> Result<Handle, AcceptError> {
        wait_for(&self.arrived, || self.take()).await
    }
}

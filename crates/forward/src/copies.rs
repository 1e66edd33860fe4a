//! Datagrams of small flows, which are sent on two paths.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anabranch_mapping::{Duplication, FlowRate};

/// Copies of all flows that share a way to the peer. Clones share their bound.
#[derive(Clone, Debug)]
pub(crate) struct Copies {
    begun: Instant,
    all: Arc<Mutex<Duplication>>,
}

impl Copies {
    pub(crate) fn new() -> Self {
        Copies { begun: Instant::now(), all: Arc::default() }
    }

    /// Counts a datagram of a flow. Returns `true` if it is to be sent on two paths.
    pub(crate) fn wants(&self, flow: &mut FlowRate, bytes: usize) -> bool {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.wants_copy(flow, self.begun.elapsed(), bytes)
    }
}

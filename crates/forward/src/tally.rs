//! Counters of forwarded connections.

use std::array;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::failure::Failure;

/// Counters of a process that forwards. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    open: AtomicUsize,
    complete: AtomicU64,
    reset: AtomicU64,
    /// In the order of [`Failure::ALL`].
    failed: [AtomicU64; Failure::ALL.len()],
    to_peer_bytes: AtomicU64,
    from_peer_bytes: AtomicU64,
}

/// Values of the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Connections that are open now.
    pub open: usize,
    /// Connections that both ends have closed.
    pub complete: u64,
    /// Connections that ended by a reset of either end, or with the association.
    pub reset: u64,
    /// Connections that were not opened, in the order of [`Failure::ALL`].
    pub failed: [u64; Failure::ALL.len()],
    /// Bytes read from connections and sent to the peer.
    pub to_peer_bytes: u64,
    /// Bytes received from the peer and written to connections.
    pub from_peer_bytes: u64,
}

impl Totals {
    /// Returns the failures that occurred, with their numbers.
    pub fn failures(&self) -> impl Iterator<Item = (Failure, u64)> {
        Failure::ALL.into_iter().zip(self.failed).filter(|(_, number)| *number > 0)
    }
}

/// Open connection. When it is dropped, it counts as reset unless it was completed.
#[derive(Debug)]
pub(crate) struct Counted {
    tally: Tally,
    is_complete: bool,
}

impl Counted {
    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Inner { open, complete, reset, .. } = &*self.tally.inner;
        let ended = if self.is_complete { complete } else { reset };
        open.fetch_sub(1, Ordering::Relaxed);
        ended.fetch_add(1, Ordering::Relaxed);
    }
}

impl Tally {
    /// Returns the values.
    pub fn totals(&self) -> Totals {
        let inner = &*self.inner;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals {
            open: inner.open.load(Ordering::Relaxed),
            complete: read(&inner.complete),
            reset: read(&inner.reset),
            failed: array::from_fn(|index| read(&inner.failed[index])),
            to_peer_bytes: read(&inner.to_peer_bytes),
            from_peer_bytes: read(&inner.from_peer_bytes),
        }
    }

    pub(crate) fn opened(&self) -> Counted {
        self.inner.open.fetch_add(1, Ordering::Relaxed);
        Counted { tally: self.clone(), is_complete: false }
    }

    pub(crate) fn failed(&self, failure: Failure) {
        self.inner.failed[failure as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn sent_to_peer(&self, bytes: usize) {
        self.inner.to_peer_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn received_from_peer(&self, bytes: usize) {
        self.inner.from_peer_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_is_counted_once_by_its_end() {
        let tally = Tally::default();
        let (mut first, second) = (tally.opened(), tally.opened());
        assert_eq!(tally.totals().open, 2);
        first.complete();
        drop((first, second));
        tally.failed(Failure::Limit);
        let totals = tally.totals();
        assert_eq!((totals.open, totals.complete, totals.reset), (0, 1, 1));
        assert_eq!(totals.failures().collect::<Vec<_>>(), [(Failure::Limit, 1)]);
    }
}

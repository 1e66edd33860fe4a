//! Counters of forwarded connections, and the list of open ones.

use std::array;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// Counters of a process that forwards. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Open connections by number. The limits of listeners and users bound them.
    open: Mutex<BTreeMap<u64, Arc<Open>>>,
    /// Number of connections so far.
    opened: AtomicU64,
    complete: AtomicU64,
    reset: AtomicU64,
    /// In the order of [`Failure::ALL`].
    failed: [AtomicU64; Failure::ALL.len()],
    to_peer_bytes: AtomicU64,
    from_peer_bytes: AtomicU64,
    copies: AtomicU64,
}

/// Open connection.
#[derive(Debug)]
struct Open {
    target: String,
    since: Instant,
    to_peer_bytes: AtomicU64,
    from_peer_bytes: AtomicU64,
}

/// State of an open connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenConnection {
    /// Number of the connection in this process, from 1.
    pub number: u64,
    /// Target of the connection.
    pub target: String,
    /// Time since the connection was opened.
    pub age: Duration,
    /// Bytes read from the connection and sent to the peer.
    pub to_peer_bytes: u64,
    /// Bytes received from the peer and written to the connection.
    pub from_peer_bytes: u64,
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
    /// Copies of datagrams and of retransmissions that were sent on a second path. The latest 250 ms are missing.
    pub copies: u64,
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
    number: u64,
    open: Arc<Open>,
    is_complete: bool,
}

impl Counted {
    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
    }

    pub(crate) fn sent_to_peer(&self, bytes: usize) {
        self.open.to_peer_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.tally.sent_to_peer(bytes);
    }

    pub(crate) fn received_from_peer(&self, bytes: usize) {
        self.open.from_peer_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.tally.received_from_peer(bytes);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Inner { complete, reset, .. } = &*self.tally.inner;
        let ended = if self.is_complete { complete } else { reset };
        self.tally.open().remove(&self.number);
        ended.fetch_add(1, Ordering::Relaxed);
    }
}

impl Tally {
    /// Returns the values.
    pub fn totals(&self) -> Totals {
        let inner = &*self.inner;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals {
            open: self.open().len(),
            complete: read(&inner.complete),
            reset: read(&inner.reset),
            failed: array::from_fn(|index| read(&inner.failed[index])),
            to_peer_bytes: read(&inner.to_peer_bytes),
            from_peer_bytes: read(&inner.from_peer_bytes),
            copies: read(&inner.copies),
        }
    }

    /// Returns the open connections with the most bytes, at most this number.
    pub fn connections(&self, most: usize) -> Vec<OpenConnection> {
        let state = |(number, open): (&u64, &Arc<Open>)| OpenConnection {
            number: *number,
            target: open.target.clone(),
            age: open.since.elapsed(),
            to_peer_bytes: open.to_peer_bytes.load(Ordering::Relaxed),
            from_peer_bytes: open.from_peer_bytes.load(Ordering::Relaxed),
        };
        let mut connections: Vec<OpenConnection> = self.open().iter().map(state).collect();
        connections
            .sort_by_key(|one| (std::cmp::Reverse(one.to_peer_bytes + one.from_peer_bytes), one.number));
        connections.truncate(most);
        connections
    }

    pub(crate) fn opened(&self, target: String) -> Counted {
        let number = self.inner.opened.fetch_add(1, Ordering::Relaxed) + 1;
        let (to_peer_bytes, from_peer_bytes) = Default::default();
        let open = Arc::new(Open { target, since: Instant::now(), to_peer_bytes, from_peer_bytes });
        self.open().insert(number, Arc::clone(&open));
        Counted { tally: self.clone(), number, open, is_complete: false }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Open>>> {
        self.inner.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn failed(&self, failure: Failure) {
        self.inner.failed[failure as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn sent_to_peer(&self, bytes: usize) {
        self.inner.to_peer_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn copied(&self, copies: u64) {
        self.inner.copies.fetch_add(copies, Ordering::Relaxed);
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
        let (mut first, second) = (tally.opened("a:1".to_owned()), tally.opened("b:1".to_owned()));
        assert_eq!(tally.totals().open, 2);
        first.complete();
        drop((first, second));
        tally.failed(Failure::Limit);
        let totals = tally.totals();
        assert_eq!((totals.open, totals.complete, totals.reset), (0, 1, 1));
        assert_eq!(totals.failures().collect::<Vec<_>>(), [(Failure::Limit, 1)]);
    }

    #[test]
    fn open_connections_are_listed_by_their_bytes() {
        let tally = Tally::default();
        let opened = ["a:1", "b:1", "c:1"].map(|target| tally.opened(target.to_owned()));
        opened[1].sent_to_peer(5);
        opened[2].received_from_peer(9);
        let listed = |most| -> Vec<(u64, String)> {
            tally.connections(most).into_iter().map(|one| (one.number, one.target)).collect()
        };
        assert_eq!(listed(2), [(3, "c:1".to_owned()), (2, "b:1".to_owned())]);
        drop(opened);
        assert_eq!(listed(2), []);
        assert_eq!((tally.totals().to_peer_bytes, tally.totals().from_peer_bytes), (5, 9));
    }
}

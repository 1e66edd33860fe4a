//! Records that wait for the writer.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_core::time::Time;
use anabranch_core::trace::TraceEvent;
use anabranch_core::{PathId, Statistics};
use anabranch_net::{CloseReason, DatagramOutcome, KeyChange};
use anabranch_trace::PathSample;

/// Approximate limit of the memory for records, in bytes. Records beyond it are dropped.
const MOST_BYTES: usize = 64 << 20;
/// Amount of waiting records in bytes that wakes the writer before its period ends.
const MUCH_BYTES: usize = 8 << 20;
/// Maximum time that records wait for the writer.
const PERIOD: Duration = Duration::from_millis(50);
/// Approximate memory of a record besides the bytes of a packet, in bytes.
const RECORD_BYTES: usize = 256;

/// Identifier of an association among those of all endpoints of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Index of the endpoint.
    pub(crate) endpoint: usize,
    /// Number of the association at the endpoint.
    pub(crate) number: u64,
}

/// Recorded event. Times count from the start of the recording.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    Endpoint {
        locals: Vec<SocketAddr>,
    },
    Datagram {
        at: Time,
        endpoint: usize,
        local: SocketAddr,
        remote: SocketAddr,
        outcome: DatagramOutcome,
        bytes: Range<usize>,
    },
    Opened {
        key: Key,
        at: Time,
        peer_port: u16,
    },
    PathAddress {
        key: Key,
        at: Time,
        path: PathId,
        local: IpAddr,
        remote: SocketAddr,
    },
    /// Index of the path sample in `stands`.
    Path {
        key: Key,
        at: Time,
        stand: usize,
    },
    /// Index of the event in `decisions`.
    Decision {
        key: Key,
        decision: usize,
    },
    Timeouts {
        key: Key,
        at: Time,
        total: u64,
    },
    Keys {
        key: Key,
        at: Time,
        change: KeyChange,
    },
    Closed {
        key: Key,
        at: Time,
        outcome: Result<(), CloseReason>,
    },
}

/// Sequence of records in order of arrival, with the data that they refer to.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) records: Vec<Record>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) stands: Vec<PathSample>,
    pub(crate) decisions: Vec<TraceEvent>,
    /// Latest counters of the associations with new events.
    pub(crate) statistics: Vec<(Key, Statistics)>,
    /// Number of records dropped for lack of room.
    pub(crate) dropped: u64,
}

impl Batch {
    fn size(&self) -> usize {
        self.bytes.len() + self.records.len() * RECORD_BYTES
    }

    /// Returns `true` if there is room for another record. Otherwise counts a dropped record.
    pub(crate) fn has_room(&mut self) -> bool {
        let room = self.size() < MOST_BYTES;
        self.dropped += u64::from(!room);
        room
    }

    pub(crate) fn counted(&mut self, key: Key, statistics: Statistics) {
        match self.statistics.iter_mut().find(|(known, _)| *known == key) {
            Some((_, latest)) => *latest = statistics,
            None => self.statistics.push((key, statistics)),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.bytes.clear();
        self.stands.clear();
        self.decisions.clear();
        self.statistics.clear();
        self.dropped = 0;
    }
}

#[derive(Debug, Default)]
struct State {
    batch: Batch,
    finished: bool,
}

/// Queue between endpoints and the writer. Each lock is held briefly, so no caller waits long.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    wake: Condvar,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds records to the batch.
    pub(crate) fn write(&self, what: impl FnOnce(&mut Batch)) {
        let mut state = self.lock();
        let before = state.batch.size();
        what(&mut state.batch);
        let much = before < MUCH_BYTES && state.batch.size() >= MUCH_BYTES;
        drop(state);
        if much {
            self.wake.notify_one();
        }
    }

    /// Exchanges the waiting batch for an empty one. Returns `true` if no more records will follow.
    pub(crate) fn take(&self, batch: &mut Batch) -> bool {
        let state = self.lock();
        let waits = |state: &mut State| !state.finished && state.batch.size() < MUCH_BYTES;
        let waited = self.wake.wait_timeout_while(state, PERIOD, waits);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        std::mem::swap(&mut state.batch, batch);
        state.finished
    }

    /// Lets the writer finish after the waiting records.
    pub(crate) fn finish(&self) {
        self.lock().finished = true;
        self.wake.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_beyond_the_capacity_are_counted_and_dropped() {
        let mut batch = Batch::default();
        batch.bytes.resize(MOST_BYTES - 1, 0);
        assert!(batch.has_room());
        batch.bytes.push(0);
        assert!(!batch.has_room() && !batch.has_room());
        assert_eq!(batch.dropped, 2);
        batch.clear();
        assert!(batch.has_room());
    }

    #[test]
    fn batch_is_passed_once_and_the_last_one_is_marked() {
        let inbox = Inbox::default();
        inbox.write(|batch| batch.bytes.push(7));
        let mut taken = Batch::default();
        assert!(!inbox.take(&mut taken));
        assert_eq!(taken.bytes, [7]);
        taken.clear();
        inbox.finish();
        assert!(inbox.take(&mut taken));
        assert!(taken.bytes.is_empty());
    }
}

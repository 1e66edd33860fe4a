//! What waits to be written.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_core::time::Time;
use anabranch_core::trace::TraceEvent;
use anabranch_core::{PathId, Statistics};
use anabranch_lab::trace::PathSample;
use anabranch_net::{CloseReason, DatagramOutcome, KeyChange};

/// Bytes of memory that records may take up, about; what comes beyond is dropped.
const MOST_BYTES: usize = 64 << 20;
/// The writer is woken once so much waits, and else by the time.
const MUCH_BYTES: usize = 8 << 20;
/// How long records wait for the writer.
const PERIOD: Duration = Duration::from_millis(50);
/// About what a record takes up beside the bytes of a packet.
const RECORD_BYTES: usize = 256;

/// Names an association among those of all hosts of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The host.
    pub(crate) host: usize,
    /// Its number at the host.
    pub(crate) number: u64,
}

/// Something that happened. Times are since the recording began.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    Host {
        locals: Vec<SocketAddr>,
    },
    Datagram {
        at: Time,
        host: usize,
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
    /// The place of how it stands.
    Path {
        key: Key,
        at: Time,
        stand: usize,
    },
    /// The place of the event.
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

/// Records in the order in which they came, with what they refer to.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) records: Vec<Record>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) stands: Vec<PathSample>,
    pub(crate) decisions: Vec<TraceEvent>,
    /// The latest counters of associations that something happened to.
    pub(crate) statistics: Vec<(Key, Statistics)>,
    /// Records that found no room.
    pub(crate) dropped: u64,
}

impl Batch {
    fn size(&self) -> usize {
        self.bytes.len() + self.records.len() * RECORD_BYTES
    }

    /// Whether one more has room; if not, it is counted.
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

/// Where hosts leave records and the writer takes them. Whoever holds its lock does little, so nobody waits long.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    wake: Condvar,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to the batch.
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

    /// Takes what has come meanwhile in exchange for an empty batch; `true` if no more will come.
    pub(crate) fn take(&self, batch: &mut Batch) -> bool {
        let state = self.lock();
        let waits = |state: &mut State| !state.finished && state.batch.size() < MUCH_BYTES;
        let waited = self.wake.wait_timeout_while(state, PERIOD, waits);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        std::mem::swap(&mut state.batch, batch);
        state.finished
    }

    /// Lets the writer come to its end with what there is.
    pub(crate) fn finish(&self) {
        self.lock().finished = true;
        self.wake.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_counted_and_not_kept() {
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
    fn a_batch_is_handed_over_once_and_the_last_one_says_so() {
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

//! Progress of a transfer: counters that can be read at any time, and events.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::protocol::{Failure, Offer, Outcome, Reason};
use crate::text::PeerText;

/// Counters of a transfer, which one side advances and any thread may read. Each counter covers all associations of the transfer.
#[derive(Debug, Default)]
pub struct Counters {
    found_files: AtomicU64,
    found_bytes: AtomicU64,
    all_found: AtomicBool,
    expected_files: AtomicU64,
    expected_bytes: AtomicU64,
    /// Set once `expected_files` is known.
    has_expected_files: AtomicBool,
    /// Set once `expected_bytes` is known.
    has_expected_bytes: AtomicBool,
    /// Set once a pipe is offered, whose size is known only at its end.
    has_pipe: AtomicBool,
    /// Sizes of files that failed or are only planned.
    unsent_bytes: AtomicU64,
    /// Bytes of failed files that the receiver keeps, which `held_bytes` includes.
    kept_bytes: AtomicU64,
    done_files: AtomicU64,
    failed_files: AtomicU64,
    held_bytes: AtomicU64,
    reused_bytes: AtomicU64,
    moved_bytes: AtomicU64,
    deleted: AtomicU64,
    deletable: AtomicU64,
}

/// Snapshot of [`Counters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of files offered so far.
    pub found_files: u64,
    /// User bytes of the found files; the content of a pipe counts as it arrives.
    pub found_bytes: u64,
    /// Set once the source has no further offers.
    pub all_found: bool,
    /// Number of files that the source has counted ahead of its offers; `None` until all are counted.
    pub expected_files: Option<u64>,
    /// User bytes of the counted files; `None` until all are counted, and if one of them is a pipe.
    pub expected_bytes: Option<u64>,
    /// User bytes that will not be sent: the rest of files that failed, and all bytes of those that a dry run plans.
    pub skipped_bytes: u64,
    /// Set once a pipe is offered, whose size is known only at its end.
    pub has_pipe: bool,
    /// Number of files that the receiver has, complete and verified, including those that it had before.
    pub done_files: u64,
    /// Number of files and folders that could not be transferred. Symbolic links that a rule excludes are not counted.
    pub failed_files: u64,
    /// User bytes that the receiver has, including those that it had before.
    pub held_bytes: u64,
    /// User bytes that the receiver had before and that were not sent.
    pub reused_bytes: u64,
    /// User bytes that were sent or received as blocks, including repetitions by this protocol, but not those by SCTP.
    pub moved_bytes: u64,
    /// Number of files, folders and links that were removed because the source does not have them.
    pub deleted: u64,
    /// Number of those that a dry run would remove.
    pub deletable: u64,
}

impl Totals {
    /// Returns the number of files in the whole transfer, if it is known.
    pub fn all_files(&self) -> Option<u64> {
        if self.all_found {
            return Some(self.found_files);
        }
        // Files may have been added since they were counted.
        self.expected_files.map(|files| files.max(self.found_files))
    }

    /// Returns the user bytes of the whole transfer, if they are known.
    pub fn all_bytes(&self) -> Option<u64> {
        if self.has_pipe {
            return None;
        }
        if self.all_found {
            return Some(self.found_bytes);
        }
        self.expected_bytes.map(|bytes| bytes.max(self.found_bytes))
    }
}

/// Event of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A transfer begins at a server: the peer's request is accepted.
    Started {
        /// `true` if the peer fetches files, `false` if it sends them.
        is_fetched: bool,
        /// Names that a peer fetches; empty for all files.
        names: Vec<PeerText>,
    },
    /// The transfer of a file begins.
    Begun {
        /// Name of the entry.
        name: PeerText,
        /// Size of the file in bytes, if known.
        size_bytes: Option<u64>,
        /// User bytes that the receiver has already.
        reused_bytes: u64,
    },
    /// An offered file or folder is done.
    Done {
        /// Name of the entry.
        name: PeerText,
        /// Size of the file in bytes; `None` for a folder.
        size_bytes: Option<u64>,
        /// Result of the transfer.
        outcome: Outcome,
    },
    /// An offer of the peer, if only a list was requested.
    Listed(Box<Offer>),
    /// The receiver has removed an entry because the source does not have it.
    Deleted {
        /// Name of the entry.
        name: PeerText,
        /// Set in a dry run, which does not remove the entry.
        is_planned: bool,
    },
    /// The source did not offer an entry.
    Skipped {
        /// Name of the entry.
        name: PeerText,
        /// Reason why the entry was not offered.
        failure: Failure,
    },
    /// Information that is no failure.
    Note(PeerText),
    /// The association was lost; another one is tried.
    Disconnected(PeerText),
    /// Another association replaced the lost one.
    Reconnected,
}

/// Destination of the events and counters of a transfer. Clones share the same destination.
#[derive(Clone)]
pub struct Report {
    counters: Arc<Counters>,
    tell: Arc<dyn Fn(Event) + Send + Sync>,
}

impl Report {
    /// Creates a report that calls `tell` with each event, on the thread where it occurs; `tell` should return soon.
    pub fn new(tell: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Report { counters: Arc::default(), tell: Arc::new(tell) }
    }

    /// Returns the counters.
    pub fn totals(&self) -> Totals {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let known = |is_known: &AtomicBool, counter: &AtomicU64| {
            // Acquire pairs with the release in `expect`: the value is visible once the flag is set.
            is_known.load(Ordering::Acquire).then(|| get(counter))
        };
        let counters = &self.counters;
        Totals {
            found_files: get(&counters.found_files),
            found_bytes: get(&counters.found_bytes),
            all_found: counters.all_found.load(Ordering::Relaxed),
            expected_files: known(&counters.has_expected_files, &counters.expected_files),
            expected_bytes: known(&counters.has_expected_bytes, &counters.expected_bytes),
            skipped_bytes: get(&counters.unsent_bytes).saturating_sub(get(&counters.kept_bytes)),
            has_pipe: counters.has_pipe.load(Ordering::Relaxed),
            done_files: get(&counters.done_files),
            failed_files: get(&counters.failed_files),
            held_bytes: get(&counters.held_bytes),
            reused_bytes: get(&counters.reused_bytes),
            moved_bytes: get(&counters.moved_bytes),
            deleted: get(&counters.deleted),
            deletable: get(&counters.deletable),
        }
    }

    pub(crate) fn emit(&self, event: Event) {
        (self.tell)(event);
    }

    pub(crate) fn found(&self, files: u64, bytes: u64) {
        add(&self.counters.found_files, files);
        add(&self.counters.found_bytes, bytes);
    }

    /// Records that a pipe is offered.
    pub(crate) fn record_pipe(&self) {
        self.counters.has_pipe.store(true, Ordering::Relaxed);
        self.found(1, 0);
    }

    /// Records the size of the whole transfer, as the source counted it.
    pub(crate) fn expect(&self, files: u64, bytes: Option<u64>) {
        let counters = &self.counters;
        counters.expected_files.store(files, Ordering::Relaxed);
        counters.has_expected_files.store(true, Ordering::Release);
        if let Some(bytes) = bytes {
            counters.expected_bytes.store(bytes, Ordering::Relaxed);
            counters.has_expected_bytes.store(true, Ordering::Release);
        }
    }

    /// Records the bytes that the receiver keeps of a file that fails. Call it before [`done`](Self::done).
    pub(crate) fn kept(&self, bytes: u64) {
        add(&self.counters.kept_bytes, bytes);
    }

    /// Subtracts files that will be found again.
    pub(crate) fn subtract_found(&self, files: u64, bytes: u64) {
        self.counters.found_files.fetch_sub(files, Ordering::Relaxed);
        self.counters.found_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Emits a note.
    pub fn note(&self, text: impl Into<PeerText>) {
        self.emit(Event::Note(text.into()));
    }

    /// Resets the counters of offers, which are repeated on another association. The moved bytes stay counted.
    pub fn forget_all(&self) {
        let counters = &self.counters;
        for counter in [
            &counters.found_files,
            &counters.found_bytes,
            &counters.done_files,
            &counters.failed_files,
            &counters.held_bytes,
            &counters.reused_bytes,
            &counters.deletable,
            &counters.unsent_bytes,
            &counters.kept_bytes,
        ] {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// Replaces `before` counted bytes of a file by `now`, as the receiver reports them.
    pub(crate) fn recount(&self, before: u64, now: u64) {
        self.counters.held_bytes.fetch_add(now, Ordering::Relaxed);
        self.counters.held_bytes.fetch_sub(before, Ordering::Relaxed);
    }

    pub(crate) fn all_found(&self) {
        self.counters.all_found.store(true, Ordering::Relaxed);
    }

    pub(crate) fn reused(&self, bytes: u64) {
        add(&self.counters.reused_bytes, bytes);
        add(&self.counters.held_bytes, bytes);
    }

    /// Subtracts the bytes of a file that restarts, on another association or after a change, so that they are not counted twice.
    pub(crate) fn forget(&self, reused_bytes: u64, held_bytes: u64) {
        self.counters.reused_bytes.fetch_sub(reused_bytes, Ordering::Relaxed);
        self.counters.held_bytes.fetch_sub(reused_bytes + held_bytes, Ordering::Relaxed);
    }

    pub(crate) fn held(&self, bytes: u64) {
        add(&self.counters.held_bytes, bytes);
    }

    pub(crate) fn moved(&self, bytes: u64) {
        add(&self.counters.moved_bytes, bytes);
    }

    pub(crate) fn done(&self, name: impl Into<PeerText>, size_bytes: Option<u64>, outcome: Outcome) {
        match outcome {
            Outcome::Failed(_) => add(&self.counters.failed_files, 1),
            _ => add(&self.counters.done_files, u64::from(size_bytes.is_some())),
        }
        if matches!(outcome, Outcome::Failed(_) | Outcome::Planned) {
            add(&self.counters.unsent_bytes, size_bytes.unwrap_or(0));
        }
        self.emit(Event::Done { name: name.into(), size_bytes, outcome });
    }

    /// Resets the number of entries to remove, since the receiver reports these entries again.
    pub(crate) fn forget_deletable(&self) {
        self.counters.deletable.store(0, Ordering::Relaxed);
    }

    pub(crate) fn deleted(&self, name: impl Into<PeerText>, is_planned: bool) {
        add(if is_planned { &self.counters.deletable } else { &self.counters.deleted }, 1);
        self.emit(Event::Deleted { name: name.into(), is_planned });
    }

    pub(crate) fn passed(&self, name: impl Into<PeerText>, failure: Failure) {
        add(&self.counters.failed_files, u64::from(failure.reason != Reason::Link));
        self.emit(Event::Skipped { name: name.into(), failure });
    }
}

fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

impl Default for Report {
    /// Creates a report that keeps the counters and discards the events.
    fn default() -> Self {
        Report::new(|_| {})
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report").field("totals", &self.totals()).finish_non_exhaustive()
    }
}

//! Syncs a journal on a separate thread, so that blocks can be written at the same time.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::disk::{Disk, Step};
use super::journal::{Entry, Journal};

/// A journal that a part file and its syncer share.
pub(super) type SharedJournal = Arc<Mutex<Journal>>;

/// Blocks that were written, and are not in the journal.
pub(super) type Batch = Vec<Entry>;

/// Syncs one batch at a time, on a thread if the system has one for it.
#[derive(Debug)]
pub(super) struct Syncer {
    journal: Journaled,
    worker: Option<Worker>,
}

/// A part file, and the journal of its blocks.
#[derive(Clone, Debug)]
struct Journaled {
    part: Arc<File>,
    journal: SharedJournal,
    disk: Disk,
}

#[derive(Debug)]
struct Worker {
    /// `None` only while the worker is being dropped.
    batches: Option<SyncSender<Batch>>,
    done: Receiver<io::Result<()>>,
    is_busy: bool,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    /// Starts the thread, which has ended when the syncer is dropped.
    pub(super) fn start(part: Arc<File>, journal: SharedJournal, disk: Disk) -> Self {
        let journal = Journaled { part, journal, disk };
        Syncer { worker: Worker::start(journal.clone()).ok(), journal }
    }

    /// Returns `true` if it would accept a batch without waiting.
    ///
    /// # Errors
    /// Returns the error of the last batch.
    pub(super) fn is_free(&mut self) -> io::Result<bool> {
        self.worker.as_mut().map_or(Ok(true), Worker::is_free)
    }

    /// Waits until the current batch is done.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        self.worker.as_mut().map_or(Ok(()), Worker::wait)
    }

    /// Accepts a batch, after waiting for the current one.
    pub(super) fn take(&mut self, batch: Batch) -> io::Result<()> {
        match &mut self.worker {
            Some(worker) => worker.take(batch),
            None => self.journal.sync(&batch),
        }
    }
}

impl Worker {
    fn start(journal: Journaled) -> io::Result<Self> {
        let (batches, jobs) = sync_channel::<Batch>(1);
        let (tell, done) = sync_channel(1);
        let thread = std::thread::Builder::new().name("journal".to_owned()).spawn(move || {
            for batch in jobs {
                if tell.send(journal.sync(&batch)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Worker { batches: Some(batches), done, is_busy: false, thread: Some(thread) })
    }

    fn is_free(&mut self) -> io::Result<bool> {
        if self.is_busy {
            match self.done.try_recv() {
                Ok(ended) => {
                    self.is_busy = false;
                    ended?;
                }
                Err(TryRecvError::Empty) => return Ok(false),
                Err(TryRecvError::Disconnected) => return Err(gone()),
            }
        }
        Ok(true)
    }

    fn wait(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_busy) { self.done.recv().map_err(|_| gone())? } else { Ok(()) }
    }

    fn take(&mut self, batch: Batch) -> io::Result<()> {
        self.wait()?;
        self.batches.as_ref().ok_or_else(gone)?.send(batch).map_err(|_| gone())?;
        self.is_busy = true;
        Ok(())
    }
}

impl Drop for Worker {
    /// Waits for the thread, which shares the lock on the part file, so that the lock is released.
    fn drop(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended, too.
            let _ = thread.join();
        }
    }
}

impl Journaled {
    /// Syncs the blocks first, then the journal that records them.
    fn sync(&self, batch: &Batch) -> io::Result<()> {
        self.part.sync_data()?;
        self.disk.before(Step::SyncJournal)?;
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        batch.iter().try_for_each(|entry| journal.append(entry))?;
        journal.sync()
    }
}

fn gone() -> io::Error {
    io::Error::other("the journal thread has ended")
}

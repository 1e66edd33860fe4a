//! Brings a journal up to date on a thread of its own, so that blocks are written meanwhile.

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

/// A thread that synchronises one batch at a time.
#[derive(Debug)]
pub(super) struct Syncer {
    /// `None` while it is dropped.
    batches: Option<SyncSender<Batch>>,
    done: Receiver<io::Result<()>>,
    is_busy: bool,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    /// Starts the thread, which has ended when this is dropped.
    pub(super) fn start(part: File, journal: SharedJournal, disk: Disk) -> io::Result<Self> {
        let (batches, jobs) = sync_channel::<Batch>(1);
        let (tell, done) = sync_channel(1);
        let thread = std::thread::Builder::new().name("journal".to_owned()).spawn(move || {
            for batch in jobs {
                if tell.send(sync(&part, &journal, &batch, &disk)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Syncer { batches: Some(batches), done, is_busy: false, thread: Some(thread) })
    }

    /// Whether it would take a batch at once.
    ///
    /// # Errors
    /// Why the last one failed.
    pub(super) fn is_free(&mut self) -> io::Result<bool> {
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

    /// Waits until the batch under way is done.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_busy) { self.done.recv().map_err(|_| gone())? } else { Ok(()) }
    }

    /// Takes a batch, after the one under way.
    pub(super) fn take(&mut self, batch: Batch) -> io::Result<()> {
        self.wait()?;
        self.batches.as_ref().ok_or_else(gone)?.send(batch).map_err(|_| gone())?;
        self.is_busy = true;
        Ok(())
    }
}

impl Drop for Syncer {
    /// The thread shares the lock on the part file, so that nobody else can have it before the thread has ended.
    fn drop(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended, too.
            let _ = thread.join();
        }
    }
}

/// First what the journal tells of, then the journal.
fn sync(part: &File, journal: &Mutex<Journal>, batch: &Batch, disk: &Disk) -> io::Result<()> {
    part.sync_data()?;
    disk.before(Step::SyncJournal)?;
    let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
    batch.iter().try_for_each(|entry| journal.append(entry))?;
    journal.sync()
}

fn gone() -> io::Error {
    io::Error::other("the thread that keeps the journal is gone")
}

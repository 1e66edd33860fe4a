//! The file system that a folder is on: how much room it has, and, in tests, where it fails.

use std::fs::File;
use std::io;

/// What is about to be done to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    OpenPart,
    CreateJournal,
    WriteBlock,
    SyncJournal,
    Seal,
    Commit,
    Record,
}

/// Clones are the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    #[cfg(test)]
    faults: std::sync::Arc<std::sync::Mutex<Faults>>,
}

/// What a test has decided.
#[cfg(test)]
#[derive(Debug, Default)]
struct Faults {
    full_at: Option<Step>,
    free_bytes: Option<u64>,
}

impl Disk {
    /// To be called before each step, which fails if this does.
    #[cfg(not(test))]
    #[allow(clippy::unused_self)]
    pub(super) fn before(&self, _step: Step) -> io::Result<()> {
        Ok(())
    }

    /// Bytes that may be written by whoever we are to the file system of an open file or folder; `None` if it does not say.
    #[cfg(not(test))]
    #[allow(clippy::unused_self)]
    pub(super) fn free_bytes(&self, on: &File) -> Option<u64> {
        system_free_bytes(on)
    }
}

#[cfg(unix)]
fn system_free_bytes(on: &File) -> Option<u64> {
    let system = rustix::fs::fstatvfs(on).ok()?;
    // File systems without a size of their own, such as some over a network, report nothing at all.
    (system.f_blocks > 0).then(|| system.f_bavail.saturating_mul(system.f_frsize))
}

#[cfg(not(unix))]
fn system_free_bytes(_on: &File) -> Option<u64> {
    None
}

#[cfg(test)]
impl Disk {
    pub(super) fn before(&self, step: Step) -> io::Result<()> {
        match self.faults.lock().expect("no test panicked").full_at {
            Some(full_at) if full_at == step => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    pub(super) fn free_bytes(&self, on: &File) -> Option<u64> {
        self.faults.lock().expect("no test panicked").free_bytes.or_else(|| system_free_bytes(on))
    }

    /// From now on the disk is full whenever this is done.
    pub(crate) fn fill_at(&self, step: Option<Step>) {
        self.faults.lock().expect("no test panicked").full_at = step;
    }

    pub(crate) fn set_free_bytes(&self, bytes: u64) {
        self.faults.lock().expect("no test panicked").free_bytes = Some(bytes);
    }
}

//! File system of a folder: its free space and, in tests, its failures.

use std::fs::File;
use std::io;

/// Step that is about to access the disk.
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

/// Access to the disk. Clones share the failures that a test has set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    #[cfg(test)]
    faults: std::sync::Arc<std::sync::Mutex<Faults>>,
}

/// Failures that a test has set.
#[cfg(test)]
#[derive(Debug, Default)]
struct Faults {
    full_at: Option<Step>,
    free_bytes: Option<u64>,
}

impl Disk {
    /// Call it before each step. Returns the error that a test has set for the step.
    #[cfg(not(test))]
    #[allow(clippy::unused_self)]
    pub(super) fn before(&self, _step: Step) -> io::Result<()> {
        Ok(())
    }

    /// Returns the bytes that this user may write to the file system of an open file or folder; `None` if it reports no size.
    #[cfg(not(test))]
    #[allow(clippy::unused_self)]
    pub(super) fn free_bytes(&self, on: &File) -> Option<u64> {
        system_free_bytes(on)
    }
}

#[cfg(unix)]
fn system_free_bytes(on: &File) -> Option<u64> {
    let system = rustix::fs::fstatvfs(on).ok()?;
    // File systems without a size of their own, such as some network file systems, report 0.
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

    /// Makes the disk full at this step from now on.
    pub(crate) fn fill_at(&self, step: Option<Step>) {
        self.faults.lock().expect("no test panicked").full_at = step;
    }

    pub(crate) fn set_free_bytes(&self, bytes: u64) {
        self.faults.lock().expect("no test panicked").free_bytes = Some(bytes);
    }
}

//! Names of the folders in one level of a tree that is read without an open descriptor for each level.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

/// Maximum length of the names of folders that one level has read and not visited, in bytes.
pub(super) const MAX_BATCH_BYTES: usize = 32 << 10;

/// The next folders of one level in the order of their names.
#[derive(Default)]
pub(super) struct Batch {
    names: BTreeSet<OsString>,
    bytes: usize,
    /// Set if the level has further folders behind these.
    is_cut: bool,
    /// The most recently taken name.
    taken: Option<OsString>,
}

impl Batch {
    /// Adds a folder if it is admitted.
    pub(super) fn add(&mut self, name: &OsStr) {
        if !self.admits(name) || !self.names.insert(name.to_owned()) {
            return;
        }
        self.bytes += name.len();
        while self.bytes > MAX_BATCH_BYTES {
            self.bytes -= self.names.pop_last().map_or(0, |last| last.len());
            self.is_cut = true;
        }
    }

    /// Returns `true` for a folder that was not taken before and does not lie behind this batch.
    pub(super) fn admits(&self, name: &OsStr) -> bool {
        let is_taken = self.taken.as_deref().is_some_and(|taken| name <= taken);
        let is_behind = self.is_cut && self.names.last().is_some_and(|last| name > last.as_os_str());
        !is_taken && !is_behind
    }

    /// Takes the next folder.
    pub(super) fn take(&mut self) -> Option<OsString> {
        let name = self.names.pop_first()?;
        self.bytes -= name.len();
        self.taken = Some(name.clone());
        Some(name)
    }

    /// Returns `true` if the level is to be read again for folders behind the last batch.
    pub(super) fn begin_next(&mut self) -> bool {
        std::mem::take(&mut self.is_cut)
    }

    /// Returns `true` while the level is read for the first time, so that its files have not been seen.
    pub(super) fn is_first(&self) -> bool {
        self.taken.is_none()
    }
}

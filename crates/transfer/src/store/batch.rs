//! Names of the subfolders of one folder, read in batches so that neither memory nor open descriptors grow with the tree.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

/// Maximum total length of the names in a batch, in bytes.
pub(super) const MAX_BATCH_BYTES: usize = 32 << 10;

/// Next subfolders of one folder to visit, in the order of their names.
#[derive(Default)]
pub(super) struct Batch {
    names: BTreeSet<OsString>,
    bytes: usize,
    /// Set if the folder has further subfolders whose names follow the last name of this batch.
    is_cut: bool,
    /// Name that was taken last.
    taken: Option<OsString>,
}

impl Batch {
    /// Adds a subfolder if [`admits`](Self::admits) accepts it. If the batch then exceeds [`MAX_BATCH_BYTES`], the last names are
    /// removed.
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

    /// Returns `true` if the name follows the name taken last and does not follow the last name of a cut batch.
    pub(super) fn admits(&self, name: &OsStr) -> bool {
        let is_taken = self.taken.as_deref().is_some_and(|taken| name <= taken);
        let is_behind = self.is_cut && self.names.last().is_some_and(|last| name > last.as_os_str());
        !is_taken && !is_behind
    }

    /// Removes the first name and returns it.
    pub(super) fn take(&mut self) -> Option<OsString> {
        let name = self.names.pop_first()?;
        self.bytes -= name.len();
        self.taken = Some(name.clone());
        Some(name)
    }

    /// Begins the next batch. Returns `true` if the caller has to read the folder again, because the last batch was cut.
    pub(super) fn begin_next(&mut self) -> bool {
        std::mem::take(&mut self.is_cut)
    }

    /// Returns `true` until the first name is taken. The folder is then read for the first time, and its files have to be
    /// processed.
    pub(super) fn is_first(&self) -> bool {
        self.taken.is_none()
    }
}

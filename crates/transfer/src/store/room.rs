//! Checks of a folder before files are requested from a peer.

use std::io;

use cap_std::fs::Metadata;

use super::folder::{Folder, allocated_bytes};
use super::tree::read_tree;
use crate::name::{JOURNAL_ENDING, OWN_BEGINNING, PART_ENDING};

/// Beginning of the name of a temporary file, which shows that a folder is writable.
const PROBE: &str = ".anabranch-probe-";

/// Maximum number of entries of a folder that are read for one estimate.
const MOST_READ: usize = 1_000_000;

impl Folder {
    /// Creates a file in the folder and removes it again.
    ///
    /// # Errors
    /// Returns the error of writing to it.
    pub fn check_writable(&self) -> io::Result<()> {
        let number = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        let probe = format!("{PROBE}{number:016x}");
        drop(self.files.open_or_create(&probe)?);
        self.files.remove_if_there(&probe)
    }

    /// Returns the free bytes if they do not suffice for files of `needed` bytes in total below these names. Existing files and
    /// part files below the names count as parts of these files.
    pub fn missing_room(&self, needed: u64, names: &[&str]) -> Option<u64> {
        self.missing_beside(needed, |name, is_top| {
            !is_top || name.ends_with(PART_ENDING) || names.contains(&name)
        })
    }

    /// Returns the free bytes if they do not suffice for files of `needed` bytes in total, even if all existing files belong to
    /// them.
    pub(crate) fn missing_room_for_any(&self, needed: u64) -> Option<u64> {
        self.missing_beside(needed, |_, _| true)
    }

    fn missing_beside(&self, needed: u64, counts: impl Fn(&str, bool) -> bool) -> Option<u64> {
        let here = self.open_file(".").ok()?;
        let free = self.files.disk.free_bytes(&here)?;
        if needed <= free {
            return None;
        }
        let there = self.sum_below(counts, |_, metadata| allocated_bytes(metadata));
        (needed > free.saturating_add(there)).then_some(free)
    }

    /// Returns the bytes of files below the folder that count for a [quota](super::quota).
    pub(crate) fn quota_bytes(&self) -> u64 {
        let size = |name: &str, metadata: &Metadata| match name {
            name if name.ends_with(PART_ENDING) => allocated_bytes(metadata),
            name if is_own(name) => 0,
            _ => metadata.len(),
        };
        self.sum_below(|_, _| true, size)
    }

    /// Returns the total size of the files below the folder that `counts` selects by their names.
    fn sum_below(&self, counts: impl Fn(&str, bool) -> bool, size: impl Fn(&str, &Metadata) -> u64) -> u64 {
        let mut bytes = 0_u64;
        // Entries that cannot be read count as 0.
        let _ = read_tree(&self.files.dir, MOST_READ, |entry| {
            // Names that are not UTF-8 were created by other programs.
            let name = entry.name.to_string_lossy();
            let is_counted = counts(&name, entry.is_top);
            if is_counted && entry.metadata.is_file() {
                bytes = bytes.saturating_add(size(&name, entry.metadata));
            }
            is_counted
        });
        bytes
    }
}

/// Returns `true` for the program's own records.
fn is_own(name: &str) -> bool {
    name.ends_with(JOURNAL_ENDING) || name.starts_with(OWN_BEGINNING)
}

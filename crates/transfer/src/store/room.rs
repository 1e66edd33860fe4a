//! Checks of a folder before anything is asked of a peer.

use std::io;

use cap_std::fs::Metadata;

use super::folder::{Folder, allocated_bytes};
use super::tree::read_tree;
use crate::name::{JOURNAL_ENDING, OWN_BEGINNING, PART_ENDING};

/// Name of the file that shows that a folder can be written to. It is removed at once.
const PROBE: &str = ".anabranch-probe-";

/// Most entries of a folder that are read for one estimate.
const MOST_READ: usize = 1_000_000;

impl Folder {
    /// Makes a file in it and removes that again.
    ///
    /// # Errors
    /// The error of writing to it.
    pub fn check_writable(&self) -> io::Result<()> {
        let number = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        let probe = format!("{PROBE}{number:016x}");
        drop(self.files.open_or_create(&probe)?);
        self.files.remove_if_there(&probe)
    }

    /// Returns the free bytes if files of `needed` bytes in all, below these names, have no room. Files that are there already, and
    /// parts of files, count as if they belonged to them.
    pub fn missing_room(&self, needed: u64, names: &[&str]) -> Option<u64> {
        self.missing_beside(needed, |name, is_top| {
            !is_top || name.ends_with(PART_ENDING) || names.contains(&name)
        })
    }

    /// Returns the free bytes if files of `needed` bytes in all have no room, even if all files here are part of them.
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

    /// Returns the bytes of files below it that count for a [quota](super::quota).
    pub(crate) fn quota_bytes(&self) -> u64 {
        let size = |name: &str, metadata: &Metadata| match name {
            name if name.ends_with(PART_ENDING) => allocated_bytes(metadata),
            name if is_own(name) => 0,
            _ => metadata.len(),
        };
        self.sum_below(|_, _| true, size)
    }

    /// Sums up files below it, as far as `counts` picks names at the top and below.
    fn sum_below(&self, counts: impl Fn(&str, bool) -> bool, size: impl Fn(&str, &Metadata) -> u64) -> u64 {
        let mut bytes = 0_u64;
        // What cannot be read takes no room that is known.
        let _ = read_tree(&self.files.dir, MOST_READ, |entry| {
            // Names that are no text come from elsewhere.
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

//! Helpers that several tests share.

use std::fs;
use std::path::Path;

/// Returns the number of descriptors of this process that lead to `path` or below it.
pub(super) fn open_below(path: &Path) -> usize {
    let open = fs::read_dir("/proc/self/fd").expect("a list of descriptors").flatten();
    open.filter(|entry| fs::read_link(entry.path()).is_ok_and(|link| link.starts_with(path))).count()
}

//! Resources of this process, as Linux reports them.

use std::fs;
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Returns the number of open descriptors.
///
/// # Panics
/// Panics if there is no `/proc`.
pub fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("Linux").count()
}

/// Returns the largest resident memory so far, in bytes.
///
/// # Panics
/// Panics if there is no `/proc`.
pub fn peak_resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kibibytes = line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok());
    kibibytes.expect("a number") << 10
}

/// Counts panics from now on, including those of detached threads and tasks, and reports them as before.
pub fn count_panics() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        report(panicked);
    }));
}

/// Returns the number of panics since [`count_panics`].
pub fn panics() -> u64 {
    PANICS.load(Ordering::SeqCst)
}

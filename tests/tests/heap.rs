//! Tests that count the memory of the process. These tests need a separate allocator and process, and run one after the other.

mod hostile;
mod memory;
mod rig;

use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Lock of the heap counts, which all tests of the process share.
static TURN: Mutex<()> = Mutex::new(());

/// Waits until no other test runs.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of bytes on the heap.
pub(crate) fn live_bytes() -> usize {
    let stats = GLOBAL.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

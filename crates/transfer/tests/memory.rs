//! Tests that count memory and descriptors of the process. They need an allocator and a process of their own, and take turns.

use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

mod many;
mod rejected;

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Held by each test while it runs.
static TURN: Mutex<()> = Mutex::new(());

/// Waits until no other test runs.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the bytes on the heap.
pub(crate) fn live_bytes() -> usize {
    let stats = GLOBAL.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

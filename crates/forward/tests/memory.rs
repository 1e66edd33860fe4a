//! Memory and descriptors of the process, which need an allocator and a process of their own.

use std::alloc::System;

use anabranch_forward::Limits;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use crate::rig::{connect, echo, exchange, local_options, pair, until};

#[allow(dead_code, reason = "other tests use the rest")]
mod rig;

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Connections of a step.
const STEP: u64 = 2_500;
const STEPS: usize = 4;

/// Bytes on the heap that a step may leave behind: ten for each connection. A leak shows in every step, and a buffer that grows in a
/// few of them.
const MOST_GROWTH: usize = 25_000;

fn live_bytes() -> usize {
    let stats = GLOBAL.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_connections_in_turn_leave_no_memory_and_descriptors() {
    let mut options = local_options();
    options.limits = Limits { per_second: 100_000, burst: 100_000, ..Limits::default() };
    let (_server, gateway, client) = pair(options).await;
    let address = client.forward(echo().await);
    let step = async || {
        for _ in 0..STEP {
            assert_eq!(exchange(&mut connect(address).await, b"x").await.expect("an answer"), b"x");
        }
        until("all have ended", || gateway.tally().totals().open == 0 && client.totals().open == 0).await;
        live_bytes()
    };
    let mut live = vec![step().await];
    let open = descriptors();
    for _ in 0..STEPS {
        live.push(step().await);
    }
    until("descriptors are closed", || descriptors() <= open + 8).await;
    let growth = live.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    assert!(growth.min() <= Some(MOST_GROWTH), "{live:?} B after each {STEP} connections");
    assert_eq!(gateway.tally().totals().complete, STEP * (1 + STEPS as u64));
}

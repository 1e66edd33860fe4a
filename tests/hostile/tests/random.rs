//! A peer that sends any message in any order causes no harm.
//!
//! `ANABRANCH_HOSTILE_MESSAGES` is the number of its messages, and `ANABRANCH_HOSTILE_SEED` selects them.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

use std::alloc::System;
use std::time::{Duration, Instant};

use anabranch_hostile::random::{Options, Violation, run};
use anabranch_hostile::resources;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Default number of messages of a run.
const MESSAGES: u64 = 20_000;
/// Maximum number of shorter runs after one without a reported deletion.
const MORE_RUNS: u32 = 4;
/// Maximum resident memory: six concurrent associations, with the data that the protocol lets each of them fill.
const MOST_RESIDENT: u64 = 600 << 20;
/// Maximum heap after the end of all associations: the memory of the runtime and the harness.
const MOST_LEFT: usize = 16 << 20;
/// Maximum time for sockets and threads to end.
const GONE_WITHIN: Duration = Duration::from_secs(20);

fn live() -> usize {
    let stats = GLOBAL.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

fn runtime() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime")
}

#[test]
fn arbitrary_messages_of_a_peer_harm_no_other_association() {
    resources::count_panics();
    let seed = setting("ANABRANCH_HOSTILE_SEED").unwrap_or(1);
    let messages = setting("ANABRANCH_HOSTILE_MESSAGES").unwrap_or(MESSAGES);
    println!("seed {seed}, {messages} messages");
    // The first runtime of a process may open permanent descriptors, for signals.
    drop(runtime());
    let (descriptors, heap, began) = (resources::descriptors(), live(), Instant::now());

    let runtime = runtime();
    let attack =
        |options| runtime.block_on(run(options)).unwrap_or_else(|violation: Violation| panic!("{violation}"));
    let mut figures = attack(Options { seed, messages });
    // The number of reported deletions depends on timing, so a busy machine may need some more rounds.
    for _ in 0..MORE_RUNS {
        if messages < MESSAGES || figures.heard_deletions > 0 {
            break;
        }
        let more = attack(Options { seed: seed.wrapping_add(figures.rounds), messages: MESSAGES / 4 });
        figures.heard_deletions += more.heard_deletions;
        figures.rounds += more.rounds;
    }
    runtime.shutdown_timeout(GONE_WITHIN);

    let peak = resources::peak_resident_bytes();
    println!("{figures:?} in {:.1} s, at most {} MiB resident", began.elapsed().as_secs_f64(), peak >> 20);
    assert_eq!(resources::panics(), 0, "something panicked; see above");
    assert!(peak < MOST_RESIDENT, "{} MiB were resident", peak >> 20);
    let left = live().saturating_sub(heap);
    assert!(left < MOST_LEFT, "{left} bytes are left on the heap");
    let until = Instant::now() + GONE_WITHIN;
    while resources::descriptors() > descriptors && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(resources::descriptors(), descriptors, "descriptors are left open");
    // A peer that is ignored tests nothing. A repeated round has only one role.
    if messages >= MESSAGES {
        assert!(figures.stored_files > messages / 500, "{figures:?}");
        assert!(figures.heard_segments > messages / 500, "{figures:?}");
        assert!(figures.heard_deletions > 0, "{figures:?}");
    }
}

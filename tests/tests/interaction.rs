//! Random interactions of two endpoints and their network: whatever is called in whatever order, and whatever the network
//! does, data arrives unchanged, in order and once, nothing stalls, and all books balance. Of messages that were sent with a
//! limit some are given up: those are missing whole, and hold nothing up.
//!
//! The idea is that of noq's test of the same name. The cases are the same ones each time, so that a change is judged by what it
//! does and not by luck; `ANABRANCH_CASES` draws so many others.

#[path = "interaction/case.rs"]
mod case;
#[path = "interaction/found.rs"]
mod found;
#[path = "interaction/op.rs"]
mod op;
#[path = "interaction/run.rs"]
mod run;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, FileFailurePersistence, RngAlgorithm, TestRng, TestRunner};

/// Where failing cases are kept.
const REGRESSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/interaction.txt");

fn runner() -> TestRunner {
    let asked = std::env::var("ANABRANCH_CASES").ok().and_then(|n| n.parse().ok());
    let config = Config {
        cases: asked.unwrap_or(3_000),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(REGRESSIONS))),
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    match asked {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    }
}

#[test]
fn nothing_that_can_be_done_breaks_an_association() {
    let outcome = runner().run(&case::any(), |case| {
        let first = run::run(&case);
        let second = run::run(&case);
        assert_eq!(first, second, "the same calls lead to other packets");
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// A test that never sees a loss tests nothing, so the cases are looked at as well.
#[test]
fn the_cases_reach_what_they_are_to_test() {
    let mut runner = TestRunner::deterministic();
    let mut sums = [0; 21];
    for _ in 0..300 {
        let case = case::any().new_tree(&mut runner).expect("a case").current();
        let duo = run::play(&case);
        for s in duo.nodes.iter().filter_map(|n| n.try_association()).map(|a| a.statistics()) {
            let counted = [
                s.timeouts,
                s.fast_retransmit_events,
                s.duplicates_received,
                s.chunks_dropped,
                s.sacks_ignored,
                s.window_probes,
                s.heartbeat_timeouts,
                s.promotions,
                s.exempt_packets,
                s.bytes_delivered,
                s.reneged,
                s.opportunistic_retransmissions,
                s.tail_probes,
                s.overruled_picks,
                s.abandoned.by_retransmissions.sent,
                s.abandoned.by_lifetime.unsent,
                s.abandoned.by_lifetime.sent,
                s.abandoned.by_priority.unsent,
                s.abandoned.by_priority.sent,
                s.abandoned.by_streams.unsent,
                s.forward_tsns_received,
            ];
            sums.iter_mut().zip(counted).for_each(|(sum, n)| *sum += n);
        }
    }
    assert!(sums.iter().all(|&sum| sum > 0), "{sums:?}");
}

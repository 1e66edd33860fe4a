//! Random interactions of two endpoints and their network. With any calls in any order and any behaviour of the network, data
//! arrives unchanged, in order and once, nothing stalls, and all counters agree. Abandoned messages with a limit are missing
//! entirely and block nothing.
//!
//! Protected associations have an attacker on the path. No message is read, changed or accepted twice. Every packet is accepted, or
//! dropped and counted. Every end of an association has a reason that fits the actions.
//!
//! The idea is that of noq's test of the same name. The cases are the same in each run, so that chance does not influence the
//! result; `ANABRANCH_CASES` draws this number of other ones.

mod attack;
mod case;
mod found;
mod lost;
mod op;
mod pair;
mod run;

use std::collections::BTreeMap;

use anabranch_core::{Discard, Handled};
use anabranch_tests::network::Side;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, FileFailurePersistence, RngAlgorithm, TestRng, TestRunner};

/// File of failing cases.
const REGRESSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/interaction.txt");

/// File of failing cases with an attacker on the path.
const ATTACKED_REGRESSIONS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/interaction-attacked.txt");

fn runner(cases: u32, regressions: &'static str) -> TestRunner {
    let asked = std::env::var("ANABRANCH_CASES").ok().and_then(|n| n.parse().ok());
    let config = Config {
        cases: asked.unwrap_or(cases),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(regressions))),
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    match asked {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    }
}

fn holds_for_all(mut runner: TestRunner, cases: impl Strategy<Value = case::Case>) {
    let outcome = runner.run(&cases, |case| {
        let first = run::run(&case);
        let second = run::run(&case);
        assert_eq!(first, second, "the same calls lead to other packets");
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn random_operations_keep_an_association_valid() {
    holds_for_all(runner(3_000, REGRESSIONS), case::any());
}

/// The attacker sees every packet and can drop, delay, repeat, reorder, truncate and change each. The attacker also forges packets,
/// repeats old handshakes, removes the offer of protection, answers for a peer, uses another key, and connects in a peer's name.
#[test]
fn on_path_attacker_reads_and_changes_no_protected_data() {
    holds_for_all(runner(500, ATTACKED_REGRESSIONS), case::attacked());
}

/// The test also examines its cases, since a test without losses proves nothing.
#[test]
fn cases_reach_the_tested_states() {
    let mut runner = TestRunner::deterministic();
    let mut sums = [0; 24];
    for _ in 0..300 {
        let case = case::any().new_tree(&mut runner).expect("a case").current();
        let duo = run::play(&case);
        for association in duo.nodes.iter().filter_map(|n| n.try_association()) {
            let s = association.statistics();
            let counted = [
                u64::from(association.sends_zero_checksums()),
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
                s.re_configs_sent,
                s.stream_requests_received,
            ];
            sums.iter_mut().zip(counted).for_each(|(sum, n)| *sum += n);
        }
    }
    assert!(sums.iter().all(|&sum| sum > 0), "{sums:?}");
}

/// The test checks that each method of the attacker is used and reaches the checks that it is meant for.
#[test]
fn attacks_reach_the_tested_states() {
    let mut runner = TestRunner::deterministic();
    let mut dropped = BTreeMap::new();
    let mut ends = BTreeMap::new();
    let (mut taken, mut answered, mut opened, mut delivered, mut epochs, mut restarts) = (0, 0, 0, 0, 0, 0);
    for _ in 0..150 {
        let case = case::attacked().new_tree(&mut runner).expect("a case").current();
        let guarded = case.guarded.expect("it is protected");
        let (pair, attacker) = run::play_guarded(&case, guarded);
        for &handled in &attacker.sent {
            match handled {
                Handled::Delivered(_) => taken += 1,
                Handled::Replied => answered += 1,
                Handled::New(_) => opened += 1,
                Handled::Discarded(reason) => *dropped.entry(format!("{reason:?}")).or_insert(0) += 1,
            }
        }
        for side in Side::BOTH {
            if let Some(end) = pair.ended(side) {
                *ends.entry(format!("{end:?}")).or_insert(0) += 1;
            }
            delivered += pair.duo.flows[side.index()].delivered_bytes;
            let association = pair.duo.nodes[side.index()].try_association();
            restarts += association.map_or(0, |association| u64::from(association.restarts()));
            epochs += pair.keying[side.index()].manager.as_ref().map_or(0, |m| m.statistics().epochs);
        }
    }
    let reached = [taken, answered, opened, delivered, epochs, restarts];
    let reasons = [
        Discard::Malformed,
        Discard::VerificationTag,
        Discard::OutOfTheBlue,
        Discard::CookieForged,
        Discard::Unprotected,
        Discard::NoKey,
        Discard::Replayed,
        Discard::NotAuthentic,
    ];
    for reason in reasons {
        assert!(dropped.contains_key(&format!("{reason:?}")), "never {reason:?}: {dropped:?}");
    }
    for end in ["PeerUnreachable", "NotProtected", "KeyManagement", "Closed", "ByPeer"] {
        assert!(ends.keys().any(|reason| reason.contains(end)), "no association ended by {end}: {ends:?}");
    }
    assert!(reached.iter().all(|&n| n > 0), "{reached:?}");
}

//! Random interactions of two endpoints and their network: whatever is called in whatever order, and whatever the network
//! does, data arrives unchanged, in order and once, nothing stalls, and all books balance.
//!
//! The idea is that of noq's test of the same name. `ANABRANCH_CASES` sets the number of cases.

#[path = "interaction/case.rs"]
mod case;
#[path = "interaction/found.rs"]
mod found;
#[path = "interaction/op.rs"]
mod op;
#[path = "interaction/run.rs"]
mod run;

use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

/// Where failing cases are kept.
const REGRESSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/interaction.txt");

fn config() -> Config {
    let cases = std::env::var("ANABRANCH_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    Config {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(REGRESSIONS))),
        max_shrink_iters: 20_000,
        ..Config::default()
    }
}

#[test]
fn nothing_that_can_be_done_breaks_an_association() {
    let outcome = TestRunner::new(config()).run(&case::any(), |case| {
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
fn coverage() {
    use proptest::strategy::{Strategy, ValueTree};
    let mut runner = TestRunner::new(config());
    let mut rows: std::collections::BTreeMap<String, (u64, u64)> = Default::default();
    let mut times = Vec::new();
    for _ in 0..config().cases {
        let case = case::any().new_tree(&mut runner).unwrap().current();
        let Ok((stats, time)) = std::panic::catch_unwind(|| run::debug_stats(&case)) else { println!("FAIL {case:?}"); continue };
        if time > 150.0 { println!("SLOW {time} {case:?}"); }
        times.push((time * 1000.0) as i64);
        for s in stats {
            for line in format!("{s:#?}").lines().filter(|l| l.contains(':')) {
                let (k, v) = line.split_once(':').unwrap();
                let v: u64 = v.trim().trim_end_matches(',').parse().unwrap();
                let e = rows.entry(k.trim().to_owned()).or_default();
                e.0 += v; e.1 += u64::from(v > 0);
            }
        }
    }
    times.sort();
    for q in [0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999] { println!("time {q}: {} ms", times[(times.len() as f64 * q) as usize]); }
    for (k, (sum, n)) in rows { println!("{k}: {sum} in {n}"); }
}

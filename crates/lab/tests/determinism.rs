//! A run depends on its scenario, scheme and seed, and on nothing else.

mod common;

use std::sync::atomic::AtomicBool;

use anabranch_lab::run::Batch;
use common::{job, run};

const LOSSY: &str = r#"
[run]
duration = "20 s"
[association]
recv_buffer = "128 KiB"
[[path]]
rate = "10 Mbit/s"
delay = "20 ms"
loss = 0.02
[[path.background]]
kind = "cbr"
rate = "1 Mbit/s"
packet = "500 B"
[[path]]
rate = "2 Mbit/s"
delay = "60 ms"
loss = { model = "gilbert-elliott", p = 0.01, r = 0.3 }
[[path.background]]
kind = "pareto"
rate = "500 kbit/s"
packet = "1000 B"
burst = "500 ms"
idle = "500 ms"
shape = 1.5
"#;

const SCHEMES: [&str; 4] = ["sctp", "naive-cmt", "cmt", "cmt-pf"];

#[test]
fn the_same_seed_gives_identical_bytes_at_identical_times() {
    for scheme in SCHEMES {
        let (first, second) = (run(LOSSY, scheme, 7), run(LOSSY, scheme, 7));
        assert!(first.digest.is_some());
        assert_eq!(first, second, "{scheme}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let jobs = || SCHEMES.iter().flat_map(|s| (1..=3).map(|seed| job(LOSSY, s, seed))).collect();
    let stop = AtomicBool::new(false);
    let one = Batch { jobs: jobs(), threads: Some(1) }.run(&stop, |_| ()).expect("runs");
    let two = Batch { jobs: jobs(), threads: Some(2) }.run(&stop, |_| ()).expect("runs");
    assert_eq!(one.results, two.results);
}

#[test]
fn another_seed_gives_another_run() {
    assert_ne!(run(LOSSY, "cmt", 1).digest, run(LOSSY, "cmt", 2).digest);
}

#[test]
fn tracing_and_capturing_change_nothing() {
    let folder = std::env::temp_dir().join(format!("anabranch-determinism-{}", std::process::id()));
    let mut observed = job(LOSSY, "cmt", 3);
    observed.trace = Some(folder.join("trace"));
    observed.pcap = Some(folder.join("pcap"));
    let observed = observed.run().expect("runs");
    std::fs::remove_dir_all(&folder).expect("the run wrote its files");
    assert_eq!(observed, run(LOSSY, "cmt", 3));
}

#[test]
fn all_schemes_meet_the_same_channel_under_one_seed() {
    // Losses are drawn per link, source and n-th packet: what differs between schemes is which packets they send, not how
    // the n-th one fares. With a single path and no timing in the channel, single-path SCTP is CMT.
    let one_path = r#"
[run]
duration = "20 s"
profile = "rfc9260"
[[path]]
rate = "5 Mbit/s"
delay = "30 ms"
loss = 0.01
"#;
    let drops = |scheme| {
        run(one_path, scheme, 5).paths[0].drops as f64 / run(one_path, scheme, 5).paths[0].sent_packets as f64
    };
    assert!((drops("sctp") - drops("cmt")).abs() < 0.004);
}

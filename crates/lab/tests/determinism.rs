//! A run depends only on its scenario, scheme and seed.

use std::sync::atomic::AtomicBool;

use crate::common::{job, run};
use anabranch_core::profile::Profile;
use anabranch_lab::run::{Batch, Captures, Job, RunResult};
use anabranch_schemes::registry::{COMPONENTS, PRESETS};
use rayon::prelude::*;

const PATHS: &str = r#"
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

fn lossy(profile: &str) -> String {
    format!("[run]\nduration = \"10 s\"\nprofile = \"{profile}\"\n{PATHS}")
}

/// Returns every preset, and every component with a compatible scheme.
fn schemes() -> Vec<String> {
    let presets = PRESETS.iter().map(|preset| preset.name.to_owned());
    presets.chain(COMPONENTS.iter().map(|component| component.example(PRESETS))).collect()
}

/// Packets of the third run have no bytes: hosts describe them to each other.
#[test]
fn the_same_seed_gives_identical_bytes_at_identical_times() {
    for profile in Profile::NAMES {
        let text = lossy(profile);
        schemes().into_par_iter().for_each(|scheme| {
            let (first, second) = (run(&text, &scheme, 7), run(&text, &scheme, 7));
            assert!(first.digest.is_some());
            assert_eq!(first, second, "{scheme}, {profile}");
            let unread =
                Job { digest: false, ..job(&text, &scheme, 7) }.run().expect("the scenario can be run");
            let figures = RunResult { digest: None, ..first };
            assert_eq!(unread, figures, "{scheme}, {profile}: packets without bytes");
        });
    }
}

/// A run whose packets are hashed carries the sent data. Other runs carry it only if an end of the flow reads it.
#[test]
fn figures_without_contents_equal_those_of_a_run_with_contents() {
    let flows = [
        "kind = \"bulk\"",
        "kind = \"bulk\"\nmessages = { size = \"200 B\", interval = \"20 ms\" }",
        "kind = \"file\"\nsize = \"200 kB\"",
        "kind = \"messages\"\nsize = \"3000 B\"\ninterval = \"20 ms\"\nordered = false",
        "kind = \"video\"\ntrace = \"../../scenarios/video/trace.csv\"\ndeadline = \"300 ms\"",
    ];
    for flow in flows {
        for association in ["", "ordered = false\nstreams = 3\n", "protection = \"dtls\"\n"] {
            let text = lossy("rfc9260").replace("[association]\n", &format!("[association]\n{association}"));
            let text = format!("{text}\n[[flow]]\n{flow}\n");
            let carried = RunResult { digest: None, ..run(&text, "bonded", 3) };
            let counted = Job { digest: false, ..job(&text, "bonded", 3) }.run().expect("it can be run");
            assert!(counted.flows[0].delivered_bytes > 0, "{text}");
            assert_eq!(counted, carried, "{text}");
        }
    }
}

#[test]
fn results_are_independent_of_the_number_of_threads() {
    let text = lossy("rfc9260");
    let schemes = schemes();
    let jobs = || schemes.iter().flat_map(|s| (1..=2).map(|seed| job(&text, s, seed))).collect();
    let stop = AtomicBool::new(false);
    let one = Batch { jobs: jobs(), threads: Some(1) }.run(&stop, |_| ()).expect("runs");
    let two = Batch { jobs: jobs(), threads: Some(2) }.run(&stop, |_| ()).expect("runs");
    assert_eq!(one.results, two.results);
}

#[test]
fn another_seed_gives_another_run() {
    assert_ne!(run(&lossy("rfc9260"), "cmt", 1).digest, run(&lossy("rfc9260"), "cmt", 2).digest);
}

#[test]
fn results_are_independent_of_traces_and_captures() {
    let folder = std::env::temp_dir().join(format!("anabranch-determinism-{}", std::process::id()));
    let mut observed = job(&lossy("rfc9260"), "cmt", 3);
    observed.trace = Some(folder.join("trace"));
    observed.pcap = Some(Captures::full(folder.join("pcap")));
    let observed = observed.run().expect("runs");
    std::fs::remove_dir_all(&folder).expect("the run wrote its files");
    assert_eq!(observed, run(&lossy("rfc9260"), "cmt", 3));
}

#[test]
fn all_schemes_meet_the_same_channel_under_one_seed() {
    // Losses are drawn per link, source and n-th packet. Schemes differ in the packets that they send, not in the loss of the n-th
    // one. With a single path and no timing in the channel, single-path SCTP equals CMT.
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

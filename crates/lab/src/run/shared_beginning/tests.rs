use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anabranch_core::profile::Profile;
use anabranch_scenario::Scenario;
use anabranch_schemes::registry::{COMPONENTS, PRESETS, parse};
use rayon::prelude::*;

use super::*;
use crate::conventions::Conventions;
use crate::run::{ScenarioFiles, TracePart, run_each};

const SIZES: [&str; 4] = ["1500001 B", "300 kB", "1 MB", "600 kB"];

fn text(profile: &str, size: &str, association: &str) -> String {
    format!(
        r#"
[run]
stop = "transfer"
duration = "300 s"
profile = "{profile}"
[association]
recv_buffer = "64 KiB"
{association}
[[path]]
rate = "10 Mbit/s"
delay = "20 ms"
loss = 0.02
[[path.background]]
kind = "poisson"
rate = "1 Mbit/s"
packet = "500 B"
[[path]]
rate = "2 Mbit/s"
delay = "60 ms"
loss = {{ model = "gilbert-elliott", p = 0.01, r = 0.3 }}
[[flow]]
kind = "file"
size = "{size}"
"#
    )
}

fn job(text: &str, scheme: &str) -> Job {
    let scenario = Scenario::parse(text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    Job {
        conventions: Arc::new(Conventions::named(&scenario.run.profile).expect("a known profile")),
        scenario: Arc::new(scenario),
        scheme: parse(scheme).expect("a known scheme").into(),
        seed: 7,
        files: Arc::new(ScenarioFiles::new(".")),
        pcap: None,
        trace: None,
        part: TracePart::default(),
        digest: true,
    }
}

fn family(profile: &str, scheme: &str, association: &str) -> Vec<Indexed> {
    SIZES.map(|size| job(&text(profile, size, association), scheme)).into_iter().enumerate().collect()
}

/// Compares all results of a family with whole runs. Returns the number of jobs that were not copied.
fn compare(family: Vec<Indexed>, what: &str) -> usize {
    let expected: Vec<RunResult> = family.iter().map(|(_, job)| job.run().expect("it can be run")).collect();
    assert!(expected.iter().all(|result| result.flows[0].delivered_bytes >= 100_000), "{what}: data arrives");
    let others = run_family(
        family,
        || true,
        |index, result| {
            assert_eq!(result, expected[index], "{what}: {}", SIZES[index]);
        },
    );
    others.len()
}

/// Returns every preset, and every component with a compatible scheme.
fn schemes() -> impl Iterator<Item = String> {
    let presets = PRESETS.iter().map(|preset| preset.name.to_owned());
    presets.chain(COMPONENTS.iter().map(|component| component.example(PRESETS)))
}

#[test]
fn copied_runs_equal_whole_runs_for_every_scheme() {
    // ECF weighs the number of queued bytes.
    let counting = ["cmt+ecf", "bonded"];
    for profile in Profile::NAMES {
        schemes().collect::<Vec<_>>().into_par_iter().for_each(|scheme| {
            let others = compare(family(profile, &scheme, ""), &format!("{scheme}, {profile}"));
            // A transfer that never ends has no copies of its later parts.
            let is_stalled = scheme == "cmt+nr-sack" && profile == "ns2";
            let whole = if counting.contains(&&*scheme) { 3 } else { 0 };
            assert!(others == whole || is_stalled, "{scheme}, {profile}: {others}");
        });
    }
}

#[test]
fn copied_runs_equal_whole_runs_with_links_computed_ahead() {
    for scheme in ["sctp", "cmt", "db-cmt", "cmt-qa", "braid"] {
        let jobs = family("ns2", scheme, "").into_iter();
        let jobs = jobs.map(|(index, job)| (index, Job { digest: false, ..job })).collect();
        assert_eq!(compare(jobs, scheme), 0, "{scheme}");
    }
}

#[test]
fn copied_runs_equal_whole_runs_under_every_setting_of_the_association() {
    for (association, whole) in [
        ("send_buffer = \"100 kB\"\nstreams = 3", 0),
        ("ordered = false\nstreams = 2", 0),
        ("message = \"10 kB\"", 0),
        // The whole content is handed over at once, and the free room differs.
        ("send_buffer = \"10 MB\"", 3),
        ("protection = \"dtls\"", 3),
        // All of a shorter content fits into the windows.
        ("recv_buffer = \"4 MiB\"", 3),
    ] {
        let jobs: Vec<Indexed> = SIZES
            .map(|size| {
                let text = text("rfc9260", size, association);
                let text = if association.contains("recv_buffer") {
                    text.replace("recv_buffer = \"64 KiB\"\n", "")
                } else {
                    text
                };
                job(&text, "cmt")
            })
            .into_iter()
            .enumerate()
            .collect();
        assert_eq!(compare(jobs, association), whole, "{association}");
    }
}

#[test]
fn only_consecutive_jobs_of_one_setting_scheme_and_seed_share_a_beginning() {
    let plain = |size| job(&text("rfc9260", size, ""), "cmt");
    let jobs = [
        plain("1 MB"),
        plain("2 MB"),
        Job { seed: 8, ..plain("1 MB") },
        job(&text("rfc9260", "1 MB", ""), "sctp"),
        job(&text("rfc9260", "1 MB", "streams = 2"), "sctp"),
        job(&text("ns2", "1 MB", "streams = 2"), "sctp"),
        Job { digest: false, ..job(&text("ns2", "2 MB", "streams = 2"), "sctp") },
        Job { trace: Some("traces".into()), ..plain("1 MB") },
        Job { trace: Some("traces".into()), ..plain("2 MB") },
        plain("1 MB"),
        job(&text("rfc9260", "1 MB", "").replace("loss = 0.02", "loss = 0.01"), "cmt"),
    ];
    let lengths: Vec<usize> = families(jobs.into_iter().enumerate()).map(|family| family.len()).collect();
    assert_eq!(lengths, [2, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn batch_returns_each_result_under_the_index_of_its_job() {
    let mut jobs = Vec::new();
    for scheme in ["cmt", "bonded"] {
        jobs.extend(SIZES.map(|size| job(&text("rfc9260", size, ""), scheme)));
    }
    let expected: Vec<RunResult> = jobs.iter().map(|job| job.run().expect("it can be run")).collect();
    let found = Mutex::new(vec![None; jobs.len()]);
    let go = AtomicBool::new(false);
    run_each(jobs.into_iter(), Some(2), &go, |index, result| {
        found.lock().expect("no test has panicked")[index] = Some(result);
    })
    .expect("all can be run");
    let found = found.into_inner().expect("no test has panicked");
    assert_eq!(found, expected.into_iter().map(Some).collect::<Vec<_>>());
}

#[test]
fn stopped_family_ends_without_results() {
    let calls = AtomicUsize::new(0);
    let continues = || calls.fetch_add(1, Ordering::Relaxed) < 20;
    let others = run_family(family("rfc9260", "cmt", ""), continues, |_, _| panic!("nothing is finished"));
    assert_eq!(others.len(), SIZES.len());
}

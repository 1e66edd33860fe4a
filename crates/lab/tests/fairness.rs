//! What each scheme takes of a bottleneck that its two paths share with an ordinary flow on one path.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anabranch_lab::conventions::Conventions;
use anabranch_lab::run::{Batch, Job, RunResult, TracePart};
use anabranch_lab::scenario::{Override, Scenario};
use anabranch_lab::statistics::Summary;
use anabranch_schemes::registry::{PRESETS, Preset, parse};

/// Shares of the ordinary flow that two paths may take, uncoupled and coupled.
const UNCOUPLED: (f64, f64) = (1.6, 2.4);
const COUPLED: (f64, f64) = (0.7, 1.4);

const SEEDS: u64 = 20;

fn jobs(preset: &Preset) -> Vec<Job> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/shared-bottleneck.toml");
    let scheme: Override = format!("flow.multipath.scheme={}", preset.name).parse().expect("an override");
    let scenario = Arc::new(Scenario::load(&file, &[scheme]).expect("a scenario"));
    let conventions = Arc::new(Conventions::named(&scenario.run.profile).expect("a profile"));
    let job = |seed| Job {
        scenario: Arc::clone(&scenario),
        conventions: Arc::clone(&conventions),
        scheme: parse("sctp").expect("a scheme").into(),
        seed,
        folder: ".".into(),
        pcap: None,
        trace: None,
        part: TracePart::default(),
        digest: false,
    };
    (1..=SEEDS).map(job).collect()
}

fn ratio(runs: &[RunResult]) -> Summary {
    let of_one = |run: &RunResult| run.flows[0].goodput_kbps / run.flows[1].goodput_kbps;
    Summary::of(runs.iter().map(of_one)).expect("runs")
}

#[test]
#[ignore = "280 runs take minutes; `make fairness` makes them in the release profile"]
fn at_a_shared_bottleneck_every_scheme_takes_its_share_or_its_card_says_why_not() {
    let multipath: Vec<&Preset> = PRESETS.iter().filter(|preset| preset.multipath).collect();
    let jobs = multipath.iter().flat_map(|preset| jobs(preset)).collect();
    let outcome = Batch { jobs, threads: None }.run(&AtomicBool::new(false), |_| ()).expect("runs");
    let mut wrong = Vec::new();
    for (preset, runs) in multipath.iter().zip(outcome.results.chunks(SEEDS as usize)) {
        let Summary { mean, half_width, .. } = ratio(runs);
        let (least, most) = if preset.coupled { COUPLED } else { UNCOUPLED };
        let jain =
            Summary::of(runs.iter().filter_map(|run| run.jain_index)).map_or(f64::NAN, |jain| jain.mean);
        let half_width = half_width.unwrap_or(0.0);
        let line =
            format!("{:12} {mean:.2} ± {half_width:.2} of {least} to {most}, Jain {jain:.3}", preset.name);
        println!("{line}");
        if (least..=most).contains(&mean) != preset.unfair_because.is_empty() {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "the cards say otherwise:\n{}", wrong.join("\n"));
}

#[test]
#[ignore = "belongs to the test above"]
fn an_ordinary_flow_takes_what_another_one_takes() {
    let preset = PRESETS.iter().find(|preset| preset.name == "sctp").expect("a preset");
    let outcome =
        Batch { jobs: jobs(preset), threads: None }.run(&AtomicBool::new(false), |_| ()).expect("runs");
    let Summary { mean, .. } = ratio(&outcome.results);
    assert!((0.9..1.1).contains(&mean), "the scenario itself is not fair: {mean}");
}

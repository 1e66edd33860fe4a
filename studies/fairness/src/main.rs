//! What each scheme takes of a bottleneck that its two paths share with an ordinary flow on one path, held against its card.
//!
//! A program and not a test: the release profile builds it of what it has built for the command, where a test would have the
//! libraries built again with the features that tests ask for.

#![allow(clippy::disallowed_macros, reason = "the program prints its results")]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anabranch_lab::conventions::Conventions;
use anabranch_lab::run::{Batch, Job, JobScheme, RunResult, TracePart};
use anabranch_lab::statistics::Summary;
use anabranch_scenario::{Override, Scenario};
use anabranch_schemes::registry::{PRESETS, Preset, parse};

/// A range of ratios: the goodput of the association in question to that of the ordinary flow.
type Ratios = (f64, f64);

/// Two paths that are not coupled may take about two flows' shares, and coupled ones about one.
const UNCOUPLED: Ratios = (1.6, 2.4);
const COUPLED: Ratios = (0.7, 1.4);
/// What an ordinary flow may take of another one, which says whether the scenario itself is fair.
const ORDINARY: Ratios = (0.9, 1.1);

const SEEDS: u64 = 20;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let shown: Vec<&Preset> =
        PRESETS.iter().filter(|preset| preset.multipath || preset.name == "sctp").collect();
    let mut jobs = Vec::new();
    for preset in &shown {
        jobs.extend(jobs_of(preset)?);
    }
    let outcome = Batch { jobs, threads: None }.run(&AtomicBool::new(false), |_| ())?;
    let mut wrong = 0;
    for (preset, runs) in shown.iter().zip(outcome.results.chunks(SEEDS as usize)) {
        let ratio = Summary::of(runs.iter().map(ratio)).ok_or("no runs")?;
        println!("{}", line(preset, runs, &ratio));
        if let Some(complaint) = complaint(preset, ratio.mean) {
            println!("  {complaint}");
            wrong += 1;
        }
    }
    println!("{} schemes, {wrong} of them not as they should be", shown.len());
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn jobs_of(preset: &Preset) -> Result<Vec<Job>, Box<dyn Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/shared-bottleneck.toml");
    let scheme: Override = format!("flow.multipath.scheme={}", preset.name).parse()?;
    let scenario = Arc::new(Scenario::load(&file, &[scheme])?);
    let conventions = Arc::new(Conventions::named(&scenario.run.profile)?);
    // The scenario names the scheme of each flow, so that this one is that of none.
    let scheme = JobScheme::from(parse("sctp")?);
    let job = |seed| Job {
        scenario: Arc::clone(&scenario),
        conventions: Arc::clone(&conventions),
        scheme: scheme.clone(),
        seed,
        folder: ".".into(),
        pcap: None,
        trace: None,
        part: TracePart::default(),
        digest: false,
    };
    Ok((1..=SEEDS).map(job).collect())
}

fn ratio(run: &RunResult) -> f64 {
    run.flows[0].goodput_kbps / run.flows[1].goodput_kbps
}

fn line(preset: &Preset, runs: &[RunResult], ratio: &Summary) -> String {
    let (least, most) = expected(preset);
    let jain = Summary::of(runs.iter().filter_map(|run| run.jain_index)).map_or(f64::NAN, |jain| jain.mean);
    let half_width = ratio.half_width.unwrap_or(0.0);
    format!("{:12} {:.2} ± {half_width:.2} of {least} to {most}, Jain {jain:.3}", preset.name, ratio.mean)
}

fn expected(preset: &Preset) -> Ratios {
    match (preset.multipath, preset.coupled) {
        (false, _) => ORDINARY,
        (true, false) => UNCOUPLED,
        (true, true) => COUPLED,
    }
}

/// What is wrong with a scheme of this mean ratio or with its card, if something is.
fn complaint(preset: &Preset, mean: f64) -> Option<&'static str> {
    let (least, most) = expected(preset);
    match ((least..=most).contains(&mean), preset.unfair_because.is_empty()) {
        (true, true) | (false, false) => None,
        (true, false) => Some("its card says why it does not take its share, and it does"),
        (false, true) => Some("it does not take its share, and its card does not say why"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(name: &str) -> &'static Preset {
        PRESETS.iter().find(|preset| preset.name == name).expect("a preset")
    }

    #[test]
    fn two_paths_may_take_two_shares_and_coupled_ones_take_one() {
        let (uncoupled, coupled, ordinary) = (preset("cmt"), preset("mptcp-lia"), preset("sctp"));
        assert_eq!([2.0, 1.0].map(|mean| complaint(uncoupled, mean).is_none()), [true, false]);
        assert_eq!([2.0, 1.0].map(|mean| complaint(coupled, mean).is_none()), [false, true]);
        assert_eq!([1.2, 1.0].map(|mean| complaint(ordinary, mean).is_none()), [false, true]);
    }

    #[test]
    fn a_card_that_explains_a_share_has_to_have_something_to_explain() {
        let unfair = preset("cmt-dfr");
        assert_eq!([7.5, 2.0].map(|mean| complaint(unfair, mean).is_none()), [true, false]);
    }
}

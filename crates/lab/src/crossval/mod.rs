//! Agreement with ns-2: its points run under profile `ns2`, and both printed side by side.

mod compare;
mod point;
mod setting;

pub use compare::{Comparison, Ours, Summary, Verdict, summarise};
pub use point::{Point, PointError, all_points};
pub use setting::scenario_text;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::conventions::Conventions;
use crate::run::{Batch, Job, RunError, RunResult, TracePart};
use crate::statistics;
use anabranch_scenario::Scenario;

/// Number of seeds for a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// Minimum number.
    pub least: u64,
    /// Maximum number.
    pub most: u64,
}

impl Seeds {
    /// At least 30 and at most 200 seeds, until our interval is no wider than that of ns-2 or half a per cent of the mean.
    pub const FULL: Seeds = Seeds { least: 30, most: 200 };
    /// Six seeds, which reveal large differences.
    pub const QUICK: Seeds = Seeds { least: 6, most: 6 };
}

/// Runs a point with as many seeds as its interval requires.
///
/// # Errors
/// [`RunError`].
///
/// # Panics
/// If a point of the repository's own data does not make a valid scenario.
pub fn run_point(
    point: &Point,
    seeds: Seeds,
    threads: Option<usize>,
    stop: &AtomicBool,
) -> Result<Comparison, RunError> {
    let text = scenario_text(point);
    let scenario = Scenario::parse(&text, &format!("{}.toml", point.id), &[])
        .unwrap_or_else(|error| panic!("the scenario made from point {} is invalid:\n{error}", point.id));
    let conventions = Conventions::named(&scenario.run.profile).expect("ns2 is a profile");
    let scheme = anabranch_schemes::registry::parse(&point.scheme()).expect("points name known schemes");
    let template = Job {
        scenario: Arc::new(scenario),
        conventions: Arc::new(conventions),
        scheme: scheme.into(),
        seed: 0,
        folder: PathBuf::new(),
        pcap: None,
        trace: None,
        part: TracePart::default(),
        digest: false,
    };
    let mut results: Vec<RunResult> = Vec::new();
    let mut next = 1;
    while next <= seeds.most {
        let until = if results.is_empty() { seeds.least } else { (next + 19).min(seeds.most) };
        let jobs = (next..=until).map(|seed| Job { seed, ..template.clone() }).collect();
        results.extend(Batch { jobs, threads }.run(stop, |_| ())?.results);
        next = until + 1;
        if stop.load(std::sync::atomic::Ordering::Relaxed) || is_narrow_enough(&results, point) {
            break;
        }
    }
    Ok(Comparison::new(point, &results))
}

fn is_narrow_enough(results: &[RunResult], point: &Point) -> bool {
    let Some(summary) = statistics::Summary::of(results.iter().map(|r| r.goodput_kbps)) else { return true };
    summary.half_width.is_none_or(|half| half <= point.half_width_kbps.max(0.005 * summary.mean))
}

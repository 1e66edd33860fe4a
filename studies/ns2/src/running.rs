//! Runs a point with as many seeds as its interval needs.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anabranch_lab::conventions::Conventions;
use anabranch_lab::run::{Batch, Job, RunResult, TracePart};
use anabranch_lab::statistics::Summary;
use anyhow::Context as _;

use crate::compare::Comparison;
use crate::point::Point;
use crate::setting::scenario;

/// Bounds of the number of seeds of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seeds {
    /// Smallest number of seeds.
    least: u64,
    /// Largest number of seeds.
    most: u64,
}

impl Seeds {
    /// 30, and more until our interval is no wider than ns-2's or half a per cent of the mean, at most 200.
    pub(crate) const FULL: Seeds = Seeds { least: 30, most: 200 };
    /// Enough to find large differences.
    pub(crate) const QUICK: Seeds = Seeds { least: 6, most: 6 };
}

/// Seeds that are added while the interval is too wide.
const MORE: u64 = 20;

/// Runs a point and compares the means with ns-2's.
pub(crate) fn run_point(point: &Point, seeds: Seeds, threads: Option<usize>) -> anyhow::Result<Comparison> {
    let template = template(point).with_context(|| format!("point {}", point.id))?;
    let mut results: Vec<RunResult> = Vec::new();
    let mut next = 1;
    let never = AtomicBool::new(false);
    while next <= seeds.most {
        let last = if results.is_empty() { seeds.least } else { (next + MORE - 1).min(seeds.most) };
        let jobs = (next..=last).map(|seed| Job { seed, ..template.clone() }).collect();
        results.extend(Batch { jobs, threads }.run(&never, |_| ())?.results);
        next = last + 1;
        if is_narrow_enough(&results, point) {
            break;
        }
    }
    Ok(Comparison::new(point, &results))
}

fn template(point: &Point) -> anyhow::Result<Job> {
    let scenario = scenario(point)?;
    let conventions = Conventions::named(&scenario.run.profile).map_err(anyhow::Error::msg)?;
    let scheme = anabranch_schemes::registry::parse(&point.scheme())?;
    Ok(Job {
        scenario: Arc::new(scenario),
        conventions: Arc::new(conventions),
        scheme: scheme.into(),
        seed: 0,
        files: Arc::default(),
        pcap: None,
        trace: None,
        part: TracePart::default(),
        digest: false,
    })
}

fn is_narrow_enough(results: &[RunResult], point: &Point) -> bool {
    let Some(summary) = Summary::of(results.iter().map(|run| run.goodput_kbps)) else { return true };
    summary.half_width.is_none_or(|half| half <= point.half_width_kbps.max(0.005 * summary.mean))
}

//! `anabranch compare`.

mod application;
mod measured;
mod plan;
mod report;
mod sockets;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anabranch_lab::run::Job;
use anabranch_scenario::Override;
use anyhow::Context;
use clap::Args;
use indicatif::ProgressBar;

use self::measured::{Measured, Pair};
use self::plan::Comparison;
use crate::exit::{CommandError, Status};
use crate::output::{self, Reader};
use crate::seeds::Seeds;
use crate::{interrupt, progress};

const EXAMPLES: &str = "\
Examples:
  Compare the schemes that the scenario names:
    anabranch compare scenarios/two-path.toml
  Compare one scheme with three seeds, over a shorter time:
    anabranch compare scenarios/two-path.toml --schemes cmt --seeds 3 \\
        --set run.duration='20 s'
  Write the figures as JSON:
    anabranch compare scenarios/two-path.toml --json > pairs.jsonl

The runs on sockets take place one after the other, each as long as the
scenario's duration.";

/// Run a scenario in the simulator and over sockets, side by side.
///
/// The run on sockets has the same endpoint, schemes, profile, buffers and packet sizes. Its paths are relays on loopback
/// addresses with the links of the scenario. Both runs carry SCTP over UDP.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArguments {
    /// Scenario file, name of a built-in scenario (`anabranch init` lists them), or - for standard input
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,

    /// Schemes to compare instead of those in the file: a list such as `sctp,cmt(trigger=4)`, or `all`
    #[arg(long, value_name = "LIST")]
    schemes: Option<String>,

    /// Seeds instead of those in the file: `5` means 1 to 5; `3,7,10-12` and `7,` are lists
    #[arg(long, value_name = "N|LIST", allow_negative_numbers = true)]
    seeds: Option<Seeds>,

    /// Profile of the protocol, instead of the file's `run.profile`
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,

    /// Override a value of the scenario, such as path.path-1.loss=0.02 or run.duration='10 s'; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Override>,

    /// Print one JSON object per scheme, seed and line instead of the tables
    #[arg(long)]
    json: bool,

    /// Show no progress bar
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the command.
pub(crate) fn compare(arguments: &CompareArguments) -> Result<Status, CommandError> {
    let comparison = Comparison::make(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot wait for sockets").map_err(CommandError::from)?;
    let bar = progress::seconds(comparison.seconds(), arguments.quiet);
    let stop = interrupt::watch_with_notice(&bar, "stopping; press Ctrl-C again to stop at once");
    let mut pairs = Vec::new();
    for job in &comparison.jobs {
        let Some(pair) = run_pair(job, &runtime, &bar, stop)? else { break };
        if arguments.json {
            let line = report::json_line(&pair)?;
            if bar.suspend(|| output::print(&line)) == Reader::Gone {
                return Ok(Status::Success);
            }
        }
        pairs.push(pair);
    }
    bar.finish_and_clear();
    by_scheme(&mut pairs);
    if !arguments.json {
        let text = report::report(&comparison, &pairs);
        if output::print(&text) == Reader::Gone {
            return Ok(Status::Success);
        }
    }
    Ok(end(&comparison, &pairs))
}

/// Orders pairs by scheme. They were run seed by seed.
fn by_scheme(pairs: &mut [Pair]) {
    let mut schemes: Vec<String> = Vec::new();
    for pair in pairs.iter() {
        if !schemes.contains(&pair.scheme) {
            schemes.push(pair.scheme.clone());
        }
    }
    pairs.sort_by_key(|pair| schemes.iter().position(|scheme| *scheme == pair.scheme));
}

/// Runs a job twice. Returns `None` if it was stopped.
fn run_pair(
    job: &Job,
    runtime: &tokio::runtime::Runtime,
    bar: &ProgressBar,
    stop: &AtomicBool,
) -> Result<Option<Pair>, CommandError> {
    if stop.load(Ordering::SeqCst) {
        return Ok(None);
    }
    let (result, details) = job.run_in_detail().map_err(anyhow::Error::from)?;
    let simulated = Measured::simulated(job, &result, &details);
    let before = bar.position();
    let tick = |elapsed: Duration| bar.set_position(before + elapsed.as_secs());
    let sockets = runtime.block_on(sockets::run(job, stop, tick))?;
    Ok(sockets.map(|sockets| Pair { scheme: result.scheme, seed: job.seed, simulated, sockets }))
}

fn end(comparison: &Comparison, pairs: &[Pair]) -> Status {
    let mut status = Status::Success;
    for pair in pairs {
        for (where_, measured) in [("simulated", &pair.simulated), ("on sockets", &pair.sockets)] {
            for failure in &measured.failures {
                output::notice(format_args!("{}, seed {}, {where_}: {failure}", pair.scheme, pair.seed));
                status = Status::Failure;
            }
        }
    }
    if pairs.len() < comparison.jobs.len() {
        output::notice(format_args!(
            "interrupted: {} of {}",
            pairs.len(),
            output::count(comparison.jobs.len() as u64, "pair of runs", "pairs of runs")
        ));
        status = Status::Interrupted;
    }
    status
}

//! `anabranch run`.

mod arguments;
mod delivery;
mod matrix;
mod plan;
mod report;
mod source;
mod window;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anabranch_lab::run::{Batch, Job, Outcome, RunResult};
use anabranch_scenario::Override;
use anyhow::Context;
use serde::Serialize;

use crate::exit::{CommandError, Status};
use crate::output::{self, Reader};
use crate::{interrupt, progress};

pub(crate) use arguments::RunArguments;
pub(crate) use plan::Plan;

/// Runs the command.
pub(crate) fn run(arguments: &RunArguments) -> Result<Status, CommandError> {
    let mut plans = Plan::all(arguments)?;
    let (owners, jobs): (Vec<usize>, Vec<Job>) = seed_by_seed(&mut plans).into_iter().unzip();
    let bar = progress::bar(jobs.len(), arguments.quiet);
    let stop = interrupt::watch(&bar);
    let lines = JsonLines::new(stop);
    let batch = Batch { jobs, threads: arguments.threads.map(usize::from) };
    let outcome = batch.run_indexed(stop, |index, result| {
        if arguments.json {
            let line = Line::new(plans[owners[index]].value.as_ref(), result);
            bar.suspend(|| lines.add(index, &line));
        }
        bar.inc(1);
    });
    bar.finish_and_clear();
    let outcome = outcome.map_err(|error| CommandError::from(anyhow::Error::new(error)))?;
    let reader = if arguments.json {
        lines.finish()?
    } else if arguments.sweep.is_some() {
        output::print(&matrix::report(&plans, &owners, arguments, &outcome))
    } else {
        output::print(&report::report(&plans[0], arguments, &outcome))
    };
    Ok(end(arguments, &outcome, reader))
}

/// Returns the runs of all plans, each with the index of its plan, in the order of execution: first the first seed of every plan.
/// The finished runs after Ctrl-C are therefore still comparable.
fn seed_by_seed(plans: &mut [Plan]) -> Vec<(usize, Job)> {
    let mut left: Vec<_> =
        plans.iter_mut().map(|plan| std::mem::take(&mut plan.jobs).into_iter().peekable()).collect();
    let mut jobs = Vec::new();
    loop {
        let before = jobs.len();
        for (index, plan) in left.iter_mut().enumerate() {
            let Some(seed) = plan.peek().map(|job| job.seed) else { continue };
            while let Some(job) = plan.next_if(|job| job.seed == seed) {
                jobs.push((index, job));
            }
        }
        if jobs.len() == before {
            return jobs;
        }
    }
}

/// Prints the remaining notices and returns the exit status.
fn end(arguments: &RunArguments, outcome: &Outcome, reader: Reader) -> Status {
    if reader == Reader::Gone {
        return Status::Success;
    }
    let total = outcome.results.len() + outcome.skipped;
    if arguments.json && !arguments.quiet {
        output::notices(&report::written(arguments, outcome.results.len()));
        if outcome.skipped > 0 {
            output::notice(format_args!(
                "interrupted: {} of {}",
                outcome.results.len(),
                output::count(total as u64, "run", "runs")
            ));
        }
    }
    let failures = report::failures(&outcome.results);
    output::notices(&failures);
    match interrupt::was_interrupted() {
        true => Status::Interrupted,
        false if failures.is_empty() => Status::Success,
        false => Status::Failure,
    }
}

/// A run as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    /// Key of the sweep, with its value in this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<BTreeMap<&'a str, &'a str>>,
    #[serde(flatten)]
    result: &'a RunResult,
}

impl<'a> Line<'a> {
    fn new(value: Option<&'a Override>, result: &'a RunResult) -> Self {
        let sweep = value.map(|set| BTreeMap::from([(set.key.as_str(), set.value.as_str())]));
        Line { sweep, result }
    }
}

/// Prints results as lines of JSON in the order of the jobs, each as soon as all earlier ones are printed.
struct JsonLines<'a> {
    state: Mutex<Waiting>,
    stop: &'a AtomicBool,
}

struct Waiting {
    next: usize,
    lines: BTreeMap<usize, String>,
    /// Result of the last attempt to print.
    printed: anyhow::Result<Reader>,
}

impl<'a> JsonLines<'a> {
    fn new(stop: &'a AtomicBool) -> Self {
        let state = Waiting { next: 0, lines: BTreeMap::new(), printed: Ok(Reader::Listening) };
        JsonLines { state: Mutex::new(state), stop }
    }

    fn add(&self, index: usize, result: &Line<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match serde_json::to_string(result).context("a result cannot be written as JSON") {
            Ok(line) => drop(state.lines.insert(index, line + "\n")),
            Err(error) => state.printed = Err(error),
        }
        let mut ready = String::new();
        loop {
            let next = state.next;
            let Some(line) = state.lines.remove(&next) else { break };
            ready += &line;
            state.next += 1;
        }
        state.print(&ready);
        if !matches!(state.printed, Ok(Reader::Listening)) {
            self.stop.store(true, Ordering::SeqCst);
        }
    }

    /// Prints the results that follow missing runs.
    fn finish(self) -> anyhow::Result<Reader> {
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let rest: String = std::mem::take(&mut state.lines).into_values().collect();
        state.print(&rest);
        state.printed
    }
}

impl Waiting {
    fn print(&mut self, text: &str) {
        if !text.is_empty() && matches!(self.printed, Ok(Reader::Listening)) {
            self.printed = Ok(output::print(text));
        }
    }
}

//! Schemes times seeds, in parallel over runs and never inside one; results come in the order of the jobs.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::run::{Job, RunError, RunResult};

/// Runs to be made.
pub struct Batch {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// Worker threads; `None` takes one for each processor.
    pub threads: Option<usize>,
}

/// What a batch came to.
#[derive(Debug)]
pub struct Outcome {
    /// Results of finished runs, in the order of the jobs.
    pub results: Vec<RunResult>,
    /// The index of the job of each result.
    pub jobs: Vec<usize>,
    /// Runs that were not begun or not brought to their end because the batch was stopped.
    pub skipped: usize,
}

impl Batch {
    /// Runs all jobs. `done` is called after each, from any thread; setting `stop` keeps further ones from starting and those
    /// under way from going on.
    ///
    /// # Errors
    /// The first [`RunError`] in the order of the jobs.
    pub fn run(&self, stop: &AtomicBool, done: impl Fn(&RunResult) + Sync) -> Result<Outcome, RunError> {
        self.run_indexed(stop, |_, result| done(result))
    }

    /// Like [`Batch::run`]; `done` is told the index of the job too. Jobs are begun in their order, and a run that
    /// could not be made keeps further ones from starting.
    ///
    /// # Errors
    /// The first [`RunError`] in the order of the jobs.
    pub fn run_indexed(
        &self,
        stop: &AtomicBool,
        done: impl Fn(usize, &RunResult) + Sync,
    ) -> Result<Outcome, RunError> {
        let failed = AtomicBool::new(false);
        let one = |(index, job): (usize, &Job)| -> Option<(usize, Result<RunResult, RunError>)> {
            if stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) {
                return None;
            }
            let result = job.run_unless(stop).transpose()?;
            match &result {
                Ok(result) => done(index, result),
                Err(_) => failed.store(true, Ordering::Relaxed),
            }
            Some((index, result))
        };
        // A bridge hands out one job after the other, where an indexed iterator would split the list in halves.
        let all = || self.jobs.iter().enumerate().par_bridge().filter_map(one).collect::<Vec<_>>();
        let mut outcomes =
            match rayon::ThreadPoolBuilder::new().num_threads(self.threads.unwrap_or(0)).build() {
                Ok(pool) => pool.install(all),
                // Without threads of its own the batch uses the process's.
                Err(_) => all(),
            };
        outcomes.sort_by_key(|(index, _)| *index);
        let skipped = self.jobs.len() - outcomes.len();
        let jobs = outcomes.iter().map(|(index, _)| *index).collect();
        let results = outcomes.into_iter().map(|(_, result)| result).collect::<Result<Vec<_>, _>>()?;
        Ok(Outcome { results, jobs, skipped })
    }
}

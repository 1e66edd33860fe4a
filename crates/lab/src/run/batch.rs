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
    /// Runs that were not begun because the batch was stopped.
    pub skipped: usize,
}

impl Batch {
    /// Runs all jobs. `done` is called after each, from any thread; setting `stop` keeps further ones from starting.
    ///
    /// # Errors
    /// The first [`RunError`] in the order of the jobs.
    pub fn run(&self, stop: &AtomicBool, done: impl Fn(&RunResult) + Sync) -> Result<Outcome, RunError> {
        let one = |job: &Job| -> Option<Result<RunResult, RunError>> {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let result = job.run();
            if let Ok(result) = &result {
                done(result);
            }
            Some(result)
        };
        let all = || self.jobs.par_iter().map(one).collect::<Vec<_>>();
        let outcomes = match rayon::ThreadPoolBuilder::new().num_threads(self.threads.unwrap_or(0)).build() {
            Ok(pool) => pool.install(all),
            // Without threads of its own the batch uses the process's.
            Err(_) => all(),
        };
        let skipped = outcomes.iter().filter(|o| o.is_none()).count();
        let results = outcomes.into_iter().flatten().collect::<Result<Vec<_>, _>>()?;
        Ok(Outcome { results, skipped })
    }
}

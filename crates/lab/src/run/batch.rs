//! Schemes times seeds, in parallel over runs and never within one.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use rayon::prelude::*;

use crate::run::shared_beginning::{families, run_family};
use crate::run::{Job, RunError, RunResult};

/// Runs to execute.
pub struct Batch {
    /// Jobs in the order of their start.
    pub jobs: Vec<Job>,
    /// Number of worker threads; `None` uses one for each processor.
    pub threads: Option<usize>,
}

/// Results of a batch.
#[derive(Debug)]
pub struct Outcome {
    /// Results of finished runs, in the order of the jobs.
    pub results: Vec<RunResult>,
    /// Index of the job of each result.
    pub jobs: Vec<usize>,
    /// Number of runs that were not started or not finished because the batch was stopped.
    pub skipped: usize,
}

impl Batch {
    /// Runs all jobs. `done` is called after each run, from any thread. Setting `stop` prevents the start of further runs and
    /// aborts those that are running.
    ///
    /// # Errors
    /// Returns the first [`RunError`] in the order of the jobs.
    pub fn run(&self, stop: &AtomicBool, done: impl Fn(&RunResult) + Sync) -> Result<Outcome, RunError> {
        self.run_indexed(stop, |_, result| done(result))
    }

    /// Runs all jobs as [`Batch::run`] does. `done` also receives the index of the job. Jobs are started in their order, and a
    /// failed run prevents the start of further ones.
    ///
    /// # Errors
    /// Returns the first [`RunError`] in the order of the jobs.
    pub fn run_indexed(
        &self,
        stop: &AtomicBool,
        done: impl Fn(usize, &RunResult) + Sync,
    ) -> Result<Outcome, RunError> {
        let finished = Mutex::new(Vec::new());
        let jobs = self.jobs.iter().cloned();
        run_each(jobs, self.threads, stop, |index, result| {
            done(index, &result);
            finished.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        })
        .map_err(|failed| failed.error)?;
        let mut finished = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
        finished.sort_by_key(|(index, _)| *index);
        let skipped = self.jobs.len() - finished.len();
        let (jobs, results) = finished.into_iter().unzip();
        Ok(Outcome { results, jobs, skipped })
    }
}

/// A run that failed.
#[derive(Debug)]
pub struct Failed {
    /// Index of the run's job.
    pub index: usize,
    /// Reason of the failure.
    pub error: RunError,
}

/// Runs jobs without storing jobs or results, for any number of them. `done` receives each result with its index as soon as it
/// exists, from any thread.
///
/// Jobs are started in their order, but consecutive jobs that transfer generated contents of different lengths and are equal otherwise
/// share one thread and the simulation of their beginning. Setting `stop` prevents the start of further runs and aborts those that
/// are running. A failed run only prevents the start of further ones.
///
/// # Errors
/// Returns the first run that [`Failed`], in the order of the jobs. A panic within a run counts as a failure.
pub fn run_each(
    jobs: impl Iterator<Item = Job> + Send,
    threads: Option<usize>,
    stop: &AtomicBool,
    done: impl Fn(usize, RunResult) + Sync,
) -> Result<(), Failed> {
    let failed: Mutex<Option<Failed>> = Mutex::new(None);
    let has_failed = AtomicBool::new(false);
    let continues = || !stop.load(Ordering::Relaxed);
    let one = |(index, job): (usize, Job)| match run_catching_panic(&job, continues) {
        Ok(Some(result)) => done(index, result),
        Ok(None) => {}
        Err(error) => {
            has_failed.store(true, Ordering::Relaxed);
            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
            if failed.as_ref().is_none_or(|later| index < later.index) {
                *failed = Some(Failed { index, error });
            }
        }
    };
    // The condition is checked when a job is handed out. Such a job always runs, so that no error of a later job precedes its
    // error.
    let begins = |_: &Vec<(usize, Job)>| continues() && !has_failed.load(Ordering::Relaxed);
    let threads = pool_threads(threads, jobs.size_hint().1);
    // A bridge hands out one job after the other. An indexed iterator would split the list in halves.
    let family = |jobs| run_family(jobs, continues, &done).into_iter().for_each(one);
    let all = || families(jobs.enumerate()).take_while(begins).par_bridge().for_each(family);
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool.install(all),
        // If the threads cannot be started, the batch uses the thread pool of the process.
        Err(_) => all(),
    }
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Returns the number of threads for a number of jobs; 0 is rayon's default.
fn pool_threads(asked: Option<usize>, jobs: Option<usize>) -> usize {
    // More threads than jobs would have no work.
    let most = jobs.unwrap_or(usize::MAX).max(1);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    match asked {
        Some(threads) => threads.min(most),
        None if most < processors => most,
        None => 0,
    }
}

/// Calls [`Job::run_while`] so that a panic ends only this run. All state that the panic could leave inconsistent belongs to the
/// run.
///
/// # Errors
/// Returns [`RunError`].
pub fn run_catching_panic(job: &Job, continues: impl FnMut() -> bool) -> Result<Option<RunResult>, RunError> {
    catch_unwind(AssertUnwindSafe(|| job.run_while(continues)))
        .unwrap_or_else(|panic| Err(RunError::Panicked { run: job.label(), message: message(&*panic) }))
}

/// Returns the message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}

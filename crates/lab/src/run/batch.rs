//! Schemes times seeds, in parallel over runs and never inside one.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

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

/// A run that could not be made.
#[derive(Debug)]
pub struct Failed {
    /// The index of its job.
    pub index: usize,
    /// Why.
    pub error: RunError,
}

/// Runs jobs and keeps neither them nor their results, however many there are: each is handed to `done` with its index as soon as
/// it is there, from any thread.
///
/// Jobs are begun in their order. Setting `stop` keeps further ones from starting and those under way from going on. A run that
/// could not be made keeps further ones from starting only.
///
/// # Errors
/// The first run that [`Failed`], in the order of the jobs. A panic inside a run is one.
pub fn run_each(
    jobs: impl Iterator<Item = Job> + Send,
    threads: Option<usize>,
    stop: &AtomicBool,
    done: impl Fn(usize, RunResult) + Sync,
) -> Result<(), Failed> {
    let failed: Mutex<Option<Failed>> = Mutex::new(None);
    let has_failed = AtomicBool::new(false);
    let goes_on = || !stop.load(Ordering::Relaxed);
    let one = |(index, job): (usize, Job)| match run_caught(&job, goes_on) {
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
    // Asked when a job is handed out: one that was is begun, so that no error after it comes first.
    let begins = |_: &(usize, Job)| goes_on() && !has_failed.load(Ordering::Relaxed);
    let threads = pool_threads(threads, jobs.size_hint().1);
    // A bridge hands out one job after the other, where an indexed iterator would split the list in halves.
    let all = || jobs.enumerate().take_while(begins).par_bridge().for_each(one);
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool.install(all),
        // Without threads of its own the batch uses the process's.
        Err(_) => all(),
    }
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// How many threads there are to be for so many jobs; 0 is as many as rayon takes by itself.
fn pool_threads(asked: Option<usize>, jobs: Option<usize>) -> usize {
    // A thread without a job would only begin and end.
    let most = jobs.unwrap_or(usize::MAX).max(1);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    match asked {
        Some(threads) => threads.min(most),
        None if most < processors => most,
        None => 0,
    }
}

/// [`Job::run_while`], where a panic ends this run and no other one: everything that it could have left half done is its own.
///
/// # Errors
/// [`RunError`].
pub fn run_caught(job: &Job, goes_on: impl FnMut() -> bool) -> Result<Option<RunResult>, RunError> {
    catch_unwind(AssertUnwindSafe(|| job.run_while(goes_on)))
        .unwrap_or_else(|panic| Err(RunError::Panicked { run: job.label(), message: message(&*panic) }))
}

/// What was given to `panic!`.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}

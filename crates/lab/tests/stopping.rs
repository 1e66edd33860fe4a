//! Aborted runs, and batches with failures.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::common::{job, run};
use anabranch_core::policy::{Policies, Scheme};
use anabranch_core::profile::Profile;
use anabranch_lab::run::{Batch, Captures, Job, JobScheme, RunError, run_each};
use tempfile::TempDir;

const SHORT: &str =
    "[run]\nduration = \"2 s\"\n[[path]]\nrate = \"2 Mbit/s\"\ndelay = \"20 ms\"\nloss = 0.01\n";

/// Returns a run that would not end during the test.
fn endless() -> Job {
    job(&SHORT.replace("2 s", "4000000 s"), "cmt", 1)
}

/// Adds traces and captures in a folder.
fn recorded(job: Job, folder: &TempDir) -> Job {
    Job {
        trace: Some(folder.path().join("trace")),
        pcap: Some(Captures::full(folder.path().join("pcap"))),
        ..job
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

/// A scheme that panics.
struct Faulty;

impl Scheme for Faulty {
    fn policies(&self) -> Policies {
        panic!("there is a hole in the bucket")
    }

    fn is_multipath(&self) -> bool {
        true
    }

    fn profile(&self, row: Profile) -> Profile {
        row
    }
}

fn faulty() -> Job {
    Job { scheme: JobScheme::new("faulty", Arc::new(Faulty)), ..job(SHORT, "cmt", 1) }
}

#[test]
fn finished_run_ignores_a_stop() {
    let short = job(&SHORT.replace("2 s", "1 ms"), "cmt", 1);
    let mut first = true;
    let made = short.run_while(|| std::mem::take(&mut first)).expect("a run");
    assert!(made.is_some(), "a finished run was stopped");
}

#[test]
fn stopped_run_has_no_result() {
    let stop = AtomicBool::new(false);
    let job = endless();
    let result = thread::scope(|scope| {
        let running = scope.spawn(|| job.run_until_stopped(&stop));
        stop.store(true, Ordering::Relaxed);
        running.join().expect("no panic")
    });
    assert_eq!(result.expect("no error"), None);
}

#[test]
fn run_without_a_stop_is_unchanged() {
    let unless = job(SHORT, "cmt", 7).run_until_stopped(&AtomicBool::new(false)).expect("no error");
    let unless = unless.expect("a result");
    assert!(unless.digest.is_some());
    assert_eq!(unless, run(SHORT, "cmt", 7));
}

#[test]
fn folder_of_an_aborted_run_says_so_and_replaces_an_earlier_one() {
    let folder = tempfile::tempdir().expect("a folder");
    recorded(job(SHORT, "cmt", 1), &folder).run().expect("a run");
    let (trace, pcap) = (folder.path().join("trace/cmt-seed1"), folder.path().join("pcap"));
    assert!(names(&trace).contains(&"result.json".to_owned()));
    assert_eq!(names(&pcap), ["cmt-seed1.pcapng"]);

    let given_up = recorded(job(SHORT, "cmt", 1), &folder).run_until_stopped(&AtomicBool::new(true));
    assert_eq!(given_up.expect("no error"), None);
    assert!(!names(&trace).contains(&"result.json".to_owned()));
    assert_eq!(names(&pcap), ["cmt-seed1.pcapng.part"]);
}

#[test]
fn stopped_batch_keeps_finished_runs_and_counts_the_others() {
    let stop = AtomicBool::new(false);
    let jobs = vec![job(SHORT, "cmt", 1), job(SHORT, "cmt", 2), endless(), endless()];
    let batch = Batch { jobs, threads: Some(1) };
    let finished = AtomicUsize::new(0);
    let outcome = batch.run(&stop, |_| {
        stop.store(finished.fetch_add(1, Ordering::Relaxed) == 1, Ordering::Relaxed);
    });
    let outcome = outcome.expect("no error");
    assert_eq!((outcome.jobs, outcome.skipped), (vec![0, 1], 2));
    assert_eq!(outcome.results, [run(SHORT, "cmt", 1), run(SHORT, "cmt", 2)]);
}

#[test]
fn a_panic_in_a_run_is_an_error_of_that_run_and_loses_no_other_one() {
    let finished = Mutex::new(Vec::new());
    let jobs = [job(SHORT, "cmt", 1), job(SHORT, "cmt", 2), faulty(), endless()];
    let failed = run_each(jobs.into_iter(), Some(1), &AtomicBool::new(false), |index, result| {
        finished.lock().expect("no panic").push((index, result.seed));
    });
    let failed = failed.expect_err("a panic");
    assert_eq!(failed.index, 2);
    assert_eq!(*finished.lock().expect("no panic"), [(0, 1), (1, 2)]);
    let RunError::Panicked { run, message } = &failed.error else { panic!("{}", failed.error) };
    assert_eq!((run.as_str(), message.as_str()), ("faulty-seed1", "there is a hole in the bucket"));
}

#[test]
fn the_error_of_a_batch_is_the_first_one_in_the_order_of_its_jobs() {
    let jobs = || [faulty(), faulty(), faulty()].into_iter();
    for threads in [1, 2] {
        let failed =
            run_each(jobs(), Some(threads), &AtomicBool::new(false), |_, _| ()).expect_err("a panic");
        assert_eq!(failed.index, 0, "{threads} threads");
    }
}

#[test]
fn jobs_are_made_one_by_one_and_no_more_of_them_after_a_stop() {
    let made = AtomicUsize::new(0);
    let template = job(SHORT, "cmt", 1);
    let jobs = (1..=1_000_000).map(|seed| {
        made.fetch_add(1, Ordering::Relaxed);
        Job { seed, ..template.clone() }
    });
    let stop = AtomicBool::new(false);
    run_each(jobs, Some(1), &stop, |_, _| stop.store(true, Ordering::Relaxed)).expect("no error");
    // The second job was created before the check whether to continue.
    assert_eq!(made.load(Ordering::Relaxed), 2);
}

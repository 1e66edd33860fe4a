//! Many runs at once, during which the interpreter runs other threads.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use anabranch_core::time::Span;
use anabranch_lab::run::{Captures, SnapLength, TracePart, TraceTable, run_catching_panic, run_each};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyAny;

use crate::error::RunError;
use crate::policy::Fault;
use crate::prepared::{Output, Prepared, refused};

/// Time between two checks for signals.
const POLL: Duration = Duration::from_millis(50);
/// Maximum number of results that wait for Python. Further runs wait.
const WAITING: usize = 256;

/// A run to execute: index of its job, prepared scenario, and seed.
type Wanted = (usize, Py<Prepared>, u64);
/// A finished run: index of its job, and its figures as JSON.
type Finished = (usize, serde_json::Result<String>);

/// Executes runs, given as pairs of a prepared scenario and a seed (any 64-bit number), on this number of native threads (one for
/// each processor if `None`). The function stores neither runs nor results, so its memory does not grow with the number of runs.
///
/// `done` is called in this thread with the index of the job and its figures as JSON, as soon as a run is finished, in any order.
/// Runs wait if it falls behind.
///
/// In the main thread, Ctrl-C or another signal whose handler raises an exception ends the batch within a fraction of a second:
/// running runs are aborted, finished ones are passed to `done`, and then the exception is raised. If Ctrl-C interrupts `done`,
/// that call is repeated. Another exception of `done` ends the batch at once. A run that fails prevents the start of others;
/// running ones are finished and passed to `done` before its error is raised.
///
/// If `tables` are given (`paths`, `decisions`, `packets`, `queues`), only these traces are written. Runs end early at `until_s`,
/// for traces of which nothing later is read.
///
/// Runs with policies in Python are executed in this thread, one after the other, after all others: a debugger can stop in them,
/// and Ctrl-C reaches them. An exception of a policy is raised here.
#[pyfunction]
#[pyo3(signature = (jobs, done, threads=None, trace=None, pcap=None, snaplen=None, digest=false, tables=None, until_s=None))]
#[expect(clippy::too_many_arguments, reason = "Python has names for them")]
pub fn run_batch(
    py: Python<'_>,
    jobs: Vec<(Py<Prepared>, u64)>,
    done: &Bound<'_, PyAny>,
    threads: Option<NonZeroUsize>,
    trace: Option<PathBuf>,
    pcap: Option<PathBuf>,
    snaplen: Option<u32>,
    digest: bool,
    tables: Option<Vec<String>>,
    until_s: Option<f64>,
) -> PyResult<()> {
    let part =
        TracePart { tables: tables.map(named_tables).transpose()?, until: until_s.map(Span::from_secs_f64) };
    let pcap = pcap.map(|folder| captures(folder, snaplen)).transpose()?;
    let output = Output { trace, part, pcap, digest };
    let jobs = jobs.into_iter().enumerate().map(|(index, (prepared, seed))| (index, prepared, seed));
    let (own, native): (Vec<Wanted>, Vec<Wanted>) =
        jobs.partition(|(_, prepared, _)| prepared.get().calls_python());
    if !native.is_empty() {
        run_native(py, &native, done, threads, &output)?;
    }
    own.iter().try_for_each(|wanted| run_own(py, wanted, done, &output))
}

/// Returns the common name of the output files of a run with this scheme and seed.
#[pyfunction]
pub fn run_label(scheme: &str, seed: u64) -> String {
    anabranch_lab::run::run_label(scheme, seed)
}

/// Returns captures with `snaplen` bytes of each packet, or with those of headers if it is `None`.
fn captures(folder: PathBuf, snaplen: Option<u32>) -> PyResult<Captures> {
    let snap_length = match snaplen {
        None => SnapLength::HEADERS,
        Some(0) => SnapLength::FULL,
        Some(bytes) => SnapLength::new(bytes).ok_or_else(|| {
            let least = SnapLength::LEAST;
            PyValueError::new_err(format!("snaplen is {bytes}; give {least} or more, or 0 for whole packets"))
        })?,
    };
    Ok(Captures { folder, snap_length })
}

fn named_tables(names: Vec<String>) -> PyResult<Vec<TraceTable>> {
    let table = |name: String| {
        TraceTable::named(&name)
            .ok_or_else(|| PyValueError::new_err(format!("a trace has no table {name:?}")))
    };
    names.into_iter().map(table).collect()
}

/// Executes runs on native threads.
fn run_native(
    py: Python<'_>,
    jobs: &[Wanted],
    done: &Bound<'_, PyAny>,
    threads: Option<NonZeroUsize>,
    output: &Output,
) -> PyResult<()> {
    let stop = AtomicBool::new(false);
    let (sender, receiver) = sync_channel::<Finished>(WAITING);
    let (delivered, made) = thread::scope(|scope| {
        let stop = &stop;
        let worker = scope.spawn(move || {
            let none = Fault::default();
            let made = jobs.iter().map(|(_, prepared, seed)| prepared.get().job(*seed, output, &none));
            run_each(made, threads.map(NonZeroUsize::get), stop, |at, result| {
                // The receiver is dropped once `done` has raised an exception.
                let _ = sender.send((jobs[at].0, serde_json::to_string(&result)));
            })
        });
        let delivered = deliver(py, receiver, done, stop);
        stop.store(true, Ordering::Relaxed);
        (delivered, py.detach(|| worker.join()))
    });
    delivered?;
    match made {
        Ok(Ok(())) => Ok(()),
        Ok(Err(failed)) => Err(refused(jobs[failed.index].1.get().file(), &failed.error)),
        Err(_) => {
            Err(RunError::new_err("the runs panicked, which is a fault of this module and worth a report"))
        }
    }
}

/// Executes a run with policies in Python. An exception ends it soon, and so does Ctrl-C between two calls of a policy.
fn run_own(py: Python<'_>, wanted: &Wanted, done: &Bound<'_, PyAny>, output: &Output) -> PyResult<()> {
    let (index, prepared, seed) = wanted;
    let fault = Fault::default();
    let prepared = prepared.get();
    let made = run_catching_panic(&prepared.job(*seed, output, &fault), || {
        if let Err(error) = py.check_signals() {
            fault.report(error);
        }
        !fault.is_reported()
    });
    if let Some(error) = fault.take() {
        return Err(error);
    }
    match made {
        Ok(Some(result)) => {
            let text =
                serde_json::to_string(&result).map_err(|error| RunError::new_err(error.to_string()))?;
            done.call1((*index, text)).map(drop)
        }
        Ok(None) => Err(RunError::new_err("a run was aborted without a reason; please report this")),
        Err(error) => Err(refused(prepared.file(), &error)),
    }
}

/// Passes all results to `done`, and checks for signals meanwhile.
fn deliver(
    py: Python<'_>,
    mut receiver: Receiver<Finished>,
    done: &Bound<'_, PyAny>,
    stop: &AtomicBool,
) -> PyResult<()> {
    let mut ended = Ok(());
    loop {
        // Only one thread at a time may use the receiver, which an exclusive reference guarantees.
        let waiting = &mut receiver;
        match py.detach(move || waiting.recv_timeout(POLL)) {
            Ok((index, text)) => {
                let text = text.map_err(|error| RunError::new_err(error.to_string()))?;
                match done.call1((index, &text)) {
                    Err(error) if ended.is_ok() && error.is_instance_of::<PyKeyboardInterrupt>(py) => {
                        stop.store(true, Ordering::Relaxed);
                        ended = Err(error);
                        done.call1((index, &text))?;
                    }
                    called => drop(called?),
                }
            }
            Err(RecvTimeoutError::Disconnected) => return ended,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if ended.is_ok() {
            ended = py.check_signals();
            stop.store(ended.is_err(), Ordering::Relaxed);
        }
    }
}

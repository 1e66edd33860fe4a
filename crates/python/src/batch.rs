//! Many runs at once, while the interpreter does other things.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use anabranch_lab::run::run_each;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyAny;

use crate::error::RunError;
use crate::prepared::{Output, Prepared, refused};

/// How often signals are looked for.
const POLL: Duration = Duration::from_millis(50);
/// Results that may wait for Python before runs do.
const WAITING: usize = 256;

/// A finished run: the index of its job, and its figures as JSON.
type Finished = (usize, serde_json::Result<String>);

/// Makes runs, given as pairs of what was prepared and a seed (any 64-bit number), on so many native threads (one for each processor
/// if `None`). Neither runs nor results are kept, however many there are.
///
/// `done` is called in this thread with the index of the job and its figures as JSON, as soon as a run is finished, in whatever order.
/// Runs wait where it falls behind.
///
/// Ctrl-C, and any other signal whose handler raises something, ends the batch within a fraction of a second if this is the main
/// thread: runs under way are given up, those finished are handed to `done`, and then the exception is raised. If Ctrl-C comes while
/// `done` is at work, that call is made again. Whatever else `done` raises ends the batch at once. A run that cannot be made keeps
/// others from starting; those under way are finished and handed over before its error is raised.
#[pyfunction]
#[pyo3(signature = (jobs, done, threads=None, trace=None, pcap=None, digest=false))]
pub fn run_batch(
    py: Python<'_>,
    jobs: Vec<(Py<Prepared>, u64)>,
    done: &Bound<'_, PyAny>,
    threads: Option<NonZeroUsize>,
    trace: Option<PathBuf>,
    pcap: Option<PathBuf>,
    digest: bool,
) -> PyResult<()> {
    let output = Output { trace, pcap, digest };
    let stop = AtomicBool::new(false);
    let (sender, receiver) = sync_channel::<Finished>(WAITING);
    let (delivered, made) = thread::scope(|scope| {
        let (jobs, output, stop) = (&jobs, &output, &stop);
        let worker = scope.spawn(move || {
            let jobs = jobs.iter().map(|(prepared, seed)| prepared.get().job(*seed, output));
            run_each(jobs, threads.map(NonZeroUsize::get), stop, |index, result| {
                // Nobody receives any more once `done` has raised something.
                let _ = sender.send((index, serde_json::to_string(&result)));
            })
        });
        let delivered = deliver(py, receiver, done, stop);
        stop.store(true, Ordering::Relaxed);
        (delivered, py.detach(|| worker.join()))
    });
    delivered?;
    match made {
        Ok(Ok(())) => Ok(()),
        Ok(Err(failed)) => Err(refused(jobs[failed.index].0.get().file(), &failed.error)),
        Err(_) => {
            Err(RunError::new_err("the runs panicked, which is a fault of this module and worth a report"))
        }
    }
}

/// Hands results over until there are no more, and looks for signals meanwhile.
fn deliver(
    py: Python<'_>,
    mut receiver: Receiver<Finished>,
    done: &Bound<'_, PyAny>,
    stop: &AtomicBool,
) -> PyResult<()> {
    let mut ended = Ok(());
    loop {
        // A receiver may be used by one thread at a time: an exclusive reference says so.
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

//! Many runs at once, while the interpreter does other things.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use anabranch_lab::run::Batch;
use pyo3::prelude::*;
use pyo3::types::PyAny;

use crate::error::RunError;
use crate::prepared::{Prepared, refused};

/// How often signals are looked for.
const POLL: Duration = Duration::from_millis(50);
/// Results that may wait for Python before runs do.
const WAITING: usize = 256;

/// A finished run: the index of its job, and its figures as JSON.
type Finished = (usize, String);

/// Makes runs, given as pairs of what was prepared and a seed, with so many threads (one for each processor if `None`).
///
/// `done` is called in this thread with the index of the job and its figures as JSON, as soon as a run is finished, in whatever order.
/// Whatever it raises, and whatever a signal raises, ends the batch within a fraction of a second: runs under way are given up, and
/// those finished are handed to `done` first if it was a signal.
#[pyfunction]
#[pyo3(signature = (jobs, done, threads=None, trace=None, pcap=None, digest=false))]
pub(crate) fn run_batch(
    py: Python<'_>,
    jobs: Vec<(Py<Prepared>, u64)>,
    done: &Bound<'_, PyAny>,
    threads: Option<usize>,
    trace: Option<PathBuf>,
    pcap: Option<PathBuf>,
    digest: bool,
) -> PyResult<()> {
    let jobs = jobs
        .iter()
        .map(|(prepared, seed)| prepared.get().job(*seed, trace.clone(), pcap.clone(), digest))
        .collect();
    let batch = Batch { jobs, threads };
    let stop = AtomicBool::new(false);
    let (sender, receiver) = sync_channel::<Finished>(WAITING);
    let (ended, outcome) = thread::scope(|scope| {
        let stop = &stop;
        let worker = scope.spawn(move || {
            batch.run_indexed(stop, |index, result| {
                let text = serde_json::to_string(result).unwrap_or_default();
                // Nobody receives any more once `done` has raised something.
                let _ = sender.send((index, text));
            })
        });
        let ended = deliver(py, receiver, done, stop);
        (ended, py.detach(|| worker.join()))
    });
    ended?;
    match outcome {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(refused("scenario", &error)),
        Err(_) => {
            Err(RunError::new_err("a run panicked; this is a fault of the simulator, please report it"))
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
    let mut signal = Ok(());
    loop {
        // A receiver may be used by one thread at a time: an exclusive reference says so.
        let waiting = &mut receiver;
        match py.detach(move || waiting.recv_timeout(POLL)) {
            Ok((index, text)) => {
                if let Err(error) = done.call1((index, text)) {
                    stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return signal,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if signal.is_ok() {
            signal = py.check_signals();
            if signal.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
        }
    }
}

//! What wakes an event loop from threads that know nothing of it.

use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use pyo3::prelude::*;

/// A pipe whose end an event loop watches, and the numbers of those who are to look again.
#[pyclass(frozen, module = "anabranch._native")]
pub(crate) struct Bell {
    line: Arc<Line>,
}

struct Line {
    state: Mutex<State>,
    reader: PipeReader,
    writer: PipeWriter,
}

#[derive(Default)]
struct State {
    rung: Vec<u64>,
    /// There is a byte in the pipe.
    signalled: bool,
}

impl Line {
    fn ring(&self, number: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.rung.push(number);
        if !state.signalled {
            // One byte fits the pipe of both ends of which we hold.
            state.signalled = (&self.writer).write_all(&[0]).is_ok();
        }
    }

    fn answer(&self) -> io::Result<Vec<u64>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.signalled {
            (&self.reader).read_exact(&mut [0])?;
            state.signalled = false;
        }
        Ok(std::mem::take(&mut state.rung))
    }
}

/// Wakes the one with this number.
struct Ringer {
    line: Arc<Line>,
    number: u64,
}

impl Wake for Ringer {
    fn wake(self: Arc<Self>) {
        self.line.ring(self.number);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.line.ring(self.number);
    }
}

impl Bell {
    /// What rings with this number.
    pub(super) fn waker(&self, number: u64) -> Waker {
        Waker::from(Arc::new(Ringer { line: Arc::clone(&self.line), number }))
    }
}

#[pymethods]
impl Bell {
    #[new]
    fn new() -> PyResult<Self> {
        let (reader, writer) = pipe()?;
        Ok(Bell { line: Arc::new(Line { state: Mutex::default(), reader, writer }) })
    }

    /// What the event loop is to watch: it can be read from once somebody has rung.
    #[cfg(unix)]
    fn fileno(&self) -> i32 {
        std::os::fd::AsRawFd::as_raw_fd(&self.line.reader)
    }

    /// Event loops of other systems watch sockets only.
    #[cfg(not(unix))]
    fn fileno(&self) -> PyResult<i32> {
        Err(pyo3::exceptions::PyNotImplementedError::new_err("pipes cannot be watched on this system"))
    }

    /// The numbers that were rung since the last call, some perhaps twice. Never blocks.
    fn answer(&self) -> PyResult<Vec<u64>> {
        Ok(self.line.answer()?)
    }
}

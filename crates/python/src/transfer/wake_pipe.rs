//! Pipe by which native threads wake an event loop.

use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use pyo3::prelude::*;

/// A pipe that an event loop watches, and the numbers of the operations to poll again.
#[pyclass(frozen, module = "anabranch._native")]
pub struct WakePipe {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    reader: PipeReader,
    writer: PipeWriter,
}

#[derive(Default)]
struct State {
    woken: Vec<u64>,
    /// Set while the pipe contains a byte.
    signalled: bool,
}

impl Shared {
    fn wake(&self, number: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.woken.push(number);
        if !state.signalled {
            // One byte fits into the pipe, both ends of which this process holds.
            state.signalled = (&self.writer).write_all(&[0]).is_ok();
        }
    }

    fn drain(&self) -> io::Result<Vec<u64>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.signalled {
            (&self.reader).read_exact(&mut [0])?;
            state.signalled = false;
        }
        Ok(std::mem::take(&mut state.woken))
    }
}

/// Wakes the operation with this number.
struct OperationWaker {
    shared: Arc<Shared>,
    number: u64,
}

impl Wake for OperationWaker {
    fn wake(self: Arc<Self>) {
        self.shared.wake(self.number);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.shared.wake(self.number);
    }
}

impl WakePipe {
    /// Returns the waker of the operation with this number.
    pub(super) fn waker(&self, number: u64) -> Waker {
        Waker::from(Arc::new(OperationWaker { shared: Arc::clone(&self.shared), number }))
    }
}

#[pymethods]
impl WakePipe {
    #[new]
    fn new() -> PyResult<Self> {
        let (reader, writer) = pipe()?;
        Ok(WakePipe { shared: Arc::new(Shared { state: Mutex::default(), reader, writer }) })
    }

    /// Returns the descriptor for the event loop. It is readable once an operation is woken.
    #[cfg(unix)]
    fn fileno(&self) -> i32 {
        std::os::fd::AsRawFd::as_raw_fd(&self.shared.reader)
    }

    /// Returns an error, because event loops of other systems can watch only sockets.
    #[cfg(not(unix))]
    fn fileno(&self) -> PyResult<i32> {
        Err(pyo3::exceptions::PyNotImplementedError::new_err("pipes cannot be watched on this system"))
    }

    /// Returns the numbers of the operations woken since the last call, some possibly twice. Never blocks.
    fn drain(&self) -> PyResult<Vec<u64>> {
        Ok(self.shared.drain()?)
    }
}

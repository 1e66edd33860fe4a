//! Future that Python polls.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use super::failure::Failure;
use super::wake_pipe::WakePipe;

/// Creates the Python object of a result, in a thread that is attached to the interpreter.
type Found = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// An asynchronous operation, which advances when it is polled. Dropping it cancels it.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Operation {
    work: Mutex<Work>,
}

struct Work {
    /// Future; `None` once it is complete or cancelled.
    future: Option<Pin<Box<dyn Future<Output = Found> + Send>>>,
    /// Waker, from the first poll on.
    waker: Option<Waker>,
}

impl Operation {
    pub(super) fn new<T>(future: impl Future<Output = Result<T, Failure>> + Send + 'static) -> Self
    where
        T: for<'py> IntoPyObject<'py> + Send + 'static,
    {
        let found = async move {
            let outcome = future.await;
            Box::new(move |py: Python<'_>| outcome?.into_py_any(py)) as Found
        };
        Operation { work: Mutex::new(Work { future: Some(Box::pin(found)), waker: None }) }
    }
}

#[pymethods]
impl Operation {
    /// Returns the result in a tuple, or `None` if it is pending: then `number` is sent through the pipe when it is time to poll
    /// again.
    fn poll(&self, py: Python<'_>, pipe: &WakePipe, number: u64) -> PyResult<Option<(Py<PyAny>,)>> {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let Work { future, waker } = &mut *work;
        let Some(pending) = future else {
            return Err(pyo3::exceptions::PyRuntimeError::new_err("the operation is over"));
        };
        let waker = waker.get_or_insert_with(|| pipe.waker(number));
        let Poll::Ready(found) = pending.as_mut().poll(&mut Context::from_waker(waker)) else {
            return Ok(None);
        };
        *future = None;
        drop(work);
        Ok(Some((found(py)?,)))
    }

    /// Cancels the operation. A message that it would have received stays in its queue.
    fn cancel(&self) {
        self.work.lock().unwrap_or_else(PoisonError::into_inner).future = None;
    }
}

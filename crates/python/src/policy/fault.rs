//! Exception that ends a run.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;

/// First exception that a policy of a run raised. All policies of the run share it.
#[derive(Clone, Default)]
pub(crate) struct Fault(Arc<Mutex<Option<PyErr>>>);

impl Fault {
    /// Stores the exception, unless there is one already.
    pub(crate) fn report(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Returns `true` if there is an exception.
    pub(crate) fn is_reported(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Removes and returns the exception.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

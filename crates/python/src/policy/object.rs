//! Object of one association, and calls of its methods.

use std::sync::Arc;

use anabranch_core::policy::{Event, Reason, View as CoreView};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::answer::reasoned;
use super::event::PolicyEvent;
use super::fault::Fault;
use super::hook::Hook;
use super::view::View;

/// Python object that some slots of one association share.
#[derive(Clone)]
pub(super) struct Object {
    object: Arc<Py<PyAny>>,
    hooks: Arc<[Hook]>,
    fault: Fault,
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Object")
    }
}

impl Object {
    pub(super) fn new(object: Py<PyAny>, hooks: Arc<[Hook]>, fault: Fault) -> Self {
        Object { object: Arc::new(object), hooks, fault }
    }

    pub(super) fn has(&self, hook: Hook) -> bool {
        self.hooks.contains(&hook)
    }

    /// Calls a method of two arguments, the second of which is the view, and converts its answer. Returns `None` once the run has a
    /// fault.
    pub(super) fn ask<A, T>(
        &self,
        method: &Bound<'_, PyString>,
        argument: impl FnOnce() -> A,
        view: &CoreView<'_>,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<(T, Reason)>
    where
        A: for<'py> IntoPyObject<'py>,
    {
        let py = method.py();
        if self.fault.is_reported() {
            return None;
        }
        let ask = || {
            let object = self.object.bind(py);
            let answer = object.call_method1(method, (argument(), View::of(py, view)?))?;
            let (choice, reason) = reasoned(answer);
            let choice = read(&choice).map_err(|error| placed(error, object, method))?;
            Ok((choice, reason))
        };
        ask().map_err(|error| self.fault.report(error)).ok()
    }

    /// Passes an event to the object.
    pub(super) fn dispatch(&self, event: &Event<'_>, view: &CoreView<'_>) {
        if !self.has(Hook::Event) {
            return;
        }
        Python::attach(|py| {
            let method = pyo3::intern!(py, "on_event");
            self.ask(method, || PolicyEvent::of(event), view, |_| Ok(()));
        });
    }
}

/// Adds file and line of the method to the error of an answer. The method has returned, so the traceback lacks them.
fn placed(error: PyErr, object: &Bound<'_, PyAny>, method: &Bound<'_, PyString>) -> PyErr {
    let place = || {
        let code = object.getattr(method)?.getattr("__code__")?;
        let file: String = code.getattr("co_filename")?.extract()?;
        let line: u32 = code.getattr("co_firstlineno")?.extract()?;
        PyResult::Ok(format!("{file}:{line}: "))
    };
    let place = place().unwrap_or_default();
    PyErr::from_type(error.get_type(method.py()), format!("{place}{}", error.value(method.py())))
}

//! Answers of policies in Python, and their conversion for core.

use anabranch_core::policy::{Pick, Reason, Refusal, Refused, RetransmitChoice, View, WaitFor};
use anabranch_core::time::Time;
use anabranch_core::{PathId, PathSet};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::reason::reason;
use super::view::path_id;

/// Reason of an answer without one.
pub(super) const NO_REASON: Reason = Reason::rule("a policy in Python");

/// Decision to wait for window space on any path, for a path, or until a time.
#[pyclass(frozen, module = "anabranch.policy")]
pub struct Wait {
    wait: WaitFor,
}

#[pymethods]
impl Wait {
    #[new]
    #[pyo3(signature = (*, path=None, until_s=None))]
    fn new(path: Option<Bound<'_, PyAny>>, until_s: Option<f64>) -> PyResult<Self> {
        let wait = match (path, until_s) {
            (None, None) => WaitFor::Window,
            (Some(path), None) => path_id(&path)?.map_or(WaitFor::Window, WaitFor::Path),
            (None, Some(at_s)) => WaitFor::Until(time(at_s)?),
            (Some(_), Some(_)) => {
                return Err(PyValueError::new_err("Wait takes `path` or `until_s`, not both"));
            }
        };
        Ok(Wait { wait })
    }
}

/// Returns the time of a number of seconds.
fn time(seconds: f64) -> PyResult<Time> {
    // The limit is far beyond the end of any run. A float does not distinguish nanoseconds there.
    let nanoseconds = seconds * 1e9;
    if !(0.0..=1e18).contains(&nanoseconds) {
        return Err(PyValueError::new_err(format!(
            "until_s is {seconds}: give a time in seconds, such as view.now_s + 0.01"
        )));
    }
    Ok(Time::from_nanos(nanoseconds.round() as u64))
}

/// A packet of new data on several paths: new data on the path with the lowest id, and copies on the others.
#[pyclass(frozen, module = "anabranch.policy")]
pub struct Copies {
    paths: PathSet,
}

#[pymethods]
impl Copies {
    #[new]
    fn new(paths: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut set = PathSet::EMPTY;
        for path in paths.try_iter()? {
            if let Some(id) = path_id(&path?)? {
                set.insert(id);
            }
        }
        Ok(Copies { paths: set })
    }
}

/// A chunk in a path's queue, which waits for room in the path's window.
#[pyclass(frozen, module = "anabranch.policy")]
pub struct Bind {
    path: Option<PathId>,
}

#[pymethods]
impl Bind {
    #[new]
    fn new(path: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Bind { path: path_id(path)? })
    }
}

/// An answer with its reason: a rule, and the figure that decided, whose name contains its unit.
#[pyclass(frozen, module = "anabranch.policy")]
pub struct Decision {
    choice: Py<PyAny>,
    reason: Reason,
}

#[pymethods]
impl Decision {
    #[new]
    #[pyo3(signature = (choice, rule, figure="", value=0.0))]
    fn new(choice: Py<PyAny>, rule: &str, figure: &str, value: f64) -> PyResult<Self> {
        Ok(Decision { choice, reason: reason(rule, figure, value)? })
    }
}

/// Returns an answer and its reason.
pub(super) fn reasoned<'py>(answer: Bound<'py, PyAny>) -> (Bound<'py, PyAny>, Reason) {
    match answer.cast::<Decision>() {
        Ok(decision) => {
            let decision = decision.get();
            (decision.choice.bind(answer.py()).clone(), decision.reason)
        }
        Err(_) => (answer, NO_REASON),
    }
}

/// Returns the choice of a scheduler. An invalid number of a path means no path, which core counts as a mistake.
pub(super) fn pick(answer: &Bound<'_, PyAny>) -> PyResult<Pick> {
    if let Some(wait) = wait(answer) {
        return Ok(Pick::Wait(wait));
    }
    let nowhere = Pick::Copies(PathSet::EMPTY);
    if let Ok(copies) = answer.cast::<Copies>() {
        return Ok(Pick::Copies(copies.get().paths));
    }
    if let Ok(bind) = answer.cast::<Bind>() {
        return Ok(bind.get().path.map_or(nowhere, Pick::Bind));
    }
    let known = "a path, its id, None, Wait(…), Copies(…), Bind(…), or a Decision of one of these";
    Ok(path_id(answer).map_err(|_| wrong("pick", answer, known))?.map_or(nowhere, Pick::Path))
}

/// Returns the choice of a retransmission policy. An invalid number of a path means a wait, as for a path without room.
pub(super) fn route(answer: &Bound<'_, PyAny>) -> PyResult<RetransmitChoice> {
    if let Some(wait) = wait(answer) {
        return Ok(RetransmitChoice::Wait(wait));
    }
    let known = "a path, its id, None, Wait(…), or a Decision of one of these";
    let path = path_id(answer).map_err(|_| wrong("route", answer, known))?;
    Ok(path.map_or(RetransmitChoice::Wait(WaitFor::Window), RetransmitChoice::Path))
}

fn wait(answer: &Bound<'_, PyAny>) -> Option<WaitFor> {
    if answer.is_none() {
        return Some(WaitFor::Window);
    }
    Some(answer.cast::<Wait>().ok()?.get().wait)
}

/// Returns the exception for an answer of an invalid type.
pub(super) fn wrong(method: &str, answer: &Bound<'_, PyAny>, known: &str) -> PyErr {
    let found = answer.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("`{method}` gave back a {found}: expected {known}"))
}

/// Returns the refused paths besides these: those that cannot send data now, and those that could and were not preferred.
pub(super) fn refused(chosen: PathSet, view: &View<'_>) -> Refused {
    let others = view.paths.iter().filter(|path| !chosen.contains(path.id));
    others.map(|path| (path.id, view.refusal(path.id).unwrap_or(Refusal::Preference))).collect()
}

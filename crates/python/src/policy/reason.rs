//! Reasons from Python in the form of traces.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use anabranch_core::policy::Reason;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Maximum number of bytes of a rule or of a figure's name.
const LONGEST: usize = 100;
/// Maximum number of different rules and names of figures in a process. They are never freed, because traces refer to them.
const MOST: usize = 1000;

static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Returns a reason with a figure, or without one if the name is empty.
pub(super) fn reason(rule: &str, figure: &str, value: f64) -> PyResult<Reason> {
    if !value.is_finite() {
        return Err(PyValueError::new_err(format!(
            "the value of a decision is {value}: give a finite number"
        )));
    }
    Ok(Reason { rule: kept(rule)?, figure: kept(figure)?, value })
}

fn kept(text: &str) -> PyResult<&'static str> {
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = texts.get(text) {
        return Ok(known);
    }
    if text.len() > LONGEST || text.chars().any(char::is_control) {
        return Err(PyValueError::new_err(format!(
            "the rule or figure of a decision is printable text of at most {LONGEST} bytes"
        )));
    }
    if texts.len() >= MOST {
        return Err(PyValueError::new_err(format!(
            "decisions have given more than {MOST} different rules: a rule is a fixed text, and what varies is its `value`"
        )));
    }
    let kept: &'static str = Box::leak(text.into());
    texts.insert(kept);
    Ok(kept)
}

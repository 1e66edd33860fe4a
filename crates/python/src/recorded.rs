//! Traces of recorded networks.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use anabranch_core::time::Span;
use anabranch_sim::{CapacityTrace, Columns, RateUnit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::AnabranchError;

/// Returns the mean rates of equal steps of a trace, in Mbit/s.
#[pyfunction]
#[pyo3(signature = (file, step_s, column=None, time=None, unit=None))]
pub fn read_rates(
    py: Python<'_>,
    file: PathBuf,
    step_s: f64,
    column: Option<String>,
    time: Option<String>,
    unit: Option<&str>,
) -> PyResult<Vec<f64>> {
    let unit = unit.map(RateUnit::named).transpose().map_err(PyValueError::new_err)?;
    let columns = Columns { time, value: column, ..Columns::default() };
    let fault = |reason: String| AnabranchError::new_err(format!("{}: {reason}", file.display()));
    py.detach(|| {
        let input = File::open(&file).map_err(|error| fault(format!("cannot be read: {error}")))?;
        let trace = CapacityTrace::read(BufReader::new(input), &columns, unit);
        let rates = trace.and_then(|trace| trace.rates(Span::from_secs_f64(step_s)));
        let rates = rates.map_err(|error| fault(error.to_string()))?;
        Ok(rates.into_iter().map(|(_, rate)| rate.as_bps() as f64 / 1e6).collect())
    })
}

//! Version of the engine in this module.

use anabranch_lab::engine::{FINGERPRINT, VERSION};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Commit of the sources (see `build.rs`).
const COMMIT: &str = env!("ANABRANCH_COMMIT");

/// Returns the identity of the engine: `version`, `commit` and `fingerprint`.
#[pyfunction]
pub fn engine(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let engine = PyDict::new(py);
    engine.set_item("version", VERSION)?;
    engine.set_item("commit", COMMIT)?;
    engine.set_item("fingerprint", FINGERPRINT)?;
    Ok(engine)
}

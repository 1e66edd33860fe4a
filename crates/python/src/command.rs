//! The `anabranch` command inside a Python process, and what else the command line crate knows.

use pyo3::prelude::*;

/// Runs the native command with these arguments, of which the first is the name of the program, and gives its exit status.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, arguments: Vec<String>) -> u8 {
    py.detach(|| anabranch_cli::status_of(arguments).code())
}

/// Every scheme and component as JSON.
#[pyfunction]
pub(crate) fn cards() -> String {
    anabranch_cli::schemes::cards_json()
}

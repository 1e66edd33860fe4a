//! Access of a Python process to the `anabranch` command and to other functions of the command line crate.

use std::ffi::OsString;

use anabranch_cli::PYTHON_COMMANDS;
use pyo3::prelude::*;

/// Runs the native command with these arguments, of which the first is the name of the program, and gives its exit status: see
/// `anabranch --help`. The help lists the commands of [`python_commands`] too.
///
/// It takes Ctrl-C over as the native program does. Python does not see it from then on.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| anabranch_cli::status_of_with(arguments, &PYTHON_COMMANDS).code())
}

/// Returns the names of the commands that the Python package performs itself.
#[pyfunction]
pub(crate) fn python_commands() -> Vec<&'static str> {
    PYTHON_COMMANDS.iter().map(|command| command.name).collect()
}

/// Returns the files of a built-in scenario or plan by name, as `anabranch init` writes them, the named one first; `None` if there
/// is none of this name.
#[pyfunction]
pub(crate) fn built_in_files(name: &str) -> Option<Vec<(String, String)>> {
    anabranch_cli::built_in_files(name)
}

/// Returns the names of the built-in scenarios and plans.
#[pyfunction]
pub(crate) fn built_in_names() -> Vec<&'static str> {
    anabranch_cli::built_in_names()
}

/// Returns every scheme and component as JSON.
#[pyfunction]
pub(crate) fn cards() -> String {
    anabranch_cli::schemes::cards_json()
}

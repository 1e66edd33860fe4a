//! Methods with which an object fills slots.

use std::str::FromStr;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A method of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    /// `pick`, of a scheduler.
    Pick,
    /// `route`, which chooses paths of retransmissions.
    Route,
    /// `grow`, which increases windows.
    Grow,
    /// `cut`, which reduces windows.
    Cut,
    /// `pace`, which paces paths.
    Pace,
    /// `on_event`, which receives events.
    Event,
}

impl FromStr for Hook {
    type Err = PyErr;

    fn from_str(name: &str) -> PyResult<Self> {
        match name {
            "pick" => Ok(Hook::Pick),
            "route" => Ok(Hook::Route),
            "grow" => Ok(Hook::Grow),
            "cut" => Ok(Hook::Cut),
            "pace" => Ok(Hook::Pace),
            "on_event" => Ok(Hook::Event),
            _ => Err(PyValueError::new_err(format!("no hook is named `{name}`"))),
        }
    }
}

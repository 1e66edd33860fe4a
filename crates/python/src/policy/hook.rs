//! The methods by which an object fills slots.

use std::str::FromStr;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A method that an object has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    /// `pick`: it is a scheduler.
    Pick,
    /// `route`: it chooses paths of retransmissions.
    Route,
    /// `grow`: it lets windows grow.
    Grow,
    /// `cut`: it reduces windows.
    Cut,
    /// `pace`: it paces paths.
    Pace,
    /// `on_event`: it wants to hear of events.
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
            _ => Err(PyValueError::new_err(format!("there is no hook `{name}`"))),
        }
    }
}

//! The native module of the Python package: scenarios, runs and the command. What it computes is the Rust crates' work; this hands
//! it over, and releases the interpreter while it goes on.

mod batch;
mod command;
mod engine;
mod error;
mod prepared;
mod transfer;

use pyo3::prelude::*;

/// `anabranch._native`, whose Python face is typed in `_native.pyi`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::batch::run_batch;
    #[pymodule_export]
    use crate::command::{cards, command, python_commands};
    #[pymodule_export]
    use crate::engine::engine;
    #[pymodule_export]
    use crate::error::{AnabranchError, RunError, ScenarioError, SchemeError};
    #[pymodule_export]
    use crate::prepared::{Prepared, resolve, schemes_of};
    #[pymodule_export]
    use crate::transfer::{
        Association, Events, Listener, Operation, WakePipe, connect, end_associations, forget_runtime, listen,
    };
}

//! Exceptions that the native module raises. The first one is the base of all exceptions of the package. They belong to the module
//! with all of them, so that they can be unpickled.

use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(
    anabranch.errors,
    AnabranchError,
    PyException,
    "Base class of the errors that this package raises."
);
create_exception!(
    anabranch.errors,
    ScenarioError,
    AnabranchError,
    "A scenario cannot be read or is invalid. The message lists every error with its place and a remedy."
);
create_exception!(anabranch.errors, SchemeError, AnabranchError, "A scheme expression is invalid.");
create_exception!(
    anabranch.errors,
    RunError,
    AnabranchError,
    "A run could not be made: a file that a flow sends cannot be read, or a trace cannot be written."
);

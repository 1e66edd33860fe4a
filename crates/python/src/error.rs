//! The exceptions that the native module raises. Others of the package descend from the first one too. They belong to the module
//! that has all of them, where whoever unpickles one finds it.

use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(
    anabranch.errors,
    AnabranchError,
    PyException,
    "Anything that this package raises of its own accord."
);
create_exception!(
    anabranch.errors,
    ScenarioError,
    AnabranchError,
    "A scenario cannot be read, or something in it is wrong. The message has every fault, with its place and what to do about it."
);
create_exception!(anabranch.errors, SchemeError, AnabranchError, "A scheme expression is wrong.");
create_exception!(
    anabranch.errors,
    RunError,
    AnabranchError,
    "A run could not be made: a file that a flow sends cannot be read, or a trace cannot be written."
);

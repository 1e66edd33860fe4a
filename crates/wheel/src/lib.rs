//! The extension module of the Python package: the bindings of [`anabranch_python`], and the `anabranch` command of
//! [`anabranch_cli`], which the package installs too.

mod command;

use pyo3::prelude::*;

/// `anabranch._native`, whose Python face is typed in `_native.pyi`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::command::{built_in_files, built_in_names, cards, command, python_commands};
    #[pymodule_export]
    use anabranch_python::{
        Acknowledged, AnabranchError, Association, AssociationFacts, Bind, Copies, Decision, DeliverySample,
        Events, HeadOfLine, Listener, LostChunk, NativeScenario, NativeText, Operation, PaceAsk, Pacing,
        PathFacts, PathLoss, PolicyEvent, Prepared, RunError, ScenarioError, SchemeError, SendAsk, View,
        Wait, WakePipe, Window, connect, end_associations, engine, forget_runtime, listen, policy_sources,
        read_link, read_rates, resolve, run_batch, run_label, schemes_of, video_due_ms, video_fates,
        video_measures,
    };
}

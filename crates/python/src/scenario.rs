//! Scenarios for Python: parsed once, shared by values, sweeps and runs.

use std::sync::Arc;

use anabranch_scenario::{
    Document, Draft, FileSource, FlowKind, Link, Override, RawValue, Scenario, TraceFile,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::{ScenarioError, SchemeError};

/// Dotted keys with values as TOML or bare strings.
type Values = Vec<(String, String)>;

/// Text of a scenario file that is TOML, and may lack values that overrides add.
#[pyclass(frozen, name = "ScenarioText", module = "anabranch._native")]
pub struct NativeText(Arc<Draft>);

/// A scenario with all defaults and checked references.
#[pyclass(frozen, name = "Scenario", module = "anabranch._native")]
pub struct NativeScenario(Document);

/// A scenario, or its text.
#[derive(FromPyObject)]
pub(crate) enum ScenarioOrText<'py> {
    Scenario(Bound<'py, NativeScenario>),
    Text(String),
}

/// Returns a scenario with these values as canonical TOML, with every default in it. `file` names it in messages.
#[pyfunction]
#[pyo3(signature = (text, file, values=Vec::new()))]
pub fn resolve(text: &str, file: &str, values: Values) -> PyResult<String> {
    Ok(NativeScenario::new(text, file, values)?.to_toml())
}

/// Returns the table of a path from one line with the keys of a link. `option` names the line in messages.
#[pyfunction]
pub fn read_link<'py>(
    py: Python<'py>,
    line: &str,
    option: &str,
    default_name: &str,
) -> PyResult<Bound<'py, PyDict>> {
    dictionary(py, Link::parse(line, option, default_name).map_err(refused)?.given())
}

/// Returns the schemes of a list in a scenario, as the method of [`NativeScenario`] does.
#[pyfunction]
pub fn schemes_of(text: &str, file: &str, expressions: &str) -> PyResult<Vec<String>> {
    NativeScenario::new(text, file, Vec::new())?.schemes_of(expressions)
}

#[pymethods]
impl NativeText {
    /// Parses text. `file` names it in messages.
    #[new]
    fn new(text: &str, file: &str) -> PyResult<Self> {
        Ok(NativeText(Arc::new(Draft::parse(text, file).map_err(refused)?)))
    }

    /// Reads the scenario with these values.
    fn read(&self, values: Values) -> PyResult<NativeScenario> {
        self.0.read(overrides(values)).map(NativeScenario).map_err(refused)
    }
}

#[pymethods]
impl NativeScenario {
    /// Reads the text of a scenario with these values. `file` names it in messages.
    #[new]
    #[pyo3(signature = (text, file, values=Vec::new()))]
    pub(crate) fn new(text: &str, file: &str, values: Values) -> PyResult<Self> {
        NativeText::new(text, file)?.read(values)
    }

    /// Returns the scenario with more values. The text is not parsed again.
    fn with_values(&self, values: Values) -> PyResult<NativeScenario> {
        self.0.with(overrides(values)).map(NativeScenario).map_err(refused)
    }

    /// Returns the keys that are given, as a dictionary.
    fn table<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        dictionary(py, self.0.given())
    }

    /// Returns the scenario as canonical TOML, with every default in it.
    fn to_toml(&self) -> String {
        self.scenario().to_toml()
    }

    /// Returns the schemes to run, as given.
    #[getter]
    fn schemes(&self) -> Vec<String> {
        self.scenario().run.schemes.clone()
    }

    /// Returns the seeds to run.
    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.scenario().run.seeds.clone()
    }

    /// Returns the schemes of a list such as `sctp,cmt(trigger=4)` or `all`, each in full and once.
    fn schemes_of(&self, expressions: &str) -> PyResult<Vec<String>> {
        let schemes = self.scenario().vocabulary().parse_list(expressions);
        let schemes = schemes.map_err(|error| SchemeError::new_err(error.to_string()))?;
        let mut names: Vec<String> = Vec::new();
        for name in schemes.iter().map(ToString::to_string) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Returns the files that flows send and links follow: the key of each, and its path as given.
    #[getter]
    fn files(&self) -> Vec<(String, String)> {
        let file = |flow: &anabranch_scenario::Flow| match &flow.kind {
            FlowKind::File(FileSource::Path(path)) => {
                Some((format!("flow.{}.path", flow.name), path.clone()))
            }
            FlowKind::Video(video) => Some((format!("flow.{}.trace", flow.name), video.trace.clone())),
            _ => None,
        };
        let files = self.scenario().flows.iter().filter_map(file);
        let traces = self.scenario().ways().flat_map(|(place, way)| {
            let key = move |(key, trace): (&str, &TraceFile)| (format!("{place}.{key}"), trace.path.clone());
            way.traces().map(key).collect::<Vec<_>>()
        });
        files.chain(traces).map(|(key, path)| (key, path.to_string_lossy().into_owned())).collect()
    }

    /// Returns `true` if a flow sends a file, whose generated content depends on the seed.
    #[getter]
    fn makes_content(&self) -> bool {
        self.scenario().flows.iter().any(|flow| matches!(flow.kind, FlowKind::File(_)))
    }

    fn __getnewargs__(&self) -> (String, String, Values) {
        let values = self.0.overrides().iter().map(|set| (set.key.clone(), set.value.clone()));
        (self.0.text().to_owned(), self.0.draft().file().to_owned(), values.collect())
    }
}

impl NativeScenario {
    pub(crate) fn scenario(&self) -> &Arc<Scenario> {
        self.0.scenario()
    }
}

fn overrides(values: Values) -> Vec<Override> {
    values.into_iter().map(|(key, value)| Override { key, value, option: "" }).collect()
}

fn refused(error: anabranch_scenario::ScenarioError) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

fn dictionary<'py>(py: Python<'py>, table: Vec<(String, RawValue)>) -> PyResult<Bound<'py, PyDict>> {
    let dictionary = PyDict::new(py);
    for (key, value) in table {
        dictionary.set_item(key, object(py, value)?)?;
    }
    Ok(dictionary)
}

fn object<'py>(py: Python<'py>, value: RawValue) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        RawValue::Text(text) => text.into_pyobject(py)?.into_any(),
        RawValue::Integer(number) => number.into_pyobject(py)?.into_any(),
        RawValue::Float(number) => number.into_pyobject(py)?.into_any(),
        RawValue::Flag(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        RawValue::List(items) => {
            let items: PyResult<Vec<_>> = items.into_iter().map(|item| object(py, item)).collect();
            PyList::new(py, items?)?.into_any()
        }
        RawValue::Table(table) => dictionary(py, table)?.into_any(),
    })
}

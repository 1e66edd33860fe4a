//! Scenarios with a scheme, read and checked once for all of their seeds.

use std::path::PathBuf;
use std::sync::Arc;

use anabranch_lab::conventions::Conventions;
use anabranch_lab::run::{Job, RunError as LabError};
use anabranch_lab::scenario::{Override, Scenario};
use pyo3::prelude::*;

use crate::error::{RunError, ScenarioError, SchemeError};

/// The scenario with every default in it and these values put in, as TOML that reads as the same scenario. `file` is for messages.
#[pyfunction]
#[pyo3(signature = (text, file, set=Vec::new()))]
pub(crate) fn resolve(text: &str, file: &str, set: Vec<(String, String)>) -> PyResult<String> {
    Ok(read(text, file, &set)?.to_toml())
}

/// What a list of scheme expressions such as `sctp,cmt(trigger=4)` or `all` stands for in a scenario, each written in full.
#[pyfunction]
pub(crate) fn schemes_of(text: &str, file: &str, list: &str) -> PyResult<Vec<String>> {
    let scenario = read(text, file, &[])?;
    let schemes =
        scenario.vocabulary().parse_list(list).map_err(|error| SchemeError::new_err(error.to_string()))?;
    Ok(schemes.iter().map(ToString::to_string).collect())
}

/// A scenario with a scheme, of which runs with any seed can be made.
#[pyclass(frozen, module = "anabranch._native")]
pub(crate) struct Prepared {
    scenario: Arc<Scenario>,
    conventions: Arc<Conventions>,
    scheme: anabranch_lab::run::JobScheme,
    folder: PathBuf,
}

#[pymethods]
impl Prepared {
    /// Reads the text of a scenario and the scheme of flows that have none of their own, and builds the network once to see
    /// that it can be. Files that flows send are looked for in `folder`.
    #[new]
    #[pyo3(signature = (text, scheme, folder=PathBuf::new(), file="scenario"))]
    fn new(text: &str, scheme: &str, folder: PathBuf, file: &str) -> PyResult<Self> {
        let scenario = read(text, file, &[])?;
        let conventions = Conventions::named(&scenario.run.profile)
            .map_err(|error| ScenarioError::new_err(format!("{file}: `run.profile`: {error}")))?;
        let scheme =
            scenario.vocabulary().parse(scheme).map_err(|error| SchemeError::new_err(error.to_string()))?;
        let prepared = Prepared {
            scenario: Arc::new(scenario),
            conventions: Arc::new(conventions),
            scheme: scheme.into(),
            folder,
        };
        prepared.job(1, None, None, false).check().map_err(|error| refused(file, &error))?;
        Ok(prepared)
    }

    /// The scheme as results name it.
    #[getter]
    fn scheme(&self) -> String {
        self.job(1, None, None, false).scheme_name()
    }
}

impl Prepared {
    pub(crate) fn job(&self, seed: u64, trace: Option<PathBuf>, pcap: Option<PathBuf>, digest: bool) -> Job {
        Job {
            scenario: Arc::clone(&self.scenario),
            conventions: Arc::clone(&self.conventions),
            scheme: self.scheme.clone(),
            seed,
            folder: self.folder.clone(),
            pcap,
            trace,
            digest,
        }
    }
}

fn read(text: &str, file: &str, set: &[(String, String)]) -> PyResult<Scenario> {
    let set: Vec<Override> = set
        .iter()
        .map(|(key, value)| Override { key: key.clone(), value: value.clone(), option: "" })
        .collect();
    Scenario::parse(text, file, &set).map_err(|error| ScenarioError::new_err(error.to_string()))
}

/// The exception for a run that cannot be made.
pub(crate) fn refused(file: &str, error: &LabError) -> PyErr {
    match error {
        LabError::Scheme { .. } => SchemeError::new_err(format!("{file}: {error}")),
        LabError::Network(_) => ScenarioError::new_err(format!("{file}: {error}")),
        LabError::File { .. } => RunError::new_err(error.to_string()),
    }
}

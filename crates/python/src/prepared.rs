//! Scenarios with a scheme, read and checked once for all of their seeds.

use std::path::PathBuf;
use std::sync::Arc;

use anabranch_lab::conventions::Conventions;
use anabranch_lab::run::{Job, JobScheme, RunError as LabError};
use anabranch_lab::scenario::{Override, Scenario};
use pyo3::prelude::*;

use crate::error::{RunError, ScenarioError, SchemeError};

/// The scenario with every default in it and these values put in, as TOML that reads as the same scenario. `file` is for messages.
#[pyfunction]
#[pyo3(signature = (text, file, set=Vec::new()))]
pub fn resolve(text: &str, file: &str, set: Vec<(String, String)>) -> PyResult<String> {
    Ok(read(text, file, &set)?.to_toml())
}

/// What a list of scheme expressions such as `sctp,cmt(trigger=4)` or `all` stands for in a scenario, each written in full, and
/// none of them twice.
#[pyfunction]
pub fn schemes_of(text: &str, file: &str, list: &str) -> PyResult<Vec<String>> {
    let scenario = read(text, file, &[])?;
    let schemes =
        scenario.vocabulary().parse_list(list).map_err(|error| SchemeError::new_err(error.to_string()))?;
    let mut names: Vec<String> = Vec::new();
    for name in schemes.iter().map(ToString::to_string) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// A scenario with a scheme, of which runs with any seed can be made.
///
/// It cannot be pickled: what goes to another process is the text it was made from.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Prepared {
    scenario: Arc<Scenario>,
    conventions: Arc<Conventions>,
    scheme: JobScheme,
    folder: PathBuf,
    file: String,
}

/// What runs write, and what is taken of them beside their figures.
#[derive(Default)]
pub(crate) struct Output {
    /// The folder that gets a folder of traces for each run.
    pub(crate) trace: Option<PathBuf>,
    /// The folder that gets a capture of each run.
    pub(crate) pcap: Option<PathBuf>,
    /// Whether to take a digest of everything that happens.
    pub(crate) digest: bool,
}

#[pymethods]
impl Prepared {
    /// Reads the text of a scenario and the scheme of flows that have none of their own, and builds the network once to see
    /// that it can be. Files that flows send are looked for in `folder`; `file` names the scenario in messages.
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
            file: file.to_owned(),
        };
        prepared.job(1, &Output::default()).check().map_err(|error| refused(file, &error))?;
        Ok(prepared)
    }

    /// The scheme as results name it.
    #[getter]
    fn scheme(&self) -> String {
        self.job(1, &Output::default()).scheme_name()
    }
}

impl Prepared {
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    pub(crate) fn job(&self, seed: u64, output: &Output) -> Job {
        Job {
            scenario: Arc::clone(&self.scenario),
            conventions: Arc::clone(&self.conventions),
            scheme: self.scheme.clone(),
            seed,
            folder: self.folder.clone(),
            pcap: output.pcap.clone(),
            trace: output.trace.clone(),
            digest: output.digest,
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

/// The exception for a run that cannot be made of the scenario in `file`.
pub(crate) fn refused(file: &str, error: &LabError) -> PyErr {
    match error {
        LabError::Scheme { .. } => SchemeError::new_err(format!("{file}: {error}")),
        LabError::Network(_) => ScenarioError::new_err(format!("{file}: {error}")),
        LabError::Panicked { .. } => RunError::new_err(format!("{file}: {error}")),
        // The message begins with the file that cannot be read or written.
        LabError::File { .. } => RunError::new_err(error.to_string()),
    }
}

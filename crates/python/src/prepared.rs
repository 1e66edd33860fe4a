//! Scenarios with a scheme, read and checked once for all of their seeds.

use std::path::PathBuf;
use std::sync::Arc;

use anabranch_lab::conventions::Conventions;
use anabranch_lab::run::{Captures, Job, JobScheme, RunError as LabError, ScenarioFiles, TracePart};
use anabranch_scenario::Scenario;
use anabranch_schemes::registry::NamedScheme;
use pyo3::prelude::*;

use crate::error::{RunError, ScenarioError, SchemeError};
use crate::policy::{Fault, OwnPolicies};
use crate::scenario::{NativeScenario, ScenarioOrText};

/// A scenario with a scheme, for runs with any seed.
///
/// The class cannot be pickled: another process receives the text of the scenario instead.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Prepared {
    scenario: Arc<Scenario>,
    conventions: Arc<Conventions>,
    scheme: NamedScheme,
    own: Option<Arc<OwnPolicies>>,
    files: Arc<ScenarioFiles>,
    file: String,
}

/// A scheme with policies in Python: its name, the function that creates an association's object from seed and number, and the
/// methods of the object.
type Own = (String, Py<PyAny>, Vec<String>);

/// Output of runs besides their figures.
#[derive(Default)]
pub(crate) struct Output {
    /// Folder with a folder of traces for each run.
    pub(crate) trace: Option<PathBuf>,
    /// Requested part of the traces.
    pub(crate) part: TracePart,
    /// Captures of all runs.
    pub(crate) pcap: Option<Captures>,
    /// Set to compute a digest of all packets.
    pub(crate) digest: bool,
}

#[pymethods]
impl Prepared {
    /// Reads a scenario, which may be text, and the scheme of flows without one of their own, and builds the network once to check
    /// it. Files that flows send are relative to `folder`. `file` names the scenario in messages. `own` contains policies in Python
    /// that replace some of the scheme's policies.
    #[new]
    #[pyo3(signature = (scenario, scheme, folder=PathBuf::new(), file="scenario", own=None))]
    fn new(
        scenario: ScenarioOrText<'_>,
        scheme: &str,
        folder: PathBuf,
        file: &str,
        own: Option<Own>,
    ) -> PyResult<Self> {
        let scenario = match scenario {
            ScenarioOrText::Scenario(scenario) => Arc::clone(scenario.get().scenario()),
            ScenarioOrText::Text(text) => {
                Arc::clone(NativeScenario::new(&text, file, Vec::new())?.scenario())
            }
        };
        let conventions = Conventions::named(&scenario.run.profile)
            .map_err(|error| ScenarioError::new_err(format!("{file}: `run.profile`: {error}")))?;
        let scheme =
            scenario.vocabulary().parse(scheme).map_err(|error| SchemeError::new_err(error.to_string()))?;
        let own = own.map(|(name, factory, hooks)| OwnPolicies::new(name, factory, &hooks)).transpose()?;
        let prepared = Prepared {
            scenario,
            conventions: Arc::new(conventions),
            scheme,
            own: own.map(Arc::new),
            files: Arc::new(ScenarioFiles::new(folder)),
            file: file.to_owned(),
        };
        let fault = Fault::default();
        prepared.job(1, &Output::default(), &fault).check().map_err(|error| refused(file, &error))?;
        fault.take().map_or(Ok(prepared), Err)
    }

    /// Returns the scheme's name in results.
    #[getter(scheme)]
    fn scheme_name(&self) -> String {
        self.job(1, &Output::default(), &Fault::default()).scheme_name()
    }
}

impl Prepared {
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// Returns `true` if its runs call Python.
    pub(crate) fn calls_python(&self) -> bool {
        self.own.is_some()
    }

    /// Returns the run with this seed. An exception of its policies is stored in `fault`.
    pub(crate) fn job(&self, seed: u64, output: &Output, fault: &Fault) -> Job {
        Job {
            scenario: Arc::clone(&self.scenario),
            conventions: Arc::clone(&self.conventions),
            scheme: self.scheme(seed, fault),
            seed,
            files: Arc::clone(&self.files),
            pcap: output.pcap.clone(),
            trace: output.trace.clone(),
            part: output.part.clone(),
            digest: output.digest,
        }
    }

    fn scheme(&self, seed: u64, fault: &Fault) -> JobScheme {
        match &self.own {
            Some(own) => {
                let scheme = own.scheme(self.scheme.clone(), seed, fault.clone());
                JobScheme::new(own.name.clone(), Arc::new(scheme))
            }
            None => self.scheme.clone().into(),
        }
    }
}

/// Returns the exception for a run that the scenario in `file` does not allow.
pub(crate) fn refused(file: &str, error: &LabError) -> PyErr {
    match error {
        LabError::Scheme { .. } => SchemeError::new_err(format!("{file}: {error}")),
        LabError::Network(_) => ScenarioError::new_err(format!("{file}: {error}")),
        LabError::Panicked { .. } => RunError::new_err(format!("{file}: {error}")),
        // The message begins with the file that cannot be read or written.
        LabError::File { .. } | LabError::Video(_) | LabError::TraceFile(_) => {
            RunError::new_err(error.to_string())
        }
    }
}

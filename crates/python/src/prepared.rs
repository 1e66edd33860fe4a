//! Scenarios with a scheme, read and checked once for all of their seeds.

use std::path::PathBuf;
use std::sync::Arc;

use anabranch_lab::conventions::Conventions;
use anabranch_lab::run::{Captures, Job, JobScheme, RunError as LabError, TracePart};
use anabranch_scenario::Scenario;
use anabranch_schemes::registry::NamedScheme;
use pyo3::prelude::*;

use crate::error::{RunError, ScenarioError, SchemeError};
use crate::policy::{Fault, OwnPolicies};
use crate::scenario::{NativeScenario, ScenarioOrText};

/// A scenario with a scheme, of which runs with any seed can be made.
///
/// It cannot be pickled: what goes to another process is the text it was made from.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Prepared {
    scenario: Arc<Scenario>,
    conventions: Arc<Conventions>,
    scheme: NamedScheme,
    own: Option<Arc<OwnPolicies>>,
    folder: PathBuf,
    file: String,
}

/// A scheme with policies in Python: its name, the function that makes an association's object from seed and number, and the
/// methods that the object has.
type Own = (String, Py<PyAny>, Vec<String>);

/// What runs write, and what is taken of them beside their figures.
#[derive(Default)]
pub(crate) struct Output {
    /// The folder that gets a folder of traces for each run.
    pub(crate) trace: Option<PathBuf>,
    /// What of these is wanted.
    pub(crate) part: TracePart,
    /// Captures of all runs.
    pub(crate) pcap: Option<Captures>,
    /// Whether to take a digest of everything that happens.
    pub(crate) digest: bool,
}

#[pymethods]
impl Prepared {
    /// Reads a scenario, which may be text, and the scheme of flows that have none of their own, and builds the network once to see
    /// that it can be. Files that flows send are looked for in `folder`; `file` names the scenario in messages. With `own`, policies
    /// in Python take the place of some of the scheme's.
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
            folder,
            file: file.to_owned(),
        };
        let fault = Fault::default();
        prepared.job(1, &Output::default(), &fault).check().map_err(|error| refused(file, &error))?;
        fault.take().map_or(Ok(prepared), Err)
    }

    /// The scheme as results name it.
    #[getter(scheme)]
    fn scheme_name(&self) -> String {
        self.job(1, &Output::default(), &Fault::default()).scheme_name()
    }
}

impl Prepared {
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// Whether its runs call Python.
    pub(crate) fn calls_python(&self) -> bool {
        self.own.is_some()
    }

    /// The run with this seed. An exception of its policies goes to `fault`.
    pub(crate) fn job(&self, seed: u64, output: &Output, fault: &Fault) -> Job {
        Job {
            scenario: Arc::clone(&self.scenario),
            conventions: Arc::clone(&self.conventions),
            scheme: self.scheme(seed, fault),
            seed,
            folder: self.folder.clone(),
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

/// The exception for a run that cannot be made of the scenario in `file`.
pub(crate) fn refused(file: &str, error: &LabError) -> PyErr {
    match error {
        LabError::Scheme { .. } => SchemeError::new_err(format!("{file}: {error}")),
        LabError::Network(_) => ScenarioError::new_err(format!("{file}: {error}")),
        LabError::Panicked { .. } => RunError::new_err(format!("{file}: {error}")),
        // The message begins with the file that cannot be read or written.
        LabError::File { .. } | LabError::Video(_) => RunError::new_err(error.to_string()),
    }
}

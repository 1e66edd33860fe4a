//! From the command line to the runs to be made, with all that can be wrong with them found before the first one.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_lab::conventions::Conventions;
use anabranch_lab::run::{Job, RunError};
use anabranch_lab::scenario::Scenario;
use anabranch_schemes::registry::NamedScheme;
use anyhow::Context;

use crate::exit::Stopped;
use crate::run::RunArguments;

/// Runs to be made.
pub(crate) struct Plan {
    /// The scenario with the command line's changes in it.
    pub(crate) scenario: Arc<Scenario>,
    /// What its profile stands for.
    pub(crate) conventions: Arc<Conventions>,
    /// Schemes times seeds.
    pub(crate) jobs: Vec<Job>,
}

impl Plan {
    /// Reads the scenario and checks everything that can be checked before the runs.
    pub(crate) fn make(arguments: &RunArguments) -> Result<Plan, Stopped> {
        let mut scenario = Scenario::load(&arguments.scenario, &arguments.set).map_err(Stopped::usage)?;
        if let Some(seeds) = &arguments.seeds {
            scenario.run.seeds.clone_from(&seeds.0);
        }
        if let Some(profile) = &arguments.profile {
            scenario.run.profile.clone_from(profile);
        }
        let conventions = Conventions::named(&scenario.run.profile).map_err(|error| {
            let place = match arguments.profile {
                Some(_) => "--profile".to_owned(),
                None => origin(arguments, "run.profile"),
            };
            Stopped::usage(format!("{place}: {error}"))
        })?;
        let schemes = schemes(arguments, &scenario)?;
        let plan = Plan::of(arguments, scenario, conventions, &schemes);
        plan.check(arguments)?;
        Ok(plan)
    }

    fn of(
        arguments: &RunArguments,
        scenario: Scenario,
        conventions: Conventions,
        schemes: &[NamedScheme],
    ) -> Plan {
        let (scenario, conventions) = (Arc::new(scenario), Arc::new(conventions));
        let folder = arguments.scenario.parent().unwrap_or(Path::new("")).to_owned();
        let job = |scheme: &NamedScheme, seed| Job {
            scenario: Arc::clone(&scenario),
            conventions: Arc::clone(&conventions),
            scheme: scheme.clone().into(),
            seed,
            folder: folder.clone(),
            pcap: arguments.pcap.clone(),
            trace: arguments.trace.clone(),
            digest: arguments.digest,
        };
        let with_seeds = |scheme| scenario.run.seeds.iter().map(move |&seed| (scheme, seed));
        let jobs = schemes.iter().flat_map(with_seeds).map(|(scheme, seed)| job(scheme, seed)).collect();
        Plan { scenario, conventions, jobs }
    }

    fn check(&self, arguments: &RunArguments) -> Result<(), Stopped> {
        let Some(job) = self.jobs.first() else { return Ok(()) };
        job.check().map_err(|error| match error {
            RunError::File { .. } => Stopped::from(anyhow::Error::new(error)),
            RunError::Scheme { .. } | RunError::Network(_) => {
                Stopped::usage(format!("{}: {error}", arguments.scenario.display()))
            }
        })?;
        for folder in [&arguments.pcap, &arguments.trace].into_iter().flatten() {
            check_folder(folder)?;
        }
        Ok(())
    }
}

/// The schemes to compare: those of the command line, or else those of the file.
fn schemes(arguments: &RunArguments, scenario: &Scenario) -> Result<Vec<NamedScheme>, Stopped> {
    let every_flow_has_its_own = scenario.flows.iter().all(|flow| flow.scheme.is_some());
    if every_flow_has_its_own && arguments.schemes.is_some() {
        let file = arguments.scenario.display();
        let message = format!("--schemes: has no effect, since every flow of {file} has its own `scheme`");
        return Err(Stopped::usage(message));
    }
    let (place, texts) = match &arguments.schemes {
        Some(text) => ("--schemes".to_owned(), std::slice::from_ref(text)),
        None => (origin(arguments, "run.schemes"), scenario.run.schemes.as_slice()),
    };
    let words = scenario.vocabulary();
    let mut schemes: Vec<NamedScheme> = Vec::new();
    for text in texts {
        let list = words.parse_list(text).map_err(|e| Stopped::usage(format!("{place}: {e}")))?;
        for scheme in list {
            if schemes.iter().all(|other| other.to_string() != scheme.to_string()) {
                schemes.push(scheme);
            }
        }
    }
    if every_flow_has_its_own {
        schemes.truncate(1);
    }
    Ok(schemes)
}

/// Where a value of the scenario was written.
fn origin(arguments: &RunArguments, key: &str) -> String {
    match arguments.set.iter().rev().find(|set| set.key == key) {
        Some(set) => format!("--set {set}"),
        None => format!("{}: `{key}`", arguments.scenario.display()),
    }
}

/// Makes sure that files can be created in a folder, which is made if it does not exist.
fn check_folder(folder: &Path) -> anyhow::Result<()> {
    let context = || format!("{}: cannot be written to", folder.display());
    fs::create_dir_all(folder).with_context(context)?;
    let probe: PathBuf = folder.join(format!(".anabranch-{}", std::process::id()));
    File::create(&probe).with_context(context)?;
    fs::remove_file(&probe).with_context(context)
}

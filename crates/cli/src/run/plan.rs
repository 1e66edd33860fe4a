//! Conversion of the command line into runs. All errors are reported before the first run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_lab::conventions::Conventions;
use anabranch_lab::run::{Captures, Job, RunError, ScenarioFiles, TracePart};
use anabranch_scenario::{Override, Scenario};
use anabranch_schemes::registry::NamedScheme;
use anabranch_sim::pcapng::SnapLength;
use anyhow::Context;

use super::arguments::RunArguments;
use super::source::Source;
use crate::exit::CommandError;

/// Runs of one scenario.
pub(crate) struct Plan {
    /// Value of the sweep, if there is one.
    pub(crate) value: Option<Override>,
    /// Scenario with the command line's changes.
    pub(crate) scenario: Arc<Scenario>,
    /// Conventions of its profile.
    pub(crate) conventions: Arc<Conventions>,
    /// Files that the scenario names.
    pub(crate) files: Arc<ScenarioFiles>,
    /// Runs by seed and scheme: all schemes with one seed, then all with the next one.
    pub(crate) jobs: Vec<Job>,
}

impl Plan {
    /// Returns the runs of the scenario, or those of each value of the sweep, after all checks that are possible before the first
    /// run.
    pub(crate) fn all(arguments: &RunArguments) -> Result<Vec<Plan>, CommandError> {
        let source = Source::of(&arguments.scenario)?;
        let Some(sweep) = &arguments.sweep else { return Ok(vec![Plan::make(arguments, &source, None)?]) };
        if arguments.set.iter().any(|set| set.key == sweep.key) {
            return Err(CommandError::usage(format!("--sweep {}: --set gives it a value too", sweep.key)));
        }
        let given: [(&str, &str, bool); 3] = [
            ("run.seeds", "--seeds", arguments.seeds.is_some()),
            ("run.profile", "--profile", arguments.profile.is_some()),
            ("run.schemes", "--schemes", arguments.schemes.is_some()),
        ];
        if let Some((key, option, _)) = given.iter().find(|(key, _, given)| *given && *key == sweep.key) {
            return Err(CommandError::usage(format!("--sweep {key}: {option} gives it a value too")));
        }
        sweep.overrides().map(|value| Plan::make(arguments, &source, Some(value))).collect()
    }

    /// Reads the scenario and checks everything that can be checked before the runs.
    fn make(
        arguments: &RunArguments,
        source: &Source,
        value: Option<Override>,
    ) -> Result<Plan, CommandError> {
        let changes: Vec<Override> = arguments.set.iter().chain(&value).cloned().collect();
        let mut scenario = source.load(&changes).map_err(CommandError::usage)?;
        if let Some(seeds) = &arguments.seeds {
            scenario.run.seeds.clone_from(&seeds.0);
        }
        if let Some(profile) = &arguments.profile {
            scenario.run.profile.clone_from(profile);
        }
        let conventions = Conventions::named(&scenario.run.profile).map_err(|error| {
            let place = match arguments.profile {
                Some(_) => "--profile".to_owned(),
                None => origin(arguments, &changes, "run.profile"),
            };
            CommandError::usage(format!("{place}: {error}"))
        })?;
        let schemes = schemes(arguments, &changes, &scenario)?;
        let plan = Plan::of(arguments, &source.folder, value, (scenario, conventions), &schemes);
        plan.check(arguments)?;
        Ok(plan)
    }

    /// Returns the folder for the output of its runs below the requested one: a folder for each value of a sweep.
    pub(crate) fn folder(value: Option<&Override>, folder: &Path) -> PathBuf {
        let Some(value) = value else { return folder.to_owned() };
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-._=+".contains(c) { c } else { '_' };
        folder.join(value.to_string().chars().map(plain).collect::<String>())
    }

    fn of(
        arguments: &RunArguments,
        folder: &Path,
        value: Option<Override>,
        (scenario, conventions): (Scenario, Conventions),
        schemes: &[NamedScheme],
    ) -> Plan {
        let (scenario, conventions) = (Arc::new(scenario), Arc::new(conventions));
        let output =
            |folder: &Option<PathBuf>| folder.as_ref().map(|folder| Plan::folder(value.as_ref(), folder));
        let trace = output(&arguments.trace);
        let snap_length = arguments.snaplen.unwrap_or(SnapLength::HEADERS);
        let pcap = output(&arguments.pcap).map(|folder| Captures { folder, snap_length });
        let files = Arc::new(ScenarioFiles::new(folder));
        let job = |scheme: &NamedScheme, seed| Job {
            scenario: Arc::clone(&scenario),
            conventions: Arc::clone(&conventions),
            scheme: scheme.clone().into(),
            seed,
            files: Arc::clone(&files),
            pcap: pcap.clone(),
            trace: trace.clone(),
            part: TracePart::default(),
            digest: arguments.digest,
        };
        let with_schemes = |&seed| schemes.iter().map(move |scheme| (scheme, seed));
        let jobs = scenario
            .run
            .seeds
            .iter()
            .flat_map(with_schemes)
            .map(|(scheme, seed)| job(scheme, seed))
            .collect();
        Plan { value, scenario, conventions, files, jobs }
    }

    fn check(&self, arguments: &RunArguments) -> Result<(), CommandError> {
        let Some(job) = self.jobs.first() else { return Ok(()) };
        job.check().map_err(|error| match error {
            RunError::File { .. }
            | RunError::Video(_)
            | RunError::TraceFile(_)
            | RunError::Panicked { .. } => CommandError::from(anyhow::Error::new(error)),
            RunError::Scheme { .. } | RunError::Network(_) => {
                let place = arguments.scenario.display().to_string();
                let value = self.value.as_ref().map(|value| format!(" with {value}")).unwrap_or_default();
                CommandError::usage(format!("{place}{value}: {error}"))
            }
        })?;
        let captures = job.pcap.as_ref().map(|captures| &captures.folder);
        for folder in [captures, job.trace.as_ref()].into_iter().flatten() {
            check_folder(folder)?;
        }
        Ok(())
    }
}

/// Returns the schemes to compare: those of the command line, or else those of the file.
fn schemes(
    arguments: &RunArguments,
    changes: &[Override],
    scenario: &Scenario,
) -> Result<Vec<NamedScheme>, CommandError> {
    let every_flow_has_its_own = scenario.flows.iter().all(|flow| flow.scheme.is_some());
    if every_flow_has_its_own && arguments.schemes.is_some() {
        let file = arguments.scenario.display();
        let message = format!("--schemes: has no effect, since every flow of {file} has its own `scheme`");
        return Err(CommandError::usage(message));
    }
    let (place, texts) = match &arguments.schemes {
        Some(text) => ("--schemes".to_owned(), std::slice::from_ref(text)),
        None => (origin(arguments, changes, "run.schemes"), scenario.run.schemes.as_slice()),
    };
    let words = scenario.vocabulary();
    let mut schemes: Vec<NamedScheme> = Vec::new();
    for text in texts {
        let list = words.parse_list(text).map_err(|e| CommandError::usage(format!("{place}: {e}")))?;
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

/// Returns the place at which a value of the scenario was written.
fn origin(arguments: &RunArguments, changes: &[Override], key: &str) -> String {
    match changes.iter().rev().find(|set| set.key == key) {
        Some(set) => format!("{} {set}", set.option),
        None => format!("{}: `{key}`", arguments.scenario.display()),
    }
}

/// Checks that files can be created in a folder. Creates the folder if it does not exist.
fn check_folder(folder: &Path) -> anyhow::Result<()> {
    let context = || format!("{}: cannot be written to", folder.display());
    fs::create_dir_all(folder).with_context(context)?;
    let probe: PathBuf = folder.join(format!(".anabranch-{}", std::process::id()));
    File::create(&probe).with_context(context)?;
    fs::remove_file(&probe).with_context(context)
}

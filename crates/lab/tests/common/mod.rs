//! Jobs from scenario texts.

use std::sync::Arc;

use anabranch_lab::conventions::Conventions;
use anabranch_lab::run::{Job, RunResult, ScenarioFiles, TracePart};
use anabranch_scenario::Scenario;

/// Returns a job for a scenario, a scheme and a seed, with a digest of all packets.
pub(crate) fn job(text: &str, scheme: &str, seed: u64) -> Job {
    let scenario = Scenario::parse(text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let conventions = Conventions::named(&scenario.run.profile).expect("a known profile");
    Job {
        scenario: Arc::new(scenario),
        conventions: Arc::new(conventions),
        scheme: anabranch_schemes::registry::parse(scheme).expect("a known scheme").into(),
        seed,
        files: Arc::new(ScenarioFiles::new(env!("CARGO_MANIFEST_DIR"))),
        pcap: None,
        trace: None,
        part: TracePart::default(),
        digest: true,
    }
}

/// Returns the result of the same job.
pub(crate) fn run(text: &str, scheme: &str, seed: u64) -> RunResult {
    job(text, scheme, seed).run().expect("the scenario can be run")
}

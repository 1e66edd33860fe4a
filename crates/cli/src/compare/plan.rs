//! Runs of a comparison, and the limits of scenarios that relays can emulate.

use std::sync::Arc;

use anabranch_core::time::Rate;
use anabranch_core::{Encapsulation, PathCost};
use anabranch_lab::conventions::{Conventions, Goodput};
use anabranch_lab::run::{Job, ScenarioFiles, bulk_queue_bytes, path_lanes};
use anabranch_scenario::{FlowKind, Protection, Scenario, UDP, units};

use super::CompareArguments;
use crate::exit::CommandError;
use crate::run::{Plan, RunArguments};

/// Maximum rate of all paths together in each direction. Two processors relay it easily in the release profile.
const FASTEST: Rate = Rate::from_bps(500_000_000);

/// Runs of a comparison, each in the simulator and on sockets.
pub(super) struct Comparison {
    pub(super) scenario: Arc<Scenario>,
    pub(super) jobs: Vec<Job>,
    /// Settings of both runs that differ from the scenario.
    pub(super) changed: Vec<String>,
}

impl Comparison {
    /// Reads the scenario, rejects features that relays cannot emulate, and adapts the rest for both runs.
    pub(super) fn make(arguments: &CompareArguments) -> Result<Comparison, CommandError> {
        let run = RunArguments::of(
            arguments.scenario.clone(),
            arguments.schemes.clone(),
            arguments.seeds.clone(),
            arguments.profile.clone(),
            arguments.set.clone(),
        );
        let plans = Plan::all(&run)?;
        let Some(plan) = plans.into_iter().next() else { return Err(CommandError::usage("nothing to run")) };
        let file = arguments.scenario.display();
        let refuse = |problem: String| CommandError::usage(format!("{file}: {problem}"));
        let files = plan.jobs.first().map(|job| Arc::clone(&job.files)).unwrap_or_default();
        check(&plan.scenario, &plan.conventions, &files).map_err(refuse)?;
        let (scenario, changed) = alike(&plan.scenario);
        // Only the simulator observes packets at an interface.
        let conventions =
            Arc::new(Conventions { goodput: Goodput::Delivered, ..(*plan.conventions).clone() });
        let scenario = Arc::new(scenario);
        let job =
            |job: Job| Job { scenario: Arc::clone(&scenario), conventions: Arc::clone(&conventions), ..job };
        let jobs = plan.jobs.into_iter().map(job).collect();
        Ok(Comparison { scenario, jobs, changed })
    }

    /// Returns the maximum time of the runs on sockets, if it is known.
    pub(super) fn seconds(&self) -> Option<u64> {
        let each = self.scenario.run.limit()?;
        Some((each.as_secs_f64() * self.jobs.len() as f64).ceil() as u64)
    }
}

/// Returns an error, by key, for features that sockets cannot emulate.
fn check(scenario: &Scenario, conventions: &Conventions, files: &ScenarioFiles) -> Result<(), String> {
    let mut users: Vec<Option<&str>> = vec![None; scenario.paths.len()];
    let mut sum = 0_u64;
    for flow in &scenario.flows {
        if matches!(flow.kind, FlowKind::Video(_)) {
            return Err(format!(
                "`flow.{}.kind`: videos are not sent on sockets; `anabranch run` simulates them",
                flow.name
            ));
        }
        if matches!(flow.kind, FlowKind::Forward(_)) {
            return Err(format!(
                "`flow.{}.kind`: programs are not compared; use `anabranch forward`, or `anabranch run` to simulate it",
                flow.name
            ));
        }
        if flow.read_rate.is_some() {
            return Err(format!(
                "`flow.{}.read_rate`: sockets do not support slow readers; remove the key",
                flow.name
            ));
        }
        if flow.beside.is_some() {
            return Err(format!(
                "`flow.{}.messages`: sockets do not send messages beside the bulk; remove the key",
                flow.name
            ));
        }
        for &path in &flow.paths {
            let name = &scenario.paths[path].name;
            if let Some(other) = users[path].replace(&flow.name) {
                return Err(format!(
                    "`flow.{}.paths`: `{name}` is a path of `{other}` too, and a relay carries one flow; give each its own",
                    flow.name
                ));
            }
            if scenario.paths[path].cost != PathCost::Free {
                return Err(format!(
                    "`path.{name}.cost`: paths on sockets have no cost here; remove the key"
                ));
            }
            let lanes = path_lanes(scenario, conventions, files, path).map_err(|error| error.to_string())?;
            let way = lanes.forward.link.rate.as_bps().max(lanes.reverse.link.rate.as_bps());
            sum = sum.saturating_add(way);
            if sum > FASTEST.as_bps() {
                return Err(format!(
                    "`path.{name}.rate`: the paths have more than {} together, which relays in one process cannot keep up with",
                    units::format_rate(FASTEST)
                ));
            }
        }
    }
    Ok(())
}

/// Returns the scenario that both runs use, and the changed settings.
fn alike(scenario: &Scenario) -> (Scenario, Vec<String>) {
    let mut scenario = scenario.clone();
    let mut changed = Vec::new();
    let association = &mut scenario.association;
    if association.encapsulation == Encapsulation::None {
        association.encapsulation = UDP;
        changed.push("association.encapsulation = \"udp\"".to_owned());
    }
    if association.protection != Protection::None {
        // Protection would require identities for the hosts.
        association.protection = Protection::None;
        changed.push("association.protection = \"none\"".to_owned());
    }
    if association.send_buffer_bytes.is_none() {
        // Sockets need a limit. This one is never reached: outstanding data fits the peer's buffer, and the rest waits.
        let bytes = association.recv_buffer_bytes + bulk_queue_bytes(association.recv_buffer_bytes);
        association.send_buffer_bytes = Some(bytes);
        changed.push(format!("association.send_buffer = \"{bytes} B\""));
    }
    (scenario, changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Option<String> {
        let text = format!("[run]\nduration = \"9 s\"\n{text}");
        let scenario = Scenario::parse(&text, "test.toml", &[]).expect("a scenario");
        check(&scenario, &Conventions::named("rfc9260").expect("a profile"), &ScenarioFiles::default()).err()
    }

    #[test]
    fn key_without_effect_in_relays_is_refused() {
        let path = |rate: &str| format!("[[path]]\nrate = \"{rate}\"\ndelay = \"1 ms\"\n");
        let (slow, fast) = (path("1 Mbit/s"), path("300 Mbit/s"));
        assert_eq!(refused(&format!("{slow}{slow}")), None);
        for (text, key) in [
            (format!("{fast}{fast}"), "`path.path-2.rate`: the paths have more than 500 Mbit/s"),
            (format!("{slow}[[flow]]\n[[flow]]\n"), "`flow.flow-2.paths`: `path-1` is a path of `flow-1`"),
            (format!("{slow}cost = \"backup\"\n"), "`path.path-1.cost`"),
            (format!("{slow}[[flow]]\nread_rate = \"1 kbit/s\"\n"), "`flow.flow-1.read_rate`"),
            (
                format!("{slow}[[flow]]\nmessages = {{ size = \"200 B\", interval = \"20 ms\" }}\n"),
                "`flow.flow-1.messages`",
            ),
            (
                format!(
                    "{slow}[[path.background]]\nkind = \"poisson\"\nrate = \"1 kbit/s\"\npacket = \"500 B\"\n"
                ),
                "`path.path-1.background`",
            ),
        ] {
            let problem = refused(&text).expect(key);
            assert!(problem.starts_with(key), "{problem}");
        }
        // A path that no flow uses is not checked.
        assert_eq!(refused(&format!("{fast}{fast}[[flow]]\npaths = [\"path-2\"]\n")), None);
    }

    #[test]
    fn both_runs_have_the_same_headers_and_buffers() {
        let text = "[run]\nduration = \"9 s\"\n[association]\nprotection = \"dtls\"\n[[path]]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
        let scenario = Scenario::parse(text, "test.toml", &[]).expect("a scenario");
        let (both, changed) = alike(&scenario);
        assert_eq!(both.association.encapsulation, UDP);
        assert_eq!((both.association.protection, changed.len()), (Protection::None, 3));
        assert_eq!(alike(&both), (both.clone(), Vec::new()));
    }
}

//! State of senders and links at the end of a simulated run, for comparison with the same run elsewhere.

use anabranch_core::policy::PathFacts;
use anabranch_core::{Association, PathId, Statistics};
use anabranch_sim::Counters;

use crate::run::address::place_of;
use crate::run::build::{BuiltWorld, counted_from};
use crate::run::{Job, RunError, RunResult};

/// State of senders and links at the end of a run.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// Ends that send, by flow, the near end first.
    pub senders: Vec<SenderDetails>,
    /// Every direction of every link, by name, such as `path-1/forward`.
    pub links: Vec<(String, Counters)>,
}

/// End that sends.
#[derive(Clone, Debug, Default)]
pub struct SenderDetails {
    /// Index of its flow.
    pub flow: usize,
    /// Counters at the end.
    pub statistics: Statistics,
    /// Paths at the end.
    pub paths: Vec<SenderPath>,
}

/// Path as its sender observes it.
#[derive(Clone, Debug)]
pub struct SenderPath {
    /// Index in the scenario.
    pub path: usize,
    /// Sender's facts about the path at the end.
    pub facts: PathFacts,
    /// Smoothed round-trip time in milliseconds: mean of samples at equal intervals after the warm-up.
    pub srtt_ms: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    n: u64,
}

#[derive(Clone, Debug, Default)]
struct Samples {
    paths: Vec<Mean>,
}

impl Samples {
    fn add(&mut self, association: &Association) {
        let facts = association.paths();
        self.paths.resize(facts.len().max(self.paths.len()), Mean::default());
        for (mean, facts) in self.paths.iter_mut().zip(facts) {
            if let Some(srtt) = facts.rtt.smoothed {
                mean.sum += srtt.as_millis_f64();
                mean.n += 1;
            }
        }
    }

    fn mean(&self, path: PathId) -> Option<f64> {
        self.paths.get(path.index()).filter(|mean| mean.n > 0).map(|mean| mean.sum / mean.n as f64)
    }
}

impl Job {
    /// Runs to the end, as [`Job::run`] does, and returns more details.
    ///
    /// # Errors
    /// Returns [`RunError`].
    pub fn run_in_detail(&self) -> Result<(RunResult, Details), RunError> {
        let mut samples: Vec<Samples> = Vec::new();
        let mut built = self.build()?;
        let from = counted_from(self);
        let mut sample = |built: &mut BuiltWorld| {
            if built.world.now() < from {
                return;
            }
            for (index, (_, association)) in built.senders().enumerate() {
                samples.resize(samples.len().max(index + 1), Samples::default());
                association.into_iter().for_each(|association| samples[index].add(association));
            }
        };
        self.advance(&mut built, || true, Some(&mut sample));
        let details = details(&built, &samples);
        Ok((built.finish(self)?, details))
    }
}

fn details(built: &BuiltWorld, samples: &[Samples]) -> Details {
    let sender = |(index, (flow, association)): (usize, (usize, Option<&Association>))| SenderDetails {
        flow,
        statistics: association.map(Association::statistics).unwrap_or_default(),
        paths: association.map(|association| paths(association, samples.get(index))).unwrap_or_default(),
    };
    let link = |(_, link): (_, &anabranch_sim::Link)| (link.name().to_owned(), link.total_counters());
    Details {
        senders: built.senders().enumerate().map(sender).collect(),
        links: built.world.links().map(link).collect(),
    }
}

fn paths(association: &Association, samples: Option<&Samples>) -> Vec<SenderPath> {
    let path = |facts: &PathFacts| {
        let local = association.path_address(facts.id)?.local;
        let (_, path, _) = place_of(local)?;
        let srtt_ms = samples.and_then(|samples| samples.mean(facts.id));
        Some(SenderPath { path, facts: *facts, srtt_ms })
    };
    association.paths().iter().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::conventions::Conventions;
    use crate::run::TracePart;
    use anabranch_scenario::Scenario;

    fn job() -> Job {
        let text = r#"
[run]
duration = "5 s"
[[path]]
rate = "10 Mbit/s"
delay = "20 ms"
loss = 0.01
[[path]]
rate = "2 Mbit/s"
delay = "40 ms"
[[flow]]
direction = "both"
"#;
        let scenario = Scenario::parse(text, "test.toml", &[]).expect("a scenario");
        Job {
            scheme: scenario.vocabulary().parse("cmt").expect("a scheme").into(),
            scenario: Arc::new(scenario),
            conventions: Arc::new(Conventions::named("rfc9260").expect("a profile")),
            seed: 1,
            files: Arc::default(),
            pcap: None,
            trace: None,
            part: TracePart::default(),
            digest: true,
        }
    }

    #[test]
    fn details_agree_with_the_result_and_leave_it_unchanged() {
        let job = job();
        let (result, details) = job.run_in_detail().expect("a run");
        assert_eq!(result, job.run().expect("a run"));
        assert_eq!(details.senders.len(), 2);
        let resent: u64 = details.senders.iter().map(|sender| sender.statistics.retransmissions).sum();
        assert_eq!(resent, result.retransmissions);
        for sender in &details.senders {
            // Twice the delay, plus the waiting time in queues.
            let srtt_ms: Vec<f64> = sender.paths.iter().filter_map(|path| path.srtt_ms).collect();
            assert!(srtt_ms.len() == 2 && srtt_ms[0] > 40.0 && srtt_ms[1] > 80.0, "{srtt_ms:?}");
        }
        let lost =
            |name: &str| details.links.iter().find(|(link, _)| link == name).expect(name).1.lost.packets;
        assert!(lost("path-1/forward") > 0);
        assert_eq!(lost("path-2/forward"), 0);
    }
}

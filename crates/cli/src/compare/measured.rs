//! Figures of a run, measured in the same way in the simulator and on sockets.

use std::collections::BTreeMap;

use anabranch_lab::run::{Details, Job, RunResult, SenderPath};
use anabranch_relay::Totals;
use anabranch_sim::Counters;
use serde::Serialize;

/// The same run in the simulator and on sockets.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Pair {
    pub(super) scheme: String,
    pub(super) seed: u64,
    pub(super) simulated: Measured,
    pub(super) sockets: Measured,
}

impl Pair {
    /// Returns the goodput on sockets as a fraction of the simulated one.
    pub(super) fn ratio(&self) -> f64 {
        self.sockets.goodput_kbps / self.simulated.goodput_kbps.max(f64::MIN_POSITIVE)
    }
}

/// The figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Measured {
    /// User bytes delivered after start and warm-up, as a rate.
    pub(super) goodput_kbps: f64,
    /// Retransmitted chunks, counted each time.
    pub(super) retransmissions: u64,
    /// Number of T3-rtx expiries.
    pub(super) timeouts: u64,
    pub(super) flows: Vec<FlowMeasured>,
    /// Paths that a flow uses, in the order of the scenario.
    pub(super) paths: Vec<PathMeasured>,
    /// Mean delay of the relays' transmissions after the planned time, over all packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) late_mean_ms: Option<f64>,
    /// Failures, by flow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) failures: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct FlowMeasured {
    pub(super) name: String,
    pub(super) goodput_kbps: f64,
    /// Seconds until its last byte, if it is finite and has arrived.
    pub(super) transfer_s: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct PathMeasured {
    pub(super) name: String,
    /// Chunk bytes that were acknowledged as delivered over the path, both directions together.
    pub(super) delivered_bytes: u64,
    /// Fraction of its flow's delivered chunk bytes.
    pub(super) share: f64,
    /// Chunk bytes that the sender declared lost on it.
    pub(super) declared_lost_bytes: u64,
    /// Mean of the sender's smoothed round-trip time.
    pub(super) srtt_ms: Option<f64>,
    /// Packets offered to its links, both directions together.
    pub(super) packets: Packets,
}

/// Packets on links, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Packets {
    pub(super) offered: u64,
    pub(super) lost: u64,
    pub(super) dropped_policer: u64,
    pub(super) dropped_queue: u64,
    pub(super) dropped_outage: u64,
}

impl Packets {
    pub(super) fn add_link(&mut self, counters: &Counters) {
        self.offered += counters.entered.packets;
        self.lost += counters.lost.packets;
        self.dropped_policer += counters.policed.packets;
        self.dropped_queue += counters.overflowed.packets;
        self.dropped_outage += counters.outage.packets;
    }

    pub(super) fn add_relay(&mut self, totals: &Totals) {
        self.offered += totals.offered.packets;
        self.lost += totals.lost.packets;
        self.dropped_policer += totals.policed.packets;
        self.dropped_queue += totals.overflowed.packets;
        self.dropped_outage += totals.outage.packets;
    }
}

/// Figures of a sender's path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SenderPathFigures {
    pub(super) delivered_bytes: u64,
    pub(super) declared_lost_bytes: u64,
    pub(super) srtt_ms: Option<f64>,
}

/// Sums over the senders of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct PathSums {
    paths: BTreeMap<usize, PathMeasured>,
    flow_of: BTreeMap<usize, usize>,
}

impl PathSums {
    /// Adds the figures of one sender to a path of the scenario.
    pub(super) fn add(&mut self, job: &Job, flow: usize, path: usize, seen: SenderPathFigures) {
        self.flow_of.insert(path, flow);
        let name = &job.scenario.paths[path].name;
        let sum = self
            .paths
            .entry(path)
            .or_insert_with(|| PathMeasured { name: name.clone(), ..PathMeasured::default() });
        sum.delivered_bytes += seen.delivered_bytes;
        sum.declared_lost_bytes += seen.declared_lost_bytes;
        // Both directions of a path have the same round-trip time.
        sum.srtt_ms = seen.srtt_ms.or(sum.srtt_ms);
    }

    pub(super) fn packets(&mut self, path: usize) -> Option<&mut Packets> {
        self.paths.get_mut(&path).map(|path| &mut path.packets)
    }

    pub(super) fn finish(mut self) -> Vec<PathMeasured> {
        let mut of_flow: BTreeMap<usize, u64> = BTreeMap::new();
        for (path, flow) in &self.flow_of {
            *of_flow.entry(*flow).or_default() += self.paths[path].delivered_bytes;
        }
        for (index, path) in &mut self.paths {
            let all = of_flow[&self.flow_of[index]];
            path.share = path.delivered_bytes as f64 / all.max(1) as f64;
        }
        self.paths.into_values().collect()
    }
}

impl Measured {
    /// Returns the figures of a simulated run.
    pub(super) fn simulated(job: &Job, result: &RunResult, details: &Details) -> Measured {
        let mut sums = PathSums::default();
        let mut measured = Measured { goodput_kbps: result.goodput_kbps, ..Measured::default() };
        for sender in &details.senders {
            measured.retransmissions += sender.statistics.retransmissions;
            measured.timeouts += sender.statistics.timeouts;
            for SenderPath { path, facts, srtt_ms } in &sender.paths {
                let seen = SenderPathFigures {
                    delivered_bytes: facts.delivered.get(),
                    declared_lost_bytes: facts.lost.get(),
                    srtt_ms: *srtt_ms,
                };
                sums.add(job, sender.flow, *path, seen);
            }
        }
        for (index, path) in job.scenario.paths.iter().enumerate() {
            let Some(packets) = sums.packets(index) else { continue };
            let own = ["forward", "reverse"].map(|way| format!("{}/{way}", path.name));
            let links = details.links.iter().filter(|(name, _)| own.contains(name));
            links.for_each(|(_, counters)| packets.add_link(counters));
        }
        measured.paths = sums.finish();
        for flow in &result.flows {
            measured.flows.push(FlowMeasured {
                name: flow.name.clone(),
                goodput_kbps: flow.goodput_kbps,
                transfer_s: flow.transfer_s,
            });
        }
        measured.failures = result.failure.clone().into_iter().collect();
        measured
    }
}

//! What an explanation holds. The book defines each figure (chapter "Explaining a run").

use std::collections::BTreeMap;

use serde::Serialize;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Its trace folder, as it was named.
    pub folder: String,
    /// Scheme as asked for.
    pub scheme: String,
    /// Seed, of a simulation.
    pub seed: Option<u64>,
    /// Profile.
    pub profile: String,
    /// The version that ran it.
    pub version: String,
    /// Goodput in kbit/s, if the run ended and both ends were traced.
    pub goodput_kbps: Option<f64>,
    /// What to know before using the figures: files that end too early, sums that differ from the run's own.
    pub notes: Vec<String>,
    /// One for each end that sends data.
    pub flows: Vec<FlowExplanation>,
}

/// One end of a flow that sends data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowExplanation {
    /// What its trace files are called: the flow's name, followed by `-reverse` for data in that direction.
    pub name: String,
    /// Its scheme.
    pub scheme: String,
    /// Whether the traces say what arrived: if not, `received_*`, `duplicate_chunks` and `needless` are 0 for want of knowledge.
    pub arrivals_known: bool,
    /// When it starts.
    pub from_s: f64,
    /// Up to when its traces are added up.
    pub until_s: f64,
    /// Where the time went, the longest first, in sentences.
    pub time_findings: Vec<String>,
    /// Where the capacity went, in sentences.
    pub capacity_findings: Vec<String>,
    /// The peer's receive window.
    pub peer_window: PeerWindow,
    /// Its paths.
    pub paths: Vec<PathExplanation>,
    /// Where new data went.
    pub scheduling: Placement,
    /// Where lost chunks went.
    pub rerouting: Placement,
    /// Chunks declared lost.
    pub losses: Vec<Losses>,
    /// Transmissions after a chunk's first.
    pub retransmissions: Retransmissions,
    /// T3 expiries, also those of no known path.
    pub timeouts: u64,
    /// Messages that were given up.
    pub abandoned: Vec<Abandonments>,
    /// FORWARD-TSN chunks that told the receiver so, if the run counted them.
    pub forward_tsns: Option<u64>,
}

/// Messages that were given up for the same reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Abandonments {
    /// `retransmissions`, `lifetime`, `priority` or `streams`.
    pub cause: String,
    /// The rule.
    pub rule: String,
    /// How many.
    pub messages: u64,
    /// Those of which nothing had been sent.
    pub unsent: u64,
}

/// When only the peer's window kept data back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeerWindow {
    /// Seconds in all.
    pub closed_s: f64,
    /// Their share of the time.
    pub closed_share: f64,
    /// How many times it closed.
    pub times: u64,
    /// The seconds by the path of the hole.
    pub by_hole: Vec<HoleTime>,
}

/// Time for which the earliest chunk that is not acknowledged had been sent on one path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HoleTime {
    /// The path; `None` while nothing was outstanding.
    pub path: Option<String>,
    /// Seconds.
    pub seconds: f64,
}

/// One path of a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathExplanation {
    /// Its name.
    pub name: String,
    /// The flow's time, each moment counted once.
    pub time: PathTime,
    /// Mean congestion window while in service, in chunk bytes.
    pub mean_cwnd_bytes: f64,
    /// Mean of what was outstanding while in service, in chunk bytes.
    pub mean_outstanding_bytes: f64,
    /// Mean of what the window had room for while in service, in chunk bytes.
    pub mean_unused_bytes: f64,
    /// Mean smoothed round-trip time over the time in which there was one.
    pub mean_srtt_ms: Option<f64>,
    /// T3 expiries.
    pub timeouts: u64,
    /// Seconds before these in which nothing was sent or acknowledged on the path.
    pub timeout_wait_s: f64,
    /// What made the window smaller.
    pub cuts: Vec<Cut>,
    /// Changes of its state.
    pub states: Vec<StateChange>,
    /// Chunks that left, every transmission counted.
    pub sent_chunks: u64,
    /// Their chunk bytes.
    pub sent_bytes: u64,
    /// Bytes of protected packets that a host sent, whose chunks its trace does not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected_sent_bytes: Option<u64>,
    /// Chunks that arrived.
    pub received_chunks: u64,
    /// Their chunk bytes.
    pub received_bytes: u64,
    /// Chunks that arrived although another copy had before.
    pub duplicate_chunks: u64,
    /// Chunks that were dropped on the way.
    pub drops: Drops,
    /// Chunk bytes that arrived, in kbit/s of the flow's time.
    pub received_kbps: f64,
    /// What the path's narrowest link could have carried in that time, in kbit/s, if the scenario is there to tell.
    pub capacity_kbps: Option<f64>,
    /// The one divided by the other.
    pub used_share: Option<f64>,
}

/// How a path spent the flow's time. These add up to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PathTime {
    /// Its window was full.
    pub full_s: f64,
    /// There was room, and the peer's window was closed.
    pub peer_window_s: f64,
    /// There was room, and no data waited, neither new nor lost.
    pub no_data_s: f64,
    /// There was room, and chunks declared lost waited to be retransmitted.
    pub lost_wait_s: f64,
    /// There was room and data, and the path's rate let no packet leave yet.
    pub paced_s: f64,
    /// There was room and data, and the scheduler did not choose the path.
    pub passed_over_s: f64,
    /// The same by the latest word of the scheduler on it.
    pub passed_over: Vec<WhyTime>,
    /// It was not active.
    pub out_of_service_s: f64,
    /// The same by state.
    pub out_of_service: Vec<WhyTime>,
}

/// Seconds for a reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhyTime {
    /// The reason or the state.
    pub why: String,
    /// Seconds.
    pub seconds: f64,
}

/// A rule that made a window smaller.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cut {
    /// The rule.
    pub rule: String,
    /// How often.
    pub times: u64,
    /// By how many bytes in all.
    pub bytes: u64,
}

/// A path changed state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StateChange {
    /// Time of the change, in seconds.
    pub at_s: f64,
    /// The new state.
    pub state: String,
    /// Why.
    pub rule: String,
}

/// Chunks that a link or the network dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// By loss.
    pub lost: u64,
    /// By a policer.
    pub policed: u64,
    /// By a full queue.
    pub queue_full: u64,
    /// By an outage.
    pub outage: u64,
    /// For lack of a route.
    pub unroutable: u64,
}

impl Drops {
    /// All of them.
    pub fn total(self) -> u64 {
        self.lost + self.policed + self.queue_full + self.outage + self.unroutable
    }
}

/// Decisions about where chunks go.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Placement {
    /// How often.
    pub decisions: u64,
    /// What was chosen, by path and rule.
    pub chosen: Vec<Choice>,
    /// Decisions to wait, by rule.
    pub waits: Vec<Choice>,
    /// How often which path was refused and why.
    pub refused: Vec<Refusals>,
}

/// A choice that was made for the same reason several times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// The kind of decision, as in the trace.
    pub decision: String,
    /// The path; `None` for a wait.
    pub path: Option<String>,
    /// The rule.
    pub rule: String,
    /// How often.
    pub times: u64,
    /// The name of the figure that decided; empty if none did.
    pub figure: String,
    /// Its mean.
    pub mean: Option<f64>,
    /// Its least value.
    pub least: Option<f64>,
    /// Its greatest value.
    pub greatest: Option<f64>,
}

/// How often a path was refused for one reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refusals {
    /// The path.
    pub path: String,
    /// The reason.
    pub why: String,
    /// How often.
    pub times: u64,
}

/// Chunks declared lost for the same reason on the same path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Losses {
    /// The path.
    pub path: String,
    /// `fast-retransmit`, `timeout` or `rescheduled`.
    pub cause: String,
    /// The rule.
    pub rule: String,
    /// How many.
    pub chunks: u64,
}

/// Transmissions after a chunk's first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Retransmissions {
    /// All of them.
    pub chunks: u64,
    /// Those sent when an earlier copy had arrived.
    pub needless: u64,
    /// Both by cause and path.
    pub by_cause: Vec<Resent>,
}

/// Retransmissions for the same cause between the same paths.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Resent {
    /// A cause of loss, or `head-of-line-copy`, `tail-probe`, `copies`, or `other` where the trace has none.
    pub cause: String,
    /// The path of the chunk's transmission before.
    pub from: String,
    /// The path of this one.
    pub to: String,
    /// How many.
    pub chunks: u64,
    /// Those sent when an earlier copy had arrived.
    pub needless: u64,
}

/// Sums over all flows of a run, as its own result has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Transmissions of a chunk after its first.
    pub retransmissions: u64,
    /// Those of them that were needless.
    pub needless: u64,
    /// T3 expiries.
    pub timeouts: u64,
    /// Seconds in which only the peer's window kept data back.
    pub peer_window_closed_s: f64,
}

impl Explanation {
    /// Sums over its flows.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for flow in &self.flows {
            totals.retransmissions += flow.retransmissions.chunks;
            totals.needless += flow.retransmissions.needless;
            totals.timeouts += flow.timeouts;
            totals.peer_window_closed_s += flow.peer_window.closed_s;
        }
        totals
    }
}

impl FlowExplanation {
    /// Seconds that are added up.
    pub fn duration_s(&self) -> f64 {
        self.until_s - self.from_s
    }

    /// Retransmissions by cause alone: all, and the needless ones.
    pub fn resent_by_cause(&self) -> Vec<(&str, u64, u64)> {
        let mut causes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for resent in &self.retransmissions.by_cause {
            let sums = causes.entry(&resent.cause).or_default();
            sums.0 += resent.chunks;
            sums.1 += resent.needless;
        }
        let mut causes: Vec<_> =
            causes.into_iter().map(|(cause, (all, needless))| (cause, all, needless)).collect();
        causes.sort_by_key(|(_, all, _)| std::cmp::Reverse(*all));
        causes
    }
}

impl PathExplanation {
    /// Seconds in which the path was in service and its window had room.
    pub fn room_s(&self) -> f64 {
        let time = &self.time;
        time.peer_window_s + time.no_data_s + time.lost_wait_s + time.paced_s + time.passed_over_s
    }
}

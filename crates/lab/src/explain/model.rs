//! Contents of an explanation. The book defines each figure (chapter "Explaining a run").

use std::collections::BTreeMap;

use serde::Serialize;

/// Explanation of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Trace folder, as the caller named it.
    pub folder: String,
    /// Requested scheme.
    pub scheme: String,
    /// Seed of a simulation.
    pub seed: Option<u64>,
    /// Name of the profile.
    pub profile: String,
    /// Version of the program that ran it.
    pub version: String,
    /// Goodput in kbit/s, if the run ended and both ends were traced.
    pub goodput_kbps: Option<f64>,
    /// Limitations of the figures: truncated files, and sums that differ from the counters of the run.
    pub notes: Vec<String>,
    /// Ends that send data.
    pub flows: Vec<FlowExplanation>,
}

/// One end of a flow that sends data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowExplanation {
    /// Prefix of its trace files: the flow's name, followed by `-reverse` for data in that direction.
    pub name: String,
    /// Scheme of the flow.
    pub scheme: String,
    /// Set if the traces contain arrivals. Otherwise `received_*`, `duplicate_chunks` and `spurious` are 0 because they are
    /// unknown.
    pub arrivals_known: bool,
    /// Start time in seconds.
    pub from_s: f64,
    /// End of the evaluated time in seconds.
    pub until_s: f64,
    /// Sentences on the use of time, the longest first.
    pub time_findings: Vec<String>,
    /// Sentences on the use of capacity.
    pub capacity_findings: Vec<String>,
    /// State of the peer's receive window.
    pub peer_window: PeerWindow,
    /// Paths of the flow.
    pub paths: Vec<PathExplanation>,
    /// Decisions about new data.
    pub scheduling: Placement,
    /// Decisions about lost chunks.
    pub rerouting: Placement,
    /// Chunks declared lost, by path, cause and rule.
    pub losses: Vec<Losses>,
    /// Retransmitted chunks.
    pub retransmissions: Retransmissions,
    /// Number of T3-rtx expiries, including those of unknown paths.
    pub timeouts: u64,
    /// Abandoned messages, by cause and rule.
    pub abandoned: Vec<Abandonments>,
    /// FORWARD-TSN chunks sent for abandoned messages, if the run counted them.
    pub forward_tsns: Option<u64>,
}

/// Messages that were abandoned for the same reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Abandonments {
    /// `retransmissions`, `lifetime`, `priority` or `streams`.
    pub cause: String,
    /// Rule that decided.
    pub rule: String,
    /// Number of messages.
    pub messages: u64,
    /// Number of messages of which no data had been sent.
    pub unsent: u64,
}

/// Times in which only the peer's window blocked data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeerWindow {
    /// Total seconds.
    pub closed_s: f64,
    /// Share of the flow's time.
    pub closed_share: f64,
    /// Number of closures.
    pub times: u64,
    /// Seconds by the path of the hole.
    pub by_hole: Vec<HoleTime>,
}

/// Time for which the earliest chunk that is not acknowledged had been sent on one path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HoleTime {
    /// Name of the path; `None` while no chunk was outstanding.
    pub path: Option<String>,
    /// Seconds in which this path had sent the chunk.
    pub seconds: f64,
}

/// Figures of one path of a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathExplanation {
    /// Name of the path.
    pub name: String,
    /// Division of the flow's time.
    pub time: PathTime,
    /// Mean congestion window while in service, in chunk bytes.
    pub mean_cwnd_bytes: f64,
    /// Mean outstanding chunk bytes while in service.
    pub mean_outstanding_bytes: f64,
    /// Mean unused room of the window while in service, in chunk bytes.
    pub mean_unused_bytes: f64,
    /// Mean smoothed round-trip time in ms, over the time in which one existed.
    pub mean_srtt_ms: Option<f64>,
    /// Number of T3-rtx expiries.
    pub timeouts: u64,
    /// Seconds before the T3-rtx expiries in which no data was sent or acknowledged on the path.
    pub timeout_wait_s: f64,
    /// Reductions of the window, by rule.
    pub cuts: Vec<Cut>,
    /// Changes of the path's state.
    pub states: Vec<StateChange>,
    /// Chunks sent, every transmission counted.
    pub sent_chunks: u64,
    /// Chunk bytes sent.
    pub sent_bytes: u64,
    /// Bytes of protected packets that a host sent. The trace does not contain their chunks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected_sent_bytes: Option<u64>,
    /// Chunks that arrived.
    pub received_chunks: u64,
    /// Chunk bytes that arrived.
    pub received_bytes: u64,
    /// Chunks that arrived after another copy of them.
    pub duplicate_chunks: u64,
    /// Chunks that were dropped in the network.
    pub drops: Drops,
    /// Chunk bytes that arrived, in kbit/s over the flow's time.
    pub received_kbps: f64,
    /// Capacity of the path's narrowest link in that time, in kbit/s, if the scenario is available.
    pub capacity_kbps: Option<f64>,
    /// Ratio of `received_kbps` to `capacity_kbps`.
    pub used_share: Option<f64>,
}

/// Division of a path's time. The states add up to the flow's time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PathTime {
    /// Seconds with a full window.
    pub full_s: f64,
    /// Seconds with room in the window, while the peer's window was closed.
    pub peer_window_s: f64,
    /// Seconds with room in the window, and neither new nor lost data.
    pub no_data_s: f64,
    /// Seconds with room in the window, while chunks declared lost waited for retransmission.
    pub lost_wait_s: f64,
    /// Seconds with room and data, while pacing delayed packets.
    pub paced_s: f64,
    /// Seconds with room and data, while the scheduler did not choose the path.
    pub passed_over_s: f64,
    /// Seconds of `passed_over_s` by the scheduler's latest reason.
    pub passed_over: Vec<ReasonTime>,
    /// Seconds in which the path was not active.
    pub out_of_service_s: f64,
    /// Seconds of `out_of_service_s` by state.
    pub out_of_service: Vec<ReasonTime>,
}

/// Seconds of one reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReasonTime {
    /// Reason or state.
    pub reason: String,
    /// Seconds in which the reason or state applied.
    pub seconds: f64,
}

/// Reductions of a window by one rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cut {
    /// Rule that reduced the window.
    pub rule: String,
    /// Number of reductions.
    pub times: u64,
    /// Total bytes of the reductions.
    pub bytes: u64,
}

/// Change of a path's state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StateChange {
    /// Time of the change, in seconds.
    pub at_s: f64,
    /// New state.
    pub state: String,
    /// Rule that changed it.
    pub rule: String,
}

/// Chunks that a link or the network dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// Random loss.
    pub lost: u64,
    /// Drops of the policer.
    pub policed: u64,
    /// Full queue, or an early drop of its discipline.
    pub queue_full: u64,
    /// Outage of a link.
    pub outage: u64,
    /// Missing route.
    pub unroutable: u64,
}

impl Drops {
    /// Returns the total number of drops.
    pub fn total(self) -> u64 {
        self.lost + self.policed + self.queue_full + self.outage + self.unroutable
    }
}

/// Decisions about the path of chunks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Placement {
    /// Number of decisions.
    pub decisions: u64,
    /// Choices by path and rule.
    pub chosen: Vec<Choice>,
    /// Decisions to wait, by rule.
    pub waits: Vec<Choice>,
    /// Refusals by path and reason.
    pub refused: Vec<Refusals>,
}

/// Choices with the same reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// Kind of decision, as in the trace.
    pub decision: String,
    /// Chosen path; `None` for a wait.
    pub path: Option<String>,
    /// Rule that decided.
    pub rule: String,
    /// Number of choices.
    pub times: u64,
    /// Name of the figure that decided, or empty without one.
    pub figure: String,
    /// Mean of the figure.
    pub mean: Option<f64>,
    /// Least value of the figure.
    pub min: Option<f64>,
    /// Greatest value of the figure.
    pub max: Option<f64>,
}

/// Refusals of a path for one reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refusals {
    /// Name of the path.
    pub path: String,
    /// Reason of the scheduler.
    pub reason: String,
    /// Number of refusals.
    pub times: u64,
}

/// Chunks declared lost for the same reason on the same path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Losses {
    /// Name of the path.
    pub path: String,
    /// `fast-retransmit`, `timeout` or `rescheduled`.
    pub cause: String,
    /// Rule that declared the chunks lost.
    pub rule: String,
    /// Number of chunks.
    pub chunks: u64,
}

/// Retransmissions of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Retransmissions {
    /// Number of retransmitted chunks.
    pub chunks: u64,
    /// Number of chunks sent after an earlier copy had arrived.
    pub spurious: u64,
    /// All and spurious retransmissions, by cause and paths.
    pub by_cause: Vec<RetransmissionGroup>,
}

/// Retransmissions with the same cause between the same paths.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RetransmissionGroup {
    /// Cause of loss, or `head-of-line-copy`, `tail-probe`, `copies`, or `other` without a cause in the trace.
    pub cause: String,
    /// Previous path of the chunk.
    pub from: String,
    /// New path of the chunk.
    pub to: String,
    /// Number of transmissions.
    pub chunks: u64,
    /// Number of chunks sent after an earlier copy had arrived.
    pub spurious: u64,
}

/// Sums over all flows of a run, as its own result counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Retransmitted chunks, every transmission counted.
    pub retransmissions: u64,
    /// Number of spurious ones among them.
    pub spurious: u64,
    /// Number of T3-rtx expiries.
    pub timeouts: u64,
    /// Seconds in which only the peer's window blocked data.
    pub peer_window_closed_s: f64,
}

impl Explanation {
    /// Returns the sums over the flows.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for flow in &self.flows {
            totals.retransmissions += flow.retransmissions.chunks;
            totals.spurious += flow.retransmissions.spurious;
            totals.timeouts += flow.timeouts;
            totals.peer_window_closed_s += flow.peer_window.closed_s;
        }
        totals
    }
}

impl FlowExplanation {
    /// Returns the evaluated time in seconds.
    pub fn duration_s(&self) -> f64 {
        self.until_s - self.from_s
    }

    /// Returns retransmissions by cause: all, and the spurious ones.
    pub fn resent_by_cause(&self) -> Vec<(&str, u64, u64)> {
        let mut causes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for resent in &self.retransmissions.by_cause {
            let sums = causes.entry(&resent.cause).or_default();
            sums.0 += resent.chunks;
            sums.1 += resent.spurious;
        }
        let mut causes: Vec<_> =
            causes.into_iter().map(|(cause, (all, spurious))| (cause, all, spurious)).collect();
        causes.sort_by_key(|(_, all, _)| std::cmp::Reverse(*all));
        causes
    }
}

impl PathExplanation {
    /// Returns the seconds in which the path was in service and its window had room.
    pub fn room_s(&self) -> f64 {
        let time = &self.time;
        time.peer_window_s + time.no_data_s + time.lost_wait_s + time.paced_s + time.passed_over_s
    }
}

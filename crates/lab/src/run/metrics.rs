//! Figures of a run. The book defines each figure (chapter "Figures of a run").

use serde::Serialize;

use crate::conventions::Goodput;
use crate::video::VideoResult;

/// One path of a run, over all flows, in the direction of the data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathResult {
    /// Name of the path.
    pub name: String,
    /// Packets with DATA that arrived.
    pub data_packets: u64,
    /// Their wire bytes.
    pub bytes: u64,
    /// Packets with DATA that were dropped in the network.
    pub drops: u64,
    /// Packets with DATA that were sent.
    pub sent_packets: u64,
    /// Mean time of packets with DATA from one host to the other, if it was requested and any arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<f64>,
}

/// Delays of small messages beside a bulk flow. There are no quantiles without messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MessageDelays {
    /// Messages that were due after the warm-up.
    pub sent: u64,
    /// Number of these that were delivered.
    pub delivered: u64,
    /// Median of the time from the due time of a message to its delivery, in ms.
    pub median_ms: Option<f64>,
    /// 99th percentile of the same time, in ms.
    pub p99_ms: Option<f64>,
    /// Largest value of the same time, in ms.
    pub most_ms: Option<f64>,
    /// 99th percentile of the time from the due time of a message to its first packet, in ms.
    pub queue_p99_ms: Option<f64>,
}

/// One flow of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowResult {
    /// Name of the flow.
    pub name: String,
    /// Scheme of the flow.
    pub scheme: String,
    /// Goodput in kbit/s, counted as [`RunResult::goodput_counts`] says.
    pub goodput_kbps: f64,
    /// User bytes delivered.
    pub delivered_bytes: u64,
    /// Seconds from a transfer's start to its last byte, in either direction.
    pub transfer_s: Option<f64>,
    /// Set for a transfer if the received data, in every direction, has the hash of the sent data.
    pub intact: Option<bool>,
    /// SHA-256 of the received data, for a transfer.
    pub sha256: Option<String>,
    /// Reason for which the association ended, unless it ended gracefully.
    pub failure: Option<String>,
    /// Delays of small messages beside the bulk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_delays: Option<MessageDelays>,
    /// Messages that the sender abandoned, if messages have a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<AbandonedResult>,
    /// Outcome of the frames, for a video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoResult>,
}

/// Abandoned messages, by the limit that was reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AbandonedResult {
    /// Number of all abandoned messages.
    pub messages: u64,
    /// Number of messages of which no data had been sent.
    pub unsent: u64,
    /// Number abandoned by their limit of retransmissions.
    pub by_retransmissions: u64,
    /// Number abandoned by their lifetime.
    pub by_lifetime: u64,
    /// Number abandoned for room in the send buffer.
    pub by_priority: u64,
    /// Number abandoned on streams that the peer does not support.
    pub by_streams: u64,
    /// User bytes that were not known to have arrived.
    pub bytes: u64,
    /// FORWARD-TSN chunks that reported them to the receiver.
    pub forward_tsns: u64,
}

/// Results of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// Requested scheme.
    pub scheme: String,
    /// Seed of the run.
    pub seed: u64,
    /// Name of the profile.
    pub profile: String,
    /// Goodput of all flows together in kbit/s.
    pub goodput_kbps: f64,
    /// Data that it counts.
    pub goodput_counts: Goodput,
    /// Seconds over which goodput is counted.
    pub duration_s: f64,
    /// Retransmitted TSNs, every transmission counted.
    pub retransmissions: u64,
    /// Number of T3-rtx expiries.
    pub timeouts: u64,
    /// Number of unanswered HEARTBEATs.
    pub heartbeat_timeouts: u64,
    /// SACKs that led to at least one fast retransmission, as ns-2 counts them.
    pub fast_retransmits: u64,
    /// Retransmissions sent after an earlier copy had arrived.
    pub spurious_retransmissions: u64,
    /// Maximum number of user bytes that a receiver held at once.
    pub peak_reorder_bytes: u64,
    /// Seconds in which data waited although a window had room, because the peer's receive window was closed.
    pub rwnd_blocked_s: f64,
    /// Results of all paths.
    pub paths: Vec<PathResult>,
    /// Results of all flows.
    pub flows: Vec<FlowResult>,
    /// Decisions of schedulers that core overruled, if there were any. See the book's chapter "Policies".
    #[serde(skip_serializing_if = "is_zero")]
    pub overruled_picks: u64,
    /// Jain's index over the flows' goodput, for several flows of which at least one has goodput.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jain_index: Option<f64>,
    /// SHA-256 over every delivered packet with time and place, if it was requested. Runs with the same digest are equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// Returns `true` if a count is omitted from the output.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl RunResult {
    /// Returns the share of each path in the packets with DATA that arrived.
    pub fn shares(&self) -> Vec<f64> {
        let all: u64 = self.paths.iter().map(|p| p.data_packets).sum();
        self.paths.iter().map(|p| p.data_packets as f64 / all.max(1) as f64).collect()
    }

    /// Returns the first failure of a flow.
    pub fn failure(&self) -> Option<String> {
        let flow = self.flows.iter().find(|f| f.failure.is_some() || f.intact == Some(false))?;
        let what = match (&flow.failure, flow.transfer_s) {
            (Some(failure), _) => failure.clone(),
            (None, Some(_)) => "what arrived differs from what was sent".to_owned(),
            (None, None) => {
                format!("not finished at the end of the run, {} B delivered", flow.delivered_bytes)
            }
        };
        Some(format!("flow `{}`: {what}", flow.name))
    }
}

//! Figures of a run. The book defines each figure (chapter "Figures of a run").

use serde::Serialize;
use thiserror::Error;

use crate::conventions::Goodput;
use crate::video::VideoResult;

/// One path of a run, over all flows, in the direction of the data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathResult {
    /// Name of the path.
    pub name: String,
    /// Packets with DATA that arrived.
    pub data_packets: u64,
    /// Wire bytes of the packets with DATA that arrived.
    pub bytes: u64,
    /// Packets with DATA that were dropped in the network.
    pub drops: u64,
    /// Packets with DATA that were sent.
    pub sent_packets: u64,
    /// Share of the path in the packets with DATA that arrived, from 0 to 1.
    pub share: f64,
    /// Mean one-way delay of packets with DATA, if it was requested and such a packet arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<f64>,
}

/// Delays of small messages beside a bulk flow. The quantiles are `None` if there were no messages.
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
    pub max_ms: Option<f64>,
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
    /// Connections and datagrams of a forward flow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<ConnectionResult>,
    /// Messages that the sender abandoned, if messages have a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<AbandonedResult>,
    /// Outcome of the frames, for a video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoResult>,
}

/// One connection of a forward flow, or its datagrams. Quantiles are `None` if nothing was due, and for downloads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConnectionResult {
    /// Name: `download-N`, or that of the key.
    pub name: String,
    /// Goodput in kbit/s after the warm-up: of complete requests and responses, in both directions.
    pub goodput_kbps: f64,
    /// Requests or datagrams that were due after the warm-up; 0 for a download.
    pub sent: u64,
    /// Number of these that were answered, or arrived.
    pub completed: u64,
    /// Median time from when a request was due to the end of its response, or a datagram to its arrival, in ms. Requests without
    /// an answer count with their age at the end of the run, and lost datagrams not at all.
    pub median_ms: Option<f64>,
    /// 99th percentile of the same time, in ms.
    pub p99_ms: Option<f64>,
    /// Largest value of the same time, in ms.
    pub max_ms: Option<f64>,
}

impl ConnectionResult {
    /// Returns the result of a connection that has carried nothing.
    pub(crate) fn named(name: String) -> Self {
        ConnectionResult {
            name,
            goodput_kbps: 0.0,
            sent: 0,
            completed: 0,
            median_ms: None,
            p99_ms: None,
            max_ms: None,
        }
    }
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
    /// User bytes of abandoned messages that were not acknowledged.
    pub bytes: u64,
    /// FORWARD-TSN chunks that reported abandoned messages to the receiver.
    pub forward_tsns: u64,
}

/// Results of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// Requested scheme.
    pub scheme: String,
    /// Seed of the run.
    pub seed: u64,
    /// Common name of the run's output files.
    pub label: String,
    /// Name of the profile.
    pub profile: String,
    /// Goodput of all flows together in kbit/s.
    pub goodput_kbps: f64,
    /// Definition of goodput.
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
    /// First failure of a flow.
    pub failure: Option<String>,
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

/// Difference between delivered and sent data at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DeliveryFault {
    /// Data is missing.
    #[error("not finished at the end of the run, {delivered_bytes} B delivered")]
    Unfinished {
        /// User bytes delivered.
        delivered_bytes: u64,
    },
    /// All data was delivered, but with other content.
    #[error("the delivered data differs from the sent data")]
    Different,
}

impl RunResult {
    /// Returns the share of each path in the packets with DATA that arrived.
    pub fn shares(&self) -> Vec<f64> {
        self.paths.iter().map(|path| path.share).collect()
    }
}

impl FlowResult {
    /// Returns the failure of the association, or the fault of its transfer.
    pub(crate) fn fault(&self) -> Option<String> {
        let fault = match (&self.failure, self.intact, self.transfer_s) {
            (Some(failure), ..) => failure.clone(),
            (None, Some(false), Some(_)) => DeliveryFault::Different.to_string(),
            (None, Some(false), None) => {
                DeliveryFault::Unfinished { delivered_bytes: self.delivered_bytes }.to_string()
            }
            (None, Some(true) | None, _) => return None,
        };
        Some(flow_failure(&self.name, &fault))
    }
}

/// Returns the text about a failure of the flow with this name.
pub fn flow_failure(name: &str, fault: &str) -> String {
    format!("flow `{name}`: {fault}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> FlowResult {
        FlowResult {
            name: "file".to_owned(),
            scheme: "cmt".to_owned(),
            goodput_kbps: 1.0,
            delivered_bytes: 1000,
            transfer_s: Some(2.0),
            intact: Some(true),
            sha256: None,
            failure: None,
            message_delays: None,
            connections: Vec::new(),
            abandoned: None,
            video: None,
        }
    }

    #[test]
    fn fault_of_flow_names_association_before_transfer() {
        let spoilt = FlowResult { intact: Some(false), ..flow() };
        let unfinished = FlowResult { transfer_s: None, ..spoilt.clone() };
        let broken = FlowResult { failure: Some("the peer was lost".to_owned()), ..spoilt.clone() };
        assert_eq!(flow().fault(), None);
        assert_eq!(FlowResult { intact: None, transfer_s: None, ..flow() }.fault(), None);
        for (flow, text) in [
            (spoilt, "flow `file`: the delivered data differs from the sent data"),
            (unfinished, "flow `file`: not finished at the end of the run, 1000 B delivered"),
            (broken, "flow `file`: the peer was lost"),
        ] {
            assert_eq!(flow.fault().as_deref(), Some(text));
        }
    }
}

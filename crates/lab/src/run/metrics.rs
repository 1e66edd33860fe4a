//! Figures of a run. The book defines each figure (chapter "Figures of a run").

use serde::Serialize;

use crate::conventions::Goodput;
use crate::video::VideoResult;

/// One path of a run, over all flows, in the direction of the data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathResult {
    /// Its name.
    pub name: String,
    /// Packets with DATA that arrived.
    pub data_packets: u64,
    /// Their wire bytes.
    pub bytes: u64,
    /// Packets with DATA that were dropped on the way.
    pub drops: u64,
    /// Packets with DATA that left.
    pub sent_packets: u64,
    /// Mean time that packets with DATA took from one host to the other, if it was asked for and any arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<f64>,
}

/// How long small messages beside a bulk flow took. There are no quantiles without messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MessageDelays {
    /// Handed over after the warm-up.
    pub sent: u64,
    /// Of these, delivered.
    pub delivered: u64,
    /// From the time at which a message was due to its delivery.
    pub median_ms: Option<f64>,
    /// The same for the slowest in a hundred.
    pub p99_ms: Option<f64>,
    /// The same for the slowest.
    pub most_ms: Option<f64>,
    /// Of the slowest in a hundred: from the time at which a message was due to its first packet.
    pub queue_p99_ms: Option<f64>,
}

/// One flow of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowResult {
    /// Its name.
    pub name: String,
    /// Its scheme.
    pub scheme: String,
    /// Goodput in kbit/s, counted as [`RunResult::goodput_counts`] says.
    pub goodput_kbps: f64,
    /// User bytes delivered.
    pub delivered_bytes: u64,
    /// For a transfer: seconds from its start to its last byte, in whichever direction that is.
    pub transfer_s: Option<f64>,
    /// For a transfer: whether what arrived, in every direction, has the hash of what was sent.
    pub intact: Option<bool>,
    /// SHA-256 of what arrived, for a transfer.
    pub sha256: Option<String>,
    /// How its association ended, if not gracefully.
    pub failure: Option<String>,
    /// Of the small messages that it carried beside the bulk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_delays: Option<MessageDelays>,
    /// What its sender gave up, for messages with a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<AbandonedResult>,
    /// What became of its frames, for a video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoResult>,
}

/// Messages that were given up, by the limit that was reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AbandonedResult {
    /// All of them.
    pub messages: u64,
    /// Those of which nothing had been sent.
    pub unsent: u64,
    /// By their limit of retransmissions.
    pub by_retransmissions: u64,
    /// By their lifetime.
    pub by_lifetime: u64,
    /// For room in the send buffer.
    pub by_priority: u64,
    /// On streams that the peer does not take.
    pub by_streams: u64,
    /// User bytes that were not known to have arrived.
    pub bytes: u64,
    /// FORWARD-TSN chunks that told the receiver so.
    pub forward_tsns: u64,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// Scheme as asked for.
    pub scheme: String,
    /// Seed.
    pub seed: u64,
    /// Profile.
    pub profile: String,
    /// Goodput of all flows together in kbit/s.
    pub goodput_kbps: f64,
    /// What it counts.
    pub goodput_counts: Goodput,
    /// Seconds over which goodput is counted.
    pub duration_s: f64,
    /// Transmissions of a TSN after its first.
    pub retransmissions: u64,
    /// T3 expiries.
    pub timeouts: u64,
    /// HEARTBEATs that went unanswered.
    pub heartbeat_timeouts: u64,
    /// SACKs that led to at least one fast retransmission, as ns-2 counts them.
    pub fast_retransmits: u64,
    /// Retransmissions sent although an earlier copy had arrived.
    pub spurious_retransmissions: u64,
    /// Most user bytes that a receiver held at once.
    pub peak_reorder_bytes: u64,
    /// Seconds in which data waited although a window was open, because the peer's receive window was closed.
    pub rwnd_blocked_s: f64,
    /// Paths.
    pub paths: Vec<PathResult>,
    /// Flows.
    pub flows: Vec<FlowResult>,
    /// Decisions of schedulers that core overruled, if there were any: see the book's chapter "Policies".
    #[serde(skip_serializing_if = "is_zero")]
    pub overruled_picks: u64,
    /// Jain's index over the flows' goodput, where there is more than one flow and any goodput.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jain_index: Option<f64>,
    /// SHA-256 over every packet that was delivered, when and where, if it was asked for: two runs with the same one did the
    /// same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// Whether a count may be left out.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl RunResult {
    /// Share of each path in the packets with DATA that arrived.
    pub fn shares(&self) -> Vec<f64> {
        let all: u64 = self.paths.iter().map(|p| p.data_packets).sum();
        self.paths.iter().map(|p| p.data_packets as f64 / all.max(1) as f64).collect()
    }

    /// The first thing that went wrong with a flow.
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

//! Events and their fields.

use anabranch_core::policy;
use anabranch_core::time::Span;
use anabranch_wire::PacketView;
use serde::Serialize;

use super::frame::Frame;
use super::state_word;
use crate::sampler::PathSample;

/// Data of an event.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Data<'a> {
    AssociationStarted {
        scheme: &'a str,
        profile: &'a str,
    },
    AssociationEnded {
        outcome: &'a str,
    },
    KeysUpdated {
        epoch: u64,
    },
    RekeyFailed {
        reason: &'a str,
    },
    PathAddresses {
        local: &'a str,
        remote: &'a str,
    },
    PathState(Stated),
    PacketSent(Packet),
    PacketReceived(Packet),
    PacketDropped(Dropped),
    PacketLost(Lost),
    MetricsUpdated(Metrics),
    CongestionWindow(Window),
    SchedulerDecision(Decision<'a>),
    PeerWindowClosed {
        #[serde(flatten)]
        reason: Reason,
    },
    PeerWindowOpened {
        #[serde(flatten)]
        reason: Reason,
    },
    TimerExpired {
        timer: &'static str,
        total: u64,
    },
}

impl Data<'_> {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Data::AssociationStarted { .. } => "sctp:association_started",
            Data::AssociationEnded { .. } => "sctp:association_ended",
            Data::KeysUpdated { .. } => "sctp:keys_updated",
            Data::RekeyFailed { .. } => "sctp:rekey_failed",
            Data::PathAddresses { .. } => "sctp:path_addresses",
            Data::PathState(_) => "sctp:path_state",
            Data::PacketSent(_) => "sctp:packet_sent",
            Data::PacketReceived(_) => "sctp:packet_received",
            Data::PacketDropped(_) => "sctp:packet_dropped",
            Data::PacketLost(_) => "sctp:packet_lost",
            Data::MetricsUpdated(_) => "sctp:metrics_updated",
            Data::CongestionWindow(_) => "sctp:congestion_window",
            Data::SchedulerDecision(_) => "sctp:scheduler_decision",
            Data::PeerWindowClosed { .. } => "sctp:peer_window_closed",
            Data::PeerWindowOpened { .. } => "sctp:peer_window_opened",
            Data::TimerExpired { .. } => "sctp:timer_expired",
        }
    }
}

/// Rule that decided, and the deciding figure if there is one.
#[derive(Serialize)]
pub(super) struct Reason {
    rule: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    figure: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
}

impl Reason {
    pub(super) fn of(reason: &policy::Reason) -> Self {
        let named = !reason.figure.is_empty();
        // JSON has no infinity, so an infinite figure is written by name only.
        let value = Some(reason.value).filter(|value| named && value.is_finite());
        Reason { rule: reason.rule, figure: named.then_some(reason.figure), value }
    }
}

#[derive(Serialize)]
pub(super) struct Stated {
    pub(super) state: &'static str,
    #[serde(flatten)]
    pub(super) reason: Reason,
}

#[derive(Serialize)]
pub(super) struct Window {
    pub(super) cwnd_bytes: u64,
    pub(super) ssthresh_bytes: u64,
    #[serde(flatten)]
    pub(super) reason: Reason,
}

#[derive(Serialize)]
pub(super) struct Lost {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tsn: Option<u32>,
    pub(super) cause: &'static str,
    #[serde(flatten)]
    pub(super) reason: Reason,
}

#[derive(Serialize)]
pub(super) struct Refused<'a> {
    pub(super) path: &'a str,
    pub(super) reason: String,
}

#[derive(Serialize)]
pub(super) struct Decision<'a> {
    pub(super) decision: &'static str,
    /// Chosen paths. An empty list is a wait.
    pub(super) paths: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tsn: Option<u32>,
    #[serde(flatten)]
    pub(super) reason: Reason,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) refused: Vec<Refused<'a>>,
}

#[derive(Serialize)]
pub(super) struct Dropped {
    pub(super) direction: &'static str,
    pub(super) reason: &'static str,
    pub(super) length: usize,
}

#[derive(Serialize)]
pub(super) struct Packet {
    /// Length of the SCTP packet, without lower headers.
    length: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    verification_tag: Option<u32>,
    chunks: Vec<Frame>,
}

impl Packet {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let packet = PacketView::parse(bytes).ok();
        let chunks =
            packet.iter().flat_map(|packet| packet.chunks().flatten()).map(|chunk| Frame::of(&chunk));
        let chunks = chunks.collect();
        let verification_tag = packet.map(|packet| packet.header().verification_tag);
        Packet { length: bytes.len(), verification_tag, chunks }
    }
}

#[derive(Serialize)]
pub(super) struct Metrics {
    state: &'static str,
    cwnd_bytes: u64,
    ssthresh_bytes: u64,
    outstanding_bytes: u64,
    lost_unsent_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    srtt_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rttvar_ms: Option<f64>,
    rto_ms: f64,
    error_count: u32,
    sent_bytes: u64,
    delivered_bytes: u64,
    lost_bytes: u64,
    peer_window_bytes: u64,
    queued_bytes: u64,
}

impl Metrics {
    pub(super) fn of(stand: &PathSample) -> Self {
        let PathSample { facts, peer_window_bytes, queued_bytes } = stand;
        Metrics {
            state: state_word(facts.state),
            cwnd_bytes: facts.cwnd.get(),
            ssthresh_bytes: facts.ssthresh.get(),
            outstanding_bytes: facts.in_flight.get(),
            lost_unsent_bytes: facts.lost_unsent.get(),
            srtt_ms: facts.rtt.smoothed.map(Span::as_millis_f64),
            rttvar_ms: facts.rtt.variance.map(Span::as_millis_f64),
            rto_ms: facts.rto.as_millis_f64(),
            error_count: facts.error_count,
            sent_bytes: facts.sent.get(),
            delivered_bytes: facts.delivered.get(),
            lost_bytes: facts.lost.get(),
            peer_window_bytes: *peer_window_bytes,
            queued_bytes: *queued_bytes,
        }
    }
}

//! Values for Python, as dictionaries with the fields of its dataclasses.

use std::time::Duration;

use anabranch_net::{
    AbandonCause, AbandonedMessages, AssociationEvent, EndpointStatistics, MissedEvents, PathId,
    PathSnapshot, PathState, Snapshot,
};
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A message, or a part of one that does not fit the receive buffer.
#[derive(IntoPyObject)]
pub(super) struct MessagePart(Payload, u16, bool, u32, bool, bool);

impl From<anabranch_net::Message> for MessagePart {
    fn from(message: anabranch_net::Message) -> Self {
        let anabranch_net::Message { stream, ppid, unordered, beginning, ending, payload } = message;
        MessagePart(Payload(payload), stream, !unordered, ppid, beginning, ending)
    }
}

struct Payload(Bytes);

impl<'py> IntoPyObject<'py> for Payload {
    type Target = PyBytes;
    type Output = Bound<'py, PyBytes>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        Ok(PyBytes::new(py, &self.0))
    }
}

/// Fields of `anabranch.transfer.PathSnapshot`.
#[derive(IntoPyObject)]
pub(super) struct PathShape {
    id: usize,
    local: String,
    remote: String,
    state: &'static str,
    primary: bool,
    srtt_ms: Option<f64>,
    rto_ms: f64,
    mtu_bytes: usize,
    cwnd_bytes: u64,
    outstanding_bytes: u64,
    sent_bytes: u64,
    lost_bytes: u64,
    delivered_bytes: u64,
    delivery_rate_kbps: Option<f64>,
    errors: u32,
}

impl From<PathSnapshot> for PathShape {
    fn from(path: PathSnapshot) -> Self {
        PathShape {
            id: path.id.index(),
            local: path.local.to_string(),
            remote: path.remote.to_string(),
            state: state_name(path.state),
            primary: path.primary,
            srtt_ms: path.srtt.map(milliseconds),
            rto_ms: milliseconds(path.rto),
            mtu_bytes: path.mtu_bytes,
            cwnd_bytes: path.cwnd_bytes,
            outstanding_bytes: path.in_flight_bytes,
            sent_bytes: path.sent_bytes,
            lost_bytes: path.lost_bytes,
            delivered_bytes: path.delivered_bytes,
            delivery_rate_kbps: path.delivery_rate_bps.map(|rate| rate as f64 / 1e3),
            errors: path.errors,
        }
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn state_name(state: PathState) -> &'static str {
    match state {
        PathState::Unconfirmed => "unconfirmed",
        PathState::Active => "active",
        PathState::PotentiallyFailed => "potentially-failed",
        PathState::Inactive => "inactive",
    }
}

/// Fields of `anabranch.transfer.Statistics`.
#[derive(IntoPyObject)]
pub(super) struct StatisticsShape {
    send_buffered_bytes: u64,
    recv_buffered_bytes: u64,
    delivered_bytes: u64,
    data_packets_sent: u64,
    chunks_sent: u64,
    chunks_received: u64,
    duplicates_received: u64,
    chunks_dropped: u64,
    retransmissions: u64,
    fast_retransmits: u64,
    timeouts: u64,
    heartbeat_timeouts: u64,
    duplicates_reported: u64,
    sacks_sent: u64,
    sacks_received: u64,
    window_probes: u64,
    tail_probes: u64,
    copies_sent: u64,
    rwnd_blocked_s: f64,
    peak_recv_buffered_bytes: u64,
    abandoned_by_retransmissions: AbandonedShape,
    abandoned_by_lifetime: AbandonedShape,
    abandoned_by_priority: AbandonedShape,
    abandoned_by_streams: AbandonedShape,
    abandoned_chunks: u64,
    abandoned_bytes: u64,
    forward_tsns_sent: u64,
    forward_tsns_received: u64,
}

/// Messages of which no data had been sent, and others.
type AbandonedShape = (u64, u64);

fn abandoned(messages: AbandonedMessages) -> AbandonedShape {
    (messages.unsent, messages.sent)
}

impl From<Snapshot> for StatisticsShape {
    fn from(snapshot: Snapshot) -> Self {
        let counted = snapshot.statistics;
        StatisticsShape {
            send_buffered_bytes: snapshot.send_buffered_bytes,
            recv_buffered_bytes: snapshot.recv_buffered_bytes,
            delivered_bytes: counted.bytes_delivered,
            data_packets_sent: counted.data_packets_sent,
            chunks_sent: counted.chunks_sent,
            chunks_received: counted.chunks_received,
            duplicates_received: counted.duplicates_received,
            chunks_dropped: counted.chunks_dropped,
            retransmissions: counted.retransmissions,
            fast_retransmits: counted.fast_retransmit_events,
            timeouts: counted.timeouts,
            heartbeat_timeouts: counted.heartbeat_timeouts,
            duplicates_reported: counted.duplicates_reported,
            sacks_sent: counted.sacks_sent,
            sacks_received: counted.sacks_received,
            window_probes: counted.window_probes,
            tail_probes: counted.tail_probes,
            copies_sent: counted.copies_sent,
            rwnd_blocked_s: counted.blocked_by_peer_window_ns as f64 / 1e9,
            peak_recv_buffered_bytes: counted.peak_held_bytes,
            abandoned_by_retransmissions: abandoned(counted.abandoned.by_retransmissions),
            abandoned_by_lifetime: abandoned(counted.abandoned.by_lifetime),
            abandoned_by_priority: abandoned(counted.abandoned.by_priority),
            abandoned_by_streams: abandoned(counted.abandoned.by_streams),
            abandoned_chunks: counted.abandoned.chunks,
            abandoned_bytes: counted.abandoned.bytes,
            forward_tsns_sent: counted.forward_tsns_sent,
            forward_tsns_received: counted.forward_tsns_received,
        }
    }
}

/// Fields of `anabranch.transfer.EndpointStatistics`.
#[derive(IntoPyObject)]
pub(super) struct EndpointShape {
    associations: usize,
    datagrams_sent: u64,
    sent_bytes: u64,
    send_failures: u64,
    send_overflows: u64,
    datagrams_received: u64,
    received_bytes: u64,
    discarded: u64,
}

impl From<EndpointStatistics> for EndpointShape {
    fn from(counted: EndpointStatistics) -> Self {
        EndpointShape {
            associations: counted.associations,
            datagrams_sent: counted.datagrams_sent,
            sent_bytes: counted.bytes_sent,
            send_failures: counted.send_failures,
            send_overflows: counted.send_overflows,
            datagrams_received: counted.datagrams_received,
            received_bytes: counted.bytes_received,
            discarded: counted.discards.total(),
        }
    }
}

fn cause_name(cause: AbandonCause) -> &'static str {
    match cause {
        AbandonCause::Retransmissions => "retransmissions",
        AbandonCause::Lifetime => "lifetime",
        AbandonCause::Priority => "priority",
        AbandonCause::Streams => "streams",
    }
}

/// Fields of `anabranch.transfer.Event`.
#[derive(Default, IntoPyObject)]
pub(super) struct EventShape {
    kind: &'static str,
    path: Option<usize>,
    was: Option<usize>,
    state: Option<&'static str>,
    reason: Option<String>,
    stream: Option<u16>,
    context: Option<u64>,
    sent: Option<bool>,
    missed: u64,
}

impl EventShape {
    fn of(kind: &'static str) -> Self {
        EventShape { kind, ..EventShape::default() }
    }

    fn of_path(kind: &'static str, path: PathId) -> Self {
        EventShape { path: Some(path.index()), ..EventShape::of(kind) }
    }
}

impl From<Result<AssociationEvent, MissedEvents>> for EventShape {
    fn from(event: Result<AssociationEvent, MissedEvents>) -> Self {
        match event {
            Ok(AssociationEvent::PathState { path, state }) => {
                EventShape { state: Some(state_name(state)), ..EventShape::of_path("path-state", path) }
            }
            Ok(AssociationEvent::PathAdded { path }) => EventShape::of_path("path-added", path),
            Ok(AssociationEvent::PathRemoved { path }) => EventShape::of_path("path-removed", path),
            Ok(AssociationEvent::PathRebound { path, was }) => {
                EventShape { was: Some(was.index()), ..EventShape::of_path("path-rebound", path) }
            }
            Ok(AssociationEvent::Abandoned { stream, context, cause, sent }) => EventShape {
                stream: Some(stream),
                context: Some(context),
                reason: Some(cause_name(cause).to_owned()),
                sent: Some(sent),
                ..EventShape::of("abandoned")
            },
            Ok(AssociationEvent::NoPartialReliability) => EventShape::of("no-partial-reliability"),
            Ok(AssociationEvent::StreamsReset { .. }) => EventShape::of("streams-reset"),
            Ok(AssociationEvent::StreamsAdded { .. }) => EventShape::of("streams-added"),
            Ok(AssociationEvent::StreamRequestFailed { .. }) => EventShape::of("stream-request-failed"),
            Ok(AssociationEvent::Restarted) => EventShape::of("restarted"),
            Ok(AssociationEvent::ShutdownReceived) => EventShape::of("shutdown-received"),
            Ok(AssociationEvent::Closed) => EventShape::of("closed"),
            Ok(AssociationEvent::Aborted(reason)) => {
                EventShape { reason: Some(reason.to_string()), ..EventShape::of("aborted") }
            }
            // The endpoint keeps the events that concern only itself.
            Ok(_) => EventShape::of("other"),
            Err(MissedEvents(missed)) => EventShape { missed, ..EventShape::of("missed") },
        }
    }
}

//! Events for policies in Python.

use anabranch_core::PathId;
use anabranch_core::policy::{Event, SendKind};
use pyo3::prelude::*;

use super::numbers::{milliseconds, seconds, state_name};
use super::shapes::cause_name;

/// One of core's events. Attributes that it lacks are `None`.
#[pyclass(frozen, module = "anabranch.policy", get_all)]
#[derive(Default)]
pub struct PolicyEvent {
    kind: &'static str,
    path: Option<usize>,
    tsn: Option<u64>,
    chunk_bytes: Option<u64>,
    rtt_ms: Option<f64>,
    sent_at_s: Option<f64>,
    cause: Option<&'static str>,
    state: Option<&'static str>,
}

fn of_path(kind: &'static str, path: PathId) -> PolicyEvent {
    PolicyEvent { kind, path: Some(path.index()), ..PolicyEvent::default() }
}

fn of_chunk(kind: &'static str, path: PathId, tsn: u64, bytes: u64) -> PolicyEvent {
    PolicyEvent { tsn: Some(tsn), chunk_bytes: Some(bytes), ..of_path(kind, path) }
}

fn send_kind(kind: SendKind) -> &'static str {
    match kind {
        SendKind::New => "new",
        SendKind::Retransmission => "retransmission",
        SendKind::Copy => "copy",
        SendKind::HeadOfLine => "head-of-line",
        SendKind::TailProbe => "tail-probe",
        SendKind::WindowProbe => "window-probe",
    }
}

impl PolicyEvent {
    pub(super) fn of(event: &Event<'_>) -> Self {
        let plain = |kind| PolicyEvent { kind, ..PolicyEvent::default() };
        match *event {
            Event::PathAdded(path) => of_path("path-added", path),
            Event::PathRemoved(path) => of_path("path-removed", path),
            Event::PathRebound(path) => of_path("path-rebound", path),
            Event::PathState { path, to, .. } => {
                PolicyEvent { state: Some(state_name(to)), ..of_path("path-state", path) }
            }
            Event::Established => plain("established"),
            Event::SendOpportunity(_) => plain("send-opportunity"),
            Event::Bound { path, tsn, bytes } => of_chunk("bound", path, tsn, bytes.get()),
            Event::Unbound { path, tsn, bytes } => of_chunk("unbound", path, tsn, bytes.get()),
            Event::Sent(sent) => PolicyEvent {
                cause: Some(send_kind(sent.kind)),
                ..of_chunk("sent", sent.path, sent.tsn, sent.bytes.get())
            },
            Event::Acked(acked) => PolicyEvent {
                sent_at_s: Some(seconds(acked.stamps.sent_at)),
                ..of_chunk("acked", acked.path, acked.tsn, acked.bytes.get())
            },
            Event::SackDone(_) => plain("sack-done"),
            Event::RttSample { path, rtt, .. } => {
                PolicyEvent { rtt_ms: Some(milliseconds(rtt)), ..of_path("rtt-sample", path) }
            }
            Event::Lost { path, tsn, bytes, cause, .. } => {
                PolicyEvent { cause: Some(cause_name(cause)), ..of_chunk("lost", path, tsn, bytes.get()) }
            }
            Event::Abandoned { path, tsn, bytes } => of_chunk("abandoned", path, tsn, bytes.get()),
            Event::LossEvent { path, cause } => {
                PolicyEvent { cause: Some(cause_name(cause)), ..of_path("loss-event", path) }
            }
            Event::Spurious { path, tsn, .. } => PolicyEvent { tsn: Some(tsn), ..of_path("spurious", path) },
            Event::Blocked { hole } => PolicyEvent { path: hole.map(PathId::index), ..plain("blocked") },
            Event::Idle(path) => of_path("idle", path),
            Event::Deadline => plain("deadline"),
        }
    }
}

//! Output files of a recording.

mod capture;
mod events;
mod tables;

use std::net::SocketAddr;
use std::time::SystemTime;

use anabranch_core::PathId;
use anabranch_core::time::Time;
use anabranch_core::trace::TraceEvent;
use anabranch_net::{CloseReason, DatagramOutcome, KeyChange};
use anabranch_trace::qlog::Role;
use anabranch_trace::{PathSample, TraceError};

use crate::batch::Key;
use crate::directory::AssociationInfo;

pub(crate) use capture::Capture;
pub(crate) use events::Events;
pub(crate) use tables::Tables;

/// Properties of the recording that all files state.
#[derive(Clone, Debug)]
pub(crate) struct RecordingInfo {
    /// Start of the recording.
    pub(crate) origin: SystemTime,
    pub(crate) role: Role,
    /// Scheme expression.
    pub(crate) scheme: String,
    pub(crate) profile: &'static str,
    pub(crate) lost_counts_until_resent: bool,
}

/// Datagram to be written to a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObservedDatagram<'a> {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) outcome: DatagramOutcome,
    pub(crate) payload: &'a [u8],
    /// Association and path of the datagram, if known.
    pub(crate) owner: Option<(&'a AssociationInfo, Key, PathId)>,
}

/// Sums at the end of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    pub(crate) blocked_by_peer_window_ns: u64,
    pub(crate) records_dropped: u64,
}

/// Output file or folder of files. Errors are kept until the next flush.
pub(crate) trait Sink: Send {
    fn endpoint(&mut self, locals: &[SocketAddr]) {
        let _ = locals;
    }

    fn datagram(&mut self, at: Time, datagram: &ObservedDatagram<'_>);

    fn opened(&mut self, at: Time, key: Key, known: &AssociationInfo) {
        let _ = (at, key, known);
    }

    /// Reports a new path or new addresses of a path.
    fn path_address(&mut self, at: Time, key: Key, known: &AssociationInfo, path: PathId) {
        let _ = (at, key, known, path);
    }

    fn path(&mut self, at: Time, key: Key, known: &AssociationInfo, stand: &PathSample) {
        let _ = (at, key, known, stand);
    }

    fn decision(&mut self, key: Key, known: &AssociationInfo, event: &TraceEvent) {
        let _ = (key, known, event);
    }

    fn timeouts(&mut self, at: Time, key: Key, known: &AssociationInfo, total: u64) {
        let _ = (at, key, known, total);
    }

    fn keys(&mut self, at: Time, key: Key, known: &AssociationInfo, change: &KeyChange) {
        let _ = (at, key, known, change);
    }

    fn closed(&mut self, at: Time, key: Key, known: &AssociationInfo, outcome: &Result<(), CloseReason>) {
        let _ = (at, key, known, outcome);
    }

    /// Flushes to the system. Returns the first error since the previous flush.
    fn flush(&mut self) -> Result<(), TraceError>;

    /// Ends the output. No further events follow.
    fn finish(&mut self, at: Time, totals: &Totals) -> Result<(), TraceError> {
        let _ = (at, totals);
        self.flush()
    }
}

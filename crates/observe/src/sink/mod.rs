//! Files that records go to.

mod capture;
mod events;
mod tables;

use std::net::SocketAddr;
use std::time::SystemTime;

use anabranch_core::PathId;
use anabranch_core::time::Time;
use anabranch_core::trace::TraceEvent;
use anabranch_lab::trace::qlog::Role;
use anabranch_lab::trace::{PathSample, TraceError};
use anabranch_net::{CloseReason, DatagramOutcome, KeyChange};

use crate::batch::Key;
use crate::directory::AssociationInfo;

pub(crate) use capture::Capture;
pub(crate) use events::Events;
pub(crate) use tables::Tables;

/// What all files say of the recording.
#[derive(Clone, Debug)]
pub(crate) struct RecordingInfo {
    /// When it began.
    pub(crate) origin: SystemTime,
    pub(crate) role: Role,
    /// The scheme's expression.
    pub(crate) scheme: String,
    pub(crate) profile: &'static str,
    pub(crate) lost_counts_until_resent: bool,
}

/// A datagram on its way to a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObservedDatagram<'a> {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) outcome: DatagramOutcome,
    pub(crate) payload: &'a [u8],
    /// Whose it is.
    pub(crate) owner: Option<(&'a AssociationInfo, Key, PathId)>,
}

/// The sums that a recording ends with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    pub(crate) blocked_by_peer_window_ns: u64,
    pub(crate) records_dropped: u64,
}

/// A file or a folder of them. What goes wrong is kept until the next flush.
pub(crate) trait Sink: Send {
    fn host(&mut self, locals: &[SocketAddr]) {
        let _ = locals;
    }

    fn datagram(&mut self, at: Time, datagram: &ObservedDatagram<'_>);

    fn opened(&mut self, at: Time, key: Key, known: &AssociationInfo) {
        let _ = (at, key, known);
    }

    /// A path is there, or has other addresses.
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

    /// Hands everything to the system, and tells what went wrong since the latest time.
    fn flush(&mut self) -> Result<(), TraceError>;

    /// Nothing more will come.
    fn finish(&mut self, at: Time, totals: &Totals) -> Result<(), TraceError> {
        let _ = (at, totals);
        self.flush()
    }
}

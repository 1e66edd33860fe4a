//! What an association records for observers when tracing is on.

use crate::path_id::{PathId, PathSet};
use crate::policy::{HeadOfLineAction, LossCause, Pacing, Reason, Refused, WaitFor};
use crate::send::AbandonCause;
use crate::time::Time;

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decided {
    /// New data goes on a path.
    Schedule(PathId),
    /// New data waits.
    Wait(WaitFor),
    /// New data goes on several paths at once.
    Copies(PathSet),
    /// New data is bound to a path's queue.
    Bind(PathId),
    /// A lost chunk goes on a path.
    Retransmit(PathId),
    /// A lost chunk waits.
    RetransmitWait(WaitFor),
    /// The head of line, in flight as it was, goes on another path.
    HeadOfLine(HeadOfLineAction),
    /// The latest chunk of a path is retransmitted to elicit an acknowledgement (tail loss probe).
    TailProbe(PathId),
    /// Data waits although a window is open, because the peer's receive window is closed; the path of the head of line, if
    /// there is one. Recorded again when that path changes.
    Blocked(Option<PathId>),
    /// That is over.
    Unblocked,
    /// A window changed.
    Window {
        /// The path.
        path: PathId,
        /// Its window now, in chunk bytes.
        cwnd_bytes: u64,
        /// Its threshold now, in chunk bytes.
        ssthresh_bytes: u64,
    },
    /// What limits a path beside its window changed.
    Pacing {
        /// The path.
        path: PathId,
        /// The limits now.
        pacing: Pacing,
    },
    /// A chunk was declared lost.
    Lost(PathId, LossCause),
    /// A message was abandoned. The TSN is its first one that is outstanding.
    Abandoned(AbandonCause),
    /// A path changed state.
    State(PathId, crate::path_id::PathState),
}

/// A decision with its circumstances.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEvent {
    /// When.
    pub at: Time,
    /// What.
    pub decided: Decided,
    /// The TSN concerned, unwrapped; 0 if none.
    pub tsn: u64,
    /// Why.
    pub reason: Reason,
    /// What was refused.
    pub refused: Refused,
}

//! Decisions that an association records when tracing is on.

use std::collections::VecDeque;

use crate::path_id::{PathId, PathSet};
use crate::policy::{HeadOfLineAction, LossCause, Pacing, Reason, Refused, WaitFor};
use crate::send::AbandonCause;
use crate::time::Time;

/// Recorded decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DecisionRecord {
    /// New data is sent on a path.
    Schedule(PathId),
    /// New data waits.
    Wait(WaitFor),
    /// New data is sent on several paths at once.
    Copies(PathSet),
    /// New data is bound to a path's queue.
    Bind(PathId),
    /// A lost chunk is sent on a path.
    Retransmit(PathId),
    /// A lost chunk waits.
    RetransmitWait(WaitFor),
    /// The head-of-line chunk, while in flight, is sent on another path.
    HeadOfLine(HeadOfLineAction),
    /// The latest chunk of a path is retransmitted to elicit an acknowledgement (tail loss probe).
    TailProbe(PathId),
    /// Data waits although a window is open, because the peer's receive window is closed. The path is that of the head-of-line
    /// chunk, if there is one. Recorded again when that path changes.
    Blocked(Option<PathId>),
    /// The peer's receive window is open again.
    Unblocked,
    /// A window changed.
    Window {
        /// Path of the window.
        path: PathId,
        /// New window, in chunk bytes.
        cwnd_bytes: u64,
        /// New threshold, in chunk bytes.
        ssthresh_bytes: u64,
    },
    /// The limits of a path beside its window changed.
    Pacing {
        /// Path of the limits.
        path: PathId,
        /// New limits.
        pacing: Pacing,
    },
    /// A chunk was declared lost.
    Lost(PathId, LossCause),
    /// A message was abandoned. The TSN is its first outstanding one.
    Abandoned(AbandonCause),
    /// A path changed state.
    State(PathId, crate::path_id::PathState),
}

/// Decision with its circumstances.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEvent {
    /// Time of the decision.
    pub at: Time,
    /// Decision or event, with its values.
    pub decided: DecisionRecord,
    /// TSN concerned, unwrapped; 0 if none.
    pub tsn: u64,
    /// Reason of the decision.
    pub reason: Reason,
    /// Refused alternatives.
    pub refused: Refused,
}

/// Maximum number of decisions that are not polled yet.
const MOST_RECORDED: usize = 1 << 16;

/// Decisions that wait for [`Association::poll_trace`](crate::Association::poll_trace).
#[derive(Clone, Debug, Default)]
pub(crate) struct TraceLog {
    events: VecDeque<TraceEvent>,
}

impl TraceLog {
    /// Keeps a decision, and drops the earliest one if there are too many.
    pub(crate) fn record(&mut self, event: TraceEvent) {
        if self.events.len() >= MOST_RECORDED {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    pub(crate) fn next(&mut self) -> Option<TraceEvent> {
        self.events.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_decisions_are_kept_and_come_in_their_order() {
        let mut log = TraceLog::default();
        let most = MOST_RECORDED as u64;
        for tsn in 0..most + 3 {
            let decided = DecisionRecord::Lost(PathId::new(0), LossCause::Timeout);
            let (at, reason) = (Time::ZERO, Reason::rule("a test"));
            log.record(TraceEvent { at, decided, tsn, reason, refused: Refused::new() });
        }
        assert!((3..most + 3).eq(std::iter::from_fn(|| log.next()).map(|event| event.tsn)));
    }
}

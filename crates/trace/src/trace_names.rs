//! Names in traces.

use anabranch_core::policy::{HeadOfLineAction, LossCause};
use anabranch_core::trace::DecisionRecord;
use anabranch_core::{AbandonCause, PathId, PathSet};

/// Returns the name of a decision.
pub(crate) fn decision(decided: &DecisionRecord) -> &'static str {
    match decided {
        DecisionRecord::Schedule(_) | DecisionRecord::Wait(_) => "schedule",
        DecisionRecord::Copies(_) => "copies",
        DecisionRecord::Bind(_) => "bind",
        DecisionRecord::Retransmit(_) | DecisionRecord::RetransmitWait(_) => "retransmit",
        DecisionRecord::HeadOfLine(HeadOfLineAction::Copy(_)) => "head-of-line-copy",
        DecisionRecord::HeadOfLine(HeadOfLineAction::Move(_)) => "head-of-line-move",
        DecisionRecord::TailProbe(_) => "tail-probe",
        DecisionRecord::Blocked(_) => "blocked",
        DecisionRecord::Unblocked => "unblocked",
        DecisionRecord::Window { .. } => "window",
        DecisionRecord::Pacing { .. } => "pacing",
        DecisionRecord::Lost(..) => "lost",
        DecisionRecord::Abandoned(_) => "abandoned",
        DecisionRecord::State(..) => "state",
    }
}

/// Returns the paths that a decision chose or concerns.
pub(crate) fn paths(decided: &DecisionRecord) -> PathSet {
    let one = |path: PathId| [path].into_iter().collect();
    match *decided {
        DecisionRecord::Blocked(path) => path.into_iter().collect(),
        DecisionRecord::Copies(paths) => paths,
        DecisionRecord::HeadOfLine(HeadOfLineAction::Copy(path) | HeadOfLineAction::Move(path))
        | DecisionRecord::Schedule(path)
        | DecisionRecord::Retransmit(path)
        | DecisionRecord::Bind(path)
        | DecisionRecord::TailProbe(path)
        | DecisionRecord::Window { path, .. }
        | DecisionRecord::Pacing { path, .. }
        | DecisionRecord::Lost(path, _)
        | DecisionRecord::State(path, _) => one(path),
        DecisionRecord::Wait(_)
        | DecisionRecord::RetransmitWait(_)
        | DecisionRecord::Unblocked
        | DecisionRecord::Abandoned(_) => PathSet::EMPTY,
    }
}

/// Returns `true` for a decision to send nothing now.
pub(crate) fn is_wait(decided: &DecisionRecord) -> bool {
    matches!(decided, DecisionRecord::Wait(_) | DecisionRecord::RetransmitWait(_))
}

/// Returns the name of a cause of abandonment.
pub(crate) fn abandon_cause(cause: AbandonCause) -> &'static str {
    match cause {
        AbandonCause::Retransmissions => "retransmissions",
        AbandonCause::Lifetime => "lifetime",
        AbandonCause::Priority => "priority",
        AbandonCause::Streams => "streams",
    }
}

/// Returns the name of a cause of loss.
pub(crate) fn loss_cause(cause: LossCause) -> &'static str {
    match cause {
        LossCause::FastRetransmit => "fast-retransmit",
        LossCause::Timeout => "timeout",
        LossCause::Rescheduled => "rescheduled",
    }
}

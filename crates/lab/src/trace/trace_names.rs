//! Names in traces.

use anabranch_core::policy::{HeadOfLineAction, LossCause};
use anabranch_core::trace::Decided;
use anabranch_core::{AbandonCause, PathId, PathSet};

/// Returns the name of a decision.
pub(crate) fn decision(decided: &Decided) -> &'static str {
    match decided {
        Decided::Schedule(_) | Decided::Wait(_) => "schedule",
        Decided::Copies(_) => "copies",
        Decided::Bind(_) => "bind",
        Decided::Retransmit(_) | Decided::RetransmitWait(_) => "retransmit",
        Decided::HeadOfLine(HeadOfLineAction::Copy(_)) => "head-of-line-copy",
        Decided::HeadOfLine(HeadOfLineAction::Move(_)) => "head-of-line-move",
        Decided::TailProbe(_) => "tail-probe",
        Decided::Blocked(_) => "blocked",
        Decided::Unblocked => "unblocked",
        Decided::Window { .. } => "window",
        Decided::Pacing { .. } => "pacing",
        Decided::Lost(..) => "lost",
        Decided::Abandoned(_) => "abandoned",
        Decided::State(..) => "state",
    }
}

/// Returns the paths that a decision chose or concerns.
pub(crate) fn paths(decided: &Decided) -> PathSet {
    let one = |path: PathId| [path].into_iter().collect();
    match *decided {
        Decided::Blocked(path) => path.into_iter().collect(),
        Decided::Copies(paths) => paths,
        Decided::HeadOfLine(HeadOfLineAction::Copy(path) | HeadOfLineAction::Move(path))
        | Decided::Schedule(path)
        | Decided::Retransmit(path)
        | Decided::Bind(path)
        | Decided::TailProbe(path)
        | Decided::Window { path, .. }
        | Decided::Pacing { path, .. }
        | Decided::Lost(path, _)
        | Decided::State(path, _) => one(path),
        Decided::Wait(_) | Decided::RetransmitWait(_) | Decided::Unblocked | Decided::Abandoned(_) => {
            PathSet::EMPTY
        }
    }
}

/// Returns `true` for a decision to send nothing now.
pub(crate) fn is_wait(decided: &Decided) -> bool {
    matches!(decided, Decided::Wait(_) | Decided::RetransmitWait(_))
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

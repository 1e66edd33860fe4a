//! Outputs of an association: events for its application, counters, and recorded decisions.

use std::collections::VecDeque;

use crate::association::AssociationEvent;
use crate::policy::{Reason, Refused};
use crate::stats::Statistics;
use crate::time::Time;
use crate::trace::{DecisionRecord, TraceEvent, TraceLog};

#[derive(Clone, Debug)]
pub(crate) struct Outputs {
    events: VecDeque<AssociationEvent>,
    /// Counters, which each module updates itself.
    pub(crate) statistics: Statistics,
    trace: TraceLog,
    /// `true` if decisions are recorded.
    traces: bool,
}

impl Outputs {
    pub(crate) fn new(traces: bool) -> Self {
        Outputs {
            events: VecDeque::new(),
            statistics: Statistics::default(),
            trace: TraceLog::default(),
            traces,
        }
    }

    /// Reports an event to the application.
    pub(crate) fn report(&mut self, event: AssociationEvent) {
        self.events.push_back(event);
    }

    /// Reports that messages can be read, unless that is the latest event already.
    pub(crate) fn report_readable(&mut self) {
        if self.events.back() != Some(&AssociationEvent::Readable) {
            self.events.push_back(AssociationEvent::Readable);
        }
    }

    pub(crate) fn next_event(&mut self) -> Option<AssociationEvent> {
        self.events.pop_front()
    }

    pub(crate) fn next_decision(&mut self) -> Option<TraceEvent> {
        self.trace.next()
    }

    /// Returns `true` if decisions are recorded.
    #[inline]
    pub(crate) fn records_decisions(&self) -> bool {
        self.traces
    }

    /// Records a decision if the association is traced.
    pub(crate) fn record(
        &mut self,
        at: Time,
        decided: DecisionRecord,
        tsn: u64,
        reason: Reason,
        refused: &Refused,
    ) {
        if self.traces {
            self.trace.record(TraceEvent { at, decided, tsn, reason, refused: refused.clone() });
        }
    }
}

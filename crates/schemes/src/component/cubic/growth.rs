//! CUBIC's increase (RFC 9438 sections 4.2 to 4.5, 4.7, 4.8, 4.10 and 5.8).

use anabranch_core::policy::{Event, EventKind, EventSet, SackDone, View, Window};
use anabranch_core::time::Span;
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId};

use crate::component::cubic::curve::{Curve, Step};
use crate::congestion::full_use::in_full_use;
use crate::congestion::growth::coupled::Fractions;
use crate::congestion::growth::standard::slow_start;
use crate::congestion::{Acknowledged, Change, Growth};

/// Window growth of each path, as a function of the time since its latest loss.
#[derive(Clone, Debug)]
pub(super) struct CubicGrowth {
    fast_convergence: bool,
    curves: [Curve; MAX_PATHS],
    fractions: Fractions,
}

impl CubicGrowth {
    pub(super) fn new(fast_convergence: bool) -> Self {
        CubicGrowth {
            fast_convergence,
            curves: [Curve::default(); MAX_PATHS],
            fractions: Fractions::default(),
        }
    }

    fn sack_done(&mut self, done: &SackDone<'_>, view: &View<'_>) {
        for (facts, ack) in view.paths.iter().zip(done.paths) {
            let used = in_full_use(ack.in_flight_before, facts.cwnd, facts.id, view);
            if !ack.newly_acked().is_zero() && !used {
                self.curves[facts.id.index()].pause(view.now);
            }
        }
    }
}

impl Growth for CubicGrowth {
    copied!(Growth);

    fn events(&self) -> EventSet {
        EventSet::of(&[EventKind::PathAdded, EventKind::LossEvent, EventKind::SackDone, EventKind::Idle])
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.fractions.on_event(event);
        match *event {
            Event::PathAdded(path) => self.curves[path.index()] = Curve::default(),
            Event::LossEvent { path, cause } => {
                let cwnd = view.path(path).cwnd.get() as f64;
                self.curves[path.index()].lost(cause, cwnd, self.fast_convergence);
            }
            Event::SackDone(done) => self.sack_done(done, view),
            Event::Idle(path) => self.curves[path.index()].pause(view.now),
            _ => {}
        }
    }

    fn grow(&mut self, acknowledged: &Acknowledged<'_>) -> Option<Change> {
        let window = acknowledged.window();
        if let Some(change) = slow_start(window, acknowledged.bytes, acknowledged.slow_start_limit()) {
            return Some(change);
        }
        let facts = acknowledged.facts();
        let step = Step {
            now: acknowledged.view.now,
            rtt: facts.rtt.smoothed.unwrap_or(Span::ZERO),
            cwnd: window.cwnd.max(facts.largest_chunk).get() as f64,
            acked: acknowledged.bytes.get() as f64,
            chunk: facts.largest_chunk.get() as f64,
        };
        Some(self.avoidance(acknowledged.path, window, &step))
    }
}

impl CubicGrowth {
    fn avoidance(&mut self, path: PathId, window: Window, step: &Step) -> Change {
        let (cwnd, reason) = self.curves[path.index()].next(step);
        let cwnd = self.fractions.whole(path, window.cwnd, cwnd - step.cwnd);
        Change { window: Window { cwnd, partial_bytes_acked: ChunkBytes::ZERO, ..window }, reason }
    }
}

#[cfg(test)]
mod tests;

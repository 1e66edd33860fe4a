//! The share of a path's transmissions that were declared lost.
//!
//! ns-2's RTX-LOSSRATE reads the link's true loss rate from the script. A real sender has to measure it.

use anabranch_core::policy::{Context, Estimates, Event, PathEstimator, Slot, View};
use anabranch_core::time::Time;
use anabranch_core::{MAX_PATHS, PathId};

/// Bytes lost over bytes sent, since the path exists.
#[derive(Debug, Default)]
pub struct MeasuredLossRate {
    rates: [Option<f64>; MAX_PATHS],
}

impl Slot for MeasuredLossRate {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, _: &mut Context<'_>) {
        let path = match *event {
            Event::PathAdded(path) => {
                self.rates[path.index()] = None;
                return;
            }
            Event::Lost { path, .. } => path,
            Event::Acked(acked) => acked.path,
            _ => return,
        };
        let facts = view.path(path);
        if !facts.sent.is_zero() {
            self.rates[path.index()] = Some(facts.lost.get() as f64 / facts.sent.get() as f64);
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl PathEstimator for MeasuredLossRate {
    fn estimates(&self, path: PathId) -> Estimates {
        Estimates { loss_rate: self.rates[path.index()] }
    }
}

//! RTX-CWND, RTX-SSTHRESH and RTX-LOSSRATE (Iyengar 2006): the active path that is best by one figure; ties by coin, as ns-2
//! flips it along the list.

use anabranch_core::policy::{
    Context, Decision, Event, LostChunk, PathFacts, Reason, Refusal, Refused, RetransmitPath, Route, Slot, View,
};
use anabranch_core::time::Time;

use crate::retransmit::{if_room, nowhere};

/// The figure that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// Largest congestion window.
    Cwnd,
    /// Largest slow-start threshold.
    Ssthresh,
    /// Lowest measured loss rate; a path that lost nothing yet counts as lossless.
    LossRate,
}

impl Preference {
    /// Larger is better.
    fn score(self, path: &PathFacts) -> f64 {
        match self {
            Preference::Cwnd => path.cwnd.get() as f64,
            Preference::Ssthresh => path.ssthresh.get() as f64,
            Preference::LossRate => -path.estimates.loss_rate.unwrap_or(0.0),
        }
    }

    fn reason(self, score: f64) -> Reason {
        match self {
            Preference::Cwnd => Reason::figure("largest window", "cwnd_bytes", score),
            Preference::Ssthresh => Reason::figure("largest threshold", "ssthresh_bytes", score),
            Preference::LossRate => Reason::figure("lowest loss rate", "loss_rate", -score),
        }
    }
}

/// The best path by one figure.
#[derive(Debug)]
pub struct Best {
    /// The figure.
    pub by: Preference,
}

impl Slot for Best {
    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>, _: &mut Context<'_>) {}

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl RetransmitPath for Best {
    fn route(&mut self, _: &LostChunk, view: &View<'_>, context: &mut Context<'_>) -> Decision<Route> {
        let mut best: Option<&PathFacts> = None;
        let mut refused = Refused::new();
        for path in view.paths {
            if !path.is_active() {
                refused.push((path.id, Refusal::State));
                continue;
            }
            let Some(other) = best else {
                best = Some(path);
                continue;
            };
            let (new, old) = (self.by.score(path), self.by.score(other));
            let takes = new > old || (new == old && context.coin());
            refused.push((if takes { other.id } else { path.id }, Refusal::Preference));
            if takes {
                best = Some(path);
            }
        }
        match best {
            Some(path) => if_room(path, self.by.reason(self.by.score(path)), refused),
            None => nowhere(),
        }
    }
}

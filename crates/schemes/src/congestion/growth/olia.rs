//! OLIA, the opportunistic linked increases of draft-khalili-mptcp-congestion-control: increases that balance congestion, and a
//! term that moves window to the paths that deliver most between losses.

use anabranch_core::policy::{Event, Reason, View};
use anabranch_core::{MAX_PATHS, PathId};

use crate::congestion::growth::coupled::{Flow, Flows, Fractions, Gain, largest};
use crate::congestion::{Acknowledged, Change, Growth};

/// By which figure of a path, with l its bytes between losses, it is among the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BestPaths {
    /// l^2 / rtt: the draft, section 2.
    BytesSquaredPerRtt,
    /// l / rtt^2: Linux.
    BytesPerRttSquared,
}

impl BestPaths {
    fn figure(self, bytes_between_losses: f64, rtt: f64) -> f64 {
        match self {
            BestPaths::BytesSquaredPerRtt => bytes_between_losses * bytes_between_losses / rtt,
            BestPaths::BytesPerRttSquared => bytes_between_losses / (rtt * rtt),
        }
    }
}

/// Bytes acknowledged on a path around its losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Losses {
    /// Between the latest two losses: l1.
    between: u64,
    /// Since the latest: l2.
    since: u64,
}

impl Losses {
    /// l = max(l1, l2).
    fn bytes(self) -> u64 {
        self.between.max(self.since)
    }
}

/// Opportunistic linked increases.
#[derive(Debug)]
pub struct OliaGrowth {
    best: BestPaths,
    losses: [Losses; MAX_PATHS],
    fractions: Fractions,
}

impl OliaGrowth {
    /// With a definition of the best paths.
    pub fn new(best: BestPaths) -> Self {
        OliaGrowth { best, losses: [Losses::default(); MAX_PATHS], fractions: Fractions::default() }
    }
}

impl Growth for OliaGrowth {
    fn on_event(&mut self, event: &Event<'_>, _: &View<'_>) {
        self.fractions.on_event(event);
        match *event {
            Event::PathAdded(path) => self.losses[path.index()] = Losses::default(),
            Event::SackDone(done) => {
                for (losses, ack) in self.losses.iter_mut().zip(done.paths) {
                    losses.since = losses.since.saturating_add(ack.newly_acked().get());
                }
            }
            Event::LossEvent { path, .. } => {
                let since = self.losses[path.index()].since;
                self.losses[path.index()] = Losses { between: since, since: 0 };
            }
            _ => {}
        }
    }

    fn grow(&mut self, acknowledged: &Acknowledged<'_>) -> Option<Change> {
        let (best, losses) = (self.best, &self.losses);
        let figure = |flow: &Flow| best.figure(losses[flow.path.index()].bytes() as f64, flow.rtt);
        self.fractions.grow(acknowledged, |own, flows| gain(own, flows, figure))
    }
}

/// The draft's increase: (w_r / rtt_r^2) / (sum of w_p / rtt_p)^2 + alpha_r / w_r, times bytes acknowledged and the largest chunk.
fn gain(own: Flow, flows: &Flows, figure: impl Fn(&Flow) -> f64) -> Gain {
    let rate: f64 = flows.all().iter().map(Flow::rate).sum();
    let alpha = alpha(own.path, flows.all(), figure);
    Gain {
        per_byte: own.rate() / own.rtt / (rate * rate) + alpha / own.cwnd,
        reason: Reason::figure("opportunistic linked increase (OLIA)", "alpha", alpha),
    }
}

/// The draft's alpha_r: what is taken from the paths with the largest windows goes to the best paths that have not one of them.
fn alpha(path: PathId, flows: &[Flow], figure: impl Fn(&Flow) -> f64) -> f64 {
    let widest = largest(flows.iter().map(|flow| flow.cwnd));
    let best = largest(flows.iter().map(&figure));
    let is_widest = |flow: &Flow| flow.cwnd >= widest;
    let is_collected = |flow: &Flow| figure(flow) >= best && !is_widest(flow);
    let collected = flows.iter().filter(|flow| is_collected(flow)).count();
    let Some(own) = flows.iter().find(|flow| flow.path == path) else { return 0.0 };
    if collected == 0 {
        0.0
    } else if is_collected(own) {
        1.0 / (flows.len() * collected) as f64
    } else if is_widest(own) {
        -1.0 / (flows.len() * flows.iter().filter(|flow| is_widest(flow)).count()) as f64
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests;

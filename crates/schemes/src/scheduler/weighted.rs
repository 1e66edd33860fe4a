//! Shares in bytes by given weights: a smooth weighted round robin with deficit counters (after Shreedhar and Varghese, "Efficient
//! Fair Queuing Using Deficit Round Robin", 1996, which counts bytes as well).
//!
//! Whatever new data leaves is credited to all active paths by their weights and charged to the path that carried it. The path
//! with the most credit is next. A path that is full goes on earning, so that it can catch up, but only up to a limit.

use anabranch_core::policy::{
    Context, Decision, Event, PathFacts, Pick, Reason, Refusal, Refused, Scheduler, SendAsk, SendKind, Slot,
    View, WaitFor,
};
use anabranch_core::time::Time;
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId, PathState};

use crate::registry::{Length, Weights};
use crate::scheduler::refusal;

/// Weighted round robin that counts bytes.
#[derive(Debug)]
pub struct Weighted {
    weights: Weights,
    /// The most that a path may be ahead of or behind its share.
    limit: Length,
    /// Bytes that each path is behind its share; negative if it is ahead.
    credits: [f64; MAX_PATHS],
}

impl Weighted {
    /// Shares by these weights; no path is further from its share than `limit`.
    pub fn new(weights: Weights, limit: Length) -> Self {
        Weighted { weights, limit, credits: [0.0; MAX_PATHS] }
    }

    /// A path's credit once a chunk of this size is credited to all.
    fn standing(&self, path: &PathFacts, bytes: ChunkBytes, all: f64) -> f64 {
        let share = f64::from(self.weights.of(path.id)) / all;
        self.credits[path.id.index()] + bytes.get() as f64 * share
    }

    fn settle(&mut self, carrier: PathId, bytes: ChunkBytes, view: &View<'_>) {
        let all = self.sum(view);
        for path in view.active() {
            let mut credit = self.standing(path, bytes, all);
            if path.id == carrier {
                credit -= bytes.get() as f64;
            }
            let limit = self.limit.bytes(path.largest_chunk);
            self.credits[path.id.index()] = credit.clamp(-limit, limit);
        }
    }

    fn sum(&self, view: &View<'_>) -> f64 {
        view.active().map(|path| f64::from(self.weights.of(path.id))).sum()
    }
}

impl Slot for Weighted {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, _: &mut Context<'_>) {
        match *event {
            Event::PathAdded(path) => self.credits[path.index()] = 0.0,
            // What it missed while it was out of service is not owed to it.
            Event::PathState { path, to: PathState::Active, .. } => self.credits[path.index()] = 0.0,
            Event::Sent(sent) if matches!(sent.kind, SendKind::New | SendKind::WindowProbe) => {
                self.settle(sent.path, sent.bytes, view);
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl Scheduler for Weighted {
    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let all = self.sum(view);
        let mut refused = Refused::new();
        let mut best: Option<(&PathFacts, f64)> = None;
        for path in view.paths {
            if let Some(why) = refusal(path, ask, view) {
                refused.push((path.id, why));
                continue;
            }
            let standing = self.standing(path, ask.chunk, all);
            match best {
                Some((_, most)) if most >= standing => refused.push((path.id, Refusal::Preference)),
                _ => {
                    refused.extend(best.map(|(other, _)| (other.id, Refusal::Preference)));
                    best = Some((path, standing));
                }
            }
        }
        match best {
            Some((path, standing)) => {
                let reason = Reason::figure("furthest behind its share", "credit_bytes", standing);
                Decision::with_refused(Pick::Path(path.id), reason, refused)
            }
            None => {
                let reason = Reason::rule("no path has room");
                Decision::with_refused(Pick::Wait(WaitFor::Window), reason, refused)
            }
        }
    }

    fn replan(&mut self, _: &View<'_>) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;

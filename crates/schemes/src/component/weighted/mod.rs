//! `weighted`: shares in bytes by given weights.
//!
//! Smooth weighted round robin with deficit counters in bytes (after Shreedhar and Varghese, "Efficient Fair Queuing Using Deficit
//! Round Robin", 1996, which counts bytes as well).
//!
//! New data is credited to all active paths by their weights and charged to the path that carries it. The path with the highest
//! credit is next. A full path continues to earn credit up to a limit, so that it can catch up.

use anabranch_core::policy::{
    Context, Decision, Event, EventKind, EventSet, PathFacts, Pick, Policies, Reason, Refusal, Refused,
    Scheduler, SendAsk, SendKind, Slot, View, WaitFor,
};
use anabranch_core::profile::Profile;
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId, PathState};

use crate::definition::{
    Card, Choice, Component, Equation, Kind, Length, Parameter, Role, Value, Values, Weights,
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "weights",
        kind: Kind::Weights,
        unit: "",
        default: Value::Weights(Weights::EQUAL),
        about: "bytes of new data on the paths in proportion to each other, in the order of their ids",
        source: "Shreedhar and Varghese 1996",
    },
    Parameter {
        name: "limit",
        kind: Kind::Length,
        unit: "",
        default: Value::Length(Length::Chunks(10.0)),
        about: "maximum that a path may be behind or ahead of its share; more is forgotten",
        source: "this project",
    },
];

const CARD: Card = Card {
    summary: &[
        "Each packet of new data goes to the path with room that is furthest behind its share in bytes.",
        "Shares are those of the active paths. A path with a full window catches up afterwards, within the",
        "limit. If windows are full most of the time, they determine the shares instead of the weights.",
    ],
    equations: &[&[Equation {
        name: "deficit",
        rule: "credit_i += b w_i / sum of w over active paths, for each b bytes sent; credit_carrier -= b",
        file: file!(),
    }]],
    choices: &[&[
        Choice {
            question: "Does a path earn credit while it cannot send?",
            answer: "Yes while it is active, up to the limit, so that a short full window does not change the shares. Out of \
                     service it earns no credit, and begins at zero when it returns.",
            parameter: "limit",
        },
        Choice {
            question: "Does new data wait for the path whose turn it is?",
            answer: "No. A window with room is always used.",
            parameter: "",
        },
        Choice {
            question: "Do retransmissions count?",
            answer: "No. Only the first transmission of a chunk is scheduled here.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "weighted",
    about: "New data shared between the paths by weights, in bytes",
    source: "deficit round robin: Shreedhar and Varghese 1996",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let scheduler = Weighted::new(values.weights("weights"), values.length("limit"));
    Policies { scheduler: Box::new(scheduler), ..policies }
}

/// Weighted round robin that counts bytes.
#[derive(Clone, Debug)]
pub struct Weighted {
    weights: Weights,
    /// Maximum distance of a path from its share.
    limit: Length,
    /// Bytes that each path is behind its share; negative if it is ahead.
    credits: [f64; MAX_PATHS],
}

impl Weighted {
    /// Creates a scheduler with these weights. No path is further from its share than `limit`.
    pub fn new(weights: Weights, limit: Length) -> Self {
        Weighted { weights, limit, credits: [0.0; MAX_PATHS] }
    }

    /// Returns a path's credit after a chunk of this size has been credited to all.
    fn credit_after(&self, path: &PathFacts, bytes: ChunkBytes, all: f64) -> f64 {
        let share = f64::from(self.weights.of(path.id)) / all;
        self.credits[path.id.index()] + bytes.get() as f64 * share
    }

    fn settle(&mut self, carrier: PathId, bytes: ChunkBytes, view: &View<'_>) {
        let all = self.sum(view);
        for path in view.active() {
            let mut credit = self.credit_after(path, bytes, all);
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
    fn events(&self, _: &Profile) -> EventSet {
        EventSet::of(&[EventKind::PathAdded, EventKind::PathState, EventKind::Sent])
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, _: &mut Context<'_>) {
        match *event {
            Event::PathAdded(path) => self.credits[path.index()] = 0.0,
            // Credit missed while out of service is not restored.
            Event::PathState { path, to: PathState::Active, .. } => self.credits[path.index()] = 0.0,
            Event::Sent(sent) if matches!(sent.kind, SendKind::New | SendKind::WindowProbe) => {
                self.settle(sent.path, sent.bytes, view);
            }
            _ => {}
        }
    }
}

impl Scheduler for Weighted {
    copied!(Scheduler);

    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let all = self.sum(view);
        let mut refused = Refused::new();
        let mut best: Option<(&PathFacts, f64)> = None;
        for path in view.paths {
            if let Some(why) = view.refusal(path.id) {
                refused.push((path.id, why));
                continue;
            }
            let standing = self.credit_after(path, ask.chunk, all);
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
}

#[cfg(test)]
mod tests;

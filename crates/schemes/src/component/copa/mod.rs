//! `copa`: windows that keep a short queue, controlled by recent delay.

use anabranch_core::policy::{
    CongestionControl, Context, Event, EventKind, EventSet, LossCause, Pacing, Policies, Reason, SackDone,
    Slot, View, Window,
};
use anabranch_core::profile::Profile;
use anabranch_core::{MAX_PATHS, PathId};

use crate::component::copa::path::{CopaPath, Settings};
use crate::definition::{Card, Choice, Component, Kind, Parameter, Role, Value, Values};

mod delays;
mod mode;
mod path;
mod velocity;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "delta",
        kind: Kind::Decimal { min: 0.01, max: 10.0 },
        unit: "",
        default: Value::Decimal(0.5),
        about: "weight of delay against rate: without competing flows a flow keeps 1/delta packets in the queue",
        source: "Arun and Balakrishnan 2018, section 2",
    },
    Parameter::switch(
        "competitive",
        true,
        "delta follows losses if other flows fill the queue",
        "Arun and Balakrishnan 2018, section 2.2",
    ),
];

const CARD: Card = Card {
    summary: &[
        "On each path, the window converges to a rate of one packet per delta times the queueing delay, so that",
        "flows share a queue of a few packets. It moves faster the longer it has moved in one direction. If the",
        "queue is not nearly empty once in five round trips, other flows fill it. Then delta follows losses as a",
        "standard window does. Losses have no other effect.",
    ],
    equations: &[path::RULES, delays::RULES, velocity::RULES, mode::RULES],
    choices: &[&[
        Choice {
            question: "The paper has one path. How are several paths handled?",
            answer: "Every path has its own window, mode and delta; they are not coupled.",
            parameter: "",
        },
        Choice {
            question: "Which round trips are samples?",
            answer: "Those of chunks that were sent once, independently of the path of the SACK: minimum round-trip times \
                     share the same return path.",
            parameter: "",
        },
        Choice {
            question: "What happens if v would more than double the window in a round trip?",
            answer: "It is limited to delta cwnd, which doubles the window; the paper has no limit.",
            parameter: "",
        },
        Choice {
            question: "What happens while the rate is on the other side of its target than the direction of the window?",
            answer: "v = 1 at once. Otherwise a fast window would move beyond its target until the round ends.",
            parameter: "",
        },
        Choice {
            question: "Does a window grow that is not used?",
            answer: "No, as under RFC 9260 section 7.2.1; the paper's flows always have data.",
            parameter: "",
        },
        Choice {
            question: "What does T3 do, which the paper does not mention?",
            answer: "It leaves one chunk, and slow start begins again. No other loss changes a window in default mode.",
            parameter: "",
        },
        Choice { question: "What is the least window?", answer: "Two chunks.", parameter: "" },
        Choice {
            question: "What is ssthresh?",
            answer: "Copa has none. Policies that read it see no limit in slow start, and the window itself afterwards.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "copa",
    about: "Copa on each path: windows keep a queue of a few packets, by the recent delay",
    source: "Arun and Balakrishnan 2018 (NSDI)",
    role: Role::CongestionControl,
    needs_multipath: false,
    parameters: PARAMETERS,
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let settings = Settings { delta: values.decimal("delta"), competes: values.switch("competitive") };
    Policies { congestion: Box::new(CopaControl { settings, paths: [None; MAX_PATHS] }), ..policies }
}

/// Copa on each path.
#[derive(Clone)]
struct CopaControl {
    settings: Settings,
    paths: [Option<CopaPath>; MAX_PATHS],
}

impl CopaControl {
    fn begin(&mut self, path: PathId, view: &View<'_>) {
        let facts = view.path(path);
        let initial = view.profile.initial_window.for_chunk(facts.largest_chunk, facts.ipv6);
        self.paths[path.index()] = Some(CopaPath::new(initial, self.settings));
    }

    fn path(&mut self, path: PathId) -> Option<&mut CopaPath> {
        self.paths[path.index()].as_mut()
    }

    fn sack_done(&mut self, done: &SackDone<'_>, view: &View<'_>) {
        for (facts, ack) in view.paths.iter().zip(done.paths) {
            if let Some(path) = self.path(facts.id).filter(|_| !ack.newly_acked().is_zero()) {
                path.acknowledge(ack, facts, view);
            }
        }
    }

    fn loss_event(&mut self, path: PathId, cause: LossCause, view: &View<'_>) {
        let facts = view.path(path);
        let Some(path) = self.path(path) else { return };
        match cause {
            LossCause::FastRetransmit => path.lose(),
            LossCause::Timeout => path.time_out(facts),
            // No chunk was lost.
            LossCause::Rescheduled => {}
        }
    }
}

impl Slot for CopaControl {
    fn events(&self, _: &Profile) -> EventSet {
        EventSet::of(&[
            EventKind::PathAdded,
            EventKind::PathRebound,
            EventKind::Established,
            EventKind::Acked,
            EventKind::SackDone,
            EventKind::LossEvent,
        ])
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, _: &mut Context<'_>) {
        match *event {
            Event::PathAdded(path) | Event::PathRebound(path) => self.begin(path, view),
            Event::Established => view.paths.iter().for_each(|facts| self.begin(facts.id, view)),
            Event::Acked(acked) if acked.sent_once => {
                if let Some(path) = self.path(acked.path) {
                    path.take(acked, view.path(acked.path), view.now);
                }
            }
            Event::SackDone(done) => self.sack_done(done, view),
            Event::LossEvent { path, cause } => self.loss_event(path, cause, view),
            _ => {}
        }
    }
}

impl CongestionControl for CopaControl {
    copied!(CongestionControl);

    fn window(&self, path: PathId) -> Window {
        self.paths[path.index()].as_ref().map_or(Window::default(), CopaPath::window)
    }

    fn pacing(&self, path: PathId) -> Pacing {
        self.paths[path.index()].as_ref().map_or(Pacing::OFF, CopaPath::pacing)
    }

    fn last_reason(&self, path: PathId) -> Reason {
        self.paths[path.index()].as_ref().map_or(Reason::rule("no path"), CopaPath::reason)
    }

    fn set_window(&mut self, path: PathId, window: Window, reason: Reason, view: &View<'_>) {
        let cwnd = window.cwnd.max(view.path(path).largest_chunk);
        if let Some(path) = self.path(path) {
            path.set_window(cwnd, reason);
        }
    }
}

#[cfg(test)]
mod tests;

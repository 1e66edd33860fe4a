//! `mptcp-olia`: CMT with opportunistic linked increases.
//!
//! OLIA, the opportunistic linked increases of draft-khalili-mptcp-congestion-control: increases that balance congestion, and a
//! term that moves window to the paths that deliver most between losses.

use anabranch_core::policy::{Event, EventKind, EventSet, Policies, Reason, View};
use anabranch_core::{MAX_PATHS, PathId};

use crate::ack::delayed::{SACK_DELAY, SACK_EVERY, dac};
use crate::congestion::control::cuc;
use crate::congestion::cut::{floor, floored};
use crate::congestion::growth::coupled::{Fractions, Gain, largest};
use crate::congestion::growth::{Flow, Flows};
use crate::congestion::{Acknowledged, Change, Growth, GrowthGate, WindowControl};
use crate::definition::{Card, Choice, ChoiceParameter, Equation, Parameter, Preset, Role, Values};
use crate::loss::missing_reports::{TRIGGER, sfr};
use crate::preset::cmt;
use crate::preset::mptcp_lia::{BASE, BYTES_COUNTED, COUPLED_PATHS};
use crate::retransmit::rtx;

const BEST: ChoiceParameter<BestPaths> = ChoiceParameter {
    name: "best",
    options: &[("draft", BestPaths::BytesSquaredPerRtt), ("linux", BestPaths::BytesPerRttSquared)],
    default: "draft",
    about: "figure of the best paths, with l the bytes between losses: l^2 / rtt (draft) or l / rtt^2 (linux)",
    source: "draft-khalili-mptcp-congestion-control; Linux mptcp_olia.c",
};

const PARAMETERS: &[Parameter] = &[
    BEST.parameter(),
    rtx("rtx-cwnd"),
    TRIGGER,
    sfr(true),
    cuc(true),
    dac(true),
    SACK_EVERY,
    SACK_DELAY,
    floor("profile"),
];

const CARD: Card = Card {
    summary: &[
        "As `cmt`, but in congestion avoidance windows grow coupled, and a further term shifts growth from the",
        "paths with the largest windows to paths with smaller ones that deliver most between losses.",
        "Slow start and reductions are the standard's.",
    ],
    equations: &[&[
        Equation {
            name: "increase",
            rule: "cwnd_r grows by ((w_r / rtt_r^2) / (sum of w_p / rtt_p)^2 + alpha_r / w_r) M bytes_acked",
            file: file!(),
        },
        Equation {
            name: "alpha_r, with best paths B and largest windows M of n paths",
            rule: "1 / (n |B - M|) for r in B - M; -1 / (n |M|) for r in M if B - M is not empty; else 0",
            file: file!(),
        },
        Equation {
            name: "bytes between losses",
            rule: "l = max(l1, l2): acknowledged between the last two losses, and since the last",
            file: file!(),
        },
    ]],
    choices: &[&[
        Choice {
            question: "Which paths are the best?",
            answer: "Those with the largest l^2 / rtt, by the draft. Linux compares l / rtt^2.",
            parameter: "best",
        },
        Choice {
            question: "Which events are losses, for l1 and l2?",
            answer: "Those that reduce the window: fast retransmit once per window, and T3. Several lost chunks of one window \
                     are one loss.",
            parameter: "",
        },
        Choice {
            question: "May a negative alpha shrink a window?",
            answer: "Yes, by the draft, down to one chunk.",
            parameter: "",
        },
        COUPLED_PATHS,
        BYTES_COUNTED,
        BASE,
    ]],
};

pub(crate) const PRESET: Preset = Preset {
    name: "mptcp-olia",
    about: "CMT with MPTCP's opportunistic linked increases",
    source: "draft-khalili-mptcp-congestion-control; Khalili et al. 2013",
    multipath: true,
    coupled: true,
    unfair_because: "",
    owns: &[Role::CongestionControl],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

fn build(values: &Values) -> Policies {
    let control =
        WindowControl::new(GrowthGate::from_values(values)).with_growth(OliaGrowth::new(BEST.get(values)));
    Policies { congestion: Box::new(control), ..cmt::build(values) }
}

/// Figure that selects the best paths, where l is a path's bytes between losses.
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
    /// Bytes between the latest two losses: l1.
    between: u64,
    /// Bytes since the latest loss: l2.
    since: u64,
}

impl Losses {
    /// Returns l = max(l1, l2).
    fn bytes(self) -> u64 {
        self.between.max(self.since)
    }
}

/// Opportunistic linked increases.
#[derive(Clone, Debug)]
pub struct OliaGrowth {
    best: BestPaths,
    losses: [Losses; MAX_PATHS],
    fractions: Fractions,
}

impl OliaGrowth {
    /// Creates the rule with a definition of the best paths.
    pub fn new(best: BestPaths) -> Self {
        OliaGrowth { best, losses: [Losses::default(); MAX_PATHS], fractions: Fractions::default() }
    }
}

impl Growth for OliaGrowth {
    copied!(Growth);

    fn events(&self) -> EventSet {
        EventSet::of(&[EventKind::PathAdded, EventKind::SackDone, EventKind::LossEvent])
    }

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

/// Returns the draft's increase: (w_r / rtt_r^2) / (sum of w_p / rtt_p)^2 + alpha_r / w_r, times bytes acknowledged and the largest
/// chunk.
fn gain(own: Flow, flows: &Flows, figure: impl Fn(&Flow) -> f64) -> Gain {
    let rate: f64 = flows.all().iter().map(Flow::rate).sum();
    let alpha = alpha(own.path, flows.all(), figure);
    Gain {
        per_byte: own.rate() / own.rtt / (rate * rate) + alpha / own.cwnd,
        reason: Reason::figure("opportunistic linked increase (OLIA)", "alpha", alpha),
    }
}

/// Returns the draft's alpha_r: moves growth from the paths with the largest windows to the best paths that are not among them.
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

//! SMT-AFR (Khan, Qadir, Khan 2018): the less of the peer's receive buffer is free, the fewer missing reports make a chunk lost.
//! Three pivots divide the free share into four zones; SACKs that stay in a zone move the pivot above it.

use anabranch_core::policy::{
    Context, Event, EventSet, Holes, LossDetection, LossTasks, Missing, MissingVerdict, SackView, Slot, View,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::Time;

use crate::definition::{Equation, text};
use crate::loss::MissingReports;

pub(super) const RULES: &[Equation] = &[
    Equation { name: "Fig. 4, critical zone", rule: "r < P1: trigger 3, reset P1, P2, P3", file: file!() },
    Equation {
        name: "Fig. 4, substantial zone",
        rule: text!("P1 <= r < P2: trigger 4, c1 += 1; if c1 >= O_TD: P2 = r - {}, c1 = 0", BELOW),
        file: file!(),
    },
    Equation {
        name: "Fig. 4, moderate zone",
        rule: text!("P2 <= r <= P3: trigger 5, c2 += 1; if c2 >= O_TD: P3 = r - {}, c2 = 0", BELOW),
        file: file!(),
    },
    Equation { name: "Fig. 4, tolerable zone", rule: "P3 < r <= 1: trigger 6", file: file!() },
];

/// Definition of the free share of the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeSpace {
    /// The window advertised by the SACK.
    Advertised,
    /// The advertised window minus the data outstanding after the SACK.
    LessOutstanding,
}

/// Boundaries of zones, as shares of the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pivots {
    /// Share below which the zone is critical (P1, the paper's C_PS).
    pub substantial: f64,
    /// Share from which the zone is moderate (P2, S_PM).
    pub moderate: f64,
    /// Share above which the zone is tolerable (P3, M_PT).
    pub tolerable: f64,
}

/// Adaptation of the trigger.
#[derive(Clone, Copy, Debug)]
pub struct Adaptation {
    /// Initial pivots.
    pub pivots: Pivots,
    /// Number of SACKs in a zone that moves the pivot above it (O_TD).
    pub occurrences: u32,
    /// Set if those SACKs must be consecutive.
    pub consecutive: bool,
    /// Definition of the free share.
    pub free_space: FreeSpace,
}

/// Zones of Fig. 3, each with its own trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Zone {
    Critical,
    Substantial,
    Moderate,
    Tolerable,
}

impl Zone {
    /// Fig. 4, `FastRtx_Threshold`.
    const fn trigger(self) -> u32 {
        match self {
            Zone::Critical => 3,
            Zone::Substantial => 4,
            Zone::Moderate => 5,
            Zone::Tolerable => 6,
        }
    }
}

/// Distance of a moved pivot below the free share (Fig. 4).
const BELOW: f64 = 0.001;

/// Missing reports with a trigger that follows the peer's receive buffer. All paths share its state, since they report the same
/// buffer.
#[derive(Clone, Debug)]
pub struct AdaptiveTrigger {
    reports: MissingReports,
    adaptation: Adaptation,
    pivots: Pivots,
    /// The paper's `Moderate_count` and `Tolerate_count`: SACKs in the substantial and in the moderate zone.
    counts: [u32; 2],
}

impl AdaptiveTrigger {
    /// Creates the policy. Counts reports like `reports`, whose trigger is not used.
    pub fn new(reports: MissingReports, adaptation: Adaptation) -> Self {
        let reports = MissingReports { trigger: Zone::Critical.trigger(), ..reports };
        AdaptiveTrigger { reports, adaptation, pivots: adaptation.pivots, counts: [0; 2] }
    }

    /// Returns R_buf: the free share of the receive buffer, 0 to 1. If the initial window is unknown, the share is 0, which selects
    /// the standard's trigger.
    fn free_share(&self, sack: &SackView<'_>, view: &View<'_>) -> f64 {
        let whole = view.association.peer_window_initial.get();
        let free = match self.adaptation.free_space {
            FreeSpace::Advertised => sack.a_rwnd,
            FreeSpace::LessOutstanding => sack.peer_window,
        };
        // A receiver may enlarge its buffer later; Fig. 3 ends at 1.
        if whole == 0 { 0.0 } else { (free.get() as f64 / whole as f64).min(1.0) }
    }

    /// Evaluates Fig. 4's chain of conditions. If two overlap, the first one applies.
    fn zone(&self, free: f64) -> Zone {
        if free < self.pivots.substantial {
            Zone::Critical
        } else if free < self.pivots.moderate {
            Zone::Substantial
        } else if free <= self.pivots.tolerable {
            Zone::Moderate
        } else {
            Zone::Tolerable
        }
    }

    /// Fig. 4 for one SACK.
    fn adapt(&mut self, free: f64) {
        let zone = self.zone(free);
        self.reports.trigger = zone.trigger();
        if self.adaptation.consecutive {
            self.forget_other_zones(zone);
        }
        match zone {
            // Fig. 4 resets the pivots here, and does not mention the counts.
            Zone::Critical => self.pivots = self.adaptation.pivots,
            Zone::Substantial => {
                if self.enough(0) {
                    self.pivots.moderate = free - BELOW;
                }
            }
            Zone::Moderate => {
                if self.enough(1) {
                    self.pivots.tolerable = free - BELOW;
                }
            }
            Zone::Tolerable => {}
        }
    }

    /// Counts one more SACK in a zone. Returns `true` and restarts from zero once there were O_TD of them.
    fn enough(&mut self, zone: usize) -> bool {
        self.counts[zone] += 1;
        let enough = self.counts[zone] >= self.adaptation.occurrences;
        if enough {
            self.counts[zone] = 0;
        }
        enough
    }

    fn forget_other_zones(&mut self, zone: Zone) {
        if zone != Zone::Substantial {
            self.counts[0] = 0;
        }
        if zone != Zone::Moderate {
            self.counts[1] = 0;
        }
    }
}

impl Slot for AdaptiveTrigger {
    fn events(&self, profile: &Profile) -> EventSet {
        self.reports.events(profile)
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.reports.on_event(event, view, context);
    }

    fn deadline(&self) -> Option<Time> {
        self.reports.deadline()
    }
}

impl LossDetection for AdaptiveTrigger {
    copied!(LossDetection);

    fn holes(&mut self, sack: &SackView<'_>, view: &View<'_>) -> Holes {
        self.adapt(self.free_share(sack, view));
        self.reports.holes(sack, view)
    }

    fn missing(&mut self, chunk: &Missing, sack: &SackView<'_>, view: &View<'_>) -> MissingVerdict {
        self.reports.missing(chunk, sack, view)
    }

    fn timed_out(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        self.reports.timed_out(chunk, view)
    }

    fn due(&mut self, view: &View<'_>) -> LossTasks {
        self.reports.due(view)
    }

    fn overdue(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        self.reports.overdue(chunk, view)
    }
}

#[cfg(test)]
mod tests;

//! `rack`: loss detection by time, and tail loss probes.
//!
//! RACK-TLP (RFC 8985), per path: a chunk is lost if a chunk sent later on its path has been delivered and its own acknowledgement
//! is overdue, regardless of the number of transmissions. A probe elicits the acknowledgement of a tail.

use anabranch_core::policy::{
    AckedTransmission, Context, Event, EventKind, EventSet, Holes, LossCause, LossDetection, LossTasks,
    Missing, MissingVerdict, PathFacts, Policies, SackDone, SackView, SendKind, SentTransmission, Slot, View,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};
use anabranch_core::{MAX_PATHS, PathId, PathState};

use crate::component::rack::record::Record;
use crate::component::rack::tail::Tail;
use crate::definition::{Card, Choice, Component, Kind, Parameter, Role, Value, Values};

pub(crate) const FILE: &str = file!();

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "divisor",
        kind: Kind::Count { min: 1, max: 100 },
        unit: "parts",
        default: Value::Number(4),
        about: "fraction of the minimum round-trip time in which the reordering window grows",
        source: "RFC 8985 section 6.2 step 4",
    },
    Parameter::switch(
        "reports",
        true,
        "enough missing reports close the reordering window while no reordering was seen",
        "RFC 8985 section 6.2 step 4: DupThresh",
    ),
    Parameter::switch("tail-probe", true, "probe a tail without acknowledgements", "RFC 8985 section 7"),
    Parameter::switch(
        "recovery-probe",
        false,
        "probe tails in recovery too",
        "this project; RFC 8985 section 7.2 leaves them to T3, which waits a second or more",
    ),
    Parameter::switch(
        "repeated-probes",
        false,
        "probe a tail until an answer arrives or T3 expires",
        "this project, as RFC 9002 section 6.2; RFC 8985 section 7.3 sends one probe",
    ),
    Parameter {
        name: "ack-delay",
        kind: Kind::Milliseconds { min: 0, max: 500 },
        unit: "ms",
        default: Value::Number(200),
        about: "longest delay of the peer's SACKs, for the probe of a single chunk",
        source: "RFC 8985 section 7.2: TLP.max_ack_delay; RFC 9260 section 6.2: 200 ms",
    },
];

const CARD: Card = Card {
    summary: &[
        "On each path a chunk is lost if data that was sent later on the same path has been delivered, and a",
        "round trip plus a reordering window has passed since its transmission. This applies to retransmissions",
        "too, whose loss missing reports cannot detect. The window grows when retransmissions are spurious.",
        "Two round trips after the last transmission or acknowledgement on a path, its latest chunk is",
        "retransmitted as a probe. T3 remains as the last resort.",
    ],
    equations: &[record::RULES, tail::RULES, tail::REPEATED],
    choices: &[&[
        Choice {
            question: "TCP has one path. How does RACK work with several?",
            answer: "Every variable belongs to a path, since order and round trips have no meaning across paths. A round of \
                     duplicate reports ends when a chunk arrives that was sent on the path after its beginning.",
            parameter: "",
        },
        Choice {
            question: "What are DupThresh and segs_sacked?",
            answer: "The missing reports and the trigger of the scheme to which it is added, chunk by chunk.",
            parameter: "reports",
        },
        Choice {
            question: "Why is there one probe for a tail?",
            answer: "RFC 8985 has one, and T3 then waits a second or more. A burst of losses that includes the probe ends \
                     after some packets, which further probes provide.",
            parameter: "repeated-probes",
        },
        Choice {
            question: "Which data does a probe send?",
            answer: "Always the latest chunk of the path. RFC 8985 prefers new data, independently of the window. A loss \
                     policy does not choose new data here.",
            parameter: "tail-probe",
        },
        Choice {
            question: "What is the effect of a loss that only the probe repaired (section 7.4)?",
            answer: "None: no SACK distinguishes a chunk that arrived late from one that its probe replaced, unless it reports \
                     a duplicate.",
            parameter: "",
        },
        Choice {
            question: "A spurious probe is reported as a duplicate. Does it widen the window?",
            answer: "No: it was sent without evidence of a loss.",
            parameter: "",
        },
        Choice {
            question: "Which chunks does T3 mark as lost (section 6.3)?",
            answer: "The same as without RACK: all of the path (RFC 9260 section 6.3.3 E3). PTO is not limited by the \
                     remaining time of T3; T3 ends the wait if it expires first.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "rack",
    about: "Detects losses by time instead of only by counts, including those of retransmissions, and probes tails",
    source: "RFC 8985 (RACK-TLP), applied to each path",
    role: Role::LossDetection,
    needs_multipath: false,
    parameters: PARAMETERS,
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let settings = RackSettings {
        divisor: values.number("divisor"),
        reports_count: values.switch("reports"),
        tail_probe: values.switch("tail-probe"),
        recovery_probe: values.switch("recovery-probe"),
        repeated_probes: values.switch("repeated-probes"),
        ack_delay: values.milliseconds("ack-delay"),
    };
    Policies { loss: Box::new(Rack::new(policies.loss, settings)), ..policies }
}

mod record;
mod tail;

/// Settings that RFC 8985 leaves open, and its optional parts.
#[derive(Clone, Copy, Debug)]
pub struct RackSettings {
    /// Divisor of the minimum round-trip time for the steps of the reordering window (RFC 8985 section 6.2 step 4: 4).
    pub divisor: u32,
    /// Set if enough missing reports close the reordering window while no reordering was observed (same step).
    pub reports_count: bool,
    /// Enables tail loss probes (section 7).
    pub tail_probe: bool,
    /// Enables probes in recovery and beside a hole.
    pub recovery_probe: bool,
    /// Repeats an unanswered probe until T3 expires (RFC 8985 section 7.3: one).
    pub repeated_probes: bool,
    /// Maximum delay of a peer's acknowledgement (section 7.2, TLP.max_ack_delay).
    pub ack_delay: Span,
}

/// Loss detection by time, around a policy that counts missing reports.
pub struct Rack {
    inner: Box<dyn LossDetection>,
    settings: RackSettings,
    records: [Record; MAX_PATHS],
    tails: [Tail; MAX_PATHS],
    /// Highest TSN sent.
    highest_sent: u64,
    /// Set if the current SACK has left a hole.
    judging: bool,
}

impl Rack {
    /// Creates the policy. `inner` counts the reports and decides when they suffice.
    pub fn new(inner: Box<dyn LossDetection>, settings: RackSettings) -> Self {
        Rack {
            inner,
            settings,
            records: [Record::default(); MAX_PATHS],
            tails: [Tail::default(); MAX_PATHS],
            highest_sent: 0,
            judging: false,
        }
    }

    fn forget(&mut self, path: PathId) {
        self.records[path.index()] = Record::default();
        self.tails[path.index()] = Tail::default();
    }

    /// Returns `true` if losses of this path are detected without a probe.
    fn is_watched(&self, facts: &PathFacts) -> bool {
        !self.settings.recovery_probe && self.records[facts.id.index()].is_watched(facts)
    }

    fn sent(&mut self, sent: &SentTransmission, view: &View<'_>) {
        self.highest_sent = self.highest_sent.max(sent.tsn);
        let watched = self.is_watched(view.path(sent.path));
        let tail = &mut self.tails[sent.path.index()];
        match sent.kind {
            SendKind::TailProbe => {
                tail.probed(sent.tsn, view.now);
                let facts = view.path(sent.path);
                if self.settings.repeated_probes {
                    tail.arm(facts.in_flight.max(sent.bytes), watched, facts, &self.settings, view.now);
                }
            }
            // It exceeds a closed window, and data that the peer drops for lack of room needs no tail probe.
            SendKind::WindowProbe => {}
            // Section 7.2. A chunk that was lost on another path is new data on this one; in recovery of the path itself it is not
            // armed.
            SendKind::New | SendKind::Retransmission | SendKind::Copy | SendKind::HeadOfLine => {
                let facts = view.path(sent.path);
                let in_flight = facts.in_flight.max(sent.bytes);
                tail.arm(in_flight, watched, facts, &self.settings, view.now);
            }
        }
    }

    fn acked(&mut self, acked: &AckedTransmission, view: &View<'_>) {
        self.records[acked.path.index()].acked(acked, view.path(acked.path), view.now);
        for (index, tail) in self.tails.iter_mut().enumerate() {
            tail.acked(acked.tsn, index == acked.path.index());
        }
    }

    fn sack_done(&mut self, done: &SackDone<'_>, view: &View<'_>) {
        if !std::mem::take(&mut self.judging) {
            self.records.iter_mut().for_each(Record::no_hole);
        }
        for (facts, ack) in view.paths.iter().zip(done.paths) {
            let record = &mut self.records[facts.id.index()];
            let tail = &mut self.tails[facts.id.index()];
            record.sack_done(ack.in_flight_after, done.cumulative, facts, view.now);
            if ack.in_flight_after.is_zero() {
                tail.disarm();
            } else if !ack.newly_acked().is_zero() {
                // Section 7.2: acknowledged data restarts the timer. On one of several paths, gap ack blocks acknowledge in order
                // while the path has no hole.
                let watched = !self.settings.recovery_probe && record.is_watched(facts);
                tail.arm(ack.in_flight_after, watched, facts, &self.settings, view.now);
            }
        }
    }

    fn loss_event(&mut self, path: PathId, cause: LossCause) {
        // Section 7.3: in recovery other timers cover the tail.
        self.tails[path.index()].recovery_begins();
        if cause == LossCause::Timeout {
            self.records[path.index()].timed_out(self.highest_sent);
        }
    }
}

impl Slot for Rack {
    fn events(&self, profile: &Profile) -> EventSet {
        EventSet::of(&[
            EventKind::PathAdded,
            EventKind::PathRemoved,
            EventKind::PathState,
            EventKind::Sent,
            EventKind::Acked,
            EventKind::SackDone,
            EventKind::Lost,
            EventKind::Abandoned,
            EventKind::LossEvent,
            EventKind::Spurious,
        ])
        .union(self.inner.events(profile))
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.inner.on_event(event, view, context);
        match event {
            Event::PathAdded(path) | Event::PathRemoved(path) => self.forget(*path),
            Event::PathState { path, to, .. } if *to != PathState::Active => {
                self.tails[path.index()].disarm();
            }
            Event::Sent(sent) => self.sent(sent, view),
            Event::Acked(acked) => self.acked(acked, view),
            Event::Spurious { path, tsn, .. } => {
                // An unnecessary probe does not indicate reordering (section 7.4.2).
                if !self.tails[path.index()].was_probed_with(*tsn) {
                    self.records[path.index()].spurious(view.now);
                }
            }
            Event::SackDone(done) => self.sack_done(done, view),
            Event::Lost { tsn, .. } | Event::Abandoned { tsn, .. } => {
                self.tails.iter_mut().for_each(|tail| tail.lost(*tsn));
            }
            Event::LossEvent { path, cause } => self.loss_event(*path, *cause),
            Event::PathState { .. }
            | Event::PathRebound(_)
            | Event::Established
            | Event::SendOpportunity(_)
            | Event::Bound { .. }
            | Event::Unbound { .. }
            | Event::RttSample { .. }
            | Event::Blocked { .. }
            | Event::Idle(_)
            | Event::Deadline => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        let reordering = self.records.iter().filter_map(Record::deadline);
        let tails = self.tails.iter().filter_map(Tail::deadline);
        reordering.chain(tails).chain(self.inner.deadline()).min()
    }
}

impl LossDetection for Rack {
    fn copied(&self) -> Option<Box<dyn LossDetection>> {
        Some(Box::new(Rack { inner: self.inner.copied()?, ..*self }))
    }

    /// Step 5 checks chunks sent before the latest delivered transmission.
    fn holes(&mut self, sack: &SackView<'_>, view: &View<'_>) -> Holes {
        // Section 6.2 step 5: every acknowledgement rearms the reordering timer.
        self.judging = true;
        self.records.iter_mut().for_each(Record::begin_judging);
        let Holes::SentBefore(mut bounds) = self.inner.holes(sack, view) else { return Holes::All };
        for (bound, record) in bounds.iter_mut().zip(&self.records) {
            *bound = record.latest().max(*bound);
        }
        Holes::SentBefore(bounds)
    }

    fn missing(&mut self, chunk: &Missing, sack: &SackView<'_>, view: &View<'_>) -> MissingVerdict {
        let counted = self.inner.missing(chunk, sack, view);
        let enough = self.settings.reports_count && counted.lost;
        let record = &mut self.records[chunk.path.index()];
        let lost = record.is_lost(chunk, enough, &self.settings, view);
        MissingVerdict { reports: counted.reports, lost }
    }

    /// T3 is the last resort, and marks the same chunks as without RACK (RFC 9260 section 6.3.3 E3).
    fn timed_out(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        self.inner.timed_out(chunk, view)
    }

    fn due(&mut self, view: &View<'_>) -> LossTasks {
        let mut tasks = self.inner.due(view);
        let mut is_due = false;
        for record in &mut self.records {
            is_due |= record.timer_is_due(view.now);
        }
        if is_due {
            let sent_before_latest = Holes::SentBefore(self.records.map(|record| record.latest()));
            tasks.recheck = Some(tasks.recheck.map_or(sent_before_latest, |_| Holes::All));
        }
        for facts in view.paths {
            let watched = self.is_watched(facts);
            if self.tails[facts.id.index()].is_due(watched, facts, view.now) {
                tasks.probes.insert(facts.id);
                if self.tails[facts.id.index()].repeats() {
                    tasks.repeated.insert(facts.id);
                }
            }
        }
        tasks
    }

    fn overdue(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        let record = &mut self.records[chunk.path.index()];
        record.is_lost(chunk, false, &self.settings, view) || self.inner.overdue(chunk, view)
    }
}

#[cfg(test)]
mod tests;

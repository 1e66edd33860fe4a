//! Congestion control of the standard on every path (RFC 9260 section 7.2), with CMT's choice of the acknowledgements that let a
//! window grow. The amounts of growth and reduction are replaceable rules.

use anabranch_core::policy::{
    AckedTransmission, CongestionControl, Context, Event, EventKind, EventSet, LivenessProof, LossCause,
    Pacing, PathAck, PathFacts, Reason, SackDone, Slot, StateCause, View, Window,
};
use anabranch_core::profile::{IdleDecay, InitialSsthresh, Profile, SlowStartExit};
use anabranch_core::time::Time;
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId, PathState};

use crate::congestion::cut::Halving;
use crate::congestion::full_use::in_full_use;
use crate::congestion::growth::StandardGrowth;
use crate::congestion::slow_start_exit::RoundTrips;
use crate::congestion::{Acknowledged, Cut, Growth, Pace, PathLoss, Unpaced};
use crate::definition::{ChoiceParameter, Equation, Parameter, Values};

pub(crate) const PF_RETURN: Equation = Equation {
    name: "PF, return",
    rule: "HEARTBEAT-ACK: active, errors = 0, cwnd = 1 M (PF1) or 2 M (PF2), ssthresh as T3 left it; acknowledgement of a \
           chunk sent once: active, errors = 0, cwnd as it is",
    file: file!(),
};

pub(crate) const PF: ChoiceParameter<u64> = ChoiceParameter {
    name: "pf",
    options: &[("pf1", 1), ("pf2", 2)],
    default: "pf2",
    about: "window of a path after an answered probe: one chunk (pf1) or two (pf2)",
    source: "Natarajan 2009; ns-2's default is two",
};

pub(crate) const fn cuc(default: bool) -> Parameter {
    Parameter::switch(
        "cuc",
        default,
        "a path's window grows with its own pseudo-cumulative TSN",
        "Iyengar 2006, CUC version 2",
    )
}

pub(crate) const FIRST_WINDOW: ChoiceParameter<FirstWindow> = ChoiceParameter {
    name: "initial-window",
    options: &[("shared", FirstWindow::Shared), ("whole", FirstWindow::Whole)],
    default: "shared",
    about: "initial windows: four chunks shared by all paths, or the profile's for each",
    source: "INET and usrsctp share it",
};

pub(crate) const SLOW_START: Equation = Equation {
    name: "RFC 9260 section 7.2.1, slow start",
    rule: "cwnd <= ssthresh, and cwnd was in full use when the SACK arrived: cwnd += min(bytes newly acknowledged, M), with M \
           the largest DATA chunk of the path",
    file: file!(),
};

pub(crate) const AVOIDANCE: Equation = Equation {
    name: "RFC 9260 section 7.2.2, congestion avoidance",
    rule: "cwnd > ssthresh: partial_bytes_acked += bytes newly acknowledged; once it reaches cwnd, and cwnd was in full use: \
           partial_bytes_acked -= cwnd, cwnd += M",
    file: file!(),
};

pub(crate) const CUMULATIVE_GROWTH: Equation = Equation {
    name: "RFC 9260 section 7.2.1, growth",
    rule: "windows grow only on a SACK that advances the association's cumulative TSN",
    file: file!(),
};

pub(crate) const CUT: Equation = Equation {
    name: "RFC 9260 section 7.2.3, loss",
    rule: "ssthresh = max(cwnd / 2, 4 M); fast retransmit: cwnd = ssthresh, once per window of data; T3: cwnd = M. The window \
           of the path on which the chunk was last sent is reduced",
    file: file!(),
};

pub(crate) const CUC_GROWTH: Equation = Equation {
    name: "CUC version 2, growth",
    rule: "a path's window may grow on a SACK that advances the path's pseudo-cumulative TSN, independently of the \
           association's",
    file: file!(),
};

pub(crate) const SHARED_FIRST_WINDOW: Equation = Equation {
    name: "first window",
    rule: "min(4 M / n, max(2 M, 4380)), rounded up, and at least M, with n paths",
    file: file!(),
};

/// Condition for acknowledgements that increase a path's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthGate {
    /// Acknowledgements that advance the association's cumulative TSN (RFC 9260 section 7.2.1).
    Cumulative,
    /// Acknowledgements that advance the path's pseudo-cumulative TSN: CMT's window update, CUC version 2 (Iyengar 2006).
    PseudoCumulative,
}

impl GrowthGate {
    /// Returns the gate that the parameter `cuc` selects.
    pub(crate) fn from_values(values: &Values) -> Self {
        if values.switch("cuc") { GrowthGate::PseudoCumulative } else { GrowthGate::Cumulative }
    }
}

/// Initial window of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstWindow {
    /// The profile's initial window on every path.
    Whole,
    /// The four chunks of RFC 9260 section 7.2.1 shared between the paths: min(4 M / n, max(2 M, target)), rounded up, and at least
    /// M. Dreibholz's implementation in INET does this.
    Shared,
}

/// Slow start, congestion avoidance and reduction, with a separate window per path.
#[derive(Debug)]
pub struct WindowControl {
    gate: GrowthGate,
    first_window: FirstWindow,
    /// Window of a path that returns from potentially failed, in largest chunks; `None` leaves it unchanged.
    window_after_probe: Option<u64>,
    growth: Box<dyn Growth>,
    cut: Box<dyn Cut>,
    pace: Box<dyn Pace>,
    //= docs/rfc9260.txt#section-7.2
    //# Unlike TCP, an SCTP sender MUST keep a set of the control variables cwnd, ssthresh, and partial_bytes_acked for
    //# EACH destination address of its peer (when its peer is multi-homed).
    windows: [Window; MAX_PATHS],
    reasons: [Reason; MAX_PATHS],
    /// Time of each path's latest transmission when its window decayed last. If it is still the latest, the window has decayed
    /// already.
    decayed_after: [Option<Time>; MAX_PATHS],
    round_trips: [RoundTrips; MAX_PATHS],
}

impl WindowControl {
    /// Creates the standard's growth and halving, behind a growth gate.
    pub fn new(gate: GrowthGate) -> Self {
        WindowControl {
            gate,
            first_window: FirstWindow::Whole,
            window_after_probe: None,
            growth: Box::new(StandardGrowth),
            cut: Box::new(Halving),
            pace: Box::new(Unpaced),
            windows: [Window::default(); MAX_PATHS],
            reasons: [Reason::rule("initial window"); MAX_PATHS],
            decayed_after: [None; MAX_PATHS],
            round_trips: [RoundTrips::default(); MAX_PATHS],
        }
    }

    /// Replaces the growth rule.
    pub fn with_growth(self, growth: impl Growth + 'static) -> Self {
        WindowControl { growth: Box::new(growth), ..self }
    }

    /// Replaces the reduction rule.
    pub fn with_cut(self, cut: impl Cut + 'static) -> Self {
        WindowControl { cut: Box::new(cut), ..self }
    }

    /// Paces the paths.
    pub fn with_pace(self, pace: impl Pace + 'static) -> Self {
        WindowControl { pace: Box::new(pace), ..self }
    }

    /// Replaces the initial windows.
    pub fn with_first_window(self, first_window: FirstWindow) -> Self {
        WindowControl { first_window, ..self }
    }

    /// Sets the window, in largest chunks, of a path whose potential failure a HEARTBEAT-ACK ends (CMT-PF1: 1, CMT-PF2: 2).
    pub fn with_window_after_probe(self, chunks: u64) -> Self {
        WindowControl { window_after_probe: Some(chunks), ..self }
    }

    fn begin(&mut self, path: PathId, view: &View<'_>) {
        let ssthresh = match view.profile.initial_ssthresh {
            InitialSsthresh::Fixed(bytes) => bytes,
            //= docs/rfc9260.txt#section-7.2.1
            //# *  The initial value of ssthresh SHOULD be arbitrarily high (e.g., the size of the largest-possible
            //# advertised window).
            InitialSsthresh::PeerWindow => peer_window(view),
        };
        let cwnd = self.first_window.of(path, view);
        self.windows[path.index()] = Window { cwnd, ssthresh, partial_bytes_acked: ChunkBytes::ZERO };
        self.reasons[path.index()] = Reason::rule("initial window");
        self.decayed_after[path.index()] = None;
        self.round_trips[path.index()] = RoundTrips::default();
    }

    /// Ends slow start when the path's queue grows, if the profile enables this.
    fn consider_leaving_slow_start(&mut self, acked: &AckedTransmission, view: &View<'_>) {
        let path = acked.path.index();
        let window = self.windows[path];
        if view.profile.slow_start_exit == SlowStartExit::AtLoss || window.cwnd >= window.ssthresh {
            return;
        }
        if self.round_trips[path].rising(acked, view.now) {
            self.windows[path].ssthresh = window.cwnd;
            self.reasons[path] = Reason::rule("round-trip times increase: slow start ends");
        }
    }

    //= docs/rfc9260.txt#section-7.2
    //# The slow-start and congestion avoidance algorithms MUST be used by an endpoint to control the amount of data being
    //# injected into the network.
    fn sack(&mut self, done: &SackDone<'_>, view: &View<'_>) {
        //= docs/rfc9260.txt#section-7.2.1
        //# In instances where its peer endpoint is multi-homed, if an endpoint receives a SACK chunk that results in
        //# updating the cwnd, then it SHOULD update its cwnd (or cwnds) apportioned to the destination addresses to which
        //# it transmitted the acknowledged data.
        for (index, ack) in done.paths.iter().enumerate() {
            let path = PathId::new(index);
            self.count_partial(path, ack, done.new_cumulative, view);
            let gate = match self.gate {
                GrowthGate::Cumulative => done.new_cumulative,
                GrowthGate::PseudoCumulative => ack.new_pseudo_cumulative,
            };
            let recovering = !view.profile.growth_in_recovery && view.path(path).recovery_point.is_some();
            if gate && !recovering && !ack.newly_acked().is_zero() {
                self.grow(path, ack, view);
            }
            if ack.in_flight_after.is_zero() {
                self.windows[index].partial_bytes_acked = ChunkBytes::ZERO;
            }
        }
    }

    /// RFC 9260 section 7.2.2: bytes acknowledged in congestion avoidance add up to the next increment.
    fn count_partial(&mut self, path: PathId, ack: &PathAck, new_cumulative: bool, view: &View<'_>) {
        let window = &mut self.windows[path.index()];
        if window.cwnd <= window.ssthresh {
            return;
        }
        let full = in_full_use(ack.outstanding_at_start, window.cwnd, path, view);
        if !view.profile.gap_acks_count_when_not_full {
            window.partial_bytes_acked += ack.newly_acked();
            if !full {
                window.partial_bytes_acked = window.partial_bytes_acked.min(window.cwnd);
            }
            return;
        }
        if full {
            window.partial_bytes_acked += ack.cumulative;
        }
        window.partial_bytes_acked += match self.gate {
            GrowthGate::PseudoCumulative => ack.gap_after_pseudo,
            GrowthGate::Cumulative if new_cumulative => ack.gap,
            GrowthGate::Cumulative => ChunkBytes::ZERO,
        };
    }

    //= docs/rfc9260.txt#section-7.2
    //# In some situations, it might be beneficial for an SCTP sender to be more conservative than the algorithms allow;
    //# however, an SCTP sender MUST NOT be more aggressive than the following algorithms allow.
    fn grow(&mut self, path: PathId, ack: &PathAck, view: &View<'_>) {
        // A window grows only if it was fully used: RFC 9260 sections 7.2.1 and 7.2.2.
        //= docs/rfc9260.txt#section-7.2.1
        //# *  When cwnd is less than or equal to ssthresh, an SCTP endpoint MUST use the slow-start algorithm to increase
        //# cwnd only if the current congestion window is being fully utilized and the data sender is not in Fast
        //# Recovery.
        //= docs/rfc9260.txt#section-7.2.1
        //# Only when these two conditions are met can the cwnd be increased; otherwise, the cwnd MUST NOT be increased.
        if !in_full_use(ack.in_flight_before, self.windows[path.index()].cwnd, path, view) {
            return;
        }
        let acknowledged = Acknowledged { path, bytes: ack.newly_acked(), windows: &self.windows, view };
        if let Some(change) = self.growth.grow(&acknowledged) {
            self.set_window(path, change.window, change.reason, view);
        }
    }

    fn answer_loss(&mut self, path: PathId, cause: LossCause, view: &View<'_>) {
        let change = self.cut.cut(&PathLoss { path, cause, windows: &self.windows, view });
        self.set_window(path, change.window, change.reason, view);
    }

    //= docs/rfc9260.txt#section-6.1
    //# Also note that the cwnd SHOULD be adjusted according to Section 7.2.1.
    //= docs/rfc9260.txt#section-7.1
    //# The parameters SHOULD decay if the address is not used for a long enough time period.
    fn decay(&mut self, path: PathId, view: &View<'_>) {
        let PathFacts { largest_chunk: largest, last_sent_at, .. } = *view.path(path);
        let first = std::mem::replace(&mut self.decayed_after[path.index()], last_sent_at) != last_sent_at;
        let window = &mut self.windows[path.index()];
        //= docs/rfc9260.txt#section-7.2.1
        //# *  While the endpoint does not transmit data on a given transport address, the cwnd of the transport address
        //# SHOULD be adjusted to max(cwnd / 2, 4 * PMDCS) once per RTO.
        //= docs/rfc9260.txt#section-7.2.1
        //# Before the first cwnd adjustment, the ssthresh of the transport address SHOULD be set to the cwnd.
        //= docs/rfc9260.txt#section-7.2.2
        //# *  Same as in the slow start, when the sender does not transmit DATA chunks on a given transport address, the
        //# cwnd of the transport address SHOULD be adjusted to max(cwnd / 2, 4 * PMDCS) per RTO.
        let decayed = window.cwnd.over(2).max(largest.times(4));
        match view.profile.idle_decay {
            IdleDecay::Rfc9260 => {
                if first {
                    window.ssthresh = window.ssthresh.max(window.cwnd);
                }
                window.cwnd = window.cwnd.min(decayed);
            }
            IdleDecay::Ns2 if window.cwnd > largest.times(2) => window.cwnd = decayed,
            IdleDecay::Ns2 => {}
        }
        self.reasons[path.index()] = Reason::rule("idle for an RTO");
    }

    fn restored(&mut self, path: PathId, from: PathState, cause: StateCause, view: &View<'_>) {
        let largest = view.path(path).largest_chunk;
        let window = &mut self.windows[path.index()];
        match cause {
            StateCause::Promoted(_) => {
                window.cwnd = largest;
                self.reasons[path.index()] = Reason::rule("promoted with one chunk");
            }
            // A path that failed by silence alone may carry its data late: its window is kept.
            StateCause::Proof(LivenessProof::Heartbeat)
                if from == PathState::PotentiallyFailed && view.path(path).error_count > 0 =>
            {
                if let Some(chunks) = self.window_after_probe {
                    window.cwnd = largest.times(chunks);
                    self.reasons[path.index()] = Reason::rule("its probe was answered");
                }
            }
            _ => {}
        }
    }
}

impl FirstWindow {
    fn of(self, path: PathId, view: &View<'_>) -> ChunkBytes {
        let PathFacts { largest_chunk: largest, ipv6, .. } = *view.path(path);
        let whole = view.profile.initial_window;
        match self {
            FirstWindow::Whole => whole.for_chunk(largest, ipv6),
            FirstWindow::Shared => {
                let paths = view.paths.iter().filter(|p| p.state != PathState::Inactive).count().max(1);
                let share = ChunkBytes::new(largest.times(4).get().div_ceil(paths as u64));
                share.min(whole.large_chunks(largest, ipv6)).max(largest)
            }
        }
    }
}

fn peer_window(view: &View<'_>) -> ChunkBytes {
    ChunkBytes::new(view.association.peer_window_initial.get())
}

impl Slot for WindowControl {
    fn events(&self, profile: &Profile) -> EventSet {
        let own = EventSet::of(&[
            EventKind::PathAdded,
            EventKind::Established,
            EventKind::SackDone,
            EventKind::LossEvent,
            EventKind::PathState,
            EventKind::Idle,
        ]);
        let round_trips = match profile.slow_start_exit {
            SlowStartExit::AtLoss => EventSet::NONE,
            SlowStartExit::AtDelay => EventSet::of(&[EventKind::Acked]),
        };
        let rules = self.growth.events().union(self.cut.events()).union(self.pace.events());
        own.union(round_trips).union(rules)
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, _: &mut Context<'_>) {
        self.growth.on_event(event, view);
        self.cut.on_event(event, view);
        match *event {
            Event::PathAdded(path) => self.begin(path, view),
            Event::Established => view.paths.iter().for_each(|p| self.begin(p.id, view)),
            Event::Acked(acked) => self.consider_leaving_slow_start(acked, view),
            Event::SackDone(done) => self.sack(done, view),
            Event::LossEvent { path, cause } => self.answer_loss(path, cause, view),
            Event::PathState { path, from, to: PathState::Active, cause } => {
                self.restored(path, from, cause, view);
            }
            Event::Idle(path) => self.decay(path, view),
            _ => {}
        }
        self.pace.on_event(event, &self.windows, view);
    }
}

impl CongestionControl for WindowControl {
    fn copied(&self) -> Option<Box<dyn CongestionControl>> {
        Some(Box::new(WindowControl {
            growth: self.growth.copied()?,
            cut: self.cut.copied()?,
            pace: self.pace.copied()?,
            ..*self
        }))
    }

    fn window(&self, path: PathId) -> Window {
        self.windows[path.index()]
    }

    fn pacing(&self, path: PathId) -> Pacing {
        self.pace.pacing(path)
    }

    fn last_reason(&self, path: PathId) -> Reason {
        self.reasons[path.index()]
    }

    fn set_window(&mut self, path: PathId, window: Window, reason: Reason, view: &View<'_>) {
        let cwnd = window.cwnd.max(view.path(path).largest_chunk);
        self.windows[path.index()] = Window { cwnd, ..window };
        self.reasons[path.index()] = reason;
    }
}

#[cfg(test)]
mod tests;

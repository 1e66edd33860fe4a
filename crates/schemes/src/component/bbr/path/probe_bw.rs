//! ProbeBW (draft-ietf-ccwg-bbr-06 section 5.3.3): cycles below, at and above the rate of the path.

use anabranch_core::policy::{Context, Limiter};
use anabranch_core::time::{Span, Time};
use anabranch_core::units::ChunkBytes;

use crate::component::bbr::path::loss::THRESHOLD;
use crate::component::bbr::path::{Ack, LEAST_CHUNKS, PathBbr};
use crate::component::bbr::scaled;
use crate::component::bbr::state::State;
use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[
    Equation {
        name: "section 5.3.3, cycle",
        rule: text!(
            "DOWN until in flight <= bdp and <= {} inflight_longterm; CRUISE until {} to {} s or \
             min(bdp, cwnd) / M rounds after DOWN began, at most {} or {} rounds; REFILL for a round; \
             UP until the path is full or loses over {} %",
            1.0 - HEADROOM,
            WAIT_SECONDS,
            WAIT_SECONDS + 1.0,
            RENO_ROUNDS - 1,
            RENO_ROUNDS,
            100.0 * THRESHOLD,
        ),
        file: file!(),
    },
    Equation {
        name: "section 5.3.3.6, precautionary probing",
        rule: "after a probe with too many losses the next UP ends at inflight_longterm; if it loses little, another one \
               follows",
        file: file!(),
    },
    Equation {
        name: "section 5.3.3.9, inflight_longterm",
        rule: "in UP and in full use it grows by 1, 2, 4, … M per round",
        file: file!(),
    },
];

/// Share of the bound that stays free for other flows (Headroom).
const HEADROOM: f64 = 0.15;
/// T_bbr: two seconds between two probes, plus up to one further second.
const WAIT_SECONDS: f64 = 2.0;
/// T_reno_bound.
const RENO_ROUNDS: u64 = 63;
/// Exponent limit: larger powers of two would divide any window to nothing.
const MOST_GROWTH_ROUNDS: u32 = 30;

/// Meaning of acknowledgements for the probe (ack_phase).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Feedback {
    /// There is no probe.
    #[default]
    None,
    /// The path is being filled before a probe.
    Refilling,
    /// The probe has started.
    Starting,
    /// The probe is in progress.
    UnderWay,
    /// The probe is over, and part of its data is still unacknowledged.
    Stopping,
}

/// Current or next probe for more bandwidth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    feedback: Feedback,
    /// Set while data sent by the probe is still being acknowledged or lost (is_bw_probe_sample).
    pub(super) unanswered: bool,
    /// Set if the previous probe ended because of losses (prev_probe_too_high).
    too_high: bool,
    /// Set if the previous probe ended as a precaution (prev_probe_precautionary).
    precautionary: bool,
    /// Bytes acknowledged since inflight_longterm grew, and the number that lets it grow by a chunk; `None` stops growth.
    acked: ChunkBytes,
    acked_per_chunk: Option<ChunkBytes>,
    growth_rounds: u32,
    wait: Span,
    cycle_began: Time,
}

impl Probe {
    /// Ends the probe for ProbeRTT.
    pub(super) fn stop(&mut self) {
        self.feedback = Feedback::Stopping;
    }

    /// Records that the probe lost too much.
    pub(super) fn end_lossy_probe(&mut self) {
        (self.too_high, self.unanswered) = (true, false);
    }
}

impl PathBbr {
    /// StartProbeBW_DOWN.
    pub(super) fn begin_down(&mut self, delivered: ChunkBytes, now: Time, context: &mut Context<'_>) {
        self.signals.reset();
        self.rounds.count_from(u64::from(context.coin()));
        self.rounds.begin(delivered);
        let probe = &mut self.probe;
        probe.acked_per_chunk = None;
        probe.wait = Span::from_secs_f64(WAIT_SECONDS + context.unit());
        probe.cycle_began = now;
        probe.feedback = Feedback::Stopping;
        self.state = State::Down;
    }

    /// StartProbeBW_REFILL.
    pub(super) fn begin_refill(&mut self, delivered: ChunkBytes) {
        self.bounds.forget_short_term();
        let probe = &mut self.probe;
        (probe.growth_rounds, probe.acked, probe.precautionary) = (0, ChunkBytes::ZERO, false);
        probe.feedback = Feedback::Refilling;
        self.rounds.begin(delivered);
        self.state = State::Refill;
    }

    /// StartProbeBW_UP.
    fn begin_up(&mut self, ack: &Ack<'_>) {
        self.probe.feedback = Feedback::Starting;
        self.probe.unanswered = true;
        self.rounds.begin(ack.facts.delivered);
        self.full_pipe.restart_search(ack.rate().unwrap_or_default());
        self.state = State::Up;
        self.raise_slope(ack.chunk());
    }

    /// Advances the cycle of the ProbeBW states (UpdateProbeBWCyclePhase).
    pub(super) fn advance_probe_bw(&mut self, ack: &Ack<'_>, limited: bool, context: &mut Context<'_>) {
        if !self.full_pipe.was_full() || self.adapt_longterm(ack, limited) {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(ack) => {
                self.begin_refill(ack.facts.delivered);
            }
            State::Down if self.is_time_to_cruise(ack) => self.state = State::Cruise,
            State::Refill if self.rounds.just_ended() => self.begin_up(ack),
            State::Up => self.advance_up(ack, context),
            _ => {}
        }
    }

    fn advance_up(&mut self, ack: &Ack<'_>, context: &mut Context<'_>) {
        if self.is_time_to_go_down(ack) {
            // The probe counts as not too high, unless data that it sent proves lost later.
            self.probe.too_high = false;
            self.begin_down(ack.facts.delivered, ack.now, context);
        }
    }

    /// Adapts the long-term bound to the feedback on a probe (AdaptLongTermModel). Returns `true` if it changed the state.
    fn adapt_longterm(&mut self, ack: &Ack<'_>, limited: bool) -> bool {
        if self.rounds.just_ended() && self.end_round_of_feedback(limited) {
            self.begin_refill(ack.facts.delivered);
            return true;
        }
        let Some(longterm) = self.bounds.inflight_longterm else { return false };
        if let Some(sample) = ack.sample().filter(|sample| !Self::is_inflight_too_high(Some(sample))) {
            self.bounds.inflight_longterm = Some(longterm.max(sample.stamps.in_flight));
            if self.state == State::Up {
                self.raise_longterm(ack);
            }
        }
        false
    }

    /// Ends a round. Returns `true` if a precautionary probe lost little, so that another one follows.
    fn end_round_of_feedback(&mut self, limited: bool) -> bool {
        match self.probe.feedback {
            Feedback::Starting => self.probe.feedback = Feedback::UnderWay,
            Feedback::Stopping => {
                (self.probe.unanswered, self.probe.feedback) = (false, Feedback::None);
                if self.state.is_probe_bw() && !limited {
                    self.cycle += 1;
                }
                return self.state.is_probe_bw() && self.probe.precautionary && !self.probe.too_high;
            }
            _ => {}
        }
        false
    }

    /// Returns `true` if the next probe for bandwidth is due (IsTimeToProbeBW).
    fn is_time_to_probe(&self, ack: &Ack<'_>) -> bool {
        let waited = ack.now > self.probe.cycle_began + self.probe.wait;
        let target = self.target_inflight(ack.facts).get() / ack.chunk().get().max(1);
        waited || self.rounds.since_probe() >= target.min(RENO_ROUNDS)
    }

    /// Returns `true` if the queue of the last probe is drained (IsTimeToCruise).
    fn is_time_to_cruise(&self, ack: &Ack<'_>) -> bool {
        let drained = self.with_budget(self.bdp(self.max_bw(), 1.0, ack.facts), ack.chunk());
        let headroom = self.with_headroom(ack.chunk());
        ack.in_flight() <= drained && headroom.is_none_or(|most| ack.in_flight() <= most)
    }

    /// Returns `true` if the probe has to end (IsTimeToGoDown).
    fn is_time_to_go_down(&mut self, ack: &Ack<'_>) -> bool {
        let longterm = self.bounds.inflight_longterm;
        if self.probe.too_high && longterm.is_some_and(|longterm| ack.in_flight() >= longterm) {
            self.probe.precautionary = true;
            return true;
        }
        if self.is_bounded_by_longterm(ack) {
            self.full_pipe.restart_search(ack.rate().unwrap_or_default());
            return false;
        }
        self.full_pipe.is_full()
    }

    /// Returns `true` if the window limits sending and inflight_longterm bounds the window (C.is_cwnd_limited in the draft).
    fn is_bounded_by_longterm(&self, ack: &Ack<'_>) -> bool {
        let full = ack.ack.in_flight_before >= self.cwnd || ack.facts.limiter == Limiter::Window;
        full && self.bounds.inflight_longterm.is_some_and(|longterm| self.cwnd >= longterm)
    }

    /// Returns the long-term bound minus headroom for other flows, or `None` without that bound (InflightWithHeadroom).
    pub(super) fn with_headroom(&self, chunk: ChunkBytes) -> Option<ChunkBytes> {
        let longterm = self.bounds.inflight_longterm?;
        let headroom = scaled(longterm, HEADROOM).max(chunk);
        Some((longterm - headroom).max(chunk.times(LEAST_CHUNKS)))
    }

    /// Doubles the growth per round of the long-term bound (RaiseInflightLongtermSlope).
    fn raise_slope(&mut self, chunk: ChunkBytes) {
        let growth = 1_u64 << self.probe.growth_rounds;
        self.probe.growth_rounds = (self.probe.growth_rounds + 1).min(MOST_GROWTH_ROUNDS);
        self.probe.acked_per_chunk = Some(self.cwnd.over(growth).max(chunk));
    }

    /// Raises the long-term bound by the bytes that a SACK acknowledges (ProbeInflightLongtermUpward).
    fn raise_longterm(&mut self, ack: &Ack<'_>) {
        if !self.is_bounded_by_longterm(ack) {
            return;
        }
        self.probe.acked += ack.ack.newly_acked();
        if let (Some(each), Some(longterm)) = (self.probe.acked_per_chunk, &mut self.bounds.inflight_longterm)
        {
            let chunks = self.probe.acked.get() / each.get().max(1);
            self.probe.acked -= each.times(chunks);
            *longterm += ack.chunk().times(chunks);
        }
        if self.rounds.just_ended() {
            self.raise_slope(ack.chunk());
        }
    }
}

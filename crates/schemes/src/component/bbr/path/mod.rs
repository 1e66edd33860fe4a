//! Control of one path (draft-ietf-ccwg-bbr-06 section 5.2): the effects of an acknowledgement, in the draft's order.

use anabranch_core::policy::{Context, DeliverySample, Limiter, Pacing, PathAck, PathFacts, Reason, Window};
use anabranch_core::time::{Rate, Time};
use anabranch_core::units::ChunkBytes;
use anabranch_core::windowed::WindowedMax;

use crate::component::bbr::aggregation::{Aggregation, Moment};
use crate::component::bbr::full_pipe::FullPipe;
use crate::component::bbr::min_rtt::MinRtt;
use crate::component::bbr::path::loss::{Recovery, Undo};
use crate::component::bbr::path::probe_bw::Probe;
use crate::component::bbr::rounds::Rounds;
use crate::component::bbr::signals::{Bounds, Signals};
use crate::component::bbr::state::{STARTUP_PACING_GAIN, State};
use crate::component::bbr::{scaled, scaled_rate, volume};
use crate::definition::{Equation, text};

pub(super) use loss::LostChunk;

mod loss;
mod probe_bw;
mod probe_rtt;
mod startup;
#[cfg(test)]
mod tests;

pub(super) const RULES: &[&[Equation]] = &[CONTROL, probe_bw::RULES, loss::RULES, probe_rtt::RULES];

const CONTROL: &[Equation] = &[
    Equation {
        name: "section 5.5.5, max_bw",
        rule: "maximum delivery rate of this ProbeBW cycle and the previous one; bw = min(max_bw, bw_shortterm)",
        file: file!(),
    },
    Equation {
        name: "section 5.6.2, rate",
        rule: text!("pacing_gain bw {}; it never decreases in Startup", PACING_MARGIN),
        file: file!(),
    },
    Equation {
        name: "section 5.6.4, window",
        rule: text!(
            "cwnd += newly acknowledged, up to cwnd_gain bw min_rtt + extra_acked, within the limits; at \
             least {} M",
            LEAST_CHUNKS,
        ),
        file: file!(),
    },
];

/// Window of the maximum bandwidth, in ProbeBW cycles (MaxBwFilterLen).
const BW_MEMORY_CYCLES: u64 = 2;
/// Factor that keeps the pacing rate 1 % below the estimated bandwidth (PacingMarginPercent).
const PACING_MARGIN: f64 = 0.99;
/// Minimum window in chunks (MinPipeCwnd). If the peer acknowledges every other packet, two packets are in flight while two are
/// being acknowledged.
const LEAST_CHUNKS: u64 = 4;
/// Bounds of send_quantum (section 5.6.3), the offload budget of a sender in user space (section 5.5.8.2).
const QUANTUM_MOST: ChunkBytes = ChunkBytes::new(65_536);
const QUANTUM_LEAST_CHUNKS: u64 = 2;
const QUANTUM_TIME: anabranch_core::time::Span = anabranch_core::time::Span::from_millis(1);
/// Slow start threshold above any window, and small enough that sums do not overflow.
const NO_THRESHOLD: ChunkBytes = ChunkBytes::new(1 << 40);

/// SACK that acknowledges data on the path.
#[derive(Clone, Copy)]
pub(super) struct Ack<'a> {
    pub(super) now: Time,
    pub(super) facts: &'a PathFacts,
    pub(super) ack: &'a PathAck,
}

impl Ack<'_> {
    /// C.inflight, without the newly acknowledged bytes.
    fn in_flight(&self) -> ChunkBytes {
        self.ack.in_flight_after
    }

    fn chunk(&self) -> ChunkBytes {
        self.facts.largest_chunk
    }

    fn sample(&self) -> Option<&DeliverySample> {
        self.ack.sample.as_ref()
    }

    fn rate(&self) -> Option<Rate> {
        self.sample().and_then(|sample| sample.rate)
    }
}

/// Congestion control state of one path.
#[derive(Clone)]
pub(super) struct PathBbr {
    state: State,
    rounds: Rounds,
    full_pipe: FullPipe,
    max_bw: WindowedMax<Rate>,
    /// Number of ProbeBW cycles, the time base of `max_bw`.
    cycle: u64,
    min_rtt: MinRtt,
    aggregation: Aggregation,
    signals: Signals,
    bounds: Bounds,
    probe: Probe,
    recovery: Recovery,
    undo: Undo,
    /// Bounds of ProbeRTT: samples of data sent after this time, before more than this was delivered, do not show the rate.
    withheld: Option<(Time, ChunkBytes)>,
    /// Set while sending resumes after an idle time, until the first acknowledgement.
    restarted: bool,
    initial: ChunkBytes,
    cwnd: ChunkBytes,
    rate: Option<Rate>,
    reason: Reason,
}

impl PathBbr {
    pub(super) fn new(initial: ChunkBytes) -> Self {
        PathBbr {
            state: State::Startup,
            rounds: Rounds::default(),
            full_pipe: FullPipe::default(),
            max_bw: WindowedMax::default(),
            cycle: 0,
            min_rtt: MinRtt::default(),
            aggregation: Aggregation::default(),
            signals: Signals::default(),
            bounds: Bounds::default(),
            probe: Probe::default(),
            recovery: Recovery::default(),
            undo: Undo::default(),
            withheld: None,
            restarted: false,
            initial,
            cwnd: initial,
            rate: None,
            reason: Reason::rule("initial window"),
        }
    }

    pub(super) fn window(&self) -> Window {
        // BBR has no threshold. Policies that check for slow start see it while the rate doubles.
        let ssthresh = if self.state == State::Startup { NO_THRESHOLD } else { self.cwnd };
        Window { cwnd: self.cwnd, ssthresh, partial_bytes_acked: ChunkBytes::ZERO }
    }

    pub(super) fn pacing(&self) -> Pacing {
        Pacing { rate: self.rate, in_flight_cap: None }
    }

    pub(super) fn reason(&self) -> Reason {
        self.reason
    }

    pub(super) fn set_window(&mut self, cwnd: ChunkBytes, reason: Reason) {
        (self.cwnd, self.reason) = (cwnd, reason);
    }

    /// Updates model and state with a SACK (UpdateOnACK, section 5.2.3).
    pub(super) fn acknowledge(&mut self, ack: &Ack<'_>, context: &mut Context<'_>) {
        self.end_recovery(ack);
        let limited = ack.sample().is_some_and(|sample| self.is_limited(sample));
        self.update_bandwidth(ack, limited);
        self.update_aggregation(ack);
        self.detect_full_pipe(ack, limited);
        self.advance_startup(ack);
        self.advance_drain(ack, context);
        self.advance_probe_bw(ack, limited, context);
        self.min_rtt.acknowledge(ack.sample().and_then(|sample| sample.rtt), ack.now);
        self.advance_probe_rtt(ack, context);
        self.signals.advance(ack.sample());
        self.set_rate(self.state.pacing_gain(), ack.facts);
        self.set_cwnd(ack);
        self.reason = Reason::figure(self.state.rule(), "bw_kbps", self.bw().as_bps() as f64 / 1e3);
    }

    /// RS.is_app_limited. The receive window counts as a limit of the network (section 4.1.1.3.1). Room that the application or
    /// other policies leave unused makes a sample application-limited.
    fn is_limited(&self, sample: &DeliverySample) -> bool {
        let stamps = &sample.stamps;
        let withheld =
            self.withheld.is_some_and(|(from, until)| stamps.sent_at >= from && stamps.delivered <= until);
        withheld || matches!(stamps.limiter, Limiter::Scheduler | Limiter::Application)
    }

    /// Updates delivery signals, rounds, bandwidth and congestion signals with a SACK (UpdateLatestDeliverySignals,
    /// UpdateCongestionSignals).
    fn update_bandwidth(&mut self, ack: &Ack<'_>, limited: bool) {
        let delivered = ack.facts.delivered;
        self.signals.record_delivery(ack.sample(), delivered);
        match ack.sample() {
            Some(sample) => self.rounds.acknowledge(sample.stamps.delivered, delivered),
            None => self.rounds.pass(),
        }
        if let Some(rate) = ack.rate().filter(|rate| !limited || *rate >= self.max_bw()) {
            self.max_bw.update(self.cycle, rate, BW_MEMORY_CYCLES - 1);
        }
        if !self.signals.just_ended() {
            return;
        }
        if let Some(reports) = self.signals.end_round() {
            self.end_round_with_losses(reports, ack);
        }
    }

    fn max_bw(&self) -> Rate {
        self.max_bw.get().unwrap_or_default()
    }

    /// Returns the estimated bandwidth: the maximum, limited by the short-term bound (BoundBWForModel).
    fn bw(&self) -> Rate {
        let max = self.max_bw();
        self.bounds.bw_shortterm.map_or(max, |bound| bound.min(max))
    }

    fn update_aggregation(&mut self, ack: &Ack<'_>) {
        let (round, was_full) = (self.rounds.count(), self.full_pipe.was_full());
        let moment = Moment { now: ack.now, round, was_full };
        self.aggregation.acknowledge(ack.ack.newly_acked(), self.cwnd, self.bw(), moment);
    }

    /// BDPMultiple. A path whose SACKs all return on another path has no minimum of its own and uses the smoothed round-trip time.
    fn bdp(&self, bw: Rate, gain: f64, facts: &PathFacts) -> ChunkBytes {
        match self.min_rtt.get().or(facts.rtt.smoothed) {
            Some(rtt) => scaled(volume(bw, rtt), gain),
            None => self.initial,
        }
    }

    /// Raises an amount in flight to the minimum that delayed acknowledgements and offload need (QuantizationBudget).
    fn with_budget(&self, inflight: ChunkBytes, chunk: ChunkBytes) -> ChunkBytes {
        let carried = volume(self.rate.unwrap_or_default(), QUANTUM_TIME);
        let quantum = carried.min(QUANTUM_MOST).max(chunk.times(QUANTUM_LEAST_CHUNKS));
        let inflight = inflight.max(quantum).max(chunk.times(LEAST_CHUNKS));
        if self.state == State::Up { inflight + chunk.times(2) } else { inflight }
    }

    /// Sets the pacing rate (SetPacingRateWithGain), from the initial window until a rate was measured (InitPacingRate).
    fn set_rate(&mut self, gain: f64, facts: &PathFacts) {
        if self.rate.is_none() {
            let nominal = facts.rtt.smoothed.map(|rtt| crate::component::bbr::rate(self.initial, rtt));
            self.rate = nominal.map(|rate| scaled_rate(rate, STARTUP_PACING_GAIN));
        }
        let rate = scaled_rate(self.bw(), gain * PACING_MARGIN);
        let known = self.max_bw.get().is_some();
        if known && (self.full_pipe.was_full() || self.rate.is_none_or(|present| rate > present)) {
            self.rate = Some(rate);
        }
    }

    /// Sets the window after a SACK (SetCwnd).
    fn set_cwnd(&mut self, ack: &Ack<'_>) {
        let bdp = self.bdp(self.bw(), self.state.cwnd_gain(), ack.facts);
        let most = self.with_budget(bdp + self.aggregation.get(), ack.chunk());
        let grown = self.cwnd + ack.ack.newly_acked();
        if self.full_pipe.was_full() {
            self.cwnd = grown.min(most);
        } else if self.cwnd < most || ack.facts.delivered < self.initial {
            self.cwnd = grown;
        }
        let least = ack.chunk().times(LEAST_CHUNKS);
        self.cwnd = self.cwnd.max(least);
        if self.state.is_probe_rtt() {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd(ack.facts));
        }
        if let Some(bound) = self.volume_bound(ack.chunk()) {
            self.cwnd = self.cwnd.min(bound.max(least));
        }
    }

    /// Returns the bound of the window in the current state, or `None` without a bound (BoundCwndForModel).
    fn volume_bound(&self, chunk: ChunkBytes) -> Option<ChunkBytes> {
        let longterm = match self.state {
            State::Startup | State::Drain { .. } => None,
            State::Cruise | State::ProbeRtt { .. } => self.with_headroom(chunk),
            State::Down | State::Refill | State::Up => self.bounds.inflight_longterm,
        };
        let both = [longterm, self.bounds.inflight_shortterm];
        both.into_iter().flatten().min()
    }

    /// Handles a transmission after nothing was in flight (section 5.4.1).
    pub(super) fn restart(&mut self, facts: &PathFacts, now: Time, context: &mut Context<'_>) {
        if !matches!(facts.limiter, Limiter::Scheduler | Limiter::Application) {
            return;
        }
        self.restarted = true;
        self.aggregation.restart(now);
        if self.state.is_probe_bw() {
            self.set_rate(1.0, facts);
        } else if self.state.is_probe_rtt() {
            self.end_probe_rtt(facts, now, context);
        }
    }
}

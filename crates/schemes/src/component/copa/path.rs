//! Control of one path: the window moves toward the rate 1 / (delta dq) (Arun and Balakrishnan 2018, section 2.1).

use anabranch_core::policy::{AckedTransmission, Pacing, PathAck, PathFacts, Reason, View, Window};
use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::ChunkBytes;

use crate::component::copa::delays::Delays;
use crate::component::copa::mode::Mode;
use crate::component::copa::velocity::Velocity;
use crate::congestion::full_use::in_full_use;
use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[
    Equation {
        name: "section 2.1, target",
        rule: "lambda = cwnd / RTTstanding ≤ 1 / (delta dq): cwnd += v / (delta cwnd) for each packet acknowledged; otherwise cwnd \
               shrinks by as much",
        file: file!(),
    },
    Equation {
        name: "section 2.1, slow start",
        rule: "cwnd doubles per round until lambda exceeds its target",
        file: file!(),
    },
    Equation {
        name: "section 2.1, pacing",
        rule: text!("rate = {} cwnd / RTTstanding", PACING_GAIN),
        file: file!(),
    },
];

/// Pacing gain: a window is sent in half a round trip, so that pacing does not limit its use.
const PACING_GAIN: f64 = 2.0;
/// Minimum window: a SACK for every other packet keeps two chunks in flight.
const LEAST_CHUNKS: u64 = 2;
/// Slow start threshold above any window, and small enough that sums do not overflow.
const NO_THRESHOLD: ChunkBytes = ChunkBytes::new(1 << 40);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    SlowStart,
    Steady,
}

/// Settings of delta.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// Delta in default mode.
    pub(super) delta: f64,
    /// Enables competitive mode.
    pub(super) competes: bool,
}

/// Congestion control state of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopaPath {
    settings: Settings,
    phase: Phase,
    delays: Delays,
    velocity: Velocity,
    mode: Mode,
    /// Start of the round: chunks sent from this time on belong to the next round.
    round_began: Time,
    lost: bool,
    /// Window in bytes.
    cwnd: f64,
    rate: Option<Rate>,
    reason: Reason,
}

impl CopaPath {
    pub(super) fn new(initial: ChunkBytes, settings: Settings) -> Self {
        let cwnd = initial.get() as f64;
        CopaPath {
            settings,
            phase: Phase::SlowStart,
            delays: Delays::default(),
            velocity: Velocity::at(cwnd),
            mode: Mode::Default,
            round_began: Time::ZERO,
            lost: false,
            cwnd,
            rate: None,
            reason: Reason::rule("initial window"),
        }
    }

    pub(super) fn window(&self) -> Window {
        let cwnd = ChunkBytes::new(self.cwnd as u64);
        // There is no threshold. Policies that check for slow start see it in this phase.
        let ssthresh = if self.phase == Phase::SlowStart { NO_THRESHOLD } else { cwnd };
        Window { cwnd, ssthresh, partial_bytes_acked: ChunkBytes::ZERO }
    }

    pub(super) fn pacing(&self) -> Pacing {
        Pacing { rate: self.rate, in_flight_cap: None }
    }

    pub(super) fn reason(&self) -> Reason {
        self.reason
    }

    pub(super) fn set_window(&mut self, cwnd: ChunkBytes, reason: Reason) {
        (self.cwnd, self.reason) = (cwnd.get() as f64, reason);
    }

    /// Processes the acknowledgement of a chunk that was sent once.
    pub(super) fn take(&mut self, acked: &AckedTransmission, facts: &PathFacts, now: Time) {
        let rtt = now.since(acked.stamps.sent_at);
        self.delays.take(rtt, facts.rtt.smoothed.unwrap_or(rtt), now);
        if acked.stamps.sent_at < self.round_began {
            return;
        }
        self.round_began = now;
        let lost = std::mem::take(&mut self.lost);
        let (delta, rtt) = (self.settings.delta, facts.rtt.smoothed.unwrap_or(rtt));
        if self.settings.competes {
            self.mode = self.mode.end_round(self.delays.empty_at(), lost, rtt, now, delta);
        }
        if self.phase == Phase::Steady {
            // The window at most doubles or vanishes in a round trip.
            let most = self.delta() * self.cwnd / facts.largest_chunk.get().max(1) as f64;
            self.velocity.end_round(self.cwnd, most);
        }
    }

    fn delta(&self) -> f64 {
        self.mode.delta(self.settings.delta)
    }

    /// Processes the acknowledged bytes of a SACK.
    pub(super) fn acknowledge(&mut self, ack: &PathAck, facts: &PathFacts, view: &View<'_>) {
        let Some(standing) = self.delays.standing_rtt() else { return };
        let chunk = facts.largest_chunk.get().max(1) as f64;
        let acked = ack.newly_acked().get() as f64;
        let below = self.is_below_target(standing, chunk);
        let used = in_full_use(ack.in_flight_before, ChunkBytes::new(self.cwnd as u64), facts.id, view);
        match self.phase {
            Phase::SlowStart if below => {
                if used {
                    self.cwnd += acked;
                }
                self.reason = Reason::figure("slow start (Copa)", "acked_bytes", acked);
            }
            Phase::SlowStart => {
                self.phase = Phase::Steady;
                self.velocity = Velocity::at(self.cwnd);
                self.reason = self.explain("the target is reached: slow start ends (Copa)");
            }
            Phase::Steady => {
                self.velocity.turn(below);
                let step = self.velocity.get() * acked * chunk / (self.delta() * self.cwnd);
                let step = step.min(acked);
                self.cwnd += if below && used {
                    step
                } else if below {
                    0.0
                } else {
                    -step
                };
                self.reason =
                    self.explain(if below { "below the target (Copa)" } else { "above the target (Copa)" });
            }
        }
        self.cwnd = self.cwnd.max(LEAST_CHUNKS as f64 * chunk);
        self.pace(standing);
    }

    fn explain(&self, rule: &'static str) -> Reason {
        Reason::figure(rule, "queueing_ms", self.delays.queueing().as_millis_f64())
    }

    /// Returns `true` if cwnd / RTTstanding ≤ 1 / (delta dq), in packets.
    fn is_below_target(&self, standing: Span, chunk: f64) -> bool {
        let queueing = self.delays.queueing().as_secs_f64();
        self.cwnd / chunk * self.delta() * queueing <= standing.as_secs_f64()
    }

    fn pace(&mut self, standing: Span) {
        let seconds = standing.max(Span::from_nanos(1)).as_secs_f64();
        // A conversion to an integer saturates.
        self.rate = Some(Rate::from_bps((PACING_GAIN * self.cwnd * 8.0 / seconds) as u64));
    }

    /// Records a loss.
    pub(super) fn lose(&mut self) {
        self.lost = true;
    }

    /// Handles the expiry of T3: the capacity of the path is unknown again.
    pub(super) fn time_out(&mut self, facts: &PathFacts) {
        self.phase = Phase::SlowStart;
        self.mode = Mode::Default;
        self.set_window(facts.largest_chunk, Reason::rule("T3 expired"));
    }
}

//! States of draft-ietf-ccwg-bbr-06 section 5.3, and their gains of rate and window (section 5.6.1).

use anabranch_core::time::Time;

use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "section 5.6.1, gains",
    rule: text!(
        "of rate and window: Startup {}, {}; Drain {}, {}; ProbeBW_DOWN {}, {}; CRUISE {}, {}; REFILL \
         {}, {}; UP {}, {}; ProbeRTT {}, {}",
        State::Startup.pacing_gain(),
        State::Startup.cwnd_gain(),
        DRAIN.pacing_gain(),
        DRAIN.cwnd_gain(),
        State::Down.pacing_gain(),
        State::Down.cwnd_gain(),
        State::Cruise.pacing_gain(),
        State::Cruise.cwnd_gain(),
        State::Refill.pacing_gain(),
        State::Refill.cwnd_gain(),
        State::Up.pacing_gain(),
        State::Up.cwnd_gain(),
        PROBE_RTT.pacing_gain(),
        PROBE_RTT.cwnd_gain(),
    ),
    file: file!(),
}];

/// Pacing gain of Startup: 4 ln 2, the minimum that doubles the rate in every round (StartupPacingGain).
pub(super) const STARTUP_PACING_GAIN: f64 = 2.77;
/// Window of most states in bandwidth-delay products (DefaultCwndGain).
const CWND_GAIN: f64 = 2.0;
/// Window of ProbeRTT in bandwidth-delay products (ProbeRTTCwndGain).
pub(super) const PROBE_RTT_CWND_GAIN: f64 = 0.5;

/// States whose fields do not affect their gains.
const DRAIN: State = State::Drain { began: 0 };
const PROBE_RTT: State = State::ProbeRtt { done_at: None, round_done: false };

/// State of a path's control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The rate doubles in every round trip until the delivery rate stops growing.
    Startup,
    /// The queue built in Startup drains.
    Drain {
        /// Number of the first round of Drain.
        began: u64,
    },
    /// Slightly below the rate of the path, until the queue is empty.
    Down,
    /// At the rate of the path.
    Cruise,
    /// The sender sends at the rate of the path for a round trip, to fill the path before the probe.
    Refill,
    /// Above the rate of the path, to probe for more bandwidth.
    Up,
    /// Half of the bandwidth-delay product is in flight, so that no queue of this flow hides the minimum round-trip time.
    ProbeRtt {
        /// Time at which ProbeRTT may end; `None` until little data is in flight.
        done_at: Option<Time>,
        /// Set after a round trip with little in flight.
        round_done: bool,
    },
}

impl State {
    pub(super) const fn pacing_gain(self) -> f64 {
        match self {
            State::Startup => STARTUP_PACING_GAIN,
            State::Drain { .. } => 0.5,
            State::Down => 0.9,
            State::Cruise | State::Refill | State::ProbeRtt { .. } => 1.0,
            State::Up => 1.25,
        }
    }

    pub(super) const fn cwnd_gain(self) -> f64 {
        match self {
            State::Up => 2.25,
            State::ProbeRtt { .. } => PROBE_RTT_CWND_GAIN,
            _ => CWND_GAIN,
        }
    }

    /// Returns `true` for the four states of ProbeBW.
    pub(super) fn is_probe_bw(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// Returns `true` in states that probe for bandwidth. Losses do not lower the short-term bounds there (IsProbingBW).
    pub(super) fn seeks_bandwidth(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }

    pub(super) fn is_probe_rtt(self) -> bool {
        matches!(self, State::ProbeRtt { .. })
    }

    /// Returns the name for traces.
    pub(super) fn rule(self) -> &'static str {
        match self {
            State::Startup => "Startup (BBR)",
            State::Drain { .. } => "Drain (BBR)",
            State::Down => "ProbeBW_DOWN (BBR)",
            State::Cruise => "ProbeBW_CRUISE (BBR)",
            State::Refill => "ProbeBW_REFILL (BBR)",
            State::Up => "ProbeBW_UP (BBR)",
            State::ProbeRtt { .. } => "ProbeRTT (BBR)",
        }
    }
}

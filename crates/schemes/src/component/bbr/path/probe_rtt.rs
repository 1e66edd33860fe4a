//! ProbeRTT (draft-ietf-ccwg-bbr-06 section 5.3.4).

use anabranch_core::policy::{Context, PathFacts};
use anabranch_core::time::{Span, Time};
use anabranch_core::units::ChunkBytes;

use crate::component::bbr::path::{Ack, LEAST_CHUNKS, PathBbr};
use crate::component::bbr::state::{PROBE_RTT_CWND_GAIN, State};
use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "section 5.3.4.3, ProbeRTT",
    rule: text!(
        "cwnd <= max({} bdp, {} M) until all data in flight fits, and then for {} and a round; \
         afterwards the previous window is restored",
        PROBE_RTT_CWND_GAIN,
        LEAST_CHUNKS,
        DURATION,
    ),
    file: file!(),
}];

/// Minimum duration of a probe of the minimum round-trip time (ProbeRTTDuration).
const DURATION: Span = Span::from_millis(200);

impl PathBbr {
    /// Enters or advances ProbeRTT if it is due (CheckProbeRTT).
    pub(super) fn advance_probe_rtt(&mut self, ack: &Ack<'_>, context: &mut Context<'_>) {
        if !self.state.is_probe_rtt() && self.min_rtt.is_due() && !self.restarted {
            self.save_cwnd();
            self.state = State::ProbeRtt { done_at: None, round_done: false };
            self.probe.stop();
            self.rounds.begin(ack.facts.delivered);
        }
        if self.state.is_probe_rtt() {
            self.handle_probe_rtt(ack, context);
        }
        self.restarted &= ack.sample().is_none();
    }

    /// Advances ProbeRTT with a SACK (HandleProbeRTT).
    fn handle_probe_rtt(&mut self, ack: &Ack<'_>, context: &mut Context<'_>) {
        let from = self
            .withheld
            .map_or(ack.now, |(from, until)| if ack.facts.delivered > until { ack.now } else { from });
        self.withheld = Some((from, ack.facts.delivered + ack.in_flight()));
        let State::ProbeRtt { done_at, round_done } = &mut self.state else { return };
        if done_at.is_some() {
            *round_done |= self.rounds.just_ended();
            if *round_done {
                self.end_probe_rtt(ack.facts, ack.now, context);
            }
        } else if ack.in_flight() <= self.probe_rtt_cwnd(ack.facts) {
            self.state = State::ProbeRtt { done_at: Some(ack.now + DURATION), round_done: false };
            self.rounds.begin(ack.facts.delivered);
        }
    }

    /// Leaves ProbeRTT once it has lasted long enough (CheckProbeRTTDone, ExitProbeRTT).
    pub(super) fn end_probe_rtt(&mut self, facts: &PathFacts, now: Time, context: &mut Context<'_>) {
        let State::ProbeRtt { done_at: Some(done_at), .. } = self.state else { return };
        if now <= done_at {
            return;
        }
        self.min_rtt.probed(now);
        self.restore_cwnd();
        self.bounds.forget_short_term();
        if self.full_pipe.was_full() {
            self.begin_down(facts.delivered, now, context);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    /// Returns the window of ProbeRTT (ProbeRTTCwnd).
    pub(super) fn probe_rtt_cwnd(&self, facts: &PathFacts) -> ChunkBytes {
        self.bdp(self.bw(), PROBE_RTT_CWND_GAIN, facts).max(facts.largest_chunk.times(LEAST_CHUNKS))
    }
}

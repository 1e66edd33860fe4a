//! Losses (draft-ietf-ccwg-bbr-06 sections 5.5.10, 5.5.11 and 5.6.4.4): effect on the data in flight, and reversal if spurious.

use anabranch_core::policy::{Context, DeliverySample, PathFacts, Reason, SendStamps};
use anabranch_core::time::{Rate, Time};
use anabranch_core::units::ChunkBytes;

use crate::component::bbr::path::startup::LOSS_REPORTS;
use crate::component::bbr::path::{Ack, PathBbr};
use crate::component::bbr::scaled;
use crate::component::bbr::signals::{BETA, Bounds};
use crate::component::bbr::state::State;
use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[
    Equation {
        name: "section 5.5.10.2, loss threshold",
        rule: text!(
            "a probe loses more than {} % of the data since its transmission: inflight_longterm = \
             max(data in flight at that loss, {} min(bdp, cwnd)), and UP ends",
            100.0 * THRESHOLD,
            BETA,
        ),
        file: file!(),
    },
    Equation {
        name: "section 5.3.1.3, Startup",
        rule: text!(
            "a round in recovery with more than {} % lost, in {} SACKs: the path is full, \
             inflight_longterm = max(bdp, delivered in it)",
            100.0 * THRESHOLD,
            LOSS_REPORTS,
        ),
        file: file!(),
    },
    Equation {
        name: "section 5.5.11, spurious recovery",
        rule: "all chunks that counted as lost arrived: windows, limits and state are restored",
        file: file!(),
    },
];

/// Maximum tolerated ratio of lost bytes to bytes in flight (LossThresh).
pub(super) const THRESHOLD: f64 = 0.02;

/// Reason for which the window differs from the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Episode {
    #[default]
    None,
    /// Fast recovery, with the bytes delivered at its start.
    Fast(ChunkBytes),
    /// Time at which T3 expired.
    Timeout(Time),
}

/// Recovery from losses, and the window before it (prior_cwnd).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recovery {
    episode: Episode,
    cwnd_before: ChunkBytes,
}

impl Recovery {
    /// Returns `true` if fast recovery has lasted for a whole round trip.
    pub(super) fn lasts_for_a_round(&self, facts: &PathFacts) -> bool {
        match self.episode {
            Episode::Fast(delivered) => facts.delivery.is_some_and(|s| s.stamps.delivered >= delivered),
            Episode::None | Episode::Timeout(_) => false,
        }
    }

    /// Returns `true` if all losses are repaired.
    fn is_over(&self, ack: &Ack<'_>) -> bool {
        match self.episode {
            Episode::None => false,
            Episode::Fast(_) => ack.facts.recovery_point.is_none(),
            Episode::Timeout(at) => {
                let left_after = ack.sample().is_some_and(|sample| sample.stamps.sent_at >= at);
                left_after && ack.facts.lost_unsent.is_zero()
            }
        }
    }
}

/// State before losses that may prove spurious.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// State that the losses ended.
    state: Option<State>,
    bounds: Bounds,
    saved_at: Time,
    /// Lowest TSN declared lost since then.
    first: u64,
    lost: u32,
    spurious: u32,
}

impl Undo {
    pub(super) fn note_end_of(&mut self, state: State) {
        self.state = Some(state);
    }

    /// Returns `true` if a chunk belongs to the same losses, because it was sent before this state was saved.
    fn covers(&self, chunk: &LostChunk) -> bool {
        self.lost > 0 && chunk.stamps.sent_at < self.saved_at
    }

    fn lose(&mut self, tsn: u64) {
        self.first = if self.lost == 0 { tsn } else { self.first.min(tsn) };
        self.lost += 1;
    }

    /// Records the arrival of a chunk that was declared lost. Returns `true` once all of them have arrived.
    fn arrive(&mut self, tsn: u64) -> bool {
        if self.lost == 0 || tsn < self.first {
            return false;
        }
        self.spurious += 1;
        self.spurious == self.lost
    }
}

/// Chunk that was declared lost.
#[derive(Clone, Copy, Debug)]
pub(in crate::component::bbr) struct LostChunk {
    pub(in crate::component::bbr) tsn: u64,
    pub(in crate::component::bbr) bytes: ChunkBytes,
    /// Stamps of the lost transmission.
    pub(in crate::component::bbr) stamps: SendStamps,
    pub(in crate::component::bbr) now: Time,
}

impl PathBbr {
    /// Returns `true` if the losses of a sample exceed [`THRESHOLD`] (IsInflightTooHigh).
    pub(super) fn is_inflight_too_high(sample: Option<&DeliverySample>) -> bool {
        sample.is_some_and(|sample| exceeds(sample.lost, sample.stamps.in_flight))
    }

    /// Handles the loss of a chunk (HandleLostPacket).
    pub(in crate::component::bbr) fn lose(
        &mut self,
        chunk: &LostChunk,
        facts: &PathFacts,
        context: &mut Context<'_>,
    ) {
        if self.signals.record_loss(facts.delivered) && !self.undo.covers(chunk) {
            self.save_state(chunk.now);
        }
        self.undo.lose(chunk.tsn);
        let lost = facts.lost - chunk.stamps.lost;
        if !self.probe.unanswered || !exceeds(lost, chunk.stamps.in_flight) {
            return;
        }
        let inflight = inflight_at_loss(chunk.stamps.in_flight, lost, chunk.bytes);
        self.handle_inflight_too_high(inflight, chunk, facts, context);
    }

    fn handle_inflight_too_high(
        &mut self,
        inflight: ChunkBytes,
        chunk: &LostChunk,
        facts: &PathFacts,
        context: &mut Context<'_>,
    ) {
        self.probe.end_lossy_probe();
        if !matches!(chunk.stamps.limiter, super::Limiter::Scheduler | super::Limiter::Application) {
            let least = scaled(self.target_inflight(facts), BETA);
            self.bounds.inflight_longterm = Some(inflight.max(least));
        }
        if self.state == State::Up {
            self.undo.note_end_of(State::Up);
            self.begin_down(facts.delivered, chunk.now, context);
        }
    }

    /// Returns the bandwidth-delay product, at most the window (TargetInflight).
    pub(super) fn target_inflight(&self, facts: &PathFacts) -> ChunkBytes {
        self.bdp(self.bw(), 1.0, facts).min(self.cwnd)
    }

    /// Ends a round with losses: checks whether Startup ends, and lowers the short-term bounds unless BBR probes for bandwidth
    /// (CheckStartupHighLoss, AdaptLowerBoundsFromCongestion).
    pub(super) fn end_round_with_losses(&mut self, reports: u32, ack: &Ack<'_>) {
        self.consider_losses_in_startup(reports, ack);
        if !self.state.seeks_bandwidth() {
            self.bounds.lower(&self.signals, self.max_bw(), self.cwnd);
        }
    }

    /// Saves the window and begins fast recovery (OnEnterFastRecovery).
    pub(in crate::component::bbr) fn begin_fast_recovery(&mut self, facts: &PathFacts) {
        self.save_cwnd();
        self.recovery.episode = Episode::Fast(facts.delivered);
    }

    /// Saves the state and sets the window to one chunk (OnEnterRTO). The core has declared all chunks in flight on the path lost,
    /// so none is in flight.
    pub(in crate::component::bbr) fn time_out(&mut self, facts: &PathFacts, now: Time) {
        self.save_cwnd();
        self.save_state(now);
        self.recovery.episode = Episode::Timeout(now);
        self.set_window(facts.largest_chunk, Reason::rule("T3 expired"));
    }

    pub(super) fn end_recovery(&mut self, ack: &Ack<'_>) {
        if self.recovery.is_over(ack) {
            self.recovery.episode = Episode::None;
            self.restore_cwnd();
        }
    }

    /// Saves the window before a reduction. A value saved earlier in the same reduction is kept if it is larger (SaveCwnd).
    pub(super) fn save_cwnd(&mut self) {
        let as_it_is = self.recovery.episode == Episode::None && !self.state.is_probe_rtt();
        let before = if as_it_is { ChunkBytes::ZERO } else { self.recovery.cwnd_before };
        self.recovery.cwnd_before = self.cwnd.max(before);
    }

    /// Raises the window to the saved one (RestoreCwnd).
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.recovery.cwnd_before);
    }

    /// Saves window and bounds, for the case that the losses prove spurious (SaveStateUponLoss). One recovery saves once,
    /// regardless of its number of rounds with losses.
    fn save_state(&mut self, now: Time) {
        if self.recovery.episode == Episode::None {
            self.save_cwnd();
            self.undo = Undo { bounds: self.bounds, saved_at: now, ..Undo::default() };
        }
    }

    /// Records the arrival of a chunk that was declared lost. Once all chunks declared lost in the recovery have arrived, restores
    /// the saved state (HandleSpuriousLossDetection).
    pub(in crate::component::bbr) fn arrive_after_all(&mut self, tsn: u64, facts: &PathFacts) {
        if !self.undo.arrive(tsn) {
            return;
        }
        let undo = std::mem::take(&mut self.undo);
        self.restore_cwnd();
        self.signals.revoke_losses();
        self.full_pipe.restart_search(Rate::default());
        self.bounds.widen(&undo.bounds);
        match undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.revoke();
                if !self.state.is_probe_rtt() {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if self.state != State::Up && !self.state.is_probe_rtt() => {
                self.begin_refill(facts.delivered);
            }
            _ => {}
        }
        self.reason = Reason::rule("all chunks that counted as lost have arrived (BBR)");
    }
}

fn exceeds(lost: ChunkBytes, in_flight: ChunkBytes) -> bool {
    lost.get() as f64 > THRESHOLD * in_flight.get() as f64
}

/// Returns the bytes in flight when losses crossed the threshold, including part of the lost chunk (InflightAtLoss).
fn inflight_at_loss(in_flight: ChunkBytes, lost: ChunkBytes, chunk: ChunkBytes) -> ChunkBytes {
    let before = (in_flight - chunk).get() as f64;
    let lost_before = (lost - chunk).get() as f64;
    let prefix = (THRESHOLD * before - lost_before) / (1.0 - THRESHOLD);
    ChunkBytes::new((before + prefix) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bytes;

    #[test]
    fn losses_cross_the_threshold_within_the_chunk_that_is_lost() {
        // 1,000 B before the chunk allow 20 B of losses. 20 / 0.98 B of the chunk reach that.
        assert_eq!(inflight_at_loss(bytes(2_000), bytes(1_000), bytes(1_000)), bytes(1_020));
        assert!(!exceeds(bytes(20), bytes(1_000)) && exceeds(bytes(21), bytes(1_000)));
    }
}

//! Startup and Drain (draft-ietf-ccwg-bbr-06 sections 5.3.1 and 5.3.2).

use anabranch_core::policy::Context;

use crate::component::bbr::path::{Ack, PathBbr};
use crate::component::bbr::state::State;

/// Section 5.3.1.3: number of SACKs in a round that report losses. The draft counts discontiguous ranges, and Linux the
/// acknowledgements that reveal losses. TSNs on one of several paths are rarely contiguous, so this is Linux's count.
pub(super) const LOSS_REPORTS: u32 = 6;
/// Section 5.3.2: Drain ends after this number of rounds, even if more than the bandwidth-delay product is in flight.
const DRAIN_ROUNDS: u64 = 3;

impl PathBbr {
    /// Records the rate at the end of a round, to detect that the pipe is full (CheckFullBWReached).
    pub(super) fn detect_full_pipe(&mut self, ack: &Ack<'_>, limited: bool) {
        if !self.rounds.just_ended() || limited {
            return;
        }
        if let Some(rate) = ack.rate() {
            self.full_pipe.end_round(rate);
        }
    }

    /// Enters Drain once the pipe was full (CheckStartupDone).
    pub(super) fn advance_startup(&mut self, ack: &Ack<'_>) {
        if self.state != State::Startup || !self.full_pipe.was_full() {
            return;
        }
        self.state = State::Drain { began: self.rounds.count() };
        self.rounds.begin(ack.facts.delivered);
    }

    /// Ends Startup if losses are high, at the end of a round in which this number of SACKs reported losses (CheckStartupHighLoss).
    pub(super) fn consider_losses_in_startup(&mut self, reports: u32, ack: &Ack<'_>) {
        let many = reports >= LOSS_REPORTS && self.recovery.lasts_for_a_round(ack.facts);
        if self.state != State::Startup || !many || !Self::is_inflight_too_high(ack.sample()) {
            return;
        }
        self.undo.note_end_of(State::Startup);
        self.full_pipe.conclude();
        let bdp = self.bdp(self.bw(), 1.0, ack.facts);
        self.bounds.inflight_longterm = Some(bdp.max(self.signals.volume()));
    }

    /// Leaves Drain once the queue is drained, or after [`DRAIN_ROUNDS`] (CheckDrainDone).
    pub(super) fn advance_drain(&mut self, ack: &Ack<'_>, context: &mut Context<'_>) {
        let State::Drain { began } = self.state else { return };
        let target = self.with_budget(self.bdp(self.bw(), 1.0, ack.facts), ack.chunk());
        if ack.in_flight() <= target || self.rounds.count() > began + DRAIN_ROUNDS {
            self.begin_down(ack.facts.delivered, ack.now, context);
        }
    }
}

//! Delivery and loss signals of the latest round trip (draft-ietf-ccwg-bbr-06 section 5.5.10.3), and the bounds derived from them.

use anabranch_core::policy::DeliverySample;
use anabranch_core::time::Rate;
use anabranch_core::units::ChunkBytes;

use crate::component::bbr::{scaled, scaled_rate};
use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "section 5.5.10.3, short-term model",
    rule: text!(
        "a round with a loss outside of bandwidth probes: bw_shortterm = max(the round's rate, {} \
         bw_shortterm), and the same for inflight_shortterm; REFILL resets both",
        BETA,
    ),
    file: file!(),
}];

/// Beta: minimum factor of the short-term bounds after a round with losses.
pub(super) const BETA: f64 = 0.7;

/// Delivery and loss signals of the current loss round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signals {
    /// Number of delivered bytes at which the next round begins: the acknowledgement of a transmission that was sent at or after
    /// this number ends the round (loss_round_delivered).
    ends_at: ChunkBytes,
    just_ended: bool,
    /// Maximum delivery rate and maximum delivered bytes of the round's samples (bw_latest, inflight_latest).
    latest: (Rate, ChunkBytes),
    lost: bool,
    /// Number of SACKs of the round that reported losses.
    reports: u32,
    /// Set once the current SACK has reported a loss.
    reported: bool,
}

impl Signals {
    /// Records a loss (NoteLoss). Returns `true` if it is the first loss of the round.
    pub(super) fn record_loss(&mut self, delivered: ChunkBytes) -> bool {
        let first = !std::mem::replace(&mut self.lost, true);
        if first {
            self.ends_at = delivered;
        }
        if !std::mem::replace(&mut self.reported, true) {
            self.reports += 1;
        }
        first
    }

    /// Updates the signals with the sample of an acknowledgement (UpdateLatestDeliverySignals).
    pub(super) fn record_delivery(&mut self, sample: Option<&DeliverySample>, delivered: ChunkBytes) {
        self.just_ended = false;
        self.reported = false;
        let Some(sample) = sample else { return };
        let (rate, volume) = self.latest;
        self.latest = (rate.max(sample.rate.unwrap_or_default()), volume.max(sample.delivered));
        if sample.stamps.delivered >= self.ends_at {
            self.ends_at = delivered;
            self.just_ended = true;
        }
    }

    /// Begins the next round with this sample if the round has just ended (AdvanceLatestDeliverySignals).
    pub(super) fn advance(&mut self, sample: Option<&DeliverySample>) {
        if let Some(sample) = sample.filter(|_| self.just_ended) {
            self.latest = (sample.rate.unwrap_or_default(), sample.delivered);
        }
    }

    /// Ends a round. Returns the number of its SACKs that reported losses, or `None` if no loss was recorded.
    pub(super) fn end_round(&mut self) -> Option<u32> {
        let reports = std::mem::take(&mut self.reports);
        std::mem::take(&mut self.lost).then_some(reports)
    }

    /// Clears the signals of the round (ResetCongestionSignals).
    pub(super) fn reset(&mut self) {
        (self.lost, self.latest) = (false, (Rate::default(), ChunkBytes::ZERO));
    }

    /// Revokes the losses of the round after they have proved spurious.
    pub(super) fn revoke_losses(&mut self) {
        self.lost = false;
    }

    pub(super) fn just_ended(&self) -> bool {
        self.just_ended
    }

    /// Returns the maximum delivered bytes of the round's samples (inflight_latest).
    pub(super) fn volume(&self) -> ChunkBytes {
        self.latest.1
    }
}

/// Upper bounds of the model's bandwidth and inflight data; `None` means no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bounds {
    pub(super) bw_shortterm: Option<Rate>,
    pub(super) inflight_shortterm: Option<ChunkBytes>,
    pub(super) inflight_longterm: Option<ChunkBytes>,
}

impl Bounds {
    /// Lowers the short-term bounds after a round with losses (InitLowerBounds, LossLowerBounds).
    pub(super) fn lower(&mut self, latest: &Signals, max_bw: Rate, cwnd: ChunkBytes) {
        let (rate, volume) = latest.latest;
        let bw = self.bw_shortterm.unwrap_or(max_bw);
        let inflight = self.inflight_shortterm.unwrap_or(cwnd);
        self.bw_shortterm = Some(rate.max(scaled_rate(bw, BETA)));
        self.inflight_shortterm = Some(volume.max(scaled(inflight, BETA)));
    }

    /// Removes the short-term bounds (ResetShortTermModel).
    pub(super) fn forget_short_term(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (None, None);
    }

    /// Undoes the reduction by spurious losses: raises each bound to its value in `before`, the bounds before these losses, if that
    /// is larger.
    pub(super) fn widen(&mut self, before: &Bounds) {
        let wider = |mine: Option<ChunkBytes>, other: Option<ChunkBytes>| Some(mine?.max(other?));
        self.bw_shortterm = self.bw_shortterm.zip(before.bw_shortterm).map(|(mine, other)| mine.max(other));
        self.inflight_shortterm = wider(self.inflight_shortterm, before.inflight_shortterm);
        self.inflight_longterm = wider(self.inflight_longterm, before.inflight_longterm);
    }
}

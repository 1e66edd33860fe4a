//! What the latest round trip delivered and whether something of it was lost (draft-ietf-ccwg-bbr-06 section 5.5.10.3), and the bounds
//! that follow from it.

use anabranch_core::policy::DeliverySample;
use anabranch_core::time::Rate;
use anabranch_core::units::ChunkBytes;

use crate::component::bbr::{scaled, scaled_rate};
use crate::definition::Equation;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "section 5.5.10.3, short-term model",
    rule: "a round with a loss, while bandwidth is not probed: bw_shortterm = max(the round's rate, 0.7 bw_shortterm), and so \
           inflight_shortterm; REFILL forgets both",
    file: file!(),
}];

/// Beta: what a round with losses leaves of the short-term bounds at least.
pub(super) const BETA: f64 = 0.7;

/// The latest round, as far as losses go.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signals {
    /// The round ends with a transmission that left after so much had been delivered (loss_round_delivered).
    ends_at: ChunkBytes,
    just_ended: bool,
    /// The largest rate and the most delivered of its samples (bw_latest, inflight_latest).
    latest: (Rate, ChunkBytes),
    lost: bool,
    /// SACKs of the round that told of losses.
    reports: u32,
    /// The present SACK has done so.
    reported: bool,
}

impl Signals {
    /// NoteLoss: something was lost. Whether it is the round's first loss.
    pub(super) fn lose(&mut self, delivered: ChunkBytes) -> bool {
        let first = !std::mem::replace(&mut self.lost, true);
        if first {
            self.ends_at = delivered;
        }
        if !std::mem::replace(&mut self.reported, true) {
            self.reports += 1;
        }
        first
    }

    /// UpdateLatestDeliverySignals.
    pub(super) fn take(&mut self, sample: Option<&DeliverySample>, delivered: ChunkBytes) {
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

    /// AdvanceLatestDeliverySignals: the next round begins with this sample.
    pub(super) fn advance(&mut self, sample: Option<&DeliverySample>) {
        if let Some(sample) = sample.filter(|_| self.just_ended) {
            self.latest = (sample.rate.unwrap_or_default(), sample.delivered);
        }
    }

    /// The round that has ended had losses, reported by so many SACKs; the next one has none yet.
    pub(super) fn end_round(&mut self) -> Option<u32> {
        let reports = std::mem::take(&mut self.reports);
        std::mem::take(&mut self.lost).then_some(reports)
    }

    /// ResetCongestionSignals.
    pub(super) fn reset(&mut self) {
        (self.lost, self.latest) = (false, (Rate::default(), ChunkBytes::ZERO));
    }

    /// The losses were none.
    pub(super) fn revoke_losses(&mut self) {
        self.lost = false;
    }

    pub(super) fn just_ended(&self) -> bool {
        self.just_ended
    }

    /// inflight_latest.
    pub(super) fn volume(&self) -> ChunkBytes {
        self.latest.1
    }
}

/// The bounds of rate and volume; `None` is infinite.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bounds {
    pub(super) bw_shortterm: Option<Rate>,
    pub(super) inflight_shortterm: Option<ChunkBytes>,
    pub(super) inflight_longterm: Option<ChunkBytes>,
}

impl Bounds {
    /// InitLowerBounds and LossLowerBounds: a round had losses while the path carried this at most.
    pub(super) fn lower(&mut self, latest: &Signals, max_bw: Rate, cwnd: ChunkBytes) {
        let (rate, volume) = latest.latest;
        let bw = self.bw_shortterm.unwrap_or(max_bw);
        let inflight = self.inflight_shortterm.unwrap_or(cwnd);
        self.bw_shortterm = Some(rate.max(scaled_rate(bw, BETA)));
        self.inflight_shortterm = Some(volume.max(scaled(inflight, BETA)));
    }

    /// ResetShortTermModel.
    pub(super) fn forget_short_term(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (None, None);
    }

    /// The wider of these and of those before losses that were none.
    pub(super) fn widen(&mut self, before: &Bounds) {
        let wider = |mine: Option<ChunkBytes>, other: Option<ChunkBytes>| Some(mine?.max(other?));
        self.bw_shortterm = self.bw_shortterm.zip(before.bw_shortterm).map(|(mine, other)| mine.max(other));
        self.inflight_shortterm = wider(self.inflight_shortterm, before.inflight_shortterm);
        self.inflight_longterm = wider(self.inflight_longterm, before.inflight_longterm);
    }
}

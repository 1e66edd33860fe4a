//! Loss by missing reports (RFC 9260 section 7.2.4), with CMT's split fast retransmit and delayed-ack rules.

use anabranch_core::policy::{
    Context, Event, LossDetection, Missing, MissingVerdict, PathSack, SackView, Slot, View,
};
use anabranch_core::time::Time;

/// Counts missing reports and marks at the trigger.
#[derive(Clone, Copy, Debug)]
pub struct MissingReports {
    /// Reports that make a chunk lost.
    pub trigger: u32,
    /// Split fast retransmit: only acks on the chunk's own path report it missing (Iyengar 2006, algorithm SFR).
    pub split: bool,
    /// Delayed acks for CMT: a SACK may stand for as many reports as it answers packets (algorithm DAC).
    pub delayed_acks: bool,
}

impl MissingReports {
    /// Whether this SACK reports the chunk missing: the highest-TSN-newly-acked rule, per path or for all.
    fn is_reported(&self, chunk: &Missing, sack: &SackView<'_>, view: &View<'_>) -> bool {
        if self.split {
            let path = &sack.paths[chunk.path.index()];
            let highest = path.highest_gap_acked.unwrap_or(sack.cumulative);
            return saw_new_ack(path, view) && chunk.tsn < highest;
        }
        let recovering = view.path(chunk.path).recovery_point.is_some();
        let all_count = view.profile.all_holes_count_in_recovery && recovering && sack.new_cumulative;
        all_count || chunk.tsn < sack.highest_newly_acked
    }

    /// How many reports the SACK stands for (algorithm DAC, steps for mixed and single-path SACKs).
    fn reports(&self, chunk: &Missing, sack: &SackView<'_>, view: &View<'_>) -> u32 {
        if !self.delayed_acks {
            return 1;
        }
        let paths = sack.paths.iter().filter(|p| saw_new_ack(p, view)).count();
        let acked_below = sack.paths[chunk.path.index()].lowest_newly_acked.is_some_and(|t| t < chunk.tsn);
        match paths {
            0 => 0,
            1 if !acked_below => {
                let packets = u32::from(sack.flags);
                // A peer that counts nothing still reports once; ns-2's own timer SACKs say zero and mean it.
                if view.profile.timer_sack_counts_zero { packets } else { packets.max(1) }
            }
            _ => 1,
        }
    }
}

fn saw_new_ack(path: &PathSack, view: &View<'_>) -> bool {
    path.new_gap_ack || (view.profile.cumulative_acks_count_for_missing && path.new_cumulative_ack)
}

impl Slot for MissingReports {
    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>, _: &mut Context<'_>) {}

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl LossDetection for MissingReports {
    fn missing(&mut self, chunk: &Missing, sack: &SackView<'_>, view: &View<'_>) -> MissingVerdict {
        if !self.is_reported(chunk, sack, view) {
            return MissingVerdict { reports: 0, lost: false };
        }
        let reports = self.reports(chunk, sack, view);
        let lost = chunk.reports + reports >= self.trigger && !chunk.recovered_before;
        MissingVerdict { reports, lost }
    }

    /// RFC 9260 section 6.3.3 E3: everything outstanding on the path.
    fn timed_out(&mut self, _: &Missing, _: &View<'_>) -> bool {
        true
    }
}

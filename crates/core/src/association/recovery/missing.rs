//! Missing reports: chunks that a SACK reports as missing, and their losses.

use crate::association::dispatch::Dispatcher;
use crate::association::recovery::{Acknowledgement, LossRecovery};
use crate::intervals::{self, Interval};
use crate::path_id::MAX_PATHS;
use crate::policy::{Holes, LossCause, SackView};

impl LossRecovery {
    /// Asks the loss policy about the holes below the highest TSN that this SACK, or an earlier one, newly acknowledged.
    //= docs/rfc9260.txt#section-6.7
    //# All DATA chunks with TSNs not included in the Gap Ack Blocks that are smaller than the highest-acknowledged TSN
    //# reported in the SACK chunk MUST be treated as "missing" by the sending endpoint.
    pub(super) fn count_missing(
        &mut self,
        cumulative: u64,
        new_cumulative: bool,
        sack: &Acknowledgement<'_>,
        d: &mut Dispatcher<'_>,
    ) {
        let LossRecovery { sacks, holes, newly_lost, blocks, lost_abandoned, highest_newly_acked, .. } = self;
        // A peer without CMT does not write the number of packets into the SACK flags, from which CMT's delayed acknowledgements
        // read it.
        let flags = if d.sender.facts().foreign_sack_flags { 0 } else { sack.flags };
        let view = SackView {
            paths: sacks,
            cumulative,
            highest_newly_acked: *highest_newly_acked,
            new_cumulative,
            flags,
            a_rwnd: sack.a_rwnd,
            peer_window: sack.a_rwnd - d.sender.window_outstanding(),
        };
        let highest_named = blocks.last().map_or(cumulative, |&(_, end)| end);
        let limit = (*highest_newly_acked).max(highest_named);
        let mut asked = d.sender.has_hole_below(limit);
        if asked {
            let wanted = d.ask(|policies, facts| policies.holes(&view, facts));
            collect_holes(&wanted, limit, d, holes);
            judge_holes(holes, &view, d, newly_lost);
        }
        judge_watched(blocks, limit, lost_abandoned, d, |d, tsn| {
            let Some(missing) = d.sender.missing(tsn) else { return false };
            if !std::mem::replace(&mut asked, true) {
                d.ask(|policies, facts| policies.holes(&view, facts));
            }
            let verdict = d.ask(|policies, facts| policies.missing(&missing, &view, facts));
            d.sender.add_reports(tsn, verdict.reports);
            verdict.lost
        });
        for &tsn in newly_lost.iter() {
            d.mark_lost(tsn, LossCause::FastRetransmit);
        }
    }
}

fn judge_holes(holes: &[u64], view: &SackView<'_>, d: &mut Dispatcher<'_>, newly_lost: &mut Vec<u64>) {
    for &tsn in holes {
        let Some(missing) = d.sender.missing(tsn) else { continue };
        let verdict = d.ask(|policies, facts| policies.missing(&missing, view, facts));
        //= docs/rfc9260.txt#section-6.7
        //# The number of "missing" reports for each outstanding DATA chunk MUST be recorded by the data sender to
        //# make retransmission decisions.
        d.sender.add_reports(tsn, verdict.reports);
        if verdict.lost {
            newly_lost.push(tsn);
        }
    }
}

/// Collects the TSNs below `limit` that the policy wants to judge, in order.
pub(super) fn collect_holes(wanted: &Holes, limit: u64, d: &Dispatcher<'_>, list: &mut Vec<u64>) {
    list.clear();
    let outstanding = d.sender.outstanding();
    match wanted {
        Holes::All => list.extend(outstanding.unacked().take_while(|&tsn| tsn < limit)),
        Holes::NeverRecovered { below } => {
            let below = limit.min(*below);
            d.paths.ids().for_each(|path| list.extend(outstanding.judged_by_reports(path, below)));
        }
        Holes::SentBefore(bounds) => {
            for (path, bound) in d.paths.ids().zip(bounds).filter_map(|(path, bound)| Some((path, (*bound)?)))
            {
                outstanding.sent_before(path, bound, limit, list);
            }
        }
    }
    list.retain(|&tsn| d.sender.is_hole(tsn));
    if !list.is_sorted() {
        list.sort_unstable();
    }
}

/// Judges chunks that were abandoned in flight. Chunks that the SACK acknowledges have arrived. `is_lost` asks the loss policy
/// about each of the others. The congestion window of a lost chunk's path is cut.
fn judge_watched(
    blocks: &[Interval],
    limit: u64,
    lost_abandoned: &mut [u64; MAX_PATHS],
    d: &mut Dispatcher<'_>,
    mut is_lost: impl FnMut(&mut Dispatcher<'_>, u64) -> bool,
) {
    let mut index = 0;
    while let Some(tsn) = d.sender.watched().get(index) {
        if intervals::holds(blocks, tsn, tsn) {
            d.sender.unwatch(tsn);
        } else if tsn >= limit {
            return;
        } else if is_lost(d, tsn) {
            d.sender.unwatch(tsn);
            if let Some(path) = d.sender.outstanding().get(tsn).map(|chunk| chunk.path) {
                let highest = &mut lost_abandoned[path.index()];
                *highest = tsn.max(*highest);
            }
        } else {
            index += 1;
        }
    }
}

//! Fate of copies: which of them an acknowledgement credits, and which are lost.

use crate::association::dispatch::Dispatcher;
use crate::association::recovery::LossRecovery;
use crate::paths::Paths;
use crate::profile::CopyFate;
use crate::send::Transmission;

impl LossRecovery {
    /// Returns `true` if copies count as lost without a duplicate report. Before the first report from the peer its absence says
    /// nothing.
    pub(super) fn judges_copies(&self, paths: &Paths) -> bool {
        paths.profile().copy_fate == CopyFate::Judged && self.peer_reports_duplicates
    }

    /// Returns the transmission of a chunk that an acknowledgement credits.
    pub(super) fn credited_copy(&self, tsn: u64, d: &Dispatcher<'_>) -> Option<Transmission> {
        let guess = d.sender.credited_copy(tsn, self.source);
        match d.paths.profile().copy_fate {
            CopyFate::Unjudged => guess,
            CopyFate::Judged => guess.map(|guess| plausible_copy(tsn, guess, d)),
        }
    }

    /// Declares copies lost that later packets of their paths have overtaken.
    pub(super) fn judge_orphans(&mut self, d: &mut Dispatcher<'_>) {
        if !self.judges_copies(d.paths) || !d.sender.has_orphans() {
            return;
        }
        for id in d.paths.ids() {
            let rtt = &d.paths.facts(id).rtt;
            // RFC 9002 section 6.1.2: kTimeThreshold is 9/8.
            let round_trip = rtt.smoothed.unwrap_or_default().max(rtt.latest.unwrap_or_default());
            let (now, longest) = (d.now, round_trip + round_trip.over(8));
            d.sender.count_overtaken_orphans(id, &self.delivered[id.index()]);
            while let Some(orphan) = d.update_sender(|sender| sender.lose_orphan(id, now, longest)) {
                d.lose_copy(id, &orphan);
            }
        }
    }
}

/// Returns the copy in flight that has most likely arrived just now. That is the guess, by the path of the SACK, unless its round trip
/// is implausible: the difference to the path's smoothed round-trip time exceeds that of another copy by half a round trip. A SACK on
/// a slow path, caused by a duplicate there, also acknowledges what has arrived on fast paths.
fn plausible_copy(tsn: u64, guess: Transmission, d: &Dispatcher<'_>) -> Transmission {
    let deviation = |copy: &Transmission| {
        let smoothed = d.paths.facts(copy.path).rtt.smoothed?;
        Some((d.now.since(copy.stamps.sent_at).abs_diff(smoothed), smoothed))
    };
    let Some((guessed, smoothed)) = deviation(&guess) else { return guess };
    let in_flight = d.sender.outstanding().transmissions_of(tsn).filter(|copy| copy.in_flight);
    let nearest = in_flight
        .filter_map(|copy| deviation(copy).map(|(deviation, _)| (deviation, copy)))
        .min_by_key(|(deviation, _)| *deviation);
    match nearest {
        Some((least, copy)) if guessed > least + smoothed.over(2) => *copy,
        _ => guess,
    }
}

//! Outcomes of the copies of a chunk that was sent more than once: delivered, or lost.

use crate::association::dispatch::Dispatcher;
use crate::association::recovery::LossRecovery;
use crate::paths::Paths;
use crate::profile::CopyFate;
use crate::send::Transmission;

impl LossRecovery {
    /// Returns `true` if a copy may be declared lost because the peer does not report it as a duplicate. Before the peer's first
    /// duplicate report, a missing one proves nothing, because some peers never report duplicates.
    pub(super) fn judges_copies(&self, paths: &Paths) -> bool {
        paths.profile().copy_fate == CopyFate::Judged && self.peer_reports_duplicates
    }

    /// Returns the copy of a chunk that has most likely caused its acknowledgement.
    pub(super) fn credited_copy(&self, tsn: u64, d: &Dispatcher<'_>) -> Option<Transmission> {
        let guess = d.sender.credited_copy(tsn, self.source)?;
        let has_copies = || d.sender.outstanding().get(tsn).is_some_and(|chunk| chunk.transmissions > 1);
        match d.paths.profile().copy_fate {
            CopyFate::Judged if has_copies() => Some(plausible_copy(tsn, guess, d)),
            CopyFate::Judged | CopyFate::Unjudged => Some(guess),
        }
    }

    /// Declares duplicate copies lost by the packet and time thresholds of RFC 9002 section 6.1, as [`CopyFate::Judged`] describes.
    pub(super) fn judge_duplicates(&mut self, d: &mut Dispatcher<'_>) {
        if !self.judges_copies(d.paths) || !d.sender.has_duplicates() {
            return;
        }
        for id in d.paths.ids() {
            if d.sender.duplicates(id).next().is_none() {
                continue;
            }
            let rtt = &d.paths.facts(id).rtt;
            // RFC 9002 section 6.1.2: kTimeThreshold is 9/8.
            let round_trip = rtt.smoothed.unwrap_or_default().max(rtt.latest.unwrap_or_default());
            let (now, longest) = (d.now, round_trip + round_trip.over(8));
            d.sender.count_overtaken_duplicates(id, &self.delivered[id.index()]);
            while let Some(copy) = d.update_sender(|sender| sender.take_lost_duplicate(id, now, longest)) {
                d.report_lost_copy(id, &copy);
            }
        }
    }
}

/// Returns the copy that has most likely just arrived. `guess` is the copy on the path of the SACK, or else the latest
/// one. For each copy, the time since it was sent is compared with the smoothed round-trip time of its path. If this deviation is
/// smaller for another copy, by more than half the smoothed round-trip time, the function returns that copy. This is necessary
/// because a SACK that a duplicate causes on a slow path also acknowledges chunks that arrived on fast paths.
fn plausible_copy(tsn: u64, guess: Transmission, d: &Dispatcher<'_>) -> Transmission {
    let deviation = |copy: &Transmission| {
        let smoothed = d.paths.facts(copy.path).rtt.smoothed?;
        Some((d.now.since(copy.stamps.sent_at).abs_diff(smoothed), smoothed))
    };
    let Some((guessed, smoothed)) = deviation(&guess) else { return guess };
    let nearest = d
        .sender
        .arriving(tsn)
        .filter_map(|copy| deviation(copy).map(|(deviation, _)| (deviation, copy)))
        .min_by_key(|(deviation, _)| *deviation);
    match nearest {
        Some((least, copy)) if guessed > least + smoothed.over(2) => *copy,
        _ => guess,
    }
}

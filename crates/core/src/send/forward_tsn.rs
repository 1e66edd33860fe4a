//! State of the FORWARD-TSN that is due or unacknowledged (RFC 3758 section 3.5).

use crate::path_id::PathId;
use crate::send::Sender;
use crate::send::partial::{ForwardTsnState, SentForwardTsn};
use crate::send::skipped::SkippedNumber;
use crate::time::{Span, Time};

impl Sender {
    #[inline]
    pub(crate) fn owes_forward_tsn(&self) -> bool {
        self.forward.due
    }

    /// Returns `true` if T3 of this path runs for a FORWARD-TSN.
    #[inline]
    pub(crate) fn awaits_forward_tsn(&self, path: PathId) -> bool {
        self.forward.sent.is_some_and(|sent| sent.path == path)
    }

    /// Decides whether a FORWARD-TSN is due: abandonment or a SACK may have moved the ack point, or the latest may have been lost.
    pub(crate) fn consider_forward_tsn(&mut self, now: Time, round_trip: impl FnOnce(PathId) -> Span) {
        if !self.skips_something() {
            self.forward.due = false;
            return;
        }
        let ack_point = self.advance_ack_point();
        if ack_point <= self.outstanding.cumulative() {
            self.forward.due = false;
            return;
        }
        self.forward.due |= match self.forward.sent {
            None => true,
            Some(sent) => ack_point > sent.ack_point || now.since(sent.at) >= round_trip(sent.path),
        };
    }

    /// Takes the path of the latest FORWARD-TSN if the cumulative TSN acknowledges it.
    pub(crate) fn take_acked_forward_tsn(&mut self, cumulative: u64) -> Option<PathId> {
        self.forward.sent.take_if(|sent| sent.up_to <= cumulative).map(|sent| sent.path)
    }

    /// Makes the FORWARD-TSN that waits on this path due again. Returns `true` if there is one.
    pub(crate) fn withdraw_forward_tsn(&mut self, path: PathId) -> bool {
        let withdrawn = self.forward.sent.take_if(|sent| sent.path == path).is_some();
        self.forward.due |= withdrawn;
        withdrawn
    }

    /// Returns the TSN up to which the next FORWARD-TSN goes, and the streams that it names, at most `most_streams`.
    pub(crate) fn next_forward_tsn(&mut self, most_streams: usize) -> Option<(u64, &[SkippedNumber])> {
        let ack_point = self.partial.ack_point;
        let streams = &mut self.forward.streams;
        let up_to = self.partial.skipped.streams_up_to(ack_point, most_streams, streams)?;
        Some((up_to, &self.forward.streams))
    }

    /// Records a sent FORWARD-TSN; `None` if it could not be written.
    pub(crate) fn note_forward_tsn(&mut self, up_to: Option<u64>, path: PathId, now: Time) {
        self.forward.due = false;
        if let Some(up_to) = up_to {
            let ack_point = self.advance_ack_point();
            self.forward.sent = Some(SentForwardTsn { up_to, ack_point, path, at: now });
        }
    }

    /// Clears the state, because the association is closed or has restarted.
    pub(crate) fn end_forward_tsn(&mut self) {
        self.forward = ForwardTsnState::default();
    }
}

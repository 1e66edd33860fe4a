//! The zero-window probe in flight (RFC 9260 section 6.1 A).

use crate::path_id::PathId;
use crate::send::Sender;
use crate::send::peer_window::WindowProbe;
use crate::time::Time;

impl Sender {
    /// Returns the TSN of the zero-window probe in flight.
    pub(crate) fn window_probe(&self) -> Option<u64> {
        self.window_probe.map(|probe| probe.tsn)
    }

    pub(crate) fn begin_window_probe(&mut self, tsn: u64) {
        self.window_probe = Some(WindowProbe { tsn, answered_at: None });
    }

    /// Ends the probe if its chunk, with this TSN, was abandoned.
    pub(crate) fn end_window_probe_of(&mut self, tsn: u64) {
        self.window_probe.take_if(|probe| probe.tsn == tsn);
    }

    /// Records a SACK while a probe is in flight. The probe ends once the peer acknowledges its chunk or advertises a window with
    /// room for it. Later time-outs of the chunk count as path errors again.
    pub(crate) fn note_probe_answer(&mut self, cumulative: u64, now: Time) {
        let Some(probe) = &mut self.window_probe else { return };
        let bytes = self.outstanding.get(probe.tsn).map_or(0, |chunk| chunk.draft.payload.len() as u64);
        let open = self.profile.window_cost(bytes, 1) <= self.window.advertised();
        if cumulative >= probe.tsn || open {
            self.window_probe = None;
        } else {
            probe.answered_at = Some(now);
        }
    }

    /// Returns `true` if the peer has sent a SACK since the latest copy of the zero-window probe was sent on this path. A time-out
    /// of the probe then does not count as a path error. One SACK counts for all paths that carry copies of the probe.
    //= docs/rfc9260.txt#section-6.1
    //# If the sender continues to receive SACK chunks from the peer while doing zero window probing, the unacknowledged
    //# window probes SHOULD NOT increment the error counter for the association or any destination transport address.
    pub(crate) fn probe_was_answered(&self, path: PathId) -> bool {
        let Some(WindowProbe { tsn, answered_at: Some(answered_at) }) = self.window_probe else {
            return false;
        };
        let on_path = self.outstanding.transmissions_of(tsn).filter(|copy| copy.path == path);
        on_path.map(|copy| copy.stamps.sent_at).max().is_some_and(|sent_at| answered_at >= sent_at)
    }
}

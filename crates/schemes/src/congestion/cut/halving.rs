//! Multiplicative decrease of the standard (RFC 9260 sections 7.2.3 and 7.2.4), with the profile's floors.

use anabranch_core::policy::{Event, EventSet, LossCause, PathFacts, Reason, View, Window};
use anabranch_core::profile::Profile;
use anabranch_core::units::ChunkBytes;

use crate::congestion::{Change, Cut, PathLoss};

pub(crate) const FILE: &str = file!();

/// Halves the window, or reduces it to one chunk after T3.
#[derive(Clone, Debug)]
pub struct Halving;

impl Cut for Halving {
    copied!(Cut);

    fn events(&self) -> EventSet {
        EventSet::NONE
    }

    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>) {}

    fn cut(&mut self, loss: &PathLoss<'_>) -> Change {
        halve(loss.window(), loss.cause, loss.facts(), loss.view.profile)
    }
}

/// Returns the window that the standard prescribes after a loss.
pub(crate) fn halve(window: Window, cause: LossCause, path: &PathFacts, profile: &Profile) -> Change {
    let half = window.cwnd.over(2);
    let (window, rule) = match cause {
        LossCause::FastRetransmit => {
            (after_fast_retransmit(half, path, profile), "halved by fast retransmit")
        }
        LossCause::Rescheduled => (after_fast_retransmit(half, path, profile), "halved by rescheduling"),
        LossCause::Timeout => (after_timeout(window, half, path, profile), "T3 expired"),
    };
    Change { window, reason: Reason::figure(rule, "half_bytes", half.get() as f64) }
}

/// RFC 9260 section 7.2.3 with `reduced` in place of half the window: sets threshold and window to it, or to the floor.
pub(crate) fn after_fast_retransmit(reduced: ChunkBytes, path: &PathFacts, profile: &Profile) -> Window {
    //= docs/rfc9260.txt#section-7.2.3
    //# Upon detection of packet losses from SACK chunks (see Section 7.2.4), an endpoint SHOULD do the following:
    let ssthresh = reduced.max(path.largest_chunk.times(profile.fast_retransmit_floor));
    Window { cwnd: ssthresh, ssthresh, partial_bytes_acked: ChunkBytes::ZERO }
}

/// RFC 9260 section 7.2.3 for T3, with `reduced` in place of half the window: threshold as above, window of one chunk.
pub(crate) fn after_timeout(
    window: Window,
    reduced: ChunkBytes,
    path: &PathFacts,
    profile: &Profile,
) -> Window {
    let largest = path.largest_chunk;
    //= docs/rfc9260.txt#section-7.2.3
    //# When the T3-rtx timer expires on an address, SCTP SHOULD perform slow start by:
    let recomputed = window.cwnd > largest || profile.timeout_cuts_at_one_chunk;
    let ssthresh =
        if recomputed { reduced.max(largest.times(profile.timeout_floor)) } else { window.ssthresh };
    //= docs/rfc9260.txt#section-7.2.1
    //# *  The initial cwnd after a retransmission timeout MUST be no more than PMDCS, and only one packet is allowed to
    //# be in flight until successful acknowledgement.
    Window { cwnd: largest, ssthresh, partial_bytes_acked: ChunkBytes::ZERO }
}

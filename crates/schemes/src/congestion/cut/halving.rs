//! Multiplicative decrease as the standard has it (RFC 9260 sections 7.2.3 and 7.2.4), with the profile's floors.

use anabranch_core::policy::{Event, LossCause, PathFacts, Reason, View, Window};
use anabranch_core::profile::Profile;
use anabranch_core::units::ChunkBytes;

use crate::congestion::{Change, Cut, Suffered};

/// Half the window, and one chunk after T3.
#[derive(Debug)]
pub struct Halving;

impl Cut for Halving {
    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>) {}

    fn cut(&mut self, suffered: &Suffered<'_>) -> Change {
        halve(suffered.window(), suffered.cause, suffered.facts(), suffered.view.profile)
    }
}

/// What the standard makes of a window that suffered a loss.
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

/// RFC 9260 section 7.2.3 with `reduced` in place of half the window: threshold and window are that, or the floor.
pub(crate) fn after_fast_retransmit(reduced: ChunkBytes, path: &PathFacts, profile: &Profile) -> Window {
    let ssthresh = reduced.max(path.largest_chunk.times(profile.fast_retransmit_floor));
    Window { cwnd: ssthresh, ssthresh, partial_bytes_acked: ChunkBytes::ZERO }
}

/// RFC 9260 section 7.2.3 for T3, with `reduced` in place of half the window: the threshold is that, or the floor, and the
/// window one chunk.
pub(crate) fn after_timeout(
    window: Window,
    reduced: ChunkBytes,
    path: &PathFacts,
    profile: &Profile,
) -> Window {
    let largest = path.largest_chunk;
    let recomputed = window.cwnd > largest || profile.timeout_cuts_at_one_chunk;
    let ssthresh =
        if recomputed { reduced.max(largest.times(profile.timeout_floor)) } else { window.ssthresh };
    Window { cwnd: largest, ssthresh, partial_bytes_acked: ChunkBytes::ZERO }
}

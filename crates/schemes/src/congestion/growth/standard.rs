//! Slow start and congestion avoidance of the standard (RFC 9260 sections 7.2.1 and 7.2.2).

use anabranch_core::policy::{Event, EventSet, Reason, View, Window};
use anabranch_core::units::ChunkBytes;

use crate::congestion::{Acknowledged, Change, Growth};

/// In slow start grows by a chunk per SACK, or the profile's limit; in congestion avoidance by one chunk per acknowledged window.
#[derive(Clone, Debug)]
pub struct StandardGrowth;

impl Growth for StandardGrowth {
    copied!(Growth);

    fn events(&self) -> EventSet {
        EventSet::NONE
    }

    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>) {}

    fn grow(&mut self, acknowledged: &Acknowledged<'_>) -> Option<Change> {
        let largest = acknowledged.facts().largest_chunk;
        slow_start(acknowledged.window(), acknowledged.bytes, acknowledged.slow_start_limit())
            .or_else(|| avoidance(acknowledged.window(), largest))
    }
}

/// RFC 9260 section 7.2.1: grows by the acknowledged bytes, at most `limit`. Returns `None` above ssthresh.
pub(crate) fn slow_start(window: Window, acked: ChunkBytes, limit: ChunkBytes) -> Option<Change> {
    (window.cwnd <= window.ssthresh).then(|| {
        //= docs/rfc9260.txt#section-7.2.1
        //# If these conditions are met, then cwnd MUST be increased by, at most, the lesser of
        let by = acked.min(limit);
        let reason = Reason::figure("slow start", "acked_bytes", by.get() as f64);
        Change { window: Window { cwnd: window.cwnd + by, ..window }, reason }
    })
}

/// RFC 9260 section 7.2.2: grows by one chunk once a window of bytes has been acknowledged.
//= docs/rfc9260.txt#section-7.2.2
//# When cwnd is greater than ssthresh, cwnd SHOULD be incremented by PMDCS per RTT if the sender has cwnd or more bytes
//# of data outstanding for the corresponding transport address.
//= docs/rfc9260.txt#section-7.2.2
//# *  SCTP SHOULD increment cwnd by PMDCS once per RTT when the sender has cwnd or more bytes of data outstanding for the
//# corresponding transport address.
//= docs/rfc9260.txt#section-7.2.2
//# *  SCTP MUST NOT increment cwnd by more than PMDCS per RTT.
fn avoidance(window: Window, largest: ChunkBytes) -> Option<Change> {
    let spent = spend_window(window)?;
    let reason =
        Reason::figure("a window of data was acknowledged", "largest_chunk_bytes", largest.get() as f64);
    Some(Change { window: Window { cwnd: window.cwnd + largest, ..spent }, reason })
}

/// Subtracts a window from the bytes that count toward the next step. Returns `None` if they do not suffice.
pub(crate) fn spend_window(window: Window) -> Option<Window> {
    let partial_bytes_acked = window.partial_bytes_acked - window.cwnd;
    (window.partial_bytes_acked >= window.cwnd).then_some(Window { partial_bytes_acked, ..window })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, bytes};

    fn window(cwnd: u64, ssthresh: u64, partial: u64) -> Window {
        Window { cwnd: bytes(cwnd), ssthresh: bytes(ssthresh), partial_bytes_acked: bytes(partial) }
    }

    #[test]
    fn slow_start_ends_above_the_threshold() {
        let cwnd = |ssthresh| {
            slow_start(window(5000, ssthresh, 0), bytes(2000), bytes(M)).map(|change| change.window.cwnd)
        };
        assert_eq!([cwnd(4999), cwnd(5000), cwnd(5001)], [None, Some(bytes(6468)), Some(bytes(6468))]);
    }

    #[test]
    fn acked_window_is_used_once() {
        assert_eq!(spend_window(window(5000, 4000, 4999)), None);
        assert_eq!(spend_window(window(5000, 4000, 5000)), Some(window(5000, 4000, 0)));
        assert_eq!(spend_window(window(5000, 4000, 12_000)), Some(window(5000, 4000, 7000)));
    }
}

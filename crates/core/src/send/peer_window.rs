//! Estimated receive window of the peer, and the share that outstanding chunks take of it (RFC 9260 section 6.2.1).

use crate::profile::Profile;
use crate::time::Time;
use crate::units::WindowBytes;

/// Receive window of the peer. A chunk counts once, independent of the number of its copies in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerWindow {
    /// Estimated free window.
    available: WindowBytes,
    /// Window that the peer advertised last.
    advertised: WindowBytes,
    /// Window that the peer advertised first.
    initial: WindowBytes,
    /// Cost of chunks in flight.
    in_flight: WindowBytes,
    /// Cost of chunks that were declared lost and not yet retransmitted.
    lost: WindowBytes,
    /// Cost of chunks that have a TSN and were never sent.
    bound: WindowBytes,
}

impl PeerWindow {
    #[inline]
    pub(crate) fn available(&self) -> WindowBytes {
        self.available
    }

    #[inline]
    pub(crate) fn advertised(&self) -> WindowBytes {
        self.advertised
    }

    #[inline]
    pub(crate) fn initial(&self) -> WindowBytes {
        self.initial
    }

    #[inline]
    pub(crate) fn in_flight(&self) -> WindowBytes {
        self.in_flight
    }

    #[inline]
    pub(crate) fn lost(&self) -> WindowBytes {
        self.lost
    }

    #[inline]
    pub(crate) fn bound(&self) -> WindowBytes {
        self.bound
    }

    /// Sets the first window, from INIT or INIT ACK.
    #[inline]
    pub(crate) fn begin(&mut self, window: WindowBytes) {
        (self.available, self.advertised, self.initial) = (window, window, window);
    }

    /// Records the window that a SACK advertises.
    #[inline]
    pub(crate) fn advertise(&mut self, window: WindowBytes) {
        self.advertised = window;
    }

    /// Clears the costs: no chunk is outstanding.
    #[inline]
    pub(crate) fn forget_costs(&mut self) {
        (self.in_flight, self.lost, self.bound) = (WindowBytes::ZERO, WindowBytes::ZERO, WindowBytes::ZERO);
    }

    /// Returns the cost of all outstanding chunks.
    pub(crate) fn outstanding(&self, profile: &Profile) -> WindowBytes {
        let sent = self.in_flight + self.bound;
        if profile.lost_counts_until_resent { sent + self.lost } else { sent }
    }

    /// Estimates the free window: the window advertised last, minus the cost of outstanding chunks.
    //= docs/rfc9260.txt#section-6.2.1
    //# An endpoint SHOULD use the following rules to calculate the rwnd, using the a_rwnd value, the Cumulative TSN Ack,
    //# and Gap Ack Blocks in a received SACK chunk.
    pub(crate) fn estimate(&mut self, profile: &Profile) {
        self.available = match profile.shared_receive_window {
            true => self.advertised - self.outstanding(profile),
            false => self.advertised,
        };
    }

    /// Charges a chunk that got its TSN. RFC 9260 section 6.2.1 B charges it when it is sent, mostly at the same time.
    pub(crate) fn bind(&mut self, cost: WindowBytes, profile: &Profile) {
        self.bound += cost;
        self.charge(cost, profile);
    }

    /// Records the first transmission of a bound chunk, which was charged before.
    pub(crate) fn send_bound(&mut self, cost: WindowBytes) {
        self.bound -= cost;
        self.in_flight += cost;
    }

    /// Returns the share of a chunk in flight that was declared lost (RFC 9260 section 6.2.1 C).
    pub(crate) fn release_lost(&mut self, cost: WindowBytes, profile: &Profile) {
        self.in_flight -= cost;
        self.lost += cost;
        if profile.shared_receive_window {
            self.available += cost;
        }
    }

    /// Counts a lost chunk that has arrived as in flight again, until the SACK is processed.
    pub(crate) fn revoke_loss(&mut self, cost: WindowBytes) {
        self.lost -= cost;
        self.in_flight += cost;
    }

    /// Charges a lost chunk that is retransmitted.
    pub(crate) fn retransmit(&mut self, cost: WindowBytes, profile: &Profile) {
        self.lost -= cost;
        self.in_flight += cost;
        self.charge(cost, profile);
    }

    /// Removes an acknowledged chunk from the chunks in flight.
    #[inline]
    pub(crate) fn acknowledge(&mut self, cost: WindowBytes) {
        self.in_flight -= cost;
    }

    /// Returns the share of an abandoned chunk that was never sent.
    pub(crate) fn abandon_bound(&mut self, cost: WindowBytes, profile: &Profile) {
        self.bound -= cost;
        if profile.shared_receive_window {
            self.available += cost;
        }
    }

    /// Removes an abandoned chunk from the chunks in flight. The peer may buffer it until the FORWARD-TSN arrives, so its share is
    /// free only when the peer advertises it.
    #[inline]
    pub(crate) fn abandon_in_flight(&mut self, cost: WindowBytes) {
        self.in_flight -= cost;
    }

    /// Removes an abandoned chunk from the lost ones. Its share was returned when it was declared lost.
    #[inline]
    pub(crate) fn abandon_lost(&mut self, cost: WindowBytes) {
        self.lost -= cost;
    }

    /// Counts a chunk as in flight again after its acknowledgement was revoked.
    #[inline]
    pub(crate) fn renege(&mut self, cost: WindowBytes) {
        self.in_flight += cost;
    }

    /// Subtracts a cost from the window if all paths share one.
    fn charge(&mut self, cost: WindowBytes, profile: &Profile) {
        if profile.shared_receive_window {
            self.available -= cost;
        }
    }
}

/// Zero-window probe in flight. While the peer answers it, its time-outs are not errors.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowProbe {
    pub(super) tsn: u64,
    /// Time of the latest SACK since the probe was first sent.
    pub(super) answered_at: Option<Time>,
}

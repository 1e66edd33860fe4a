//! The peer's receive window as the sender estimates it, and what outstanding chunks cost of it (RFC 9260 section 6.2.1).

use crate::profile::Profile;
use crate::time::Time;
use crate::units::WindowBytes;

/// Chunks count once, however many copies of them are in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerWindow {
    /// What the peer's buffer still holds.
    available: WindowBytes,
    /// What the peer advertised last.
    advertised: WindowBytes,
    /// What the peer advertised first.
    initial: WindowBytes,
    /// The cost of chunks in flight.
    in_flight: WindowBytes,
    /// The cost of chunks that were declared lost and not retransmitted.
    lost: WindowBytes,
    /// The cost of chunks that have a TSN and were never sent.
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

    /// INIT or INIT ACK has named the first window.
    #[inline]
    pub(crate) fn begin(&mut self, window: WindowBytes) {
        (self.available, self.advertised, self.initial) = (window, window, window);
    }

    /// A SACK has named the window.
    #[inline]
    pub(crate) fn advertise(&mut self, window: WindowBytes) {
        self.advertised = window;
    }

    /// Nothing is outstanding any more.
    #[inline]
    pub(crate) fn forget_costs(&mut self) {
        (self.in_flight, self.lost, self.bound) = (WindowBytes::ZERO, WindowBytes::ZERO, WindowBytes::ZERO);
    }

    /// What all outstanding chunks cost.
    pub(crate) fn outstanding(&self, profile: &Profile) -> WindowBytes {
        let sent = self.in_flight + self.bound;
        if profile.lost_counts_until_resent { sent + self.lost } else { sent }
    }

    /// Takes what is outstanding from the window advertised last.
    //= docs/rfc9260.txt#section-6.2.1
    //# An endpoint SHOULD use the following rules to calculate the rwnd, using the a_rwnd value, the Cumulative TSN Ack,
    //# and Gap Ack Blocks in a received SACK chunk.
    pub(crate) fn estimate(&mut self, profile: &Profile) {
        self.available = match profile.shared_receive_window {
            true => self.advertised - self.outstanding(profile),
            false => self.advertised,
        };
    }

    /// A chunk got its TSN: RFC 9260 section 6.2.1 B subtracts it when it is sent, which for most chunks is now.
    pub(crate) fn bind(&mut self, cost: WindowBytes, profile: &Profile) {
        self.bound += cost;
        self.charge(cost, profile);
    }

    /// A chunk that had its share of the window left for the first time.
    pub(crate) fn send_bound(&mut self, cost: WindowBytes) {
        self.bound -= cost;
        self.in_flight += cost;
    }

    /// A chunk in flight was declared lost: it gives its share back (RFC 9260 section 6.2.1 C).
    pub(crate) fn lose(&mut self, cost: WindowBytes, profile: &Profile) {
        self.in_flight -= cost;
        self.lost += cost;
        if profile.shared_receive_window {
            self.available += cost;
        }
    }

    /// A lost chunk turned out to have arrived: until the SACK is processed it counts as in flight.
    pub(crate) fn revoke_loss(&mut self, cost: WindowBytes) {
        self.lost -= cost;
        self.in_flight += cost;
    }

    /// A lost chunk was retransmitted.
    pub(crate) fn retransmit(&mut self, cost: WindowBytes, profile: &Profile) {
        self.lost -= cost;
        self.in_flight += cost;
        self.charge(cost, profile);
    }

    /// A chunk in flight was acknowledged.
    #[inline]
    pub(crate) fn acknowledge(&mut self, cost: WindowBytes) {
        self.in_flight -= cost;
    }

    /// A chunk that never left was abandoned: its share is free.
    pub(crate) fn abandon_bound(&mut self, cost: WindowBytes, profile: &Profile) {
        self.bound -= cost;
        if profile.shared_receive_window {
            self.available += cost;
        }
    }

    /// A chunk in flight was abandoned. It may arrive and be held until the FORWARD-TSN comes, so its share is free only when
    /// the peer says so.
    #[inline]
    pub(crate) fn abandon_in_flight(&mut self, cost: WindowBytes) {
        self.in_flight -= cost;
    }

    /// A lost chunk, which gave its share back then, was abandoned.
    #[inline]
    pub(crate) fn abandon_lost(&mut self, cost: WindowBytes) {
        self.lost -= cost;
    }

    /// An acknowledgement was taken back.
    #[inline]
    pub(crate) fn renege(&mut self, cost: WindowBytes) {
        self.in_flight += cost;
    }

    /// Takes some of the window, if there is one that all paths share.
    fn charge(&mut self, cost: WindowBytes, profile: &Profile) {
        if profile.shared_receive_window {
            self.available -= cost;
        }
    }
}

/// A zero-window probe in flight: while the peer answers it, its time-outs are not errors.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowProbe {
    pub(super) tsn: u64,
    /// Time of the latest SACK since the probe was sent first.
    pub(super) answered_at: Option<Time>,
}

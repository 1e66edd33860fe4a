//! Facts that a policy reads: plain data, so that a policy can be tested without an endpoint.

use crate::path_cost::PathCost;
use crate::path_id::{PathId, PathSet, PathState};
use crate::policy::decision::Refusal;
use crate::policy::delivery::{DeliverySample, Limiter, SendStamps};
use crate::policy::pacing::Pacing;
use crate::profile::Profile;
use crate::time::{Rate, Span, Time};
use crate::units::{ChunkBytes, WindowBytes};

/// Round-trip times of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RttFacts {
    /// Latest sample.
    pub latest: Option<Span>,
    /// Smallest sample so far.
    pub min: Option<Span>,
    /// Smallest RTT in the last [`Profile::min_rtt_window`] of chunks that were sent once and acknowledged on their own path.
    /// Unlike [`min`](Self::min), it excludes HEARTBEATs, which are small, and SACKs that arrived on another path.
    pub recent_min: Option<Span>,
    /// Smoothed round-trip time (RFC 9260 section 6.3.1).
    pub smoothed: Option<Span>,
    /// Round-trip time variation.
    pub variance: Option<Span>,
}

/// Figures that a [`PathEstimator`](crate::policy::PathEstimator) publishes for the other slots.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimates {
    /// Fraction of transmissions that were lost, 0 to 1.
    pub loss_rate: Option<f64>,
    /// Time in seconds per byte on the path, from the byte's entry into the path's queue until its acknowledgement (CMT-QA's Q,
    /// equation 1). Smaller is better.
    pub seconds_per_byte: Option<f64>,
    /// `true` if the estimator advises against new data on the path.
    pub withdrawn: bool,
    /// Rate of chunk bytes that the path's bottleneck carries for this association.
    pub bottleneck_rate: Option<Rate>,
    /// Round-trip time of the path without queues.
    pub propagation: Option<Span>,
    /// Queueing delay of the current round trip.
    pub queueing: Option<Span>,
    /// Upper bound of `queueing`, which includes the time that data may have waited at the peer for its SACK.
    pub queueing_limit: Option<Span>,
    /// Longest queueing delay of a recent round trip.
    pub longest_queueing: Option<Span>,
    /// Largest delivery rate of chunk bytes in the same period.
    pub largest_rate: Option<Rate>,
    /// Number of round trips of the path.
    pub rounds: u64,
}

/// Facts of one path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathFacts {
    /// Path id, which is the index in [`View::paths`].
    pub id: PathId,
    /// State of failure detection.
    pub state: PathState,
    /// `true` for the primary path.
    pub primary: bool,
    /// Cost of the path, from those that both sides [have set](crate::Association::set_local_cost).
    pub cost: PathCost,
    /// `true` if the peer's address is an IPv6 address.
    pub ipv6: bool,
    /// Number of consecutive errors.
    pub error_count: u32,
    /// Time at which it became potentially failed.
    pub potentially_failed_since: Option<Time>,
    /// Congestion window.
    pub cwnd: ChunkBytes,
    /// Slow-start threshold.
    pub ssthresh: ChunkBytes,
    /// Bytes acknowledged toward the next increment in congestion avoidance.
    pub partial_bytes_acked: ChunkBytes,
    /// Limits of the path beside its window, as congestion control set them and core adopted them.
    pub pacing: Pacing,
    /// Time at which its next packet may be sent at its rate; `None` if that is now. While it is set, an endpoint with data for the
    /// path opens a send opportunity at that time.
    pub paced_until: Option<Time>,
    /// Bytes sent and neither acknowledged nor declared lost.
    pub in_flight: ChunkBytes,
    /// Bytes declared lost on this path and not yet retransmitted.
    pub lost_unsent: ChunkBytes,
    /// Chunk bytes that are bound to this path and were never sent.
    pub bound: ChunkBytes,
    /// Chunk bytes in the send buffer whose latest transmission or binding is on this path. Chunks acknowledged by gap blocks count
    /// until the cumulative TSN passes them.
    pub held: ChunkBytes,
    /// `true` if buffer sharing permits the chunk that the scheduler is asked about on this path.
    pub within_share: bool,
    /// Time at which DATA was last sent on the path.
    pub last_sent_at: Option<Time>,
    /// Round-trip times.
    pub rtt: RttFacts,
    /// Retransmission time-out, including back-off.
    pub rto: Span,
    /// Largest DATA chunk that fits a packet of this path, with header: the unit of congestion control.
    pub largest_chunk: ChunkBytes,
    /// TSN that ends fast recovery: the path is in recovery while a TSN up to this one is outstanding.
    pub recovery_point: Option<u64>,
    /// Chunk bytes sent, counting every transmission.
    pub sent: ChunkBytes,
    /// Chunk bytes declared lost.
    pub lost: ChunkBytes,
    /// Stamps of the latest transmission that was declared lost. During [`Event::Lost`](crate::policy::Event) it is that of the
    /// lost chunk.
    pub latest_loss: Option<SendStamps>,
    /// Chunk bytes acknowledged.
    pub delivered: ChunkBytes,
    /// Rate of the latest sample that has one.
    pub delivery_rate: Option<Rate>,
    /// Latest delivery-rate sample. [`SackDone`](crate::policy::SackDone) contains each new one.
    pub delivery: Option<DeliverySample>,
    /// Limit of the path at the end of the latest send opportunity.
    pub limiter: Limiter,
    /// Number of packets that may be sent in this opportunity although the window is full.
    pub exempt_packets: u32,
    /// Number of packets of new data that may still be sent in this opportunity.
    pub burst_left: u32,
    /// Number of packets of lost chunks that may still be sent in this opportunity.
    pub resend_burst_left: u32,
    /// Figures of the estimator.
    pub estimates: Estimates,
}

impl PathFacts {
    /// Returns the facts of a new path, for the endpoint and for tests of policies.
    pub fn new(id: PathId, largest_chunk: ChunkBytes) -> Self {
        PathFacts {
            id,
            state: PathState::Unconfirmed,
            primary: false,
            cost: PathCost::Free,
            ipv6: false,
            error_count: 0,
            potentially_failed_since: None,
            cwnd: ChunkBytes::ZERO,
            ssthresh: ChunkBytes::ZERO,
            partial_bytes_acked: ChunkBytes::ZERO,
            pacing: Pacing::OFF,
            paced_until: None,
            in_flight: ChunkBytes::ZERO,
            lost_unsent: ChunkBytes::ZERO,
            bound: ChunkBytes::ZERO,
            held: ChunkBytes::ZERO,
            within_share: true,
            last_sent_at: None,
            rtt: RttFacts::default(),
            rto: Span::ZERO,
            largest_chunk,
            recovery_point: None,
            sent: ChunkBytes::ZERO,
            lost: ChunkBytes::ZERO,
            latest_loss: None,
            delivered: ChunkBytes::ZERO,
            delivery_rate: None,
            delivery: None,
            limiter: Limiter::Window,
            exempt_packets: 0,
            burst_left: u32::MAX,
            resend_burst_left: u32::MAX,
            estimates: Estimates::default(),
        }
    }

    /// Returns `true` if the state of the path permits data.
    pub fn is_active(&self) -> bool {
        self.state == PathState::Active
    }

    /// Returns `true` if a retransmission may be sent now. Waiting lost chunks do not count against the window.
    pub fn admits_retransmission(&self) -> bool {
        self.paced_until.is_none() && self.has_room_for_retransmission()
    }

    /// Returns `true` if windows and bursts permit a retransmission, apart from pacing.
    pub fn has_room_for_retransmission(&self) -> bool {
        self.resend_burst_left > 0
            && (self.exempt_packets > 0 || (self.in_flight < self.cwnd && self.is_below_cap()))
    }

    /// Returns `true` if the bytes in flight are below the in-flight cap.
    pub fn is_below_cap(&self) -> bool {
        self.pacing.in_flight_cap.is_none_or(|cap| self.in_flight < cap)
    }
}

/// Chunk that holds the cumulative TSN back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadOfLine {
    /// Unwrapped TSN.
    pub tsn: u64,
    /// Length of the chunk with its header.
    pub bytes: ChunkBytes,
    /// Path of the latest transmission, or the one to which it is bound.
    pub path: PathId,
    /// Paths on which it is in flight; none if it waits for a transmission.
    pub in_flight_on: PathSet,
    /// Send time of the latest transmission; `None` if it was never sent.
    pub sent_at: Option<Time>,
    /// Number of transmissions.
    pub transmissions: u32,
}

/// Facts of the association.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct AssociationFacts {
    /// User bytes that have no TSN yet; data bound to a path has one.
    pub queued_bytes: u64,
    /// Estimated free receive window of the peer.
    pub peer_window: WindowBytes,
    /// Window that the peer advertised last.
    pub peer_window_advertised: WindowBytes,
    /// Window that the peer advertised first.
    pub peer_window_initial: WindowBytes,
    /// Free send buffer in user bytes; `None` if it is unlimited.
    pub send_buffer_free: Option<u64>,
    /// Limit of the send buffer in user bytes; `None` if it is unlimited.
    pub send_buffer_limit: Option<u64>,
    /// Path of the latest new data.
    pub last_new_data_path: Option<PathId>,
    /// Lowest unacknowledged chunk.
    pub head_of_line: Option<HeadOfLine>,
    /// Cumulative TSN, unwrapped.
    pub cumulative_tsn: u64,
    /// `true` if the peer did not announce that it uses the flags of SACKs as CMT's delayed acks do
    /// ([`SackFlags`](crate::profile::SackFlags)): the flags of its SACKs are read, and those of own ones sent, as zero.
    pub foreign_sack_flags: bool,
}

/// Facts that a policy gets for its decisions.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Current time.
    pub now: Time,
    /// Rules in force.
    pub profile: &'a Profile,
    /// All paths, indexed by id, including full and inactive ones. A removed path stays as inactive.
    pub paths: &'a [PathFacts],
    /// Facts of the association.
    pub association: &'a AssociationFacts,
}

impl<'a> View<'a> {
    /// Returns the facts of one path.
    pub fn path(&self, id: PathId) -> &'a PathFacts {
        &self.paths[id.index()]
    }

    /// Returns the bytes that count against a path's window for new data (see [`Profile::lost_counts_until_resent`]).
    pub fn outstanding(&self, id: PathId) -> ChunkBytes {
        let path = self.path(id);
        if self.profile.lost_counts_until_resent { path.in_flight + path.lost_unsent } else { path.in_flight }
    }

    /// Returns the bytes that count against all windows together.
    pub fn total_outstanding(&self) -> ChunkBytes {
        self.paths.iter().map(|p| self.outstanding(p.id)).sum()
    }

    /// Returns `true` if a path's window and in-flight cap permit new data; the last packet may exceed cwnd (RFC 9260
    /// section 6.1 B).
    //= docs/rfc9260.txt#section-6.1
    //# B)  At any given time, the sender MUST NOT transmit new data to a given transport address if it has cwnd + (PMDCS
    //# - 1) or more bytes of data outstanding to that transport address.
    //= docs/rfc9260.txt#section-6.1
    //# If data is available, the sender SHOULD exceed cwnd by up to (PMDCS - 1) bytes on a new data transmission if the
    //# flightsize does not currently reach cwnd.
    //= docs/rfc9260.txt#section-6.1
    //# The breach of cwnd MUST constitute one packet only.
    //= docs/rfc9260.txt#section-7.2.1
    //# A limited overbooking as described in rule B in Section 6.1 SHOULD be supported.
    pub fn admits_new_data(&self, id: PathId) -> bool {
        self.outstanding(id) < self.path(id).cwnd && self.path(id).is_below_cap()
    }

    /// Returns the reason against new data on a path now; `None` if there is none. Core overrules a choice of a refused path.
    pub fn refusal(&self, id: PathId) -> Option<Refusal> {
        let path = self.path(id);
        if !path.is_active() {
            Some(Refusal::State)
        } else if self.outstanding(id) >= path.cwnd {
            Some(Refusal::WindowFull)
        } else if !path.is_below_cap() {
            Some(Refusal::InFlightCap)
        } else if path.paced_until.is_some() {
            Some(Refusal::Paced)
        } else if path.burst_left == 0 {
            Some(Refusal::Burst)
        } else if !path.within_share {
            Some(Refusal::BufferShare)
        } else {
            None
        }
    }

    /// Returns the active paths in order of id.
    pub fn active(&self) -> impl Iterator<Item = &'a PathFacts> + use<'a> {
        self.paths.iter().filter(|p| p.is_active())
    }
}

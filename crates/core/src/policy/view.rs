//! What a policy may look at: plain data, so that a policy can be tested without an endpoint.

use crate::path_id::{PathId, PathSet, PathState};
use crate::policy::decision::Refusal;
use crate::policy::delivery::{DeliverySample, Limiter, SendStamps};
use crate::policy::pacing::Pacing;
use crate::profile::Profile;
use crate::time::{Rate, Span, Time};
use crate::units::{ChunkBytes, WindowBytes};

/// A path's round-trip figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RttFacts {
    /// The latest sample.
    pub latest: Option<Span>,
    /// The smallest sample so far.
    pub min: Option<Span>,
    /// The smallest time of the last [`Profile::min_rtt_window`] in which a chunk that was sent once was acknowledged on the path that
    /// it went out on. HEARTBEATs, which are small, and SACKs that came back another way are not in it, as they are in
    /// [`min`](Self::min).
    pub recent_min: Option<Span>,
    /// The smoothed round-trip time (RFC 9260 section 6.3.1).
    pub smoothed: Option<Span>,
    /// The round-trip time variation.
    pub variance: Option<Span>,
}

/// What a [`PathEstimator`](crate::policy::PathEstimator) publishes for the other slots.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimates {
    /// Share of transmissions that were lost, 0 to 1.
    pub loss_rate: Option<f64>,
    /// Seconds that the path takes for a byte, from the moment it enters the path's queue until its acknowledgement
    /// (CMT-QA's Q, equation 1). Smaller is better.
    pub seconds_per_byte: Option<f64>,
    /// The estimator advises against new data on the path.
    pub withdrawn: bool,
    /// The rate of chunk bytes that the path's bottleneck carries for this association.
    pub bottleneck_rate: Option<Rate>,
    /// The path's round trip without queues.
    pub propagation: Option<Span>,
    /// What queues add to the present round trip.
    pub queueing: Option<Span>,
    /// The most that queues have added to a round trip of late.
    pub longest_queueing: Option<Span>,
    /// The largest rate at which chunk bytes were delivered in that time.
    pub largest_rate: Option<Rate>,
    /// Round trips that the path has made.
    pub rounds: u64,
}

/// What is known of one path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathFacts {
    /// Its id, which is its index in [`View::paths`].
    pub id: PathId,
    /// Its state.
    pub state: PathState,
    /// Whether it is the primary path.
    pub primary: bool,
    /// Whether the peer's address is an IPv6 address.
    pub ipv6: bool,
    /// Consecutive errors.
    pub error_count: u32,
    /// When it became potentially failed.
    pub potentially_failed_since: Option<Time>,
    /// Congestion window.
    pub cwnd: ChunkBytes,
    /// Slow-start threshold.
    pub ssthresh: ChunkBytes,
    /// Bytes acked toward the next increment in congestion avoidance.
    pub partial_bytes_acked: ChunkBytes,
    /// What limits the path beside its window, as congestion control set it and core adopted it.
    pub pacing: Pacing,
    /// When its next packet may leave at its rate; `None` as soon as that is now. While it is set, an endpoint that has something
    /// for the path opens a send opportunity at that time.
    pub paced_until: Option<Time>,
    /// Bytes sent and neither acked nor declared lost.
    pub in_flight: ChunkBytes,
    /// Bytes declared lost on this path that have not been sent again.
    pub lost_unsent: ChunkBytes,
    /// Chunk bytes that were bound to this path and have not been sent.
    pub bound: ChunkBytes,
    /// Chunk bytes in the send buffer whose latest transmission, or binding, is this path's: what a gap block acknowledged
    /// counts until the cumulative TSN passes it.
    pub held: ChunkBytes,
    /// Whether buffer sharing lets the path take the chunk that the scheduler is asked about.
    pub within_share: bool,
    /// When DATA left on it last.
    pub last_sent_at: Option<Time>,
    /// Round-trip times.
    pub rtt: RttFacts,
    /// Retransmission time-out with its back-off.
    pub rto: Span,
    /// The largest DATA chunk that fits a packet of this path, header included: the unit of congestion control.
    pub largest_chunk: ChunkBytes,
    /// While a TSN up to this one is outstanding the path is in fast recovery.
    pub recovery_point: Option<u64>,
    /// Chunk bytes sent, every transmission counted.
    pub sent: ChunkBytes,
    /// Chunk bytes declared lost.
    pub lost: ChunkBytes,
    /// What was noted as the latest transmission left that was declared lost; of the chunk that [`Event::Lost`](crate::policy::Event)
    /// tells of while it is told.
    pub latest_loss: Option<SendStamps>,
    /// Chunk bytes acknowledged.
    pub delivered: ChunkBytes,
    /// The rate of the latest sample that has one.
    pub delivery_rate: Option<Rate>,
    /// The latest sample of how fast the path delivers. [`SackDone`](crate::policy::SackDone) has each as it is made.
    pub delivery: Option<DeliverySample>,
    /// What kept the path from sending more as the latest send opportunity ended.
    pub limiter: Limiter,
    /// Packets that may leave in this opportunity although the window is full.
    pub exempt_packets: u32,
    /// Packets of new data that may still leave in this opportunity.
    pub burst_left: u32,
    /// Packets of lost chunks that may still leave in this opportunity.
    pub resend_burst_left: u32,
    /// What the estimator publishes.
    pub estimates: Estimates,
}

impl PathFacts {
    /// A path as it is before anything happened on it. For tests of policies, and for the endpoint itself.
    pub fn new(id: PathId, largest_chunk: ChunkBytes) -> Self {
        PathFacts {
            id,
            state: PathState::Unconfirmed,
            primary: false,
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

    /// Whether data may be sent on the path as far as its state goes.
    pub fn is_active(&self) -> bool {
        self.state == PathState::Active
    }

    /// Whether a retransmission may leave now: lost chunks that wait do not count against the window that is to send them.
    pub fn admits_retransmission(&self) -> bool {
        self.paced_until.is_none() && self.has_room_for_retransmission()
    }

    /// The same, as far as windows and bursts go and whatever pacing says.
    pub fn has_room_for_retransmission(&self) -> bool {
        self.resend_burst_left > 0
            && (self.exempt_packets > 0 || (self.in_flight < self.cwnd && self.is_below_cap()))
    }

    /// Whether less is in flight than congestion control lets be beside the window.
    pub fn is_below_cap(&self) -> bool {
        self.pacing.in_flight_cap.is_none_or(|cap| self.in_flight < cap)
    }
}

/// The chunk that holds the cumulative TSN back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadOfLine {
    /// Unwrapped TSN.
    pub tsn: u64,
    /// Chunk bytes.
    pub bytes: ChunkBytes,
    /// The path of its latest transmission, or the one it is bound to.
    pub path: PathId,
    /// The paths that it is in flight on; none if it waits to be sent, for the first time or again.
    pub in_flight_on: PathSet,
    /// When its latest transmission left; `None` if it was never sent.
    pub sent_at: Option<Time>,
    /// How often it was sent.
    pub transmissions: u32,
}

/// What is known of the association.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct AssociationFacts {
    /// User bytes that have no TSN yet; what is bound to a path has one.
    pub queued_bytes: u64,
    /// What the peer's receive buffer still holds, as the sender estimates it.
    pub peer_window: WindowBytes,
    /// The window the peer advertised last.
    pub peer_window_advertised: WindowBytes,
    /// The window the peer advertised first.
    pub peer_window_initial: WindowBytes,
    /// Free send buffer in user bytes; `None` if it is unlimited.
    pub send_buffer_free: Option<u64>,
    /// The whole send buffer in user bytes; `None` if it is unlimited.
    pub send_buffer_limit: Option<u64>,
    /// The path that carried the latest new data.
    pub last_new_data_path: Option<PathId>,
    /// The earliest chunk that is not acknowledged.
    pub head_of_line: Option<HeadOfLine>,
    /// The highest TSN acknowledged cumulatively, unwrapped.
    pub cumulative_tsn: u64,
    /// The peer did not say that it reads and writes the flags of SACKs as CMT's delayed acks do
    /// ([`SackFlags`](crate::profile::SackFlags)): those of its SACKs are read as zero, and so are ours.
    pub foreign_sack_flags: bool,
}

/// Everything a policy may look at when it decides.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The time.
    pub now: Time,
    /// The rules in force.
    pub profile: &'a Profile,
    /// All paths, indexed by id; full and inactive ones are listed too. A removed path stays as inactive.
    pub paths: &'a [PathFacts],
    /// The association.
    pub association: &'a AssociationFacts,
}

impl<'a> View<'a> {
    /// One path.
    pub fn path(&self, id: PathId) -> &'a PathFacts {
        &self.paths[id.index()]
    }

    /// What counts against a path's window for new data (see [`Profile::lost_counts_until_resent`]).
    pub fn outstanding(&self, id: PathId) -> ChunkBytes {
        let path = self.path(id);
        if self.profile.lost_counts_until_resent { path.in_flight + path.lost_unsent } else { path.in_flight }
    }

    /// What counts against all windows together.
    pub fn total_outstanding(&self) -> ChunkBytes {
        self.paths.iter().map(|p| self.outstanding(p.id)).sum()
    }

    /// Whether a path's window, and its cap on what is in flight, admit new data: RFC 9260 section 6.1 B lets the last packet overshoot.
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

    /// Why a path cannot take new data now; `None` if it can. Core overrules a scheduler that sends where there is a refusal.
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

    /// The active paths in order of id.
    pub fn active(&self) -> impl Iterator<Item = &'a PathFacts> + use<'a> {
        self.paths.iter().filter(|p| p.is_active())
    }
}

//! State of one path: a pair of a local and a remote address, with timers, HEARTBEATs and measurements.
//!
//! Other modules only read it: [`Paths`](super::Paths) changes it.

use crate::address::PathAddress;
use crate::path_cost::PathCost;
use crate::path_id::PathId;
use crate::paths::cost::PathCosts;
use crate::paths::mtu_search::MtuSearch;
use crate::paths::pacer::Pacer;
use crate::paths::pseudo::PseudoCumulative;
use crate::paths::recovery::PathRecovery;
use crate::time::{Span, Time, earliest};
use crate::windowed::WindowedMin;

/// Validation state of the remote address, which limits the bytes that may be sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressValidation {
    /// The application named the address, or it has answered: no limit.
    Trusted,
    /// The peer listed the address, and no packet has come from it: small HEARTBEATs only.
    Listed,
    /// Packets came from the address and may be forged.
    Seen {
        /// Bytes that may still be sent to the address.
        allowance_bytes: u64,
    },
}

/// Source of a path's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathSource {
    /// The application named the addresses, or the peer listed its address.
    Named,
    /// A packet came from the address.
    Learned,
    /// The driver offered the addresses because the peer had reported its own.
    Offered,
}

/// HEARTBEAT that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingHeartbeat {
    pub(crate) nonce: u64,
    pub(crate) sent_at: Time,
    /// Own cost of the path that it reports.
    pub(crate) cost: Option<PathCost>,
}

/// Timers of a path. `None` is a stopped timer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathTimers {
    /// Expiry of T3-rtx.
    pub(crate) t3: Option<Time>,
    /// `true` if the next tail probe follows an unanswered one, and does not restart T3.
    pub(crate) repeats_tail_probe: bool,
    /// Time of the next HEARTBEAT of an idle path.
    pub(crate) heartbeat: Option<Time>,
    /// Time at which an unanswered HEARTBEAT counts as an error.
    pub(crate) heartbeat_timeout: Option<Time>,
    /// Time at which a path without transmissions counts as idle for one more RTO.
    pub(crate) idle: Option<Time>,
    /// Number of expiries of the idle timer since the path carried DATA.
    pub(crate) idle_rtos: u8,
    /// Time at which the path has failed, unless it gets an answer before.
    pub(crate) silence: Option<Time>,
    /// End of the silence that the failover policy permits.
    pub(crate) silence_limit: Option<Time>,
    /// Time at which a probe of the packet size is lost, or the next one is due.
    pub(crate) mtu: Option<Time>,
}

impl PathTimers {
    pub(crate) fn next(&self) -> Option<Time> {
        earliest([
            self.t3,
            self.heartbeat,
            self.heartbeat_timeout,
            self.idle,
            self.silence,
            self.silence_limit,
            self.mtu,
        ])
    }
}

/// State of a path beside the facts that policies see.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) address: PathAddress,
    /// Maximum SCTP packet length in bytes.
    //= docs/rfc9260.txt#section-7.3
    //# An endpoint MUST maintain separate PMTU estimates for each destination address of its peer.
    pub(crate) packet_bytes: usize,
    /// Search for a larger size, if sizes are searched for.
    pub(crate) mtu: Option<MtuSearch>,
    /// Unanswered probe of the packet size, and its size in bytes.
    pub(crate) pending_mtu_probe: Option<(PendingHeartbeat, usize)>,
    pub(crate) removed: bool,
    /// Bytes of the SCTP packets that have arrived on the path.
    pub(crate) received_bytes: u64,
    /// Number of announcements of the local address to the peer.
    pub(crate) announcements: u8,
    pub(crate) validation: AddressValidation,
    pub(crate) source: PathSource,
    pub(crate) costs: PathCosts,
    /// Path between the same addresses with another port, which may replace this one.
    pub(crate) successor: Option<PathId>,
    pub(crate) timers: PathTimers,
    /// TSN whose first acknowledgement gives an RTT sample (RFC 9260 section 6.3.1 C4: one at a time).
    pub(crate) measuring: Option<u64>,
    pub(crate) pending_heartbeat: Option<PendingHeartbeat>,
    /// `true` if a HEARTBEAT of the peer has delayed the next one.
    pub(crate) yielded: bool,
    pub(crate) pseudo: PseudoCumulative,
    pub(crate) recovery: PathRecovery,
    /// Number of packets that count against Max.Burst in this send opportunity.
    pub(crate) burst_used: u32,
    pub(crate) pacer: Pacer,
    pub(crate) least_rtt: WindowedMin<Span>,
}

impl Path {
    pub(super) fn new(address: PathAddress, packet_bytes: usize) -> Self {
        Path {
            address,
            packet_bytes,
            mtu: None,
            pending_mtu_probe: None,
            removed: false,
            received_bytes: 0,
            announcements: 0,
            validation: AddressValidation::Trusted,
            source: PathSource::Named,
            costs: PathCosts::default(),
            successor: None,
            timers: PathTimers::default(),
            measuring: None,
            pending_heartbeat: None,
            yielded: false,
            pseudo: PseudoCumulative::new(),
            recovery: PathRecovery::default(),
            burst_used: 0,
            pacer: Pacer::default(),
            least_rtt: WindowedMin::default(),
        }
    }
}

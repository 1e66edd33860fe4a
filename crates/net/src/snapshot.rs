//! How an association and its host stand, at a moment.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anabranch_core::time::Span;
use anabranch_core::{Association, Discards, PathAddress, PathId, PathState, Statistics};

/// A path at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct PathSnapshot {
    /// Its id, the same as in [`AssociationEvent::PathState`](crate::AssociationEvent::PathState).
    pub id: PathId,
    /// Our address.
    pub local: IpAddr,
    /// Index of the interface that the path is bound to; 0 if the routing table decides.
    pub interface: u32,
    /// The peer's address, with the UDP port that its latest packet came from.
    pub remote: SocketAddr,
    /// Its state.
    pub state: PathState,
    /// Whether it is the primary path.
    pub primary: bool,
    /// Smoothed round-trip time, once one was measured.
    pub srtt: Option<Duration>,
    /// Retransmission time-out, back-off included.
    pub rto: Duration,
    /// IP packet size that it is known to carry.
    pub mtu_bytes: usize,
    /// Congestion window in bytes of DATA chunks.
    pub cwnd_bytes: u64,
    /// Bytes of DATA chunks sent and neither acknowledged nor declared lost.
    pub in_flight_bytes: u64,
    /// Bytes of DATA chunks sent, every transmission counted.
    pub sent_bytes: u64,
    /// Bytes of DATA chunks declared lost.
    pub lost_bytes: u64,
    /// Bytes of DATA chunks acknowledged.
    pub delivered_bytes: u64,
    /// The latest sample of the delivery rate, in bits per second.
    pub delivery_rate_bps: Option<u64>,
    /// Consecutive errors.
    pub errors: u32,
}

/// An association at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Its paths.
    pub paths: Vec<PathSnapshot>,
    /// Paths that an INIT has left on, while the peer has not answered it; 0 otherwise.
    pub paths_tried: usize,
    /// Its counters.
    pub statistics: Statistics,
    /// User bytes in the endpoint's send buffer: not acknowledged yet.
    pub send_buffered_bytes: u64,
    /// User bytes in the endpoint's receive buffer.
    pub recv_buffered_bytes: u64,
}

/// How the associations of a host came to keys that protect them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyingCounters {
    /// Associations that peers opened and that have no keys yet.
    pub pending: u64,
    /// Associations that came to their first keys.
    pub established: u64,
    /// Associations that ended before they had keys.
    pub failed: u64,
    /// Times that an association came to newer keys.
    pub rekeys: u64,
    /// Times that it did not, and went on with those it had.
    pub failed_rekeys: u64,
    /// Times that an association went on after a restart, with the keys that were kept for it.
    pub restarts: u64,
}

/// Counters of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStatistics {
    /// UDP datagrams received.
    pub datagrams_received: u64,
    /// Their bytes, without headers of UDP and IP.
    pub bytes_received: u64,
    /// UDP datagrams sent.
    pub datagrams_sent: u64,
    /// Their bytes, without headers of UDP and IP.
    pub bytes_sent: u64,
    /// Calls of the system that sent them: fewer, where it takes several at once.
    pub send_calls: u64,
    /// UDP datagrams that the system refused to send, for example because an interface was down or they were too long.
    pub send_failures: u64,
    /// UDP datagrams dropped because a socket had been blocked for too long.
    pub send_overflows: u64,
    /// What the endpoint dropped, and why.
    pub discards: Discards,
    /// How associations came to their keys.
    pub keying: KeyingCounters,
    /// Associations that are open, opening or closing.
    pub associations: usize,
}

/// An association of a host at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct AssociationReport {
    /// Its number: associations of a host are counted from 1, and none gets another's number.
    pub number: u64,
    /// Whether messages may be sent and received: it is neither opening nor closing.
    pub established: bool,
    /// Its paths, counters and buffers.
    pub snapshot: Snapshot,
}

/// A host and its associations at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostReport {
    /// The host's counters.
    pub statistics: HostStatistics,
    /// Its associations that are not over, in the order in which they began.
    pub associations: Vec<AssociationReport>,
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

impl Snapshot {
    pub(crate) fn of(association: &Association) -> Self {
        Snapshot {
            paths: paths(association).collect(),
            paths_tried: association.paths_tried(),
            statistics: association.statistics(),
            send_buffered_bytes: association.buffered_bytes(),
            recv_buffered_bytes: association.held_bytes(),
        }
    }
}

fn paths(association: &Association) -> impl Iterator<Item = PathSnapshot> {
    association.paths().iter().filter_map(|facts| {
        let PathAddress { local, interface, remote, udp_port } = association.path_address(facts.id)?;
        Some(PathSnapshot {
            id: facts.id,
            local,
            interface,
            remote: SocketAddr::new(remote, udp_port?),
            state: facts.state,
            primary: facts.primary,
            srtt: facts.rtt.smoothed.map(duration),
            rto: duration(facts.rto),
            mtu_bytes: association.path_mtu_bytes(facts.id)?,
            cwnd_bytes: facts.cwnd.get(),
            in_flight_bytes: facts.in_flight.get(),
            sent_bytes: facts.sent.get(),
            lost_bytes: facts.lost.get(),
            delivered_bytes: facts.delivered.get(),
            delivery_rate_bps: facts.delivery_rate.map(|rate| rate.as_bps()),
            errors: facts.error_count,
        })
    })
}

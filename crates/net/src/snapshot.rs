//! State of an association and its endpoint at one point in time.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anabranch_core::policy::Limiter;
use anabranch_core::{Association, Discards, LocalEnd, PathAddress, PathCost, PathId, PathState, Statistics};

use crate::link_use::LinkReport;

/// State of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathSnapshot {
    /// Identifier, the same as in [`AssociationEvent::PathState`](crate::AssociationEvent::PathState).
    pub id: PathId,
    /// Local address.
    pub local: IpAddr,
    /// Index of the interface that the path is bound to; 0 if the routing table decides.
    pub interface: u32,
    /// Address of the peer, with the source UDP port of its latest packet.
    pub remote: SocketAddr,
    /// State of the path.
    pub state: PathState,
    /// Set for the primary path.
    pub primary: bool,
    /// Cost from those that both sides have set.
    pub cost: PathCost,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Retransmission time-out, including back-off.
    pub rto: Duration,
    /// Path MTU: IP packet size known to be carried.
    pub mtu_bytes: usize,
    /// Congestion window in bytes of DATA chunks.
    pub cwnd_bytes: u64,
    /// Bytes of DATA chunks sent and neither acknowledged nor declared lost.
    pub in_flight_bytes: u64,
    /// Bytes of DATA chunks sent, including every retransmission.
    pub sent_bytes: u64,
    /// Bytes of DATA chunks declared lost.
    pub lost_bytes: u64,
    /// Bytes of DATA chunks acknowledged.
    pub delivered_bytes: u64,
    /// Bytes of SCTP packets received on the path.
    pub received_bytes: u64,
    /// Limit of the path at the latest opportunity to send data.
    pub limiter: Limiter,
    /// Latest sample of the delivery rate, in bits per second.
    pub delivery_rate_bps: Option<u64>,
    /// Number of consecutive errors.
    pub errors: u32,
}

/// State of an association.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// State of each path of the association.
    pub paths: Vec<PathSnapshot>,
    /// Number of paths on which an unanswered INIT was sent; 0 after the answer.
    pub paths_tried: usize,
    /// Counters since the association was opened.
    pub statistics: Statistics,
    /// User bytes in the endpoint's send buffer, not acknowledged yet.
    pub send_buffered_bytes: u64,
    /// User bytes of unordered messages in the endpoint's send buffer that were not sent yet.
    pub unsent_unordered_bytes: u64,
    /// User bytes in the endpoint's receive buffer.
    pub recv_buffered_bytes: u64,
}

/// Counters of key exchanges for an endpoint's associations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyingCounters {
    /// Associations opened by peers that have no keys yet.
    pub pending: u64,
    /// Associations that received their first keys.
    pub established: u64,
    /// Associations that ended without keys.
    pub failed: u64,
    /// Exchanges for newer keys that succeeded.
    pub rekeys: u64,
    /// Exchanges for newer keys that failed, after which the old keys stayed in use.
    pub failed_rekeys: u64,
    /// Associations resumed after a restart with their restart keys.
    pub restarts: u64,
}

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointStatistics {
    /// UDP datagrams received.
    pub datagrams_received: u64,
    /// Bytes of these datagrams, without UDP and IP headers.
    pub bytes_received: u64,
    /// UDP datagrams sent.
    pub datagrams_sent: u64,
    /// Bytes of these datagrams, without UDP and IP headers.
    pub bytes_sent: u64,
    /// System calls that sent them; fewer if the system accepts several datagrams per call.
    pub send_calls: u64,
    /// UDP datagrams that the system refused to send, for example because an interface was down or they were too long.
    pub send_failures: u64,
    /// UDP datagrams dropped because a socket was blocked for too long.
    pub send_overflows: u64,
    /// Packets dropped by the endpoint, by reason.
    pub discards: Discards,
    /// Counters of key exchanges.
    pub keying: KeyingCounters,
    /// Associations that are open, opening or closing.
    pub associations: usize,
}

/// State of an association of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct AssociationReport {
    /// Number of the association. An endpoint counts associations from 1 and never reuses a number.
    pub number: u64,
    /// Set if messages may be sent and received: the association is neither opening nor closing.
    pub established: bool,
    /// Paths, counters and buffers.
    pub snapshot: Snapshot,
}

/// State of an endpoint and its associations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndpointReport {
    /// Counters of the endpoint.
    pub statistics: EndpointStatistics,
    /// Open associations, in the order in which they began.
    pub associations: Vec<AssociationReport>,
    /// Local addresses that are [withheld](crate::Monitor::withhold_local).
    pub withheld: Vec<LocalEnd>,
    /// Links whose [use](crate::EndpointBuilder::link_uses) is set.
    pub links: Vec<LinkReport>,
}

impl Snapshot {
    pub(crate) fn of(association: &Association) -> Self {
        Snapshot {
            paths: paths(association).collect(),
            paths_tried: association.paths_tried(),
            statistics: association.statistics(),
            send_buffered_bytes: association.buffered_bytes(),
            unsent_unordered_bytes: association.unsent_unordered_bytes(),
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
            cost: facts.cost,
            srtt: facts.rtt.smoothed.map(Duration::from),
            rto: facts.rto.into(),
            mtu_bytes: association.path_mtu_bytes(facts.id)?,
            cwnd_bytes: facts.cwnd.get(),
            in_flight_bytes: facts.in_flight.get(),
            sent_bytes: facts.sent.get(),
            lost_bytes: facts.lost.get(),
            delivered_bytes: facts.delivered.get(),
            received_bytes: association.path_received_bytes(facts.id)?,
            limiter: facts.limiter,
            delivery_rate_bps: facts.delivery_rate.map(|rate| rate.as_bps()),
            errors: facts.error_count,
        })
    })
}

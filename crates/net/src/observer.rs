//! Observation of an endpoint: every datagram, every decision, and the state of associations.

use std::net::SocketAddr;
use std::time::SystemTime;

use anabranch_core::time::Time;
use anabranch_core::trace::TraceEvent;
use anabranch_core::{Association, AssociationId, Discard};

use crate::error::CloseReason;

/// Properties of an endpoint at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Wall clock time at the zero of the endpoint's clock. The endpoint's clock never jumps: the wall clock of a time is the sum
    /// of both.
    pub wall_clock: SystemTime,
    /// Local addresses.
    pub locals: Vec<SocketAddr>,
    /// SCTP port.
    pub sctp_port: u16,
}

/// Outcome of a datagram at the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramOutcome {
    /// The datagram arrived, and the endpoint accepted it.
    Received,
    /// The datagram arrived, and the endpoint dropped it.
    Discarded(Discard),
    /// The operating system accepted the datagram for sending.
    Sent,
    /// The operating system refused the datagram, for example because an interface was down or the datagram was too long.
    Refused,
    /// The endpoint dropped the datagram because its socket was blocked for too long.
    Overflowed,
}

/// Datagram with its SCTP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Local address and UDP port.
    pub local: SocketAddr,
    /// Address and UDP port of the peer.
    pub remote: SocketAddr,
    /// Outcome of the datagram.
    pub outcome: DatagramOutcome,
    /// UDP payload.
    pub payload: &'a [u8],
}

/// Outcome of a key exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// Keys of this epoch protect packets from now on.
    Updated {
        /// Epoch; the first one is 3.
        epoch: u64,
    },
    /// The exchange for newer keys failed for this reason; the current keys stay in use.
    Failed(&'static str),
}

/// Observer of an endpoint, passed to [`EndpointBuilder::observer`](crate::EndpointBuilder::observer) and dropped when the
/// endpoint's task ends.
///
/// All methods run on the endpoint's task between its packets, so long work belongs on another thread. Times are those of the
/// endpoint's clock, which starts with the endpoint; [`Started`] relates it to the wall clock.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use anabranch_core::time::Time;
/// use anabranch_net::{Datagram, DatagramOutcome, Endpoint, Observer, PathAddress, Peer, SendOptions, Protection};
///
/// struct Received(Arc<AtomicU64>);
///
/// impl Observer for Received {
///     fn datagram(&mut self, _at: Time, datagram: &Datagram<'_>) {
///         if datagram.outcome == DatagramOutcome::Received {
///             self.0.fetch_add(datagram.payload.len() as u64, Ordering::Relaxed);
///         }
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let config = anabranch_net::Config::default();
/// let bytes = Arc::new(AtomicU64::new(0));
/// let server = Endpoint::builder(Protection::Insecure)
///     .local("127.0.0.1:0".parse()?)
///     .accept(config.clone())
///     .observer(Received(Arc::clone(&bytes)))
///     .bind()?;
/// let client = Endpoint::builder(Protection::Insecure).local("127.0.0.2:0".parse()?).bind()?;
/// let path = PathAddress::over_udp([127, 0, 0, 2].into(), server.local_addresses()[0]);
/// let association = client.connect(Peer::new([path]), config).await?;
/// association.send("seen on its way", SendOptions::default()).await?;
/// let accepted = server.accept().await?;
/// assert!(accepted.recv().await?.is_some());
/// assert!(bytes.load(Ordering::Relaxed) > 0);
/// # Ok(())
/// # })
/// # }
/// ```
pub trait Observer: Send + 'static {
    /// Returns `true` if decisions are wanted. Recording decisions has a cost, so it is off by default.
    fn wants_decisions(&self) -> bool {
        false
    }

    /// Reports the start of the endpoint. Called first, and once.
    fn started(&mut self, started: &Started) {
        let _ = started;
    }

    /// Reports a datagram that arrived, was sent, or was dropped.
    fn datagram(&mut self, at: Time, datagram: &Datagram<'_>) {
        let _ = (at, datagram);
    }

    /// Reports a decision of an association. The event contains its own time.
    fn decided(&mut self, association: AssociationId, event: &TraceEvent) {
        let _ = (association, event);
    }

    /// Reports a possible change of an association, after all pending packets were sent. Earlier decisions of the association are
    /// already reported.
    fn association(&mut self, at: Time, id: AssociationId, association: &Association) {
        let _ = (at, id, association);
    }

    /// Reports a change of an association's keys, or its failure. The first keys are reported before the association is connected.
    fn keys(&mut self, at: Time, id: AssociationId, change: &KeyChange) {
        let _ = (at, id, change);
    }

    /// Reports the end of an association.
    fn closed(&mut self, at: Time, id: AssociationId, outcome: &Result<(), CloseReason>) {
        let _ = (at, id, outcome);
    }

    /// Reports that the endpoint is idle for now, a good time to flush gathered data.
    fn idle(&mut self, at: Time) {
        let _ = at;
    }
}

//! What a host shows to an observer: every datagram, every decision, and how associations stand.

use std::net::SocketAddr;
use std::time::SystemTime;

use anabranch_core::time::Time;
use anabranch_core::trace::TraceEvent;
use anabranch_core::{Association, AssociationId, Discard};

use crate::error::CloseReason;

/// What a host has when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// What the wall clock said when the host's own clock was at zero. The host's clock never jumps, so a moment's wall clock
    /// is this and the moment added up.
    pub wall_clock: SystemTime,
    /// Its addresses.
    pub locals: Vec<SocketAddr>,
    /// Its SCTP port.
    pub sctp_port: u16,
}

/// What the host did with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramOutcome {
    /// It came in, and the endpoint took it.
    Received,
    /// It came in, and the endpoint dropped it.
    Discarded(Discard),
    /// The system took it.
    Sent,
    /// The system refused it, for example because an interface was down or it was too long.
    Refused,
    /// It was dropped because its socket had been blocked for too long.
    Overflowed,
}

/// A datagram with its SCTP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Our address and UDP port.
    pub local: SocketAddr,
    /// The peer's address and UDP port.
    pub remote: SocketAddr,
    /// What became of it.
    pub outcome: DatagramOutcome,
    /// The UDP payload.
    pub payload: &'a [u8],
}

/// What became of an agreement on keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// Keys of this epoch protect packets from now on.
    Updated {
        /// The epoch, which begins with 3.
        epoch: u64,
    },
    /// No newer keys came about, for this reason; the present ones stay in use.
    Failed(&'static str),
}

/// Sees what a host does. Given to [`HostBuilder::observer`](crate::HostBuilder::observer); dropped when the host's task ends.
///
/// All methods run on the host's task, between its packets: what takes long is to be handed to another thread. Times are those
/// of the host's clock, which begins with the host; [`Started`] ties it to the wall clock.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use anabranch_core::time::Time;
/// use anabranch_net::{Datagram, DatagramOutcome, Host, Observer, PathAddress, Peer, SendOptions, Protection};
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
/// let config = anabranch_net::config("cmt")?;
/// let bytes = Arc::new(AtomicU64::new(0));
/// let server = Host::builder(Protection::Insecure)
///     .local("127.0.0.1:0".parse()?)
///     .accept(config.clone())
///     .observer(Received(Arc::clone(&bytes)))
///     .bind()?;
/// let client = Host::builder(Protection::Insecure).local("127.0.0.2:0".parse()?).bind()?;
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
    /// Whether decisions are wanted. They cost something, so they are recorded only if so.
    fn wants_decisions(&self) -> bool {
        false
    }

    /// The host begins. Comes first, and once.
    fn started(&mut self, started: &Started) {
        let _ = started;
    }

    /// A datagram has come, or has left, or was dropped here.
    fn datagram(&mut self, at: Time, datagram: &Datagram<'_>) {
        let _ = (at, datagram);
    }

    /// An association has made a decision. The event has its own time.
    fn decided(&mut self, association: AssociationId, event: &TraceEvent) {
        let _ = (association, event);
    }

    /// Something may have changed about an association: everything that could leave has left by now. Its decisions up to here
    /// have been shown before.
    fn association(&mut self, at: Time, id: AssociationId, association: &Association) {
        let _ = (at, id, association);
    }

    /// The keys of an association have changed, or were to change. The first are there before the association is connected.
    fn keys(&mut self, at: Time, id: AssociationId, change: &KeyChange) {
        let _ = (at, id, change);
    }

    /// An association was closed.
    fn closed(&mut self, at: Time, id: AssociationId, outcome: &Result<(), CloseReason>) {
        let _ = (at, id, outcome);
    }

    /// The host has nothing to do for now: a good time to hand over what was gathered.
    fn idle(&mut self, at: Time) {
        let _ = at;
    }
}

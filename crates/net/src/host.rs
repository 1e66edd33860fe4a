//! A host: sockets, an endpoint, and the task that drives both.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use anabranch_core::protection::{KeyManagementRoles, RestartContext};
use anabranch_core::{AcceptFrom, AssociationConfig, Encapsulation, Endpoint, EndpointConfig, Guard};
use anabranch_keying::RestartKeys;
use tokio::sync::{mpsc, oneshot, watch};

use crate::accept_queue::AcceptQueue;
use crate::association::Association;
use crate::clock::Clock;
use crate::config::{DEFAULT_SCTP_PORT, DEFAULT_UDP_PORT, bounded};
use crate::driver::{CommandEnds, Driver};
use crate::error::{AcceptError, BindError, ConnectError};
use crate::interface::{LocalAddress, local_addresses};
use crate::key_store::KeyStore;
use crate::observer::{Observer, Started};
use crate::observer_slot::ObserverSlot;
use crate::peer::Peer;
use crate::protection::{Protection, configure};
use crate::shared::{BindAddress, Command, Commands, Connect};
use crate::snapshot::{HostReport, HostStatistics};
use crate::socket::{Device, Socket};

/// The first port of the dynamic range: where a host that accepts nothing takes its SCTP port from.
const DYNAMIC_PORTS: u16 = 49_152;

/// How often a free UDP port is sought that all addresses have in common.
const PORT_TRIES: usize = 16;

/// Makes a [`Host`].
#[derive(Debug)]
pub struct HostBuilder {
    local: Vec<BindAddress>,
    sctp_port: Option<u16>,
    accept: Option<AssociationConfig>,
    accept_from: AcceptFrom,
    backlog: usize,
    max_associations: usize,
    guard: Guard,
    protection: Protection,
    max_handshakes: usize,
    watch: ObserverSlot,
}

impl HostBuilder {
    /// Adds a local address with its UDP port; the first one counts as the main one. Port 0 takes any that is free, for all
    /// addresses given so the same one if possible.
    pub fn local(mut self, address: SocketAddr) -> Self {
        self.local.push(BindAddress { address, interface: None });
        self
    }

    /// The same, and what is sent from there leaves through this interface only, whatever the routing table prefers: two
    /// interfaces with a default route each are both used. What comes to the address through another interface, as from this
    /// machine itself, is not received. Interfaces with the same address have a socket each.
    ///
    /// Where the system does not allow it (Linux does since 5.7), packets leave by the routing table; [`Host::devices`] reports that.
    /// An address that several interfaces have is then an error.
    pub fn local_on(mut self, address: SocketAddr, interface: &str) -> Self {
        self.local.push(BindAddress { address, interface: Some(interface.to_owned()) });
        self
    }

    /// The SCTP port. By default [`DEFAULT_SCTP_PORT`] for a host that accepts and a random one from 49152 to 65535 for
    /// one that does not: two hosts behind one address must differ in it.
    pub fn sctp_port(self, port: u16) -> Self {
        HostBuilder { sctp_port: Some(port), ..self }
    }

    /// Accepts associations, and configures them so.
    pub fn accept(self, config: AssociationConfig) -> Self {
        HostBuilder { accept: Some(bounded(config)), ..self }
    }

    /// Accepts associations only from these sources; from everyone unless this is called. [`AcceptFrom`] says what becomes of
    /// others, and of further addresses of a peer.
    pub fn accept_from(self, sources: AcceptFrom) -> Self {
        HostBuilder { accept_from: sources, ..self }
    }

    /// Sets how many associations may wait for [`Host::accept`], 128 by default. A further one takes the place of one from an
    /// address, or IPv6 network (/64), that has more of them waiting, or is aborted.
    pub fn backlog(self, backlog: usize) -> Self {
        HostBuilder { backlog, ..self }
    }

    /// Sets the most associations at a time, 1024 by default. Those that peers open from one address, or IPv6 network (/64), are at most
    /// eight times as many as there are places left, so that one source alone leaves a ninth of all places to others.
    pub fn max_associations(self, most: usize) -> Self {
        HostBuilder { max_associations: most, ..self }
    }

    /// How many handshakes are looked at; [`Guard::default`] says how many unless this does.
    pub fn guard(self, guard: Guard) -> Self {
        HostBuilder { guard, ..self }
    }

    /// Sets how many associations that peers have opened may be without keys at a time, 256 by default and no more than half of
    /// [`max_associations`](Self::max_associations). With one more, one of the address or IPv6 network (/64) that most of them come
    /// from is aborted: the oldest of those that have not begun to agree on keys, or else the oldest.
    pub fn max_handshakes(self, most: usize) -> Self {
        HostBuilder { max_handshakes: most, ..self }
    }

    /// Shows `observer` what the host does. Without one nothing is spent on it.
    pub fn observer(self, observer: impl Observer) -> Self {
        HostBuilder { watch: ObserverSlot::new(Box::new(observer)), ..self }
    }

    /// Binds the sockets and starts the host's task on the current tokio runtime.
    ///
    /// # Errors
    /// [`BindError`], with what to do about it.
    pub fn bind(mut self) -> Result<Host, BindError> {
        self.check()?;
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| BindError::NoRuntime)?;
        let mut entropy = [0; 32];
        fill(&mut entropy)?;
        let port = match (self.sctp_port, &self.accept) {
            (Some(port), _) => port,
            (None, Some(_)) => DEFAULT_SCTP_PORT,
            (None, None) => random_port()?,
        };
        let sockets = bind_all(&self.local)?;
        let locals: Vec<SocketAddr> = sockets.iter().map(Socket::local).collect();
        let devices =
            sockets.iter().filter_map(|socket| Some((socket.local(), socket.device()?.clone()))).collect();
        let accepts = self.accept.is_some();
        let decisions = self.watch.wants_decisions();
        let dtls = self.protection.clone().into_dtls();
        if let Some(accept) = &mut self.accept {
            configure(accept, dtls.as_ref(), KeyManagementRoles::Server);
        }
        let keys = KeyStore::new(dtls, self.max_handshakes.min(self.max_associations / 2));
        let config = EndpointConfig {
            port,
            addresses: locals.iter().map(SocketAddr::ip).collect(),
            encapsulation: Encapsulation::Udp {
                local_port: locals.first().map_or(DEFAULT_UDP_PORT, SocketAddr::port),
                remote_port: DEFAULT_UDP_PORT,
            },
            accept: self.accept.map(|accept| AssociationConfig { trace: decisions, ..accept }),
            accept_from: self.accept_from,
            max_associations: self.max_associations,
            guard: Some(self.guard),
        };
        let clock = Clock::start();
        let wall_clock = SystemTime::now();
        self.watch.started(&Started { wall_clock, locals: locals.clone(), sctp_port: port });
        let mut endpoint = Endpoint::new(clock.now(), config, entropy);
        endpoint.set_addresses(sockets.iter().map(Socket::end).collect());
        let (commands, orders) = mpsc::unbounded_channel();
        let queue = Arc::new(AcceptQueue::new(self.backlog));
        let driver = Driver::new(
            clock,
            endpoint,
            sockets,
            CommandEnds { commands: orders, handles: commands.downgrade() },
            Arc::downgrade(&queue),
            keys,
            self.watch,
        );
        let (alive, gone) = watch::channel(());
        runtime.spawn(async move {
            driver.run().await;
            drop(alive);
        });
        let protection = self.protection;
        let inner =
            HostInner { commands, queue, locals, devices, sctp_port: port, accepts, protection, gone };
        Ok(Host { inner: Arc::new(inner) })
    }

    fn check(&self) -> Result<(), BindError> {
        if self.local.is_empty() {
            return Err(BindError::NoAddress);
        }
        if self.sctp_port == Some(0) {
            return Err(BindError::PortZero);
        }
        for (index, end) in self.local.iter().enumerate() {
            let others = self.local[..index].iter();
            check_address(end, others.map(|other| (other.address.ip(), other.interface.as_deref())))?;
        }
        Ok(())
    }
}

/// Checks that an address can have a socket of its own beside these. Each is given with the interface that its socket is bound to.
pub(crate) fn check_address<'a>(
    end: &BindAddress,
    others: impl IntoIterator<Item = (IpAddr, Option<&'a str>)>,
) -> Result<(), BindError> {
    let BindAddress { address, interface } = end;
    if address.ip().is_unspecified() {
        return Err(BindError::Unspecified(*address));
    }
    let is_apart =
        |other: Option<&str>| other.is_some() && interface.is_some() && other != interface.as_deref();
    if others.into_iter().any(|(other, device)| other == address.ip() && !is_apart(device)) {
        return Err(BindError::Twice(address.ip()));
    }
    Ok(())
}

fn fill(bytes: &mut [u8]) -> Result<(), BindError> {
    getrandom::fill(bytes).map_err(|error| BindError::Entropy(error.to_string()))
}

fn random_port() -> Result<u16, BindError> {
    let mut bytes = [0; 2];
    fill(&mut bytes)?;
    Ok(DYNAMIC_PORTS | u16::from_be_bytes(bytes))
}

/// A peer that learns of a second address assumes the UDP port of the first one there (RFC 6951 section 5.4), so all addresses
/// whose port is open get the same if that can be had.
fn bind_all(ends: &[BindAddress]) -> Result<Vec<Socket>, BindError> {
    for _ in 0..PORT_TRIES {
        let mut common = None;
        let sockets: Result<Vec<Socket>, BindError> =
            ends.iter().map(|end| bind_one(end, &mut common)).collect();
        match sockets {
            // The port that the first address got was taken at another one.
            Err(BindError::Socket { address, .. }) if common == Some(address.port()) => {}
            settled => return settled,
        }
    }
    ends.iter().map(|end| bind_one(end, &mut None)).collect()
}

pub(crate) fn bind_one(end: &BindAddress, common: &mut Option<u16>) -> Result<Socket, BindError> {
    let BindAddress { address, interface } = end;
    let mut wanted = *address;
    if address.port() == 0 {
        wanted.set_port(common.unwrap_or(0));
    }
    let socket = Socket::bind(wanted, interface.as_deref())
        .map_err(|source| BindError::Socket { address: wanted, source })?;
    if let Some(Device::Refused { interface, why }) = socket.device() {
        let same = |local: &LocalAddress| local.address == address.ip() && local.interface != *interface;
        if let Some(other) = local_addresses().iter().find(|local| same(local)) {
            return Err(BindError::Ambiguous {
                address: address.ip(),
                interface: interface.clone(),
                other: other.interface.clone(),
                why: why.clone(),
            });
        }
    }
    if address.port() == 0 {
        *common = Some(socket.local().port());
    }
    Ok(socket)
}

/// An SCTP endpoint on UDP sockets.
///
/// Clones are handles of the same host. Its task runs as long as there is a handle of the host or of one of its associations, or
/// an association that is still being shut down. Associations outlive the host's handles; when the last of those is
/// dropped, associations that nobody accepted are aborted and new ones refused.
#[derive(Clone, Debug)]
pub struct Host {
    pub(crate) inner: Arc<HostInner>,
}

#[derive(Debug)]
pub(crate) struct HostInner {
    pub(crate) commands: Commands,
    queue: Arc<AcceptQueue>,
    locals: Vec<SocketAddr>,
    devices: Vec<(SocketAddr, Device)>,
    sctp_port: u16,
    accepts: bool,
    protection: Protection,
    gone: watch::Receiver<()>,
}

impl Host {
    /// A builder of a host whose packets are protected so: those of associations that peers open, and of those to
    /// [peers](Peer) that say nothing else. Associations that are to be protected are there for [`accept`](Self::accept) and
    /// [`connect`](Self::connect) once they are. Everything else has a default.
    pub fn builder(protection: Protection) -> HostBuilder {
        HostBuilder {
            local: Vec::new(),
            sctp_port: None,
            accept: None,
            accept_from: AcceptFrom::Everyone,
            backlog: 128,
            max_associations: 1024,
            guard: Guard::default(),
            protection,
            max_handshakes: 256,
            watch: ObserverSlot::default(),
        }
    }

    /// The addresses that the host was bound with, with their UDP ports, in the order in which they were given;
    /// [`locals`](Self::locals) gives those of now.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.inner.locals
    }

    /// Whether the sockets of [`HostBuilder::local_on`] are bound to their interfaces.
    pub fn devices(&self) -> &[(SocketAddr, Device)] {
        &self.inner.devices
    }

    /// The SCTP port.
    pub fn sctp_port(&self) -> u16 {
        self.inner.sctp_port
    }

    /// Opens an association. A peer that does not answer is given up after the configuration's
    /// [`connect_timeout`](AssociationConfig::connect_timeout), by default 15 seconds.
    ///
    /// Cancel-safe: dropping the future gives the attempt up.
    ///
    /// # Errors
    /// [`ConnectError`], with what to do about it.
    pub async fn connect(&self, peer: Peer, config: AssociationConfig) -> Result<Association, ConnectError> {
        self.open(peer, config, None).await
    }

    /// Goes on with an association that was lost without an end, such as in a crash, with the keys that
    /// [`Association::restart_keys`] gave before. The peer's association goes on, and its application is told that this side has
    /// restarted ([`RecvError::Restarted`](crate::RecvError::Restarted)); what was on its way is lost. It has to be over the same addresses, UDP
    /// ports and SCTP port as before. Either side may restart it, whoever opened it.
    ///
    /// The association is there once new keys are agreed on, which begins with the restart and may take 30 s under the default
    /// [`KeyPolicy`](crate::KeyPolicy). Both sides prove again who they are; messages that either side sends meanwhile wait.
    ///
    /// **Delete the keys from where they are stored before this call**, and never use them again: whoever seals two packets with
    /// the same nonce gives them away. If it fails, open a new association.
    ///
    /// Cancel-safe: dropping the future gives the attempt up.
    ///
    /// # Errors
    /// [`ConnectError`], with what to do about it.
    pub async fn restart(
        &self,
        peer: Peer,
        config: AssociationConfig,
        keys: RestartKeys,
    ) -> Result<Association, ConnectError> {
        self.open(peer, config, Some(keys.context())).await
    }

    async fn open(
        &self,
        peer: Peer,
        config: AssociationConfig,
        restart: Option<RestartContext>,
    ) -> Result<Association, ConnectError> {
        let Peer { paths, sctp_port, protection } = peer;
        let (reply, answer) = oneshot::channel();
        let mut dtls = protection.unwrap_or_else(|| self.inner.protection.clone()).into_dtls();
        let mut config = bounded(config);
        let roles = match (&restart, &mut dtls) {
            (None, _) | (_, None) => self.roles(),
            // The peer has the role that it had in the association, which need not be that of one who accepts.
            (Some(_), Some(dtls)) => {
                dtls.restart = true;
                KeyManagementRoles::Either
            }
        };
        configure(&mut config, dtls.as_ref(), roles);
        let connect = Connect { paths, sctp_port, config, dtls, restart };
        let _ = self.inner.commands.send(Command::Connect(Box::new(connect), reply));
        let association = Association::new(answer.await.unwrap_or(Err(ConnectError::HostGone))?);
        match association.opened().await {
            Ok(()) => Ok(association),
            Err(ended) => Err(association.failed_to_open(ended)),
        }
    }

    /// Only a host that accepts protected associations may meet a peer that opens one to it at the same time, and then either
    /// can have either role.
    fn roles(&self) -> KeyManagementRoles {
        match (&self.inner.protection, self.inner.accepts) {
            (Protection::Dtls(_), true) => KeyManagementRoles::Either,
            _ => KeyManagementRoles::Client,
        }
    }

    /// Refuses associations that peers want to open from now on. Those there are go on, and those that wait can still be
    /// [`accept`](Self::accept)ed; after them `accept` says that there will be no more.
    pub fn stop_accepting(&self) {
        let _ = self.inner.commands.send(Command::StopAccepting);
        self.inner.queue.stop();
    }

    /// The next association that a peer has opened.
    ///
    /// Cancel-safe: an association is taken only by the call that returns it.
    ///
    /// # Errors
    /// [`AcceptError`] if none will come.
    pub async fn accept(&self) -> Result<Association, AcceptError> {
        if !self.inner.accepts {
            return Err(AcceptError::NotAccepting);
        }
        self.inner.queue.next().await.map(Association::new)
    }

    /// A handle that reads the host's state and does not keep it running.
    pub fn monitor(&self) -> Monitor {
        let HostInner { commands, sctp_port, gone, .. } = &*self.inner;
        Monitor { commands: commands.downgrade(), sctp_port: *sctp_port, gone: gone.clone() }
    }

    /// The host's counters; zeros if its task is gone.
    ///
    /// Cancel-safe.
    pub async fn statistics(&self) -> HostStatistics {
        let (reply, answer) = oneshot::channel();
        let _ = self.inner.commands.send(Command::Statistics(reply));
        answer.await.unwrap_or_default()
    }
}

/// Reads the state of a [`Host`]. Unlike a handle it does not keep the host's task running.
#[derive(Clone, Debug)]
pub struct Monitor {
    commands: mpsc::WeakUnboundedSender<Command>,
    sctp_port: u16,
    gone: watch::Receiver<()>,
}

impl Monitor {
    /// The host's SCTP port.
    pub fn sctp_port(&self) -> u16 {
        self.sctp_port
    }

    /// The host's counters and the state of each of its associations, at one moment; `None` once its task is gone.
    ///
    /// Cancel-safe.
    pub async fn report(&self) -> Option<HostReport> {
        let (reply, answer) = oneshot::channel();
        self.commands.upgrade()?.send(Command::Report(reply)).ok()?;
        answer.await.ok()
    }

    /// Waits until the host's task has ended: from then on its ports are free for others.
    ///
    /// Cancel-safe.
    pub async fn gone(&self) {
        // Nothing is ever sent; the other end is dropped with the task.
        let _ = self.gone.clone().changed().await;
    }
}

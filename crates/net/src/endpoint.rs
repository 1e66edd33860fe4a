//! Endpoint on sockets: an endpoint of the core, and the task that drives it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use crate::keying::RestartKeys;
use anabranch_core::protection::{KeyManagementRoles, RestartContext};
use anabranch_core::{AcceptFrom, AssociationConfig, Encapsulation, EndpointConfig, Guard};
use tokio::sync::{mpsc, oneshot, watch};

use crate::accept_queue::AcceptQueue;
use crate::association::Association;
use crate::clock::Clock;
use crate::config::{Config, DEFAULT_SCTP_PORT, DEFAULT_UDP_PORT};
use crate::driver::{CommandEnds, Driver};
use crate::error::{AcceptError, BindError, ConnectError};
use crate::interface::{LocalAddress, local_addresses};
use crate::key_store::KeyStore;
use crate::link_use::{LastLinks, LinkName, LinkUse};
use crate::observer::{Observer, Started};
use crate::observer_slot::ObserverSlot;
use crate::peer::Peer;
use crate::protection::{Protection, configure};
use crate::shared::{BindAddress, Command, Commands, Connect};
use crate::snapshot::{EndpointReport, EndpointStatistics};
use crate::socket::{Device, Socket};

/// First port of the dynamic range, from which an endpoint that does not accept takes its SCTP port.
const DYNAMIC_PORTS: u16 = 49_152;

/// Maximum number of attempts to find a free UDP port common to all addresses.
const PORT_TRIES: usize = 16;

/// Builder of an [`Endpoint`].
#[derive(Debug)]
pub struct EndpointBuilder {
    local: Vec<BindAddress>,
    sctp_port: Option<u16>,
    accept: Option<AssociationConfig>,
    accept_from: AcceptFrom,
    backlog: usize,
    max_associations: usize,
    guard: Guard,
    protection: Protection,
    max_handshakes: usize,
    links: Vec<(LinkName, LinkUse)>,
    watch: ObserverSlot,
}

impl EndpointBuilder {
    /// Adds a local address with its UDP port. The first one is the primary address. Port 0 selects a free port, the same one for
    /// all such addresses if possible.
    pub fn local(mut self, address: SocketAddr) -> Self {
        self.local.push(BindAddress { address, interface: None });
        self
    }

    /// Adds a local address whose packets are sent only through this interface, regardless of the routing table. Two interfaces
    /// with a default route each are then both used. Packets that arrive through another interface, such as from this machine, are
    /// not received. Interfaces with the same address have one socket each.
    ///
    /// If the system does not permit that (Linux does since 5.7), packets follow the routing table; [`Endpoint::devices`] reports
    /// that. An address shared by several interfaces is then an error.
    pub fn local_on(mut self, address: SocketAddr, interface: &str) -> Self {
        self.local.push(BindAddress { address, interface: Some(interface.to_owned()) });
        self
    }

    /// Sets the SCTP port. The default is [`DEFAULT_SCTP_PORT`] for an accepting endpoint, and otherwise a random port from 49152 to
    /// 65535: two endpoints behind one address need different ports.
    pub fn sctp_port(self, port: u16) -> Self {
        EndpointBuilder { sctp_port: Some(port), ..self }
    }

    /// Accepts associations with this configuration.
    pub fn accept(self, config: Config) -> Self {
        EndpointBuilder { accept: Some(config.into_core()), ..self }
    }

    /// Accepts associations only from these sources; the default is from all. [`AcceptFrom`] describes the handling of other
    /// sources, and of further addresses of a peer.
    pub fn accept_from(self, sources: AcceptFrom) -> Self {
        EndpointBuilder { accept_from: sources, ..self }
    }

    /// Sets the maximum number of associations that wait for [`Endpoint::accept`], 128 by default. A further association replaces one
    /// from an address, or IPv6 network (/64), with more waiting associations. If there is none, the further association is
    /// aborted.
    pub fn backlog(self, backlog: usize) -> Self {
        EndpointBuilder { backlog, ..self }
    }

    /// Sets the maximum number of associations, 1024 by default. Associations that peers open from one address, or IPv6 network
    /// (/64), may be at most eight times as many as there are free places. A single source thus leaves a ninth of the places to
    /// others.
    pub fn max_associations(self, most: usize) -> Self {
        EndpointBuilder { max_associations: most, ..self }
    }

    /// Sets the limits for handshakes, [`Guard::default`] by default.
    pub fn guard(self, guard: Guard) -> Self {
        EndpointBuilder { guard, ..self }
    }

    /// Sets the maximum number of associations opened by peers that have no keys yet, 256 by default and at most half of
    /// [`max_associations`](Self::max_associations). A further association evicts one of the address or IPv6 network (/64) with the
    /// most associations without keys: the oldest that has not begun a key exchange, or else the oldest.
    pub fn max_handshakes(self, most: usize) -> Self {
        EndpointBuilder { max_handshakes: most, ..self }
    }

    /// Sets the use of these links, also for addresses that they get later. [`Monitor::set_link_use`] changes it.
    pub fn link_uses(self, links: Vec<(LinkName, LinkUse)>) -> Self {
        EndpointBuilder { links, ..self }
    }

    /// Observes the endpoint. An endpoint without an observer has no additional cost.
    pub fn observer(self, observer: impl Observer) -> Self {
        EndpointBuilder { watch: ObserverSlot::new(Box::new(observer)), ..self }
    }

    /// Binds the sockets and starts the endpoint's task on the current tokio runtime.
    ///
    /// # Errors
    /// Returns [`BindError`], with a remedy.
    pub fn bind(mut self) -> Result<Endpoint, BindError> {
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
        let mut endpoint = anabranch_core::Endpoint::new(clock.now(), config, entropy);
        endpoint.set_addresses(sockets.iter().map(Socket::end).collect());
        let (commands, orders) = mpsc::unbounded_channel();
        let queue = Arc::new(AcceptQueue::new(self.backlog));
        let mut driver = Driver::new(
            clock,
            endpoint,
            sockets,
            CommandEnds { commands: orders, handles: commands.downgrade() },
            Arc::downgrade(&queue),
            keys,
            self.watch,
        );
        let last_links = LastLinks::default();
        driver.begin_links(self.links, Arc::clone(&last_links));
        let (alive, gone) = watch::channel(());
        runtime.spawn(async move {
            driver.run().await;
            drop(alive);
        });
        let protection = self.protection;
        let inner = EndpointInner {
            commands,
            queue,
            locals,
            devices,
            sctp_port: port,
            accepts,
            protection,
            gone,
            last_links,
        };
        Ok(Endpoint { inner: Arc::new(inner) })
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

/// Checks that an address can have its own socket beside `others`. Each is given with the interface to which its socket is bound.
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

/// Binds all sockets, if possible with the same port for all addresses with port 0. A peer that learns a second address assumes
/// that it has the UDP port of the first (RFC 6951 section 5.4).
fn bind_all(ends: &[BindAddress]) -> Result<Vec<Socket>, BindError> {
    for _ in 0..PORT_TRIES {
        let mut common = None;
        let sockets: Result<Vec<Socket>, BindError> =
            ends.iter().map(|end| bind_one(end, &mut common)).collect();
        match sockets {
            // The port of the first address is in use at another address.
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

/// SCTP endpoint on UDP sockets.
///
/// Clones are handles of the same endpoint. Its task runs while there is a handle of the endpoint or of one of its associations,
/// or an association that is being shut down. Associations outlive the endpoint's handles. When the last of those is dropped,
/// associations that were not accepted are aborted, and new ones are refused.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(crate) inner: Arc<EndpointInner>,
}

#[derive(Debug)]
pub(crate) struct EndpointInner {
    pub(crate) commands: Commands,
    queue: Arc<AcceptQueue>,
    locals: Vec<SocketAddr>,
    devices: Vec<(SocketAddr, Device)>,
    sctp_port: u16,
    accepts: bool,
    protection: Protection,
    gone: watch::Receiver<()>,
    last_links: LastLinks,
}

impl Endpoint {
    /// Returns a builder of an endpoint with this protection of packets: for associations that peers open, and for those to
    /// [peers](Peer) without their own. [`accept`](Self::accept) and [`connect`](Self::connect) return protected associations only
    /// once they have keys. All other settings have defaults.
    pub fn builder(protection: Protection) -> EndpointBuilder {
        EndpointBuilder {
            local: Vec::new(),
            sctp_port: None,
            accept: None,
            accept_from: AcceptFrom::Everyone,
            backlog: 128,
            max_associations: 1024,
            guard: Guard::default(),
            protection,
            max_handshakes: 256,
            links: Vec::new(),
            watch: ObserverSlot::default(),
        }
    }

    /// Returns the addresses with which the endpoint was bound and their UDP ports, in the given order. [`locals`](Self::locals)
    /// returns the current ones.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.inner.locals
    }

    /// Returns the result of binding the sockets of [`EndpointBuilder::local_on`] to their interfaces.
    pub fn devices(&self) -> &[(SocketAddr, Device)] {
        &self.inner.devices
    }

    /// Returns the SCTP port.
    pub fn sctp_port(&self) -> u16 {
        self.inner.sctp_port
    }

    /// Opens an association. An attempt to connect to a silent peer fails after the configuration's
    /// [`connect_timeout`](Config::connect_timeout), by default 15 seconds.
    ///
    /// Cancel-safe: dropping the future cancels the attempt.
    ///
    /// # Errors
    /// Returns [`ConnectError`], with a remedy.
    pub async fn connect(&self, peer: Peer, config: Config) -> Result<Association, ConnectError> {
        self.open(peer, config, None).await
    }

    /// Resumes an association whose state was lost, such as in a crash, with the keys that [`Association::restart_keys`] returned
    /// before. The peer's association continues, and its application learns of the restart
    /// ([`RecvError::Restarted`](crate::RecvError::Restarted)); data in flight is lost. Addresses, UDP ports and SCTP port must be
    /// the same as before. Either endpoint may restart the association, regardless of who opened it.
    ///
    /// The association is returned once new keys are negotiated, which begins with the restart and may take 30 s under the default
    /// [`KeyPolicy`](crate::KeyPolicy). Both endpoints prove their identity again. Messages sent meanwhile wait.
    ///
    /// **Delete the stored keys before this call**, and never use them again: sealing two packets with the same nonce reveals them.
    /// If it fails, open a new association.
    ///
    /// Cancel-safe: dropping the future cancels the attempt.
    ///
    /// # Errors
    /// Returns [`ConnectError`], with a remedy.
    pub async fn restart(
        &self,
        peer: Peer,
        config: Config,
        keys: RestartKeys,
    ) -> Result<Association, ConnectError> {
        self.open(peer, config, Some(keys.context())).await
    }

    async fn open(
        &self,
        peer: Peer,
        config: Config,
        restart: Option<RestartContext>,
    ) -> Result<Association, ConnectError> {
        let Peer { paths, sctp_port, protection } = peer;
        let (reply, answer) = oneshot::channel();
        let mut dtls = protection.unwrap_or_else(|| self.inner.protection.clone()).into_dtls();
        let mut config = config.into_core();
        let roles = match (&restart, &mut dtls) {
            (None, _) | (_, None) => self.roles(),
            // The peer keeps its role in the association, which may differ from that of an accepting endpoint.
            (Some(_), Some(dtls)) => {
                dtls.restart = true;
                KeyManagementRoles::Either
            }
        };
        configure(&mut config, dtls.as_ref(), roles);
        let connect = Connect { paths, sctp_port, config, dtls, restart };
        let _ = self.inner.commands.send(Command::Connect(Box::new(connect), reply));
        let association = Association::new(answer.await.unwrap_or(Err(ConnectError::EndpointGone))?);
        match association.opened().await {
            Ok(()) => Ok(association),
            Err(ended) => Err(association.failed_to_open(ended)),
        }
    }

    /// Returns the roles for key management. If an endpoint accepts protected associations, a peer may open one at the same time. In
    /// this case each endpoint can have either role.
    fn roles(&self) -> KeyManagementRoles {
        match (&self.inner.protection, self.inner.accepts) {
            (Protection::Dtls(_), true) => KeyManagementRoles::Either,
            _ => KeyManagementRoles::Client,
        }
    }

    /// Refuses new associations of peers from now on. Existing ones continue, and waiting ones can still be
    /// [`accept`](Self::accept)ed; after them `accept` fails.
    pub fn stop_accepting(&self) {
        let _ = self.inner.commands.send(Command::StopAccepting);
        self.inner.queue.stop();
    }

    /// Returns the next association that a peer has opened.
    ///
    /// Cancel-safe: only the call that returns an association removes it.
    ///
    /// # Errors
    /// Returns [`AcceptError`] if no further association will follow.
    pub async fn accept(&self) -> Result<Association, AcceptError> {
        if !self.inner.accepts {
            return Err(AcceptError::NotAccepting);
        }
        self.inner.queue.next().await.map(Association::new)
    }

    /// Returns a handle that reads the endpoint's state and does not keep it running.
    pub fn monitor(&self) -> Monitor {
        let EndpointInner { commands, sctp_port, gone, last_links, .. } = &*self.inner;
        Monitor {
            commands: commands.downgrade(),
            sctp_port: *sctp_port,
            gone: gone.clone(),
            last_links: Arc::clone(last_links),
        }
    }

    /// Returns the endpoint's counters, or zeros if its task has ended.
    ///
    /// Cancel-safe.
    pub async fn statistics(&self) -> EndpointStatistics {
        let (reply, answer) = oneshot::channel();
        let _ = self.inner.commands.send(Command::Statistics(reply));
        answer.await.unwrap_or_default()
    }
}

/// Reader of the state of an [`Endpoint`], which also takes local addresses out of use. Unlike a handle it does not keep the endpoint's task running.
#[derive(Clone, Debug)]
pub struct Monitor {
    commands: mpsc::WeakUnboundedSender<Command>,
    sctp_port: u16,
    gone: watch::Receiver<()>,
    last_links: LastLinks,
}

impl Monitor {
    pub(crate) fn last_links(&self) -> &LastLinks {
        &self.last_links
    }

    /// Sends a command to the endpoint's task, unless it has ended.
    pub(crate) fn order(&self, command: Command) {
        if let Some(commands) = self.commands.upgrade() {
            // A task that ends meanwhile drops the command.
            let _ = commands.send(command);
        }
    }

    /// Returns the endpoint's SCTP port.
    pub fn sctp_port(&self) -> u16 {
        self.sctp_port
    }

    /// Returns the endpoint's counters and the states of its associations at one point in time, or `None` once its task has ended.
    ///
    /// Cancel-safe.
    pub async fn report(&self) -> Option<EndpointReport> {
        let (reply, answer) = oneshot::channel();
        self.commands.upgrade()?.send(Command::Report(reply)).ok()?;
        answer.await.ok()
    }

    /// Returns `true` once the endpoint's task has ended.
    pub fn is_gone(&self) -> bool {
        self.gone.has_changed().is_err()
    }

    /// Waits until the endpoint's task has ended. Its ports are free afterwards.
    ///
    /// Cancel-safe.
    pub async fn gone(&self) {
        // Closed when the task drops the other end. No value is ever sent.
        let _ = self.gone.clone().changed().await;
    }
}

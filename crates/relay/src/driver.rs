//! Sockets and clock for an [`Impairment`].
//!
//! One task reads datagrams from clients, one per client reads those from the target, and one sends those that the links deliver.
//! They share the links under a lock that is never held across an await.

use std::future::Future;
use std::io::{self, ErrorKind, Read};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anabranch_core::PacketBuffer;
use anabranch_core::time::{Span, Time};
use anabranch_core::units::WireBytes;
use anabranch_sim::{ConfigError, LinkChange};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::alarm::Alarm;
use crate::clients::Clients;
use crate::config::{RelayConfig, RelayError};
use crate::impairment::{Delivery, Direction, Impairment};
use crate::totals::{Amount, Lateness, Totals};

/// Maximum length of a UDP datagram, in bytes.
const LARGEST_DATAGRAM: usize = 65_535;
/// Requested buffer size of sockets in bytes, for times when this process does not run. The system may grant less.
const SOCKET_BUFFER: usize = 4 << 20;
/// Pause after an error that a socket may report again at once.
const AFTER_ERROR: Duration = Duration::from_millis(10);
/// Bounds of the interval between searches for idle clients.
const SHORTEST_LOOK: Duration = Duration::from_millis(10);
const LONGEST_LOOK: Duration = Duration::from_secs(5);

/// Running relay. Dropping it stops it.
pub struct Relay {
    shared: Arc<Shared>,
    tasks: Vec<Task>,
}

/// Task that ends with its owner.
struct Task(JoinHandle<()>);

impl Task {
    fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Task(tokio::spawn(future))
    }
}

impl Task {
    async fn end(mut self) {
        self.0.abort();
        // An aborted task is expected.
        drop((&mut self.0).await);
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Socket of one client towards the target, and the task that reads it.
struct Mapping {
    socket: Arc<UdpSocket>,
    reader: Task,
}

struct Shared {
    listen: UdpSocket,
    address: SocketAddr,
    to: SocketAddr,
    from: SocketAddr,
    overhead: WireBytes,
    mtu: WireBytes,
    began: Instant,
    state: Mutex<State>,
    /// Notified if an event may be due earlier than the sender expects.
    earlier: Notify,
}

struct State {
    impairment: Impairment,
    clients: Clients<Mapping>,
    /// Time for which the sender waits.
    armed: Option<Time>,
    unsent: [Amount; 2],
    lateness: [Lateness; 2],
    refused: Amount,
    too_large: [Amount; 2],
}

/// Next action of the sender.
enum Next {
    Send(Delivery, Option<(Arc<UdpSocket>, SocketAddr)>),
    Wait(Option<Span>),
}

impl Relay {
    /// Starts to listen, in the caller's runtime.
    ///
    /// # Errors
    /// Fails if the configuration is invalid or the system provides no socket.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time.
    pub fn start(config: RelayConfig) -> Result<Self, RelayError> {
        config.check()?;
        let (overhead, from, mtu) = (config.overhead(), config.upstream(), WireBytes::new(config.mtu_bytes));
        let RelayConfig { listen, to, forward, reverse, source, seeds, changes, max_clients, idle, .. } =
            config;
        let impairment = Impairment::new(forward, reverse, &source, seeds, overhead, &changes)?;
        let failed = |cause| RelayError::Listen { address: listen, cause };
        let socket = open(listen, None).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        // Reports an unreachable target at the start, not at the first client.
        open(from, Some(to)).map_err(|cause| RelayError::Upstream { from: from.ip(), to, cause })?;
        let alarm = Alarm::new().map_err(RelayError::Alarm)?;
        let state = State {
            impairment,
            clients: Clients::new(max_clients, Span::from_secs_f64(idle.as_secs_f64())),
            armed: None,
            unsent: Default::default(),
            lateness: Default::default(),
            refused: Amount::default(),
            too_large: Default::default(),
        };
        let shared = Arc::new(Shared {
            listen: socket,
            address,
            to,
            from,
            overhead,
            mtu,
            began: Instant::now(),
            state: Mutex::new(state),
            earlier: Notify::new(),
        });
        let tasks = vec![
            Task::spawn(read_clients(Arc::clone(&shared))),
            Task::spawn(send_due(Arc::clone(&shared), alarm)),
            Task::spawn(forget_idle(Arc::clone(&shared), idle)),
        ];
        Ok(Relay { shared, tasks })
    }

    /// Returns the address on which the relay listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.address
    }

    /// Returns the address of the target.
    pub fn target(&self) -> SocketAddr {
        self.shared.to
    }

    /// Returns the time since the start, on the clock of scheduled changes.
    pub fn now(&self) -> Time {
        self.shared.now()
    }

    /// Returns the counters of a direction.
    pub fn totals(&self, direction: Direction) -> Totals {
        let state = self.shared.lock();
        let refused = match direction {
            Direction::Forward => state.refused,
            Direction::Reverse => Amount::default(),
        };
        Totals {
            unsent: state.unsent[direction.index()],
            lateness: state.lateness[direction.index()],
            refused,
            too_large: state.too_large[direction.index()],
            ..state.impairment.totals(direction)
        }
    }

    /// Returns the number of clients.
    pub fn clients(&self) -> usize {
        self.shared.lock().clients.len()
    }

    /// Returns the addresses of clients as the target sees them, in order of arrival.
    pub fn upstream_addrs(&self) -> Vec<SocketAddr> {
        let state = self.shared.lock();
        state.clients.iter().filter_map(|client| client.way.socket.local_addr().ok()).collect()
    }

    /// Cuts both directions, or ends the cut. Arriving datagrams are dropped, and queued ones when they leave the queue; datagrams
    /// that are propagating arrive. Scheduled outages still begin and end at their times.
    pub fn set_cut(&self, cut: bool) {
        let change = if cut { LinkChange::Down } else { LinkChange::Up };
        for direction in Direction::BOTH {
            // Outages have no parameters that could be out of range.
            drop(self.change(direction, &change));
        }
    }

    /// Changes the link of a direction now.
    ///
    /// # Errors
    /// Fails if the new value is out of range.
    pub fn change(&self, direction: Direction, change: &LinkChange) -> Result<(), ConfigError> {
        let mut state = self.shared.lock();
        state.impairment.change(direction, self.shared.now(), change)?;
        self.shared.earlier.notify_one();
        Ok(())
    }

    /// Gives every client a new port towards the target, as a NAT that lost its mappings. Datagrams that the target has already
    /// sent to the old ports still arrive; later ones do not.
    ///
    /// # Errors
    /// Fails if the system provides no socket. The remaining clients then keep their ports.
    pub fn rebind_upstream(&self) -> Result<(), RelayError> {
        let mut state = self.shared.lock();
        let State { impairment, clients, .. } = &mut *state;
        let mut buffer = vec![0; LARGEST_DATAGRAM];
        for (number, client) in clients.iter_mut() {
            let way = self.shared.open_mapping(number).map_err(|cause| self.shared.no_route_error(cause))?;
            let old = std::mem::replace(&mut client.way, way);
            while let Some(length) = left_over(&old.socket, &mut buffer) {
                impairment.offer(Direction::Reverse, self.shared.now(), number, &buffer[..length]);
            }
        }
        self.shared.earlier.notify_one();
        Ok(())
    }

    /// Stops the relay and returns when all addresses are free. Dropping it stops it as well, slightly later.
    pub async fn stop(mut self) {
        // The tasks that could admit further clients end first.
        for task in std::mem::take(&mut self.tasks) {
            task.end().await;
        }
        let clients = self.shared.lock().clients.take();
        for client in clients.into_values() {
            client.way.reader.end().await;
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.tasks.clear();
        // The readers and the shared state refer to each other.
        drop(self.shared.lock().clients.take());
    }
}

impl Shared {
    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn no_route_error(&self, cause: io::Error) -> RelayError {
        RelayError::Upstream { from: self.from.ip(), to: self.to, cause }
    }

    fn open_mapping(self: &Arc<Self>, number: u32) -> io::Result<Mapping> {
        let socket = Arc::new(open(self.from, Some(self.to))?);
        let reader = read_target(Arc::clone(self), Arc::clone(&socket), number);
        Ok(Mapping { socket, reader: Task::spawn(reader) })
    }

    fn take_from_client(self: &Arc<Self>, address: SocketAddr, payload: &[u8]) {
        let mut state = self.lock();
        if self.is_too_large(&mut state, Direction::Forward, payload) {
            return;
        }
        let now = self.now();
        let known = state.clients.find(address, now);
        let owner = match known {
            Some(number) => Some(number),
            // A client without a socket, for example for lack of descriptors, is refused like one without a place.
            None => state.clients.add(address, now, |number| self.open_mapping(number)).and_then(Result::ok),
        };
        match owner {
            Some(owner) => self.offer(&mut state, Direction::Forward, now, owner, payload),
            None => state.refused.count(payload.len(), self.overhead),
        }
    }

    fn take_from_target(&self, owner: u32, payload: &[u8]) {
        let mut state = self.lock();
        if self.is_too_large(&mut state, Direction::Reverse, payload) {
            return;
        }
        let now = self.now();
        state.clients.touch(owner, now);
        self.offer(&mut state, Direction::Reverse, now, owner, payload);
    }

    /// Returns `true` if a datagram exceeds the MTU, and counts it.
    fn is_too_large(&self, state: &mut State, direction: Direction, payload: &[u8]) -> bool {
        let too_large = self.overhead + WireBytes::new(payload.len() as u64) > self.mtu;
        if too_large {
            state.too_large[direction.index()].count(payload.len(), self.overhead);
        }
        too_large
    }

    fn offer(&self, state: &mut State, direction: Direction, now: Time, owner: u32, payload: &[u8]) {
        state.impairment.offer(direction, now, owner, payload);
        let due = state.impairment.poll_timeout();
        if due.is_some_and(|due| state.armed.is_none_or(|armed| due < armed)) {
            state.armed = due;
            self.earlier.notify_one();
        }
    }

    fn next(&self, payload: &mut PacketBuffer) -> Next {
        let mut state = self.lock();
        let now = self.now();
        let Some(delivery) = state.impairment.poll_deliver(now, payload) else {
            state.armed = state.impairment.poll_timeout();
            return Next::Wait(state.armed.map(|due| due.since(now)));
        };
        state.lateness[delivery.direction.index()].count(now.since(delivery.at));
        state.clients.touch(delivery.owner, now);
        let client = state.clients.get(delivery.owner);
        Next::Send(delivery, client.map(|client| (Arc::clone(&client.way.socket), client.address)))
    }

    async fn send(
        &self,
        direction: Direction,
        way: Option<(Arc<UdpSocket>, SocketAddr)>,
        payload: &[u8],
    ) -> bool {
        let Some((socket, client)) = way else { return false };
        let once = async || match direction {
            Direction::Forward => socket.send(payload).await,
            Direction::Reverse => self.listen.send_to(payload, client).await,
        };
        match once().await {
            Ok(_) => true,
            // The error concerns an earlier datagram, and this one was not sent.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => once().await.is_ok(),
            Err(_) => false,
        }
    }
}

/// Opens a nonblocking socket and connects it if `to` is given.
fn open(local: SocketAddr, to: Option<SocketAddr>) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
    // A smaller buffer is acceptable.
    drop(socket.set_recv_buffer_size(SOCKET_BUFFER));
    drop(socket.set_send_buffer_size(SOCKET_BUFFER));
    socket.set_nonblocking(true)?;
    socket.bind(&local.into())?;
    if let Some(to) = to {
        socket.connect(&to.into())?;
    }
    UdpSocket::from_std(socket.into())
}

/// Reads a datagram that arrived and was not read yet. Calls the system directly, because the runtime's readiness state may be
/// stale.
fn left_over(socket: &UdpSocket, buffer: &mut [u8]) -> Option<usize> {
    let system = SockRef::from(socket);
    let mut reader: &Socket = &system;
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            read => return read.ok(),
        }
    }
}

async fn read_clients(shared: Arc<Shared>) {
    let mut buffer = vec![0; LARGEST_DATAGRAM];
    loop {
        match shared.listen.recv_from(&mut buffer).await {
            Ok((length, address)) => shared.take_from_client(address, &buffer[..length]),
            Err(error) => pause_after(&error).await,
        }
    }
}

async fn read_target(shared: Arc<Shared>, socket: Arc<UdpSocket>, number: u32) {
    let mut buffer = vec![0; LARGEST_DATAGRAM];
    loop {
        match socket.recv(&mut buffer).await {
            Ok(length) => shared.take_from_target(number, &buffer[..length]),
            Err(error) => pause_after(&error).await,
        }
    }
}

/// Pauses after an unknown error. If the target or a client has no socket, the system reports that once per datagram, so no pause
/// is needed.
async fn pause_after(error: &io::Error) {
    if !matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset) {
        tokio::time::sleep(AFTER_ERROR).await;
    }
}

async fn send_due(shared: Arc<Shared>, alarm: Alarm) {
    let mut payload = PacketBuffer::new();
    loop {
        match shared.next(&mut payload) {
            Next::Send(delivery, way) => {
                if !shared.send(delivery.direction, way, &payload).await {
                    let mut state = shared.lock();
                    state.unsent[delivery.direction.index()].count(payload.len(), shared.overhead);
                }
            }
            Next::Wait(span) => tokio::select! {
                () = shared.earlier.notified() => {}
                () = alarm.after(span) => {}
            },
        }
    }
}

async fn forget_idle(shared: Arc<Shared>, idle: Duration) {
    let mut look = tokio::time::interval((idle / 8).clamp(SHORTEST_LOOK, LONGEST_LOOK));
    loop {
        look.tick().await;
        let now = shared.now();
        shared.lock().clients.expire(now);
    }
}

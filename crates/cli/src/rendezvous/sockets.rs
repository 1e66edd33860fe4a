//! Sockets of the server: the main one, and one for each relay.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use anabranch_core::time::{Span, Time};
use anabranch_rendezvous::{Limits, PortNumber, Ports, Relayed, Server, Totals};
use anyhow::Context;
use tokio::net::UdpSocket;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::exit::CommandError;

/// Size of a receive buffer in bytes, which takes every datagram.
const BUFFER: usize = 65_536;

/// Pause after a failed call that receives, so that an error of the system does not keep the processor busy.
const PAUSE: Duration = Duration::from_millis(10);

/// Number of consecutive failed calls after which a socket is given up.
const MAX_FAILURES: u32 = 100;

/// Sockets of a server.
pub(super) struct Sockets {
    main: UdpSocket,
    local: SocketAddr,
    started: Instant,
    state: Mutex<State>,
}

struct State {
    server: Server,
    relays: RelaySockets,
}

/// Binds the first address that is free.
pub(super) fn bind(addresses: &[SocketAddr]) -> Result<std::net::UdpSocket, (SocketAddr, io::Error)> {
    let mut failed = None;
    for address in addresses {
        match socket_at(*address) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = Some((*address, error)),
        }
    }
    Err(failed.expect("an address"))
}

fn socket_at(address: SocketAddr) -> io::Result<std::net::UdpSocket> {
    let socket = std::net::UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

impl Sockets {
    pub(super) fn new(
        main: std::net::UdpSocket,
        seed: [u8; 32],
        limits: Limits,
        ports: Option<RangeInclusive<u16>>,
    ) -> Result<Arc<Self>, CommandError> {
        let local = main.local_addr().context("the address of a socket").map_err(CommandError::from)?;
        let main =
            UdpSocket::from_std(main).context("cannot wait for a socket").map_err(CommandError::from)?;
        let server = Server::new(Time::ZERO, seed, limits);
        Ok(Arc::new_cyclic(|sockets| {
            let relays = RelaySockets { at: local.ip(), ports, open: BTreeMap::new(), all: sockets.clone() };
            Sockets { main, local, started: Instant::now(), state: Mutex::new(State { server, relays }) }
        }))
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    pub(super) fn totals(&self) -> Totals {
        self.state().server.totals()
    }

    /// Returns the state. It is consistent even if a thread panicked with the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        Time::ZERO + Span::from(self.started.elapsed())
    }

    /// Removes what has expired.
    pub(super) fn sweep(&self) {
        let State { server, relays } = &mut *self.state();
        server.handle_timeout(self.now(), relays);
    }

    /// Serves the main socket until it fails.
    pub(super) async fn serve(&self) -> io::Error {
        receive(&self.main, |from, datagram| {
            let State { server, relays } = &mut *self.state();
            for reply in server.handle(self.now(), (0, from), datagram, relays) {
                // A reply that cannot be sent at once is lost, as in a full queue: the client asks again.
                let _ = self.main.try_send_to(&reply.bytes, written(self.local, reply.to));
            }
        })
        .await
    }

    /// Serves the socket of a relay until it fails.
    async fn serve_relay(&self, socket: &UdpSocket, port: PortNumber) -> io::Error {
        receive(socket, |from, datagram| {
            let handled = self.state().server.handle_relayed(self.now(), port, from, datagram);
            let _ = match handled {
                Relayed::Forward(to) => socket.try_send_to(datagram, written(self.local, to)),
                Relayed::Answer(answer) => socket.try_send_to(&answer, from),
                Relayed::Dropped => Ok(0),
            };
        })
        .await
    }
}

/// Passes datagrams to `handle` until the socket fails.
async fn receive(socket: &UdpSocket, mut handle: impl FnMut(SocketAddr, &[u8])) -> io::Error {
    let mut buffer = vec![0; BUFFER];
    let mut failures = 0;
    loop {
        match socket.recv_from(&mut buffer).await {
            Ok((length, from)) => {
                failures = 0;
                handle(from, &buffer[..length]);
            }
            // An ICMP message about an earlier datagram is an error of the next call on some systems.
            Err(error) if failures >= MAX_FAILURES => return error,
            Err(_) => {
                failures += 1;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Returns an address as a socket expects it: IPv4 in the form of IPv6, if the socket has an IPv6 address.
fn written(local: SocketAddr, to: SocketAddr) -> SocketAddr {
    match (local, to.ip()) {
        (SocketAddr::V6(_), IpAddr::V4(v4)) => SocketAddr::new(v4.to_ipv6_mapped().into(), to.port()),
        _ => to,
    }
}

/// Sockets of relays, each with its task.
struct RelaySockets {
    at: IpAddr,
    ports: Option<RangeInclusive<u16>>,
    open: BTreeMap<u16, AbortHandle>,
    all: Weak<Sockets>,
}

impl RelaySockets {
    fn bind(&self) -> Option<std::net::UdpSocket> {
        let at = |port| socket_at(SocketAddr::new(self.at, port)).ok();
        match self.ports.clone() {
            Some(mut ports) => {
                ports.find_map(|port| if self.open.contains_key(&port) { None } else { at(port) })
            }
            None => at(0),
        }
    }
}

impl Ports for RelaySockets {
    fn open(&mut self, via: usize) -> Option<u16> {
        let socket = UdpSocket::from_std(self.bind()?).ok()?;
        let port = socket.local_addr().ok()?.port();
        let all = self.all.clone();
        let task = tokio::spawn(async move {
            if let Some(all) = all.upgrade() {
                all.serve_relay(&socket, PortNumber { via, port }).await;
            }
        });
        self.open.insert(port, task.abort_handle());
        Some(port)
    }

    fn close(&mut self, port: PortNumber) {
        if let Some(task) = self.open.remove(&port.port) {
            task.abort();
        }
    }
}

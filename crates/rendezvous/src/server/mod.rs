//! Server at which two sides meet.

mod calls;
mod rates;
mod relays;
mod sockets;
mod table;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use anabranch_core::Source;
use anabranch_core::time::{Rate, Span, Time};
use anabranch_identity::PublicKey;

use self::calls::Call;
use self::rates::Rates;
use self::relays::{Relay, Relays, Side, Unopened};
use self::sockets::{ClientSocket, Sockets};
use self::table::Table;
use crate::message::{CallId, Message, RawKey, Refusal, Request, Signed};
use crate::secret::Secret;

pub use self::relays::Relayed;
pub use self::sockets::PortNumber;

/// Time after which a socket without a new registration is removed.
const REGISTRATION_LIFETIME: Span = Span::from_secs(60);

/// Time after which a call without a request is removed.
const CALL_LIFETIME: Span = Span::from_secs(60);

/// Prefix length in bits of an IPv6 site. Providers assign a /48 or a /56 (RFC 6177), whose /64 networks one host can use.
const SITE_BITS: u32 = 48;

/// Time between two removals of expired entries.
const SWEEP_EVERY: Span = Span::from_secs(1);

/// Limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of registered listeners.
    pub listeners: usize,
    /// Maximum number of calls at a time.
    pub calls: usize,
    /// Maximum number of relayed pairs at a time; 0 disables relaying.
    pub relays: usize,
    /// Maximum rate of a relayed pair, of both directions together.
    pub relay_rate: Rate,
    /// Maximum number of relayed bytes of a pair.
    pub relay_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            listeners: 1024,
            calls: 256,
            relays: 64,
            relay_rate: Rate::from_bps(10_000_000),
            relay_bytes: 10_000_000_000,
        }
    }
}

/// UDP ports of relays, which the driver opens at the address of a main socket.
pub trait Ports {
    /// Opens a UDP port beside the main socket with this number. Returns `None` if no port is free.
    fn open(&mut self, via: usize) -> Option<u16>;

    /// Closes a port.
    fn close(&mut self, port: PortNumber);
}

/// Datagram to send from a main socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Number of the main socket.
    pub via: usize,
    /// Address of the client.
    pub to: SocketAddr,
    /// UDP payload.
    pub bytes: Vec<u8>,
}

/// Counters of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Calls that a listener accepted.
    pub accepted_calls: u64,
    /// Relays that were opened.
    pub relays: u64,
    /// Relayed datagrams and their bytes.
    pub relayed: u64,
    /// Bytes of the relayed datagrams.
    pub relayed_bytes: u64,
    /// Datagrams that a relay dropped because of its limits.
    pub over_limit: u64,
    /// Requests that were dropped: malformed, above a rate, or without a valid cookie or signature.
    pub dropped: u64,
}

/// Sockets of a registered listener.
#[derive(Debug)]
struct Registered {
    registration: [u8; 16],
    sockets: Sockets,
}

/// Server at which two sides meet. Its driver passes the datagrams of its sockets, and sends the replies.
///
/// All memory is bounded by [`Limits`], and each source (an IPv4 address or an IPv6 /48) has its share. All replies to a datagram
/// are together no longer than the datagram, and except for cookies they go to addresses that have returned one.
#[derive(Debug)]
pub struct Server {
    secret: Secret,
    limits: Limits,
    listeners: Table<RawKey, Registered>,
    calls: Table<CallId, Call>,
    relays: Relays,
    rates: Rates,
    totals: Totals,
    next_sweep: Time,
}

/// Returns the source that counts for the requests of an address.
fn source_of(address: SocketAddr) -> Source {
    match address.ip() {
        IpAddr::V4(address) => IpAddr::V4(address).into(),
        IpAddr::V6(address) => {
            let host_bits = Ipv6Addr::BITS - SITE_BITS;
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> host_bits << host_bits)).into()
        }
    }
}

impl Server {
    /// Creates a server. The seed has to be random and secret.
    pub fn new(now: Time, seed: [u8; 32], limits: Limits) -> Self {
        Server {
            secret: Secret::new(seed),
            listeners: Table::new(limits.listeners),
            calls: Table::new(limits.calls),
            relays: Relays::new(&limits),
            rates: Rates::new(now),
            totals: Totals::default(),
            next_sweep: now + SWEEP_EVERY,
            limits,
        }
    }

    /// Returns the counters.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the numbers of current listeners, calls and relays.
    pub fn occupancy(&self) -> (usize, usize, usize) {
        (self.listeners.len(), self.calls.len(), self.relays.len())
    }

    /// Handles a datagram that arrived at a main socket.
    pub fn handle(
        &mut self,
        now: Time,
        (via, from): (usize, SocketAddr),
        datagram: &[u8],
        ports: &mut dyn Ports,
    ) -> Vec<Reply> {
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        let origin = ClientSocket { via, address: from, seen: now };
        match Message::parse(datagram) {
            Ok(Message::Hello { nonce }) => {
                let cookie = self.secret.cookie(now, from);
                vec![origin.reply(&Message::Challenge { nonce, cookie, mapped: from })]
            }
            Ok(Message::Signed(signed)) => {
                let replies = self.handle_signed(now, origin, &signed, ports);
                replies.unwrap_or_else(|| self.dropped())
            }
            _ => self.dropped(),
        }
    }

    fn dropped<T: Default>(&mut self) -> T {
        self.totals.dropped += 1;
        T::default()
    }

    /// Handles a request. Returns `None` if it is not admitted.
    fn handle_signed(
        &mut self,
        now: Time,
        origin: ClientSocket,
        signed: &Signed,
        ports: &mut dyn Ports,
    ) -> Option<Vec<Reply>> {
        let source = source_of(origin.address);
        // The cookie is checked first: it costs less than a signature, and forged sources have none.
        if !self.secret.accepts(now, origin.address, &signed.cookie)
            || !self.rates.admits(now, &self.secret, source)
        {
            return None;
        }
        let key = signed.verify()?;
        match signed.request {
            Request::Register { registration } => Some(self.register(key, registration, origin)),
            Request::Call { call, listener } => self.call(key, (call, listener), origin, signed),
            Request::Accept { call } => self.accept(now, key, call, origin).map(|()| Vec::new()),
            Request::Relay { call, pair } => self.relay(now, key, (call, pair), origin, ports),
        }
    }

    fn register(&mut self, key: PublicKey, registration: [u8; 16], origin: ClientSocket) -> Vec<Reply> {
        let key = key.to_raw();
        let mut replies = vec![origin.reply(&Message::Registered { registration })];
        match self.listeners.get_mut(&key) {
            Some(known) if known.registration == registration => known.sockets.enter(origin),
            earlier => {
                if let Some(Registered { registration, sockets }) = earlier {
                    let superseded = Message::Superseded { registration: *registration };
                    replies.extend(sockets.iter().map(|socket| socket.reply(&superseded)));
                }
                let registered = Registered { registration, sockets: Sockets::of(origin) };
                self.listeners.insert(key, registered, source_of(origin.address));
            }
        }
        replies
    }

    fn call(
        &mut self,
        key: PublicKey,
        (id, listener): (CallId, RawKey),
        origin: ClientSocket,
        signed: &Signed,
    ) -> Option<Vec<Reply>> {
        if self.calls.get(&id).is_none() {
            let call = Call::new(key.to_raw(), listener, origin.seen);
            self.calls.insert(id, call, source_of(origin.address));
        }
        let call = self
            .calls
            .get_mut(&id)
            .filter(|call| call.is_of_caller(key.to_raw()) && call.is_of_listener(listener))?;
        let asked = call.ask(origin);
        let mut replies =
            vec![origin.reply(&Message::Calling { call: id, addresses: call.listener.addresses() })];
        if let Some(Registered { registration, sockets }) = self.listeners.get(&listener)
            && let Some(to) = sockets.nth(asked)
        {
            replies.push(to.reply(&call.incoming(*registration, id, signed)));
        }
        Some(replies)
    }

    fn accept(&mut self, now: Time, key: PublicKey, id: CallId, origin: ClientSocket) -> Option<()> {
        let call = self.calls.get_mut(&id).filter(|call| call.is_of_listener(key.to_raw()))?;
        if call.listener.is_empty() {
            self.totals.accepted_calls += 1;
        }
        call.used = now;
        call.listener.enter(origin);
        Some(())
    }

    fn relay(
        &mut self,
        now: Time,
        key: PublicKey,
        (id, pair): (CallId, u8),
        origin: ClientSocket,
        ports: &mut dyn Ports,
    ) -> Option<Vec<Reply>> {
        let call = self.calls.get_mut(&id).filter(|call| call.is_of_caller(key.to_raw()))?;
        call.used = now;
        // A relay has one address, so both sides reach it over the same IP version.
        let to = call.listener.beside(origin.via, usize::from(pair));
        let refused = |refusal| Some(vec![origin.reply(&Message::RelayRefused { call: id, pair, refusal })]);
        let Some(to) = to else {
            return refused(if call.listener.is_empty() { return None } else { Refusal::NoCommonVersion });
        };
        let port = match call.relays.get(&pair).copied().filter(|port| self.relays.contains(*port)) {
            Some(port) => port,
            None => {
                let source = source_of(origin.address);
                let relay = Relay::new(now, (id, pair), source, &mut self.secret, &self.limits);
                match self.relays.open(relay, origin.via, ports) {
                    Ok(port) => {
                        self.totals.relays += 1;
                        call.relays.insert(pair, port);
                        port
                    }
                    Err(Unopened::Refused(refusal)) => return refused(refusal),
                    Err(Unopened::Later) => return Some(Vec::new()),
                }
            }
        };
        let offer = |side| {
            let token = self.relays.token(port, side)?;
            Some(Message::RelayOffer { call: id, pair, port: port.port, token })
        };
        Some(vec![origin.reply(&offer(Side::Caller)?), to.reply(&offer(Side::Listener)?)])
    }

    /// Handles a datagram that arrived at the port of a relay.
    pub fn handle_relayed(
        &mut self,
        now: Time,
        port: PortNumber,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Relayed {
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        self.relays.handle(now, &self.secret, (port, from), datagram, &mut self.totals)
    }

    /// Removes expired entries, and closes their ports.
    pub fn handle_timeout(&mut self, now: Time, ports: &mut dyn Ports) {
        if now < self.next_sweep {
            return;
        }
        self.next_sweep = now + SWEEP_EVERY;
        self.listeners.retain(|_, registered| registered.sockets.expire(now, REGISTRATION_LIFETIME));
        self.calls.retain(|_, call| now.since(call.used) < CALL_LIFETIME);
        self.relays.close_expired(now, ports);
    }

    /// Returns the time of the next call of [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Time {
        self.next_sweep
    }
}

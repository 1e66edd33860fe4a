//! Relays of packets between two sides whose NATs admit no direct path.
//!
//! A relay has a UDP port of its own, so that the packets of the association pass unchanged: to each side, the port is the address of
//! the other one. The server neither reads nor changes them. Each side binds its address with a secret token and a cookie.

use std::net::SocketAddr;

use anabranch_core::Source;
use anabranch_core::time::{Span, Time};

use super::sockets::{ClientSocket, PortNumber};
use super::table::Table;
use super::{Limits, Ports, Totals};
use crate::bucket::Bucket;
use crate::message::{CallId, Message, Refusal, Token, is_rendezvous};
use crate::secret::{Secret, is_equal};

/// Time without a forwarded packet after which a relay is closed.
const IDLE_LIFETIME: Span = Span::from_secs(120);

/// Time after which a relay is closed although it is used.
const LIFETIME: Span = Span::from_secs(24 * 3600);

/// Time that a relay may send at once above its rate.
const BURST: Span = Span::from_millis(100);

/// Minimum burst in bytes.
const LEAST_BURST: u64 = 64 << 10;

/// Treatment of a datagram at a relay's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relayed {
    /// The datagram is sent to this address from the same port.
    Forward(SocketAddr),
    /// This datagram is sent to the source from the same port.
    Answer(Vec<u8>),
    /// The datagram is dropped.
    Dropped,
}

/// Side of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Caller,
    Listener,
}

impl Side {
    const BOTH: [Side; 2] = [Side::Caller, Side::Listener];
}

/// Relay between two addresses.
#[derive(Debug)]
pub(super) struct Relay {
    call: CallId,
    pair: u8,
    tokens: [Token; 2],
    /// Addresses of the sides that have joined.
    addresses: [Option<SocketAddr>; 2],
    bucket: Bucket,
    bytes_left: u64,
    opened: Time,
    used: Time,
}

impl Relay {
    pub(super) fn new(now: Time, (call, pair): (CallId, u8), secret: &mut Secret, limits: &Limits) -> Self {
        let (_, burst) = rate_and_burst(limits);
        Relay {
            call,
            pair,
            tokens: [secret.draw(), secret.draw()],
            addresses: [None; 2],
            bucket: Bucket::full(now, burst),
            bytes_left: limits.relay_bytes,
            opened: now,
            used: now,
        }
    }

    fn join(&mut self, from: SocketAddr, token: &Token) -> Option<()> {
        let side = Side::BOTH.into_iter().find(|side| is_equal(&self.tokens[*side as usize], token))?;
        self.addresses[side as usize] = Some(from);
        Some(())
    }

    /// Returns the address of the other side.
    fn opposite(&self, from: SocketAddr) -> Option<SocketAddr> {
        let [caller, listener] = self.addresses;
        if caller == Some(from) {
            listener
        } else if listener == Some(from) {
            caller
        } else {
            None
        }
    }
}

/// Returns the rate of a relay and its burst, in bytes per second and bytes.
fn rate_and_burst(limits: &Limits) -> (u64, u64) {
    let rate = limits.relay_rate.as_bps() / 8;
    (rate, LEAST_BURST.max(rate / 1000 * (BURST.as_nanos() / 1_000_000)))
}

/// All relays of a server.
#[derive(Debug)]
pub(super) struct Relays {
    open: Table<PortNumber, Relay>,
    limits: Limits,
}

impl Relays {
    pub(super) fn new(limits: &Limits) -> Self {
        Relays { open: Table::new(limits.relays), limits: *limits }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn contains(&self, port: PortNumber) -> bool {
        self.open.get(&port).is_some()
    }

    pub(super) fn token(&self, port: PortNumber, side: Side) -> Option<Token> {
        self.open.get(&port).map(|relay| relay.tokens[side as usize])
    }

    /// Opens a relay for a caller. If all are in use, the network with most of them loses one.
    pub(super) fn open(
        &mut self,
        relay: Relay,
        caller: ClientSocket,
        ports: &mut dyn Ports,
    ) -> Result<PortNumber, Refusal> {
        if self.limits.relays == 0 {
            return Err(Refusal::Disabled);
        }
        let port = ports.open(caller.via).ok_or(Refusal::Full)?;
        let port = PortNumber { via: caller.via, port };
        match self.open.insert_if_due(port, relay, Source::from(caller.address.ip())) {
            Ok(evicted) => {
                if let Some((evicted, _)) = evicted {
                    ports.close(evicted);
                }
                Ok(port)
            }
            Err(_) => {
                ports.close(port);
                Err(Refusal::Full)
            }
        }
    }

    pub(super) fn handle(
        &mut self,
        now: Time,
        secret: &Secret,
        (port, from): (PortNumber, SocketAddr),
        datagram: &[u8],
        totals: &mut Totals,
    ) -> Relayed {
        let Some(relay) = self.open.get_mut(&port) else { return Relayed::Dropped };
        if is_rendezvous(datagram) {
            return control(now, secret, relay, from, datagram).map_or_else(
                || {
                    totals.dropped += 1;
                    Relayed::Dropped
                },
                |answer| Relayed::Answer(answer.to_bytes()),
            );
        }
        let Some(to) = relay.opposite(from) else {
            totals.dropped += 1;
            return Relayed::Dropped;
        };
        let bytes = datagram.len() as u64;
        let (rate, burst) = rate_and_burst(&self.limits);
        if relay.bytes_left < bytes {
            totals.over_limit += 1;
            return ended(relay, datagram);
        }
        if !relay.bucket.take(now, bytes, rate, burst) {
            totals.over_limit += 1;
            return Relayed::Dropped;
        }
        relay.bytes_left -= bytes;
        relay.used = now;
        totals.relayed += 1;
        totals.relayed_bytes += bytes;
        Relayed::Forward(to)
    }

    /// Closes relays that are idle or old.
    pub(super) fn close_expired(&mut self, now: Time, ports: &mut dyn Ports) {
        let is_over =
            |relay: &Relay| now.since(relay.used) >= IDLE_LIFETIME || now.since(relay.opened) >= LIFETIME;
        self.open.retain(|port, relay| {
            let is_over = is_over(relay);
            if is_over {
                ports.close(*port);
            }
            !is_over
        });
    }
}

/// Handles a message to the relay itself.
fn control(
    now: Time,
    secret: &Secret,
    relay: &mut Relay,
    from: SocketAddr,
    datagram: &[u8],
) -> Option<Message> {
    match Message::parse(datagram).ok()? {
        Message::Hello { nonce } => {
            Some(Message::Challenge { nonce, cookie: secret.cookie(now, from), mapped: from })
        }
        Message::Join { token, cookie } if secret.accepts(now, from, &cookie) => {
            relay.join(from, &token)?;
            Some(Message::Joined { token })
        }
        _ => None,
    }
}

/// Reports the end of a relay, if that is no longer than the dropped datagram.
fn ended(relay: &Relay, datagram: &[u8]) -> Relayed {
    let refused = Message::RelayRefused { call: relay.call, pair: relay.pair, refusal: Refusal::Bytes };
    let bytes = refused.to_bytes();
    if bytes.len() <= datagram.len() { Relayed::Answer(bytes) } else { Relayed::Dropped }
}

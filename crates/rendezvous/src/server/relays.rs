//! Relays of packets between two sides whose NATs admit no direct path.
//!
//! A relay has a UDP port of its own, so that the packets of the association pass unchanged: to each side, the port is the address of
//! the other one. The server neither reads nor changes them. Each side binds its address with a secret token and a cookie.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anabranch_core::Source;
use anabranch_core::time::{Span, Time};

use super::sockets::PortNumber;
use super::table::Table;
use super::{Limits, Ports, Totals};
use crate::bucket::Bucket;
use crate::message::{CallId, Message, Refusal, Token, is_rendezvous};
use crate::secret::{Secret, is_equal};

/// Time without a forwarded packet after which a relay is closed.
const IDLE_LIFETIME: Span = Span::from_secs(120);

/// Time after which a side that has not joined again gets no more packets: its address may be that of another host by then.
const JOIN_LIFETIME: Span = Span::from_secs(60);

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

/// Reason for which a relay was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unopened {
    /// The request is refused.
    Refused(Refusal),
    /// A relay of a greedier source was closed. Its port is free when the caller asks again.
    Later,
}

/// Relay between two addresses.
#[derive(Debug)]
pub(super) struct Relay {
    call: CallId,
    pair: u8,
    /// Source that counts for it.
    source: Source,
    tokens: [Token; 2],
    /// Addresses of the sides, each with the time at which it joined.
    joined: [Option<(SocketAddr, Time)>; 2],
    bucket: Bucket,
    bytes_left: u64,
    opened: Time,
    used: Time,
}

impl Relay {
    pub(super) fn new(
        now: Time,
        (call, pair): (CallId, u8),
        source: Source,
        secret: &mut Secret,
        limits: &Limits,
    ) -> Self {
        let (_, burst) = rate_and_burst(limits);
        Relay {
            call,
            pair,
            source,
            tokens: [secret.draw(), secret.draw()],
            joined: [None; 2],
            bucket: Bucket::full(now, burst),
            bytes_left: limits.relay_bytes,
            opened: now,
            used: now,
        }
    }

    fn join(&mut self, now: Time, from: SocketAddr, token: &Token) -> Option<()> {
        let side = Side::BOTH.into_iter().find(|side| is_equal(&self.tokens[*side as usize], token))?;
        self.joined[side as usize] = Some((from, now));
        Some(())
    }

    /// Returns the address of the other side, if both have joined recently.
    fn opposite(&self, now: Time, from: SocketAddr) -> Option<SocketAddr> {
        let current = |(address, at)| (now.since(at) < JOIN_LIFETIME).then_some(address);
        let [caller, listener] = self.joined.map(|joined| joined.and_then(current));
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

    /// Opens a relay beside a main socket. If all relays or ports are in use, the source with most of them loses one.
    pub(super) fn open(
        &mut self,
        relay: Relay,
        via: usize,
        ports: &mut dyn Ports,
    ) -> Result<PortNumber, Unopened> {
        if self.limits.relays == 0 {
            return Err(Unopened::Refused(Refusal::Disabled));
        }
        let Some(port) = ports.open(via) else { return Err(self.free_port(relay.source, via, ports)) };
        let port = PortNumber { via, port };
        let source = relay.source;
        match self.open.insert_if_due(port, relay, source) {
            Ok(evicted) => {
                if let Some((evicted, _)) = evicted {
                    ports.close(evicted);
                }
                Ok(port)
            }
            Err(_) => {
                ports.close(port);
                Err(Unopened::Refused(Refusal::Full))
            }
        }
    }

    /// Closes a relay of the source with most of them, unless `source` would have as many with another one.
    fn free_port(&mut self, source: Source, via: usize, ports: &mut dyn Ports) -> Unopened {
        let mut counts: BTreeMap<Source, usize> = BTreeMap::new();
        for (_, relay) in self.open.iter() {
            *counts.entry(relay.source).or_default() += 1;
        }
        let own = counts.get(&source).map_or(0, |count| *count);
        let greediest = counts.into_iter().max_by_key(|(_, count)| *count);
        let Some((greediest, _)) = greediest.filter(|(_, most)| *most > own + 1) else {
            return Unopened::Refused(Refusal::Full);
        };
        let of_it = self.open.iter().filter(|(port, relay)| port.via == via && relay.source == greediest);
        let Some(port) = of_it.min_by_key(|(_, relay)| relay.opened).map(|(port, _)| *port) else {
            return Unopened::Refused(Refusal::Full);
        };
        self.open.remove(&port);
        ports.close(port);
        Unopened::Later
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
        let Some(to) = relay.opposite(now, from) else {
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
            relay.join(now, from, &token)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Range of two ports.
    #[derive(Default)]
    struct TwoPorts(Vec<u16>);

    impl Ports for TwoPorts {
        fn open(&mut self, _via: usize) -> Option<u16> {
            let free = (1..=2).find(|port| !self.0.contains(port))?;
            self.0.push(free);
            Some(free)
        }

        fn close(&mut self, port: PortNumber) {
            self.0.retain(|open| *open != port.port);
        }
    }

    #[test]
    fn ports_that_one_source_uses_up_are_shared_with_another() {
        let limits = Limits { relays: 2, ..Limits::default() };
        let (mut secret, mut ports, mut relays) =
            (Secret::new([1; 32]), TwoPorts::default(), Relays::new(&limits));
        let mut open = |last: u8| {
            let source = Source::V4([192, 0, 2, last]);
            let relay = Relay::new(Time::ZERO, ([last; 16], 0), source, &mut secret, &limits);
            relays.open(relay, 0, &mut ports).map(|port| port.port)
        };
        assert_eq!([open(1), open(1)], [Ok(1), Ok(2)]);
        assert_eq!(open(1), Err(Unopened::Refused(Refusal::Full)), "it has the most");
        assert_eq!(open(2), Err(Unopened::Later));
        assert_eq!(open(2), Ok(1), "the oldest relay of the other source was closed");
        assert_eq!(open(2), Err(Unopened::Refused(Refusal::Full)));
        assert_eq!(open(3), Err(Unopened::Refused(Refusal::Full)), "each source has one");
    }
}

//! Side that calls: finds a path from each socket to a listener.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use anabranch_core::time::{Span, Time};
use anabranch_identity::{KeyPair, PublicKey};

use super::link::Link;
use super::membership::Membership;
use super::{MAX_SOCKETS, Outgoing, reaches};
use crate::message::{CallId, MAX_ADDRESSES, Message, Refusal, Request};
use crate::secret::Secret;

/// Time between two requests to the server.
const REQUEST_EVERY: Span = Span::from_millis(250);

/// Time without any answer after which the server counts as unreachable.
const SERVER_WITHIN: Span = Span::from_secs(3);

/// Time for the listener to accept the call.
const ACCEPTED_WITHIN: Span = Span::from_secs(5);

/// Time between two probes of a pair.
const PROBE_EVERY: Span = Span::from_millis(100);

/// Time of probing while a socket has no answer.
const PROBED_WITHIN: Span = Span::from_millis(1500);

/// Minimum time of probing, in which further pairs may answer.
const PROBED_AT_LEAST: Span = Span::from_millis(300);

/// Time for the server to offer relays, and for joining them.
const RELAYED_WITHIN: Span = Span::from_secs(3);

/// Maximum number of the listener's addresses: those that it registered, and as many from which its probes arrive.
const MAX_CANDIDATES: usize = 2 * MAX_ADDRESSES;

/// Maximum number of pairs that answer.
const MAX_PAIRS: usize = MAX_SOCKETS * MAX_CANDIDATES;

/// Way of packets to the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Through the NATs of both sides.
    Direct,
    /// Through a relay of the server.
    Relayed,
}

/// Path to the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeetingPath<S> {
    /// Socket at which it begins.
    pub socket: S,
    /// Address to send to.
    pub remote: SocketAddr,
    /// Way of the packets.
    pub route: Route,
}

/// Reason for which there is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No socket reaches an address of the server.
    NoRoute,
    /// The server did not answer.
    NoServer,
    /// No listener with this key accepted the call: it is not registered, or does not admit the caller's key.
    NoListener,
    /// No probe was answered, and the server refused to relay for this reason.
    NoRelay(Refusal),
    /// No probe was answered, and no relay could be joined.
    RelaySilent,
}

/// Result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerEvent<S> {
    /// These paths lead to the listener, at most one from each socket.
    Met(Vec<MeetingPath<S>>),
    /// There is no path.
    Failed(Failure),
    /// The server ended the relay of the path from this socket.
    RelayEnded(S, Refusal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Calling,
    Probing { since: Time },
    Relaying { until: Time },
    Over,
}

/// Pair of a socket and an address that has answered a probe.
#[derive(Clone, Copy, Debug)]
struct Answered {
    link: usize,
    remote: SocketAddr,
}

/// Side that calls a listener. After the paths were found, it keeps its relays joined.
#[derive(Debug)]
pub struct Caller<S> {
    key: KeyPair,
    listener: PublicKey,
    call: CallId,
    secret: Secret,
    links: Vec<Link<S>>,
    started: Time,
    phase: Phase,
    next_request: Time,
    next_probe: Time,
    candidates: Vec<SocketAddr>,
    answered: Vec<Answered>,
    memberships: Vec<Membership<S>>,
    /// Refusals of relays by the number of the socket.
    refusals: [Option<Refusal>; MAX_SOCKETS],
    outgoing: VecDeque<Outgoing<S>>,
    events: VecDeque<CallerEvent<S>>,
}

impl<S: Copy + PartialEq> Caller<S> {
    /// Begins a call from these sockets, each with its local address. The seed has to be random and secret.
    pub fn new(
        now: Time,
        seed: [u8; 32],
        key: KeyPair,
        listener: PublicKey,
        sockets: impl IntoIterator<Item = (S, IpAddr)>,
        servers: &[SocketAddr],
    ) -> Self {
        let mut secret = Secret::new(seed);
        let links = Link::of_all(sockets, servers, &mut secret);
        let mut caller = Caller {
            key,
            listener,
            call: secret.draw(),
            secret,
            links,
            started: now,
            phase: Phase::Calling,
            next_request: now,
            next_probe: now,
            candidates: Vec::new(),
            answered: Vec::new(),
            memberships: Vec::new(),
            refusals: [None; MAX_SOCKETS],
            outgoing: VecDeque::new(),
            events: VecDeque::new(),
        };
        if caller.links.is_empty() {
            caller.end(CallerEvent::Failed(Failure::NoRoute));
        }
        caller.handle_timeout(now);
        caller
    }

    /// Handles a rendezvous message that arrived at a socket.
    pub fn handle(&mut self, now: Time, socket: S, from: SocketAddr, datagram: &[u8]) {
        let Ok(message) = Message::parse(datagram) else { return };
        let Some(link) = self.links.iter().position(|link| link.socket == socket) else { return };
        if from == self.links[link].server {
            self.handle_server(now, link, message);
        } else if let Some(member) =
            self.memberships.iter_mut().find(|member| member.socket == socket && member.relay == from)
        {
            self.outgoing.extend(member.handle(now, &message));
            self.refused(link, &message);
        } else {
            self.handle_peer(link, from, &message);
        }
        self.handle_timeout(now);
    }

    fn handle_server(&mut self, now: Time, link: usize, message: Message) {
        match message {
            Message::Challenge { nonce, cookie, mapped } => {
                let is_first = !self.links[link].has_cookie();
                if self.links[link].challenged(nonce, cookie, mapped) && is_first {
                    self.ask(link);
                }
            }
            Message::Calling { call, addresses } if call == self.call => {
                addresses.into_iter().for_each(|address| self.add_candidate(address));
                if self.phase == Phase::Calling && !self.candidates.is_empty() {
                    self.phase = Phase::Probing { since: now };
                    self.next_probe = now;
                }
            }
            Message::RelayOffer { call, pair, port, token } if call == self.call => {
                let relay = SocketAddr::new(self.links[link].server.ip(), port);
                let is_wanted = usize::from(pair) == link && matches!(self.phase, Phase::Relaying { .. });
                if is_wanted && !self.memberships.iter().any(|member| member.pair == pair) {
                    let end = (self.links[link].socket, relay);
                    let nonce = self.secret.draw();
                    self.memberships.push(Membership::new(now, end, (call, pair), token, nonce));
                }
            }
            message => self.refused(link, &message),
        }
    }

    /// Handles the end of a relay, or a refusal to open one.
    fn refused(&mut self, link: usize, message: &Message) {
        let Message::RelayRefused { call, pair, refusal } = *message else { return };
        if call != self.call || usize::from(pair) != link || self.refusals[link].is_some() {
            return;
        }
        self.refusals[link] = Some(refusal);
        if self.phase == Phase::Over {
            self.events.push_back(CallerEvent::RelayEnded(self.links[link].socket, refusal));
        }
    }

    fn handle_peer(&mut self, link: usize, from: SocketAddr, message: &Message) {
        match *message {
            Message::Probe { call, nonce } if call == self.call => {
                // A symmetric NAT of the listener shows another address than the server saw.
                self.add_candidate(from);
                self.send(link, from, &Message::ProbeReply { call, nonce });
            }
            Message::ProbeReply { call, nonce } if call == self.call => {
                let is_known =
                    self.answered.iter().any(|answer| (answer.link, answer.remote) == (link, from));
                if nonce == self.secret.nonce(link, from) && !is_known && self.answered.len() < MAX_PAIRS {
                    self.answered.push(Answered { link, remote: from });
                }
            }
            _ => {}
        }
    }

    fn add_candidate(&mut self, address: SocketAddr) {
        if self.candidates.len() < MAX_CANDIDATES && !self.candidates.contains(&address) {
            self.candidates.push(address);
        }
    }

    fn send(&mut self, link: usize, to: SocketAddr, message: &Message) {
        let socket = self.links[link].socket;
        self.outgoing.push_back(Outgoing { socket, to, bytes: message.to_bytes() });
    }

    /// Sends a link's request to the server: for a cookie, the listener's addresses or a relay.
    fn ask(&mut self, link: usize) {
        let call = self.call;
        let request = match self.phase {
            Phase::Relaying { .. } if self.awaits_relay(link) => Request::Relay { call, pair: link as u8 },
            Phase::Calling | Phase::Probing { .. } => {
                Request::Call { call, listener: self.listener.to_raw() }
            }
            Phase::Relaying { .. } | Phase::Over => return,
        };
        let link = &mut self.links[link];
        self.outgoing.push_back(link.request(request, &self.key).unwrap_or_else(|| link.hello()));
    }

    /// Returns `true` if the link has neither a direct path nor an offer or refusal of a relay.
    fn awaits_relay(&self, link: usize) -> bool {
        !self.has_answer(link)
            && self.refusals[link].is_none()
            && !self.memberships.iter().any(|member| usize::from(member.pair) == link)
    }

    fn has_answer(&self, link: usize) -> bool {
        self.answered.iter().any(|answered| answered.link == link)
    }

    /// Sends what is due, and ends a phase whose time is over.
    pub fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
        if self.phase != Phase::Over && now >= self.next_request {
            self.next_request = now + REQUEST_EVERY;
            (0..self.links.len()).for_each(|link| self.ask(link));
        }
        if matches!(self.phase, Phase::Probing { .. }) && now >= self.next_probe {
            self.next_probe = now + PROBE_EVERY;
            self.probe();
        }
        let due = self.memberships.iter_mut().filter_map(|member| member.poll(now));
        self.outgoing.extend(due);
    }

    fn probe(&mut self) {
        for link in 0..self.links.len() {
            for at in 0..self.candidates.len() {
                let remote = self.candidates[at];
                if reaches(self.links[link].local, remote) {
                    let probe = Message::Probe { call: self.call, nonce: self.secret.nonce(link, remote) };
                    self.send(link, remote, &probe);
                }
            }
        }
    }

    fn advance(&mut self, now: Time) {
        match self.phase {
            Phase::Calling => {
                let waited = now.since(self.started);
                if waited >= SERVER_WITHIN && !self.links.iter().any(Link::has_cookie) {
                    self.end(CallerEvent::Failed(Failure::NoServer));
                } else if waited >= ACCEPTED_WITHIN {
                    self.end(CallerEvent::Failed(Failure::NoListener));
                }
            }
            Phase::Probing { since } => {
                let probed = now.since(since);
                let are_all = (0..self.links.len()).all(|link| self.has_answer(link));
                if are_all && probed >= PROBED_AT_LEAST {
                    self.finish();
                } else if probed >= PROBED_WITHIN {
                    self.phase = Phase::Relaying { until: now + RELAYED_WITHIN };
                    self.next_request = now;
                }
            }
            Phase::Relaying { until } => {
                let is_settled = |link: usize| {
                    self.has_answer(link) || self.refusals[link].is_some() || self.has_joined(link)
                };
                // A link without a cookie has no server to ask.
                let mut asking = (0..self.links.len()).filter(|link| self.links[*link].has_cookie());
                if now >= until || asking.all(is_settled) {
                    self.finish();
                }
            }
            Phase::Over => {}
        }
    }

    fn has_joined(&self, link: usize) -> bool {
        self.memberships.iter().any(|member| usize::from(member.pair) == link && member.has_joined)
    }

    fn finish(&mut self) {
        let paths = self.paths();
        self.end(if paths.is_empty() {
            let refusal = self.refusals.iter().flatten().next();
            CallerEvent::Failed(refusal.map_or(Failure::RelaySilent, |refusal| Failure::NoRelay(*refusal)))
        } else {
            CallerEvent::Met(paths)
        });
    }

    /// Returns a path for each link with a working pair. The links use different addresses of the listener if possible, so that both
    /// sides use all their networks.
    fn paths(&self) -> Vec<MeetingPath<S>> {
        let mut paths: Vec<MeetingPath<S>> = Vec::new();
        for (at, link) in self.links.iter().enumerate() {
            let uses = |remote: SocketAddr| paths.iter().filter(|path| path.remote == remote).count();
            let of_link = self.answered.iter().filter(|answered| answered.link == at);
            let direct = of_link.map(|answered| answered.remote).min_by_key(|remote| uses(*remote));
            let member =
                self.memberships.iter().find(|member| usize::from(member.pair) == at && member.has_joined);
            let way = direct
                .map(|remote| (remote, Route::Direct))
                .or_else(|| member.map(|member| (member.relay, Route::Relayed)));
            if let Some((remote, route)) = way {
                paths.push(MeetingPath { socket: link.socket, remote, route });
            }
        }
        // The first path is the primary one.
        paths.sort_by_key(|path| path.route == Route::Relayed);
        paths
    }

    fn end(&mut self, event: CallerEvent<S>) {
        self.phase = Phase::Over;
        self.events.push_back(event);
    }

    /// Returns the next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Outgoing<S>> {
        self.outgoing.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<CallerEvent<S>> {
        self.events.pop_front()
    }

    /// Returns the time of the next call of [`handle_timeout`](Self::handle_timeout); `None` if nothing is left to do.
    pub fn poll_timeout(&self) -> Option<Time> {
        let members = self.memberships.iter().filter(|member| !member.is_over()).map(Membership::next).min();
        let phase = match self.phase {
            Phase::Over => None,
            Phase::Probing { .. } => Some(self.next_request.min(self.next_probe)),
            Phase::Calling | Phase::Relaying { .. } => Some(self.next_request),
        };
        members.into_iter().chain(phase).min()
    }
}

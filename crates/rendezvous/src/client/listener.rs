//! Side that is called: registers its sockets, and opens its NATs for callers.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use anabranch_core::time::{Span, Time};
use anabranch_identity::{KeyPair, PublicKey};

use super::link::Link;
use super::membership::Membership;
use super::{Outgoing, reaches};
use crate::bucket::Bucket;
use crate::message::{CallId, MAX_ADDRESSES, Message, Refusal, Request, Token, reported_call};
use crate::secret::{Secret, is_equal};

/// Time between two registrations of a socket, which keep the mapping of its NAT.
const REGISTER_EVERY: Span = Span::from_secs(20);

/// Time between the first two attempts to register. It doubles up to the last one.
const FIRST_RETRY: Span = Span::from_millis(500);
const LAST_RETRY: Span = Span::from_secs(8);

/// Time without any registration after which the server is reported as unreachable.
const SERVER_WITHIN: Span = Span::from_secs(5);

/// Times of the probes after a call in milliseconds. The caller probes for 1.5 s, and begins up to half a second later.
const PROBE_AT: [u64; 10] = [0, 100, 200, 300, 500, 700, 1000, 1400, 1900, 2500];

/// Time after a call in which its probes are answered.
const CALL_LIFETIME: Span = Span::from_secs(60);

/// Maximum number of calls at a time. The oldest one is dropped for another.
const MAX_CALLS: usize = 32;

/// Maximum number of joined relays.
const MAX_RELAYS: usize = 64;

/// Offered relays per second that are joined. [`MAX_RELAYS`] are joined at once. A server could offer and end them without pause.
const JOINS: u64 = 8;

/// Time between two answers to a call, which its caller repeats from each socket.
const ACCEPT_EVERY: Span = Span::from_millis(200);

/// Answers to calls per second, and as many at once. Registrations need the rest of the requests that the server admits of a source.
const ACCEPTS: u64 = 64;

/// Reported calls of admitted keys per second that are verified, and as many at once.
const VERIFIED: u64 = 64;

/// Probes and answers per second, and as many at once. A server could name addresses of other hosts as those of a caller.
const PROBES: u64 = 1000;

/// Time between two reports of another process with the same key. Both replace each other with each registration.
const SUPERSEDED_EVERY: Span = Span::from_secs(600);

/// Event of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerEvent<S> {
    /// A socket is registered with this mapped address.
    Registered {
        /// Registered socket.
        socket: S,
        /// Its address as the server sees it.
        mapped: SocketAddr,
    },
    /// No socket is registered, because the server does not answer.
    Unreachable,
    /// An admitted caller wants to connect.
    Called(PublicKey),
    /// A caller without an admitted key was ignored. Its signature was not verified.
    Ignored(PublicKey),
    /// Another process has registered with the same key, and gets the calls. Reported at most once in ten minutes.
    Superseded,
    /// The server ended a relay for this reason.
    RelayEnded(Refusal),
}

/// Socket with the state of its registration.
#[derive(Debug)]
struct Registration<S> {
    link: Link<S>,
    /// Mapped address that was registered last, until attempts to repeat that fail.
    registered: Option<SocketAddr>,
    retry: Span,
    next: Time,
}

/// Call that was accepted.
#[derive(Debug)]
struct AcceptedCall {
    addresses: Vec<SocketAddr>,
    /// Time of the latest answer.
    accepted: Time,
    since: Time,
    /// Number of probes that were sent to each address.
    round: usize,
}

impl AcceptedCall {
    fn next(&self) -> Option<Time> {
        Some(self.since + Span::from_millis(*PROBE_AT.get(self.round)?))
    }
}

/// Silence of the server.
#[derive(Clone, Copy, Debug)]
enum Silence {
    /// A socket is registered.
    None,
    /// No socket has been registered since this time.
    Since(Time),
    /// The silence was reported.
    Reported,
}

/// Side that is called.
#[derive(Debug)]
pub struct Listener<S> {
    key: KeyPair,
    secret: Secret,
    number: [u8; 16],
    servers: Vec<SocketAddr>,
    sockets: Vec<Registration<S>>,
    calls: BTreeMap<CallId, AcceptedCall>,
    memberships: Vec<Membership<S>>,
    verified: Bucket,
    accepts: Bucket,
    joins: Bucket,
    probes: Bucket,
    silence: Silence,
    /// Time of the latest report of another process with the same key.
    superseded: Option<Time>,
    outgoing: VecDeque<Outgoing<S>>,
    events: VecDeque<ListenerEvent<S>>,
}

impl<S: Copy + PartialEq> Listener<S> {
    /// Creates a listener without sockets. The seed has to be random and secret.
    pub fn new(now: Time, seed: [u8; 32], key: KeyPair, servers: Vec<SocketAddr>) -> Self {
        let mut secret = Secret::new(seed);
        Listener {
            key,
            number: secret.draw(),
            secret,
            servers,
            sockets: Vec::new(),
            calls: BTreeMap::new(),
            memberships: Vec::new(),
            verified: Bucket::full(now, VERIFIED),
            accepts: Bucket::full(now, ACCEPTS),
            joins: Bucket::full(now, MAX_RELAYS as u64),
            probes: Bucket::full(now, PROBES),
            silence: Silence::Since(now),
            superseded: None,
            outgoing: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Sets the current sockets, each with its local address. Known ones keep their registration.
    pub fn set_sockets(&mut self, now: Time, sockets: impl IntoIterator<Item = (S, IpAddr)>) {
        let links = Link::of_all(sockets, &self.servers, &mut self.secret);
        let mut known = std::mem::take(&mut self.sockets);
        for link in links {
            let at = known.iter().position(|known| known.link.socket == link.socket);
            self.sockets.push(match at {
                Some(at) => known.swap_remove(at),
                None => Registration { link, registered: None, retry: FIRST_RETRY, next: now },
            });
        }
        self.memberships.retain(|member| self.sockets.iter().any(|known| known.link.socket == member.socket));
        self.handle_timeout(now);
    }

    /// Sets the addresses of the server, for example after its name was resolved again.
    pub fn set_servers(&mut self, now: Time, servers: Vec<SocketAddr>) {
        if servers == self.servers {
            return;
        }
        self.servers = servers;
        let sockets: Vec<_> =
            self.sockets.drain(..).map(|known| (known.link.socket, known.link.local)).collect();
        self.set_sockets(now, sockets);
    }

    /// Returns `true` if a socket is registered.
    pub fn is_registered(&self) -> bool {
        self.sockets.iter().any(|socket| socket.registered.is_some())
    }

    /// Handles a rendezvous message that arrived at a socket. Callers whose key `admits` rejects learn nothing.
    pub fn handle(
        &mut self,
        now: Time,
        socket: S,
        from: SocketAddr,
        datagram: &[u8],
        admits: &dyn Fn(PublicKey) -> bool,
    ) {
        let Ok(message) = Message::parse(datagram) else { return };
        let Some(at) = self.sockets.iter().position(|known| known.link.socket == socket) else { return };
        let of_relay = |member: &&mut Membership<S>| member.socket == socket && member.relay == from;
        if from == self.sockets[at].link.server {
            self.handle_server(now, at, message, admits);
        } else if let Some(member) = self.memberships.iter_mut().find(of_relay) {
            self.outgoing.extend(member.handle(now, &message));
            self.relay_ended(&message);
        } else {
            self.handle_peer(now, at, from, &message);
        }
        self.handle_timeout(now);
    }

    fn handle_server(&mut self, now: Time, at: usize, message: Message, admits: &dyn Fn(PublicKey) -> bool) {
        match message {
            Message::Challenge { nonce, cookie, mapped } => {
                let link = &mut self.sockets[at].link;
                if link.challenged(nonce, cookie, mapped) {
                    let request = Request::Register { registration: self.number };
                    self.outgoing.extend(link.request(request, &self.key));
                }
            }
            Message::Registered { registration } if registration == self.number => self.registered(now, at),
            // The source address of a server can be forged, the number of the registration cannot.
            Message::Incoming { registration, call, caller, cookie, signature, addresses }
                if is_equal(&registration, &self.number) =>
            {
                let Ok(key) = PublicKey::from_raw(caller) else { return };
                // The key is looked up first, so that calls of strangers use up none of the verifications.
                if !admits(key) {
                    self.events.push_back(ListenerEvent::Ignored(key));
                    return;
                }
                let reported = reported_call(call, (caller, self.key.public().to_raw()), cookie, signature);
                if self.verified.take(now, 1, VERIFIED, VERIFIED) && reported.verify().is_some() {
                    self.accept(now, call, key, addresses);
                }
            }
            Message::RelayOffer { call, pair, port, token } if self.calls.contains_key(&call) => {
                self.join(now, at, (call, pair), port, token);
            }
            Message::Superseded { registration } if is_equal(&registration, &self.number) => {
                self.superseded(now);
            }
            message => self.relay_ended(&message),
        }
    }

    fn superseded(&mut self, now: Time) {
        if self.superseded.is_none_or(|at| now.since(at) >= SUPERSEDED_EVERY) {
            self.superseded = Some(now);
            self.events.push_back(ListenerEvent::Superseded);
        }
    }

    fn registered(&mut self, now: Time, at: usize) {
        let socket = &mut self.sockets[at];
        let Some(mapped) = socket.link.mapped else { return };
        (socket.next, socket.retry) = (now + REGISTER_EVERY, FIRST_RETRY);
        if socket.registered != Some(mapped) {
            socket.registered = Some(mapped);
            self.events.push_back(ListenerEvent::Registered { socket: socket.link.socket, mapped });
        }
    }

    /// Accepts a call from each socket, and begins to probe the caller's addresses.
    fn accept(&mut self, now: Time, id: CallId, caller: PublicKey, addresses: Vec<SocketAddr>) {
        match self.calls.get_mut(&id) {
            Some(call) => {
                let known = &mut call.addresses;
                let new =
                    addresses.into_iter().filter(|address| !known.contains(address)).collect::<Vec<_>>();
                // Probes begin again only for further addresses, which are few.
                if !new.is_empty() && known.len() + new.len() <= MAX_ADDRESSES {
                    known.extend(new);
                    (call.since, call.round) = (now, 0);
                }
                if now.since(call.accepted) < ACCEPT_EVERY {
                    return;
                }
                call.accepted = now;
            }
            None => {
                if self.calls.len() >= MAX_CALLS {
                    let oldest = self.calls.iter().min_by_key(|(_, call)| call.since).map(|(id, _)| *id);
                    oldest.map(|oldest| self.calls.remove(&oldest));
                }
                self.calls.insert(id, AcceptedCall { addresses, accepted: now, since: now, round: 0 });
                self.events.push_back(ListenerEvent::Called(caller));
            }
        }
        for socket in self.sockets.iter().filter(|socket| socket.registered.is_some()) {
            if self.accepts.take(now, 1, ACCEPTS, ACCEPTS) {
                self.outgoing.extend(socket.link.request(Request::Accept { call: id }, &self.key));
            }
        }
    }

    fn join(&mut self, now: Time, at: usize, (call, pair): (CallId, u8), port: u16, token: Token) {
        let link = &self.sockets[at].link;
        let (socket, relay) = (link.socket, SocketAddr::new(link.server.ip(), port));
        let is_known = self.memberships.iter().any(|member| member.is_of(relay, &token));
        if !is_known && self.joins.take(now, 1, JOINS, MAX_RELAYS as u64) && self.has_place_for_relay() {
            let nonce = self.secret.draw();
            self.memberships.push(Membership::new(now, (socket, relay), (call, pair), token, nonce));
        }
    }

    /// Returns `true` if a relay can be joined. In a full list, the one with the most unanswered attempts is removed.
    fn has_place_for_relay(&mut self) -> bool {
        if self.memberships.len() < MAX_RELAYS {
            return true;
        }
        let silent = (0..MAX_RELAYS).filter(|at| self.memberships[*at].is_silent());
        let longest = silent.max_by_key(|at| self.memberships[*at].unanswered());
        longest.map(|at| self.memberships.swap_remove(at)).is_some()
    }

    fn relay_ended(&mut self, message: &Message) {
        let Message::RelayRefused { call, pair, refusal } = *message else { return };
        let before = self.memberships.len();
        self.memberships.retain(|member| (member.call, member.pair) != (call, pair));
        if self.memberships.len() < before {
            self.events.push_back(ListenerEvent::RelayEnded(refusal));
        }
    }

    fn handle_peer(&mut self, now: Time, at: usize, from: SocketAddr, message: &Message) {
        if let Message::Probe { call, nonce } = *message
            && self.calls.contains_key(&call)
            && self.probes.take(now, 1, PROBES, PROBES)
        {
            let socket = self.sockets[at].link.socket;
            let bytes = Message::ProbeReply { call, nonce }.to_bytes();
            self.outgoing.push_back(Outgoing { socket, to: from, bytes });
        }
    }

    /// Sends what is due, and removes what is over.
    pub fn handle_timeout(&mut self, now: Time) {
        for socket in &mut self.sockets {
            if now < socket.next {
                continue;
            }
            if socket.retry >= LAST_RETRY {
                socket.registered = None;
            }
            socket.next = now + socket.retry;
            socket.retry = socket.retry.times(2).min(LAST_RETRY);
            self.outgoing.push_back(socket.link.hello());
        }
        self.probe(now);
        self.calls.retain(|_, call| now.since(call.since) < CALL_LIFETIME);
        self.memberships.retain(|member| !member.is_over());
        self.outgoing.extend(self.memberships.iter_mut().filter_map(|member| member.poll(now)));
        self.report_unreachable(now);
    }

    /// Reports that the server does not answer, once until it answers again.
    fn report_unreachable(&mut self, now: Time) {
        match self.silence {
            _ if self.is_registered() => self.silence = Silence::None,
            Silence::None => self.silence = Silence::Since(now),
            Silence::Since(since) if now.since(since) >= SERVER_WITHIN => {
                self.silence = Silence::Reported;
                self.events.push_back(ListenerEvent::Unreachable);
            }
            Silence::Since(_) | Silence::Reported => {}
        }
    }

    fn probe(&mut self, now: Time) {
        for (id, call) in &mut self.calls {
            if call.next().is_none_or(|next| now < next) {
                continue;
            }
            call.round += 1;
            for socket in self.sockets.iter().filter(|socket| socket.registered.is_some()) {
                for remote in call.addresses.iter().filter(|remote| reaches(socket.link.local, **remote)) {
                    if !self.probes.take(now, 1, PROBES, PROBES) {
                        return;
                    }
                    let bytes = Message::Probe { call: *id, nonce: self.secret.draw() }.to_bytes();
                    self.outgoing.push_back(Outgoing { socket: socket.link.socket, to: *remote, bytes });
                }
            }
        }
    }

    /// Returns the next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Outgoing<S>> {
        self.outgoing.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<ListenerEvent<S>> {
        self.events.pop_front()
    }

    /// Returns the time of the next call of [`handle_timeout`](Self::handle_timeout); `None` without sockets.
    pub fn poll_timeout(&self) -> Option<Time> {
        let sockets = self.sockets.iter().map(|socket| socket.next);
        let calls = self.calls.values().filter_map(AcceptedCall::next);
        let members = self.memberships.iter().map(Membership::next);
        sockets.chain(calls).chain(members).min()
    }
}

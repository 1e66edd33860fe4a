//! Virtual network of one server, one caller and one listener.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use anabranch_core::time::{Span, Time};
use anabranch_identity::{KeyPair, PublicKey};
use anabranch_rendezvous::{
    Caller, CallerEvent, Limits, Listener, ListenerEvent, MeetingPath, Outgoing, PortNumber, Ports, Relayed,
    Server, is_rendezvous,
};

use super::nat::Nat;

/// One-way delay between any two hosts.
const DELAY: Span = Span::from_millis(30);

/// Address of the server.
pub(crate) const SERVER: &str = "198.51.100.1:9898";

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// Ports of relays, numbered from 50000.
#[derive(Debug, Default)]
pub(crate) struct RelayPorts {
    pub(crate) open: BTreeSet<u16>,
    next: u16,
    /// Set if no port is free.
    pub(crate) is_exhausted: bool,
}

impl Ports for RelayPorts {
    fn open(&mut self, _via: usize) -> Option<u16> {
        if self.is_exhausted {
            return None;
        }
        self.next += 1;
        self.open.insert(50_000 + self.next);
        Some(50_000 + self.next)
    }

    fn close(&mut self, port: PortNumber) {
        assert!(self.open.remove(&port.port), "{port:?} is closed once");
    }
}

/// Side of a meeting: sockets on networks that may be behind NATs, the innermost first.
#[derive(Debug)]
pub(crate) struct Networks {
    sockets: Vec<SocketAddr>,
    pub(crate) nats: Vec<Vec<Nat>>,
}

impl Networks {
    /// Returns sockets with these local addresses, each behind its NATs.
    pub(crate) fn new(networks: Vec<(&str, Vec<Nat>)>) -> Self {
        let (sockets, nats) = networks.into_iter().map(|(local, nats)| (address(local), nats)).unzip();
        Networks { sockets, nats }
    }

    fn locals(&self) -> Vec<(usize, IpAddr)> {
        self.sockets.iter().map(SocketAddr::ip).enumerate().collect()
    }

    /// Returns the source of a packet as the Internet sees it.
    fn outgoing(&mut self, socket: usize, to: SocketAddr) -> SocketAddr {
        self.nats[socket].iter_mut().fold(self.sockets[socket], |from, nat| nat.outgoing(from, to))
    }

    /// Returns the socket that a packet reaches.
    fn incoming(&self, from: SocketAddr, to: SocketAddr) -> Option<usize> {
        let passes = |nats: &Vec<Nat>| {
            nats.iter().rev().try_fold(to, |to, nat| {
                if nat.public() == to.ip() { nat.incoming(from, to.port()) } else { None }
            })
        };
        (0..self.sockets.len()).find(|at| passes(&self.nats[*at]) == Some(self.sockets[*at]))
    }
}

#[derive(Debug)]
struct Packet {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

/// Virtual network.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) server: Server,
    pub(crate) ports: RelayPorts,
    /// Set while the server answers.
    pub(crate) is_served: bool,
    pub(crate) caller: Option<Caller<usize>>,
    pub(crate) listener: Listener<usize>,
    pub(crate) caller_networks: Networks,
    pub(crate) listener_networks: Networks,
    /// Keys that the listener admits.
    pub(crate) admitted: BTreeSet<PublicKey>,
    pub(crate) caller_events: Vec<CallerEvent<usize>>,
    pub(crate) listener_events: Vec<ListenerEvent<usize>>,
    packets: BTreeMap<(Time, u64), Packet>,
    sent: u64,
    /// Packets of the association that arrived, each with the socket and the source.
    pub(crate) at_listener: Vec<(usize, SocketAddr, Vec<u8>)>,
    pub(crate) at_caller: Vec<(usize, SocketAddr, Vec<u8>)>,
    pub(crate) caller_key: KeyPair,
    pub(crate) listener_key: KeyPair,
}

fn key() -> KeyPair {
    KeyPair::generate().expect("randomness")
}

impl World {
    /// Creates both sides, and lets the listener register for five seconds before the call.
    pub(crate) fn new(caller: Networks, listener: Networks, limits: Limits) -> Self {
        let mut world = Self::without_call(caller, listener, limits);
        world.run(Span::from_secs(5));
        world.call();
        world
    }

    pub(crate) fn without_call(caller: Networks, listener: Networks, limits: Limits) -> Self {
        let now = Time::ZERO;
        let (caller_key, listener_key) = (key(), key());
        let mut listening = Listener::new(now, [2; 32], listener_key.clone(), vec![address(SERVER)]);
        listening.set_sockets(now, listener.locals());
        World {
            now,
            server: Server::new(now, [1; 32], limits),
            ports: RelayPorts::default(),
            is_served: true,
            caller: None,
            listener: listening,
            caller_networks: caller,
            listener_networks: listener,
            admitted: BTreeSet::from([caller_key.public()]),
            caller_events: Vec::new(),
            listener_events: Vec::new(),
            packets: BTreeMap::new(),
            sent: 0,
            at_listener: Vec::new(),
            at_caller: Vec::new(),
            caller_key,
            listener_key,
        }
    }

    /// Begins a call.
    pub(crate) fn call(&mut self) {
        let locals = self.caller_networks.locals();
        let (key, listener) = (self.caller_key.clone(), self.listener_key.public());
        self.caller = Some(Caller::new(self.now, [3; 32], key, listener, locals, &[address(SERVER)]));
        self.drain();
    }

    fn send(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        self.sent += 1;
        self.packets.insert((self.now + DELAY, self.sent), Packet { from, to, bytes });
    }

    /// Sends a packet of the association from a caller's path.
    pub(crate) fn send_from_caller(&mut self, path: MeetingPath<usize>, bytes: &[u8]) {
        let from = self.caller_networks.outgoing(path.socket, path.remote);
        self.send(from, path.remote, bytes.to_vec());
    }

    pub(crate) fn send_from_listener(&mut self, socket: usize, to: SocketAddr, bytes: &[u8]) {
        let from = self.listener_networks.outgoing(socket, to);
        self.send(from, to, bytes.to_vec());
    }

    /// Takes datagrams and events of both sides.
    fn drain(&mut self) {
        while let Some(Outgoing { socket, to, bytes }) =
            self.caller.as_mut().and_then(|caller| caller.poll_transmit())
        {
            let from = self.caller_networks.outgoing(socket, to);
            self.send(from, to, bytes);
        }
        while let Some(Outgoing { socket, to, bytes }) = self.listener.poll_transmit() {
            let from = self.listener_networks.outgoing(socket, to);
            self.send(from, to, bytes);
        }
        self.caller_events
            .extend(self.caller.iter_mut().flat_map(|caller| std::iter::from_fn(|| caller.poll_event())));
        self.listener_events.extend(std::iter::from_fn(|| self.listener.poll_event()));
    }

    fn next(&self) -> Option<Time> {
        let packet = self.packets.keys().next().map(|(at, _)| *at);
        let caller = self.caller.as_ref().and_then(Caller::poll_timeout);
        let times = [packet, caller, self.listener.poll_timeout(), Some(self.server.poll_timeout())];
        times.into_iter().flatten().min()
    }

    /// Runs for this time.
    pub(crate) fn run(&mut self, span: Span) {
        let end = self.now + span;
        self.drain();
        while let Some(at) = self.next().filter(|at| *at <= end) {
            assert!(at >= self.now, "no deadline is in the past");
            self.now = at;
            let due = self.packets.first_entry().filter(|packet| packet.key().0 <= at);
            if let Some(packet) = due.map(|due| due.remove()) {
                self.deliver(packet);
            }
            self.server.handle_timeout(at, &mut self.ports);
            self.listener.handle_timeout(at);
            if let Some(caller) = &mut self.caller {
                caller.handle_timeout(at);
            }
            self.drain();
        }
        self.now = end;
    }

    fn deliver(&mut self, Packet { from, to, bytes }: Packet) {
        let now = self.now;
        if to.ip() == address(SERVER).ip() {
            if self.is_served {
                self.serve(from, to, &bytes);
            }
        } else if let Some(socket) = self.listener_networks.incoming(from, to) {
            match is_rendezvous(&bytes) {
                true => {
                    let admitted = &self.admitted;
                    self.listener.handle(now, socket, from, &bytes, &|key| admitted.contains(&key));
                }
                false => self.at_listener.push((socket, from, bytes)),
            }
        } else if let Some(socket) = self.caller_networks.incoming(from, to) {
            match (is_rendezvous(&bytes), &mut self.caller) {
                (true, Some(caller)) => caller.handle(now, socket, from, &bytes),
                _ => self.at_caller.push((socket, from, bytes)),
            }
        }
    }

    fn serve(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        if to == address(SERVER) {
            for reply in self.server.handle(self.now, (0, from), bytes, &mut self.ports) {
                self.send(to, reply.to, reply.bytes);
            }
            return;
        }
        let port = PortNumber { via: 0, port: to.port() };
        match self.server.handle_relayed(self.now, port, from, bytes) {
            Relayed::Forward(other) => self.send(to, other, bytes.to_vec()),
            Relayed::Answer(answer) => self.send(to, from, answer),
            Relayed::Dropped => {}
        }
    }

    /// Returns the socket of the listener that packets on a path of the caller reach.
    pub(crate) fn at_listener_socket(&mut self, path: MeetingPath<usize>) -> usize {
        self.at_listener.clear();
        self.send_from_caller(path, b"DATA");
        self.run(Span::from_millis(200));
        self.at_listener.pop().expect("a packet").0
    }

    /// Returns the paths of the call; none before it is over, or if it failed.
    pub(crate) fn paths(&self) -> Vec<MeetingPath<usize>> {
        let met = self.caller_events.iter().find_map(|event| match event {
            CallerEvent::Met(paths) => Some(paths.clone()),
            _ => None,
        });
        met.unwrap_or_default()
    }

    /// Returns `true` if a packet of the association passes in both directions.
    pub(crate) fn carries(&mut self, path: MeetingPath<usize>) -> bool {
        self.at_listener.clear();
        self.at_caller.clear();
        self.send_from_caller(path, b"INIT");
        self.run(Span::from_millis(200));
        let Some((socket, from, _)) = self.at_listener.pop() else { return false };
        self.send_from_listener(socket, from, b"INIT ACK");
        self.run(Span::from_millis(200));
        let answer = self.at_caller.pop();
        answer.is_some_and(|(socket, from, bytes)| {
            (socket, from, &bytes[..]) == (path.socket, path.remote, b"INIT ACK")
        })
    }
}

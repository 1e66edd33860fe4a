//! Clients that send anything to a server, and servers that send anything to clients.

use std::net::SocketAddr;

use anabranch_core::time::{Span, Time};
use anabranch_identity::{KeyPair, PublicKey};
use anabranch_rendezvous::{
    Caller, Limits, Listener, ListenerEvent, Message, PortNumber, Refusal, Relayed, Request, Server, Signed,
};

use crate::rig::world::{RelayPorts, SERVER, address};

/// Returns a message with chosen content. Most of it is wrong, some repeats what the server has said.
fn message(rng: &mut fastrand::Rng, heard: &[Message]) -> Vec<u8> {
    let mut bytes = match rng.u8(..6) {
        0 => Message::Hello { nonce: rng.u64(..).to_be_bytes() }.to_bytes(),
        1 | 2 if !heard.is_empty() => heard[rng.usize(..heard.len())].to_bytes(),
        3 => Message::Join { token: [rng.u8(..); 16], cookie: [rng.u8(..); 20] }.to_bytes(),
        4 => {
            let request = Request::Call { call: [rng.u8(..); 16], listener: [rng.u8(..); 32] };
            let signed = Signed { cookie: [0; 20], key: [rng.u8(..); 32], request, signature: [0; 64] };
            Message::Signed(signed).to_bytes()
        }
        _ => {
            let mut bytes = vec![0, 0, b'R', b'V', 1, rng.u8(..20)];
            bytes.extend((0..rng.usize(..600)).map(|_| rng.u8(..)));
            bytes
        }
    };
    if rng.u8(..4) == 0 && !bytes.is_empty() {
        let at = rng.usize(..bytes.len());
        bytes[at] ^= 1 << rng.u8(..8);
    }
    bytes
}

fn random_address(rng: &mut fastrand::Rng) -> SocketAddr {
    SocketAddr::from(([203, 0, 113, rng.u8(1..5)], rng.u16(1..5)))
}

#[test]
fn server_never_answers_with_more_bytes_than_it_received() {
    let mut rng = fastrand::Rng::with_seed(1);
    let limits = Limits { listeners: 4, calls: 4, relays: 2, ..Limits::default() };
    let mut server = Server::new(Time::ZERO, [1; 32], limits);
    let (mut now, mut ports, mut heard) = (Time::ZERO, RelayPorts::default(), Vec::new());
    for _ in 0..20_000 {
        now += Span::from_millis(rng.u64(..20));
        let (from, bytes) = (random_address(&mut rng), message(&mut rng, &heard));
        let replies = server.handle(now, (0, from), &bytes, &mut ports);
        let sent: usize = replies.iter().map(|reply| reply.bytes.len()).sum();
        assert!(sent <= bytes.len(), "{sent} bytes for {}", bytes.len());
        for reply in replies {
            assert_eq!(reply.to, from, "strangers cause no packets to others");
            heard.push(Message::parse(&reply.bytes).expect("a message"));
        }
        let port = PortNumber { via: 0, port: 50_001 };
        if let Relayed::Answer(answer) = server.handle_relayed(now, port, from, &bytes) {
            assert!(answer.len() <= bytes.len());
        }
        server.handle_timeout(now, &mut ports);
        let (listeners, calls, relays) = server.occupancy();
        assert!(listeners <= 4 && calls <= 4 && relays <= 2);
    }
}

/// Client that is driven by hand.
struct Client {
    key: KeyPair,
    caller: Caller<usize>,
    from: SocketAddr,
}

impl Client {
    fn new(seed: u8, from: &str, listener: &KeyPair) -> Self {
        let key = KeyPair::generate().expect("randomness");
        let sockets = [(0, address(from).ip())];
        let servers = [address(SERVER)];
        let caller = Caller::new(Time::ZERO, [seed; 32], key.clone(), listener.public(), sockets, &servers);
        Client { key, caller, from: address(from) }
    }

    /// Exchanges datagrams with the server until neither has more. Returns the datagrams that the server sent to others.
    fn exchange(&mut self, server: &mut Server, ports: &mut RelayPorts) -> Vec<Vec<u8>> {
        let mut to_others = Vec::new();
        while let Some(out) = self.caller.poll_transmit() {
            for reply in server.handle(Time::ZERO, (0, self.from), &out.bytes, ports) {
                if reply.to == self.from {
                    self.caller.handle(Time::ZERO, 0, address(SERVER), &reply.bytes);
                } else {
                    to_others.push(reply.bytes);
                }
            }
        }
        to_others
    }
}

/// Listener with two sockets that are registered at a server.
struct Registered {
    listener: Listener<usize>,
    server: Server,
    ports: RelayPorts,
    key: KeyPair,
    /// Requests with which it registered.
    requests: Vec<Vec<u8>>,
}

impl Registered {
    const SOCKETS: [&str; 2] = ["203.0.113.1:1", "203.0.113.1:2"];

    fn new() -> Self {
        let (mut server, mut ports) =
            (Server::new(Time::ZERO, [1; 32], Limits::default()), RelayPorts::default());
        let key = KeyPair::generate().expect("randomness");
        let mut listener = Listener::new(Time::ZERO, [2; 32], key.clone(), vec![address(SERVER)]);
        let sockets = Self::SOCKETS.map(address);
        listener.set_sockets(Time::ZERO, sockets.iter().map(|socket| socket.ip()).enumerate());
        let mut requests = Vec::new();
        while let Some(out) = listener.poll_transmit() {
            for reply in server.handle(Time::ZERO, (0, sockets[out.socket]), &out.bytes, &mut ports) {
                listener.handle(Time::ZERO, out.socket, address(SERVER), &reply.bytes, &|_| true);
            }
            requests.push(out.bytes);
        }
        assert!(listener.is_registered() && server.occupancy().0 == 1);
        while listener.poll_event().is_some() {}
        Registered { listener, server, ports, key, requests }
    }

    /// Returns the messages that report a call, and its caller's key.
    fn call(&mut self, seed: u8) -> (KeyPair, Vec<Vec<u8>>) {
        let mut client = Client::new(seed, "203.0.113.9:1", &self.key);
        let reports = client.exchange(&mut self.server, &mut self.ports);
        assert!(!reports.is_empty());
        (client.key, reports)
    }

    fn hear(&mut self, datagram: &[u8], admits: &dyn Fn(PublicKey) -> bool) {
        self.listener.handle(Time::ZERO, 0, address(SERVER), datagram, admits);
    }

    fn sent(&mut self) -> Vec<Message> {
        let sent = std::iter::from_fn(|| self.listener.poll_transmit());
        sent.map(|out| Message::parse(&out.bytes).expect("a message")).collect()
    }

    fn accepts(&mut self) -> usize {
        let is_accept = |message: &Message| matches!(message, Message::Signed(signed) if matches!(signed.request, Request::Accept { .. }));
        self.sent().iter().filter(|message| is_accept(message)).count()
    }
}

#[test]
fn calls_of_strangers_use_up_no_verification_of_others() {
    let mut registered = Registered::new();
    let (friend, reports) = registered.call(1);
    let stranger = KeyPair::generate().expect("randomness").public();
    let admits = |key| key == friend.public();
    let mut report = Message::parse(&reports[0]).expect("a report");
    let Message::Incoming { caller, .. } = &mut report else { panic!("{report:?}") };
    *caller = stranger.to_raw();
    for _ in 0..200 {
        registered.hear(&report.to_bytes(), &admits);
        assert_eq!(registered.listener.poll_event(), Some(ListenerEvent::Ignored(stranger)));
    }
    registered.hear(&reports[0], &admits);
    assert_eq!(registered.listener.poll_event(), Some(ListenerEvent::Called(friend.public())));
}

#[test]
fn reports_of_a_forged_server_are_dropped() {
    let mut registered = Registered::new();
    let (_, reports) = registered.call(1);
    let mut forged = Message::parse(&reports[0]).expect("a report");
    let Message::Incoming { registration, .. } = &mut forged else { panic!("{forged:?}") };
    registration[0] ^= 1;
    (0..200).for_each(|_| registered.hear(&forged.to_bytes(), &|_| true));
    assert_eq!((registered.listener.poll_event(), registered.sent()), (None, Vec::new()));
    registered.hear(&reports[0], &|_| true);
    assert!(registered.listener.poll_event().is_some());
}

/// Returns the messages to a listener's sockets when another process registers with its key.
fn superseding(registered: &mut Registered) -> Vec<Vec<u8>> {
    let from = address("203.0.113.2:1");
    let mut other = Listener::new(Time::ZERO, [9; 32], registered.key.clone(), vec![address(SERVER)]);
    other.set_sockets(Time::ZERO, [(7, from.ip())]);
    let mut to_earlier = Vec::new();
    while let Some(out) = other.poll_transmit() {
        for reply in registered.server.handle(Time::ZERO, (0, from), &out.bytes, &mut registered.ports) {
            match reply.to == from {
                true => other.handle(Time::ZERO, 7, address(SERVER), &reply.bytes, &|_| true),
                false => to_earlier.push(reply.bytes),
            }
        }
    }
    assert!(other.is_registered());
    to_earlier
}

#[test]
fn process_whose_key_another_one_registers_reports_it_once() {
    let mut registered = Registered::new();
    let messages = superseding(&mut registered);
    assert_eq!(messages.len(), Registered::SOCKETS.len());
    for _ in 0..100 {
        messages.iter().for_each(|message| registered.hear(message, &|_| true));
    }
    let events: Vec<_> = std::iter::from_fn(|| registered.listener.poll_event()).collect();
    assert_eq!(events, [ListenerEvent::Superseded]);
}

#[test]
fn forged_report_of_another_process_is_dropped() {
    let mut registered = Registered::new();
    for number in 0..200 {
        registered.hear(&Message::Superseded { registration: [number; 16] }.to_bytes(), &|_| true);
    }
    assert_eq!(registered.listener.poll_event(), None);
}

#[test]
fn silent_relays_make_room_for_another() {
    let mut registered = Registered::new();
    let (_, reports) = registered.call(1);
    registered.hear(&reports[0], &|_| true);
    let Message::Incoming { call, .. } = Message::parse(&reports[0]).expect("a report") else { panic!() };
    let offer = |port| Message::RelayOffer { call, pair: 0, port, token: [port as u8; 16] }.to_bytes();
    (1..=80).for_each(|port| registered.hear(&offer(port), &|_| true));
    let asked = |registered: &mut Registered, port| {
        let mut sent = std::iter::from_fn(|| registered.listener.poll_transmit());
        sent.any(|out| out.to.port() == port)
    };
    assert!(!asked(&mut registered, 80), "64 relays are joined at a time");
    let mut now = Time::ZERO;
    for _ in 0..4 {
        now += Span::from_millis(250);
        registered.listener.handle_timeout(now);
    }
    registered.listener.handle(now, 0, address(SERVER), &offer(90), &|_| true);
    assert!(asked(&mut registered, 90));
}

#[test]
fn relays_that_end_at_once_are_joined_and_reported_at_a_limited_rate() {
    let mut registered = Registered::new();
    let (_, reports) = registered.call(1);
    registered.hear(&reports[0], &|_| true);
    let Message::Incoming { call, .. } = Message::parse(&reports[0]).expect("a report") else { panic!() };
    let (pair, token) = (0, [1; 16]);
    for port in 1..=1000 {
        let offer = Message::RelayOffer { call, pair, port, token }.to_bytes();
        let end = Message::RelayRefused { call, pair, refusal: Refusal::Bytes }.to_bytes();
        registered.hear(&offer, &|_| true);
        registered.hear(&end, &|_| true);
    }
    let is_end = |event: &ListenerEvent<usize>| matches!(event, ListenerEvent::RelayEnded(_));
    let ended = std::iter::from_fn(|| registered.listener.poll_event()).filter(is_end).count();
    let is_question = |message: &&Message| matches!(message, Message::Hello { .. });
    assert_eq!((ended, registered.sent().iter().filter(is_question).count()), (64, 64));
}

#[test]
fn call_that_is_reported_often_is_accepted_once_from_each_socket() {
    let mut registered = Registered::new();
    let (_, reports) = registered.call(1);
    (0..50).for_each(|_| registered.hear(&reports[0], &|_| true));
    assert_eq!(registered.accepts(), 2);
}

#[test]
fn calls_of_an_admitted_caller_leave_requests_for_registrations() {
    let mut registered = Registered::new();
    for seed in 0..50 {
        for report in registered.call(seed).1 {
            registered.hear(&report, &|_| true);
        }
    }
    assert_eq!(registered.accepts(), 64, "the server admits 100 requests per second of a source");
}

#[test]
fn client_answers_a_cookie_once_for_each_question() {
    let key = KeyPair::generate().expect("randomness");
    let local = address("203.0.113.1:1").ip();
    let mut listener = Listener::new(Time::ZERO, [2; 32], key.clone(), vec![address(SERVER)]);
    listener.set_sockets(Time::ZERO, [(0, local)]);
    let mut caller =
        Caller::new(Time::ZERO, [3; 32], key.clone(), key.public(), [(0, local)], &[address(SERVER)]);
    let challenge = |hello: &[u8]| match Message::parse(hello) {
        Ok(Message::Hello { nonce }) => {
            Message::Challenge { nonce, cookie: [0; 20], mapped: address("203.0.113.1:1") }.to_bytes()
        }
        other => panic!("{other:?}"),
    };
    let answers = challenge(&listener.poll_transmit().expect("a question").bytes);
    (0..50).for_each(|_| listener.handle(Time::ZERO, 0, address(SERVER), &answers, &|_| true));
    assert_eq!(std::iter::from_fn(|| listener.poll_transmit()).count(), 1);
    let answers = challenge(&caller.poll_transmit().expect("a question").bytes);
    (0..50).for_each(|_| caller.handle(Time::ZERO, 0, address(SERVER), &answers));
    assert_eq!(std::iter::from_fn(|| caller.poll_transmit()).count(), 1);
}

#[test]
fn tables_stay_within_their_limits_and_share_them_among_networks() {
    let limits = Limits { calls: 8, ..Limits::default() };
    let (mut server, mut ports) = (Server::new(Time::ZERO, [1; 32], limits), RelayPorts::default());
    let listener = KeyPair::generate().expect("randomness");
    let mut first = Client::new(1, "203.0.113.1:1", &listener);
    first.exchange(&mut server, &mut ports);
    assert_eq!(server.occupancy().1, 1);
    for seed in 2..60 {
        Client::new(seed, &format!("203.0.113.2:{seed}"), &listener).exchange(&mut server, &mut ports);
    }
    assert_eq!(server.occupancy().1, 8);
    let dropped = server.totals().dropped;
    first.caller.handle_timeout(Time::ZERO + Span::from_millis(250));
    first.exchange(&mut server, &mut ports);
    assert_eq!((server.occupancy().1, server.totals().dropped), (8, dropped));
}

#[test]
fn requests_copied_to_another_address_are_dropped() {
    let Registered { mut server, mut ports, requests, .. } = Registered::new();
    let from = address(Registered::SOCKETS[1]);
    let register = requests.last().expect("a request");
    assert_eq!(server.handle(Time::ZERO, (0, from), register, &mut ports).len(), 1);
    assert!(server.handle(Time::ZERO, (0, address("203.0.113.2:1")), register, &mut ports).is_empty());
    let later = Time::ZERO + Span::from_secs(300);
    assert!(server.handle(later, (0, from), register, &mut ports).is_empty(), "its cookie has expired");
}

#[test]
fn holder_of_another_key_cannot_answer_a_call() {
    let (mut server, mut ports) =
        (Server::new(Time::ZERO, [1; 32], Limits::default()), RelayPorts::default());
    let listener = KeyPair::generate().expect("randomness");
    let mut client = Client::new(1, "203.0.113.1:1", &listener);
    client.exchange(&mut server, &mut ports);
    // The other one accepts its own call to the caller's key, which is another call.
    let mut other = Client::new(1, "203.0.113.2:1", &client.key);
    other.exchange(&mut server, &mut ports);
    client.caller.handle_timeout(Time::ZERO + Span::from_millis(250));
    client.exchange(&mut server, &mut ports);
    assert_eq!(server.totals().accepted_calls, 0);
    // Both drew the same number of the call. The second one did not take it over.
    assert_eq!(server.occupancy().1, 1);
}

#[test]
fn clients_survive_arbitrary_messages_of_a_server() {
    let mut rng = fastrand::Rng::with_seed(2);
    let key = KeyPair::generate().expect("randomness");
    let local = address("203.0.113.1:1").ip();
    let servers = vec![address(SERVER)];
    let mut listener = Listener::new(Time::ZERO, [2; 32], key.clone(), servers.clone());
    listener.set_sockets(Time::ZERO, [(0, local)]);
    let mut caller = Caller::new(Time::ZERO, [3; 32], key.clone(), key.public(), [(0, local)], &servers);
    let (mut now, mut heard) = (Time::ZERO, Vec::new());
    for _ in 0..20_000 {
        now += Span::from_millis(rng.u64(..5));
        let bytes = message(&mut rng, &heard);
        let from = if rng.bool() { address(SERVER) } else { random_address(&mut rng) };
        listener.handle(now, 0, from, &bytes, &|_| true);
        caller.handle(now, 0, from, &bytes);
        for out in std::iter::from_fn(|| listener.poll_transmit())
            .chain(std::iter::from_fn(|| caller.poll_transmit()))
        {
            if let Ok(message) = Message::parse(&out.bytes) {
                heard.truncate(50);
                heard.push(message);
            }
        }
        while listener.poll_event().is_some() || caller.poll_event().is_some() {}
    }
}

/// Registers a listener with a new key from this IPv6 address, and returns the key.
fn register(server: &mut Server, ports: &mut RelayPorts, from: &str) -> KeyPair {
    let (key, from) = (KeyPair::generate().expect("randomness"), address(from));
    let at = address("[2001:db8:9::1]:9898");
    let mut listener = Listener::new(Time::ZERO, [4; 32], key.clone(), vec![at]);
    listener.set_sockets(Time::ZERO, [(0, from.ip())]);
    while let Some(out) = listener.poll_transmit() {
        for reply in server.handle(Time::ZERO, (0, from), &out.bytes, ports) {
            listener.handle(Time::ZERO, 0, at, &reply.bytes, &|_| true);
        }
    }
    key
}

#[test]
fn listeners_from_networks_of_one_ipv6_site_replace_those_of_no_other() {
    let limits = Limits { listeners: 4, ..Limits::default() };
    let (mut server, mut ports) = (Server::new(Time::ZERO, [1; 32], limits), RelayPorts::default());
    let other = register(&mut server, &mut ports, "[2001:db8:2::1]:1");
    for network in 0..64 {
        register(&mut server, &mut ports, &format!("[2001:db8:1:{network:x}::1]:1"));
    }
    assert_eq!(server.occupancy().0, 4);
    let mut caller = Client::new(5, "203.0.113.9:1", &other);
    assert!(!caller.exchange(&mut server, &mut ports).is_empty(), "it is still registered");
}

//! Changes of streams (RFC 6525) with usrsctp. The sockets of this project have no call for them, so the endpoint runs here on one
//! socket of the loopback interface.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use anabranch_core::time::{Span, Time};
use anabranch_core::{
    AcceptFrom, Association, AssociationEvent, AssociationId, Encapsulation, Endpoint, EndpointConfig,
    PacketBuffer, PathAddress, SendOptions, StreamDirection, StreamRefusal, StreamRequest,
};
use bytes::Bytes;

use crate::rig::{Input, Peer, usrsctp};

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const SCTP_PORT: u16 = 5001;

/// Time within which every step must have an effect.
const TIMEOUT: Duration = Duration::from_secs(30);

/// This endpoint, beside usrsctp that returns each message.
struct Beside {
    socket: UdpSocket,
    began: Instant,
    endpoint: Endpoint,
    id: AssociationId,
    told: Vec<AssociationEvent>,
    /// Stream and SSN of each returned message.
    returned: Vec<(u16, u16)>,
    theirs: Peer,
}

fn free_port() -> u16 {
    let socket = UdpSocket::bind((HOST, 0)).expect("a free port");
    socket.local_addr().expect("an address").port()
}

impl Beside {
    fn new() -> Self {
        let socket = UdpSocket::bind((HOST, 0)).expect("a free port");
        socket.set_read_timeout(Some(Duration::from_millis(2))).expect("a valid time");
        let (local_port, remote_port) = (socket.local_addr().expect("an address").port(), free_port());
        let mut command = Command::new(usrsctp());
        command.args(["--local", "127.0.0.1", "--udp", &remote_port.to_string(), "--sctp", "5001"]);
        command.args(["--remote-udp", &local_port.to_string(), "--remote-sctp", "9899", "--streams", "4"]);
        command.arg("echo");
        let theirs = Peer::start("theirs", command, Input::None);
        theirs.wait_for("listening");
        let config = EndpointConfig {
            port: 9899,
            addresses: vec![HOST],
            encapsulation: Encapsulation::Udp { local_port, remote_port },
            accept: None,
            accept_from: AcceptFrom::Everyone,
            max_associations: 1,
            guard: None,
        };
        let mut endpoint = Endpoint::new(Time::ZERO, config, [5; 32]);
        let config = anabranch_net::Config::new("sctp").expect("a scheme").streams(4);
        let path = PathAddress::over_udp(HOST, SocketAddr::new(HOST, remote_port));
        let id = endpoint.connect(Time::ZERO, SCTP_PORT, &[path], config.core().clone()).expect("a path");
        let (told, returned) = (Vec::new(), Vec::new());
        let mut beside = Beside { socket, began: Instant::now(), endpoint, id, told, returned, theirs };
        beside.run_until(|beside| beside.told.contains(&AssociationEvent::Connected));
        assert!(beside.association().changes_streams(), "usrsctp announces RE-CONFIG");
        beside
    }

    fn now(&self) -> Time {
        Time::ZERO + Span::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).expect("a short test"))
    }

    fn association(&mut self) -> &mut Association {
        self.endpoint.association_mut(self.id).expect("it is up")
    }

    fn step(&mut self) {
        let mut bytes = [0; 2048];
        if let Ok((length, from)) = self.socket.recv_from(&mut bytes) {
            let path = PathAddress::over_udp(HOST, from);
            self.endpoint.handle_datagram(self.now(), path, &bytes[..length]);
        }
        self.endpoint.handle_timeout(self.now());
        let mut packet = PacketBuffer::new();
        while let Some(transmit) = self.endpoint.poll_transmit(self.now(), &mut packet) {
            let port = transmit.address.udp_port.expect("it is encapsulated");
            self.socket.send_to(&packet, (transmit.address.remote, port)).expect("loopback takes it");
            packet = PacketBuffer::new();
        }
        while let Some((_, event)) = self.endpoint.poll_event() {
            self.told.push(event);
            let mut message = Vec::new();
            while let Some(piece) = self.association().recv(&mut message) {
                self.returned.push((piece.stream, piece.ssn));
            }
        }
    }

    #[track_caller]
    fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !done(self) {
            assert!(Instant::now() < deadline, "{:?}, {:?}", self.told, self.returned);
            self.step();
        }
    }

    /// Sends a message and awaits its return.
    #[track_caller]
    fn echo(&mut self, stream: u16, text: &'static str) {
        let options = SendOptions { stream, ..SendOptions::default() };
        self.association().send(Bytes::from_static(text.as_bytes()), options).expect("it has room");
        let before = self.returned.len();
        self.run_until(|beside| beside.returned.len() > before);
    }

    #[track_caller]
    fn await_reset(&mut self, direction: StreamDirection, streams: &[u16], count: usize) {
        let reset = AssociationEvent::StreamsReset { direction, streams: streams.to_vec() };
        self.run_until(|beside| beside.told.iter().filter(|event| **event == reset).count() == count);
    }

    #[track_caller]
    fn await_added(&mut self, direction: StreamDirection, streams: u16) {
        let added = AssociationEvent::StreamsAdded { direction, streams };
        self.run_until(|beside| beside.told.contains(&added));
    }
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn usrsctp_performs_our_resets_and_resets_on_request() {
    let mut beside = Beside::new();
    for _ in 0..2 {
        beside.echo(1, "a message");
    }
    let now = beside.now();
    beside.association().reset_streams(now, &[1]).expect("the stream exists");
    beside.await_reset(StreamDirection::Outgoing, &[1], 1);
    assert_eq!(beside.theirs.wait_for("reset-incoming")["failed"], false);
    beside.echo(1, "a message");
    assert_eq!(beside.returned, [(1, 0), (1, 1), (1, 2)], "its own stream continues");
    let now = beside.now();
    beside.association().request_incoming_reset(now, &[1]).expect("the stream exists");
    beside.await_reset(StreamDirection::Incoming, &[1], 1);
    beside.echo(1, "a message");
    assert_eq!(beside.returned.last(), Some(&(1, 0)));
    assert_eq!(beside.theirs.wait_for("reset-outgoing")["failed"], false);
    beside.theirs.kill();
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn resets_that_usrsctp_requests_are_performed_in_both_directions() {
    let mut beside = Beside::new();
    beside.echo(2, "a message");
    beside.echo(2, "reset");
    beside.await_reset(StreamDirection::Incoming, &[2], 1);
    beside.await_reset(StreamDirection::Outgoing, &[2], 1);
    beside.echo(2, "a message");
    assert_eq!(beside.returned, [(2, 0), (2, 1), (2, 0)]);
    for event in ["reset-incoming", "reset-outgoing"] {
        assert_eq!(beside.theirs.wait_for(event)["failed"], false, "{event}");
    }
    beside.theirs.kill();
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn usrsctp_adds_its_streams_and_denies_more_than_it_accepts() {
    let mut beside = Beside::new();
    let now = beside.now();
    for direction in [StreamDirection::Incoming, StreamDirection::Outgoing] {
        beside.association().add_streams(now, direction, 3).expect("it is within our limit");
    }
    beside.await_added(StreamDirection::Incoming, 7);
    let request = StreamRequest::Add { direction: StreamDirection::Outgoing, streams: 3 };
    let denied = AssociationEvent::StreamRequestFailed { request, refusal: StreamRefusal::Denied };
    beside.run_until(|beside| beside.told.contains(&denied));
    beside.echo(3, "add");
    beside.await_added(StreamDirection::Incoming, 9);
    beside.echo(3, "a message");
    beside.theirs.kill();
}

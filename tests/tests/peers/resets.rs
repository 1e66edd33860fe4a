//! Resets of streams (RFC 6525) with other implementations in both directions, over a network without loss.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_core::time::{Span, Time};
use anabranch_core::{
    AssociationConfig, AssociationEvent, AssociationId, Endpoint, PacketBuffer, PathAddress, SendOptions,
    StreamChanges, StreamDirection,
};
use bytes::Bytes;
use dcsctp::api::{self, DcSctpSocket, SocketEvent, SocketTime};
use sctp_proto::{
    Association, AssociationHandle, DatagramEvent, EndpointConfig, Event, Payload, PayloadProtocolIdentifier,
    ServerConfig, StreamEvent, TransportConfig,
};

use crate::rig::{PORT, address, association, endpoint};

/// Stream that is reset.
const STREAM: u16 = 1;

/// Number of messages before each reset, and after the last one.
const MESSAGES: usize = 3;

/// Duration of one step of the network.
const STEP: Span = Span::from_millis(5);

/// Endpoint of another implementation, which accepts an association.
trait Other {
    fn handle(&mut self, now: Time, packet: &[u8]);
    /// Advances the time, and returns the packets to send.
    fn work(&mut self, now: Time) -> Vec<Vec<u8>>;
    fn send(&mut self);
    fn reset(&mut self);
    /// Returns the number of messages that have arrived.
    fn received(&self) -> usize;
    /// Returns the numbers of resets of the peer, and of own resets that the peer has performed.
    fn resets(&self) -> (usize, usize);
}

/// This endpoint beside another one.
struct Beside<O> {
    now: Time,
    ours: Endpoint,
    id: AssociationId,
    other: O,
    told: Vec<AssociationEvent>,
    /// SSN of each message that has arrived.
    numbers: Vec<u16>,
}

impl<O: Other> Beside<O> {
    fn new(other: O) -> Self {
        let (here, there): (IpAddr, IpAddr) = (address(0, 1), address(0, 2));
        let config = AssociationConfig {
            stream_changes: Some(StreamChanges { max_streams: 16 }),
            ..association("sctp")
        };
        let mut ours = Endpoint::new(Time::ZERO, endpoint(vec![here], config.clone()), [7; 32]);
        let id = ours.connect(Time::ZERO, PORT, &[(here, there)], config).expect("a path");
        let mut beside = Beside { now: Time::ZERO, ours, id, other, told: Vec::new(), numbers: Vec::new() };
        beside.run_until(|beside| beside.told.contains(&AssociationEvent::Connected));
        let supported = beside.ours.association(id).is_some_and(anabranch_core::Association::changes_streams);
        assert!(supported, "the peer announces RE-CONFIG");
        beside
    }

    fn step(&mut self) {
        self.now += STEP;
        self.ours.handle_timeout(self.now);
        let mut packet = PacketBuffer::new();
        while self.ours.poll_transmit(self.now, &mut packet).is_some() {
            self.other.handle(self.now, &packet);
            packet = PacketBuffer::new();
        }
        let way = PathAddress::from((address(0, 1), address(0, 2)));
        for packet in self.other.work(self.now) {
            self.ours.handle_datagram(self.now, way, &packet);
        }
        while let Some((_, event)) = self.ours.poll_event() {
            self.told.push(event);
            let mut bytes = Vec::new();
            let association = self.ours.association_mut(self.id).expect("it is up");
            while let Some(message) = association.recv(&mut bytes) {
                self.numbers.push(message.ssn);
            }
        }
    }

    fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        for _ in 0..10_000 {
            if done(self) {
                return;
            }
            self.step();
        }
        panic!("not done after {:?}: {:?}, {:?}", self.now, self.told, self.numbers);
    }

    fn send(&mut self) {
        let options = SendOptions { stream: STREAM, ppid: 53, ..SendOptions::default() };
        let association = self.ours.association_mut(self.id).expect("it is up");
        for _ in 0..MESSAGES {
            association.send(Bytes::from_static(b"a message"), options).expect("it has room");
        }
    }

    fn reset(&mut self) {
        let now = self.now;
        let association = self.ours.association_mut(self.id).expect("it is up");
        association.reset_streams(now, &[STREAM]).expect("the stream exists");
    }

    fn resets(&self, wanted: StreamDirection) -> usize {
        let reset = |event: &&AssociationEvent| matches!(event, AssociationEvent::StreamsReset { direction, .. } if *direction == wanted);
        self.told.iter().filter(reset).count()
    }

    /// Resets the stream on this side after each of two groups of messages.
    fn reset_ours(&mut self) {
        for round in 1..=2 {
            self.send();
            self.reset();
            self.run_until(|b| b.resets(StreamDirection::Outgoing) == round && b.other.resets().0 >= round);
        }
        self.send();
        self.run_until(|beside| beside.other.received() == 3 * MESSAGES);
    }

    /// Resets the stream on the other side after a group of messages.
    fn reset_theirs(&mut self) {
        for _ in 0..MESSAGES {
            self.other.send();
        }
        self.run_until(|beside| beside.numbers.len() == MESSAGES);
        self.other.reset();
        self.run_until(|beside| beside.resets(StreamDirection::Incoming) == 1);
        // A data channel is closed by a reset in each direction (RFC 8831 section 6.7).
        self.reset();
        self.run_until(|b| b.resets(StreamDirection::Outgoing) == 1 && b.other.resets().1 == 1);
        for _ in 0..MESSAGES {
            self.other.send();
        }
        self.run_until(|beside| beside.numbers.len() == 2 * MESSAGES);
        assert_eq!(self.numbers, [0, 1, 2, 0, 1, 2]);
    }
}

struct Dcsctp {
    socket: Box<dyn DcSctpSocket>,
    received: usize,
    resets: (usize, usize),
}

impl Dcsctp {
    fn new() -> Self {
        fastrand::seed(1);
        let options = api::Options {
            local_port: PORT,
            remote_port: PORT,
            mtu: 1480,
            announced_maximum_incoming_streams: 16,
            announced_maximum_outgoing_streams: 16,
            enable_message_interleaving: false,
            zero_checksum_alternate_error_detection_method:
                api::ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_NONE,
            ..api::Options::default()
        };
        Dcsctp { socket: dcsctp::new_socket("peer", &options), received: 0, resets: (0, 0) }
    }

    fn advance(&mut self, now: Time) {
        self.socket.advance_time(SocketTime::zero() + Duration::from_nanos(now.as_nanos()));
    }
}

impl Other for Dcsctp {
    fn handle(&mut self, now: Time, packet: &[u8]) {
        self.advance(now);
        self.socket.handle_input(packet);
    }

    fn work(&mut self, now: Time) -> Vec<Vec<u8>> {
        self.advance(now);
        let mut packets = Vec::new();
        while let Some(event) = self.socket.poll_event() {
            match event {
                SocketEvent::SendPacket(bytes) => packets.push(bytes),
                SocketEvent::OnIncomingStreamReset(_) => self.resets.0 += 1,
                SocketEvent::OnStreamsResetPerformed(_) => self.resets.1 += 1,
                SocketEvent::OnStreamsResetFailed(streams) => panic!("reset of {streams:?} failed"),
                SocketEvent::OnAborted(kind, text) | SocketEvent::OnError(kind, text) => {
                    panic!("{kind:?}: {text}");
                }
                _ => {}
            }
        }
        while self.socket.get_next_message().is_some() {
            self.received += 1;
        }
        packets
    }

    fn send(&mut self) {
        let message = api::Message::new(api::StreamId(STREAM), api::PpId(53), b"a message".to_vec());
        self.socket.send(message, &api::SendOptions::default()).expect("its buffer has room");
    }

    fn reset(&mut self) {
        self.socket.reset_streams(&[api::StreamId(STREAM)]).expect("it is connected");
    }

    fn received(&self) -> usize {
        self.received
    }

    fn resets(&self) -> (usize, usize) {
        self.resets
    }
}

struct SctpProto {
    epoch: Instant,
    endpoint: sctp_proto::Endpoint,
    association: Option<(AssociationHandle, Association)>,
    received: usize,
    resets: (usize, usize),
}

impl SctpProto {
    fn new() -> Self {
        let transport = TransportConfig::default()
            .with_local_port(PORT)
            .with_remote_port(PORT)
            .with_max_num_inbound_streams(16)
            .with_max_num_outbound_streams(16);
        let mut server = ServerConfig::default();
        server.transport = Arc::new(transport);
        let endpoint = sctp_proto::Endpoint::new(Arc::new(EndpointConfig::new()), Some(Arc::new(server)));
        SctpProto { epoch: Instant::now(), endpoint, association: None, received: 0, resets: (0, 0) }
    }

    fn instant(&self, now: Time) -> Instant {
        self.epoch + Duration::from_nanos(now.as_nanos())
    }

    fn association(&mut self) -> &mut Association {
        &mut self.association.as_mut().expect("it is up").1
    }
}

impl Other for SctpProto {
    fn handle(&mut self, now: Time, packet: &[u8]) {
        let peer = SocketAddr::new(address(0, 1), PORT);
        let bytes = Bytes::copy_from_slice(packet);
        match (self.endpoint.handle(self.instant(now), peer, None, None, bytes), &mut self.association) {
            (Some((handle, DatagramEvent::NewAssociation(association))), _) => {
                self.association = Some((handle, association));
            }
            (Some((_, DatagramEvent::AssociationEvent(event))), Some((_, association))) => {
                association.handle_event(event);
            }
            _ => {}
        }
    }

    fn work(&mut self, now: Time) -> Vec<Vec<u8>> {
        let instant = self.instant(now);
        let Some((_, association)) = &mut self.association else { return Vec::new() };
        association.handle_timeout(instant);
        for id in association.stream_ids() {
            let Ok(mut stream) = association.stream(id) else { continue };
            while let Ok(Some(_)) = stream.read_sctp() {
                self.received += 1;
            }
        }
        while let Some(event) = association.poll() {
            match event {
                Event::Stream(StreamEvent::Finished { .. }) => self.resets.0 += 1,
                Event::Stream(StreamEvent::ResetComplete { .. }) => self.resets.1 += 1,
                Event::Stream(StreamEvent::ResetFailed { id, .. }) => panic!("reset of {id} failed"),
                Event::AssociationLost { reason } => panic!("{reason:?}"),
                _ => {}
            }
        }
        let mut packets = VecDeque::new();
        while let Some(transmit) = association.poll_transmit(instant) {
            if let Payload::RawEncode(sent) = transmit.payload {
                packets.extend(sent.into_iter().map(|packet| packet.to_vec()));
            }
        }
        packets.into()
    }

    fn send(&mut self) {
        let ppid = PayloadProtocolIdentifier::Binary;
        let association = self.association();
        if association.stream(STREAM).is_err() {
            association.open_stream(STREAM, ppid).expect("the stream exists");
        }
        let mut stream = association.stream(STREAM).expect("the stream is open");
        stream.write_sctp(&Bytes::from_static(b"a message"), ppid).expect("it takes everything");
    }

    fn reset(&mut self) {
        self.association().stream(STREAM).expect("the stream is open").close().expect("it is established");
    }

    fn received(&self) -> usize {
        self.received
    }

    fn resets(&self) -> (usize, usize) {
        self.resets
    }
}

#[test]
fn dcsctp_performs_our_resets() {
    Beside::new(Dcsctp::new()).reset_ours();
}

#[test]
fn resets_of_dcsctp_are_performed() {
    Beside::new(Dcsctp::new()).reset_theirs();
}

#[test]
fn sctp_proto_performs_our_resets() {
    Beside::new(SctpProto::new()).reset_ours();
}

#[test]
fn resets_of_sctp_proto_are_performed() {
    Beside::new(SctpProto::new()).reset_theirs();
}

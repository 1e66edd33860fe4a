//! sctp-proto as a host. It handles one association on one path, and draws its own randomness, so runs with it differ.
//!
//! Its SHUTDOWN carries its own cumulative TSN in place of the peer's; this endpoint does not count that as an acknowledgement.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_core::PacketBuffer;
use anabranch_core::time::{Span, Time};
use anabranch_sim::{Datagram, Envelope, Host};
use bytes::Bytes;
use sctp_proto::{
    Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig, Event, Payload,
    PayloadProtocolIdentifier, ReliabilityType, ServerConfig, TransportConfig,
};

use crate::peers::exchange::{Peer, Task};
use crate::rig::PORT;
use crate::rig::messages::{Inbox, Message};

/// The endpoint, its association, and their task.
pub(crate) struct SctpProto {
    /// Instant of time zero: the crate requires real instants but never compares them with a clock.
    epoch: Instant,
    now: Time,
    endpoint: Endpoint,
    association: Option<(AssociationHandle, Association)>,
    task: Task,
    peer: SocketAddr,
    packets: VecDeque<Bytes>,
    inbox: Inbox,
    connected: bool,
    closing: bool,
    lost: Option<String>,
}

impl SctpProto {
    /// Returns an endpoint with the crate's defaults except ports and stream numbers.
    pub(crate) fn new(task: Task) -> Self {
        let transport = TransportConfig::default()
            .with_local_port(PORT)
            .with_remote_port(PORT)
            .with_max_num_inbound_streams(16)
            .with_max_num_outbound_streams(8);
        let transport = Arc::new(transport);
        let mut server = ServerConfig::default();
        server.transport = transport.clone();
        let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::new()), Some(Arc::new(server)));
        let peer = SocketAddr::new(task.way.destination, PORT);
        let mut client = ClientConfig::default();
        client.transport = transport;
        let association = task.connects.then(|| endpoint.connect(client, peer).expect("it can be opened"));
        SctpProto {
            epoch: Instant::now(),
            now: Time::ZERO,
            endpoint,
            association,
            task,
            peer,
            packets: VecDeque::new(),
            inbox: Inbox::default(),
            connected: false,
            closing: false,
            lost: None,
        }
    }

    fn instant(&self, now: Time) -> Instant {
        self.epoch + Duration::from_nanos(now.as_nanos())
    }

    fn work(&mut self) {
        let now = self.instant(self.now);
        let Some((_, association)) = &mut self.association else { return };
        while let Some(event) = association.poll() {
            match event {
                Event::Connected => self.connected = true,
                Event::AssociationLost { reason } => self.lost = Some(format!("{reason:?}")),
                Event::HandshakeFailed { reason } => panic!("handshake failed: {reason:?}"),
                _ => {}
            }
        }
        read(association, &mut self.inbox);
        if self.connected {
            for message in std::mem::take(&mut self.task.messages) {
                write(association, &message);
            }
            let all = self.inbox.messages.len() >= self.task.expected;
            if self.task.connects && all && !self.closing && all_acknowledged(association) {
                self.closing = true;
                association.shutdown().expect("it is established");
            }
        }
        while let Some(transmit) = association.poll_transmit(now) {
            let Payload::RawEncode(packets) = transmit.payload else { continue };
            self.packets.extend(packets);
        }
    }
}

fn read(association: &mut Association, inbox: &mut Inbox) {
    for id in association.stream_ids() {
        let Ok(mut stream) = association.stream(id) else { continue };
        while let Ok(Some(chunks)) = stream.read_sctp() {
            let mut bytes = vec![0; chunks.len()];
            chunks.read(&mut bytes).expect("the buffer is as long as the message");
            inbox.take(id, chunks.ppi as u32, bytes);
        }
    }
}

fn write(association: &mut Association, message: &Message) {
    let ppid = PayloadProtocolIdentifier::from(message.ppid());
    if association.stream(message.stream).is_err() {
        association.open_stream(message.stream, ppid).expect("the stream exists");
    }
    let mut stream = association.stream(message.stream).expect("the stream is open");
    stream.set_reliability_params(message.unordered, ReliabilityType::Reliable, 0).expect("it is open");
    let written = stream.write_sctp(&message.payload, ppid).expect("it takes everything");
    assert_eq!(written, message.payload.len());
}

/// Returns `true` if all data is acknowledged. The stack sends a SHUTDOWN as soon as nothing is in flight, so the request must
/// wait.
fn all_acknowledged(association: &mut Association) -> bool {
    let ids = association.stream_ids();
    ids.into_iter().all(|id| association.stream(id).is_ok_and(|s| s.buffered_amount().unwrap_or(0) == 0))
}

impl Host for SctpProto {
    fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>) {
        self.now = now;
        let bytes = Bytes::copy_from_slice(datagram.payload);
        let handled = self.endpoint.handle(self.instant(now), self.peer, None, None, bytes);
        match (handled, &mut self.association) {
            (Some((handle, DatagramEvent::NewAssociation(association))), _) => {
                self.association = Some((handle, association));
            }
            (Some((_, DatagramEvent::AssociationEvent(event))), Some((_, association))) => {
                association.handle_event(event);
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        let instant = self.instant(now);
        if let Some((_, association)) = &mut self.association {
            association.handle_timeout(instant);
        }
    }

    fn poll_transmit(&mut self, now: Time, buf: &mut PacketBuffer) -> Option<Envelope> {
        self.now = now;
        self.work();
        buf.extend_from_slice(&self.packets.pop_front()?);
        Some(self.task.way)
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        let (_, association) = self.association.as_ref()?;
        let next = association.poll_timeout()?.saturating_duration_since(self.epoch);
        // A deadline may be slightly in the past; the world treats it as due now.
        Some(Time::ZERO + Span::from_nanos(u64::try_from(next.as_nanos()).ok()?))
    }
}

impl Peer for SctpProto {
    fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    fn is_over(&self) -> bool {
        self.association.as_ref().is_some_and(|(_, association)| association.is_drained())
    }
}

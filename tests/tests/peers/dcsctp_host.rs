//! dcSCTP as a host. It handles one association on one path, and draws its randomness from `fastrand`.
//!
//! After a shutdown request it sends its SHUTDOWN as soon as nothing is in flight, although chunks declared lost still wait for
//! retransmission. RFC 9260 section 9.2 requires the acknowledgement of all of them first, and section 6 requires the peer to drop
//! DATA after a SHUTDOWN. So the test requests the shutdown only after it has reported every message as delivered.

use std::collections::VecDeque;
use std::time::Duration;

use anabranch_core::PacketBuffer;
use anabranch_core::time::{Span, Time};
use anabranch_sim::{Datagram, Envelope, Host};
use dcsctp::api::{
    self, DcSctpSocket, ErrorKind, LifecycleId, Options, SendOptions, SocketEvent, SocketTime,
};

use crate::peers::exchange::{Peer, Task};
use crate::rig::PORT;
use crate::rig::messages::Inbox;

/// The socket and its task.
pub(crate) struct Dcsctp {
    socket: Box<dyn DcSctpSocket>,
    task: Task,
    packets: VecDeque<Vec<u8>>,
    inbox: Inbox,
    /// Number of messages that it has accepted, and of those that are delivered.
    sent: u64,
    delivered: u64,
    connected: bool,
    closed: bool,
    closing: bool,
    features: Features,
    failures: Vec<(ErrorKind, String)>,
}

/// Extensions that a socket offers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Features {
    /// I-DATA.
    pub(crate) interleaving: bool,
    /// Zero checksums, as below DTLS.
    pub(crate) zero_checksum: bool,
}

impl Dcsctp {
    /// Returns a socket with plain RFC 9260: checksums, DATA chunks, no partial reliability.
    pub(crate) fn new(task: Task, seed: u64) -> Self {
        Self::with(task, seed, Features::default())
    }

    /// Returns a socket that offers these extensions, which its peer offers too.
    pub(crate) fn with(task: Task, seed: u64, features: Features) -> Self {
        fastrand::seed(seed);
        let options = Options {
            local_port: PORT,
            remote_port: PORT,
            mtu: 1480,
            announced_maximum_incoming_streams: 16,
            announced_maximum_outgoing_streams: 8,
            enable_partial_reliability: false,
            enable_message_interleaving: features.interleaving,
            zero_checksum_alternate_error_detection_method: match features.zero_checksum {
                true => api::ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_LOWER_LAYER_DTLS,
                false => api::ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_NONE,
            },
            disable_checksum_verification: false,
            ..Options::default()
        };
        let mut socket = dcsctp::new_socket("peer", &options);
        if task.connects {
            socket.connect();
        }
        Dcsctp {
            socket,
            task,
            packets: VecDeque::new(),
            inbox: Inbox::default(),
            sent: 0,
            delivered: 0,
            connected: false,
            closed: false,
            closing: false,
            features,
            failures: Vec::new(),
        }
    }

    /// Returns the errors that the socket reported.
    pub(crate) fn failures(&self) -> &[(ErrorKind, String)] {
        &self.failures
    }

    fn work(&mut self) {
        while let Some(event) = self.socket.poll_event() {
            match event {
                SocketEvent::SendPacket(bytes) => self.packets.push_back(bytes),
                SocketEvent::OnConnected() => self.connected = true,
                SocketEvent::OnLifecycleMessageDelivered(_) => self.delivered += 1,
                SocketEvent::OnClosed() => self.closed = true,
                SocketEvent::OnAborted(kind, text) | SocketEvent::OnError(kind, text) => {
                    self.failures.push((kind, text));
                }
                _ => {}
            }
        }
        while let Some(message) = self.socket.get_next_message() {
            self.inbox.take(message.stream_id.0, message.ppid.0, message.payload);
        }
        if self.connected {
            self.send();
        }
    }

    fn send(&mut self) {
        if let Some(metrics) = self.socket.get_metrics() {
            assert_eq!(metrics.uses_message_interleaving, self.features.interleaving);
            assert_eq!(metrics.uses_zero_checksum, self.features.zero_checksum);
        }
        for message in std::mem::take(&mut self.task.messages) {
            self.sent += 1;
            let options = SendOptions {
                unordered: message.unordered,
                lifecycle_id: LifecycleId::new(self.sent),
                ..SendOptions::default()
            };
            let (stream, ppid) = (api::StreamId(message.stream), api::PpId(message.ppid()));
            let message = api::Message::new(stream, ppid, message.payload.to_vec());
            self.socket.send(message, &options).expect("its send buffer holds two megabytes");
        }
        let all = self.inbox.messages.len() >= self.task.expected && self.delivered == self.sent;
        if self.task.connects && all && !std::mem::replace(&mut self.closing, true) {
            self.socket.shutdown();
        }
    }

    fn advance(&mut self, now: Time) {
        self.socket.advance_time(SocketTime::zero() + Duration::from_nanos(now.as_nanos()));
    }
}

impl Host for Dcsctp {
    fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>) {
        self.advance(now);
        self.socket.handle_input(datagram.payload);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
    }

    fn poll_transmit(&mut self, _: Time, buf: &mut PacketBuffer) -> Option<Envelope> {
        // Sending and closing create further events.
        self.work();
        self.work();
        buf.extend_from_slice(&self.packets.pop_front()?);
        Some(self.task.way)
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        let next = self.socket.poll_timeout();
        if next == SocketTime::infinite_future() {
            return None;
        }
        let nanos = (next - SocketTime::zero()).as_nanos();
        Some(Time::ZERO + Span::from_nanos(u64::try_from(nanos).ok()?))
    }
}

impl Peer for Dcsctp {
    fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    fn is_over(&self) -> bool {
        assert_eq!(self.failures(), []);
        self.closed
    }
}

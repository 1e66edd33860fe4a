//! An endpoint of the core on a UDP socket of the loopback interface, for tests that need more than the sockets of this project offer.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anabranch_core::time::{Span, Time};
use anabranch_core::{
    AcceptFrom, Association, AssociationConfig, AssociationEvent, AssociationId, Encapsulation, Endpoint,
    EndpointConfig, PacketBuffer, PathAddress,
};

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Longest packet of a peer on the loopback interface.
const LONGEST_PACKET: usize = 65_536;

/// Time within which every step must have an effect.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// The endpoint, with at most one association.
pub(crate) struct Local {
    socket: UdpSocket,
    began: Instant,
    endpoint: Endpoint,
    id: Option<AssociationId>,
    config: AssociationConfig,
    remote_port: u16,
}

fn free_port() -> u16 {
    let socket = UdpSocket::bind((HOST, 0)).expect("a free port");
    socket.local_addr().expect("an address").port()
}

impl Local {
    /// Returns an endpoint on this SCTP port, which opens or accepts an association.
    pub(crate) fn new(sctp_port: u16, config: AssociationConfig) -> Self {
        let socket = UdpSocket::bind((HOST, 0)).expect("a free port");
        socket.set_read_timeout(Some(Duration::from_millis(2))).expect("a valid time");
        let (local_port, remote_port) = (socket.local_addr().expect("an address").port(), free_port());
        let settings = EndpointConfig {
            port: sctp_port,
            addresses: vec![HOST],
            encapsulation: Encapsulation::Udp { local_port, remote_port },
            accept: Some(config.clone()),
            accept_from: AcceptFrom::Everyone,
            max_associations: 1,
            guard: None,
        };
        let endpoint = Endpoint::new(Time::ZERO, settings, [5; 32]);
        Local { socket, began: Instant::now(), endpoint, id: None, config, remote_port }
    }

    /// Returns the UDP ports of this side and of the peer.
    pub(crate) fn ports(&self) -> [u16; 2] {
        [self.socket.local_addr().expect("an address").port(), self.remote_port]
    }

    /// Opens an association to this SCTP port of the peer.
    pub(crate) fn connect(&mut self, sctp_port: u16) {
        let path = PathAddress::over_udp(HOST, SocketAddr::new(HOST, self.remote_port));
        let id = self.endpoint.connect(Time::ZERO, sctp_port, &[path], self.config.clone());
        self.id = Some(id.expect("a path"));
    }

    pub(crate) fn now(&self) -> Time {
        Time::ZERO + Span::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).expect("a short test"))
    }

    pub(crate) fn association(&mut self) -> &mut Association {
        let id = self.id.expect("it has begun");
        self.endpoint.association_mut(id).expect("it is up")
    }

    /// Receives a packet or waits for a moment, and sends. Returns the events.
    pub(crate) fn step(&mut self) -> Vec<AssociationEvent> {
        let mut bytes = vec![0; LONGEST_PACKET];
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
        let mut events = Vec::new();
        while let Some((id, event)) = self.endpoint.poll_event() {
            self.id = Some(id);
            events.push(event);
        }
        events
    }
}

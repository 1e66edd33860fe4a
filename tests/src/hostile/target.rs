//! An endpoint in virtual time for one hostile peer.

use std::net::IpAddr;

use anabranch_core::time::{Span, Time};
use anabranch_core::{
    AcceptFrom, AssociationConfig, AssociationEvent, AssociationId, Encapsulation, Endpoint, EndpointConfig,
    Guard, Handled, PacketBuffer, PathAddress,
};

use super::craft::PORT;
use super::peer::Wire;
use crate::duo;

/// Maximum number of packets of one call, which exceeds all legitimate ones.
const MOST_PACKETS: usize = 40_000;

/// Endpoint, time and output.
#[derive(Debug)]
pub struct Target {
    /// The endpoint itself.
    pub endpoint: Endpoint,
    /// Current time.
    pub now: Time,
    /// Source address of the peer's packets.
    pub from: IpAddr,
    /// Destination address of the peer's packets.
    pub local: IpAddr,
    /// Events of the endpoint.
    pub events: Vec<(AssociationId, AssociationEvent)>,
    /// Outcome of the latest packet.
    pub handled: Option<Handled>,
    config: AssociationConfig,
    waiting: Vec<Vec<u8>>,
    read: Vec<u8>,
    /// User bytes that the application has read.
    pub delivered_bytes: u64,
}

impl Target {
    /// Returns an endpoint with a guard that accepts associations with this scheme and the profile for real networks.
    pub fn listening(scheme: &str) -> Self {
        Self::new(duo::config(scheme, "net"), Some(Guard::default()), false)
    }

    /// Returns an endpoint at 10.0.0.9, or at an IPv6 address, with this configuration for accepted associations.
    pub fn new(config: AssociationConfig, guard: Option<Guard>, ipv6: bool) -> Self {
        let v6 = |host: u16| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, host]);
        let [local, from] = if ipv6 { [v6(9), v6(1)] } else { [9, 1].map(|host| [10, 0, 0, host].into()) };
        let endpoint = EndpointConfig {
            port: PORT,
            addresses: vec![local],
            encapsulation: Encapsulation::None,
            accept: Some(config.clone()),
            accept_from: AcceptFrom::Everyone,
            max_associations: 16,
            guard,
        };
        Target {
            endpoint: Endpoint::new(Time::ZERO, endpoint, [9; 32]),
            now: Time::ZERO,
            from,
            local,
            events: Vec::new(),
            handled: None,
            config,
            waiting: Vec::new(),
            read: Vec::new(),
            delivered_bytes: 0,
        }
    }

    /// Connects the endpoint to the peer.
    ///
    /// # Panics
    /// Panics if the endpoint has no room for another association.
    pub fn call_peer(&mut self) -> AssociationId {
        let pair = [(self.local, self.from)];
        let id = self.endpoint.connect(self.now, PORT, &pair, self.config.clone()).expect("there is room");
        self.drain();
        id
    }

    /// Returns the number of associations, including ended ones that are still stored.
    pub fn associations(&self) -> usize {
        self.endpoint.associations().count()
    }

    /// Returns the latest association that has not ended.
    pub fn live(&self) -> Option<AssociationId> {
        let over = |id: &AssociationId| self.endpoint.association(*id).is_none_or(|a| a.is_closed());
        self.endpoint.associations().filter(|id| !over(id)).last()
    }

    /// Removes ended associations, as a driver does.
    pub fn forget_closed(&mut self) {
        let ids: Vec<_> = self.endpoint.associations().collect();
        for id in ids {
            self.endpoint.forget(id);
        }
    }

    /// Processes all packets and events of the endpoint, and reads all data.
    ///
    /// # Panics
    /// Panics if packets or events remain after as many steps as `MOST_PACKETS` allows.
    pub fn drain(&mut self) {
        let mut buf = PacketBuffer::new();
        for _ in 0..MOST_PACKETS {
            if self.endpoint.poll_transmit(self.now, &mut buf).is_some() {
                self.waiting.push(buf.to_vec());
                continue;
            }
            if !self.process_events() {
                return;
            }
        }
        panic!("draining does not end");
    }

    /// Returns the timers of the open associations, for messages.
    fn timers(&self) -> String {
        let all = self.endpoint.associations().filter_map(|id| self.endpoint.association(id));
        let all = all.filter(|association| !association.is_closed());
        let shown = all.map(|association| {
            let text = format!("{association:?}");
            let parts = ["state: ", "timers: ", "ack: "].map(|part| {
                let found = text.match_indices(part).map(|(at, _)| text[at..].chars().take(400).collect());
                found.collect::<Vec<String>>().join("; ")
            });
            parts.join("\n")
        });
        shown.collect::<Vec<_>>().join("\n\n")
    }

    fn process_events(&mut self) -> bool {
        let mut any = false;
        while let Some((id, event)) = self.endpoint.poll_event() {
            any = true;
            if event == AssociationEvent::Readable {
                self.read(id);
            }
            self.events.push((id, event));
        }
        any
    }

    fn read(&mut self, id: AssociationId) {
        let Some(association) = self.endpoint.association_mut(id) else { return };
        while let Some(piece) = association.recv(&mut self.read) {
            self.delivered_bytes += piece.bytes as u64;
            self.read.clear();
        }
    }
}

impl Wire for Target {
    fn send(&mut self, bytes: &[u8]) {
        let path = PathAddress::from((self.local, self.from));
        self.handled = Some(self.endpoint.handle_datagram(self.now, path, bytes));
        self.drain();
    }

    fn receive(&mut self, wait: Span, packets: &mut Vec<Vec<u8>>) {
        let end = self.now + wait;
        while let Some(at) = self.endpoint.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.endpoint.handle_timeout(self.now);
            self.drain();
            let next = self.endpoint.poll_timeout();
            assert!(
                next.is_none_or(|at| at > self.now),
                "it wants to be woken at {next:?}, it is {:?}: {}",
                self.now,
                self.timers()
            );
        }
        self.now = end;
        packets.append(&mut self.waiting);
    }

    fn timeout(&self) -> Span {
        Span::from_secs(1)
    }
}

//! SCTP endpoint with an application, as a host of the simulator.

use anabranch_core::time::{Time, earliest};
use anabranch_core::{AssociationEvent, AssociationId, DataPacket, Endpoint, PacketBuffer, PathAddress};
use std::any::Any;

use crate::{Datagram, Encapsulation, Envelope, Host};

/// Application on top of an endpoint.
pub trait Application: Any {
    /// Sends messages and reads received data. It is called once at the start, and after each packet, timeout or change of the
    /// endpoint, behind the events.
    fn step(&mut self, now: Time, endpoint: &mut Endpoint);
    /// Handles an event of an association.
    fn on_event(&mut self, now: Time, endpoint: &mut Endpoint, id: AssociationId, event: &AssociationEvent);
    /// Handles an endpoint that has sent all that it can for now: its state stays the same until the next packet or timeout. It is
    /// meant for observers, since messages that are sent here wait until then.
    fn drained(&mut self, _now: Time, _endpoint: &mut Endpoint) {}
    /// Returns the time at which the application has to be called again.
    fn poll_timeout(&mut self) -> Option<Time>;
    /// Returns an independent copy of the application in its present state. `None`, the default, prevents
    /// [copies](crate::World::copied) of the world.
    fn copied(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// An endpoint and its application.
pub struct SctpHost<A> {
    /// Protocol endpoint of the host.
    pub endpoint: Endpoint,
    /// Application that uses the endpoint.
    pub application: A,
    /// Encapsulation of the endpoint's packets.
    encapsulation: anabranch_core::Encapsulation,
    /// Set if the application has to be called again.
    stale: bool,
}

impl<A: Application> SctpHost<A> {
    /// Returns a host of an endpoint with packets in this encapsulation.
    pub fn new(endpoint: Endpoint, encapsulation: anabranch_core::Encapsulation, application: A) -> Self {
        SctpHost { endpoint, application, encapsulation, stale: true }
    }

    /// Calls the application if anything happened to the endpoint, whose first event the caller has polled. Otherwise returns `false`
    /// and leaves the endpoint unchanged.
    fn settle(&mut self, now: Time, first: Option<(AssociationId, AssociationEvent)>) -> bool {
        let mut next = first;
        while let Some((id, event)) = next {
            self.application.on_event(now, &mut self.endpoint, id, &event);
            self.stale = true;
            next = self.endpoint.poll_event();
        }
        let stale = std::mem::take(&mut self.stale);
        if stale {
            self.application.step(now, &mut self.endpoint);
        }
        stale
    }

    fn envelope(&self, address: PathAddress) -> Envelope {
        let encapsulation = match self.encapsulation {
            anabranch_core::Encapsulation::None => Encapsulation::None,
            anabranch_core::Encapsulation::Udp { local_port, remote_port } => Encapsulation::Udp {
                source_port: local_port,
                destination_port: address.udp_port.unwrap_or(remote_port),
            },
        };
        Envelope { source: address.local, destination: address.remote, encapsulation }
    }
}

/// Returns the addresses of a received packet, as its receiver sees them.
fn origin(envelope: Envelope) -> PathAddress {
    let udp_port = match envelope.encapsulation {
        Encapsulation::None => None,
        Encapsulation::Udp { source_port, .. } => Some(source_port),
    };
    PathAddress { udp_port, ..PathAddress::from((envelope.destination, envelope.source)) }
}

impl<A: Application> Host for SctpHost<A> {
    fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>) {
        self.endpoint.handle_datagram(now, origin(datagram.envelope()), datagram.payload);
        self.stale = true;
    }

    fn handle_data_packet(&mut self, now: Time, envelope: Envelope, packet: &DataPacket) {
        self.endpoint.handle_data_packet(now, origin(envelope), packet);
        self.stale = true;
    }

    fn handle_timeout(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
        self.stale = true;
    }

    fn poll_transmit(&mut self, now: Time, buf: &mut PacketBuffer) -> Option<Envelope> {
        if self.stale {
            let event = self.endpoint.poll_event();
            self.settle(now, event);
        }
        let mut transmit = self.endpoint.poll_transmit(now, buf);
        // Sending may have produced events, and the application may have answered them with messages.
        if transmit.is_none()
            && let event @ Some(_) = self.endpoint.poll_settled_event()
            && self.settle(now, event)
        {
            transmit = self.endpoint.poll_transmit(now, buf);
        }
        if transmit.is_none() {
            self.application.drained(now, &mut self.endpoint);
        }
        transmit.map(|transmit| self.envelope(transmit.address))
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        earliest([self.endpoint.poll_timeout(), self.application.poll_timeout()])
    }

    fn copied(&self) -> Option<Box<dyn Host>> {
        let (endpoint, application) = (self.endpoint.copied()?, self.application.copied()?);
        Some(Box::new(SctpHost { endpoint, application, ..*self }))
    }
}

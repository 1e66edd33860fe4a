//! The SCTP endpoint as a host of the simulator, with an application on top.

use anabranch_core::time::{Time, earliest};
use anabranch_core::{AssociationEvent, AssociationId, Endpoint, PacketBuffer, PathAddress};
use std::any::Any;

use crate::{Datagram, Encapsulation, Envelope, Host};

/// What runs on top of an endpoint.
pub trait Application: Any {
    /// Called after everything that happened to the endpoint and after its events, and once at the start: hands messages over, reads
    /// what arrived.
    fn step(&mut self, now: Time, endpoint: &mut Endpoint);
    /// Something happened to an association.
    fn on_event(&mut self, now: Time, endpoint: &mut Endpoint, id: AssociationId, event: &AssociationEvent);
    /// Called whenever the endpoint has sent all that it can for now: its state stays as it is until something happens. For
    /// observers; what is handed over here waits for the next thing that happens.
    fn drained(&mut self, _now: Time, _endpoint: &mut Endpoint) {}
    /// When it wants to be called again.
    fn poll_timeout(&mut self) -> Option<Time>;
}

/// An endpoint and its application.
pub struct SctpHost<A> {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The application.
    pub application: A,
    /// How its packets are carried.
    encapsulation: anabranch_core::Encapsulation,
    /// The application may not have been called since the last thing that happened.
    stale: bool,
}

impl<A: Application> SctpHost<A> {
    /// A host of an endpoint whose packets are carried as `encapsulation` says.
    pub fn new(endpoint: Endpoint, encapsulation: anabranch_core::Encapsulation, application: A) -> Self {
        SctpHost { endpoint, application, encapsulation, stale: true }
    }

    /// Lets the application act on what happened. False if nothing did, so that the endpoint is as it was.
    fn settle(&mut self, now: Time) -> bool {
        while let Some((id, event)) = self.endpoint.poll_event() {
            self.application.on_event(now, &mut self.endpoint, id, &event);
            self.stale = true;
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

impl<A: Application> Host for SctpHost<A> {
    fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>) {
        let udp_port = match datagram.encapsulation {
            Encapsulation::None => None,
            Encapsulation::Udp { source_port, .. } => Some(source_port),
        };
        let address = PathAddress { udp_port, ..PathAddress::from((datagram.destination, datagram.source)) };
        self.endpoint.handle_datagram(now, address, datagram.payload);
        self.stale = true;
    }

    fn handle_timeout(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
        self.stale = true;
    }

    fn poll_transmit(&mut self, now: Time, buf: &mut PacketBuffer) -> Option<Envelope> {
        self.settle(now);
        let mut transmit = self.endpoint.poll_transmit(now, buf);
        // Draining may have produced events, and the application's answer to them packets.
        if transmit.is_none() && self.settle(now) {
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
}

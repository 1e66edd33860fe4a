//! Connection from the endpoint's task to its observer, if it has one.

use std::fmt;
use std::net::SocketAddr;

use anabranch_core::time::Time;
use anabranch_core::{AssociationId, Endpoint};

use crate::error::CloseReason;
use crate::observer::{Datagram, DatagramOutcome, KeyChange, Observer, Started};

/// Optional observer. All methods do nothing without one.
#[derive(Default)]
pub(crate) struct ObserverSlot(Option<Watched>);

struct Watched {
    observer: Box<dyn Observer>,
    decisions: bool,
    /// Associations with events since they were last reported.
    touched: Vec<AssociationId>,
}

impl fmt::Debug for ObserverSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObserverSlot").field(&self.0.is_some()).finish()
    }
}

impl ObserverSlot {
    pub(crate) fn new(observer: Box<dyn Observer>) -> Self {
        ObserverSlot(Some(Watched { decisions: observer.wants_decisions(), observer, touched: Vec::new() }))
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Returns `true` if associations must record decisions. Only an observer that takes them may request this, because they would
    /// fill the memory otherwise.
    pub(crate) fn wants_decisions(&self) -> bool {
        self.0.as_ref().is_some_and(|watched| watched.decisions)
    }

    pub(crate) fn started(&mut self, started: &Started) {
        if let Some(watched) = &mut self.0 {
            watched.observer.started(started);
        }
    }

    pub(crate) fn datagram(
        &mut self,
        at: Time,
        local: SocketAddr,
        remote: SocketAddr,
        outcome: DatagramOutcome,
        payload: &[u8],
    ) {
        if let Some(watched) = &mut self.0 {
            watched.observer.datagram(at, &Datagram { local, remote, outcome, payload });
        }
    }

    pub(crate) fn touch(&mut self, id: AssociationId) {
        if let Some(watched) = &mut self.0
            && !watched.touched.contains(&id)
        {
            watched.touched.push(id);
        }
    }

    /// Reports the touched associations.
    pub(crate) fn report_touched(&mut self, at: Time, endpoint: &mut Endpoint) {
        let Some(watched) = &mut self.0 else { return };
        for id in std::mem::take(&mut watched.touched) {
            watched.report_association(at, id, endpoint);
        }
    }

    pub(crate) fn closed(
        &mut self,
        at: Time,
        id: AssociationId,
        endpoint: &mut Endpoint,
        outcome: &Result<(), CloseReason>,
    ) {
        let Some(watched) = &mut self.0 else { return };
        watched.touched.retain(|touched| *touched != id);
        watched.report_association(at, id, endpoint);
        watched.observer.closed(at, id, outcome);
    }

    pub(crate) fn keys(&mut self, at: Time, id: AssociationId, change: &KeyChange) {
        if let Some(watched) = &mut self.0 {
            watched.observer.keys(at, id, change);
        }
    }

    pub(crate) fn idle(&mut self, at: Time) {
        if let Some(watched) = &mut self.0 {
            watched.observer.idle(at);
        }
    }
}

impl Watched {
    fn report_association(&mut self, at: Time, id: AssociationId, endpoint: &mut Endpoint) {
        let Some(association) = endpoint.association_mut(id) else { return };
        while let Some(event) = association.poll_trace() {
            self.observer.decided(id, &event);
        }
        self.observer.association(at, id, association);
    }
}

//! Copies the events of an endpoint into the batch. It runs on the endpoint's task, so it makes no decisions.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use anabranch_core::time::{Span, Time};
use anabranch_core::trace::TraceEvent;
use anabranch_core::{Association, AssociationId, MAX_PATHS, PathId};
use anabranch_net::{CloseReason, Datagram, KeyChange, Observer, Started};
use anabranch_trace::Sampler;

use crate::batch::{Inbox, Key, Record};

/// Events to record of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    /// Set if path samples and decisions are recorded.
    pub(crate) associations: bool,
}

/// Observer of one endpoint.
pub(crate) struct EndpointObserver {
    inbox: Arc<Inbox>,
    endpoint: usize,
    /// Start of the recording.
    origin: SystemTime,
    /// Time from the start of the recording to the start of the endpoint.
    offset: Span,
    wants: Selection,
    watched: BTreeMap<AssociationId, Watched>,
}

/// State of an observed association.
#[derive(Default)]
struct Watched {
    sampler: Sampler,
    routes: [Option<(IpAddr, SocketAddr)>; MAX_PATHS],
    timeouts: u64,
}

impl EndpointObserver {
    pub(crate) fn new(inbox: Arc<Inbox>, endpoint: usize, origin: SystemTime, wants: Selection) -> Self {
        EndpointObserver { inbox, endpoint, origin, offset: Span::ZERO, wants, watched: BTreeMap::new() }
    }

    fn key(&self, id: AssociationId) -> Key {
        Key { endpoint: self.endpoint, number: id.number() }
    }
}

impl Observer for EndpointObserver {
    fn wants_decisions(&self) -> bool {
        self.wants.associations
    }

    fn started(&mut self, started: &Started) {
        // If the wall clock was set back, the difference counts as zero.
        let since = started.wall_clock.duration_since(self.origin).unwrap_or_default();
        self.offset = Span::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        let locals = started.locals.clone();
        self.inbox.write(|batch| batch.records.push(Record::Endpoint { locals }));
    }

    fn datagram(&mut self, at: Time, datagram: &Datagram<'_>) {
        let (at, endpoint) = (at + self.offset, self.endpoint);
        let Datagram { local, remote, outcome, payload } = *datagram;
        self.inbox.write(|batch| {
            if batch.has_room() {
                let begin = batch.bytes.len();
                batch.bytes.extend_from_slice(payload);
                let bytes = begin..batch.bytes.len();
                batch.records.push(Record::Datagram { at, endpoint, local, remote, outcome, bytes });
            }
        });
    }

    fn decided(&mut self, association: AssociationId, event: &TraceEvent) {
        let key = self.key(association);
        let event = TraceEvent { at: event.at + self.offset, ..event.clone() };
        self.inbox.write(|batch| {
            if batch.has_room() {
                batch.records.push(Record::Decision { key, decision: batch.decisions.len() });
                batch.decisions.push(event);
            }
        });
    }

    fn association(&mut self, at: Time, id: AssociationId, association: &Association) {
        let (at, key) = (at + self.offset, self.key(id));
        if !self.wants.associations {
            return;
        }
        let new = !self.watched.contains_key(&id);
        let watched = self.watched.entry(id).or_default();
        self.inbox.write(|batch| {
            if new {
                batch.records.push(Record::Opened { key, at, peer_port: association.peer_port() });
            }
            for index in 0..association.paths().len().min(MAX_PATHS) {
                let path = PathId::new(index);
                let route = association.path_address(path).map(|address| {
                    (address.local, SocketAddr::new(address.remote, address.udp_port.unwrap_or(0)))
                });
                if let Some((local, remote)) = route
                    && watched.routes[index] != route
                {
                    watched.routes[index] = route;
                    batch.records.push(Record::PathAddress { key, at, path, local, remote });
                }
            }
            watched.sampler.sample(association, |stand| {
                if batch.has_room() {
                    batch.records.push(Record::Path { key, at, stand: batch.stands.len() });
                    batch.stands.push(*stand);
                }
            });
            let statistics = association.statistics();
            if statistics.timeouts > watched.timeouts {
                watched.timeouts = statistics.timeouts;
                batch.records.push(Record::Timeouts { key, at, total: statistics.timeouts });
            }
            batch.counted(key, statistics);
        });
    }

    fn keys(&mut self, at: Time, id: AssociationId, change: &KeyChange) {
        let (at, key, change) = (at + self.offset, self.key(id), *change);
        if self.watched.contains_key(&id) {
            self.inbox.write(|batch| batch.records.push(Record::Keys { key, at, change }));
        }
    }

    fn closed(&mut self, at: Time, id: AssociationId, outcome: &Result<(), CloseReason>) {
        let (at, key, outcome) = (at + self.offset, self.key(id), *outcome);
        if self.watched.remove(&id).is_some() {
            self.inbox.write(|batch| batch.records.push(Record::Closed { key, at, outcome }));
        }
    }
}

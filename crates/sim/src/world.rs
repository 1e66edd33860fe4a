//! The network and the execution of its events.

mod ahead;
mod handover;
mod medium;

use std::any::Any;
use std::collections::BTreeMap;

use anabranch_core::PacketBuffer;
use anabranch_core::time::Time;
use sha2::{Digest, Sha256};

use crate::content::RestoredPacket;
use crate::datagram::{Address, Envelope};
use crate::event::{EventQueue, Slot};
use crate::host::Host;
use crate::link::{Drop, Link, Offer};
use crate::packet::{Packet, PacketId, Pool};
use crate::rng::Seeds;
use crate::route::{HostId, LinkId, Route, RouteId, Sink, SourceId};
use crate::schedule::Schedule;
use crate::tap::{PacketEvent, PacketView, Place, Tap};
use crate::traffic::Source;

pub(crate) use ahead::AheadState;
pub(crate) use handover::HandoverEntry;
pub use handover::Station;

/// Maximum number of times in a row that a host may return a past deadline.
const MAX_TIMEOUTS: u32 = 1000;
/// Maximum number of packets that a host may send at once.
const MAX_BURST: u32 = 1 << 20;

/// Action of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Departure from the serialiser of a link, or start of a batch.
    Departure(LinkId),
    /// Arrival of the first propagating packet of a link.
    Arrival(LinkId),
    Wake(HostId),
    Traffic(usize),
    Change(usize),
    /// Start or end of a handover.
    Handover(usize),
}

pub(crate) struct HostEntry {
    pub(crate) host: Box<dyn Host>,
    pub(crate) wake: Slot,
    /// Time at which the host will be woken.
    pub(crate) armed: Option<Time>,
    /// Routes that the host has used. A search here is faster than among all routes.
    pub(crate) used_routes: Vec<((Address, Address), RouteId)>,
}

/// Maximum number of used routes that are searched one by one, usually more than a host has paths.
const USED_ROUTES: usize = 8;

#[derive(Clone)]
pub(crate) struct LinkEntry {
    pub(crate) link: Link,
    pub(crate) departure: Slot,
    pub(crate) arrival: Slot,
    /// Traffic that enters the network at this link, if it is computed ahead.
    pub(crate) background: Vec<usize>,
    /// Link that shares the medium of this one.
    pub(crate) shares_with: Option<LinkId>,
}

#[derive(Clone)]
pub(crate) struct TrafficEntry {
    pub(crate) source: Source,
    pub(crate) route: RouteId,
    pub(crate) slot: Slot,
    /// Times of the next and of the previous transmission.
    pub(crate) next: Option<Time>,
    pub(crate) sent_at: Option<Time>,
}

#[derive(Clone)]
pub(crate) struct ScheduleEntry {
    pub(crate) link: LinkId,
    pub(crate) schedule: Schedule,
    pub(crate) slot: Slot,
}

/// A network of hosts, links and background traffic, and its clock.
///
/// One world is one run. It is single-threaded and depends only on its description, its seeds and the calls.
pub struct World {
    pub(crate) now: Time,
    pub(crate) seeds: Seeds,
    pub(crate) events: EventQueue<Target>,
    pub(crate) handled: u64,
    pub(crate) hosts: Vec<HostEntry>,
    pub(crate) addresses: BTreeMap<Address, HostId>,
    pub(crate) links: Vec<LinkEntry>,
    pub(crate) link_names: BTreeMap<String, LinkId>,
    pub(crate) sources: Vec<String>,
    pub(crate) source_names: BTreeMap<String, SourceId>,
    pub(crate) routes: Vec<Route>,
    pub(crate) route_index: BTreeMap<(Address, Address), RouteId>,
    pub(crate) traffic: Vec<TrafficEntry>,
    pub(crate) schedules: Vec<ScheduleEntry>,
    pub(crate) handovers: Vec<HandoverEntry>,
    pub(crate) pool: Pool,
    /// Buffer into which hosts write packets, one after the other.
    pub(crate) outgoing: PacketBuffer,
    /// Buffer that extends partly written packets to their full length.
    pub(crate) unabridged: RestoredPacket,
    pub(crate) tap: Option<Box<dyn Tap>>,
    /// Set if there is a tap that follows links.
    pub(crate) tap_follows_links: bool,
    /// Set if the tap reads the bytes of described packets.
    pub(crate) tap_reads_bytes: bool,
    pub(crate) digest: Option<Sha256>,
    pub(crate) unroutable: u64,
    /// State of links that are computed ahead.
    pub(crate) ahead: Option<AheadState>,
}

impl HostEntry {
    fn copied(&self) -> Option<HostEntry> {
        Some(HostEntry { host: self.host.copied()?, used_routes: self.used_routes.clone(), ..*self })
    }
}

impl World {
    /// Returns an independent copy of the world in its present state, with everything on the way. Returns `None` if a host or the
    /// tap cannot be copied.
    pub fn copied(&self) -> Option<World> {
        let tap = match &self.tap {
            Some(tap) => Some(tap.copied()?),
            None => None,
        };
        Some(World {
            now: self.now,
            seeds: self.seeds,
            events: self.events.clone(),
            handled: self.handled,
            hosts: self.hosts.iter().map(HostEntry::copied).collect::<Option<_>>()?,
            addresses: self.addresses.clone(),
            links: self.links.clone(),
            link_names: self.link_names.clone(),
            sources: self.sources.clone(),
            source_names: self.source_names.clone(),
            routes: self.routes.clone(),
            route_index: self.route_index.clone(),
            traffic: self.traffic.clone(),
            schedules: self.schedules.clone(),
            handovers: self.handovers.clone(),
            pool: self.pool.clone(),
            outgoing: PacketBuffer::new(),
            unabridged: RestoredPacket::default(),
            tap,
            tap_follows_links: self.tap_follows_links,
            tap_reads_bytes: self.tap_reads_bytes,
            digest: self.digest.clone(),
            unroutable: self.unroutable,
            ahead: self.ahead.clone(),
        })
    }
}

/// Execution of events.
impl World {
    /// Handles the next event. Returns `false` if there is none.
    pub fn step(&mut self) -> bool {
        self.step_until(Time::from_nanos(u64::MAX))
    }

    /// Handles all events up to and including `end`, and sets the clock to `end`.
    pub fn run_until(&mut self, end: Time) {
        while self.step_until(end) {}
        self.now = self.now.max(end);
        self.settle_links();
    }

    /// Handles the next event if it is due at `end` or earlier. Otherwise changes nothing and returns `false`.
    pub fn step_until(&mut self, end: Time) -> bool {
        let Some((now, target)) = self.events.pop_until(end) else { return false };
        self.now = now;
        self.handled += 1;
        match target {
            Target::Departure(link) => self.link_departure(link),
            Target::Arrival(link) => {
                let first = self.first_of_tied(link);
                self.link_arrival(first);
            }
            Target::Wake(host) => self.host_wake(host),
            Target::Traffic(index) => self.traffic_send(index),
            Target::Change(index) => self.link_change(index),
            Target::Handover(index) => self.handover(index),
        }
        true
    }

    /// Sends the packets of a host and schedules its deadline. Call it after [`World::host_mut`]: a host that was changed from
    /// outside must be woken, since its deadline may have changed.
    pub fn wake_host(&mut self, id: HostId) {
        self.service(id);
    }

    /// Changes a host from outside and wakes it.
    ///
    /// # Panics
    /// Panics if the host is not a `T`.
    pub fn with_host<T: Host, R>(&mut self, id: HostId, touch: impl FnOnce(&mut T, Time) -> R) -> R {
        let now = self.now;
        let result = touch(self.host_mut(id), now);
        self.wake_host(id);
        result
    }

    fn host_wake(&mut self, id: HostId) {
        let now = self.now;
        let entry = &mut self.hosts[id.index()];
        entry.armed = None;
        if entry.host.poll_timeout().is_some_and(|deadline| deadline <= now) {
            entry.host.handle_timeout(now);
        }
        self.service(id);
    }

    /// Sends all packets of a host and schedules its deadline.
    fn service(&mut self, id: HostId) {
        for _ in 0..MAX_TIMEOUTS {
            self.drain(id);
            let now = self.now;
            let entry = &mut self.hosts[id.index()];
            let deadline = entry.host.poll_timeout();
            if deadline.is_none_or(|deadline| deadline > now) {
                return self.arm(id, deadline);
            }
            entry.host.handle_timeout(now);
        }
        let deadline = self.hosts[id.index()].host.poll_timeout();
        panic!(
            "host {}: deadline {deadline:?} is still not after {:?} when handled {MAX_TIMEOUTS} times",
            id.0, self.now
        );
    }

    fn arm(&mut self, id: HostId, deadline: Option<Time>) {
        let entry = &mut self.hosts[id.index()];
        if entry.armed == deadline {
            return;
        }
        entry.armed = deadline;
        match deadline {
            Some(time) => self.events.schedule(entry.wake, time),
            None => self.events.cancel(entry.wake),
        }
    }

    fn drain(&mut self, id: HostId) {
        let mut sent = 0;
        while let Some(envelope) = self.hosts[id.index()].host.poll_transmit(self.now, &mut self.outgoing) {
            self.send(id, envelope);
            sent += 1;
            assert!(sent < MAX_BURST, "host {}: {sent} packets at {:?} and no end", id.0, self.now);
        }
    }

    /// Sends the outgoing packet, whose buffer is empty afterwards.
    fn send(&mut self, host: HostId, envelope: Envelope) {
        let Some(route) = self.find_route(host, (envelope.source, envelope.destination)) else {
            self.unroutable += 1;
            for event in [PacketEvent::Sent, PacketEvent::Unroutable] {
                self.observe_sent(host, event, None, envelope);
            }
            return self.outgoing.clear();
        };
        let Route { source, ref links, .. } = self.routes[route.0 as usize];
        let first = links[0];
        self.observe_sent(host, PacketEvent::Sent, Some(source), envelope);
        let packet = Packet::new(envelope.wire_bytes(self.outgoing.len()), source, route);
        let packet = self.pool.insert_from(packet, envelope, &mut self.outgoing);
        self.enter(first, packet);
    }

    fn find_route(&mut self, host: HostId, ends: (Address, Address)) -> Option<RouteId> {
        let used = &mut self.hosts[host.index()].used_routes;
        if let Some((_, route)) = used.iter().find(|(known, _)| *known == ends) {
            return Some(*route);
        }
        let route = *self.route_index.get(&ends)?;
        if used.len() < USED_ROUTES {
            used.push((ends, route));
        }
        Some(route)
    }

    fn enter(&mut self, link: LinkId, packet: PacketId) {
        if self.ahead.is_some() {
            return self.enter_ahead(link, packet);
        }
        self.follow(link, PacketEvent::Sent, packet);
        let entry = &mut self.links[link.index()];
        match entry.link.offer(self.now, packet, &mut self.pool) {
            Offer::Due(time) => {
                self.events.schedule(entry.departure, time);
                if let Some(other) = entry.shares_with {
                    self.links[other.index()].link.set_medium_busy(true);
                }
            }
            Offer::Waits => {}
            Offer::Dropped(drop) => self.discard(link, drop, packet),
        }
        self.discard_queue_drops(link);
    }

    /// Discards the packets that the queue of a link dropped.
    #[inline]
    fn discard_queue_drops(&mut self, link: LinkId) {
        while let Some((packet, drop)) = self.links[link.index()].link.take_queue_drop() {
            self.discard(link, drop, packet);
        }
    }

    fn discard(&mut self, link: LinkId, drop: Drop, packet: PacketId) {
        let event = match drop {
            Drop::Loss => PacketEvent::DroppedLoss,
            Drop::Policer => PacketEvent::DroppedPolicer,
            Drop::Queue | Drop::Management => PacketEvent::DroppedQueue,
            Drop::Outage => PacketEvent::DroppedOutage,
        };
        self.observe(link, event, packet);
        self.pool.remove(packet);
    }

    fn link_departure(&mut self, id: LinkId) {
        let entry = &mut self.links[id.index()];
        let shares_with = entry.shares_with;
        let departure = entry.link.depart(self.now, &mut self.pool);
        if let Some(time) = departure.next {
            self.events.schedule(entry.departure, time);
        }
        if let Some(time) = departure.head {
            self.events.schedule(entry.arrival, time);
        }
        if let Some((packet, drop)) = departure.dropped {
            self.discard(id, drop, packet);
        }
        self.discard_queue_drops(id);
        if let Some(other) = shares_with {
            self.pass_medium(id, other);
        }
    }

    fn link_arrival(&mut self, id: LinkId) {
        let entry = &mut self.links[id.index()];
        let (packet, head) = entry.link.arrive(&self.pool, self.handled);
        if let Some(time) = head {
            self.events.schedule(entry.arrival, time);
        }
        self.hash(id, packet);
        self.follow(id, PacketEvent::Delivered, packet);
        let moving = self.pool.get_mut(packet);
        moving.hop += 1;
        let route = &self.routes[moving.route.0 as usize];
        match (route.links.get(moving.hop as usize), route.sink) {
            (Some(&next), _) => self.enter(next, packet),
            (None, Sink::Host(host)) => self.deliver(host, packet),
            (None, Sink::Nowhere) => self.pool.remove(packet),
            (None, Sink::Gone) => {
                self.observe(id, PacketEvent::DroppedOutage, packet);
                self.pool.remove(packet);
            }
        }
    }

    fn deliver(&mut self, id: HostId, packet: PacketId) {
        self.observe_delivered(id, packet);
        let content = self.pool.content(packet);
        let host = &mut self.hosts[id.index()].host;
        if let (Some(envelope), Some(data)) = (content.envelope, content.written.described()) {
            host.handle_data_packet(self.now, envelope, data);
        } else if let Some(datagram) = content.datagram(&mut self.unabridged) {
            host.handle_datagram(self.now, datagram);
        }
        self.pool.remove(packet);
        self.service(id);
    }

    fn traffic_send(&mut self, index: usize) {
        let entry = &mut self.traffic[index];
        let route = entry.route;
        let sizes = entry.source.sizes();
        entry.next = entry.source.after(self.now);
        entry.sent_at = Some(self.now);
        if let Some(time) = entry.next {
            self.events.schedule(entry.slot, time);
        }
        let Route { source, ref links, .. } = self.routes[route.0 as usize];
        let first = links[0];
        for wire in sizes {
            let packet = self.pool.insert(Packet::new(wire, source, route));
            self.enter(first, packet);
        }
    }

    fn link_change(&mut self, index: usize) {
        let entry = &mut self.schedules[index];
        while let Some(change) = entry.schedule.pop(self.now) {
            self.links[entry.link.index()].link.apply(&change);
        }
        if let Some(time) = entry.schedule.next_time() {
            self.events.schedule(entry.slot, time);
        }
    }

    fn follow(&mut self, link: LinkId, event: PacketEvent, packet: PacketId) {
        if self.tap_follows_links {
            self.observe(link, event, packet);
        }
    }

    fn observe(&mut self, id: LinkId, event: PacketEvent, packet: PacketId) {
        let Some(tap) = &mut self.tap else { return };
        let place = Place::Link { id, name: self.links[id.index()].link.name() };
        let view = self.pool.view(packet, &mut self.unabridged, self.tap_reads_bytes);
        tap.packet(self.now, place, event, view);
    }

    fn observe_delivered(&mut self, host: HostId, packet: PacketId) {
        let Some(tap) = &mut self.tap else { return };
        let view = self.pool.view(packet, &mut self.unabridged, self.tap_reads_bytes);
        tap.packet(self.now, Place::Host(host), PacketEvent::Delivered, view);
    }

    /// Reports the outgoing packet to the tap.
    fn observe_sent(
        &mut self,
        host: HostId,
        event: PacketEvent,
        source: Option<SourceId>,
        envelope: Envelope,
    ) {
        let Some(tap) = &mut self.tap else { return };
        let wire = envelope.wire_bytes(self.outgoing.len());
        let (payload, data) = match self.outgoing.described() {
            Some(data) if self.tap_reads_bytes => (self.unabridged.encode(data), None),
            data => (&self.outgoing[..], data),
        };
        let view = PacketView { source, wire, datagram: Some(envelope.around(payload)), data };
        tap.packet(self.now, Place::Host(host), event, view);
    }

    fn hash(&mut self, link: LinkId, packet: PacketId) {
        let Some(digest) = &mut self.digest else { return };
        let payload = self.pool.content(packet).payload(&mut self.unabridged);
        let packet = self.pool.get(packet);
        digest.update(self.now.as_nanos().to_le_bytes());
        digest.update(link.0.to_le_bytes());
        digest.update(packet.source.0.to_le_bytes());
        digest.update(packet.wire.get().to_le_bytes());
        digest.update(payload);
    }
}

/// Observation of links, hosts and counters.
impl World {
    /// Returns the current time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the seeds of the run, for hosts that need randomness of their own.
    pub fn seeds(&self) -> Seeds {
        self.seeds
    }

    /// Returns the time of the next event.
    pub fn next_event(&self) -> Option<Time> {
        self.events.next_time()
    }

    /// Returns the number of pending events: at most two per link and one per host, traffic source and schedule.
    pub fn pending_events(&self) -> usize {
        self.events.len()
    }

    /// Returns the number of handled events.
    pub fn handled_events(&self) -> u64 {
        self.handled
    }

    /// Returns the number of packets on links.
    pub fn packets_on_the_way(&self) -> usize {
        let background = self.links.iter().map(|entry| entry.link.background_ahead());
        self.pool.len() + background.sum::<usize>()
    }

    /// Returns the number of packets that were sent without a route.
    pub fn unroutable(&self) -> u64 {
        self.unroutable
    }

    /// Returns a host.
    ///
    /// # Panics
    /// Panics if the host is not a `T`.
    pub fn host<T: Host>(&self, id: HostId) -> &T {
        let host: &dyn Any = &*self.hosts[id.index()].host;
        host.downcast_ref().expect("the host is of the type asked for")
    }

    /// Returns a host for changes. Call [`World::wake_host`] afterwards, or use [`World::with_host`].
    ///
    /// # Panics
    /// Panics if the host is not a `T`.
    pub fn host_mut<T: Host>(&mut self, id: HostId) -> &mut T {
        let host: &mut dyn Any = &mut *self.hosts[id.index()].host;
        host.downcast_mut().expect("the host is of the type asked for")
    }

    /// Returns a link.
    pub fn link(&self, id: LinkId) -> &Link {
        &self.links[id.index()].link
    }

    /// Returns all links.
    pub fn links(&self) -> impl Iterator<Item = (LinkId, &Link)> {
        self.links.iter().enumerate().map(|(index, entry)| (LinkId(index as u32), &entry.link))
    }

    /// Returns the link with this name.
    pub fn find_link(&self, name: &str) -> Option<LinkId> {
        self.link_names.get(name).copied()
    }

    /// Returns the source with this name.
    pub fn find_source(&self, name: &str) -> Option<SourceId> {
        self.source_names.get(name).copied()
    }

    /// Returns the name of a source.
    pub fn source_name(&self, id: SourceId) -> &str {
        &self.sources[id.index()]
    }

    /// Sets the tap, in place of an earlier one.
    pub fn set_tap(&mut self, tap: Box<dyn Tap>) {
        self.tap_follows_links = tap.follows_links();
        self.tap_reads_bytes = tap.reads_bytes();
        self.tap = Some(tap);
    }

    /// Returns the tap, if there is one and it is a `T`.
    pub fn tap_mut<T: Tap>(&mut self) -> Option<&mut T> {
        let tap: &mut dyn Any = self.tap.as_deref_mut()?;
        tap.downcast_mut()
    }

    /// Removes the tap, if there is one and it is a `T`.
    pub fn take_tap<T: Tap>(&mut self) -> Option<T> {
        self.tap_mut::<T>()?;
        self.tap_follows_links = false;
        let tap: Box<dyn Any> = self.tap.take()?;
        tap.downcast().ok().map(|tap| *tap)
    }

    /// Starts a hash over all arrivals at the far ends of links: time, link, source, size and bytes.
    pub fn enable_digest(&mut self) {
        self.digest = Some(Sha256::new());
    }

    /// Returns the SHA-256 of all arrivals since the digest was enabled. Equal digests mean equal runs.
    pub fn digest(&self) -> Option<[u8; 32]> {
        self.digest.clone().map(|digest| digest.finalize().into())
    }
}

#[cfg(test)]
mod tests;

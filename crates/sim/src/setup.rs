//! Construction of a world.

use std::collections::BTreeMap;

use anabranch_core::PacketBuffer;
use anabranch_core::time::Time;

use crate::content::RestoredPacket;
use crate::datagram::Address;
use crate::dynamics::LinkChange;
use crate::error::ConfigError;
use crate::event::{Class, EventQueue};
use crate::host::Host;
use crate::link::{Link, LinkConfig};
use crate::packet::Pool;
use crate::rng::Seeds;
use crate::route::{HostId, LinkId, Route, RouteId, Sink, SourceId};
use crate::schedule::Schedule;
use crate::traffic::{Source, TrafficConfig};
use crate::world::{HostEntry, LinkEntry, ScheduleEntry, Target, TrafficEntry, World};

/// Construction. Parts can be added during a run, unless links are [computed ahead](World::compute_ahead): then all of these
/// methods panic.
impl World {
    /// Returns an empty world at time zero.
    pub fn new(seeds: Seeds) -> Self {
        World {
            now: Time::ZERO,
            seeds,
            events: EventQueue::new(),
            handled: 0,
            hosts: Vec::new(),
            addresses: BTreeMap::new(),
            links: Vec::new(),
            link_names: BTreeMap::new(),
            sources: Vec::new(),
            source_names: BTreeMap::new(),
            routes: Vec::new(),
            route_index: BTreeMap::new(),
            traffic: Vec::new(),
            schedules: Vec::new(),
            handovers: Vec::new(),
            pool: Pool::default(),
            outgoing: PacketBuffer::new(),
            unabridged: RestoredPacket::default(),
            tap: None,
            tap_follows_links: false,
            tap_reads_bytes: false,
            digest: None,
            unroutable: 0,
            ahead: None,
        }
    }

    /// Adds a host with the addresses of its interfaces, and polls it at the current time.
    pub fn add_host(&mut self, host: Box<dyn Host>, addresses: &[Address]) -> Result<HostId, ConfigError> {
        self.assert_not_ahead();
        for (index, address) in addresses.iter().enumerate() {
            if self.addresses.contains_key(address) || addresses[..index].contains(address) {
                return Err(ConfigError::DuplicateAddress(*address));
            }
        }
        let id = HostId(self.hosts.len() as u32);
        self.addresses.extend(addresses.iter().map(|&address| (address, id)));
        let wake = self.events.register(Class::Timer, Target::Wake(id));
        self.events.schedule(wake, self.now);
        self.hosts.push(HostEntry { host, wake, armed: Some(self.now), used_routes: Vec::new() });
        Ok(id)
    }

    /// Adds one direction of a link.
    pub fn add_link(&mut self, config: LinkConfig) -> Result<LinkId, ConfigError> {
        self.assert_not_ahead();
        if self.link_names.contains_key(&config.name) {
            return Err(ConfigError::DuplicateName(config.name));
        }
        let schedule = config.extend(Schedule::default(), self.seeds);
        let link = Link::new(config, self.seeds)?;
        let id = LinkId(self.links.len() as u32);
        self.link_names.insert(link.name().to_owned(), id);
        let departure = self.events.register(Class::Departure, Target::Departure(id));
        let arrival = self.events.register(Class::Arrival, Target::Arrival(id));
        self.links.push(LinkEntry { link, departure, arrival, background: Vec::new(), shares_with: None });
        if schedule.next_time().is_some() {
            self.push_schedule(id, schedule);
        }
        Ok(id)
    }

    /// Adds a route: the links that a packet from one address to another passes. Routes may share links.
    ///
    /// `name` is the source of these packets, such as `flow-1`; routes with the same name are one source. A route without a name is
    /// a source of its own with a name from its addresses, such as `10.0.0.1>10.0.0.2`.
    pub fn add_route(
        &mut self,
        source: Address,
        destination: Address,
        links: &[LinkId],
        name: Option<&str>,
    ) -> Result<SourceId, ConfigError> {
        self.assert_not_ahead();
        let sink = *self.addresses.get(&destination).ok_or(ConfigError::UnknownAddress(destination))?;
        self.addresses.get(&source).ok_or(ConfigError::UnknownAddress(source))?;
        if source.is_ipv4() != destination.is_ipv4() {
            return Err(ConfigError::MixedFamilies(source, destination));
        }
        if self.route_index.contains_key(&(source, destination)) {
            return Err(ConfigError::DuplicateRoute(source, destination));
        }
        let name = name.map_or_else(|| format!("{source}>{destination}"), str::to_owned);
        if self.is_traffic(&name) {
            return Err(ConfigError::DuplicateName(name));
        }
        let (route, source_id) = self.make_route(name, links, Sink::Host(sink))?;
        self.route_index.insert((source, destination), route);
        Ok(source_id)
    }

    /// Adds a source of background traffic over the given links.
    pub fn add_traffic(&mut self, config: TrafficConfig, links: &[LinkId]) -> Result<SourceId, ConfigError> {
        self.assert_not_ahead();
        if self.source_names.contains_key(&config.name) {
            return Err(ConfigError::DuplicateName(config.name));
        }
        let name = config.name.clone();
        let mut source = Source::new(config, self.seeds.stream(&["traffic", &name]))?;
        let (route, id) = self.make_route(name, links, Sink::Nowhere)?;
        let slot = self.events.register(Class::Traffic, Target::Traffic(self.traffic.len()));
        let next = source.first().map(|time| time.max(self.now));
        if let Some(time) = next {
            self.events.schedule(slot, time);
        }
        self.traffic.push(TrafficEntry { source, route, slot, next, sent_at: None });
        Ok(id)
    }

    /// Schedules changes of a link. Changes at the same time keep the order of the list, and schedules of a link the order in which
    /// they were added.
    pub fn add_schedule(
        &mut self,
        link: LinkId,
        changes: Vec<(Time, LinkChange)>,
    ) -> Result<(), ConfigError> {
        self.assert_not_ahead();
        changes.iter().try_for_each(|(_, change)| change.check())?;
        self.push_schedule(link, Schedule::new(changes));
        Ok(())
    }

    fn push_schedule(&mut self, link: LinkId, schedule: Schedule) {
        let slot = self.events.register(Class::Change, Target::Change(self.schedules.len()));
        if let Some(time) = schedule.next_time() {
            self.events.schedule(slot, time.max(self.now));
        }
        self.schedules.push(ScheduleEntry { link, schedule, slot });
    }

    /// Applies a change to a link now.
    pub fn change_link(&mut self, link: LinkId, change: &LinkChange) -> Result<(), ConfigError> {
        self.assert_not_ahead();
        change.check()?;
        self.links[link.index()].link.apply(change);
        Ok(())
    }

    fn is_traffic(&self, name: &str) -> bool {
        let Some(id) = self.source_names.get(name) else { return false };
        self.routes.iter().any(|route| route.source == *id && route.sink == Sink::Nowhere)
    }

    fn make_route(
        &mut self,
        name: String,
        links: &[LinkId],
        sink: Sink,
    ) -> Result<(RouteId, SourceId), ConfigError> {
        if links.is_empty() {
            return Err(ConfigError::NoLinks(name));
        }
        let source = self.name_source(name);
        for link in links {
            self.links[link.index()].link.attach(source, &self.sources[source.index()], self.seeds);
        }
        let route = RouteId(self.routes.len() as u32);
        self.routes.push(Route { source, links: links.to_vec(), sink });
        Ok((route, source))
    }

    fn name_source(&mut self, name: String) -> SourceId {
        if let Some(&known) = self.source_names.get(&name) {
            return known;
        }
        let id = SourceId(self.sources.len() as u32);
        self.sources.push(name.clone());
        self.source_names.insert(name, id);
        id
    }
}

//! Handovers: links are down for a while, and hosts behind them get other addresses.

use anabranch_core::time::Time;

use super::{Target, World};
use crate::datagram::Address;
use crate::dynamics::LinkChange;
use crate::error::ConfigError;
use crate::event::{Class, Slot};
use crate::handover::HandoverTimes;
use crate::route::{HostId, LinkId, Route, RouteId, Sink};

/// Host that moves: the addresses that it has in turn, its own first.
#[derive(Clone, Debug)]
pub struct Station {
    /// Host that has the first address.
    pub host: HostId,
    /// Addresses in the order of their use. After the last one, the first is used again.
    pub addresses: Vec<Address>,
}

#[derive(Clone)]
pub(crate) struct HandoverEntry {
    links: Vec<LinkId>,
    times: HandoverTimes,
    /// End of the handover that takes place.
    ends: Option<Time>,
    /// Number of handovers that have ended.
    ended: usize,
    /// Start and end of the next handover.
    next: Option<(Time, Time)>,
    stations: Vec<Station>,
    slot: Slot,
}

impl World {
    /// Schedules handovers. During each, the links are down. At its end, every station has its next address in place of the current
    /// one, with the same routes. Packets from and to the earlier address are discarded.
    ///
    /// # Errors
    /// Returns an error if a handover does not end before the next one, the first address of a station belongs to another host, or
    /// a further one to any host.
    pub fn add_handovers(
        &mut self,
        links: &[LinkId],
        mut times: HandoverTimes,
        stations: Vec<Station>,
    ) -> Result<(), ConfigError> {
        self.assert_not_ahead();
        times.check()?;
        for Station { host, addresses } in &stations {
            for (index, address) in addresses.iter().enumerate() {
                match self.addresses.get(address) {
                    None if index == 0 => return Err(ConfigError::UnknownAddress(*address)),
                    Some(owner) if index > 0 || owner != host => {
                        return Err(ConfigError::DuplicateAddress(*address));
                    }
                    _ => {}
                }
            }
        }
        let slot = self.events.register(Class::Change, Target::Handover(self.handovers.len()));
        let next = times.next();
        if let Some((start, _)) = next {
            self.events.schedule(slot, start.max(self.now));
        }
        let links = links.to_vec();
        self.handovers.push(HandoverEntry { links, times, ends: None, ended: 0, next, stations, slot });
        Ok(())
    }

    /// Starts or ends a handover.
    pub(super) fn handover(&mut self, index: usize) {
        let entry = &mut self.handovers[index];
        let change = if entry.ends.is_none() { LinkChange::Down } else { LinkChange::Up };
        for link in &entry.links {
            self.links[link.index()].link.apply(&change);
        }
        let due = match entry.ends.take() {
            None => {
                entry.ends = entry.next.map(|(_, end)| end);
                entry.ends
            }
            Some(_) => {
                entry.next = entry.times.next();
                entry.ended += 1;
                entry.next.map(|(start, _)| start)
            }
        };
        if let Some(due) = due {
            self.events.schedule(entry.slot, due.max(self.now));
        }
        if change == LinkChange::Up {
            self.move_stations(index);
        }
    }

    fn move_stations(&mut self, index: usize) {
        let HandoverEntry { stations, ended, .. } = &self.handovers[index];
        let moves = |station: &Station| {
            let address = |number: usize| station.addresses[number % station.addresses.len()];
            (station.host, address(*ended - 1), address(*ended))
        };
        let moves: Vec<(HostId, Address, Address)> = stations.iter().map(moves).collect();
        for (host, old, new) in moves {
            self.readdress(host, old, new);
        }
    }

    /// Gives a host another address in place of one of its own.
    fn readdress(&mut self, host: HostId, old: Address, new: Address) {
        if old == new {
            return;
        }
        self.addresses.remove(&old);
        self.addresses.insert(new, host);
        let ends: Vec<(Address, Address)> =
            self.route_index.keys().filter(|ends| ends.0 == old || ends.1 == old).copied().collect();
        for ends in ends {
            let Some(id) = self.route_index.remove(&ends) else { continue };
            let route = &mut self.routes[id.0 as usize];
            let (source, links) = (route.source, route.links.clone());
            let sink = std::mem::replace(&mut route.sink, Sink::Gone);
            let renamed = [ends.0, ends.1].map(|end| if end == old { new } else { end });
            self.route_index.insert((renamed[0], renamed[1]), RouteId(self.routes.len() as u32));
            self.routes.push(Route { source, links, sink });
        }
        for entry in &mut self.hosts {
            entry.used_routes.retain(|(ends, _)| ends.0 != old && ends.1 != old);
        }
    }
}

//! Clients of the relay. As at a NAT, each client has its own mapping to the target while it is active.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anabranch_core::FairPool;
use anabranch_core::time::{Span, Time};

/// Client and its mapping.
pub(crate) struct Client<W> {
    pub(crate) address: SocketAddr,
    pub(crate) way: W,
    used: Time,
}

/// Bounded set of clients, by address and by number. Numbers are not reused, so a datagram in flight cannot reach a later client.
/// Each source has a share of the places.
pub(crate) struct Clients<W> {
    by_address: BTreeMap<SocketAddr, u32>,
    by_number: BTreeMap<u32, Client<W>>,
    next: u32,
    places: FairPool<u32>,
    idle: Span,
}

impl<W> Clients<W> {
    pub(crate) fn new(most: usize, idle: Span) -> Self {
        let places = FairPool::new(most);
        Clients { by_address: BTreeMap::new(), by_number: BTreeMap::new(), next: 0, places, idle }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Returns the number of a client and marks it as active.
    pub(crate) fn find(&mut self, address: SocketAddr, now: Time) -> Option<u32> {
        let number = *self.by_address.get(&address)?;
        self.places.advance(&number);
        self.touch(number, now);
        Some(number)
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Client<W>> {
        self.by_number.get(&number)
    }

    pub(crate) fn touch(&mut self, number: u32, now: Time) {
        if let Some(client) = self.by_number.get_mut(&number) {
            client.used = now;
        }
    }

    /// Adds a new client. If the relay is full, it replaces a client that was idle for long enough, or else one of the source with
    /// the most clients. Returns `None` if neither exists.
    pub(crate) fn add<E>(
        &mut self,
        address: SocketAddr,
        now: Time,
        make: impl FnOnce(u32) -> Result<W, E>,
    ) -> Option<Result<u32, E>> {
        let number = self.next;
        let source = address.ip().into();
        let place = self.places.insert_if_due(number, source).or_else(|_| {
            self.expire(now);
            self.places.insert_if_due(number, source)
        });
        if let Some(evicted) = place.ok()? {
            self.forget(evicted);
        }
        let way = match make(number) {
            Ok(way) => way,
            Err(error) => {
                self.places.remove(&number);
                return Some(Err(error));
            }
        };
        self.next = self.next.wrapping_add(1);
        self.by_address.insert(address, number);
        self.by_number.insert(number, Client { address, way, used: now });
        Some(Ok(number))
    }

    /// Removes clients that have been idle.
    pub(crate) fn expire(&mut self, now: Time) {
        let idle = self.idle;
        let is_idle = |client: &Client<W>| now.since(client.used) >= idle;
        let expired: Vec<u32> =
            self.by_number.iter().filter(|(_, client)| is_idle(client)).map(|(number, _)| *number).collect();
        expired.into_iter().for_each(|number| self.forget(number));
    }

    fn forget(&mut self, number: u32) {
        self.places.remove(&number);
        if let Some(client) = self.by_number.remove(&number) {
            self.by_address.remove(&client.address);
        }
    }

    /// Removes and returns all clients.
    pub(crate) fn take(&mut self) -> BTreeMap<u32, Client<W>> {
        self.by_address.clear();
        self.by_number.keys().for_each(|number| {
            self.places.remove(number);
        });
        std::mem::take(&mut self.by_number)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Client<W>)> {
        self.by_number.iter_mut().map(|(number, client)| (*number, client))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Client<W>> {
        self.by_number.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn at(secs: u64) -> Time {
        Time::ZERO + Span::from_secs(secs)
    }

    fn add(clients: &mut Clients<()>, port: u16, now: Time) -> Option<u32> {
        clients.add(address(port), now, |_| Ok::<_, ()>(())).map(|added| added.expect("nothing fails"))
    }

    fn clients(most: usize) -> Clients<()> {
        Clients::new(most, Span::from_secs(10))
    }

    #[test]
    fn a_client_is_remembered_while_it_is_used() {
        let mut clients = clients(4);
        let (one, other) = (add(&mut clients, 1, at(0)), add(&mut clients, 2, at(0)));
        assert_ne!(one, other);
        assert_eq!(clients.find(address(1), at(9)), one);
        clients.expire(at(10));
        assert_eq!((clients.find(address(1), at(10)), clients.find(address(2), at(10))), (one, None));
        clients.expire(at(20));
        assert_eq!(clients.len(), 0);
    }

    #[test]
    fn there_is_no_room_until_a_client_is_idle() {
        let mut clients = clients(2);
        add(&mut clients, 1, at(0));
        add(&mut clients, 2, at(5));
        assert_eq!(add(&mut clients, 3, at(9)), None);
        assert!(add(&mut clients, 3, at(10)).is_some());
        assert_eq!(clients.find(address(1), at(10)), None);
        assert_eq!(clients.len(), 2);
    }

    #[test]
    fn flood_from_one_source_leaves_others_their_places() {
        let mut clients = clients(8);
        for port in 0..1000 {
            add(&mut clients, port, at(0));
        }
        assert_eq!(clients.len(), 8);
        let other = |host| SocketAddr::from(([192, 0, 2, host], 5000));
        for host in 2..=5 {
            let added = clients.add(other(host), at(1), |_| Ok::<_, ()>(()));
            assert!(matches!(added, Some(Ok(_))), "{host}");
            add(&mut clients, 2000 + u16::from(host), at(1));
        }
        for host in 2..=5 {
            assert!(clients.find(other(host), at(2)).is_some(), "{host}");
        }
        assert_eq!((clients.len(), clients.places.len(), clients.by_address.len()), (8, 8, 8));
    }

    #[test]
    fn a_client_that_comes_back_has_another_number() {
        let mut clients = clients(1);
        let before = add(&mut clients, 1, at(0));
        clients.expire(at(60));
        assert_ne!(add(&mut clients, 1, at(60)), before);
    }

    #[test]
    fn failed_socket_of_a_client_leaves_no_state() {
        let mut clients = clients(1);
        assert_eq!(clients.add(address(1), at(0), |_| Err("no")), Some(Err("no")));
        assert_eq!((clients.len(), clients.find(address(1), at(0))), (0, None));
    }
}

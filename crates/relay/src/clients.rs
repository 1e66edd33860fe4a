//! Who uses the relay: as at a NAT, each client has a way of its own to the target for as long as it is used.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anabranch_core::time::{Span, Time};

/// A client and its way, of whatever kind that is.
pub(crate) struct Client<W> {
    pub(crate) address: SocketAddr,
    pub(crate) way: W,
    used: Time,
}

/// A bounded number of clients, by address and by number. Numbers are not used again, so that a datagram that is
/// still on its way does not reach a client that came after its own.
pub(crate) struct Clients<W> {
    by_address: BTreeMap<SocketAddr, u32>,
    by_number: BTreeMap<u32, Client<W>>,
    next: u32,
    most: usize,
    idle: Span,
}

impl<W> Clients<W> {
    pub(crate) fn new(most: usize, idle: Span) -> Self {
        Clients { by_address: BTreeMap::new(), by_number: BTreeMap::new(), next: 0, most, idle }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// The number of a client that uses its way now.
    pub(crate) fn find(&mut self, address: SocketAddr, now: Time) -> Option<u32> {
        let number = *self.by_address.get(&address)?;
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

    /// Adds a client that is not there yet, if there is room or if some other has been idle long enough.
    pub(crate) fn add<E>(
        &mut self,
        address: SocketAddr,
        now: Time,
        make: impl FnOnce(u32) -> Result<W, E>,
    ) -> Option<Result<u32, E>> {
        if self.len() >= self.most {
            self.expire(now);
        }
        if self.len() >= self.most {
            return None;
        }
        let number = self.next;
        let way = match make(number) {
            Ok(way) => way,
            Err(error) => return Some(Err(error)),
        };
        self.next = self.next.wrapping_add(1);
        self.by_address.insert(address, number);
        self.by_number.insert(number, Client { address, way, used: now });
        Some(Ok(number))
    }

    /// Forgets clients that have been idle.
    pub(crate) fn expire(&mut self, now: Time) {
        let idle = self.idle;
        self.by_number.retain(|_, client| now.since(client.used) < idle);
        let left = &self.by_number;
        self.by_address.retain(|_, number| left.contains_key(number));
    }

    /// Forgets all clients, which the caller may still need.
    pub(crate) fn take(&mut self) -> BTreeMap<u32, Client<W>> {
        self.by_address.clear();
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
    fn there_is_no_room_for_more_until_somebody_is_idle() {
        let mut clients = clients(2);
        add(&mut clients, 1, at(0));
        add(&mut clients, 2, at(5));
        assert_eq!(add(&mut clients, 3, at(9)), None);
        assert!(add(&mut clients, 3, at(10)).is_some());
        assert_eq!(clients.find(address(1), at(10)), None);
        assert_eq!(clients.len(), 2);
    }

    #[test]
    fn a_client_that_comes_back_has_another_number() {
        let mut clients = clients(1);
        let before = add(&mut clients, 1, at(0));
        clients.expire(at(60));
        assert_ne!(add(&mut clients, 1, at(60)), before);
    }

    #[test]
    fn a_way_that_cannot_be_made_leaves_nothing_behind() {
        let mut clients = clients(1);
        assert_eq!(clients.add(address(1), at(0), |_| Err("no")), Some(Err("no")));
        assert_eq!((clients.len(), clients.find(address(1), at(0))), (0, None));
    }
}

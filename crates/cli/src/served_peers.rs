//! Bounded set of the peers that a server serves at the same time.

use std::collections::BTreeMap;

use anabranch_net::{FairPool, PoolFull, Source};

/// Peers that a server serves, shared fairly among sources by a [`FairPool`]. In a full set, a new peer evicts a peer of the source
/// with the most peers.
pub(crate) struct ServedPeers<T> {
    places: FairPool<u64>,
    /// Peers by the number of their admission, the oldest first.
    present: BTreeMap<u64, T>,
    next: u64,
}

impl<T> ServedPeers<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        ServedPeers { places: FairPool::new(capacity), present: BTreeMap::new(), next: 0 }
    }

    /// Adds a member. Returns the number of the new member, and the member that is evicted for it.
    pub(crate) fn enter(&mut self, member: T, source: Source) -> (u64, Option<T>) {
        let evicted = self.places.insert(self.next, source);
        self.admit(member, evicted)
    }

    /// Adds a member as [`enter`](Self::enter) does, unless that would evict a member of the same source or of a source with as few
    /// members.
    ///
    /// # Errors
    /// Returns [`PoolFull`] if it does not add the peer.
    pub(crate) fn enter_if_due(&mut self, member: T, source: Source) -> Result<(u64, Option<T>), PoolFull> {
        let evicted = self.places.insert_if_due(self.next, source)?;
        Ok(self.admit(member, evicted))
    }

    fn admit(&mut self, member: T, evicted: Option<u64>) -> (u64, Option<T>) {
        let number = self.next;
        self.next += 1;
        self.present.insert(number, member);
        (number, evicted.and_then(|evicted| self.present.remove(&evicted)))
    }

    /// Marks a peer as advanced. Peers of the same source that have not advanced are evicted before it.
    pub(crate) fn advance(&mut self, number: u64) {
        self.places.advance(&number);
    }

    /// Removes a member. Returns `false` if it was evicted or removed before.
    pub(crate) fn leave(&mut self, number: u64) -> bool {
        self.places.remove(&number);
        self.present.remove(&number).is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const MOST: usize = 8;

    fn source(number: u8) -> Source {
        IpAddr::from([192, 0, 2, number]).into()
    }

    #[test]
    fn one_too_many_ends_the_oldest() {
        let mut members = ServedPeers::new(MOST);
        let numbers: Vec<u64> = (0..MOST)
            .map(|name| {
                let (number, ended) = members.enter(name, source(1));
                assert_eq!(ended, None);
                number
            })
            .collect();
        assert_eq!(members.enter(100, source(1)).1, Some(0));
        assert!(!members.leave(numbers[0]), "the oldest member was evicted");
        assert!(members.leave(numbers[2]));
        assert_eq!(members.enter(101, source(1)).1, None, "there is room again");
        assert_eq!(members.enter(102, source(1)).1, Some(1));
        assert_eq!(members.enter(103, source(1)).1, Some(3), "a removed member is not evicted");
    }

    #[test]
    fn flood_from_one_source_ends_no_member_of_another() {
        let mut members = ServedPeers::new(MOST);
        let (person, _) = members.enter(0, source(1));
        for name in 1..1000 {
            let ended = members.enter(name, source(9)).1;
            assert!(ended != Some(0) && ended.is_some() == (name >= MOST));
        }
        assert!(members.leave(person));
    }

    #[test]
    fn silent_flood_ends_no_member_of_its_source_that_advanced() {
        let mut members = ServedPeers::new(MOST);
        let (person, _) = members.enter(0, source(9));
        members.advance(person);
        (1..1000).for_each(|name| assert_ne!(members.enter(name, source(9)).1, Some(0)));
        assert!(members.leave(person));
    }

    #[test]
    fn flood_from_one_source_leaves_a_place_for_another() {
        let mut members = ServedPeers::new(MOST);
        let entered: Vec<_> = (0..2 * MOST).map(|name| members.enter_if_due(name, source(9))).collect();
        assert!(entered[..MOST].iter().all(Result::is_ok));
        assert!(entered[MOST..].iter().all(|entered| *entered == Err(PoolFull)));
        let (number, ended) = members.enter_if_due(1000, source(1)).expect("a place");
        assert_eq!(ended, Some(0), "the oldest of the flood ends");
        assert_eq!(members.enter_if_due(1001, source(9)), Err(PoolFull));
        members.leave(number);
        assert!(matches!(members.enter_if_due(1002, source(9)), Ok((_, None))));
    }
}

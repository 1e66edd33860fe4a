//! Clients of `anabranch bench -s` whose tests run at the same time.

use std::collections::BTreeMap;

use anabranch_net::{FairPool, NoPlace, Source};

/// Maximum number of tests at a time.
pub(super) const MOST_CLIENTS: usize = 64;

/// A bounded number of clients with a share for each source. In a full server a new client takes the place of one of the source with
/// the most clients.
pub(super) struct Clients<T> {
    places: FairPool<u64>,
    present: BTreeMap<u64, T>,
    next: u64,
}

impl<T> Default for Clients<T> {
    fn default() -> Self {
        Clients { places: FairPool::new(MOST_CLIENTS), present: BTreeMap::new(), next: 0 }
    }
}

impl<T> Clients<T> {
    /// Adds a client. Returns its number, and the client that has to end for it.
    ///
    /// # Errors
    /// [`NoPlace`] if no source has more clients than its own would have.
    pub(super) fn enter(&mut self, client: T, source: Source) -> Result<(u64, Option<T>), NoPlace> {
        let number = self.next;
        let evicted = self.places.insert_if_due(number, source)?;
        self.next += 1;
        self.present.insert(number, client);
        Ok((number, evicted.and_then(|evicted| self.present.remove(&evicted))))
    }

    /// Removes a client whose test has ended.
    pub(super) fn leave(&mut self, number: u64) {
        self.places.remove(&number);
        self.present.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn source(number: u8) -> Source {
        IpAddr::from([192, 0, 2, number]).into()
    }

    #[test]
    fn flood_from_one_source_leaves_a_place_for_another() {
        let mut clients = Clients::default();
        let entered: Vec<_> = (0..2 * MOST_CLIENTS).map(|client| clients.enter(client, source(9))).collect();
        assert!(entered[..MOST_CLIENTS].iter().all(Result::is_ok));
        assert!(entered[MOST_CLIENTS..].iter().all(|entered| *entered == Err(NoPlace)));
        let (number, ended) = clients.enter(1000, source(1)).expect("a place");
        assert_eq!(ended, Some(0), "the oldest of the flood ends");
        assert_eq!(clients.enter(1001, source(9)), Err(NoPlace));
        clients.leave(number);
        assert!(matches!(clients.enter(1002, source(9)), Ok((_, None))));
    }
}

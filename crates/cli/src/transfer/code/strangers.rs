//! Associations that have not proved the code.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anabranch_net::{FairPool, Source};

/// Maximum number of associations that may try to prove the code at a time.
pub(super) const MOST_STRANGERS: usize = 8;

/// Associations that have not proved the code. If there are too many, one of the address or network that has most of them ends, so a
/// flood of silent connections from one source keeps out no other source.
pub(super) struct Strangers<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    places: FairPool<u64>,
    /// By number: the oldest is the first.
    present: BTreeMap<u64, T>,
    next: u64,
}

impl<T> Default for Strangers<T> {
    fn default() -> Self {
        let places = FairPool::new(MOST_STRANGERS);
        Strangers { state: Mutex::new(State { places, present: BTreeMap::new(), next: 0 }) }
    }
}

impl<T> Strangers<T> {
    /// Adds a stranger. Returns its number, and the stranger that has to end for it.
    pub(super) fn enter(&self, stranger: T, source: Source) -> (u64, Option<T>) {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        let evicted = state.places.insert(number, source).and_then(|evicted| state.present.remove(&evicted));
        state.present.insert(number, stranger);
        (number, evicted)
    }

    /// Records that a stranger has begun to prove the code. It ends for another one of its source only if each of these has begun.
    pub(super) fn begin(&self, number: u64) {
        self.lock().places.advance(&number);
    }

    /// Removes a stranger, so that it is not ended for another one. Returns `true` if it was still there.
    pub(super) fn leave(&self, number: u64) -> bool {
        let mut state = self.lock();
        state.places.remove(&number);
        state.present.remove(&number).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn one_too_many_ends_the_oldest() {
        let strangers = Strangers::default();
        let numbers: Vec<u64> = (0..MOST_STRANGERS)
            .map(|name| {
                let (number, ended) = strangers.enter(name, source(1));
                assert_eq!(ended, None);
                number
            })
            .collect();
        assert_eq!(strangers.enter(100, source(1)).1, Some(0));
        assert!(!strangers.leave(numbers[0]), "it was ended, and may prove nothing any more");
        assert!(strangers.leave(numbers[2]));
        assert_eq!(strangers.enter(101, source(1)).1, None, "there is room again");
        assert_eq!(strangers.enter(102, source(1)).1, Some(1));
        assert_eq!(strangers.enter(103, source(1)).1, Some(3), "a stranger that has left is not ended");
    }

    #[test]
    fn flood_of_one_source_ends_no_stranger_of_another() {
        let strangers = Strangers::default();
        let (person, _) = strangers.enter(0, source(1));
        for name in 1..1000 {
            let ended = strangers.enter(name, source(9)).1;
            assert!(ended != Some(0) && ended.is_some() == (name >= MOST_STRANGERS));
        }
        assert!(strangers.leave(person));
    }

    #[test]
    fn silent_flood_ends_no_stranger_of_its_source_that_has_begun() {
        let strangers = Strangers::default();
        let (person, _) = strangers.enter(0, source(9));
        strangers.begin(person);
        (1..1000).for_each(|name| assert_ne!(strangers.enter(name, source(9)).1, Some(0)));
        assert!(strangers.leave(person));
    }
}

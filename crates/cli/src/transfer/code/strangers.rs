//! Associations that have proved nothing yet.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most of them at a time.
pub(super) const MOST_STRANGERS: usize = 8;

/// Associations that have proved nothing yet. One more than there may be takes the place of the oldest, so nobody who says nothing
/// keeps out who knows the code.
pub(super) struct Strangers<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    /// By number: the oldest is the first.
    present: BTreeMap<u64, T>,
    next: u64,
}

impl<T> Default for Strangers<T> {
    fn default() -> Self {
        Strangers { state: Mutex::new(State { present: BTreeMap::new(), next: 0 }) }
    }
}

impl<T> Strangers<T> {
    /// The number of a new one, and the one that has to end for it.
    pub(super) fn enter(&self, stranger: T) -> (u64, Option<T>) {
        let mut state = self.lock();
        let is_full = state.present.len() >= MOST_STRANGERS;
        let oldest = if is_full { state.present.pop_first() } else { None };
        let number = state.next;
        state.next += 1;
        state.present.insert(number, stranger);
        (number, oldest.map(|(_, oldest)| oldest))
    }

    /// Takes one out, so that it is not ended for another one. Whether it was still there.
    pub(super) fn leave(&self, number: u64) -> bool {
        self.lock().present.remove(&number).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_too_many_ends_the_oldest() {
        let strangers = Strangers::default();
        let numbers: Vec<u64> = (0..MOST_STRANGERS)
            .map(|name| {
                let (number, ended) = strangers.enter(name);
                assert_eq!(ended, None);
                number
            })
            .collect();
        assert_eq!(strangers.enter(100).1, Some(0));
        assert!(!strangers.leave(numbers[0]), "it was ended, and may prove nothing any more");
        assert!(strangers.leave(numbers[2]));
        assert_eq!(strangers.enter(101).1, None, "there is room again");
        assert_eq!(strangers.enter(102).1, Some(1));
        assert_eq!(strangers.enter(103).1, Some(3), "whoever has left is not ended");
    }
}

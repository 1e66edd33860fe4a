//! Contiguous list whose first items are removed cheaply, because the others are moved only now and then.

use std::ops::{Deref, DerefMut};

/// Number of removed items that is always tolerated. Above that number, the removed items that still occupy memory are at most as
/// many as the remaining items. So each removal moves at most one item on average.
const FEW: usize = 32;

#[derive(Clone, Debug)]
pub(crate) struct Sliding<T> {
    items: Vec<T>,
    /// Number of removed items at the start.
    forgotten: usize,
}

impl<T> Sliding<T> {
    pub(crate) const fn new() -> Self {
        Self { items: Vec::new(), forgotten: 0 }
    }

    /// Returns the capacity in items, including removed ones.
    pub(crate) fn capacity(&self) -> usize {
        self.items.capacity()
    }

    pub(crate) fn reserve(&mut self, additional: usize) {
        self.items.reserve(additional);
    }

    /// Removes the first `count` items.
    pub(crate) fn forget(&mut self, count: usize) {
        self.forgotten += count;
        if self.forgotten == self.items.len() {
            self.clear();
        } else if self.forgotten > FEW.max(self.items.len() / 2) {
            self.as_vec();
        }
    }

    /// Keeps only the first `len` items.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.items.truncate(self.forgotten + len);
    }

    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.forgotten = 0;
    }

    pub(crate) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    pub(crate) fn extend(&mut self, items: impl IntoIterator<Item = T>) {
        self.items.extend(items);
    }

    pub(crate) fn extend_from_slice(&mut self, items: &[T])
    where
        T: Clone,
    {
        self.items.extend_from_slice(items);
    }

    pub(crate) fn insert(&mut self, at: usize, item: T) {
        self.items.insert(self.forgotten + at, item);
    }

    pub(crate) fn remove(&mut self, at: usize) -> T {
        self.items.remove(self.forgotten + at)
    }

    /// Returns the list after deleting the removed items.
    pub(crate) fn as_vec(&mut self) -> &mut Vec<T> {
        self.items.drain(..self.forgotten);
        self.forgotten = 0;
        &mut self.items
    }
}

impl<T> Deref for Sliding<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items[self.forgotten..]
    }
}

impl<T> DerefMut for Sliding<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items[self.forgotten..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn forgotten_entries_free_memory_except_a_few() {
        let mut list = Sliding::new();
        for (left, most) in [(10, 43), (100, 202), (0, 1)] {
            for number in 0..1_000 {
                list.push(number);
                list.forget(list.len().saturating_sub(left));
                assert!(list.items.len() <= most, "{number} {left}");
            }
            assert_eq!(*list, (1_000 - left..1_000).collect::<Vec<_>>());
        }
    }

    proptest! {
        #[test]
        fn sliding_queue_agrees_with_a_queue(steps in prop::collection::vec((0_u8..6, 0_usize..8, any::<u8>()), 0..200)) {
            let (mut list, mut queue) = (Sliding::new(), VecDeque::new());
            // As many removed items as are tolerated, so that the others are moved now and then.
            list.extend(0..=FEW as u8);
            list.forget(FEW);
            queue.push_back(FEW as u8);
            for (kind, place, item) in steps {
                let at = place.min(queue.len());
                match kind {
                    0 | 1 => {
                        list.push(item);
                        queue.push_back(item);
                    }
                    2 => {
                        list.insert(at, item);
                        queue.insert(at, item);
                    }
                    3 => {
                        list.forget(at);
                        queue.drain(..at);
                    }
                    4 => {
                        list.truncate(place);
                        queue.truncate(place);
                    }
                    _ => {
                        let removed = queue.remove(place);
                        prop_assert_eq!((place < list.len()).then(|| list.remove(place)), removed);
                    }
                }
                prop_assert_eq!(&*list, queue.make_contiguous());
            }
        }
    }
}

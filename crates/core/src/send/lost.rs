//! Sorted lists of TSNs: chunks that were declared lost and wait for retransmission, and chunks that were abandoned in flight.

use crate::send::LIST_ROOM;

/// Sorted list of TSNs. Losses are found in TSN order and few at a time, so nearly all insertions are at the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct LostList {
    tsns: Vec<u64>,
}

impl LostList {
    pub(crate) fn is_empty(&self) -> bool {
        self.tsns.is_empty()
    }

    pub(crate) fn insert(&mut self, tsn: u64) {
        if let Err(at) = self.tsns.binary_search(&tsn) {
            if self.tsns.is_empty() {
                self.tsns.reserve(LIST_ROOM);
            }
            self.tsns.insert(at, tsn);
        }
    }

    pub(crate) fn remove(&mut self, tsn: u64) {
        if let Ok(at) = self.tsns.binary_search(&tsn) {
            self.tsns.remove(at);
        }
    }

    /// Removes all TSNs up to `tsn`.
    pub(crate) fn forget_up_to(&mut self, tsn: u64) {
        let kept = self.tsns.partition_point(|&t| t <= tsn);
        self.tsns.drain(..kept);
    }

    /// Returns the first TSN of the list at or after `tsn`.
    pub(crate) fn at_or_after(&self, tsn: u64) -> Option<u64> {
        let at = self.tsns.partition_point(|&t| t < tsn);
        self.tsns.get(at).copied()
    }

    /// Returns the TSN at this index of the list.
    pub(crate) fn get(&self, index: usize) -> Option<u64> {
        self.tsns.get(index).copied()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.tsns.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_chunks_are_in_tsn_order_for_any_order_of_losses() {
        let mut lost = LostList::default();
        for tsn in [7, 3, 9, 3] {
            lost.insert(tsn);
        }
        assert_eq!(lost.iter().collect::<Vec<_>>(), [3, 7, 9]);
        assert_eq!(lost.at_or_after(4), Some(7));
        lost.remove(7);
        assert_eq!(lost.at_or_after(4), Some(9));
        assert_eq!(lost.at_or_after(10), None);
        lost.forget_up_to(3);
        assert_eq!(lost.iter().collect::<Vec<_>>(), [9]);
    }
}

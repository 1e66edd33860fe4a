//! Chunks that have a TSN and were never sent. Each waits for room in the window of the path that it is bound to, or for a path.

use std::collections::VecDeque;

use crate::path_id::{MAX_PATHS, PathId};

/// Queues of all paths, and of chunks without a path, each in TSN order.
#[derive(Clone, Debug, Default)]
pub(crate) struct BoundQueues {
    paths: [VecDeque<u64>; MAX_PATHS],
    unplaced: VecDeque<u64>,
}

impl BoundQueues {
    /// Returns the lowest TSN in the queues.
    pub(crate) fn lowest(&self) -> Option<u64> {
        self.paths.iter().chain([&self.unplaced]).filter_map(|queue| queue.front().copied()).min()
    }

    /// Returns the first chunk of a path.
    pub(crate) fn next_of(&self, path: PathId) -> Option<u64> {
        self.paths[path.index()].front().copied()
    }

    /// Removes the first chunk of a path.
    pub(crate) fn pop(&mut self, path: PathId) {
        self.paths[path.index()].pop_front();
    }

    /// Returns the first chunk without a path.
    pub(crate) fn next_unplaced(&self) -> Option<u64> {
        self.unplaced.front().copied()
    }

    /// Removes the first chunk without a path.
    pub(crate) fn pop_unplaced(&mut self) {
        self.unplaced.pop_front();
    }

    /// Inserts a chunk into a path's queue.
    pub(crate) fn bind(&mut self, path: PathId, tsn: u64) {
        insert(&mut self.paths[path.index()], tsn);
    }

    /// Moves the last chunk of a path to those without a path.
    pub(crate) fn unbind_last(&mut self, path: PathId) -> Option<u64> {
        let tsn = self.paths[path.index()].pop_back()?;
        insert(&mut self.unplaced, tsn);
        Some(tsn)
    }

    /// Removes a chunk from the queue of its path, or from those without a path.
    pub(crate) fn remove(&mut self, path: Option<PathId>, tsn: u64) {
        let queue = path.map_or(&mut self.unplaced, |path| &mut self.paths[path.index()]);
        if let Ok(at) = queue.binary_search(&tsn) {
            queue.remove(at);
        }
    }

    /// Returns the chunks of a path in TSN order, for recounts.
    pub(crate) fn of(&self, path: PathId) -> impl Iterator<Item = u64> + '_ {
        self.paths[path.index()].iter().copied()
    }

    /// Returns the chunks without a path in TSN order, for recounts.
    pub(crate) fn unplaced(&self) -> impl Iterator<Item = u64> + '_ {
        self.unplaced.iter().copied()
    }
}

/// Inserts a TSN in order, nearly always at the end: TSNs are assigned in ascending order.
fn insert(queue: &mut VecDeque<u64>, tsn: u64) {
    let at = if queue.back().is_none_or(|&last| last < tsn) {
        queue.len()
    } else {
        queue.partition_point(|&other| other < tsn)
    };
    queue.insert(at, tsn);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_stay_in_tsn_order_through_all_moves() {
        let mut queues = BoundQueues::default();
        let [a, b] = [0, 1].map(PathId::new);
        for (path, tsn) in [(a, 10), (b, 11), (a, 12), (a, 13)] {
            queues.bind(path, tsn);
        }
        assert_eq!(queues.lowest(), Some(10));
        assert_eq!([queues.unbind_last(a), queues.unbind_last(a)], [Some(13), Some(12)]);
        assert_eq!(queues.unplaced().collect::<Vec<_>>(), [12, 13]);
        queues.pop_unplaced();
        queues.bind(b, 12);
        queues.bind(b, 9);
        assert_eq!(queues.of(b).collect::<Vec<_>>(), [9, 11, 12]);
        assert_eq!(
            (queues.next_of(a), queues.next_unplaced(), queues.lowest()),
            (Some(10), Some(13), Some(9))
        );
        queues.pop(a);
        assert_eq!((queues.next_of(a), queues.lowest()), (None, Some(9)));
        queues.remove(Some(b), 11);
        queues.remove(None, 13);
        assert_eq!(queues.of(b).collect::<Vec<_>>(), [9, 12]);
        assert_eq!(queues.next_unplaced(), None);
    }
}

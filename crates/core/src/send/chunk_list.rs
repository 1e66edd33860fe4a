//! Ring of chunks, indexed by TSN, and lists linked through it.

use std::collections::VecDeque;

/// Absent TSN: unwrapped TSNs start above 2^32.
const NONE: u64 = 0;

/// Index of the links of all unacknowledged chunks, in TSN order.
pub(super) const UNACKED: usize = 0;
/// Index of the links of the chunks of one path and kind, in TSN order.
pub(super) const KIND: usize = 1;
/// Index of the links of the chunks of one path, in the order of their latest transmissions.
pub(super) const SENT: usize = 2;

/// Neighbours of a chunk in one list.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Links {
    previous: u64,
    next: u64,
}

/// Neighbours of a chunk in all lists.
pub(crate) type AllLinks = [Links; 3];

/// Element of a ring that lists can link.
pub(super) trait Linked {
    fn links(&self) -> &AllLinks;
    fn links_mut(&mut self) -> &mut AllLinks;
}

/// Ring of chunks with consecutive TSNs.
#[derive(Clone, Debug)]
pub(super) struct Ring<T> {
    /// TSN of the first chunk.
    base: u64,
    chunks: VecDeque<T>,
}

impl<T> Ring<T> {
    pub(super) fn new(initial_tsn: u64) -> Self {
        Ring { base: initial_tsn, chunks: VecDeque::new() }
    }

    pub(super) fn base(&self) -> u64 {
        self.base
    }

    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Returns the TSN after the last one.
    pub(super) fn next_tsn(&self) -> u64 {
        self.base + self.chunks.len() as u64
    }

    #[inline]
    pub(super) fn get(&self, tsn: u64) -> Option<&T> {
        self.chunks.get(usize::try_from(tsn.checked_sub(self.base)?).ok()?)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, tsn: u64) -> Option<&mut T> {
        self.chunks.get_mut(usize::try_from(tsn.checked_sub(self.base)?).ok()?)
    }

    pub(super) fn push(&mut self, chunk: T) {
        self.chunks.push_back(chunk);
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let chunk = self.chunks.pop_front()?;
        self.base += 1;
        Some(chunk)
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.chunks.iter()
    }
}

/// List of chunks in the ring through links of one kind. A chunk is in at most one list of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChunkList<const LINK: usize> {
    first: u64,
    last: u64,
}

impl<const LINK: usize> ChunkList<LINK> {
    #[inline]
    pub(super) fn first(&self) -> Option<u64> {
        (self.first != NONE).then_some(self.first)
    }

    #[inline]
    pub(super) fn last(&self) -> Option<u64> {
        (self.last != NONE).then_some(self.last)
    }

    pub(super) fn push<T: Linked>(&mut self, ring: &mut Ring<T>, tsn: u64) {
        self.insert_after(ring, self.last, tsn);
    }

    /// Inserts a chunk behind another one, or at the front.
    pub(super) fn insert_behind<T: Linked>(&mut self, ring: &mut Ring<T>, other: Option<u64>, tsn: u64) {
        self.insert_after(ring, other.unwrap_or(NONE), tsn);
    }

    /// Inserts a chunk into a list in TSN order. The search starts from the nearer end, where the place nearly always is.
    pub(super) fn insert<T: Linked>(&mut self, ring: &mut Ring<T>, tsn: u64) {
        if self.last < tsn {
            return self.push(ring, tsn);
        }
        let near_the_end = self.last - tsn < tsn.saturating_sub(self.first);
        let previous = if near_the_end {
            self.iter_back(ring).find(|&other| other < tsn).unwrap_or(NONE)
        } else {
            let after = self.iter(ring).find(|&other| other > tsn);
            after
                .map_or(self.last, |after| ring.get(after).map_or(NONE, |chunk| chunk.links()[LINK].previous))
        };
        self.insert_after(ring, previous, tsn);
    }

    fn insert_after<T: Linked>(&mut self, ring: &mut Ring<T>, previous: u64, tsn: u64) {
        let next = match ring.get_mut(previous) {
            Some(chunk) => std::mem::replace(&mut chunk.links_mut()[LINK].next, tsn),
            None => std::mem::replace(&mut self.first, tsn),
        };
        if let Some(chunk) = ring.get_mut(tsn) {
            chunk.links_mut()[LINK] = Links { previous, next };
        }
        match ring.get_mut(next) {
            Some(chunk) => chunk.links_mut()[LINK].previous = tsn,
            None => self.last = tsn,
        }
    }

    pub(super) fn remove<T: Linked>(&mut self, ring: &mut Ring<T>, tsn: u64) {
        let Some(chunk) = ring.get_mut(tsn) else { return };
        let Links { previous, next } = std::mem::take(&mut chunk.links_mut()[LINK]);
        match ring.get_mut(previous) {
            Some(chunk) => chunk.links_mut()[LINK].next = next,
            None => self.first = next,
        }
        match ring.get_mut(next) {
            Some(chunk) => chunk.links_mut()[LINK].previous = previous,
            None => self.last = previous,
        }
    }

    /// Returns the chunk behind another one of the list.
    #[inline]
    pub(super) fn next<T: Linked>(ring: &Ring<T>, tsn: u64) -> Option<u64> {
        ring.get(tsn).map(|chunk| chunk.links()[LINK].next).filter(|&next| next != NONE)
    }

    pub(super) fn iter<T: Linked>(self, ring: &Ring<T>) -> impl Iterator<Item = u64> {
        std::iter::successors(self.first(), |&tsn| Self::next(ring, tsn))
    }

    pub(super) fn iter_back<T: Linked>(self, ring: &Ring<T>) -> impl Iterator<Item = u64> {
        let previous = |&tsn: &u64| ring.get(tsn).map(|chunk| chunk.links()[LINK].previous);
        std::iter::successors(self.last(), move |tsn| previous(tsn).filter(|&other| other != NONE))
    }

    /// Compares the links of both directions.
    ///
    /// # Panics
    /// Panics if the links differ.
    pub(super) fn check<T: Linked>(self, ring: &Ring<T>) {
        let mut back: Vec<u64> = self.iter_back(ring).collect();
        back.reverse();
        assert_same(|| self.iter(ring), || back.iter().copied(), || "links forth and back".to_owned());
    }
}

/// Compares a maintained list with a recount, without copying either. Most lists are empty: to compare empty vectors took two
/// thirds of the time of a check, because `memcmp` is slow on dangling addresses.
///
/// # Panics
/// Panics if the lists differ, and prints both.
pub(super) fn assert_same<A, B>(kept: impl Fn() -> A, counted: impl Fn() -> B, what: impl Fn() -> String)
where
    A: Iterator<Item = u64>,
    B: Iterator<Item = u64>,
{
    if !kept().eq(counted()) {
        assert_eq!(kept().collect::<Vec<_>>(), counted().collect::<Vec<_>>(), "{}", what());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[derive(Default)]
    struct Node(AllLinks);

    impl Linked for Node {
        fn links(&self) -> &AllLinks {
            &self.0
        }

        fn links_mut(&mut self) -> &mut AllLinks {
            &mut self.0
        }
    }

    const FIRST: u64 = 1 << 32;

    fn ring(nodes: u64) -> Ring<Node> {
        let mut ring = Ring::new(FIRST);
        (0..nodes).for_each(|_| ring.push(Node::default()));
        ring
    }

    #[test]
    fn list_in_tsn_order_equals_the_set_of_inserted_chunks() {
        let (mut ring, mut list, mut set) = (ring(97), ChunkList::<KIND>::default(), BTreeSet::new());
        // Powers of 3 modulo 113 visit all numbers from 1 to 112 in an irregular order.
        let mut number = 1_u64;
        for _ in 0..4 * 112 {
            number = number * 3 % 113;
            let tsn = FIRST + number % 97;
            if set.remove(&tsn) {
                list.remove(&mut ring, tsn);
            } else {
                set.insert(tsn);
                list.insert(&mut ring, tsn);
            }
            list.check(&ring);
            assert_eq!(list.iter(&ring).collect::<Vec<_>>(), set.iter().copied().collect::<Vec<_>>());
            assert_eq!((list.first(), list.last()), (set.first().copied(), set.last().copied()));
        }
    }

    #[test]
    fn a_chunk_may_be_in_a_list_of_every_kind_of_links() {
        let mut ring = ring(3);
        let (mut unacked, mut sent) = (ChunkList::<UNACKED>::default(), ChunkList::<SENT>::default());
        (FIRST..FIRST + 3).for_each(|tsn| unacked.push(&mut ring, tsn));
        sent.push(&mut ring, FIRST + 2);
        sent.insert_behind(&mut ring, None, FIRST + 1);
        sent.insert_behind(&mut ring, Some(FIRST + 2), FIRST);
        unacked.remove(&mut ring, FIRST + 1);
        assert_eq!(unacked.iter(&ring).collect::<Vec<_>>(), [FIRST, FIRST + 2]);
        assert_eq!(sent.iter(&ring).collect::<Vec<_>>(), [FIRST + 1, FIRST + 2, FIRST]);
        assert_eq!(ChunkList::<SENT>::next(&ring, FIRST + 2), Some(FIRST));
        assert_eq!((ring.base(), ring.len(), ring.next_tsn()), (FIRST, 3, FIRST + 3));
    }
}

//! Pool of entries that several sources share.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Source;

/// Bounded set of entries, each of one [`Source`]. If it is full, an entry of the source with the most entries is evicted for a new
/// one, so that a source loses no entry while it has fewer than another source.
///
/// Of the entries of that source, those that have not [advanced](Self::advance) are evicted first, and of these the oldest. Keys
/// are ordered by age: a later entry has a greater key.
#[derive(Clone, Debug)]
pub struct FairPool<K> {
    capacity: usize,
    entries: BTreeMap<K, Entry>,
    /// Entries by source, in the order of eviction. `None` is the lower bound of a search. A separate set for each source would
    /// need a node of hundreds of bytes even for a single entry.
    by_source: BTreeSet<(Source, bool, Option<K>)>,
    /// Number of entries of each source with more than one.
    counts: BTreeMap<Source, usize>,
    /// Numbers of `counts` with their sources, the largest number last.
    by_count: BTreeSet<(usize, Source)>,
}

/// Error of a new entry that is refused, because its source would have as many entries as any other source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolFull;

#[derive(Clone, Copy, Debug)]
struct Entry {
    source: Source,
    advanced: bool,
}

impl<K: Copy + Ord> FairPool<K> {
    /// Returns an empty pool with `capacity` places, but at least one.
    pub fn new(capacity: usize) -> Self {
        FairPool {
            capacity: capacity.max(1),
            entries: BTreeMap::new(),
            by_source: BTreeSet::new(),
            counts: BTreeMap::new(),
            by_count: BTreeSet::new(),
        }
    }

    /// Adds an entry. Returns the entry that is evicted for it.
    pub fn insert(&mut self, key: K, source: Source) -> Option<K> {
        self.remove(&key);
        let evicted = if self.entries.len() < self.capacity { None } else { self.next_to_leave_for(source) };
        if let Some(evicted) = evicted {
            self.remove(&evicted);
        }
        self.entries.insert(key, Entry { source, advanced: false });
        self.recount(source, self.count(source) + 1);
        self.by_source.insert((source, false, Some(key)));
        evicted
    }

    /// Adds an entry as [`insert`](Self::insert) does, unless an entry of its own source or of one with as few entries would be
    /// evicted for it.
    ///
    /// # Errors
    /// Returns [`PoolFull`] in that case, and changes nothing.
    pub fn insert_if_due(&mut self, key: K, source: Source) -> Result<Option<K>, PoolFull> {
        let most = self.by_count.last().map_or(1, |(count, _)| *count);
        if self.entries.len() >= self.capacity && most <= self.count(source) + 1 {
            return Err(PoolFull);
        }
        Ok(self.insert(key, source))
    }

    /// Removes an entry. Returns `true` if the pool contained the entry.
    pub fn remove(&mut self, key: &K) -> bool {
        let Some(Entry { source, advanced }) = self.entries.remove(key) else { return false };
        self.recount(source, self.count(source) - 1);
        self.by_source.remove(&(source, advanced, Some(*key)));
        true
    }

    /// Marks an entry as advanced. It is evicted after the entries of its source that have not advanced.
    pub fn advance(&mut self, key: &K) {
        let Some(entry) = self.entries.get_mut(key).filter(|entry| !entry.advanced) else { return };
        entry.advanced = true;
        let source = entry.source;
        self.by_source.remove(&(source, false, Some(*key)));
        self.by_source.insert((source, true, Some(*key)));
    }

    /// Returns `true` if the entry is in the pool.
    pub fn contains(&self, key: &K) -> bool {
        self.entries.contains_key(key)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of entries of a source.
    pub fn count(&self, source: Source) -> usize {
        self.counts.get(&source).copied().unwrap_or_else(|| usize::from(self.first_of(source).is_some()))
    }

    /// Returns the keys, the oldest first.
    pub fn keys(&self) -> impl Iterator<Item = K> + '_ {
        self.entries.keys().copied()
    }

    /// Returns the entry that is evicted for a new one of `source`, which counts with its source. Among sources with equally many
    /// entries, it is the oldest of those that would be evicted first from each source.
    fn next_to_leave_for(&self, source: Source) -> Option<K> {
        let own = (self.count(source) + 1, source);
        let most = self.by_count.last().map_or(1, |(count, _)| *count).max(own.0);
        if most == 1 {
            let silent = self.entries.iter().find(|(_, entry)| !entry.advanced);
            return silent.or_else(|| self.entries.first_key_value()).map(|(key, _)| *key);
        }
        let greediest = self.by_count.iter().rev().take_while(|(count, _)| *count == most);
        let greediest = greediest.chain([&own].into_iter().filter(|own| own.0 == most));
        greediest.filter_map(|(_, source)| self.first_of(*source)).min().map(|(_, key)| key)
    }

    /// Returns the entry that is evicted first from this source, and `true` if it has advanced.
    fn first_of(&self, source: Source) -> Option<(bool, K)> {
        let (of, advanced, key) = self.by_source.range((source, false, None)..).next()?;
        key.filter(|_| *of == source).map(|key| (*advanced, key))
    }

    fn recount(&mut self, source: Source, count: usize) {
        if let Some(before) = self.counts.remove(&source) {
            self.by_count.remove(&(before, source));
        }
        if count > 1 {
            self.counts.insert(source, count);
            self.by_count.insert((count, source));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use proptest::prelude::*;

    use super::*;

    fn source(number: u8) -> Source {
        IpAddr::from([192, 0, 2, number]).into()
    }

    fn keys(pool: &FairPool<u64>) -> Vec<u64> {
        pool.keys().collect()
    }

    #[test]
    fn flood_from_one_source_evicts_its_own_entries() {
        let mut pool = FairPool::new(4);
        assert_eq!(pool.insert(0, source(1)), None);
        for key in 1..=3 {
            assert_eq!(pool.insert(key, source(9)), None);
        }
        for key in 4..1000 {
            assert_eq!(pool.insert(key, source(9)), Some(key - 3));
        }
        assert_eq!(pool.insert(1000, source(2)), Some(997));
        assert_eq!(keys(&pool), [0, 998, 999, 1000]);
    }

    #[test]
    fn flood_from_one_ipv6_network_evicts_its_own_entries() {
        let mut pool = FairPool::new(8);
        let flood =
            |host: u64| Source::from(format!("2001:db8::{host:x}").parse::<IpAddr>().expect("an address"));
        let other = Source::from("2001:db8:0:1::1".parse::<IpAddr>().expect("an address"));
        pool.insert(0, other);
        (1..1000).for_each(|key| assert_ne!(pool.insert(key, flood(key)), Some(0)));
        assert!(pool.contains(&0));
    }

    #[test]
    fn silent_entry_leaves_before_one_that_advanced() {
        let mut pool = FairPool::new(3);
        (0..3).for_each(|key| assert_eq!(pool.insert(key, source(1)), None));
        pool.advance(&0);
        assert_eq!(pool.insert(3, source(1)), Some(1));
        assert_eq!(pool.insert(4, source(1)), Some(2));
        pool.advance(&3);
        pool.advance(&4);
        assert_eq!(pool.insert(5, source(1)), Some(0), "a new entry does not leave for itself");
        assert_eq!(keys(&pool), [3, 4, 5]);
    }

    #[test]
    fn oldest_entry_leaves_among_equals() {
        let mut pool = FairPool::new(3);
        (0..3).for_each(|key| assert_eq!(pool.insert(key, source(key as u8)), None));
        assert_eq!(pool.insert(3, source(3)), Some(0));
        assert!(pool.remove(&1) && !pool.remove(&1));
        assert_eq!(pool.insert(4, source(4)), None);
    }

    #[test]
    fn entry_takes_a_place_only_from_a_greedier_source() {
        let mut pool = FairPool::new(3);
        (0..3).for_each(|key| assert_eq!(pool.insert_if_due(key, source(1)), Ok(None)));
        assert_eq!(pool.insert_if_due(3, source(1)), Err(PoolFull));
        assert_eq!(pool.insert_if_due(3, source(2)), Ok(Some(0)));
        assert_eq!(
            pool.insert_if_due(4, source(2)),
            Err(PoolFull),
            "each would have as many as the other before"
        );
        assert_eq!(pool.insert_if_due(4, source(3)), Ok(Some(1)));
        assert_eq!(pool.insert_if_due(5, source(4)), Err(PoolFull), "each has one");
    }

    #[test]
    fn pool_without_capacity_has_one_place() {
        let mut pool = FairPool::new(0);
        assert_eq!(pool.insert(0, source(1)), None);
        assert_eq!(pool.insert(1, source(1)), Some(0));
        assert_eq!((pool.len(), pool.is_empty(), pool.count(source(1))), (1, false, 1));
    }

    proptest! {
        /// Checks that no source with fewer entries than another one loses an entry, and that the indices agree.
        #[test]
        fn only_the_greediest_source_loses_entries(
            capacity in 1_usize..12,
            steps in prop::collection::vec((0_u8..5, 0_u8..4), 1..200),
        ) {
            let mut pool = FairPool::new(capacity);
            for (key, (from, act)) in steps.into_iter().enumerate() {
                let from = Source::from(IpAddr::from(Ipv4Addr::new(10, 0, 0, from)));
                let before = pool.clone();
                match act {
                    0 => { pool.remove(&(key / 2)); }
                    1 => pool.advance(&(key / 2)),
                    _ => if let Some(evicted) = pool.insert(key, from) {
                        let of = before.entries[&evicted].source;
                        let count = |source| before.count(source) + usize::from(source == from);
                        let most = before.entries.values().map(|entry| &entry.source).chain([&from]).map(|source| count(*source)).max();
                        prop_assert_eq!(Some(count(of)), most);
                        prop_assert_eq!(pool.len(), capacity);
                    }
                }
                prop_assert!(pool.len() <= capacity);
                prop_assert_eq!(pool.by_source.len(), pool.len());
                let counts: BTreeSet<_> = pool.counts.iter().map(|(of, count)| (*count, *of)).collect();
                prop_assert_eq!(&counts, &pool.by_count);
                for source in pool.entries.values().map(|entry| entry.source) {
                    let count = pool.entries.values().filter(|entry| entry.source == source).count();
                    prop_assert_eq!(pool.count(source), count);
                }
                for (key, entry) in &pool.entries {
                    prop_assert!(pool.by_source.contains(&(entry.source, entry.advanced, Some(*key))));
                }
            }
        }
    }
}

//! Bounded table whose places sources share.

use std::collections::BTreeMap;

use anabranch_core::{FairPool, PoolFull, Source};

/// Map with a limited number of entries, which are shared fairly among sources.
#[derive(Debug)]
pub(super) struct Table<K, V> {
    places: FairPool<u64>,
    keys: BTreeMap<u64, K>,
    entries: BTreeMap<K, (u64, V)>,
    next: u64,
}

impl<K: Copy + Ord, V> Table<K, V> {
    pub(super) fn new(capacity: usize) -> Self {
        Table { places: FairPool::new(capacity), keys: BTreeMap::new(), entries: BTreeMap::new(), next: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key).map(|(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, (_, value))| (key, value))
    }

    /// Adds or replaces an entry. In a full table, an entry of the source with the most entries is removed for it.
    pub(super) fn insert(&mut self, key: K, value: V, source: Source) {
        self.remove(&key);
        let evicted = self.places.insert(self.next, source);
        self.enter(key, value, evicted);
    }

    /// Adds an entry as [`insert`](Self::insert) does, unless that would remove one of its own source or of one with as few entries.
    /// Returns the removed entry.
    pub(super) fn insert_if_due(
        &mut self,
        key: K,
        value: V,
        source: Source,
    ) -> Result<Option<(K, V)>, PoolFull> {
        let evicted = self.places.insert_if_due(self.next, source)?;
        Ok(self.enter(key, value, evicted))
    }

    fn enter(&mut self, key: K, value: V, evicted: Option<u64>) -> Option<(K, V)> {
        let evicted = evicted.and_then(|number| self.keys.remove(&number));
        let evicted = evicted.and_then(|key| Some((key, self.entries.remove(&key)?.1)));
        self.keys.insert(self.next, key);
        self.entries.insert(key, (self.next, value));
        self.next += 1;
        evicted
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let (number, value) = self.entries.remove(key)?;
        self.keys.remove(&number);
        self.places.remove(&number);
        Some(value)
    }

    /// Removes the entries for which `keep` returns `false`.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let entries = self.entries.iter_mut();
        let gone: Vec<K> =
            entries.filter_map(|(key, (_, value))| (!keep(key, value)).then_some(*key)).collect();
        for key in gone {
            self.remove(&key);
        }
    }
}

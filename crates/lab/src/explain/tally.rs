//! Sums by key, for few keys and many rows.

/// Sums by key. A row with a known key allocates nothing.
#[derive(Debug)]
pub(super) struct Tally<K, V> {
    entries: Vec<(K, V)>,
}

impl<K, V> Default for Tally<K, V> {
    fn default() -> Self {
        Tally { entries: Vec::new() }
    }
}

impl<K, V: Default> Tally<K, V> {
    /// Returns the sum of the key for which `is` returns `true`. `make` creates the key at first use.
    pub(super) fn of(&mut self, is: impl Fn(&K) -> bool, make: impl FnOnce() -> K) -> &mut V {
        let found = self.entries.iter().position(|(key, _)| is(key));
        let at = found.unwrap_or_else(|| {
            self.entries.push((make(), V::default()));
            self.entries.len() - 1
        });
        &mut self.entries[at].1
    }

    /// Returns all sums in descending order of `rank`, and by key for equal ranks.
    pub(super) fn ranked(&self, rank: impl Fn(&V) -> u64) -> Vec<(&K, &V)>
    where
        K: Ord,
    {
        let mut entries: Vec<(&K, &V)> = self.entries.iter().map(|(key, value)| (key, value)).collect();
        entries.sort_by(|a, b| rank(b.1).cmp(&rank(a.1)).then_with(|| a.0.cmp(b.0)));
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_come_by_size_and_then_by_key() {
        let mut tally: Tally<&str, u64> = Tally::default();
        for key in ["b", "c", "a", "c"] {
            *tally.of(|known| *known == key, || key) += 1;
        }
        assert_eq!(tally.ranked(|n| *n), [(&"c", &2), (&"a", &1), (&"b", &1)]);
    }
}

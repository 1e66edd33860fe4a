//! Cookies that have opened an association: none opens a second one. RFC 9260 section 5.1.5 leaves that to the lifetime alone,
//! within which a copy would open an association again and have its DATA delivered again.

use std::collections::BTreeMap;

use crate::fair_pool::FairPool;
use crate::source::Source;
use crate::time::{Span, Time};

/// Maximum number of stored cookies, which suffices for 273 associations per second at a lifetime of 60 seconds.
const MOST: usize = 16_384;

/// Maximum number of sources whose forgotten cookies are tracked separately.
const MOST_FORGETFUL: usize = 64;

/// Creation time and tag of a cookie, and the address to which it was sent; all three are authenticated.
pub(super) type Name = (Time, u32, Source);

/// Verdict on a cookie that is to open an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The cookie has not opened an association.
    Unspent,
    /// The cookie has opened an association.
    Spent,
    /// The cookie is not newer than a removed one, so it may have opened an association.
    Unknown {
        /// Age difference to the latest forgotten one; zero for the same creation time.
        by: Span,
    },
}

/// Unexpired cookies that have opened an association, by age. If the pool is full, the oldest cookie of the source with most of
/// them is forgotten, and cookies of that source that are as old count as stale. The memory is therefore bounded, no cookie is used
/// twice, and a late peer of a flooding source restarts its handshake (RFC 9260 section 5.2.6).
#[derive(Clone, Debug)]
pub(super) struct SpentCookies {
    names: FairPool<Name>,
    /// For each source, creation time of the youngest cookie that was forgotten within its lifetime.
    forgotten: BTreeMap<Source, Time>,
    /// Creation time of the youngest one of the sources beyond [`MOST_FORGETFUL`]. It applies to every source.
    forgotten_of_any: Option<Time>,
}

impl Default for SpentCookies {
    fn default() -> Self {
        SpentCookies { names: FairPool::new(MOST), forgotten: BTreeMap::new(), forgotten_of_any: None }
    }
}

impl SpentCookies {
    pub(super) fn verdict(&self, name: Name) -> Verdict {
        if self.names.contains(&name) {
            return Verdict::Spent;
        }
        let (created, _, source) = name;
        match self.forgotten_of_any.max(self.forgotten.get(&source).copied()) {
            Some(forgotten) if created <= forgotten => Verdict::Unknown { by: forgotten.since(created) },
            _ => Verdict::Unspent,
        }
    }

    /// Stores a cookie for its lifetime.
    pub(super) fn spend(&mut self, now: Time, life: Span, name: Name) {
        let is_stale = |(created, ..): &Name| now.since(*created) > life;
        loop {
            let oldest = self.names.keys().next();
            let Some(oldest) = oldest.filter(is_stale) else { break };
            self.names.remove(&oldest);
        }
        if let Some((created, _, source)) = self.names.insert(name, name.2) {
            self.forget(now, life, created, source);
        }
    }

    fn forget(&mut self, now: Time, life: Span, created: Time, source: Source) {
        self.forgotten.retain(|_, forgotten| now.since(*forgotten) <= life);
        if self.forgotten.len() < MOST_FORGETFUL || self.forgotten.contains_key(&source) {
            let forgotten = self.forgotten.entry(source).or_insert(created);
            *forgotten = created.max(*forgotten);
        } else {
            self.forgotten_of_any = self.forgotten_of_any.max(Some(created));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const LIFE: Span = Span::from_secs(60);

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn host(number: u32) -> Source {
        IpAddr::from(number.to_be_bytes()).into()
    }

    fn name(millis: u64, tag: u32) -> Name {
        (at(millis), tag, host(1))
    }

    #[test]
    fn a_cookie_is_spent_once_and_remembered_for_its_lifetime() {
        let mut spent = SpentCookies::default();
        assert_eq!(spent.verdict(name(5, 7)), Verdict::Unspent);
        spent.spend(at(6), LIFE, name(5, 7));
        assert_eq!(spent.verdict(name(5, 7)), Verdict::Spent);
        assert_eq!(spent.verdict(name(5, 8)), Verdict::Unspent);
        spent.spend(at(60_005), LIFE, name(60_000, 9));
        assert_eq!(spent.verdict(name(5, 7)), Verdict::Spent, "to the end of its life");
        spent.spend(at(60_006), LIFE, name(60_000, 10));
        assert_eq!(spent.names.len(), 2, "stale cookies are not remembered");
    }

    #[test]
    fn forgotten_cookie_counts_as_stale() {
        let mut spent = SpentCookies::default();
        for n in 0..2 * MOST as u64 {
            spent.spend(at(n), LIFE, name(n, 1));
            assert!(spent.names.len() <= MOST);
        }
        for n in 0..2 * MOST as u64 {
            assert_ne!(spent.verdict(name(n, 1)), Verdict::Unspent, "{n}");
        }
        // Cookies that were not spent: old ones are refused, young ones are not.
        let last_forgotten = MOST as u64 - 1;
        let by = Span::from_millis(last_forgotten);
        assert_eq!(spent.verdict(name(0, 2)), Verdict::Unknown { by });
        assert_eq!(spent.verdict(name(last_forgotten + 1, 2)), Verdict::Unspent);
    }

    #[test]
    fn flood_from_one_source_makes_no_cookie_of_another_stale() {
        let mut spent = SpentCookies::default();
        spent.spend(at(1), LIFE, (at(0), 7, host(2)));
        for n in 0..2 * MOST as u64 {
            spent.spend(at(n), LIFE, name(n, 1));
        }
        assert_eq!(spent.verdict((at(0), 7, host(2))), Verdict::Spent);
        assert_eq!(spent.verdict((at(0), 8, host(2))), Verdict::Unspent);
        assert_ne!(spent.verdict(name(0, 8)), Verdict::Unspent);
    }

    #[test]
    fn sources_that_were_forgotten_are_bounded() {
        let mut spent = SpentCookies::default();
        for n in 0..(MOST as u32 + 1000) {
            spent.spend(at(1), LIFE, (at(1), n, host(n)));
        }
        assert_eq!((spent.forgotten.len(), spent.names.len()), (MOST_FORGETFUL, MOST));
        for n in 0..(MOST as u32 + 1000) {
            assert_ne!(spent.verdict((at(1), n, host(n))), Verdict::Unspent, "{n}");
        }
    }
}

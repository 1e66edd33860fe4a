//! Cookies that have opened an association: none opens a second one (RFC 9260 section 5.1.5 leaves that to the lifetime alone, and
//! within it a copy would open an association anew and have its DATA delivered again).

use std::collections::BTreeSet;

use crate::time::{Span, Time};

/// Cookies remembered at a time: in a lifetime of 60 seconds those of 273 associations each second.
const MOST: usize = 16_384;

/// What is known of a cookie that wants to open an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It has not opened one.
    Unspent,
    /// It has opened one.
    Spent,
    /// It is as old as one that was forgotten, by this much older than the latest such: it may have opened one.
    Unknown {
        /// Zero if it is that old to the nanosecond.
        by: Span,
    },
}

/// The cookies that have opened an association, by age, for as long as they live. If there are more than it has room for, the
/// oldest are forgotten, and cookies that are as old count as stale: the memory is bounded, no cookie is taken twice, and a peer
/// that comes late begins its handshake anew (RFC 9260 section 5.2.6).
#[derive(Debug, Default)]
pub(super) struct SpentCookies {
    names: BTreeSet<(Time, u32)>,
    /// When the youngest of those was made that were forgotten within their lifetime.
    forgotten: Option<Time>,
}

impl SpentCookies {
    pub(super) fn verdict(&self, (created, tag): (Time, u32)) -> Verdict {
        if self.names.contains(&(created, tag)) {
            return Verdict::Spent;
        }
        match self.forgotten {
            Some(forgotten) if created <= forgotten => Verdict::Unknown { by: forgotten.since(created) },
            _ => Verdict::Unspent,
        }
    }

    /// Remembers one for as long as cookies live.
    pub(super) fn spend(&mut self, now: Time, life: Span, name: (Time, u32)) {
        while self.names.first().is_some_and(|(created, _)| now.since(*created) > life) {
            self.names.pop_first();
        }
        self.names.insert(name);
        if self.names.len() > MOST {
            let oldest = self.names.pop_first();
            self.forgotten = self.forgotten.max(oldest.map(|(created, _)| created));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Span = Span::from_secs(60);

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn a_cookie_is_spent_once_and_remembered_for_its_lifetime() {
        let mut spent = SpentCookies::default();
        assert_eq!(spent.verdict((at(5), 7)), Verdict::Unspent);
        spent.spend(at(6), LIFE, (at(5), 7));
        assert_eq!(spent.verdict((at(5), 7)), Verdict::Spent);
        assert_eq!(spent.verdict((at(5), 8)), Verdict::Unspent);
        spent.spend(at(60_005), LIFE, (at(60_000), 9));
        assert_eq!(spent.verdict((at(5), 7)), Verdict::Spent, "to the end of its life");
        spent.spend(at(60_006), LIFE, (at(60_000), 10));
        assert_eq!(spent.names.len(), 2, "what is stale is not remembered");
    }

    #[test]
    fn what_does_not_fit_is_as_good_as_stale() {
        let mut spent = SpentCookies::default();
        for n in 0..2 * MOST as u64 {
            spent.spend(at(n), LIFE, (at(n), 1));
            assert!(spent.names.len() <= MOST);
        }
        for n in 0..2 * MOST as u64 {
            assert_ne!(spent.verdict((at(n), 1)), Verdict::Unspent, "{n}");
        }
        // Cookies that were not spent: old ones are refused, young ones are not.
        let last_forgotten = MOST as u64 - 1;
        let by = Span::from_millis(last_forgotten);
        assert_eq!(spent.verdict((at(0), 2)), Verdict::Unknown { by });
        assert_eq!(spent.verdict((at(last_forgotten + 1), 2)), Verdict::Unspent);
    }
}

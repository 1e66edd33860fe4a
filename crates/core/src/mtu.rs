//! The largest packet that a path carries, found by probing (Datagram PLPMTUD, RFC 8899): no ICMP message is waited for or
//! believed. Sizes are those of SCTP packets, without IP and UDP.

use crate::time::Span;

/// Probes of one size that go unanswered before it counts as too large (RFC 8899 section 5.1.2: MAX_PROBES).
const MAX_PROBES: u32 = 3;
/// How long a size stands before a larger one is tried again (RFC 8899 section 5.1.1: PMTU_RAISE_TIMER).
pub(crate) const RAISE_AFTER: Span = Span::from_secs(600);
/// A probe is waited for this long at least (RFC 8899 section 5.1.1: PROBE_TIMER).
pub(crate) const LEAST_WAIT: Span = Span::from_secs(1);
/// A search that has come this close is complete.
const CLOSE_ENOUGH: usize = 8;
/// T3 expiries without the delivery of a packet above the base size in between that mean a black hole (RFC 8899 section 4.3).
const BLACK_HOLE: u32 = 2;

/// Where the search stands (RFC 8899 section 5.2). Its Base state, which confirms the base size, is left to the HEARTBEATs and
/// the handshake that confirm the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Trying this size, of which so many probes were lost. What is known to be too large, if anything is.
    Searching { candidate: usize, lost: u32, too_large: Option<usize> },
    /// Nothing larger was found.
    SearchComplete,
}

/// What the search wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A probe of this size.
    Probe(usize),
    /// Nothing, until the raise timer expires.
    Rest,
}

/// The search on one path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MtuSearch {
    base: usize,
    most: usize,
    /// The largest size that was answered, or the base.
    confirmed: usize,
    state: State,
    /// T3 expiries since a packet larger than the base was delivered.
    expiries: u32,
}

impl MtuSearch {
    /// From `base` up to `most`, both multiples of four.
    pub(crate) fn new(base: usize, most: usize) -> Self {
        let mut search = MtuSearch { base, most, confirmed: base, state: State::SearchComplete, expiries: 0 };
        search.begin();
        search
    }

    /// The size that may be used.
    pub(crate) fn confirmed(&self) -> usize {
        self.confirmed
    }

    /// What is wanted now.
    pub(crate) fn next(&self) -> Next {
        match self.state {
            State::Searching { candidate, .. } => Next::Probe(candidate),
            State::SearchComplete => Next::Rest,
        }
    }

    /// Begins, or begins anew as the raise timer expires. The largest size goes first: mostly it is the right one.
    pub(crate) fn begin(&mut self) {
        self.state = if self.most > self.confirmed {
            State::Searching { candidate: self.most, lost: 0, too_large: None }
        } else {
            State::SearchComplete
        };
    }

    /// A probe of this size was answered.
    pub(crate) fn answered(&mut self, size: usize) {
        self.confirmed = self.confirmed.max(size);
        self.expiries = 0;
        if let State::Searching { too_large, .. } = self.state {
            self.narrow(too_large);
        }
    }

    /// The probe that was wanted was not answered in time; losing it says nothing about congestion (RFC 8899 section 3).
    pub(crate) fn unanswered(&mut self) {
        let State::Searching { candidate, lost, too_large } = self.state else { return };
        if lost + 1 < MAX_PROBES {
            self.state = State::Searching { candidate, lost: lost + 1, too_large };
        } else {
            self.narrow(Some(candidate));
        }
    }

    /// The system says that this size does not leave the host.
    pub(crate) fn refused(&mut self, size: usize) {
        if let State::Searching { candidate, .. } = self.state
            && candidate >= size
        {
            self.narrow(Some(size));
        }
    }

    /// Halves what lies between what is known to pass and what is known not to.
    fn narrow(&mut self, too_large: Option<usize>) {
        let Some(limit) = too_large.filter(|limit| *limit >= self.confirmed + CLOSE_ENOUGH) else {
            self.state = State::SearchComplete;
            if too_large.is_none() {
                self.begin();
            }
            return;
        };
        let candidate = (self.confirmed + (limit - self.confirmed) / 2) / 4 * 4;
        self.state = State::Searching { candidate, lost: 0, too_large };
    }

    /// A packet of this size was delivered.
    pub(crate) fn delivered(&mut self, size: usize) {
        if size > self.base {
            self.expiries = 0;
        }
    }

    /// T3 expired with packets larger than the base outstanding; `true` if that makes a black hole of the path, which is back
    /// to its base size then.
    pub(crate) fn expired(&mut self) -> bool {
        if self.confirmed == self.base {
            return false;
        }
        self.expiries += 1;
        if self.expiries < BLACK_HOLE {
            return false;
        }
        *self = MtuSearch::new(self.base, self.most);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches on a path that carries `mtu`, whose n-th probe is lost if `loses` says so; how many probes it took.
    fn search(mtu: usize, loses: impl Fn(u32) -> bool) -> (usize, u32) {
        let mut search = MtuSearch::new(1172, 8972);
        let mut probes = 0;
        while let Next::Probe(size) = search.next() {
            assert!(size > search.confirmed() && size <= 8972 && size.is_multiple_of(4), "{size}");
            probes += 1;
            if size <= mtu && !loses(probes) { search.answered(size) } else { search.unanswered() }
        }
        (search.confirmed(), probes)
    }

    #[test]
    fn it_comes_within_some_bytes_of_what_the_path_carries() {
        for mtu in [1172, 1180, 1252, 1372, 1472, 4000, 8960, 8972] {
            let (found, probes) = search(mtu, |_| false);
            assert!(
                found <= mtu && mtu - found < CLOSE_ENOUGH + 4 && probes <= 40,
                "{mtu}: {found}, {probes}"
            );
        }
    }

    #[test]
    fn two_probes_of_three_may_be_lost() {
        assert_eq!(search(8972, |probe| probe < 3).0, 8972);
        assert!(search(8972, |probe| probe < 4).0 < 8972);
    }

    #[test]
    fn what_is_refused_by_the_system_is_not_tried_again() {
        let mut search = MtuSearch::new(1172, 8972);
        search.refused(8972);
        assert!(matches!(search.next(), Next::Probe(size) if size < 8972));
    }

    #[test]
    fn two_expiries_without_a_large_delivery_are_a_black_hole() {
        let mut search = MtuSearch::new(1172, 1472);
        search.answered(1472);
        assert_eq!((search.confirmed(), search.next()), (1472, Next::Rest));
        assert!(!search.expired());
        search.delivered(1000);
        assert!(search.expired(), "a small packet says nothing");
        assert_eq!((search.confirmed(), search.next()), (1172, Next::Probe(1472)));
        assert!(!search.expired() && !search.expired(), "at the base size nothing is too large");
        search.answered(1472);
        assert!(!search.expired());
        search.delivered(1472);
        assert!(!search.expired());
    }
}

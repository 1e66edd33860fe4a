//! Search for the largest packet that a path carries by probing (Datagram PLPMTUD, RFC 8899). ICMP messages are not used. Sizes are
//! those of SCTP packets, without IP and UDP.

use crate::time::Span;

/// Number of unanswered probes of one size after which it counts as too large (RFC 8899 section 5.1.2: MAX_PROBES).
const MAX_PROBES: u32 = 3;
/// Time after which a larger size is tried again (RFC 8899 section 5.1.1: PMTU_RAISE_TIMER).
pub(crate) const RAISE_AFTER: Span = Span::from_secs(600);
/// Minimum wait for the answer to a probe (RFC 8899 section 5.1.1: PROBE_TIMER).
pub(crate) const LEAST_WAIT: Span = Span::from_secs(1);
/// Remaining range in bytes at which a search is complete.
const CLOSE_ENOUGH: usize = 8;
/// Number of T3 expiries without delivery of a packet above the base size that indicate a black hole (RFC 8899 section 4.3).
const BLACK_HOLE: u32 = 2;

/// State of the search (RFC 8899 section 5.2). In the RFC's Error state, the size is below the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Search with a size that is tried, the number of its lost probes, and the smallest size that is known to be too large.
    Searching { candidate: usize, lost: u32, too_large: Option<usize> },
    /// End of the search without a larger size.
    SearchComplete,
}

/// Next step of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A probe of this size is sent.
    Probe(usize),
    /// No probe is sent until the raise timer expires.
    Rest,
}

/// Sizes between which a path is searched, multiples of four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Size of a path that does not carry the base size (RFC 8899 section 5.1.2: MIN_PLPMTU).
    pub(crate) least: usize,
    /// Size that is assumed to pass until a packet is lost (RFC 8899 section 5.1.2: BASE_PLPMTU).
    pub(crate) base: usize,
    /// Size that most paths carry: it is tried before larger ones.
    pub(crate) usual: usize,
    /// Limit of the interface and the configuration (RFC 8899 section 5.1.2: MAX_PLPMTU).
    pub(crate) most: usize,
}

/// Search on one path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MtuSearch {
    sizes: Sizes,
    /// Largest size that was answered. Before an answer it is the base, or the least size after the loss of a packet.
    confirmed: usize,
    /// `true` once a packet of the base size has arrived.
    is_base_known: bool,
    state: State,
    /// Number of T3 expiries since a packet larger than the base was delivered.
    expiries: u32,
}

impl MtuSearch {
    pub(crate) fn new(sizes: Sizes) -> Self {
        let mut search = MtuSearch {
            sizes,
            confirmed: sizes.base,
            is_base_known: sizes.base <= sizes.least,
            state: State::SearchComplete,
            expiries: 0,
        };
        search.begin();
        search
    }

    /// Changes the sizes, for example because the interface has another MTU. A confirmed size that is too large now shrinks to the
    /// new limit, which the path carries as well.
    pub(crate) fn bound(&mut self, sizes: Sizes) {
        if self.sizes == sizes {
            return;
        }
        let floor = if self.confirmed < self.sizes.base { sizes.least } else { sizes.base };
        self.is_base_known &= sizes.base <= self.confirmed;
        self.sizes = sizes;
        self.confirmed = self.confirmed.min(sizes.most).max(floor);
        let goes_on = |candidate| candidate > self.confirmed && candidate <= sizes.most;
        if !matches!(self.state, State::Searching { candidate, .. } if goes_on(candidate)) {
            self.begin();
        }
    }

    /// Returns the size that may be used.
    pub(crate) fn confirmed(&self) -> usize {
        self.confirmed
    }

    /// Returns the next step.
    pub(crate) fn next(&self) -> Next {
        match self.state {
            State::Searching { candidate, .. } => Next::Probe(candidate),
            State::SearchComplete => Next::Rest,
        }
    }

    /// Starts the search, or restarts it after the raise timer has expired. The usual size is first, because most paths carry it,
    /// and then the largest: a path with the usual size has it after one round trip (RFC 8899 section 5.3.2 does not specify the
    /// choice of sizes).
    pub(crate) fn begin(&mut self) {
        let Sizes { base, usual, most, .. } = self.sizes;
        let next = [base, usual.min(most), most].into_iter().find(|size| *size > self.confirmed);
        self.state = next.map_or(State::SearchComplete, |candidate| State::Searching {
            candidate,
            lost: 0,
            too_large: None,
        });
    }

    /// Handles the answer to a probe of this size.
    pub(crate) fn answered(&mut self, size: usize) {
        self.confirmed = self.confirmed.max(size);
        self.is_base_known |= size >= self.sizes.base;
        self.expiries = 0;
        if let State::Searching { too_large, .. } = self.state {
            self.narrow(too_large);
        }
    }

    /// Handles a probe that was not answered in time. Its loss is no sign of congestion (RFC 8899 section 3). On a path that is not
    /// known to carry the base size, packets have the least size from the first loss on, until the base size is answered.
    pub(crate) fn unanswered(&mut self) {
        let State::Searching { candidate, lost, too_large } = self.state else { return };
        if !self.is_base_known && self.confirmed == self.sizes.base {
            self.confirmed = self.sizes.least;
            if candidate > self.sizes.base {
                self.begin();
                return;
            }
        }
        if lost + 1 < MAX_PROBES {
            self.state = State::Searching { candidate, lost: lost + 1, too_large };
        } else {
            self.narrow(Some(candidate));
        }
    }

    /// Handles the operating system's refusal to send this size.
    pub(crate) fn refused(&mut self, size: usize) {
        if let State::Searching { candidate, .. } = self.state
            && candidate >= size
        {
            self.narrow(Some(size));
        }
    }

    /// Tries the middle between the confirmed size and the smallest one that is too large.
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

    /// Handles the delivery of a packet of this size. A packet much smaller than the current size is no evidence for that size.
    pub(crate) fn delivered(&mut self, size: usize) {
        self.is_base_known |= size >= self.sizes.base;
        if size > self.size_below().max(self.confirmed / 2) {
            self.expiries = 0;
        }
    }

    /// Handles a T3 expiry with packets outstanding that are larger than [`size_below`](Self::size_below). Returns `true` if the
    /// path counts as a black hole now; its packets then have that size.
    pub(crate) fn expired(&mut self) -> bool {
        let below = self.size_below();
        if self.confirmed <= below {
            return false;
        }
        self.expiries += 1;
        if self.expiries < BLACK_HOLE {
            return false;
        }
        *self = MtuSearch::new(self.sizes);
        self.confirmed = below;
        self.begin();
        true
    }

    /// Returns the size of the path once it does not carry the current one: the base, and below that the least.
    fn size_below(&self) -> usize {
        if self.confirmed > self.sizes.base { self.sizes.base } else { self.sizes.least }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes of an interface for jumbo frames.
    const JUMBO: Sizes = Sizes { least: 548, base: 1172, usual: 1472, most: 8972 };
    /// Sizes of an Ethernet interface.
    const ETHERNET: Sizes = Sizes { most: 1472, ..JUMBO };

    /// Returns the size that is found on a path that carries `mtu`, and the sizes probed. `loses` selects the probes that are lost.
    fn search(sizes: Sizes, mtu: usize, loses: impl Fn(usize) -> bool) -> (usize, Vec<usize>) {
        search_from(MtuSearch::new(sizes), mtu, loses)
    }

    /// Searches on a path that has carried packets of the base size.
    fn search_from_base(sizes: Sizes, mtu: usize, loses: impl Fn(usize) -> bool) -> (usize, Vec<usize>) {
        let mut search = MtuSearch::new(sizes);
        search.delivered(sizes.base);
        search_from(search, mtu, loses)
    }

    fn search_from(mut search: MtuSearch, mtu: usize, loses: impl Fn(usize) -> bool) -> (usize, Vec<usize>) {
        let sizes = search.sizes;
        let mut probes = Vec::new();
        while let Next::Probe(size) = search.next() {
            assert!(size > search.confirmed() && size <= sizes.most && size.is_multiple_of(4), "{size}");
            probes.push(size);
            if size <= mtu && !loses(probes.len()) { search.answered(size) } else { search.unanswered() }
        }
        (search.confirmed(), probes)
    }

    #[test]
    fn search_ends_within_some_bytes_of_the_path_mtu() {
        for mtu in [548, 600, 972, 1164, 1172, 1180, 1252, 1372, 1472, 4000, 8960, 8972] {
            let (found, probes) = search(JUMBO, mtu, |_| false);
            assert!(
                found <= mtu && mtu - found < CLOSE_ENOUGH + 4 && probes.len() <= 40,
                "{mtu}: {found}, {probes:?}"
            );
        }
    }

    #[test]
    fn the_usual_size_is_probed_before_a_larger_one() {
        assert_eq!(search(JUMBO, 8972, |_| false), (8972, vec![1472, 8972]));
        let (found, probes) = search(JUMBO, 1472, |_| false);
        assert_eq!((found, &probes[..4]), (1472, &[1472, 8972, 8972, 8972][..]));
    }

    #[test]
    fn usual_size_is_the_only_probe_if_no_interface_is_larger() {
        assert_eq!(search(ETHERNET, 9000, |_| false), (1472, vec![1472]));
        let smaller = Sizes { most: 1252, ..JUMBO };
        assert_eq!(search(smaller, 9000, |_| false), (1252, vec![1252]));
    }

    #[test]
    fn two_probes_of_three_may_be_lost() {
        assert_eq!(search_from_base(ETHERNET, 1472, |probe| probe < 3).0, 1472);
        assert!(search_from_base(ETHERNET, 1472, |probe| probe < 4).0 < 1472);
    }

    #[test]
    fn size_refused_by_the_system_is_not_probed_again() {
        let mut search = MtuSearch::new(ETHERNET);
        search.refused(1472);
        assert!(matches!(search.next(), Next::Probe(size) if size < 1472));
    }

    #[test]
    fn two_expiries_without_a_large_delivery_are_a_black_hole() {
        let mut search = MtuSearch::new(ETHERNET);
        search.answered(1472);
        assert_eq!((search.confirmed(), search.next()), (1472, Next::Rest));
        assert!(!search.expired());
        search.delivered(1000);
        assert!(search.expired(), "a small packet says nothing");
        assert_eq!((search.confirmed(), search.next()), (1172, Next::Probe(1472)));
        search.answered(1472);
        assert!(!search.expired());
        search.delivered(1472);
        assert!(!search.expired());
    }

    #[test]
    fn path_below_its_base_size_has_the_least_size_after_the_first_lost_probe() {
        let mut search = MtuSearch::new(ETHERNET);
        search.unanswered();
        assert_eq!((search.confirmed(), search.next()), (548, Next::Probe(1172)));
        for _ in 0..MAX_PROBES {
            search.unanswered();
        }
        assert_eq!((search.confirmed(), search.next()), (548, Next::Probe(860)));
        search.answered(860);
        search.bound(Sizes { most: 1400, ..ETHERNET });
        assert_eq!(search.confirmed(), 860, "a change of what the interface takes does not raise it");
    }

    #[test]
    fn lost_larger_probe_keeps_the_confirmed_base_size() {
        let mut search = MtuSearch::new(ETHERNET);
        search.delivered(1172);
        search.unanswered();
        assert_eq!((search.confirmed(), search.next()), (1172, Next::Probe(1472)));
    }

    #[test]
    fn two_expiries_at_the_base_size_lead_to_the_least_size() {
        let mut search = MtuSearch::new(ETHERNET);
        search.delivered(1172);
        assert!(!search.expired());
        search.delivered(1172);
        assert!(!search.expired(), "a packet of that size has arrived in between");
        assert!(search.expired());
        assert_eq!((search.confirmed(), search.next()), (548, Next::Probe(1172)));
        assert!(!search.expired() && !search.expired(), "at the least size no packet is too large");
        search.answered(1172);
        assert_eq!(search.confirmed(), 1172);
    }

    #[test]
    fn packets_of_the_usual_size_do_not_hide_a_black_hole_of_much_larger_ones() {
        let mut search = MtuSearch::new(JUMBO);
        search.answered(1472);
        search.answered(8972);
        assert!(!search.expired());
        search.delivered(1472);
        assert!(search.expired());
        assert_eq!((search.confirmed(), search.next()), (1172, Next::Probe(1472)));
    }

    #[test]
    fn limit_below_the_found_size_becomes_the_size() {
        let mut search = MtuSearch::new(JUMBO);
        search.answered(1472);
        search.answered(8972);
        search.bound(Sizes { most: 4000, ..JUMBO });
        assert_eq!((search.confirmed(), search.next()), (4000, Next::Rest));
        search.bound(ETHERNET);
        assert_eq!((search.confirmed(), search.next()), (1472, Next::Rest));
        search.bound(Sizes { base: 972, usual: 972, most: 972, ..JUMBO });
        assert_eq!((search.confirmed(), search.next()), (972, Next::Rest));
    }

    #[test]
    fn a_limit_that_rises_is_searched_for() {
        let mut search = MtuSearch::new(ETHERNET);
        search.answered(1472);
        search.bound(JUMBO);
        assert_eq!((search.confirmed(), search.next()), (1472, Next::Probe(8972)));
    }

    #[test]
    fn a_limit_that_changes_amid_a_search_ends_only_what_is_beyond_it() {
        let mut search = MtuSearch::new(JUMBO);
        search.delivered(1172);
        search.unanswered();
        search.bound(ETHERNET);
        assert_eq!(search.next(), Next::Probe(1472));
        search.unanswered();
        search.unanswered();
        assert_eq!(search.next(), Next::Probe(1320), "three of one size were lost");
        search.bound(Sizes { most: 1300, ..JUMBO });
        assert_eq!(search.next(), Next::Probe(1300));
    }
}

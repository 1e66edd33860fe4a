//! Reachability of the peer: errors over all paths, silence, and the time without DATA.

use crate::entropy::Entropy;
use crate::time::{Span, Time};

/// Reachability of the peer, and the random numbers of HEARTBEATs.
#[derive(Clone, Debug)]
pub(crate) struct Reachability {
    entropy: Entropy,
    /// Consecutive errors on all paths (RFC 9260 section 8.1).
    errors: u32,
    /// Time of the peer's latest packet. The time is advanced over periods in which the peer had nothing to answer.
    silent_since: Time,
    /// Time at which DATA was last sent or received.
    data_at: Time,
}

impl Reachability {
    pub(crate) fn new(now: Time, entropy: Entropy) -> Self {
        Reachability { entropy, errors: 0, silent_since: now, data_at: now }
    }

    /// Draws the nonce of a HEARTBEAT.
    pub(crate) fn nonce(&mut self) -> u64 {
        self.entropy.next_u64()
    }

    /// Draws a time below `most`.
    pub(crate) fn jitter(&mut self, most: Span) -> Span {
        Span::from_nanos(self.entropy.below(most.as_nanos().max(1)))
    }

    /// Returns the time since DATA was last sent or received.
    #[inline]
    pub(crate) fn idle_for(&self, now: Time) -> Span {
        now.since(self.data_at)
    }

    /// Records that DATA was sent or received.
    #[inline]
    pub(crate) fn note_data(&mut self, now: Time) {
        self.data_at = now;
    }

    /// Records a packet of the peer.
    #[inline]
    pub(crate) fn note_packet(&mut self, now: Time) {
        self.silent_since = now;
    }

    /// Clears all errors, because the peer has answered.
    #[inline]
    pub(crate) fn note_answer(&mut self) {
        self.errors = 0;
    }

    pub(crate) fn errors(&self) -> u32 {
        self.errors
    }

    /// Counts an error.
    pub(crate) fn count_error(&mut self) {
        self.errors += 1;
    }

    /// Counts up to this number of errors.
    pub(crate) fn count_errors_to(&mut self, errors: u32) {
        self.errors = self.errors.max(errors);
    }

    /// Moves the start of the silence before the first error. Until then the peer had nothing to answer between HEARTBEATs, so its
    /// silence started at most HB.interval ago, for any idle time.
    pub(crate) fn forgive_idle_silence(&mut self, interval: Span, now: Time) {
        if self.errors == 0 {
            let heard_for = now.since(self.silent_since);
            self.silent_since += heard_for - heard_for.min(interval);
        }
    }

    /// Returns `true` if the peer is unreachable (RFC 9260 section 8.1). A limit of silence replaces the error count, which rises
    /// over all paths together and therefore faster with more paths.
    pub(crate) fn is_peer_unreachable(
        &self,
        silence_limit: Option<Span>,
        max_retrans: u32,
        now: Time,
    ) -> bool {
        match silence_limit {
            Some(limit) => self.errors > 0 && now.since(self.silent_since) >= limit,
            //= docs/rfc9260.txt#section-8.1
            //# If the value of this counter exceeds the limit indicated in the protocol parameter
            //# 'Association.Max.Retrans', the endpoint SHOULD consider the peer endpoint unreachable and SHALL stop
            //# transmitting any more data to it (and thus the association enters the CLOSED state).
            None => self.errors > max_retrans,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::association::testing::at;

    fn reachability() -> Reachability {
        Reachability::new(at(0), Entropy::new([3; 32]))
    }

    #[test]
    fn peer_is_unreachable_after_more_errors_than_the_limit() {
        let mut peer = reachability();
        (0..3).for_each(|_| peer.count_error());
        assert!(!peer.is_peer_unreachable(None, 3, at(0)));
        peer.count_errors_to(4);
        assert!(peer.is_peer_unreachable(None, 3, at(0)));
        peer.note_answer();
        assert!(!peer.is_peer_unreachable(None, 3, at(0)));
    }

    #[test]
    fn limit_of_silence_counts_from_latest_packet_and_needs_an_error() {
        let (mut peer, limit) = (reachability(), Some(Span::from_secs(2)));
        peer.note_packet(at(1_000));
        assert!(!peer.is_peer_unreachable(limit, 0, at(9_000)), "nothing was unanswered");
        peer.count_error();
        assert!(!peer.is_peer_unreachable(limit, 0, at(2_999)));
        assert!(peer.is_peer_unreachable(limit, 0, at(3_000)));
    }

    #[test]
    fn idle_time_before_first_error_counts_up_to_the_interval() {
        let (mut peer, limit) = (reachability(), Some(Span::from_secs(60)));
        peer.forgive_idle_silence(Span::from_secs(30), at(1_000_000));
        peer.count_error();
        assert!(!peer.is_peer_unreachable(limit, 0, at(1_029_999)));
        assert!(peer.is_peer_unreachable(limit, 0, at(1_030_000)));
    }
}

//! Duplicate copies: copies in flight whose chunk was acknowledged or lost in another copy.
//!
//! A duplicate copy is still on its way. It counts as in flight until it is acknowledged or the peer reports it as a duplicate, until
//! later packets of its path overtake it, or until T3 expires.

use std::collections::VecDeque;

use crate::policy::SendStamps;
use crate::time::{Span, Time};
use crate::units::ChunkBytes;

/// Later packets of the path that must arrive before a duplicate copy counts as lost (RFC 9002 section 6.1.1, kPacketThreshold).
const PACKET_THRESHOLD: usize = 3;

/// Copy in flight whose chunk is acknowledged or was lost in another copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DuplicateCopy {
    pub(crate) tsn: u64,
    pub(crate) bytes: ChunkBytes,
    pub(crate) stamps: SendStamps,
    /// Number of later packets of the path that have arrived, up to the threshold.
    overtaken: usize,
}

/// Send times of the latest packets that a SACK reports as delivered on one path, latest first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LatestDelivered([Option<Time>; PACKET_THRESHOLD]);

impl LatestDelivered {
    /// Records a delivered packet by its send time.
    pub(crate) fn note(&mut self, sent_at: Time) {
        let mut rest = Some(sent_at);
        for slot in &mut self.0 {
            if *slot < rest {
                std::mem::swap(slot, &mut rest);
            }
        }
    }

    /// Returns the number of packets that were sent after this time, up to the threshold.
    fn sent_after(&self, sent_at: Time) -> usize {
        self.0.iter().flatten().filter(|latest| **latest > sent_at).count()
    }
}

/// Duplicate copies of one path.
#[derive(Clone, Debug, Default)]
pub(super) struct DuplicateCopies(VecDeque<DuplicateCopy>);

impl DuplicateCopies {
    pub(super) fn push(&mut self, tsn: u64, bytes: ChunkBytes, stamps: SendStamps) {
        self.0.push_back(DuplicateCopy { tsn, bytes, stamps, overtaken: 0 });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &DuplicateCopy> {
        self.0.iter()
    }

    /// Takes the copy of this TSN.
    pub(super) fn take(&mut self, tsn: u64) -> Option<DuplicateCopy> {
        self.take_first(|copy| copy.tsn == tsn)
    }

    /// Returns `true` if there is a copy of this TSN with these stamps.
    pub(super) fn contains(&self, tsn: u64, stamps: SendStamps) -> bool {
        self.0.iter().any(|copy| copy.tsn == tsn && copy.stamps == stamps)
    }

    /// Takes the copy of this TSN with these stamps.
    pub(super) fn take_sent_with(&mut self, tsn: u64, stamps: SendStamps) -> Option<DuplicateCopy> {
        self.take_first(|copy| copy.tsn == tsn && copy.stamps == stamps)
    }

    /// Takes the first copy.
    pub(super) fn pop(&mut self) -> Option<DuplicateCopy> {
        self.0.pop_front()
    }

    /// Takes the first copy if it was sent before this time.
    pub(super) fn pop_sent_before(&mut self, sent_at: Time) -> Option<DuplicateCopy> {
        let is_earlier = self.0.front().is_some_and(|copy| copy.stamps.sent_at < sent_at);
        is_earlier.then(|| self.0.pop_front()).flatten()
    }

    /// Counts the packets of a SACK that have overtaken duplicates.
    pub(super) fn count_overtaken(&mut self, delivered: &LatestDelivered) {
        for copy in &mut self.0 {
            let later = delivered.sent_after(copy.stamps.sent_at);
            copy.overtaken = (copy.overtaken + later).min(PACKET_THRESHOLD);
        }
    }

    /// Takes a copy that is lost: the threshold of later packets has arrived, or one of them has and the copy has been in
    /// flight for longer than `longest`.
    pub(super) fn pop_lost(&mut self, now: Time, longest: Span) -> Option<DuplicateCopy> {
        self.take_first(|copy| {
            let late = copy.overtaken > 0 && now.since(copy.stamps.sent_at) > longest;
            late || copy.overtaken == PACKET_THRESHOLD
        })
    }

    fn take_first(&mut self, is: impl Fn(&DuplicateCopy) -> bool) -> Option<DuplicateCopy> {
        self.0.iter().position(is).and_then(|at| self.0.remove(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Returns copies that were sent at these times, in milliseconds, with TSNs from 1.
    fn sent_at(times: &[u64]) -> DuplicateCopies {
        let mut duplicates = DuplicateCopies::default();
        for (tsn, ms) in (1..).zip(times) {
            let stamps = SendStamps { sent_at: at(*ms), ..SendStamps::default() };
            duplicates.push(tsn, ChunkBytes::new(100), stamps);
        }
        duplicates
    }

    fn delivered(times: &[u64]) -> LatestDelivered {
        let mut latest = LatestDelivered::default();
        times.iter().for_each(|ms| latest.note(at(*ms)));
        latest
    }

    /// Takes the copies that are lost at this time, with a time threshold of 50 ms.
    fn lost(duplicates: &mut DuplicateCopies, now: u64) -> Vec<u64> {
        let longest = Span::from_millis(50);
        std::iter::from_fn(|| duplicates.pop_lost(at(now), longest)).map(|copy| copy.tsn).collect()
    }

    #[test]
    fn three_later_packets_in_any_order_make_copy_lost() {
        for times in [[11, 12, 13, 5], [13, 5, 12, 11], [5, 11, 13, 12]] {
            let mut duplicates = sent_at(&[4, 10, 11]);
            duplicates.count_overtaken(&delivered(&times));
            assert_eq!(lost(&mut duplicates, 0), [1, 2], "{times:?}");
        }
    }

    #[test]
    fn packets_of_several_sacks_add_up() {
        let mut duplicates = sent_at(&[10]);
        for (time, expected) in [(11, &[][..]), (9, &[]), (12, &[]), (13, &[1])] {
            duplicates.count_overtaken(&delivered(&[time]));
            assert_eq!(lost(&mut duplicates, 0), expected, "{time}");
        }
    }

    #[test]
    fn one_later_packet_makes_copy_lost_after_time_threshold() {
        let mut duplicates = sent_at(&[10, 20]);
        assert_eq!(lost(&mut duplicates, 65), [], "nothing has arrived");
        duplicates.count_overtaken(&delivered(&[30]));
        assert_eq!(lost(&mut duplicates, 65), [1]);
    }

    #[test]
    fn packets_of_the_same_instant_overtake_nothing() {
        let mut duplicates = sent_at(&[10]);
        duplicates.count_overtaken(&delivered(&[10, 10, 10]));
        assert_eq!(lost(&mut duplicates, 100), []);
    }

    #[test]
    fn reported_copy_is_taken_from_the_middle() {
        let mut duplicates = sent_at(&[10, 20, 30]);
        assert!(duplicates.take(2).is_some_and(|copy| copy.stamps.sent_at == at(20)));
        assert!(duplicates.take(2).is_none());
        assert_eq!(duplicates.iter().map(|copy| copy.tsn).collect::<Vec<_>>(), [1, 3]);
    }
}

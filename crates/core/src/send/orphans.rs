//! Copies in flight whose chunk another copy's acknowledgement has settled.
//!
//! An orphan is still on its way. It counts as in flight until the peer reports it as a duplicate, until later packets of its path
//! overtake it, or until T3 expires.

use std::collections::VecDeque;

use crate::policy::SendStamps;
use crate::time::{Span, Time};
use crate::units::ChunkBytes;

/// Later packets of the path that must arrive before an orphan counts as lost (RFC 9002 section 6.1.1, kPacketThreshold).
const PACKET_THRESHOLD: usize = 3;

/// One such copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Orphan {
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

/// The orphans of one path.
#[derive(Debug, Default)]
pub(super) struct Orphans(VecDeque<Orphan>);

impl Orphans {
    pub(super) fn push(&mut self, tsn: u64, bytes: ChunkBytes, stamps: SendStamps) {
        self.0.push_back(Orphan { tsn, bytes, stamps, overtaken: 0 });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Orphan> {
        self.0.iter()
    }

    /// Takes the orphan of this TSN.
    pub(super) fn take(&mut self, tsn: u64) -> Option<Orphan> {
        self.take_first(|orphan| orphan.tsn == tsn)
    }

    /// Takes the first orphan.
    pub(super) fn pop(&mut self) -> Option<Orphan> {
        self.0.pop_front()
    }

    /// Takes the first orphan if it was sent before this time.
    pub(super) fn pop_sent_before(&mut self, sent_at: Time) -> Option<Orphan> {
        let is_earlier = self.0.front().is_some_and(|orphan| orphan.stamps.sent_at < sent_at);
        is_earlier.then(|| self.0.pop_front()).flatten()
    }

    /// Counts the packets of a SACK that have overtaken orphans.
    pub(super) fn count_overtaken(&mut self, delivered: &LatestDelivered) {
        for orphan in &mut self.0 {
            let later = delivered.sent_after(orphan.stamps.sent_at);
            orphan.overtaken = (orphan.overtaken + later).min(PACKET_THRESHOLD);
        }
    }

    /// Takes an orphan that is lost: enough later packets have arrived, or one has and the orphan is under way for longer than this.
    pub(super) fn pop_lost(&mut self, now: Time, longest: Span) -> Option<Orphan> {
        self.take_first(|orphan| {
            let late = orphan.overtaken > 0 && now.since(orphan.stamps.sent_at) > longest;
            late || orphan.overtaken == PACKET_THRESHOLD
        })
    }

    fn take_first(&mut self, is: impl Fn(&Orphan) -> bool) -> Option<Orphan> {
        self.0.iter().position(is).and_then(|at| self.0.remove(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Returns orphans that were sent at these times, in milliseconds, with TSNs from 1.
    fn sent_at(times: &[u64]) -> Orphans {
        let mut orphans = Orphans::default();
        for (tsn, ms) in (1..).zip(times) {
            let stamps = SendStamps { sent_at: at(*ms), ..SendStamps::default() };
            orphans.push(tsn, ChunkBytes::new(100), stamps);
        }
        orphans
    }

    fn delivered(times: &[u64]) -> LatestDelivered {
        let mut latest = LatestDelivered::default();
        times.iter().for_each(|ms| latest.note(at(*ms)));
        latest
    }

    /// Takes the orphans that are lost at this time, with a time threshold of 50 ms.
    fn lost(orphans: &mut Orphans, now: u64) -> Vec<u64> {
        let longest = Span::from_millis(50);
        std::iter::from_fn(|| orphans.pop_lost(at(now), longest)).map(|orphan| orphan.tsn).collect()
    }

    #[test]
    fn three_later_packets_make_an_orphan_lost_in_any_order() {
        for times in [[11, 12, 13, 5], [13, 5, 12, 11], [5, 11, 13, 12]] {
            let mut orphans = sent_at(&[4, 10, 11]);
            orphans.count_overtaken(&delivered(&times));
            assert_eq!(lost(&mut orphans, 0), [1, 2], "{times:?}");
        }
    }

    #[test]
    fn packets_of_several_sacks_add_up() {
        let mut orphans = sent_at(&[10]);
        for (time, expected) in [(11, &[][..]), (9, &[]), (12, &[]), (13, &[1])] {
            orphans.count_overtaken(&delivered(&[time]));
            assert_eq!(lost(&mut orphans, 0), expected, "{time}");
        }
    }

    #[test]
    fn one_later_packet_makes_an_orphan_lost_after_the_time_threshold() {
        let mut orphans = sent_at(&[10, 20]);
        assert_eq!(lost(&mut orphans, 65), [], "nothing has arrived");
        orphans.count_overtaken(&delivered(&[30]));
        assert_eq!(lost(&mut orphans, 65), [1]);
    }

    #[test]
    fn packets_of_the_same_instant_overtake_nothing() {
        let mut orphans = sent_at(&[10]);
        orphans.count_overtaken(&delivered(&[10, 10, 10]));
        assert_eq!(lost(&mut orphans, 100), []);
    }

    #[test]
    fn reported_orphan_is_taken_from_the_middle() {
        let mut orphans = sent_at(&[10, 20, 30]);
        assert!(orphans.take(2).is_some_and(|orphan| orphan.stamps.sent_at == at(20)));
        assert!(orphans.take(2).is_none());
        assert_eq!(orphans.iter().map(|orphan| orphan.tsn).collect::<Vec<_>>(), [1, 3]);
    }
}

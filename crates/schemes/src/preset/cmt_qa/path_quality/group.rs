//! CMT-QA's measure of a path (Xu et al. 2013, equation 1): the time per byte that a group of chunks takes to pass through the
//! path's part of the send buffer.

use anabranch_core::time::{Span, Time};
use anabranch_core::units::ChunkBytes;

use crate::definition::Equation;

pub(crate) const RULES: &[Equation] = &[Equation {
    name: "equation 1",
    rule: "Q = (T_l - T_e) / buffersize, in seconds per byte",
    file: file!(),
}];

/// Chunks that form a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupSpan {
    /// All chunks that enter between two updates of Q.
    Interval,
    /// The chunks that enter until they fill a congestion window.
    Window,
}

/// Chunks that entered a path's buffer together, and their departures so far.
#[derive(Clone, Copy, Debug)]
struct Group {
    first_tsn: u64,
    last_tsn: u64,
    /// T_e: time at which the first chunk entered.
    entered_at: Time,
    entered: ChunkBytes,
    /// Set while more chunks may enter.
    open: bool,
    left: ChunkBytes,
    /// T_l: arrival time of the latest SACK for one of its chunks.
    left_at: Time,
}

impl Group {
    fn has(&self, tsn: u64) -> bool {
        (self.first_tsn..=self.last_tsn).contains(&tsn)
    }
}

/// Time and bytes of the measured groups: the two sides of equation 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Measured {
    time: Span,
    bytes: ChunkBytes,
}

/// Measurement of one path.
///
/// A group is complete when all of it has left, so that idle time of the path does not count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Throughput {
    group: Option<Group>,
    measured: Measured,
    /// Highest TSN that entered.
    highest: Option<u64>,
}

impl Throughput {
    /// Records a chunk that enters. Chunks beyond `limit` bytes of a group are not measured.
    pub(crate) fn enter(&mut self, tsn: u64, bytes: ChunkBytes, now: Time, limit: Option<ChunkBytes>) {
        self.highest = self.highest.max(Some(tsn));
        let Some(group) = &mut self.group else {
            self.group = Some(Group {
                first_tsn: tsn,
                last_tsn: tsn,
                entered_at: now,
                entered: bytes,
                open: limit.is_none_or(|limit| bytes < limit),
                left: ChunkBytes::ZERO,
                left_at: now,
            });
            return;
        };
        // Only the TSN identifies chunks: a chunk from another path's buffer with a TSN in this range belongs to the group too.
        if group.open || group.has(tsn) {
            group.first_tsn = group.first_tsn.min(tsn);
            group.last_tsn = group.last_tsn.max(tsn);
            group.entered += bytes;
            group.open = group.open && limit.is_none_or(|limit| group.entered < limit);
        }
    }

    /// Returns `true` if a chunk that is sent for the first time has entered the buffer before. If the scheduler binds chunks to
    /// paths, a chunk enters when it is bound; otherwise when it is sent.
    pub(crate) fn has_entered(&self, tsn: u64) -> bool {
        self.highest.is_some_and(|highest| tsn <= highest)
    }

    /// Records a chunk that leaves the group, because its SACK arrived.
    pub(crate) fn leave(&mut self, tsn: u64, bytes: ChunkBytes, now: Time, span: GroupSpan) {
        if let Some(group) = self.group.as_mut().filter(|group| group.has(tsn)) {
            group.left += bytes;
            group.left_at = now;
            self.complete_if_empty(span);
        }
    }

    /// Removes a chunk that was rebound or lost.
    pub(crate) fn give_up(&mut self, tsn: u64, bytes: ChunkBytes, span: GroupSpan) {
        if let Some(group) = self.group.as_mut().filter(|group| group.has(tsn)) {
            group.entered -= bytes;
            self.complete_if_empty(span);
        }
    }

    fn complete_if_empty(&mut self, span: GroupSpan) {
        if self.group.is_some_and(|group| group.left >= group.entered) {
            self.take_in_group(span);
        }
    }

    /// Ends the group with the chunks that have left it.
    fn take_in_group(&mut self, span: GroupSpan) {
        let Some(group) = self.group.take().filter(|group| !group.left.is_zero()) else { return };
        let so_far = match span {
            GroupSpan::Interval => self.measured,
            GroupSpan::Window => Measured::default(),
        };
        self.measured = Measured {
            time: so_far.time + group.left_at.since(group.entered_at),
            bytes: so_far.bytes + group.left,
        };
    }

    /// Equation 1 at an update: returns Q = (T_l - T_e) / buffersize in seconds per byte, or `None` if nothing was measured since
    /// the previous update. Measurements of an interval restart with it.
    pub(crate) fn update(&mut self, span: GroupSpan) -> Option<f64> {
        if span == GroupSpan::Interval {
            self.take_in_group(span);
        }
        let Measured { time, bytes } = std::mem::take(&mut self.measured);
        (!bytes.is_zero()).then(|| time.as_secs_f64() / bytes.get() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: ChunkBytes = ChunkBytes::new(1000);

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn enter(path: &mut Throughput, tsns: std::ops::RangeInclusive<u64>, ms: u64) {
        tsns.for_each(|tsn| path.enter(tsn, CHUNK, at(ms), None));
    }

    fn leave(path: &mut Throughput, tsns: std::ops::RangeInclusive<u64>, ms: u64, span: GroupSpan) {
        tsns.for_each(|tsn| path.leave(tsn, CHUNK, at(ms), span));
    }

    fn close(q: Option<f64>, expected: f64) {
        let q = q.expect("a measure");
        assert!((q - expected).abs() < 1e-12, "{q} is not {expected}");
    }

    use GroupSpan::{Interval, Window};

    #[test]
    fn equation_1_on_known_numbers() {
        // Ten chunks of 1000 B enter from 100 ms on; the last SACK arrives at 600 ms: 0.5 s / 10,000 B = 50 us per byte.
        for span in [Interval, Window] {
            let mut path = Throughput::default();
            enter(&mut path, 1..=4, 100);
            enter(&mut path, 5..=10, 130);
            leave(&mut path, 1..=5, 300, span);
            leave(&mut path, 6..=10, 600, span);
            close(path.update(span), 0.5 / 10_000.0);
        }
    }

    #[test]
    fn an_update_in_between_counts_what_entered_and_left_so_far() {
        // Of ten chunks six have left, the last of them 300 ms after the first entered: 0.3 s / 6000 B.
        let mut path = Throughput::default();
        enter(&mut path, 1..=10, 100);
        leave(&mut path, 1..=6, 400, Interval);
        close(path.update(Interval), 0.3 / 6000.0);
        // The other four belong to no later group.
        enter(&mut path, 11..=12, 500);
        leave(&mut path, 7..=10, 600, Interval);
        assert_eq!(path.update(Interval), None);
    }

    #[test]
    fn a_group_of_a_window_outlasts_an_update() {
        let mut path = Throughput::default();
        enter(&mut path, 1..=4, 100);
        leave(&mut path, 1..=3, 200, Window);
        assert_eq!(path.update(Window), None);
        leave(&mut path, 4..=4, 300, Window);
        close(path.update(Window), 0.2 / 4000.0);
    }

    #[test]
    fn a_group_of_a_window_takes_no_more_than_the_window() {
        // The window is 2500 B: chunks 1 to 3 fill it, 4 and 5 are not measured.
        let mut path = Throughput::default();
        (1..=5).for_each(|tsn| path.enter(tsn, CHUNK, at(0), Some(ChunkBytes::new(2500))));
        leave(&mut path, 1..=3, 90, Window);
        leave(&mut path, 4..=5, 500, Window);
        close(path.update(Window), 0.09 / 3000.0);
    }

    #[test]
    fn of_several_groups_an_interval_takes_all_and_a_window_the_latest() {
        // Two groups: 2000 B in 100 ms, and after an idle time of 10 s 4000 B in 300 ms.
        for (span, expected) in [(Interval, 0.4 / 6000.0), (Window, 0.3 / 4000.0)] {
            let mut path = Throughput::default();
            enter(&mut path, 1..=2, 0);
            leave(&mut path, 1..=2, 100, span);
            enter(&mut path, 3..=6, 10_100);
            leave(&mut path, 3..=6, 10_400, span);
            close(path.update(span), expected);
            assert_eq!(path.update(span), None, "each is told once");
        }
    }

    #[test]
    fn lost_or_returned_chunk_leaves_its_group() {
        let mut path = Throughput::default();
        enter(&mut path, 1..=3, 0);
        leave(&mut path, 1..=2, 80, Window);
        path.give_up(3, CHUNK, Window);
        close(path.update(Window), 0.08 / 2000.0);
        enter(&mut path, 4..=4, 100);
        path.give_up(4, CHUNK, Window);
        assert_eq!(path.update(Window), None, "a group of nothing");
    }

    #[test]
    fn chunks_of_other_groups_are_ignored() {
        let mut path = Throughput::default();
        leave(&mut path, 1..=9, 50, Interval);
        path.give_up(3, CHUNK, Interval);
        assert_eq!(path.update(Interval), None);
        enter(&mut path, 10..=11, 100);
        leave(&mut path, 1..=9, 150, Interval);
        leave(&mut path, 10..=11, 200, Interval);
        close(path.update(Interval), 0.1 / 2000.0);
    }

    #[test]
    fn a_chunk_that_moves_into_the_range_of_a_full_group_belongs_to_it() {
        let mut path = Throughput::default();
        for tsn in [1, 5] {
            path.enter(tsn, CHUNK, at(0), Some(ChunkBytes::new(2000)));
        }
        path.enter(3, CHUNK, at(40), Some(ChunkBytes::new(2000)));
        path.leave(1, CHUNK, at(100), Window);
        path.leave(5, CHUNK, at(110), Window);
        assert_eq!(path.update(Window), None);
        path.leave(3, CHUNK, at(120), Window);
        close(path.update(Window), 0.12 / 3000.0);
    }

    #[test]
    fn bound_chunk_enters_before_transmission() {
        let mut path = Throughput::default();
        assert!(!path.has_entered(1));
        enter(&mut path, 1..=4, 0);
        assert!(path.has_entered(4) && !path.has_entered(5));
    }
}

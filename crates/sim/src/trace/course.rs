//! A link that sends as a capacity trace admits.
//!
//! A packet departs once the trace has admitted the work of the packet and of all before it in its busy period. Work that is admitted
//! while the link is idle is lost. For opportunities this is Mahimahi's rule: the bytes of an opportunity are spent on the packets
//! that wait, one after the other, and a packet that comes at the moment of an opportunity has missed it.

use anabranch_core::time::{Span, Time};
use anabranch_core::units::WireBytes;

use super::Playback;
use super::capacity::{CapacityTrace, Kind, Point, WORK_PER_BYTE, rate_of};

/// Place of a link in its capacity trace.
#[derive(Debug)]
pub(crate) struct TraceCursor {
    playback: Playback<CapacityTrace>,
    /// Work that was spent or lost, counted from the beginning of the trace.
    spent: u128,
    /// Repetition in which the latest packet departed, and the work of all before it.
    cycle: u64,
    cycle_work: u128,
    /// Point of that repetition by which it departed.
    index: usize,
}

impl TraceCursor {
    pub(crate) fn new(playback: Playback<CapacityTrace>) -> Self {
        TraceCursor { playback, spent: 0, cycle: 0, cycle_work: 0, index: 0 }
    }

    /// Begins a busy period: work that was admitted before `now` or at `now` is lost.
    pub(crate) fn restart(&mut self, now: Time) {
        let trace = &self.playback.trace;
        let (at, period) = ((now + self.playback.offset).as_nanos(), trace.duration.as_nanos());
        if !self.playback.repeat {
            self.spent = self.spent.max(trace.work_until(at.min(period)));
            return;
        }
        let (cycle, at) = (at / period, at % period);
        self.spent = u128::from(cycle) * trace.curve.total() + trace.work_until(at);
    }

    /// Returns the departure time of a packet that follows those of the busy period.
    pub(crate) fn send(&mut self, size: WireBytes) -> Time {
        let per_byte = match self.playback.trace.kind {
            Kind::Opportunities { .. } => 1,
            Kind::Rates => WORK_PER_BYTE,
        };
        self.spent += u128::from(size.get()) * per_byte;
        let Some(at) = self.find() else { return Time::from_nanos(u64::MAX) };
        Time::ZERO + (Span::from_nanos(at) - self.playback.offset)
    }

    /// Returns the time since the beginning of the trace at which it has admitted the work that is spent, if it ever does.
    fn find(&mut self) -> Option<u64> {
        let curve = &*self.playback.trace.curve;
        let total = curve.total();
        let is_in_cycle = self.cycle_work < self.spent && self.spent <= self.cycle_work + total;
        if !is_in_cycle {
            // A packet without bytes departs with the one before it.
            let cycle = self.spent.saturating_sub(1) / total;
            self.cycle = u64::try_from(cycle).ok()?;
            self.cycle_work = cycle * total;
            self.index = 0;
        }
        if self.cycle > 0 && !self.playback.repeat {
            return None;
        }
        let work = self.spent - self.cycle_work;
        if !self.is_reached_at(self.index, work) {
            let next = self.index + 1;
            let is_next = next < curve.points.len() && self.is_reached_at(next, work);
            self.index = if is_next { next } else { curve.points.partition_point(|point| point.work < work) };
        }
        let (before, point) = (curve.before(self.index), curve.points[self.index]);
        let at = match self.playback.trace.kind {
            Kind::Opportunities { .. } => point.at,
            Kind::Rates => before.at + time_of(before, point, work),
        };
        let period = self.playback.trace.duration.as_nanos();
        period.checked_mul(self.cycle)?.checked_add(at)
    }

    /// Returns `true` if the work is reached between the point before that of the index, and that.
    #[inline]
    fn is_reached_at(&self, index: usize, work: u128) -> bool {
        let curve = &self.playback.trace.curve;
        curve.before(index).work < work && work <= curve.points[index].work
    }
}

/// Returns the time after `before` at which the work is reached, rounded down.
#[inline]
fn time_of(before: Point, point: Point, work: u128) -> u64 {
    let (rate, rest) = (rate_of(before, point), work - before.work);
    match (u64::try_from(rest), u64::try_from(rate)) {
        (Ok(rest), Ok(rate)) => rest / rate,
        _ => (rest / rate) as u64,
    }
}

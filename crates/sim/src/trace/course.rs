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
#[derive(Clone, Debug)]
pub(crate) struct TraceCursor {
    playback: Playback<CapacityTrace>,
    /// Work that was spent or lost, counted from the beginning of the trace.
    spent: u128,
    /// Repetition of the latest departure or busy period.
    cycle: u64,
    /// Time and work at the beginning of that repetition.
    cycle_start: u64,
    cycle_work: u128,
    /// Point of that repetition near which the next search starts.
    index: usize,
}

impl TraceCursor {
    pub(crate) fn new(playback: Playback<CapacityTrace>) -> Self {
        TraceCursor { playback, spent: 0, cycle: 0, cycle_start: 0, cycle_work: 0, index: 0 }
    }

    /// Begins a busy period: work that was admitted before `now` or at `now` is lost.
    pub(crate) fn restart(&mut self, now: Time) {
        let (at, repeat) = ((now + self.playback.offset).as_nanos(), self.playback.repeat);
        let period = self.playback.trace.duration.as_nanos();
        let within = match at.checked_sub(self.cycle_start) {
            Some(within) if within < period => within,
            _ => {
                let (cycle, within) = if repeat { (at / period, at % period) } else { (0, at.min(period)) };
                self.enter(cycle, cycle * period);
                within
            }
        };
        let trace = &self.playback.trace;
        self.index = seek(&trace.curve.points, self.index, |point| point.at <= within);
        let lost = self.cycle_work + trace.work_at(self.index, within);
        self.spent = if repeat { lost } else { self.spent.max(lost) };
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
        let total = self.playback.trace.curve.total();
        let is_in_cycle = self.cycle_work < self.spent && self.spent <= self.cycle_work + total;
        if !is_in_cycle {
            // A packet without bytes departs with the one before it.
            let cycle = u64::try_from(self.spent.saturating_sub(1) / total).ok()?;
            self.enter(cycle, self.playback.trace.duration.as_nanos().checked_mul(cycle)?);
        }
        if self.cycle > 0 && !self.playback.repeat {
            return None;
        }
        let work = self.spent - self.cycle_work;
        let curve = &*self.playback.trace.curve;
        self.index = seek(&curve.points, self.index, |point| point.work < work);
        let (before, point) = (curve.before(self.index), curve.points[self.index]);
        let at = match self.playback.trace.kind {
            Kind::Opportunities { .. } => point.at,
            Kind::Rates => before.at + time_of(before, point, work),
        };
        self.cycle_start.checked_add(at)
    }

    /// Moves to the beginning of a repetition.
    fn enter(&mut self, cycle: u64, start: u64) {
        let work = u128::from(cycle) * self.playback.trace.curve.total();
        (self.cycle, self.cycle_start, self.cycle_work, self.index) = (cycle, start, work, 0);
    }
}

/// Returns the index of the first point that does not satisfy `is_before`, which all earlier points satisfy. The search takes a time
/// that grows with the logarithm of the distance from `hint`.
#[inline]
fn seek(points: &[Point], hint: usize, is_before: impl Fn(&Point) -> bool) -> usize {
    let is_ahead = hint > 0 && !is_before(&points[hint - 1]);
    let mut low = if is_ahead { 0 } else { hint };
    let mut step = 1;
    while points.get(low + step - 1).is_some_and(&is_before) {
        low += step;
        step *= 2;
    }
    let high = points.len().min(low + step);
    low + points[low..high].partition_point(is_before)
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

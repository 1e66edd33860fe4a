//! The serialiser of a link: a constant rate, or the capacity of a trace.

use anabranch_core::time::{Rate, Time};
use anabranch_core::units::WireBytes;

use crate::trace::TraceCursor;

/// Departure times of packets. The link reports the start of each busy period.
#[derive(Clone)]
pub(super) struct Serialiser {
    rate: Rate,
    /// Fraction of a nanosecond that is carried to the next packet of the busy period, in units of 1/rate.
    carry: u64,
    course: Option<Box<TraceCursor>>,
}

impl Serialiser {
    pub(super) fn new(rate: Rate, course: Option<TraceCursor>) -> Self {
        Serialiser { rate, carry: 0, course: course.map(Box::new) }
    }

    /// Returns the constant rate, or the nominal rate of a trace.
    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns `true` if the link follows a trace.
    pub(super) fn follows_trace(&self) -> bool {
        self.course.is_some()
    }

    /// Begins a busy period.
    #[inline]
    pub(super) fn restart(&mut self, now: Time) {
        self.carry = 0;
        if let Some(course) = &mut self.course {
            course.restart(now);
        }
    }

    /// Returns the departure time of a packet whose serialisation begins at `now`.
    #[inline]
    pub(super) fn send(&mut self, now: Time, size: WireBytes) -> Time {
        if let Some(course) = &mut self.course {
            return course.send(size).max(now);
        }
        let (span, carry) = self.rate.serialise(size.get(), self.carry);
        self.carry = carry;
        now + span
    }

    /// Sets a constant rate and ends a trace.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        // The carry is a fraction of a nanosecond in units of 1/rate.
        let carry = u128::from(self.carry) * u128::from(rate.as_bps()) / u128::from(self.rate.as_bps());
        self.carry = carry as u64;
        self.rate = rate;
        self.course = None;
    }
}

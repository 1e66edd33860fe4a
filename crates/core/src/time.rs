//! Time as integer nanoseconds since an epoch that the driver chose.
//!
//! The endpoint never reads a clock: every call that needs the time gets it. Arithmetic saturates, so an invalid input can make a
//! deadline late but never wrap it into the past.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// Instant in nanoseconds since the driver's epoch. The last one is `u64::MAX - 1`, and represents all later ones.
///
/// ```
/// use anabranch_core::time::Time;
/// assert_eq!(size_of::<Option<Time>>(), size_of::<Time>());
/// ```
// Stored as the nanoseconds plus one, so that an absent deadline takes no extra memory: an association has dozens, mostly absent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(NonZeroU64);

/// Length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Time {
    /// Epoch of the driver.
    pub const ZERO: Time = Time(NonZeroU64::MIN);

    /// Last instant.
    const END: Time = Time(NonZeroU64::MAX);

    /// Returns the instant `ns` nanoseconds after the epoch.
    pub const fn from_nanos(ns: u64) -> Self {
        Time(NonZeroU64::MIN.saturating_add(ns))
    }

    /// Returns the nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// Returns the seconds since the epoch, for printing and for rates; never for ordering.
    pub fn as_secs_f64(self) -> f64 {
        self.as_nanos() as f64 / 1e9
    }

    /// Returns the time passed since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.get().saturating_sub(earlier.0.get()))
    }
}

impl Default for Time {
    fn default() -> Self {
        Time::ZERO
    }
}

impl Span {
    /// Zero span.
    pub const ZERO: Span = Span(0);

    /// Returns a span of `ns` nanoseconds.
    pub const fn from_nanos(ns: u64) -> Self {
        Span(ns)
    }

    /// Returns a span of `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Span(us.saturating_mul(1_000))
    }

    /// Returns a span of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Span(ms.saturating_mul(1_000_000))
    }

    /// Returns a span of `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Span(s.saturating_mul(1_000_000_000))
    }

    /// Returns a span of `s` seconds rounded to the nearest nanosecond; zero for negative numbers and NaN.
    pub fn from_secs_f64(s: f64) -> Self {
        // A float-to-integer cast saturates and maps NaN to zero.
        Span((s * 1e9).round() as u64)
    }

    /// Returns the nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the seconds, for printing and for rates.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the milliseconds, for printing.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Returns `n` times this span.
    pub const fn times(self, n: u64) -> Span {
        Span(self.0.saturating_mul(n))
    }

    /// Returns this span divided by `n`, rounded down.
    pub const fn over(self, n: u64) -> Span {
        Span(self.0 / n)
    }

    /// Returns the absolute difference to `other`.
    pub const fn abs_diff(self, other: Span) -> Span {
        Span(self.0.abs_diff(other.0))
    }

    /// Returns `true` if the span is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// Returns the earliest of some deadlines. A deadline at the last instant, where arithmetic saturates, counts as none.
///
/// ```
/// use anabranch_core::time::{Span, Time, earliest};
/// let at = |ms| Time::ZERO + Span::from_millis(ms);
/// assert_eq!(earliest([Some(at(7)), None, Some(at(3))]), Some(at(3)));
/// assert_eq!(earliest([None, Some(Time::from_nanos(u64::MAX))]), None);
/// ```
pub fn earliest<const N: usize>(deadlines: [Option<Time>; N]) -> Option<Time> {
    // The minimum is computed without a branch for each deadline, because the computation is repeated for every packet. `None` is
    // stored as 0. Subtracting 1 wraps it to the latest time.
    let ahead = |at: &Option<Time>| at.map_or(0, |at| at.0.get()).wrapping_sub(1);
    let soonest = deadlines.iter().map(ahead).fold(u64::MAX, u64::min);
    (soonest < Time::END.as_nanos()).then(|| Time::from_nanos(soonest))
}

/// Saturates at the largest span, 584 years.
impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Span(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Duration::from_nanos(span.0)
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.as_nanos() / 1_000_000_000, self.as_nanos() % 1_000_000_000)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.as_millis_f64())
    }
}

/// Data rate in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

impl Rate {
    /// Returns a rate of `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Rate(bps)
    }

    /// Returns the bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Returns the time to serialise `bytes` at this rate, rounded down, and the remainder in units of 1/rate nanoseconds. The
    /// caller passes the remainder to the next call, so that rounding errors do not accumulate.
    ///
    /// # Panics
    /// Panics if the rate is zero.
    ///
    /// ```
    /// use anabranch_core::time::{Rate, Span};
    /// let (span, carry) = Rate::from_bps(10_000_000).serialise(1500, 0);
    /// assert_eq!((span, carry), (Span::from_micros(1200), 0));
    /// ```
    pub const fn serialise(self, bytes: u64, carry: u64) -> (Span, u64) {
        const SCALE: u64 = 8 * 1_000_000_000;
        // A product that fits 64 bits, as for every packet, is divided in one instruction.
        if let Some(scaled) = bytes.checked_mul(SCALE)
            && let Some(scaled) = scaled.checked_add(carry)
        {
            return (Span(scaled / self.0), scaled % self.0);
        }
        let scaled = bytes as u128 * SCALE as u128 + carry as u128;
        let rate = self.0 as u128;
        (Span((scaled / rate) as u64), (scaled % rate) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_deadline_is_none_if_none_will_come() {
        let at = |ns| Some(Time::from_nanos(ns));
        assert_eq!(earliest([at(7), None, at(3), at(u64::MAX)]), at(3));
        assert_eq!(earliest([None, at(u64::MAX)]), None);
        assert_eq!(earliest([]), None);
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        let end = Time::from_nanos(u64::MAX);
        assert_eq!(end.as_nanos(), u64::MAX - 1);
        assert_eq!(end + Span::from_secs(1), end);
        assert_eq!(Time::ZERO.as_nanos(), 0);
        assert_eq!(Time::ZERO.since(end), Span::ZERO);
        assert_eq!(Span::from_millis(1) - Span::from_secs(1), Span::ZERO);
    }

    #[test]
    fn carried_remainders_add_up_exactly() {
        // 387 kbit/s does not divide a packet time: 387,000 packets of 1000 B take 8,000 s exactly.
        let rate = Rate::from_bps(387_000);
        let (mut total, mut carry) = (Span::ZERO, 0);
        for _ in 0..387_000 {
            let (span, rest) = rate.serialise(1000, carry);
            total += span;
            carry = rest;
        }
        assert_eq!((total, carry), (Span::from_secs(8000), 0));
    }

    #[test]
    fn seconds_round_to_the_nearest_nanosecond() {
        assert_eq!(Span::from_secs_f64(0.045), Span::from_millis(45));
        assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
    }
}

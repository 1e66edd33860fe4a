//! Choice of the datagrams that are sent on two paths: those of small flows, whose copies cost little.
//!
//! A call or a game sends few bytes and has no use for a datagram that arrives after a retransmission. Its flow stays below the
//! bounds. A video or a download over UDP exceeds them, and repairs its own losses.

use std::time::Duration;

/// Maximum length of a datagram that is copied. Longer ones are sent by flows that fill packets.
const MOST_COPIED_BYTES: usize = 1200;

/// Rate up to which a flow is small. Voice has 50 packets and 24 to 128 kbit/s.
const SMALL_FLOW: Bound = Bound::per_second(25_000, 100);

/// Maximum rate of all copies that one side of an association sends: ten flows at their bound.
const ALL_COPIES: Bound = Bound::per_second(250_000, 1_000);

/// Time over which a rate counts. A burst of this time at the bound is within it.
const PERIOD: Duration = Duration::from_secs(1);

/// Maximum time that a flow needs to become small again.
const MEMORY: Duration = Duration::from_secs(2);

/// Bound of a rate of datagrams.
#[derive(Clone, Copy, Debug)]
struct Bound {
    per_byte: Duration,
    per_datagram: Duration,
}

impl Bound {
    const fn per_second(bytes: u32, datagrams: u32) -> Self {
        let second = 1_000_000_000;
        Bound {
            per_byte: Duration::from_nanos(second / bytes as u64),
            per_datagram: Duration::from_nanos(second / datagrams as u64),
        }
    }

    /// Returns the time that a datagram takes at the bound.
    fn cost(self, bytes: usize) -> Duration {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.per_byte.saturating_mul(bytes).max(self.per_datagram)
    }
}

/// Rate of datagrams, as the time up to which they fill their bound (a generic cell rate algorithm).
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    filled_to: Duration,
}

impl Rate {
    /// Returns the rate with another datagram, or `None` if it exceeds the bound.
    fn with(self, now: Duration, cost: Duration) -> Option<Self> {
        let filled_to = self.filled_to.max(now).saturating_add(cost);
        (filled_to <= now.saturating_add(PERIOD)).then_some(Rate { filled_to })
    }
}

/// Rate of one flow of datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowRate(Rate);

impl FlowRate {
    /// Counts a datagram. Returns `true` if the flow is small.
    fn count(&mut self, now: Duration, bytes: usize) -> bool {
        let cost = SMALL_FLOW.cost(bytes);
        let within = self.0.with(now, cost);
        let filled_to = self.0.filled_to.max(now).saturating_add(cost).min(now.saturating_add(MEMORY));
        self.0 = Rate { filled_to };
        within.is_some()
    }
}

/// Copies of all flows that one side of an association sends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Duplication(Rate);

impl Duplication {
    /// Counts a datagram of a flow. Returns `true` if it is to be sent on two paths. `now` is the time since any fixed start.
    pub fn wants_copy(&mut self, flow: &mut FlowRate, now: Duration, bytes: usize) -> bool {
        let is_small = flow.count(now, bytes);
        if !is_small || bytes > MOST_COPIED_BYTES {
            return false;
        }
        let within = self.0.with(now, ALL_COPIES.cost(bytes));
        self.0 = within.unwrap_or(self.0);
        within.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of copies of a flow with these datagrams at equal intervals.
    fn copies(bytes: usize, per_second: u32, datagrams: u32) -> u32 {
        let (mut all, mut flow) = (Duplication::default(), FlowRate::default());
        let at = |number: u32| Duration::from_secs(1) * number / per_second;
        (0..datagrams).map(|number| u32::from(all.wants_copy(&mut flow, at(number), bytes))).sum()
    }

    #[test]
    fn flows_below_both_bounds_are_copied() {
        for (bytes, per_second) in [(160, 50), (320, 50), (60, 100), (1200, 20), (0, 1)] {
            assert_eq!(copies(bytes, per_second, 1_000), 1_000, "{bytes} B {per_second} times per second");
        }
    }

    #[test]
    fn fast_flows_are_copied_during_their_first_second_only() {
        // 300 kbit/s, 1.6 Mbit/s, and 200 datagrams per second.
        for (bytes, per_second) in [(750, 50), (1000, 200), (10, 200)] {
            let copied = copies(bytes, per_second, 20 * per_second);
            assert!(copied < 3 * per_second, "{copied} of {bytes} B {per_second} times per second");
        }
    }

    #[test]
    fn long_datagrams_are_not_copied() {
        assert_eq!((copies(1200, 1, 10), copies(1201, 1, 10), copies(usize::MAX, 1, 10)), (10, 0, 0));
    }

    #[test]
    fn flow_is_small_again_two_seconds_after_a_burst() {
        let (mut all, mut flow) = (Duplication::default(), FlowRate::default());
        for _ in 0..10_000 {
            all.wants_copy(&mut flow, Duration::ZERO, 1_000);
        }
        assert!(!all.wants_copy(&mut flow, Duration::from_millis(900), 160));
        assert!(all.wants_copy(&mut flow, Duration::from_secs(2), 160));
    }

    #[test]
    fn copies_of_all_flows_are_bounded() {
        let mut all = Duplication::default();
        let mut flows = [FlowRate::default(); 256];
        let mut bytes = 0;
        for step in 0..500_u32 {
            let now = Duration::from_millis(20) * step;
            for flow in &mut flows {
                bytes += if all.wants_copy(flow, now, 400) { 400 } else { 0 };
            }
        }
        // Ten seconds, and one in advance.
        assert!((2_500_000..=2_750_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn clock_that_does_not_advance_is_no_error() {
        let (mut all, mut flow) = (Duplication::default(), FlowRate::default());
        for now in [Duration::MAX, Duration::ZERO, Duration::MAX] {
            all.wants_copy(&mut flow, now, usize::MAX);
        }
    }
}

//! Delays of recent packets, by the clocks of both ends.

use std::time::{Duration, Instant};

/// Time for which a delay is remembered at least. It is remembered for at most twice this time.
const WINDOW: Duration = Duration::from_secs(1);
/// Addition to the longest delay, for the resolution of timers.
const SLACK: Duration = Duration::from_millis(2);

/// Longest delay of recent packets. The clocks of the two ends have a constant difference, which does not matter.
#[derive(Debug)]
pub(crate) struct Delays {
    origin: Instant,
    /// Delay of the first packet, to which others are compared. The clocks wrap around, differences do not.
    reference: Option<u32>,
    longest: [i32; 2],
    window_began: Instant,
}

impl Delays {
    pub(crate) fn new(now: Instant) -> Self {
        Delays { origin: now, reference: None, longest: [i32::MIN; 2], window_began: now }
    }

    /// Records a packet, and returns the time until packets that were sent before it will have arrived.
    pub(crate) fn remaining(&mut self, now: Instant, sent_us: u32) -> Duration {
        let arrived = now.duration_since(self.origin).as_micros() as u32;
        let delay = arrived.wrapping_sub(sent_us);
        let relative = delay.wrapping_sub(*self.reference.get_or_insert(delay)) as i32;
        let age = now.duration_since(self.window_began);
        if age >= WINDOW {
            let previous = if age < 2 * WINDOW { self.longest[0] } else { i32::MIN };
            self.longest = [i32::MIN, previous];
            self.window_began = now;
        }
        self.longest[0] = self.longest[0].max(relative);
        let longest = self.longest[0].max(self.longest[1]);
        let microseconds = i64::from(longest) - i64::from(relative);
        Duration::from_micros(u64::try_from(microseconds).unwrap_or(0)) + SLACK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn remaining_time_is_the_difference_to_the_longest_recent_delay() {
        let start = Instant::now();
        // The clock of the peer is about to wrap around.
        let clock = u32::MAX - 20_000;
        let mut delays = Delays::new(start);
        let mut remaining =
            |now, sent: u32| delays.remaining(start + ms(now), clock.wrapping_add(sent * 1000)) - SLACK;
        assert_eq!(remaining(10, 0), ms(0));
        assert_eq!(remaining(50, 0), ms(0));
        assert_eq!(remaining(60, 50), ms(40));
        assert_eq!(remaining(1100, 1080), ms(30));
        assert_eq!(remaining(2200, 2180), ms(0), "older delays are forgotten");
        assert_eq!(remaining(2300, 2200), ms(0));
        assert_eq!(remaining(9000, 8980), ms(0), "delays before a pause are forgotten");
    }
}

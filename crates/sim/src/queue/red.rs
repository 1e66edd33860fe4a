//! RED, Floyd and Jacobson 1993, with the gentle slope of Floyd 2000, as ns-2 and ns-3 compute it.

use anabranch_core::time::{Rate, Time};
use anabranch_core::units::WireBytes;

use super::fifo::Fifo;
use crate::error::{ConfigError, require};
use crate::rng::Stream;

/// Parameters of RED, in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// Average queue from which packets are dropped.
    pub min_packets: f64,
    /// Average queue at which the drop probability is `max_probability`.
    pub max_packets: f64,
    /// Drop probability at `max_packets`, before drops are spread evenly.
    pub max_probability: f64,
    /// Weight of the present queue in the average.
    pub weight: f64,
    /// Raises the probability to 1 between `max_packets` and twice that, instead of dropping all from `max_packets` on.
    pub gentle: bool,
    /// Mean size of packets: the average decays in a pause as if so large packets had left.
    pub mean_packet: WireBytes,
}

impl Default for Red {
    /// Returns the values of ns-3, which assumes a mean packet size of 500 bytes.
    fn default() -> Self {
        Red {
            min_packets: 5.0,
            max_packets: 15.0,
            max_probability: 0.02,
            weight: 0.002,
            gentle: true,
            mean_packet: WireBytes::new(500),
        }
    }
}

impl Red {
    /// Checks the ranges of the parameters.
    ///
    /// # Errors
    /// Returns an error if a threshold is negative, the upper is not above the lower, the probability is not above 0 and at most 1,
    /// the weight is not between 0 and 1, or the mean packet is empty.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let Red { min_packets, max_packets, max_probability, weight, .. } = *self;
        require(min_packets >= 0.0, "red min", "must be zero packets or more")?;
        let upper = max_packets > min_packets && max_packets.is_finite();
        require(upper, "red max", "must be more packets than the minimum")?;
        let probability = max_probability > 0.0 && max_probability <= 1.0;
        require(probability, "red probability", "must be above 0 and at most 1")?;
        require(weight > 0.0 && weight < 1.0, "red weight", "must be between 0 and 1")?;
        require(!self.mean_packet.is_zero(), "red mean packet", "must be more than zero bytes")
    }
}

/// State of RED.
#[derive(Clone, Debug)]
pub(super) struct RedState {
    config: Red,
    stream: Stream,
    average: f64,
    /// Packets since the last drop, or since the average exceeded the minimum.
    count: f64,
    /// Set while the average is above the minimum.
    is_above: bool,
    /// Beginning of the present pause.
    idle_since: Option<Time>,
}

impl RedState {
    pub(super) fn new(config: Red, stream: Stream) -> Self {
        RedState { config, stream, average: 0.0, count: 0.0, is_above: false, idle_since: Some(Time::ZERO) }
    }

    /// Returns `true` if an arriving packet is dropped early.
    pub(super) fn drops(&mut self, now: Time, fifo: &Fifo, rate: Rate) -> bool {
        let waiting = fifo.packets() as f64;
        self.average(now, waiting, rate);
        self.count += 1.0;
        if self.average < self.config.min_packets || waiting <= 1.0 {
            self.is_above = false;
            return false;
        }
        let Red { max_packets, gentle, .. } = self.config;
        if self.average >= if gentle { 2.0 * max_packets } else { max_packets } {
            return true;
        }
        if !self.is_above {
            (self.is_above, self.count) = (true, 1.0);
            return false;
        }
        let drops = self.stream.unit() <= self.spread(self.probability());
        if drops {
            self.count = 0.0;
        }
        drops
    }

    /// Notes that the queue was found empty when a packet was to be taken out.
    pub(super) fn ran_empty(&mut self, now: Time) {
        self.idle_since.get_or_insert(now);
    }

    /// Updates the average. In a pause it decays as if packets had arrived at the rate of the link and found the queue empty.
    fn average(&mut self, now: Time, waiting: f64, rate: Rate) {
        let mut arrivals = 1.0;
        if let Some(since) = self.idle_since.take() {
            let per_second = rate.as_bps() as f64 / (8.0 * self.config.mean_packet.get() as f64);
            arrivals += libm::floor(per_second * now.since(since).as_secs_f64());
        }
        let kept = libm::pow(1.0 - self.config.weight, arrivals);
        self.average = self.average * kept + self.config.weight * waiting;
    }

    /// Returns the drop probability that follows from the average.
    fn probability(&self) -> f64 {
        let Red { min_packets, max_packets, max_probability, .. } = self.config;
        if self.average >= max_packets {
            let above = (self.average - max_packets) / max_packets;
            return (max_probability + (1.0 - max_probability) * above).min(1.0);
        }
        max_probability * (self.average - min_packets) / (max_packets - min_packets)
    }

    /// Spreads drops evenly: none before the packets since the last drop add up to a probability of 1, and one before they add up to 2
    /// (`wait_` of ns-2, which is set there).
    fn spread(&self, probability: f64) -> f64 {
        let sum = self.count * probability;
        if sum < 1.0 {
            0.0
        } else if sum < 2.0 {
            (probability / (2.0 - sum)).min(1.0)
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::fifo::tests::packets;
    use crate::rng::Seeds;
    use anabranch_core::time::Span;

    const RATE: Rate = Rate::from_bps(4_000_000);

    fn state(config: Red) -> RedState {
        RedState::new(config, Seeds::new(1, 0).stream(&["red"]))
    }

    fn fifo(count: usize) -> Fifo {
        let mut fifo = Fifo::default();
        packets(count).for_each(|queued| fifo.push(queued));
        fifo
    }

    /// Offers packets to a queue of constant length and returns the numbers of those that are dropped.
    fn drops(config: Red, waiting: usize, offered: u64) -> (Vec<u64>, f64) {
        let (mut state, fifo) = (state(config), fifo(waiting));
        let at = |n: u64| Time::ZERO + Span::from_micros(n);
        let dropped = (0..offered).filter(|n| state.drops(at(*n), &fifo, RATE)).collect();
        (dropped, state.average)
    }

    #[test]
    fn average_approaches_the_queue_with_its_weight() {
        let (dropped, average) = drops(Red::default(), 4, 500);
        let expected = 4.0 * (1.0 - libm::pow(0.998, 500.0));
        assert!((average - expected).abs() < 1e-9, "{average} {expected}");
        assert!(dropped.is_empty());
    }

    #[test]
    fn average_decays_in_a_pause_at_the_rate_of_the_link() {
        let mut state = state(Red::default());
        state.average = 10.0;
        state.idle_since = None;
        state.ran_empty(Time::ZERO);
        // A packet of 500 bytes takes 1 ms at 4 Mbit/s.
        state.average(Time::ZERO + Span::from_millis(200), 0.0, RATE);
        let expected = 10.0 * libm::pow(0.998, 201.0);
        assert!((state.average - expected).abs() < 1e-9, "{} {expected}", state.average);
    }

    #[test]
    fn share_of_drops_follows_the_average() {
        // With the average at 10, half way between the thresholds, p is 0.01 and the distance of drops uniform from 1/p to 2/p.
        let (dropped, _) = drops(Red::default(), 10, 200_000);
        let gaps: Vec<_> = dropped.windows(2).skip(30).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        assert!((mean - 150.0).abs() < 5.0, "{mean}");
        assert!(gaps.iter().all(|gap| (100..=201).contains(gap)), "{gaps:?}");
    }

    #[test]
    fn everything_is_dropped_far_above_the_maximum() {
        for (gentle, waiting) in [(true, 31), (false, 16)] {
            let (dropped, average) = drops(Red { gentle, ..Red::default() }, waiting, 20_000);
            assert!(average > (waiting - 1) as f64);
            let late = dropped.iter().filter(|n| **n >= 19_000).count();
            assert_eq!(late, 1000, "gentle: {gentle}");
        }
    }

    #[test]
    fn gentle_slope_rises_to_one_at_twice_the_maximum() {
        let mut state = state(Red::default());
        for (average, expected) in [(5.0, 0.0), (10.0, 0.01), (15.0, 0.02), (22.5, 0.51), (30.0, 1.0)] {
            state.average = average;
            assert!((state.probability() - expected).abs() < 1e-12, "{average}");
        }
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let valid = Red::default();
        assert!(valid.validate().is_ok());
        for refused in [
            Red { min_packets: -1.0, ..valid },
            Red { min_packets: f64::NAN, ..valid },
            Red { max_packets: 5.0, ..valid },
            Red { max_packets: f64::INFINITY, ..valid },
            Red { max_probability: 0.0, ..valid },
            Red { max_probability: 1.1, ..valid },
            Red { weight: 1.0, ..valid },
            Red { weight: 0.0, ..valid },
            Red { mean_packet: WireBytes::ZERO, ..valid },
        ] {
            assert!(refused.validate().is_err(), "{refused:?}");
        }
    }
}

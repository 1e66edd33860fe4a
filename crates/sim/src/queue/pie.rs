//! PIE, RFC 8033: drops arriving packets with a probability that a controller derives from the waiting time.
//!
//! The waiting time is that of the packet taken out last, the option of section 4.2 that needs no estimate of the departure rate. It
//! counts as zero once the queue is empty, as in ns-3: the last packet says nothing about the packets that follow a pause. The
//! de-randomisation of section 5.4 and the cap of section 5.5 are in force.

use anabranch_core::time::{Span, Time};
use anabranch_core::units::WireBytes;

use super::fifo::{Fifo, Queued};
use crate::error::{ConfigError, require};
use crate::rng::Stream;

/// Parameters of PIE. The gains of the controller are those of RFC 8033 and belong to its update period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pie {
    /// Waiting time that the controller aims at (`QDELAY_REF`).
    pub target: Span,
    /// Time between two updates of the drop probability (`T_UPDATE`).
    pub update: Span,
    /// Length of a burst that passes without drops (`MAX_BURST`).
    pub burst: Span,
    /// Mean size of packets. A queue of at most two of them is never dropped from.
    pub mean_packet: WireBytes,
}

impl Default for Pie {
    /// Returns the values of RFC 8033, section 4.
    fn default() -> Self {
        Pie {
            target: Span::from_millis(15),
            update: Span::from_millis(15),
            burst: Span::from_millis(150),
            mean_packet: WireBytes::new(1000),
        }
    }
}

impl Pie {
    /// Checks the ranges of the parameters.
    ///
    /// # Errors
    /// Returns an error if the target or the update period is zero.
    pub fn validate(&self) -> Result<(), ConfigError> {
        require(!self.target.is_zero(), "pie target", "must be more than zero")?;
        require(!self.update.is_zero(), "pie update", "must be more than zero")
    }
}

/// Gains of the controller, in Hz.
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// Divisors of a change of the probability: the first applies whose bound exceeds the present probability (section 4.2).
const SCALES: [(f64, f64); 6] =
    [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
/// Decay of the probability in each update while the queue is empty.
const DECAY: f64 = 0.98;
/// Largest increase in one update once the probability is at least a tenth (section 5.5).
const LARGEST_STEP: f64 = 0.02;
/// Sums of probabilities since the last drop below which no packet is dropped, and from which the next one is (section 5.4).
const SUM_WITHOUT_DROP: f64 = 0.85;
const SUM_OF_CERTAIN_DROP: f64 = 8.5;
/// Probability from which the controller drops although the waiting time is below half of the target (section 4.1).
const HIGH_PROBABILITY: f64 = 0.2;

/// State of PIE, named as in the pseudo-code of RFC 8033.
#[derive(Clone, Debug)]
pub(super) struct PieState {
    config: Pie,
    stream: Stream,
    drop_prob: f64,
    accu_prob: f64,
    current_qdelay: Span,
    qdelay_old: Span,
    burst_allowance: Span,
    next_update: Time,
}

impl PieState {
    pub(super) fn new(config: Pie, stream: Stream) -> Self {
        PieState {
            config,
            stream,
            drop_prob: 0.0,
            accu_prob: 0.0,
            current_qdelay: Span::ZERO,
            qdelay_old: Span::ZERO,
            burst_allowance: config.burst,
            next_update: Time::ZERO + config.update,
        }
    }

    /// Returns `true` if an arriving packet is dropped early.
    pub(super) fn drops(&mut self, now: Time, fifo: &Fifo) -> bool {
        self.catch_up(now);
        if !self.burst_allowance.is_zero() {
            return false;
        }
        let is_idle = self.is_below_half(self.qdelay_old) && self.drop_prob < HIGH_PROBABILITY;
        if is_idle || fifo.bytes().get() <= 2 * self.config.mean_packet.get() {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < SUM_WITHOUT_DROP {
            return false;
        }
        let drops = self.accu_prob >= SUM_OF_CERTAIN_DROP || self.stream.chance(self.drop_prob);
        if drops {
            self.accu_prob = 0.0;
        }
        drops
    }

    /// Notes that a packet was dropped because the queue is full.
    pub(super) fn overflowed(&mut self) {
        self.accu_prob = 0.0;
    }

    /// Measures the waiting time of a packet that is taken out.
    pub(super) fn dequeued(&mut self, now: Time, head: &Queued, fifo: &Fifo) {
        self.catch_up(now);
        self.current_qdelay = if fifo.is_empty() { Span::ZERO } else { now.since(head.since) };
    }

    /// Performs the updates that are due. The input of an update does not change between two calls, so a late update has the same
    /// result as a punctual one.
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            let before = (self.drop_prob, self.qdelay_old, self.burst_allowance);
            self.update();
            let update = self.config.update;
            if before == (self.drop_prob, self.qdelay_old, self.burst_allowance) {
                // All further updates change nothing either.
                let periods = now.since(self.next_update).as_nanos() / update.as_nanos();
                self.next_update += update.times(periods);
            }
            self.next_update += update;
        }
    }

    /// Updates the drop probability (`calculate_drop_prob`, section 4.2).
    fn update(&mut self) {
        let (current, old) = (self.current_qdelay.as_secs_f64(), self.qdelay_old.as_secs_f64());
        let mut change = ALPHA * (current - self.config.target.as_secs_f64()) + BETA * (current - old);
        if let Some((_, divisor)) = SCALES.iter().find(|(bound, _)| self.drop_prob < *bound) {
            change /= divisor;
        } else {
            change = change.min(LARGEST_STEP);
        }
        let mut probability = self.drop_prob + change;
        if self.current_qdelay.is_zero() && self.qdelay_old.is_zero() {
            probability *= DECAY;
        }
        self.drop_prob = probability.clamp(0.0, 1.0);
        self.burst_allowance = self.burst_allowance - self.config.update;
        let is_short = self.is_below_half(self.current_qdelay) && self.is_below_half(self.qdelay_old);
        if self.drop_prob == 0.0 && is_short {
            self.burst_allowance = self.config.burst;
        }
        self.qdelay_old = self.current_qdelay;
    }

    fn is_below_half(&self, qdelay: Span) -> bool {
        qdelay < self.config.target.over(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::fifo::tests::packets;
    use crate::rng::Seeds;

    fn state() -> PieState {
        PieState::new(Pie::default(), Seeds::new(1, 0).stream(&["pie"]))
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// Takes a packet out at `ms` that waited for `waited` ms while others wait.
    fn dequeue(state: &mut PieState, ms: u64, waited: u64) {
        let mut fifo = Fifo::default();
        packets(20).for_each(|queued| fifo.push(queued));
        let head = fifo.pop().map(|head| Queued { since: at(ms - waited), ..head });
        state.dequeued(at(ms), &head.expect("20 packets"), &fifo);
    }

    fn long_queue() -> Fifo {
        let mut fifo = Fifo::default();
        packets(20).for_each(|queued| fifo.push(queued));
        fifo
    }

    #[test]
    fn probability_follows_the_pseudo_code() {
        let mut state = state();
        // 30 ms against a target of 15: 0.125 * 0.015 + 1.25 * 0.03 at the first update, scaled by 1/2048, and 0.125 * 0.015 after it.
        dequeue(&mut state, 14, 14);
        dequeue(&mut state, 14, 14);
        state.current_qdelay = Span::from_millis(30);
        state.catch_up(at(15));
        let mut expected = (0.125 * 0.015 + 1.25 * 0.03) / 2048.0;
        assert!((state.drop_prob - expected).abs() < 1e-12, "{}", state.drop_prob);
        state.catch_up(at(30));
        expected += 0.125 * 0.015 / 128.0;
        assert!((state.drop_prob - expected).abs() < 1e-12, "{}", state.drop_prob);
        state.catch_up(at(45));
        expected += 0.125 * 0.015 / 128.0;
        assert!((state.drop_prob - expected).abs() < 1e-12, "{}", state.drop_prob);
    }

    #[test]
    fn probability_rises_by_at_most_two_percent_and_stays_within_one() {
        let mut state = state();
        state.drop_prob = 0.1;
        state.current_qdelay = Span::from_secs(5);
        let mut before = state.drop_prob;
        for update in 1..200 {
            state.catch_up(at(15 * update));
            assert!(state.drop_prob <= 1.0 && state.drop_prob - before < 0.02 + 1e-9);
            before = state.drop_prob;
        }
        assert_eq!(state.drop_prob, 1.0);
    }

    #[test]
    fn probability_decays_once_the_queue_is_empty() {
        let mut state = state();
        state.drop_prob = 0.5;
        state.catch_up(at(15));
        // The controller itself takes 0.125 * 0.015.
        assert!((state.drop_prob - 0.98 * (0.5 - 0.001875)).abs() < 1e-12, "{}", state.drop_prob);
    }

    #[test]
    fn first_burst_passes_and_a_persistent_queue_is_dropped_from() {
        let mut state = state();
        let fifo = long_queue();
        let mut dropped = Vec::new();
        for ms in 0..4000 {
            if state.drops(at(ms), &fifo) {
                dropped.push(ms);
            }
            dequeue(&mut state, ms, ms.min(60));
        }
        assert!(dropped[0] >= 150, "{}", dropped[0]);
        let late = dropped.iter().filter(|ms| **ms >= 3000).count();
        assert!(late > 50, "{late}");
    }

    #[test]
    fn short_queue_is_never_dropped_from() {
        let mut state = state();
        state.drop_prob = 1.0;
        state.burst_allowance = Span::ZERO;
        state.qdelay_old = Span::from_secs(1);
        let mut fifo = Fifo::default();
        fifo.push(packets(1).next().expect("a packet"));
        assert!((0..100).all(|_| !state.drops(at(1), &fifo)));
        packets(2).for_each(|queued| fifo.push(queued));
        assert!(state.drops(at(1), &fifo));
    }

    #[test]
    fn drops_are_spread_evenly() {
        let mut state = state();
        (state.drop_prob, state.burst_allowance) = (0.1, Span::ZERO);
        state.qdelay_old = Span::from_millis(20);
        let fifo = long_queue();
        let drops: Vec<_> = (0..20_000).filter(|_| state.drops(at(1), &fifo)).collect();
        let gaps: Vec<_> = drops.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // Nine packets add up to 0.9; 85 add up to 8.5.
        assert!(gaps.iter().all(|gap| (9..=85).contains(gap)), "{gaps:?}");
    }

    #[test]
    fn updates_after_a_long_pause_are_those_made_in_time() {
        let (mut late, mut in_time) = (state(), state());
        for state in [&mut late, &mut in_time] {
            state.drop_prob = 0.3;
            state.current_qdelay = Span::from_millis(40);
        }
        (0..100_000).for_each(|ms| in_time.catch_up(at(ms)));
        late.catch_up(at(99_999));
        assert_eq!(late.drop_prob, in_time.drop_prob);
        assert_eq!((late.next_update, late.burst_allowance), (in_time.next_update, in_time.burst_allowance));
    }

    #[test]
    fn impossible_parameters_are_refused() {
        assert!(Pie::default().validate().is_ok());
        assert!(Pie { target: Span::ZERO, ..Pie::default() }.validate().is_err());
        assert!(Pie { update: Span::ZERO, ..Pie::default() }.validate().is_err());
    }
}

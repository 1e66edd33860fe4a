//! Distinction between congestion losses and random losses.
//!
//! An overflowing queue loses packets while it is long; a lossy link loses them at any time. Each loss is therefore compared with
//! the queue of the packets sent just before and after it, and recent losses with all packets. If losses are no more frequent at
//! long queues than otherwise, the link causes them.

use std::collections::VecDeque;

use anabranch_core::time::{Span, Time};
use anabranch_core::windowed::WindowedMax;

use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "congestion or noise",
    rule: text!(
        "a queue is long if round trip - base > max((longest round trip of {} - base) / 2, {}); a loss \
         is congestion if the longer of the queues of the packets sent just before and after it is \
         long, and s > (1 + f) / 2, where s = the share of losses at long queues (EWMA with weight {}), \
         f = the share of all packets at long queues; a burst, between whose packets no other was \
         delivered, counts as one loss",
        MEMORY,
        LEAST_LONG_QUEUE,
        LOSS_WEIGHT,
    ),
    file: file!(),
}];

/// Queueing delay below which it counts as jitter: HyStart's minimum threshold (RFC 9406 section 4.2, MIN_RTT_THRESH).
const LEAST_LONG_QUEUE: Span = Span::from_millis(4);
/// Memory of the longest round-trip time, equal to that of the minimum.
const MEMORY: Span = Span::from_secs(20);
/// Maximum number of stored packets around losses. A flight may be longer; then the oldest of these is the nearest known.
const MOST_SAMPLES: usize = 1024;
/// EWMA weight, as in RFC 6298's smoothed round-trip time.
const LOSS_WEIGHT: f64 = 1.0 / 8.0;
/// Number of packets after which older ones are halved.
const HALF_AFTER: f64 = 1000.0;

/// Numbers of packets at long and at short queues.
#[derive(Clone, Copy, Debug, Default)]
struct QueueSample {
    long: f64,
    short: f64,
}

impl QueueSample {
    fn add(&mut self, long: bool) {
        let side = if long { &mut self.long } else { &mut self.short };
        *side += 1.0;
        if *side > HALF_AFTER {
            *side /= 2.0;
        }
    }

    fn share_of_long(self) -> f64 {
        self.long / (self.long + self.short).max(1.0)
    }
}

/// Distinguishes congestion losses from random losses of a path.
#[derive(Clone, Debug)]
pub(super) struct LossClassifier {
    /// Send times and round-trip times of packets, in the order of transmission.
    samples: VecDeque<(Time, Span)>,
    longest: WindowedMax<Span>,
    queues: QueueSample,
    /// Share of recent losses at long queues.
    losses_at_long_queues: f64,
    /// Send time of the latest lost packet, and whether it met a long queue.
    latest_loss: Option<(Time, bool)>,
}

impl Default for LossClassifier {
    /// Assumes congestion without evidence.
    fn default() -> Self {
        LossClassifier {
            samples: VecDeque::new(),
            longest: WindowedMax::default(),
            queues: QueueSample::default(),
            losses_at_long_queues: 1.0,
            latest_loss: None,
        }
    }
}

/// Compares round-trip times, not queueing delays: the base may be forgotten while the queue is never empty.
fn is_long(round_trip: Span, longest: Span, base: Span) -> bool {
    round_trip - base > (longest - base).over(2).max(LEAST_LONG_QUEUE)
}

impl LossClassifier {
    /// Records a delivered packet with its send time and round-trip time. `base` is the minimum.
    pub(super) fn delivered(&mut self, sent_at: Time, round_trip: Span, base: Span, now: Time) {
        let longest = self.longest.update(now.as_nanos(), round_trip, MEMORY.as_nanos());
        self.queues.add(is_long(round_trip, longest, base));
        if self.samples.len() == MOST_SAMPLES {
            self.samples.pop_front();
        }
        let place = match self.samples.back() {
            Some(&(latest, _)) if sent_at < latest => {
                self.samples.partition_point(|sample| sample.0 <= sent_at)
            }
            _ => self.samples.len(),
        };
        self.samples.insert(place, (sent_at, round_trip));
    }

    /// Returns `true` if a packet sent at this time belongs to the latest burst of losses: none between them was delivered.
    pub(super) fn is_of_the_latest_burst(&self, sent_at: Time) -> bool {
        self.latest_loss
            .is_some_and(|(latest, _)| self.delivered_before(latest) == self.delivered_before(sent_at))
    }

    /// Returns `true` if the loss of a packet sent at this time is congestion. `base` is the minimum round-trip time.
    pub(super) fn is_congestion(&mut self, sent_at: Time, base: Span) -> bool {
        let long = match self.latest_loss {
            Some((_, long)) if self.is_of_the_latest_burst(sent_at) => long,
            _ => self.add_burst(sent_at, base),
        };
        self.latest_loss = Some((sent_at, long));
        long && self.losses_at_long_queues > 0.5 * (1.0 + self.queues.share_of_long())
    }

    /// Counts a burst as one loss. On a link with burst losses, each burst would otherwise look like many losses at the same queue.
    fn add_burst(&mut self, sent_at: Time, base: Span) -> bool {
        let long = self.was_long(sent_at, base);
        self.queues.add(long);
        let seen = f64::from(u8::from(long));
        self.losses_at_long_queues += LOSS_WEIGHT * (seen - self.losses_at_long_queues);
        long
    }

    /// Returns `true` if the queue was long for packets sent at this time.
    pub(super) fn was_long(&self, sent_at: Time, base: Span) -> bool {
        is_long(self.round_trip_beside(sent_at), self.longest.get().unwrap_or_default(), base)
    }

    /// Returns the share of all packets that met long queues.
    pub(super) fn share_of_long(&self) -> f64 {
        self.queues.share_of_long()
    }

    /// Returns the number of stored packets sent up to this time.
    fn delivered_before(&self, sent_at: Time) -> usize {
        self.samples.partition_point(|sample| sample.0 <= sent_at)
    }

    /// Returns the longer of the round-trip times of the packets sent just before and after.
    fn round_trip_beside(&self, sent_at: Time) -> Span {
        let after = self.delivered_before(sent_at);
        let round_trip = |index: usize| self.samples.get(index).map_or(Span::ZERO, |sample| sample.1);
        round_trip(after).max(after.checked_sub(1).map_or(Span::ZERO, round_trip))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Span = Span::from_millis(100);
    const LONGEST: Span = Span::from_millis(140);

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Records a packet per millisecond, each with its queue in milliseconds, after the longest queue has occurred.
    fn sent(queues: impl IntoIterator<Item = u64>) -> LossClassifier {
        let mut judge = LossClassifier::default();
        judge.longest.update(0, LONGEST, MEMORY.as_nanos());
        for (ms, queue) in (0..).zip(queues) {
            judge.delivered(at(ms), BASE + Span::from_millis(queue), BASE, at(ms));
        }
        judge
    }

    #[test]
    fn loss_at_a_long_queue_is_congestion_and_at_a_short_one_is_not() {
        let mut judge = sent((0..100).map(|n| if n >= 90 { 40 } else { 5 }));
        assert!(judge.is_congestion(at(95), BASE));
        assert!(!judge.is_congestion(at(50), BASE));
    }

    #[test]
    fn a_loss_just_before_or_after_a_long_queue_counts_as_beside_it() {
        assert!(sent([5, 5, 40]).is_congestion(Time::from_nanos(1_500_000), BASE));
        assert!(sent([5, 40, 5]).is_congestion(Time::from_nanos(1_500_000), BASE));
    }

    #[test]
    fn losses_independent_of_the_queue_are_link_losses() {
        let mut judge = sent((0..1000).map(|n| if n / 10 % 2 == 0 { 5 } else { 40 }));
        let verdicts: Vec<bool> = (0..100).map(|n| judge.is_congestion(at(n * 10 + 5), BASE)).collect();
        assert!(verdicts[40..].iter().all(|congestion| !congestion), "{verdicts:?}");
    }

    #[test]
    fn a_burst_of_losses_counts_once() {
        let noise_and_a_burst = |burst: u64| {
            let mut judge = sent((0..1000).map(|n| if n / 10 % 2 == 0 { 5 } else { 40 }));
            (0..100).for_each(|n| {
                judge.is_congestion(at(n * 10 + 5), BASE);
            });
            (0..burst).map(|n| judge.is_congestion(Time::from_nanos(915_000_000 + n * 1_000), BASE)).collect()
        };
        let verdicts: Vec<bool> = noise_and_a_burst(20);
        assert!(verdicts.iter().all(|congestion| !congestion), "{verdicts:?}");
    }

    #[test]
    fn losses_after_a_delivery_are_another_burst() {
        let mut judge = sent([5, 5, 5]);
        judge.is_congestion(Time::from_nanos(500_000), BASE);
        assert!(judge.is_of_the_latest_burst(Time::from_nanos(600_000)));
        assert!(!judge.is_of_the_latest_burst(Time::from_nanos(1_500_000)));
    }

    #[test]
    fn a_short_queue_is_no_congestion_however_short_the_longest_is() {
        let mut judge = LossClassifier::default();
        (0..10).for_each(|ms| judge.delivered(at(ms), BASE + Span::from_millis(3), BASE, at(ms)));
        assert!(!judge.is_congestion(at(5), BASE));
    }

    #[test]
    fn a_queue_is_as_long_as_it_was_after_the_least_round_trip_is_forgotten() {
        let mut judge = sent((0..100).map(|n| if n % 10 == 9 { 40 } else { 5 }));
        let forgotten = BASE + Span::from_millis(25);
        assert!(judge.is_congestion(at(99), forgotten));
        assert!(!judge.is_congestion(at(5), forgotten));
    }

    #[test]
    fn history_is_bounded_and_in_order_of_transmission() {
        let mut judge = sent(std::iter::repeat_n(5, 5000));
        judge.delivered(at(4500), LONGEST, BASE, at(5000));
        assert_eq!(judge.samples.len(), MOST_SAMPLES);
        assert!(judge.samples.iter().is_sorted_by_key(|sample| sample.0));
        assert_eq!(judge.round_trip_beside(at(4500)), LONGEST);
    }
}

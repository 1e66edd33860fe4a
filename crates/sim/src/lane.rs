//! One direction of a link alone, for a caller that has packets and a clock but no world.
//!
//! A lane is the [`Link`] of a world with the few events that a link can have pending. Offered packets get the same outcome and
//! times as on the link of a world, however late the caller polls: an event between two calls is handled as of the time at which it
//! was due.
//!
//! ```
//! use anabranch_core::time::{Rate, Span, Time};
//! use anabranch_core::units::WireBytes;
//! use anabranch_sim::{Lane, LinkConfig, QueueConfig, Seeds};
//!
//! let (rate, delay) = (Rate::from_bps(10_000_000), Span::from_millis(45));
//! let config = LinkConfig::new("link", rate, delay, QueueConfig::packets(50));
//! let mut lane = Lane::new(config, "flow-1", Seeds::new(1, 0), Vec::new())?;
//! lane.offer(Time::ZERO, WireBytes::new(1500), 7, b"hello");
//!
//! let due = lane.poll_timeout().expect("a packet is on its way");
//! let mut payload = anabranch_core::PacketBuffer::new();
//! let delivery = lane.poll_deliver(due, &mut payload).expect("it is due");
//! // 1500 bytes take 1.2 ms at 10 Mbit/s.
//! assert_eq!(delivery.at, Time::ZERO + Span::from_micros(1200) + delay);
//! assert_eq!((delivery.owner, &payload[..]), (7, &b"hello"[..]));
//! # Ok::<(), anabranch_sim::ConfigError>(())
//! ```

use anabranch_core::PacketBuffer;
use anabranch_core::time::{Time, earliest};
use anabranch_core::units::WireBytes;

use crate::dynamics::LinkChange;
use crate::error::ConfigError;
use crate::link::{Counters, Link, LinkConfig, Offer};
use crate::packet::{Packet, PacketId, Pool};
use crate::rng::Seeds;
use crate::route::{RouteId, SourceId};
use crate::schedule::Schedule;

/// Source of all packets of a lane.
const SOURCE: SourceId = SourceId(0);

/// A packet that has arrived at the far end of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Time of the arrival.
    pub at: Time,
    /// Value that the caller gave with the packet.
    pub owner: u32,
}

/// One direction of a link alone.
pub struct Lane {
    link: Link,
    pool: Pool,
    schedule: Schedule,
    /// Time at which the packet in the serialiser departs, or the next batch begins.
    departure: Option<Time>,
    now: Time,
}

impl Lane {
    /// Returns a lane whose packets belong to `source` and which changes at the given times. Its losses equal those of this source
    /// on a link of this name in a world with these seeds.
    ///
    /// # Errors
    /// Returns an error if a figure of the link or of a change is out of its range.
    pub fn new(
        config: LinkConfig,
        source: &str,
        seeds: Seeds,
        changes: Vec<(Time, LinkChange)>,
    ) -> Result<Self, ConfigError> {
        changes.iter().try_for_each(|(_, change)| change.check())?;
        let schedule = config.extend(Schedule::new(changes), seeds);
        let mut link = Link::new(config, seeds)?;
        link.attach(SOURCE, source, seeds);
        Ok(Lane { link, pool: Pool::default(), schedule, departure: None, now: Time::ZERO })
    }

    /// Accepts a packet at the near end. A time before that of an earlier call is replaced by that time.
    pub fn offer(&mut self, now: Time, wire: WireBytes, owner: u32, payload: &[u8]) {
        self.advance(now);
        let packet = Packet::new(wire, SOURCE, RouteId(owner));
        let packet = self.pool.insert_copy(packet, payload);
        match self.link.offer(self.now, packet, &mut self.pool) {
            Offer::Due(time) => self.departure = Some(time),
            Offer::Waits => {}
            Offer::Dropped(_) => self.pool.remove(packet),
        }
        self.remove_queue_drops();
    }

    fn remove_queue_drops(&mut self) {
        while let Some((packet, _)) = self.link.take_queue_drop() {
            self.pool.remove(packet);
        }
    }

    /// Removes the next packet that has arrived by `now`, in the order of arrival, and replaces the content of `payload` by its
    /// bytes.
    pub fn poll_deliver(&mut self, now: Time, payload: &mut PacketBuffer) -> Option<Delivery> {
        self.advance(now);
        let at = self.link.first_arrival().filter(|at| *at <= self.now)?;
        let (packet, _) = self.link.arrive(&self.pool, 0);
        let owner = self.take(packet, payload);
        Some(Delivery { at, owner })
    }

    /// Returns the arrival time of the first packet that is due, without delivering it.
    pub fn first_due(&mut self, now: Time) -> Option<Time> {
        self.advance(now);
        self.link.first_arrival().filter(|at| *at <= self.now)
    }

    fn take(&mut self, packet: PacketId, payload: &mut PacketBuffer) -> u32 {
        std::mem::swap(&mut self.pool.content_mut(packet).written, payload);
        let RouteId(owner) = self.pool.get(packet).route;
        self.pool.remove(packet);
        owner
    }

    /// Returns a time before which nothing can arrive, or `None` if the lane is empty. Call this function again after every other
    /// call. It is possible that no packet arrives at that time, for example if the packet is lost behind the queue.
    pub fn poll_timeout(&self) -> Option<Time> {
        let leaving = self.departure.map(|departure| {
            let arrival = departure + self.link.delay();
            // The delay may change before the packet departs.
            self.schedule.next_time().map_or(arrival, |change| arrival.min(change))
        });
        earliest([self.link.first_arrival(), leaving])
    }

    /// Applies a change to the link now.
    ///
    /// # Errors
    /// Returns an error if the new value is out of its range.
    pub fn change(&mut self, now: Time, change: &LinkChange) -> Result<(), ConfigError> {
        change.check()?;
        self.advance(now);
        self.link.apply(change);
        Ok(())
    }

    /// Returns the link in its state as of the last call.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Returns the counts of packets by outcome.
    pub fn counters(&self) -> Counters {
        self.link.counters(SOURCE)
    }

    /// Returns the number of packets that wait, are being sent, or propagate.
    pub fn packets_on_the_way(&self) -> usize {
        self.pool.len()
    }

    /// Handles all events that are due, in the order of a world: at the same time, changes before departures.
    fn advance(&mut self, now: Time) {
        let now = now.max(self.now);
        loop {
            let change = self.schedule.next_time().filter(|time| *time <= now);
            let departure = self.departure.filter(|time| *time <= now);
            match (change, departure) {
                (Some(change), departure) if departure.is_none_or(|departure| change <= departure) => {
                    if let Some(change) = self.schedule.pop(change) {
                        self.link.apply(&change);
                    }
                }
                (_, Some(departure)) => self.depart(departure),
                (_, None) => break,
            }
        }
        self.now = now;
    }

    fn depart(&mut self, at: Time) {
        let departure = self.link.depart(at, &mut self.pool);
        self.departure = departure.next;
        if let Some((packet, _)) = departure.dropped {
            self.pool.remove(packet);
        }
        self.remove_queue_drops();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::{LossModel, LossPlace};
    use crate::queue::QueueConfig;
    use anabranch_core::time::{Rate, Span};

    const PACKET: WireBytes = WireBytes::new(1250);

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// A packet takes 1 ms to send and 10 ms to arrive.
    fn config() -> LinkConfig {
        LinkConfig::new("link", Rate::from_bps(10_000_000), Span::from_millis(10), QueueConfig::packets(2))
    }

    fn lane(config: LinkConfig, changes: Vec<(Time, LinkChange)>) -> Lane {
        Lane::new(config, "flow", Seeds::new(1, 0), changes).expect("a valid link")
    }

    fn arrivals(lane: &mut Lane, now: Time) -> Vec<(Time, u32)> {
        let mut payload = PacketBuffer::new();
        std::iter::from_fn(|| lane.poll_deliver(now, &mut payload).map(|d| (d.at, d.owner))).collect()
    }

    #[test]
    fn late_call_returns_the_same_as_timely_calls() {
        let mut lane = lane(config(), Vec::new());
        for owner in 0..4 {
            lane.offer(Time::ZERO, PACKET, owner, &[]);
        }
        // The first packet is sent at once, two wait, and the fourth is dropped.
        assert_eq!(lane.counters().overflowed.packets, 1);
        assert_eq!(lane.packets_on_the_way(), 3);
        assert_eq!(lane.poll_timeout(), Some(at(11)));
        assert_eq!(arrivals(&mut lane, at(500)), [(at(11), 0), (at(12), 1), (at(13), 2)]);
        assert_eq!((lane.poll_timeout(), lane.packets_on_the_way()), (None, 0));
    }

    #[test]
    fn offer_advances_the_queue() {
        let mut lane = lane(config(), Vec::new());
        for ms in 0..100 {
            lane.offer(at(ms), PACKET, 0, &[]);
        }
        assert_eq!(lane.counters().overflowed.packets, 0);
    }

    #[test]
    fn arrivals_are_on_time_and_in_order() {
        let mut lane = lane(config(), Vec::new());
        lane.offer(at(5), PACKET, 1, b"a");
        lane.offer(at(3), PACKET, 2, b"b");
        assert_eq!(lane.first_due(at(15)), None);
        assert_eq!(arrivals(&mut lane, at(15)), []);
        assert_eq!(lane.first_due(at(16)), Some(at(16)));
        assert_eq!(arrivals(&mut lane, at(17)), [(at(16), 1), (at(17), 2)]);
    }

    #[test]
    fn change_applies_from_its_time_on_without_queries_in_between() {
        let changes = vec![
            (at(2), LinkChange::Down),
            (at(4), LinkChange::Up),
            (at(5), LinkChange::Delay(Span::from_millis(1))),
        ];
        let mut lane = lane(config(), changes);
        lane.offer(at(0), PACKET, 0, &[]);
        lane.offer(at(3), PACKET, 1, &[]);
        lane.offer(at(4), PACKET, 2, &[]);
        // The change of delay precedes the departure and therefore determines the deadline.
        assert_eq!(lane.poll_timeout(), Some(at(5)));
        assert_eq!(arrivals(&mut lane, at(100)), [(at(11), 0), (at(11), 2)]);
        assert_eq!(lane.counters().outage.packets, 1);
    }

    #[test]
    fn waking_at_every_deadline_comes_to_an_end() {
        let config = config().with_loss(LossModel::Bernoulli(1.0), LossPlace::AfterQueue);
        let mut lane = lane(config, vec![(at(1), LinkChange::Down), (at(1), LinkChange::Up)]);
        for _ in 0..3 {
            lane.offer(Time::ZERO, PACKET, 0, &[]);
        }
        let mut last = None;
        while let Some(time) = lane.poll_timeout() {
            assert!(last < Some(time));
            last = Some(time);
            assert_eq!(arrivals(&mut lane, time), []);
        }
        assert_eq!(lane.counters().lost.packets, 3);
    }

    #[test]
    fn impossible_links_are_refused() {
        let zero = LinkChange::Rate(Rate::from_bps(0));
        let refused = Lane::new(config(), "flow", Seeds::new(1, 0), vec![(at(1), zero.clone())]);
        assert!(refused.is_err());
        assert!(lane(config(), Vec::new()).change(at(0), &zero).is_err());
    }
}

//! A link that computes the times of packets when they are offered.
//!
//! The times of a packet on a link without changes are known as soon as it is offered: the queue determines its departure, and that
//! determines its arrival. So a departure needs no event, and neither does the arrival of background traffic.
//!
//! The results are those of a link with events. On such a link, arrivals at the same time are handled in the order in which they
//! were scheduled. An arrival is scheduled when the packet departs from the serialiser, or, if another packet was before it on the link,
//! when that packet arrives. [`precedence`] computes that order.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::num::NonZeroU64;

use anabranch_core::time::Time;
use anabranch_core::units::WireBytes;

use super::{ATTACHED, Drop, Link};
use crate::dynamics::LinkChange;
use crate::loss::{LossModel, LossPlace};
use crate::packet::PacketId;
use crate::route::SourceId;
use crate::schedule::Schedule;

/// State of the link when a packet was offered.
#[derive(Clone, Copy, Debug)]
enum Found {
    /// The serialiser was idle: the departure was scheduled when the packet was offered. Offers of hosts are numbered.
    Idle { at: Time, order: Option<NonZeroU64> },
    /// The serialiser was busy: the departure was scheduled when the packet before it departed.
    Busy,
}

/// A packet that is on the link, or arrived recently.
#[derive(Clone, Copy, Debug)]
struct LinkTransit {
    leaves: Time,
    arrives: Time,
    size: WireBytes,
    /// Source of the packet, if it is background traffic.
    background: Option<SourceId>,
    found: Found,
    /// Number of its arrival among all arrivals, once handled.
    handled: Option<NonZeroU64>,
}

/// Minimum number of arrived packets that are kept.
const REMEMBERED: usize = 64;
/// Number of offers after which arrivals are counted. Batches take less time.
const SETTLE_EVERY: u64 = 32;
/// Initial capacity of the lists, in packets.
const ROOM: usize = 4 * REMEMBERED;

/// Packets on the link.
#[derive(Clone, Debug)]
pub(crate) struct Ahead {
    /// Packets in the order of their offers: arrived, propagating, in the serialiser, and waiting.
    passages: VecDeque<LinkTransit>,
    /// Number of passages that were removed.
    forgotten: u64,
    /// Number of passages that have arrived, and number that have departed.
    arrived: usize,
    left: usize,
    queue_bytes: WireBytes,
    /// Number of packets of background traffic on the link.
    background: usize,
    /// Packets of hosts that have not arrived, with the numbers of their passages.
    flights: VecDeque<(u64, PacketId)>,
    losses: RecordedChanges,
    delays: RecordedChanges,
}

/// Recorded changes of one kind that are applied when a packet needs them.
#[derive(Clone, Debug)]
struct RecordedChanges {
    schedule: Schedule,
    /// Time of the next change, or the end of time.
    next: Time,
}

impl RecordedChanges {
    fn new(schedule: Schedule) -> Self {
        let next = schedule.next_time().unwrap_or(NEVER);
        RecordedChanges { schedule, next }
    }

    /// Removes the next change if it is due. A packet that never departs needs none.
    #[inline]
    fn pop(&mut self, now: Time) -> Option<LinkChange> {
        if now < self.next || now == NEVER {
            return None;
        }
        let change = self.schedule.pop(now);
        self.next = self.schedule.next_time().unwrap_or(NEVER);
        change
    }
}

const NEVER: Time = Time::from_nanos(u64::MAX);

impl Ahead {
    fn new() -> Self {
        Ahead {
            passages: VecDeque::with_capacity(ROOM),
            forgotten: 0,
            arrived: 0,
            left: 0,
            queue_bytes: WireBytes::ZERO,
            background: 0,
            flights: VecDeque::with_capacity(REMEMBERED),
            losses: RecordedChanges::new(Schedule::default()),
            delays: RecordedChanges::new(Schedule::default()),
        }
    }

    pub(crate) fn in_service(&self) -> Option<WireBytes> {
        self.passages.get(self.left).map(|passage| passage.size)
    }

    pub(crate) fn waiting_packets(&self) -> u64 {
        (self.passages.len() - self.left).saturating_sub(1) as u64
    }

    pub(crate) fn waiting_bytes(&self) -> WireBytes {
        self.queue_bytes - self.in_service().unwrap_or(WireBytes::ZERO)
    }

    pub(crate) fn propagating_packets(&self) -> u64 {
        (self.left - self.arrived) as u64
    }

    fn passage(&self, number: u64) -> Option<&LinkTransit> {
        self.passages.get(usize::try_from(number.checked_sub(self.forgotten)?).ok()?)
    }

    /// Returns the arrival time of the first packet of a host.
    pub(crate) fn first_arrival(&self) -> Option<Time> {
        self.flights.front().and_then(|&(number, _)| self.passage(number)).map(|passage| passage.arrives)
    }

    /// Removes the first packet of a host, as arrival number `order`.
    pub(crate) fn land(&mut self, order: u64) -> Option<PacketId> {
        let (number, packet) = self.flights.pop_front()?;
        let index = (number - self.forgotten) as usize;
        self.passages[index].handled = NonZeroU64::new(order);
        Some(packet)
    }

    /// Frees the room of packets that have departed by `now`.
    fn leave(&mut self, now: Time) {
        while let Some(passage) = self.passages.get(self.left).filter(|passage| passage.leaves <= now) {
            self.queue_bytes -= passage.size;
            self.left += 1;
        }
    }

    /// Passes background traffic that has arrived by `now` to `count`.
    fn arrive(&mut self, now: Time, mut count: impl FnMut(SourceId, WireBytes)) {
        while let Some(passage) = self.passages.get(self.arrived).filter(|passage| passage.arrives <= now) {
            if let Some(source) = passage.background {
                count(source, passage.size);
                self.background -= 1;
            }
            self.arrived += 1;
        }
        self.forget();
    }

    fn forget(&mut self) {
        if self.arrived < 2 * REMEMBERED {
            return;
        }
        let landed = self.flights.front().map_or(u64::MAX, |(number, _)| number - self.forgotten);
        let old = self.arrived - REMEMBERED;
        let count = usize::try_from(landed).map_or(old, |landed| landed.min(old));
        self.passages.drain(..count);
        self.forgotten += count as u64;
        self.arrived -= count;
        self.left -= count;
    }

    /// Returns the number of packets accepted so far.
    fn taken(&self) -> u64 {
        self.forgotten + self.passages.len() as u64
    }

    /// Adds a packet for which there is room.
    #[inline]
    fn take(&mut self, passage: LinkTransit) {
        self.queue_bytes += passage.size;
        self.passages.push_back(passage);
    }

    /// Adds a packet of a host for which there is room. Returns its arrival time if it is the first packet of a host on the link.
    fn take_of_host(&mut self, passage: LinkTransit, packet: PacketId) -> Option<Time> {
        self.flights.push_back((self.taken(), packet));
        self.take(passage);
        (self.flights.len() == 1).then_some(passage.arrives)
    }
}

/// Returns the order of the first arrivals of two links, which are due at the same time. Returns `None` if the order is unknown.
pub(crate) fn precedence(one: &Ahead, other: &Ahead) -> Option<Ordering> {
    let (mut first, mut second) = (one.flights.front()?.0, other.flights.front()?.0);
    loop {
        let (a, b) = (one.passage(first)?, other.passage(second)?);
        if let (Some(a), Some(b)) = (a.handled, b.handled) {
            return Some(a.cmp(&b));
        }
        let scheduled = (one.scheduled(first)?, other.scheduled(second)?);
        if scheduled.0 != scheduled.1 {
            return Some(scheduled.0.cmp(&scheduled.1));
        }
        if scheduled.0.1 == Scheduler::Departure {
            return departure_precedence(one, first, other, second);
        }
        (first, second) = (first.checked_sub(1)?, second.checked_sub(1)?);
    }
}

/// Returns the order of two departures that are due at the same time.
fn departure_precedence(one: &Ahead, mut first: u64, other: &Ahead, mut second: u64) -> Option<Ordering> {
    loop {
        let before = |ahead: &Ahead, number: u64| -> Option<Time> {
            Some(ahead.passage(number.checked_sub(1)?)?.leaves)
        };
        match (one.passage(first)?.found, other.passage(second)?.found) {
            (Found::Idle { at, order }, Found::Idle { at: other_at, order: other_order }) => {
                // Background traffic comes after packets of hosts at the same time.
                let rank = |order: Option<NonZeroU64>| order.map_or((1, 0), |order| (0, order.get()));
                let is_told = at != other_at || order.is_some() || other_order.is_some();
                return is_told.then(|| (at, rank(order)).cmp(&(other_at, rank(other_order))));
            }
            // Departures are handled before offers at the same time.
            (Found::Idle { at, .. }, Found::Busy) => {
                return Some(at.cmp(&before(other, second)?).then(Ordering::Greater));
            }
            (Found::Busy, Found::Idle { at, .. }) => {
                return Some(before(one, first)?.cmp(&at).then(Ordering::Less));
            }
            (Found::Busy, Found::Busy) => {
                let times = (before(one, first)?, before(other, second)?);
                if times.0 != times.1 {
                    return Some(times.0.cmp(&times.1));
                }
                (first, second) = (first - 1, second - 1);
            }
        }
    }
}

/// Event that schedules an arrival. Departures are handled before arrivals at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scheduler {
    /// Departure of the packet, since none was before it on the link.
    Departure,
    /// Arrival of the packet before it.
    Arrival,
}

impl Ahead {
    /// Returns the time and kind of the event that schedules the arrival of a passage. Returns `None` if the passage before it was
    /// removed.
    fn scheduled(&self, number: u64) -> Option<(Time, Scheduler)> {
        let leaves = self.passage(number)?.leaves;
        let Some(before) = number.checked_sub(1) else { return Some((leaves, Scheduler::Departure)) };
        let arrival = self.passage(before)?.arrives;
        Some(if arrival < leaves { (leaves, Scheduler::Departure) } else { (arrival, Scheduler::Arrival) })
    }
}

fn is_delay(change: &LinkChange) -> bool {
    matches!(change, LinkChange::Delay(_))
}

fn is_loss(change: &LinkChange) -> bool {
    matches!(change, LinkChange::Loss(_))
}

impl Link {
    /// Computes the times of packets that are offered from now on ahead.
    pub(crate) fn begin_ahead(&mut self) {
        self.ahead = Some(Ahead::new());
    }

    /// Returns `true` if the link can follow a schedule although the times of packets are computed ahead.
    pub(crate) fn can_follow_ahead(&self, schedule: &Schedule) -> bool {
        let loses_behind_queue = self.loss_place == LossPlace::AfterQueue;
        schedule.records_only(|change| is_delay(change) || (is_loss(change) && !loses_behind_queue))
    }

    /// Follows a schedule from now on.
    pub(crate) fn follow_ahead(&mut self, mut schedule: Schedule) {
        if let Some(ahead) = &mut self.ahead {
            ahead.delays = RecordedChanges::new(schedule.take_series(is_delay));
            ahead.losses = RecordedChanges::new(schedule.take_series(is_loss));
        }
    }

    /// Applies recorded changes of one kind that are due.
    #[inline]
    fn apply_ahead(&mut self, now: Time, kind: fn(&mut Ahead) -> &mut RecordedChanges) {
        while let Some(change) = self.ahead.as_mut().and_then(|ahead| kind(ahead).pop(now)) {
            self.apply(&change);
        }
    }

    /// Returns the packets on the link, if their times are computed ahead.
    pub(crate) fn ahead(&self) -> Option<&Ahead> {
        self.ahead.as_ref()
    }

    /// Returns the number of packets of background traffic on the link, if their times are computed ahead.
    pub(crate) fn background_ahead(&self) -> usize {
        self.ahead.as_ref().map_or(0, |ahead| ahead.background)
    }

    /// Returns `true` if packets pass unchanged behind the queue, and the link is empty.
    pub(crate) fn can_compute_ahead(&self) -> bool {
        let loses_behind_queue = self.loss_place == LossPlace::AfterQueue && self.loss != LossModel::None;
        let is_plain =
            self.jitter.is_none() && self.batches.is_none() && self.managed.is_none() && self.faults.none();
        let is_empty = self.in_service.is_none() && self.waiting.is_empty() && self.propagating.is_empty();
        self.up && self.medium.is_none() && is_plain && !loses_behind_queue && is_empty
    }

    /// Accepts a packet of a host at the near end. `order` is its number among the offers of hosts. Returns the arrival time if it
    /// is the first packet of a host on the link.
    pub(crate) fn offer_of_host(
        &mut self,
        now: Time,
        source: SourceId,
        size: WireBytes,
        packet: PacketId,
        order: NonZeroU64,
    ) -> Result<Option<Time>, Drop> {
        let passage = self.offer_ahead(now, source, size, Some(order))?;
        Ok(self.ahead.as_mut().and_then(|ahead| ahead.take_of_host(passage, packet)))
    }

    /// Accepts a packet of background traffic at the near end.
    #[inline]
    pub(crate) fn offer_background(
        &mut self,
        now: Time,
        source: SourceId,
        size: WireBytes,
    ) -> Result<(), Drop> {
        let passage = self.offer_ahead(now, source, size, None)?;
        if let Some(ahead) = &mut self.ahead {
            ahead.background += 1;
            ahead.take(passage);
        }
        Ok(())
    }

    /// Computes the times of a packet. Returns an error if the packet is lost or does not fit.
    #[inline(always)]
    fn offer_ahead(
        &mut self,
        now: Time,
        source: SourceId,
        size: WireBytes,
        order: Option<NonZeroU64>,
    ) -> Result<LinkTransit, Drop> {
        self.apply_ahead(now, |ahead| &mut ahead.losses);
        // Loss is the only random draw on links that are computed ahead: delays are not random, and packets pass unchanged behind
        // the queue.
        if self.draw_loss(source, size) {
            return Err(self.count_drop(Drop::Loss, source, size));
        }
        if self.bucket.as_mut().is_some_and(|bucket| !bucket.passes(now, size)) {
            return Err(self.count_drop(Drop::Policer, source, size));
        }
        if self.ahead.as_ref().is_some_and(|ahead| ahead.taken().is_multiple_of(SETTLE_EVERY)) {
            self.settle_ahead(now);
        }
        let Some(ahead) = &mut self.ahead else { unreachable!("the world computes its links ahead") };
        ahead.leave(now);
        let busy_until = (ahead.left < ahead.passages.len()).then(|| ahead.passages.back()).flatten();
        let busy_until = busy_until.map(|passage| passage.leaves);
        if busy_until.is_none() {
            self.serialiser.restart(now);
        } else if !self.has_room(size) {
            return Err(self.count_drop(Drop::Queue, source, size));
        }
        let leaves = self.serialiser.send(busy_until.unwrap_or(now), size);
        self.apply_ahead(leaves, |ahead| &mut ahead.delays);
        self.last_arrival = self.last_arrival.max(leaves + self.delay);
        Ok(LinkTransit {
            leaves,
            arrives: self.last_arrival,
            size,
            background: order.is_none().then_some(source),
            found: if busy_until.is_some() { Found::Busy } else { Found::Idle { at: now, order } },
            handled: None,
        })
    }

    /// Counts background traffic that has arrived by `now`, and frees the room of packets that have departed.
    pub(crate) fn settle_ahead(&mut self, now: Time) {
        let Link { ahead: Some(ahead), per_source, .. } = self else { return };
        ahead.leave(now);
        ahead.arrive(now, |source, size| {
            let per = per_source[source.index()].as_mut().expect(ATTACHED);
            per.counters.delivered.count(size);
        });
    }
}

#[cfg(test)]
mod tests {
    use anabranch_core::time::{Rate, Span};

    use super::*;
    use crate::link::LinkConfig;
    use crate::packet::{Packet, Pool};
    use crate::queue::QueueConfig;
    use crate::rng::Seeds;
    use crate::route::RouteId;

    const SOURCE: SourceId = SourceId(0);

    fn at(us: u64) -> Time {
        Time::from_nanos(1_000 * us)
    }

    fn link() -> Link {
        let config = LinkConfig::new(
            "link",
            Rate::from_bps(8_000_000),
            Span::from_millis(1),
            QueueConfig::unlimited(),
        );
        let mut link = Link::new(config, Seeds::new(1, 0)).unwrap();
        link.attach(SOURCE, "source", Seeds::new(1, 0));
        link.begin_ahead();
        link
    }

    /// Offers packets of 100 bytes, which take 100 us each. An entry with a number is a packet of a host.
    fn offer(link: &mut Link, now: Time, orders: &[Option<u64>]) {
        let mut pool = Pool::default();
        for order in orders {
            let packet = pool.insert(Packet::new(WireBytes::new(100), SOURCE, RouteId(0)));
            let size = WireBytes::new(100);
            let offered = match order.and_then(NonZeroU64::new) {
                Some(order) => link.offer_of_host(now, SOURCE, size, packet, order).map(|_| ()),
                None => link.offer_background(now, SOURCE, size),
            };
            assert!(offered.is_ok());
        }
    }

    fn order_of(one: &Link, other: &Link) -> Option<Ordering> {
        assert_eq!(one.first_arrival(), other.first_arrival());
        let (one, other) = (one.ahead().unwrap(), other.ahead().unwrap());
        let order = precedence(one, other);
        assert_eq!(order, precedence(other, one).map(Ordering::reverse));
        order
    }

    #[test]
    fn first_offered_of_two_idle_links_delivers_first() {
        let (mut one, mut other) = (link(), link());
        offer(&mut one, at(0), &[Some(2)]);
        offer(&mut other, at(0), &[Some(1)]);
        assert_eq!(order_of(&one, &other), Some(Ordering::Greater));
    }

    #[test]
    fn order_behind_background_traffic_follows_earlier_arrivals() {
        let (mut one, mut other) = (link(), link());
        offer(&mut one, at(0), &[None, None]);
        offer(&mut other, at(100), &[None]);
        offer(&mut one, at(150), &[Some(1)]);
        offer(&mut other, at(150), &[Some(2)]);
        // The second link's packet was alone, and its arrival scheduled at its departure. The first link's packet followed another.
        assert_eq!(order_of(&one, &other), Some(Ordering::Greater));
    }

    #[test]
    fn order_of_two_sources_in_one_nanosecond_is_unknown() {
        let (mut one, mut other) = (link(), link());
        offer(&mut one, at(0), &[None, Some(1)]);
        offer(&mut other, at(0), &[None, Some(2)]);
        assert_eq!(order_of(&one, &other), None);
    }

    #[test]
    fn memory_of_arrivals_is_bounded_and_older_order_unknown() {
        let (mut one, mut other) = (link(), link());
        offer(&mut one, at(0), &[Some(1)]);
        offer(&mut other, at(0), &[Some(2)]);
        for link in [&mut one, &mut other] {
            offer(link, at(0), &[None; 1_000]);
            link.ahead.as_mut().unwrap().flights.pop_front();
            offer(link, at(0), &[Some(3)]);
            link.settle_ahead(at(100_000));
            assert!(link.ahead().unwrap().passages.len() < 2 * REMEMBERED + 20);
        }
        assert_eq!(order_of(&one, &other), None);
    }
}

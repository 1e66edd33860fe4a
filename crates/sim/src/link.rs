//! One direction of a link: loss, a policer, a bounded queue, a serialiser, and propagation.
//!
//! A link has at most two events pending: the serialiser becomes free or may begin with a batch, and the first
//! propagating packet arrives. Times are exact: what a packet's serialisation leaves of a nanosecond is carried into the next
//! packet of the same busy period, so the k-th packet of a burst is serialised after `floor(k * bits /
//! rate)`.

mod ahead;
mod serialiser;

use std::collections::VecDeque;

use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::WireBytes;

use crate::aggregation::{Aggregation, Batches};
use crate::dynamics::LinkChange;
use crate::error::{ConfigError, probability, require};
use crate::jitter::Jitter;
use crate::loss::{LossModel, LossPlace, SourceLoss};
use crate::packet::{Fate, PacketId, Pool};
use crate::policer::{Policer, TokenBucket};
use crate::queue::{Capacity, Fifo, Managed, QueueConfig, Queued, Reason};
use crate::rng::{Seeds, Stream};
use crate::route::SourceId;
use crate::trace::{CapacityTrace, Course, Playback, Series};

pub(crate) use ahead::{Ahead, precedence};
use serialiser::Serialiser;

/// What a link is like when the run begins.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Unique; the link's random streams belong to it.
    pub name: String,
    /// How fast it sends.
    pub rate: Rate,
    /// One-way propagation delay.
    pub delay: Span,
    /// How much can wait.
    pub queue: QueueConfig,
    /// What is lost.
    pub loss: LossModel,
    /// Where it is lost.
    pub loss_place: LossPlace,
    /// What is dropped before the queue because it exceeds a rate.
    pub policer: Option<Policer>,
    /// What the delay differs by.
    pub jitter: Option<Jitter>,
    /// How packets wait for each other.
    pub aggregation: Option<Aggregation>,
    /// Trace that says how much is sent and when, in place of `rate`. [`with_capacity`](Self::with_capacity) sets both.
    pub capacity: Option<Playback<CapacityTrace>>,
    /// Recorded changes of delay, loss and state.
    pub series: Vec<Playback<Series>>,
    /// What else goes wrong.
    pub faults: Faults,
}

impl LinkConfig {
    /// A link without loss and faults.
    pub fn new(name: impl Into<String>, rate: Rate, delay: Span, queue: QueueConfig) -> Self {
        LinkConfig {
            name: name.into(),
            rate,
            delay,
            queue,
            loss: LossModel::None,
            loss_place: LossPlace::BeforeQueue,
            policer: None,
            jitter: None,
            aggregation: None,
            capacity: None,
            series: Vec::new(),
            faults: Faults::default(),
        }
    }

    /// The same link with this loss.
    pub fn with_loss(self, loss: LossModel, loss_place: LossPlace) -> Self {
        LinkConfig { loss, loss_place, ..self }
    }

    /// The same link with a policer, if there is one.
    pub fn with_policer(self, policer: Option<Policer>) -> Self {
        LinkConfig { policer, ..self }
    }

    /// The same link with jitter, if there is any.
    pub fn with_jitter(self, jitter: Option<Jitter>) -> Self {
        LinkConfig { jitter, ..self }
    }

    /// The same link, sending in batches if this says how.
    pub fn with_aggregation(self, aggregation: Option<Aggregation>) -> Self {
        LinkConfig { aggregation, ..self }
    }

    /// The same link following a capacity trace. Its rate, which limits in time and the average of RED go by, becomes the trace's mean.
    pub fn with_capacity(self, capacity: Playback<CapacityTrace>) -> Self {
        LinkConfig { rate: capacity.trace.mean_rate(), capacity: Some(capacity), ..self }
    }

    /// The same link with recorded changes, beside those that it has.
    pub fn with_series(mut self, series: Playback<Series>) -> Self {
        self.series.push(series);
        self
    }

    /// The same link with these faults.
    pub fn with_faults(self, faults: Faults) -> Self {
        LinkConfig { faults, ..self }
    }

    fn check(&self) -> Result<(), ConfigError> {
        require(self.rate.as_bps() > 0, "rate", "must be more than zero")?;
        self.queue.validate()?;
        self.series.iter().try_for_each(Playback::check)?;
        self.loss.check()?;
        self.policer.as_ref().map_or(Ok(()), Policer::check)?;
        self.jitter.as_ref().map_or(Ok(()), Jitter::check)?;
        self.aggregation.as_ref().map_or(Ok(()), Aggregation::check)?;
        probability("duplicate", self.faults.duplicate)?;
        probability("reorder", self.faults.reorder)?;
        probability("corrupt", self.faults.corrupt)
    }
}

/// What a robust protocol must survive, for tests. Each is drawn independently for every packet that is not
/// lost.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Faults {
    /// Probability that a packet arrives twice. The copy comes right behind the original, or where the
    /// original would have come if that is held back.
    pub duplicate: f64,
    /// Probability that a packet is held back by `extra_delay`, so that later ones overtake it.
    pub reorder: f64,
    /// How long packets are held back.
    pub extra_delay: Span,
    /// Probability that one bit of the payload flips. A copy is made of the intact packet.
    pub corrupt: f64,
}

impl Faults {
    fn none(&self) -> bool {
        self.duplicate == 0.0 && self.reorder == 0.0 && self.corrupt == 0.0
    }

    /// Draws always take four numbers, so that one fault's probability does not disturb another fault.
    fn draw(&self, stream: &mut Stream) -> Fate {
        let duplicated = stream.chance(self.duplicate);
        let delayed = stream.chance(self.reorder);
        let corrupt = stream.chance(self.corrupt);
        let place = (stream.next_u64() >> 32) as u32;
        Fate { duplicated, delayed, corrupted: corrupt.then_some(place), ..Fate::default() }
    }
}

/// A number of packets and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    /// How many packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: WireBytes,
}

impl Tally {
    fn count(&mut self, bytes: WireBytes) {
        self.packets += 1;
        self.bytes += bytes;
    }
}

/// Counts of packets on a link, by outcome. At any moment, `entered` plus `duplicated` equals the sum of the outcomes and of the packets
/// that are still on the link. `managed` is a part of `overflowed` and is not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Offered to the link.
    pub entered: Tally,
    /// Arrived at the far end.
    pub delivered: Tally,
    /// Lost at random.
    pub lost: Tally,
    /// Dropped by the policer.
    pub policed: Tally,
    /// Dropped by the queue: because it was full, or early by its discipline.
    pub overflowed: Tally,
    /// Those of `overflowed` that the queue's discipline dropped early.
    pub managed: Tally,
    /// Dropped because the link was down.
    pub outage: Tally,
    /// Copies that the link made.
    pub duplicated: Tally,
}

impl Counters {
    fn tallies(&mut self) -> [&mut Tally; 8] {
        let Counters { entered, delivered, lost, policed, overflowed, managed, outage, duplicated } = self;
        [entered, delivered, lost, policed, overflowed, managed, outage, duplicated]
    }

    fn add(&mut self, mut other: Counters) {
        for (sum, part) in self.tallies().into_iter().zip(other.tallies()) {
            sum.packets += part.packets;
            sum.bytes += part.bytes;
        }
    }
}

/// Why a link dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drop {
    Loss,
    Policer,
    /// The queue was full.
    Queue,
    /// The queue's discipline dropped it.
    Management,
    Outage,
}

impl From<Reason> for Drop {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Full => Drop::Queue,
            Reason::Early => Drop::Management,
        }
    }
}

/// What becomes of a packet offered to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// It found the link idle: then the serialiser is to be looked after.
    Due(Time),
    Waits,
    Dropped(Drop),
}

/// What follows from a packet leaving the serialiser, or from a batch that begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) dropped: Option<(PacketId, Drop)>,
    /// When the serialiser is to be looked after again, if a packet waited.
    pub(crate) next: Option<Time>,
    /// When the first propagating packet arrives, if it was not the first before.
    pub(crate) head: Option<Time>,
}

struct PerSource {
    name: String,
    counters: Counters,
    loss: SourceLoss,
    jitter: Stream,
    faults: Stream,
}

/// Packets that a link's lists have room for from the start.
const QUEUE_ROOM: usize = 64;

/// One direction of a link.
pub struct Link {
    name: String,
    serialiser: Serialiser,
    delay: Span,
    queue: QueueConfig,
    capacity: Capacity,
    loss: LossModel,
    loss_place: LossPlace,
    bucket: Option<TokenBucket>,
    jitter: Option<Jitter>,
    batches: Option<Batches>,
    faults: Faults,
    up: bool,
    in_service: Option<Queued>,
    waiting: Fifo,
    /// The discipline and its packets, if the queue has one: then nothing is in `waiting`.
    managed: Option<Managed>,
    /// Packets that the queue dropped since they were last taken.
    queue_drops: VecDeque<(PacketId, Drop)>,
    /// In order of arrival.
    propagating: VecDeque<(Time, PacketId)>,
    /// When the last packet that was not held back arrives: no such packet arrives before an earlier one.
    last_arrival: Time,
    /// What is on the link, if the times of packets are known when they are offered: then nothing is in the lists above.
    ahead: Option<Ahead>,
    per_source: Vec<Option<PerSource>>,
}

const ATTACHED: &str = "sources are attached when their route is made";

impl Link {
    pub(crate) fn new(config: LinkConfig, seeds: Seeds) -> Result<Self, ConfigError> {
        config.check()?;
        let LinkConfig { name, rate, delay, queue, loss, loss_place, policer, jitter, aggregation, .. } =
            config;
        let LinkConfig { capacity, faults, .. } = config;
        let managed = Managed::new(queue.discipline, &name, seeds);
        Ok(Link {
            name,
            serialiser: Serialiser::new(rate, capacity.map(Course::new)),
            delay,
            queue,
            capacity: queue.capacity(rate),
            loss,
            loss_place,
            bucket: policer.map(TokenBucket::new),
            jitter,
            batches: aggregation.map(Batches::new),
            faults,
            up: true,
            in_service: None,
            // So that the first packets to wait in a run in full swing do not allocate.
            waiting: Fifo::with_capacity(QUEUE_ROOM),
            managed,
            queue_drops: VecDeque::new(),
            propagating: VecDeque::with_capacity(QUEUE_ROOM),
            last_arrival: Time::ZERO,
            ahead: None,
            per_source: Vec::new(),
        })
    }

    /// The link's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rate at present, or the mean rate of the trace that the link follows.
    pub fn rate(&self) -> Rate {
        self.serialiser.rate()
    }

    /// The propagation delay at present.
    pub fn delay(&self) -> Span {
        self.delay
    }

    /// Whether the link is up.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// How many packets wait, not counting the one being sent.
    pub fn waiting_packets(&self) -> u64 {
        match (&self.ahead, &self.managed) {
            (Some(ahead), _) => ahead.waiting_packets(),
            (None, Some(managed)) => managed.packets(),
            (None, None) => self.waiting.packets(),
        }
    }

    /// How many bytes wait, not counting the packet being sent.
    pub fn waiting_bytes(&self) -> WireBytes {
        match (&self.ahead, &self.managed) {
            (Some(ahead), _) => ahead.waiting_bytes(),
            (None, Some(managed)) => managed.bytes(),
            (None, None) => self.waiting.bytes(),
        }
    }

    /// The size of the packet being sent.
    pub fn in_service(&self) -> Option<WireBytes> {
        self.ahead.as_ref().map_or(self.in_service.map(|queued| queued.size), Ahead::in_service)
    }

    /// How many packets have been sent but have not arrived.
    pub fn propagating_packets(&self) -> u64 {
        self.ahead.as_ref().map_or(self.propagating.len() as u64, Ahead::propagating_packets)
    }

    /// When the first propagating packet arrives.
    pub(crate) fn first_arrival(&self) -> Option<Time> {
        match &self.ahead {
            Some(ahead) => ahead.first_arrival(),
            None => self.propagating.front().map(|(time, _)| *time),
        }
    }

    /// Returns the counts of one source.
    pub fn counters(&self, source: SourceId) -> Counters {
        let known = self.per_source.get(source.index()).and_then(Option::as_ref);
        known.map(|per| per.counters).unwrap_or_default()
    }

    /// Returns the counts of all sources.
    pub fn total_counters(&self) -> Counters {
        let mut total = Counters::default();
        for per in self.per_source.iter().flatten() {
            total.add(per.counters);
        }
        total
    }

    /// Prepares for packets of a source.
    pub(crate) fn attach(&mut self, source: SourceId, name: &str, seeds: Seeds) {
        if self.per_source.len() <= source.index() {
            self.per_source.resize_with(source.index() + 1, || None);
        }
        let slot = &mut self.per_source[source.index()];
        if slot.is_none() {
            let stream = seeds.stream(&["link", &self.name, "loss", name]);
            *slot = Some(PerSource {
                name: name.to_owned(),
                counters: Counters::default(),
                loss: SourceLoss::new(stream, &self.loss, name),
                jitter: seeds.stream(&["link", &self.name, "jitter", name]),
                faults: seeds.stream(&["link", &self.name, "faults", name]),
            });
        }
    }

    fn source_mut(&mut self, source: SourceId) -> &mut PerSource {
        self.per_source[source.index()].as_mut().expect(ATTACHED)
    }

    /// Applies a change at once, except that a packet in the serialiser leaves it when it would have.
    pub(crate) fn apply(&mut self, change: &LinkChange) {
        match change {
            LinkChange::Rate(rate) => {
                self.serialiser.set_rate(*rate);
                self.capacity = self.queue.capacity(*rate);
            }
            LinkChange::Delay(delay) => self.delay = *delay,
            LinkChange::Loss(loss) => {
                self.loss = loss.clone();
                for per in self.per_source.iter_mut().flatten() {
                    per.loss.set_model(loss, &per.name);
                }
            }
            LinkChange::Up => self.up = true,
            LinkChange::Down => self.up = false,
        }
    }

    /// Takes a packet in at the near end.
    pub(crate) fn offer(&mut self, now: Time, id: PacketId, pool: &mut Pool) -> Offer {
        let packet = pool.get_mut(id);
        packet.fate = self.draw_fate(packet.source, packet.wire);
        let refused =
            |link: &mut Self, drop| Offer::Dropped(link.count_drop(drop, packet.source, packet.wire));
        if !self.up {
            return refused(self, Drop::Outage);
        }
        if packet.fate.lost && self.loss_place == LossPlace::BeforeQueue {
            return refused(self, Drop::Loss);
        }
        if self.bucket.as_mut().is_some_and(|bucket| !bucket.passes(now, packet.wire)) {
            return refused(self, Drop::Policer);
        }
        let queued = Queued { packet: id, size: packet.wire, since: now };
        if self.managed.is_some() {
            return self.offer_managed(queued, pool);
        }
        if self.in_service.is_none() && self.batches.is_none() {
            self.serialiser.restart(now);
            return Offer::Due(self.serve(now, queued));
        }
        if !self.has_room(queued.size) {
            return refused(self, Drop::Queue);
        }
        self.waiting.push(queued);
        if self.in_service.is_some() {
            return Offer::Waits;
        }
        self.serialiser.restart(now);
        self.serve_next(now, pool).map_or(Offer::Waits, Offer::Due)
    }

    /// Takes a packet into a queue that is managed. If the queue drops it, it is among the [drops](Self::take_queue_drop).
    fn offer_managed(&mut self, queued: Queued, pool: &Pool) -> Offer {
        let serving = self.in_service;
        let counted = serving.filter(|_| self.queue.in_service_counts);
        let (in_service, bytes_in_service) =
            counted.map_or((0, WireBytes::ZERO), |serving| (1, serving.size));
        let capacity = self.capacity;
        let fits = |packets: u64, bytes: WireBytes, size: WireBytes| {
            (serving.is_none() && packets == 0)
                || capacity.fits(packets + in_service, bytes + bytes_in_service, size)
        };
        let rate = self.rate();
        let Link { managed: Some(managed), queue_drops, .. } = self else {
            unreachable!("the queue is managed")
        };
        let before = queue_drops.len();
        let route = pool.get(queued.packet).route;
        managed.enqueue(queued, route, rate, fits, |queued, reason| {
            queue_drops.push_back((queued.packet, reason.into()));
        });
        self.count_queue_drops(before, pool);
        if serving.is_some() {
            return Offer::Waits;
        }
        self.serialiser.restart(queued.since);
        self.serve_next(queued.since, pool).map_or(Offer::Waits, Offer::Due)
    }

    /// Counts the packets that the queue dropped after the first `before`.
    fn count_queue_drops(&mut self, before: usize, pool: &Pool) {
        for index in before..self.queue_drops.len() {
            let (packet, drop) = self.queue_drops[index];
            let packet = pool.get(packet);
            self.count_drop(drop, packet.source, packet.wire);
        }
    }

    /// Takes out a packet that the queue dropped, which belongs to the caller now.
    #[inline]
    pub(crate) fn take_queue_drop(&mut self) -> Option<(PacketId, Drop)> {
        self.queue_drops.pop_front()
    }

    /// Whether a packet may wait. Where nothing does and none is being sent, one always may.
    #[inline]
    fn has_room(&self, size: WireBytes) -> bool {
        let serving = self.in_service();
        let waiting = self.waiting_packets();
        let counted = serving.filter(|_| self.queue.in_service_counts);
        let (packets, bytes) = counted.map_or((0, WireBytes::ZERO), |size| (1, size));
        (serving.is_none() && waiting == 0)
            || self.capacity.fits(waiting + packets, self.waiting_bytes() + bytes, size)
    }

    /// Counts a packet that reaches the link, and says whether it is lost.
    #[inline]
    fn draw_loss(&mut self, source: SourceId, wire: WireBytes) -> bool {
        let per = self.per_source[source.index()].as_mut().expect(ATTACHED);
        let earlier = per.counters.entered.packets;
        per.counters.entered.count(wire);
        per.loss.draw(&self.loss, earlier)
    }

    fn draw_fate(&mut self, source: SourceId, wire: WireBytes) -> Fate {
        let lost = self.draw_loss(source, wire);
        let per = self.per_source[source.index()].as_mut().expect(ATTACHED);
        let mut fate = if self.faults.none() { Fate::default() } else { self.faults.draw(&mut per.faults) };
        fate.lost = lost;
        fate.jitter = self.jitter.map_or(Span::ZERO, |jitter| jitter.draw(&mut per.jitter));
        fate
    }

    fn count_drop(&mut self, drop: Drop, source: SourceId, wire: WireBytes) -> Drop {
        let counters = &mut self.source_mut(source).counters;
        if drop == Drop::Management {
            counters.managed.count(wire);
        }
        let tally = match drop {
            Drop::Loss => &mut counters.lost,
            Drop::Policer => &mut counters.policed,
            Drop::Queue | Drop::Management => &mut counters.overflowed,
            Drop::Outage => &mut counters.outage,
        };
        tally.count(wire);
        drop
    }

    /// Puts a packet into the serialiser and says when it leaves.
    fn serve(&mut self, now: Time, queued: Queued) -> Time {
        self.in_service = Some(queued);
        self.serialiser.send(now, queued.size)
    }

    /// Puts the next waiting packet into the serialiser, unless it waits for its batch, and says when to look again.
    fn serve_next(&mut self, now: Time, pool: &Pool) -> Option<Time> {
        if self.batches.is_some()
            && let Some(due) = self.wait_for_batch(now)
        {
            return Some(due);
        }
        let next = if self.managed.is_some() { self.dequeue_managed(now, pool) } else { self.waiting.pop() };
        next.map(|next| self.serve(now, next))
    }

    /// Returns the time until which the first packet waits for its batch, if it does.
    fn wait_for_batch(&mut self, now: Time) -> Option<Time> {
        let waiting = self.waiting_packets();
        let since = match &self.managed {
            Some(managed) => managed.oldest(),
            None => self.waiting.front().map(|first| first.since),
        }?;
        self.batches.as_mut()?.take(now, waiting, since).err()
    }

    fn dequeue_managed(&mut self, now: Time, pool: &Pool) -> Option<Queued> {
        let Link { managed, queue_drops, batches, .. } = self;
        let before = queue_drops.len();
        let next = managed.as_mut()?.dequeue(now, |queued, reason| {
            queue_drops.push_back((queued.packet, reason.into()));
        });
        let dropped = queue_drops.len() - before;
        if let Some(batches) = batches {
            batches.leave_out(dropped as u64);
        }
        self.count_queue_drops(before, pool);
        next
    }

    /// Takes the packet out of the serialiser, if there is one, and puts the next one in.
    pub(crate) fn depart(&mut self, now: Time, pool: &mut Pool) -> Departure {
        let (mut dropped, mut head) = (None, None);
        let sent = self.in_service.take();
        if sent.is_none() {
            // A batch begins.
            self.serialiser.restart(now);
        }
        if let Some(sent) = sent {
            let packet = pool.get(sent.packet);
            if !self.up {
                dropped = Some((sent.packet, self.count_drop(Drop::Outage, packet.source, packet.wire)));
            } else if packet.fate.lost {
                dropped = Some((sent.packet, self.count_drop(Drop::Loss, packet.source, packet.wire)));
            } else {
                head = self.propagate(now, sent.packet, pool);
            }
        }
        Departure { dropped, next: self.serve_next(now, pool), head }
    }

    /// Sends a packet on its way and says when the first one arrives, if that is another than before.
    fn propagate(&mut self, now: Time, id: PacketId, pool: &mut Pool) -> Option<Time> {
        let before = self.propagating.front().copied();
        let fate = pool.get(id).fate;
        let (in_order, alone) =
            self.jitter.map_or((Span::ZERO, Span::ZERO), |jitter| jitter.split(fate.jitter));
        let arrival = (now + self.delay + in_order).max(self.last_arrival);
        if !fate.delayed || fate.duplicated {
            self.last_arrival = arrival;
        }
        let on_time = arrival + alone;
        let copy = fate.duplicated.then(|| self.duplicate(id, pool));
        if let Some(place) = fate.corrupted {
            pool.content_mut(id).flip_bit(place);
        }
        let held_back = now + self.delay + fate.jitter + self.faults.extra_delay;
        self.insert(if fate.delayed { held_back } else { on_time }, id);
        if let Some(copy) = copy {
            self.insert(on_time, copy);
        }
        let first = self.propagating.front().copied();
        if first == before { None } else { first.map(|(time, _)| time) }
    }

    fn duplicate(&mut self, id: PacketId, pool: &mut Pool) -> PacketId {
        let copy = pool.duplicate(id);
        let packet = pool.get(copy);
        self.source_mut(packet.source).counters.duplicated.count(packet.wire);
        copy
    }

    /// Packets that arrive at one moment arrive in the order they were sent.
    fn insert(&mut self, arrival: Time, id: PacketId) {
        if self.propagating.back().is_none_or(|(last, _)| *last <= arrival) {
            self.propagating.push_back((arrival, id));
        } else {
            let place = self.propagating.partition_point(|(time, _)| *time <= arrival);
            self.propagating.insert(place, (arrival, id));
        }
    }

    /// Takes the first propagating packet out at the far end and says when the next one arrives.
    /// `order` is its number among arrivals.
    pub(crate) fn arrive(&mut self, pool: &Pool, order: u64) -> (PacketId, Option<Time>) {
        let first = match &mut self.ahead {
            Some(ahead) => ahead.land(order),
            None => self.propagating.pop_front().map(|(_, id)| id),
        };
        let id = first.expect("an arrival is scheduled only with a packet propagating");
        let packet = pool.get(id);
        self.source_mut(packet.source).counters.delivered.count(packet.wire);
        (id, self.first_arrival())
    }
}

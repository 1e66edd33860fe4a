//! One direction of a link: loss, a policer, a bounded queue, a serialiser, and propagation.
//!
//! A link has at most two events pending: the next action of the serialiser (it becomes free, or a batch begins), and the arrival
//! of the first propagating packet. Times are exact: the fraction of a nanosecond at the end of a serialisation is carried into the
//! next packet of the same busy period. The k-th packet of a burst is serialised after `floor(k * bits / rate)`.

mod ahead;
mod serialiser;

use std::collections::VecDeque;

use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::WireBytes;

use crate::aggregation::{Aggregation, Batches};
use crate::dynamics::LinkChange;
use crate::error::{ConfigError, probability, require};
use crate::fading::{Fading, FadingCursor};
use crate::jitter::Jitter;
use crate::loss::{LossModel, LossPlace, SourceLoss};
use crate::packet::{Fate, PacketId, Pool};
use crate::policer::{Policer, TokenBucket};
use crate::queue::{Capacity, Fifo, Managed, QueueConfig, Queued, Reason};
use crate::rng::{Seeds, Stream};
use crate::route::SourceId;
use crate::schedule::Schedule;
use crate::trace::{CapacityTrace, Playback, Series, SeriesCursor, TraceCursor};

pub(crate) use ahead::{Ahead, precedence};
use serialiser::Serialiser;

/// Configuration of a link at the start of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Unique name. The link's random streams depend on the name.
    pub name: String,
    /// Rate of the serialiser.
    pub rate: Rate,
    /// One-way propagation delay.
    pub delay: Span,
    /// Size and discipline of the queue.
    pub queue: QueueConfig,
    /// Model of random loss.
    pub loss: LossModel,
    /// Place of the loss on the link.
    pub loss_place: LossPlace,
    /// Policer in front of the queue.
    pub policer: Option<Policer>,
    /// Variation of the propagation delay.
    pub jitter: Option<Jitter>,
    /// Rule by which packets are sent in batches.
    pub aggregation: Option<Aggregation>,
    /// Rate adaptation over a fading channel, with `rate` as the highest rate.
    pub fading: Option<Fading>,
    /// Trace of the capacity, in place of `rate`. [`with_capacity`](Self::with_capacity) sets both.
    pub capacity: Option<Playback<CapacityTrace>>,
    /// Recorded changes of delay, loss and state.
    pub series: Vec<Playback<Series>>,
    /// Duplication, reordering and corruption, for tests.
    pub faults: Faults,
}

impl LinkConfig {
    /// Returns a link without loss and faults.
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
            fading: None,
            capacity: None,
            series: Vec::new(),
            faults: Faults::default(),
        }
    }

    /// Sets the loss and its place.
    pub fn with_loss(self, loss: LossModel, loss_place: LossPlace) -> Self {
        LinkConfig { loss, loss_place, ..self }
    }

    /// Sets or removes the policer.
    pub fn with_policer(self, policer: Option<Policer>) -> Self {
        LinkConfig { policer, ..self }
    }

    /// Sets or removes the jitter.
    pub fn with_jitter(self, jitter: Option<Jitter>) -> Self {
        LinkConfig { jitter, ..self }
    }

    /// Sets or removes the rule for batches.
    pub fn with_aggregation(self, aggregation: Option<Aggregation>) -> Self {
        LinkConfig { aggregation, ..self }
    }

    /// Sets or removes the rate adaptation.
    pub fn with_fading(self, fading: Option<Fading>) -> Self {
        LinkConfig { fading, ..self }
    }

    /// Sets a capacity trace. The rate, which time limits of queues and the average of RED use, becomes the trace's mean.
    pub fn with_capacity(self, capacity: Playback<CapacityTrace>) -> Self {
        LinkConfig { rate: capacity.trace.mean_rate(), capacity: Some(capacity), ..self }
    }

    /// Adds recorded changes.
    pub fn with_series(mut self, series: Playback<Series>) -> Self {
        self.series.push(series);
        self
    }

    /// Sets the faults.
    pub fn with_faults(self, faults: Faults) -> Self {
        LinkConfig { faults, ..self }
    }

    /// Adds the recorded and random changes of the configuration to a schedule.
    pub(crate) fn extend(&self, schedule: Schedule, seeds: Seeds) -> Schedule {
        let stream = || seeds.stream(&["link", &self.name, "fading"]);
        let fading = self.fading.map(|fading| FadingCursor::new(fading, self.rate, stream()));
        schedule.with(self.series.iter().cloned().map(SeriesCursor::new).collect(), fading)
    }

    fn check(&self) -> Result<(), ConfigError> {
        require(self.rate.as_bps() > 0, "rate", "must be more than zero")?;
        self.queue.validate()?;
        self.series.iter().try_for_each(Playback::check)?;
        self.loss.check()?;
        self.policer.as_ref().map_or(Ok(()), Policer::check)?;
        self.jitter.as_ref().map_or(Ok(()), Jitter::check)?;
        self.aggregation.as_ref().map_or(Ok(()), Aggregation::check)?;
        self.fading.as_ref().map_or(Ok(()), Fading::check)?;
        let has_one_rate = self.fading.is_none() || self.capacity.is_none();
        require(has_one_rate, "fading", "must not be given with a trace of the capacity")?;
        probability("duplicate", self.faults.duplicate)?;
        probability("reorder", self.faults.reorder)?;
        probability("corrupt", self.faults.corrupt)
    }
}

/// Faults that a robust protocol must survive, for tests. Each is drawn independently for every packet that is not lost.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Faults {
    /// Probability that a packet arrives twice. The copy arrives directly behind the original, or at the original's undelayed time
    /// if that is held back.
    pub duplicate: f64,
    /// Probability that a packet is held back by `extra_delay`, so that later ones overtake it.
    pub reorder: f64,
    /// Time for which such packets are held back.
    pub extra_delay: Span,
    /// Probability that one bit of the payload flips. A copy is made of the intact packet.
    pub corrupt: f64,
}

impl Faults {
    fn none(&self) -> bool {
        self.duplicate == 0.0 && self.reorder == 0.0 && self.corrupt == 0.0
    }

    /// Draws the faults of a packet. It always draws four numbers, so that the probability of one fault does not affect another.
    fn draw(&self, stream: &mut Stream) -> Fate {
        let duplicated = stream.chance(self.duplicate);
        let delayed = stream.chance(self.reorder);
        let corrupt = stream.chance(self.corrupt);
        let place = (stream.next_u64() >> 32) as u32;
        Fate { duplicated, delayed, corrupted: corrupt.then_some(place), ..Fate::default() }
    }
}

/// Number of packets and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    /// Number of packets.
    pub packets: u64,
    /// Bytes on the wire.
    pub bytes: WireBytes,
}

impl Tally {
    fn count(&mut self, bytes: WireBytes) {
        self.packets += 1;
        self.bytes += bytes;
    }
}

/// Counts of packets on a link, by outcome. At any moment, `entered` plus `duplicated` equals the sum of the outcomes and of the
/// packets that are still on the link. `managed` is a part of `overflowed` and is not added.
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
    /// Part of `overflowed` that the queue's discipline dropped early.
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

/// Reason for which a link dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drop {
    Loss,
    Policer,
    /// The queue was full.
    Queue,
    /// The queue's discipline dropped the packet.
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

/// Outcome of offering a packet to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// The link was idle. The serialiser has its next event at this time.
    Due(Time),
    Waits,
    Dropped(Drop),
}

/// Result of a departure from the serialiser, or of the start of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) dropped: Option<(PacketId, Drop)>,
    /// Time of the serialiser's next event, if a packet waited.
    pub(crate) next: Option<Time>,
    /// Arrival time of the first propagating packet, if the departed packet became the first.
    pub(crate) head: Option<Time>,
}

#[derive(Clone)]
struct PerSource {
    name: String,
    counters: Counters,
    loss: SourceLoss,
    jitter: Stream,
    faults: Stream,
}

/// Initial capacity of a link's lists, in packets.
const QUEUE_ROOM: usize = 64;

/// One direction of a link.
#[derive(Clone)]
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
    medium: Option<Medium>,
    faults: Faults,
    up: bool,
    in_service: Option<Queued>,
    waiting: Fifo,
    /// Discipline and its packets, if the queue has one. `waiting` is empty then.
    managed: Option<Managed>,
    /// Packets that the queue dropped and the world has not taken yet.
    queue_drops: VecDeque<(PacketId, Drop)>,
    /// Propagating packets in the order of arrival.
    propagating: VecDeque<(Time, PacketId)>,
    /// Latest arrival time of a packet that was not held back. No such packet arrives before an earlier one.
    last_arrival: Time,
    /// Packets on the link, if their times are computed when they are offered. The other lists are empty then.
    ahead: Option<Ahead>,
    per_source: Vec<Option<PerSource>>,
}

/// State of a medium that two links share, as one of them sees it.
#[derive(Clone, Copy, Debug)]
struct Medium {
    /// Time for which each packet occupies the medium besides its serialisation.
    access: Span,
    /// Set while the other link sends.
    busy: bool,
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
            serialiser: Serialiser::new(rate, capacity.map(TraceCursor::new)),
            delay,
            queue,
            capacity: queue.capacity(rate),
            loss,
            loss_place,
            bucket: policer.map(TokenBucket::new),
            jitter,
            batches: aggregation.map(Batches::new),
            medium: None,
            faults,
            up: true,
            in_service: None,
            // Avoids allocations for the first packets that wait.
            waiting: Fifo::with_capacity(QUEUE_ROOM),
            managed,
            queue_drops: VecDeque::new(),
            propagating: VecDeque::with_capacity(QUEUE_ROOM),
            last_arrival: Time::ZERO,
            ahead: None,
            per_source: Vec::new(),
        })
    }

    /// Returns the link's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the current rate, or the mean rate of the trace that the link follows.
    pub fn rate(&self) -> Rate {
        self.serialiser.rate()
    }

    /// Returns the current propagation delay. If times of packets are computed ahead, it is that of the packet offered last.
    pub fn delay(&self) -> Span {
        self.delay
    }

    /// Returns `true` if the link is up.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// Returns the number of waiting packets, without the one being sent.
    pub fn waiting_packets(&self) -> u64 {
        match (&self.ahead, &self.managed) {
            (Some(ahead), _) => ahead.waiting_packets(),
            (None, Some(managed)) => managed.packets(),
            (None, None) => self.waiting.packets(),
        }
    }

    /// Returns the bytes of waiting packets, without the one being sent.
    pub fn waiting_bytes(&self) -> WireBytes {
        match (&self.ahead, &self.managed) {
            (Some(ahead), _) => ahead.waiting_bytes(),
            (None, Some(managed)) => managed.bytes(),
            (None, None) => self.waiting.bytes(),
        }
    }

    /// Returns the size of the packet being sent.
    pub fn in_service(&self) -> Option<WireBytes> {
        self.ahead.as_ref().map_or(self.in_service.map(|queued| queued.size), Ahead::in_service)
    }

    /// Returns the number of packets that were sent and have not arrived.
    pub fn propagating_packets(&self) -> u64 {
        self.ahead.as_ref().map_or(self.propagating.len() as u64, Ahead::propagating_packets)
    }

    /// Returns the arrival time of the first propagating packet.
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

    /// Creates the random streams and counters of a source.
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

    /// Shares the medium with another link from now on.
    pub(crate) fn share_medium(&mut self, access: Span) -> Result<(), ConfigError> {
        require(self.medium.is_none(), "medium", "must be shared by two links")?;
        require(self.batches.is_none(), "medium", "must not be shared by a link that sends in batches")?;
        let has_rate = !self.serialiser.follows_trace();
        require(has_rate, "medium", "must not be shared by a link with a trace of the capacity")?;
        self.medium = Some(Medium { access, busy: false });
        Ok(())
    }

    /// Records whether the other link of the medium sends.
    pub(crate) fn set_medium_busy(&mut self, busy: bool) {
        if let Some(medium) = &mut self.medium {
            medium.busy = busy;
        }
    }

    /// Returns `true` if the link must not begin to send.
    #[inline]
    fn is_blocked(&self) -> bool {
        self.in_service.is_some() || self.medium.is_some_and(|medium| medium.busy)
    }

    /// Begins to send the next waiting packet of a medium that is free. Returns the time of its departure.
    pub(crate) fn start(&mut self, now: Time, pool: &Pool) -> Option<Time> {
        self.serialiser.restart(now);
        self.serve_next(now, pool)
    }

    /// Applies a change at once, except that a packet in the serialiser keeps its departure time.
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

    /// Accepts a packet at the near end.
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
        if !self.is_blocked() && self.batches.is_none() {
            self.serialiser.restart(now);
            return Offer::Due(self.serve(now, queued));
        }
        if !self.has_room(queued.size) {
            return refused(self, Drop::Queue);
        }
        self.waiting.push(queued);
        if self.is_blocked() {
            return Offer::Waits;
        }
        self.serialiser.restart(now);
        self.serve_next(now, pool).map_or(Offer::Waits, Offer::Due)
    }

    /// Offers a packet to a managed queue. If the queue drops it, it is among the [drops](Self::take_queue_drop).
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
        if self.is_blocked() {
            return Offer::Waits;
        }
        self.serialiser.restart(queued.since);
        self.serve_next(queued.since, pool).map_or(Offer::Waits, Offer::Due)
    }

    /// Counts the packets that the queue dropped, without the first `before`.
    fn count_queue_drops(&mut self, before: usize, pool: &Pool) {
        for index in before..self.queue_drops.len() {
            let (packet, drop) = self.queue_drops[index];
            let packet = pool.get(packet);
            self.count_drop(drop, packet.source, packet.wire);
        }
    }

    /// Removes and returns a packet that the queue dropped. The caller owns the packet.
    #[inline]
    pub(crate) fn take_queue_drop(&mut self) -> Option<(PacketId, Drop)> {
        self.queue_drops.pop_front()
    }

    /// Returns `true` if the queue accepts a packet of this size. An idle link with an empty queue accepts any.
    #[inline]
    fn has_room(&self, size: WireBytes) -> bool {
        let serving = self.in_service();
        let waiting = self.waiting_packets();
        let counted = serving.filter(|_| self.queue.in_service_counts);
        let (packets, bytes) = counted.map_or((0, WireBytes::ZERO), |size| (1, size));
        (serving.is_none() && waiting == 0)
            || self.capacity.fits(waiting + packets, self.waiting_bytes() + bytes, size)
    }

    /// Counts a packet that reaches the link, and returns `true` if it is lost.
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

    /// Puts a packet into the serialiser and returns the time of its departure.
    fn serve(&mut self, now: Time, queued: Queued) -> Time {
        self.in_service = Some(queued);
        let access = self.medium.map_or(Span::ZERO, |medium| medium.access);
        self.serialiser.send(now, queued.size) + access
    }

    /// Puts the next waiting packet into the serialiser, unless it waits for its batch. Returns the time of the serialiser's next
    /// event.
    fn serve_next(&mut self, now: Time, pool: &Pool) -> Option<Time> {
        if self.batches.is_some()
            && let Some(due) = self.wait_for_batch(now)
        {
            return Some(due);
        }
        let next = if self.managed.is_some() { self.dequeue_managed(now, pool) } else { self.waiting.pop() };
        next.map(|next| self.serve(now, next))
    }

    /// Returns the time until which the first packet waits for its batch, or `None` if it may be sent.
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

    /// Takes the packet out of the serialiser, if there is one, and puts the next one in, unless the medium is shared.
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
        let next = if self.medium.is_some() { None } else { self.serve_next(now, pool) };
        Departure { dropped, next, head }
    }

    /// Starts the propagation of a packet. Returns the arrival time of the first packet if the first one changed.
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

    /// Inserts an arrival. Packets that arrive at the same time keep their order of transmission.
    fn insert(&mut self, arrival: Time, id: PacketId) {
        if self.propagating.back().is_none_or(|(last, _)| *last <= arrival) {
            self.propagating.push_back((arrival, id));
        } else {
            let place = self.propagating.partition_point(|(time, _)| *time <= arrival);
            self.propagating.insert(place, (arrival, id));
        }
    }

    /// Removes the first propagating packet at the far end. Returns it with the arrival time of the next one. `order` is its number
    /// among arrivals.
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

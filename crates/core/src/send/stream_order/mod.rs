//! Order in which streams with waiting messages send (RFC 8260 section 3).
//!
//! A scheduler ranks the streams that have waiting messages, and the stream with the lowest rank sends next. Messages of one stream
//! keep their order. Without the interleaving of RFC 8260 section 2, a message that has begun is sent to its end before a scheduler
//! chooses again. With it, each chunk is a turn.

mod fair_queueing;

use std::collections::BTreeSet;
use std::num::NonZeroU16;

use fair_queueing::FairQueueing;

/// Rule that chooses the stream of the next message (RFC 8260 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamScheduler {
    /// Messages are sent in the order of the calls that send them (RFC 8260 section 3.1).
    #[default]
    FirstComeFirstServed,
    /// Streams take turns, one message at a time (RFC 8260 section 3.2).
    RoundRobin,
    /// Streams take turns, one packet at a time, so that the loss of a packet blocks one stream only (RFC 8260 section 3.3). A chunk
    /// that a multipath scheduler binds to a path counts as a packet.
    RoundRobinPerPacket,
    /// The stream with the largest priority sends first, and streams with the same priority take turns (RFC 8260 section 3.4). A
    /// stream waits while one with a larger priority has messages.
    Priority,
    /// Streams send the same number of user bytes while all have messages (RFC 8260 section 3.5).
    FairCapacity,
    /// Streams send user bytes in proportion to their priorities while all have messages (RFC 8260 section 3.6).
    WeightedFairQueueing,
}

impl StreamScheduler {
    /// All schedulers, in the order of RFC 8260.
    pub const ALL: [Self; 6] = [
        Self::FirstComeFirstServed,
        Self::RoundRobin,
        Self::RoundRobinPerPacket,
        Self::Priority,
        Self::FairCapacity,
        Self::WeightedFairQueueing,
    ];
}

/// Priority of a stream for which none was set. It is the normal priority of data channels (RFC 8831).
pub const DEFAULT_STREAM_PRIORITY: NonZeroU16 = NonZeroU16::new(256).unwrap();

/// Key by which streams are ordered: the rank of the rule, the precedence among equal ranks, and the number of the turn.
type Rank = (u64, u16, u64);

/// Rule of a scheduler that treats streams separately.
#[derive(Clone, Debug)]
enum Rule {
    RoundRobin,
    RoundRobinPerPacket,
    Priority,
    Fair(FairQueueing),
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    priority: NonZeroU16,
    /// Rank while the stream has messages.
    rank: Option<Rank>,
}

/// Streams with waiting messages, in the order of a scheduler.
#[derive(Clone, Debug)]
pub(super) struct StreamOrder {
    rule: Rule,
    active: BTreeSet<(Rank, u16)>,
    /// Streams up to the highest one in use.
    streams: Vec<Stream>,
    /// Number of ranks so far. A stream that gets a new rank is behind those with an equal rank of the rule.
    turns: u64,
    /// Stream of the chunks in the current packet.
    packet: Option<u16>,
}

impl StreamOrder {
    /// Returns the order of a scheduler; `None` for the one that does not distinguish streams.
    pub(super) fn new(scheduler: StreamScheduler) -> Option<Self> {
        let rule = match scheduler {
            StreamScheduler::FirstComeFirstServed => return None,
            StreamScheduler::RoundRobin => Rule::RoundRobin,
            StreamScheduler::RoundRobinPerPacket => Rule::RoundRobinPerPacket,
            StreamScheduler::Priority => Rule::Priority,
            StreamScheduler::FairCapacity => Rule::Fair(FairQueueing::unweighted()),
            StreamScheduler::WeightedFairQueueing => Rule::Fair(FairQueueing::weighted()),
        };
        Some(StreamOrder { rule, active: BTreeSet::new(), streams: Vec::new(), turns: 0, packet: None })
    }

    /// Returns the stream that sends next.
    pub(super) fn first(&self) -> Option<u16> {
        self.active.first().map(|&(_, stream)| stream)
    }

    /// Sets the priority of a stream. A fair scheduler applies it from the end of the stream's next message.
    pub(super) fn set_priority(&mut self, stream: u16, priority: NonZeroU16) {
        self.stream_mut(stream).priority = priority;
        if matches!(self.rule, Rule::Priority) && self.is_active(stream) {
            self.rank(stream);
        }
    }

    /// Returns the priorities of the streams up to the highest one in use.
    pub(super) fn priorities(&self) -> impl Iterator<Item = (u16, NonZeroU16)> {
        (0..).zip(&self.streams).map(|(stream, state)| (stream, state.priority))
    }

    /// Adds a stream that has messages now. Changes nothing if it had messages before.
    pub(super) fn activate(&mut self, stream: u16) {
        self.stream_mut(stream);
        if !self.is_active(stream) {
            self.rank(stream);
        }
    }

    /// Removes a stream without messages.
    pub(super) fn deactivate(&mut self, stream: u16) {
        if let Some(rank) = self.stream_mut(stream).rank.take() {
            self.active.remove(&(rank, stream));
        }
    }

    /// Records a chunk of a stream in the current packet.
    pub(super) fn note_chunk(&mut self, stream: u16) {
        self.packet = Some(stream);
    }

    /// Ends the turn of a stream whose message with this number of bytes was sent, or abandoned after them. With interleaving, a chunk
    /// is a turn.
    pub(super) fn end_turn(&mut self, stream: u16, bytes: u64) {
        if !self.is_active(stream) {
            return;
        }
        let Stream { priority, rank } = self.streams[usize::from(stream)];
        if let (Rule::Fair(fair), Some((start, ..))) = (&mut self.rule, rank) {
            fair.charge(stream, start, bytes, priority);
        }
        if !matches!(self.rule, Rule::RoundRobinPerPacket) {
            self.rank(stream);
        }
    }

    /// Ends the current packet. Returns `true` if that ends the turn of its stream.
    pub(super) fn end_packet(&mut self) -> bool {
        let per_packet = matches!(self.rule, Rule::RoundRobinPerPacket);
        let ended = self.packet.take().filter(|&stream| per_packet && self.is_active(stream));
        if let Some(stream) = ended {
            self.rank(stream);
        }
        ended.is_some()
    }

    /// Returns `true` if a chunk of this stream may be added to the current packet.
    pub(super) fn shares_packet(&self, stream: u16) -> bool {
        !matches!(self.rule, Rule::RoundRobinPerPacket) || self.packet.is_none_or(|other| other == stream)
    }

    fn is_active(&self, stream: u16) -> bool {
        self.streams.get(usize::from(stream)).is_some_and(|stream| stream.rank.is_some())
    }

    fn stream_mut(&mut self, stream: u16) -> &mut Stream {
        let index = usize::from(stream);
        if self.streams.len() <= index {
            self.streams.resize(index + 1, Stream { priority: DEFAULT_STREAM_PRIORITY, rank: None });
        }
        &mut self.streams[index]
    }

    /// Gives a stream a new rank.
    fn rank(&mut self, stream: u16) {
        self.deactivate(stream);
        self.turns += 1;
        let priority = self.streams[usize::from(stream)].priority;
        let (of_rule, precedence) = match &self.rule {
            Rule::RoundRobin | Rule::RoundRobinPerPacket => (0, 0),
            Rule::Priority => (u64::from(u16::MAX - priority.get()), 0),
            Rule::Fair(fair) => (fair.start_of(stream), fair.precedence(priority)),
        };
        let rank = (of_rule, precedence, self.turns);
        self.streams[usize::from(stream)].rank = Some(rank);
        self.active.insert((rank, stream));
    }
}

#[cfg(test)]
mod tests;

//! Abandonment of messages (RFC 3758 section 3.5): the states of their chunks, and the TSN to which the peer is moved on.
//!
//! A message is abandoned as a whole. Its part without TSNs leaves the queue. If another part has TSNs, a last TSN is assigned that
//! is never sent. The receiver then skips to the end of the message and does not take a later message for the rest. Every
//! outstanding chunk of the message becomes [`ChunkState::Abandoned`]: it leaves flight, window, queues and the list of lost
//! chunks, and is never credited to a congestion window. A message whose chunks are all acknowledged, by gap blocks too, is not
//! abandoned.
//!
//! A chunk that was abandoned in flight is watched until an acknowledgement covers it. If the loss policy finds it lost, the window
//! of its path is cut as for any other loss.

use crate::path_id::PathId;
use crate::policy::LossCause;
use crate::send::{
    AbandonCause, ChunkState, DataForm, LostList, MessageKey, Progress, Reliability, SendOptions, Sender,
    Skipped, SkippedNumber, Support,
};
use crate::time::Time;
use crate::units::ChunkBytes;

/// Maximum number of messages that one call abandons to make room.
const MOST_CANDIDATES: usize = 256;

/// Abandoned message whose part without TSNs has left the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Withdrawn {
    pub(crate) options: SendOptions,
    /// `true` if some of its chunks have been sent.
    pub(crate) sent: bool,
    /// First and last of its outstanding TSNs, if it has any. With I-DATA, TSNs of other messages may lie between them.
    pub(crate) tsns: Option<(u64, u64)>,
    /// User bytes without a TSN.
    pub(crate) unsent_bytes: u64,
}

/// Chunk that was abandoned, with its state before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AbandonedChunk {
    pub(crate) was: ChunkState,
    pub(crate) path: PathId,
    pub(crate) bytes: ChunkBytes,
    pub(crate) payload_bytes: u64,
}

/// Returns `true` if a chunk in this state waits for a retransmission that repairs a loss.
fn is_loss(state: ChunkState) -> bool {
    matches!(state, ChunkState::Lost(LossCause::FastRetransmit | LossCause::Timeout))
}

/// Selection of the messages to abandon.
impl Sender {
    #[inline]
    pub(crate) fn support(&self) -> Support {
        self.partial.support
    }

    /// Records if the peer supports FORWARD-TSN. Returns `true` if it does not and messages with a limit wait.
    pub(crate) fn learn_support(&mut self, taken: bool) -> bool {
        self.partial.support = if taken { Support::Yes } else { Support::No };
        !taken && !self.partial.messages.is_empty()
    }

    /// Returns the time at which the next message may have to be abandoned: `now` if a chunk of a message with a limit was lost, else
    /// the end of the next lifetime.
    #[inline]
    pub(crate) fn next_abandonment(&self, now: Time) -> Option<Time> {
        if self.partial.lost.is_empty() { self.partial.messages.next_expiry() } else { Some(now) }
    }

    /// Takes the next message whose limit is exceeded, and the limit: lifetimes first, then those of retransmissions.
    pub(crate) fn take_due_message(&mut self, now: Time) -> Option<(MessageKey, AbandonCause)> {
        let expired = self.take_expired(now).map(|key| (key, AbandonCause::Lifetime));
        expired.or_else(|| self.take_exhausted(now))
    }

    /// Takes the next message whose lifetime is over. Each message is returned once, even if it has arrived.
    pub(crate) fn take_expired(&mut self, now: Time) -> Option<MessageKey> {
        self.partial.messages.take_expired(now)
    }

    /// Records a chunk that was declared lost and whose message has a limit.
    pub(super) fn note_limited_loss(&mut self, tsn: u64) {
        self.partial.lost.push(tsn);
    }

    /// Takes the next message with a lost chunk that may not be retransmitted, and the limit that forbids it.
    pub(crate) fn take_exhausted(&mut self, now: Time) -> Option<(MessageKey, AbandonCause)> {
        while let Some(tsn) = self.partial.lost.pop() {
            let Some(chunk) = self.outstanding.get(tsn).filter(|chunk| is_loss(chunk.state)) else {
                continue;
            };
            let Some(key) = chunk.draft.limit else { continue };
            let Some(message) = self.partial.messages.get(key) else { continue };
            let reliability = message.options.reliability;
            if reliability.max_retransmissions().is_some_and(|most| chunk.retransmissions >= most) {
                return Some((key, AbandonCause::Retransmissions));
            }
            // The lifetime ended while the message counted as arrived, and the peer has reneged since.
            if message.expires_at.is_some_and(|at| at <= now) {
                return Some((key, AbandonCause::Lifetime));
            }
        }
        None
    }

    /// Returns `true` if abandoning messages of lower priority would make room for a message of this kind. These messages are then
    /// abandoned with [`take_candidate`](Self::take_candidate). RFC 7496 section 3.2 does not specify the order. Messages with the
    /// largest number are chosen first. Among messages with equal numbers, the newest is first, because the least of it has been
    /// sent.
    pub(crate) fn find_room(&mut self, payload_bytes: u64, reliability: Reliability) -> bool {
        let number = reliability.priority();
        let missing = payload_bytes.saturating_sub(self.buffer_free().unwrap_or(u64::MAX));
        let mut candidates = std::mem::take(&mut self.partial.candidates);
        let mut gained = 0;
        while gained < missing && candidates.len() < MOST_CANDIDATES {
            let Some(candidate) = self.partial.messages.take_least(number) else { break };
            gained += self.held_bytes_of(candidate.1);
            candidates.push(candidate);
        }
        let enough = gained >= missing;
        if !enough {
            candidates.drain(..).for_each(|candidate| self.partial.messages.put_back(candidate));
        }
        self.partial.candidates = candidates;
        enough
    }

    /// Takes the next message to abandon for room.
    pub(crate) fn take_candidate(&mut self) -> Option<MessageKey> {
        self.partial.candidates.pop().map(|(_, key)| key)
    }

    /// Returns the user bytes that abandoning a message frees; 0 if it has arrived.
    fn held_bytes_of(&self, key: MessageKey) -> u64 {
        let Some(message) = self.partial.messages.get(key).filter(|_| self.is_abandonable(key)) else {
            return 0;
        };
        let outstanding = self.outstanding_tsns(message.progress).map_or(0, |(first, last)| {
            (first..=last)
                .filter(|&tsn| self.belongs_to(tsn, key))
                .filter_map(|tsn| self.outstanding.get(tsn))
                .map(|c| c.draft.payload.len() as u64)
                .sum()
        });
        self.queue.bytes_at(message.options.stream, message.place) + outstanding
    }

    /// Returns `true` if some chunk of a message is not acknowledged.
    fn is_abandonable(&self, key: MessageKey) -> bool {
        let Some(message) = self.partial.messages.get(key) else { return false };
        match message.progress {
            Progress::Waiting | Progress::Cutting { .. } => true,
            Progress::Cut { first, last } => {
                let missing = |tsn| self.outstanding.get(tsn).is_some_and(|chunk| !chunk.state.is_acked());
                let first = first.max(self.outstanding.cumulative() + 1);
                (first..=last).any(|tsn| missing(tsn) && self.belongs_to(tsn, key))
            }
            Progress::Settled => false,
        }
    }

    /// Returns `true` if an outstanding chunk belongs to this message. In DATA, all between its first and last one do.
    pub(crate) fn belongs_to(&self, tsn: u64, key: MessageKey) -> bool {
        self.outstanding.get(tsn).is_some_and(|chunk| chunk.draft.limit == Some(key))
    }

    fn outstanding_tsns(&self, progress: Progress) -> Option<(u64, u64)> {
        let (first, last) = match progress {
            Progress::Cutting { first, last } | Progress::Cut { first, last } => (first, last),
            Progress::Waiting | Progress::Settled => return None,
        };
        let first = first.max(self.outstanding.cumulative() + 1);
        (first <= last).then_some((first, last))
    }
}

/// Abandonment of messages and chunks.
impl Sender {
    /// Abandons a message unless all of it is acknowledged, and drops its part without TSNs. The caller then abandons each of its
    /// chunks with [`abandon_chunk`](Self::abandon_chunk).
    pub(crate) fn withdraw(&mut self, key: MessageKey) -> Option<Withdrawn> {
        if !self.is_abandonable(key) {
            return None;
        }
        let message = *self.partial.messages.get(key)?;
        let unsent_bytes = self.queue.bytes_at(message.options.stream, message.place);
        let mut progress = message.progress;
        if let Some(end) = self.queue.withdraw(message.options, message.place) {
            let tsn = self.outstanding.push(end, PathId::new(0));
            self.outstanding.mark_abandoned(tsn);
            if let Progress::Cutting { first, .. } = progress {
                progress = Progress::Cut { first, last: tsn };
            }
        }
        let tsns = self.outstanding_tsns(progress);
        if let Some((first, last)) = tsns {
            let draft = self.outstanding.get(last).map(|chunk| &chunk.draft);
            let listed = draft.filter(|draft| !draft.unordered || draft.form == DataForm::IData);
            let entry = listed.map(|draft| SkippedNumber {
                stream: draft.stream,
                unordered: draft.unordered,
                number: draft.number,
            });
            let first = (first..last).find(|&tsn| self.belongs_to(tsn, key)).unwrap_or(last);
            self.partial.skipped.insert(Skipped { first, last, entry });
        }
        self.partial.messages.settle(key);
        Some(Withdrawn {
            options: message.options,
            sent: self.has_left(key, message.progress),
            tsns,
            unsent_bytes,
        })
    }

    /// Returns `true` if some chunk was sent. Chunks below the first outstanding one have arrived.
    fn has_left(&self, key: MessageKey, progress: Progress) -> bool {
        match progress {
            Progress::Cutting { first, last } | Progress::Cut { first, last } => {
                let left = |tsn| match self.outstanding.get(tsn) {
                    Some(chunk) => chunk.latest.is_some() && chunk.draft.limit == Some(key),
                    None => true,
                };
                (first..=last).any(left)
            }
            Progress::Waiting | Progress::Settled => false,
        }
    }

    /// Abandons a chunk in any state; `None` if it is abandoned already.
    pub(crate) fn abandon_chunk(&mut self, tsn: u64) -> Option<AbandonedChunk> {
        let chunk = self.outstanding.get(tsn).filter(|chunk| chunk.state != ChunkState::Abandoned)?;
        let (was, path, bytes) = (chunk.state, chunk.path, chunk.bytes());
        let payload_bytes = chunk.draft.payload.len() as u64;
        let cost = self.cost(bytes);
        match was {
            ChunkState::Bound { placed } => {
                self.bound.remove(placed.then_some(path), tsn);
                self.window.abandon_bound(cost, &self.profile);
                if placed {
                    let counts = &mut self.path_mut(path).bytes;
                    counts.bound -= bytes;
                    counts.held -= bytes;
                }
            }
            ChunkState::InFlight => {
                let Sender { outstanding, paths, changed, .. } = self;
                outstanding.end_flights(tsn, |copy| {
                    changed.insert(copy.path);
                    paths[copy.path.index()].bytes.in_flight -= copy.bytes;
                });
                self.window.abandon_in_flight(cost);
                self.path_mut(path).bytes.held -= bytes;
                self.partial.watched.insert(tsn);
            }
            ChunkState::Lost(_) => {
                self.lost.remove(tsn);
                self.window.abandon_lost(cost);
                let counts = &mut self.path_mut(path).bytes;
                counts.lost_unsent -= bytes;
                counts.held -= bytes;
            }
            ChunkState::Acked => self.path_mut(path).bytes.held -= bytes,
            ChunkState::NonRenegable | ChunkState::Abandoned => {}
        }
        self.outstanding.mark_abandoned(tsn);
        Some(AbandonedChunk { was, path, bytes, payload_bytes })
    }
}

/// FORWARD-TSN and chunks abandoned in flight.
impl Sender {
    /// Returns `true` if an abandoned message has TSNs beyond the cumulative TSN.
    #[inline]
    pub(crate) fn skips_something(&self) -> bool {
        !self.partial.skipped.is_empty()
    }

    /// Advances the TSN up to which all is acknowledged or abandoned, and returns it (RFC 3758 section 3.5 C2).
    pub(crate) fn advance_ack_point(&mut self) -> u64 {
        let abandoned =
            |tsn| self.outstanding.get(tsn).is_some_and(|chunk| chunk.state == ChunkState::Abandoned);
        let mut point = self.partial.ack_point.max(self.outstanding.cumulative());
        while abandoned(point + 1) {
            point += 1;
        }
        self.partial.ack_point = point;
        point
    }

    /// Chunks that were abandoned in flight and may still be found lost.
    #[inline]
    pub(crate) fn watched(&self) -> &LostList {
        &self.partial.watched
    }

    /// Stops watching a chunk that an acknowledgement covers or that was found lost.
    pub(crate) fn unwatch(&mut self, tsn: u64) {
        self.partial.watched.remove(tsn);
    }

    /// Stops watching all chunks of a path: T3 has expired there and has cut its window for all of them.
    pub(crate) fn unwatch_path(&mut self, path: PathId) {
        let mut index = 0;
        while let Some(tsn) = self.partial.watched.get(index) {
            if self.outstanding.get(tsn).is_none_or(|chunk| chunk.path == path) {
                self.partial.watched.remove(tsn);
            } else {
                index += 1;
            }
        }
    }

    /// Checks the records of abandoned messages against their chunks.
    ///
    /// # Panics
    /// Panics if records and chunks differ.
    pub(super) fn check_abandoned(&self) {
        let abandoned =
            |tsn| self.outstanding.get(tsn).is_some_and(|chunk| chunk.state == ChunkState::Abandoned);
        assert!(self.partial.watched.iter().all(abandoned), "only what was abandoned is watched");
        let any = self.outstanding.iter().any(|(_, chunk)| chunk.state == ChunkState::Abandoned);
        assert_eq!(any, self.skips_something(), "abandoned chunks and messages");
    }
}

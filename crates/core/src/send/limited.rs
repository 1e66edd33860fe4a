//! Messages with a limit of reliability, and the order in which they are abandoned.
//!
//! Only messages with a limit have a record, so that reliable ones cost nothing. Records are in the order in which the application
//! sent the messages. A record is removed once its message is abandoned or the cumulative TSN has passed it; a record behind one of
//! a message that waits is removed later, with others. The two heaps may contain keys of removed records, but never at the top. A
//! heap that consists mostly of such keys is swept.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::num::NonZeroU64;

use crate::send::options::{Reliability, SendOptions};
use crate::time::Time;

/// Key of a message with a limit. Keys ascend in the order of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessageKey(NonZeroU64);

/// Progress of a message with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// No part of the message has a TSN.
    Waiting,
    /// First and latest TSN; the rest waits in the queue.
    Cutting { first: u64, last: u64 },
    /// First and last TSN of the whole message.
    Cut { first: u64, last: u64 },
    /// The limit applies no longer: the message was abandoned, or is delivered reliably.
    Settled,
}

/// Message with a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limited {
    key: MessageKey,
    pub(crate) options: SendOptions,
    pub(crate) expires_at: Option<Time>,
    pub(crate) progress: Progress,
    /// Place in the send queue.
    pub(crate) place: u64,
}

impl Limited {
    fn is_settled(&self) -> bool {
        self.progress == Progress::Settled
    }

    /// Returns `true` if the record is not needed with this cumulative TSN.
    fn is_delivered(&self, cumulative: u64) -> bool {
        match self.progress {
            Progress::Cut { last, .. } => last <= cumulative,
            Progress::Settled => true,
            Progress::Waiting | Progress::Cutting { .. } => false,
        }
    }
}

/// Number of stale keys in a heap that is always tolerated. A heap with more is swept once most of it is stale.
const SWEEP_FROM: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct LimitedMessages {
    records: VecDeque<Limited>,
    next_key: NonZeroU64,
    /// Number of records from which on those of delivered messages are removed.
    crowd: usize,
    cumulative: u64,
    deadlines: BinaryHeap<Reverse<(Time, MessageKey)>>,
    /// Heap with the largest number on top; of equal numbers the newest message.
    priorities: BinaryHeap<(u32, MessageKey)>,
}

impl Default for LimitedMessages {
    fn default() -> Self {
        LimitedMessages {
            records: VecDeque::new(),
            next_key: NonZeroU64::MIN,
            crowd: SWEEP_FROM,
            cumulative: 0,
            deadlines: BinaryHeap::new(),
            priorities: BinaryHeap::new(),
        }
    }
}

impl LimitedMessages {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(crate) fn get(&self, key: MessageKey) -> Option<&Limited> {
        self.records.get(self.index(key)?).filter(|record| !record.is_settled())
    }

    fn index(&self, key: MessageKey) -> Option<usize> {
        // Keys are consecutive unless records behind the first one were removed.
        let ahead = key.0.get().checked_sub(self.records.front()?.key.0.get())?;
        let guess = usize::try_from(ahead).ok()?;
        match self.records.get(guess) {
            Some(record) if record.key == key => Some(guess),
            _ => self.records.binary_search_by_key(&key, |record| record.key).ok(),
        }
    }

    fn get_mut(&mut self, key: MessageKey) -> Option<&mut Limited> {
        let index = self.index(key)?;
        self.records.get_mut(index).filter(|record| !record.is_settled())
    }

    /// Adds a message; `None` if it is fully reliable.
    pub(crate) fn add(&mut self, options: SendOptions, place: u64, now: Time) -> Option<MessageKey> {
        if options.reliability == Reliability::Full {
            return None;
        }
        let expires_at = options.reliability.lifetime().map(|lifetime| now + lifetime);
        let key = MessageKey(self.next_key);
        self.next_key = self.next_key.saturating_add(1);
        self.records.push_back(Limited { key, options, expires_at, progress: Progress::Waiting, place });
        self.deadlines.extend(expires_at.map(|at| Reverse((at, key))));
        if let Some(number) = options.reliability.priority() {
            self.priorities.push((number, key));
        }
        self.sweep_records();
        self.sweep();
        Some(key)
    }

    /// Assigns a TSN to a chunk of a message, to its last chunk if `ending`.
    pub(crate) fn assign(&mut self, key: MessageKey, tsn: u64, ending: bool) {
        let Some(record) = self.get_mut(key) else { return };
        let first = match record.progress {
            Progress::Cutting { first, .. } => first,
            _ => tsn,
        };
        record.progress = match ending {
            true => Progress::Cut { first, last: tsn },
            false => Progress::Cutting { first, last: tsn },
        };
    }

    /// Removes the limit of a message.
    pub(crate) fn settle(&mut self, key: MessageKey) {
        if let Some(record) = self.get_mut(key) {
            record.progress = Progress::Settled;
        }
        self.drop_settled();
    }

    /// Removes the records of messages that lie at or below the cumulative TSN.
    pub(crate) fn forget_up_to(&mut self, cumulative: u64) {
        self.cumulative = cumulative;
        let delivered = |record: &Limited| record.is_delivered(cumulative);
        if self.records.front().is_some_and(delivered) {
            while self.records.pop_front_if(|record| delivered(record)).is_some() {}
            self.drop_settled();
        }
    }

    /// Removes the records of delivered messages if there are many records. The stream scheduler may send later messages first, so
    /// one that waits would keep their records.
    fn sweep_records(&mut self) {
        if self.records.len() < self.crowd {
            return;
        }
        let cumulative = self.cumulative;
        self.records.retain(|record| !record.is_delivered(cumulative));
        self.crowd = SWEEP_FROM.max(2 * self.records.len());
        self.drop_settled();
    }

    /// Removes settled records at the front, and their keys at the tops of the heaps.
    fn drop_settled(&mut self) {
        while self.records.pop_front_if(|record| record.is_settled()).is_some() {}
        while self.deadlines.peek().is_some_and(|&Reverse((_, key))| self.get(key).is_none()) {
            self.deadlines.pop();
        }
        while self.priorities.peek().is_some_and(|&(_, key)| self.get(key).is_none()) {
            self.priorities.pop();
        }
    }

    fn sweep(&mut self) {
        let most = 2 * self.records.len() + SWEEP_FROM;
        if self.deadlines.len() > most {
            let mut deadlines = std::mem::take(&mut self.deadlines);
            deadlines.retain(|&Reverse((_, key))| self.get(key).is_some());
            self.deadlines = deadlines;
        }
        if self.priorities.len() > most {
            let mut priorities = std::mem::take(&mut self.priorities);
            priorities.retain(|&(_, key)| self.get(key).is_some());
            self.priorities = priorities;
        }
    }

    /// Returns the time at which the next lifetime ends.
    #[inline]
    pub(crate) fn next_expiry(&self) -> Option<Time> {
        self.deadlines.peek().map(|&Reverse((at, _))| at)
    }

    /// Removes the next message whose lifetime is over from the deadlines. The record of the message stays.
    pub(crate) fn take_expired(&mut self, now: Time) -> Option<MessageKey> {
        let key = self.deadlines.peek().filter(|Reverse((at, _))| *at <= now).map(|&Reverse((_, key))| key);
        if key.is_some() {
            self.deadlines.pop();
            self.drop_settled();
        }
        key
    }

    /// Removes the message of lowest priority from the priorities, if its number is larger than `than`. The record of the message
    /// stays.
    pub(crate) fn take_least(&mut self, than: Option<u32>) -> Option<(u32, MessageKey)> {
        let least =
            self.priorities.peek().copied().filter(|&(number, _)| than.is_none_or(|than| number > than))?;
        self.priorities.pop();
        self.drop_settled();
        Some(least)
    }

    /// Returns `true` if there may be a message with a priority.
    pub(crate) fn has_priorities(&self) -> bool {
        !self.priorities.is_empty()
    }

    /// Puts back a candidate that [`take_least`](Self::take_least) returned.
    pub(crate) fn put_back(&mut self, candidate: (u32, MessageKey)) {
        if self.get(candidate.1).is_some() {
            self.priorities.push(candidate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn with(reliability: Reliability) -> SendOptions {
        SendOptions { reliability, ..SendOptions::default() }
    }

    fn lifetime(ms: u64) -> SendOptions {
        with(Reliability::Lifetime(Span::from_millis(ms)))
    }

    #[test]
    fn reliable_messages_have_no_record() {
        let mut messages = LimitedMessages::default();
        assert_eq!(messages.add(SendOptions::default(), 0, at(0)), None);
        assert!(messages.is_empty());
    }

    #[test]
    fn lifetimes_end_in_the_order_of_their_times() {
        let mut messages = LimitedMessages::default();
        let keys = [30, 10, 20].map(|ms| messages.add(lifetime(ms), 0, at(5)).expect("it has a limit"));
        assert_eq!(messages.next_expiry(), Some(at(15)));
        assert_eq!(messages.take_expired(at(14)), None);
        assert_eq!(messages.take_expired(at(15)), Some(keys[1]));
        messages.settle(keys[2]);
        assert_eq!(messages.next_expiry(), Some(at(35)), "a settled message has no deadline");
    }

    #[test]
    fn the_largest_number_goes_first_and_of_equals_the_newest() {
        let mut messages = LimitedMessages::default();
        let keys = [3, 7, 7, 1]
            .map(|n| messages.add(with(Reliability::Priority(n)), 0, at(0)).expect("it has a limit"));
        assert_eq!(messages.take_least(Some(7)), None, "an equal number gives no way");
        let order: Vec<_> = std::iter::from_fn(|| messages.take_least(Some(1))).map(|(_, key)| key).collect();
        assert_eq!(order, [keys[2], keys[1], keys[0]]);
        messages.put_back((3, keys[0]));
        assert_eq!(messages.take_least(None), Some((3, keys[0])));
    }

    #[test]
    fn delivered_messages_with_long_lifetimes_leave_no_state() {
        let mut messages = LimitedMessages::default();
        for tsn in 1..10_000 {
            let key = messages.add(lifetime(1_000_000_000), tsn, at(0)).expect("it has a limit");
            messages.assign(key, tsn, true);
            messages.forget_up_to(tsn.saturating_sub(3));
        }
        assert_eq!(messages.records.len(), 3);
        assert!(messages.deadlines.len() <= 2 * 3 + SWEEP_FROM + 1, "{}", messages.deadlines.len());
    }

    #[test]
    fn waiting_message_keeps_no_records_of_delivered_later_ones() {
        let mut messages = LimitedMessages::default();
        let waiting = messages.add(lifetime(1_000_000), 0, at(0)).expect("a limit");
        for tsn in 1..10_000 {
            let key = messages.add(lifetime(1), tsn, at(tsn)).expect("a limit");
            messages.assign(key, tsn, true);
            assert_eq!(messages.get(key).map(|record| record.place), Some(tsn));
            messages.forget_up_to(tsn - 1);
            assert!(messages.records.len() <= SWEEP_FROM, "{} records", messages.records.len());
        }
        assert_eq!(messages.get(waiting).map(|record| record.place), Some(0));
    }
}

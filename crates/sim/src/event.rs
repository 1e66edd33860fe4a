//! Queue of pending events.
//!
//! A component registers one slot for each event that it may have pending, and a slot has at most one time. The queue therefore
//! grows with the number of components, not with the packets on links: it has a few dozen entries in an ordered list. Insertion
//! moves the entries that are due earlier; the next event is the last entry.
//!
//! A postponed event keeps its old place in the list until that time is reached. A retransmission timer is restarted by each
//! acknowledgement and seldom expires.
//!
//! Events are handled in the total order of (time, class, sequence). The sequence is assigned when an event is scheduled.

use anabranch_core::time::Time;

/// Order of events that are due at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    /// Change of a link. The change applies to all other events of that time.
    Change,
    /// Departure from a queue. Its room is free for a packet that arrives at that time.
    Departure,
    /// Arrival of a packet at the far end of a link.
    Arrival,
    /// Deadline of a host. A packet that arrives at that time is still in time.
    Timer,
    /// Transmission of a traffic source.
    Traffic,
}

/// Identifier of an event that can be pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

/// Time, class, sequence and slot, from the highest bits to the lowest, in one number that one comparison orders. Sequences are
/// unique, so the slot never decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u128);

const IDLE: Key = Key(u128::MAX);
const CLASS_BITS: u32 = 3;
const SLOT_BITS: u32 = 20;
const SEQUENCE_BITS: u32 = u64::BITS - CLASS_BITS - SLOT_BITS;

impl Key {
    fn new(time: Time, class: Class, sequence: u64, slot: Slot) -> Self {
        let order = ((class as u64) << SEQUENCE_BITS | sequence) << SLOT_BITS | u64::from(slot.0);
        Key(u128::from(time.as_nanos()) << u64::BITS | u128::from(order))
    }

    fn time(self) -> Time {
        Time::from_nanos((self.0 >> u64::BITS) as u64)
    }

    fn slot(self) -> usize {
        (self.0 & ((1 << SLOT_BITS) - 1)) as usize
    }
}

#[derive(Clone, Copy)]
struct SlotState<T> {
    class: Class,
    what: T,
    /// Time at which the event is due.
    due: Key,
    /// Key of the event in the list, at most `due`.
    listed: Key,
}

/// Pending events, each with a value of type `T`.
#[derive(Clone)]
pub(crate) struct EventQueue<T> {
    /// Keys of pending events, the latest first.
    order: Vec<Key>,
    slots: Vec<SlotState<T>>,
    sequence: u64,
    latest: Time,
}

/// Number of next events that insertion searches one by one.
const NEAR: usize = 16;

impl<T: Copy> EventQueue<T> {
    pub(crate) fn new() -> Self {
        EventQueue { order: Vec::new(), slots: Vec::new(), sequence: 0, latest: Time::ZERO }
    }

    /// Registers one more event that can be pending.
    ///
    /// # Panics
    /// Panics if there are more than about a million (2^20) slots.
    pub(crate) fn register(&mut self, class: Class, what: T) -> Slot {
        assert!(
            self.slots.len() < 1 << SLOT_BITS,
            "a world of more than a million events that can be pending"
        );
        let slot = Slot(self.slots.len() as u32);
        self.slots.push(SlotState { class, what, due: IDLE, listed: IDLE });
        self.order.reserve(self.slots.len());
        slot
    }

    /// Schedules the event of a slot, in place of its earlier time.
    pub(crate) fn schedule(&mut self, slot: Slot, time: Time) {
        debug_assert!(time >= self.latest, "an event at {time:?} was scheduled at {:?}", self.latest);
        debug_assert!(self.sequence < 1 << SEQUENCE_BITS, "more events than numbers for them");
        let state = &mut self.slots[slot.0 as usize];
        let key = Key::new(time, state.class, self.sequence, slot);
        self.sequence += 1;
        state.due = key;
        if state.listed != IDLE && state.listed <= key {
            return;
        }
        let earlier = std::mem::replace(&mut state.listed, key);
        self.unlist(earlier);
        self.insert(key);
    }

    /// Inserts a key into the list. Most belong among the next few, where moving entries one by one costs less than a search.
    fn insert(&mut self, key: Key) {
        let mut place = self.order.len();
        let near = place.saturating_sub(NEAR);
        if near > 0 && self.order[near] < key {
            place = self.place(key);
            return self.order.insert(place, key);
        }
        self.order.push(key);
        while place > near && self.order[place - 1] < key {
            self.order[place] = self.order[place - 1];
            place -= 1;
        }
        self.order[place] = key;
    }

    /// Cancels the event of a slot, if it is pending.
    pub(crate) fn cancel(&mut self, slot: Slot) {
        let state = &mut self.slots[slot.0 as usize];
        state.due = IDLE;
        let listed = std::mem::replace(&mut state.listed, IDLE);
        self.unlist(listed);
    }

    fn unlist(&mut self, key: Key) {
        if key != IDLE {
            let place = self.place(key);
            self.order.remove(place);
        }
    }

    /// Returns the key of the next event, after moving postponed events at the end of the list to their places.
    #[inline]
    fn head(&mut self) -> Option<Key> {
        loop {
            let head = *self.order.last()?;
            let state = &mut self.slots[head.slot()];
            let due = state.due;
            if due == head {
                return Some(head);
            }
            state.listed = due;
            self.order.pop();
            self.insert(due);
        }
    }

    /// Returns the index of a key in the list, or the index at which to insert it.
    fn place(&self, key: Key) -> usize {
        self.order.partition_point(|other| *other > key)
    }

    /// Returns the time of the next event.
    pub(crate) fn next_time(&self) -> Option<Time> {
        let due = self.slots.iter().map(|state| state.due).min();
        due.filter(|key| *key != IDLE).map(Key::time)
    }

    /// Returns the value of the next event, if it is due at `time`.
    pub(crate) fn peek_at(&mut self, time: Time) -> Option<T> {
        let key = self.head().filter(|key| key.time() == time)?;
        Some(self.slots[key.slot()].what)
    }

    /// Removes and returns the next event if it is due at `limit` or earlier.
    #[inline]
    pub(crate) fn pop_until(&mut self, limit: Time) -> Option<(Time, T)> {
        let key = self.head().filter(|key| key.time() <= limit)?;
        let time = key.time();
        debug_assert!(time >= self.latest, "time went back from {:?} to {time:?}", self.latest);
        self.order.pop();
        self.latest = time;
        let state = &mut self.slots[key.slot()];
        (state.due, state.listed) = (IDLE, IDLE);
        Some((time, state.what))
    }

    /// Returns the number of pending events.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seeds;

    fn at(ns: u64) -> Time {
        Time::from_nanos(ns)
    }

    fn drain(queue: &mut EventQueue<u32>) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| queue.pop_until(at(u64::MAX))).map(|(t, what)| (t.as_nanos(), what)).collect()
    }

    #[test]
    fn ties_are_broken_by_class_then_by_order_of_scheduling() {
        let mut queue = EventQueue::new();
        let classes = [Class::Traffic, Class::Timer, Class::Arrival, Class::Departure, Class::Change];
        let slots: Vec<_> = (0..10).map(|i| queue.register(classes[i as usize % 5], i)).collect();
        for &slot in slots.iter().rev() {
            queue.schedule(slot, at(5));
        }
        let order: Vec<_> = drain(&mut queue).into_iter().map(|(_, what)| what).collect();
        assert_eq!(order, [9, 4, 8, 3, 7, 2, 6, 1, 5, 0]);
    }

    #[test]
    fn a_slot_holds_one_moment() {
        let mut queue = EventQueue::new();
        let (a, b) = (queue.register(Class::Timer, 1), queue.register(Class::Timer, 2));
        queue.schedule(a, at(10));
        queue.schedule(b, at(20));
        queue.schedule(a, at(30));
        assert_eq!(queue.len(), 2);
        assert_eq!(queue.next_time(), Some(at(20)));
        queue.cancel(b);
        queue.cancel(b);
        assert_eq!(queue.len(), 1);
        assert_eq!(drain(&mut queue), [(30, 1)]);
        assert_eq!((queue.len(), queue.next_time()), (0, None));
    }

    #[test]
    fn the_limit_is_inclusive() {
        let mut queue = EventQueue::new();
        let slot = queue.register(Class::Timer, 0);
        queue.schedule(slot, at(10));
        assert_eq!(queue.pop_until(at(9)), None);
        assert_eq!(queue.pop_until(at(10)), Some((at(10), 0)));
    }

    #[test]
    fn agrees_with_sorting_under_random_use() {
        let mut random = Seeds::new(1, 0).stream(&["events"]);
        let mut queue = EventQueue::new();
        let mut slots = Vec::new();
        let mut model: Vec<Option<(Time, u64)>> = Vec::new();
        for step in 0..20_000 {
            if slots.len() < 37 && random.chance(0.01) {
                slots.push(queue.register(Class::Timer, slots.len() as u32));
                model.push(None);
            } else if random.chance(0.3) {
                let expected = model.iter().enumerate().filter_map(|(i, k)| k.map(|k| (k, i))).min();
                let got = queue.pop_until(at(u64::MAX));
                assert_eq!(got, expected.map(|((t, _), i)| (t, i as u32)));
                if let Some((_, i)) = expected {
                    model[i] = None;
                }
            } else if !slots.is_empty() {
                let index = random.below(slots.len() as u64) as usize;
                if random.chance(0.2) {
                    queue.cancel(slots[index]);
                    model[index] = None;
                } else {
                    let time = queue.latest + anabranch_core::time::Span::from_nanos(random.below(50));
                    queue.schedule(slots[index], time);
                    model[index] = Some((time, step));
                }
            }
            assert_eq!(queue.len(), model.iter().flatten().count());
            assert_eq!(queue.next_time(), model.iter().flatten().min().map(|(time, _)| *time));
        }
    }

    #[test]
    #[should_panic(expected = "was scheduled at")]
    #[cfg(debug_assertions)]
    fn scheduling_in_the_past_is_a_bug() {
        let mut queue = EventQueue::new();
        let slot = queue.register(Class::Timer, 0);
        queue.schedule(slot, at(10));
        queue.pop_until(at(10));
        queue.schedule(slot, at(9));
    }
}

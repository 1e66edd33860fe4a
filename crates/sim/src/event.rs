//! The queue of pending events.
//!
//! A component registers one slot for each event that it may have pending, and a slot holds at most one
//! moment. The queue is a tournament over the slots: moving or cancelling an event replays one leaf, so
//! nothing stale is ever left in it and its size is fixed by the number of components, not by the number of
//! packets.
//!
//! What takes an event usually schedules the next one of the same slot. So a slot that was popped keeps its way to the
//! root until something else is asked of the queue, and most events cost one replay instead of two.
//!
//! Events come out in the total order of (time, class, sequence), the sequence being given when an event is
//! scheduled.

use anabranch_core::time::Time;

/// What happens first among events of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    /// A link changes: the change holds for everything else at that moment.
    Change,
    /// A packet has left a queue: its place is free for a packet that arrives at that moment.
    Departure,
    /// A packet reaches the far end of a link.
    Arrival,
    /// A host's deadline: what arrives at that moment still counts as in time.
    Timer,
    /// A traffic source sends.
    Traffic,
}

/// The place of one event that can be pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

/// Time, class and sequence from the highest bits to the lowest, in one number that is compared at once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u128);

const IDLE: Key = Key(u128::MAX);
const SEQUENCE_BITS: u32 = 56;

impl Key {
    fn new(time: Time, class: Class, sequence: u64) -> Self {
        let order = ((class as u64) << SEQUENCE_BITS) | sequence;
        Key((u128::from(time.as_nanos()) << u64::BITS) | u128::from(order))
    }

    fn time(self) -> Time {
        Time::from_nanos((self.0 >> u64::BITS) as u64)
    }
}

/// Pending events, each standing for a `T`.
pub(crate) struct EventQueue<T> {
    /// When each slot is due. The length is a power of two; slots not registered are idle.
    keys: Vec<Key>,
    /// For every node of the tree the earliest slot below it: the root is 1, the children of `n` are `2n` and
    /// `2n + 1`.
    winners: Vec<u32>,
    slots: Vec<(Class, T)>,
    /// The slot that was popped last, while the winners still name it.
    popped: Option<u32>,
    sequence: u64,
    pending: usize,
    latest: Time,
}

impl<T: Copy> EventQueue<T> {
    pub(crate) fn new() -> Self {
        EventQueue {
            keys: vec![IDLE],
            winners: vec![0, 0],
            slots: Vec::new(),
            popped: None,
            sequence: 0,
            pending: 0,
            latest: Time::ZERO,
        }
    }

    /// Makes room for one more event that can be pending.
    pub(crate) fn register(&mut self, class: Class, what: T) -> Slot {
        let slot = self.slots.len() as u32;
        self.slots.push((class, what));
        if self.slots.len() > self.keys.len() {
            self.grow();
        }
        Slot(slot)
    }

    fn grow(&mut self) {
        self.popped = None;
        let leaves = self.keys.len() * 2;
        self.keys.resize(leaves, IDLE);
        self.winners = vec![0; leaves * 2];
        for leaf in 0..leaves {
            self.winners[leaves + leaf] = leaf as u32;
        }
        for node in (1..leaves).rev() {
            self.winners[node] = self.earlier(self.winners[2 * node], self.winners[2 * node + 1]);
        }
    }

    fn earlier(&self, left: u32, right: u32) -> u32 {
        if self.keys[right as usize] < self.keys[left as usize] { right } else { left }
    }

    /// Sets the moment of a slot, in place of the one it had.
    pub(crate) fn schedule(&mut self, slot: Slot, time: Time) {
        debug_assert!(time >= self.latest, "an event at {time:?} was scheduled at {:?}", self.latest);
        let index = slot.0 as usize;
        if self.keys[index] == IDLE {
            self.pending += 1;
        }
        if self.popped == Some(slot.0) {
            self.popped = None;
        } else {
            self.settle();
        }
        self.keys[index] = Key::new(time, self.slots[index].0, self.sequence);
        self.sequence += 1;
        self.replay(slot.0);
    }

    /// Takes the event of a slot away, if it had one.
    pub(crate) fn cancel(&mut self, slot: Slot) {
        let index = slot.0 as usize;
        if self.keys[index] != IDLE {
            self.settle();
            self.pending -= 1;
            self.keys[index] = IDLE;
            self.replay(slot.0);
        }
    }

    /// Lets the winners forget the slot that was popped.
    fn settle(&mut self) {
        if let Some(slot) = self.popped.take() {
            self.replay(slot);
        }
    }

    /// Works out the winners on the way from a changed leaf to the root.
    fn replay(&mut self, slot: u32) {
        let mut node = (self.keys.len() + slot as usize) / 2;
        while node > 0 {
            let winner = self.earlier(self.winners[2 * node], self.winners[2 * node + 1]);
            if winner != slot && winner == self.winners[node] {
                // Another slot wins as before, so nothing changes further up.
                return;
            }
            self.winners[node] = winner;
            node /= 2;
        }
    }

    /// When the next event is due.
    pub(crate) fn next_time(&self) -> Option<Time> {
        let earliest = self.keys.iter().min()?;
        (*earliest != IDLE).then(|| earliest.time())
    }

    /// Takes the next event if it is due at `limit` or before.
    pub(crate) fn pop_until(&mut self, limit: Time) -> Option<(Time, T)> {
        self.settle();
        let slot = self.winners[1];
        let key = self.keys[slot as usize];
        let time = key.time();
        if key == IDLE || time > limit {
            return None;
        }
        debug_assert!(time >= self.latest, "time went back from {:?} to {time:?}", self.latest);
        self.latest = time;
        self.pending -= 1;
        self.keys[slot as usize] = IDLE;
        self.popped = Some(slot);
        Some((time, self.slots[slot as usize].1))
    }

    /// How many events are pending.
    pub(crate) fn len(&self) -> usize {
        self.pending
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

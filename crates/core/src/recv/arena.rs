//! Storage of fragments: reused slots, chained into runs, and lists of runs.
//!
//! A run is a chain of fragments of one message with consecutive TSNs. Its first fragment stores the index of the last one and the
//! totals of the run, and its last one the index of the first, so two runs join in constant time. Lists are linked through the
//! slots themselves and need no further memory. A free slot keeps its buffer for the next fragment.

use std::ops::{Index, IndexMut};

use crate::contents::Contents;

/// Index of no slot.
pub(super) const NONE: u32 = u32::MAX;
/// List of the runs that can be read now.
pub(super) const READY: u32 = 0;
/// List of the unfinished ordered messages that are next in their streams.
pub(super) const OPEN_ORDERED: u32 = 1;
/// List of the unfinished unordered messages whose beginning has arrived.
pub(super) const OPEN_UNORDERED: u32 = 2;
/// Number of slots that are only the ends of the lists above.
const LISTS: u32 = 3;

/// Buffer bytes kept beyond twice the peak of held bytes.
const SPARE: u64 = 64 * 1024;

/// Fields that all fragments of a message share (RFC 9260 section 6.9).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Message {
    pub(super) stream: u16,
    pub(super) ssn: u16,
    pub(super) ppid: u32,
    pub(super) unordered: bool,
}

impl Message {
    /// Returns `true` if fragments with these two descriptions can belong together.
    pub(super) fn fits(&self, other: &Message) -> bool {
        // The SSN of an unordered fragment is ignored (RFC 9260 section 3.3.1).
        let same_place = self.unordered || self.ssn == other.ssn;
        (self.stream, self.ppid, self.unordered) == (other.stream, other.ppid, other.unordered) && same_place
    }
}

/// One fragment, or the stub of a message whose first part has been read.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    /// TSN of the fragment; of a stub, the last TSN that was read.
    pub(super) tsn: u64,
    pub(super) message: Message,
    /// `true` if the fragment is the first of its message.
    pub(super) beginning: bool,
    /// `true` if the fragment is the last of its message.
    pub(super) ending: bool,
    /// `true` if the fragment directly follows the part of its message that has been read.
    pub(super) continues: bool,
    /// `true` for a stub: it has no data, and is the end of the list of messages that its stream holds back.
    pub(super) stub: bool,
    /// Index of the last fragment in the first of a run, and of the first in the last. In a stub it is the first fragment of the
    /// run that continues the message, or [`NONE`].
    pub(super) other_end: u32,
    /// User bytes of the run; set in its first fragment only.
    pub(super) run_bytes: u64,
    /// Number of fragments of the run; set in its first fragment only.
    pub(super) run_chunks: usize,
    /// Next fragment of the run, or next free slot.
    next: u32,
    /// Neighbours on a list; [`NONE`] outside lists.
    before: u32,
    after: u32,
    payload: Payload,
}

/// User data of a fragment.
#[derive(Clone, Debug)]
enum Payload {
    Carried(Vec<u8>),
    /// Number of bytes, without content.
    Counted(usize),
}

impl Default for Payload {
    fn default() -> Self {
        Payload::Carried(Vec::new())
    }
}

impl Payload {
    fn len(&self) -> usize {
        match self {
            Payload::Carried(bytes) => bytes.len(),
            Payload::Counted(bytes) => *bytes,
        }
    }

    fn capacity(&self) -> u64 {
        match self {
            Payload::Carried(bytes) => bytes.capacity() as u64,
            Payload::Counted(_) => 0,
        }
    }

    /// Stores a fragment's user data in the empty buffer.
    fn put(&mut self, payload: &[u8], contents: Contents) {
        match (self, contents) {
            (Payload::Carried(bytes), Contents::Carried) => {
                // The exact size: the doubling of a growing vector would pay off only if it grew further.
                bytes.reserve_exact(payload.len());
                bytes.extend_from_slice(payload);
            }
            (this, Contents::Carried) => *this = Payload::Carried(payload.to_vec()),
            (this, Contents::Counted) => *this = Payload::Counted(payload.len()),
        }
    }

    /// Clears the data and keeps its memory.
    fn clear(&mut self) {
        match self {
            Payload::Carried(bytes) => bytes.clear(),
            Payload::Counted(bytes) => *bytes = 0,
        }
    }
}

/// All slots of an association.
#[derive(Clone, Debug)]
pub(super) struct Arena {
    slots: Vec<Slot>,
    free: u32,
    held_bytes: u64,
    held_chunks: u64,
    peak_bytes: u64,
    /// Sum of the capacities of all buffers, in use or not.
    capacity: u64,
    contents: Contents,
    /// Zeros, as many as the longest counted fragment has bytes.
    zeros: Vec<u8>,
}

impl Arena {
    pub(super) fn new() -> Self {
        let list = |end| Slot { before: end, after: end, ..Slot::default() };
        let slots = (0..LISTS).map(list).collect();
        Self {
            slots,
            free: NONE,
            held_bytes: 0,
            held_chunks: 0,
            peak_bytes: 0,
            capacity: 0,
            contents: Contents::Carried,
            zeros: Vec::new(),
        }
    }

    /// Sets the form in which user data is stored.
    pub(super) fn with_contents(self, contents: Contents) -> Self {
        Self { contents, ..self }
    }

    /// Returns the user bytes of all fragments.
    pub(super) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Returns the number of fragments.
    pub(super) fn held_chunks(&self) -> u64 {
        self.held_chunks
    }

    /// Returns the number of slots, in use or not.
    #[cfg(test)]
    pub(super) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// Stores a fragment as a run of its own and returns its slot.
    pub(super) fn insert(&mut self, tsn: u64, message: Message, ends: (bool, bool), payload: &[u8]) -> u32 {
        let at = self.take_free_slot();
        let slot = &mut self.slots[at as usize];
        let mut buffer = std::mem::take(&mut slot.payload);
        self.capacity -= buffer.capacity();
        buffer.put(payload, self.contents);
        self.capacity += buffer.capacity();
        if self.contents == Contents::Counted && self.zeros.len() < payload.len() {
            self.zeros.resize(payload.len(), 0);
        }
        let (beginning, ending) = ends;
        let run_bytes = payload.len() as u64;
        *slot = Slot {
            tsn,
            message,
            beginning,
            ending,
            other_end: at,
            run_bytes,
            run_chunks: 1,
            payload: buffer,
            ..unlinked()
        };
        self.held_bytes += run_bytes;
        self.held_chunks += 1;
        self.peak_bytes = self.peak_bytes.max(self.held_bytes);
        at
    }

    /// Returns a stub, with an empty list, for a message that has been read up to `tsn`.
    pub(super) fn insert_stub(&mut self, tsn: u64, message: Message) -> u32 {
        let at = self.take_free_slot();
        let slot = &mut self.slots[at as usize];
        let payload = std::mem::take(&mut slot.payload);
        *slot = Slot { tsn, message, stub: true, before: at, after: at, payload, ..unlinked() };
        at
    }

    /// Frees a stub whose list is empty.
    pub(super) fn remove_stub(&mut self, stub: u32) {
        self.release(stub);
    }

    /// Joins two runs; the second one directly follows the first.
    pub(super) fn join(&mut self, first: u32, second: u32) {
        let (seam, end) = (self[first].other_end, self[second].other_end);
        let (bytes, chunks) = (self[second].run_bytes, self[second].run_chunks);
        self[seam].next = second;
        self[end].other_end = first;
        let head = &mut self[first];
        head.other_end = end;
        head.run_bytes += bytes;
        head.run_chunks += chunks;
    }

    /// Returns the first and the last fragment of the run that has this slot at either end.
    pub(super) fn ends_of(&self, end: u32) -> (u32, u32) {
        let other = self[end].other_end;
        if self[other].tsn < self[end].tsn { (other, end) } else { (end, other) }
    }

    /// Frees a run and passes TSN and user data of each fragment on.
    pub(super) fn remove_run(&mut self, head: u32, mut pass_on: impl FnMut(u64, &[u8])) {
        let mut at = head;
        while at != NONE {
            let slot = &self.slots[at as usize];
            let next = slot.next;
            match &slot.payload {
                Payload::Carried(bytes) => pass_on(slot.tsn, bytes),
                Payload::Counted(bytes) => pass_on(slot.tsn, &self.zeros[..*bytes]),
            }
            self.held_bytes -= slot.payload.len() as u64;
            self.held_chunks -= 1;
            self.release(at);
            at = next;
        }
    }

    /// Returns the slot that was put on the list first.
    pub(super) fn first(&self, list: u32) -> Option<u32> {
        let first = self[list].after;
        (first != list).then_some(first)
    }

    /// Returns `true` if the slot is on a list.
    pub(super) fn is_listed(&self, slot: u32) -> bool {
        self[slot].after != NONE
    }

    /// Appends a slot that is on no list.
    pub(super) fn list_last(&mut self, list: u32, slot: u32) {
        let last = self[list].before;
        self[slot].before = last;
        self[slot].after = list;
        self[last].after = slot;
        self[list].before = slot;
    }

    /// Removes the slot from its list, if it is on one.
    pub(super) fn unlist(&mut self, slot: u32) {
        let Slot { before, after, .. } = self[slot];
        if after != NONE {
            self[before].after = after;
            self[after].before = before;
            self[slot].before = NONE;
            self[slot].after = NONE;
        }
    }

    fn take_free_slot(&mut self) -> u32 {
        let at = self.free;
        if let Some(slot) = self.slots.get(at as usize) {
            self.free = slot.next;
            return at;
        }
        self.slots.push(Slot::default());
        (self.slots.len() - 1) as u32
    }

    /// Frees a slot. Its buffer stays for the next fragment unless the kept buffers are too large.
    fn release(&mut self, at: u32) {
        let bound = self.peak_bytes.saturating_mul(2).saturating_add(SPARE);
        let slot = &mut self.slots[at as usize];
        slot.next = self.free;
        slot.payload.clear();
        if self.capacity > bound {
            self.capacity -= slot.payload.capacity();
            slot.payload = Payload::default();
        }
        self.free = at;
    }
}

/// Returns a slot without links.
fn unlinked() -> Slot {
    Slot { other_end: NONE, next: NONE, before: NONE, after: NONE, ..Slot::default() }
}

impl Index<u32> for Arena {
    type Output = Slot;
    fn index(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }
}

impl IndexMut<u32> for Arena {
    fn index_mut(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(arena: &mut Arena, tsn: u64, payload: &[u8]) -> u32 {
        arena.insert(tsn, Message::default(), (false, false), payload)
    }

    fn listed(arena: &Arena, list: u32) -> Vec<u32> {
        std::iter::successors(arena.first(list), |&at| Some(arena[at].after).filter(|&next| next != list))
            .collect()
    }

    #[test]
    fn runs_join_into_one_that_knows_its_ends_and_totals() {
        let mut arena = Arena::new();
        let [a, b, c] =
            [(1, "a"), (2, "bb"), (3, "ccc")].map(|(tsn, text)| insert(&mut arena, tsn, text.as_bytes()));
        arena.join(b, c);
        arena.join(a, b);
        assert_eq!((arena.ends_of(a), arena.ends_of(c)), ((a, c), (a, c)));
        assert_eq!((arena[a].run_bytes, arena[a].run_chunks), (6, 3));
        let mut bytes = Vec::new();
        arena.remove_run(a, |_, part| bytes.extend_from_slice(part));
        assert_eq!(bytes, b"abbccc");
        assert_eq!((arena.held_bytes(), arena.held_chunks()), (0, 0));
    }

    #[test]
    fn counted_bytes_take_no_memory_and_read_as_zeros() {
        let mut arena = Arena::new().with_contents(Contents::Counted);
        let [a, b] = [(1, "aa"), (2, "bbb")].map(|(tsn, text)| insert(&mut arena, tsn, text.as_bytes()));
        arena.join(a, b);
        assert_eq!((arena.held_bytes(), arena[a].run_bytes, arena.capacity), (5, 5, 0));
        let mut parts = Vec::new();
        arena.remove_run(a, |_, part| parts.push(part.to_vec()));
        assert_eq!(parts, [vec![0; 2], vec![0; 3]]);
        assert_eq!((arena.held_bytes(), arena.held_chunks()), (0, 0));
    }

    #[test]
    fn lists_keep_their_order_after_removal_in_the_middle() {
        let mut arena = Arena::new();
        let slots = [1, 2, 3].map(|tsn| insert(&mut arena, tsn, b"x"));
        slots.iter().for_each(|&slot| arena.list_last(READY, slot));
        arena.unlist(slots[1]);
        arena.unlist(slots[1]);
        assert_eq!(listed(&arena, READY), [slots[0], slots[2]]);
        assert!(!arena.is_listed(slots[1]));
        assert_eq!(arena.first(OPEN_ORDERED), None);
    }

    #[test]
    fn slots_and_buffers_are_used_again() {
        let mut arena = Arena::new();
        for tsn in 0..1000 {
            let slot = insert(&mut arena, tsn, &[0; 1400]);
            arena.remove_run(slot, |_, _| {});
        }
        assert_eq!((arena.slots.len() as u32, arena.capacity), (LISTS + 1, 1400));
    }

    #[test]
    fn spare_buffers_are_bounded_by_the_peak_use() {
        let mut arena = Arena::new();
        let mut small: Vec<_> = (0..100).map(|tsn| insert(&mut arena, tsn, &[0; 10])).collect();
        // One large fragment at a time passes through every slot, and must not leave a large buffer in each.
        for slot in &mut small {
            arena.remove_run(*slot, |_, _| {});
            let large = insert(&mut arena, 100, &[0; 60_000]);
            arena.remove_run(large, |_, _| {});
            assert!(arena.capacity <= 2 * (60_000 + 99 * 10) + SPARE);
            *slot = insert(&mut arena, 101, &[0; 10]);
        }
    }
}

//! Associations of an endpoint, with indices by local tag, by the peer's address, and by deadline.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use slab::Slab;

use crate::address::PeerKey;
use crate::association::{Association, AssociationEvent};
use crate::endpoint::AssociationId;
use crate::source::Source;
use crate::time::Time;

#[derive(Debug)]
struct Entry {
    id: AssociationId,
    /// The association is boxed, so that an entry is small, because the slab has room for further entries.
    association: Box<Association>,
    /// Indexed deadline, if there are several associations.
    deadline: Option<Time>,
    /// Indexed addresses of the peer.
    keys: Vec<PeerKey>,
    /// Number of address changes when the addresses were indexed.
    addresses_seen: u32,
    /// Set if the association's addresses may have changed since they were indexed.
    peers_touched: bool,
    /// Set if the association's deadline may have changed since it was indexed.
    deadline_touched: bool,
    /// Set if the association is in the list of busy ones.
    busy: bool,
    /// Source that has opened it; `None` if this side has.
    opened_by: Option<Source>,
}

/// Bounds of all ids.
const FIRST: AssociationId = AssociationId { serial: 0, slot: 0 };
const LAST: AssociationId = AssociationId { serial: u64::MAX, slot: u32::MAX };

/// Lists of marked associations.
#[derive(Clone, Default)]
struct Marks {
    peers_touched: Vec<AssociationId>,
    deadlines_touched: Vec<AssociationId>,
    /// Associations that may have packets or events.
    busy: VecDeque<AssociationId>,
}

impl Marks {
    /// Adds an association to the lists that do not contain it.
    // Most accesses find all marks set. Inlining this makes them save more registers.
    #[inline(never)]
    fn add(&mut self, entry: &mut Entry) {
        if !std::mem::replace(&mut entry.peers_touched, true) {
            self.peers_touched.push(entry.id);
        }
        if !std::mem::replace(&mut entry.deadline_touched, true) {
            self.deadlines_touched.push(entry.id);
        }
        if !std::mem::replace(&mut entry.busy, true) {
            self.busy.push_back(entry.id);
        }
    }
}

/// All associations. Mutable access leaves marks, and the indices follow at the next [`refresh_peers`](Table::refresh_peers) and
/// [`refresh_deadlines`](Table::refresh_deadlines): the cost of a call depends on the number of touched associations, not on their
/// total. Addresses change seldom, and each packet looks them up; deadlines change with every packet, and are looked up after many
/// packets.
#[derive(Default)]
pub(super) struct Table {
    entries: Slab<Entry>,
    by_tag: BTreeMap<u32, AssociationId>,
    by_peer: BTreeSet<(PeerKey, AssociationId)>,
    /// Deadlines in order; empty while there is one association, whose deadline is the earliest.
    deadlines: BTreeSet<(Time, AssociationId)>,
    /// The association, if there is only one.
    only: Option<AssociationId>,
    marks: Marks,
    /// Number of associations that each source has opened.
    by_source: BTreeMap<Source, usize>,
    next_serial: u64,
}

impl Entry {
    fn copied(&self) -> Option<Entry> {
        let association = Box::new(self.association.copied()?);
        Some(Entry { association, keys: self.keys.clone(), ..*self })
    }
}

impl Table {
    /// Returns an independent copy, if all associations can be copied.
    pub(super) fn copied(&self) -> Option<Table> {
        let entries = self.entries.iter().map(|(slot, entry)| Some((slot, entry.copied()?)));
        Some(Table {
            entries: entries.collect::<Option<Slab<Entry>>>()?,
            by_tag: self.by_tag.clone(),
            by_peer: self.by_peer.clone(),
            deadlines: self.deadlines.clone(),
            only: self.only,
            marks: self.marks.clone(),
            by_source: self.by_source.clone(),
            next_serial: self.next_serial,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns all associations, in the order of their start.
    pub(super) fn ids(&self) -> impl Iterator<Item = AssociationId> + use<> {
        let mut ids: Vec<_> = self.entries.iter().map(|(_, entry)| entry.id).collect();
        ids.sort_unstable();
        ids.into_iter()
    }

    pub(super) fn get(&self, id: AssociationId) -> Option<&Association> {
        self.entry(id).map(|entry| &*entry.association)
    }

    fn entry(&self, id: AssociationId) -> Option<&Entry> {
        self.entries.get(id.slot as usize).filter(|entry| entry.id == id)
    }

    /// Returns an association for changes, and adds it to the busy ones.
    pub(super) fn get_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        let entry = entry_mut(&mut self.entries, id)?;
        if !(entry.peers_touched && entry.deadline_touched && entry.busy) {
            self.marks.add(entry);
        }
        Some(&mut entry.association)
    }

    /// Returns the number of associations that a source has opened.
    pub(super) fn opened_from(&self, source: Source) -> usize {
        self.by_source.get(&source).copied().unwrap_or(0)
    }

    /// Returns the source that has opened an association; `None` if this side has.
    pub(super) fn opened_by(&self, id: AssociationId) -> Option<Source> {
        self.entry(id)?.opened_by
    }

    /// Inserts an association that a peer has opened from this source.
    pub(super) fn insert_accepted(&mut self, association: Association, source: Source) -> AssociationId {
        let id = self.insert(association);
        if let Some(entry) = entry_mut(&mut self.entries, id) {
            entry.opened_by = Some(source);
            *self.by_source.entry(source).or_default() += 1;
        }
        id
    }

    pub(super) fn insert(&mut self, association: Association) -> AssociationId {
        let first = self.only().and_then(|entry| Some((entry.deadline?, entry.id)));
        self.deadlines.extend(first);
        let place = self.entries.vacant_entry();
        let id = AssociationId { serial: self.next_serial, slot: place.key() as u32 };
        self.next_serial += 1;
        self.by_tag.insert(association.identity().local_tag, id);
        let entry = place.insert(Entry {
            id,
            association: Box::new(association),
            deadline: None,
            keys: Vec::new(),
            addresses_seen: 0,
            peers_touched: false,
            deadline_touched: false,
            busy: false,
            opened_by: None,
        });
        self.marks.add(entry);
        self.find_only();
        id
    }

    pub(super) fn remove(&mut self, id: AssociationId) {
        if self.entry(id).is_none() {
            return;
        }
        let entry = self.entries.remove(id.slot as usize);
        if let Some(source) = entry.opened_by
            && let Some(count) = self.by_source.get_mut(&source)
        {
            *count -= 1;
            if *count == 0 {
                self.by_source.remove(&source);
            }
        }
        let tag = entry.association.identity().local_tag;
        // A repeated cookie may have given the tag to a new association.
        if self.by_tag.get(&tag) == Some(&id) {
            self.by_tag.remove(&tag);
        }
        if let Some(at) = entry.deadline {
            self.deadlines.remove(&(at, id));
        }
        self.find_only();
        if self.only.is_some() {
            self.deadlines.clear();
        }
        for key in entry.keys {
            self.by_peer.remove(&(key, id));
        }
    }

    pub(super) fn by_tag(&self, tag: u32) -> Option<AssociationId> {
        self.by_tag.get(&tag).copied()
    }

    /// Changes the tag of an association after a restart.
    pub(super) fn retag(&mut self, id: AssociationId, from: u32, to: u32) {
        self.by_tag.remove(&from);
        self.by_tag.insert(to, id);
    }

    /// Returns the first association with this peer that satisfies the condition. Closed ones are excluded, even before they are
    /// removed: later packets for them are out of the blue. The index of peers must be current.
    pub(super) fn by_peer(
        &self,
        key: PeerKey,
        wanted: impl Fn(&Association) -> bool,
    ) -> Option<AssociationId> {
        let all = (key, FIRST)..=(key, LAST);
        let mut found = self.by_peer.range(all).map(|(_, id)| *id);
        found.find(|id| {
            self.get(*id).is_some_and(|association| !association.is_closed() && wanted(association))
        })
    }

    /// Returns the busy association whose turn it is.
    pub(super) fn next_busy(&self) -> Option<AssociationId> {
        self.marks.busy.front().copied()
    }

    /// Ends the turn of an association that has no more packets to send.
    pub(super) fn rest(&mut self) {
        let id = self.marks.busy.pop_front();
        if let Some(entry) = id.and_then(|id| entry_mut(&mut self.entries, id)) {
            entry.busy = false;
        }
    }

    /// Moves the association whose turn it is behind the others.
    pub(super) fn end_turn(&mut self) {
        if !self.marks.busy.is_empty() {
            self.marks.busy.rotate_left(1);
        }
    }

    /// Moves the events of busy associations to a queue. Deadlines and addresses do not change.
    pub(super) fn collect_events(&mut self, events: &mut VecDeque<(AssociationId, AssociationEvent)>) {
        // Not an iterator: this is called more often than packets arrive, and mostly one association without events is busy.
        let mut index = 0;
        while let Some(&id) = self.marks.busy.get(index) {
            index += 1;
            let Some(entry) = entry_mut(&mut self.entries, id) else { continue };
            while let Some(event) = entry.association.poll_event() {
                events.push_back((id, event));
            }
        }
    }

    /// Updates the index of peers for touched associations.
    pub(super) fn refresh_peers(&mut self) {
        while let Some(id) = self.marks.peers_touched.pop() {
            let Some(entry) = entry_mut(&mut self.entries, id) else { continue };
            entry.peers_touched = false;
            if entry.addresses_seen != entry.association.address_changes() {
                entry.addresses_seen = entry.association.address_changes();
                for key in entry.keys.drain(..) {
                    self.by_peer.remove(&(key, id));
                }
                entry.keys = entry.association.peer_keys().collect();
                self.by_peer.extend(entry.keys.iter().map(|key| (*key, id)));
            }
        }
    }

    /// Updates the index of deadlines for touched associations.
    pub(super) fn refresh_deadlines(&mut self) {
        let several = self.only.is_none();
        while let Some(id) = self.marks.deadlines_touched.pop() {
            let Some(entry) = entry_mut(&mut self.entries, id) else { continue };
            entry.deadline_touched = false;
            let deadline = entry.association.poll_timeout();
            let old = std::mem::replace(&mut entry.deadline, deadline);
            if several && deadline != old {
                if let Some(old) = old {
                    self.deadlines.remove(&(old, id));
                }
                self.deadlines.extend(deadline.map(|at| (at, id)));
            }
        }
    }

    /// Returns the earliest deadline of all associations. The index of deadlines must be current.
    pub(super) fn earliest(&self) -> Option<Time> {
        debug_assert!(self.marks.deadlines_touched.is_empty());
        match self.only() {
            Some(entry) => entry.deadline,
            None => self.deadlines.first().map(|(at, _)| *at),
        }
    }

    fn only(&self) -> Option<&Entry> {
        self.only.and_then(|id| self.entry(id))
    }

    fn find_only(&mut self) {
        let first = if self.entries.len() == 1 { self.entries.iter().next() } else { None };
        self.only = first.map(|(_, entry)| entry.id);
    }

    /// Puts the associations whose deadline has passed into `due`, oldest first. The index of deadlines must be current.
    pub(super) fn due(&self, now: Time, due: &mut Vec<AssociationId>) {
        due.clear();
        let only = self.only().filter(|entry| entry.deadline.is_some_and(|at| at <= now));
        due.extend(only.map(|entry| entry.id));
        let come = self.deadlines.range(..=(now, LAST));
        due.extend(come.map(|(_, id)| *id));
        due.sort_unstable();
    }
}

/// Prints only the associations, from which the indices follow; a slab would print its number of entries.
impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.entries.iter().map(|(_, entry)| (entry.id, &entry.association))).finish()
    }
}

/// Returns an entry. It borrows the slab alone, so that other fields of the table may be borrowed.
fn entry_mut(entries: &mut Slab<Entry>, id: AssociationId) -> Option<&mut Entry> {
    entries.get_mut(id.slot as usize).filter(|entry| entry.id == id)
}

//! The associations of an endpoint, and what finds one of them without asking all: by our tag, by the peer's address, by
//! deadline.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::address::PeerKey;
use crate::association::{Association, AssociationEvent};
use crate::endpoint::AssociationId;
use crate::time::Time;

#[derive(Debug)]
struct Entry {
    /// Apart, so that a node of the tree is small: it has room for more entries than it holds.
    association: Box<Association>,
    /// Under which it stands among the deadlines, if there are several associations.
    deadline: Option<Time>,
    /// Under which it stands among the peers.
    keys: Vec<PeerKey>,
    /// How often its addresses had changed by then.
    addresses_seen: u32,
    /// Its addresses may have changed since its peers were indexed.
    peers_touched: bool,
    /// Its deadline may have changed since that was put in order.
    deadline_touched: bool,
    /// It stands among the busy.
    busy: bool,
}

/// All associations. Whoever gets one to change leaves marks, and the indices follow at the next
/// [`refresh_peers`](Table::refresh_peers) and [`refresh_deadlines`](Table::refresh_deadlines): the cost of a call depends on how
/// many were touched, not on how many there are. Addresses change seldom, and packets look for them; deadlines change with every
/// packet, and are looked for once many of those are done.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: BTreeMap<AssociationId, Entry>,
    by_tag: BTreeMap<u32, AssociationId>,
    by_peer: BTreeSet<(PeerKey, AssociationId)>,
    /// Empty as long as there is one association: its deadline is the earliest.
    deadlines: BTreeSet<(Time, AssociationId)>,
    peers_touched: Vec<AssociationId>,
    deadlines_touched: Vec<AssociationId>,
    /// Those that may have something to send or to tell.
    busy: VecDeque<AssociationId>,
    next_id: u64,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = AssociationId> + '_ {
        self.entries.keys().copied()
    }

    pub(super) fn get(&self, id: AssociationId) -> Option<&Association> {
        self.entries.get(&id).map(|entry| &*entry.association)
    }

    /// An association to change: it counts as busy from here on.
    pub(super) fn get_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        let entry = self.entries.get_mut(&id)?;
        if !std::mem::replace(&mut entry.peers_touched, true) {
            self.peers_touched.push(id);
        }
        if !std::mem::replace(&mut entry.deadline_touched, true) {
            self.deadlines_touched.push(id);
        }
        if !std::mem::replace(&mut entry.busy, true) {
            self.busy.push_back(id);
        }
        Some(&mut entry.association)
    }

    pub(super) fn insert(&mut self, association: Association) -> AssociationId {
        let first = self.only().and_then(|(id, entry)| Some((entry.deadline?, id)));
        self.deadlines.extend(first);
        let id = AssociationId(self.next_id);
        self.next_id += 1;
        self.by_tag.insert(association.identity().local_tag, id);
        let entry = Entry {
            association: Box::new(association),
            deadline: None,
            keys: Vec::new(),
            addresses_seen: 0,
            peers_touched: true,
            deadline_touched: true,
            busy: true,
        };
        self.entries.insert(id, entry);
        self.peers_touched.push(id);
        self.deadlines_touched.push(id);
        self.busy.push_back(id);
        id
    }

    pub(super) fn remove(&mut self, id: AssociationId) {
        let Some(entry) = self.entries.remove(&id) else { return };
        let tag = entry.association.identity().local_tag;
        // A cookie that came again may have given the tag to a new association.
        if self.by_tag.get(&tag) == Some(&id) {
            self.by_tag.remove(&tag);
        }
        if let Some(at) = entry.deadline {
            self.deadlines.remove(&(at, id));
        }
        if self.entries.len() == 1 {
            self.deadlines.clear();
        }
        for key in entry.keys {
            self.by_peer.remove(&(key, id));
        }
    }

    pub(super) fn by_tag(&self, tag: u32) -> Option<AssociationId> {
        self.by_tag.get(&tag).copied()
    }

    /// A restart has given an association another tag.
    pub(super) fn retag(&mut self, id: AssociationId, from: u32, to: u32) {
        self.by_tag.remove(&from);
        self.by_tag.insert(to, id);
    }

    /// The first association with this peer that is as wanted. One that is over is none, even before it is forgotten: what
    /// still comes for it is out of the blue. The peers have to be up to date.
    pub(super) fn by_peer(
        &self,
        key: PeerKey,
        wanted: impl Fn(&Association) -> bool,
    ) -> Option<AssociationId> {
        let all = (key, AssociationId(0))..=(key, AssociationId(u64::MAX));
        let mut found = self.by_peer.range(all).map(|(_, id)| *id);
        found.find(|id| {
            self.get(*id).is_some_and(|association| !association.is_closed() && wanted(association))
        })
    }

    /// The busy association whose turn it is.
    pub(super) fn next_busy(&self) -> Option<AssociationId> {
        self.busy.front().copied()
    }

    /// The one whose turn it was has nothing more to send.
    pub(super) fn rest(&mut self) {
        let id = self.busy.pop_front();
        if let Some(entry) = id.and_then(|id| self.entries.get_mut(&id)) {
            entry.busy = false;
        }
    }

    /// The one whose turn it was may have more to send, after the others.
    pub(super) fn end_turn(&mut self) {
        if !self.busy.is_empty() {
            self.busy.rotate_left(1);
        }
    }

    /// Takes the events of the busy over. That is no change: deadlines and addresses stay as they are.
    pub(super) fn collect_events(&mut self, events: &mut VecDeque<(AssociationId, AssociationEvent)>) {
        for &id in &self.busy {
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            while let Some(event) = entry.association.poll_event() {
                events.push_back((id, event));
            }
        }
    }

    /// Brings the peers up to date with what was touched.
    pub(super) fn refresh_peers(&mut self) {
        while let Some(id) = self.peers_touched.pop() {
            let Some(entry) = self.entries.get_mut(&id) else { continue };
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

    /// Brings the deadlines up to date with what was touched.
    pub(super) fn refresh_deadlines(&mut self) {
        let several = self.entries.len() > 1;
        while let Some(id) = self.deadlines_touched.pop() {
            let Some(entry) = self.entries.get_mut(&id) else { continue };
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

    /// The earliest deadline of any association. They have to be up to date.
    pub(super) fn earliest(&self) -> Option<Time> {
        debug_assert!(self.deadlines_touched.is_empty());
        match self.only() {
            Some((_, entry)) => entry.deadline,
            None => self.deadlines.first().map(|(at, _)| *at),
        }
    }

    /// The association, if there is one only.
    fn only(&self) -> Option<(AssociationId, &Entry)> {
        let first = self.entries.first_key_value().filter(|_| self.entries.len() == 1);
        first.map(|(id, entry)| (*id, entry))
    }

    /// Puts those whose deadline has come into `due`, oldest association first. They have to be up to date.
    pub(super) fn due(&self, now: Time, due: &mut Vec<AssociationId>) {
        due.clear();
        let only = self.only().filter(|(_, entry)| entry.deadline.is_some_and(|at| at <= now));
        due.extend(only.map(|(id, _)| id));
        let come = self.deadlines.range(..=(now, AssociationId(u64::MAX)));
        due.extend(come.map(|(_, id)| *id));
        due.sort_unstable();
    }
}

//! Kinds of events, and sets of them, with which a policy declares the events that it reads.

use crate::policy::Event;

/// Kind of an [`Event`], one for each variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// [`Event::PathAdded`].
    PathAdded,
    /// [`Event::PathRemoved`].
    PathRemoved,
    /// [`Event::PathRebound`].
    PathRebound,
    /// [`Event::PathState`].
    PathState,
    /// [`Event::Established`].
    Established,
    /// [`Event::SendOpportunity`].
    SendOpportunity,
    /// [`Event::Bound`].
    Bound,
    /// [`Event::Unbound`].
    Unbound,
    /// [`Event::Sent`].
    Sent,
    /// [`Event::Acked`].
    Acked,
    /// [`Event::SackDone`].
    SackDone,
    /// [`Event::RttSample`].
    RttSample,
    /// [`Event::Lost`].
    Lost,
    /// [`Event::Abandoned`].
    Abandoned,
    /// [`Event::LossEvent`].
    LossEvent,
    /// [`Event::Spurious`].
    Spurious,
    /// [`Event::Blocked`].
    Blocked,
    /// [`Event::Idle`].
    Idle,
    /// [`Event::Deadline`].
    Deadline,
}

impl EventKind {
    /// All kinds, each at the index of its discriminant.
    pub const ALL: [EventKind; 19] = [
        EventKind::PathAdded,
        EventKind::PathRemoved,
        EventKind::PathRebound,
        EventKind::PathState,
        EventKind::Established,
        EventKind::SendOpportunity,
        EventKind::Bound,
        EventKind::Unbound,
        EventKind::Sent,
        EventKind::Acked,
        EventKind::SackDone,
        EventKind::RttSample,
        EventKind::Lost,
        EventKind::Abandoned,
        EventKind::LossEvent,
        EventKind::Spurious,
        EventKind::Blocked,
        EventKind::Idle,
        EventKind::Deadline,
    ];
}

impl Event<'_> {
    /// Returns the kind of the event.
    #[inline]
    pub const fn kind(&self) -> EventKind {
        match self {
            Event::PathAdded(_) => EventKind::PathAdded,
            Event::PathRemoved(_) => EventKind::PathRemoved,
            Event::PathRebound(_) => EventKind::PathRebound,
            Event::PathState { .. } => EventKind::PathState,
            Event::Established => EventKind::Established,
            Event::SendOpportunity(_) => EventKind::SendOpportunity,
            Event::Bound { .. } => EventKind::Bound,
            Event::Unbound { .. } => EventKind::Unbound,
            Event::Sent(_) => EventKind::Sent,
            Event::Acked(_) => EventKind::Acked,
            Event::SackDone(_) => EventKind::SackDone,
            Event::RttSample { .. } => EventKind::RttSample,
            Event::Lost { .. } => EventKind::Lost,
            Event::Abandoned { .. } => EventKind::Abandoned,
            Event::LossEvent { .. } => EventKind::LossEvent,
            Event::Spurious { .. } => EventKind::Spurious,
            Event::Blocked { .. } => EventKind::Blocked,
            Event::Idle(_) => EventKind::Idle,
            Event::Deadline => EventKind::Deadline,
        }
    }
}

/// Set of kinds of events.
///
/// ```
/// use anabranch_core::policy::{EventKind, EventSet};
/// const READS: EventSet = EventSet::of(&[EventKind::Lost]).union(EventSet::of(&[EventKind::Sent]));
/// assert!(READS.contains(EventKind::Sent) && !READS.contains(EventKind::Acked));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSet(u32);

impl EventSet {
    /// No kind.
    pub const NONE: EventSet = EventSet(0);
    /// Every kind.
    pub const ALL: EventSet = EventSet::of(&EventKind::ALL);

    /// Returns the set of these kinds.
    pub const fn of(kinds: &[EventKind]) -> Self {
        let (mut set, mut index) = (0, 0);
        while index < kinds.len() {
            set |= 1 << kinds[index] as u32;
            index += 1;
        }
        EventSet(set)
    }

    /// Returns the kinds that are in either set.
    #[must_use]
    pub const fn union(self, other: EventSet) -> Self {
        EventSet(self.0 | other.0)
    }

    /// Returns `true` if a kind is in the set.
    #[inline]
    pub const fn contains(self, kind: EventKind) -> bool {
        self.0 & 1 << kind as u32 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_listed_at_their_discriminants() {
        for (index, kind) in EventKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
            assert!(EventSet::ALL.contains(kind) && !EventSet::NONE.contains(kind));
        }
    }

    #[test]
    fn union_has_the_kinds_of_both_sets() {
        let [sent, idle] = [EventSet::of(&[EventKind::Sent]), EventSet::of(&[EventKind::Idle])];
        let both = EventSet::of(&[EventKind::Idle, EventKind::Sent]);
        assert_eq!((sent.union(idle), sent.union(EventSet::NONE)), (both, sent));
    }
}

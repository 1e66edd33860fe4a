//! Local ends that the user has taken out of use while their sockets stay bound.

use anabranch_core::time::{Span, Time};
use anabranch_core::{AssociationId, LocalEnd, PathAddress};

/// Time in which packets at a withheld address are accepted: those that the peer had sent before it learned of the removal.
const GRACE: Span = Span::from_secs(1);

/// Holder of a withheld local end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withholder {
    /// The user, who may take the only path of an association by a later order.
    User,
    /// A limit of the link. No association uses the end.
    Limit,
}

/// Withheld local end.
#[derive(Debug)]
struct WithheldEnd {
    end: LocalEnd,
    /// Holders, each once.
    holders: Vec<Withholder>,
    since: Time,
    /// Paths that begin there once it is restored.
    paths: Vec<(AssociationId, PathAddress)>,
}

/// Withheld local ends of an endpoint, at most as many as it has sockets.
#[derive(Debug, Default)]
pub(crate) struct WithheldEnds {
    ends: Vec<WithheldEnd>,
}

impl WithheldEnds {
    pub(crate) fn iter(&self) -> impl Iterator<Item = LocalEnd> + '_ {
        self.ends.iter().map(|withheld| withheld.end)
    }

    pub(crate) fn contains(&self, end: LocalEnd) -> bool {
        self.iter().any(|withheld| withheld == end)
    }

    /// Returns `true` if packets that arrive here now are dropped. A peer without ASCONF stops sending when it gets no answer.
    pub(crate) fn drops(&self, now: Time, end: LocalEnd) -> bool {
        self.ends.iter().any(|withheld| withheld.end == end && now.since(withheld.since) >= GRACE)
    }

    /// Returns `true` if this holder withholds the end.
    pub(crate) fn is_held(&self, end: LocalEnd, by: Withholder) -> bool {
        self.ends.iter().any(|withheld| withheld.end == end && withheld.holders.contains(&by))
    }

    /// Adds a holder of a withheld end. Returns `false` if the end is not withheld yet.
    pub(crate) fn hold(&mut self, end: LocalEnd, by: Withholder) -> bool {
        let Some(withheld) = self.ends.iter_mut().find(|withheld| withheld.end == end) else { return false };
        if !withheld.holders.contains(&by) {
            withheld.holders.push(by);
        }
        true
    }

    /// Adds an end, with the paths that begin there.
    pub(crate) fn add(
        &mut self,
        now: Time,
        end: LocalEnd,
        by: Withholder,
        paths: Vec<(AssociationId, PathAddress)>,
    ) {
        self.ends.push(WithheldEnd { end, holders: vec![by], since: now, paths });
    }

    /// Removes a holder of an end. Returns the end's paths if it was the last holder.
    pub(crate) fn release(
        &mut self,
        end: LocalEnd,
        by: Withholder,
    ) -> Option<Vec<(AssociationId, PathAddress)>> {
        let at = self.ends.iter().position(|withheld| withheld.end == end)?;
        let holders = &mut self.ends[at].holders;
        holders.retain(|holder| *holder != by);
        holders.is_empty().then(|| self.ends.swap_remove(at).paths)
    }

    /// Divides the paths of a new association into those that it begins with and those of withheld ends. An association without
    /// any other path uses those that the user withholds.
    pub(crate) fn divide(&self, paths: Vec<PathAddress>) -> (Vec<PathAddress>, Vec<PathAddress>) {
        let is_withheld = |path: &PathAddress| self.contains(path.local_end());
        if paths.iter().all(is_withheld) {
            return paths.into_iter().partition(|path| !self.is_held(path.local_end(), Withholder::Limit));
        }
        paths.into_iter().partition(|path| !is_withheld(path))
    }

    /// Stores paths of a new association for the time when their local ends are restored.
    pub(crate) fn keep(&mut self, id: AssociationId, paths: Vec<PathAddress>) {
        for path in paths {
            if let Some(withheld) = self.ends.iter_mut().find(|one| one.end == path.local_end()) {
                withheld.paths.push((id, path));
            }
        }
    }

    /// Removes the stored paths of a closed association.
    pub(crate) fn forget(&mut self, id: AssociationId) {
        for withheld in &mut self.ends {
            withheld.paths.retain(|(of, _)| *of != id);
        }
    }
}

//! Detection of changes of an association's paths.

use anabranch_core::policy::PathFacts;
use anabranch_core::{Association, MAX_PATHS};

/// State of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathSample {
    /// Facts about the path.
    pub facts: PathFacts,
    /// Sender's estimate of the peer's free receive window.
    pub peer_window_bytes: u64,
    /// User bytes that wait for their first transmission.
    pub queued_bytes: u64,
}

/// Association's part of a row.
#[derive(Clone, Copy, PartialEq)]
struct Shared {
    peer_window_bytes: u64,
    /// Set if data is queued. Only this flag leads to a new row, since the amount changes with every message.
    has_data: bool,
}

/// Detector of the paths of an association that have changed since the previous call.
#[derive(Default)]
pub struct Sampler {
    last: [Option<(PathFacts, Shared)>; MAX_PATHS],
}

impl Sampler {
    /// Returns a sampler without earlier states.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `changed` with the state of each path that has changed.
    pub fn sample(&mut self, association: &Association, mut changed: impl FnMut(&PathSample)) {
        let queued_bytes = association.queued_bytes();
        let peer_window_bytes = association.association_facts().peer_window.get();
        let shared = Shared { peer_window_bytes, has_data: queued_bytes > 0 };
        for (facts, last) in association.paths().iter().zip(&mut self.last) {
            let seen = Some((*facts, shared));
            if *last != seen {
                *last = seen;
                changed(&PathSample { facts: *facts, peer_window_bytes, queued_bytes });
            }
        }
    }
}

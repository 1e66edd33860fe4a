//! Notices what has changed about an association's paths.

use anabranch_core::policy::PathFacts;
use anabranch_core::{Association, MAX_PATHS};

/// How a path stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathSample {
    /// The path itself.
    pub facts: PathFacts,
    /// What the sender takes the peer's free receive window to be.
    pub peer_window_bytes: u64,
    /// User bytes that wait to be sent for the first time.
    pub queued_bytes: u64,
}

/// What a row shows of the association.
#[derive(Clone, Copy, PartialEq)]
struct Shared {
    peer_window_bytes: u64,
    /// How much is queued changes with every message; that nothing is makes a row of its own.
    has_data: bool,
}

/// Tells which paths of an association are not as they were at the latest look.
#[derive(Default)]
pub struct Sampler {
    last: [Option<(PathFacts, Shared)>; MAX_PATHS],
}

impl Sampler {
    /// One that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Hands over each path that has changed, as it stands now.
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

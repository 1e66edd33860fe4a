//! Full use of a window, the condition for its growth (RFC 9260 sections 7.2.1 and 7.2.2).

use anabranch_core::PathId;
use anabranch_core::policy::{Limiter, View};
use anabranch_core::units::ChunkBytes;

/// Returns `true` if `outstanding` fills the window, or would without pacing. A paced sender is not application-limited if it would
/// have filled the window without the delay of pacing (RFC 9002 section 7.8).
pub(crate) fn in_full_use(outstanding: ChunkBytes, cwnd: ChunkBytes, path: PathId, view: &View<'_>) -> bool {
    let held_by_pacing = view.path(path).limiter == Limiter::Pacing;
    outstanding >= cwnd
        || held_by_pacing && outstanding.get().saturating_add(view.association.queued_bytes) >= cwnd.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::profile::Profile;

    #[test]
    fn paced_window_is_fully_used_if_enough_data_waits() {
        let used = |outstanding, limiter, queued| {
            let mut world = World::new(Profile::rfc9260(), 1);
            world.paths[0].limiter = limiter;
            world.association.queued_bytes = queued;
            in_full_use(bytes(outstanding), bytes(10 * M), path(0), &world.view())
        };
        assert!(used(10 * M, Limiter::Application, 0));
        assert!(used(4 * M, Limiter::Pacing, 6 * M));
        assert!(!used(4 * M, Limiter::Pacing, 6 * M - 1), "the application has no more");
        for limiter in [Limiter::Window, Limiter::PeerWindow, Limiter::Scheduler, Limiter::Application] {
            assert!(!used(4 * M, limiter, u64::MAX), "{limiter:?}");
        }
    }
}

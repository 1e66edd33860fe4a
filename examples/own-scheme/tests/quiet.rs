//! Tests of the scheduler's choices.

use anabranch_core::policy::{
    AssociationFacts, PathFacts, Pick, Randomness, Refusal, Scheduler, SendAsk, View,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};
use anabranch_core::units::ChunkBytes;
use anabranch_core::{PathId, PathState};
use own_scheme::ShortestQueue;

/// Returns an active path whose queues add `queueing_ms` to a round trip of 50 ms.
fn path(index: usize, queueing_ms: u64) -> PathFacts {
    let mut facts = PathFacts::new(PathId::new(index), ChunkBytes::new(1468));
    facts.state = PathState::Active;
    facts.cwnd = ChunkBytes::new(4380);
    facts.rtt.min = Some(Span::from_millis(50));
    facts.rtt.latest = Some(Span::from_millis(50 + queueing_ms));
    facts
}

fn pick(paths: &[PathFacts]) -> (Pick, Vec<(usize, Refusal)>) {
    let (profile, association) = (Profile::rfc9260_multipath(), AssociationFacts::default());
    let view = View { now: Time::ZERO, profile: &profile, paths, association: &association };
    let ask = SendAsk { chunk: ChunkBytes::new(1468), window_probe: false, duplicate: false };
    let decision = ShortestQueue.pick(&ask, &view, &mut Randomness::from_seed([0; 32]).context());
    (decision.choice, decision.refused.iter().map(|(path, why)| (path.index(), *why)).collect())
}

// ANCHOR: test
#[test]
fn the_path_with_the_shortest_queue_is_chosen() {
    let (choice, refused) = pick(&[path(0, 30), path(1, 5), path(2, 20)]);
    assert_eq!(choice, Pick::Path(PathId::new(1)));
    assert_eq!(refused, [(0, Refusal::Preference), (2, Refusal::Preference)]);
}
// ANCHOR_END: test

#[test]
fn a_full_or_failed_path_is_passed_over_however_short_its_queue() {
    let mut paths = [path(0, 30), path(1, 0), path(2, 0)];
    paths[1].in_flight = paths[1].cwnd;
    paths[2].state = PathState::Inactive;
    let (choice, refused) = pick(&paths);
    assert_eq!(choice, Pick::Path(PathId::new(0)));
    assert_eq!(refused, [(1, Refusal::WindowFull), (2, Refusal::State)]);
}

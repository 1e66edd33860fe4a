//! Loss recovery with only a sender, paths and policies.

use super::*;
use crate::association::testing::{FIRST, PAYLOAD, Rig, at, with_sack};
use crate::policy::{Holes, LossCause};
use crate::profile::{CopyFate, Profile, Reneging};
use crate::send::ChunkState;
use crate::time::Span;

/// Returns the path on which SACKs arrive.
fn a() -> PathId {
    PathId::new(0)
}

/// Returns the other path.
fn b() -> PathId {
    PathId::new(1)
}

/// Bytes of each chunk with its header.
const CHUNK: u64 = PAYLOAD as u64 + 16;

/// Returns a rig and its loss recovery.
fn begin(profile: Profile) -> (Rig, LossRecovery) {
    (Rig::new(2, profile), LossRecovery::new(FIRST, 2))
}

/// Processes a SACK on path a(). TSNs count from the first one that was sent.
fn sack(
    (rig, recovery): (&mut Rig, &mut LossRecovery),
    acked: u64,
    gaps: &[(u16, u16)],
) -> Result<SackOutcome, UnsentTsn> {
    let outcome =
        with_sack(FIRST - 1 + acked, gaps, &[], |sack| recovery.on_sack(a(), sack, &mut rig.dispatcher()));
    rig.sender.check();
    outcome
}

#[test]
fn cumulative_ack_empties_flight_stops_t3_and_gives_round_trip() {
    let (mut rig, mut recovery) = begin(Profile::rfc9260());
    rig.send(a(), 3);
    rig.now = at(40);
    let outcome = sack((&mut rig, &mut recovery), 3, &[]).expect("a valid SACK");
    assert!(outcome.acknowledged && !outcome.overtaken && outcome.losses == Losses::None);
    assert_eq!((rig.in_flight(a()), rig.paths[a()].timers.t3), (0, None));
    assert_eq!(rig.paths.facts(a()).rtt.latest, Some(Span::from_millis(40)));
    assert!(rig.sender.is_done());
}

#[test]
fn sack_of_unsent_tsn_is_refused_and_changes_nothing() {
    let (mut rig, mut recovery) = begin(Profile::rfc9260());
    rig.send(a(), 2);
    assert_eq!(sack((&mut rig, &mut recovery), 3, &[]), Err(UnsentTsn));
    assert_eq!(rig.in_flight(a()), 2);
}

#[test]
fn overtaken_sack_is_an_opportunity_and_no_acknowledgement() {
    let (mut rig, mut recovery) = begin(Profile::rfc9260());
    rig.send(a(), 4);
    sack((&mut rig, &mut recovery), 2, &[]).expect("a valid SACK");
    let outcome = sack((&mut rig, &mut recovery), 1, &[(3, 3)]).expect("a valid SACK");
    assert!(outcome.overtaken && !outcome.acknowledged);
    assert_eq!(rig.in_flight(a()), 2);
}

#[test]
fn third_missing_report_loses_chunk_and_cuts_its_path_once() {
    let (mut rig, mut recovery) = begin(Profile::rfc9260());
    rig.send(a(), 5);
    for highest in 2..=3 {
        let outcome = sack((&mut rig, &mut recovery), 0, &[(2, highest)]).expect("a valid SACK");
        assert_eq!(outcome.losses, Losses::None);
    }
    let outcome = sack((&mut rig, &mut recovery), 0, &[(2, 4)]).expect("a valid SACK");
    assert_eq!(outcome.losses, Losses::Chunks);
    let state = rig.sender.outstanding().get(FIRST).map(|chunk| chunk.state);
    assert_eq!(state, Some(ChunkState::Lost(LossCause::FastRetransmit)));
    assert_eq!(rig.paths.facts(a()).recovery_point, Some(FIRST + 4));
    assert_eq!((rig.paths.facts(a()).exempt_packets, rig.paths.facts(b()).exempt_packets), (1, 0));
    assert_eq!(rig.outputs.statistics.fast_retransmit_events, 1);
    // Another loss of the same window does not cut it again, and recovery ends with the recovery point.
    rig.resend(FIRST, a());
    let outcome = sack((&mut rig, &mut recovery), 5, &[]).expect("a valid SACK");
    assert!(outcome.recovered_loss);
    assert_eq!((rig.paths.facts(a()).recovery_point, rig.paths[a()].recovery.point), (None, FIRST + 4));
}

#[test]
fn retransmitted_chunk_gives_no_round_trip() {
    let (mut rig, mut recovery) = begin(Profile::rfc9260());
    rig.send(a(), 1);
    rig.dispatcher().mark_lost(FIRST, LossCause::Timeout);
    rig.resend(FIRST, a());
    rig.now = at(900);
    sack((&mut rig, &mut recovery), 1, &[]).expect("a valid SACK");
    assert_eq!(rig.paths.facts(a()).rtt.latest, None);
}

#[test]
fn copy_on_path_of_sack_is_credited_and_other_copy_stays_in_flight() {
    let (mut rig, mut recovery) = begin(Profile::rfc9260());
    rig.send(a(), 1);
    let now = rig.now;
    rig.dispatcher().update_sender(|sender| sender.copy(FIRST, b(), now));
    sack((&mut rig, &mut recovery), 1, &[]).expect("a valid SACK");
    assert_eq!((rig.in_flight(a()), rig.in_flight(b())), (0, 1));
    // The duplicate report credits the other copy.
    with_sack(FIRST, &[], &[FIRST], |sack| recovery.on_sack(a(), sack, &mut rig.dispatcher()))
        .expect("a SACK");
    assert_eq!(rig.in_flight(b()), 0);
    rig.sender.check();
}

/// Returns the round trip of `b` after the peer reports the chunk's copy on `b` as a duplicate, by a SACK on this path.
fn round_trip_of_duplicate(reported_on: PathId) -> Option<Span> {
    let (mut rig, mut recovery) = begin(judging());
    rig.send(a(), 1);
    copy(&mut rig, FIRST, b());
    rig.now += Span::from_millis(30);
    sack((&mut rig, &mut recovery), 1, &[]).expect("a valid SACK");
    rig.now += Span::from_millis(20);
    with_sack(FIRST, &[], &[FIRST], |sack| recovery.on_sack(reported_on, sack, &mut rig.dispatcher()))
        .expect("a valid SACK");
    assert_eq!(rig.in_flight(b()), 0);
    rig.paths.facts(b()).rtt.latest
}

#[test]
fn duplicate_report_gives_a_round_trip_only_on_path_of_copy() {
    assert_eq!(round_trip_of_duplicate(b()), Some(Span::from_millis(50)));
    assert_eq!(round_trip_of_duplicate(a()), None);
}

#[test]
fn reneged_block_is_in_flight_again_after_longest_rto() {
    let (mut rig, mut recovery) =
        begin(Profile { reneging: Reneging::AfterLongestRto, ..Profile::rfc9260() });
    rig.send(a(), 3);
    sack((&mut rig, &mut recovery), 0, &[(2, 3)]).expect("a valid SACK");
    assert_eq!((rig.in_flight(a()), recovery.deadline()), (1, None));
    sack((&mut rig, &mut recovery), 0, &[]).expect("a valid SACK");
    let deadline = recovery.deadline().expect("reneging is suspected");
    assert_eq!(rig.in_flight(a()), 1);
    rig.now = deadline;
    assert_eq!(recovery.on_deadline(&mut rig.dispatcher()), None);
    assert_eq!((rig.in_flight(a()), recovery.deadline()), (3, None));
    rig.sender.check();
}

#[test]
fn chunk_reneged_on_removed_path_is_lost() {
    let (mut rig, mut recovery) = begin(Profile { reneging: Reneging::AtOnce, ..Profile::rfc9260() });
    rig.send(b(), 2);
    sack((&mut rig, &mut recovery), 0, &[(2, 2)]).expect("a valid SACK");
    rig.dispatcher().mark_path_lost(b(), LossCause::Timeout, true);
    rig.paths.retire(b());
    sack((&mut rig, &mut recovery), 0, &[]).expect("a valid SACK");
    assert_eq!((rig.in_flight(b()), rig.sender.lost().get(1)), (0, Some(FIRST + 1)));
}

#[test]
fn cumulative_tsn_of_shutdown_reneges_nothing() {
    let (mut rig, mut recovery) = begin(Profile { reneging: Reneging::AtOnce, ..Profile::rfc9260() });
    rig.send(a(), 4);
    sack((&mut rig, &mut recovery), 0, &[(3, 3)]).expect("a valid SACK");
    let outcome = recovery.on_cumulative(FIRST, &mut rig.dispatcher());
    assert!(outcome.acknowledged);
    assert_eq!(rig.in_flight(a()), 2, "the second and the fourth");
    rig.sender.check();
}

#[test]
fn time_alone_loses_overdue_chunks_and_spares_fresh_ones() {
    let (mut rig, mut recovery) = begin(Profile::rfc9260());
    rig.send(a(), 1);
    rig.now = at(1_500);
    rig.send(b(), 1);
    assert!(recovery.recheck(&Holes::All, &mut rig.dispatcher()));
    assert_eq!((rig.in_flight(a()), rig.in_flight(b())), (0, 1));
    assert_eq!((rig.paths[a()].timers.t3, rig.paths[b()].timers.t3.is_some()), (None, true));
    assert!(!recovery.recheck(&Holes::All, &mut rig.dispatcher()), "the lost chunk is not lost again");
}

/// Returns a profile that judges copies.
fn judging() -> Profile {
    Profile { copy_fate: CopyFate::Judged, ..Profile::rfc9260() }
}

/// Measures round trips of 20 ms on path a() and of 1 s on path b(), with one chunk on each.
fn measure_round_trips(rig: &mut Rig, recovery: &mut LossRecovery) {
    for (path, ms, acked) in [(a(), 20, 1), (b(), 1_000, 2)] {
        rig.send(path, 1);
        rig.now += Span::from_millis(ms);
        sack((&mut *rig, &mut *recovery), acked, &[]).expect("a valid SACK");
    }
}

fn copy(rig: &mut Rig, tsn: u64, path: PathId) {
    let now = rig.now;
    rig.dispatcher().update_sender(|sender| sender.copy(tsn, path, now)).expect("a copy");
}

#[test]
fn sack_on_slow_path_credits_copy_with_plausible_round_trip() {
    for (profile, in_flight) in [(Profile::rfc9260(), (1, 0)), (judging(), (0, 1))] {
        let (mut rig, mut recovery) = begin(profile);
        measure_round_trips(&mut rig, &mut recovery);
        rig.send(b(), 1);
        copy(&mut rig, FIRST + 2, a());
        rig.now += Span::from_millis(25);
        let outcome =
            with_sack(FIRST + 2, &[], &[], |sack| recovery.on_sack(b(), sack, &mut rig.dispatcher()));
        assert!(outcome.is_ok_and(|outcome| outcome.acknowledged));
        assert_eq!((rig.in_flight(a()), rig.in_flight(b())), in_flight);
    }
}

#[test]
fn overtaken_copies_are_losses_that_cut_the_window_of_their_path() {
    let (mut rig, mut recovery) = begin(judging());
    measure_round_trips(&mut rig, &mut recovery);
    // Chunks 2 to 4 are sent on path b(), and arrive in copies on path a().
    let sent_at = rig.now;
    rig.send(b(), 3);
    (2..5).for_each(|chunk| copy(&mut rig, FIRST + chunk, a()));
    rig.now += Span::from_millis(20);
    sack((&mut rig, &mut recovery), 5, &[]).expect("a valid SACK");
    assert_eq!(rig.in_flight(b()), 3);
    // One copy is reported. Three later packets of path b() overtake the other two.
    with_sack(FIRST + 4, &[], &[FIRST + 2], |sack| recovery.on_sack(b(), sack, &mut rig.dispatcher()))
        .expect("a valid SACK");
    rig.send(b(), 3);
    rig.now += Span::from_millis(500);
    assert!(rig.paths.is_uncut_since(b(), sent_at));
    with_sack(FIRST + 7, &[], &[], |sack| recovery.on_sack(b(), sack, &mut rig.dispatcher()))
        .expect("a valid SACK");
    assert_eq!((rig.in_flight(b()), rig.sender.bytes(b()).lost.get()), (0, 2 * CHUNK));
    assert_eq!(rig.sender.bytes(a()).lost.get(), 0);
    assert!(!rig.paths.is_uncut_since(b(), sent_at) && rig.paths.is_uncut_since(a(), sent_at));
    rig.sender.check();
}

#[test]
fn copies_are_not_judged_before_a_copy_is_reported() {
    let (mut rig, mut recovery) = begin(judging());
    measure_round_trips(&mut rig, &mut recovery);
    rig.send(b(), 1);
    copy(&mut rig, FIRST + 2, a());
    rig.now += Span::from_millis(20);
    // A report of a chunk that was sent once is no evidence.
    with_sack(FIRST + 2, &[], &[FIRST], |sack| recovery.on_sack(a(), sack, &mut rig.dispatcher()))
        .expect("a valid SACK");
    rig.send(b(), 3);
    rig.now += Span::from_millis(500);
    with_sack(FIRST + 5, &[], &[], |sack| recovery.on_sack(b(), sack, &mut rig.dispatcher()))
        .expect("a valid SACK");
    assert_eq!((rig.in_flight(b()), rig.sender.bytes(b()).lost.get()), (0, 0));
}

#[test]
fn copy_of_chunk_lost_elsewhere_stays_in_flight_if_judged() {
    for (profile, in_flight, delivered) in [(Profile::rfc9260(), 0, 0), (judging(), 1, CHUNK)] {
        let (mut rig, mut recovery) = begin(profile);
        measure_round_trips(&mut rig, &mut recovery);
        let before = rig.sender.bytes(b()).delivered.get();
        rig.send(b(), 1);
        copy(&mut rig, FIRST + 2, a());
        rig.dispatcher().mark_path_lost(a(), LossCause::Timeout, true);
        assert_eq!((rig.in_flight(a()), rig.in_flight(b())), (0, in_flight));
        rig.sender.check();
        // It arrives before the chunk is retransmitted.
        rig.now += Span::from_millis(1_000);
        sack((&mut rig, &mut recovery), 3, &[]).expect("a valid SACK");
        assert_eq!((rig.in_flight(a()), rig.in_flight(b())), (0, 0));
        assert_eq!(rig.sender.bytes(b()).delivered.get() - before, delivered);
    }
}

#[test]
fn arrived_copy_is_credited_and_retransmission_stays_in_flight() {
    let (mut rig, mut recovery) = begin(judging());
    measure_round_trips(&mut rig, &mut recovery);
    rig.send(b(), 1);
    copy(&mut rig, FIRST + 2, a());
    rig.dispatcher().mark_path_lost(a(), LossCause::Timeout, true);
    rig.now += Span::from_millis(995);
    rig.resend(FIRST + 2, a());
    rig.now += Span::from_millis(5);
    sack((&mut rig, &mut recovery), 3, &[]).expect("a valid SACK");
    assert_eq!((rig.in_flight(a()), rig.in_flight(b())), (1, 0));
    rig.sender.check();
}

#[test]
fn copy_of_chunk_lost_elsewhere_is_lost_once_later_packets_overtake_it() {
    let (mut rig, mut recovery) = begin(judging());
    recovery.peer_reports_duplicates = true;
    measure_round_trips(&mut rig, &mut recovery);
    rig.send(b(), 1);
    copy(&mut rig, FIRST + 2, a());
    rig.dispatcher().mark_path_lost(a(), LossCause::Timeout, true);
    rig.now += Span::from_millis(1);
    rig.send(b(), 3);
    rig.now += Span::from_millis(1_000);
    with_sack(FIRST + 1, &[(2, 4)], &[], |sack| recovery.on_sack(b(), sack, &mut rig.dispatcher()))
        .expect("a valid SACK");
    assert_eq!((rig.in_flight(b()), rig.sender.bytes(b()).lost.get()), (0, CHUNK));
    rig.sender.check();
}

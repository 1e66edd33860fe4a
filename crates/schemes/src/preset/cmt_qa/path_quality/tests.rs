//! Tests of PQEM's two events that update Q, its initial sample, and the paths that it withdraws.

use super::*;
use crate::estimator::advised;
use crate::testing::{M, World, bytes, path};
use anabranch_core::policy::{AckedTransmission, SendStamps, StateCause};
use anabranch_core::profile::Profile;

const RULES: QualityRules = QualityRules {
    bound: Bound::Upper,
    quantile: 1.96,
    initial: InitialSample::RoundTrips,
    group: GroupSpan::Interval,
    losses: LossUnit::Chunk,
    withdrawal_limit: WithdrawalLimit::Rto,
    samples_to_judge: 2,
    readmission: Readmission::Heartbeat,
};

/// World at 0 s with an estimator that receives its events. Path 0 has an SRTT of 100 ms and an RTO of 1 s.
struct Scene {
    world: World,
    estimator: QualityEstimator,
    next_tsn: u64,
}

impl Scene {
    fn new(rules: QualityRules) -> Self {
        let mut world = World::new(Profile::rfc9260_multipath(), 2);
        world.now = Time::ZERO;
        for facts in &mut world.paths {
            facts.rtt.smoothed = Some(Span::from_millis(100));
            facts.rtt.variance = Some(Span::from_millis(10));
            facts.rto = Span::from_secs(1);
        }
        Scene { world, estimator: QualityEstimator::new(rules), next_tsn: 1 }
    }

    /// Creates a scene after an initial sample of three round trips of 100 ms.
    fn begun(rules: QualityRules) -> Self {
        let mut scene = Scene::new(rules);
        scene.rtt(100, false);
        scene
    }

    fn at(&mut self, ms: u64) -> &mut Self {
        self.world.now = Time::from_nanos(ms * 1_000_000);
        self
    }

    fn dispatch(&mut self, event: &Event<'_>) {
        self.world.dispatch(&mut self.estimator, event);
    }

    fn rtt(&mut self, ms: u64, heartbeat: bool) {
        self.dispatch(&Event::RttSample { path: path(0), rtt: Span::from_millis(ms), heartbeat });
    }

    fn bind(&mut self) -> u64 {
        let tsn = self.next_tsn;
        self.next_tsn += 1;
        self.dispatch(&Event::Bound { path: path(0), tsn, bytes: bytes(M) });
        tsn
    }

    fn send(&mut self, tsn: u64, kind: SendKind) {
        let sent = SentTransmission { path: path(0), previous_path: None, tsn, bytes: bytes(M), kind };
        self.dispatch(&Event::Sent(&sent));
    }

    /// Sends new data without a binding.
    fn send_new(&mut self, chunks: u64) {
        for tsn in self.next_tsn..self.next_tsn + chunks {
            self.send(tsn, SendKind::New);
        }
        self.next_tsn += chunks;
    }

    fn ack(&mut self, tsn: u64, sent_once: bool) {
        let acked = AckedTransmission {
            path: path(0),
            tsn,
            bytes: bytes(M),
            stamps: SendStamps::default(),
            sent_once,
            certain: sent_once,
            cumulative: true,
            sack_path: Some(path(0)),
        };
        self.dispatch(&Event::Acked(&acked));
    }

    fn lose(&mut self, tsn: u64, cause: LossCause) {
        self.dispatch(&Event::Lost { path: path(0), tsn, bytes: bytes(M), sent_at: Time::default(), cause });
    }

    /// Loses a chunk `ms` milliseconds after the first transmission.
    fn sample(&mut self, from: u64, ms: u64) {
        self.at(from).send_new(1);
        self.at(from + ms).send_new(1);
        let tsn = self.next_tsn - 1;
        self.lose(tsn, LossCause::FastRetransmit);
    }

    fn q(&self) -> Option<f64> {
        self.estimator.estimates(path(0)).seconds_per_byte
    }

    fn withdrawn(&self) -> bool {
        self.estimator.estimates(path(0)).withdrawn
    }

    fn deadline_ms(&self) -> Option<u64> {
        self.estimator.deadline().map(|at| at.as_nanos() / 1_000_000)
    }

    fn state(&mut self, to: PathState) {
        let cause = StateCause::Proof(anabranch_core::policy::LivenessProof::Heartbeat);
        self.dispatch(&Event::PathState { path: path(0), from: PathState::PotentiallyFailed, to, cause });
    }
}

fn close(q: Option<f64>, expected: f64) {
    let q = q.expect("a figure");
    assert!((q - expected).abs() < 1e-12, "{q} is not {expected}");
}

#[test]
fn unused_path_has_no_quality() {
    let scene = Scene::new(RULES);
    assert_eq!(scene.estimator.estimates(path(0)), Estimates::default());
    assert_eq!(scene.estimator.deadline(), None);
}

#[test]
fn q_is_measured_when_the_interval_has_elapsed() {
    let mut scene = Scene::begun(RULES);
    // The only sample is the initial one: 3 x 100 ms, from the first chunk on.
    scene.at(50).send_new(4);
    assert_eq!(scene.deadline_ms(), Some(350));
    scene.at(250).ack(1, true);
    scene.ack(2, true);
    assert_eq!(scene.q(), None, "not before the interval's end");
    scene.at(350).dispatch(&Event::Deadline);
    // T_l - T_e = 200 ms for the 2936 B that have left.
    close(scene.q(), 0.2 / 2936.0);
    assert_eq!(scene.deadline_ms(), None, "the next interval begins with the next chunk");
    scene.at(400).send_new(1);
    assert_eq!(scene.deadline_ms(), Some(700));
}

#[test]
fn deadline_of_another_slot_is_ignored() {
    let mut scene = Scene::begun(RULES);
    scene.at(50).send_new(1);
    scene.at(150).ack(1, true);
    scene.at(349).dispatch(&Event::Deadline);
    assert_eq!((scene.q(), scene.deadline_ms()), (None, Some(350)));
}

#[test]
fn q_is_measured_at_each_loss() {
    let mut scene = Scene::begun(RULES);
    scene.at(0).send_new(4);
    scene.at(120).ack(1, true);
    scene.ack(2, true);
    scene.at(130).lose(3, LossCause::FastRetransmit);
    close(scene.q(), 0.12 / 2936.0);
    // Nothing was measured since, so Q is unchanged.
    scene.at(140).lose(4, LossCause::Timeout);
    close(scene.q(), 0.12 / 2936.0);
}

#[test]
fn with_bindings_a_chunk_enters_as_it_is_bound_and_without_as_it_is_sent() {
    for bound in [true, false] {
        let mut scene = Scene::begun(RULES);
        scene.at(10);
        if bound {
            assert_eq!(scene.bind(), 1);
        }
        scene.at(60).send(1, SendKind::New);
        scene.at(160).ack(1, true);
        scene.at(400).dispatch(&Event::Deadline);
        close(scene.q(), if bound { 0.15 } else { 0.1 } / 1468.0);
    }
}

#[test]
fn retransmissions_and_copies_are_not_counted() {
    for kind in [SendKind::Retransmission, SendKind::Copy, SendKind::HeadOfLine, SendKind::TailProbe] {
        let mut scene = Scene::begun(RULES);
        scene.at(10).send(7, kind);
        assert_eq!(scene.deadline_ms(), None, "{kind:?}");
    }
}

#[test]
fn ambiguous_ack_is_not_measured() {
    let mut scene = Scene::begun(RULES);
    scene.at(0).send_new(2);
    scene.at(100).ack(1, false);
    scene.at(300).dispatch(&Event::Deadline);
    assert_eq!(scene.q(), None);
}

#[test]
fn returned_chunk_is_not_awaited() {
    let rules = QualityRules { group: GroupSpan::Window, ..RULES };
    let mut scene = Scene::begun(rules);
    scene.at(0).bind();
    scene.bind();
    scene.dispatch(&Event::Unbound { path: path(0), tsn: 2, bytes: bytes(M) });
    scene.at(100).ack(1, true);
    scene.at(300).dispatch(&Event::Deadline);
    close(scene.q(), 0.1 / 1468.0);
}

#[test]
fn a_group_of_a_window_ends_with_the_windows_last_chunk() {
    // The window is 4380 B: chunks 1 to 3 form the group.
    let mut scene = Scene::begun(QualityRules { group: GroupSpan::Window, ..RULES });
    scene.at(0).send_new(5);
    scene.at(110);
    (1..=3).for_each(|tsn| scene.ack(tsn, true));
    scene.at(290);
    (4..=5).for_each(|tsn| scene.ack(tsn, true));
    scene.at(300).dispatch(&Event::Deadline);
    close(scene.q(), 0.11 / 4404.0);
}

#[test]
fn initial_sample_follows_its_parameter() {
    // Three round trips of 200 ms; three HB.intervals of 30 s; none, without an interval before a loss.
    for (initial, interval_ms) in [
        (InitialSample::RoundTrips, Some(600)),
        (InitialSample::HeartbeatIntervals, Some(90_000)),
        (InitialSample::Nothing, None),
    ] {
        let mut scene = Scene::new(QualityRules { initial, ..RULES });
        scene.at(0).rtt(200, true);
        scene.rtt(900, true);
        scene.send_new(1);
        assert_eq!(scene.deadline_ms(), interval_ms, "{initial:?}");
    }
}

#[test]
fn no_interval_is_shorter_than_a_round_trip() {
    let mut scene = Scene::new(QualityRules { initial: InitialSample::Nothing, ..RULES });
    scene.sample(0, 40);
    scene.at(1000).send_new(1);
    assert_eq!(scene.deadline_ms(), Some(1100), "40 ms, but SRTT is 100 ms");
    scene.world.paths[0].rtt.smoothed = None;
    scene.at(1100).dispatch(&Event::Deadline);
    scene.at(1200).send_new(1);
    assert_eq!(scene.deadline_ms(), Some(1240));
}

#[test]
fn the_interval_comes_from_all_samples_by_equation_6() {
    let mut scene = Scene::begun(RULES);
    scene.sample(1000, 2300);
    // 0.3 s and 2.3 s: mean 1.3 s, S = sqrt(2), 1.96 x S / sqrt(2) = 1.96 s; upper end 3.26 s.
    scene.at(5000).send_new(1);
    assert_eq!(scene.deadline_ms(), Some(8260));
    for (bound, ms) in [(Bound::Mean, 1300), (Bound::Lower, 100)] {
        let mut scene = Scene::begun(QualityRules { bound, ..RULES });
        scene.sample(1000, 2300);
        scene.at(5000).send_new(1);
        assert_eq!(scene.deadline_ms(), Some(5000 + ms), "{bound:?}; the lower end is below SRTT");
    }
}

#[test]
fn a_path_is_withdrawn_if_its_interval_is_less_than_its_rto() {
    // The interval is 0.3 s and x: x = 0.5: mean 0.4, S = 0.141421, upper end 0.4 + 0.196 = 0.596 s.
    for (rto_ms, withdrawn) in [(597, true), (596, false), (595, false)] {
        let mut scene = Scene::begun(RULES);
        scene.world.paths[0].rto = Span::from_millis(rto_ms);
        scene.sample(1000, 500);
        assert_eq!(scene.withdrawn(), withdrawn, "RTO {rto_ms} ms");
    }
}

#[test]
fn the_interval_may_be_held_against_the_unclamped_time_out_or_nothing() {
    // 0.596 s as above; SRTT + 4 RTTVAR = 140 ms, and 700 ms with an RTTVAR of 150 ms.
    for (withdrawal_limit, variance_ms, withdrawn) in [
        (WithdrawalLimit::Unclamped, 10, false),
        (WithdrawalLimit::Unclamped, 150, true),
        (WithdrawalLimit::Unlimited, 150, false),
        (WithdrawalLimit::Rto, 10, true),
    ] {
        let mut scene = Scene::begun(QualityRules { withdrawal_limit, ..RULES });
        scene.world.paths[0].rtt.variance = Some(Span::from_millis(variance_ms));
        scene.sample(1000, 500);
        assert_eq!(scene.withdrawn(), withdrawn, "{withdrawal_limit:?} {variance_ms}");
    }
    let mut scene = Scene::begun(QualityRules { withdrawal_limit: WithdrawalLimit::Unclamped, ..RULES });
    scene.world.paths[0].rtt.variance = None;
    scene.sample(1000, 1);
    assert!(!scene.withdrawn(), "nothing to hold it against");
}

#[test]
fn path_with_too_few_samples_is_not_withdrawn() {
    let scene = Scene::begun(RULES);
    assert!(!scene.withdrawn(), "0.3 s are less than an RTO of 1 s, but nothing was lost");
    let mut scene = Scene::begun(QualityRules { samples_to_judge: 3, ..RULES });
    scene.sample(1000, 100);
    assert!(!scene.withdrawn());
    scene.sample(2000, 100);
    assert!(scene.withdrawn());
}

#[test]
fn withdrawn_path_returns_after_a_better_sample() {
    let mut scene = Scene::begun(RULES);
    scene.sample(1000, 100);
    assert!(scene.withdrawn());
    scene.sample(2000, 5000);
    assert!(!scene.withdrawn());
}

#[test]
fn withdrawal_ends_as_configured() {
    for (readmission, by_heartbeat, by_interval) in [
        (Readmission::Heartbeat, true, false),
        (Readmission::Interval, false, true),
        (Readmission::Recovery, false, false),
    ] {
        let rules = QualityRules { readmission, ..RULES };
        let withdrawn = || {
            let mut scene = Scene::begun(rules);
            scene.sample(1000, 100);
            assert!(scene.withdrawn());
            scene
        };
        let mut scene = withdrawn();
        scene.rtt(100, false);
        assert!(scene.withdrawn(), "data proves nothing");
        scene.rtt(100, true);
        assert_eq!(!scene.withdrawn(), by_heartbeat, "{readmission:?}");
        let mut scene = withdrawn();
        // 0.3 s and 0.1 s: upper end 0.2 + 1.96 x 0.141421 / 1.414214 = 0.396 s after the loss at 1.1 s.
        assert_eq!(scene.deadline_ms(), by_interval.then_some(1496), "{readmission:?}");
        scene.at(1496).dispatch(&Event::Deadline);
        assert_eq!(!scene.withdrawn(), by_interval, "{readmission:?}");
        assert_eq!(scene.deadline_ms(), None);
        let mut scene = withdrawn();
        scene.state(PathState::Active);
        assert!(!scene.withdrawn(), "it failed and came back");
    }
}

#[test]
fn with_events_as_losses_single_chunks_end_no_sample() {
    let mut scene = Scene::begun(QualityRules { losses: LossUnit::Event, ..RULES });
    scene.at(0).send_new(2);
    scene.at(100).ack(1, true);
    scene.lose(2, LossCause::FastRetransmit);
    assert_eq!(scene.q(), None);
    scene.dispatch(&Event::LossEvent { path: path(0), cause: LossCause::FastRetransmit });
    close(scene.q(), 0.1 / 1468.0);
    // Conversely, an event alone ends no sample if chunks do.
    let mut scene = Scene::begun(RULES);
    scene.at(0).send_new(2);
    scene.at(100).ack(1, true);
    scene.dispatch(&Event::LossEvent { path: path(0), cause: LossCause::Timeout });
    assert_eq!(scene.q(), None);
}

#[test]
fn a_chunk_that_was_only_moved_is_no_loss() {
    for losses in [LossUnit::Chunk, LossUnit::Event] {
        let mut scene = Scene::begun(QualityRules { losses, ..RULES });
        scene.at(0).send_new(2);
        scene.at(10).ack(1, true);
        scene.lose(2, LossCause::Rescheduled);
        scene.dispatch(&Event::LossEvent { path: path(0), cause: LossCause::Rescheduled });
        assert_eq!((scene.q(), scene.withdrawn()), (None, false));
    }
}

#[test]
fn a_new_path_under_an_old_id_begins_with_nothing() {
    let mut scene = Scene::begun(RULES);
    scene.at(0).send_new(2);
    scene.at(100).ack(1, true);
    scene.lose(2, LossCause::FastRetransmit);
    scene.sample(1000, 10);
    assert!(scene.withdrawn() && scene.q().is_some());
    scene.dispatch(&Event::PathAdded(path(0)));
    assert_eq!(scene.estimator.estimates(path(0)), Estimates::default());
    assert_eq!(scene.deadline_ms(), None);
}

#[test]
fn loss_rate_is_measured_too() {
    let mut scene = Scene::begun(RULES);
    scene.world.paths[0].sent = bytes(8 * M);
    scene.world.paths[0].lost = bytes(2 * M);
    scene.lose(1, LossCause::FastRetransmit);
    assert_eq!(scene.estimator.estimates(path(0)).loss_rate, Some(0.25));
}

#[test]
fn advice_against_every_active_path_is_no_advice() {
    let mut world = World::new(Profile::rfc9260_multipath(), 3);
    let all = |world: &World| advised(&world.view()).iter().map(PathId::index).collect::<Vec<_>>();
    assert_eq!(all(&world), [0, 1, 2]);
    world.paths[1].estimates.withdrawn = true;
    assert_eq!(all(&world), [0, 2]);
    world.paths[0].state = PathState::PotentiallyFailed;
    assert_eq!(all(&world), [2]);
    world.paths[2].estimates.withdrawn = true;
    assert_eq!(all(&world), [1, 2], "all that are active");
    world.paths.iter_mut().for_each(|facts| facts.state = PathState::Inactive);
    assert!(advised(&world.view()).is_empty());
}

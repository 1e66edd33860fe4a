//! Checks that every parameter of `cmt-qa` reaches its rule.

use super::*;
use crate::preset::cmt_qa::data_distribution::{Allowance, Distributed, Piece, QueueBound};
use crate::preset::cmt_qa::path_quality::{
    Bound, GroupSpan, InitialSample, LossUnit, Readmission, WithdrawalLimit,
};
use crate::preset::cmt_qa::random_loss::{Consecutive, Reading, RoundTrip};
use crate::registry::parse;
use crate::testing::{ASK, M, World, bytes, lost_on, path};
use anabranch_core::PathState;
use anabranch_core::policy::{Event, LossCause, Pick, Probing, RetransmitChoice, Scheme, WaitFor};
use anabranch_core::profile::Profile;
use anabranch_core::time::Span;
use anabranch_core::units::WindowBytes;

/// Returns the parameter values of an expression's argument list.
fn values(text: &str) -> Values {
    let mut values = Values::defaults(PARAMETERS);
    for pair in text.split(',').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').expect("name=value");
        let at = PARAMETERS.iter().position(|p| p.name == name).expect("a parameter");
        values.values[at] = PARAMETERS[at].read(value).expect("a value");
    }
    values
}

/// Returns the policies of the scheme beside two paths: the first has the shorter round-trip time, the second the larger window.
fn built(text: &str) -> (Policies, World) {
    let scheme = parse(text).expect(text);
    let mut world = World::new(scheme.profile(Profile::ns2_multipath()), 2);
    world.association.peer_window = WindowBytes::new(1 << 20);
    for (facts, (ms, cwnd)) in world.paths.iter_mut().zip([(80, 20_000), (200, 40_000)]) {
        facts.rtt.smoothed = Some(Span::from_millis(ms));
        facts.cwnd = bytes(cwnd);
    }
    (scheme.policies(), world)
}

#[test]
fn each_part_can_be_disabled() {
    for (text, binds, least_delay, measures) in [
        ("cmt-qa", true, true, true),
        ("cmt-qa(dds=false)", false, true, true),
        ("cmt-qa(orp=false)", true, false, true),
        ("cmt-qa(pqem=false)", true, true, false),
        ("cmt-qa(pqem=false,dds=false)", false, true, false),
        ("cmt-qa(pqem=false,orp=false)", true, false, false),
        ("cmt-qa(dds=false,orp=false)", false, false, true),
        ("cmt-qa(pqem=false,dds=false,orp=false)", false, false, false),
    ] {
        let (mut policies, mut world) = built(text);
        world.begin_send_opportunity(&mut *policies.scheduler);
        let pick = world.pick(&mut *policies.scheduler).choice;
        assert_eq!(pick, if binds { Pick::Bind(path(0)) } else { Pick::Path(path(0)) }, "{text}");
        let route = world.route(&mut *policies.retransmit, lost_on(1, LossCause::Timeout)).choice;
        assert_eq!(
            route,
            RetransmitChoice::Path(path(usize::from(!least_delay))),
            "{text}: else the largest window"
        );
        world.paths[0].error_count = 1;
        let state = policies.failover.on_error(path(0), false, &world.view()).choice;
        assert_eq!(state == PathState::PotentiallyFailed, least_delay, "{text}");
        let rtt = Event::RttSample { path: path(0), rtt: Span::from_millis(80), heartbeat: true };
        world.dispatch(&mut *policies.estimator, &rtt);
        world.dispatch(&mut *policies.estimator, &Event::Bound { path: path(0), tsn: 1, bytes: bytes(M) });
        assert_eq!(policies.estimator.deadline().is_some(), measures, "{text}");
    }
}

#[test]
fn without_orp_the_rtx_parameter_decides() {
    let (mut policies, mut world) = built("cmt-qa(orp=false,rtx=rtx-same)");
    let route = world.route(&mut *policies.retransmit, lost_on(0, LossCause::FastRetransmit)).choice;
    assert_eq!(route, RetransmitChoice::Path(path(0)));
}

#[test]
fn random_loss_keeps_the_window_only_with_pqem() {
    for (text, q, kept) in [
        ("cmt-qa", Some(1e-9), true),
        ("cmt-qa", Some(1.0), false),
        ("cmt-qa", None, false),
        ("cmt-qa(orp=false)", Some(1e-9), false),
        ("cmt-qa(algorithm-3=printed)", Some(1e-9), false),
    ] {
        let (mut policies, mut world) = built(text);
        let mut tell =
            |world: &mut World, event: &Event<'_>| world.dispatch(&mut *policies.congestion, event);
        tell(&mut world, &Event::Established);
        world.paths[0].estimates.seconds_per_byte = q;
        tell(&mut world, &Event::LossEvent { path: path(0), cause: LossCause::FastRetransmit });
        // 4380 B; max(2190, 4 x 1468) = 5872: the floor is 4 MTU in every profile.
        let cwnd = policies.congestion.window(path(0)).cwnd.get();
        assert_eq!(cwnd, if kept { 4380 } else { 5872 }, "{text} {q:?}");
    }
}

#[test]
fn the_estimators_parameters_arrive() {
    let default = QualityRules {
        bound: Bound::Upper,
        quantile: 1.96,
        initial: InitialSample::RoundTrips,
        group: GroupSpan::Interval,
        losses: LossUnit::Event,
        withdrawal_limit: WithdrawalLimit::Rto,
        samples_to_judge: 2,
        readmission: Readmission::Heartbeat,
    };
    for (text, expected) in [
        ("", default),
        ("bound=lower", QualityRules { bound: Bound::Lower, ..default }),
        ("bound=mean", QualityRules { bound: Bound::Mean, ..default }),
        ("confidence=80", QualityRules { quantile: 1.282, ..default }),
        ("confidence=90", QualityRules { quantile: 1.645, ..default }),
        ("confidence=98", QualityRules { quantile: 2.326, ..default }),
        ("confidence=99", QualityRules { quantile: 2.576, ..default }),
        ("initial-sample=heartbeat", QualityRules { initial: InitialSample::HeartbeatIntervals, ..default }),
        ("initial-sample=none", QualityRules { initial: InitialSample::Nothing, ..default }),
        ("group=window", QualityRules { group: GroupSpan::Window, ..default }),
        ("loss-unit=chunk", QualityRules { losses: LossUnit::Chunk, ..default }),
        (
            "inactive-below=unclamped",
            QualityRules { withdrawal_limit: WithdrawalLimit::Unclamped, ..default },
        ),
        ("inactive-below=never", QualityRules { withdrawal_limit: WithdrawalLimit::Unlimited, ..default }),
        ("judge-after=7", QualityRules { samples_to_judge: 7, ..default }),
        ("readmit=interval", QualityRules { readmission: Readmission::Interval, ..default }),
        ("readmit=recovery", QualityRules { readmission: Readmission::Recovery, ..default }),
    ] {
        assert_eq!(QualityRules::from_values(&values(text)), expected, "{text}");
    }
}

#[test]
fn the_schedulers_parameters_arrive() {
    let default = DistributionRules {
        piece: Piece::Round,
        distributed: Distributed::Period,
        allowance: Allowance::Running,
        queue_bound: QueueBound::Window,
        closeness: 0.0,
        replans: false,
    };
    for (text, expected) in [
        ("", default),
        ("piece=chunk", DistributionRules { piece: Piece::Chunk, ..default }),
        ("distributed=undelivered", DistributionRules { distributed: Distributed::Undelivered, ..default }),
        ("d-max=period", DistributionRules { allowance: Allowance::Period, ..default }),
        ("d-max=none", DistributionRules { allowance: Allowance::PeerWindow, ..default }),
        ("queue=clamped", DistributionRules { queue_bound: QueueBound::Clamped, ..default }),
        ("queue=pooled", DistributionRules { queue_bound: QueueBound::Pooled, ..default }),
        ("queue=rounds", DistributionRules { queue_bound: QueueBound::Frequency, ..default }),
        ("closeness=2.5", DistributionRules { closeness: 2.5, ..default }),
        ("replan=true", DistributionRules { replans: true, ..default }),
    ] {
        assert_eq!(DistributionRules::from_values(&values(text)), expected, "{text}");
    }
}

#[test]
fn the_retransmission_policys_parameters_arrive() {
    let default = RandomLossRules {
        consecutive: Consecutive::RoundTrip,
        reading: Reading::Else,
        rtt: RoundTrip::Smoothed,
        timeouts_may_be_random: false,
    };
    for (text, expected) in [
        ("", default),
        ("consecutive=window", RandomLossRules { consecutive: Consecutive::Window, ..default }),
        ("consecutive=never", RandomLossRules { consecutive: Consecutive::Never, ..default }),
        ("algorithm-3=printed", RandomLossRules { reading: Reading::Printed, ..default }),
        ("loss-rtt=latest", RandomLossRules { rtt: RoundTrip::Latest, ..default }),
        ("excuse-t3=true", RandomLossRules { timeouts_may_be_random: true, ..default }),
    ] {
        assert_eq!(RandomLossRules::from_values(&values(text)), expected, "{text}");
    }
    // By half the round-trip time path 0 is nearer; by handling time it is not if its Q is large. If full, it is waited for or not.
    for (text, full, to) in [
        ("cmt-qa", false, Some(0)),
        ("cmt-qa(delay=handling)", false, Some(1)),
        ("cmt-qa", true, Some(1)),
        ("cmt-qa(await-room=true)", true, None),
    ] {
        let (mut policies, mut world) = built(text);
        world.paths[0].estimates.seconds_per_byte = Some(1e-3);
        if full {
            world.paths[0].in_flight = world.paths[0].cwnd;
        }
        let route = world.route(&mut *policies.retransmit, lost_on(1, LossCause::FastRetransmit)).choice;
        assert_eq!(
            route,
            to.map_or(RetransmitChoice::Wait(WaitFor::Window), |index| RetransmitChoice::Path(path(index))),
            "{text}, full: {full}"
        );
    }
}

#[test]
fn three_missing_reports_make_a_loss_and_four_chunks_are_the_floor() {
    let scheme = parse("cmt-qa").expect("a preset");
    let profile = scheme.profile(Profile::ns2_multipath());
    assert_eq!((profile.fast_retransmit_floor, profile.timeout_floor), (4, 4));
    assert_eq!(values("").number("trigger"), 3);
}

#[test]
fn parts_cooperate_on_one_path_from_binding_to_withdrawal() {
    let (mut policies, mut world) = built("cmt-qa");
    world.paths[0].rto = Span::from_secs(1);
    world.paths[1].state = PathState::Inactive;
    let pick = world.with(|view, context| policies.scheduler.pick(&ASK, view, context)).choice;
    assert_eq!(pick, Pick::Bind(path(0)));
    world.paths[0].estimates.withdrawn = true;
    let probing = policies.failover.probing(path(0), &world.view());
    assert_eq!(probing, Probing::EveryRto);
    let pick = world.with(|view, context| policies.scheduler.pick(&ASK, view, context)).choice;
    assert_eq!(pick, Pick::Bind(path(0)), "the only path is used all the same");
}

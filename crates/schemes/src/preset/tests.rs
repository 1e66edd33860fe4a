//! Checks that every preset builds the policies of its name and parameters.

use super::*;
use crate::registry::parse;
use crate::testing::{M, World, bytes, lost_on, path, routed};
use anabranch_core::PathState;
use anabranch_core::policy::{
    AckTiming, Arrival, Event, LivenessProof, LossCause, Missing, MissingVerdict, PathAck, PathSack, Pick,
    Policies, RetransmitChoice, SackDone, SackView, Scheme, StateCause,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};
use anabranch_core::units::WindowBytes;

#[test]
fn the_defaults_are_those_of_the_papers() {
    let text = |name: &str| {
        let preset = PRESETS.iter().find(|p| p.name == name).expect("a preset");
        let pairs = preset.parameters.iter().map(|p| format!("{}={}", p.name, p.default));
        pairs.collect::<Vec<_>>().join(",")
    };
    assert_eq!(text("sctp"), "rtx=alternate-on-timeout,trigger=3,sack-every=2,sack-delay=200,floor=profile");
    assert_eq!(
        text("cmt"),
        "rtx=rtx-cwnd,trigger=3,sfr=true,cuc=true,dac=true,sack-every=2,sack-delay=200,floor=profile"
    );
    assert_eq!(
        text("naive-cmt"),
        "rtx=rtx-cwnd,trigger=3,sfr=false,cuc=false,dac=false,sack-every=2,sack-delay=200,floor=profile"
    );
    assert_eq!(
        text("cmt-pf"),
        "pf=pf2,rtx=rtx-cwnd,trigger=3,sfr=true,cuc=true,dac=true,sack-every=2,sack-delay=200,floor=profile"
    );
    assert_eq!(
        text("cmt-qa"),
        "pqem=true,dds=true,orp=true,\
         bound=upper,confidence=95,initial-sample=rtt,group=interval,loss-unit=event,\
         inactive-below=rto,judge-after=2,readmit=heartbeat,\
         piece=round,distributed=period,d-max=running,queue=window,closeness=0,replan=false,\
         algorithm-3=else,consecutive=rtt,loss-rtt=srtt,excuse-t3=false,delay=half-rtt,await-room=false,\
         rtx=rtx-cwnd,trigger=3,sfr=true,cuc=true,dac=true,sack-every=2,sack-delay=200,floor=4"
    );
}

#[test]
fn bonded_preset_decides_as_the_expression_of_its_parts() {
    use crate::conformance::decisions;
    let parts = "cmt-pf(sack-delay=50,rtx=rtx-soonest)+ecf+opportunistic(penalise=false)+split(by=outstanding)+rack(ack-delay=50)";
    assert!(decisions("bonded", "net", 7) == decisions(parts, "net", 7));
    assert!(decisions("bonded", "net", 7) != decisions("cmt-pf", "net", 7));
}

/// Returns the policies of an expression beside three active paths: the first has the largest window, the second the largest
/// threshold, the third the lowest loss rate.
fn built(text: &str) -> (Policies, World) {
    let mut world = World::new(Profile::ns2_multipath(), 3);
    let figures = [(9000, 4000, 0.03), (8000, 7000, 0.02), (7000, 5000, 0.01)];
    for (facts, (cwnd, ssthresh, loss_rate)) in world.paths.iter_mut().zip(figures) {
        facts.cwnd = bytes(cwnd);
        facts.ssthresh = bytes(ssthresh);
        facts.estimates.loss_rate = Some(loss_rate);
    }
    (parse(text).expect(text).policies(), world)
}

#[test]
fn each_multipath_name_of_a_retransmission_policy_builds_that_policy() {
    for preset in ["naive-cmt", "cmt", "cmt-pf"] {
        for (name, to) in [("rtx-cwnd", 0), ("rtx-ssthresh", 1), ("rtx-lossrate", 2), ("rtx-same", 1)] {
            let (mut policies, mut world) = built(&format!("{preset}(rtx={name})"));
            let choice = world.route(&mut *policies.retransmit, lost_on(1, LossCause::Timeout)).choice;
            assert_eq!(choice, RetransmitChoice::Path(path(to)), "{preset}: {name}");
        }
        let (mut policies, mut world) = built(&format!("{preset}(rtx=rtx-asap)"));
        let mut asap = || routed(&world.route(&mut *policies.retransmit, lost_on(1, LossCause::Timeout)));
        let first = asap();
        assert!((0..100).any(|_| asap() != first), "only this one throws coins between unequal paths");
    }
}

#[test]
fn each_single_path_name_of_a_retransmission_policy_builds_that_policy() {
    for (name, found, timed_out) in [("alternate-on-timeout", 0, 1), ("alternate", 1, 1), ("rtx-same", 0, 0)]
    {
        let (mut policies, mut world) = built(&format!("sctp(rtx={name})"));
        let mut to = |cause| routed(&world.route(&mut *policies.retransmit, lost_on(0, cause))).index();
        assert_eq!([to(LossCause::FastRetransmit), to(LossCause::Timeout)], [found, timed_out], "{name}");
    }
}

#[test]
fn only_single_path_schemes_keep_to_the_primary_path() {
    // Full windows do not stop `cmt-qa`: excess data waits in the path's queue.
    for preset in PRESETS.iter().filter(|preset| preset.name != "cmt-qa") {
        let (mut policies, mut world) = built(preset.name);
        world.paths[0].in_flight = world.paths[0].cwnd;
        world.association.last_new_data_path = Some(path(0));
        world.begin_send_opportunity(&mut *policies.scheduler);
        let elsewhere = world.pick(&mut *policies.scheduler).choice == Pick::Path(path(1));
        assert_eq!(elsewhere, preset.multipath, "{}: the primary path's window is full", preset.name);
    }
}

#[test]
fn the_window_grows_with_the_gate_that_cuc_selects() {
    for (text, own) in [("sctp", false), ("naive-cmt", false), ("cmt(cuc=false)", false), ("cmt", true)] {
        let (mut policies, mut world) = built(text);
        world.dispatch(&mut *policies.congestion, &Event::Established);
        let ack = PathAck {
            gap: bytes(M),
            new_pseudo_cumulative: true,
            in_flight_before: bytes(3 * M),
            in_flight_after: bytes(2 * M),
            ..PathAck::default()
        };
        let done = SackDone { paths: &[ack], new_cumulative: false, cumulative: 100 };
        world.dispatch(&mut *policies.congestion, &Event::SackDone(&done));
        let cwnd = policies.congestion.window(path(0)).cwnd.get();
        assert_eq!(cwnd, if own { 5848 } else { 4380 }, "{text}");
    }
}

/// Returns the verdict of a SACK for three packets that acknowledges a chunk above a hole, on the hole's path or on another.
fn reported(text: &str, on_own_path: bool) -> MissingVerdict {
    let (mut policies, world) = built(text);
    let own = PathSack {
        new_gap_ack: true,
        new_cumulative_ack: false,
        lowest_newly_acked: Some(105),
        highest_gap_acked: Some(105),
        latest_sent_at: None,
    };
    let paths = if on_own_path { [own, PathSack::default()] } else { [PathSack::default(), own] };
    let (cumulative, highest_newly_acked) = (100, 105);
    let sack = SackView {
        paths: &paths,
        cumulative,
        highest_newly_acked,
        new_cumulative: false,
        flags: 3,
        a_rwnd: WindowBytes::new(65_536),
        peer_window: WindowBytes::new(65_536),
    };
    let hole = Missing::sent_once(101, path(0), Time::ZERO);
    policies.loss.missing(&hole, &sack, &world.view())
}

#[test]
fn losses_follow_trigger_sfr_and_dac() {
    let verdict = |reports, lost| MissingVerdict { reports, lost };
    assert_eq!(reported("cmt", true), verdict(3, true));
    assert_eq!(reported("cmt(trigger=4)", true), verdict(3, false));
    assert_eq!(reported("cmt(dac=false)", true), verdict(1, false));
    assert_eq!(reported("cmt", false), verdict(0, false));
    assert_eq!(reported("naive-cmt", false), verdict(1, false));
    assert_eq!(reported("naive-cmt(trigger=1)", false), verdict(1, true));
    assert_eq!(reported("sctp", true), verdict(1, false));
}

#[test]
fn acks_follow_dac_sack_every_and_sack_delay() {
    let timing = |text: &str, packets, gap| {
        let (mut policies, world) = built(text);
        let arrival = Arrival { packets, gap, duplicate: false, immediate: false, first: false };
        policies.ack.timing(&arrival, &world.view()).choice
    };
    let within = |ms| AckTiming::Within(Span::from_millis(ms));
    assert_eq!(timing("cmt", 1, true), within(200));
    assert_eq!(timing("cmt(dac=false)", 1, true), AckTiming::Now);
    assert_eq!(timing("sctp", 1, true), AckTiming::Now);
    assert_eq!(timing("sctp(sack-every=3,sack-delay=50ms)", 2, false), within(50));
    assert_eq!(timing("sctp(sack-every=3,sack-delay=50ms)", 3, false), AckTiming::Together);
}

#[test]
fn time_out_makes_a_path_pf_in_schemes_with_that_state() {
    for preset in PRESETS {
        let (mut policies, mut world) = built(preset.name);
        world.paths[0].error_count = 1;
        let state = policies.failover.on_error(path(0), false, &world.view()).choice;
        let out = ["cmt-pf", "cmt-qa", "bonded", "braid"].contains(&preset.name);
        let expected = if out { PathState::PotentiallyFailed } else { PathState::Active };
        assert_eq!(state, expected, "{}", preset.name);
    }
}

#[test]
fn probed_path_returns_with_the_window_of_pf() {
    for (text, cwnd) in [("cmt-pf", 2936), ("cmt-pf(pf=pf1)", 1468), ("cmt-pf(pf=pf2)", 2936), ("cmt", 4380)]
    {
        let (mut policies, mut world) = built(text);
        world.dispatch(&mut *policies.congestion, &Event::Established);
        world.paths[0].error_count = 1;
        let event = Event::PathState {
            path: path(0),
            from: PathState::PotentiallyFailed,
            to: PathState::Active,
            cause: StateCause::Proof(LivenessProof::Heartbeat),
        };
        world.dispatch(&mut *policies.congestion, &event);
        assert_eq!(policies.congestion.window(path(0)).cwnd, bytes(cwnd), "{text}");
    }
}

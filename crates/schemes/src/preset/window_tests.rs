//! Checks that presets with different windows build the policies of their parameters, with worked numbers; M is 1468 B.

use super::*;
use crate::registry::parse;
use crate::testing::{M, World, bytes, lost_on, path, routed};
use LossCause::{FastRetransmit, Timeout};
use anabranch_core::policy::{
    Event, LossCause, PathAck, Pick, Policies, Reason, RetransmitChoice, SackDone, Scheme, Window,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::Span;

/// Policies of a scheme beside two paths in congestion avoidance. Round-trip times: 200 ms smoothed, 125 ms latest, 100 ms minimum.
struct Rig {
    world: World,
    policies: Policies,
}

impl Rig {
    fn new(text: &str) -> Self {
        let scheme = parse(text).expect(text);
        let mut rig = Rig {
            world: World::new(scheme.profile(Profile::ns2_multipath()), 2),
            policies: scheme.policies(),
        };
        rig.dispatch(&Event::Established);
        for index in 0..2 {
            rig.set(index, 20_000);
            let rtt = &mut rig.world.paths[index].rtt;
            rtt.smoothed = Some(Span::from_millis(200));
            rtt.latest = Some(Span::from_millis(125));
            rtt.min = Some(Span::from_millis(100));
        }
        rig
    }

    fn dispatch(&mut self, event: &Event<'_>) {
        self.world.dispatch(&mut *self.policies.congestion, event);
    }

    fn set(&mut self, index: usize, cwnd: u64) {
        let window = Window { cwnd: bytes(cwnd), ssthresh: bytes(1000), ..Window::default() };
        let view = self.world.view();
        self.policies.congestion.set_window(path(index), window, Reason::rule("test"), &view);
        self.world.paths[index].cwnd = bytes(cwnd);
    }

    fn cwnd(&self, index: usize) -> u64 {
        self.policies.congestion.window(path(index)).cwnd.get()
    }

    /// Returns the first path's cwnd after `acked` bytes of a full window were acknowledged.
    fn acked(&mut self, acked: u64) -> u64 {
        let ack = PathAck {
            cumulative: bytes(acked),
            new_pseudo_cumulative: true,
            in_flight_before: bytes(200_000),
            outstanding_at_start: bytes(200_000),
            in_flight_after: bytes(100_000),
            ..PathAck::default()
        };
        let done = SackDone { paths: &[ack, PathAck::default()], new_cumulative: true, cumulative: 9 };
        self.dispatch(&Event::SackDone(&done));
        self.cwnd(0)
    }

    /// Returns the first path's cwnd and ssthresh after a loss.
    fn cut(&mut self, cause: LossCause) -> (u64, u64) {
        self.dispatch(&Event::LossEvent { path: path(0), cause });
        let window = self.policies.congestion.window(path(0));
        (window.cwnd.get(), window.ssthresh.get())
    }
}

/// Returns the growth of a window of 20,000 B for 20,000 B acknowledged.
fn growth(text: &str) -> u64 {
    Rig::new(text).acked(20_000) - 20_000
}

/// Returns the window after a fast retransmit at 20,000 B.
fn left(text: &str) -> u64 {
    Rig::new(text).cut(FastRetransmit).0
}

#[test]
fn every_preset_has_the_floor_that_is_asked_for() {
    for preset in PRESETS {
        for (floor, chunks) in [("2", 2), ("4", 4)] {
            let scheme = parse(&format!("{}(floor={floor})", preset.name)).expect(preset.name);
            let profile = scheme.profile(Profile { timeout_floor: 7, ..Profile::ns2() });
            assert_eq!((profile.fast_retransmit_floor, profile.timeout_floor), (chunks, chunks));
        }
        let row = Profile { fast_retransmit_floor: 5, timeout_floor: 7, ..Profile::ns2() };
        let scheme = parse(&format!("{}(floor=profile)", preset.name)).expect(preset.name);
        let profile = scheme.profile(row);
        assert_eq!((profile.fast_retransmit_floor, profile.timeout_floor), (5, 7), "{}", preset.name);
    }
}

#[test]
fn mptcp_ns2_has_tcps_time_outs_and_floor_and_no_shared_receive_window() {
    let row = Profile::rfc9260_multipath();
    let profile = parse("mptcp-ns2").expect("a preset").profile(row.clone());
    let expected = Profile {
        fast_retransmit_floor: 2,
        timeout_floor: 2,
        rto_min: Span::from_millis(200),
        shared_receive_window: false,
        ..row.clone()
    };
    assert_eq!(profile, expected);
    let text = "mptcp-ns2(rto-min=1000,shared-window=true,floor=4)";
    assert_eq!(parse(text).expect(text).profile(row.clone()), row);
    let late = parse("mptcp-ns2(rto-min=60000)")
        .expect("in bounds")
        .profile(Profile { rto_max: Span::from_secs(20), ..row });
    assert_eq!(late.rto_min, Span::from_secs(20), "never above the largest time-out");
}

#[test]
fn a_cmt_grows_by_the_rate_difference() {
    // D = 20,000 (1 - 100/200) = 10,000 is above delta = 3 M = 4404; by the latest sample 4000, between M and 3 M.
    assert_eq!([growth("a-cmt"), growth("a-cmt(rtt=latest)")], [0, M / 2]);
    assert_eq!([growth("a-cmt(delta=7MTU)"), growth("a-cmt(lambda=7MTU)")], [M / 2, M]);
    assert_eq!(growth("a-cmt(delta=10000B)"), M / 2, "equality is between the thresholds");
    assert_eq!(Rig::new("a-cmt(delta=7MTU)").acked(700), 20_000, "no step before a window is acknowledged");
    assert_eq!(Rig::new("a-cmt(delta=7MTU,apply=every-sack)").acked(700), 20_000 + M / 2);
    assert_eq!(left("a-cmt"), 10_000);
}

#[test]
fn each_part_of_db_cmt_can_be_switched_off() {
    // 20,000 x 100/200 = 10,000 and 20,000 x 100/125 = 16,000.
    assert_eq!([growth("db-cmt"), growth("db-cmt(dsp=false)")], [0, M]);
    assert_eq!(
        [left("db-cmt"), left("db-cmt(rtt=latest)"), left("db-cmt(rtt=latest,frp=false)")],
        [10_000, 16_000, 10_000]
    );
    assert_eq!(growth("db-cmt(rtt=latest)"), M / 2);
}

#[test]
fn db_cmts_window_may_be_below_the_floor_of_its_threshold() {
    for (text, expected) in [("db-cmt", (2936, 2936)), ("db-cmt(frp-window=equation)", (2000, 2936))] {
        let mut rig = Rig::new(text);
        rig.set(0, 4000);
        assert_eq!(rig.cut(FastRetransmit), expected, "{text}");
    }
    let mut rig = Rig::new("db-cmt(floor=4)");
    rig.set(0, 4000);
    assert_eq!(rig.cut(FastRetransmit), (5872, 5872));
    assert_eq!(Rig::new("db-cmt").cut(Timeout), (1468, 10_000));
}

#[test]
fn db_cmt_fills_windows_in_turn_or_by_ascending_load() {
    for (text, first) in [("db-cmt", 1), ("db-cmt(order=ascending-d)", 0)] {
        let mut rig = Rig::new(text);
        rig.world.paths[0].rtt.smoothed = Some(Span::from_millis(110));
        rig.world.association.last_new_data_path = Some(path(0));
        rig.world.begin_send_opportunity(&mut *rig.policies.scheduler);
        assert_eq!(rig.world.pick(&mut *rig.policies.scheduler).choice, Pick::Path(path(first)), "{text}");
    }
    let mut rig = Rig::new("db-cmt(order=ascending-d,rtt=latest)");
    rig.world.paths[1].rtt.latest = Some(Span::from_millis(101));
    assert_eq!(rig.world.pick(&mut *rig.policies.scheduler).choice, Pick::Path(path(1)));
}

#[test]
fn db_cmt_retransmits_on_the_least_lossy_of_the_largest_windows() {
    for text in ["db-cmt", "cmt(rtx=rtx-cl)"] {
        let mut rig = Rig::new(text);
        rig.world.paths[0].estimates.loss_rate = Some(0.02);
        rig.world.paths[1].estimates.loss_rate = Some(0.01);
        for seed in 0..20 {
            rig.world.reseed(seed);
            let route = rig.world.route(&mut *rig.policies.retransmit, lost_on(0, FastRetransmit)).choice;
            assert_eq!(route, RetransmitChoice::Path(path(1)), "{text}");
        }
    }
}

#[test]
fn cmt_dfr_cuts_by_the_delay_in_seconds() {
    let after = |text: &str, cwnd| {
        let mut rig = Rig::new(text);
        rig.set(0, cwnd);
        for ms in [100, 300] {
            let rtt = Span::from_millis(ms);
            rig.dispatch(&Event::RttSample { path: path(0), rtt, heartbeat: false });
        }
        rig.cut(FastRetransmit)
    };
    // 0.75 x 0.1 + 0.25 x 0.3 = 0.15; with alpha 1 it is 0.3.
    assert_eq!(after("cmt-dfr", 20_000), (17_000, 17_000));
    assert_eq!(after("cmt-dfr(alpha=1)", 20_000), (14_000, 14_000));
    // 4000 x 0.85 = 3400: below 4 x 1500, 4 x 1468 and 4 x 500, above 2 x 1468.
    assert_eq!(after("cmt-dfr", 4000), (6000, 6000));
    assert_eq!(after("cmt-dfr(mtu=1MTU)", 4000), (5872, 5872));
    assert_eq!(after("cmt-dfr(mtu=500B)", 4000), (3400, 3400));
    assert_eq!(after("cmt-dfr(floor=profile)", 4000), (3400, 3400));
    assert_eq!(after("cmt-dfr(floor=4)", 4000), (5872, 5872));
    assert_eq!(Rig::new("cmt-dfr").cut(Timeout), (1500, 10_000));
    assert_eq!(growth("cmt-dfr"), M);
}

#[test]
fn coupled_schemes_grow_together_and_halve_apart() {
    // Two paths of 20,000 B and 200 ms: LIA 0.5/40,000, OLIA and BALIA (1e5/0.2)/(2e5)^2, each 1.25e-5 x 20,000 x 1468 = 367 B.
    for text in ["mptcp-lia", "mptcp-olia", "mptcp-balia", "mptcp-ns2"] {
        assert!((366..=367).contains(&growth(text)), "{text}: {}", growth(text));
        assert_eq!(left(text), 10_000, "{text}");
    }
}

#[test]
fn balia_cuts_a_slow_path_by_more() {
    let mut rig = Rig::new("mptcp-balia");
    rig.world.paths[1].rtt.smoothed = Some(Span::from_millis(20));
    // alpha is 10: 20,000 - 10,000 x 1.5.
    assert_eq!(rig.cut(FastRetransmit), (5000, 5000));
}

#[test]
fn olias_best_paths_are_the_drafts_or_linuxs() {
    for (text, sign) in [("mptcp-olia", 1), ("mptcp-olia(best=linux)", -1)] {
        let mut rig = Rig::new(text);
        rig.set(1, 30_000);
        rig.world.paths[1].rtt.smoothed = Some(Span::from_millis(100));
        // 25,000 B acknowledged on path 0 and 15,000 B on path 1, whose window is the largest. l^2/rtt: 3.1e9 and 2.3e9, so the
        // draft moves window to path 0. l/rtt^2: 6.3e5 and 1.5e6, so Linux does not.
        let acks = [25_000, 15_000].map(|n| PathAck { gap: bytes(n), ..PathAck::default() });
        rig.dispatch(&Event::SackDone(&SackDone { paths: &acks, new_cumulative: false, cumulative: 9 }));
        let grown = rig.acked(M) - 20_000;
        // Coupled: 1e5/0.2 / (1e5 + 3e5)^2 x 1468^2 = 6.7 B; and 0.5 / 20,000 x 1468^2 = 53.9 B with the shift.
        assert_eq!(grown, if sign > 0 { 60 } else { 6 }, "{text}");
    }
}

#[test]
fn mptcp_ns2_fills_windows_in_order_up_to_a_cap() {
    let mut rig = Rig::new("mptcp-ns2");
    rig.world.association.last_new_data_path = Some(path(0));
    rig.world.begin_send_opportunity(&mut *rig.policies.scheduler);
    assert_eq!(rig.world.pick(&mut *rig.policies.scheduler).choice, Pick::Path(path(0)));
    let capped = |text: &str| {
        let mut rig = Rig::new(text);
        rig.set(0, 100_000);
        // The cap applies from the next event on.
        rig.dispatch(&Event::Deadline);
        rig.cwnd(0)
    };
    let caps = ["mptcp-ns2", "mptcp-ns2(window-cap=3)", "mptcp-ns2(window-cap=0)"].map(capped);
    assert_eq!(caps, [20 * M, 3 * M, 100_000]);
    let lost = lost_on(1, FastRetransmit);
    assert_eq!(routed(&rig.world.route(&mut *rig.policies.retransmit, lost)), path(1));
}

#[test]
fn resource_pooling_grows_by_shares_and_cuts_half_of_the_sum() {
    for text in ["cmt-rpv1", "cmt-rpv2"] {
        assert_eq!(growth(text), 734, "{text}: half a chunk");
        // Two equal paths: half of the sum is the whole window.
        assert_eq!(Rig::new(text).cut(FastRetransmit), (1468, 1468), "{text}");
        assert_eq!(Rig::new(text).cut(Timeout), (1468, 1468), "{text}");
        assert_eq!(left(&format!("{text}(floor=profile)")), 2936);
        assert_eq!(left(&format!("{text}(floor=4)")), 5872);
    }
    // rpMin is shared in version 1: 3 x 1468 / 2.
    assert_eq!([left("cmt-rpv1(rp-min=3)"), left("cmt-rpv2(rp-min=3)")], [2202, 4404]);
}

#[test]
fn resource_pooling_shares_initial_windows_by_default() {
    for preset in ["cmt-rpv1", "cmt-rpv2"] {
        for (how, cwnd) in [("shared", 2936), ("whole", 4380)] {
            let mut rig = Rig::new(&format!("{preset}(initial-window={how})"));
            rig.dispatch(&Event::Established);
            assert_eq!(rig.cwnd(1), cwnd, "{preset}: {how}");
        }
    }
}

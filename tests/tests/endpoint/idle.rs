//! Idle associations: intervals between probes of their paths, and between wake-ups.

use anabranch_core::profile::{IdleHeartbeats, Profile};
use anabranch_core::time::{Span, Time};
use anabranch_core::{AbortReason, AssociationEvent, PathState};
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::{Packet, Side};
use anabranch_tests::sight;
use anabranch_wire::Chunk;

const A: usize = Side::A as usize;

/// Maximum of RTO and its jitter, transmission time, and one tick.
const SLACK: Span = Span::from_millis(700);

fn rules() -> IdleHeartbeats {
    Profile::net().idle_heartbeats.expect("it has them")
}

fn short() -> Span {
    Profile::net().heartbeat_interval
}

fn is_heartbeat(packet: &Packet) -> bool {
    sight::holds(packet, |chunk| matches!(chunk, Chunk::Heartbeat(_)))
}

/// Returns a pair with two paths that has been idle for this span.
fn idle_for(span: Span, change: impl FnOnce(Setup) -> Setup) -> Duo {
    let mut duo = Duo::connected(change(Setup::new(2, "bonded", "net")));
    duo.run(span);
    duo.kept = Some(Vec::new());
    duo
}

/// Returns the times of HEARTBEATs for a path since packets are kept, with the sender.
fn probes(duo: &Duo, path: usize) -> Vec<(Time, Side)> {
    let ends = Side::BOTH.map(|side| duo.setup.address(side, path));
    let of_path = |packet: &Packet| ends.contains(&packet.source) && is_heartbeat(packet);
    duo.kept.iter().flatten().filter(|(_, packet)| of_path(packet)).map(|(at, p)| (*at, p.from)).collect()
}

fn longest_gap(times: &[Time]) -> Span {
    times.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap_or_default()
}

#[test]
fn an_idle_association_is_probed_less_often_and_its_sides_take_turns() {
    let mut duo = idle_for(Span::ZERO, |setup| setup);
    duo.run(short().times(3));
    assert!(probes(&duo, 0).len() >= 2, "no less often at first");
    duo.run(Span::from_secs(60));
    duo.kept = Some(Vec::new());
    duo.run(Span::from_secs(1_000));
    for path in 0..2 {
        let probes = probes(&duo, path);
        let all: Vec<Time> = probes.iter().map(|(at, _)| *at).collect();
        let longest = rules().longest_interval;
        assert!(longest_gap(&all) <= longest + SLACK, "{probes:?}");
        // 1,000 s of 25 s each; sometimes both sides send one.
        assert!((36..=48).contains(&probes.len()), "{probes:?}");
        for side in Side::BOTH {
            let own: Vec<Time> = probes.iter().filter(|(_, from)| *from == side).map(|(at, _)| *at).collect();
            assert!(longest_gap(&own) <= (longest + SLACK).times(2), "{side:?} {own:?}");
        }
        assert_eq!(duo.nodes[A].association().paths()[path].state, PathState::Active);
    }
}

#[test]
fn probes_of_an_idle_association_leave_at_ticks() {
    let mut duo = idle_for(Span::from_secs(100), |setup| setup);
    duo.run(Span::from_secs(200));
    let tick = rules().tick.as_nanos();
    let probes: Vec<_> = (0..2).flat_map(|path| probes(&duo, path)).collect();
    assert!(probes.iter().all(|(at, _)| at.as_nanos().is_multiple_of(tick)), "{probes:?}");
}

#[test]
fn data_brings_the_short_interval_back_on_paths_that_do_not_carry_it() {
    // Data stays on the primary path.
    let mut duo =
        idle_for(Span::from_secs(203), |setup| Setup { sides: Setup::new(2, "sctp", "net").sides, ..setup });
    for _ in 0..10 {
        duo.send_all(Side::A, 100, 1);
        duo.run(Span::from_secs(4));
    }
    for side in Side::BOTH {
        let probes = probes(&duo, 1).into_iter();
        let own: Vec<Time> = probes.filter(|(_, from)| *from == side).map(|(at, _)| at).collect();
        assert!(own.len() >= 7, "{side:?}: {own:?}");
        assert!(longest_gap(&own) <= short() + SLACK, "{side:?}: {own:?}");
        assert!(own[0].since(Time::ZERO + Span::from_secs(203)) <= short() + SLACK, "{side:?}: {own:?}");
    }
}

#[test]
fn an_idle_path_that_carries_only_the_peers_packets_fails() {
    let mut duo = idle_for(Span::from_secs(100), |setup| setup);
    let from_a = duo.setup.address(Side::A, 1);
    duo.network.set_filter(move |packet| packet.source != from_a);
    // One interval of the peer, whose HEARTBEATs arrive, and then one of its own.
    let found = rules().longest_interval.times(2) + Span::from_secs(30);
    let failed = |duo: &Duo| duo.nodes[A].association().paths()[1].state != PathState::Active;
    assert!(duo.run_until(found, failed));
}

#[test]
fn an_idle_path_that_has_failed_is_probed_as_often_as_ever_and_comes_back() {
    let mut duo = idle_for(Span::from_secs(100), |setup| setup);
    duo.cut(1, true);
    let failed = |duo: &Duo| duo.nodes[A].association().paths()[1].state == PathState::Inactive;
    assert!(duo.run_until(Span::from_secs(120), failed));
    duo.run(Span::from_secs(60));
    duo.cut(1, false);
    let back = |duo: &Duo| duo.nodes[A].association().paths()[1].state == PathState::Active;
    // HB.interval and RTO.Max with its jitter.
    assert!(duo.run_until(short() + Span::from_secs(15), back));
}

#[test]
fn an_idle_time_is_no_silence_of_the_peer() {
    let limit = Span::from_secs(40);
    let idle = || {
        idle_for(Span::from_secs(100), |setup| setup.with(|config| config.peer_silence_limit = Some(limit)))
    };
    let cut = |duo: &mut Duo, cut| (0..2).for_each(|pair| duo.cut(pair, cut));
    let mut away = idle();
    // Both paths are cut until the first probe has remained unanswered, and for a margin of 10 s.
    cut(&mut away, true);
    let asked = |duo: &Duo| duo.nodes[A].association().paths().iter().any(|path| path.error_count > 0);
    assert!(away.run_until(Span::from_secs(30), asked));
    away.run(Span::from_secs(10));
    cut(&mut away, false);
    away.run(Span::from_secs(60));
    assert!(Side::BOTH.iter().all(|&side| !away.is_over(side)));
    let mut gone = idle();
    cut(&mut gone, true);
    let over = |duo: &Duo| Side::BOTH.iter().all(|&side| duo.is_over(side));
    assert!(gone.run_until(rules().longest_interval.times(2) + limit.times(2), over));
    assert_eq!(gone.nodes[A].ended, Some(AssociationEvent::Aborted(AbortReason::PeerUnreachable)));
}

#[test]
fn other_profiles_probe_as_often_as_ever() {
    let mut duo = Duo::connected(Setup::new(1, "sctp", "rfc9260"));
    duo.run(Span::from_secs(300));
    duo.kept = Some(Vec::new());
    duo.run(Span::from_secs(310));
    // Each side sends one per HB.interval and RTO.
    assert!((18..=22).contains(&probes(&duo, 0).len()), "{:?}", probes(&duo, 0));
}

#[test]
fn an_association_that_has_carried_data_sleeps_from_probe_to_probe() {
    for scheme in ["bonded", "braid", "cmt", "sctp"] {
        let mut duo = Duo::connected(Setup::new(2, scheme, "net"));
        duo.send_all(Side::A, 100_000, 10);
        duo.run(Span::from_secs(60));
        assert!(duo.all_arrived(Side::A));
        let end = duo.now + Span::from_secs(500);
        let mut turns = 0;
        while let Some(at) = duo.next_event().filter(|at| *at <= end) {
            duo.now = duo.now.max(at);
            duo.happen();
            turns += 1;
        }
        // Two paths with a probe each in 25 s: the probe, its arrival, and that of the answer.
        assert!(turns <= 2 * 3 * 25, "{scheme}: {turns}");
    }
}

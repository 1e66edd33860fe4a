//! A peer that disappears, in each state: the association ends within the time of its configuration, for the right reason, and
//! nothing of it remains.

use anabranch_core::profile::Profile;
use anabranch_core::time::Span;
use anabranch_core::{AbortReason, AssociationConfig, AssociationEvent, Guard};
use anabranch_tests::duo;
use anabranch_tests::hostile::{Peer, Target, craft};

use crate::{live_bytes, turn};

/// Maximum memory of an endpoint after its association: enlarged queues.
const LEFT_BYTES: usize = 40_000;

fn config() -> AssociationConfig {
    let mut config = duo::config("cmt", "rfc9260");
    config.recv_buffer_bytes = 64 << 10;
    config
}

/// Returns the sum of `tries` time-outs, of which the first is `first`, each doubles the one before, and none exceeds RTO.Max.
fn back_offs(profile: &Profile, first: Span, tries: u32) -> Span {
    let mut all = (Span::ZERO, first);
    for _ in 0..tries {
        all = (all.0 + all.1, all.1.times(2).min(profile.rto_max));
    }
    all.0
}

/// Returns the time of this number of HEARTBEATs, each after the longest wait (RFC 9260 section 8.3) and unanswered for RTO.Max.
fn heartbeats(profile: &Profile, tries: u32) -> Span {
    let each = profile.heartbeat_interval + profile.rto_max.times(5).over(2);
    each.times(u64::from(tries))
}

/// Role of the endpoint in the state machine.
#[derive(Clone, Copy, Debug)]
enum Role {
    Calls,
    IsCalled,
}

/// A case: the caller, and the steps until the peer disappears.
struct Case {
    /// Name of the association's state.
    state: &'static str,
    role: Role,
    bring_there: fn(&mut Peer<Target>),
    /// Maximum duration.
    bound: fn(&Profile) -> Span,
    reason: AbortReason,
}

fn up(peer: &mut Peer<Target>, role: Role) {
    match role {
        Role::IsCalled => peer.call().expect("it accepts"),
        Role::Calls => {
            peer.wire.call_peer();
            peer.answer().expect("it calls");
        }
    }
    peer.pass(Span::from_millis(100));
}

fn send(peer: &mut Peer<Target>, messages: usize) {
    let id = peer.wire.live().expect("it is up");
    for _ in 0..messages {
        let association = peer.wire.endpoint.association_mut(id).expect("it is up");
        association.send(vec![1; 1_000].into(), Default::default()).expect("it takes the message");
    }
    peer.wire.drain();
}

fn shut_down(peer: &mut Peer<Target>) {
    let (id, now) = (peer.wire.live().expect("it is up"), peer.wire.now);
    peer.wire.endpoint.association_mut(id).expect("it is up").shutdown(now);
    peer.wire.drain();
}

fn peer_shuts_down(peer: &mut Peer<Target>) {
    let seen = peer.seen_tsn;
    let shutdown = peer.packet(|w| w.shutdown(seen));
    peer.send(&shutdown);
}

/// Returns the states of an established association, which are the same for both roles.
fn when_up(role: Role) -> Vec<Case> {
    let reason = AbortReason::PeerUnreachable;
    let by_heartbeats = |profile: &Profile| heartbeats(profile, profile.association_max_retrans + 1);
    // Data or a later chunk, and a HEARTBEAT that is in flight at the same time.
    let by_data = |profile: &Profile| {
        back_offs(profile, profile.rto_max, profile.association_max_retrans + 1) + heartbeats(profile, 1)
    };
    let shutting = |profile: &Profile| {
        let by_tries = back_offs(profile, profile.rto_max, profile.association_max_retrans + 1);
        by_tries.min(profile.rto_max.times(5))
    };
    vec![
        Case { state: "Established", role, bring_there: |_| {}, bound: by_heartbeats, reason },
        Case { state: "Established", role, bring_there: |peer| send(peer, 20), bound: by_data, reason },
        Case {
            state: "ShutdownPending",
            role,
            bring_there: |peer| {
                send(peer, 20);
                shut_down(peer);
            },
            bound: by_data,
            reason,
        },
        Case { state: "ShutdownSent", role, bring_there: shut_down, bound: shutting, reason },
        Case {
            state: "ShutdownReceived",
            role,
            bring_there: |peer| {
                send(peer, 20);
                peer_shuts_down(peer);
            },
            bound: by_data,
            reason,
        },
        Case {
            state: "ShutdownAckSent",
            role,
            bring_there: peer_shuts_down,
            bound: |profile| back_offs(profile, profile.rto_max, profile.association_max_retrans + 1),
            reason,
        },
    ]
}

fn cases() -> Vec<Case> {
    let no_answer =
        |profile: &Profile| back_offs(profile, profile.rto_initial, profile.max_init_retransmits + 1);
    let mut all = vec![
        Case {
            state: "CookieWait",
            role: Role::Calls,
            bring_there: |peer| {
                peer.wire.call_peer();
            },
            bound: no_answer,
            reason: AbortReason::NoAnswer,
        },
        Case {
            state: "CookieEchoed",
            role: Role::Calls,
            bring_there: |peer| {
                peer.wire.call_peer();
                peer.answer_init().expect("it calls");
            },
            bound: |profile| {
                back_offs(profile, profile.rto_initial.times(2), profile.max_init_retransmits + 1)
            },
            reason: AbortReason::NoAnswer,
        },
    ];
    for role in [Role::Calls, Role::IsCalled] {
        all.extend(when_up(role));
    }
    all
}

/// Runs a case, and returns the time that the association lived after its peer had disappeared.
fn vanish(case: &Case, guard: Option<Guard>) -> Span {
    let profile = config().profile;
    let mut peer = Peer::new(Target::new(config(), guard, false), 1).forgetful();
    // Another association before it has already created the tables.
    peer.call().expect("it accepts");
    let abort = peer.packet(|w| w.abort(false, []));
    peer.send(&abort);
    peer.wire.forget_closed();
    peer.wire.events.clear();
    peer.renew();
    peer.pass(Span::from_secs(1));
    let before = live_bytes();
    if !case.state.starts_with("Cookie") {
        up(&mut peer, case.role);
    }
    (case.bring_there)(&mut peer);
    let id = peer.wire.live().expect("an association");
    let is_reached =
        format!("{:?}", peer.wire.endpoint.association(id)).contains(&format!("state: {}", case.state));
    assert!(is_reached, "{}", case.state);
    let vanished = peer.wire.now;
    let bound = (case.bound)(&profile);
    let is_end =
        |event: &AssociationEvent| matches!(event, AssociationEvent::Aborted(_) | AssociationEvent::Closed);
    while !peer.wire.events.iter().any(|(_, event)| is_end(event)) {
        let next = peer.wire.endpoint.poll_timeout().expect("something is waited for");
        peer.pass(next.since(peer.wire.now));
        let lived = peer.wire.now.since(vanished);
        assert!(lived <= bound, "{} ({:?}): {lived:?} is longer than {bound:?}", case.state, case.role);
    }
    let lived = peer.wire.now.since(vanished);
    let ends: Vec<_> =
        peer.wire.events.iter().map(|(_, event)| event).filter(|event| is_end(event)).collect();
    assert_eq!(ends, [&AssociationEvent::Aborted(case.reason)], "{} ({:?})", case.state, case.role);
    // No timer, entry, packet or memory remains.
    assert_eq!(peer.wire.endpoint.poll_timeout(), None, "{}", case.state);
    peer.wire.forget_closed();
    assert_eq!(peer.wire.associations(), 0, "{}", case.state);
    assert!(peer.pass(Span::from_secs(3_600)).iter().all(|bytes| craft::kinds(bytes) == [craft::ABORT]));
    peer.wire.events = Vec::new();
    let left = live_bytes().saturating_sub(before);
    assert!(left <= LEFT_BYTES, "{} ({:?}): {left} B are left", case.state, case.role);
    lived
}

#[test]
fn an_association_whose_peer_vanishes_ends_in_every_state() {
    let _turn = turn();
    for guard in [None, Some(Guard::default())] {
        for case in cases() {
            let lived = vanish(&case, guard);
            println!("{} ({:?}): {lived:?} of {:?}", case.state, case.role, (case.bound)(&config().profile));
        }
    }
}

#[test]
fn peer_that_vanishes_before_answering_is_removed() {
    let _turn = turn();
    let mut peer = Peer::new(Target::new(config(), Some(Guard::default()), false), 1).forgetful();
    let cookie = peer.fetch_cookie().expect("a cookie");
    let echo = peer.packet(|w| w.cookie_echo(&cookie));
    peer.send(&echo);
    assert_eq!(peer.wire.associations(), 1);
    let profile = config().profile;
    // Errors of an address that never answered count after it has failed (RFC 9260 section 8.1).
    peer.pass(heartbeats(&profile, profile.path_max_retrans + profile.association_max_retrans + 2));
    let ended = AssociationEvent::Aborted(AbortReason::PeerUnreachable);
    assert!(peer.wire.events.iter().any(|(_, event)| *event == ended), "{:?}", peer.wire.events);
    peer.wire.forget_closed();
    assert_eq!((peer.wire.associations(), peer.wire.endpoint.poll_timeout()), (0, None));
}

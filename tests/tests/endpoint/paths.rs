//! Verification, failure, return, addition and removal of paths.

use std::sync::Arc;

use anabranch_core::policy::{Context, Estimates, Event, PathEstimator, Policies, Scheme, Slot, View};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};
use anabranch_core::{
    AcceptFrom, Association, AssociationConfig, AssociationEvent, Encapsulation, Endpoint, EndpointConfig,
    PacketBuffer, PathAddress, PathError, PathId, PathState,
};
use anabranch_schemes::registry;
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::{Packet, Side};
use anabranch_tests::sight;
use anabranch_wire::Chunk;

const A: usize = Side::A as usize;
const B: usize = Side::B as usize;

fn association(duo: &mut Duo, side: usize) -> &mut Association {
    duo.nodes[side].try_association_mut().expect("there is an association")
}

fn state(duo: &Duo, side: usize, path: usize) -> PathState {
    duo.nodes[side].association().paths()[path].state
}

fn is_heartbeat_ack(packet: &Packet) -> bool {
    sight::holds(packet, |chunk| matches!(chunk, Chunk::HeartbeatAck(_)))
}

//= docs/rfc9260.txt#section-5.4
//= type=test
//# An endpoint MUST NOT send any chunks to an UNCONFIRMED address, with the following exceptions:
#[test]
fn a_path_carries_no_data_before_it_has_answered_a_heartbeat() {
    let mut duo = Duo::new(Setup::new(2, "cmt", "rfc9260"));
    let second = duo.setup.address(Side::A, 1);
    duo.network.set_filter(move |packet| packet.destination != second || !is_heartbeat_ack(packet));
    duo.kept = Some(Vec::new());
    duo.connect();
    duo.run(Span::from_millis(200));
    duo.send_all(Side::A, 10_000, 20);
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.all_arrived(Side::A)));
    assert_eq!(state(&duo, A, 1), PathState::Unconfirmed);
    let sent_on = |path| {
        let kept = duo.kept.iter().flatten().filter(move |(_, packet)| packet.source == path);
        kept.filter(|(_, packet)| !sight::tsns(packet).is_empty()).count()
    };
    assert_eq!(sent_on(second), 0);
    duo.network.clear_filter();
    duo.run(Span::from_secs(10));
    assert_eq!(state(&duo, A, 1), PathState::Active);
    duo.send_all(Side::A, 10_000, 20);
    duo.run(Span::from_secs(1));
    let kept = duo.kept.iter().flatten();
    assert!(kept.filter(|(_, p)| p.source == second).any(|(_, p)| !sight::tsns(p).is_empty()));
}

/// Advises against the second path from one second on.
struct Warning {
    now: Time,
}

impl Slot for Warning {
    fn on_event(&mut self, _: &Event<'_>, view: &View<'_>, _: &mut Context<'_>) {
        self.now = view.now;
    }
}

impl PathEstimator for Warning {
    fn estimates(&self, path: PathId) -> Estimates {
        let withdrawn = path.index() == 1 && self.now >= Time::ZERO + Span::from_secs(1);
        Estimates { withdrawn, ..Estimates::default() }
    }
}

struct Warned;

impl Scheme for Warned {
    fn policies(&self) -> Policies {
        let cmt = anabranch_schemes::registry::parse("cmt").expect("a preset");
        Policies { estimator: Box::new(Warning { now: Time::ZERO }), ..cmt.policies() }
    }

    fn is_multipath(&self) -> bool {
        true
    }

    fn profile(&self, row: Profile) -> Profile {
        row
    }
}

#[test]
fn a_path_that_the_estimator_withdraws_is_probed_at_once() {
    let mut setup = Setup::new(2, "cmt", "rfc9260");
    setup.sides[A].scheme = Arc::new(Warned);
    let mut duo = Duo::connected(setup);
    let second = duo.setup.address(Side::A, 1);
    duo.run(Span::from_millis(900));
    duo.kept = Some(Vec::new());
    for _ in 0..4 {
        duo.send_all(Side::A, 1_000, 1);
        duo.run(Span::from_millis(100));
    }
    let is_heartbeat = |packet: &Packet| sight::holds(packet, |chunk| matches!(chunk, Chunk::Heartbeat(_)));
    let kept =
        duo.kept.iter().flatten().filter(|(_, packet)| packet.source == second && is_heartbeat(packet));
    let sent: Vec<Time> = kept.map(|(at, _)| *at).collect();
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert!(sent[0] >= Time::ZERO + Span::from_secs(1));
}

#[test]
fn pf_path_is_probed_each_rtt_with_one_error_per_rto() {
    let mut duo = Duo::connected(Setup::new(2, "braid", "rfc9260"));
    duo.send_all(Side::A, 1_000, 200);
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.all_arrived(Side::A)));
    let first = duo.setup.address(Side::A, 0);
    duo.cut(0, true);
    duo.kept = Some(Vec::new());
    duo.send_all(Side::A, 1_000, 200);
    duo.run(Span::from_secs(10));
    assert_eq!(state(&duo, A, 0), PathState::PotentiallyFailed);
    let is_heartbeat = |packet: &Packet| sight::holds(packet, |chunk| matches!(chunk, Chunk::Heartbeat(_)));
    let kept = duo.kept.iter().flatten();
    let probes = kept.filter(|(_, packet)| packet.source == first && is_heartbeat(packet)).count();
    assert!((10..60).contains(&probes), "{probes}");
    // The errors occur after 1, 3 and 7 s.
    assert!((2..=4).contains(&duo.nodes[A].association().paths()[0].error_count));
    duo.cut(0, false);
    duo.run(Span::from_secs(4));
    assert_eq!(state(&duo, A, 0), PathState::Active, "sooner than the RTO of 8 s");
}

//= docs/rfc9260.txt#section-8.2
//= type=test
//# When the value in the error counter exceeds the protocol parameter 'Path.Max.Retrans' of that destination address, the
//# endpoint SHOULD mark the destination transport address as inactive, and a notification SHOULD be sent to the upper
//# layer.
#[test]
fn a_path_fails_when_its_error_counter_passes_the_limit() {
    for scheme in ["sctp", "cmt"] {
        let mut duo = Duo::connected(Setup::new(2, scheme, "rfc9260"));
        duo.run(Span::from_secs(1));
        duo.cut(0, true);
        let limit = duo.setup.sides[A].profile.path_max_retrans;
        while state(&duo, A, 0) == PathState::Active {
            assert!(duo.nodes[A].association().paths()[0].error_count <= limit);
            duo.send_all(Side::A, 1_000, 5);
            duo.run(Span::from_secs(1));
        }
        assert_eq!(state(&duo, A, 0), PathState::Inactive);
        assert!(duo.nodes[A].association().paths()[0].error_count > limit);
        // 1 + 2 + 4 + 8 + 16 + 32 s: six time-outs in sequence, each twice as long as the one before.
        assert!((63..75).contains(&(duo.now.as_nanos() / 1_000_000_000)), "{scheme}: at {:?}", duo.now);
        assert!(duo.run_until(Span::from_secs(5), |duo| duo.all_arrived(Side::A)));
        duo.cut(0, false);
        duo.run(Span::from_secs(70));
        assert_eq!(state(&duo, A, 0), PathState::Active, "{scheme}: a HEARTBEAT finds it well again");
    }
}

#[test]
fn a_path_fails_when_what_it_carries_meets_silence_for_too_long() {
    for scheme in ["sctp", "cmt", "cmt-pf"] {
        let setup = Setup::new(2, scheme, "rfc9260")
            .with_side(Side::A, |config| config.path_silence_limit = Some(Span::from_millis(700)));
        let mut duo = Duo::connected(setup);
        duo.send_all(Side::A, 1_000, 50);
        duo.run(Span::from_secs(5));
        assert_eq!(
            state(&duo, A, 0),
            PathState::Active,
            "{scheme}: silence with nothing outstanding is none"
        );
        duo.cut(0, true);
        duo.send_all(Side::A, 10_000, 20);
        duo.run(Span::from_millis(690));
        assert_eq!(state(&duo, A, 0), PathState::Active, "{scheme}");
        duo.run(Span::from_millis(10));
        assert_eq!(state(&duo, A, 0), PathState::Inactive, "{scheme}");
        assert_eq!(duo.nodes[A].association().statistics().timeouts, 0, "{scheme}");
        assert!(
            duo.run_until(Span::from_secs(2), |duo| duo.all_arrived(Side::A)),
            "{scheme}: the other path takes over"
        );
        duo.cut(0, false);
        duo.run(Span::from_secs(10));
        assert_eq!(state(&duo, A, 0), PathState::Active, "{scheme}: a HEARTBEAT finds it well again");
    }
}

#[test]
fn a_path_that_answers_within_the_limit_is_not_silent() {
    let setup = Setup::new(1, "sctp", "rfc9260")
        .with_side(Side::A, |config| config.path_silence_limit = Some(Span::from_millis(60)));
    let mut duo = Duo::connected(setup);
    // Data is always outstanding, for a hundred times the limit, on a path with a round trip of 50 ms.
    for _ in 0..600 {
        duo.send_all(Side::A, 1_000, 1);
        duo.send_all(Side::A, 1_000, 1);
        duo.run(Span::from_millis(10));
    }
    assert_eq!(state(&duo, A, 0), PathState::Active);
    assert!(
        !duo.nodes[A]
            .was_told(&AssociationEvent::PathState { path: PathId::new(0), state: PathState::Inactive })
    );
}

#[test]
fn paths_that_share_an_address_live_side_by_side() {
    // Both sides add a crossed pair at the same time; for B, both lead to the same address of A.
    let mut duo = Duo::connected(Setup::new(3, "cmt", "rfc9260"));
    duo.run(Span::from_secs(1));
    for (side, local, remote) in [(Side::A, 0, 1), (Side::B, 2, 0)] {
        let (local, remote) = (duo.setup.address(side, local), duo.setup.address(side.other(), remote));
        let now = duo.now;
        association(&mut duo, side.index()).add_path(now, (local, remote)).expect("it is another pair");
    }
    duo.kept = Some(Vec::new());
    duo.run(Span::from_secs(5));
    for side in [A, B] {
        let paths = duo.nodes[side].association().paths();
        assert_eq!(paths.len(), 5);
        assert!(paths.iter().all(|p| p.state == PathState::Active), "{paths:?}");
    }
    let packets = duo.kept.iter().flatten().count();
    assert!(packets <= 20, "{packets} packets to verify two pairs from both sides");
}

#[test]
fn packets_from_more_pairs_than_there_are_paths_count_all_the_same() {
    let mut duo = Duo::connected(Setup::new(8, "cmt", "rfc9260"));
    duo.run(Span::from_secs(1));
    // B's eight paths are the eight pairs; A replaces one of its paths by a ninth.
    let now = duo.now;
    let (local, remote) = (duo.setup.address(Side::A, 0), duo.setup.address(Side::B, 1));
    let a = association(&mut duo, A);
    a.remove_path(now, PathId::new(7)).expect("it has more");
    let added = a.add_path(now, (local, remote)).expect("there is room");
    duo.run(Span::from_secs(1));
    assert_eq!(
        state(&duo, A, added.index()),
        PathState::Active,
        "B answers although it has no path of that pair"
    );
    duo.send_all(Side::A, 10_000, 30);
    assert!(duo.run_until(Span::from_secs(2), |duo| duo.all_arrived(Side::A)));
}

#[test]
fn association_has_one_primary_path_through_all_changes() {
    let mut duo = Duo::connected(Setup::new(3, "sctp", "rfc9260"));
    duo.run(Span::from_secs(1));
    let primaries = |duo: &Duo| {
        let paths = duo.nodes[A].association().paths();
        paths.iter().filter(|p| p.primary).map(|p| p.id.index()).collect::<Vec<_>>()
    };
    let (now, local, remote) = (duo.now, duo.setup.address(Side::A, 0), duo.setup.address(Side::B, 0));
    association(&mut duo, A).remove_path(now, PathId::new(0)).expect("it has more");
    assert_eq!(primaries(&duo), [1]);
    let added = association(&mut duo, A).add_path(now, (local, remote));
    assert_eq!(added, Ok(PathId::new(0)), "the id is free again");
    assert_eq!(primaries(&duo), [1]);
}

#[test]
fn the_paths_of_an_association_that_is_over_cannot_change() {
    let mut duo = Duo::connected(Setup::new(2, "cmt", "rfc9260"));
    duo.abort(Side::A);
    duo.settle();
    let (now, local, remote) = (duo.now, duo.setup.address(Side::A, 0), duo.setup.address(Side::B, 1));
    let a = association(&mut duo, A);
    assert_eq!(a.add_path(now, (local, remote)), Err(PathError::Closed));
    assert_eq!(a.remove_path(now, PathId::new(1)), Err(PathError::Closed));
    duo.run(Span::from_secs(1));
}

#[test]
fn a_path_added_during_the_handshake_is_verified_after_it() {
    let mut duo = Duo::new(Setup::new(2, "cmt", "rfc9260"));
    duo.connect();
    let (now, local, remote) = (duo.now, duo.setup.address(Side::A, 0), duo.setup.address(Side::B, 1));
    let added = association(&mut duo, A).add_path(now, (local, remote)).expect("it is another pair");
    duo.run(Span::from_secs(1));
    assert_eq!(state(&duo, A, added.index()), PathState::Active);
    assert_eq!(duo.nodes[A].association().statistics().heartbeat_timeouts, 0);
    assert_eq!(duo.nodes[B].endpoint.discards().total(), 0);
}

#[test]
fn path_starts_with_its_given_or_the_configured_udp_port() {
    let scheme = registry::parse("cmt").expect("the scheme exists").into_scheme();
    let config =
        AssociationConfig { streams: 3, ..AssociationConfig::new(scheme, Profile::rfc9260_multipath()) };
    let addresses = [1, 2].map(|network| [10, network, 0, 1].into());
    let encapsulation = Encapsulation::Udp { local_port: 7, remote_port: 9899 };
    let ours = EndpointConfig {
        port: 5000,
        addresses: addresses.to_vec(),
        encapsulation,
        accept: None,
        accept_from: AcceptFrom::Everyone,
        max_associations: 1,
        guard: None,
    };
    let mut endpoint = Endpoint::new(Time::ZERO, ours, [1; 32]);
    let path = |network: u8, udp_port| PathAddress {
        udp_port,
        ..PathAddress::from(([10, network, 0, 1].into(), [10, network, 0, 2].into()))
    };
    let paths = [path(1, Some(40_000)), path(2, None)];
    let id = endpoint.connect(Time::ZERO, 6000, &paths, config).expect("there is room");
    let association = endpoint.association(id).expect("it is there");
    assert_eq!((association.peer_port(), association.outbound_streams()), (6000, 3));
    let ports = [0, 1, 2].map(|path| association.path_address(PathId::new(path)).and_then(|p| p.udp_port));
    assert_eq!(ports, [Some(40_000), Some(9899), None]);
    // The INIT is sent on the first path, and after T1 on the second.
    let mut packet = PacketBuffer::new();
    let first = endpoint.poll_transmit(Time::ZERO, &mut packet).expect("an INIT");
    assert_eq!(first.address, paths[0]);
    assert_eq!(endpoint.poll_transmit(Time::ZERO, &mut packet), None);
    let t1 = endpoint.poll_timeout().expect("T1 runs");
    endpoint.handle_timeout(t1);
    let second = endpoint.poll_transmit(t1, &mut packet).expect("an INIT again");
    assert_eq!(second.address, path(2, Some(9899)));
}

//= docs/rfc9260.txt#section-8.1
//= type=test
//# Unacknowledged HEARTBEAT chunks observed on paths different from the path currently used for data transfer SHOULD NOT
//# increment the association error counter, as this could lead to association closure even if the path that is currently
//# used for data transfer is available (but idle).
#[test]
fn probes_of_a_failed_path_do_not_end_an_association_that_has_another() {
    // The path is probed once a second, and the path in service only every 30 s.
    let quick = |config: &mut anabranch_core::AssociationConfig| {
        config.profile.rto_max = Span::from_secs(1);
    };
    let mut duo = Duo::connected(Setup::new(2, "cmt-pf", "rfc9260").with(quick));
    duo.run(Span::from_secs(1));
    duo.cut(1, true);
    duo.run(Span::from_secs(200));
    assert_eq!(duo.nodes[A].ended, None);
    assert!(duo.nodes[A].association().statistics().heartbeat_timeouts > 20);
    duo.send_all(Side::A, 10_000, 5);
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.all_arrived(Side::A)));
}

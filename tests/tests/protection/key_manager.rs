//! The first keys, and their replacement while data flows.

use anabranch_core::profile::Profile;
use anabranch_core::protection::{KeyManagementRoles, Protection, ProtectionMode};
use anabranch_core::time::Span;
use anabranch_core::{AssociationEvent, Discard};
use anabranch_keying::{KeyPolicy, KeyingEvent, Phase};
use anabranch_tests::credentials::{credentials, identity};
use anabranch_tests::duo::Setup;
use anabranch_tests::managed::{Managed, protecting};
use anabranch_tests::network::{Link, Side};

use crate::protection::rig::{DTLS, shape};

fn few_records(records: u64) -> KeyPolicy {
    KeyPolicy { rekey_records: records, peer_burst: 1_000, ..KeyPolicy::default() }
}

fn with_policy(setup: Setup, policy: KeyPolicy) -> Managed {
    Managed::with(setup, [credentials(1, &[2]), credentials(2, &[1])], policy)
}

#[test]
fn shutdown_with_lost_last_packet_ends_without_keys_of_the_peer() {
    let mut managed = Managed::new(protecting(1)).established();
    managed.data_flows();
    managed.run(Span::from_secs(1));
    let mut sent = 0;
    managed.duo.network.set_filter(move |packet| {
        // The SHUTDOWN passes, and the SHUTDOWN COMPLETE does not.
        sent += u32::from(packet.from == Side::A);
        packet.from != Side::A || sent == 1
    });
    managed.duo.shutdown(Side::A);
    assert!(managed.run_until(Span::from_secs(1), |managed| managed.duo.is_over(Side::A)));
    assert!(!managed.duo.is_over(Side::B));
    assert!(managed.run_until(Span::from_secs(600), |managed| managed.duo.is_over(Side::B)));
    assert_eq!(Side::BOTH.map(|side| managed.ended(side)), [Some(&AssociationEvent::Closed); 2]);
}

#[test]
fn both_sides_are_protected_and_know_each_other() {
    let mut managed = Managed::new(protecting(2)).established();
    assert_eq!(managed.manager(Side::A).peer_identity(), Some(&identity(2)));
    assert_eq!(managed.manager(Side::B).peer_identity(), Some(&identity(1)));
    assert!(Side::BOTH.iter().all(|&side| managed.association(side).requires_protection()));
    assert!(Side::BOTH.iter().all(|&side| managed.manager(side).phase() == Phase::Young));
    managed.data_flows();
}

#[test]
fn both_sides_export_the_same_and_for_each_context_something_else() {
    let managed = Managed::new(protecting(1)).established();
    let export = |side, label: &[u8], context: &[u8]| {
        let mut out = [0; 32];
        managed.manager(side).export(label, Some(context), &mut out).expect("there are keys");
        out
    };
    let ours = export(Side::A, b"EXPERIMENTAL test", b"one");
    assert_eq!(ours, export(Side::B, b"EXPERIMENTAL test", b"one"));
    assert_ne!(ours, export(Side::B, b"EXPERIMENTAL test", b"two"));
    assert_ne!(ours, export(Side::B, b"EXPERIMENTAL other", b"one"));
}

#[test]
fn the_keys_come_one_round_trip_after_the_association() {
    let mut managed = Managed::new(protecting(1));
    managed.duo.connect();
    assert!(managed.run_until(Span::from_secs(1), |managed| managed.association_is_up(Side::A)));
    let associated = managed.duo.now;
    assert!(managed.run_until(Span::from_secs(1), Managed::is_established));
    assert_eq!(managed.duo.now.since(associated), Span::from_millis(50));
}

#[test]
fn lost_messages_of_the_first_handshake_are_repeated() {
    for seed in 1..30 {
        let mut setup = protecting(2);
        setup.seed = seed;
        setup.link = Link { loss: 200, duplicate: 100, reorder: 100, ..setup.link };
        let mut managed = Managed::new(setup).established();
        managed.data_flows();
        assert_eq!(managed.ended(Side::A), None);
    }
}

#[test]
fn sides_that_open_at_once_have_keys() {
    for seed in 1..9 {
        let either = |config: &mut anabranch_core::AssociationConfig| {
            let methods = Protection::tls_methods();
            let roles = KeyManagementRoles::Either;
            let mode = ProtectionMode::Strict;
            config.protection = Some(Protection { mode, roles, methods, restart: false });
        };
        let mut setup = Setup::new(1, "cmt", "rfc9260").with(either);
        (setup.collide, setup.seed) = (true, seed);
        Managed::new(setup).established().data_flows();
    }
}

#[test]
fn keys_change_under_data_on_three_paths_and_nothing_is_lost() {
    for (seed, loss) in [(1, 0), (2, 20), (3, 100)] {
        let mut setup = protecting(3);
        setup.seed = seed;
        setup.link = Link { loss, duplicate: loss, reorder: loss, ..setup.link };
        let mut managed = with_policy(setup, few_records(100)).established();
        for _ in 0..10 {
            for side in Side::BOTH {
                managed.send_all(side, 20_000, 10);
            }
            managed.arrives();
        }
        for side in Side::BOTH {
            let rekeys =
                managed.reported(side).iter().filter(|told| matches!(told, KeyingEvent::Rekeyed { .. }));
            assert!(rekeys.count() >= 4, "{side:?}: {:?}", managed.reported(side));
            assert!(managed.keying[side.index()].failure().is_none());
            let failed = managed.duo.nodes[side.index()].endpoint.discards().of(Discard::NotAuthentic);
            assert_eq!(failed, 0, "{side:?}");
        }
    }
}

#[test]
fn epochs_are_counted_one_by_one_at_both_sides() {
    let mut managed = with_policy(protecting(1), few_records(40)).established();
    for _ in 0..8 {
        managed.data_flows();
    }
    for side in Side::BOTH {
        let epochs: Vec<u64> = managed.reported(side)[1..]
            .iter()
            .map(|told| match told {
                KeyingEvent::Rekeyed { epoch } => *epoch,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(epochs.len() >= 3, "{epochs:?}");
        assert!(epochs.iter().copied().eq(4..4 + epochs.len() as u64), "{epochs:?}");
        assert_eq!(managed.manager(side).statistics().epochs, epochs.len() as u64 + 1);
    }
}

#[test]
fn keys_age_while_nothing_is_sent() {
    let mut managed = Managed::new(protecting(1)).established();
    managed.run(Span::from_secs(3_599));
    assert_eq!(managed.manager(Side::A).phase(), Phase::Young);
    managed.run(Span::from_secs(2));
    assert_eq!(managed.reported(Side::A), [KeyingEvent::Established, KeyingEvent::Rekeyed { epoch: 4 }]);
    assert_eq!(managed.reported(Side::B), managed.reported(Side::A));
    assert!(Side::BOTH.iter().all(|&side| managed.manager(side).phase() == Phase::Draining));
    managed.run(Span::from_secs(310));
    assert!(Side::BOTH.iter().all(|&side| managed.manager(side).phase() == Phase::Young));
    managed.data_flows();
}

#[test]
fn either_side_can_rekey_and_one_request_wins() {
    let second = Span::from_secs(60);
    let (a, b) = (Some(second), Some(Span::from_nanos(second.as_nanos() / 9 * 8)));
    // The server waits an eighth longer, so with 8/9 of the age both sides ask at the same time.
    for (client, server) in [(a, None), (None, b), (a, b)] {
        let never = Span::from_secs(80_000);
        let mut managed = Managed::new(protecting(1))
            .with_policy(Side::A, |policy| policy.rekey_after = client.unwrap_or(never))
            .with_policy(Side::B, |policy| policy.rekey_after = server.unwrap_or(never))
            .established();
        managed.run(Span::from_secs(62));
        for side in Side::BOTH {
            let told = managed.reported(side);
            assert_eq!(told, [KeyingEvent::Established, KeyingEvent::Rekeyed { epoch: 4 }], "{side:?}");
        }
        managed.data_flows();
    }
}

#[test]
fn server_role_yields_to_a_concurrent_rekey() {
    let age = Span::from_secs(63);
    let mut managed = Managed::new(protecting(1))
        .with_policy(Side::A, |policy| policy.rekey_after = age)
        .with_policy(Side::B, |policy| policy.rekey_after = Span::from_secs(56))
        .established();
    let both =
        |managed: &Managed| Side::BOTH.iter().all(|&side| managed.manager(side).phase() == Phase::LocalAged);
    assert!(managed.run_until(Span::from_secs(64), both), "both have asked");
    managed.run(Span::from_secs(1));
    for side in Side::BOTH {
        assert_eq!(managed.reported(side)[1..], [KeyingEvent::Rekeyed { epoch: 4 }], "{side:?}");
    }
    // The server began two exchanges: its own, and the one that counts.
    let handshakes = Side::BOTH.map(|side| managed.manager(side).statistics().handshakes);
    assert_eq!(handshakes, [2, 3]);
    managed.data_flows();
}

fn rekeyed(managed: &Managed) -> bool {
    Side::BOTH.iter().all(|&side| managed.reported(side).contains(&KeyingEvent::Rekeyed { epoch: 4 }))
}

#[test]
fn peer_that_does_not_read_only_delays_new_keys() {
    let minute = KeyPolicy { rekey_after: Span::from_secs(60), ..KeyPolicy::default() };
    let mut managed = with_policy(protecting(1), minute).established();
    managed.keying[1].paused = true;
    managed.send_all(Side::A, 20_000, 20);
    managed.run(Span::from_secs(200));
    assert_eq!(managed.manager(Side::A).phase(), Phase::LocalAged);
    assert_eq!(managed.association(Side::B).readable_bytes(), managed.association(Side::B).held_bytes());
    managed.keying[1].paused = false;
    managed.arrives();
    assert!(managed.run_until(Span::from_secs(60), rekeyed));
    managed.data_flows();
}

#[test]
fn new_keys_do_not_wait_for_the_data_that_is_queued() {
    let setup = protecting(2).with(|config| config.recv_buffer_bytes = 1 << 20);
    let mut managed = with_policy(setup, few_records(500)).established();
    managed.send_all(Side::A, 16_384, 4_096);
    let begun = |managed: &Managed| managed.manager(Side::A).phase() == Phase::LocalAged;
    assert!(managed.run_until(Span::from_secs(60), begun));
    let asked = managed.duo.now;
    assert!(managed.run_until(Span::from_secs(60), rekeyed));
    let took = managed.duo.now.since(asked);
    assert!(took <= managed.duo.setup.link.delay.times(2).times(4), "{took:?}");
    assert!(managed.association(Side::A).queued_bytes() > 60_000_000);
}

#[test]
fn outage_only_delays_new_keys() {
    let minute = KeyPolicy { rekey_after: Span::from_secs(60), ..KeyPolicy::default() };
    let mut managed = with_policy(protecting(2), minute).established();
    managed.run(Span::from_secs(59));
    managed.duo.cut(0, true);
    managed.duo.cut(1, true);
    managed.run(Span::from_secs(5));
    assert_eq!(managed.manager(Side::A).phase(), Phase::LocalAged);
    managed.duo.cut(1, false);
    // One path stays dead, and gets new data until it has failed.
    assert!(managed.run_until(Span::from_secs(120), rekeyed));
    managed.data_flows();
}

#[test]
fn user_data_is_sent_in_records_only() {
    let mut managed = Managed::new(protecting(2));
    managed.duo.kept = Some(Vec::new());
    let mut managed = managed.established();
    managed.run(Span::from_secs(5));
    let at = managed.duo.kept.as_ref().map_or(0, Vec::len);
    managed.data_flows();
    let since = managed.duo.kept.iter().flatten().skip(at);
    assert!(since.clone().count() > 40);
    for (_, packet) in since {
        assert_eq!(shape(packet), (DTLS, 1));
    }
}

#[test]
fn debug_output_has_no_keys() {
    let managed = with_policy(protecting(1), few_records(60)).established();
    for side in Side::BOTH {
        let shown = format!("{:?}", managed.manager(side));
        assert!(shown.contains("TlsExchange { done: true, .. }"), "{shown}");
        assert!(!shown.contains("secret") && !shown.contains("iv:"), "{shown}");
    }
}

#[test]
fn a_profile_with_small_packets_carries_the_handshake_in_pieces() {
    let setup = protecting(1).with(|config| {
        config.mtu_bytes = 576;
        config.profile = Profile::rfc9260();
    });
    Managed::new(setup).established().data_flows();
}

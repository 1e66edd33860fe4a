//! Associations that one side has lost and restarts with keys that both have stored for it.

use std::cell::Cell;
use std::rc::Rc;

use anabranch_core::protection::{FIRST_EPOCH, SendContext};
use anabranch_core::time::Span;
use anabranch_core::{
    AbortReason, AcceptFrom, AssociationEvent, Discard, Encapsulation, Endpoint, EndpointConfig, Handled,
    Networks, SendError,
};
use anabranch_dtls::{CipherSuite, KeyMaterial};
use anabranch_keying::{KeyPolicy, KeyingError, KeyingEvent, Phase, RestartKeys, TlsExchanges};
use anabranch_tests::credentials::{credentials, identity};
use anabranch_tests::duo::PORT;
use anabranch_tests::managed::{Managed, protecting, restarting};
use anabranch_tests::network::{Link, Packet, Side};
use anabranch_wire::{ChunkType, DtlsUse, Header, NoSpace, PacketWriter};

use crate::protection::rig::{DTLS, dropped, guarded, inject, inject_from, shape, with_checksum, write};

/// Chunk types of unprotected packets.
const INIT: u8 = 1;
const INIT_ACK: u8 = 2;

/// Maximum time of a restart on a good network, with the agreement on new keys.
const SOON: Span = Span::from_secs(5);

fn protected() -> Managed {
    let mut managed = Managed::new(restarting(2)).established();
    managed.duo.kept = Some(Vec::new());
    managed.data_flows();
    managed
}

/// Returns the newest keys that a side has stored.
fn newest(managed: &Managed, side: Side) -> RestartKeys {
    let stored = managed.keying[side.index()].stored.last().expect("there are some");
    RestartKeys::from_bytes(&stored.to_bytes()).expect("as they were stored")
}

/// Removes the state of a side and restarts the association with the newest stored keys.
fn crash_and_restart(managed: &mut Managed, side: Side) {
    let keys = newest(managed, side);
    managed.crash(side);
    managed.restart(side, &keys);
}

fn was_restarted(managed: &Managed, side: Side) -> bool {
    managed.duo.nodes[side.index()].was_told(&AssociationEvent::Restarted)
}

fn sent_since(managed: &Managed, mark: usize) -> Vec<Packet> {
    managed.duo.kept.iter().flatten().skip(mark).map(|(_, packet)| packet.clone()).collect()
}

fn mark(managed: &Managed) -> usize {
    managed.duo.kept.as_ref().map_or(0, Vec::len)
}

#[test]
fn restart_during_data_sends_only_records_after_two_packets() {
    for side in Side::BOTH {
        let mut managed = protected();
        for side in Side::BOTH {
            managed.send_all(side, 20_000, 10);
        }
        managed.run(Span::from_millis(60));
        let at = mark(&managed);
        crash_and_restart(&mut managed, side);
        assert!(managed.run_until(SOON, Managed::is_restarted), "{side:?}");
        assert!(was_restarted(&managed, side.other()) && !was_restarted(&managed, side));
        managed.data_flows();
        let kinds: Vec<u8> = sent_since(&managed, at).iter().map(|packet| shape(packet).0).collect();
        let plain: Vec<u8> = kinds.into_iter().filter(|kind| *kind != DTLS).collect();
        assert_eq!(plain, [INIT, INIT_ACK], "{side:?}");
        // The peer is the same one as before, at both sides.
        assert_eq!(managed.manager(Side::A).peer_identity(), Some(&identity(2)));
        assert_eq!(managed.manager(Side::B).peer_identity(), Some(&identity(1)));
    }
}

#[test]
fn user_data_waits_for_the_first_epoch_which_follows_at_once() {
    let mut managed = protected();
    let began = managed.duo.now;
    crash_and_restart(&mut managed, Side::A);
    let up = |managed: &Managed| managed.reported(Side::A).contains(&KeyingEvent::Restarted);
    assert!(managed.run_until(SOON, up));
    assert_eq!(managed.duo.now.since(began), Span::from_millis(100), "two round trips");
    assert!(managed.association(Side::A).uses_restart_keys());
    assert_eq!(
        (managed.manager(Side::A).peer_identity(), managed.manager(Side::A).is_established()),
        (None, false)
    );
    for side in Side::BOTH {
        assert_eq!(managed.duo.send(side, 1_000, 1, false), Some(Err(SendError::NotProtected)));
    }
    assert!(managed.run_until(SOON, Managed::is_restarted));
    assert!(managed.duo.now.since(began) <= Span::from_millis(200), "four round trips");
    managed.data_flows();
    for side in Side::BOTH {
        assert_eq!(managed.reported(side).last(), Some(&KeyingEvent::Rekeyed { epoch: FIRST_EPOCH }));
        assert!(!managed.association(side).uses_restart_keys());
    }
}

#[test]
fn restart_keys_are_removed_when_their_packets_can_no_longer_arrive() {
    let mut managed = protected();
    crash_and_restart(&mut managed, Side::A);
    assert!(managed.run_until(SOON, Managed::is_restarted));
    assert!(Side::BOTH.iter().all(|&side| managed.manager(side).phase() == Phase::Draining));
    managed.run(Span::from_secs(310));
    for side in Side::BOTH {
        assert_eq!(managed.manager(side).phase(), Phase::Young);
        assert!(!managed.association(side).retire_restart_keys(), "they are gone");
    }
    managed.data_flows();
}

#[test]
fn a_lost_cookie_echo_and_a_lost_cookie_ack_cost_a_retransmission() {
    // The first packets of either side after INIT and INIT ACK are lost.
    for loses in Side::BOTH {
        let mut managed = protected();
        let keys = newest(&managed, Side::A);
        managed.crash(Side::A);
        let lost = Rc::new(Cell::new(0));
        let count = Rc::clone(&lost);
        managed.duo.network.set_filter(move |packet| {
            let passes = packet.from != loses || packet.bytes[12] != DTLS || count.get() >= 3;
            count.set(count.get() + u32::from(!passes));
            passes
        });
        managed.restart(Side::A, &keys);
        assert!(managed.run_until(Span::from_secs(60), Managed::is_restarted), "{loses:?}");
        assert_eq!(lost.get(), 3);
        managed.data_flows();
        assert_eq!(managed.association(Side::B).restarts(), 1, "the repeated cookie restarts nothing");
    }
}

#[test]
fn the_keys_of_the_epoch_before_serve_until_it_has_drained() {
    let policy = KeyPolicy { rekey_after: Span::from_secs(1_000), ..KeyPolicy::default() };
    for (wait, works) in [(60, true), (400, false)] {
        let both = [credentials(1, &[2]), credentials(2, &[1])];
        let mut managed = Managed::with(restarting(1), both, policy.clone()).established();
        managed.run(Span::from_secs(1_001));
        let stored: Vec<u64> = managed.keying[0].stored.iter().map(RestartKeys::epoch).collect();
        assert_eq!(stored, [FIRST_EPOCH, FIRST_EPOCH + 1]);
        managed.run(Span::from_secs(wait));
        let old = managed.keying[0].stored.remove(0);
        managed.crash(Side::A);
        managed.restart(Side::A, &old);
        assert_eq!(managed.run_until(SOON, Managed::is_restarted), works, "{wait}");
        assert_eq!(was_restarted(&managed, Side::B), works);
    }
}

#[test]
fn the_same_keys_restart_no_second_time_and_newer_ones_do() {
    let mut managed = protected();
    let keys = newest(&managed, Side::A);
    managed.crash(Side::A);
    managed.restart(Side::A, &keys);
    assert!(managed.run_until(SOON, Managed::is_restarted));
    let newer = newest(&managed, Side::A);
    managed.crash(Side::A);
    managed.restart(Side::A, &keys);
    managed.run(Span::from_secs(10));
    assert_eq!(managed.association(Side::B).restarts(), 1);
    assert!(dropped(&managed.duo, Side::B, Discard::NotAuthentic) > 0);
    managed.crash(Side::A);
    managed.restart(Side::A, &newer);
    assert!(managed.run_until(SOON, Managed::is_restarted));
    assert_eq!(managed.association(Side::B).restarts(), 2);
    managed.data_flows();
}

#[test]
fn second_restart_before_new_keys_is_refused() {
    let mut managed = protected();
    let keys = newest(&managed, Side::A);
    managed.crash(Side::A);
    managed.restart(Side::A, &keys);
    assert!(managed.run_until(SOON, |managed| was_restarted(managed, Side::B)));
    managed.crash(Side::A);
    managed.restart(Side::A, &keys);
    managed.run(Span::from_secs(10));
    assert_eq!(managed.association(Side::B).restarts(), 1);
    assert!(dropped(&managed.duo, Side::B, Discard::NoKey) > 0);
}

#[test]
fn restart_with_other_keys_is_refused() {
    let mut managed = protected();
    let others = newest(&Managed::new(restarting(1)).established(), Side::A);
    managed.crash(Side::A);
    managed.restart(Side::A, &others);
    managed.run(Span::from_secs(8));
    assert!(dropped(&managed.duo, Side::B, Discard::NotAuthentic) > 0 && !was_restarted(&managed, Side::B));
    assert_eq!(managed.ended(Side::B), None);
    managed.run(Span::from_secs(600));
    assert_eq!(managed.ended(Side::A), Some(&AssociationEvent::Aborted(AbortReason::NoAnswer)));
}

#[test]
fn side_without_its_keys_accepts_no_restart() {
    let mut managed = protected();
    managed.crash(Side::A);
    managed.duo.connect_side(Side::A);
    managed.run(SOON);
    assert!(dropped(&managed.duo, Side::B, Discard::Unprotected) > 0 && !was_restarted(&managed, Side::B));
    assert_eq!((managed.ended(Side::A), managed.ended(Side::B)), (None, None));
}

#[test]
fn peer_without_restart_keys_is_detected_by_its_init_ack() {
    let keys = newest(&protected(), Side::A);
    let setup = restarting(1)
        .with_side(Side::B, |config| config.protection.as_mut().expect("wanted").restart = false);
    let mut managed = Managed::new(setup).established();
    assert!(managed.keying.iter().all(|keying| keying.stored.is_empty()));
    managed.crash(Side::A);
    managed.restart(Side::A, &keys);
    managed.run(SOON);
    let why = "the peer keeps no keys for a restart; open a new association";
    assert_eq!(managed.ended(Side::A), Some(&AssociationEvent::Aborted(AbortReason::NotProtected(why))));
    assert_eq!(managed.ended(Side::B), None);
}

#[test]
fn record_for_an_unagreed_restart_is_dropped() {
    let mut managed = Managed::new(protecting(1)).established();
    let header = Header { source_port: PORT, destination_port: PORT, verification_tag: 7 };
    let record = write(header, |w| w.raw_parts(ChunkType::DTLS, 1, &[0; 40]));
    assert_eq!(inject(&mut managed.duo, Side::A, record), Handled::Discarded(Discard::Malformed));
    let value = [&[0, 0x2B][..], &[9; 40]].concat();
    let record = write(header, |w| w.raw_parts(ChunkType::DTLS, 1, &value));
    assert_eq!(inject(&mut managed.duo, Side::A, record), Handled::Discarded(Discard::NoKey));
    managed.data_flows();
}

#[test]
fn replay_of_a_whole_restart_has_no_effect() {
    let mut managed = protected();
    let at = mark(&managed);
    crash_and_restart(&mut managed, Side::A);
    assert!(managed.run_until(SOON, Managed::is_restarted));
    managed.data_flows();
    managed.run(Span::from_secs(1));
    for packet in sent_since(&managed, at) {
        let handled = inject(&mut managed.duo, packet.from, packet.bytes.clone());
        let harmless = match shape(&packet).0 {
            INIT => handled == Handled::Replied,
            // Packets from before the crash use unknown tags and keys.
            _ => matches!(
                handled,
                Handled::Discarded(
                    Discard::Replayed | Discard::NoKey | Discard::VerificationTag | Discard::Unprotected
                )
            ),
        };
        assert!(harmless, "{:?}: {handled:?}", shape(&packet));
    }
    assert_eq!(managed.association(Side::B).restarts(), 1);
    managed.data_flows();
}

#[test]
fn init_of_another_peer_changes_nothing() {
    let mut managed = Managed::new(restarting(1));
    managed.duo.kept = Some(Vec::new());
    let mut managed = managed.established();
    let init = sent_since(&managed, 0).into_iter().find(|packet| shape(packet).0 == INIT).expect("an INIT");
    for _ in 0..10 {
        assert_eq!(inject(&mut managed.duo, Side::A, init.bytes.clone()), Handled::Replied);
        managed.data_flows();
    }
    assert!(!was_restarted(&managed, Side::B));
}

#[test]
fn restart_from_another_address_is_refused() {
    let mut managed = protected();
    let keys = newest(&managed, Side::A);
    managed.crash(Side::A);
    let at = mark(&managed);
    managed.restart(Side::A, &keys);
    // The handshake proceeds up to the COOKIE ECHO, which the attacker holds back.
    managed.duo.network.set_filter(|packet| packet.from != Side::A || packet.bytes[12] != DTLS);
    managed.run(Span::from_secs(1));
    let echo =
        sent_since(&managed, at).into_iter().find(|packet| packet.from == Side::A && shape(packet).0 == DTLS);
    let echo = echo.expect("a COOKIE ECHO");
    let stranger = std::net::IpAddr::from([10, 77, 0, 1]);
    let handled = inject_from(&mut managed.duo, Side::A, stranger, echo.destination, echo.bytes.clone());
    assert!(!matches!(handled, Handled::Delivered(_) | Handled::New(_)), "{handled:?}");
    assert!(!was_restarted(&managed, Side::B));
    // The cookie is still valid in a packet from the endpoint's own address.
    let handled = inject_from(&mut managed.duo, Side::A, echo.source, echo.destination, echo.bytes);
    assert!(matches!(handled, Handled::Delivered(_)), "{handled:?}");
    managed.duo.network.clear_filter();
    assert!(managed.run_until(SOON, Managed::is_restarted));
}

#[test]
fn thief_of_the_keys_loses_the_association_without_proof_of_identity() {
    // The survivor accepts the thief's key as that of another identity, or of none.
    for (accepted, ends) in [(&[1, 9][..], KeyingError::IdentityChanged), (&[1][..], refused())] {
        let both = [credentials(1, &[2]), credentials(2, accepted)];
        let mut managed = Managed::with(restarting(1), both, KeyPolicy::default()).established();
        let keys = newest(&managed, Side::A);
        managed.crash(Side::A);
        let mut managed = managed.with_exchanges(Side::A, TlsExchanges::new(credentials(9, &[2])));
        managed.restart(Side::A, &keys);
        managed.run(SOON);
        assert_eq!(managed.keying[1].failure(), Some(ends));
        assert!(Side::BOTH.iter().all(|&side| managed.duo.is_over(side)));
    }
}

/// Returns the error for a key that is not accepted.
fn refused() -> KeyingError {
    KeyingError::Tls(anabranch_keying::TlsProblem::Identity(49))
}

#[test]
fn holder_of_keys_without_new_agreement_is_ended_after_30_seconds() {
    let mut managed = Managed::new(restarting(1)).established();
    let keys = newest(&managed, Side::A);
    managed.crash(Side::A);
    let mut managed = managed.with_silent(Side::A);
    managed.restart(Side::A, &keys);
    managed.run(Span::from_secs(29));
    assert!(was_restarted(&managed, Side::B) && managed.ended(Side::B).is_none());
    managed.run(Span::from_secs(3));
    let why = AbortReason::KeyManagement(KeyingError::TimedOut.text());
    assert_eq!(managed.ended(Side::B), Some(&AssociationEvent::Aborted(why)));
}

#[test]
fn numbers_that_were_changed_in_an_init_lose_no_message() {
    // A receiver that treats the first chunks as duplicates acknowledges them unread: they have to be the key management's.
    for changed in [INIT, INIT_ACK] {
        let mut managed = protected();
        managed.duo.network.set_tampering(move |packet| {
            if packet.bytes[12] == changed {
                // This is the initial TSN.
                let tsn = u32::from_be_bytes(packet.bytes[28..32].try_into().expect("four bytes"));
                packet.bytes[28..32].copy_from_slice(&tsn.wrapping_add(1).to_be_bytes());
                packet.bytes = with_checksum(std::mem::take(&mut packet.bytes));
            }
            true
        });
        crash_and_restart(&mut managed, Side::A);
        assert!(!managed.run_until(Span::from_secs(60), Managed::is_restarted), "{changed}");
        assert!(was_restarted(&managed, Side::B), "{changed}");
        assert!(Side::BOTH.iter().all(|&side| managed.duo.is_over(side)), "{changed}");
        for side in Side::BOTH {
            let sent = managed.duo.send(side, 1_000, 1, false);
            assert_ne!(sent, Some(Ok(())), "no message was taken");
        }
    }
}

#[test]
fn both_sides_restart_at_once() {
    let mut managed = protected();
    let keys = Side::BOTH.map(|side| newest(&managed, side));
    for side in Side::BOTH {
        managed.crash(side);
    }
    for side in Side::BOTH {
        managed.duo.restart_side(side, keys[side.index()].context());
    }
    managed.settle();
    assert!(managed.run_until(Span::from_secs(60), Managed::is_restarted));
    managed.data_flows();
}

#[test]
fn source_that_is_not_admitted_cannot_restart() {
    let setup = restarting(1);
    let networks = Networks::new(["10.99.0.0/16".parse().expect("a network")]).expect("a list");
    let config = EndpointConfig {
        port: PORT,
        addresses: vec![setup.address(Side::A, 0)],
        encapsulation: Encapsulation::None,
        accept: Some(setup.sides[0].clone()),
        accept_from: AcceptFrom::Networks(networks),
        max_associations: 4,
        guard: None,
    };
    let mut managed = Managed::new(setup);
    managed.duo.nodes[0].endpoint = Endpoint::new(managed.duo.now, config, [9; 32]);
    let mut managed = managed.established();
    crash_and_restart(&mut managed, Side::B);
    managed.run(SOON);
    assert!(dropped(&managed.duo, Side::A, Discard::NotAdmitted) > 0 && !was_restarted(&managed, Side::A));
    let record = sealed(&newest(&managed, Side::B), 7, |w| w.cookie_echo(b"cookie"));
    assert_eq!(inject(&mut managed.duo, Side::B, record), Handled::Discarded(Discard::NotAdmitted));
}

/// Returns a packet with a forged record under these keys and bit R.
fn sealed(
    keys: &RestartKeys,
    tag: u32,
    chunks: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), NoSpace>,
) -> Vec<u8> {
    let bytes = keys.to_bytes();
    let suite = CipherSuite::of_number(u16::from_be_bytes([bytes[1], bytes[2]])).expect("a suite");
    let (key, rest) = bytes[11..].split_at(suite.key_len());
    let (mask, rest) = rest.split_at(suite.key_len());
    let material = KeyMaterial::new(suite, key, mask, &rest[..KeyMaterial::IV_LEN]).expect("keys of a suite");
    let mut context = SendContext::new(keys.epoch(), material.cipher());
    let header = Header { source_port: PORT, destination_port: PORT, verification_tag: tag };
    let mut packet = vec![0; 2_000];
    let mut writer = PacketWriter::protected(&mut packet, header, 16).expect("room");
    chunks(&mut writer).expect("room for chunks");
    let length = writer.finish_protected(DtlsUse::Restart, |record| context.seal(record)).expect("sealed");
    packet.truncate(length);
    packet
}

/// Function that writes the chunks of a packet.
type Write = fn(&mut PacketWriter<'_>) -> Result<(), NoSpace>;

#[test]
fn only_a_valid_cookie_echo_restarts_a_holder_of_the_keys() {
    let tries: [(Write, Discard); 5] = [
        (|w| w.abort(false, []), Discard::Unexpected),
        (|w| w.heartbeat(b"1234"), Discard::Unexpected),
        (|w| w.shutdown_ack(), Discard::Unexpected),
        (|w| w.cookie_ack().and_then(|()| w.cookie_echo(b"cookie")), Discard::Unexpected),
        (|w| w.cookie_echo(b"cookie"), Discard::CookieForged),
    ];
    for (chunks, reason) in tries {
        let mut managed = protected();
        let keys = newest(&managed, Side::A);
        let record = sealed(&keys, 7, chunks);
        assert_eq!(inject(&mut managed.duo, Side::A, record.clone()), Handled::Discarded(reason));
        assert_eq!(inject(&mut managed.duo, Side::A, record), Handled::Discarded(Discard::Replayed));
        // Under the tag of the association there are no such keys.
        let tag = managed.duo.kept.iter().flatten().rfind(|(_, packet)| packet.from == Side::A);
        let tag: [u8; 4] = tag.expect("it has sent").1.bytes[4..8].try_into().expect("four bytes");
        let record = sealed(&keys, u32::from_be_bytes(tag), chunks);
        assert_eq!(inject(&mut managed.duo, Side::A, record), Handled::Discarded(Discard::NoKey));
        managed.data_flows();
        assert!(!was_restarted(&managed, Side::B) && managed.ended(Side::B).is_none());
    }
}

#[test]
fn a_guarded_host_is_restarted_too() {
    let mut managed = guarded(restarting(1)).established();
    managed.data_flows();
    crash_and_restart(&mut managed, Side::A);
    assert!(managed.run_until(SOON, Managed::is_restarted));
    managed.data_flows();
}

#[test]
fn repeated_crashes_on_a_bad_network_continue_each_time() {
    for seed in 1..16 {
        let mut setup = restarting(1 + seed as usize % 3);
        setup.seed = 1_000 * seed;
        setup.link = Link { loss: 100, duplicate: 100, reorder: 100, ..setup.link };
        let mut managed = Managed::new(setup).established();
        for round in 0..6 {
            let side = Side::BOTH[(seed as usize + round * round / 2) % 2];
            managed.data_flows();
            crash_and_restart(&mut managed, side);
            assert!(
                managed.run_until(Span::from_secs(120), Managed::is_restarted),
                "seed {seed}, round {round}"
            );
        }
        managed.data_flows();
        assert!(Side::BOTH.iter().all(|&side| managed.ended(side).is_none()), "seed {seed}");
    }
}

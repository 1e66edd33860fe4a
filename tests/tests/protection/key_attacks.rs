//! Peers and third parties that prevent the agreement on keys.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_core::time::Span;
use anabranch_core::{AbortReason, AssociationEvent, Discard};
use anabranch_keying::{
    KeyExchange, KeyExchanges, KeyPolicy, KeyingError, KeyingEvent, Part, Phase, TlsExchanges, TlsProblem,
};
use anabranch_tests::credentials::credentials;
use anabranch_tests::managed::{Managed, protecting};
use anabranch_tests::network::{Link, Side};
use bytes::Bytes;
use proptest::prelude::*;

use crate::protection::rig::{inject, with_checksum};

/// Returns a message of TLS records for this epoch.
fn records(epoch: u8, records: &[u8]) -> Bytes {
    Bytes::from([&[epoch], records].concat())
}

/// Returns the first message of a client.
fn hello() -> Vec<u8> {
    let mut hello = Vec::new();
    let exchange = TlsExchanges::new(credentials(1, &[2])).start(Part::Client);
    exchange.expect("a client").begin(&mut hello).expect("a ClientHello");
    hello
}

/// Runs a peer that sends these messages instead of a handshake. Returns the reason for which the other side ends the association.
fn refused(attacker: Side, messages: &[Bytes]) -> Option<KeyingError> {
    let mut managed = Managed::new(protecting(1)).with_silent(attacker);
    managed.duo.connect();
    let up = |managed: &Managed| {
        let association = managed.duo.nodes[attacker.index()].try_association();
        association.is_some_and(|association| association.is_established())
    };
    assert!(managed.run_until(Span::from_secs(1), up));
    for message in messages {
        // The association may end after some of them.
        let _ = managed.association(attacker).send_key_management(message.clone());
        managed.run(Span::from_millis(200));
    }
    managed.run(Span::from_secs(5));
    let victim = attacker.other();
    let failure = managed.keying[victim.index()].failure();
    if let Some(error) = failure {
        let why = AbortReason::KeyManagement(error.text());
        assert_eq!(managed.ended(victim), Some(&AssociationEvent::Aborted(why)));
        assert_eq!(managed.ended(attacker), Some(&AssociationEvent::Aborted(AbortReason::ByPeer)));
        assert!(
            managed.manager(victim).phase() == Phase::Failed && managed.manager(victim).deadline().is_none()
        );
    }
    failure
}

#[test]
fn garbage_ends_the_association_with_the_reason() {
    let server_refuses = |messages: &[Bytes]| refused(Side::A, messages);
    let garbage = Bytes::from_static(&[3; 300]);
    assert_eq!(server_refuses(&[garbage]), Some(KeyingError::Unexpected));
    assert_eq!(server_refuses(&[Bytes::from_static(&[3])]), Some(KeyingError::Malformed));
    assert_eq!(server_refuses(&[Bytes::from_static(&[0x83, 9])]), Some(KeyingError::Malformed));
    let half = records(3, &hello()[..100]);
    assert_eq!(server_refuses(&[half]), Some(KeyingError::Malformed));
    let mut bad = hello();
    // This byte is the length of the session identifier.
    bad[43] ^= 0xFF;
    let misbehaved = server_refuses(&[records(3, &bad)]);
    assert!(matches!(misbehaved, Some(KeyingError::Tls(_))), "{misbehaved:?}");
}

#[test]
fn messages_out_of_turn_end_the_association() {
    let established = Bytes::from_static(&[0x83, 1]);
    assert_eq!(refused(Side::A, std::slice::from_ref(&established)), Some(KeyingError::Unexpected));
    assert_eq!(refused(Side::A, &[records(3, &hello()), established.clone()]), Some(KeyingError::Unexpected));
    assert_eq!(refused(Side::B, &[established]), Some(KeyingError::Unexpected));
    assert_eq!(refused(Side::A, &[records(4, &hello())]), Some(KeyingError::WrongEpoch));
    assert_eq!(refused(Side::A, &[records(2, &hello())]), Some(KeyingError::WrongEpoch));
    // The first message of the other side is answered by another first message.
    let answered = refused(Side::B, &[records(3, &hello())]);
    assert_eq!(answered, Some(KeyingError::Tls(TlsProblem::Misbehaved)));
}

#[test]
fn a_handshake_is_no_longer_than_it_needs_to_be() {
    let long = records(3, &vec![22; 70_000]);
    assert_eq!(refused(Side::A, &[long]), Some(KeyingError::TooLong));
    // A ClientHello in records of a byte each, one in each message.
    let hello = hello();
    let mut fragments = hello[5..].iter();
    let mut next = || {
        let record = [22, 3, 1, 0, 1, *fragments.next().expect("a hello is long")];
        records(3, &record)
    };
    let many: Vec<Bytes> = (0..20).map(|_| next()).collect();
    assert_eq!(refused(Side::A, &many), Some(KeyingError::TooLong));
}

#[test]
fn stalled_handshake_is_abandoned() {
    for silent in Side::BOTH {
        let mut managed = Managed::new(protecting(1)).with_silent(silent);
        managed.duo.connect();
        managed.run(Span::from_secs(29));
        assert_eq!(managed.ended(silent.other()), None);
        managed.run(Span::from_secs(2));
        assert_eq!(managed.keying[silent.other().index()].failure(), Some(KeyingError::TimedOut));
        let why = AbortReason::KeyManagement(KeyingError::TimedOut.text());
        assert_eq!(managed.ended(silent.other()), Some(&AssociationEvent::Aborted(why)));
    }
}

#[test]
fn a_server_that_computed_an_answer_waits_no_longer_than_one_that_did_not() {
    let mut managed = Managed::new(protecting(1)).with_silent(Side::A);
    managed.duo.connect();
    managed.run(Span::from_secs(20));
    managed.association(Side::A).send_key_management(records(3, &hello())).expect("it is sent");
    managed.run(Span::from_secs(11));
    assert_eq!(managed.keying[1].failure(), Some(KeyingError::TimedOut));
}

#[test]
fn rejected_identity_ends_the_association_with_a_reason_on_both_sides() {
    let failures = |a, b| {
        let mut managed = Managed::with(protecting(1), [a, b], KeyPolicy::default());
        managed.duo.connect();
        managed.run(Span::from_secs(2));
        assert!(Side::BOTH.iter().all(|&side| !managed.association_is_up(side)));
        Side::BOTH.map(|side| {
            let meaning = managed.manager(side).meaning_of_abort();
            managed.keying[side.index()].failure().or(meaning)
        })
    };
    let refused = Some(KeyingError::Tls(TlsProblem::Identity(49)));
    let told = Some(KeyingError::Tls(TlsProblem::PeerAlert(49)));
    assert_eq!(failures(credentials(1, &[9]), credentials(2, &[1])), [refused, told]);
    let told = Some(KeyingError::Tls(TlsProblem::Refused(49)));
    assert_eq!(failures(credentials(1, &[2]), credentials(2, &[9])), [told, refused]);
}

/// Chunk types of RFC 9260.
const INIT: u8 = 1;
const ABORT: u8 = 6;
const COOKIE_ECHO: u8 = 10;

/// Returns the common header of the last packet that a side has sent.
fn last_header(managed: &Managed, side: Side) -> [u8; 12] {
    let mut kept = managed.duo.kept.iter().flatten().filter(|(_, packet)| packet.from == side);
    kept.next_back().and_then(|(_, packet)| packet.bytes.first_chunk()).copied().expect("packets are kept")
}

#[test]
fn refusal_whose_alert_is_lost_is_no_verdict() {
    let credentials = [credentials(1, &[2]), credentials(2, &[9])];
    let mut managed = Managed::with(protecting(1), credentials, KeyPolicy::default());
    managed.duo.kept = Some(Vec::new());
    managed.duo.connect();
    let is_refused = |managed: &Managed| managed.keying[1].failure().is_some();
    assert!(managed.run_until(Span::from_secs(2), is_refused));
    // The alert is lost, and the ABORT behind it arrives.
    managed.duo.network.lose_all();
    let abort = [&last_header(&managed, Side::B)[..], &[ABORT, 0, 0, 4]].concat();
    inject(&mut managed.duo, Side::B, with_checksum(abort));
    managed.settle();
    assert_eq!(managed.ended(Side::A), Some(&AssociationEvent::Aborted(AbortReason::ByPeer)));
    let error = managed.manager(Side::A).meaning_of_abort();
    assert_eq!(error, Some(KeyingError::Unconfirmed));
    assert!(error.is_some_and(|error| error.is_transient() && !error.is_refusal()));
    assert_eq!(managed.keying[0].failure(), None, "no alert has arrived");
}

#[test]
fn stale_cookie_restarts_the_handshake_and_keys_are_agreed_on() {
    let life = Span::from_millis(100);
    let setup = protecting(1).with_side(Side::B, |config| config.profile.cookie_life = life);
    let mut managed = Managed::new(setup);
    // The cookie is sent in two packets with parts of the first message, and is stale when it is retransmitted.
    let mut lost = 0;
    managed.duo.network.set_tampering(move |packet| {
        let is_lost = packet.bytes[12] == COOKIE_ECHO && lost < 2;
        lost += u32::from(is_lost);
        !is_lost
    });
    managed.duo.kept = Some(Vec::new());
    managed.duo.connect();
    let mut managed = managed.established_from_here();
    let kept = managed.duo.kept.iter().flatten();
    let kinds: Vec<(Side, u8)> = kept.map(|(_, packet)| (packet.from, packet.bytes[12])).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == (Side::A, INIT)).count(), 2, "{kinds:?}");
    assert_eq!(managed.keying.each_ref().map(|keying| keying.failure()), [None; 2]);
    managed.data_flows();
}

#[test]
fn reflected_abort_alone_is_no_verdict() {
    let mut managed = Managed::new(protecting(1)).with_silent(Side::B);
    managed.duo.kept = Some(Vec::new());
    managed.duo.connect();
    managed.run(Span::from_secs(1));
    let own = last_header(&managed, Side::A);
    // The ports and the tag of the client's own packets are visible to everyone on the path.
    let forged = [&own[2..4], &own[0..2], &own[4..8], &[0; 4], &[ABORT, 1, 0, 4]].concat();
    inject(&mut managed.duo, Side::B, with_checksum(forged));
    managed.settle();
    assert_eq!(managed.ended(Side::A), Some(&AssociationEvent::Aborted(AbortReason::ByPeer)));
    let error = managed.manager(Side::A).meaning_of_abort().expect("keys were agreed on");
    assert!(error.is_transient() && !error.is_refusal(), "{error:?}");
}

#[test]
fn changed_offer_is_detected() {
    let mut managed = Managed::new(protecting(1));
    let held = Rc::new(RefCell::new(Vec::new()));
    let catch = Rc::clone(&held);
    managed.duo.network.set_filter(move |packet| {
        let is_init = packet.bytes[12] == 1;
        if is_init {
            catch.borrow_mut().push(packet.bytes.clone());
        }
        !is_init
    });
    managed.duo.connect();
    let mut init = held.borrow_mut().pop().expect("an INIT");
    let parameter = init.windows(4).position(|bytes| bytes == [0x80, 6, 0, 11]).expect("an offer");
    // The changed byte is in the tie breaker, which has no effect in this case.
    init[parameter + 4] ^= 1;
    inject(&mut managed.duo, Side::A, with_checksum(init));
    assert!(!managed.run_until(Span::from_secs(40), Managed::is_established));
    assert_eq!(managed.keying[0].failure(), Some(KeyingError::KeysDiffer));
    assert!(managed.duo.nodes[0].endpoint.discards().of(Discard::NotAuthentic) > 0);
}

#[test]
fn old_handshake_messages_under_a_new_epoch_are_ignored() {
    let mut managed = Managed::new(protecting(1)).established();
    managed.association(Side::A).send_key_management(records(4, &hello())).expect("it is sent");
    managed.settle();
    managed.run(Span::from_secs(1));
    // The answer to the stranger's hello fails at A, which has requested nothing.
    assert_eq!(managed.manager(Side::B).phase(), Phase::RemoteAged);
    managed.association(Side::A).send_key_management(records(4, &hello())).expect("it is sent");
    managed.settle();
    managed.run(Span::from_secs(1));
    assert!(matches!(managed.reported(Side::B)[1..], [KeyingEvent::RekeyFailed(KeyingError::Tls(_))]));
    managed.data_flows();
    // Messages under keys in use count as the end of their TLS connection, up to a number.
    for sent in 0..17 {
        managed.association(Side::A).send_key_management(records(3, &hello())).expect("it is sent");
        managed.settle();
        managed.run(Span::from_millis(100));
        assert_eq!(managed.keying[1].failure().is_some(), sent == 16);
    }
    assert_eq!(managed.keying[1].failure(), Some(KeyingError::WrongEpoch));
}

#[test]
fn peer_that_rekeys_without_pause_is_aborted() {
    let mut managed = Managed::new(protecting(1)).established();
    for _ in 0..40 {
        let Some(association) = managed.duo.nodes[0].try_association_mut() else { break };
        let _ = association.send_key_management(records(4, &hello()));
        managed.settle();
        managed.run(Span::from_millis(60));
    }
    assert_eq!(managed.keying[1].failure(), Some(KeyingError::TooOften));
    // The counted exchanges are the first one, and those within the limit.
    assert!(managed.manager(Side::B).statistics().handshakes <= 12);
}

/// A side with another identity from the second exchange on.
#[derive(Debug)]
struct TwoFaced {
    faces: [TlsExchanges; 2],
    begun: AtomicUsize,
}

impl KeyExchanges for TwoFaced {
    fn start(&self, part: Part) -> Result<Box<dyn KeyExchange>, KeyingError> {
        let nth = self.begun.fetch_add(1, Ordering::Relaxed);
        self.faces[nth.min(1)].start(part)
    }

    fn begins(&self, records: &[u8]) -> bool {
        self.faces[0].begins(records)
    }
}

#[test]
fn new_keys_do_not_change_the_identity() {
    for side in Side::BOTH {
        let minute = KeyPolicy { rekey_after: Span::from_secs(60), ..KeyPolicy::default() };
        let (own, peer) = (side.index() as u8 + 1, side.other().index() as u8 + 1);
        let faces = [own, 9].map(|key| TlsExchanges::new(credentials(key, &[peer])));
        let two_faced = TwoFaced { faces, begun: AtomicUsize::new(0) };
        let mut both = [credentials(1, &[2, 9]), credentials(2, &[1, 9])];
        both[side.index()] = credentials(own, &[peer]);
        let managed = Managed::with(protecting(1), both, minute).with_exchanges(side, two_faced);
        let mut managed = managed.established();
        managed.run(Span::from_secs(70));
        let failure = managed.keying[side.other().index()].failure();
        assert_eq!(failure, Some(KeyingError::IdentityChanged), "{side:?}");
        assert!(managed.ended(side.other()).is_some());
    }
}

#[test]
fn a_rekey_that_fails_is_tried_again_while_the_keys_are_good() {
    let policy = KeyPolicy {
        rekey_after: Span::from_secs(60),
        expire_after: Span::from_secs(120),
        ..KeyPolicy::default()
    };
    let faces = [2, 9].map(|key| TlsExchanges::new(credentials(key, &[1])));
    let two_faced = TwoFaced { faces, begun: AtomicUsize::new(0) };
    let both = [credentials(1, &[2]), credentials(2, &[1])];
    let mut managed =
        Managed::with(protecting(1), both, policy).with_exchanges(Side::B, two_faced).established();
    managed.run(Span::from_secs(100));
    let failed =
        managed.reported(Side::A).iter().filter(|told| matches!(told, KeyingEvent::RekeyFailed(_))).count();
    assert!((3..6).contains(&failed), "{:?}", managed.reported(Side::A));
    managed.data_flows();
    managed.run(Span::from_secs(30));
    let failures = Side::BOTH.map(|side| managed.keying[side.index()].failure());
    assert!(failures.contains(&Some(KeyingError::Expired)), "{failures:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// The attacker sees every packet, and repeats, changes, truncates and delays packets while keys are agreed or replaced.
    #[test]
    fn data_is_never_changed_and_an_end_has_a_reason(
        seed in any::<u64>(),
        loss in 0_u32..150,
        reorder in 0_u32..200,
        early in any::<bool>(),
        attacks in prop::collection::vec(any::<(usize, usize, u8, bool)>(), 0..60),
    ) {
        let mut setup = protecting(2);
        setup.seed = seed;
        setup.link = Link { loss, reorder, duplicate: loss, ..setup.link };
        let policy = KeyPolicy { rekey_records: 60, peer_burst: 1_000, ..KeyPolicy::default() };
        let mut managed = Managed::with(setup, [credentials(1, &[2]), credentials(2, &[1])], policy);
        managed.duo.kept = Some(Vec::new());
        if !early {
            managed = managed.established();
        } else {
            managed.duo.connect();
        }
        for (nth, (which, at, change, cut)) in attacks.into_iter().enumerate() {
            managed.run(Span::from_millis(20));
            let kept = managed.duo.kept.as_ref().expect("packets are kept");
            let (_, packet) = &kept[which % kept.len()];
            let (from, mut bytes) = (packet.from, packet.bytes.clone());
            let position = 12 + at % (bytes.len() - 12);
            bytes[position] ^= change;
            if cut {
                bytes.truncate(position.max(16));
            }
            inject(&mut managed.duo, from, with_checksum(bytes));
            if nth % 8 == 0 && managed.is_established() && Side::BOTH.iter().all(|&side| managed.association_is_up(side)) {
                for side in Side::BOTH {
                    managed.send_all(side, 3_000, 5);
                }
            }
        }
        // The flows compare every byte that arrives with the sent one.
        managed.run(Span::from_secs(400));
        let complete = Side::BOTH.iter().all(|&side| managed.duo.all_arrived(side));
        let over = Side::BOTH.iter().any(|&side| managed.ended(side).is_some());
        prop_assert!(complete || over || !managed.is_established());
        if !early {
            prop_assert!(!over, "{:?} {:?}", managed.ended(Side::A), managed.ended(Side::B));
        }
    }
}

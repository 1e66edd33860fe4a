//! Agreement of both sides in the handshake, and permitted data before there are keys.

use anabranch_core::protection::{
    FIRST_EPOCH, KEY_MANAGEMENT_PPID, KeyError, KeyManagementMethod, KeyManagementRole, KeyManagementRoles,
    NullCipher, ProtectionMode,
};
use anabranch_core::time::{Span, Time};
use anabranch_core::{AbortReason, AssociationEvent, Discard, Guard, SendError, SendOptions};
use anabranch_dtls::CipherSuite;
use anabranch_tests::duo::{Duo, Reading, Setup};
use anabranch_tests::network::Side;
use anabranch_wire::{Cause, Chunk, DataFlags, DataRepr, PacketView, Param, ParamType, Ssn, StreamId, Tsn};
use bytes::Bytes;

use crate::protection::rig::{
    agreed, association, cipher, data_flows, dropped, inject, install, plain, protected, setup, shape, wanted,
};

#[test]
fn both_sides_know_the_same_parameters_and_opposite_roles() {
    let duo = agreed(setup(1));
    let [a, b] = Side::BOTH.map(|side| duo.nodes[side.index()].association().protection().expect("agreed"));
    assert_eq!((a.role(), b.role()), (KeyManagementRole::Client, KeyManagementRole::Server));
    assert_eq!((a.method(), b.method()), (KeyManagementMethod::TLS, KeyManagementMethod::TLS));
    let (ours, theirs) = a.parameters();
    assert_eq!((theirs, ours), b.parameters());
    assert_eq!((&ours[..4], ours.len()), (&[0x80, 6, 0, 10][..], 10));
}

#[test]
fn a_strict_side_refuses_a_peer_without_protection() {
    let mut duo = Duo::new(setup(1).with_side(Side::A, |config| config.protection = None));
    duo.kept = Some(Vec::new());
    duo.connect();
    duo.run(Span::from_secs(1));
    let refused = "the peer requires protection, and this side does not protect its packets";
    let refused = AssociationEvent::Aborted(AbortReason::NotProtected(refused));
    assert_eq!(duo.nodes[0].ended, Some(refused));
    let abort = duo.kept.iter().flatten().map(|(_, packet)| packet).find(|packet| shape(packet).0 == 6);
    let view = PacketView::parse(&abort.expect("an ABORT").bytes).expect("a packet");
    let Ok(Chunk::Abort(abort)) = view.chunks().next().expect("a chunk").expect("a chunk").decode() else {
        panic!("no ABORT")
    };
    assert!(abort.causes().eq([Ok(Cause::MissingDtlsSupport)]));

    let mut duo = Duo::new(setup(1).with_side(Side::B, |config| config.protection = None));
    duo.connect();
    duo.run(Span::from_secs(1));
    let why =
        AbortReason::NotProtected("the peer does not protect its packets, and this side requires protection");
    assert_eq!(duo.nodes[0].ended, Some(AssociationEvent::Aborted(why)));
}

#[test]
fn two_equal_roles_end_the_attempt() {
    for roles in [KeyManagementRoles::Client, KeyManagementRoles::Server] {
        let both = |config: &mut anabranch_core::AssociationConfig| {
            config.protection = wanted(ProtectionMode::Strict, roles);
        };
        let mut duo = Duo::new(setup(1).with(both));
        duo.connect();
        duo.run(Span::from_secs(1));
        let why = AbortReason::NotProtected(
            "the peer's roles in the key management do not go with those of this side",
        );
        assert_eq!(duo.nodes[0].ended, Some(AssociationEvent::Aborted(why)));
    }
}

#[test]
fn lenient_side_accepts_an_unprotected_peer() {
    for loose in Side::BOTH {
        let roles = KeyManagementRoles::Either;
        let setup = Setup::new(2, "cmt", "rfc9260")
            .with_side(loose, |config| config.protection = wanted(ProtectionMode::Loose, roles));
        let mut duo = agreed(setup);
        assert!(Side::BOTH.iter().all(|side| duo.nodes[side.index()].association().protection().is_none()));
        data_flows(&mut duo);
        let early = association(&mut duo, loose).install_receive_key(FIRST_EPOCH, Box::new(NullCipher));
        assert_eq!(early, Err(KeyError::NotAgreed));
    }
}

#[test]
fn sides_that_open_at_once_agree_by_their_tie_breakers() {
    for seed in 1..9 {
        let either = |config: &mut anabranch_core::AssociationConfig| {
            config.protection = wanted(ProtectionMode::Strict, KeyManagementRoles::Either);
        };
        let mut setup = Setup::new(1, "cmt", "rfc9260").with(either);
        (setup.collide, setup.seed) = (true, seed);
        let mut duo = protected(setup);
        let roles = Side::BOTH.map(|side| association(&mut duo, side).protection().expect("agreed").role());
        assert_ne!(roles[0], roles[1]);
        let [a, b] =
            Side::BOTH.map(|side| duo.nodes[side.index()].association().protection().expect("agreed"));
        let (ours, theirs) = a.parameters();
        assert_eq!((theirs, ours), b.parameters());
        data_flows(&mut duo);
    }
}

#[test]
fn an_answer_is_no_more_than_three_times_as_long_as_the_init() {
    let setup = setup(1);
    let address = setup.address(Side::B, 0);
    let config = anabranch_core::EndpointConfig {
        port: anabranch_tests::duo::PORT,
        addresses: vec![address],
        encapsulation: anabranch_core::Encapsulation::None,
        accept: Some(setup.sides[1].clone()),
        accept_from: anabranch_core::AcceptFrom::Everyone,
        max_associations: 4,
        guard: Some(Guard::default()),
    };
    let mut duo = Duo::new(setup);
    duo.kept = Some(Vec::new());
    duo.nodes[1].endpoint = anabranch_core::Endpoint::new(duo.now, config, [9; 32]);
    duo.connect();
    duo.run(Span::from_secs(1));
    let lengths: Vec<usize> =
        duo.kept.iter().flatten().map(|(_, packet)| packet.bytes.len()).take(2).collect();
    assert!(lengths[1] <= 3 * lengths[0], "{lengths:?}");
    assert!(association(&mut duo, Side::A).protection().is_some());
}

/// Returns an endpoint that protects packets and answers strangers, with this number of addresses.
fn guarded_server(addresses: u8) -> anabranch_core::Endpoint {
    let setup = setup(1);
    let config = anabranch_core::EndpointConfig {
        port: anabranch_tests::duo::PORT,
        addresses: (1..=addresses).map(|host| std::net::IpAddr::from([192, 0, 2, host])).collect(),
        encapsulation: anabranch_core::Encapsulation::None,
        accept: Some(setup.sides[1].clone()),
        accept_from: anabranch_core::AcceptFrom::Everyone,
        max_associations: 4,
        guard: Some(Guard::default()),
    };
    anabranch_core::Endpoint::new(Time::ZERO, config, [9; 32])
}

/// Returns an INIT that offers protection, with an unknown parameter of this number of bytes.
fn init_with_padding(bytes: usize) -> Vec<u8> {
    let padding = vec![0; bytes];
    let offer = Param::DtlsKeyManagement(anabranch_wire::DtlsKeyManagement {
        tie_breaker: 1,
        client: true,
        server: false,
        restart: false,
        methods: anabranch_wire::List::new(&[KeyManagementMethod::TLS]),
    });
    let repr = anabranch_wire::InitRepr {
        initiate_tag: 7,
        a_rwnd: 100_000,
        outbound_streams: 10,
        inbound_streams: 10,
        initial_tsn: anabranch_wire::Tsn::new(1),
    };
    let header = anabranch_wire::Header {
        source_port: 5_000,
        destination_port: anabranch_tests::duo::PORT,
        verification_tag: 0,
    };
    let mut packet = vec![0; 2_000];
    let mut writer = anabranch_wire::PacketWriter::new(&mut packet, header).expect("room");
    let padded = (bytes > 0).then_some(Param::StateCookie(&padding));
    writer.init(&repr, [offer].into_iter().chain(padded)).expect("room");
    let length = writer.finish();
    packet.truncate(length);
    packet
}

#[test]
fn answer_to_an_init_of_any_size_is_at_most_three_times_as_long() {
    let from = |host: u16| std::net::IpAddr::from([203, 0, (host >> 8) as u8, host as u8]);
    for addresses in [1, 2, 8] {
        let mut endpoint = guarded_server(addresses);
        let mut longest_ratio = 0.0_f64;
        for step in 0..=350_u16 {
            let init = init_with_padding(4 * usize::from(step));
            let address =
                anabranch_core::PathAddress::from((std::net::IpAddr::from([192, 0, 2, 1]), from(step)));
            let handled = endpoint.handle_datagram(Time::ZERO, address, &init);
            assert_eq!(handled, anabranch_core::Handled::Replied, "{} bytes", init.len());
            let mut answer = anabranch_core::PacketBuffer::default();
            endpoint.poll_reply(&mut answer).expect("an INIT ACK");
            assert!(answer.len() <= 3 * init.len(), "{} bytes for {}", answer.len(), init.len());
            longest_ratio = longest_ratio.max(answer.len() as f64 / init.len() as f64);
        }
        assert!(longest_ratio > 1.0, "the shortest INIT has a longer answer");
    }
}

#[test]
fn no_init_ack_is_longer_than_the_init_that_it_answers() {
    for pairs in 1..=8 {
        let mut setup = setup(pairs).with(|config| {
            config.address_changes.asconf = true;
            config.profile = anabranch_core::profile::Profile::net().multipath();
            let methods = (0..8).map(KeyManagementMethod).chain([KeyManagementMethod::TLS_CONFIRMED]);
            let protection = config.protection.as_mut().expect("it is protected");
            protection.methods = methods.rev().collect();
        });
        setup.ipv6 = 0xFF;
        let duo = agreed(setup);
        let lengths: Vec<(u8, usize)> = duo
            .kept
            .iter()
            .flatten()
            .map(|(_, packet)| (shape(packet).0, packet.bytes.len()))
            .filter(|(kind, _)| [1, 2].contains(kind))
            .collect();
        assert_eq!(lengths.iter().map(|(kind, _)| *kind).collect::<Vec<u8>>(), [1, 2]);
        assert!(lengths[1].1 <= lengths[0].1, "{pairs} pairs: {lengths:?}");
        assert!(lengths[0].1 <= 1_200 - 28);
    }
}

#[test]
fn before_there_are_keys_only_the_key_management_talks() {
    let mut duo = agreed(setup(1));
    duo.reading = [Reading::ByHand; 2];
    assert_eq!(duo.send(Side::A, 100, 0, false), Some(Err(SendError::NotProtected)));
    let hello = Bytes::from_static(b"client hello");
    assert_eq!(association(&mut duo, Side::A).send_key_management(hello.clone()), Ok(()));
    duo.settle();
    duo.run(Span::from_secs(1));
    let mut bytes = Vec::new();
    let got = association(&mut duo, Side::B).recv(&mut bytes).expect("it has come");
    assert_eq!((&bytes[..], got.ppid), (&hello[..], KEY_MANAGEMENT_PPID));
    install(&mut duo, FIRST_EPOCH, CipherSuite::Aes128Gcm);
    assert_eq!(duo.send(Side::A, 100, 0, false), Some(Err(SendError::NotProtected)));
    for side in Side::BOTH {
        association(&mut duo, side).require_protection().expect("there are keys");
    }
    duo.reading = [Reading::WhenTold; 2];
    let theirs = SendOptions { ppid: KEY_MANAGEMENT_PPID, ..SendOptions::default() };
    assert_eq!(association(&mut duo, Side::A).send(hello, theirs), Err(SendError::KeyManagementOnly));
    // The message uses another stream, since the key management has used stream 0.
    assert_eq!(duo.send(Side::A, 100, 1, false), Some(Ok(())));
    duo.settle();
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.all_arrived(Side::A)));
}

#[test]
fn a_message_that_waits_for_the_handshake_is_refused() {
    let mut duo = Duo::new(setup(1));
    duo.connect();
    assert_eq!(duo.send(Side::A, 100, 0, false), Some(Err(SendError::NotProtected)));
}

/// Returns DATA with a TSN at this distance from the first TSN of A.
fn data(duo: &Duo, ahead: u32, stream: u16, ppid: u32) -> Vec<u8> {
    let init = duo.kept.iter().flatten().map(|(_, packet)| packet).find(|packet| shape(packet).0 == 1);
    let view = PacketView::parse(&init.expect("an INIT").bytes).expect("a packet");
    let Ok(Chunk::Init(init)) = view.chunks().next().expect("a chunk").expect("a chunk").decode() else {
        panic!("no INIT")
    };
    let repr = DataRepr {
        flags: DataFlags::WHOLE,
        tsn: Tsn::new(init.initial_tsn().get().wrapping_add(ahead)),
        stream: StreamId::new(stream),
        ssn: Ssn::new(0),
        ppid,
    };
    plain(duo, Side::A, |writer| writer.data(&repr, b"forged"))
}

#[test]
fn forged_data_cannot_take_the_place_of_data_that_is_protected_later() {
    let mut duo = agreed(setup(1));
    duo.run(Span::from_secs(1));
    let forged = [
        data(&duo, 0, 0, 0),
        data(&duo, 0, 1, KEY_MANAGEMENT_PPID),
        data(&duo, 1, 0, KEY_MANAGEMENT_PPID),
        plain(&duo, Side::A, |writer| writer.forward_tsn(Tsn::new(0), [])),
    ];
    let count = forged.len() as u64;
    for bytes in forged {
        inject(&mut duo, Side::A, bytes);
    }
    assert_eq!(dropped(&duo, Side::B, Discard::Unprotected), count);
    install(&mut duo, FIRST_EPOCH, CipherSuite::Aes128Gcm);
    for side in Side::BOTH {
        association(&mut duo, side).require_protection().expect("there are keys");
    }
    data_flows(&mut duo);
}

#[test]
fn keys_are_refused_after_injected_key_management_data() {
    let mut duo = agreed(setup(1));
    duo.reading = [Reading::ByHand; 2];
    duo.run(Span::from_secs(1));
    let bytes = data(&duo, 0, 0, KEY_MANAGEMENT_PPID);
    inject(&mut duo, Side::A, bytes);
    let key = cipher(CipherSuite::Aes128Gcm, FIRST_EPOCH, Side::A);
    assert_eq!(association(&mut duo, Side::B).install_receive_key(FIRST_EPOCH, key), Err(KeyError::DataLeft));
}

#[test]
fn a_message_of_the_key_management_needs_no_room_in_the_send_buffer() {
    let mut duo = protected(setup(1).with(|config| config.send_buffer_bytes = Some(10_000)));
    let full = duo.send(Side::A, 10_000, 1, false);
    assert_eq!(full, Some(Ok(())));
    assert!(matches!(duo.send(Side::A, 1, 1, false), Some(Err(SendError::BufferFull { .. }))));
    let hello = Bytes::from_static(b"client hello");
    assert_eq!(association(&mut duo, Side::A).send_key_management(hello), Ok(()));
}

#[test]
fn without_an_agreement_there_is_no_key_management() {
    let mut duo = Duo::connected(Setup::new(1, "cmt", "rfc9260"));
    let hello = Bytes::from_static(b"client hello");
    assert_eq!(association(&mut duo, Side::A).send_key_management(hello), Err(SendError::NotProtected));
    let options = SendOptions { ppid: KEY_MANAGEMENT_PPID, ..SendOptions::default() };
    assert_eq!(association(&mut duo, Side::A).send(Bytes::from_static(b"user"), options), Ok(()));
}

#[test]
fn failed_epoch_can_be_retried() {
    let mut duo = protected(setup(1));
    let a = association(&mut duo, Side::A);
    let null = || Box::new(NullCipher);
    assert_eq!(a.install_receive_key(4, null()), Ok(()));
    assert!(a.remove_receive_key(4));
    assert_eq!(a.install_receive_key(4, null()), Ok(()));
    assert_eq!(a.install_send_key(4, null()), Ok(()));
    assert!(a.remove_receive_key(4));
    let again = a.install_receive_key(4, null());
    assert_eq!(again, Err(KeyError::Epoch { expected: 5, found: 4 }), "packets were sealed under it");
}

#[test]
fn an_association_whose_key_management_fails_ends_with_its_reason() {
    let mut duo = agreed(setup(1));
    let now = duo.now;
    association(&mut duo, Side::A).abort_for_key_management(now, "a test wants it");
    duo.settle();
    duo.run(Span::from_secs(1));
    let why = AbortReason::KeyManagement("a test wants it");
    assert_eq!(duo.nodes[0].ended, Some(AssociationEvent::Aborted(why)));
    assert_eq!(duo.nodes[1].ended, Some(AssociationEvent::Aborted(AbortReason::ByPeer)));
}

#[test]
fn epochs_follow_each_other() {
    let mut duo = agreed(setup(1));
    let a = association(&mut duo, Side::A);
    let null = || Box::new(NullCipher);
    assert_eq!(a.install_receive_key(4, null()), Err(KeyError::Epoch { expected: 3, found: 4 }));
    assert_eq!(a.install_send_key(2, null()), Err(KeyError::Epoch { expected: 3, found: 2 }));
    assert_eq!(a.require_protection(), Err(KeyError::NoSendKey));
    assert_eq!([3, 4].map(|epoch| a.install_receive_key(epoch, null())), [Ok(()), Ok(())]);
    assert_eq!(a.install_receive_key(5, null()), Err(KeyError::TooMany));
    assert!(a.remove_receive_key(3) && !a.remove_receive_key(3));
    assert_eq!(a.install_receive_key(5, null()), Ok(()));
}

#[test]
fn auth_is_not_offered_beside_protection() {
    let duo = agreed(setup(2).with(|config| config.address_changes.asconf = true));
    for (_, packet) in duo.kept.iter().flatten().take(2) {
        let view = PacketView::parse(&packet.bytes).expect("a packet");
        let chunk = view.chunks().next().expect("a chunk").expect("a chunk").decode();
        let (Ok(Chunk::Init(init)) | Ok(Chunk::InitAck(init))) = chunk else { panic!("{chunk:?}") };
        let kinds: Vec<ParamType> = init.raw_params().flatten().map(|param| param.kind()).collect();
        assert!(kinds.contains(&ParamType::DTLS_KEY_MANAGEMENT));
        let auth = [ParamType::RANDOM, ParamType::CHUNK_LIST, ParamType::HMAC_ALGORITHMS];
        assert!(auth.iter().all(|kind| !kinds.contains(kind)));
        let extensions = init.params().find_map(|param| match param {
            Ok(Param::SupportedExtensions(list)) => Some(list),
            _ => None,
        });
        let list = extensions.expect("ASCONF is announced");
        assert!(
            list.contains(anabranch_wire::ChunkType::ASCONF)
                && !list.contains(anabranch_wire::ChunkType::AUTH)
        );
    }
}

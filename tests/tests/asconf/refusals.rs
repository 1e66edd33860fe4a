//! Refused changes and the form of each refusal.

use anabranch_core::time::Span;
use anabranch_core::{AbortReason, AssociationEvent};
use anabranch_tests::duo::{Duo, PORT};
use anabranch_tests::network::{Packet, Side};
use anabranch_wire::{
    Cause, CauseCode, Chunk, ChunkType, Header, InitRepr, List, PacketView, PacketWriter, Param, RawParam,
};

use crate::asconf::rig::{Keys, active, add, answers, connected, data_flows, extra, inject, reports, setup};

const A: usize = Side::A as usize;

#[test]
fn the_last_address_and_the_source_are_not_deleted() {
    for (pairs, code) in [(1, CauseCode::DELETE_LAST_ADDRESS), (2, CauseCode::DELETE_SOURCE_ADDRESS)] {
        let mut duo = connected(setup(pairs));
        let keys = Keys::of(&duo, b"");
        let source = duo.setup.address(Side::A, 0);
        let asconf = keys.asconf(Side::A, 0, &[Param::DeleteIp { correlation: 9, address: source }]);
        let back = inject(&mut duo, Side::A, source, asconf);
        assert_eq!(answers(&back), Some(vec![(9, Some(code))]));
        assert_eq!(back[0].destination, source);
        assert_eq!(active(&duo, Side::B).len(), pairs);
    }
}

#[test]
fn deleting_all_but_the_source_leaves_the_source() {
    let mut duo = connected(setup(3));
    let keys = Keys::of(&duo, b"");
    let source = duo.setup.address(Side::A, 1);
    let asconf = keys.asconf(Side::A, 0, &[Param::DeleteIp { correlation: 1, address: [0, 0, 0, 0].into() }]);
    let back = inject(&mut duo, Side::A, source, asconf);
    assert_eq!(answers(&back), Some(vec![]));
    let left: Vec<_> = active(&duo, Side::B).iter().map(|(_, remote)| *remote).collect();
    assert!(left.iter().all(|remote| *remote == source), "{left:?}");
}

#[test]
fn an_address_that_the_peer_does_not_have_cannot_be_deleted_or_preferred() {
    let mut duo = connected(setup(2));
    let keys = Keys::of(&duo, b"");
    let (source, address) = (duo.setup.address(Side::A, 0), extra(Side::A, 50));
    let params = [
        Param::SetPrimary { correlation: 1, address },
        Param::DeleteIp { correlation: 2, address: duo.setup.address(Side::A, 1) },
    ];
    let back = inject(&mut duo, Side::A, source, keys.asconf(Side::A, 0, &params));
    // After one failure, all further additions and deletions fail (RFC 5061 section 5.3 F11).
    let expected = vec![(1, Some(CauseCode::UNRESOLVABLE_ADDRESS)), (2, Some(CauseCode::RESOURCE_SHORTAGE))];
    assert_eq!(answers(&back), Some(expected));
    let delete = [Param::DeleteIp { correlation: 3, address }];
    let back = inject(&mut duo, Side::A, source, keys.asconf(Side::A, 1, &delete));
    assert_eq!(answers(&back), Some(vec![(3, Some(CauseCode::UNRESOLVABLE_ADDRESS))]));
    assert_eq!(active(&duo, Side::B).len(), 2);
}

#[test]
fn a_ninth_address_finds_no_room_and_what_follows_it_is_refused_too() {
    let mut duo = connected(setup(8));
    let keys = Keys::of(&duo, b"");
    let source = duo.setup.address(Side::A, 0);
    let params = [
        Param::AddIp { correlation: 1, address: extra(Side::A, 1) },
        Param::DeleteIp { correlation: 2, address: duo.setup.address(Side::A, 1) },
        Param::SetPrimary { correlation: 3, address: source },
    ];
    let back = inject(&mut duo, Side::A, source, keys.asconf(Side::A, 0, &params));
    let shortage = Some(CauseCode::RESOURCE_SHORTAGE);
    assert_eq!(answers(&back), Some(vec![(1, shortage), (2, shortage), (3, None)]));
    assert_eq!(active(&duo, Side::B).len(), 8);
}

#[test]
fn groups_of_hosts_are_not_added() {
    let mut duo = connected(setup(1));
    let keys = Keys::of(&duo, b"");
    let source = duo.setup.address(Side::A, 0);
    for (ahead, address) in [[224, 0, 0, 1], [255, 255, 255, 255]].into_iter().enumerate() {
        let params = [Param::AddIp { correlation: 4, address: address.into() }];
        let back = inject(&mut duo, Side::A, source, keys.asconf(Side::A, ahead as u32, &params));
        assert_eq!(answers(&back), Some(vec![(4, Some(CauseCode::NO_AUTHORIZATION))]));
    }
}

#[test]
fn unknown_parameters_are_reported_by_their_type() {
    let mut duo = connected(setup(1));
    let keys = Keys::of(&duo, b"");
    let source = duo.setup.address(Side::A, 0);
    let unknown = |kind: u8| [kind, 0xEE, 0, 8, 0, 0, 0, 7];
    // Skip and report, skip silently, stop and report: the parameters behind the last one are not examined.
    let bytes = [0xC0, 0x80, 0x40].map(unknown);
    let raws = bytes.each_ref().map(|bytes| Param::Unknown(RawParam::parse(bytes).expect("whole")));
    let params = [raws[0], raws[1], raws[2], raws[0]];
    let back = inject(&mut duo, Side::A, source, keys.asconf(Side::A, 0, &params));
    let unrecognized = Some(CauseCode::UNRECOGNIZED_PARAMETERS);
    assert_eq!(answers(&back), Some(vec![(7, unrecognized), (7, unrecognized)]));
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_ends_the_association() {
    let mut duo = connected(setup(1));
    let keys = Keys::of(&duo, b"");
    let source = duo.setup.address(Side::B, 0);
    let ack = |serial: u32| keys.seal(Side::B, |writer| writer.asconf_ack(serial, []));
    let next = keys.serials[A];
    // Serial numbers before the next one are old.
    inject(&mut duo, Side::B, source, ack(next.wrapping_sub(1)));
    inject(&mut duo, Side::B, source, ack(next.wrapping_add(1 << 31)));
    assert_eq!(duo.nodes[A].ended, None);
    let back = inject(&mut duo, Side::B, source, ack(next));
    assert!(back.iter().any(|packet| reports(packet, CauseCode::ILLEGAL_ASCONF_ACK)));
    let ended = matches!(duo.nodes[A].ended, Some(AssociationEvent::Aborted(AbortReason::Protocol(_))));
    assert!(ended, "{:?}", duo.nodes[A].ended);
}

#[test]
fn a_peer_that_reports_asconf_as_unknown_is_asked_no_more() {
    let mut duo = connected(setup(1));
    let keys = Keys::of(&duo, b"");
    duo.network.set_filter(|packet| packet.from == Side::B);
    add(&mut duo, Side::A, extra(Side::A, 0));
    let source = duo.setup.address(Side::B, 0);
    let error = keys.write(Side::B, |writer| writer.error([Cause::UnrecognizedChunk(&[0xC1, 0, 0, 4])]));
    inject(&mut duo, Side::B, source, error);
    duo.network.clear_filter();
    let sent = duo.nodes[A].association().statistics().asconfs_sent;
    duo.run(Span::from_secs(20));
    assert_eq!(duo.nodes[A].association().statistics().asconfs_sent, sent);
    assert!(!duo.nodes[A].association().does_asconf());
    data_flows(&mut duo);
}

#[test]
fn a_refused_address_is_no_path() {
    let mut duo = connected(setup(8));
    // A removes one of its addresses without B's knowledge, and so has room for an address that B does not have.
    let now = duo.now;
    let last = duo.nodes[A].association().paths()[7].id;
    crate::asconf::rig::association(&mut duo, Side::A).remove_path(now, last).expect("it has more");
    add(&mut duo, Side::A, extra(Side::A, 0));
    duo.run(Span::from_secs(2));
    let locals: Vec<_> = active(&duo, Side::A).iter().map(|(local, _)| *local).collect();
    assert!(!locals.contains(&extra(Side::A, 0)), "{locals:?}");
    data_flows(&mut duo);
}

/// Calls a peer, and gives it this answer with these chunks to be authenticated and a random number of this length.
fn answered(list: &[ChunkType], random: usize) -> (Duo, Vec<Packet>) {
    let mut duo = Duo::new(setup(1));
    duo.kept = Some(Vec::new());
    duo.network.set_filter(|_| false);
    duo.connect();
    let kept = duo.kept.as_ref().expect("packets are kept");
    let init = PacketView::parse(&kept[0].1.bytes).expect("an INIT");
    let Ok(Chunk::Init(view)) = init.chunks().next().expect("a chunk").expect("a chunk").decode() else {
        panic!("no INIT")
    };
    let header = Header { source_port: PORT, destination_port: PORT, verification_tag: view.initiate_tag() };
    let repr = InitRepr { initiate_tag: 9, ..view.repr() };
    let random = vec![7; random];
    let params = [
        Param::StateCookie(b"cookie"),
        Param::Random(&random),
        Param::ChunkList(List::new(list)),
        Param::HmacAlgorithms(List::new(&[3, 1])),
    ];
    let mut bytes = vec![0; 1000];
    let mut writer = PacketWriter::new(&mut bytes, header).expect("room for a header");
    writer.init_ack(&repr, params).expect("room for it");
    let length = writer.finish();
    bytes.truncate(length);
    let source = duo.setup.address(Side::B, 0);
    let back = inject(&mut duo, Side::B, source, bytes);
    (duo, back)
}

#[test]
fn a_peer_that_takes_data_only_authenticated_is_left_at_once() {
    let (duo, back) = answered(&[ChunkType::ASCONF, ChunkType::DATA], 32);
    assert!(back.iter().any(|packet| reports(packet, CauseCode::PROTOCOL_VIOLATION)));
    assert!(matches!(duo.nodes[A].ended, Some(AssociationEvent::Aborted(AbortReason::Protocol(_)))));
    let (duo, _) = answered(&[ChunkType::ASCONF, ChunkType::ASCONF_ACK], 32);
    assert_eq!(duo.nodes[A].ended, None);
}

#[test]
fn a_random_number_of_another_length_ends_the_handshake() {
    for length in [0, 31, 33] {
        let (duo, back) = answered(&[ChunkType::ASCONF], length);
        assert!(back.iter().any(|packet| reports(packet, CauseCode::PROTOCOL_VIOLATION)), "{length} bytes");
        assert!(duo.nodes[A].ended.is_some(), "{length} bytes");
    }
}

//! Forged or repeated packets change nothing.

use anabranch_core::{Discard, Handled};
use anabranch_tests::duo::Duo;
use anabranch_tests::network::{Packet, Side};
use anabranch_wire::{AuthRepr, CauseCode, Param};
use proptest::prelude::*;

use crate::asconf::rig::{Keys, active, answers, connected, extra, inject, reports, setup};

const B: usize = Side::B as usize;

fn discarded(duo: &Duo, reason: Discard) -> u64 {
    duo.nodes[B].endpoint.discards().of(reason)
}

fn delete_second<'p>(duo: &Duo) -> [Param<'p>; 1] {
    [Param::DeleteIp { correlation: 1, address: duo.setup.address(Side::A, 1) }]
}

#[test]
fn without_an_auth_an_asconf_is_silently_discarded() {
    let mut duo = connected(setup(2));
    let keys = Keys::of(&duo, b"");
    let (source, params) = (duo.setup.address(Side::A, 0), delete_second(&duo));
    let bare = keys.write(Side::A, |w| w.asconf(keys.serials[0], [0, 0, 0, 0].into(), params));
    assert_eq!(inject(&mut duo, Side::A, source, bare).len(), 0);
    assert_eq!(discarded(&duo, Discard::Unauthenticated), 1);
    let ack = keys.write(Side::A, |w| w.asconf_ack(keys.serials[1], []));
    assert_eq!(inject(&mut duo, Side::A, source, ack).len(), 0);
    assert_eq!(discarded(&duo, Discard::Unauthenticated), 2);
    assert_eq!(active(&duo, Side::B).len(), 2);
    // The same chunk with an authentication code is accepted, so the missing code was the reason.
    let sealed = keys.asconf(Side::A, 0, &params);
    assert_eq!(answers(&inject(&mut duo, Side::A, source, sealed)), Some(vec![]));
    assert_eq!(active(&duo, Side::B).len(), 1);
}

#[test]
fn wrong_key_discards_all_chunks_after_the_auth() {
    let mut duo = connected(setup(2));
    let wrong = Keys::of(&duo, b"guess");
    let (source, params) = (duo.setup.address(Side::A, 0), delete_second(&duo));
    let forged = wrong.seal(Side::A, |writer| {
        writer.asconf(wrong.serials[0], [0, 0, 0, 0].into(), params)?;
        writer.heartbeat(b"hello")
    });
    assert_eq!(inject(&mut duo, Side::A, source, forged).len(), 0);
    assert_eq!(discarded(&duo, Discard::Unauthenticated), 1);
    assert_eq!(active(&duo, Side::B).len(), 2);
}

#[test]
fn an_asconf_in_front_of_its_auth_is_not_authenticated() {
    let mut duo = connected(setup(2));
    let keys = Keys::of(&duo, b"");
    let (source, params) = (duo.setup.address(Side::A, 0), delete_second(&duo));
    let before = keys.write(Side::A, |writer| {
        writer.asconf(keys.serials[0], [0, 0, 0, 0].into(), params)?;
        let pending = writer.auth(AuthRepr { key_id: 0, hmac_id: 3 }, 32)?;
        writer.authenticate(pending, |covered| keys.code(covered));
        Ok(())
    });
    assert_eq!(inject(&mut duo, Side::A, source, before).len(), 0);
    assert_eq!(active(&duo, Side::B).len(), 2);
}

#[test]
fn an_hmac_that_was_not_offered_is_reported() {
    let mut duo = connected(setup(1));
    let keys = Keys::of(&duo, b"");
    let source = duo.setup.address(Side::A, 0);
    let other = keys.write(Side::A, |writer| {
        let pending = writer.auth(AuthRepr { key_id: 0, hmac_id: 2 }, 32)?;
        writer.authenticate(pending, |covered| keys.code(covered));
        Ok(())
    });
    let back = inject(&mut duo, Side::A, source, other);
    assert!(back.iter().any(|packet| reports(packet, CauseCode::UNSUPPORTED_HMAC)));
    assert_eq!(discarded(&duo, Discard::Unauthenticated), 1);
}

#[test]
fn repeated_asconf_is_answered_without_effect() {
    let mut duo = connected(setup(2));
    let keys = Keys::of(&duo, b"");
    let (source, new) = (duo.setup.address(Side::A, 0), extra(Side::A, 5));
    let add = keys.asconf(Side::A, 0, &[Param::AddIp { correlation: 1, address: [0, 0, 0, 0].into() }]);
    let first = inject(&mut duo, Side::A, new, add.clone());
    assert_eq!(answers(&first), Some(vec![]));
    let paths = |duo: &Duo| duo.nodes[B].association().paths().len();
    assert_eq!(paths(&duo), 3);
    // An observer of the packet sends it again from another address.
    let elsewhere = extra(Side::A, 6);
    let again = inject(&mut duo, Side::A, elsewhere, add.clone());
    assert_eq!(again[0].bytes, first[0].bytes);
    assert_eq!(again[0].destination, elsewhere);
    assert_eq!(paths(&duo), 3);
    // The next ASCONF makes the old answer obsolete.
    let next = keys.asconf(Side::A, 1, &[]);
    assert_eq!(answers(&inject(&mut duo, Side::A, source, next)), Some(vec![]));
    assert_eq!(answers(&inject(&mut duo, Side::A, source, add)), None);
}

#[test]
fn numbers_that_are_not_next_are_discarded() {
    let mut duo = connected(setup(2));
    let keys = Keys::of(&duo, b"");
    let (source, params) = (duo.setup.address(Side::A, 0), delete_second(&duo));
    for ahead in [1, 2, 1 << 30, u32::MAX, 1 << 31] {
        assert_eq!(
            inject(&mut duo, Side::A, source, keys.asconf(Side::A, ahead, &params)).len(),
            0,
            "{ahead}"
        );
    }
    assert_eq!(active(&duo, Side::B).len(), 2);
}

#[test]
fn several_requests_in_one_packet_are_answered_in_one() {
    let mut duo = connected(setup(1));
    let keys = Keys::of(&duo, b"");
    let source = duo.setup.address(Side::A, 0);
    let add = |number: u8| [Param::AddIp { correlation: u32::from(number), address: extra(Side::A, number) }];
    let both = keys.seal(Side::A, |writer| {
        writer.asconf(keys.serials[0], source, add(1))?;
        writer.asconf(keys.serials[0].wrapping_add(1), source, add(2))
    });
    let back = inject(&mut duo, Side::A, source, both);
    let acks = back.iter().filter(|packet| answers(std::slice::from_ref(packet)).is_some()).count();
    assert_eq!(acks, 1);
    assert_eq!(duo.nodes[B].association().paths().len(), 3);
    assert_eq!(duo.nodes[B].association().statistics().asconfs_received, 2);
}

#[test]
fn unknown_source_is_accepted_by_authenticated_asconf_only() {
    let mut duo = connected(setup(1));
    let keys = Keys::of(&duo, b"");
    let new = extra(Side::A, 5);
    let hello = keys.seal(Side::A, |writer| writer.heartbeat(b"hello"));
    let before = discarded(&duo, Discard::OutOfTheBlue);
    assert_eq!(inject(&mut duo, Side::A, new, hello).len(), 0);
    assert_eq!(discarded(&duo, Discard::OutOfTheBlue), before + 1);
    assert_eq!(duo.nodes[B].association().paths().len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn asconf_changed_in_transit_is_discarded(at in 16_usize..92, mask in 1_u8..) {
        let mut duo = connected(setup(2));
        let keys = Keys::of(&duo, b"");
        let mut bytes = keys.asconf(Side::A, 0, &delete_second(&duo));
        prop_assume!(at < bytes.len());
        bytes[at] ^= mask;
        bytes[8..12].fill(0);
        let sum = anabranch_wire::checksum(&bytes);
        bytes[8..12].copy_from_slice(&sum.to_le_bytes());
        let source = duo.setup.address(Side::A, 0);
        let back = inject(&mut duo, Side::A, source, bytes);
        prop_assert_eq!(answers(&back), None);
        prop_assert_eq!(active(&duo, Side::B).len(), 2);
    }

    #[test]
    fn random_parameters_do_not_panic(value in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut duo = connected(setup(2));
        let keys = Keys::of(&duo, b"");
        let value = [&keys.serials[0].to_be_bytes()[..], &[0, 5, 0, 8, 0, 0, 0, 0], &value].concat();
        for kind in [0xC1, 0x80] {
            let bytes = keys.seal(Side::A, |w| w.raw_parts(anabranch_wire::ChunkType(kind), 0, &value));
            let source = duo.setup.address(Side::A, 0);
            let destination = duo.setup.address(Side::B, 0);
            let packet = Packet { from: Side::A, source, destination, bytes, may_fragment: false };
            let now = duo.now;
            let handled = duo.nodes[B].handle(now, &packet);
            prop_assert!(matches!(handled, Handled::Delivered(_)));
        }
    }
}

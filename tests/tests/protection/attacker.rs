//! An attacker on the path, who sees every packet, may drop, delay, repeat, reorder, truncate and change it, and forges others.

use anabranch_core::time::Span;
use anabranch_core::{Discard, Handled};
use anabranch_tests::dice::Dice;
use anabranch_tests::duo::{Duo, PORT, Setup};
use anabranch_tests::network::{Packet, Side};
use anabranch_wire::{ChunkType, DataFlags, DataRepr, Header, SackRepr, Ssn, StreamId, Tsn};

use crate::protection::rig::{
    DTLS, data_flows, dropped, inject, inject_from, plain, protected, setup, shape, with_checksum, write,
};

#[test]
fn unprotected_packets_are_ignored_once_keys_exist() {
    let mut duo = protected(setup(1));
    data_flows(&mut duo);
    let data = DataRepr {
        flags: DataFlags::WHOLE,
        tsn: Tsn::new(1),
        stream: StreamId::new(0),
        ssn: Ssn::new(0),
        ppid: anabranch_core::protection::KEY_MANAGEMENT_PPID,
    };
    let sack = SackRepr { cum_tsn: Tsn::new(7), a_rwnd: 0, flags: 0 };
    let forged = [
        plain(&duo, Side::A, |w| w.abort(false, [])),
        plain(&duo, Side::A, |w| w.data(&data, b"forged")),
        plain(&duo, Side::A, |w| w.sack(&sack, [], [])),
        plain(&duo, Side::A, |w| w.heartbeat(b"1234")),
        plain(&duo, Side::A, |w| w.shutdown(Tsn::new(1))),
        plain(&duo, Side::A, |w| w.shutdown_complete(false)),
        plain(&duo, Side::A, |w| w.cookie_ack()),
        plain(&duo, Side::A, |w| w.error([])),
        // The ABORT is under the tag of B's own packets, like the answer of a peer without the association.
        plain(&duo, Side::B, |w| w.abort(true, [])),
    ];
    let count = forged.len() as u64;
    for bytes in forged {
        assert_eq!(inject(&mut duo, Side::A, bytes), Handled::Discarded(Discard::Unprotected));
    }
    assert_eq!(dropped(&duo, Side::B, Discard::Unprotected), count);
    data_flows(&mut duo);
}

#[test]
fn a_peer_that_lost_its_keys_cannot_restart_the_association() {
    let mut duo = protected(setup(1));
    data_flows(&mut duo);
    // The packet comes from another host at A's address.
    let header = Header { source_port: PORT, destination_port: PORT, verification_tag: 0 };
    let init = duo.kept.iter().flatten().map(|(_, packet)| packet.clone()).find(|p| shape(p).0 == 1);
    let init = init.expect("an INIT").bytes;
    let before = duo.kept.as_ref().map_or(0, Vec::len);
    inject(&mut duo, Side::A, init);
    let answer =
        duo.kept.iter().flatten().map(|(_, packet)| packet.clone()).nth(before).expect("an INIT-ACK");
    assert_eq!(shape(&answer).0, ChunkType::INIT_ACK.0);
    let view = anabranch_wire::PacketView::parse(&answer.bytes).expect("a packet");
    let chunk = view.chunks().next().expect("a chunk").expect("a chunk");
    let Ok(anabranch_wire::Chunk::InitAck(ack)) = chunk.decode() else { panic!("no INIT-ACK") };
    let cookie = ack.params().find_map(|param| match param {
        Ok(anabranch_wire::Param::StateCookie(cookie)) => Some(cookie.to_vec()),
        _ => None,
    });
    let header = Header { verification_tag: ack.initiate_tag(), ..header };
    let echo = write(header, |w| w.cookie_echo(&cookie.expect("a cookie")));
    assert_eq!(inject(&mut duo, Side::A, echo), Handled::Discarded(Discard::Unprotected));
    data_flows(&mut duo);
}

#[test]
fn every_packet_sent_again_is_dropped() {
    let mut duo = protected(setup(1));
    let at = duo.kept.as_ref().map_or(0, Vec::len);
    data_flows(&mut duo);
    // The last acknowledgements arrive as well.
    duo.run(Span::from_secs(1));
    let sent: Vec<Packet> = duo.kept.iter().flatten().skip(at).map(|(_, packet)| packet.clone()).collect();
    for packet in &sent {
        let handled = inject(&mut duo, packet.from, packet.bytes.clone());
        assert_eq!(handled, Handled::Discarded(Discard::Replayed));
    }
    let both = Side::BOTH.map(|side| dropped(&duo, side, Discard::Replayed));
    assert_eq!(both.iter().sum::<u64>(), sent.len() as u64);
    data_flows(&mut duo);
}

#[test]
fn record_with_any_changed_bit_is_dropped() {
    let mut duo = protected(setup(1));
    let at = duo.kept.as_ref().map_or(0, Vec::len);
    // The record never arrives, so its sequence number would be new.
    duo.cut(0, true);
    duo.send_all(Side::A, 40, 1);
    let packet = duo.kept.iter().flatten().nth(at).expect("a packet").1.clone();
    assert_eq!(shape(&packet), (DTLS, 1));
    // Excluded are the common header, which tag and checksum protect, bits that a receiver has to ignore, and the padding.
    let ignored = |bit: &usize| (13 * 8 + 1..14 * 8).contains(bit) || (16 * 8..17 * 8).contains(bit);
    for bit in (13 * 8..(packet.bytes.len() - 3) * 8).filter(|bit| !ignored(bit)) {
        let mut bytes = packet.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let handled = inject(&mut duo, Side::A, with_checksum(bytes));
        let reasons = [Discard::NotAuthentic, Discard::NoKey, Discard::Malformed];
        assert!(reasons.map(Handled::Discarded).contains(&handled), "bit {bit}: {handled:?}");
    }
    duo.cut(0, false);
    data_flows(&mut duo);
}

#[test]
fn a_record_beside_another_chunk_is_dropped() {
    let mut duo = protected(setup(1));
    let at = duo.kept.as_ref().map_or(0, Vec::len);
    duo.cut(0, true);
    duo.send_all(Side::A, 40, 1);
    let packet = duo.kept.iter().flatten().nth(at).expect("a packet").1.clone();
    let behind = [&packet.bytes[..], &[11, 0, 0, 4]].concat();
    let before = [&packet.bytes[..12], &[11, 0, 0, 4], &packet.bytes[12..]].concat();
    let malformed = Handled::Discarded(Discard::Malformed);
    assert_eq!(inject(&mut duo, Side::A, with_checksum(behind)), malformed);
    let unprotected = Handled::Discarded(Discard::Unprotected);
    assert_eq!(inject(&mut duo, Side::A, with_checksum(before)), unprotected);
    duo.cut(0, false);
    data_flows(&mut duo);
}

/// Changes an observed packet and sends it.
fn attack(duo: &mut Duo, dice: &mut Dice, packet: &Packet) {
    let mut bytes = packet.bytes.clone();
    let from = if dice.chance(800) { packet.from } else { packet.from.other() };
    match dice.below(6) {
        0 => {}
        1 => {
            let at = 12 + dice.below(bytes.len() as u64 - 12) as usize;
            bytes[at] ^= 1 << dice.below(8);
        }
        2 => bytes.truncate(12 + dice.below(bytes.len() as u64 - 12) as usize),
        3 => bytes.extend(dice.bytes(20)),
        4 => bytes.splice(12.., dice.bytes(40)).for_each(drop),
        _ => {
            let kind = ChunkType([0, 3, 4, 5, 6, 7, 8, 9, 11, 14, 0x41, 0xC0, 0xC1][dice.below(13) as usize]);
            let value = dice.bytes(24);
            bytes = plain(duo, from, |w| w.raw_parts(kind, dice.roll() as u8, &value));
        }
    }
    let bytes = if bytes.len() < 16 { bytes } else { with_checksum(bytes) };
    if dice.chance(500) {
        let stranger = std::net::IpAddr::from([10, 77, 0, dice.below(4) as u8 + 1]);
        let destination = duo.setup.address(from.other(), 0);
        inject_from(duo, from, stranger, destination, bytes);
    } else {
        inject(duo, from, bytes);
    }
}

fn besieged(seed: u64) {
    let mut dice = Dice::new(seed);
    let mut setup: Setup = setup(2).with(|config| config.address_changes.asconf = seed.is_multiple_of(2));
    setup.seed = seed;
    (setup.link.loss, setup.link.duplicate, setup.link.reorder) = (30, 30, 100);
    let mut duo = protected(setup);
    for _ in 0..20 {
        for side in Side::BOTH {
            duo.send_all(side, 1 + dice.below(4_000) as usize, 3);
        }
        for _ in 0..30 {
            let kept = duo.kept.as_ref().expect("packets are kept");
            let packet = kept[dice.below(kept.len() as u64) as usize].1.clone();
            attack(&mut duo, &mut dice, &packet);
            duo.run(Span::from_millis(dice.below(20)));
        }
    }
    // Flows compare every byte that arrives with the sent one.
    data_flows(&mut duo);
    assert!(duo.nodes.iter().all(|node| node.ended.is_none()), "seed {seed}");
}

#[test]
fn on_path_attacker_does_not_change_delivered_data() {
    (1..=12).for_each(besieged);
}

//! Two endpoints that protect their packets, and the tests as their key management.

use std::net::IpAddr;

use anabranch_core::protection::{
    FIRST_EPOCH, KeyManagementMethod, KeyManagementRoles, Protection, ProtectionMode, RecordCipher,
};
use anabranch_core::time::Span;
use anabranch_core::{
    AcceptFrom, Association, Discard, Encapsulation, Endpoint, EndpointConfig, Guard, Handled,
};
use anabranch_dtls::{CipherSuite, KeyMaterial};
use anabranch_tests::duo::{Duo, PORT, Setup};
use anabranch_tests::managed::Managed;
use anabranch_tests::network::{Packet, Side};
use anabranch_wire::{Header, NoSpace, PacketView, PacketWriter};

/// Bytes that a record adds to a packet: its headers, the content type, a tag, and padding.
pub(crate) const ENVELOPE: usize = 28;

pub(crate) const DTLS: u8 = 0x41;

/// Returns the type of the first chunk of a packet, and the number of chunks.
pub(crate) fn shape(packet: &Packet) -> (u8, usize) {
    let view = PacketView::parse(&packet.bytes).expect("a packet");
    (packet.bytes[12], view.chunks().count())
}

pub(crate) fn wanted(mode: ProtectionMode, roles: KeyManagementRoles) -> Option<Protection> {
    Some(Protection { mode, roles, methods: vec![KeyManagementMethod::TLS], restart: false })
}

/// Returns a setup with protected packets: A is the client, B the server.
pub(crate) fn setup(pairs: usize) -> Setup {
    Setup::new(pairs, "cmt", "rfc9260")
        .with_side(Side::A, |c| c.protection = wanted(ProtectionMode::Strict, KeyManagementRoles::Client))
        .with_side(Side::B, |c| c.protection = wanted(ProtectionMode::Strict, KeyManagementRoles::Server))
}

/// Returns a pair before A connects, in which B has a guard against floods.
pub(crate) fn guarded(setup: Setup) -> Managed {
    let config = EndpointConfig {
        port: PORT,
        addresses: vec![setup.address(Side::B, 0)],
        encapsulation: Encapsulation::None,
        accept: Some(setup.sides[1].clone()),
        accept_from: AcceptFrom::Everyone,
        max_associations: 4,
        guard: Some(Guard::default()),
    };
    let mut managed = Managed::new(setup);
    managed.duo.nodes[1].endpoint = Endpoint::new(managed.duo.now, config, [9; 32]);
    managed
}

/// Returns a connected pair without keys, which keeps every packet.
pub(crate) fn agreed(setup: Setup) -> Duo {
    let mut duo = Duo::new(setup);
    duo.kept = Some(Vec::new());
    duo.connect();
    let up = |duo: &Duo| duo.nodes.iter().all(|n| n.try_association().is_some_and(|a| a.is_established()));
    assert!(duo.run_until(Span::from_secs(60), up), "the handshake takes too long");
    duo
}

/// Returns a connected and protected pair.
pub(crate) fn protected(setup: Setup) -> Duo {
    let mut duo = agreed(setup);
    // Unprotected packets in flight arrive first.
    duo.run(Span::from_secs(2));
    install(&mut duo, FIRST_EPOCH, CipherSuite::Aes128Gcm);
    for side in Side::BOTH {
        association(&mut duo, side).require_protection().expect("there are keys");
    }
    duo.settle();
    duo
}

pub(crate) fn association(duo: &mut Duo, side: Side) -> &mut Association {
    duo.nodes[side.index()].try_association_mut().expect("there is an association")
}

/// Returns the sending cipher of this side.
pub(crate) fn cipher(suite: CipherSuite, epoch: u64, from: Side) -> Box<dyn RecordCipher> {
    KeyMaterial::from_seed(suite, &[epoch as u8; 32], &[from.index() as u8]).cipher()
}

/// Installs the keys of an epoch at both sides: first to receive, then to send.
pub(crate) fn install(duo: &mut Duo, epoch: u64, suite: CipherSuite) {
    for side in Side::BOTH {
        let key = cipher(suite, epoch, side.other());
        association(duo, side).install_receive_key(epoch, key).expect("it is the next epoch");
    }
    for side in Side::BOTH {
        let key = cipher(suite, epoch, side);
        association(duo, side).install_send_key(epoch, key).expect("it is the next epoch");
    }
}

/// Sends in both directions and waits until all data has arrived.
pub(crate) fn data_flows(duo: &mut Duo) {
    for side in Side::BOTH {
        duo.send_all(side, 5_000, 20);
    }
    arrives(duo);
}

pub(crate) fn arrives(duo: &mut Duo) {
    let both = |duo: &Duo| Side::BOTH.into_iter().all(|side| duo.all_arrived(side));
    assert!(duo.run_until(Span::from_secs(300), both), "data does not arrive");
}

/// Returns the number of items that a side has dropped for this reason.
pub(crate) fn dropped(duo: &Duo, side: Side, reason: Discard) -> u64 {
    duo.nodes[side.index()].endpoint.discards().of(reason)
}

/// Passes the other side a packet from `from` over the first pair of addresses.
pub(crate) fn inject(duo: &mut Duo, from: Side, bytes: Vec<u8>) -> Handled {
    let (source, destination) = (duo.setup.address(from, 0), duo.setup.address(from.other(), 0));
    inject_from(duo, from, source, destination, bytes)
}

pub(crate) fn inject_from(
    duo: &mut Duo,
    from: Side,
    source: IpAddr,
    destination: IpAddr,
    bytes: Vec<u8>,
) -> Handled {
    let packet = Packet { from, source, destination, bytes, may_fragment: false };
    let now = duo.now;
    let handled = duo.nodes[from.other().index()].handle(now, &packet);
    duo.settle();
    handled
}

/// Returns an unprotected packet under the tag of this side's packets.
pub(crate) fn plain(
    duo: &Duo,
    from: Side,
    chunks: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), NoSpace>,
) -> Vec<u8> {
    let kept = duo.kept.iter().flatten().map(|(_, packet)| packet);
    let theirs = kept.filter(|packet| packet.from == from).map(|packet| packet.bytes[4..8].try_into());
    let tag = theirs.map(|tag| u32::from_be_bytes(tag.expect("four bytes"))).rfind(|tag| *tag != 0);
    let header =
        Header { source_port: PORT, destination_port: PORT, verification_tag: tag.expect("it has sent") };
    write(header, chunks)
}

pub(crate) fn write(
    header: Header,
    chunks: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), NoSpace>,
) -> Vec<u8> {
    let mut bytes = vec![0; 2_000];
    let mut writer = PacketWriter::new(&mut bytes, header).expect("room for a header");
    chunks(&mut writer).expect("room for chunks");
    let length = writer.finish();
    bytes.truncate(length);
    bytes
}

/// Stores the checksum without which a changed packet would be dropped unread.
pub(crate) fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    anabranch_tests::hostile::craft::fix_checksum(&mut bytes);
    bytes
}

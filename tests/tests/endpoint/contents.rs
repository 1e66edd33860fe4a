//! Messages without content: the network carries their lengths only.

use anabranch_core::time::{Span, Time};
use anabranch_core::{AssociationId, DataPacket, Endpoint, Handled, PacketBuffer, PathAddress, SendOptions};
use anabranch_tests::duo::{Duo, PORT, Reading, Setup};
use anabranch_tests::flow::MARK;
use anabranch_tests::network::{Packet, Side};
use anabranch_wire::{StreamId, Tsn};
use bytes::Bytes;

const SIZES: [usize; 4] = [1, 700, 5_000, 64];

/// Returns the received content of messages of these sizes, and all packets.
fn exchange(setup: Setup) -> (Vec<Vec<u8>>, Vec<(Time, Packet)>) {
    let mut duo = Duo::connected(setup);
    duo.reading = [Reading::ByHand; 2];
    duo.kept = Some(Vec::new());
    for size in SIZES {
        duo.send(Side::A, size, 0, false).expect("there is an association").expect("it takes the message");
    }
    duo.settle();
    duo.run(Span::from_secs(2));
    let association = duo.nodes[1].try_association_mut().expect("there is an association");
    let messages = std::iter::from_fn(|| {
        let mut message = Vec::new();
        association.recv(&mut message).map(|_| message)
    });
    (messages.collect(), duo.kept.take().expect("packets are kept"))
}

fn holds_a_message(packet: &Packet) -> bool {
    packet.bytes.windows(MARK.len()).any(|bytes| bytes == MARK)
}

#[test]
fn without_contents_equal_packets_are_sent_and_zeros_are_read() {
    let carried = Setup::new(1, "sctp", "rfc9260");
    let counted = Setup { carries_contents: false, ..carried.clone() };
    let ((messages, packets), (zeros, empty)) = (exchange(carried), exchange(counted));
    let shape = |packets: &[(Time, Packet)]| -> Vec<_> {
        packets.iter().map(|(at, packet)| (*at, packet.source, packet.bytes.len())).collect()
    };
    assert_eq!(shape(&packets), shape(&empty));
    assert!(packets.iter().any(|(_, packet)| holds_a_message(packet)));
    assert!(!empty.iter().any(|(_, packet)| holds_a_message(packet)));
    assert_eq!(messages.iter().map(Vec::len).collect::<Vec<_>>(), SIZES);
    assert_eq!(zeros, SIZES.map(|size| vec![0; size]));
}

/// Carries packets from one endpoint to the other with zeros in place of content that was not written. Returns each packet's length
/// and its written length.
fn carry(from: &mut Endpoint, to: &mut Endpoint) -> Vec<(usize, usize)> {
    let (mut packet, mut lengths) = (PacketBuffer::new(), Vec::new());
    while let Some(transmit) = from.poll_transmit(Time::ZERO, &mut packet) {
        let mut arrived = packet.written().to_vec();
        lengths.push((packet.len(), arrived.len()));
        arrived.resize(packet.len(), 0);
        let address = PathAddress::from((transmit.address.remote, transmit.address.local));
        match packet.described() {
            Some(described) => to.handle_data_packet(Time::ZERO, address, described),
            None => to.handle_datagram(Time::ZERO, address, &arrived),
        };
    }
    lengths
}

/// Returns two endpoints of which one has an association, connected unless `steps` is less than 2.
fn pair_of(sides: [Endpoint; 2], steps: usize) -> ([Endpoint; 2], AssociationId) {
    let [mut one, mut other] = sides;
    let setup = Setup::new(1, "sctp", "rfc9260");
    let pair = [(setup.address(Side::A, 0), setup.address(Side::B, 0))];
    let config = setup.sides[0].clone();
    let id = one.connect(Time::ZERO, PORT, &pair, config).expect("there is room");
    for _ in 0..steps {
        carry(&mut one, &mut other);
        carry(&mut other, &mut one);
    }
    ([one, other], id)
}

/// Returns the packets in which messages of these sizes are sent directly after the handshake, by length and written length, and the
/// received content.
fn packets_with_data(sides: [Endpoint; 2], sizes: &[usize]) -> (Vec<(usize, usize)>, Vec<Vec<u8>>) {
    let ([mut one, mut other], id) = pair_of(sides, 2);
    for &size in sizes {
        let association = one.association_mut(id).expect("it is there");
        association.send(Bytes::from(vec![7; size]), SendOptions::default()).expect("there is room");
    }
    let lengths = carry(&mut one, &mut other);
    let id = other.associations().next().expect("the other side of it");
    let association = other.association_mut(id).expect("it is there");
    let read = std::iter::from_fn(|| {
        let mut message = Vec::new();
        association.recv(&mut message).map(|_| message)
    });
    (lengths, read.collect())
}

#[test]
fn unwritten_user_data_can_be_omitted_without_a_checksum() {
    let counted = Setup { carries_contents: false, ..Setup::new(1, "sctp", "rfc9260") };
    let bare = || [Side::A, Side::B].map(|side| counted.endpoint(side).without_checksums());
    let headers = 12 + 16;
    let (lengths, read) = packets_with_data(bare(), &[1_000, 1_001]);
    assert_eq!(lengths, [(headers + 1_000, headers), (headers + 1_004, headers)]);
    assert_eq!(read, [vec![0; 1_000], vec![0; 1_001]]);

    let (lengths, read) = packets_with_data(bare(), &[100, 300]);
    assert_eq!(lengths, [(headers + 100 + 16 + 300, headers + 100 + 16)], "only the last chunk is left out");
    assert_eq!(read.iter().map(Vec::len).collect::<Vec<_>>(), [100, 300]);

    let (lengths, _) = packets_with_data([Side::A, Side::B].map(|side| counted.endpoint(side)), &[1_000]);
    assert_eq!(lengths, [(headers + 1_000, headers + 1_000)], "a checksum is of all bytes");
}

/// Returns endpoints that describe packets.
fn describing() -> [Endpoint; 2] {
    let counted = Setup { carries_contents: false, ..Setup::new(1, "sctp", "rfc9260") };
    [Side::A, Side::B].map(|side| counted.endpoint(side).without_checksums().with_described_packets())
}

#[test]
fn packet_with_one_counted_chunk_is_described_and_others_are_written() {
    let headers = 12 + 16;
    let (lengths, read) = packets_with_data(describing(), &[1_000, 1_001]);
    assert_eq!(lengths, [(headers + 1_000, 0), (headers + 1_004, 0)]);
    assert_eq!(read, [vec![0; 1_000], vec![0; 1_001]]);
    let (lengths, read) = packets_with_data(describing(), &[100, 300]);
    assert_eq!(lengths, [(headers + 100 + 16 + 300, headers + 100 + 16)]);
    assert_eq!(read.iter().map(Vec::len).collect::<Vec<_>>(), [100, 300]);
}

#[test]
fn packets_with_checksum_or_contents_are_not_described() {
    let setup = Setup::new(1, "sctp", "rfc9260");
    let counted = Setup { carries_contents: false, ..setup.clone() };
    let with_checksum = [Side::A, Side::B].map(|side| counted.endpoint(side).with_described_packets());
    let with_contents =
        [Side::A, Side::B].map(|side| setup.endpoint(side).without_checksums().with_described_packets());
    for sides in [with_checksum, with_contents] {
        let (lengths, _) = packets_with_data(sides, &[1_000]);
        assert_eq!(lengths, [(1_028, 1_028)]);
    }
}

/// Change of a packet on its way.
type Change = fn(DataPacket) -> DataPacket;

/// Returns the outcome of a described packet at its receiver: after the handshake, or before its end. `change` changes the packet,
/// which is given to the receiver as it is, or as bytes.
fn outcome(steps: usize, change: Change, as_bytes: bool) -> (Handled, String) {
    let ([mut one, mut other], id) = pair_of(describing(), 2);
    let association = one.association_mut(id).expect("it is there");
    association.send(Bytes::from(vec![7; 1_000]), SendOptions::default()).expect("there is room");
    let mut packet = PacketBuffer::new();
    let transmit = one.poll_transmit(Time::ZERO, &mut packet).expect("a packet with DATA");
    let described = change(*packet.described().expect("it is described"));
    if steps < 2 {
        [_, other] = pair_of(describing(), steps).0;
    }
    let address = PathAddress::from((transmit.address.remote, transmit.address.local));
    let mut bytes = PacketBuffer::from(described);
    bytes.encode();
    let handled = match as_bytes {
        true => other.handle_datagram(Time::ZERO, address, &bytes),
        false => other.handle_data_packet(Time::ZERO, address, &described),
    };
    (handled, format!("{other:?}"))
}

#[test]
fn described_packet_is_checked_as_its_bytes_are() {
    let changes: [(&str, Change); 9] = [
        ("none", |packet| packet),
        ("tag", |mut packet| {
            packet.header.verification_tag ^= 1;
            packet
        }),
        ("destination port", |mut packet| {
            packet.header.destination_port += 1;
            packet
        }),
        ("source port", |mut packet| {
            packet.header.source_port += 1;
            packet
        }),
        ("no source port", |mut packet| {
            packet.header.source_port = 0;
            packet
        }),
        ("no user data", |packet| DataPacket::new(packet.header, packet.data, 0).expect("a length")),
        ("longest user data", |packet| {
            DataPacket::new(packet.header, packet.data, 65_519).expect("a length")
        }),
        ("stream", |mut packet| {
            packet.data.stream = StreamId::new(u16::MAX);
            packet
        }),
        ("TSN", |mut packet| {
            packet.data.tsn = Tsn::new(packet.data.tsn.get().wrapping_add(1 << 31));
            packet
        }),
    ];
    for (name, change) in changes {
        for steps in 0..3 {
            let (described, bytes) = (outcome(steps, change, false), outcome(steps, change, true));
            assert_eq!(described, bytes, "changed {name} after {steps} steps");
        }
    }
}

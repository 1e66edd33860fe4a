//! Messages without content: the network carries their lengths only.

use anabranch_core::time::{Span, Time};
use anabranch_core::{Endpoint, PacketBuffer, PathAddress, SendOptions};
use anabranch_tests::duo::{Duo, PORT, Reading, Setup};
use anabranch_tests::flow::MARK;
use anabranch_tests::network::{Packet, Side};
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
        to.handle_datagram(Time::ZERO, address, &arrived);
    }
    lengths
}

/// Returns the packets in which messages of these sizes are sent directly after the handshake, by length and written length, and the
/// received content.
fn packets_with_data(sides: [Endpoint; 2], sizes: &[usize]) -> (Vec<(usize, usize)>, Vec<Vec<u8>>) {
    let [mut one, mut other] = sides;
    let setup = Setup::new(1, "sctp", "rfc9260");
    let pair = [(setup.address(Side::A, 0), setup.address(Side::B, 0))];
    let config = setup.sides[0].clone();
    let id = one.connect(Time::ZERO, PORT, &pair, config).expect("there is room");
    for _ in 0..2 {
        carry(&mut one, &mut other);
        carry(&mut other, &mut one);
    }
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

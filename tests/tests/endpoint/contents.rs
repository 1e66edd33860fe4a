//! Messages that nobody looks at: their lengths go through the network, and what they hold does not.

use anabranch_core::time::{Span, Time};
use anabranch_tests::duo::{Duo, Reading, Setup};
use anabranch_tests::flow::MARK;
use anabranch_tests::network::{Packet, Side};

const SIZES: [usize; 4] = [1, 700, 5_000, 64];

/// What is read of messages of these sizes, and all packets.
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
fn without_contents_the_same_packets_leave_with_nothing_in_them_and_zeros_are_read() {
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

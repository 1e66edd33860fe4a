//! Packets that arrive together, and drivers that ask if the endpoint can accept more of them before it answers.

use anabranch_core::profile::SackFlags;
use anabranch_core::time::Span;
use anabranch_core::{AssociationEvent, Endpoint, PacketBuffer, PathAddress, SendOptions};
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::Side;
use anabranch_tests::sight;
use bytes::Bytes;

const A: usize = Side::A as usize;
const B: usize = Side::B as usize;

/// Returns a connected pair in which A has sent this number of packets of one chunk each, which reach B together.
fn arriving(packets: usize, lost: Option<usize>) -> Duo {
    arriving_with("sctp", SackFlags::Announced, packets, lost)
}

/// Returns the same for sides with this scheme, of which A announces these flags.
fn arriving_with(scheme: &str, flags: SackFlags, packets: usize, lost: Option<usize>) -> Duo {
    let setup = Setup::new(1, scheme, "net").with(|config| config.initial_tsn = Some(1_000));
    let mut duo = Duo::new(setup.with_side(Side::A, |config| config.profile.sack_flags = flags));
    duo.connect();
    duo.send_all(Side::A, 1_400, 1);
    duo.run(Span::from_secs(1));
    let lost = lost.map(|place| 1_001 + place as u32);
    duo.network.set_filter(move |packet| !sight::tsns(packet).iter().any(|tsn| Some(*tsn) == lost));
    duo.kept = Some(Vec::new());
    duo.send_all(Side::A, 1_400, packets);
    duo.settle();
    let arrival = duo.next_event().expect("packets are under way");
    duo.now = arrival;
    duo
}

/// Passes B all arrived packets, and lets it answer if it does not wait for more. Returns the number of SACKs.
fn sacks(duo: &mut Duo) -> usize {
    while let Some(side) = duo.take_arrival() {
        assert_eq!(side, Side::B);
        if !duo.nodes[B].association().awaits_more() {
            duo.settle_side(Side::B);
        }
    }
    duo.settle_side(Side::B);
    let sent = duo.kept.iter().flatten().filter(|(_, packet)| packet.from == Side::B);
    sent.filter(|(_, packet)| sight::sack(packet).is_some()).count()
}

#[test]
fn four_packets_that_arrive_together_share_a_sack() {
    assert_eq!(sacks(&mut arriving(8, None)), 2);
    let mut duo = arriving(8, None);
    duo.happen();
    assert!(sacks(&mut duo) >= 4, "a driver that does not ask gets one for every second packet");
}

#[test]
fn another_stack_whose_window_grows_with_each_sack_gets_them_all() {
    let mut duo = arriving_with("sctp", SackFlags::Assumed, 8, None);
    assert!(!duo.nodes[B].association().awaits_more());
    let count = sacks(&mut duo);
    assert!(count >= 4, "{count} for 8 packets");
}

#[test]
fn no_sack_waits_while_something_is_missing() {
    let mut duo = arriving(8, Some(0));
    let mut waits = 0;
    while duo.take_arrival().is_some() {
        waits += usize::from(duo.nodes[B].association().awaits_more());
        duo.settle_side(Side::B);
    }
    assert_eq!(waits, 0);
}

#[test]
fn a_missing_packet_delays_no_sharing_of_sacks_that_count_packets() {
    assert_eq!(sacks(&mut arriving_with("cmt", SackFlags::Announced, 9, Some(0))), 2);
    let mut other_stack = arriving_with("cmt", SackFlags::Assumed, 9, Some(0));
    assert_eq!(sacks(&mut other_stack), 8, "a peer that counts SACKs gets one for each packet");
}

#[test]
fn driver_that_stops_sending_is_notified_of_an_ended_turn() {
    let mut duo = arriving(8, None);
    while duo.take_arrival().is_some() {}
    let endpoint = &mut duo.nodes[B].endpoint;
    assert_eq!(endpoint.poll_settled_event(), None, "a SACK is still to leave");
    endpoint.end_turn();
    let told = endpoint.poll_settled_event().map(|(_, event)| event);
    assert_eq!(told, Some(AssociationEvent::Readable));
}

#[test]
fn end_of_an_association_is_reported_after_its_last_packet() {
    let mut duo = arriving(1, None);
    let (now, id) = (duo.now, duo.nodes[A].id.expect("it is up"));
    duo.nodes[A].try_association_mut().expect("it is up").abort(now);
    let endpoint = &mut duo.nodes[A].endpoint;
    endpoint.end_turn();
    assert_eq!(endpoint.poll_settled_event(), None, "the ABORT is still to leave");
    assert!(endpoint.poll_transmit(now, &mut PacketBuffer::new()).is_some());
    assert_eq!(endpoint.poll_transmit(now, &mut PacketBuffer::new()), None);
    let (of, event) = endpoint.poll_settled_event().expect("it is over");
    assert_eq!(of, id);
    assert!(matches!(event, AssociationEvent::Aborted(_)), "{event:?}");
}

#[test]
fn an_association_whose_turn_has_ended_goes_behind_the_others() {
    let mut duo = arriving(1, None);
    let (now, setup, first) = (duo.now, Setup::new(1, "sctp", "net"), duo.nodes[A].id.expect("it is up"));
    duo.send_all(Side::A, 1_400, 8);
    let association = duo.nodes[A].try_association_mut().expect("it is up");
    association.send_at(now, Bytes::from_static(&[0; 5_000]), SendOptions::default()).expect("there is room");
    let endpoint = &mut duo.nodes[A].endpoint;
    let [local, remote] = [99, 98].map(|host| [10, 0, 0, host].into());
    let peer = PathAddress::from((local, remote));
    let second = endpoint.connect(now, 1, &[peer], setup.sides[0].clone()).expect("there is room");
    let sender = |endpoint: &mut Endpoint| {
        endpoint.poll_transmit(now, &mut PacketBuffer::new()).and_then(|transmit| transmit.association)
    };
    assert_eq!(sender(endpoint), Some(first));
    endpoint.end_turn();
    assert_eq!(sender(endpoint), Some(second));
    assert_eq!(sender(endpoint), Some(first));
}

#[test]
fn outgoing_data_waits_for_no_packet() {
    let mut duo = arriving(8, None);
    assert_eq!(duo.take_arrival(), Some(Side::B));
    assert!(duo.nodes[B].association().awaits_more());
    let now = duo.now;
    let association = duo.nodes[B].try_association_mut().expect("it is up");
    association.send_at(now, Bytes::from_static(b"x"), SendOptions::default()).expect("there is room");
    assert!(!duo.nodes[B].association().awaits_more());
}

//! Packets that arrive together, and a driver that asks whether more of them may be handed over before the endpoint answers.

use anabranch_core::SendOptions;
use anabranch_core::profile::SackFlags;
use anabranch_core::time::Span;
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::Side;
use anabranch_tests::sight;
use bytes::Bytes;

const B: usize = Side::B as usize;

/// Two sides that are up; A has sent these packets of one chunk each, which reach B together.
fn arriving(packets: usize, lost: Option<usize>) -> Duo {
    arriving_from(SackFlags::Announced, packets, lost)
}

/// The same from a side that says so much of what it is.
fn arriving_from(flags: SackFlags, packets: usize, lost: Option<usize>) -> Duo {
    let setup = Setup::new(1, "sctp", "net").with(|config| config.initial_tsn = Some(1_000));
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

/// Hands B all that has arrived, and lets it answer where it does not await more; how many SACKs that were.
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
    let mut duo = arriving_from(SackFlags::Assumed, 8, None);
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
fn what_is_to_be_sent_waits_for_no_packet() {
    let mut duo = arriving(8, None);
    assert_eq!(duo.take_arrival(), Some(Side::B));
    assert!(duo.nodes[B].association().awaits_more());
    let now = duo.now;
    let association = duo.nodes[B].try_association_mut().expect("it is up");
    association.send_at(now, Bytes::from_static(b"x"), SendOptions::default()).expect("there is room");
    assert!(!duo.nodes[B].association().awaits_more());
}

//! Addresses that a protected server reports, and their use by its client.

use std::net::IpAddr;

use anabranch_core::time::Span;
use anabranch_core::{AssociationEvent, ListedAddresses, PathAddress, PathState};
use anabranch_keying::KeyingEvent;
use anabranch_tests::duo::Setup;
use anabranch_tests::managed::{Managed, protecting};
use anabranch_tests::network::Side;

/// Number of HEARTBEATs on an offered path before its removal.
const HEARTBEATS: usize = 4;

const NONE: [IpAddr; 0] = [];

fn setup() -> Setup {
    protecting(1).with(|config| {
        config.address_changes.asconf = true;
        config.listed_addresses = ListedAddresses::Protected;
    })
}

/// Returns an address of B without a path.
fn further(number: u8) -> IpAddr {
    IpAddr::from([10, 0, 100 + number, 2])
}

fn own(managed: &Managed, side: Side) -> IpAddr {
    managed.duo.setup.address(side, 0)
}

fn report(managed: &mut Managed, side: Side, addresses: &[IpAddr]) {
    let now = managed.duo.now;
    managed.association(side).report_addresses(now, addresses);
    managed.settle();
    managed.run(Span::from_secs(2));
}

fn reported(managed: &mut Managed, side: Side) -> Vec<IpAddr> {
    managed.association(side).reported_addresses().map(|(address, _)| address).collect()
}

fn offer(managed: &mut Managed, local: IpAddr, remote: IpAddr) -> Result<(), anabranch_core::PathError> {
    let now = managed.duo.now;
    let offered = managed.association(Side::A).offer_path(now, PathAddress::from((local, remote)));
    managed.settle();
    offered.map(drop)
}

#[test]
fn protected_report_reaches_the_opener_and_its_path_carries_data() {
    let mut managed = Managed::new(setup()).established();
    let first = own(&managed, Side::B);
    report(&mut managed, Side::B, &[further(1), first]);
    let mut all = reported(&mut managed, Side::A);
    all.sort_unstable();
    assert_eq!(all, [first, further(1)]);
    assert!(managed.duo.nodes[0].was_told(&AssociationEvent::PeerAddresses));
    let local = own(&managed, Side::A);
    offer(&mut managed, local, further(1)).expect("there is room");
    managed.run(Span::from_secs(1));
    let path = managed.association(Side::A).paths().iter().find(|facts| facts.id.index() == 1).copied();
    assert_eq!(path.expect("a second path").state, PathState::Active);
    managed.data_flows();
}

#[test]
fn report_in_the_first_protected_packet_counts() {
    let mut managed = Managed::new(setup());
    managed.duo.connect();
    let accepted = |managed: &Managed| managed.reported(Side::B).contains(&KeyingEvent::Established);
    assert!(managed.run_until(Span::from_secs(10), accepted));
    let first = own(&managed, Side::B);
    report(&mut managed, Side::B, &[first, further(1)]);
    assert_eq!(reported(&mut managed, Side::A).len(), 2);
}

#[test]
fn address_is_not_offered_before_the_peer_has_reported_the_known_one() {
    let mut managed = Managed::new(setup()).established();
    report(&mut managed, Side::B, &[further(1)]);
    // The address that A has connected to does not belong to B, as behind a relay.
    assert_eq!(reported(&mut managed, Side::A), NONE);
    let local = own(&managed, Side::A);
    assert!(offer(&mut managed, local, further(1)).is_err());
    let first = own(&managed, Side::B);
    report(&mut managed, Side::B, &[first]);
    assert_eq!(reported(&mut managed, Side::A).len(), 2);
}

#[test]
fn only_protected_reports_of_the_acceptor_count_where_requested() {
    let cases = [
        (setup().with(|config| config.protection = None), Side::B),
        (setup().with(|config| config.listed_addresses = ListedAddresses::Ignore), Side::B),
        (setup().with(|config| config.address_changes.asconf = false), Side::B),
    ];
    for (setup, from) in cases {
        let protected = setup.sides[0].protection.is_some();
        let mut managed = Managed::new(setup);
        managed.duo.connect();
        let up = |managed: &Managed| match protected {
            true => managed.is_established(),
            false => managed.association_is_up(Side::A) && managed.association_is_up(Side::B),
        };
        assert!(managed.run_until(Span::from_secs(10), up));
        let first = own(&managed, from);
        report(&mut managed, from, &[first, further(1)]);
        assert_eq!(reported(&mut managed, from.other()), NONE);
    }
    let mut managed = Managed::new(setup()).established();
    let first = own(&managed, Side::A);
    report(&mut managed, Side::A, &[first, IpAddr::from([10, 0, 101, 1])]);
    assert_eq!(reported(&mut managed, Side::B), NONE);
}

#[test]
fn addresses_of_init_and_init_ack_are_no_reports() {
    let mut managed = Managed::new(Setup { pairs: 3, ..setup() }).established();
    managed.run(Span::from_secs(5));
    assert_eq!(Side::BOTH.map(|side| reported(&mut managed, side)), [NONE, NONE]);
}

#[test]
fn client_keeps_eight_reported_addresses() {
    let mut managed = Managed::new(setup()).established();
    let first = own(&managed, Side::B);
    let some: Vec<IpAddr> = std::iter::once(first).chain((1..7).map(further)).collect();
    report(&mut managed, Side::B, &some);
    let others: Vec<IpAddr> = (7..15).map(further).collect();
    report(&mut managed, Side::B, &others);
    assert_eq!(reported(&mut managed, Side::A).len(), 8);
}

#[test]
fn reported_addresses_of_local_scope_are_skipped() {
    let mut managed = Managed::new(setup()).established();
    let first = own(&managed, Side::B);
    report(&mut managed, Side::B, &[first]);
    // A hostile server reports them as new addresses.
    for address in ["127.0.0.9", "169.254.7.7", "10.0.120.2"] {
        let now = managed.duo.now;
        let local: IpAddr = address.parse().expect("an address");
        managed.association(Side::B).add_local_address(now, local).expect("there is room");
        managed.settle();
        managed.run(Span::from_secs(60));
    }
    let all = reported(&mut managed, Side::A);
    assert!(all.contains(&IpAddr::from([10, 0, 120, 2])), "{all:?}");
    assert_eq!(all.len(), 2, "{all:?}");
}

#[test]
fn offered_path_without_an_answer_is_asked_a_few_times_and_removed() {
    let mut managed = Managed::new(setup()).established();
    // Packets are shorter after both sides have confirmed the handshake.
    managed.data_flows();
    let first = own(&managed, Side::B);
    report(&mut managed, Side::B, &[first, further(1)]);
    managed.duo.network.set_filter(|packet| packet.destination != further(1));
    let local = own(&managed, Side::A);
    managed.duo.kept = Some(Vec::new());
    offer(&mut managed, local, further(1)).expect("there is room");
    managed.run(Span::from_secs(300));
    let kept = managed.duo.kept.take().expect("packets are kept");
    let asked = kept.iter().filter(|(_, packet)| packet.destination == further(1));
    let lengths: Vec<usize> = asked.map(|(_, packet)| packet.bytes.len()).collect();
    assert_eq!(lengths.len(), HEARTBEATS);
    assert!(lengths.iter().all(|length| *length <= 100), "{lengths:?}");
    assert_eq!(managed.association(Side::A).path_address(anabranch_core::PathId::new(1)), None);
}

#[test]
fn withdrawn_report_is_forgotten() {
    let mut managed = Managed::new(setup()).established();
    let first = own(&managed, Side::B);
    report(&mut managed, Side::B, &[first, further(1)]);
    let now = managed.duo.now;
    managed.association(Side::B).remove_local_address(now, further(1)).expect("it was reported");
    managed.settle();
    managed.run(Span::from_secs(2));
    assert_eq!(reported(&mut managed, Side::A), [first]);
}

#[test]
fn link_lost_during_the_handshake_costs_less_than_three_seconds() {
    let setup = Setup::new(2, "braid", "net").with(|config| config.address_changes.asconf = true);
    let mut worst = Span::ZERO;
    for lost in 0..2 {
        for passing in 0..24 {
            let mut setup = setup.clone();
            for side in Side::BOTH {
                setup.sides[side.index()].protection = protecting(2).sides[side.index()].protection.clone();
            }
            let gone = setup.address(Side::B, lost);
            let mut managed = Managed::new(setup);
            let mut passed = 0;
            managed.duo.network.set_filter(move |packet| {
                let on_it = packet.destination == gone || packet.source == gone;
                passed += u32::from(on_it);
                !on_it || passed <= passing
            });
            managed.duo.connect();
            let begun = managed.duo.now;
            let up = managed.run_until(Span::from_secs(30), Managed::is_established);
            assert!(up, "link {lost} after {passing} packets: no keys");
            worst = worst.max(managed.duo.now.since(begun));
        }
    }
    assert!(worst < Span::from_secs(3), "{worst:?}");
}

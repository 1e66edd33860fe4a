//! The NATs of the tests behave as their types say.

use std::net::SocketAddr;

use crate::rig::nat::{Nat, NatType};

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// Returns, for a NAT whose host has sent to 192.0.2.1:1, whether the mapping is the same for another destination, and which of three
/// sources pass: the destination, another port of its address, another address.
fn behaviour(kind: NatType) -> (bool, [bool; 3]) {
    let mut nat = Nat::new(kind, address("203.0.113.1:1").ip());
    let inside = address("10.0.0.2:9899");
    let first = nat.outgoing(inside, address("192.0.2.1:1"));
    let sources = ["192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1"];
    let passes = sources.map(|source| nat.incoming(address(source), first.port()) == Some(inside));
    let second = nat.outgoing(inside, address("192.0.2.9:9"));
    assert_eq!((first.ip(), second.ip()), (nat.public(), nat.public()));
    (first == second, passes)
}

#[test]
fn full_cone_maps_and_filters_independently_of_the_endpoint() {
    assert_eq!(behaviour(NatType::FullCone), (true, [true, true, true]));
}

#[test]
fn restricted_cone_filters_by_address() {
    assert_eq!(behaviour(NatType::Restricted), (true, [true, true, false]));
}

#[test]
fn port_restricted_cone_filters_by_address_and_port() {
    assert_eq!(behaviour(NatType::PortRestricted), (true, [true, false, false]));
}

#[test]
fn symmetric_nat_maps_and_filters_by_address_and_port() {
    assert_eq!(behaviour(NatType::Symmetric), (false, [true, false, false]));
}

#[test]
fn port_without_mapping_drops_every_packet() {
    let mut nat = Nat::new(NatType::FullCone, address("203.0.113.1:1").ip());
    let mapped = nat.outgoing(address("10.0.0.2:1"), address("192.0.2.1:1"));
    assert_eq!(nat.incoming(address("192.0.2.1:1"), mapped.port() + 1), None);
    nat.restart();
    assert_eq!(nat.incoming(address("192.0.2.1:1"), mapped.port()), None);
}

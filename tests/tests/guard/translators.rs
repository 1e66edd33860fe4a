//! Peers behind address translators (RFC 6951 section 5.4).

use anabranch_core::time::Span;
use anabranch_core::{AssociationEvent, PathState};

use crate::guard::net::{Mapping, Net, PORT, at, config, ip};

const OUTSIDE: u8 = 100;

fn outside(port: u16) -> std::net::SocketAddr {
    at(ip(1, OUTSIDE), port)
}

/// Returns clients, each at its own address behind one translated address, and the server last.
fn behind_one_address(clients: &[u8]) -> Net {
    let mut net = Net::new();
    for &client in clients {
        net.site(&[at(ip(0, client), PORT)], None);
        let inside = at(ip(0, client), PORT);
        net.mappings.push(Mapping { inside, outside: outside(4000 + u16::from(client)) });
    }
    net.site(&[at(ip(2, 9), PORT)], Some(config()));
    for (index, &client) in clients.iter().enumerate() {
        net.connect(index, &[(ip(0, client), at(ip(2, 9), PORT))], config());
        net.run(Span::from_millis(500));
    }
    net
}

#[test]
fn two_clients_behind_one_address_are_distinct() {
    let mut net = behind_one_address(&[1, 2]);
    let up = |event: &AssociationEvent| *event == AssociationEvent::Connected;
    assert_eq!([0, 1, 2].map(|site| net.sites[site].reported(up)), [1, 1, 2]);
    assert_eq!(net.sites[2].reported(|event| *event == AssociationEvent::Restarted), 0);
    for (site, id) in net.sites[2].ids().into_iter().enumerate() {
        let (bytes, options) = (bytes::Bytes::from(vec![site as u8 + 1; 100]), Default::default());
        net.sites[2].endpoint.association_mut(id).expect("it exists").send(bytes, options).expect("taken");
    }
    net.run(Span::from_secs(1));
    for site in 0..2 {
        let mut got = Vec::new();
        assert!(net.sites[site].one().recv(&mut got).is_some());
        assert_eq!(got, [site as u8 + 1; 100]);
    }
}

#[test]
fn restarted_client_is_the_same_at_its_port_and_new_at_another() {
    for (port, restarts) in [(4001, 1), (4002, 0)] {
        let mut net = behind_one_address(&[1]);
        // The old client is forgotten, and a new one starts at its address.
        net.sites.swap(0, 1);
        net.sites.truncate(1);
        let client = net.site(&[at(ip(0, 1), PORT)], None);
        net.mappings[0].outside = outside(port);
        net.connect(client, &[(ip(0, 1), at(ip(2, 9), PORT))], config());
        net.run(Span::from_secs(1));
        assert_eq!(net.sites[0].reported(|event| *event == AssociationEvent::Restarted), restarts, "{port}");
        assert_eq!(net.sites[0].ids().len(), 2 - restarts, "{port}");
        assert_eq!(net.sites[client].reported(|event| *event == AssociationEvent::Connected), 1);
    }
}

#[test]
fn restart_with_port_change_before_the_cookie_matches_by_tie_tags() {
    let mut net = behind_one_address(&[1]);
    net.sites.swap(0, 1);
    net.sites.truncate(1);
    let client = net.site(&[at(ip(0, 1), PORT)], None);
    net.connect(client, &[(ip(0, 1), at(ip(2, 9), PORT))], config());
    net.run(Span::from_millis(15));
    // The INIT ACK is in flight; later packets of the client come from another port.
    net.mappings.push(Mapping { inside: at(ip(0, 1), PORT), outside: outside(4444) });
    net.mappings.swap(0, 1);
    net.run(Span::from_secs(3));
    assert_eq!(net.sites[0].reported(|event| *event == AssociationEvent::Restarted), 1);
    assert_eq!(net.sites[0].ids().len(), 1);
    assert!(net.sites[0].paths().contains(&(outside(4444), PathState::Active)), "{:?}", net.sites[0].paths());
}

#[test]
fn transfer_continues_after_a_nat_rebinding() {
    for from in [0, 1] {
        let mut net = behind_one_address(&[1]);
        let to = 1 - from;
        net.send(from, 100);
        net.read(to, 200_000);
        net.mappings[0].outside = outside(4444);
        net.read(to, 800_000);
        net.run(Span::from_secs(8));
        assert_eq!(net.sites[1].paths(), [(outside(4444), PathState::Active)], "from {from}");
        let rebound = |event: &AssociationEvent| matches!(event, AssociationEvent::PathRebound { .. });
        assert_eq!((net.sites[0].reported(rebound), net.sites[1].reported(rebound)), (0, 1), "from {from}");
        net.send(from, 10);
        net.read(to, 100_000);
    }
}

#[test]
fn unconfirmed_new_port_gets_small_packets_only() {
    let mut net = behind_one_address(&[1]);
    net.send(1, 100);
    net.read(0, 200_000);
    net.mappings[0].outside = outside(4444);
    // No host behind the new port answers HEARTBEATs.
    net.loses = Box::new(|datagram| datagram.to == outside(4444));
    net.run(Span::from_secs(20));
    let long = net.log.iter().filter(|datagram| datagram.to == outside(4444) && datagram.bytes.len() > 300);
    assert_eq!(long.count(), 0);
}

#[test]
fn two_paths_behind_one_address_stay_two() {
    let mut net = Net::new();
    let inside = [1, 2].map(|host| at(ip(0, host), PORT));
    net.site(&inside, None);
    net.mappings = [0, 1].map(|n| Mapping { inside: inside[n], outside: outside(4001 + n as u16) }).to_vec();
    let server = at(ip(2, 9), PORT);
    net.site(&[server], Some(config()));
    net.connect(0, &inside.map(|local| (local.ip(), server)), config());
    net.run(Span::from_secs(30));
    let both = [(outside(4001), PathState::Active), (outside(4002), PathState::Active)];
    assert_eq!(net.sites[1].paths(), both);
    let mark = net.log.len();
    net.send(1, 100);
    net.read(0, 1_000_000);
    net.run(Span::from_secs(30));
    assert_eq!(net.sites[1].paths(), both);
    assert_eq!(net.sites[1].reported(|event| matches!(event, AssociationEvent::PathRebound { .. })), 0);
    for port in [4001, 4002] {
        let carried = net.log[mark..].iter().filter(|datagram| datagram.to == outside(port));
        assert!(carried.map(|datagram| datagram.bytes.len()).sum::<usize>() > 200_000, "{port}");
    }
}

#[test]
fn a_client_that_moves_more_often_than_there_are_paths_is_found_again() {
    let mut net = behind_one_address(&[1]);
    for port in 5000..5020 {
        net.mappings[0].outside = outside(port);
        net.send(0, 1);
        net.run(Span::from_secs(20));
        assert_eq!(net.sites[1].paths(), [(outside(port), PathState::Active)]);
    }
}

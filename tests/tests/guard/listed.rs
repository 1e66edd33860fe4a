//! Addresses that a peer only lists.

use anabranch_core::time::Span;
use anabranch_core::{AssociationConfig, AssociationEvent, ListedAddresses, PathState};

use crate::guard::net::{Net, PORT, at, config, ip};

/// Returns a client with two addresses that connects over the first one only, and a server with two.
fn listing(config: &AssociationConfig) -> Net {
    let mut net = Net::new();
    net.site(&[at(ip(0, 1), PORT), at(ip(1, 1), PORT)], None);
    net.site(&[at(ip(0, 9), PORT), at(ip(1, 9), PORT)], Some(config.clone()));
    net.loses = Box::new(|datagram| datagram.to.ip() == ip(1, 1));
    net.connect(0, &[(ip(0, 1), at(ip(0, 9), PORT))], config.clone());
    net
}

#[test]
fn ignored_listed_addresses_get_no_packets() {
    let mut net = listing(&config());
    net.run(Span::from_secs(60));
    net.send(0, 20);
    net.read(1, 200_000);
    net.send(1, 20);
    net.read(0, 200_000);
    assert_eq!((net.sent_to(ip(1, 1)), net.sent_to(ip(1, 9))), ((0, 0), (0, 0)));
    assert_eq!((net.sites[0].paths().len(), net.sites[1].paths().len()), (1, 1));
}

#[test]
fn a_listed_address_gets_at_most_one_small_heartbeat_per_time_out() {
    let mut net = listing(&AssociationConfig { listed_addresses: ListedAddresses::Use, ..config() });
    net.run(Span::from_millis(100));
    net.send(1, 300);
    net.run(Span::from_secs(60));
    let there: Vec<_> = net.log.iter().filter(|datagram| datagram.to.ip() == ip(1, 1)).collect();
    assert!(there.len() > 3, "{} HEARTBEATs", there.len());
    assert!(there.iter().all(|datagram| datagram.bytes.len() <= 64 && datagram.kind() == 4));
    for pair in there.windows(2) {
        assert!(pair[1].sent.since(pair[0].sent) >= net_rto(), "{pair:?}");
    }
}

fn net_rto() -> Span {
    config().profile.rto_initial
}

#[test]
fn unlisted_source_becomes_a_path_after_it_has_answered() {
    let mut net = Net::new();
    // Each side has learnt one address of the other; the client's second one is new to the server.
    net.site(&[at(ip(0, 1), PORT), at(ip(1, 1), 7777)], None);
    let server = at(ip(0, 9), PORT);
    net.site(&[server], Some(config()));
    net.connect(0, &[(ip(0, 1), server), (ip(1, 1), server)], config());
    net.run(Span::from_secs(2));
    let both = [(at(ip(0, 1), PORT), PathState::Active), (at(ip(1, 1), 7777), PathState::Active)];
    assert_eq!(net.sites[1].paths(), both);
    assert_eq!(net.sites[1].reported(|event| matches!(event, AssociationEvent::PathAdded { .. })), 1);
    net.send(1, 100);
    net.read(0, 1_000_000);
    assert!(net.sent_to(ip(1, 1)).1 > 200_000);
}

#[test]
fn paths_are_added_and_removed_while_established() {
    let mut net = Net::new();
    net.site(&[at(ip(0, 1), PORT), at(ip(1, 1), PORT)], None);
    let server = at(ip(0, 9), 6000);
    net.site(&[server], Some(config()));
    net.connect(0, &[(ip(0, 1), server)], config());
    net.run(Span::from_secs(1));
    let pair = anabranch_core::PathAddress::over_udp(ip(1, 1), server);
    let now = net.now;
    let added = net.sites[0].one().add_path(now, pair).expect("there is room");
    net.run(Span::from_secs(1));
    assert_eq!(net.sites[0].paths(), [(server, PathState::Active); 2]);
    assert_eq!(net.sites[1].paths().len(), 2);
    let now = net.now;
    net.sites[0].one().remove_path(now, added).expect("it is there");
    // The other side tries to add the path, which does not restore it.
    net.send(1, 50);
    net.read(0, 500_000);
    net.run(Span::from_secs(30));
    assert_eq!(net.sites[0].paths(), [(server, PathState::Active)]);
    let of = |wanted: AssociationEvent| net.sites[0].reported(|event| *event == wanted);
    assert_eq!(of(AssociationEvent::PathAdded { path: added }), 1);
    assert_eq!(of(AssociationEvent::PathRemoved { path: added }), 1);
}

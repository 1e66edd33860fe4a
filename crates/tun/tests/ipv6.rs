//! IPv6 packets of well-behaved and hostile clients, and of the network.

use std::net::{Ipv4Addr, Ipv6Addr};

use anabranch_net::{Association, Endpoint};
use anabranch_tun::Count;

use crate::rig::{Served, payload, receive, send, udp, udp6, until};

const PUBLIC: Ipv6Addr = Ipv6Addr::new(0x2606, 0x4700, 0, 0, 0, 0, 0, 0x1111);
const GATEWAY: Ipv6Addr = Ipv6Addr::new(0xFD00, 1, 0, 0, 0, 0, 0, 1);

/// Connects a user, and returns the IPv6 address that the gateway has assigned.
async fn join(served: &Served, user: &str) -> (Endpoint, Association, Ipv6Addr) {
    let (endpoint, association, addresses) = served.join_both(user).await;
    (endpoint, association, addresses.v6.expect("an address"))
}

fn counts<const N: usize>(served: &Served, counted: [Count; N]) -> [u64; N] {
    counted.map(|count| served.gateway.tally().get(count))
}

fn address(text: &str) -> Ipv6Addr {
    text.parse().expect(text)
}

/// Returns an ICMPv6 packet of this type.
fn icmp(source: Ipv6Addr, destination: Ipv6Addr, kind: u8) -> Vec<u8> {
    let mut packet = udp6(source, destination, 0);
    (packet[6], packet[40]) = (58, kind);
    packet
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_reach_the_device_and_answers_the_user_with_the_address() {
    let served = Served::start("10.1.0.0/24");
    let (_one, first, own) = join(&served, "a").await;
    let (_other, second, other) = join(&served, "b").await;
    assert_ne!(own, other);
    send(&first, 0, [udp6(own, PUBLIC, 53)]).await;
    send(&second, 0, [udp6(other, PUBLIC, 54)]).await;
    until("both packets", || served.written.packets().len() == 2).await;
    for (association, address) in [(&second, other), (&first, own)] {
        let answer = udp6(PUBLIC, address, 1);
        served.gateway.route(answer.clone().into());
        assert_eq!(payload(receive(association).await), answer);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spoofed_malformed_and_forbidden_packets_are_dropped_and_counted() {
    let served = Served::start("10.1.0.0/24");
    let (_one, hostile, own) = join(&served, "a").await;
    let (_other, _victim, victim) = join(&served, "b").await;
    let longer = [udp6(own, PUBLIC, 53), vec![0]].concat();
    let bad = [
        udp6(victim, PUBLIC, 53),
        udp6(GATEWAY, PUBLIC, 53),
        udp6(PUBLIC, own, 53),
        udp6(Ipv4Addr::new(10, 1, 0, 2).to_ipv6_mapped(), PUBLIC, 53),
        udp6(address("fe80::1"), PUBLIC, 53),
        udp6(Ipv6Addr::UNSPECIFIED, PUBLIC, 53),
        longer,
        udp6(own, PUBLIC, 53)[..39].to_vec(),
        udp6(own, victim, 53),
        udp6(own, GATEWAY, 53),
        udp6(own, Ipv6Addr::LOCALHOST, 53),
        udp6(own, address("ff02::1"), 53),
        udp6(own, address("fe80::1"), 53),
        udp6(own, address("fd00:ec2::254"), 80),
        udp6(own, address("64:ff9b::a9fe:a9fe"), 80),
        udp6(own, address("2002:a00:1::1"), 80),
        udp6(own, address("::ffff:10.0.0.1"), 80),
    ];
    let number = bad.len() as u32;
    send(&hostile, 0, bad).await;
    let good = udp6(own, PUBLIC, 53);
    send(&hostile, number, [good.clone()]).await;
    until("the last packet", || !served.written.packets().is_empty()).await;
    assert_eq!(served.written.packets(), [good]);
    assert_eq!(counts(&served, [Count::Spoofed, Count::Malformed, Count::Forbidden]), [6, 2, 9]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_whose_ports_are_hidden_need_a_rule_for_all_ports() {
    let served = Served::start_with("10.1.0.0/24", &["*:53"]);
    let (_endpoint, hostile, own) = join(&served, "a").await;
    // Headers of options for hops, of routing, of fragments and of destinations, and no next header.
    let hidden = [0, 43, 44, 60, 59].map(|kind| {
        let mut packet = udp6(own, PUBLIC, 53);
        packet[6] = kind;
        packet
    });
    let number = hidden.len() as u32 + 1;
    send(&hostile, 0, hidden.into_iter().chain([icmp(own, PUBLIC, 128)])).await;
    let good = udp6(own, PUBLIC, 53);
    send(&hostile, number, [good.clone()]).await;
    until("the last packet", || !served.written.packets().is_empty()).await;
    assert_eq!((served.written.packets(), counts(&served, [Count::Forbidden])), (vec![good], [6]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_of_the_network_reach_users_only_from_permitted_targets() {
    let served = Served::start("10.1.0.0/24");
    let (_endpoint, association, own) = join(&served, "a").await;
    let private = address("fd99::1");
    served.gateway.route(udp6(private, own, 53).into());
    served.gateway.route(udp6(PUBLIC, address("fd00:1::200"), 53).into());
    served.gateway.route(udp6(PUBLIC, address("2606::1"), 53).into());
    served.gateway.route(icmp(private, own, 129).into());
    // Reports of group members, which the system sends on each device.
    served.gateway.route(udp6(address("fe80::1"), address("ff02::16"), 0).into());
    // A router with a private address reports that a packet was too long.
    let too_long = icmp(private, own, 2);
    served.gateway.route(too_long.clone().into());
    assert_eq!(payload(receive(&association).await), too_long);
    assert_eq!(counts(&served, [Count::Forbidden, Count::Spoofed, Count::Malformed]), [2, 2, 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_without_ipv6_assigns_none_and_drops_its_packets() {
    let served = Served::without_ipv6("10.1.0.0/24");
    let (_endpoint, association, addresses) = served.join_both("a").await;
    assert_eq!(addresses.v6, None);
    send(&association, 0, [udp6(address("fd00:1::2"), PUBLIC, 53)]).await;
    let good = udp(addresses.v4, Ipv4Addr::new(93, 184, 215, 14), 53);
    send(&association, 1, [good.clone()]).await;
    until("the last packet", || !served.written.packets().is_empty()).await;
    served.gateway.route(udp6(PUBLIC, address("fd00:1::2"), 1).into());
    assert_eq!((served.written.packets(), counts(&served, [Count::Spoofed])), (vec![good], [2]));
}

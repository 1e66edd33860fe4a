//! Gateways with well-behaved and hostile clients.

use std::net::Ipv4Addr;

use anabranch_tun::Count;
use anabranch_tun::message::{HEADER_BYTES, Lane, Message, Packet, Refusal, VERSION};

use crate::rig::{GATEWAY, Served, UNORDERED, payload, receive, send, udp, udp6, until, within};

const PUBLIC: Ipv4Addr = Ipv4Addr::new(93, 184, 215, 14);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_reach_the_device_and_answers_the_user_with_the_address() {
    let served = Served::start("10.1.0.0/24");
    let (_one, first, own) = served.join("a").await;
    let (_other, second, other) = served.join("b").await;
    assert_ne!(own, other);
    send(&first, 0, [udp(own, PUBLIC, 53), udp(own, GATEWAY, 53)]).await;
    send(&second, 0, [udp(other, PUBLIC, 54)]).await;
    until("three packets", || served.written.packets().len() == 3).await;
    for (association, address) in [(&second, other), (&first, own)] {
        let answer = udp(PUBLIC, address, 1);
        served.gateway.route(answer.clone().into());
        assert_eq!(payload(receive(association).await), answer);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spoofed_malformed_and_forbidden_packets_are_dropped_and_counted() {
    let served = Served::start("10.1.0.0/24");
    let (_one, hostile, own) = served.join("a").await;
    let (_other, _victim, victim) = served.join("b").await;
    let mut longer = udp(own, PUBLIC, 53);
    longer.push(0);
    let bad = [
        udp(victim, PUBLIC, 53),
        udp(GATEWAY, PUBLIC, 53),
        udp(PUBLIC, own, 53),
        longer,
        vec![0x45],
        vec![0x60; 60],
        udp(own, victim, 53),
        udp(own, Ipv4Addr::new(192, 168, 1, 1), 53),
        udp(own, Ipv4Addr::new(169, 254, 169, 254), 80),
        udp(own, Ipv4Addr::LOCALHOST, 53),
        udp(own, Ipv4Addr::BROADCAST, 53),
        udp(own, Ipv4Addr::new(10, 1, 0, 255), 53),
        udp(own, Ipv4Addr::new(224, 0, 0, 1), 53),
    ];
    send(&hostile, 0, bad).await;
    let good = udp(own, PUBLIC, 53);
    send(&hostile, 13, [good.clone()]).await;
    until("the last packet", || !served.written.packets().is_empty()).await;
    assert_eq!(served.written.packets(), [good]);
    let counts =
        [Count::Spoofed, Count::Malformed, Count::Forbidden].map(|count| served.gateway.tally().get(count));
    assert_eq!(counts, [3, 3, 7]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_between_users_are_forbidden_by_every_policy() {
    let served = Served::start_with("10.1.0.0/24", &["10.0.0.0/8:*", "[fd00::]/8:*"]);
    let (_one, hostile, own) = served.join_both("a").await;
    let (_other, bystander, victim) = served.join_both("b").await;
    let (own_v6, victim_v6) = (own.v6.expect("an address"), victim.v6.expect("an address"));
    let bad = [udp(own.v4, victim.v4, 53), udp6(own_v6, victim_v6, 53)];
    send(&hostile, 0, bad.clone()).await;
    let good = udp(own.v4, GATEWAY, 53);
    send(&hostile, 2, [good.clone()]).await;
    until("the last packet", || !served.written.packets().is_empty()).await;
    assert_eq!(served.written.packets(), [good]);
    for packet in bad {
        served.gateway.route(packet.into());
    }
    let answer = udp(GATEWAY, victim.v4, 1);
    served.gateway.route(answer.clone().into());
    assert_eq!(payload(receive(&bystander).await), answer);
    assert_eq!(served.gateway.tally().get(Count::Forbidden), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_of_the_network_reach_users_only_from_permitted_targets() {
    let served = Served::start("10.1.0.0/24");
    let (_endpoint, association, own) = served.join("a").await;
    let private = Ipv4Addr::new(192, 168, 1, 1);
    served.gateway.route(udp(private, own, 53).into());
    served.gateway.route(udp(PUBLIC, Ipv4Addr::new(10, 1, 0, 200), 53).into());
    served.gateway.route(vec![0; 30].into());
    // A router with a private address reports that a packet was too long.
    let mut too_long = udp(private, own, 0);
    (too_long[9], too_long[20]) = (1, 3);
    served.gateway.route(too_long.clone().into());
    assert_eq!(payload(receive(&association).await), too_long);
    let counts =
        [Count::Forbidden, Count::Spoofed, Count::Malformed].map(|count| served.gateway.tally().get(count));
    assert_eq!(counts, [1, 1, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_message_ends_the_association_and_no_other() {
    let served = Served::start("10.1.0.0/24");
    let (_other, bystander, addresses) = served.join_both("b").await;
    let address = addresses.v4;
    let flow = Packet { flow: u16::MAX, sequence: 0, sent_us: 0, payload: vec![0x45; 20].into() };
    let messages = [
        b"?".to_vec(),
        Message::Hello { version: VERSION }.encode(),
        Message::Welcome { addresses, lane: Lane::Permitted }.encode(),
        Message::Packet(flow).encode(),
        vec![4; HEADER_BYTES],
    ];
    for message in messages {
        let (_endpoint, association, _) = served.join("a").await;
        association.send(message, UNORDERED).await.expect("a message");
        within(association.closed()).await.expect_err("an abort");
    }
    let answer = udp(PUBLIC, address, 1);
    served.gateway.route(answer.clone().into());
    assert_eq!(payload(receive(&bystander).await), answer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_versions_are_refused_with_the_reason() {
    let served = Served::start("10.1.0.0/24");
    let later = [Message::Hello { version: VERSION + 1 }.encode(), b"more".to_vec()].concat();
    for hello in [Message::Hello { version: 0 }.encode(), later] {
        let (_endpoint, association) = served.begin("a", hello).await;
        assert_eq!(receive(&association).await, Some(Message::Refused(Refusal::Version)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_beyond_the_network_is_refused_and_later_served() {
    let served = Served::start("10.1.0.0/30");
    let (_one, first, address) = served.join("a").await;
    let hello = Message::Hello { version: VERSION }.encode();
    let (_other, refused) = served.begin("b", hello).await;
    assert_eq!(receive(&refused).await, Some(Message::Refused(Refusal::NoAddress)));
    let (_again, second, same) = served.join("a").await;
    assert_eq!(address, same, "a user has one address");
    within(first.closed()).await.expect_err("an abort of the earlier association");
    second.abort();
    loop {
        let (_endpoint, association) = served.begin("b", Message::Hello { version: VERSION }.encode()).await;
        if let Some(Message::Welcome { addresses, .. }) = receive(&association).await {
            assert_eq!(addresses.v4, address);
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_leaves_other_users_alone() {
    let served = Served::start("10.1.0.0/24");
    let (_one, hostile, own) = served.join("a").await;
    let (_other, bystander, address) = served.join("b").await;
    // Both directions: forbidden packets of the user, and packets for a user that does not read.
    send(&hostile, 0, std::iter::repeat_n(udp(own, Ipv4Addr::LOCALHOST, 1), 5000)).await;
    for _ in 0..20_000 {
        served.gateway.route(udp(PUBLIC, own, 1).into());
    }
    let answer = udp(PUBLIC, address, 1);
    served.gateway.route(answer.clone().into());
    assert_eq!(payload(receive(&bystander).await), answer);
    until("all are counted", || served.gateway.tally().get(Count::Forbidden) == 5000).await;
}

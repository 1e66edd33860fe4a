//! Clients with hostile gateways.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_net::{Association, Endpoint};
use anabranch_tun::message::{Addresses, Lane, Message, Refusal, VERSION};
use anabranch_tun::{Count, GreetError, Greeting, Tally, carry, greet};
use tokio::sync::mpsc;

use crate::rig::{GATEWAY, Listener, UNORDERED, Written, receive, send, udp, udp6, until, within};

const OWN: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const OWN_V6: Ipv6Addr = Ipv6Addr::new(0xFD00, 1, 0, 0, 0, 0, 0, 2);
const BOTH: Addresses = Addresses { v4: OWN, v6: Some(OWN_V6) };

/// Returns a client's association, and that of the gateway, which has received the first message.
async fn greeted(answer: Message) -> (Endpoint, Association, Association, Result<Greeting, GreetError>) {
    let listener = Listener::new();
    let ((endpoint, client), gateway) = tokio::join!(listener.connect(), listener.accept());
    let answering = async {
        assert_eq!(receive(&gateway).await, Some(Message::Hello { version: VERSION }));
        gateway.send(answer.encode(), UNORDERED).await.expect("a message");
    };
    let (greeted, ()) = tokio::join!(greet(&client), answering);
    // The listener's endpoint is needed as long as its association.
    std::mem::forget(listener);
    (endpoint, client, gateway, greeted)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_welcome_with_a_private_address_is_accepted() {
    let public = Ipv4Addr::new(8, 8, 8, 8);
    let public_v6 = Ipv6Addr::new(0x2606, 0x4700, 0, 0, 0, 0, 0, 0x1111);
    let only_v4 = Addresses { v6: None, ..BOTH };
    let welcome = |addresses, lane| Message::Welcome { addresses, lane };
    let refused = |address: IpAddr| Err(GreetError::Address(address));
    for (answer, expected) in [
        (welcome(BOTH, Lane::Permitted), Ok(Greeting { addresses: BOTH, lane: Lane::Permitted })),
        (welcome(only_v4, Lane::Forbidden), Ok(Greeting { addresses: only_v4, lane: Lane::Forbidden })),
        (welcome(Addresses { v4: public, ..BOTH }, Lane::Permitted), refused(public.into())),
        (
            welcome(Addresses { v4: Ipv4Addr::LOCALHOST, v6: None }, Lane::Forbidden),
            refused(Ipv4Addr::LOCALHOST.into()),
        ),
        (welcome(Addresses { v6: Some(public_v6), ..BOTH }, Lane::Permitted), refused(public_v6.into())),
        (
            welcome(Addresses { v6: Some(Ipv6Addr::LOCALHOST), ..BOTH }, Lane::Forbidden),
            refused(Ipv6Addr::LOCALHOST.into()),
        ),
        (Message::Refused(Refusal::NoAddress), Err(Refusal::NoAddress.into())),
        (Message::Probe, Err(GreetError::NoTunnel)),
    ] {
        let (_endpoint, _client, _gateway, greeted) = greeted(answer).await;
        assert_eq!(greeted, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_for_other_addresses_are_dropped_and_malformed_messages_end_it() {
    let (_endpoint, client, gateway, _) =
        greeted(Message::Welcome { addresses: BOTH, lane: Lane::Forbidden }).await;
    let (written, tally) = (Written::default(), Tally::default());
    let (_sender, mut packets) = mpsc::channel(1);
    let output = written.output();
    let carrying = carry(&client, BOTH, &mut packets, (&output, &tally), |_| {});
    let attack = async {
        let (good, public) = (udp(GATEWAY, OWN, 1), Ipv6Addr::new(0x2606, 0x4700, 0, 0, 0, 0, 0, 1));
        let good_v6 = udp6(public, OWN_V6, 1);
        let to_loopback = udp6(public, Ipv6Addr::LOCALHOST, 1);
        let other = [
            udp(GATEWAY, Ipv4Addr::LOCALHOST, 1),
            udp(OWN, GATEWAY, 1),
            vec![0x45; 20],
            to_loopback,
            // Router advertisements have such a source.
            udp6(Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 1), OWN_V6, 1),
            udp(Ipv4Addr::new(169, 254, 0, 1), OWN, 1),
            good.clone(),
            good_v6.clone(),
        ];
        send(&gateway, 0, other).await;
        until("the last packet", || written.packets().len() == 2).await;
        assert_eq!(written.packets(), [good, good_v6]);
        assert_eq!((tally.get(Count::Spoofed), tally.get(Count::Malformed)), (5, 1));
        gateway.send(vec![9], UNORDERED).await.expect("a message");
    };
    let (why, ()) = within(async { tokio::join!(carrying, attack) }).await;
    assert!(why.contains("malformed"), "{why}");
    within(client.closed()).await.expect_err("an abort");
}

//! Clients with hostile gateways.

use std::net::Ipv4Addr;

use anabranch_net::{Association, Endpoint};
use anabranch_tun::message::{Lane, Message, Refusal, VERSION};
use anabranch_tun::{Count, GreetError, Greeting, Tally, carry, greet};
use tokio::sync::mpsc;

use crate::rig::{GATEWAY, Listener, UNORDERED, Written, receive, send, udp, until, within};

const OWN: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);

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
    let welcome = |address, lane| Message::Welcome { address, lane };
    for (answer, expected) in [
        (welcome(OWN, Lane::Permitted), Ok(Greeting { address: OWN, lane: Lane::Permitted })),
        (welcome(OWN, Lane::Forbidden), Ok(Greeting { address: OWN, lane: Lane::Forbidden })),
        (welcome(public, Lane::Permitted), Err(GreetError::Address(public))),
        (welcome(Ipv4Addr::LOCALHOST, Lane::Forbidden), Err(GreetError::Address(Ipv4Addr::LOCALHOST))),
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
        greeted(Message::Welcome { address: OWN, lane: Lane::Forbidden }).await;
    let (written, tally) = (Written::default(), Tally::default());
    let (_sender, mut packets) = mpsc::channel(1);
    let output = written.output();
    let carrying = carry(&client, OWN, &mut packets, (&output, &tally), |_| {});
    let attack = async {
        let good = udp(GATEWAY, OWN, 1);
        let other =
            [udp(GATEWAY, Ipv4Addr::LOCALHOST, 1), udp(OWN, GATEWAY, 1), vec![0x45; 20], good.clone()];
        send(&gateway, 0, other).await;
        until("the last packet", || !written.packets().is_empty()).await;
        assert_eq!(written.packets(), [good]);
        assert_eq!((tally.get(Count::Spoofed), tally.get(Count::Malformed)), (2, 1));
        gateway.send(vec![9], UNORDERED).await.expect("a message");
    };
    let (why, ()) = within(async { tokio::join!(carrying, attack) }).await;
    assert!(why.contains("malformed"), "{why}");
    within(client.closed()).await.expect_err("an abort");
}

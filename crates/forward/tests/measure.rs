//! Measurement of an association with a gateway.

use std::time::Duration;

use anabranch_forward::message::{Answer, Notice, Request};
use anabranch_forward::{Failure, MeasureBounds, measure};
use anabranch_net::{Association, SendOptions};

use crate::rig::{LIMIT, Server, any, associate, connected, local_options, within};

const BOUNDS: MeasureBounds = MeasureBounds { bytes: 300_000, time: Duration::from_secs(60) };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn measurement_transfers_its_bytes_in_both_directions() {
    let (server, gateway) = Server::gateway(any(), local_options(), 1);
    let connected = connected(server.address).await.expect("a gateway");
    let measured = within(measure(&connected, BOUNDS)).await.expect("a measurement");
    assert!(measured.rtt > Duration::ZERO, "{measured:?}");
    assert!(measured.bytes >= 600_000, "{measured:?}");
    assert!((0.0..=1.0).contains(&measured.loss), "{measured:?}");
    assert_eq!(gateway.tally().totals(), anabranch_forward::Totals::default());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_sends_and_discards_no_more_than_the_bounds() {
    let (server, _gateway) = Server::gateway(any(), local_options(), 1);
    let (_endpoint, association) = associate(server.address, LIMIT).await.expect("an association");
    let (mut sender, mut receiver) = association.open_stream().await.expect("a stream");
    sender.send(Request::Measure(BOUNDS).encode()).await.expect("a request");
    let answer = within(receiver.recv()).await.expect("a message").expect("an answer");
    assert!(matches!(Answer::decode(&answer.payload), Ok(Answer::Ready { .. })));
    let mut received = 0;
    while let Ok(Some(message)) = within(receiver.recv()).await {
        received += message.payload.len();
    }
    assert_eq!(received, 300_000);
    let flooding = async { while sender.send(vec![0; 10_000]).await.is_ok() {} };
    within(flooding).await;
}

/// Gateway that answers a probe, and then the request of each stream with these messages.
fn hostile(answers: Vec<Vec<u8>>) -> Server {
    Server::start(any(), move |association: Association| {
        let answers = answers.clone();
        async move {
            let probes = async {
                while let Ok(Some(_)) = association.recv().await {
                    let reply = Notice::ProbeReply { instance: 1 }.encode();
                    let _ = association.send(reply, SendOptions::default().unordered()).await;
                }
            };
            let streams = async {
                while let Ok(Some((mut sender, mut receiver))) = association.accept_stream().await {
                    let _ = receiver.recv().await;
                    for answer in &answers {
                        let _ = sender.send(answer.clone()).await;
                    }
                    drop(receiver);
                    let _ = sender.stopped().await;
                }
            };
            tokio::join!(probes, streams);
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_without_measurements_is_reported_as_another_version() {
    let server = hostile(vec![Answer::Failed(Failure::Malformed).encode()]);
    let connected = connected(server.address).await.expect("a gateway");
    assert_eq!(within(measure(&connected, BOUNDS)).await, Err(Failure::Version));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_that_sends_too_much_ends_no_measurement_late() {
    let mut answers = vec![Answer::Ready { port: 0 }.encode()];
    answers.extend((0..100).map(|_| vec![0; 10_000]));
    let server = hostile(answers);
    let connected = connected(server.address).await.expect("a gateway");
    let bounds = MeasureBounds { time: Duration::from_secs(1), ..BOUNDS };
    let measured = within(measure(&connected, bounds)).await.expect("a measurement");
    assert!((300_000..1_000_000).contains(&measured.bytes), "{measured:?}");
}

//! Another protocol on the sockets of an endpoint.

use anabranch_core::LocalEnd;
use anabranch_net::{Config, SideDatagram};
use tokio::net::UdpSocket;

use super::rig::{Duo, any_port, expect, ip, quick, send, server, within};

#[tokio::test]
async fn side_datagrams_pass_between_the_sockets_of_two_endpoints() {
    let duo = Duo::connected(2, quick()).await;
    let ours = within(duo.client.side_channel()).await.expect("it runs");
    let mut theirs = within(duo.server.side_channel()).await.expect("it runs");
    assert_eq!(within(ours.local_ends()).await, [ip(11), ip(12)].map(LocalEnd::from));
    let to = duo.server.local_addresses()[1];
    let datagram = SideDatagram { local: ip(12).into(), remote: to, payload: vec![0, 0, 7] };
    ours.send(datagram);
    let arrived = within(theirs.recv()).await.expect("a datagram");
    let from = duo.client.local_addresses()[1];
    assert_eq!(arrived, SideDatagram { local: ip(2).into(), remote: from, payload: vec![0, 0, 7] });
    send(&duo.ours, "beside it").await;
    expect(&duo.theirs, "beside it").await;
}

#[tokio::test]
async fn flood_of_side_datagrams_is_dropped_and_associations_continue() {
    let duo = Duo::connected(1, quick()).await;
    let mut theirs = within(duo.server.side_channel()).await.expect("it runs");
    let stranger = UdpSocket::bind(any_port(13)).await.expect("a port");
    let to = duo.server.local_addresses()[0];
    for number in 0..2000_u16 {
        let payload = [&[0, 0][..], &number.to_be_bytes(), &[1; 100]].concat();
        let _ = stranger.send_to(&payload, to).await;
    }
    let _ = stranger.send_to(&[0; 5000], to).await;
    send(&duo.ours, "in spite of it").await;
    expect(&duo.theirs, "in spite of it").await;
    let mut waiting = 0;
    while let Ok(arrived) = tokio::time::timeout(std::time::Duration::ZERO, theirs.recv()).await {
        assert_eq!(arrived.expect("a datagram").payload.len(), 104, "longer ones are dropped");
        waiting += 1;
    }
    assert!(waiting <= 256, "{waiting}");
}

#[tokio::test]
async fn side_channel_ends_with_the_endpoint_or_for_another_one() {
    let server = server(&[1], Config::default());
    let mut first = within(server.side_channel()).await.expect("it runs");
    let mut second = within(server.side_channel()).await.expect("it runs");
    assert_eq!(within(first.recv()).await, None);
    drop(server);
    assert_eq!(within(second.recv()).await, None);
}

//! Streams of clients, which request TCP connections of the gateway. `crates/cli/tests` has those that succeed.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anabranch_forward::message::{Answer, MeasureBounds, Request};
use anabranch_forward::{Failure, Target};
use anabranch_net::Association;
use anabranch_tun::message::{Addresses, Lane, Message, VERSION};
use tokio::net::TcpListener;

use crate::rig::{GATEWAY, Served, receive, send, udp, until, within};

const NETWORK: &str = "10.1.0.0/24";
/// Rules that permit every address which a rule can permit.
const ALL: [&str; 4] = ["0.0.0.0/1:*", "128.0.0.0/1:*", "[::]/1:*", "[8000::]/1:*"];

/// Sends the first message of a stream, and returns the answer.
async fn ask(association: &Association, request: Vec<u8>) -> Option<Answer> {
    let (mut sender, mut receiver) = association.open_stream().await.expect("a stream");
    sender.send(request).await.expect("a request");
    let answer = within(receiver.recv()).await.ok().flatten()?;
    Some(Answer::decode(&answer.payload).expect("an answer"))
}

fn connect(text: &str) -> Vec<u8> {
    Request::Connect(text.parse::<Target>().expect(text)).encode()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loopback_names_and_other_users_are_forbidden_by_every_policy() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let served = Served::start_with(NETWORK, &ALL);
    let (_one, hostile, own) = served.join("a").await;
    let (_other, _bystander, Addresses { v4: victim, v6 }) = served.join_both("b").await;
    let victim_v6 = v6.expect("an address");
    let targets = [
        format!("127.0.0.1:{port}"),
        format!("127.255.255.254:{port}"),
        format!("[::1]:{port}"),
        format!("localhost:{port}"),
        "example.org:80".to_owned(),
        format!("{victim}:22"),
        format!("{own}:22"),
        format!("[{victim_v6}]:22"),
        "[fd00:1::ffff:0:1]:22".to_owned(),
        "[ff02::1]:22".to_owned(),
        "10.1.0.255:22".to_owned(),
        "0.0.0.0:22".to_owned(),
        "224.0.0.1:22".to_owned(),
    ];
    for target in &targets {
        let refused = Some(Answer::Failed(Failure::Forbidden));
        assert_eq!(ask(&hostile, connect(target)).await, refused, "{target}");
        let first = Request::ConnectFirst(target.parse().expect("a target")).encode();
        assert_eq!(ask(&hostile, first).await, refused, "{target}");
    }
    let failures: Vec<_> = served.connections.tally().totals().failures().collect();
    assert_eq!(failures, [(Failure::Forbidden, 2 * targets.len() as u64)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn special_addresses_need_a_rule_that_names_them() {
    let served = Served::start_with(NETWORK, &["*:443", "*.example.org:*", "192.0.2.1:80"]);
    let (_endpoint, hostile, _) = served.join("a").await;
    for target in [
        "10.0.0.1:443",
        "169.254.169.254:80",
        "168.63.129.16:443",
        "100.64.0.1:443",
        "[fd00:ec2::254]:443",
        "[64:ff9b::a00:1]:443",
        "192.0.2.1:81",
        "93.184.215.14:80",
        &format!("{GATEWAY}:53"),
    ] {
        let refused = Some(Answer::Failed(Failure::Forbidden));
        assert_eq!(ask(&hostile, connect(target)).await, refused, "{target}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_requests_are_refused_and_packets_continue() {
    let served = Served::start_with(NETWORK, &ALL);
    let (_endpoint, hostile, own) = served.join("a").await;
    let from = SocketAddr::new(IpAddr::from(Ipv4Addr::LOCALHOST), 1);
    let bounds = MeasureBounds { bytes: 1 << 20, time: Duration::from_secs(1) };
    for request in [
        Request::Listen { id: 1, listen: "0".parse().expect("a listener") },
        Request::Incoming { id: 1, from },
        Request::Measure(bounds),
    ] {
        let refused = Some(Answer::Failed(Failure::Forbidden));
        assert_eq!(ask(&hostile, request.encode()).await, refused, "{request:?}");
    }
    assert_eq!(ask(&hostile, b"\x01?".to_vec()).await, Some(Answer::Failed(Failure::Malformed)));
    let packet = udp(own, GATEWAY, 53);
    send(&hostile, 0, [packet.clone()]).await;
    until("the packet", || served.written.packets() == [packet.clone()]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_without_the_lane_reports_that_and_answers_no_stream() {
    let served = Served::without_lane(NETWORK);
    let hello = Message::Hello { version: VERSION }.encode();
    let (_endpoint, association) = served.begin("a", hello).await;
    let Some(Message::Welcome { addresses, lane: Lane::Forbidden }) = receive(&association).await else {
        panic!("a welcome");
    };
    let (mut sender, mut receiver) = association.open_stream().await.expect("a stream");
    sender.send(connect("93.184.215.14:80")).await.expect("a request");
    let packet = udp(addresses.v4, GATEWAY, 53);
    send(&association, 0, [packet.clone()]).await;
    until("the packet", || served.written.packets() == [packet.clone()]).await;
    association.abort();
    assert!(within(receiver.recv()).await.is_err(), "the stream ends with the association");
    assert_eq!(served.connections.tally().totals(), anabranch_forward::Totals::default());
}

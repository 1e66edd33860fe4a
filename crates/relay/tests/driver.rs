//! Relays on real loopback sockets. The tests do not depend on timing; a missing datagram is reported after a generous timeout.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use anabranch_core::time::{Rate, Span, Time};
use anabranch_relay::{Direction, Relay, RelayConfig, RelayError, Totals};
use anabranch_sim::{LinkChange, LinkConfig, LossModel, LossPlace, QueueConfig};
use tokio::net::UdpSocket;

const TIMEOUT: Duration = Duration::from_secs(20);
/// Time within which a datagram would arrive over loopback, where the test expects none.
const MOMENT: Duration = Duration::from_millis(50);

fn link(name: &str) -> LinkConfig {
    let (rate, delay) = (Rate::from_bps(1_000_000_000), Span::from_millis(1));
    LinkConfig::new(name, rate, delay, QueueConfig::packets(100_000))
}

async fn socket() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").await.expect("a socket")
}

fn config(target: &UdpSocket) -> RelayConfig {
    let to = target.local_addr().expect("an address");
    RelayConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)), to, link("there"), link("back"))
}

fn start(config: RelayConfig) -> Relay {
    Relay::start(config).expect("a relay")
}

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, future).await.unwrap_or_else(|_| panic!("{what}: waited in vain"))
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    soon(what, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

async fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = vec![0; 65_535];
    let (length, from) = soon("a datagram", socket.recv_from(&mut buffer)).await.expect("a datagram");
    buffer.truncate(length);
    (buffer, from)
}

async fn nothing_comes(socket: &UdpSocket) {
    let mut buffer = [0; 64];
    let waited = tokio::time::timeout(MOMENT, socket.recv_from(&mut buffer)).await;
    assert!(waited.is_err(), "something came: {waited:?}");
}

fn conserved(totals: &Totals) {
    let sum = |pick: fn(&anabranch_relay::Amount) -> u64| {
        let into = pick(&totals.offered) + pick(&totals.duplicated);
        let gone =
            [totals.delivered, totals.lost, totals.overflowed, totals.outage].iter().map(pick).sum::<u64>();
        (into, gone)
    };
    let (into, gone) = sum(|amount| amount.packets);
    assert_eq!(into, gone + totals.on_the_way, "{totals:?}");
    if totals.on_the_way == 0 {
        let (into, gone) = sum(|amount| amount.bytes);
        assert_eq!(into, gone, "{totals:?}");
    }
}

#[tokio::test]
async fn datagrams_go_both_ways_unchanged_and_in_order() {
    let (client, target) = (socket().await, socket().await);
    let relay = start(config(&target));
    for number in 0..50_u16 {
        let payload = vec![number as u8; usize::from(number) * 29];
        client.send_to(&payload, relay.local_addr()).await.expect("sent");
        let (there, from) = receive(&target).await;
        assert_eq!(there, payload);
        assert_eq!(from, relay.upstream_addrs()[0]);
        target.send_to(&payload, from).await.expect("sent");
        let (back, from) = receive(&client).await;
        assert_eq!((back, from), (payload, relay.local_addr()));
    }
    for direction in Direction::BOTH {
        let totals = relay.totals(direction);
        conserved(&totals);
        // 29 * (0 + 1 + ... + 49)
        assert_eq!((totals.delivered.packets, totals.delivered.bytes), (50, 29 * 1225));
        assert_eq!(totals.delivered.wire.get(), 29 * 1225 + 50 * 28);
    }
}

#[tokio::test]
async fn output_is_input_less_lost_and_dropped_datagrams() {
    let (client, target) = (socket().await, socket().await);
    let mut config = config(&target);
    config.forward =
        LinkConfig::new("there", Rate::from_bps(20_000_000), Span::from_millis(3), QueueConfig::packets(20))
            .with_loss(LossModel::Bernoulli(0.05), LossPlace::BeforeQueue);
    let relay = start(config);
    let (mut received, mut last) = (0, None);
    for burst in 0..20_u32 {
        for number in 0..50 {
            let mut payload = vec![0; 700];
            payload[..4].copy_from_slice(&(burst * 50 + number).to_be_bytes());
            client.send_to(&payload, relay.local_addr()).await.expect("sent");
        }
        let passed =
            |totals: &Totals| totals.offered.packets == u64::from(burst + 1) * 50 && totals.on_the_way == 0;
        until("a burst", || passed(&relay.totals(Direction::Forward))).await;
        // The system buffers a limited number of datagrams for a socket that is not read.
        while received < relay.totals(Direction::Forward).delivered.packets {
            let (payload, _) = receive(&target).await;
            let number = u32::from_be_bytes([payload[0], payload[1], payload[2], payload[3]]);
            assert!(last < Some(number), "{number} came after {last:?}");
            last = Some(number);
            received += 1;
        }
    }
    let totals = relay.totals(Direction::Forward);
    conserved(&totals);
    assert_eq!(totals.offered.bytes, 700_000);
    assert!(totals.lost.packets > 0 && totals.overflowed.packets > 0, "{totals:?}");
    assert_eq!(totals.unsent.packets, 0);
    nothing_comes(&target).await;
}

#[tokio::test]
async fn datagram_above_ethernet_size_is_dropped_and_counted() {
    let (client, target) = (socket().await, socket().await);
    let relay = start(config(&target));
    for length in [1472, 1473, 60_000, 8] {
        client.send_to(&vec![1; length], relay.local_addr()).await.expect("sent");
    }
    let (first, way) = receive(&target).await;
    assert_eq!([first.len(), receive(&target).await.0.len()], [1472, 8]);
    target.send_to(&[2; 1473], way).await.expect("sent");
    until("it is counted", || relay.totals(Direction::Reverse).too_large.packets == 1).await;
    let there = relay.totals(Direction::Forward);
    assert_eq!((there.too_large.packets, there.too_large.bytes, there.offered.packets), (2, 61_473, 2));
    conserved(&there);
}

#[tokio::test]
async fn a_cut_stops_both_directions_until_it_ends() {
    let (client, target) = (socket().await, socket().await);
    let relay = start(config(&target));
    client.send_to(b"before", relay.local_addr()).await.expect("sent");
    let (_, way) = receive(&target).await;
    relay.set_cut(true);
    client.send_to(b"during", relay.local_addr()).await.expect("sent");
    target.send_to(b"during", way).await.expect("sent");
    for direction in Direction::BOTH {
        until("a drop", || relay.totals(direction).outage.packets == 1).await;
    }
    relay.set_cut(false);
    client.send_to(b"after", relay.local_addr()).await.expect("sent");
    assert_eq!(receive(&target).await.0, b"after");
    target.send_to(b"after", way).await.expect("sent");
    assert_eq!(receive(&client).await.0, b"after");
}

#[tokio::test]
async fn scheduled_cut_starts_at_its_time() {
    let (client, target) = (socket().await, socket().await);
    let mut config = config(&target);
    config.changes = vec![(Direction::Forward, Time::ZERO, LinkChange::Down)];
    let relay = start(config);
    client.send_to(b"hello", relay.local_addr()).await.expect("sent");
    until("a drop", || relay.totals(Direction::Forward).outage.packets == 1).await;
    conserved(&relay.totals(Direction::Forward));
}

#[tokio::test]
async fn rebound_client_gets_another_port_and_earlier_datagrams() {
    let (client, target) = (socket().await, socket().await);
    let relay = start(config(&target));
    client.send_to(b"one", relay.local_addr()).await.expect("sent");
    let (_, old) = receive(&target).await;
    for _ in 0..10 {
        target.send_to(b"still to the old port", old).await.expect("sent");
    }
    relay.rebind_upstream().expect("another socket");
    for _ in 0..10 {
        assert_eq!(receive(&client).await.0, b"still to the old port");
    }
    client.send_to(b"two", relay.local_addr()).await.expect("sent");
    let (payload, new) = receive(&target).await;
    assert_eq!(payload, b"two");
    assert_ne!(old.port(), new.port());
    assert_eq!((relay.clients(), relay.upstream_addrs()), (1, vec![new]));
    // The old port is closed once its reader has ended.
    tokio::task::yield_now().await;
    target.send_to(b"too late", old).await.expect("sent");
    target.send_to(b"here", new).await.expect("sent");
    assert_eq!(receive(&client).await.0, b"here");
}

#[tokio::test]
async fn idle_client_is_forgotten_and_accepted_again() {
    let (client, target) = (socket().await, socket().await);
    let mut config = config(&target);
    config.idle = Duration::from_millis(400);
    let relay = start(config);
    for _ in 0..2 {
        client.send_to(b"hello", relay.local_addr()).await.expect("sent");
        receive(&target).await;
        until("forgetting", || relay.clients() == 0).await;
    }
    assert_eq!(relay.totals(Direction::Forward).delivered.packets, 2);
}

#[tokio::test]
async fn clients_beyond_the_limit_are_refused() {
    let target = socket().await;
    let mut config = config(&target);
    config.max_clients = 3;
    let relay = start(config);
    let mut clients = Vec::new();
    for number in 0..20_u64 {
        let client = socket().await;
        client.send_to(&[number as u8; 10], relay.local_addr()).await.expect("sent");
        clients.push(client);
        let seen = || {
            let totals = relay.totals(Direction::Forward);
            totals.offered.packets + totals.refused.packets
        };
        until("a client", || seen() == number + 1).await;
    }
    assert_eq!(relay.clients(), 3);
    let refused = relay.totals(Direction::Forward).refused;
    assert_eq!((refused.packets, refused.bytes, refused.wire.get()), (17, 170, 17 * 38));
    let mut came = Vec::new();
    for _ in 0..3 {
        let (payload, from) = receive(&target).await;
        came.push(payload[0]);
        target.send_to(&payload, from).await.expect("sent");
    }
    assert_eq!(came, [0, 1, 2]);
    for (number, client) in clients.iter().enumerate().take(3) {
        assert_eq!(receive(client).await.0, [number as u8; 10]);
    }
    nothing_comes(&clients[3]).await;
}

#[tokio::test]
async fn datagrams_of_every_size_and_a_target_without_a_socket_do_no_harm() {
    let (client, target) = (socket().await, socket().await);
    let config = RelayConfig { mtu_bytes: RelayConfig::ANY_SIZE, ..config(&target) };
    drop(target);
    let to = config.to;
    let relay = start(config);
    // Each causes an ICMP error, which must not affect the next datagram.
    for size in [0, 1, 1472, 9000, 65_507] {
        client.send_to(&vec![0xa5; size], relay.local_addr()).await.expect("sent");
    }
    until("delivery", || relay.totals(Direction::Forward).delivered.packets == 5).await;
    let target = UdpSocket::bind(to).await.expect("the same port");
    for size in [0, 65_507] {
        client.send_to(&vec![0x5a; size], relay.local_addr()).await.expect("sent");
        assert_eq!(receive(&target).await.0.len(), size);
    }
    conserved(&relay.totals(Direction::Forward));
}

#[tokio::test]
async fn strangers_do_not_reach_a_client() {
    let (client, target, stranger) = (socket().await, socket().await, socket().await);
    let relay = start(config(&target));
    client.send_to(b"hello", relay.local_addr()).await.expect("sent");
    let (_, way) = receive(&target).await;
    stranger.send_to(b"let me in", way).await.expect("sent");
    target.send_to(b"welcome", way).await.expect("sent");
    assert_eq!(receive(&client).await.0, b"welcome");
    assert_eq!(relay.totals(Direction::Reverse).offered.packets, 1);
}

#[tokio::test]
async fn relays_on_loopback_are_distinguished_by_address() {
    let (client, target) = (socket().await, socket().await);
    for last in [11, 12] {
        let mut config = config(&target);
        config.listen = SocketAddr::from(([127, 0, 0, last], 0));
        let relay = start(config);
        client.send_to(b"hello", relay.local_addr()).await.expect("sent");
        assert_eq!(receive(&target).await.1.ip(), relay.local_addr().ip());
    }
}

#[tokio::test]
async fn error_of_the_system_is_reported() {
    let target = socket().await;
    let taken = socket().await;
    let refused = |change: &dyn Fn(&mut RelayConfig)| {
        let mut config = config(&target);
        change(&mut config);
        Relay::start(config).err()
    };
    let busy = refused(&|c| c.listen = taken.local_addr().expect("an address"));
    assert!(matches!(busy, Some(RelayError::Listen { .. })), "{busy:?}");
    let foreign = refused(&|c| c.from = Some([192, 0, 2, 1].into()));
    assert!(matches!(foreign, Some(RelayError::Upstream { .. })), "{foreign:?}");
    let slow = refused(&|c| c.forward.rate = Rate::from_bps(0));
    assert!(matches!(slow, Some(RelayError::Link(_))), "{slow:?}");
}

#[tokio::test]
async fn stopped_relay_frees_its_address() {
    let (client, target) = (socket().await, socket().await);
    let mut config = config(&target);
    for _ in 0..5 {
        let relay = start(config.clone());
        config.listen = relay.local_addr();
        client.send_to(b"hello", relay.local_addr()).await.expect("sent");
        receive(&target).await;
        soon("the end", relay.stop()).await;
    }
}

#[tokio::test]
async fn flood_does_not_starve_other_clients() {
    let (client, stranger, target) = (socket().await, socket().await, socket().await);
    let mut config = config(&target);
    config.max_clients = 1;
    let relay = start(config);
    let listen = relay.local_addr();
    client.send_to(b"first", listen).await.expect("sent");
    let (_, way) = receive(&target).await;
    let flood = tokio::spawn(async move {
        loop {
            drop(stranger.send_to(&[0xff; 100], listen).await);
            tokio::task::yield_now().await;
        }
    });
    until("the flood", || relay.totals(Direction::Forward).refused.packets > 1000).await;
    for number in 0..20_u8 {
        target.send_to(&[number], way).await.expect("sent");
        assert_eq!(receive(&client).await.0, [number]);
    }
    flood.abort();
    assert_eq!(relay.clients(), 1);
}

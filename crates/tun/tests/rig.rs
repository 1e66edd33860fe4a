//! Associations over loopback, and devices that keep what is written to them.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_forward::{Limits, RemoteListen, configure};
use anabranch_net::{Association, Config, Endpoint, PathAddress, Peer, Protection, SendOptions};
use anabranch_tun::message::{Addresses, Lane, Message, Packet, VERSION};
use anabranch_tun::{Gateway, GatewayOptions, Networks, Output};
use bytes::Bytes;
use tokio::time::{sleep, timeout};

/// Time in which every step of a test ends on the slowest machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Address of the gateway in tunnels, which the policy of the tests permits.
pub(crate) const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(LIMIT, future).await.expect("an end in time")
}

/// Waits until a condition is true.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LIMIT, waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

/// Device that keeps the packets that are written to it.
#[derive(Clone, Default)]
pub(crate) struct Written(Arc<Mutex<Vec<Vec<u8>>>>);

impl Written {
    pub(crate) fn output(&self) -> Output {
        let kept = self.clone();
        Arc::new(move |packet| {
            kept.0.lock().unwrap_or_else(PoisonError::into_inner).push(packet.to_vec());
            true
        })
    }

    pub(crate) fn packets(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Listener of loopback.
pub(crate) struct Listener(Endpoint);

impl Listener {
    pub(crate) fn new() -> Self {
        let local = "127.0.0.1:0".parse().expect("an address");
        let endpoint =
            Endpoint::builder(Protection::Insecure).local(local).accept(configure(Config::default())).bind();
        Listener(endpoint.expect("an endpoint"))
    }

    pub(crate) async fn accept(&self) -> Association {
        within(self.0.accept()).await.expect("an association")
    }

    pub(crate) async fn connect(&self) -> (Endpoint, Association) {
        let local = "127.0.0.1:0".parse().expect("an address");
        let endpoint = Endpoint::builder(Protection::Insecure).local(local).bind().expect("an endpoint");
        let path =
            PathAddress::over_udp("127.0.0.1".parse().expect("an address"), self.0.local_addresses()[0]);
        let peer = Peer::new([path]).sctp_port(self.0.sctp_port());
        let association =
            within(endpoint.connect(peer, configure(Config::default()))).await.expect("an association");
        (endpoint, association)
    }
}

/// IPv6 network of the tests.
const IPV6: Option<&str> = Some("fd00:1::/64");

/// Gateway whose device keeps packets.
pub(crate) struct Served {
    pub(crate) gateway: Gateway,
    /// Gateway that opens the connections of the lane.
    pub(crate) connections: anabranch_forward::Gateway,
    pub(crate) written: Written,
    listener: Arc<Listener>,
}

impl Served {
    pub(crate) fn start(network: &str) -> Self {
        Self::start_with(network, &["10.1.0.1:*", "*:*"])
    }

    /// Starts a gateway that forbids the lane.
    pub(crate) fn without_lane(network: &str) -> Self {
        Self::build(network, &["10.1.0.1:*", "*:*"], (Lane::Forbidden, IPV6))
    }

    /// Starts a gateway that assigns no IPv6 addresses.
    pub(crate) fn without_ipv6(network: &str) -> Self {
        Self::build(network, &["*:*"], (Lane::Permitted, None))
    }

    /// Starts a gateway that permits these targets.
    pub(crate) fn start_with(network: &str, rules: &[&str]) -> Self {
        Self::build(network, rules, (Lane::Permitted, IPV6))
    }

    fn build(network: &str, rules: &[&str], (lane, v6): (Lane, Option<&str>)) -> Self {
        let v6 = v6.map(|text| text.parse().expect(text));
        let networks = Networks { v4: network.parse().expect(network), v6 };
        let written = Written::default();
        let rules: Vec<_> = rules.iter().map(|text| text.parse().expect(text)).collect();
        let policy = anabranch_forward::Policy::new(rules);
        let connections = anabranch_forward::Gateway::new(
            anabranch_forward::GatewayOptions {
                policy: policy.clone(),
                limits: Limits::default(),
                connect_timeout: LIMIT,
                remote_listen: RemoteListen::Any,
            },
            1,
        );
        let lane = (lane == Lane::Permitted).then(|| connections.clone());
        let options = GatewayOptions { networks, policy, lane };
        let gateway = Gateway::new(options, written.output());
        Served { gateway, connections, written, listener: Arc::new(Listener::new()) }
    }

    /// Connects a user who sends this first message.
    pub(crate) async fn begin(&self, user: &str, hello: Vec<u8>) -> (Endpoint, Association) {
        let (gateway, listener, user) = (self.gateway.clone(), Arc::clone(&self.listener), user.to_owned());
        tokio::spawn(async move {
            let association = listener.accept().await;
            let Ok(Some(first)) = association.recv().await else { return };
            gateway.serve(association.clone(), &first.payload, &user, |_| {}, Arc::new(|_| {})).await;
            let _ = association.closed().await;
        });
        let (endpoint, association) = self.listener.connect().await;
        association.send(hello, UNORDERED).await.expect("a message");
        (endpoint, association)
    }

    /// Connects a user, and returns the IPv4 address that the gateway has assigned.
    pub(crate) async fn join(&self, user: &str) -> (Endpoint, Association, Ipv4Addr) {
        let (endpoint, association, addresses) = self.join_both(user).await;
        (endpoint, association, addresses.v4)
    }

    /// Connects a user, and returns the addresses of both families.
    pub(crate) async fn join_both(&self, user: &str) -> (Endpoint, Association, Addresses) {
        let (endpoint, association) = self.begin(user, Message::Hello { version: VERSION }.encode()).await;
        match receive(&association).await {
            Some(Message::Welcome { addresses, lane: Lane::Permitted }) => (endpoint, association, addresses),
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) const UNORDERED: SendOptions = SendOptions {
    duplicate: false,
    stream: 0,
    ppid: 0,
    unordered: true,
    immediate: false,
    reliability: anabranch_net::Reliability::Full,
    context: 0,
};

pub(crate) async fn receive(association: &Association) -> Option<Message> {
    let message = within(association.recv()).await.ok().flatten()?;
    Some(Message::decode(&message.payload).expect("a message"))
}

/// Sends IP packets as one flow, from this number.
pub(crate) async fn send(association: &Association, first: u32, packets: impl IntoIterator<Item = Vec<u8>>) {
    for (sequence, payload) in (first..).zip(packets) {
        let packet = Packet { flow: 1, sequence, sent_us: 0, payload: payload.into() };
        association.send(Message::Packet(packet).encode(), UNORDERED).await.expect("a message");
    }
}

/// Adds a UDP header with this destination port, and four bytes.
fn with_udp(mut bytes: Vec<u8>, port: u16) -> Vec<u8> {
    bytes.extend([0, 7]);
    bytes.extend(port.to_be_bytes());
    bytes.extend([0, 12, 0, 0, 1, 2, 3, 4]);
    bytes
}

/// Returns an IPv4 packet of UDP with these addresses and destination port.
pub(crate) fn udp(source: Ipv4Addr, destination: Ipv4Addr, port: u16) -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0];
    bytes.extend(source.octets());
    bytes.extend(destination.octets());
    with_udp(bytes, port)
}

pub(crate) fn payload(message: Option<Message>) -> Bytes {
    match message {
        Some(Message::Packet(packet)) => packet.payload,
        other => panic!("{other:?}"),
    }
}

/// Returns an IPv6 packet of UDP with these addresses and destination port.
pub(crate) fn udp6(source: Ipv6Addr, destination: Ipv6Addr, port: u16) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0, 0, 12, 17, 64];
    bytes.extend(source.octets());
    bytes.extend(destination.octets());
    with_udp(bytes, port)
}
